"""Read and change the trust records in a team's bucket. One object of limited size contains all of them."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from holdfast.identity import trust
from holdfast.identity.records import is_newer
from holdfast.identity.trust import KEY, Change, Records, Unreadable
from holdfast_cli.bucket.records import as_lines, caller_arn, change, open_bucket
from holdfast_cli.errors import CommandError
from holdfast_cli.terminal import versions

if TYPE_CHECKING:
    from collections.abc import Sequence

    import boto3

    from holdfast.identity.trust import Trust
    from holdfast_cli.bucket.stack import Stack

_INTERRUPTED: Final = "`holdfast trust list` shows whether the command took effect."


def read(session: "boto3.Session", stack: "Stack") -> Records:
    """Return all trust records."""
    with as_lines(stack, outcome_unknown="Run the command again."):
        stored = open_bucket(session, stack).read(KEY)
        return _parse(stored.body if stored else None, stack.bucket)


def read_one(session: "boto3.Session", stack: "Stack", name: str) -> "Trust":
    """Return a record by its name; `CommandError` without a valid one."""
    return _named(read(session, stack), name, stack)


def create(session: "boto3.Session", stack: "Stack", record: "Trust") -> "Trust":
    """Create a record, and return it with its creator. `CommandError` if its name or AWS role is taken.

    After a concurrent change the write is retried, except in one case: an earlier attempt may have stored the
    record, but the record is absent. Then somebody may have removed it, and another record with the same ID
    would make the removed record's sessions valid again.
    """
    unknown = (
        f"Before you run the command again, check with `holdfast trust list` whether {record.name} exists."
    )
    with as_lines(stack, outcome_unknown=unknown, interrupted=_INTERRUPTED):
        record = replace(record, created_by=caller_arn(session))
        store = open_bucket(session, stack)

        def decide(current: bytes | None) -> bytes | None:
            records = _parse(current, stack.bucket)
            there = records.named(record.name)
            if there is not None and there.id == record.id:
                # An attempt without a response took effect, and others have made changes since.
                return None
            if there is None and "PutObject" in store.budget.unconfirmed:
                raise CommandError(
                    "Another operator changed the trust records at the same time, and may have removed "
                    f"{record.name} after it was created. Check with `holdfast trust list`, and run the "
                    "command again if the record is missing."
                )
            try:
                return records.added(record).to_json()
            except ValueError as error:
                raise CommandError(f"The trust record was not created: {error}.") from error

        change(store, KEY, decide)
    return record


def update(
    session: "boto3.Session",
    stack: "Stack",
    name: str,
    *,
    change_grants: Change,
    description: str | None,
    owner: str | None,
    networks: "Sequence[str] | None",
) -> "tuple[Trust, Trust]":
    """Change a record's values; None is no change. Return the record before and after.

    The write is retried only after concurrent changes of other records. After another update of the same
    record, a retry could grant again what that update had removed.
    """
    unknown = (
        f"Before you run the command again, check with `holdfast trust show {name}` whether it was updated."
    )
    with as_lines(stack, outcome_unknown=unknown, interrupted=_INTERRUPTED):
        identity = caller_arn(session)
        made: list[tuple[Trust, Trust]] = []

        def decide(current: bytes | None) -> bytes | None:
            records = _parse(current, stack.bucket)
            there = records.named(name)
            if made and (there is None or there.id != made[0][0].id):
                raise CommandError(
                    f"Another operator removed the trust record {name}, or created it again, at the same "
                    "time. This command changed nothing. `holdfast trust list` shows whether the record "
                    "exists."
                )
            there = _named(records, name, stack)
            if made and there == made[-1][1]:
                return None  # an attempt without a response took effect
            if made and there != made[-1][0]:
                who = there.updated_by or "Another operator"
                raise CommandError(
                    f"{who} updated the trust record {name} at the same time. Look at the record with "
                    "`holdfast trust list`, and run the command again if the record must still change."
                )
            try:
                after = trust.update(
                    there,
                    change=change_grants,
                    description=description,
                    owner=owner,
                    networks=networks,
                    updated_by=identity,
                    now=datetime.now(UTC),
                )
                made.append((there, after))
                return None if after == there else records.updated(after).to_json()
            except ValueError as error:
                raise CommandError(f"The trust record was not changed: {error}.") from error

        change(open_bucket(session, stack), KEY, decide)
    return made[-1]


def remove(session: "boto3.Session", stack: "Stack", name: str) -> "Trust | Unreadable":
    """Remove a record, and return it. A record that others create meanwhile under the name is kept."""
    again = "Run the command again until it says that the trust record does not exist."
    with as_lines(stack, outcome_unknown=again, interrupted=again):
        removed: list[Trust | Unreadable] = []

        def decide(current: bytes | None) -> bytes | None:
            records = _parse(current, stack.bucket)
            there = records.named(name)
            if removed and (there is None or there.id != removed[0].id):
                return None  # an attempt without a response took effect, or somebody else removed it
            if there is None:
                raise _none_of(name, stack.bucket)
            removed.append(there)
            return records.without(name).to_json()

        change(open_bucket(session, stack), KEY, decide)
    return removed[0]


def unreadable(stack: "Stack", records: Records, record: Unreadable) -> str:
    """Return the line about a record that this command does not understand."""
    where = f"s3://{stack.bucket}/{KEY}"
    which = f"The trust record {record.name or 'without a name'} in {where}"
    if "schema" in records.newer:
        return versions.newer_record(which)
    remove = f", or remove it with `holdfast trust remove {record.name}`" if record.name else ""
    return f"{which} is damaged, so it lets nobody sign in. Look at it with `aws s3 cp {where} -`{remove}."


def _named(records: Records, name: str, stack: "Stack") -> "Trust":
    there = records.named(name)
    if there is None:
        raise _none_of(name, stack.bucket)
    if isinstance(there, Unreadable):
        raise CommandError(unreadable(stack, records, there))
    return there


def _none_of(name: str, bucket: str) -> CommandError:
    return CommandError(
        f"There is no trust record {name} in the bucket {bucket}. `holdfast trust list` shows all trust "
        "records of the team. For another team, use --team."
    )


def _parse(body: bytes | None, bucket: str) -> Records:
    if body is None:
        return Records()
    try:
        return trust.parse(body)
    except ValueError as error:
        if is_newer(body):
            raise CommandError(versions.newer_record(f"s3://{bucket}/{KEY}")) from error
        raise CommandError(
            f"The object s3://{bucket}/{KEY}, which has the trust records, is damaged, so nobody can sign in "
            f"with a trust record. Look at the object with `aws s3 cp s3://{bucket}/{KEY} -`. To repair it, "
            "write an earlier version of the object with `aws s3api put-object --if-match`, because the "
            "bucket refuses an unconditional write."
        ) from error

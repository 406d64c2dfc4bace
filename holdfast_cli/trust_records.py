"""Trust records in a team's bucket: all of them lie in one object."""

from typing import TYPE_CHECKING, Final

from holdfast.identity import trust
from holdfast.identity.trust import KEY, Records
from holdfast_cli.errors import CommandError
from holdfast_cli.records import as_lines, change, open_bucket

if TYPE_CHECKING:
    import boto3

    from holdfast.identity.trust import Trust

_INTERRUPTED: Final = "`holdfast trust list` shows whether it took effect."


def read(session: "boto3.Session", bucket: str) -> Records:
    """Read all trust records.

    Raises:
        CommandError: AWS does not allow it or does not answer, or they are no trust records.
    """
    with as_lines(bucket, undecided="run the command again."):
        found = open_bucket(session, bucket).read(KEY)
        return _parse(found.body if found else None, bucket)


def add(session: "boto3.Session", bucket: str, record: "Trust") -> None:
    """Add a record.

    Raises:
        CommandError: its name or its AWS role has one already, there is no room, or AWS does not allow it or
            does not answer.
    """
    undecided = f"look with `holdfast trust list` whether {record.name} is there before you run it again."
    with as_lines(bucket, undecided=undecided, interrupted=_INTERRUPTED):

        def decide(current: bytes | None) -> bytes | None:
            records = _parse(current, bucket)
            there = records.named(record.name)
            if there is not None and there.id == record.id:
                return (
                    None  # an attempt took effect whose answer was lost, and others have changed more since
                )
            try:
                return records.added(record).to_json()
            except ValueError as error:
                raise CommandError(f"It was not added: {error}.") from error

        change(open_bucket(session, bucket), KEY, decide)


def remove(session: "boto3.Session", bucket: str, name: str) -> "Trust":
    """Remove a record.

    One that others make anew under that name at the same time stays.

    Returns:
        What was removed.

    Raises:
        CommandError: there is none of that name, or AWS does not allow it or does not answer.
    """
    again = "run the command again until it says that there is none of that name."
    with as_lines(bucket, undecided=again, interrupted=again.capitalize()):
        removed: list[Trust] = []

        def decide(current: bytes | None) -> bytes | None:
            records = _parse(current, bucket)
            there = records.named(name)
            if removed and (there is None or there.id != removed[0].id):
                return None  # an attempt took effect whose answer was lost, or somebody else was faster
            if there is None:
                raise CommandError(
                    f"There is no trust record {name} in the bucket {bucket}: `holdfast trust list` shows "
                    "all, and --team chooses whose."
                )
            removed.append(there)
            return records.without(name).to_json()

        change(open_bucket(session, bucket), KEY, decide)
    return removed[0]


def _parse(body: bytes | None, bucket: str) -> Records:
    if body is None:
        return Records()
    try:
        return trust.parse(body)
    except ValueError as error:
        raise CommandError(
            f"s3://{bucket}/{KEY} holds no trust records that this command knows, so nobody gets in by one: "
            f"look at it with `aws s3 cp s3://{bucket}/{KEY} -`; its versions have what it was before."
        ) from error

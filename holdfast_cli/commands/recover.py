"""`holdfast recover`: turns the replica of a team's state bucket into the team's state bucket."""

import argparse
from typing import TYPE_CHECKING

from holdfast import team as names
from holdfast_cli.config import arguments, settings
from holdfast_cli.errors import CommandError
from holdfast_cli.terminal import ages, asking, output
from holdfast_cli.terminal.declaration import Command, option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from holdfast_cli.bucket.recovering import Late, Listing, ReplicaLock, Side
    from holdfast_cli.bucket.stack import Stack

COMMAND = Command()

_AGAIN = "Run the command again. It continues where it stopped."


@COMMAND.define(
    """\
Run this command before and after you deploy the team's stack on the replica. Before the
deployment, while the replica's stack exists, the command makes the old bucket refuse
writes, and lists the states and records that S3 has not copied yet. When the list is
empty, delete the replica's stack, and deploy the team's stack on the replica. After
that deployment, the command compares both buckets again, and removes each lock that S3
copied from the old bucket. It does not remove freezes. You can repeat the command at
any time. Needs AWS credentials for both buckets.""",
    """\
  holdfast recover --team payments --region eu-west-1 --from eu-central-1
  holdfast recover --team payments --region eu-west-1 --from eu-central-1 --old-side-is-gone --yes
""",
    option("--from", dest="source", required=True, metavar="REGION", help="the region that the team leaves"),
    option(
        "--old-side-is-gone",
        action="store_true",
        help=(
            "continue although the command cannot make the old bucket refuse writes; use it only if no "
            "client can write there"
        ),
    ),
    option("--yes", action="store_true", help="do not ask for confirmation"),
    arguments.TEAM,
    arguments.as_json(),
)
def _recover(args: argparse.Namespace) -> None:
    from holdfast_cli.bucket import records, recovering, stack

    chosen = settings.resolve(args)
    session = stack.open_account(chosen)
    replica = stack.find_replica(session, chosen.team) if chosen.team else None
    place = replica or stack.find(session, chosen.team)
    with records.as_lines(place, outcome_unknown=_AGAIN, interrupted=_AGAIN):
        new = recovering.side(session, place.bucket, place.account)
        old_bucket = names.bucket_name(place.team, place.account, args.source)
        old = recovering.side(session, old_bucket, place.account, args.source)
        if old.bucket == new.bucket:
            raise CommandError(
                f"--from and the command's own region are both {args.source}. With --from, name the region "
                "that the team leaves. With --region, name the region of the replica."
            )
        if replica:
            _compare(args, replica, old, new)
        else:
            _take_over(args, place, old, new, session.clock.now)


def _compare(args: argparse.Namespace, replica: "Stack", old: "Side", new: "Side") -> None:
    """Fence the old side and compare both, while S3 can still copy. Only the last of these runs succeeds."""
    from holdfast_cli.bucket import recovering

    if not args.yes:
        asking.for_word(f"The command makes the bucket {old.bucket} refuse writes.", replica.team)
    stack_name = names.replica_stack_name(replica.team)
    try:
        was_fenced = recovering.fence(old, new)
    except recovering.NoReplicaError:
        raise
    except CommandError as error:
        raise CommandError(
            f"The command cannot make the old bucket {old.bucket} refuse writes: {error} If the bucket is "
            "not available, wait until it is, and run the command again: S3 then copies the remaining "
            f"objects. If you cannot wait, delete the stack {stack_name} although the buckets were not "
            "compared."
        ) from error
    progress = output.Progress()
    there, here = recovering.listing(old, progress), recovering.listing(new, progress)
    late = recovering.late(old, new, there, here)
    if args.json:
        changed = here.changed_lately()
        output.write_json(_document(replica, old, None, late, changed, is_fenced=True))
    else:
        lines = [_fenced(old), *_not_current(late)]
        output.write("\n".join(output.wrapped(output.plain(line)) for line in lines))
    if missing := [entry for entry in late if not entry.below]:
        raise CommandError(
            f"S3 has not copied {_counted(missing, 'object')} of {old.bucket} yet. Do not delete the stack "
            f"{stack_name} now, because S3 copies only while the stack exists. Run the command again every "
            "few minutes until the command lists no object. If an object stays in the list, copy it with S3 "
            "Batch Replication, as docs/operate/recovery.md says."
        )
    if not was_fenced:
        raise CommandError(
            f"S3 may accept writes to {old.bucket} for some more seconds. Wait a minute, run the command "
            f"again, and then delete the stack {stack_name} as docs/operate/recovery.md says."
        )
    if not args.json:
        done = (
            f"S3 has copied the current version of every object. Now delete the stack {stack_name} as "
            "docs/operate/recovery.md says."
        )
        output.write(output.wrapped(done))


def _take_over(
    args: argparse.Namespace, deployed: "Stack", old: "Side", new: "Side", now: "Callable[[], datetime]"
) -> None:
    """Fence the old side, compare both, and remove the locks of the old side."""
    from holdfast_cli.bucket import recovering

    if not args.yes:
        asking.for_word(
            f"The command makes the bucket {old.bucket} refuse writes, and removes from the bucket "
            f"{new.bucket} each lock that S3 copied there.",
            deployed.team,
        )
    progress = output.Progress()
    is_fenced = _fence(old, new, is_gone=args.old_side_is_gone)
    there = recovering.listing(old, progress) if is_fenced else None
    here = recovering.listing(new, progress)
    late = recovering.late(old, new, there, here) if there else []

    locks = recovering.locks_in(new, here, there, progress)
    stale = [lock for lock in locks if lock.is_stale]
    if not args.json:
        _write_before(old, stale, now(), is_fenced=is_fenced)
    staying = recovering.remove(new, here, there, locks, progress)
    changed = here.changed_lately()
    if args.json:
        locks = sorted([*stale, *staying], key=lambda lock: lock.name.value)
        output.write_json(_document(deployed, old, locks, late, changed, is_fenced=is_fenced))
    else:
        _write_after(stale, staying, late, here, changed, is_fenced=is_fenced)
    if missing := [entry for entry in late if not entry.below]:
        raise CommandError(
            f"S3 has not copied the newest version of {_counted(missing, 'object')} of {old.bucket}. Wait a "
            "minute, and run the command again. If the command still lists a state, bring the state up to "
            "date in the new bucket before a client writes: push the content from the old bucket with "
            "`terraform state push`, or use `holdfast state delete` if the state is deleted in the old "
            "bucket."
        )
    if late:
        raise CommandError(
            f"In {new.bucket}, the current version of {_counted(late, 'object')} is older than in the old "
            "bucket. Before a client writes, make the listed versions current with `holdfast state restore`. "
            "If a state is deleted in the new bucket, use `holdfast state undelete`. If a state is deleted "
            "in the old bucket, use `holdfast state delete`."
        )


def _fence(old: "Side", new: "Side", *, is_gone: bool) -> bool:
    """Fence the old side. Return whether it is fenced; if it is not, somebody has said that it is gone."""
    from holdfast_cli.bucket import recovering

    try:
        recovering.fence(old, new)
    except recovering.NoReplicaError:
        raise
    except CommandError as error:
        if not is_gone:
            asking.for_word(
                f"The command cannot make the old bucket {old.bucket} refuse writes: {error} Later writes "
                "to that bucket would be lost.",
                "gone",
                "use --old-side-is-gone if no client can write to that bucket any more",
            )
        return False
    return True


def _write_before(old: "Side", stale: "Sequence[ReplicaLock]", now: "datetime", *, is_fenced: bool) -> None:
    lines = [_fenced(old)] if is_fenced else []
    if stale:
        written = ages.ago if output.is_brief(long=False) else output.word
        rows = [
            (
                entry.name.value,
                written(entry.lock.version.last_modified, now),
                entry.lock.holder,
                entry.lock.info.who,
                entry.lock.info.id,
            )
            for entry in stale
        ]
        lines.append(output.table(("STATE", "SINCE", "HELD BY", "CLIENT SAYS", "ID"), rows))
    if lines:
        output.write("\n".join(lines))


def _write_after(
    stale: "Sequence[ReplicaLock]",
    staying: "Sequence[ReplicaLock]",
    late: "Sequence[Late]",
    here: "Listing",
    changed: "Sequence[str]",
    *,
    is_fenced: bool,
) -> None:
    from holdfast_cli.bucket import recovering

    lines = [f"Removed {_counted(stale, 'lock')} that S3 had copied from the old bucket."]
    for entry in staying:
        if entry.lock.freeze:
            lines.append(
                f"{entry.name} is still frozen: {entry.lock.freeze.reason}. If the freeze was lifted in the "
                f"old bucket, run `holdfast state unfreeze {entry.name}`."
            )
        else:
            lines.append(
                f"The lock {entry.lock.info.id} of {entry.name} was not removed, because S3 does not report "
                f"it as a copy. If the lock's holder is gone, run `holdfast lock break {entry.name}`."
            )
    lines += _not_current(late)
    if not is_fenced:
        lines.append(
            "The old bucket was not compared, because the command could not make it refuse writes. So it is "
            "unknown whether S3 copied the newest versions of the states. For each state, check that "
            "`holdfast state history STATE` shows the last apply of its pipeline."
        )
    if changed and here.newest:
        hours = int(recovering.LATELY.total_seconds()) // 3600
        lines.append(
            f"S3 made its newest copy {output.moment(here.newest)}, so later changes, such as a revocation, "
            "may be missing. Check that the following tokens and trust records still grant only what they "
            f"should, because they changed within {hours} h before that copy: {', '.join(changed)}"
        )
    output.write("\n".join(output.wrapped(output.plain(line)) for line in lines))


def _fenced(old: "Side") -> str:
    from holdfast_cli.bucket import recovering

    return f"The bucket {old.bucket} refuses writes now (statement {recovering.FENCE.sid} of its policy)."


def _not_current(late: "Sequence[Late]") -> "Iterator[str]":
    for each in late:
        what = f"state {each.state}" if each.state else f"object {each.key}"
        missing = (
            f"The version {each.below} of the {what} is not current in the new bucket."
            if each.below
            else f"S3 has not copied the newest version of the {what}."
        )
        yield f"{missing} Old bucket: {each.there}. New bucket: {each.here}."


def _counted(items: "Sequence[object]", what: str) -> str:
    return f"{len(items)} {what}{'' if len(items) == 1 else 's'}"


def _document(
    deployed: "Stack",
    old: "Side",
    locks: "Sequence[ReplicaLock] | None",
    late: "Sequence[Late]",
    changed: "Sequence[str]",
    *,
    is_fenced: bool,
) -> dict[str, object]:
    not_copied = [entry.to_json() for entry in late if not entry.below]
    not_current = [entry.to_json() | {"version": entry.below} for entry in late if entry.below]
    return {
        "team": deployed.team,
        "bucket": deployed.bucket,
        "old_bucket": old.bucket,
        "fenced": is_fenced,
        # null: not looked at, because the stack of the replica is still there
        "locks": None if locks is None else [lock.to_json() for lock in locks],
        # null: the old side cannot be read
        "not_copied": not_copied if is_fenced else None,
        "not_current": not_current if is_fenced else None,
        "changed_lately": list(changed),
    }

"""`holdfast lock`: shows locks and their holders, and breaks a lock."""

import argparse
import shlex
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from holdfast.access import named
from holdfast.api import form
from holdfast_cli.api.sign_in import sign_in
from holdfast_cli.api.state_texts import (
    client_says,
    colour,
    freeze_brief,
    freeze_words,
    holder,
    lock_brief,
    lock_fields,
    lock_id,
    lock_sentence,
    lock_words,
    operation,
    word,
)
from holdfast_cli.config import arguments, rules
from holdfast_cli.errors import CommandError
from holdfast_cli.terminal import ages, asking, output
from holdfast_cli.terminal.declaration import Command, option
from holdfast_cli.terminal.people import brief_person

if TYPE_CHECKING:
    from holdfast.api import v1

COMMAND = Command(
    "Show who holds which lock, and break a lock whose holder is gone.",
    """\
  holdfast lock list --older-than 1h
  holdfast lock show network/prod
  holdfast lock break --help
""",
)


@COMMAND.add(
    "list",
    "list locks and their holders",
    """\
Show the locks and freezes of the states in your scope, the oldest first, and the
frozen patterns that your scope covers completely. On a terminal, the states that a
pattern froze are below the pattern.""",
    """\
  holdfast lock list
  holdfast lock list network/ --older-than 1h
  holdfast lock list --json
""",
    arguments.PREFIX,
    option(
        "--older-than",
        type=rules.duration,
        metavar="DURATION",
        help="show only locks that have been held longer than this, such as 1h",
    ),
    arguments.API,
    arguments.LONG,
    arguments.as_json("one JSON array; a frozen pattern has `pattern`, and no `name`"),
)
def _list(args: argparse.Namespace) -> None:
    from holdfast.api import v1

    api = sign_in(args)
    listed = api.pages(v1.ListedLock, "locks", "locks", prefix=args.states.prefix)
    locks: list[v1.ListedLock | v1.PatternFreeze] = [lock for lock in listed if args.states.covers(lock.name)]
    freezes = api.get(v1.PatternFreezes, "freezes").freezes
    locks += [freeze for freeze in freezes if _may_match(freeze.pattern, args.states.prefix)]
    if args.older_than is not None:
        before = api.now() - args.older_than
        locks = [lock for lock in locks if lock.since and lock.since <= before]
    locks.sort(key=lambda lock: word(lock, "since"))
    if args.json:
        output.write_json([lock.raw for lock in locks])
        return
    if not locks:
        output.write(
            "No locks found."
            if args.states.prefix or args.states.pattern or args.older_than
            else "No state in your scope is locked."
        )
        return
    now = api.now()
    for_people, brief = output.is_brief(long=False), output.is_brief(long=args.long)
    patterns = {}
    if for_people:
        locks = _below_patterns(locks)
        patterns = {one.id: one.pattern for one in locks if isinstance(one, v1.PatternFreeze)}
    colours = ["cyan" if isinstance(one, v1.PatternFreeze) else colour(one) for one in locks]
    if brief:
        rows = [_brief_row(lock, now, patterns) for lock in locks]
        output.write(output.table(("STATE", "HELD", "BY", "FOR"), rows, colours, cut_last=True))
        return
    rows = [_row(lock, now, patterns, for_people=for_people) for lock in locks]
    output.write(output.table(("STATE", "SINCE", "HELD BY", "CLIENT SAYS", "FOR", "ID"), rows, colours))


def _may_match(pattern: str, prefix: str) -> bool:
    """Return whether a pattern may match a name with a prefix, by the text before its first `*`."""
    literal = pattern.partition("*")[0]
    return literal.startswith(prefix) or prefix.startswith(literal)


def _row(
    lock: "v1.ListedLock | v1.PatternFreeze",
    now: datetime,
    patterns: Mapping[str, str],
    *,
    for_people: bool,
) -> list[str]:
    """Return a lock's cells; `patterns` is as for `_brief_row`."""
    from holdfast.api import v1

    since = word(lock, "since", now)
    if isinstance(lock, v1.PatternFreeze):
        return [lock.pattern, since, named(lock.by, lock.owner or ""), "", freeze_words(lock, now), lock.id]
    what = _frozen_with(lock, patterns) or (lock_words(lock, now) if lock.freeze else lock.operation)
    return [lock.name, since, holder(lock), client_says(lock), what, lock_id(lock, for_people=for_people)]


def _below_patterns(
    locks: "list[v1.ListedLock | v1.PatternFreeze]",
) -> "list[v1.ListedLock | v1.PatternFreeze]":
    """Return the locks in their order, but the states that a frozen pattern froze directly below it."""
    from holdfast.api import v1

    below: dict[str, list[v1.ListedLock | v1.PatternFreeze]] = {
        one.id: [one] for one in locks if isinstance(one, v1.PatternFreeze)
    }
    groups = []
    for lock in locks:
        if isinstance(lock, v1.PatternFreeze):
            groups.append(below[lock.id])
        elif lock.freeze and lock.freeze.id in below:
            below[lock.freeze.id].append(lock)
        else:
            groups.append([lock])
    return [lock for group in groups for lock in group]


def _frozen_with(lock: "v1.ListedLock", patterns: Mapping[str, str]) -> str:
    """Return with which pattern a state is frozen, in words; empty if it is not frozen with one of these."""
    if lock.freeze and not lock.freeze.ended and (pattern := patterns.get(lock.freeze.id)):
        return f"frozen with {pattern}"
    return ""


def _brief_row(
    lock: "v1.ListedLock | v1.PatternFreeze", now: datetime, patterns: Mapping[str, str]
) -> list[str]:
    """Return a lock's cells; `patterns` has the frozen patterns of the list by the IDs of their freezes."""
    from holdfast.api import v1

    held = ages.span(lock.since, now) if lock.since else word(lock, "since")
    if isinstance(lock, v1.PatternFreeze):
        return [lock.pattern, held, brief_person(lock.by, lock.owner, ""), freeze_brief(lock, now)]
    if lock.freeze:
        by = brief_person(lock.freeze.by or lock.principal, lock.owner, "")
        return [lock.name, held, by, _frozen_with(lock, patterns) or lock_brief(lock, now)]
    by = brief_person(lock.principal, lock.owner, lock.who)
    return [lock.name, held, by, operation(lock.operation)]


@COMMAND.add(
    "show",
    "show the lock of a state and its holder",
    "Show who holds the lock of a state, since when and for what; or who froze the state, and why.",
    """\
  holdfast lock show network/prod
  holdfast lock show network/prod --json
""",
    arguments.STATE,
    arguments.API,
    arguments.LONG,
    arguments.as_json(),
)
def _show(args: argparse.Namespace) -> None:
    from holdfast.api import v1
    from holdfast_cli.api import frozen_patterns

    api = sign_in(args)
    state = api.get(v1.LockOfState, "locks", args.state)
    if args.json:
        output.write_json(state.raw)
    elif state.lock:
        for_people, brief = output.is_brief(long=False), output.is_brief(long=args.long)
        pattern = frozen_patterns.of(api, state.lock) if for_people else ""
        fields = lock_fields(state.lock, api.now(), for_people=for_people, brief=brief, pattern=pattern)
        output.write(output.listed(fields))
    else:
        output.write(output.wrapped(f"The state {args.state} is not locked."))


@COMMAND.add(
    "break",
    "remove a lock, such as that of a killed client",
    """\
Remove exactly the named lock. The command does not remove a lock that a client acquires
later, even if that lock has the same ID. A client that still works under the removed lock
cannot write any more. Without an ID, the command shows the lock and asks for
confirmation. To remove a lock of another principal, you need the role maintainer. To
remove a lock of your own principal, the role writer is enough, unless the team forbids
it. A freeze is not removed: `holdfast state unfreeze` lifts it.""",
    """\
  holdfast lock break network/prod
  holdfast lock break network/prod 0d9c1f2e-5b7a-4c1e-9d43-1f6f0b9f2c11 --reason 'the job was killed'
""",
    arguments.STATE,
    option(
        "id",
        type=rules.unicode_text,
        metavar="ID",
        nargs="?",
        help="the lock's ID, which `holdfast lock show` prints; required without a terminal",
    ),
    arguments.NOTED_REASON,
    arguments.API,
    arguments.as_json(),
)
def _break(args: argparse.Namespace) -> None:
    from holdfast.api import v1

    api = sign_in(args)
    lock = api.get(v1.LockOfState, "locks", args.state).lock
    removed = form.read(v1.Removed, {"name": args.state.value, "removed": False})
    if lock:
        if lock.freeze and lock.id != args.id:
            raise CommandError(
                f"The lock of the state {args.state} is a freeze: {lock.freeze.reason}. `holdfast state "
                f"unfreeze {args.state}` lifts it. Nothing was removed."
            )
        if args.id is None:
            asking.for_word(
                f"The state {args.state} is {lock_sentence(lock, api.now())}. The command "
                "breaks the lock. Holdfast then refuses the writes of the lock's holder.",
                args.state.value,
                f"name the lock: `holdfast lock break {args.state} {shlex.quote(lock.id)}`",
            )
        elif lock.id != args.id:
            raise CommandError(
                f"The state {args.state} has no lock with this ID. It is {lock_sentence(lock, api.now())}, "
                f"lock ID {shlex.quote(lock.id)}. Nothing was removed."
            )
        removed = api.change(
            v1.Removed,
            "DELETE",
            "locks",
            args.state,
            id=lock.id,
            version=lock.version,
            reason=args.reason,
        )
    is_removed = removed.removed is True
    any_more = " any more" if lock or args.id else ""
    done = output.plain(
        f"The lock {lock.id} of the state {args.state} was removed."
        if lock and is_removed
        else f"The state {args.state} is not locked{any_more}: nothing was removed."
    )
    plan = " Run `terraform plan` to see what its holder has changed." if is_removed else ""
    with output.after(done):
        output.write_either(f"{done}{plan}", removed.raw if args.json else None)

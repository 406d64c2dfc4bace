"""`holdfast state freeze` and `unfreeze`, for one state or for all states that match a pattern."""

import argparse
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from holdfast_cli.api import frozen_patterns
from holdfast_cli.api.management import ApiError
from holdfast_cli.api.sign_in import sign_in
from holdfast_cli.api.state_texts import freezer, is_frozen, lock_sentence, moment
from holdfast_cli.config import arguments, rules
from holdfast_cli.errors import CommandError
from holdfast_cli.terminal import asking, output
from holdfast_cli.terminal.declaration import Command, option
from holdfast_cli.terminal.people import person

if TYPE_CHECKING:
    from holdfast.api import v1
    from holdfast_cli.api.management import Api

_PAUSE: Final = 5.0
"""Seconds between two reads of a lock whose release is awaited."""
_DONE: Final = frozenset({"frozen", "already_frozen", "unfrozen", "not_frozen", "other_freeze"})
_OF_ONE_STATE: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.LOCKED})
"""The HTTP statuses that refuse a change of one state. The command then continues with the next state."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The outcome for one state, or for a pattern.

    `result` is `frozen`, `already_frozen`, `unfrozen`, `not_frozen`, `other_freeze`, `ends_earlier`, `locked`
    or `failed`. `said` is a sentence about the result. `freeze` is the state's freeze, or the lifted freeze.
    """

    name: str
    result: str
    said: str
    freeze: "v1.PlacedFreeze | None" = None


COMMAND = Command()


_STATES: Final = option(
    "states",
    type=rules.state_or_pattern,
    metavar="STATE|PATTERN",
    help=(
        "a state's name, or a pattern as in a scope: 'a/*' or a/ is everything below a, and '*' is every "
        "state"
    ),
)


@COMMAND.add(
    "freeze",
    "freeze states, so that clients cannot change them",
    """\
Freeze a state, or all states that match a pattern, including those that are created
later. A freeze is a lock: Terraform and OpenTofu print the reason at the next plan or
apply, and no force-unlock through the API removes the freeze. After a freeze has ended,
the next command that acquires the lock lifts it. The command does not freeze a state
while a client holds the state's lock. The freeze of a pattern is complete only when no
matching state is locked; the command says whether it is complete. You can repeat the
command with the same pattern, because states that are already frozen count as done.
Needs the role maintainer.""",
    """\
  holdfast state freeze network/prod --reason 'incident 4711'
  holdfast state freeze 'network/*' --reason 'release 8' --until 2h
  holdfast state freeze network/prod --reason 'audit' --until 2099-11-20T14:00 --wait 15m
""",
    _STATES,
    arguments.REASON,
    option(
        "--until",
        type=rules.when,
        metavar="WHEN",
        help=f"when the freeze ends: {arguments.FROM_NOW}; default: never",
    ),
    option(
        "--wait",
        nargs="?",
        type=rules.duration,
        const=timedelta.max,
        metavar="DURATION",
        help=(
            "wait until a lock is released, for at most this time for each state; without DURATION, until "
            "Ctrl-C"
        ),
    ),
    option("--yes", action="store_true", help="do not ask for confirmation if all states would be frozen"),
    arguments.API,
    arguments.as_json("one JSON array, with an object for each state, and a last one for the pattern"),
)
def _freeze(args: argparse.Namespace) -> None:
    import secrets

    from holdfast.api import v1

    api = sign_in(args)
    until = args.until and args.until.after(api.now())
    wanted = v1.Freeze(reason=args.reason, until=until, id=secrets.token_hex(16))
    if "*" not in args.states:
        _put(api, args.states, wanted, args)
        return
    if not args.yes:
        _matching(api, args, "freezes")
    outcomes: dict[str, _Outcome] = {}
    with output.after(lambda: _so_far(outcomes)):
        placed = _freeze_pattern(api, args.states, wanted, outcomes)
        # A pattern that was frozen before keeps its freeze.
        of_each = v1.Freeze(reason=placed.reason, until=placed.until, id=placed.id)
        for name in [name for name, outcome in outcomes.items() if outcome.result == "locked"]:
            outcomes[name] = _freeze_one(api, name, of_each, args.wait)
    in_order = [outcomes[name] for name in sorted(outcomes)]
    _tell(in_order, args, _frozen_pattern(placed, wanted.id, in_order))


def _freeze_pattern(
    api: "Api", states: str, wanted: "v1.Freeze", outcomes: dict[str, _Outcome]
) -> "v1.PatternFreeze":
    """Freeze a pattern, add the outcomes for its states, and return its freeze."""
    from holdfast.api import v1

    pattern = v1.FreezePattern(
        pattern=states, reason=wanted.reason, until=wanted.until, id=wanted.id, cursor=None
    )
    endless = f"The API did not return all states that match {states}."

    def put(cursor: str | None) -> "v1.FrozenPattern":
        return api.change(v1.FrozenPattern, "PUT", "freezes", None, replace(pattern, cursor=cursor))

    with output.Progress() as progress:
        for page in api.follow(put, endless):
            for name in page.names:
                outcomes.setdefault(name, _Outcome(name, "locked", f"{name} is not frozen."))
            for name in page.frozen:
                outcomes[name] = _frozen(name, page.freeze, page.freeze.pattern)
            progress.show(f"States that match {states}: {len(outcomes)}")
    return page.freeze


def _frozen_pattern(freeze: "v1.PatternFreeze", wanted: str, outcomes: Sequence[_Outcome]) -> _Outcome:
    """Return the outcome for a pattern, given those of its states."""
    until = moment(freeze, "until")
    ends = f"until {until}" if until else f"until you run `holdfast state unfreeze '{freeze.pattern}'`"
    said = f"{freeze.pattern} is frozen {ends}"
    if freeze.id != wanted:
        by = person(freeze.by, freeze.owner, "")
        ends = f", until {until}" if until else ""
        said = f"{freeze.pattern} was frozen already by {by}{ends}: {freeze.reason}"
    left = _is_left(outcomes)
    holds = (
        "No matching state can be created, but the freeze is not complete yet: the states named above are "
        "not frozen."
    )
    if not left:
        holds = "The freeze is complete. It includes states that are created later."
    result = "locked" if left else "frozen" if freeze.id == wanted else "already_frozen"
    return _Outcome(freeze.pattern, result, f"{said}. {holds}", freeze)


def _put(api: "Api", name: str, wanted: "v1.Freeze", args: argparse.Namespace) -> None:
    """Freeze one state and print the outcome. Raise `CommandError` if the API refuses the freeze."""
    try:
        frozen = _acquire(api, name, wanted, args.wait)
    except ApiError as error:
        if args.wait is None and error.code == "locked":
            raise CommandError(
                f"{error} With --wait, the command waits until the lock is released."
            ) from error
        raise
    _tell([_frozen(name, frozen.freeze)], args)


def _freeze_one(api: "Api", name: str, wanted: "v1.Freeze", wait: timedelta | None) -> _Outcome:
    try:
        return _frozen(name, _acquire(api, name, wanted, wait).freeze)
    except ApiError as error:
        if error.code == "frozen":
            return _already(name, _lock(api, name), wanted)
        if error.status not in _OF_ONE_STATE:
            raise
        return _Outcome(name, "locked" if error.code == "locked" else "failed", f"{name}: {error}")


def _frozen(name: str, freeze: "v1.PlacedFreeze", pattern: str | None = None) -> _Outcome:
    """Return the outcome for a state that is frozen now, alone or with the states of a pattern."""
    until = moment(freeze, "until")
    lifted = shlex.quote(pattern or name)
    ends = f"until {until}" if until else f"until you run `holdfast state unfreeze {lifted}`"
    return _Outcome(name, "frozen", f"{name} is frozen {ends}.", freeze)


def _already(name: str, lock: "v1.Lock | None", wanted: "v1.Freeze") -> _Outcome:
    if lock is None or lock.freeze is None:
        return _Outcome(name, "already_frozen", f"{name} was frozen already.")
    by, since, until = freezer(lock), moment(lock, "since") or "-", moment(lock.freeze, "until")
    ends = f" until {until}" if until else ""
    said = f"{name} was frozen already by {by}, since {since}{ends}: {lock.freeze.reason}."
    if lock.freeze.until and (not wanted.until or lock.freeze.until < wanted.until):
        return _Outcome(
            name,
            "ends_earlier",
            f"{said} To freeze it for longer, run the command again after that time.",
            lock.freeze,
        )
    return _Outcome(name, "already_frozen", said, lock.freeze)


def _lock(api: "Api", name: str) -> "v1.Lock | None":
    from holdfast.api import v1

    return api.get(v1.LockOfState, "locks", name).lock


def _acquire(api: "Api", name: str, wanted: "v1.Freeze", wait: timedelta | None) -> "v1.Frozen":
    """Freeze a state. If it is locked, wait for the release for at most `wait`, or not at all for None.

    Raise `ApiError` if the state is still locked, if it is frozen, or if the API refuses the freeze.
    """
    from holdfast.api import v1

    began = time.monotonic()
    try:
        with output.Progress() as progress:
            while True:
                try:
                    return api.change(v1.Frozen, "PUT", "freeze", name, wanted)
                except ApiError as error:
                    if wait is None or error.code != "locked":
                        raise
                    refused = error
                while lock := _lock(api, name):
                    if lock.freeze:  # the next request is refused, or lifts the freeze if it has ended
                        break
                    waited = time.monotonic() - began
                    left = wait.total_seconds() - waited
                    if left <= 0:
                        raise refused
                    progress.show(f"Waiting for {name}, {lock_sentence(lock, api.now())}: {int(waited)} s")
                    time.sleep(min(_PAUSE, left))
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(f"{name} is not frozen, unless the request had already arrived.")
        raise


@COMMAND.add(
    "unfreeze",
    "lift the freeze of a state or of a pattern",
    """\
Lift the freeze of a state, or the freeze of a pattern and of every state that it froze.
Other freezes and locks are not changed; the command names the other freezes. Needs the
role maintainer.""",
    """\
  holdfast state unfreeze network/prod
  holdfast state unfreeze 'network/*'
  holdfast state unfreeze '*' --yes --json
""",
    _STATES,
    option("--yes", action="store_true", help="do not ask for confirmation if all states would be unfrozen"),
    arguments.API,
    arguments.as_json("one JSON array, with an object for each state, and a last one for the pattern"),
)
def _unfreeze(args: argparse.Namespace) -> None:
    from holdfast.api import v1

    api = sign_in(args)
    if "*" not in args.states:
        _tell([_unfreeze_state(api, args.states)], args)
        return
    freezes = api.get(v1.PatternFreezes, "freezes").freezes
    lifted = [one for one in freezes if one.pattern == args.states and one.liftable]
    frozen = {
        item.name: item.lock
        for item in _matching(api, args, "unfreezes")
        if item.lock and is_frozen(item.lock)
    }
    if not lifted:
        alone = ", ".join(frozen)
        raise CommandError(
            f"There is no freeze of the pattern {args.states} that you may lift: nothing was changed."
            + (
                f" These matching states are frozen: {alone}. `holdfast lock list` shows the freeze of each."
                if alone
                else ""
            )
        )
    outcomes: dict[str, _Outcome] = {}
    with output.after(lambda: _so_far(outcomes)):
        for one in lifted:
            _lift(api, one, outcomes)
        for name in frozen.keys() - outcomes.keys():
            outcomes[name] = _not_lifted(api, name, lifted)
    said = f"{args.states} is not frozen any more. The reason was: {lifted[0].reason}."
    pattern = _Outcome(args.states, "unfrozen", said, lifted[0])
    _tell([outcomes[name] for name in sorted(outcomes)], args, pattern)


def _unfreeze_state(api: "Api", name: str) -> _Outcome:
    """Lift the freeze of a state; if it was frozen with a pattern, say that the pattern stays frozen."""
    lock = _lock(api, name)
    found = frozen_patterns.patterns(api, {lock.freeze.id} if lock and lock.freeze else ())
    outcome = _unfreeze_one(api, name, lock)
    if outcome.result != "unfrozen":
        return outcome
    stays = [
        f"The pattern {pattern} stays frozen: `holdfast state unfreeze {shlex.quote(pattern)}` lifts that "
        "freeze."
        for pattern in found.values()
    ]
    return replace(outcome, said=" ".join([outcome.said, *stays]))


def _lift(api: "Api", pattern: "v1.PatternFreeze", outcomes: dict[str, _Outcome]) -> None:
    """Unfreeze a pattern and the states that its freeze froze, and add the outcomes of these states."""
    from holdfast.api import v1

    def lift(cursor: str | None) -> "v1.LiftedPattern":
        return api.change(v1.LiftedPattern, "DELETE", "freezes", None, id=pattern.id, cursor=cursor)

    with output.Progress() as progress:
        for page in api.follow(lift, f"The API did not return all states that match {pattern.pattern}."):
            if "unfrozen" not in page.raw:
                raise CommandError(
                    f"The stack is older than this command. It unfroze the pattern {pattern.pattern}, but "
                    "not the states. Upgrade the stack, then unfreeze each state by name."
                )
            for name in page.unfrozen:
                said = f"{name} is not frozen any more. The reason was: {pattern.reason}."
                outcomes[name] = _Outcome(name, "unfrozen", said, pattern)
            for each in page.covered:
                outcomes[each.name] = _covered(each)
            progress.show(f"Unfreezing {pattern.pattern}: {len(outcomes)} done")


def _covered(state: "v1.CoveredState") -> _Outcome:
    name, by = state.name, state.freeze
    if state.frozen:
        said = f"{_frozen(name, by, by.pattern).said} The frozen pattern {by.pattern} covers it."
        return _Outcome(name, "frozen", said, by)
    said = (
        f"{name} is locked now, so the freeze of the pattern {by.pattern} does not stop the lock's holder. "
        f"When the lock is released, freeze {by.pattern} again."
    )
    return _Outcome(name, "locked", said, by)


def _not_lifted(api: "Api", name: str, lifted: "Sequence[v1.PatternFreeze]") -> _Outcome:
    """Return the outcome for a state that was frozen, and that the API has not named as unfrozen."""
    lock = _lock(api, name)
    freeze = lock.freeze if lock else None
    if lock is None or freeze is None or freeze.id in {one.id for one in lifted}:
        return _unfreeze_one(api, name, lock)
    said = f"{name} is still frozen by {freezer(lock)}: {freeze.reason}."
    return _Outcome(name, "other_freeze", said, freeze)


def _unfreeze_one(api: "Api", name: str, lock: "v1.Lock | None") -> _Outcome:
    from holdfast.api import v1

    freeze = lock.freeze if lock else None
    if freeze is None:
        locked = f": it is {lock_sentence(lock, api.now())}. That lock was not changed" if lock else ""
        return _Outcome(name, "not_frozen", f"{name} is not frozen{locked}.")
    try:
        removed = api.change(v1.Removed, "DELETE", "freeze", name, id=freeze.id)
    except ApiError as error:
        if error.status not in _OF_ONE_STATE:
            raise
        return _Outcome(name, "failed", f"{name}: {error}", freeze)
    if removed.removed is False:
        return _Outcome(name, "not_frozen", f"{name} is not frozen any more.")
    return _Outcome(
        name, "unfrozen", f"{name} is not frozen any more. The reason was: {freeze.reason}.", freeze
    )


def _matching(api: "Api", args: argparse.Namespace, verb: str) -> "list[v1.StateItem]":
    """Return the states that match a pattern. If all states match it, ask for confirmation, unless --yes."""
    from holdfast.api import v1

    listed = [item for item in api.pages(v1.StateItem, "states", "states") if not item.deleted]
    found = [item for item in listed if rules.covers(args.states, item.name)]
    if found and len(found) == len(listed) and not args.yes:
        what = "the only state" if len(found) == 1 else f"all {len(found)} states"
        asking.for_word(
            f"The pattern {args.states} matches every state in your scope. The command {verb} {what}.",
            str(len(found)),
        )
    return found


def _is_left(outcomes: Sequence[_Outcome]) -> bool:
    return any(outcome.result not in _DONE for outcome in outcomes)


def _so_far(outcomes: Mapping[str, _Outcome]) -> str:
    done = sum(outcome.result in _DONE for outcome in outcomes.values())
    if not done:
        return "It is not known whether a state was changed. You can run the command again."
    were = "state was" if done == 1 else "states were"
    return f"At least {done} {were} changed. You can run the command again."


def _tell(outcomes: Sequence[_Outcome], args: argparse.Namespace, pattern: _Outcome | None = None) -> None:
    """Print the outcomes, at last the pattern's. Raise `CommandError` if one failed or is still locked."""
    left = [outcome for outcome in outcomes if outcome.result not in _DONE]
    shown = [*outcomes, pattern] if pattern else outcomes
    with output.after(_remaining_of(shown)):
        if args.json:
            documents = [
                {
                    "name": one.name,
                    "result": one.result,
                    "message": one.said,
                    "freeze": one.freeze.raw if one.freeze else None,
                }
                for one in shown
            ]
            output.write_json(documents)
        else:
            lines = [output.plain(one.said) for one in shown]
            if pattern and output.is_brief(long=False):
                lines = _brief(outcomes, pattern)
            hanging = 2 if len(lines) > 1 else 0  # to tell where the next one begins
            output.write("\n".join(output.wrapped(line, hanging=hanging) for line in lines))
    if left:
        where = output.some([outcome.name for outcome in left], 5)
        raise CommandError(
            f"Not done: {len(left)} of {len(outcomes)} states ({where}). The reasons are above. You can run "
            "the command again."
        )


def _brief(outcomes: Sequence[_Outcome], pattern: _Outcome) -> list[str]:
    """Return the sentences about a pattern for a terminal: the states with the usual outcome are counted."""
    usual, what = (
        ("unfrozen", "not frozen any more") if pattern.result == "unfrozen" else ("frozen", "frozen")
    )
    count = sum(outcome.result == usual for outcome in outcomes)
    counted = f"1 state is {what}." if count == 1 else f"{count} states are {what}."
    others = [outcome.said for outcome in outcomes if outcome.result != usual]
    return [*map(output.plain, others), *([counted] if count else []), output.plain(pattern.said)]


def _remaining_of(outcomes: Sequence[_Outcome]) -> str:
    if len(outcomes) == 1:
        return outcomes[0].said
    done = sum(outcome.result in _DONE for outcome in outcomes)
    return f"Done: {done} of {len(outcomes)} states."

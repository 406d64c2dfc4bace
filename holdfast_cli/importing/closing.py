"""Close imported states in the source, so that a forgotten pipeline cannot write there; and open them again.

The lock that closes a state is acquired first, and only then is the state compared once more: an earlier
write is found, and a later client is refused. Nothing is deleted.
"""

from functools import partial
from typing import Final

from holdfast.names import StateName
from holdfast_cli.errors import CommandError
from holdfast_cli.importing import many
from holdfast_cli.importing.comparing import Differs, InUse, Same
from holdfast_cli.importing.copying import lock_info
from holdfast_cli.importing.journal import Close, Closed, Open, Refuse
from holdfast_cli.importing.many import Outcome
from holdfast_cli.importing.plan import Planned
from holdfast_cli.importing.run import Run
from holdfast_cli.importing.source import LockedThereError, OldLock

CLOSED: Final = "closed"
"""The word for a state that is closed."""


def close(run: Run, *, refuse_writes: bool) -> list[Outcome]:
    """Close each state that is still as it was imported. A state that has changed stays open.

    Close nothing as long as a state of the plan was not imported: its source is still in use.

    Args:
        refuse_writes: whether the source itself is to refuse writes, also by clients without locks.
    """
    before = run.journal.refused
    wanted = [
        state.id
        for state in run.plan.states
        if state.name and not state.problem and run.journal.of(state.id).imported_as(state.name)
    ]
    is_complete = len(wanted) == len(run.plan.states)
    refuse_writes = refuse_writes and is_complete
    if refuse_writes:  # first, so that no client without locks writes after the comparison
        run.journal.note(Refuse(sorted({*before, *wanted})))
        run.source.refuse_writes(wanted, [])
    work = _closed if is_complete else _left_as_it_is
    outcomes = run.for_states(work, "closed")
    if not refuse_writes:
        return outcomes
    left_open = sorted(set(wanted) - {outcome.state for outcome in outcomes if not outcome.is_problem})
    return outcomes + _allowed(run, left_open)


def reopen(run: Run) -> list[Outcome]:
    """Release the locks of `close`, and no others, also of states that the plan has no longer."""
    closing = run.journal.closing
    if not closing and not run.journal.refused:
        raise CommandError(
            "The journal of this plan has no lock that 'holdfast import close' left in the source, so no "
            "lock was released. If the source still has such a lock, remove it with the source's own "
            "force-unlock."
        )
    return _allowed(run, run.journal.refused) + many.for_each(list(closing), partial(_opened, run), "opened")


def _allowed(run: Run, states: list[str]) -> list[Outcome]:
    """Let the source accept writes of these states again; return a problem if it does not."""
    if not states:
        return []
    try:
        run.source.refuse_writes([], states)
    except CommandError as error:
        which = "this state" if len(states) == 1 else f"this state and {len(states) - 1} more"
        text = f"{states[0]}: the source may still refuse writes of {which}: {error}"
        return [Outcome(states[0], "", "refused", text, is_problem=True)]
    run.journal.note(Refuse([state for state in run.journal.refused if state not in states]))
    return []


def _left_as_it_is(run: Run, state: Planned, name: StateName) -> Outcome:
    entry = run.journal.of(state.id)
    if not entry.imported_as(name):
        text = (
            f"{state.id} was not imported as {name} by this plan: run 'holdfast import run' first, or "
            "remove the state's table from the plan."
        )
        return Outcome(state.id, name.value, "left open", text, is_problem=True)
    return Outcome(state.id, name.value, "closed before" if entry.is_closed else "imported")


def _closed(run: Run, state: Planned, name: StateName) -> Outcome:
    entry = run.journal.of(state.id)
    lock = entry.closing
    if lock is None:
        said = (
            f"This state has moved to {run.place.api.address}/states/{name}: change the backend block. To "
            "use this old backend again, first run 'holdfast import reopen', which releases this lock."
        )
        lock = OldLock(lock_info(said), run.source.prepare_lock(state.id))
    if not entry.is_closed:  # a closed state stays closed if this close is killed
        run.journal.note(Close(state.id, lock))
    try:
        run.source.lock(state.id, lock)
    except LockedThereError:
        run.journal.note(Open(state.id))
        raise
    if changed := _changed(run, state.id, name):
        run.unlock(state.id, lock)
        run.journal.note(Open(state.id))
        return Outcome(state.id, name.value, "left open", changed, is_problem=True)
    run.journal.note(Closed(state.id))
    return Outcome(state.id, name.value, CLOSED)


def _changed(run: Run, state: str, name: StateName) -> str:
    """Return why the state may not be closed; empty if it is still what was imported."""
    try:
        compared = run.compared(state, name)
        match compared.verdict:
            case Same():
                is_there = True
            case InUse(version):
                is_there = run.place.has_version(name, version)
            case Differs(why):
                return f"{state}: {why}."
            case _:
                imported = run.journal.of(state).imported_as(name)
                serial, there = imported.serial if imported else None, compared.old.revision.serial
                why = (
                    f"{state}: Holdfast never acknowledged the write of the current version of {name}."
                    if compared.new and compared.new.serial == there
                    else f"{state} was written after its import: the source has serial {there}, and serial "
                    f"{serial} was imported."
                )
                return f"{why} Run 'holdfast import run', and then 'holdfast import close' again."
    except CommandError as error:
        return str(error)
    return (
        ""
        if is_there
        else f"{state}: the history of {name} does not have the imported version. 'holdfast state history "
        f"{name}' shows the history. Compare the states in the source and in Holdfast before you change the "
        "backend block."
    )


def _opened(run: Run, state: str) -> Outcome:
    name = run.journal.of(state).name
    try:
        run.unlock(state, run.journal.closing[state])
    except CommandError as error:
        return Outcome(state, name, "failed", str(error), is_problem=True)
    run.journal.note(Open(state))
    return Outcome(state, name, "opened")

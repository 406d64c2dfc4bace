"""Close imported states in the source, so that a forgotten pipeline cannot write there; and open them again.

The lock that closes a state is acquired first, and only then is the state compared once more: an earlier
write is found, and a later client is refused. Nothing is deleted.
"""

from dataclasses import dataclass
from typing import Final

from holdfast.names import StateName
from holdfast_cli.errors import CommandError
from holdfast_cli.importing import comparing, many
from holdfast_cli.importing.comparing import Differs, InUse, Same
from holdfast_cli.importing.copying import lock_info
from holdfast_cli.importing.journal import Journal
from holdfast_cli.importing.many import Outcome
from holdfast_cli.importing.new_place import NewPlace
from holdfast_cli.importing.plan import Plan, Planned
from holdfast_cli.importing.source import LockedThereError, OldLock, Source

CLOSED: Final = "closed"
"""The word for a state that is closed."""


@dataclass(frozen=True, slots=True)
class Closer:
    """Closes and opens the states of a plan."""

    plan: Plan
    journal: Journal
    source: Source
    place: NewPlace

    def close(self, *, refuse_writes: bool) -> list[Outcome]:
        """Close each state that is still as it was imported. A state that has changed stays open.

        Close nothing as long as a state of the plan was not imported: its source is still in use.

        Args:
            refuse_writes: whether the source itself is to refuse writes, also by clients without locks.
        """
        before = self.journal.refused
        wanted = [
            state.id
            for state in self.plan.states
            if state.name and not state.problem and self.journal.of(state.id).imported_as(state.name)
        ]
        is_complete = len(wanted) == len(self.plan.states)
        refuse_writes = refuse_writes and is_complete
        if refuse_writes:  # first, so that no client without locks writes after the comparison
            self.journal.refuse(sorted({*before, *wanted}))
            self.source.refuse_writes(wanted, [])
        work = self._closed if is_complete else self._left_as_it_is
        outcomes = many.for_states(self.plan.states, work, "closed", self.journal)
        if not refuse_writes:
            return outcomes
        left_open = sorted(set(wanted) - {outcome.state for outcome in outcomes if not outcome.is_problem})
        return outcomes + self._allowed(left_open)

    def open(self) -> list[Outcome]:
        """Release the locks of `close`, and no others, also of states that the plan has no longer."""
        closing = self.journal.closing
        if not closing and not self.journal.refused:
            raise CommandError(
                "This plan's journal has closed nothing, so nothing was opened. If the journal was lost, "
                "release the locks in the source with its own force-unlock."
            )
        return self._allowed(self.journal.refused) + many.for_each(list(closing), self._opened, "opened")

    def _allowed(self, states: list[str]) -> list[Outcome]:
        """Let the source accept writes of these states again; return a problem if it does not."""
        if not states:
            return []
        try:
            self.source.refuse_writes([], states)
        except CommandError as error:
            text = f"{states[0]}: the source may still refuse writes of {len(states)} open states: {error}"
            return [Outcome(states[0], "", "refused", text, is_problem=True)]
        self.journal.refuse([state for state in self.journal.refused if state not in states])
        return []

    def _left_as_it_is(self, state: Planned, name: StateName) -> Outcome:
        entry = self.journal.of(state.id)
        if not entry.imported_as(name):
            text = (
                f"{state.id} was not imported as {name} by this plan: run 'holdfast import run' first, or "
                "remove its table from the plan."
            )
            return Outcome(state.id, name.value, "left open", text, is_problem=True)
        return Outcome(state.id, name.value, "closed before" if entry.is_closed else "imported")

    def _closed(self, state: Planned, name: StateName) -> Outcome:
        entry = self.journal.of(state.id)
        lock = entry.closing
        if lock is None:
            said = (
                f"This state has moved to {self.place.api.address}/states/{name}: change the backend block. "
                "'holdfast import open' opens it again."
            )
            lock = OldLock(lock_info(said), self.source.prepare_lock(state.id))
        if not entry.is_closed:  # a closed state stays closed if this close is killed
            self.journal.close(state.id, lock)
        try:
            self.source.lock(state.id, lock)
        except LockedThereError:
            self.journal.open(state.id)
            raise
        if changed := self._changed(state.id, name):
            self.source.unlock(state.id, lock)
            self.journal.open(state.id)
            return Outcome(state.id, name.value, "left open", changed, is_problem=True)
        self.journal.closed(state.id)
        return Outcome(state.id, name.value, CLOSED)

    def _changed(self, state: str, name: StateName) -> str:
        """Return why the state may not be closed; empty if it is still what was imported."""
        try:
            compared = comparing.look(self.source, self.place, self.journal, state, name)
            match compared.verdict:
                case Same():
                    is_there = True
                case InUse(version):
                    is_there = self.place.has_version(name, version)
                case Differs(why):
                    return f"{state}: {why}."
                case _:
                    imported = self.journal.of(state).imported_as(name)
                    serial = imported.serial if imported else None
                    return (
                        f"{state} was written after its import: the source has serial "
                        f"{compared.old.revision.serial}, and serial {serial} was imported. 'holdfast import "
                        "run' takes it; then close it."
                    )
        except CommandError as error:
            return str(error)
        return "" if is_there else f"{state}: the history of {name} does not have the imported version."

    def _opened(self, state: str) -> Outcome:
        name = self.journal.of(state).name
        try:
            self.source.unlock(state, self.journal.closing[state])
        except CommandError as error:
            return Outcome(state, name, "failed", str(error), is_problem=True)
        self.journal.open(state)
        return Outcome(state, name, "opened")

"""Close imported states in the source, so that a forgotten pipeline cannot write there; and open them again.

The lock that closes a state is acquired first, and only then is the state compared once more: whoever wrote
before is found, and whoever comes later is refused. Nothing is deleted.
"""

from collections.abc import Callable
from dataclasses import dataclass

from holdfast.names import StateName
from holdfast_cli.errors import CommandError
from holdfast_cli.importing import comparing, many
from holdfast_cli.importing.copying import lock_info
from holdfast_cli.importing.journal import Imported, Journal
from holdfast_cli.importing.many import Outcome
from holdfast_cli.importing.new_place import NewPlace
from holdfast_cli.importing.plan import Plan, Planned
from holdfast_cli.importing.source import LockedThereError, OldLock, Source


@dataclass(frozen=True, slots=True)
class Closer:
    """Closes and opens the states of a plan."""

    plan: Plan
    journal: Journal
    source: Source
    place: NewPlace

    def close(self, *, refuse_writes: bool) -> list[Outcome]:
        """Close each state that is still as it was imported. A state that has changed stays open.

        Args:
            refuse_writes: whether the source itself is to refuse writes, also by clients without locks.
        """
        wanted = [state.id for state in self.plan.states if self.journal.of(state.id).imported]
        if refuse_writes:  # first, so that no such client writes after the comparison
            self.journal.refuse(refuses=True)
            self.source.refuse_writes(wanted)
        outcomes = self._for_each(self._closed, "closed")
        closed = [outcome.state for outcome in outcomes if not outcome.is_problem]
        if refuse_writes and closed != wanted:
            self.source.refuse_writes(closed)
        return outcomes

    def open(self) -> list[Outcome]:
        """Release the locks of `close`, and no others."""
        if self.journal.refuses:
            self.source.refuse_writes([])
            self.journal.refuse(refuses=False)
        return self._for_each(self._opened, "opened")

    def _for_each(self, work: Callable[[Planned, str], Outcome], verb: str) -> list[Outcome]:
        def outcome(state: Planned) -> Outcome:
            name = state.name.value if state.name else ""
            try:
                return work(state, name)
            except LockedThereError as error:
                return Outcome(state.id, name, "locked", str(error), is_problem=True)
            except CommandError as error:
                return Outcome(state.id, name, "failed", str(error), is_problem=True)

        return many.for_each(self.plan.states, outcome, verb)

    def _closed(self, state: Planned, name: str) -> Outcome:
        entry = self.journal.of(state.id)
        imported = entry.imported
        if imported is None or imported.name != name:
            text = f"{state.id} was not imported: run 'holdfast import run' first, or remove its table."
            return Outcome(state.id, name, "left open", text, is_problem=True)
        lock = entry.closing
        if lock is None:
            said = (
                f"This state has moved to {self.place.api.address}/states/{name}: change the backend block. "
                "'holdfast import open' opens it again."
            )
            lock = OldLock(lock_info(said), self.source.prepare_lock(state.id))
            self.journal.close(state.id, lock)
        self.source.lock(state.id, lock)
        if changed := self._changed(state.id, imported):
            self.source.unlock(state.id, lock)
            self.journal.open(state.id)
            return Outcome(state.id, name, "left open", changed, is_problem=True)
        self.journal.closed(state.id)
        return Outcome(state.id, name, "closed")

    def _changed(self, state: str, imported: Imported) -> str:
        """Return why the state may not be closed; empty if it is still what was imported."""
        try:
            old = comparing.parse(state, self.source.read(state))
            new = self.place.describe(StateName(imported.name))
            is_there = new is not None and (
                new.version == imported.version or self.place.has_version(imported.name, imported.version)
            )
        except CommandError as error:
            return str(error)
        if not is_there:
            return f"{state} is not in Holdfast as {imported.name} any more: run 'holdfast import run'."
        then = imported.serial, imported.lineage, imported.sha256
        if (old.revision.serial, old.revision.lineage, old.sha256) == then:
            return ""
        return (
            f"{state} was written after its import: the source has serial {old.revision.serial}, and serial "
            f"{imported.serial} was imported. 'holdfast import run' takes it; then close it."
        )

    def _opened(self, state: Planned, name: str) -> Outcome:
        lock = self.journal.of(state.id).closing
        if lock is None:
            return Outcome(state.id, name, "open before")
        self.source.unlock(state.id, lock)
        self.journal.open(state.id)
        return Outcome(state.id, name, "opened")

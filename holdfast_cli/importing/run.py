"""One process's work on a plan: what copying, checking, closing and opening have in common."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from holdfast.names import StateName
from holdfast_cli.errors import CommandError
from holdfast_cli.importing import comparing, many
from holdfast_cli.importing.comparing import Absent, Compared, Content, Differs, InUse, MovedOn, Same
from holdfast_cli.importing.journal import Journal
from holdfast_cli.importing.many import LOCKED, Outcome
from holdfast_cli.importing.new_place import OPERATION, LockedHereError, NewPlace
from holdfast_cli.importing.plan import Plan, Planned
from holdfast_cli.importing.source import LockedThereError, OldLock, Source


@dataclass(frozen=True, slots=True)
class Run:
    """A plan, its journal, and both places. Several threads may work on different states."""

    plan: Plan
    journal: Journal
    source: Source
    place: NewPlace

    def for_states(
        self,
        work: Callable[["Run", Planned, StateName], Outcome],
        verb: str,
        states: Sequence[Planned] | None = None,
    ) -> list[Outcome]:
        """Do some work for the states of the plan, or for some of them.

        An error of one state is its outcome, and the others go on.
        """

        def outcome(state: Planned) -> Outcome:
            name = state.name
            if state.problem or name is None:
                return Outcome(
                    state.id, name.value if name else "", "left out", state.problem, is_problem=True
                )
            if not self.source.covers(state.id):
                text = (
                    f"{state.id} is not in {self.source.address}: correct the plan, or remove the state's "
                    "table."
                )
                return Outcome(state.id, name.value, "left out", text, is_problem=True)
            try:
                done = work(self, state, name)
            except (LockedThereError, LockedHereError) as error:
                done = Outcome(state.id, name.value, LOCKED, str(error), is_problem=True)
            except CommandError as error:
                done = Outcome(state.id, name.value, "failed", str(error), is_problem=True)
            except Exception as error:  # noqa: BLE001 a fault in one state must not end the others
                text = f"this command failed with {type(error).__name__}. Report this as an issue."
                done = Outcome(state.id, name.value, "failed", text, is_problem=True)
            if self.journal.of(state.id).may_hold_a_lock:
                left = (
                    "The import may still hold locks. The next 'holdfast import run' tries to release them."
                )
                return replace(done, text=f"{done.text} {left}".lstrip(), is_problem=True)
            return done

        return many.for_each(self.plan.states if states is None else states, outcome, verb)

    def unlock(self, state: str, lock: OldLock) -> None:
        """Release a lock of the journal in the source; `CommandError` if the source cannot have the state."""
        if not self.source.covers(state):
            raise CommandError(f"{state} is not in {self.source.address}: its lock was not released.")
        self.source.unlock(state, lock)

    def compared(self, state: str, name: StateName, old: Content | None = None) -> Compared:
        """Read a state in both places, and decide; `old` is the state in the source if it was read before."""
        old = old or comparing.read_old(self.source, state)
        new = self.place.describe(name)
        imported = self.journal.of(state).imported_as(name)
        is_ours = new is not None and (
            (imported is not None and imported.version == new.version)
            # Without the journal of an earlier import, the operation tells that nobody has written since.
            or (new.operation == OPERATION and not self.journal.wrote_for_another(state, new.version or ""))
        )
        verdict = comparing.compare(
            old,
            new,
            imported,
            lambda: self.place.read(name),
            lambda: self.place.version_with(name, old.sha256),
            is_ours=is_ours,
        )
        return Compared(old, new, verdict)

    def check(self) -> list[Outcome]:
        """Compare all states without a lock. It is a problem if the import of a state is not complete."""
        return self.for_states(Run._checked, "compared")

    def _checked(self, state: Planned, name: StateName) -> Outcome:
        compared = self.compared(state.id, name)
        match compared.verdict:
            case Same():
                return Outcome(state.id, name.value, "the same")
            case InUse(_):
                return Outcome(state.id, name.value, "in use")
            case Absent():
                text = f"{state.id} is not in Holdfast as {name}: 'holdfast import run' imports it."
                return Outcome(state.id, name.value, "absent", text, is_problem=True)
            case MovedOn():
                there, here = compared.old.revision.serial, compared.new.serial if compared.new else None
                text = (
                    f"{state.id}: Holdfast never acknowledged the write of the current version of {name}. "
                    "'holdfast import run' imports the state again."
                    if there == here
                    else f"{state.id} was written after its import: the source has serial {there}, and "
                    f"{name} has {here}. 'holdfast import run' imports the state again."
                )
                return Outcome(state.id, name.value, "moved on", text, is_problem=True)
            case Differs(why):
                return Outcome(state.id, name.value, "differs", f"{state.id}: {why}.", is_problem=True)

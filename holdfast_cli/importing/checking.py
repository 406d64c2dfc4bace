"""Compare all states of a plan in both places, without a lock."""

from holdfast_cli.errors import CommandError
from holdfast_cli.importing import comparing, many
from holdfast_cli.importing.comparing import Absent, Differs, InUse, MovedOn, Same
from holdfast_cli.importing.journal import Journal
from holdfast_cli.importing.many import Outcome
from holdfast_cli.importing.new_place import NewPlace
from holdfast_cli.importing.plan import Plan, Planned
from holdfast_cli.importing.source import Source


def check(plan: Plan, journal: Journal, source: Source, place: NewPlace) -> list[Outcome]:
    """Return an outcome for each state: a problem if the import is not complete for it."""
    return many.for_each(plan.states, lambda state: _checked(state, journal, source, place), "compared")


def _checked(state: Planned, journal: Journal, source: Source, place: NewPlace) -> Outcome:
    name = state.name
    if state.problem or name is None:
        return Outcome(state.id, name.value if name else "", "left out", state.problem, is_problem=True)
    imported = journal.of(state.id).imported
    try:
        old = comparing.parse(state.id, source.read(state.id))
        new = place.describe(name)
        verdict = comparing.compare(old, new, imported, lambda: place.read(name))
    except CommandError as error:
        return Outcome(state.id, name.value, "failed", str(error), is_problem=True)
    serials = f"the source has serial {old.revision.serial}, {name} has {new.serial if new else 'no state'}"
    match verdict:
        case Same():
            return Outcome(state.id, name.value, "the same")
        case InUse():
            return Outcome(state.id, name.value, "in use")
        case Absent():
            text = f"{state.id} is not in Holdfast as {name}: 'holdfast import run' imports it."
            return Outcome(state.id, name.value, "absent", text, is_problem=True)
        case MovedOn():
            text = f"{state.id} was written after its import: {serials}. 'holdfast import run' takes it."
            return Outcome(state.id, name.value, "moved on", text, is_problem=True)
        case Differs(why):
            return Outcome(state.id, name.value, "differs", f"{state.id}: {why}.", is_problem=True)

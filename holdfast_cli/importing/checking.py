"""Compare all states of a plan in both places, without a lock."""

from holdfast.names import StateName
from holdfast_cli.importing import comparing, many
from holdfast_cli.importing.comparing import Absent, Differs, InUse, MovedOn, Same
from holdfast_cli.importing.journal import Journal
from holdfast_cli.importing.many import Outcome
from holdfast_cli.importing.new_place import NewPlace
from holdfast_cli.importing.plan import Plan, Planned
from holdfast_cli.importing.source import Source


def check(plan: Plan, journal: Journal, source: Source, place: NewPlace) -> list[Outcome]:
    """Return an outcome for each state: a problem if the import is not complete for it."""

    def checked(state: Planned, name: StateName) -> Outcome:
        compared = comparing.look(source, place, journal, state.id, name)
        match compared.verdict:
            case Same():
                return Outcome(state.id, name.value, "the same")
            case InUse(_):
                return Outcome(state.id, name.value, "in use")
            case Absent():
                text = f"{state.id} is not in Holdfast as {name}: 'holdfast import run' imports it."
                return Outcome(state.id, name.value, "absent", text, is_problem=True)
            case MovedOn():
                here = compared.new.serial if compared.new else None
                text = (
                    f"{state.id} was written after its import: the source has serial "
                    f"{compared.old.revision.serial}, {name} has {here}. 'holdfast import run' takes it."
                )
                return Outcome(state.id, name.value, "moved on", text, is_problem=True)
            case Differs(why):
                return Outcome(state.id, name.value, "differs", f"{state.id}: {why}.", is_problem=True)

    return many.for_states(plan.states, checked, "compared", journal)

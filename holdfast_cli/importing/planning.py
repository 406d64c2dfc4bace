"""Write the plan of an import: list the source's states, name them, and look for what is in the way.

Rules such as `env:/{ws}/{key}.tfstate={key}/{ws}` map the paths of a source to the names of states.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from holdfast_cli.api.state_texts import size
from holdfast_cli.errors import CommandError
from holdfast_cli.importing import comparing, many
from holdfast_cli.importing.comparing import Absent, Differs, InUse, MovedOn, NotAStateError, Same
from holdfast_cli.importing.journal import Journal
from holdfast_cli.importing.new_place import NewPlace
from holdfast_cli.importing.plan import LeftOut, Plan, Planned, check_name
from holdfast_cli.importing.run import Run
from holdfast_cli.importing.source import OldState, Settings, Source

_PLACEHOLDER: Final = re.compile(r"\{([a-z_]+)\}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule for names; `text` is the rule as typed."""

    text: str
    pattern: re.Pattern[str]
    template: str

    @classmethod
    def parse(cls, text: str) -> "Rule":
        """Parse `PATTERN=NAME`; raise `ValueError`, whose message names the broken rule.

        The last placeholder of a pattern matches any text, the others match text without `/`.

        >>> Rule.parse("env:/{ws}/{key}.tfstate={key}/{ws}").name("env:/prod/a/b.tfstate")
        'a/b/prod'
        """
        pattern, equals, template = text.rpartition("=")
        if not equals or not pattern or not template:
            raise ValueError(f"{text!r} is not PATTERN=NAME, as in '{{key}}.tfstate={{key}}'")
        parts = _PLACEHOLDER.split(pattern)
        placeholders = parts[1::2]
        if len(placeholders) != len(set(placeholders)):
            raise ValueError(f"the pattern {pattern!r} has a placeholder twice")
        if unknown := sorted(set(_PLACEHOLDER.findall(template)) - set(placeholders)):
            raise ValueError(f"the name {template!r} has {{{unknown[0]}}}, which is not in {pattern!r}")
        last = len(parts) - 2
        compiled = "".join(
            (f"(?P<{part}>.+)" if place == last else f"(?P<{part}>[^/]+)") if place % 2 else re.escape(part)
            for place, part in enumerate(parts)
        )
        return cls(text, re.compile(compiled, re.DOTALL), template)

    def name(self, path: str) -> str | None:
        """Return the name for a path; None if the path does not match."""
        matched = self.pattern.fullmatch(path)
        return matched and _PLACEHOLDER.sub(lambda found: matched[found[1]], self.template)


def make(settings: Settings, source: Source, place: NewPlace, rules: Sequence[Rule]) -> Plan:
    """Return a plan. A state without a name has a note that says why."""
    every = [*rules, *(Rule.parse(text) for text in source.default_rules)]
    listed = list(source.states())
    found = [_named(state, every) for state in listed]
    if not found:
        raise CommandError(f"There is no state in {source.address}: check the address.")
    for rule in rules:
        if all(rule.name(state.path) is None for state in listed):
            raise CommandError(
                f"The rule {rule.text!r} matches no path. A path has no prefix of the source, as "
                f"{listed[0].path!r}."
            )
    counts = Counter(state.name for state in found if state.name)
    found = [
        replace(state, name=None, note=f"{counts[state.name]} states would be named {state.name}")
        if state.name and counts[state.name] > 1
        else state
        for state in found
    ]
    run = Run(Plan(settings, found), Journal(None, ""), source, place)
    noted = many.for_each(list(zip(listed, found, strict=True)), lambda each: _noted(run, *each), "compared")
    states = [each for each in noted if isinstance(each, Planned)]
    left_out = [each for each in noted if isinstance(each, LeftOut)]
    if not states:
        first = left_out[0]
        raise CommandError(
            f"There is no state in {source.address}: check the address. {len(left_out)} objects are no "
            f"states, such as {first.id}: {first.why}"
        )
    return Plan(settings, states, left_out)


def name_of(path: str, rules: Sequence[Rule]) -> str | None:
    """Return the name by the first rule that matches a path; None if no rule does."""
    return next((name for rule in rules if (name := rule.name(path)) is not None), None)


def _named(state: OldState, rules: Sequence[Rule]) -> Planned:
    wanted = name_of(state.path, rules)
    if wanted is None:
        return Planned(state.id, None, state.tags, "no rule matches it: name it here, or use --map")
    name, problem = check_name(wanted)
    return Planned(state.id, name, state.tags, problem)


def _noted(run: Run, listed: OldState, state: Planned) -> Planned | LeftOut:
    """Note the state's serial and size, or why it cannot have its name.

    Only an object that need not be a state is left out, such as a script in a bucket.
    """
    try:
        old = comparing.read_old(run.source, state.id)
        if state.name is None:
            return state
        compared = run.compared(state.id, state.name, old)
    except CommandError as error:
        if isinstance(error, NotAStateError) and not listed.is_certain:
            return LeftOut(state.id, error.why)
        return replace(state, name=None, note=str(error))
    described = f"serial {old.revision.serial}, {size(len(old.body))}"
    match compared.verdict:
        case Absent():
            return replace(state, note=described)
        case Same():
            return replace(state, note=f"{described}, already imported")
        case MovedOn():
            return replace(state, note=f"{described}, imported before it changed")
        case InUse():
            return replace(state, note=f"{described}, imported and in use")
        case Differs(why):
            return replace(state, name=None, note=why)

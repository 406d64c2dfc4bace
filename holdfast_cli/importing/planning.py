"""Write the plan of an import: list the source's states, name them, and look for what is in the way.

Rules such as `env:/{ws}/{key}.tfstate={key}/{ws}` map the states of a source to new names.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from holdfast.cloud.names import organization_and_workspace
from holdfast.names import StateName
from holdfast_cli.api.state_texts import size
from holdfast_cli.errors import CommandError
from holdfast_cli.importing import comparing, many
from holdfast_cli.importing.comparing import (
    Absent,
    Content,
    InUse,
    MovedOn,
    NotAStateError,
    Same,
    Taken,
    Verdict,
)
from holdfast_cli.importing.journal import Journal
from holdfast_cli.importing.layout import DEFAULT, MAIN
from holdfast_cli.importing.new_place import NewPlace
from holdfast_cli.importing.plan import LeftOut, Plan, Planned, check_name, first_free, nearest
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

    def name(self, state: str) -> str | None:
        """Return the name for the ID of a state, as a plan has it in `from`; None if it does not match."""
        matched = self.pattern.fullmatch(state)
        return matched and _PLACEHOLDER.sub(lambda found: matched[found[1]], self.template)


@dataclass(frozen=True, slots=True)
class Made:
    """A plan, and what people have to know before they read it.

    Attributes:
        renamed: by ID, which name a state has instead of the wanted one and why, as the rest of a sentence.
        moved: the IDs of states for which `terraform.workspace` changes.
        alike: the IDs of states with one lineage, in groups.
    """

    plan: Plan
    renamed: Mapping[str, str]
    moved: Sequence[str]
    alike: Sequence[Sequence[str]]


@dataclass(slots=True)
class _Draft:
    """A state on its way into the plan.

    Attributes:
        wanted: the name that a rule or the source gives it.
        name: its name; None as long as it has none, and if `problem` says why it cannot have one.
        renamed: why it has another name than the wanted one; empty if it has that.
        content: the content without its body; None if it cannot be read.
        found: what was found in both places, for the comment in the plan.
        alike: which other state has the same lineage, for that comment; empty if none has.
        left_out: why it is no state of its own; empty if it is one.
    """

    old: OldState
    wanted: str
    name: StateName | None = None
    renamed: str = ""
    content: Content | None = None
    found: str = ""
    alike: str = ""
    problem: str = ""
    left_out: str = ""

    @property
    def move(self) -> str:
        """Return how `terraform.workspace` changes, as the end of a sentence; empty if it stays."""
        if self.name is None or not self.old.workspace:
            return ""
        place = organization_and_workspace(self.name)
        new = place[1] if place else DEFAULT  # of `backend "http"`
        return "" if new == self.old.workspace else f"from '{self.old.workspace}' to '{new}'"

    def planned(self) -> Planned:
        move = f"terraform.workspace changes {self.move}" if self.move else ""
        renamed = f"renamed, because {self.renamed.rstrip('.')}" if self.renamed else ""
        notes = [self.problem or self.found, renamed, move, self.alike]
        return Planned(self.old.id, self.name, self.old.tags, "; ".join(filter(None, notes)))


def make(settings: Settings, source: Source, place: NewPlace, rules: Sequence[Rule]) -> Made:
    """Return a plan. A state that cannot be imported has no name, and a note that says why."""
    listed = list(source.states())
    if not listed:
        raise CommandError(
            f"There is no state in {source.address}: check the address, and what the credentials may see."
        )
    for rule in rules:
        if all(rule.name(state.id) is None for state in listed):
            raise CommandError(
                f"The rule {rule.text!r} matches no state. The pattern of a rule must match the whole ID of "
                f"a state in the source, such as {listed[0].id!r}."
            )
    drafts = [
        _Draft(state, name_of(state.id, rules) or state.name, left_out=state.left_out) for state in listed
    ]
    run = Run(Plan(settings, ()), Journal(None, ""), source, place)
    many.for_each([draft for draft in drafts if not draft.left_out], partial(_read, source), "read")
    states = [draft for draft in drafts if not draft.left_out]
    left_out = [LeftOut(draft.old.id, draft.left_out) for draft in drafts if draft.left_out]
    if not states:
        first, count = left_out[0], len(left_out)
        raise CommandError(
            f"There is no state in {source.address}. Check the address. The source has "
            f"{'1 object that is not a state' if count == 1 else f'{count} objects that are not states'}. "
            f"The first is {first.id}: {first.why}"
        )
    whole = [draft for draft in states if draft.content]
    names = _name(whole)
    verdicts = many.for_each(whole, partial(_compared, run), "compared")
    for draft, verdict in zip(whole, verdicts, strict=True):
        _settle(run, draft, verdict, names)
    alike = _alike(whole)
    return Made(
        Plan(settings, [draft.planned() for draft in states], left_out),
        {
            draft.old.id: f"was renamed to {draft.name}, because {draft.renamed.rstrip('.')}."
            for draft in whole
            if draft.renamed
        },
        [draft.old.id for draft in whole if draft.move],
        alike,
    )


def name_of(state: str, rules: Sequence[Rule]) -> str | None:
    """Return the name by the first rule that matches the ID of a state; None if no rule does."""
    return next((name for rule in rules if (name := rule.name(state)) is not None), None)


def _read(source: Source, draft: _Draft) -> None:
    """Read a state. Only an object that need not be a state is left out, such as a script in a bucket."""
    try:
        content = comparing.read_old(source, draft.old.id)
    except CommandError as error:
        if isinstance(error, NotAStateError) and not draft.old.is_certain:
            draft.left_out = error.why
        else:
            draft.problem = str(error)
        return
    draft.found = f"serial {content.revision.serial}, {size(len(content.body))}"
    draft.content = replace(content, body=b"")


def _name(drafts: Sequence[_Draft]) -> set[str]:
    """Give each state a valid name that no other state has; return these names."""
    names: set[str] = set()
    reasons = {draft.old.id: _refusal(draft) for draft in drafts}
    # A valid name goes before a name that becomes valid, and a workspace before another state.
    for draft in sorted(drafts, key=lambda draft: (bool(reasons[draft.old.id]), not draft.old.workspace)):
        name, draft.renamed = draft.wanted, reasons[draft.old.id]
        if draft.renamed:
            name = nearest(name)
            if draft.old.workspace and name.endswith(f"/{DEFAULT}"):
                name = f"{name.removesuffix(DEFAULT)}{MAIN}"
        elif name in names:
            draft.renamed = f"another state is named {name}"
        draft.name = StateName(first_free(name, names))
        names.add(draft.name.value)
    return names


def _refusal(draft: _Draft) -> str:
    """Return why a state cannot have the wanted name, whatever other states are named."""
    name, problem = check_name(draft.wanted)
    place = organization_and_workspace(name) if name else None
    if draft.old.workspace and place and place[1] == DEFAULT:
        return f"`cloud` refuses a workspace named '{DEFAULT}'"
    return problem


def _compared(run: Run, draft: _Draft) -> Verdict | CommandError:
    assert draft.name is not None  # noqa: S101 `_name` has set it
    try:
        return run.compared(draft.old.id, draft.name, draft.content).verdict
    except CommandError as error:
        return error


def _settle(run: Run, draft: _Draft, verdict: Verdict | CommandError, names: set[str]) -> None:
    """Note what the comparison says. A name that another state has in Holdfast becomes a free name."""
    first = str(draft.name)
    while isinstance(verdict, Taken):
        draft.renamed = draft.renamed or verdict.holder
        draft.name = StateName(first_free(first, names))
        names.add(draft.name.value)
        verdict = _compared(run, draft)
    match verdict:
        case Absent():
            pass
        case Same():
            draft.found += ", already imported"
        case MovedOn():
            draft.found += ", changed in the source after it was imported"
        case InUse():
            draft.found += ", already imported, and changed in Holdfast since then"
        case _:
            why = str(verdict) if isinstance(verdict, CommandError) else verdict.why
            draft.name, draft.problem, draft.renamed = None, why, ""


def _alike(drafts: Sequence[_Draft]) -> list[list[str]]:
    """Return the states with one lineage in groups, and note it at each."""
    groups: dict[str, list[_Draft]] = defaultdict(list)
    for draft in drafts:
        if draft.content and draft.content.revision.lineage:
            groups[draft.content.revision.lineage].append(draft)
    alike = [group for group in groups.values() if len(group) > 1]
    for group in alike:
        for draft in group:
            other = next(each for each in group if each is not draft)
            draft.alike = f"it has the same lineage as {other.old.id}, so one may be a copy of the other"
    return [[draft.old.id for draft in group] for group in alike]

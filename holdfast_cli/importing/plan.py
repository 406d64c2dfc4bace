"""The plan of an import: a TOML file that people read and change, and that later steps follow."""

import json
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, Final

from holdfast import names
from holdfast.errors import InvalidName
from holdfast.names import StateName
from holdfast_cli.errors import CommandError
from holdfast_cli.importing.source import Settings
from holdfast_cli.terminal.output import plain

_VERSION: Final = 1
_UNLIKE: Final = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)
"""Characters that no segment of a name has."""
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Planned:
    """A state of the plan.

    Attributes:
        id: identifies the state in the source.
        name: its new name; None if it has none or an invalid one, as `problem` says.
        tags: the tags of its workspace.
        note: a comment in the file, for its reader.
        problem: why it cannot be imported, and what to do; empty if it can.
    """

    id: str
    name: StateName | None
    tags: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An object of the source that is no state of its own; `why` is a sentence on what it is."""

    id: str
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What to import, from where. `left_out` are comments in the file, for its reader."""

    settings: Settings
    states: Sequence[Planned]
    left_out: Sequence[LeftOut] = ()


def write(plan: Plan) -> str:
    """Return the text of a plan's file."""
    lines = [
        "# Plan to import states into Holdfast. Change names here, or remove the tables of states that you "
        "do not want to import.",
        f"version = {_VERSION}",
        f"source = {_value(list(plan.settings.addresses))}",
    ]
    if plan.settings.options:
        lines += [
            "",
            "[options]",
            *(f"{name} = {_value(text)}" for name, text in plan.settings.options.items()),
        ]
    for state in plan.states:
        lines += ["", "[[states]]", f"from = {_value(state.id)}"]
        lines += [f"name = {_value(state.name.value if state.name else '')}{_comment(state.note)}"]
        if state.tags:
            lines += [f"tags = {_value(state.tags)}"]
    if plan.left_out:
        lines += ["", "# Objects that are not states, and that the plan does not include:"]
        lines += [f"# {plain(f'{each.id}: {each.why}')}" for each in plan.left_out]
    return "\n".join(lines) + "\n"


def _comment(note: str) -> str:
    return f"  # {plain(note)}" if note else ""


def _value(value: Any) -> str:
    """Return a value as TOML. Its strings are those of JSON, but for the character DEL."""
    if isinstance(value, Mapping):
        pairs = (
            f"{name if _BARE.fullmatch(name) else _value(name)} = {_value(of)}" for name, of in value.items()
        )
        return f"{{ {', '.join(pairs)} }}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def read(path: Path) -> Plan:
    """Read a plan; raise `CommandError`, which names the line or the state to correct."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandError(f"The plan {path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:  # also text that is not UTF-8
        raise CommandError(f"The plan {path} is not TOML: {error}.") from error
    try:
        return _parse(document)
    except ValueError as error:
        raise CommandError(f"The plan {path}: {error}.") from error


def _parse(document: Mapping[str, Any]) -> Plan:
    _check_members(document, {"version", "source", "options", "states"}, "the plan")
    if not document:
        raise ValueError("it is empty; check whether 'holdfast import plan' failed")
    if document.get("version") != _VERSION:
        raise ValueError(
            f"'version' must be {_VERSION}; write the plan with 'holdfast import plan' of this release"
        )
    addresses, options = document.get("source"), document.get("options", {})
    if not _is_list_of_text(addresses) or not addresses:
        raise ValueError("'source' must be a list of at least one address")
    if not _is_table_of_text(options):
        raise ValueError("the values in [options] must be strings")
    listed = document.get("states", [])
    if not isinstance(listed, list) or not all(isinstance(state, Mapping) for state in listed):
        raise ValueError("each state must be a table [[states]]")
    states = [_planned(state, number) for number, state in enumerate(listed, start=1)]
    twice = {name for name, count in Counter(state.name for state in states).items() if name and count > 1}
    repeated = {from_ for from_, count in Counter(state.id for state in states).items() if count > 1}
    states = [
        replace(state, problem="the state is in the plan twice: remove one of its tables")
        if state.id in repeated
        else replace(
            state,
            problem=f"another state in the plan has the same name, {state.name}: change one of the names",
        )
        if state.name in twice
        else state
        for state in states
    ]
    return Plan(Settings(tuple(addresses), dict(options)), states)


def _planned(state: Mapping[str, Any], number: int) -> Planned:
    from_, name, tags = state.get("from"), state.get("name", ""), state.get("tags", {})
    if not isinstance(from_, str) or not from_:
        raise ValueError(f"the state number {number} has no 'from'")
    _check_members(state, {"from", "name", "tags"}, f"the state {from_!r}")
    if not _is_table_of_text({"name": name}):
        raise ValueError(f"'name' of {from_!r} must be a string")
    if not _is_table_of_text(tags):
        raise ValueError(f"'tags' of {from_!r} must be a table of strings")
    if not name:
        return Planned(
            from_,
            None,
            dict(tags),
            problem="the state has no name: write a name in the plan, or remove the state's table",
        )
    parsed, problem = check_name(name)
    return Planned(from_, parsed, dict(tags), problem=problem)


def check_name(name: str) -> tuple[StateName | None, str]:
    """Return a valid name, or None and why it is not valid."""
    try:
        parsed = names.parse(name)
    except InvalidName as error:
        return None, f"the name {name!r} is not valid: {names.broken_rule(name) or error.message}"
    if parsed.is_probe:
        return None, f"the name {name!r} is reserved for 'holdfast doctor'"
    return parsed, ""


def nearest(name: str) -> str:
    """Return a valid name that is like another one.

    >>> nearest("Über uns/prod (old)"), nearest("../_x"), nearest("a/b/c/d/e/f/g/h/i")
    ('Uber-uns/prod-old', 'state/x', 'a/b/c/d/e/f/g/h-i')
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    segments = [_UNLIKE.sub("-", each).strip("-._") or "state" for each in plain.split("/")]
    most = names.MAX_SEGMENTS - 1
    if len(segments) > names.MAX_SEGMENTS:
        segments[most:] = ["-".join(segments[most:])]
    if segments[0] == names.RESERVED:
        segments[0] = f"old-{segments[0]}"
    return "/".join(segments)[: names.MAX_LENGTH].rstrip("/")


def first_free(wanted: str, taken: Collection[str]) -> str:
    """Return a name, or the first of `<name>-2`, `<name>-3`, … that is not taken.

    >>> first_free("a", ["b"]), first_free("a", ["a", "a-2"])
    ('a', 'a-3')
    """
    others = (f"{wanted[: names.MAX_LENGTH - len(end)]}{end}" for end in (f"-{n}" for n in count(2)))
    return wanted if wanted not in taken else next(name for name in others if name not in taken)


def _check_members(table: Mapping[str, Any], known: set[str], where: str) -> None:
    if unknown := sorted(table.keys() - known):
        raise ValueError(
            f"{where} has {unknown[0]!r}, which is unknown; the known keys are {', '.join(sorted(known))}"
        )


def _is_list_of_text(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_table_of_text(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(each, str) for each in value.values())

"""The two tables of `settings.md`: every setting of a team, from the declarations in infra/config.py."""

import re
from collections.abc import Iterator
from dataclasses import MISSING, Field, asdict
from typing import Any, Final

from infra.config import TeamConfig
from infra.settings import NamedTexts, Setting, Table, as_toml, settings_of
from tests.support.pages import page

PATH: Final = page("settings.md")
_LONG: Final = 80
"""Characters of a list of values that the table has once."""


def settings_document() -> str:
    """Return the document with the tables as the settings are."""
    document = PATH.read_text()
    for head, *rows in (_table(), _deployed()):
        before, _, rest = document.partition(head)
        lines = (head, "|" + head.count("| ") * " --- |", *rows)
        document = before + "\n".join(lines) + rest[rest.index("\n\n") :]
    return document


def _table() -> Iterator[str]:
    yield _row("Setting", "Write", "Default", "Meaning")
    seen: dict[str, str] = {}
    for name, one, field in _settings(TeamConfig):
        written = _written(one)
        first = seen.setdefault(written, name) if len(written) > _LONG else name
        yield _row(
            f"`{name}`",
            written if first == name else f"as for `{first}`",
            _default(one, field),
            one.sentence,
        )


def _deployed() -> Iterator[str]:
    yield _row("Setting", "On a deployed team")
    alike: dict[str, list[str]] = {}
    for name, one, _ in _settings(TeamConfig):
        if one.deployed:
            alike.setdefault(one.deployed, []).append(f"`{name}`")
    for sentence, names in alike.items():
        yield _row(", ".join(names), sentence)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _settings(table: type, prefix: str = "") -> Iterator[tuple[str, Setting, Field[Any]]]:
    for name, (one, field) in settings_of(table).items():
        yield f"{prefix}{name}", one, field
        if isinstance(one.kind, Table):
            yield from _settings(one.kind.members, f"{prefix}{name}.")


def _written(one: Setting) -> str:
    match one.kind:
        case Table(example=example) | NamedTexts(example=example):
            return f"`{example}`"
        case _:
            written = one.kind.written.replace("true or false", "flag").removeprefix("a whole number from ")
            return re.sub(r"\b(the|an) .*, as in ", "", written)


def _default(one: Setting, field: Field[Any]) -> str:
    if one.default:
        return one.default
    if field.default is MISSING:
        return "required"
    if isinstance(one.kind, Table):
        default = as_toml(asdict(field.default))
        return "the same" if default == one.kind.example else f"`{default}`"
    return f"`{as_toml(field.default)}`"

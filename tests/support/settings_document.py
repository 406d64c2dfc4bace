"""The table of `settings.md`: all settings of a team, from their declarations in infra/config.py."""

import re
from collections.abc import Iterator
from dataclasses import MISSING, Field, asdict
from typing import Any

from infra.config import TeamConfig
from infra.settings import NamedTexts, Setting, Table, as_toml, settings_of
from tests.support.pages import page

PATH = page("settings.md")


def settings_document() -> str:
    """Return the document as it is, with the table as the settings are."""
    table = "\n".join(_table())
    return re.sub(r"\| Setting \| Write \|.*?(?=\n\n)", lambda _: table, PATH.read_text(), flags=re.DOTALL)


def _table() -> Iterator[str]:
    yield "| Setting | Write | Default | What it is | On a deployed team |"
    yield "| --- | --- | --- | --- | --- |"
    for name, one, field in _settings(TeamConfig):
        cells = [f"`{name}`", _written(one), _default(one, field), one.sentence, one.deployed]
        yield f"| {' | '.join(cells)} |"


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
            return one.kind.written


def _default(one: Setting, field: Field[Any]) -> str:
    if one.default:
        return one.default
    if field.default is MISSING:
        return "must be given"
    if isinstance(one.kind, Table):
        return f"`{as_toml(asdict(field.default))}`"
    return f"`{as_toml(field.default)}`"

"""The two tables of `settings.md`: every setting of a team, from infra/holdfast_cdk/team_settings.py."""

import re
from collections.abc import Iterator
from dataclasses import MISSING, Field, asdict
from typing import Any

from holdfast_cdk.settings import NamedTexts, Setting, Table, Texts, as_toml, settings_of
from holdfast_cdk.team_settings import Team
from tests.support.pages import page

PATH = page("settings.md")


def settings_document() -> str:
    """Return the document with the tables as the settings are."""
    document = PATH.read_text()
    for head, *rows in (_table(), _changes()):
        before, _, rest = document.partition(head)
        document = "\n".join((before + head, *rows)) + rest[rest.index("\n\n") :]
    return document


def _table() -> Iterator[str]:
    yield "| Setting | Write | Default | Meaning |"
    yield "| --- | --- | --- | --- |"
    first: dict[str, str] = {}
    for name, setting, field in _settings(Team):
        written = _written(setting)
        if written.count(",") > 9 and first.setdefault(written, name) != name:
            written = f"as for `{first[written]}`"
        yield f"| `{name}` | {written} | {_default(setting, field)} | {setting.sentence} |"


def _changes() -> Iterator[str]:
    yield "| Setting | On a deployed team |"
    yield "| --- | --- |"
    alike: dict[str, list[str]] = {}
    for name, setting, _ in _settings(Team):
        if setting.deployed:
            alike.setdefault(setting.deployed, []).append(f"`{name}`")
    for sentence, names in alike.items():
        yield f"| {', '.join(names)} | {sentence} |"


def _settings(table: type, prefix: str = "") -> Iterator[tuple[str, Setting, Field[Any]]]:
    for name, (setting, field) in settings_of(table).items():
        yield f"{prefix}{name}", setting, field
        if isinstance(setting.kind, Table):
            yield from _settings(setting.kind.members, f"{prefix}{name}.")


def _written(setting: Setting) -> str:
    match setting.kind:
        case Table(example=example) | NamedTexts(example=example) | Texts(example=example):
            return f"`{example}`"
        case _:
            written = setting.kind.written.replace("true or false", "flag").removeprefix(
                "a whole number from "
            )
            return re.sub(r"\b(the|an) .*, as in ", "", written)


def _default(setting: Setting, field: Field[Any]) -> str:
    if setting.default:
        return setting.default
    if field.default is MISSING:
        return "required"
    if isinstance(setting.kind, Table):
        default = as_toml(asdict(field.default))
        return "the same" if default == setting.kind.example else f"`{default}`"
    return f"`{as_toml(field.default)}`"

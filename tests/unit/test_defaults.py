"""A changed default is complete: every sentence and every fallback that names one is compared with it.

A comment behind a number of a document says where it comes from, as in `100<!-- max_state_mb -->`: a setting
of a team, a part of one (`throttling.rate/4`), a function's timeout (`cloud.seconds`), or a constant with its
module.
"""

import ast
import re
from collections.abc import Iterator
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from holdfast.team import CREDENTIALS_CACHED
from holdfast_cdk.functions import FUNCTIONS
from holdfast_cdk.settings import Table, as_toml, settings_of
from holdfast_cdk.team_settings import Team
from tests.support.pages import ROOT, text
from tests.unit.test_documents import BY_HAND

PRODUCT: Final = ("functions", "holdfast_cli", "infra", "local_aws")
MARKED: Final = re.compile(r"([\d,]*)<!-- (?!test_)([\w./]+) -->(?: (second|minute|hour|day)s?\b)?")
ASSIGNED: Final = re.compile(r"`([a-z_.]+) = ([^`]+?)`[^.]{0,40}\bdefault\b")
"""As in "with `key = "kms"`, the default"."""
WITHIN: Final = re.compile(r"\bwithin (\d+) seconds\b")
"""The time that a revocation takes, as documents, helps and messages say it."""
SMALL: Final = 50
"""A smaller number has too many meanings: beside the word "default" alone it needs no mark."""


class Place(NamedTuple):
    """A line of a file of the repository."""

    path: Path
    number: int
    line: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.number}"


def defaults(table: type = Team, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield every setting of a team that has a default, with it."""
    for name, (setting, field) in settings_of(table).items():
        if isinstance(setting.kind, Table):
            yield from defaults(setting.kind.members, f"{prefix}{name}.")
        elif isinstance(field.default, bool | int | str):
            yield f"{prefix}{name}", field.default


SETTINGS: Final = dict(defaults())
TIMEOUTS: Final = {f"{spec.name}.seconds": timedelta(seconds=spec.seconds) for spec in FUNCTIONS}


def shown(name: str, unit: str) -> str:
    """Return the value of a mark, as a document writes it in front of a unit of time or alone."""
    name, _, part = name.partition("/")
    if part:
        return str(int(str(SETTINGS[name])) // int(part))
    module, _, constant = name.rpartition(".")
    default: Any = SETTINGS.get(name) or TIMEOUTS.get(name) or getattr(import_module(module), constant)
    if constant.endswith("SECONDS"):
        default = timedelta(seconds=default)
    return str(default // timedelta(**{f"{unit}s": 1}) if isinstance(default, timedelta) else default)


def lines(paths: Iterator[Path] | list[Path]) -> Iterator[Place]:
    for path in paths:
        for number, line in enumerate(text(path).splitlines(), start=1):
            yield Place(path, number, line)


DOCUMENTS: Final = [place for place in lines(BY_HAND) if place.path.name != "CHANGELOG.md"]
MARKS: Final = [(place, *mark) for place in DOCUMENTS for mark in MARKED.findall(place.line)]


def test_every_marked_number_is_that_of_the_code() -> None:
    wrong = [
        f"{place} says {number}, {name} is {shown(name, unit)}"
        for place, number, name, unit in MARKS
        if number.replace(",", "") != shown(name, unit)
    ]

    assert MARKS
    assert not wrong, "\n" + "\n".join(wrong)


def test_every_sentence_that_calls_a_value_the_default_names_it() -> None:
    wrong = [
        f"{place} says {name} = {value}, the default is {as_toml(SETTINGS[name])}"
        for place in DOCUMENTS
        for name, value in ASSIGNED.findall(place.line)
        if name in SETTINGS and value != as_toml(SETTINGS[name])
    ]

    assert not wrong, "\n" + "\n".join(wrong)


def test_every_place_says_how_long_a_revocation_takes() -> None:
    product = (path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py"))
    wrong = [
        f"{place} says {seconds} seconds, CREDENTIALS_CACHED is {CREDENTIALS_CACHED}"
        for place in [*DOCUMENTS, *lines(product)]
        for seconds in WITHIN.findall(place.line)
        if timedelta(seconds=int(seconds)) != CREDENTIALS_CACHED
    ]

    assert not wrong, "\n" + "\n".join(wrong)


def test_a_number_beside_the_name_of_its_setting_or_beside_the_word_default_is_marked() -> None:
    unmarked = []
    for name, default in SETTINGS.items():
        if type(default) is not int:
            continue
        number = re.compile(rf"(?<![\w.,-])(?<!to ){default}(?![\w.]|,\d|<!--)")
        names = "|".join({name, name.partition(".")[0], name.rpartition(".")[2]})
        mention = re.compile(rf"`({names})\b" if default < SMALL else rf"`({names})\b|\bdefaults?\b")
        unmarked += [
            f"{place} says {default}: mark it with <!-- {name} -->, or move it away from the word"
            for place in DOCUMENTS
            if number.search(place.line) and mention.search(place.line)
        ]

    assert not unmarked, "\n" + "\n".join(unmarked)


def test_a_fallback_in_the_functions_is_the_default_of_its_setting() -> None:
    wrong = []
    for path in (ROOT / "functions").rglob("*.py"):
        for node in ast.walk(ast.parse(text(path))):
            match node:
                case ast.Call(args=[ast.Constant(str(variable)), ast.Constant(str(fallback)), *_]):
                    setting = variable.removeprefix("HOLDFAST_").lower()
                    if variable.startswith("HOLDFAST_") and str(SETTINGS.get(setting, fallback)) != fallback:
                        wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} falls back to {fallback}")
                case _:
                    pass

    assert not wrong, "\n" + "\n".join(wrong)

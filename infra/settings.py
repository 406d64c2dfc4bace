"""Settings that people write in TOML, each declared once: how it is checked, and what is said about it."""

import dataclasses
import difflib
import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, dataclass
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

_Table = TypeVar("_Table")

# A message has one line.
_LONGEST_SHOWN = 80


class SettingError(ValueError):
    """A setting is wrong. The message names it and says what to write instead."""


class Kind(Protocol):
    """Values that a setting takes.

    Attributes:
        written: the values for people, as in `"kms" or "s3"`.
    """

    @property
    def written(self) -> str: ...

    def read(self, name: str, value: object) -> Any:
        """Return the value as the program uses it.

        Args:
            name: of the setting, with its tables: `retention.days`.
            value: as TOML has it.

        Raises:
            SettingError: it is not allowed.
        """


@dataclass(frozen=True, slots=True)
class Setting:
    """The declaration of a setting.

    Attributes:
        kind: what it takes.
        sentence: what it is for.
        deployed: how it changes once the team is deployed; None if in place and at any time.
        default: what holds without it, where its value does not say so.
    """

    kind: Kind
    sentence: str
    deployed: str | None
    default: str | None


def setting(
    kind: Kind, sentence: str, *, deployed: str | None = None, unset: str | None = None, **default: Any
) -> Any:
    """Declare a field of a dataclass that is a table of settings; see `Setting`.

    Args:
        unset: what holds without it, where the default value does not say so.
        default: `default` or `default_factory`, as for any field; neither where it must be given.
    """
    return dataclasses.field(metadata={"setting": Setting(kind, sentence, deployed, unset)}, **default)


def settings_of(table: type) -> dict[str, tuple[Setting, Field[Any]]]:
    """Return the settings of a table by name, in order, each with the field that has its default."""
    return {
        one.name: (one.metadata["setting"], one)
        for one in dataclasses.fields(table)
        if "setting" in one.metadata
    }


def read_settings(
    table: type[_Table],
    values: Mapping[str, object],
    name: str = "",
    more: Mapping[str, object] = MappingProxyType({}),
) -> _Table:
    """Check every value, and that no setting is unknown or missing.

    Args:
        table: a dataclass whose fields are declared with `setting`.
        name: of the table, empty for the outermost one.
        more: fields that are not settings.

    Raises:
        SettingError: with the first that is wrong.
    """
    known = settings_of(table)
    read = {}
    for key, value in values.items():
        if key not in known:
            raise SettingError(f"unknown setting '{_below(name, key)}'; {_instead_of(table, name, key)}")
        read[key] = known[key][0].kind.read(_below(name, key), value)
    for key, (one, field) in known.items():
        if key not in read and field.default is MISSING and field.default_factory is MISSING:
            raise SettingError(f"{_below(name, key)} is missing; write {one.kind.written}")
    return table(**read, **more)


def as_toml(value: object) -> str:
    """Return a value as TOML writes it."""
    match value:
        case str():
            return json.dumps(value, ensure_ascii=False)
        case bool():
            return "true" if value else "false"
        case Mapping():
            members = ", ".join(f"{_key(key)} = {as_toml(member)}" for key, member in value.items())
            return f"{{ {members} }}" if members else "{}"
        case list():
            return f"[{', '.join(map(as_toml, value))}]"
        case int() if value.bit_length() > _LONGEST_SHOWN * 8:
            return hex(value)  # Python writes no decimal number of any length
    return str(value)


# --- kinds ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value, taken as it is.

    Attributes:
        written: what it can be.
        accepts: whether a value is one.
        words: those that a value can be a near miss of.
    """

    written: str
    accepts: Callable[[object], bool]
    words: Callable[[], Collection[str]] = tuple

    def read(self, name: str, value: object) -> Any:
        """See `Kind`."""
        if not self.accepts(value):
            raise _not_allowed(name, value, self._instead_of(value))
        return value

    def _instead_of(self, value: object) -> str:
        """Suggest the value with or without quotes or in lower case, or a similar word; else all words."""
        if isinstance(value, str | int):
            written = value if isinstance(value, str) else as_toml(value)
            lower = written.lower()
            for meant in (written, lower, *_without_quotes(lower)):
                if self.accepts(meant):
                    return as_toml(meant)
            if similar := difflib.get_close_matches(lower, self.words(), cutoff=0.7):
                return " or ".join(map(as_toml, similar))  # the nearest first
        return self.written


def _without_quotes(value: str) -> list[object]:
    if value in ("true", "false"):
        return [value == "true"]
    return [int(value)] if re.fullmatch("[0-9]{1,9}", value) else []


def flag() -> Scalar:
    """`true` or `false`."""
    return Scalar("true or false", lambda value: isinstance(value, bool))


def flag_or(kind: Scalar) -> Scalar:
    """`true`, `false` or a value of another kind."""
    return Scalar(
        f"true, false or {kind.written}", lambda value: isinstance(value, bool) or kind.accepts(value)
    )


def whole_number(low: int, high: int) -> Scalar:
    """Make the kind of a whole number within bounds, which are allowed too."""
    return Scalar(
        f"a whole number from {low} to {high}", lambda value: type(value) is int and low <= value <= high
    )


def one_of(numbers: Collection[int]) -> Scalar:
    """One of some numbers."""
    *others, last = map(str, numbers)
    return Scalar(f"{', '.join(others)} or {last}", lambda value: type(value) is int and value in numbers)


def word(*words: str) -> Scalar:
    """One of some words."""
    return Scalar(" or ".join(map(as_toml, words)), lambda value: value in words, lambda: words)


def word_of(written: str, words: Callable[[], Collection[str]]) -> Scalar:
    """One of many words, which are looked up only when they are needed."""
    return Scalar(written, lambda value: isinstance(value, str) and value in words(), words)


def text(written: str, accepts: Callable[[str], object]) -> Scalar:
    """Make the kind of a text that follows a rule."""
    return Scalar(written, lambda value: isinstance(value, str) and bool(accepts(value)))


@dataclass(frozen=True, slots=True)
class Table:
    """A table of settings.

    Attributes:
        members: the dataclass that declares them.
        example: such a table.
    """

    members: type
    example: str

    @property
    def written(self) -> str:
        """What to write."""
        return f"a table, as in {self.example}"

    def read(self, name: str, value: object) -> Any:
        """See `Kind`."""
        if not isinstance(value, dict):
            raise _not_allowed(name, value, self.written)
        return read_settings(self.members, value, name)


@dataclass(frozen=True, slots=True)
class NamedTexts:
    """A table whose names are chosen freely.

    Attributes:
        example: such a table.
        names: what a name can be.
        values: what a value can be.
        most: how many there can be.
    """

    example: str
    names: Scalar
    values: Scalar
    most: int

    @property
    def written(self) -> str:
        """What to write."""
        return f"a table of at most {self.most}, as in {self.example}"

    def read(self, name: str, value: object) -> Any:
        """See `Kind`. Names that differ in upper and lower case alone are the same."""
        if not isinstance(value, dict):
            raise _not_allowed(name, value, self.written)
        if len(value) > self.most:
            raise SettingError(f"{name} has {len(value)} entries; write at most {self.most}")
        seen: dict[str, str] = {}
        for key, member in value.items():
            if not self.names.accepts(key):
                raise SettingError(
                    f"{_below(name, key)} has a name that is not allowed; write {self.names.written}"
                )
            if key.casefold() in seen:
                same = f"{as_toml(seen[key.casefold()])} and {as_toml(key)}"
                raise SettingError(f"{name} has {same}, which are the same; write one of them")
            seen[key.casefold()] = key
            self.values.read(_below(name, key), member)
        return value


# --- messages -------------------------------------------------------------------------------------


def _not_allowed(name: str, value: object, instead: str) -> SettingError:
    shown = as_toml(value)
    if len(shown) > _LONGEST_SHOWN:
        shown = f"{shown[:_LONGEST_SHOWN]}…"
    return SettingError(f"{name} = {shown} is not allowed; write {instead}")


def _instead_of(table: type, name: str, key: str) -> str:
    """Suggest what an unknown setting was meant to be: one of its table, one of a table in it, or nothing."""
    known = settings_of(table)
    inside = [
        outer
        for outer, (one, _) in known.items()
        if isinstance(one.kind, Table) and key in settings_of(one.kind.members)
    ]
    if inside:
        write = " or ".join(_below(_below(name, outer), key) for outer in inside)
        return f"it stands inside {' and '.join(inside)}: write {write}"
    lower = key.lower().replace("-", "_")
    if close := difflib.get_close_matches(lower, known, n=1):
        return f"write {_below(name, close[0])}"
    return f"there are {', '.join(_below(name, one) for one in known)}"


def _below(name: str, key: str) -> str:
    return f"{name}.{_key(key)}" if name else _key(key)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else as_toml(key)

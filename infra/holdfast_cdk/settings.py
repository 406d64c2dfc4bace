"""Settings in TOML. Each setting is declared once, with its check and its documentation."""

import dataclasses
import difflib
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from holdfast import __version__

_Table = TypeVar("_Table")

# The largest number of characters that a message shows of a value.
_LONGEST_SHOWN = 80


class SettingError(ValueError):
    """A setting is invalid. The message names it and says what to write instead."""


class Kind(Protocol):
    """Checks the values of a setting, and describes which values are accepted.

    Attributes:
        written: the accepted values in words, as in `"kms" or "s3"`.
    """

    @property
    def written(self) -> str: ...

    def read(self, name: str, value: object) -> Any:
        """Check a value, and return it in the form that the program uses.

        Args:
            name: the name of the setting with its tables, such as `retention.days`.
            value: the parsed TOML value.

        Raises:
            SettingError: the value is not allowed.
        """


@dataclass(frozen=True, slots=True)
class Setting:
    """The declaration of a setting.

    Attributes:
        kind: which values it accepts.
        sentence: its purpose.
        deployed: how to change it after the first deployment; None if it can change in place at any time.
        default: a description of the default, if the value alone does not describe it.
    """

    kind: Kind
    sentence: str
    deployed: str | None
    default: str | None


def setting(
    kind: Kind, sentence: str, *, deployed: str | None = None, unset: str | None = None, **default: Any
) -> Any:
    """Declare a setting as a field of a dataclass; see `Setting`.

    Args:
        unset: a description of the default, if the value alone does not describe it.
        default: `default` or `default_factory`, as for any field; a required setting has neither.
    """
    return dataclasses.field(metadata={"setting": Setting(kind, sentence, deployed, unset)}, **default)


def settings_of(table: type) -> dict[str, tuple[Setting, Field[Any]]]:
    """Return name -> setting and dataclass field of a table, in the table's order."""
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
    """Return a table from the values of its settings; refuse an invalid, unknown or missing setting.

    Args:
        table: a dataclass whose fields are declared with `setting`.
        name: the table's name, empty for the outermost table.
        more: fields that are not settings.

    Raises:
        SettingError: names the first setting that is invalid, unknown or missing.
    """
    known = settings_of(table)
    read = {}
    for key, value in values.items():
        if key not in known:
            instead = _instead_of(table, name, key)
            raise SettingError(f"Holdfast {__version__} has no setting '{_below(name, key)}'; {instead}")
        read[key] = known[key][0].kind.read(_below(name, key), value)
    for key, (one, field) in known.items():
        if key not in read and field.default is MISSING and field.default_factory is MISSING:
            raise SettingError(f"{_below(name, key)} is missing; write {one.kind.written}")
    return table(**read, **more)


def document(table: type) -> None:
    """Add the settings of a table, with their defaults, to its docstring, which `help()` shows."""
    lines = [str(table.__doc__), "", "Attributes:"]
    for name, (one, field) in settings_of(table).items():
        is_required = field.default is MISSING and field.default_factory is MISSING
        # Some defaults are described by a link to a page.
        shown = one.default if one.default and "](" not in one.default else repr(field.default)
        default = "Required." if is_required else f"Default: {shown}."
        lines.append("    " + re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", f"{name}: {one.sentence} {default}"))
    table.__doc__ = "\n".join(lines)


def as_toml(value: object) -> str:
    """Return a value in TOML."""
    match value:
        case str():
            return json.dumps(value, ensure_ascii=False)
        case bool():
            return "true" if value else "false"
        case Mapping():
            members = ", ".join(f"{_key(key)} = {as_toml(member)}" for key, member in value.items())
            return f"{{ {members} }}" if members else "{}"
        case list() | tuple():
            return f"[{', '.join(map(as_toml, value))}]"
        case int() if value.bit_length() > _LONGEST_SHOWN * 8:
            return hex(value)  # Python limits the length of a decimal number
    return str(value)


# --- kinds ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scalar:
    """A `Kind` that accepts single values and returns them unchanged.

    Attributes:
        written: the values in words.
        accepts: returns whether a value is allowed.
        words: returns the words that a message may suggest for a misspelled word.
    """

    written: str
    accepts: Callable[[object], bool]
    words: Callable[[], Collection[str]] = tuple

    def read(self, name: str, value: object) -> Any:
        """Check a single value, and return it unchanged (see `Kind`)."""
        if not self.accepts(value):
            raise _not_allowed(name, value, self._instead_of(value))
        return value

    def _instead_of(self, value: object) -> str:
        """Return a suggestion: the value with or without quotes, in lower case, or a similar word."""
        if isinstance(value, str | int):
            written = value if isinstance(value, str) else as_toml(value)
            lower = written.lower()
            for meant in (written, lower, *_without_quotes(lower)):
                if self.accepts(meant):
                    return as_toml(meant)
            if similar := difflib.get_close_matches(lower, self.words(), cutoff=0.7):
                return " or ".join(map(as_toml, similar))  # the most similar first
        return self.written


def _without_quotes(value: str) -> list[object]:
    if value in ("true", "false"):
        return [value == "true"]
    return [int(value)] if re.fullmatch("[0-9]{1,9}", value) else []


def flag() -> Scalar:
    """Return a `Kind` that accepts `true` or `false`."""
    return Scalar("true or false", lambda value: isinstance(value, bool))


def whole_number(low: int, high: int) -> Scalar:
    """Return a `Kind` that accepts whole numbers from `low` to `high`, both included."""
    return Scalar(
        f"a whole number from {low} to {high}", lambda value: type(value) is int and low <= value <= high
    )


def one_of(numbers: Collection[int]) -> Scalar:
    """Return a `Kind` that accepts each of `numbers`."""
    *others, last = map(str, numbers)
    return Scalar(f"{', '.join(others)} or {last}", lambda value: type(value) is int and value in numbers)


def word(*words: str | bool) -> Scalar:
    """Return a `Kind` that accepts each of `words`; `true` or `false` can be one of them."""
    return Scalar(
        " or ".join(map(as_toml, words)),
        lambda value: isinstance(value, str | bool) and value in words,
        lambda: [each for each in words if isinstance(each, str)],
    )


def word_of(written: str, words: Callable[[], Collection[str]]) -> Scalar:
    """Return a `Kind` that accepts each word that `words` returns; `words` is called only when needed."""
    return Scalar(written, lambda value: isinstance(value, str) and value in words(), words)


def text(written: str, accepts: Callable[[str], object]) -> Scalar:
    """Return a `Kind` that accepts each text for which `accepts` returns a true value."""
    return Scalar(written, lambda value: isinstance(value, str) and bool(accepts(value)))


@dataclass(frozen=True, slots=True)
class Table:
    """A `Kind` that accepts tables of settings.

    Attributes:
        members: the dataclass that declares its settings.
        example: an example of the table.
    """

    members: type
    example: str

    @property
    def written(self) -> str:
        """Return the form of the table, with the example."""
        return f"a table, as in {self.example}"

    def read(self, name: str, value: object) -> Any:
        """Check a table of settings, and return it as an instance of `members` (see `Kind`)."""
        if not isinstance(value, dict):
            raise _not_allowed(name, value, self.written)
        return read_settings(self.members, value, name)


@dataclass(frozen=True, slots=True)
class NamedTexts:
    """A `Kind` that accepts tables of texts, with names that the user chooses.

    Attributes:
        example: an example of the table.
        names: the kind that checks the names.
        values: the kind that checks the values.
        most: the largest number of entries.
    """

    example: str
    names: Scalar
    values: Scalar
    most: int

    @property
    def written(self) -> str:
        """Return the form of the table, with the example."""
        return f"a table of at most {self.most} entries, as in {self.example}"

    def read(self, name: str, value: object) -> Any:
        """Return a checked table of texts. Names that differ only in upper and lower case are duplicates."""
        if not isinstance(value, dict):
            raise _not_allowed(name, value, self.written)
        if len(value) > self.most:
            raise SettingError(f"{name} has {len(value)} entries; write at most {self.most}")
        seen: dict[str, str] = {}
        for key, member in value.items():
            if not self.names.accepts(key):
                raise SettingError(
                    f"the name in {_below(name, key)} is not allowed; write a name with {self.names.written}"
                )
            if key.casefold() in seen:
                same = f"{as_toml(seen[key.casefold()])} and {as_toml(key)}"
                raise SettingError(
                    f"{name} has {same}, which differ only in upper and lower case; write only one of them"
                )
            seen[key.casefold()] = key
            self.values.read(_below(name, key), member)
        return value


@dataclass(frozen=True, slots=True)
class Texts:
    """A `Kind` that accepts lists of texts without duplicates, and returns them as a tuple.

    Attributes:
        example: an example of the list.
        values: the kind that checks each text.
        most: the largest number of texts.
        check: checks the texts together; its `ValueError` says what is wrong and what to write.
    """

    example: str
    values: Scalar
    most: int
    check: Callable[[Sequence[str]], object] = tuple

    @property
    def written(self) -> str:
        """Return the form of the list, with the example."""
        return f"a list of 1 to {self.most} entries, as in {self.example}"

    def read(self, name: str, value: object) -> Any:
        """Return a checked list of texts as a tuple (see `Kind`)."""
        if not isinstance(value, list) or not value:
            raise _not_allowed(name, value, self.written)
        if len(value) > self.most:
            raise SettingError(f"{name} has {len(value)} entries; write at most {self.most}")
        for number, member in enumerate(value):
            self.values.read(f"{name}[{number}]", member)
            if member in value[:number]:
                raise SettingError(f"{name} has {as_toml(member)} twice; write it once")
        try:
            self.check(value)
        except ValueError as error:
            raise SettingError(f"{name}: {error}") from None
        return tuple(value)


# --- messages -------------------------------------------------------------------------------------


def _not_allowed(name: str, value: object, instead: str) -> SettingError:
    shown = as_toml(value)
    if len(shown) > _LONGEST_SHOWN:
        shown = f"{shown[:_LONGEST_SHOWN]}…"
    return SettingError(f"{name} = {shown} is not allowed; write {instead}")


def _instead_of(table: type, name: str, key: str) -> str:
    """Suggest a similar setting of the table, or of a table in it; if none is similar, list all settings."""
    known = settings_of(table)
    inside = [
        outer
        for outer, (one, _) in known.items()
        if isinstance(one.kind, Table) and key in settings_of(one.kind.members)
    ]
    if inside:
        *most, last = [_below(_below(name, outer), key) for outer in inside]
        return f"did you mean {', '.join(most)} or {last}?" if most else f"did you mean {last}?"
    lower = key.lower().replace("-", "_")
    if close := difflib.get_close_matches(lower, known, n=1):
        return f"write {_below(name, close[0])}"
    return f"the settings are {', '.join(_below(name, one) for one in known)}"


def _below(name: str, key: str) -> str:
    return f"{name}.{_key(key)}" if name else _key(key)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else as_toml(key)

"""Read and change profiles. A profile is an address, a team and a region in a TOML file without secrets."""

import difflib
import json
import os
import re
import shutil
import stat
import tempfile
import tomllib
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from holdfast_cli.config import rules
from holdfast_cli.errors import CommandError, UsageError
from holdfast_cli.terminal.secrets import looks_secret

RULES: Final[Mapping[str, Callable[[str], str]]] = {
    "address": rules.address,
    "team": rules.team,
    "region": rules.region,
}
"""The settings of a profile -> the function that parses its value."""
DEFAULT: Final = "default"
"""The profile that is used if no other is named; it need not exist."""
NO_FILE: Final = "Neither XDG_CONFIG_HOME nor HOME says where the profiles are: set HOLDFAST_CONFIG_FILE."

_TABLE: Final = "profiles"
_LARGEST: Final = 64 * 1024
"""The largest size of a profiles file, in bytes."""
_LONGEST_LINE: Final = 2000
"""The largest number of characters of a line."""
_VALUE: Final = re.compile(r"""\s*["']?(\w+)["']?\s*=\s*("[^"]*"|'[^']*')""")
"""A key and its value in one line; a comment may follow."""
_MOST_NAMES: Final = 10
"""The largest number of profiles' names that a message lists."""
_SECRET_KEYS: Final = re.compile(r"secret|passw|token|credential|key|user|(^|_)id$", re.IGNORECASE)

Profiles = Mapping[str, Mapping[str, str]]
"""Profile name -> its settings."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The API, team and AWS region that a command uses.

    Attributes:
        address: None if no setting names it, or if a setting with precedence names a team.
        region: None leaves the choice to the AWS profile.
        aws_profile: None leaves the choice to the environment.
    """

    address: str | None
    team: str | None
    region: str | None
    aws_profile: str | None = None


def path(environment: Mapping[str, str]) -> Path | None:
    """Return the path of the profiles file; None if the environment does not determine the path."""
    home = environment.get("HOME")
    if named := environment.get("HOLDFAST_CONFIG_FILE"):
        # A shell does not expand ~ in a quoted path.
        return Path(home, named.removeprefix("~/")) if home and named.startswith("~/") else Path(named)
    folder = own_folder(environment, "XDG_CONFIG_HOME", ".config")
    return folder / "config.toml" if folder else None


def own_folder(environment: Mapping[str, str], variable: str, below_home: str) -> Path | None:
    """Return Holdfast's folder by https://specifications.freedesktop.org/basedir/latest/; None without HOME.

    That specification ignores a relative path in `variable`.
    """
    folder, home = environment.get(variable, ""), environment.get("HOME")
    if Path(folder).is_absolute():
        return Path(folder, "holdfast")
    return Path(home, below_home, "holdfast") if home else None


def read(file: Path | None) -> Profiles:
    """Return the profiles of a file; empty if there is no file."""
    return _parse(_content(file), file) if file is not None else {}


def named(name: str, found: Profiles, file: Path | None) -> Mapping[str, str]:
    """Return the settings of a profile; UsageError if it does not exist."""
    if name in found:
        return found[name]
    if not found:
        raise UsageError(
            f"There is no profile {name}: {file or 'the file'} has none. Write it with "
            f"`holdfast configure --profile {name}`; AWS_PROFILE names a profile of AWS."
        )
    names = sorted(found)
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    raise UsageError(
        f"There is no profile {name} in {file}{_nearest(name, found)} It has "
        f"{', '.join(names[:_MOST_NAMES])}{more}; AWS_PROFILE names a profile of AWS."
    )


def change(file: Path, name: str, values: Mapping[str, str | None]) -> None:
    """Set values of a profile; None removes a value, which must exist.

    The rest of the file is kept, with its comments. After an error the file is unchanged.
    """
    content = _content(file)
    profiles = dict(_parse(content, file))
    profile = dict(named(name, profiles, file) if None in values.values() else profiles.get(name, {}))
    for key, value in values.items():
        if value is not None:
            profile[key] = value
        elif profile.pop(key, None) is None:
            raise UsageError(f"The profile {name} in {file} has no {key}.")
    lines = _lines(content)
    if (start := _header(lines, name)) is None:
        lines += ["", f"[{_TABLE}.{name}]"] if lines else [f"[{_TABLE}.{name}]"]
        start = len(lines) - 1
    for key, value in values.items():
        end = _end(lines, start)
        at = next((at for at in range(start + 1, end) if _key(lines[at]) == key), None)
        written = f"{key} = {json.dumps(value)}"
        if at is None:
            lines.insert(end, written)
        elif value is None:
            del lines[at]
        else:
            lines[at] = f"{written}{_VALUE.sub('', lines[at])}"
    _replace(file, content, lines, {**profiles, name: profile})


def remove(file: Path, name: str) -> None:
    """Remove a profile; UsageError if it does not exist. Comments below its last value are kept."""
    content = _content(file)
    profiles = _parse(content, file)
    named(name, profiles, file)
    lines = _lines(content)
    if (start := _header(lines, name)) is not None:
        del lines[start : _end(lines, start)]
    _replace(file, content, lines, {other: profiles[other] for other in profiles if other != name})


def _line_end(content: str) -> str:
    """Return the line end of Windows if all lines have it, else the line end of Unix."""
    return "\r\n" if 0 < content.count("\n") == content.count("\r\n") else "\n"


def _lines(content: str) -> list[str]:
    line_end = _line_end(content)
    return content.removesuffix(line_end).split(line_end) if content else []


def _header(lines: Sequence[str], name: str) -> int | None:
    """Return the index of a profile's first line; None if it has no table of its own."""
    header = re.compile(rf"\s*\[\s*{_TABLE}\s*\.\s*([\"']?){name}\1\s*\]")
    return next((at for at, line in enumerate(lines) if header.match(line)), None)


def _end(lines: Sequence[str], start: int) -> int:
    """Return the index after a profile's last value. Comments below may belong to the next profile."""
    end = start + 1
    for at in range(end, len(lines)):
        if lines[at].lstrip().startswith("["):
            break
        if _key(lines[at]):
            end = at + 1
    return end


def _key(line: str) -> str | None:
    parts = _VALUE.match(line)
    return parts[1] if parts else None


# --- the file ------------------------------------------------------------------------------------


def _content(file: Path) -> str:
    try:
        # /dev/null counts as an empty file; a pipe or another device may have no end. A folder fails below.
        kind = stat.S_IFMT(file.stat().st_mode)
        if kind not in (stat.S_IFREG, stat.S_IFDIR) and not file.samefile(os.devnull):
            raise UsageError(f"{file} is not a regular file.")
        with file.open("rb") as stream:
            content = stream.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise UsageError(f"{file} has more than {_LARGEST // 1024} KiB: it does not hold profiles.")
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8, at byte {error.start + 1}: write it as text.") from error
    except OSError as error:
        # A file in a folder that this user may not enter counts as absent.
        if isinstance(error, FileNotFoundError) or not os.path.lexists(file):
            return ""
        raise UsageError(f"{file} cannot be read: {error.strerror}.") from error


def _replace(file: Path, before: str, lines: Sequence[str], meant: Profiles) -> None:
    """Replace the file atomically, with the same line ends: readers see the old file or the new one.

    If the lines do not parse to `meant`, the file is not changed and `CommandError` is raised.
    """
    content = "".join(f"{line}{_line_end(before)}" for line in lines)
    try:
        is_as_meant = _parse(content, file) == meant
    except UsageError:
        is_as_meant = False
    if not is_as_meant:  # it has inline tables, dotted keys or strings of several lines
        raise CommandError(f"{file} is written in a way that cannot be changed here: edit it by hand.")
    target = Path(os.path.realpath(file))  # the target of a link
    if target.exists() and not target.is_file():  # such as /dev/null
        raise CommandError(f"{file} is not a regular file. Nothing was changed.")
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        number, written = tempfile.mkstemp(dir=target.parent, prefix=".config-")
        try:
            with open(number, "wb") as stream:  # noqa: PTH123 it is open already
                stream.write(content.encode())
                stream.flush()
                os.fsync(number)
            with suppress(FileNotFoundError):
                shutil.copymode(target, written)
            Path(written).replace(target)
        except BaseException:
            Path(written).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}. Nothing was changed.") from error


# --- the content ---------------------------------------------------------------------------------


def _parse(content: str, file: Path | None) -> Profiles:
    # The parser uses gigabytes of memory for a key with some ten thousand dots in one line.
    if max(map(len, content.split("\n"))) > _LONGEST_LINE:
        raise UsageError(f"{file} has a line of more than {_LONGEST_LINE} characters: write it shorter.")
    try:
        document = tomllib.loads(content)
    except (ValueError, RecursionError) as error:
        reason = "tables within tables without end" if isinstance(error, RecursionError) else error
        raise UsageError(f"{file} is not valid TOML: {reason}") from error
    try:
        return _check(document)
    except ArgumentTypeError as error:
        raise UsageError(f"{file}: {str(error).removesuffix('.')}.") from error


def _check(document: Mapping[str, Any]) -> Profiles:
    """Return the profiles of a document. The text of an ArgumentTypeError never contains a secret."""
    for key in document:
        _check_outside(key)
        _check_key(key, "the file", (_TABLE,))
    found = document.get(_TABLE, {})
    if not isinstance(found, dict):
        raise ArgumentTypeError(f"{_TABLE} is not a table: write [{_TABLE}.{DEFAULT}].")
    for name, values in found.items():
        if not isinstance(values, dict):
            _check_outside(name)
            raise ArgumentTypeError(f"the profile {name!r} is not a table: write [{_TABLE}.NAME].")
        rules.profile(name)
        for key, value in values.items():
            _check_key(key, f"the profile {name}", RULES)
            if not isinstance(value, str):
                raise ArgumentTypeError(f'{key} of the profile {name} is not text: write {key} = "…".')
            try:
                values[key] = RULES[key](value)
            except ArgumentTypeError as error:
                raise ArgumentTypeError(f"{key} of the profile {name}: {error}.") from error
    return found


def _check_outside(key: str) -> None:
    if key in RULES:
        raise ArgumentTypeError(f"{key} is outside of a profile: write it below [{_TABLE}.{DEFAULT}].")


def _check_key(key: str, where: str, known: Iterable[str]) -> None:
    if key in known:
        return
    if looks_secret(key):
        raise ArgumentTypeError(f"a key of {where} {rules.HOLDS_NONE}.")
    if _SECRET_KEYS.search(key):
        raise ArgumentTypeError(
            f"{where} has the key {key!r}, and profiles hold no secret: remove it from the file, and rotate "
            "what it held if it was one."
        )
    raise ArgumentTypeError(
        f"{where} has the unknown key {key!r}{_nearest(key, known)} It may have {', '.join(known)}."
    )


def _nearest(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f": did you mean {near[0]}?" if near else "."

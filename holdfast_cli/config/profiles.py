"""Read and change profiles. A profile is an address, a team and a region in a TOML file without secrets."""

import json
import os
import re
import stat
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from holdfast_cli import private_file
from holdfast_cli.config import rules
from holdfast_cli.errors import CommandError, UsageError
from holdfast_cli.terminal.output import some
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
    if file is None:
        raise UsageError(f"There is no profile {name}. {NO_FILE}")
    if not found:
        raise UsageError(
            f"There is no profile {name}: {file} has no profiles. Create the profile with `holdfast "
            f"configure --profile {name}`. To use a profile of AWS, set AWS_PROFILE."
        )
    raise UsageError(
        f"There is no profile {name} in {file}{_nearest(name, found)} The file has "
        f"{some(sorted(found), _MOST_NAMES)}. To use a profile of AWS, set AWS_PROFILE."
    )


def change(file: Path, name: str, values: Mapping[str, str | None]) -> None:
    """Set values of a profile; None removes a value, which must exist.

    All that the file has beside them is kept. After an error the file is unchanged.
    """
    content = _content(file)
    profiles = _parse(content, file)
    profile = dict(named(name, profiles, file) if None in values.values() else profiles.get(name, {}))
    for key, value in values.items():
        if value is not None:
            profile[key] = value
        elif profile.pop(key, None) is None:
            raise UsageError(f"The profile {name} in {file} has no {key}.")
    _write(file, content, {**profiles, name: profile}, name)


def remove(file: Path, name: str) -> None:
    """Remove a profile; UsageError if it does not exist."""
    content = _content(file)
    profiles = _parse(content, file)
    named(name, profiles, file)
    _write(file, content, {other: profiles[other] for other in profiles if other != name}, name)


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
            raise UsageError(f"{file} has more than {_LARGEST // 1024} KiB: it cannot be a file of profiles.")
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8, at byte {error.start + 1}: save it as UTF-8.") from error
    except OSError as error:
        # A file in a folder that this user may not enter counts as absent.
        if isinstance(error, FileNotFoundError) or not os.path.lexists(file):
            return ""
        raise UsageError(f"{file} cannot be read: {error.strerror}.") from error


def _write(file: Path, content: str, meant: Profiles, name: str) -> None:
    """Write the file whole, and atomically, with one profile as it is in `meant`.

    If the text does not parse to `meant`, the file is not changed and `CommandError` is raised.
    """
    text = _text(content, name, meant.get(name))
    try:
        is_as_meant = _parse(text, file) == meant
    except UsageError:
        is_as_meant = False
    if not is_as_meant:  # it has inline tables, dotted keys or strings of several lines
        raise CommandError(
            f"This command cannot change {file}, because the file uses TOML syntax such as inline tables or "
            "dotted keys. Edit the file by hand."
        )
    target = Path(os.path.realpath(file))  # the target of a link
    if target.exists() and not target.is_file():  # such as /dev/null
        raise CommandError(f"{file} is not a regular file. Nothing was changed.")
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o600
        private_file.replace(target, text.encode(), mode)
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}. Nothing was changed.") from error


# --- the content ---------------------------------------------------------------------------------


def _text(content: str, name: str, values: Mapping[str, str] | None) -> str:
    """Return the content with new values of one profile, or without it if `values` is None.

    All other lines stay, with the comments in and around the profile.
    """
    line_end = "\r\n" if 0 < content.count("\n") == content.count("\r\n") else "\n"
    lines = content.removesuffix(line_end).split(line_end) if content else []
    header = re.compile(rf"\s*\[\s*{_TABLE}\s*\.\s*([\"']?){name}\1\s*\]")
    tables = [at for at, line in enumerate(lines) if line.lstrip().startswith("[")]
    start = next((at for at in tables if header.match(lines[at])), len(lines))
    end = next((at for at in tables if at > start), len(lines))
    while end > start + 1 and not _VALUE.match(lines[end - 1]):
        end -= 1  # what is below the last value may belong to the next profile
    section: list[str] = []
    if values is not None:
        missing = dict(values)
        for line in lines[start:end] or [*([""] if lines else []), f"[{_TABLE}.{name}]"]:
            if (old := _VALUE.match(line)) is None:
                section.append(line)
            elif (key := old[1]) in missing:
                section.append(f"{key} = {json.dumps(missing.pop(key))}{line[old.end() :]}")
        section += [f"{key} = {json.dumps(value)}" for key, value in missing.items()]
    return "".join(f"{line}{line_end}" for line in (*lines[:start], *section, *lines[end:]))


def _parse(content: str, file: Path | None) -> Profiles:
    if not content:
        return {}
    import tomllib

    # The parser uses gigabytes of memory for a key with some ten thousand dots in one line.
    if max(map(len, content.split("\n"))) > _LONGEST_LINE:
        raise UsageError(f"{file} has a line of more than {_LONGEST_LINE} characters: shorten the line.")
    try:
        document = tomllib.loads(content)
    except (ValueError, RecursionError) as error:
        reason = "its tables are nested too deeply" if isinstance(error, RecursionError) else error
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
                raise ArgumentTypeError(f'{key} of the profile {name} is not a string: write {key} = "…".')
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
            f"{where} has the key {key!r}, and a profile must not have a secret: remove the key from the "
            "file, and rotate its value if it was a secret."
        )
    raise ArgumentTypeError(
        f"{where} has the unknown key {key!r}{_nearest(key, known)} Allowed keys: {', '.join(known)}."
    )


def _nearest(word: str, known: Iterable[str]) -> str:
    import difflib

    near = difflib.get_close_matches(word, known, n=1)
    return f": did you mean {near[0]}?" if near else "."

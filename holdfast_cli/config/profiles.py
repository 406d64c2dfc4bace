"""Named profiles: address, team and region in a TOML file of the user, and never a secret."""

import difflib
import os
import re
import shutil
import stat
import tempfile
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from holdfast_cli.config import arguments
from holdfast_cli.errors import CommandError, UsageError
from holdfast_cli.terminal.secrets import looks_secret

RULES: Final[Mapping[str, Callable[[str], str]]] = {
    "address": arguments.address,
    "team": arguments.team,
    "region": arguments.region,
}
"""The settings of a profile, and what checks the value of each."""
DEFAULT: Final = "default"
"""The profile of those who name none; it need not exist."""
NO_FILE: Final = "Neither XDG_CONFIG_HOME nor HOME says where the profiles are: set HOLDFAST_CONFIG_FILE."

_TABLE: Final = "profiles"
_LARGEST: Final = 64 * 1024
"""Bytes of a file."""
_LONGEST_LINE: Final = 2000
"""Characters of a line."""
_MOST_NAMES: Final = 10
"""Of profiles in one line."""
_SECRET_KEYS: Final = re.compile(r"secret|passw|token|credential|key|user|(^|_)id$", re.IGNORECASE)

Profiles = Mapping[str, Mapping[str, str]]
"""A profile's name to its settings."""


def path(environment: Mapping[str, str]) -> Path | None:
    """Return where the profiles are; None if the environment does not say.

    It is HOLDFAST_CONFIG_FILE, or else the place of https://specifications.freedesktop.org/basedir/latest/,
    which ignores a relative XDG_CONFIG_HOME.
    """
    home = environment.get("HOME")
    if named := environment.get("HOLDFAST_CONFIG_FILE"):
        # A shell leaves the ~ of a quoted path.
        return Path(home, named.removeprefix("~/")) if home and named.startswith("~/") else Path(named)
    folder = environment.get("XDG_CONFIG_HOME", "")
    if not Path(folder).is_absolute():
        if not home:
            return None
        folder = f"{home}/.config"
    return Path(folder, "holdfast", "config.toml")


def read(file: Path | None) -> Profiles:
    """Return all profiles of a file; none if there is no file.

    Raises:
        UsageError: the file cannot be read, or something in it is not a valid profile.
    """
    return _parse(_content(file), file) if file is not None else {}


def named(name: str, found: Profiles, file: Path | None) -> Mapping[str, str]:
    """Return the settings of a profile.

    Raises:
        UsageError: there is no such profile.
    """
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


def save(file: Path, name: str, values: Mapping[str, str]) -> None:
    """Set values of a profile, and make it if there is none. All else in the file stays, comments too.

    Raises:
        UsageError: as by `read`; the file is left as it is.
        CommandError: the file cannot be written.
    """
    import tomlkit

    content = _content(file)
    found = _parse(content, file)
    document: Any = tomlkit.parse(_ended(content))
    table = document.setdefault(_TABLE, tomlkit.table(is_super_table=True))
    table.setdefault(name, {})  # it becomes a table as the others are: its own lines, or within the line
    profile = table[name]
    below = _take_below(profile)
    profile.update(values)
    if below:
        profile.value.body.extend(below)
    changed = _with_its_line_ends(document.as_string(), content)
    _replace(file, changed, {**found, name: {**found.get(name, {}), **values}})


def remove(file: Path, name: str, settings: Iterable[str]) -> None:
    """Remove settings of a profile, or the whole profile if none are named.

    Raises:
        UsageError: as by `read` and `named`; or the profile does not have such a setting.
        CommandError: the file cannot be written.
    """
    import tomlkit

    content = _content(file)
    found = _parse(content, file)
    values = dict(named(name, found, file))
    document: Any = tomlkit.parse(_ended(content))
    left = {other: found[other] for other in found if other != name}
    for setting in settings:
        if setting not in values:
            raise UsageError(f"The profile {name} in {file} has no {setting}.")
        del values[setting]
        del document[_TABLE][name][setting]
        left[name] = values
    changed = document.as_string() if name in left else _without(document, name)
    _replace(file, _with_its_line_ends(changed, content), left)


def _without(document: Any, name: str) -> str:
    """Return the text of a document without a profile, but with the comments below it."""
    import tomlkit

    profile = document[_TABLE][name]
    comments, after = "".join(item.as_string() for _, item in _take_below(profile)), ""
    if comments:
        end = uuid4().hex  # it marks the end of what is removed, and is never written
        profile.add(tomlkit.comment(end))
        _, _, after = document.as_string().partition(f"# {end}\n")
    del document[_TABLE][name]
    left: str = document.as_string()
    return left.removesuffix(after) + comments + after


def _take_below(profile: Any) -> list[Any]:
    """Take out the comments below the last key of a profile.

    They may stand above the next profile; for tomlkit they are the end of this one.
    """
    body = getattr(profile.value, "body", [])
    keys = [position for position, (key, _) in enumerate(body) if key is not None]
    end = keys[-1] + 1 if keys else 0
    taken = body[end:]
    del body[end:]
    return taken


# --- the file ------------------------------------------------------------------------------------


def _content(file: Path) -> str:
    try:
        # /dev/null stands for no file; a pipe or another device may have no end. Opening a folder says so.
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
        # A folder that this user may not enter has no file for them, either.
        if isinstance(error, FileNotFoundError) or not os.path.lexists(file):
            return ""
        raise UsageError(f"{file} cannot be read: {error.strerror}.") from error


def _ended(content: str) -> str:
    return content if content.endswith("\n") or not content else f"{content}\n"


def _with_its_line_ends(changed: str, content: str) -> str:
    """Return a changed text with the line ends of Windows if all lines of the content had them."""
    if 0 < content.count("\n") == content.count("\r\n"):
        return changed.replace("\r\n", "\n").replace("\n", "\r\n")
    return changed


def _replace(file: Path, content: str, meant: Profiles) -> None:
    """Write the file at once: whoever reads it meanwhile sees the old one or the new one.

    Raises:
        CommandError: it cannot be written, or the content is not what is meant; the file is as it was.
    """
    try:
        written_as_meant = _parse(content, file) == meant
    except UsageError:  # tomlkit made something else of it
        written_as_meant = False
    if not written_as_meant:
        raise CommandError(f"{file} is written in a way that cannot be changed here: edit it by hand.")
    target = Path(os.path.realpath(file))  # of a link, what it leads to
    if target.exists() and not target.is_file():  # /dev/null stands for no file
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


# --- what is in it -------------------------------------------------------------------------------


def _parse(content: str, file: Path | None) -> Profiles:
    import tomllib

    # The parser takes gigabytes for a key with some ten thousand dots, which is one line.
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
    """Return the profiles of a document.

    Raises:
        ArgumentTypeError: what is wrong; without a value that may be secret.
    """
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
        arguments.profile(name)
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
        raise ArgumentTypeError(f"{key} stands outside of a profile: write it below [{_TABLE}.{DEFAULT}].")


def _check_key(key: str, where: str, known: Iterable[str]) -> None:
    if key in known:
        return
    if looks_secret(key):
        raise ArgumentTypeError(f"a key of {where} {arguments.HOLDS_NONE}.")
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

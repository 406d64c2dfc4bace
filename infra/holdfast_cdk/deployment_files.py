"""The four files of a deployment without a clone, which `holdfast init` writes, and what to type then."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from holdfast.team import NAME_RULE, stack_name
from holdfast_cdk import places

REQUIREMENTS: Final = "requirements.txt"
CDK_JSON: Final = "cdk.json"
TEAMS: Final = "teams.toml"
GITIGNORE: Final = ".gitignore"

_CDK_SETTINGS: Final = {
    "app": "python -m holdfast_cdk",
    "notices": False,
    "versionReporting": False,
    "context": {"cli-telemetry": False},
}
_IGNORED: Final = (".holdfast/", ".venv/", "cdk.out/")
"""The folders that `cdk` and Python's `venv` make."""
_TEAMS_HEAD: Final = f"""\
# One table [teams.<name>] for each team; each becomes a stack of its own, Holdfast-<name>.
# A name is {NAME_RULE}.
# docs/operate/settings.md of Holdfast lists all settings. Remove the first `#` of a line to set it.
"""
_SETTINGS: Final = """\
# account = "123456789012"   # without it, the account and the region of your AWS credentials
# region = "eu-central-1"
# retention = { mode = "governance", days = 30 }
# history = { days = 365, keep_versions = 100 }
"""


@dataclass(frozen=True, slots=True)
class Written:
    """The names of the written files, and the lines that a `.gitignore` lacks which was there before."""

    files: tuple[str, ...]
    not_ignored: tuple[str, ...]


class NotWrittenError(Exception):
    """The files were not written, and the folder is as it was. The message is one line with the reason."""


def write(folder: Path, teams: Iterable[str]) -> Written:
    """Write the four files of a deployment into a folder; an existing `.gitignore` stays as it is.

    Args:
        teams: the valid names of the teams, each once.

    Raises:
        NotWrittenError: one of the other three files exists, or a file cannot be written.
    """
    present = [name for name in (CDK_JSON, TEAMS, REQUIREMENTS) if _is_there(folder / name)]
    if present:
        or_add = f", or add a table `[teams.<name>]` to {TEAMS} by hand" if TEAMS in present else ""
        raise NotWrittenError(
            f"This folder already has {', '.join(present)}, so nothing was written. Use an empty "
            f"folder{or_add}."
        )
    ignored = _lines(folder / GITIGNORE)
    files = {
        REQUIREMENTS: f"{places.PINNED}\n",
        CDK_JSON: f"{json.dumps(_CDK_SETTINGS, indent=2)}\n",
        TEAMS: _TEAMS_HEAD + "".join(f"\n[teams.{team}]\n{_SETTINGS}" for team in teams),
    }
    if ignored is None:
        files[GITIGNORE] = "".join(f"{line}\n" for line in _IGNORED)
        not_ignored: list[str] = []
    else:
        not_ignored = [line for line in _IGNORED if line.strip("/") not in ignored]
    _create(folder, files)
    return Written(tuple(files), tuple(not_ignored))


def commands(teams: Iterable[str]) -> Sequence[str]:
    """Return the lines to type in the folder, in their order; `PlaceError` as `places.cdk_version`."""
    cdk = f"npx aws-cdk@{places.cdk_version()}"
    return (
        f"pip install -r {REQUIREMENTS}",
        f"{cdk} bootstrap",
        f"{cdk} deploy {' '.join(map(stack_name, teams))}",
    )


def _is_there(path: Path) -> bool:
    return path.exists() or path.is_symlink()


def _lines(path: Path) -> frozenset[str] | None:
    """Return the lines of a `.gitignore`, without slashes around them; None if there is no file."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NotWrittenError(f"{path} cannot be read: {error.strerror}. Nothing was written.") from None
    return frozenset(line.strip().strip("/") for line in text.splitlines())


def _create(folder: Path, files: Mapping[str, str]) -> None:
    """Create all files or none."""
    created: list[Path] = []
    path = folder
    try:
        for name, content in files.items():
            path = folder / name
            with path.open("x", encoding="utf-8", newline="\n") as file:
                created.append(path)
                file.write(content)
    except BaseException as error:
        for written in created:
            with suppress(OSError):
                written.unlink()
        if isinstance(error, OSError):
            raise NotWrittenError(
                f"{path} cannot be written: {error.strerror}. Nothing was written."
            ) from error
        raise

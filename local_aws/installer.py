"""Installs pinned Python packages by uv, which is much faster than pip, or by pip where uv cannot be had.

uv does not read pip's configuration. It is told the index and certificates that pip has, so that nobody's
mirror is bypassed; where pip has a setting that uv cannot be told, pip installs.
"""

import ast
import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from local_aws.failure import LocalAwsError

_ROOT = Path(__file__).resolve().parent.parent
UV_REQUIREMENTS = _ROOT / "local_aws" / "requirements-set-up.txt"
_PIP_INSTALL: Final = (
    *("install", "--quiet", "--disable-pip-version-check", "--no-input"),
    *("--no-deps", "--no-compile"),
)
_UV_INSTALL: Final = ("pip", "install", "--quiet", "--no-deps")
_SLOWER: Final = "pip installs the packages instead of uv, which takes longer:"

_COUNTERPARTS: Final = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
}
"""Settings of pip's and the variables that say the same to uv."""
_BETWEEN: Final = {"UV_INDEX": " ", "UV_INSECURE_HOST": " ", "UV_FIND_LINKS": ","}
"""What stands between the values of a variable that takes several; in pip it is white space."""
_INDEXES: Final = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS")
_NO_MATTER: Final = frozenset(
    {
        *(
            "cache-dir",
            "no-cache-dir",
            "disable-pip-version-check",
            "no-python-version-warning",
            "config-file",
        ),
        *("no-input", "no-color", "progress-bar", "quiet", "verbose", "retries", "compile", "no-compile"),
        *("require-hashes", "require-virtualenv", "root-user-action", "break-system-packages"),
        *("no-warn-script-location", "no-warn-conflicts"),
    }
)
"""Settings of pip's that say neither what is installed nor where from."""


class NoCounterpartError(Exception):
    """pip has a setting that uv cannot be told; the message names it."""


@dataclass(frozen=True, slots=True)
class Installer:
    """The programs that install packages.

    Attributes:
        venv: the virtual environment that has pip, and uv once `get_uv` could install it.
    """

    venv: Path

    def get_uv(self) -> str | None:
        """Install uv beside pip.

        Returns:
            None, or a line for the user that says why it cannot be had.
        """
        # From source, it would take a Rust compiler and minutes.
        ended = self._pip("--only-binary=:all:", "--require-hashes", "--requirement", UV_REQUIREMENTS)
        return f"{_SLOWER} uv cannot be had here: {_reason(ended)}" if ended.returncode else None

    def install(self, *arguments: str | Path, into: Path | None = None) -> str | None:
        """Install packages, and none that they merely require.

        Args:
            arguments: as uv and pip both take them.
            into: another virtual environment, which needs no pip; None for the one that has pip.

        Returns:
            None, or a line for the user that says why uv did not do it.

        Raises:
            LocalAwsError: pip did not do it either.
        """
        said = None
        if (self.venv / "bin" / "uv").exists():  # else `get_uv` said why
            why_not = self._install_by_uv(*arguments, into=into or self.venv)
            if why_not is None:
                return None
            said = f"{_SLOWER} {why_not}"
        check(self._pip(*arguments, into=into))
        return said

    def _install_by_uv(self, *arguments: str | Path, into: Path) -> str | None:
        """Return why uv did not install it, or None."""
        listed = _list_settings(self.venv / "bin" / "python")
        if listed.returncode:
            return f"pip's settings cannot be read: {_reason(listed)}"
        try:
            told = uv_environment(pip_settings(listed.stdout), os.environ)
        except NoCounterpartError as error:
            return str(error)
        # Within the clone: uv then links its files into place, and nothing stays elsewhere.
        with tempfile.TemporaryDirectory(prefix=".uv-", dir=self.venv) as cache:
            ended = start(
                *(self.venv / "bin" / "uv", *_UV_INSTALL, "--python", into / "bin" / "python", *arguments),
                environment={**told, "UV_CACHE_DIR": cache, "UV_PYTHON_DOWNLOADS": "never"},
            )
        return f"uv failed: {_reason(ended)}" if ended.returncode else None

    def _pip(self, *arguments: str | Path, into: Path | None = None) -> "subprocess.CompletedProcess[str]":
        where = ("--python", into / "bin" / "python") if into else ()
        return start(self.venv / "bin" / "python", "-m", "pip", *where, *_PIP_INSTALL, *arguments)


def pip_settings(listed: str) -> dict[str, str]:
    """Read what `pip config list` printed.

    Returns:
        The settings that `pip install` goes by. Each place overrides those before it, as in pip.
    """
    sections: dict[str, dict[str, str]] = {"global": {}, "install": {}, ":env:": {}}
    for line in listed.splitlines():
        key, _, value = line.partition("=")
        section, _, name = key.rpartition(".")
        if section in sections:
            sections[section][name] = ast.literal_eval(value)
    return {name: value for section in sections.values() for name, value in section.items()}


def uv_environment(settings: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Say to uv what pip's settings say to pip.

    Args:
        settings: by `pip_settings`.
        environment: of this process. Whoever named an index for uv there means that one.

    Returns:
        Variables of uv's environment, beside those that are there.

    Raises:
        NoCounterpartError: a setting says what is installed, or where from, and has no counterpart.
    """
    told = {"UV_SYSTEM_CERTS": "true"}  # as pip: a company's proxy has its certificate there
    for name, value in settings.items():
        if variable := _COUNTERPARTS.get(name):
            told[variable] = _BETWEEN[variable].join(value.split()) if variable in _BETWEEN else value
        elif name not in _NO_MATTER:
            raise NoCounterpartError(f"pip has the setting '{name}', which uv cannot be told")
    if "UV_INDEX" in told:
        told["UV_INDEX_STRATEGY"] = "unsafe-best-match"  # as pip: any index; the hashes decide
    named = {"UV_INDEX_STRATEGY", *_INDEXES} if environment.keys() & set(_INDEXES) else set()
    named |= {name for name in environment if name.startswith("UV_")}
    return {variable: value for variable, value in told.items() if variable not in named}


def start(
    *command: str | Path, environment: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a command in the clone, with what it prints in one text."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run(
        [str(word) for word in command],
        cwd=_ROOT,
        env={**inherited, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def check(ended: "subprocess.CompletedProcess[str]") -> None:
    """Do nothing if a command succeeded.

    Raises:
        LocalAwsError: it failed.
    """
    if ended.returncode:
        raise LocalAwsError(f"{ended.stdout.strip()}\n\n{' '.join(ended.args)} failed; see above.")


@cache
def _list_settings(python: Path) -> "subprocess.CompletedProcess[str]":
    return start(python, "-m", "pip", "config", "list")


def _reason(ended: "subprocess.CompletedProcess[str]") -> str:
    *_, last = ["it says nothing", *filter(None, map(str.strip, ended.stdout.splitlines()))]
    return last

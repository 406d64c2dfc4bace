"""Install pinned Python packages with uv, which is much faster than pip, or with pip if uv fails.

uv does not read pip's configuration, so it gets pip's settings as variables. Packages come from the same
mirror as with pip, and the pinned hashes decide which files are installed.
"""

import ast
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from local_aws.failure import LocalAwsError
from local_aws.server import ROOT

UV_REQUIREMENTS: Final = ROOT / "local_aws" / "requirements-set-up.txt"
_PIP_INSTALL: Final = (
    *("install", "--quiet", "--disable-pip-version-check", "--no-input"),
    *("--no-deps", "--no-compile"),
)
_SLOWER: Final = "pip installs the packages, which takes longer than with uv."

_COUNTERPARTS: Final = {
    "index-url": ("UV_DEFAULT_INDEX", ""),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "no-index": ("UV_NO_INDEX", ""),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "proxy": ("ALL_PROXY", ""),
    "cert": ("SSL_CERT_FILE", ""),
    "client-cert": ("SSL_CLIENT_CERT", ""),
    "timeout": ("UV_HTTP_TIMEOUT", ""),
    "default-timeout": ("UV_HTTP_TIMEOUT", ""),
}
"""Setting of pip -> uv's variable, and the separator between several values in that variable."""
_INDEXES: Final = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS")


@dataclass(frozen=True, slots=True)
class Installer:
    """The programs that install packages. `venv` has pip, and also uv after `get_uv` has installed uv."""

    venv: Path

    def get_uv(self) -> list[str]:
        """Install uv beside pip; return a warning for the user if it cannot be installed."""
        # A build of uv from source would need a Rust compiler and minutes.
        ended = start(*self._pip("--only-binary=:all:", "--require-hashes", "--requirement", UV_REQUIREMENTS))
        return [f"{_SLOWER} uv cannot be installed: {_reason(ended)}"] if ended.returncode else []

    def install(self, *arguments: str | Path, into: Path | None = None) -> list[str]:
        """Install packages without their dependencies, with arguments that uv and pip both understand.

        `into` is another virtual environment, which needs no pip; None means `venv`. Return a warning for the
        user if pip was used because uv failed.
        """
        warnings = []
        uv = self.venv / "bin" / "uv"
        if uv.exists():  # else `get_uv` said why
            told = uv_environment(pip_settings(self.venv / "bin" / "python"), os.environ)
            python = (into or self.venv) / "bin" / "python"
            # The cache is in the clone, so that uv can link files into place and leaves nothing elsewhere.
            with tempfile.TemporaryDirectory(prefix=".uv-", dir=self.venv) as cache:
                ended = start(
                    *(uv, "pip", "install", "--quiet", "--no-deps", "--python", python, *arguments),
                    environment={**told, "UV_CACHE_DIR": cache, "UV_PYTHON_DOWNLOADS": "never"},
                )
            if ended.returncode == 0:
                return []
            warnings = [f"{_SLOWER} uv failed: {_reason(ended)}"]
        run(*self._pip(*arguments, into=into))
        return warnings

    def _pip(self, *arguments: str | Path, into: Path | None = None) -> Sequence[str | Path]:
        where = ("--python", into / "bin" / "python") if into else ()
        return (self.venv / "bin" / "python", "-m", "pip", *where, *_PIP_INSTALL, *arguments)


@cache
def pip_settings(python: Path) -> Mapping[str, str]:
    """Return pip's settings for `pip install`: variables override [install], which overrides [global]."""
    sections: dict[str, dict[str, str]] = {"global": {}, "install": {}, ":env:": {}}
    for line in run(python, "-m", "pip", "config", "list").splitlines():
        key, _, value = line.partition("=")
        section, _, name = key.rpartition(".")
        if section in sections:
            sections[section][name] = ast.literal_eval(value)
    return {name: value for section in sections.values() for name, value in section.items()}


def uv_environment(settings: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that pass pip's settings to uv.

    If `environment` names an index for uv, pip's settings are ignored.
    """
    told = {"UV_SYSTEM_CERTS": "true"}  # as in pip: a company's proxy has its certificate there
    own = {name for name in environment if name.startswith("UV_")}
    for name, value in settings.items() if own.isdisjoint(_INDEXES) else ():
        if name in _COUNTERPARTS:
            variable, between = _COUNTERPARTS[name]
            told[variable] = between.join(value.split()) if between else value
    if "UV_INDEX" in told:
        told["UV_INDEX_STRATEGY"] = "unsafe-best-match"  # as in pip: any index; the hashes decide
    return {variable: value for variable, value in told.items() if variable not in own}


def start(
    *command: str | Path, environment: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a command in the clone, and capture standard output and standard error as one text."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run(
        [str(word) for word in command],
        cwd=ROOT,
        env={**inherited, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def run(*command: str | Path) -> str:
    """Run a command as `start` does, and return its output; `LocalAwsError` if it failed."""
    ended = start(*command)
    if ended.returncode:
        raise LocalAwsError(f"{ended.stdout.strip()}\n\n{' '.join(ended.args)} failed; see above.")
    return ended.stdout


def _reason(ended: "subprocess.CompletedProcess[str]") -> str:
    *_, last = ["it says nothing", *filter(None, map(str.strip, ended.stdout.splitlines()))]
    return last

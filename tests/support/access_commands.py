"""The `holdfast` command as an operator, a CI job or a person at a terminal runs it."""

import os
import re
import subprocess
from collections.abc import Mapping

from tests.support.http_client import Credentials
from tests.support.team import HOLDFAST, Team
from tests.support.waiting import HANGS

_EXPORT = re.compile(r"^export (TF_HTTP_\w+)='?([^'\n]*)'?$", re.MULTILINE)


def run(
    team: Team, *arguments: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command for a team, with root's AWS credentials unless the environment has others."""
    return subprocess.run(
        [HOLDFAST, *arguments],
        env={
            "PATH": os.environ["PATH"],
            **team.environment,
            "HOLDFAST_TEAM": team.name,
            **(environment or {}),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGS,
    )


def holdfast(team: Team, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """Run a command that must succeed, and return what it printed."""
    done = run(team, *arguments, environment=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def login(
    team: Team, *arguments: str, address: str | None = None, environment: Mapping[str, str] | None = None
) -> Credentials:
    """The session of `holdfast login`, by the exports that it prints for the shell."""
    where = ("--address", address or team.gateway.address)
    exports = dict(_EXPORT.findall(holdfast(team, "login", *where, *arguments, environment=environment)))
    return Credentials(exports["TF_HTTP_USERNAME"], exports["TF_HTTP_PASSWORD"])

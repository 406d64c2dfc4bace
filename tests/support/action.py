"""The action of this repository, run as a runner of GitHub runs it: its steps in order, with bash."""

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import yaml

from local_aws import loopback
from tests.support.oidc import NETWORK, Issuer
from tests.support.waiting import HANGS

FOLDER: Final = Path(__file__).parents[2] / ".github" / "actions" / "sign-in"
ACTION: Final[Mapping[str, Any]] = yaml.safe_load((FOLDER / "action.yml").read_text(encoding="utf-8"))
REQUEST_TOKEN: Final = "the-request-token-of-the-job"
"""The credentials with which the job asks GitHub for its ID token."""
_INPUT: Final = re.compile(r"\$\{\{ inputs\.([a-z-]+) \}\}")
_BASH: Final = ("bash", "--noprofile", "--norc", "-e", "-o", "pipefail")
_VARIABLE: Final = re.compile(r"(\w+)<<(\S+)\n(.*?)\n\2\n", re.DOTALL)


@dataclass(frozen=True)
class Job:
    """A job of a workflow.

    Attributes:
        folder: its `runner.temp`.
        environment: the variables of its steps, such as those of `github`.
    """

    folder: Path
    environment: Mapping[str, str]

    @property
    def exports(self) -> Path:
        """The file `GITHUB_ENV`."""
        return self.folder / "github-env"

    def run(self, **inputs: str) -> subprocess.CompletedProcess[str]:
        """Run the action's steps until one fails. Standard output and error are one text, as in a log."""
        log, code = "", 0
        for name, argv, environment in self.steps(inputs):
            assert name
            done = subprocess.run(
                argv,
                env=environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=HANGS,
            )
            log, code = log + done.stdout, done.returncode
            if code:
                break
        return subprocess.CompletedProcess([], code, log)

    def steps(self, inputs: Mapping[str, str]) -> Iterator[tuple[str, list[str], dict[str, str]]]:
        """Yield name, command and environment of each step. Names of inputs have `_` for each `-`."""
        given = {name.replace("_", "-"): value for name, value in inputs.items()}
        assert given.keys() <= ACTION["inputs"].keys()
        values = {name: given.get(name, one.get("default")) for name, one in ACTION["inputs"].items()}
        for number, step in enumerate(ACTION["runs"]["steps"]):
            script = self.folder / f"step-{number}.sh"
            script.write_text(step["run"])
            own = {
                name: _INPUT.sub(lambda found: values[found[1]], text)
                for name, text in step.get("env", {}).items()
            }
            yield (
                step["name"],
                [*_BASH, str(script)],
                {
                    "PATH": os.environ["PATH"],
                    "HOME": str(self.folder),
                    "GITHUB_ACTION_PATH": str(FOLDER),
                    "GITHUB_ENV": str(self.exports),
                    **self.environment,
                    **own,
                },
            )


def variables(exports: str) -> dict[str, str]:
    """Parse the content of `GITHUB_ENV`, which must have nothing but variables with a delimiter."""
    assert _VARIABLE.sub("", exports) == ""
    return {name: value for name, _, value in _VARIABLE.findall(exports)}


def masked(log: str) -> list[str]:
    """Return what a log asks the runner to mask."""
    return re.findall(r"^::add-mask::(.*)$", log, re.MULTILINE)


@contextmanager
def github(issuer: Issuer, claims: Mapping[str, str] = NETWORK) -> Iterator[dict[str, str]]:
    """Act as GitHub: give an issuer's ID tokens with these claims for the request token.

    The value has the variables of a job with the permission `id-token: write`.
    """

    class Handler(loopback.Handler):
        def respond(self) -> None:
            asked = parse_qs(urlsplit(self.path).query)
            if self.headers["Authorization"] != f"Bearer {REQUEST_TOKEN}" or "api-version" not in asked:
                self.answer(401)
                return
            token = issuer.token({**claims, "aud": asked["audience"][0]})
            self.answer(200, json.dumps({"count": 1, "value": token}).encode())

    with loopback.serving(Handler) as address:
        yield {
            "ACTIONS_ID_TOKEN_REQUEST_URL": f"{address}/token?api-version=2.0",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": REQUEST_TOKEN,
        }

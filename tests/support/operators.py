"""People who operate a deployed stack with the `holdfast` command."""

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.team import HOLDFAST
from tests.support.waiting import HANGS


@dataclass(frozen=True, slots=True)
class Operator:
    """A person with a token and the command. `environment` is the command's whole environment."""

    principal: str
    environment: Mapping[str, str] = field(repr=False)
    command: Sequence[str] = (str(HOLDFAST),)

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run the command; return exit code, standard output and standard error."""
        done = subprocess.run(
            [*self.command, *arguments],
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=HANGS,
        )
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout, done.stderr

    def ok(self, *arguments: str) -> str:
        code, out, err = self.run(*arguments)
        assert code == 0, err
        return out

    def json(self, *arguments: str) -> Any:
        return json.loads(self.ok(*arguments, "--json"))

    def refused(self, *arguments: str) -> str:
        """Run the command, which must fail, and return its last line."""
        code, out, err = self.run(*arguments)
        assert (code, out) == (1, ""), (code, out, err)
        return err.splitlines()[-1]


NewOperator = Callable[..., Operator]

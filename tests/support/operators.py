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
    """A person with a token and the command.

    Attributes:
        environment: the command's whole environment.
        names: the other names that this command has for commands and options.
    """

    principal: str
    environment: Mapping[str, str] = field(repr=False)
    command: Sequence[str] = (str(HOLDFAST),)
    names: Mapping[str, str] = field(default_factory=dict)

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run the command; return exit code, standard output and standard error."""
        command = " ".join(arguments[:2])
        typed = (*self.names[command].split(), *arguments[2:]) if command in self.names else arguments
        done = subprocess.run(
            [*self.command, *(self.names.get(word, word) for word in typed)],
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

"""A folder with a Terraform configuration, and a real Terraform that runs in it."""

import errno
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast import names
from holdfast_cli.config.backend_config import data_source_name
from local_aws.terraform import Terraform
from tests.support.http_client import Credentials
from tests.support.team import HOLDFAST, Team
from tests.support.waiting import wait_until

_TIME_LIMIT = 90


@dataclass(frozen=True, slots=True)
class Done:
    """A command that has ended.

    `out` is its standard output. `text` is everything that it wrote, on one line, without the frame that
    Terraform draws.
    """

    code: int
    out: str
    text: str


@dataclass
class Run:
    """A command that runs, in a process group of its own; `answers` is what its user types."""

    process: subprocess.Popen[str]
    answers: str = ""

    def wait(self) -> Done:
        out, err = self.process.communicate(self.answers or None, timeout=_TIME_LIMIT)
        words = (out + err).replace("│", " ").replace("╷", " ").replace("╵", " ").split()
        return Done(self.process.returncode, out, " ".join(words))

    def kill(self) -> None:
        """Kill it and everything that it started, without a chance to clean up."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate(timeout=_TIME_LIMIT)


@dataclass(frozen=True)
class Project:
    """A configuration in a folder of its own; its `environment` has nothing of the user's own settings."""

    terraform: Terraform
    folder: Path
    environment: dict[str, str] = field(repr=False)

    def write(self, **files: str) -> None:
        """Write `<name>.tf` for each."""
        for name, text in files.items():
            (self.folder / f"{name}.tf").write_text(text)

    def start(self, *arguments: str, answers: str = "", **environment: str) -> Run:
        """Start a command; without answers it may ask nothing."""
        asks = {"TF_INPUT": "1"} if answers else {}
        process = subprocess.Popen(
            [*self.terraform.argv, *arguments],
            cwd=self.folder,
            env={**self.environment, **asks, **environment},
            stdin=subprocess.PIPE if answers else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        return Run(process, answers)

    def run(self, *arguments: str, answers: str = "", **environment: str) -> Done:
        run = self.start(*arguments, answers=answers, **environment)
        try:
            return run.wait()
        except BaseException:
            run.kill()
            raise

    def ok(self, *arguments: str, answers: str = "", **environment: str) -> Done:
        done = self.run(*arguments, answers=answers, **environment)
        assert done.code == 0, done.text
        return done

    def refused(self, *arguments: str, **environment: str) -> str:
        """Run a command that must fail, and return what it said."""
        done = self.run(*arguments, **environment)
        assert done.code == 1, done.text
        return done.text

    def pull(self) -> dict[str, Any]:
        """The state as the client sees it."""
        document: dict[str, Any] = json.loads(self.ok("state", "pull").out)
        return document

    @contextmanager
    def applying(self) -> Iterator["Run"]:
        """An apply that is in the middle of its work, and goes on when `proceed` is called or at the end.

        The configuration must contain `WAITS`.
        """
        gate = self.folder / "gate"
        os.mkfifo(gate)
        run = self.start("apply", "-auto-approve")
        try:
            wait_until((self.folder / "working").exists, "the provisioner has started")
            yield run
        finally:
            if run.process.poll() is None:
                run.kill()
            gate.unlink()
            (self.folder / "working").unlink()

    def proceed(self) -> None:
        """Let an apply that waits in `applying` go on."""

        def open_gate() -> bool:
            try:
                gate = os.open(self.folder / "gate", os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO:  # nobody reads yet
                    raise
                return False
            os.write(gate, b"go\n")
            os.close(gate)
            return True

        wait_until(open_gate, "the provisioner waits at the gate")


WAITS = """
resource "terraform_data" "waits" {
  provisioner "local-exec" {
    command = ": > working && read go < gate"
  }
}
"""
"""A resource whose creation lasts until the test lets it go on."""


def backend(team: Team, state: str, *options: str) -> str:
    """The backend block that the command prints for a state, or what else the options ask for."""
    done = subprocess.run(
        [HOLDFAST, "backend-config", state, *options, "--address", team.gateway.address],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout


def cloud(team: Team, organization: str, workspaces: str) -> str:
    """A `cloud` block.

    `organization` is the first segment of the state's name. `workspaces` is what the block of that name has
    in it, such as `name = "prod"`.
    """
    return _block("cloud", team, organization, workspaces)


def remote(team: Team, organization: str, workspaces: str) -> str:
    """A block of `backend "remote"`, as `cloud`."""
    return _block('backend "remote"', team, organization, workspaces)


def _block(kind: str, team: Team, organization: str, workspaces: str) -> str:
    return f"""
terraform {{
  {kind} {{
    hostname     = "{team.host}"
    organization = "{organization}"
    workspaces {{
      {workspaces}
    }}
  }}
}}
"""


def native(team: Team, state: str) -> str:
    """A block of `backend "s3"` on a state, past Holdfast."""
    return f"""
terraform {{
  backend "s3" {{
    bucket                      = "{team.bucket}"
    key                         = "states/{state}.tfstate"
    use_lockfile                = true
    use_path_style              = true
    skip_credentials_validation = true
    skip_requesting_account_id  = true
    skip_metadata_api_check     = true
  }}
}}
"""


def reads_output(team: Team, state: str, output: str) -> str:
    """The data source that the command prints for a state, and an output of that name that it reads there."""
    source = data_source_name(names.parse(state))
    reads = f"data.terraform_remote_state.{source}.outputs.{output}"
    return f'{backend(team, state, "--outputs")}\noutput "{output}" {{\n  value = {reads}\n}}\n'


def clean_environment(home: Path, ca: Path, credentials: Mapping[str, str]) -> dict[str, str]:
    """What a Terraform sees: a home of its own, the certificate authority, a token, and the PATH.

    `cloud {}` and `backend "remote"` trust what the system does, which on Linux a variable can change.
    """
    return {
        **own_environment(home),
        "TF_HTTP_CLIENT_CA_CERTIFICATE_PEM": ca.read_text(),
        "SSL_CERT_FILE": str(ca),
        **credentials,
    }


def own_environment(home: Path) -> dict[str, str]:
    """What every Terraform sees, and nothing of the user's own: a home of its own, and the PATH."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TF_IN_AUTOMATION": "1",
        "TF_INPUT": "0",
        "TF_CLI_ARGS": "-no-color",
        "CHECKPOINT_DISABLE": "1",
    }


def sign_in(team: Team, credentials: Credentials) -> dict[str, str]:
    """The variables with which a Terraform signs in, whichever protocol it speaks.

    No shell could export the last one, because of the port in its name, which no API on AWS has.
    """
    return {
        "TF_HTTP_USERNAME": credentials.username,
        "TF_HTTP_PASSWORD": credentials.password,
        f"TF_TOKEN_{team.host.replace('.', '_')}": credentials.cloud_token,
    }


NewProject = Callable[[Team, str | None, Credentials], Project]
"""Makes a project in which a state of a team is worked on with a token; without a state it has no backend."""

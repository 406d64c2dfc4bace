"""A folder with a Terraform configuration, and a real Terraform that runs in it."""

import errno
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from holdfast import names
from holdfast_cli.config.backend_config import data_source_name
from local_aws.terraform import Terraform
from tests.support.cloud_client import place
from tests.support.http_client import Credentials
from tests.support.team import HOLDFAST, Team
from tests.support.waiting import HANGS, wait_until

_TIME_LIMIT = HANGS


@dataclass(frozen=True, slots=True)
class Done:
    """A command that has ended.

    `out` is its standard output. `text` is its whole output on one line, without the frame that Terraform
    draws.
    """

    code: int
    out: str
    text: str


@dataclass
class Run:
    """A running command in its own process group. It ends with its context at the latest.

    `answers` is the input that its user types.
    """

    process: subprocess.Popen[str]
    answers: str = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()

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
    """A configuration in its own folder. Its `environment` has none of the user's settings."""

    terraform: Terraform
    folder: Path
    environment: dict[str, str] = field(repr=False)

    def write(self, **files: str) -> None:
        """Write each file as `<name>.tf`."""
        for name, text in files.items():
            (self.folder / f"{name}.tf").write_text(text)

    def start(self, *arguments: str, answers: str = "", **environment: str) -> Run:
        """Start a command. Without `answers` it must not ask for input."""
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
        with self.start(*arguments, answers=answers, **environment) as run:
            return run.wait()

    def ok(self, *arguments: str, answers: str = "", **environment: str) -> Done:
        done = self.run(*arguments, answers=answers, **environment)
        assert done.code == 0, done.text
        return done

    def refused(self, *arguments: str, **environment: str) -> str:
        """Run a command that must fail, and return its output."""
        done = self.run(*arguments, **environment)
        assert done.code == 1, done.text
        return done.text

    def pull(self) -> dict[str, Any]:
        """Return the state as the client sees it."""
        document: dict[str, Any] = json.loads(self.ok("state", "pull").out)
        return document

    @contextmanager
    def applying(self) -> Iterator["Run"]:
        """Run an apply that waits in the middle of its work until `proceed` is called.

        The configuration must contain `WAITS`. The end of the context kills the apply if it still runs.
        """
        gate = self.folder / "gate"
        os.mkfifo(gate)
        try:
            with self.start("apply", "-auto-approve") as run:
                wait_until((self.folder / "working").exists, "the provisioner has started")
                yield run
        finally:
            gate.unlink()
            (self.folder / "working").unlink()

    def proceed(self) -> None:
        """Let an apply that waits in `applying` go on."""

        def open_gate() -> bool:
            try:
                gate = os.open(self.folder / "gate", os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO:  # no process reads yet
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
"""A resource whose creation waits until the test lets it go on."""


def backend(team: Team, state: str, *options: str) -> str:
    """Return the backend block that the command prints for a state, or its output with other options."""
    done = subprocess.run(
        [HOLDFAST, "backend-config", state, *options, "--address", team.gateway.address],
        capture_output=True,
        text=True,
        check=True,
        timeout=HANGS,
    )
    return done.stdout


def cloud(team: Team, state: str, workspaces: str = "") -> str:
    """Return a `cloud` block for a state, or for other states of its organization.

    `workspaces` is the content of the block `workspaces`, such as `prefix = "prod-"`.
    """
    return _block("cloud", team, state, workspaces)


def remote(team: Team, state: str, workspaces: str = "") -> str:
    """Return a block of `backend "remote"`; the arguments are as in `cloud`."""
    return _block('backend "remote"', team, state, workspaces)


def _block(kind: str, team: Team, state: str, workspaces: str) -> str:
    organization, workspace = place(state)
    return f"""
terraform {{
  {kind} {{
    hostname     = "{team.host}"
    organization = "{organization}"
    workspaces {{
      {workspaces or f'name = "{workspace}"'}
    }}
  }}
}}
"""


def native(team: Team, state: str, *, locks: bool = True) -> str:
    """Return a block of `backend "s3"` for a state, past Holdfast."""
    return f"""
terraform {{
  backend "s3" {{
    bucket                      = "{team.bucket}"
    key                         = "states/{state}.tfstate"
    use_lockfile                = {"true" if locks else "false"}
    use_path_style              = true
    skip_credentials_validation = true
    skip_requesting_account_id  = true
    skip_metadata_api_check     = true
  }}
}}
"""


def reads_output(team: Team, state: str, output: str) -> str:
    """Return the data source that the command prints for a state, and an output with a value from it."""
    source = data_source_name(names.parse(state))
    reads = f"data.terraform_remote_state.{source}.outputs.{output}"
    return f'{backend(team, state, "--outputs")}\noutput "{output}" {{\n  value = {reads}\n}}\n'


def clean_environment(home: Path, ca: Path, credentials: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a Terraform: a separate home, the authority, a token, and the PATH.

    `cloud {}` and `backend "remote"` trust the system's certificates. On Linux a variable can replace these.
    """
    return {
        **own_environment(home),
        "TF_HTTP_CLIENT_CA_CERTIFICATE_PEM": ca.read_text(),
        "SSL_CERT_FILE": str(ca),
        **credentials,
    }


def own_environment(home: Path) -> dict[str, str]:
    """Return the variables of every Terraform: a separate home and the PATH, without the user's settings."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TF_IN_AUTOMATION": "1",
        "TF_INPUT": "0",
        "TF_CLI_ARGS": "-no-color",
        "CHECKPOINT_DISABLE": "1",
    }


def sign_in(team: Team, credentials: Credentials) -> dict[str, str]:
    """Return the variables with a Terraform's credentials, for every protocol.

    No shell could export the last variable, because its name contains a port. An API on AWS has no port.
    """
    return {
        "TF_HTTP_USERNAME": credentials.username,
        "TF_HTTP_PASSWORD": credentials.password,
        f"TF_TOKEN_{team.host.replace('.', '_')}": credentials.cloud_token,
    }


@dataclass(frozen=True)
class NewProject:
    """Makes projects of one Terraform, each in its own folder below `home`."""

    terraform: Terraform
    home: Path
    ca: Path

    def __call__(self, team: Team, state: str | None, credentials: Credentials, **files: str) -> Project:
        """Make a project with these credentials. Without a state it has no backend block.

        `files` are written as `<name>.tf`.
        """
        folder = Path(tempfile.mkdtemp(dir=self.home, prefix="project-"))
        environment = clean_environment(self.home, self.ca, sign_in(team, credentials))
        project = Project(self.terraform, folder, environment)
        project.write(**files, **({"backend": backend(team, state)} if state else {}))
        return project

    def ready(self, team: Team, state: str | None, credentials: Credentials, **files: str) -> Project:
        """Make a project and initialize it."""
        project = self(team, state, credentials, **files)
        project.ok("init")
        return project

    def applied(self, team: Team, state: str | None, credentials: Credentials, **files: str) -> Project:
        """Make a project and apply it."""
        project = self.ready(team, state, credentials, **files)
        project.ok("apply", "-auto-approve")
        return project

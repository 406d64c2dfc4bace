"""`make demo`: a real Terraform applies `examples/hello`, then two runs show the accident of a late write."""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path

from local_aws import late_write
from local_aws.failure import LocalAwsError
from local_aws.home import Home
from local_aws.server import ROOT, LocalAws, find_running
from local_aws.terraform import Terraform, terraforms
from local_aws.up import holdfast, takes_declared_names_alone

_STATE = "demo/hello"
_BACKEND = "demo.tfbackend"
_QUESTION = b"Enter a value:"
_KEPT = ("TF_CLI_CONFIG_FILE", "TF_PLUGIN_CACHE_DIR")


def demo(home: Home) -> None:
    """Run init, plan, apply and a second plan; show lock and versions; then show a late write."""
    connection = home.connection()
    deployment = home.deployment()
    teams = deployment.teams if deployment and connection else ()
    team = next((team for team in teams if connection and team.api_address == connection.address), None)
    running = find_running(home.aws_data)
    if running is None or connection is None or team is None:
        raise LocalAwsError("The local AWS does not run, or has no token: run `make up` first.")
    environment = {
        **without_terraform_settings(os.environ),
        **connection.environment(),
        "TF_VAR_greeting": f"Hello from Holdfast, {datetime.now().astimezone():%Y-%m-%d %H:%M:%S}",
        "TF_IN_AUTOMATION": "1",  # no hints on what to type next
        "CHECKPOINT_DISABLE": "1",  # nothing leaves this machine
    }

    def show(*arguments: str) -> None:
        _heading(f"holdfast {' '.join(arguments)}")
        print(holdfast(*arguments, environment=environment), flush=True)

    if takes_declared_names_alone(team.name):
        for state in (_STATE, late_write.STATE):
            holdfast("state", "declare", state, environment=environment)
    terraform = terraforms()[0]
    client = terraform.client
    print(f"The state {_STATE} of the team {team.name}, with {client}.")
    with tempfile.TemporaryDirectory(prefix="demo-", dir=home.folder) as folder:
        hello = Path(folder, "hello")
        shutil.copytree(ROOT / "examples" / "hello", hello, ignore=shutil.ignore_patterns(".terraform*"))
        run = partial(_run, terraform, folder=hello, environment=environment)
        (hello / _BACKEND).write_text(
            holdfast("backend-config", _STATE, "--tfbackend", "--address", connection.address)
        )
        run("init", f"-backend-config={_BACKEND}", "-input=false")
        with _lock_may_be_left(home, _STATE):
            run("plan", "-input=false")
        run("apply", meanwhile=lambda: show("lock", "show", _STATE))
        run("plan", "-input=false", "-detailed-exitcode")
        show("state", "history", _STATE)
        with _lock_may_be_left(home, late_write.STATE):
            late_write.show(
                terraforms()[-1],  # the packaged one, which knows the lock of backend "s3"
                Path(folder, "late-write"),
                LocalAws(running.port, home.aws_data),
                holdfast("backend-config", late_write.STATE, "--address", connection.address),
                environment,
                partial(holdfast, environment=environment),
            )
        show("state", "history", late_write.STATE)
    _heading("What happened")
    print(f"""\
{client} acquired the lock, wrote a version of the state through the API and released the lock;
the second plan acquired it again and found nothing to change. Every earlier version is still there.
Run the demo again for one more version. `make up` prints how to use Holdfast for a state of your own.""")


@contextmanager
def _lock_may_be_left(home: Home, state: str) -> Iterator[None]:
    """Add to an error how the lock is freed that a killed demo has left."""
    try:
        yield
    except LocalAwsError as error:
        raise LocalAwsError(
            f"{error} If an earlier demo was killed, remove its lock with the ID that is shown above: "
            f"(. {shlex.quote(str(home.terraform_env))}; .venv/bin/holdfast lock break {state} ID)"
        ) from error


def without_terraform_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the user's environment without the settings for the user's own states.

    Settings of this machine's installation are kept: Terraform's configuration file and its provider cache.
    """
    return {name: value for name, value in environment.items() if not name.startswith("TF_") or name in _KEPT}


def _run(
    terraform: Terraform,
    *arguments: str,
    folder: Path,
    environment: Mapping[str, str],
    meanwhile: Callable[[], None] | None = None,
) -> None:
    """Run a Terraform command. When it asks whether to go on, call `meanwhile` and answer yes."""
    command = terraform.client.command
    _heading(f"{command} {' '.join(arguments)}")
    with subprocess.Popen(
        [*terraform.argv, *arguments, "-no-color"],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE if meanwhile else subprocess.DEVNULL,
        stdout=subprocess.PIPE if meanwhile else None,
    ) as process:
        if meanwhile and process.stdin and process.stdout:
            printed = b""
            while chunk := os.read(process.stdout.fileno(), 4096):
                sys.stdout.buffer.write(chunk)
                sys.stdout.buffer.flush()
                printed += chunk
                if _QUESTION in printed and not process.stdin.closed:
                    meanwhile()
                    print("(answering yes)", flush=True)
                    process.stdin.write(b"yes\n")
                    process.stdin.close()
    if process.returncode == 2 and "-detailed-exitcode" in arguments:
        raise LocalAwsError("The second plan should have found nothing to change.")
    if process.returncode != 0:
        raise LocalAwsError(f"{command} {arguments[0]} failed with exit code {process.returncode}.")


def _heading(text: str) -> None:
    print(f"\n== {text}", flush=True)

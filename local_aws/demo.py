"""`make demo`: a real Terraform runs `examples/hello`, and the bucket shows what that did."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from local_aws.clients import s3_client, said_plainly
from local_aws.failure import LocalAwsError
from local_aws.home import Connection, DeployedTeam, Home
from local_aws.server import ROOT, LocalAws, find_running
from local_aws.terraform import terraforms
from local_aws.up import holdfast, takes_declared_names_alone

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_STATE = "demo/hello"
_STATE_KEY = f"states/{_STATE}.tfstate"
_LOCK_KEY = f"{_STATE_KEY}.tflock"
_BACKEND = "demo.tfbackend"
_QUESTION = b"Enter a value:"
_KEPT = ("TF_CLI_CONFIG_FILE", "TF_PLUGIN_CACHE_DIR")


def demo(home: Home) -> None:
    """Run init, plan, apply and a second plan, and show lock, state and versions in the bucket.

    Raises:
        LocalAwsError: nothing is up, or a step did not do what it should.
    """
    running = find_running(home.aws_data)
    connection = home.connection()
    deployment = home.deployment()
    teams = deployment.teams if deployment and connection else ()
    team = next((team for team in teams if connection and team.api_address == connection.address), None)
    if running is None or connection is None or team is None:
        raise LocalAwsError("Nothing is up yet: run `make up` first.")
    aws = LocalAws(running.port, home.aws_data)
    with said_plainly(aws):
        _demo(home, connection, team, s3_client(aws))


def _demo(home: Home, connection: Connection, team: DeployedTeam, s3: "S3Client") -> None:
    _check_not_locked(home, connection, s3, team.bucket_name)
    if takes_declared_names_alone(team.name):
        credentials = {"TF_HTTP_USERNAME": connection.username, "TF_HTTP_PASSWORD": connection.password}
        holdfast("state", "create", _STATE, "--address", connection.address, environment=credentials)
    terraform = terraforms()[0]
    client = terraform.client
    print(f"The state {_STATE} of the team {team.name}, with {client}.")
    with tempfile.TemporaryDirectory(prefix="demo-", dir=home.folder) as folder:
        hello = Path(folder, "hello")
        shutil.copytree(ROOT / "examples" / "hello", hello, ignore=shutil.ignore_patterns(".terraform*"))
        session = _Session(terraform.argv, client.command, hello, _environment(connection))
        (hello / _BACKEND).write_text(
            holdfast("backend-config", _STATE, "--tfbackend", "--address", connection.address)
        )
        session.run("init", f"-backend-config={_BACKEND}", "-input=false")
        session.run("plan", "-input=false")
        session.run("apply", meanwhile=lambda: _show_lock(s3, team.bucket_name))
        session.run("plan", "-input=false", "-detailed-exitcode")
    (serial, *_), lines = zip(*_versions(s3, team.bucket_name), strict=True)
    _heading(f"In the bucket {team.bucket_name}")
    print(_STATE_KEY, *lines, sep="\n")
    _show_lock_is_gone(s3, team.bucket_name)
    _heading("What happened")
    print(f"""\
{client} acquired the lock, wrote serial {serial} of the state through the API and released it;
the second plan acquired it again and found nothing to change. Every earlier version is still there.
Run it again for one more version. To use Holdfast for a state of your own, see what `make up` prints.""")


def without_terraform_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The user's environment without what is meant for the user's own states.

    How Terraform is installed here stays: its configuration file and its cache of providers.
    """
    return {name: value for name, value in environment.items() if not name.startswith("TF_") or name in _KEPT}


@dataclass(frozen=True, slots=True)
class _Session:
    """A Terraform, what its users type, its folder and its environment."""

    argv: tuple[str, ...]
    command: str
    folder: Path
    environment: Mapping[str, str]

    def run(self, *arguments: str, meanwhile: Callable[[], None] | None = None) -> None:
        """Run a command; its question whether to go on is the moment to do something, and is answered yes."""
        _heading(f"{self.command} {' '.join(arguments)}")
        with subprocess.Popen(
            [*self.argv, *arguments, "-no-color"],
            cwd=self.folder,
            env=self.environment,
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
                        process.stdin.write(b"yes\n")
                        process.stdin.close()
        if process.returncode == 2 and "-detailed-exitcode" in arguments:
            raise LocalAwsError("The second plan should have found nothing to change.")
        if process.returncode != 0:
            raise LocalAwsError(f"{self.command} {arguments[0]} failed with exit code {process.returncode}.")


def _environment(connection: Connection) -> dict[str, str]:
    return {
        **without_terraform_settings(os.environ),
        "TF_HTTP_USERNAME": connection.username,
        "TF_HTTP_PASSWORD": connection.password,
        "TF_VAR_greeting": f"Hello from Holdfast, {datetime.now().astimezone():%Y-%m-%d %H:%M:%S}",
        "TF_IN_AUTOMATION": "1",  # spares the hints on what to type next
        "CHECKPOINT_DISABLE": "1",  # nothing leaves this machine
    }


def _heading(text: str) -> None:
    print(f"\n== {text}", flush=True)


def _lock(s3: "S3Client", bucket: str) -> dict[str, str]:
    lock: dict[str, str] = json.loads(s3.get_object(Bucket=bucket, Key=_LOCK_KEY)["Body"].read())
    return lock


def _show_lock(s3: "S3Client", bucket: str) -> None:
    lock = _lock(s3, bucket)
    _heading(f"meanwhile in the bucket: {_LOCK_KEY}")
    for field in ("ID", "Operation", "Who", "Created"):
        print(f"  {field:<10} {lock[field]}")
    print("\n(answering yes)", flush=True)


def _is_locked(s3: "S3Client", bucket: str) -> bool:
    return "Contents" in s3.list_objects_v2(Bucket=bucket, Prefix=_LOCK_KEY)


def _check_not_locked(home: Home, connection: Connection, s3: "S3Client", bucket: str) -> None:
    if _is_locked(s3, bucket):
        sign_in = shlex.quote(str(home.terraform_env))
        address = shlex.quote(f"{connection.address}/unlocks/{_STATE}")
        lock = shlex.quote(json.dumps({"ID": _lock(s3, bucket)["ID"]}))
        raise LocalAwsError(
            "Another demo holds the lock. If it was killed, free it: "
            f'(. {sign_in}; curl -fsS -u "$TF_HTTP_USERNAME:$TF_HTTP_PASSWORD" -d {lock} {address})'
        )


def _show_lock_is_gone(s3: "S3Client", bucket: str) -> None:
    if _is_locked(s3, bucket):
        raise LocalAwsError(f"The lock {_LOCK_KEY} should have been released.")
    print(f"{_LOCK_KEY}\n  released")


def _versions(s3: "S3Client", bucket: str) -> Iterator[tuple[str, str]]:
    """Yield the serial and a line for each version of the state, newest first."""
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=_STATE_KEY):
        for version in page.get("Versions", []):
            if version["Key"] == _STATE_KEY:
                head = s3.head_object(Bucket=bucket, Key=_STATE_KEY, VersionId=version["VersionId"])
                serial = head["Metadata"].get("serial", "?")
                written = version["LastModified"].astimezone()
                yield (
                    serial,
                    f"  serial {serial:>3}  {version['Size']:>6} bytes  {written:%Y-%m-%d %H:%M:%S}  "
                    f"version {version['VersionId']}{'  <- current' if version['IsLatest'] else ''}",
                )

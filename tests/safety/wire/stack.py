"""A deployed team alone on a local AWS, as `make up` deploys it: plain HTTP, without IAM."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from local_aws.clients import s3_client
from local_aws.deploy import bootstrap, deploy
from local_aws.server import LocalAws, find_running, for_local_commands
from tests.support.deployed import client as aws_client
from tests.support.deployed import function_name, route_through
from tests.support.free_port import free_port
from tests.support.http_client import Credentials

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

TEAM: Final = "safety"
STACK: Final = f"Holdfast-{TEAM}"
TEAMS_FILE: Final = Path(__file__).with_name("teams.toml")

BACKEND: Final = "backend"
AUTHORIZER: Final = "authorizer"
CLOUD: Final = "cloud"
MANAGEMENT: Final = "management"
_ROUTED: Final = (BACKEND, AUTHORIZER, CLOUD, MANAGEMENT)

_HOLDFAST = Path(sys.executable).with_name("holdfast")
_TIME_LIMIT = 60


@dataclass
class Stack:
    """A deployed team, alone on its local AWS.

    `address` is the API's base URL. `s3` is a client with root's permissions. Neither goes through a proxy.
    `bucket` has states, locks and tokens. `data_dir` has all data of the local AWS.
    """

    aws: LocalAws
    address: str
    bucket: str
    s3: "S3Client"
    data_dir: Path
    _tokens: dict[tuple[str, ...], Credentials] = field(default_factory=dict, repr=False)
    _functions: dict[str, str] = field(default_factory=dict, repr=False)

    def token(self, role: str, *scope: str) -> Credentials:
        """Return an access token that the real command created. Without a scope it covers every state.

        The same arguments return the same token; `new_token` creates another token.
        """
        wanted = (role, *scope)
        if wanted not in self._tokens:
            self._tokens[wanted] = self.new_token(role, *scope)
        return self._tokens[wanted]

    def new_token(self, role: str, *scope: str) -> Credentials:
        """Create an access token that nobody has used, so that the gateway has no cached result for it."""
        scopes = [argument for pattern in scope or ("*",) for argument in ("--scope", pattern)]
        done = subprocess.run(
            [_HOLDFAST, "token", "create", "--team", TEAM, "--role", role, *scopes, "--json"],
            env=for_local_commands(os.environ) | self.aws.environment(),
            capture_output=True,
            check=True,
            timeout=_TIME_LIMIT,
        )
        made = json.loads(done.stdout)
        return Credentials(made["id"], made["secret"])

    def route_functions_through(self, endpoint: str | None, *, functions: Collection[str] = _ROUTED) -> None:
        """Let functions send their S3 requests to another endpoint, such as a proxy.

        `endpoint` has no trailing slash; None = S3 itself.
        """
        route_through(self.aws, map(self._function, functions), endpoint)

    def workers(self, functions: Collection[str] = _ROUTED) -> list[int]:
        """Return the PIDs of the processes in which the local AWS runs these functions.

        They include idle processes, and processes of versions to which the alias does not point any more.
        """
        server = find_running(self.data_dir)
        if server is None:
            return []
        found = []
        for process in Path("/proc").iterdir():
            if not process.name.isdigit():
                continue
            with suppress(OSError):  # it has ended meanwhile
                parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
                if parent != server.pid:
                    continue
                command = (process / "cmdline").read_bytes().decode(errors="replace")
                if any(f"-{self._function(name)}-" in command for name in functions):
                    found.append(int(process.name))
        return sorted(found)

    def kill_worker(self, pid: int) -> bool:
        """Kill a process of `workers` with SIGKILL; return whether it still ran."""
        if pid not in self.workers():
            return False
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            return True
        return False

    def object(self, key: str) -> bytes | None:
        """Return the bytes of an object, read from S3; None if it does not exist."""
        try:
            return self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        except self.s3.exceptions.NoSuchKey:
            return None

    def history(self, key: str) -> list[bytes]:
        """Return every version of an object, oldest first."""
        pages = self.s3.get_paginator("list_object_versions").paginate(Bucket=self.bucket, Prefix=key)
        listed = [item for page in pages for item in page.get("Versions", []) if item["Key"] == key]
        return [
            self.s3.get_object(Bucket=self.bucket, Key=key, VersionId=item["VersionId"])["Body"].read()
            for item in reversed(listed)
        ]

    def client(self, service: str) -> Any:
        """Return an AWS client for the local AWS with root's permissions."""
        return aws_client(self.aws, service)

    def _function(self, name: str) -> str:
        """Return the physical name of a deployed function."""
        if name not in self._functions:
            self._functions[name] = function_name(self.aws, STACK, name)
        return self._functions[name]


@contextmanager
def deployed(folder: Path, *, port: int | None = None) -> Iterator[Stack]:
    """Start a local AWS and deploy the team into it, for as long as the context lasts.

    The local AWS keeps all its data in `folder`. `port` is a port of 127.0.0.1, by default any free port.
    """
    with LocalAws(port or free_port(), folder) as aws:
        bootstrap(aws)
        (outputs,) = deploy(aws, [TEAM], teams_file=TEAMS_FILE)
        yield Stack(aws, outputs.api_address, outputs.bucket_name, s3_client(aws), aws.data_dir)

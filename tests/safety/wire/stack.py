"""A deployed team alone on a local AWS, as `make up` deploys it: plain HTTP, without IAM."""

import os
import signal
import ssl
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from local_aws.clients import s3_client
from local_aws.deploy import bootstrap, deploy
from local_aws.server import LocalAws, find_running, for_local_commands
from tests.safety.wire.proxy import NONE, FaultProxy
from tests.support import deployed as resources
from tests.support.aws_gateway import AwsGateway
from tests.support.deployed import function_name, route_through
from tests.support.free_port import free_port
from tests.support.team import Team

TEAM: Final = "safety"
STACK: Final = f"Holdfast-{TEAM}"
TEAMS_FILE: Final = Path(__file__).with_name("teams.toml")

BACKEND: Final = "backend"
AUTHORIZER: Final = "authorizer"
CLOUD: Final = "cloud"
MANAGEMENT: Final = "management"
_ROUTED: Final = (BACKEND, AUTHORIZER, CLOUD, MANAGEMENT)


@dataclass(frozen=True, eq=False)
class Stack(Team):
    """A deployed team, alone on its local AWS.

    Neither `s3` nor `direct_address` goes through a proxy.
    """

    aws: LocalAws

    @contextmanager
    def faults_in_s3(self, seed: int, *, functions: Collection[str] = _ROUTED) -> Iterator[FaultProxy]:
        """Let functions send their S3 requests through a proxy within the context."""
        names = [self.function(name) for name in functions]
        with FaultProxy(self.aws.endpoint, NONE, seed) as proxy:
            try:
                route_through(self.aws, names, proxy.endpoint)
                yield proxy
            finally:
                route_through(self.aws, names, None)

    def workers(self) -> list[int]:
        """Return the PIDs of the processes in which the local AWS runs the functions.

        They include idle processes, and processes of versions to which the alias does not point any more.
        """
        server = find_running(self.aws.data_dir)
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
                if any(f"-{self.function(name)}-" in command for name in _ROUTED):
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

    @cache  # noqa: B019 a stack lives as long as the run
    def function(self, name: str) -> str:
        """Return the physical name of a deployed function."""
        return function_name(self.aws, STACK, name)


@contextmanager
def deployed(folder: Path) -> Iterator[Stack]:
    """Start a local AWS and deploy the team into it, for as long as the context lasts.

    The local AWS keeps all its data in `folder`.
    """
    with LocalAws(free_port(), folder) as aws:
        bootstrap(aws)
        (outputs,) = deploy(aws, [TEAM], teams_file=TEAMS_FILE)
        with AwsGateway(outputs.api_address) as gateway:
            yield Stack(
                TEAM,
                gateway,
                outputs.api_address,
                outputs.bucket_name,
                resources.stack(aws, TEAM).physical_ids["StagingBucket"],
                s3_client(aws),
                ssl.create_default_context(),
                for_local_commands(os.environ) | aws.environment(),
                aws,
            )

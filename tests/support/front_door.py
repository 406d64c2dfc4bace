"""`make up`, `demo`, `down` and `clean` as a user types them, with a separate folder and port."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from local_aws.clients import s3_client
from local_aws.server import ROOT, LocalAws, Running, find_running
from tests.support.free_port import free_port

TIME_LIMIT = 300


@dataclass
class FrontDoor:
    """The commands, with another folder than `.local`. `port` is the last port that an `up` named."""

    folder: Path
    port: int = field(default_factory=free_port)

    @property
    def argv(self) -> list[str]:
        return [sys.executable, "-u", "-m", "local_aws", "--folder", str(self.folder)]

    @property
    def environment(self) -> dict[str, str]:
        # A separate home, so that jsii does not unpack aws-cdk-lib into the user's cache.
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder.parent)}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.argv, *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
            check=False,
        )

    def __call__(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def kill_when_it_says(self, text: bytes, *arguments: str) -> None:
        with subprocess.Popen(
            [*self.argv, *arguments], cwd=ROOT, env=self.environment, stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            said = b""
            while text not in said:
                said += os.read(process.stdout.fileno(), 1000) or pytest.fail(said.decode())
            process.send_signal(signal.SIGKILL)

    @property
    def running(self) -> Running:
        running = find_running(self.folder / "aws")
        assert running is not None
        return running

    @property
    def aws(self) -> LocalAws:
        return LocalAws(self.running.port, self.folder / "aws")

    def read(self, name: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.folder / name).read_text())
        return content

    def team(self) -> dict[str, Any]:
        """The team whose token is in the folder: the first team of teams.toml."""
        team: dict[str, Any] = self.read("deployment.json")["teams"][0]
        return team

    def serials(self) -> list[str]:
        """Return the serials of the demo's state, newest first."""
        s3, bucket = s3_client(self.aws), self.team()["bucket_name"]
        key = "states/demo/hello.tfstate"
        heads = (
            s3.head_object(Bucket=bucket, Key=key, VersionId=version["VersionId"])
            for version in s3.list_object_versions(Bucket=bucket, Prefix=key).get("Versions", [])
            if version["Key"] == key
        )
        return [head["Metadata"]["serial"] for head in heads]


@contextmanager
def cleaned(front_door: FrontDoor) -> Iterator[None]:
    """Stop and remove everything at the end, even if the tests are killed."""
    program = f"import subprocess, sys; sys.stdin.read(); subprocess.run({[*front_door.argv, 'clean']!r})"
    cleaner = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=front_door.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    with cleaner:  # closes its input and waits for it
        yield
    assert not front_door.folder.exists()

"""The accident that Holdfast prevents, with a real Terraform: a run that lost its lock writes late.

The same two runs are done with `backend "s3"` in a bucket of the local AWS, and with Holdfast.
"""

import errno
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from local_aws.clients import s3_client
from local_aws.failure import LocalAwsError
from local_aws.server import LocalAws
from local_aws.terraform import Terraform

STATE: Final = "demo/late-write"

_BUCKET: Final = "holdfast-demo-late-write"
_NETWORK: Final = 'resource "terraform_data" "network" {}\n'
_BOBS: Final = 'resource "terraform_data" "bobs" {}\n'
_ADAS: Final = """\
resource "terraform_data" "adas" {
  provisioner "local-exec" {
    command = ": > working && read go < gate"
  }
}
"""
"""Its creation waits until the demo lets it go on."""
_S3: Final = f"""\
terraform {{
  backend "s3" {{
    bucket       = "{_BUCKET}"
    key          = "late-write.tfstate"
    use_lockfile = true

    # for the local AWS
    use_path_style              = true
    skip_credentials_validation = true
    skip_requesting_account_id  = true
  }}
}}
"""
_LOCK_ID: Final = re.compile(r"^[ │]*ID: +(\S+)", re.MULTILINE)
_TOLD: Final = re.compile(r"^(?:Apply complete!|[╷│ ]*Error: .*|[╷│ ]*Error saving .*)", re.MULTILINE)
"""The lines of an apply that say how it ended."""
_SECONDS: Final = 120.0
_PAUSE: Final = 0.05


@dataclass(frozen=True, slots=True)
class _Place:
    """A place of the state.

    Attributes:
        backend: the `terraform` block.
        environment: for Terraform.
        break_lock: breaks the lock with an ID, and returns the command that does it.
    """

    backend: str
    environment: Mapping[str, str]
    break_lock: Callable[["_Checkout", str], str]


def show(
    terraform: Terraform,
    folder: Path,
    aws: LocalAws,
    backend: str,
    environment: Mapping[str, str],
    holdfast: Callable[..., str],
) -> None:
    """Show the late write with `backend "s3"` and with Holdfast.

    Args:
        terraform: knows `use_lockfile`, so it is Terraform 1.10 or OpenTofu 1.10, or newer.
        folder: an existing folder for the checkouts.
        backend: the block for `STATE`, as `holdfast backend-config` prints it.
        environment: for Terraform and `holdfast`.
        holdfast: runs the `holdfast` command with arguments.
    """

    def force_unlock(checkout: "_Checkout", lock_id: str) -> str:
        checkout.run("force-unlock", "-force", lock_id)
        return "terraform force-unlock -force ID"

    def lock_break(_: "_Checkout", lock_id: str) -> str:
        holdfast("lock", "break", STATE, lock_id)
        return f"holdfast lock break {STATE} ID"

    print('\n== A run that has lost its lock writes late, with backend "s3"\n', flush=True)
    with _bucket(aws):
        s3 = _Place(_S3, {**environment, **aws.environment()}, force_unlock)
        tracked = _late_write(terraform, folder / "s3", s3)
    print("\nBob's resource exists, and no state tracks it: Ada's late write replaced his.", flush=True)
    if "terraform_data.bobs" in tracked:
        raise LocalAwsError('The late write should have replaced the state of backend "s3".')
    print("\n== The same two runs, with Holdfast\n", flush=True)
    tracked = _late_write(terraform, folder / "holdfast", _Place(backend, environment, lock_break))
    if "terraform_data.bobs" not in tracked:
        raise LocalAwsError("Holdfast should have refused the late write.")
    print("\nThe late write was refused: Bob's resource is tracked. Ada's is in errored.tfstate.", flush=True)


@contextmanager
def _bucket(aws: LocalAws) -> Iterator[None]:
    """Keep an empty bucket for the context. A demo that was killed may have left one."""
    s3 = s3_client(aws)

    def empty() -> None:
        for each in s3.list_objects_v2(Bucket=_BUCKET).get("Contents", ()):
            s3.delete_object(Bucket=_BUCKET, Key=each["Key"])

    s3.create_bucket(Bucket=_BUCKET)
    empty()
    try:
        yield
    finally:
        empty()
        s3.delete_bucket(Bucket=_BUCKET)


def _late_write(terraform: Terraform, folder: Path, place: _Place) -> list[str]:
    """Do the two runs, print what they type and see, and return the addresses that the state tracks then."""
    ada, bob = (_Checkout(terraform, folder / name, place) for name in ("ada", "bob"))
    bob.write(_NETWORK)
    bob.run("apply", "-auto-approve", "-input=false")
    ada.write(_NETWORK + _ADAS)
    bob.write(_NETWORK + _BOBS)
    with ada.waiting() as apply:
        _say("ada$ terraform apply", "# holds the lock, and hangs")
        refused = bob.run("apply", "-auto-approve", "-input=false", succeeds=False)
        found = _LOCK_ID.search(refused)
        if found is None:
            raise LocalAwsError(f"Terraform should have named the lock of the other apply:\n{refused}")
        _say("bob$ terraform apply", "Error acquiring the state lock")
        _say(f"bob$ {place.break_lock(bob, found[1])}", "# Ada's run looks dead")
        _say("bob$ terraform apply", *_told(bob.run("apply", "-auto-approve", "-input=false")))
        ada.proceed(apply)
        printed, _ = apply.communicate(timeout=_SECONDS)
        if not (told := _told(printed)):
            raise LocalAwsError(f"The apply that waited should have gone on to its end:\n{printed}")
        _say("ada: her apply goes on", *told)
    tracked = [line for line in bob.run("state", "list").splitlines() if line.startswith("terraform_data.")]
    _say("bob$ terraform state list", *tracked)
    return tracked


def _say(line: str, *below: str) -> None:
    """Print a line of the transcript, which fits into half a page, and what follows it."""
    print(line)
    for each in below:
        print(f"     {each}", flush=True)


def _told(printed: str) -> list[str]:
    """Return the lines of an apply that say how it ended, without its frame."""
    return [line.strip("│╷╵ ") for line in _TOLD.findall(printed)]


class _Checkout:
    """A folder with a configuration."""

    def __init__(self, terraform: Terraform, folder: Path, place: _Place) -> None:
        self._terraform = terraform
        self._folder = folder
        self._environment = dict(place.environment)
        self._gate = folder / "gate"
        folder.mkdir(parents=True)
        (folder / "backend.tf").write_text(place.backend)
        self.write(_NETWORK)
        self.run("init", "-input=false")

    def write(self, main: str) -> None:
        (self._folder / "main.tf").write_text(main)

    def run(self, *arguments: str, succeeds: bool = True) -> str:
        """Run Terraform, and return what it printed; `LocalAwsError` unless it ends as expected."""
        with self._start(*arguments) as process:
            printed, _ = process.communicate(timeout=_SECONDS)
        if (process.returncode == 0) is not succeeds:
            how = "failed" if succeeds else "should have been refused"
            raise LocalAwsError(f"terraform {arguments[0]} {how}:\n{printed.strip()}")
        return printed

    @contextmanager
    def waiting(self) -> Iterator[subprocess.Popen[str]]:
        """Run an apply of `_ADAS` that waits in the middle; the end of the context ends it."""
        os.mkfifo(self._gate)
        with self._start("apply", "-auto-approve", "-input=false") as process:
            try:
                _wait_for(self._folder / "working", process)
                yield process
            finally:
                process.kill()

    def proceed(self, process: subprocess.Popen[str]) -> None:
        """Let the waiting apply go on; `LocalAwsError` if its process has ended, or does not read."""
        end = time.monotonic() + _SECONDS
        while True:
            try:
                # Without O_NONBLOCK this would wait for ever for a reader that has ended.
                gate = os.open(self._gate, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                if process.poll() is not None or time.monotonic() > end:
                    process.kill()
                    raise LocalAwsError(
                        f"The apply that waited ended before it could go on:\n{process.communicate()[0]}"
                    ) from error
                time.sleep(_PAUSE)
            else:
                with os.fdopen(gate, "w") as opened:
                    opened.write("go\n")
                return

    def _start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self._terraform.argv, *arguments, "-no-color"],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


def _wait_for(file: Path, process: subprocess.Popen[str]) -> None:
    """Wait until a process has made a file; `LocalAwsError` if it ends before, or if that takes too long."""
    end = time.monotonic() + _SECONDS
    while not file.exists():
        if process.poll() is not None or time.monotonic() > end:
            process.kill()
            raise LocalAwsError(f"The apply did not get as far as its resource:\n{process.communicate()[0]}")
        time.sleep(_PAUSE)

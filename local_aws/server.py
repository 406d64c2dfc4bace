"""Start, find, stop and kill MiniStack as a process of this machine."""

import contextlib
import fcntl
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from local_aws.failure import LocalAwsError
from local_aws.files import create_private, tail

ROOT = Path(__file__).resolve().parent.parent
HOST = "127.0.0.1"
_IPV6 = "::1"
REGION = "us-east-1"
ACCOUNT = "000000000000"

_PYTHON = ROOT / ".venv" / "ministack" / "bin" / "python"
_PROCESS = ROOT / "local_aws" / "ministack_process.py"
_HEALTH = "/_ministack/health"

_TIME_TO_START = 60.0
_TIME_TO_STOP = 30.0
_TIME_TO_DIE = 10.0
_PAUSE = 0.05


@dataclass(frozen=True, slots=True)
class Certificates:
    """Paths of the PEM files for TLS.

    `ca` is the certificate of the authority that clients must trust; only the file's owner can read `key`.
    """

    ca: Path
    cert: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Running:
    """A running server; the process `pid` leads a process group of its own."""

    pid: int
    port: int


def find_running(data_dir: Path) -> Running | None:
    """Return the running server that has its data in this folder, or None if no server runs.

    No other process can be mistaken for the server, which locks its pid file as long as it lives.
    """
    try:
        file = (data_dir / "server.pid").open()
    except FileNotFoundError:
        return None
    with file:
        for _ in range(20):
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                with contextlib.suppress(ValueError):  # the file is locked and not written yet
                    return Running(**json.loads(file.read()))
                time.sleep(_PAUSE)
            else:
                return None
    pid_file = data_dir / "server.pid"
    raise LocalAwsError(
        f"{pid_file} is locked by a process that did not write its ID there. `fuser {pid_file}` shows the "
        "process. End the process, and run the command again."
    )


def check_port_free(port: int) -> None:
    """Raise `LocalAwsError` unless a server could listen on this port and receive requests to localhost."""

    def taken(address: str) -> LocalAwsError:
        return LocalAwsError(
            f"Port {port} on {address} is used by another program; choose another port: make up "
            f"PORT={port + 1}"
        )

    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except PermissionError as error:
            raise LocalAwsError(f"This user may not use port {port}; choose a port above 1023.") from error
        except OSError as error:
            raise taken(HOST) from error
    # Many systems try IPv6 first for `localhost`, which presigned addresses name.
    with contextlib.suppress(OSError), socket.create_connection((_IPV6, port), timeout=1):
        raise taken(_IPV6)


def answers(port: int, path: str, tls: Certificates | None = None, *, timeout: float = 5) -> bool:
    """Return whether a server on this port of 127.0.0.1 responds to a GET of a path with 200."""
    connection = (
        http.client.HTTPSConnection(
            HOST, port, timeout=timeout, context=ssl.create_default_context(cafile=str(tls.ca))
        )
        if tls
        else http.client.HTTPConnection(HOST, port, timeout=timeout)
    )
    with contextlib.closing(connection):
        try:
            connection.request("GET", path)
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False


def for_local_commands(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the user's environment without AWS settings, and without a proxy for the local AWS.

    No request for the local AWS may reach the user's account, and no request for the account the local AWS.
    """
    kept = {name: value for name, value in environment.items() if not name.startswith("AWS_")}
    for name in ("NO_PROXY", "no_proxy"):
        kept[name] = ",".join(filter(None, (kept.get(name), HOST)))
    return kept


class LocalAws:
    """A local AWS: its port, the folder with its data, and its process if it runs.

    >>> LocalAws(4566, Path(".local/aws")).endpoint
    'http://127.0.0.1:4566'
    """

    def __init__(
        self,
        port: int,
        data_dir: Path,
        *,
        iam: bool = False,
        tls: Certificates | None = None,
        calls: Path | None = None,
    ) -> None:
        """Describe a local AWS without starting it.

        Args:
            data_dir: the folder for all of its files.
            iam: enforce IAM policies; the credentials `test`/`test` are those of the root user.
            calls: a file that gets a line of JSON about each request of a function. Needs `iam`, because
                without `iam` functions have no identity of their own.
        """
        self.port = port
        self.data_dir = data_dir.resolve()
        self.iam = iam
        self.tls = tls
        self.calls = calls
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"{'https' if self.tls else 'http'}://{HOST}:{self.port}"

    @property
    def log(self) -> Path:
        """Return the path of the server's log, which begins at the server's last start."""
        return self.data_dir / "server.log"

    @property
    def temporary(self) -> Path:
        """Return the folder for temporary files, which is emptied at the server's start."""
        return self.data_dir / "tmp"

    @property
    def running(self) -> bool:
        return find_running(self.data_dir) is not None

    def environment(self) -> dict[str, str]:
        """Return the variables that point an AWS SDK, the AWS CLI, CDK or Terraform to this local AWS."""
        variables = {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_S3_FORCE_PATH_STYLE": "1",
        }
        if self.tls:
            variables["AWS_CA_BUNDLE"] = str(self.tls.ca)
        return variables

    def start(self, *, stays: bool = False) -> None:
        """Start the server and wait until it responds.

        If `stays` is true, the server continues after this process ends; otherwise it ends with this process,
        even after a SIGKILL. `LocalAwsError` also if a server runs in this folder already.
        """
        if self.running:
            raise LocalAwsError(f"A local AWS already runs with the data in {self.data_dir}.")
        check_port_free(self.port)
        self._make_folders()
        with create_private(self.log) as log:
            process = subprocess.Popen(
                [
                    *(_PYTHON, "-I", _PROCESS, self.data_dir / "server.pid", "free" if stays else "tied"),
                    self.calls.resolve() if self.calls else "-",
                ],
                cwd=self.data_dir,
                env=self._server_environment(),
                stdin=subprocess.DEVNULL if stays else subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                umask=0o077,
            )
        self._child = process
        try:
            self._wait_until_it_answers(process)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Stop the server gracefully, so that it saves its data. Do nothing if it does not run.

        If the server does not end in time, it is killed and `LocalAwsError` is raised.
        """
        running = find_running(self.data_dir)
        if running is None:
            self._reap()
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(running.pid, signal.SIGTERM)
        ended = self._wait_until(lambda: find_running(self.data_dir) != running, _TIME_TO_STOP)
        _kill_group(running.pid)  # workers that outlived the server
        self._reap()
        if not ended:
            raise LocalAwsError(
                f"The local AWS did not stop within {_TIME_TO_STOP:.0f} s and was killed; see {self.log}"
            )

    def kill(self) -> None:
        """Kill the server and its workers at once (SIGKILL). Do nothing if it does not run."""
        if running := find_running(self.data_dir):
            _kill_group(running.pid)
        if self._child and self._child.poll() is None:  # the child has not locked its pid file yet
            _kill_group(self._child.pid)
        self._reap()
        if not self._wait_until(lambda: not self.running, _TIME_TO_DIE):
            raise LocalAwsError(f"The local AWS with the data in {self.data_dir} could not be stopped.")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exception_type is None:
            self.stop()
        else:
            self.kill()

    # --- how ---------------------------------------------------------------------------------------

    def _make_folders(self) -> None:
        self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.data_dir.chmod(0o700)
        shutil.rmtree(self.temporary, ignore_errors=True)  # the workers' folders of a server that was killed
        self.temporary.mkdir(mode=0o700)

    def _server_environment(self) -> dict[str, str]:
        # The Lambda workers inherit these variables, and no others of this machine.
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.temporary),
            "TMPDIR": str(self.temporary),
            "LANG": "C.UTF-8",
            "BIND_HOST": HOST,
            "GATEWAY_PORT": str(self.port),
            "MINISTACK_REGION": REGION,
            "MINISTACK_ACCOUNT_ID": ACCOUNT,
            "PERSIST_STATE": "1",
            "STATE_DIR": str(self.data_dir / "control"),
            "S3_PERSIST": "1",
            "S3_DATA_DIR": str(self.data_dir / "s3"),
            "AUTH": "true" if self.iam else "false",
            "LAMBDA_EXECUTOR": "local",
            # No other ports, and no Docker: MiniStack would remove the containers of every other MiniStack.
            "SFTP_ENABLED": "0",
            "IOT_MTLS_ENABLED": "0",
            "DOCKER_HOST": "unix:///nonexistent/docker.sock",
        }
        if self.tls:
            environment |= {
                "USE_SSL": "1",
                "MINISTACK_SSL_CERT": str(self.tls.cert),
                "MINISTACK_SSL_KEY": str(self.tls.key),
                "AWS_CA_BUNDLE": str(self.tls.ca),
            }
        return environment

    def _wait_until_it_answers(self, process: subprocess.Popen[bytes]) -> None:
        if (
            not self._wait_until(
                lambda: process.poll() is not None or answers(self.port, _HEALTH, self.tls), _TIME_TO_START
            )
            or process.poll() is not None
        ):
            raise LocalAwsError(f"The local AWS did not start; the end of {self.log}:\n{tail(self.log)}")

    def _reap(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        if child.stdin:
            child.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_TIME_TO_DIE)

    @staticmethod
    def _wait_until(condition: Callable[[], bool], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(_PAUSE)
        return True


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)

"""Runs the `holdfast` command in processes whose imports are done.

Each run is a separate process with its own environment, folder, files and exit code, and ends as the
installed script does. It is forked from a server that has done the imports, most of a run's cost.
"""

import atexit
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Final
from unittest import mock

import boto3
from botocore.loaders import JSONFileLoader

import holdfast_cli
from holdfast_cli.main import main

_ROOT: Final = Path(__file__).resolve().parents[2]
_OF_PYTHON: Final = ("PYTHON", "LC_", "LANG")
"""The prefix of variables that Python reads when it starts. A running server cannot follow them."""


def run(
    arguments: Sequence[str], environment: Mapping[str, str], *, timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run the command with nothing on its standard input.

    subprocess.TimeoutExpired: the command has not ended; it is killed.
    """
    assert not any(name.startswith(_OF_PYTHON) for name in environment), environment
    asked = json.dumps([list(arguments), dict(environment), str(Path.cwd())]).encode()
    ours, theirs = socket.socketpair()
    with (
        ours,
        Path(os.devnull).open("rb") as nothing,
        tempfile.TemporaryFile("w+", encoding="utf-8") as output,
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
    ):
        with theirs:
            socket.send_fds(_server(), [b"+"], [file.fileno() for file in (theirs, nothing, output, errors)])
        ours.sendall(asked)
        ours.shutdown(socket.SHUT_WR)
        ours.settimeout(timeout)
        pid = _number(ours)
        try:
            code = _number(ours)
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(list(arguments), timeout) from None
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(list(arguments), code, output.read(), errors.read())


def _number(connection: socket.socket) -> int:
    return int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big", signed=True)


@cache
def _server() -> socket.socket:
    """Start the server of this process. It ends with this process."""
    ours, theirs = socket.socketpair()
    # Without the user's locale, like the environment of the command.
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{_ROOT}:{_ROOT / 'functions'}"}
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.support.forked_command"],
            cwd=_ROOT,
            env=environment,
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
        )

    def end() -> None:
        ours.close()
        server.wait()

    atexit.register(end)
    return ours


def _serve() -> tuple[list[str], dict[str, str], str] | None:
    """Fork for each request.

    Return the request in the process that is to run it; in the server None, at its end.
    """
    connection = socket.socket(fileno=os.dup(0))
    waiting: list[int] = []
    while True:
        request, files, _, _ = socket.recv_fds(connection, 1, 4)
        if not request:
            break
        pid = os.fork()
        if pid == 0:
            connection.close()
            return _become(*files)
        for file in files:
            os.close(file)
        waiting = [earlier for earlier in waiting if os.waitpid(earlier, os.WNOHANG) == (0, 0)]
        waiting.append(pid)
    for pid in waiting:  # so that their processor time counts as this process's
        os.waitpid(pid, 0)
    return None


def _become(told: int, *standard: int) -> tuple[list[str], dict[str, str], str]:
    """Fork again. The parent reports ID and exit code of the child; the child returns its request."""
    with socket.socket(fileno=told) as teller:
        with teller.makefile("rb") as asked:
            arguments, environment, folder = json.load(asked)
        pid = os.fork()
        if pid:
            teller.sendall(pid.to_bytes(4, "big", signed=True))
            _, status = os.waitpid(pid, 0)
            teller.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))
            os._exit(0)
    for number, file in enumerate(standard):
        os.dup2(file, number)
        os.close(file)
    return arguments, environment, folder


def _import_everything() -> None:
    """Import the modules that the command imports late, and parse boto3's service descriptions once."""
    parse = cache(JSONFileLoader().load_file)
    mock.patch.object(JSONFileLoader, "load_file", lambda _, path: parse(path)).start()
    for module in walk_packages(holdfast_cli.__path__, "holdfast_cli."):
        import_module(module.name)
    for service in ("s3", "cloudformation", "logs", "sts"):
        boto3.Session("test", "test", region_name="us-east-1").client(service)
    gc.freeze()


if __name__ == "__main__":
    _import_everything()
    if (work := _serve()) is not None:
        sys.argv[1:], variables, where = work
        os.environ.clear()
        os.environ.update(variables)
        time.tzset()
        os.chdir(where)
        sys.exit(main())

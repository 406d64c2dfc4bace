"""Terminals: one to run a command on, and one to print to."""

import fcntl
import io
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path


class Terminal(io.StringIO):
    """A text stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def run(
    command: Sequence[str | Path],
    environment: Mapping[str, str],
    *,
    columns: int,
    typed: str | None = None,
    code: int = 0,
) -> str:
    """Run a command on a terminal of this width, and return its output.

    `typed` is the typed input; with None its standard input is empty. `code` is the expected exit code.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    with subprocess.Popen(
        command,
        env=dict(environment),
        stdin=subprocess.DEVNULL if typed is None else theirs,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        if typed is not None:
            os.write(ours, typed.encode())
        printed = b""
        while part := _read(ours):
            printed += part
    os.close(ours)
    assert process.returncode == code, printed
    return printed.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # no process has it open any more
        return b""

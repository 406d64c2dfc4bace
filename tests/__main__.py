"""`make test`: run every part of the tests, and print what each took.

    python -m tests

The end-to-end tests and those in a browser wait for caches, clocks and processes, so other parts run at the
same time. When a part fails, or on Ctrl-C, all running parts are ended with all their processes, and no other
part begins.
"""

import ctypes
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from tests.figures import TEST_MINUTES

ROOT: Final = Path(__file__).resolve().parent.parent
_BIN: Final = Path(sys.executable).parent

WALL_BOUND: Final = 24 * 60
"""Seconds that all parts may take on two quiet cores; printed, not asserted."""
CPU_BOUND: Final = 36 * 60
"""Seconds of processor time, of all cores together; printed, not asserted."""

_OF_OUTER_MAKE: Final = frozenset({"MAKEFLAGS", "MAKELEVEL", "MFLAGS"})
_COMPILE_AGAIN: Final = frozenset({"PYTHONDONTWRITEBYTECODE"})
"""With this variable, every process of the tests would compile all modules again."""
_AT_ONCE: Final = str((os.cpu_count() or 1) + 1)
"""Tests that run at once: one more than there are cores, because many wait for a deadline."""
_TIME_TO_END: Final = 30.0
_PAUSE: Final = 0.2
_CLOSING: Final = re.compile(r"=+ .*\b(passed|failed|skipped|errors?|no tests ran)\b.* in \d.* =+")
_SET_CHILD_SUBREAPER: Final = 36  # of prctl(2)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the tests; its command runs in the folder of the repository."""

    name: str
    command: Sequence[str | Path]


PARTS: Final[Sequence[Sequence[Part]]] = (
    (
        Part(
            "unit, contract, safety",
            (_BIN / "pytest", "-n", _AT_ONCE, "tests/unit", "tests/contract", "tests/safety"),
        ),
    ),
    (
        Part("end to end", ("make", "--no-print-directory", "--old-file=set-up", "e2e")),
        Part("lint", ("make", "--no-print-directory", "--old-file=set-up", "lint")),
    ),
    (
        Part("browser", ("make", "--no-print-directory", "--old-file=set-up", "browser")),
        Part("unit, on Lambda's Python", (_BIN / "python", "-m", "tests.on_lambda_python")),
    ),
    (Part("safety, quick", (_BIN / "python", "-m", "tests.safety", "quick")),),
)
"""The stages, in order. The parts of a stage run in parallel. The first part's output is printed at once."""


class Run:
    """A running or ended part.

    `pid` is the leader of the part's process group. `code` is None while it runs. `stopped`: it was ended for
    another reason than its own result. `wall` is its time in seconds. `cpu` is the processor time in seconds,
    of all its processes. `closing` is pytest's last line; empty before, and for a part without pytest.
    """

    def __init__(self, part: Part, *, seen: bool) -> None:
        """Start a part. The output of a `seen` part is printed at once, otherwise at its end."""
        self.part = part
        self.code: int | None = None
        self.stopped = False
        self.wall = self.cpu = 0.0
        self.closing = ""
        self._line = b""
        self._started = time.monotonic()
        self._kept: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 lives as long as the part
        self._process = subprocess.Popen(
            part.command,
            cwd=ROOT,
            env={
                name: value
                for name, value in os.environ.items()
                if name not in _OF_OUTER_MAKE | _COMPILE_AGAIN
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if seen else self._kept,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.pid = self._process.pid
        self._pipe = self._process.stdout

    def print_output(self, seconds: float) -> None:
        """Print the output that it writes within this time."""
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            if self._pipe is None:
                time.sleep(left)
            elif select.select([self._pipe], [], [], left)[0]:
                if written := os.read(self._pipe.fileno(), 65536):
                    self._print(written)
                else:
                    self._pipe = None

    def end(self, status: int, cpu: float) -> None:
        """Note that it has ended, and print the rest of its output."""
        self.code = self._process.returncode = os.waitstatus_to_exitcode(status)
        self.wall = time.monotonic() - self._started
        self.cpu += cpu
        while self._pipe and select.select([self._pipe], [], [], 0)[0]:
            if not (written := os.read(self._pipe.fileno(), 65536)):
                break
            self._print(written)
        if self._process.stdout:
            self._process.stdout.close()
        self._kept.seek(0)
        self._print(self._kept.read())
        self._kept.close()

    def _print(self, written: bytes) -> None:
        sys.stdout.buffer.write(written)
        sys.stdout.flush()
        *lines, self._line = (self._line + written).split(b"\n")
        for line in lines:
            if _CLOSING.fullmatch(text := line.decode(errors="replace").strip()):
                self.closing = text

    def interrupt(self) -> None:
        """Make it end and clean up, as Ctrl-C does."""
        if self.code is None:
            self.stopped = True
            os.killpg(self.pid, signal.SIGINT)

    def kill(self) -> None:
        """Kill it and its process group at once."""
        if self.code is None:
            os.killpg(self.pid, signal.SIGKILL)


def run_beside(parts: Sequence[Part], runs: list[Run]) -> bool:
    """Run parts in parallel until all have ended or one has failed; return whether all succeeded.

    The first part's output is printed at once. Every started part is added to `runs`.
    """
    started: list[Run] = []
    try:
        for part in parts:
            started.append(Run(part, seen=not started))
            runs.append(started[-1])
        while any(run.code is None for run in started) and not any(run.code for run in started):
            started[0].print_output(_PAUSE)
            _collect(started)
    finally:
        _end(started)
    return all(run.code == 0 for run in started)


def _collect(runs: Sequence[Run]) -> None:
    """Note the ended processes: parts, and processes left behind, whose time counts as the first part's."""
    with suppress(ChildProcessError):
        while True:
            pid, status, used = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                return
            cpu = used.ru_utime + used.ru_stime
            for run in runs:
                if run.pid == pid:
                    run.end(status, cpu)
                    break
            else:
                if runs:  # none, if Ctrl-C came while the first one was started
                    runs[0].cpu += cpu


def _end(runs: Sequence[Run]) -> None:
    """End the parts that still run, and every process that a part has left behind."""
    for run in runs:
        run.interrupt()
    deadline = time.monotonic() + _TIME_TO_END
    while any(run.code is None for run in runs) and time.monotonic() < deadline:
        runs[0].print_output(_PAUSE)
        _collect(runs)
    for run in runs:
        run.kill()
    while _has_children():
        for pid in {*_children(), *(run.pid for run in runs if run.code is None)}:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_PAUSE)
        _collect(runs)


def _has_children() -> bool:
    """Return whether this process has a child process."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _children() -> list[int]:
    """Return the child processes of this process; none if the system does not list them.

    Linux can leave out some of them if a child exits meanwhile (proc(5)), so an empty list proves nothing.
    """
    with suppress(FileNotFoundError):
        return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    return []


def _adopt_orphans() -> None:
    """Become the parent of processes that the parts leave behind, to count their time and end them."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def summary(runs: Sequence[Run], wall: float) -> str:
    """Print the times of each part with their bounds, and pytest's last lines."""
    rows = [(run.part.name, run.wall, run.cpu) for run in runs]
    rows.append(("together", wall, sum(run.cpu for run in runs)))
    rows.append(("at most, on two quiet cores", WALL_BOUND, CPU_BOUND))
    width = max(len(name) for name, _, _ in rows)
    lines = [f"{'':{width}}    wall     CPU"]
    lines += [f"{name:{width}}  {_minutes(of_wall)}  {_minutes(cpu)}" for name, of_wall, cpu in rows]
    lines += [run.closing for run in runs if run.closing]
    lines += [f"{run.part.name}: {'stopped' if run.stopped else 'failed'}" for run in runs if run.code]
    return "\n".join(lines)


def _minutes(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:3}:{rest:02}"


def main(parts: Sequence[Sequence[Part]] = PARTS) -> int:
    """Run all parts; return 0 if all succeeded, 1 if one failed, 130 if it was interrupted."""
    # A shell starts a background command with Ctrl-C ignored, and the command's own processes inherit that.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    _adopt_orphans()
    runs: list[Run] = []
    started = time.monotonic()
    try:
        succeeded = all(run_beside(stage, runs) for stage in parts)
    except KeyboardInterrupt:
        print("\nInterrupted; everything that was started has ended.", file=sys.stderr)
        return 130
    wall = time.monotonic() - started
    print(f"\n{summary(runs, wall)}", flush=True)
    if succeeded and parts is PARTS:
        TEST_MINUTES.parent.mkdir(exist_ok=True)
        TEST_MINUTES.write_text(str(round(wall / 60)), encoding="utf-8")
    return 0 if succeeded else 1


if __name__ == "__main__":
    print(
        "This takes 15 to 24 minutes on two cores; `make lint` and `make unit` are parts of it.", flush=True
    )
    sys.exit(main())

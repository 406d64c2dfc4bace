"""`make test` runs its parts, says what they took, and leaves nothing behind however it ends."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from local_aws.server import ROOT

TIME_LIMIT = 60


def program(*stages: tuple[str, ...]) -> list[str]:
    """A run whose parts are shell commands, named by their numbers."""
    parts = [
        [(f"{first}.{second}", ["sh", "-c", command]) for second, command in enumerate(stage)]
        for first, stage in enumerate(stages)
    ]
    text = (
        "import sys; from tests.__main__ import Part, main; "
        f"sys.exit(main([[Part(*part) for part in stage] for stage in {parts!r}]))"
    )
    return [sys.executable, "-c", text]


def run(*stages: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        program(*stages), cwd=ROOT, capture_output=True, text=True, timeout=TIME_LIMIT, check=False
    )


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def left_behind(file: Path) -> str:
    """A command that leaves a process in a session of its own, and writes its number to a file."""
    return f"{sys.executable} -c 'import os, time; os.setsid(); time.sleep({TIME_LIMIT})' & echo $! > {file}"


def test_all_output_comes_and_then_what_each_part_took() -> None:
    closing = "===== 3 passed, 1 warning in 1.00s (0:00:01) ====="
    done = run((f"echo one; echo '{closing}'", "sleep 0.5; echo beside"), ("echo two; : | cat",))

    assert done.returncode == 0, done.stderr
    printed, _, table = done.stdout.partition("\n\n")
    assert printed.splitlines() == ["one", closing, "beside", "two"]
    names = re.findall(r"^(.+?)  +\d+:\d\d +\d+:\d\d$", table, re.MULTILINE)
    assert names == ["0.0", "0.1", "1.0", "together", "at most, on two quiet cores"]
    assert table.splitlines()[-1] == closing


def test_the_time_of_the_processor_is_that_of_everything_that_was_started(tmp_path: Path) -> None:
    burns = "import time\nwhile time.process_time() < 1.6: pass"
    (tmp_path / "burn.py").write_text(burns)
    orphan = f"setsid {sys.executable} {tmp_path}/burn.py & sleep 0.1"
    done = run((f"{orphan}; {sys.executable} {tmp_path}/burn.py; sleep 3",))

    [minutes, seconds] = re.findall(r"^together +\d+:\d\d +(\d+):(\d\d)$", done.stdout, re.MULTILINE)[0]
    assert 3 <= int(minutes) * 60 + int(seconds) <= 6


def test_a_part_that_fails_ends_the_others_and_all_that_they_started(tmp_path: Path) -> None:
    waits = f"{left_behind(tmp_path / 'pid')}; touch {tmp_path}/begun; sleep {TIME_LIMIT}"
    fails = f"while [ ! -e {tmp_path}/begun ]; do sleep 0.1; done; echo wrong; exit 3"
    started = time.monotonic()
    done = run((waits, fails), (f"touch {tmp_path}/later",))

    assert done.returncode == 1
    assert "wrong" in done.stdout
    assert done.stdout.splitlines()[-2:] == ["0.0: stopped", "0.1: failed"]
    assert time.monotonic() - started < TIME_LIMIT / 2
    assert not (tmp_path / "later").exists()
    assert not is_alive(int((tmp_path / "pid").read_text()))


def test_ctrl_c_ends_everything_that_was_started(tmp_path: Path) -> None:
    waits = f"{left_behind(tmp_path / 'pid')}; touch {tmp_path}/begun; sleep {TIME_LIMIT}"
    with subprocess.Popen(
        program((waits,)), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        while not (tmp_path / "begun").exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=TIME_LIMIT)

    assert process.returncode == 130
    assert told == "\nInterrupted; everything that was started has ended.\n"
    assert not is_alive(int((tmp_path / "pid").read_text()))

"""A tied command ends with the process that started it, and takes its own children along."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from local_aws.server import ROOT

TIED = [sys.executable, "-I", str(ROOT / "local_aws" / "tied_process.py")]


def ends(pid: int) -> bool:
    """Whether a process ends soon."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


def test_the_commands_exit_code_is_handed_on() -> None:
    for code in (0, 3):
        with subprocess.Popen([*TIED, "sh", "-c", f"exit {code}"], stdin=subprocess.PIPE) as process:
            assert process.wait(20) == code


def test_a_command_and_its_children_end_when_the_starter_is_killed() -> None:
    command_line = [*TIED, "sh", "-c", "sleep 60 & echo $!; echo $$; wait"]
    program = f"""
import subprocess
tied = subprocess.Popen({command_line!r}, stdin=subprocess.PIPE, start_new_session=True)
input()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as starter:
        assert starter.stdout is not None
        child, command = int(starter.stdout.readline()), int(starter.stdout.readline())
        os.kill(child, 0)
        os.kill(command, 0)
        starter.send_signal(signal.SIGKILL)
        starter.wait()

    assert ends(child)
    assert ends(command)

"""A tied command ends with the process that started it, and takes its own children along."""

import os
import signal
import subprocess
import sys

from local_aws.server import ROOT
from tests.support.waiting import lives, wait_until

TIED = [sys.executable, "-I", str(ROOT / "local_aws" / "tied_process.py")]


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

    wait_until(lambda: not lives(child) and not lives(command), "both end")

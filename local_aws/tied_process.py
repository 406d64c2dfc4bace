"""Runs a command, and everything that it starts, no longer than the process that started this one.

It is the leader of a process group of its own and kills that group once its standard input ends, which
it does however the other end of that pipe goes away. Arguments: the command.
"""

import os
import signal
import subprocess
import sys
import threading


def _end_with_parent() -> None:
    while os.read(0, 1):
        pass
    os.killpg(0, signal.SIGKILL)


def main() -> int:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    return subprocess.call(sys.argv[1:], stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())

"""Run a command; kill it and all its processes when the process that started this one ends.

This process leads its own process group, and kills the group when its standard input ends. Standard input is
a pipe; it ends when the process at the other end ends or is killed. Arguments: the command.
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

"""Run a command; kill it and all its processes when the process that started this one ends.

It is the leader of its own process group and kills the group when its standard input ends. That pipe ends
with its other end, even if that process is killed. Arguments: the command.
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

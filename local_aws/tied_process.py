"""Runs a command, and kills it with everything that it started when this process's parent ends.

It leads a process group of its own and kills that group when its standard input ends, which happens however
the other end of that pipe goes away. Arguments: the command.
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

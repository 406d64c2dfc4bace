"""Runs MiniStack in this process: on one address only, as the one server of its folder.

MiniStack's own command would also try port 443 and write a pid file elsewhere, so its application is
given to the same web server that its command uses. This file runs on MiniStack's interpreter and
imports nothing but the standard library.

Arguments: the pid file, `tied` or `free`, then those of hypercorn.
"""

import asyncio.constants
import fcntl
import json
import os
import resource
import runpy
import signal
import sys
import threading
import time

_LOCK_ATTEMPTS = 40
_LOCK_PAUSE = 0.05
_TIME_TO_SAVE = 20
_TIME_TO_CLOSE = 0.5


def _hold(pid_file: str) -> None:
    """Lock the pid file for as long as this process lives, and write its pid there.

    A pid alone may belong to anybody after a crash; the lock ends with the process that took it.
    """
    file = os.open(pid_file, os.O_RDWR | os.O_CREAT, 0o600)
    for _ in range(_LOCK_ATTEMPTS):  # somebody who only asks whether a server runs holds it for a moment
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            time.sleep(_LOCK_PAUSE)
    else:
        sys.exit(f"{pid_file} is held by another server")
    os.ftruncate(file, 0)
    os.write(file, json.dumps({"pid": os.getpid(), "port": int(os.environ["GATEWAY_PORT"])}).encode())


def _end_with_parent() -> None:
    """Stop this server once its standard input ends, which is when the process that started it ends."""

    def watch() -> None:
        while os.read(0, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_TIME_TO_SAVE)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _allow_many_connections() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main() -> None:
    """Serve until SIGTERM."""
    pid_file, lifetime, *arguments = sys.argv[1:]
    _hold(pid_file)
    if lifetime == "tied":
        _end_with_parent()
    _allow_many_connections()
    # Idle clients never answer the end of a TLS connection: with asyncio's 30 s no stop would be graceful.
    vars(asyncio.constants).update(SSL_SHUTDOWN_TIMEOUT=_TIME_TO_CLOSE)
    sys.argv = ["hypercorn", "ministack.app:app", *arguments]
    runpy.run_module("hypercorn", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

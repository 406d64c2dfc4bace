"""Starts the `holdfast` command. Ctrl-C ends it with exit code 130 and without a traceback, at any time.

The exception hooks are set before anything else is imported: loading all modules takes about a second.
"""

import os
import sys
from types import TracebackType


def main() -> int:
    """Run the command and return its exit code. Raises SystemExit as `holdfast_cli.main.main` does."""
    sys.excepthook = _uncaught
    sys.unraisablehook = _unraisable
    from holdfast_cli.main import main as run  # slow; an interrupt may come meanwhile

    code = run()
    if code == 130:
        os._exit(code)  # Python would wait for threads
    return code


def _uncaught(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """End the process without a traceback if a KeyboardInterrupt is the exception or its cause."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):
            os._exit(130)  # Python would wait for threads, and could be interrupted again
        cause = cause.__cause__ or cause.__context__
    sys.__excepthook__(kind, error, traceback)


def _unraisable(raised: "sys.UnraisableHookArgs") -> None:
    """End the process after a KeyboardInterrupt in a callback, in a finalizer or while Python exits."""
    if isinstance(raised.exc_value, KeyboardInterrupt):
        os._exit(130)
    sys.__unraisablehook__(raised)


if __name__ == "__main__":
    sys.exit(main())

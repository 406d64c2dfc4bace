"""Starts the `holdfast` command. Ctrl-C ends it with 130 and without a traceback at any time.

Nothing else is imported before that is ensured: a second passes before all modules are loaded.
"""

import os
import sys
from types import TracebackType


def main() -> int:
    """Return the command's exit code. SystemExit is raised as by `holdfast_cli.main.main`."""
    sys.excepthook = _uncaught
    sys.unraisablehook = _unraisable
    from holdfast_cli.main import main as run  # it takes a while, and an interrupt may come meanwhile

    code = run()
    if code == 130:
        os._exit(code)  # Python would wait for threads
    return code


def _uncaught(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """End without a traceback if an exception is an interrupt, or was raised because of one."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):
            os._exit(130)  # Python would wait for threads, and could be interrupted again
        cause = cause.__cause__ or cause.__context__
    sys.__excepthook__(kind, error, traceback)


def _unraisable(raised: "sys.UnraisableHookArgs") -> None:
    """The same where Python cannot pass an exception on: in callbacks, finalizers and at its own end."""
    if isinstance(raised.exc_value, KeyboardInterrupt):
        os._exit(130)
    sys.__unraisablehook__(raised)


if __name__ == "__main__":
    sys.exit(main())

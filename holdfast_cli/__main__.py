"""Start the `holdfast` command. Ctrl-C always ends it with exit code 130 and without a traceback.

Other modules are imported after that is set up, because importing them all takes a second.
"""

import os
import sys
from types import TracebackType


def main() -> int:
    """Run the command and return its exit code. It raises SystemExit like `holdfast_cli.main.main`."""
    sys.excepthook = _uncaught
    sys.unraisablehook = _unraisable
    from holdfast_cli.main import main as run  # takes a while, and can be interrupted

    code = run()
    if code == 130:
        os._exit(code)  # Python would wait for threads
    return code


def _uncaught(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """Exit without a traceback if an exception is an interrupt, or was caused by one."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):
            os._exit(130)  # Python would wait for threads, and could be interrupted again
        cause = cause.__cause__ or cause.__context__
    sys.__excepthook__(kind, error, traceback)


def _unraisable(raised: "sys.UnraisableHookArgs") -> None:
    """Do the same where Python cannot raise an exception: in callbacks, finalizers and at exit."""
    if isinstance(raised.exc_value, KeyboardInterrupt):
        os._exit(130)
    sys.__unraisablehook__(raised)


if __name__ == "__main__":
    sys.exit(main())

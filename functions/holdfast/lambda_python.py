"""Finds the Python that makes bytecode for Lambda, for the CDK app and for `holdfast doctor --account`."""

import shutil
import subprocess
from functools import cache
from typing import Final

from holdfast.team import LAMBDA_PYTHON

_SECONDS: Final = 60
"""How long it may take to start."""


def lambda_python() -> str | None:
    """Return the Python that makes bytecode for Lambda, or None if there is none on the PATH.

    A version manager's placeholder for a version that is not installed or not chosen fails when it is run.
    """
    python = shutil.which(f"python{LAMBDA_PYTHON}")
    return python if python is not None and _runs(python) else None


@cache
def _runs(python: str) -> bool:
    # Bytecode of a release candidate need not be that of the release, and Lambda would not read it.
    code = "import sys; print(sys.implementation.cache_tag, sys.version_info.releaselevel)"
    try:
        ended = subprocess.run(
            [python, "-I", "-c", code], capture_output=True, text=True, check=False, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return is_lambda_python(ended.stdout)


def is_lambda_python(version: str) -> bool:
    """Return whether a Python that says this of its cache tag and release level has Lambda's bytecode."""
    return version.split() == [f"cpython-{LAMBDA_PYTHON.replace('.', '')}", "final"]

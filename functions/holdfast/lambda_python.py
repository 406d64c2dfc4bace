"""Find the Python that compiles bytecode for Lambda, for the CDK app and for `holdfast doctor --account`."""

import shutil
import subprocess
from functools import cache
from typing import Final

from holdfast.team import LAMBDA_PYTHON

_SECONDS: Final = 60
"""Seconds that Python may take to start."""


def lambda_python() -> str | None:
    """Return the path of the Python that compiles bytecode for Lambda, or None if the PATH does not have it.

    It is run once, because a version manager's placeholder for a missing version only fails when it runs.
    """
    python = shutil.which(f"python{LAMBDA_PYTHON}")
    return python if python is not None and _runs(python) else None


@cache
def _runs(python: str) -> bool:
    # The bytecode of a release candidate can differ from the release's; Lambda would not load it.
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

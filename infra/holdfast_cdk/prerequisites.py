"""Checks for what the CDK app needs beside its own files: the package `aws_cdk`, and Node.js."""

import os
import re
import subprocess
from importlib.util import find_spec
from typing import Final

from holdfast_cdk.places import PINNED

OLDEST_NODE: Final = 20
"""The oldest major version of Node.js with which the stacks are tested."""


class PrerequisiteError(Exception):
    """Something is missing. The message is one line that says what to install."""


def check() -> None:
    """Raise `PrerequisiteError` if aws_cdk or Node.js is missing, or Node.js is too old.

    Without this check, importing aws_cdk would fail with a traceback.
    """
    if find_spec("aws_cdk") is None:
        raise PrerequisiteError(
            f"only the `holdfast` command is installed, not the CDK app; type: pip install '{PINNED}'"
        )
    # The variable with which jsii, on which aws_cdk is built, finds another Node.js.
    node = os.environ.get("JSII_NODE", "node")
    try:
        ended = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise PrerequisiteError(
            f"the CDK needs Node.js {OLDEST_NODE} or later, and {node} does not start: {error.strerror}"
        ) from None
    version = re.match(r"v(\d+)\.", ended.stdout)
    if version is None or int(version[1]) < OLDEST_NODE:
        raise PrerequisiteError(
            f"the CDK needs Node.js {OLDEST_NODE} or later, and `{node} --version` says "
            f"{ended.stdout.strip()!r}"
        )

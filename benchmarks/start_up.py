"""How long a function's process takes to be ready, beside one that only makes an S3 client."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from benchmarks.figures import Comparison, compare
from infra.bundle import bundle

_LIMIT: Final = 1.3
_BARE: Final = "import boto3; boto3.client('s3')"
_ENVIRONMENT: Final = {
    "HOLDFAST_BUCKET": "benchmark",
    "HOLDFAST_VERSION": "benchmark",
    "HOLDFAST_REQUIRE_LOCK": "true",
    "POWERTOOLS_SERVICE_NAME": "holdfast",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
}


def measure(rounds: int) -> list[Comparison]:
    """Start both functions and the bare client in turn, each from the bundle that is deployed."""
    comparisons = []
    for function in ("backend", "authorizer"):
        path = bundle(function, "local").path
        ours, theirs = [], []
        _start(path, f"import {function}.handler")  # fills the file cache
        _start(path, _BARE)
        for _ in range(rounds):
            ours.append(_start(path, f"import {function}.handler"))
            theirs.append(_start(path, _BARE))
        comparisons.append(compare(f"start-up of {function}", ours, theirs, limit=_LIMIT))
    return comparisons


def _start(bundle_path: Path, code: str) -> float:
    started = time.perf_counter()
    subprocess.run(
        # -S: nothing of this environment's packages, only the bundle.
        [sys.executable, "-S", "-c", code],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(bundle_path), **_ENVIRONMENT},
        check=True,
        timeout=60,
    )
    return time.perf_counter() - started

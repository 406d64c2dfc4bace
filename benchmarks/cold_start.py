"""How long a function's process takes to be ready, beside one that only makes an S3 client."""

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from benchmarks.figures import Figure, Section, compare
from benchmarks.run import Run
from holdfast.access import Role
from holdfast.identity import tokens, trust
from infra.bundle import bundle
from tests.support.id_tokens import RSA, Published, claims, record, signed

_LIMIT: Final = 0.85
_ID_TOKEN_LIMIT: Final = 1.5  # with the JWT library
_BARE: Final = "import boto3; boto3.client('s3')"
ENVIRONMENT: Final = {
    "HOLDFAST_ACCOUNT": "123456789012",
    "HOLDFAST_BUCKET": "benchmark",
    "HOLDFAST_VERSION": "benchmark",
    "HOLDFAST_REQUIRE_LOCK": "true",
    "POWERTOOLS_SERVICE_NAME": "holdfast",
    "POWERTOOLS_LOG_LEVEL": "CRITICAL",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
}


# What S3 and an issuer would answer is handed to the process: none of their time is measured.
_SIGN_IN: Final = """
import json, sys, types
from authorizer import handler
header, objects, documents = json.load(sys.stdin)
read = lambda store, key: types.SimpleNamespace(body=objects[key].encode())
handler.Store.read = read
if documents:
    from holdfast.identity.oidc import keys
    keys.process_issuers = keys.Issuers(fetch=lambda address: json.dumps(documents[address]).encode())
event = {"identitySource": [header], "requestContext": {"http": {}, "requestId": ""}}
context = types.SimpleNamespace(get_remaining_time_in_millis=lambda: 9000)
assert handler.handle(event, context)["isAuthorized"]
assert ("jwt" in sys.modules) is bool(documents)
"""


def measure(run: Run) -> Section:
    """Start the functions and the bare client in turn, each from the bundle that is deployed.

    The authorizer also until it has answered its first token, and its first ID token.
    """
    authorizer = bundle("authorizer", "local").path
    starts = (
        _compare(f"start of {name}", bundle(name, "local").path, f"import {name}.handler", run.rounds)
        for name in ("terraform_http", "authorizer", "session_exchange", "health")
    )
    sign_ins = (
        _compare(f"authorizer, {kind}", authorizer, _SIGN_IN, run.rounds, given=given, limit=limit)
        for kind, given, limit in (("token", _token(), _LIMIT), ("ID token", _id_token(), _ID_TOKEN_LIMIT))
    )
    return Section(
        "Cold functions",
        [figure for compared in (*starts, *sign_ins) for figure in compared],
        [
            "Beside: a process that only makes boto3.client('s3'), from a bundle.",
            "The authorizer's lines are its cold start with a first token or ID token.",
        ],
    )


def _compare(
    name: str, path: Path, code: str, rounds: int, *, given: str = "", limit: float = _LIMIT
) -> list[Figure]:
    ours, theirs = [], []
    bare = bundle("terraform_http", "local").path  # that of the health has no SDK
    _start(path, code, given)  # fills the file cache
    _start(bare, _BARE)
    for _ in range(rounds):
        ours.append(_start(path, code, given))
        theirs.append(_start(bare, _BARE))
    return compare(name, ours, theirs, limit=limit)


def _token() -> str:
    token, secret = tokens.create(
        Role.WRITER, ["*"], description="", created_by="benchmark", now=datetime.now(UTC), expires=None
    )
    return _given(f"{token.id}:{secret}", {token.key: token.to_json()}, {})


def _id_token() -> str:
    records = trust.Records((record(),))
    return _given(f"oidc:{signed(RSA, claims())}", {trust.KEY: records.to_json()}, Published(RSA).documents)


def _given(credentials: str, objects: Mapping[str, bytes], documents: Mapping[str, object]) -> str:
    header = "Basic " + base64.b64encode(credentials.encode()).decode()
    return json.dumps([header, {key: body.decode() for key, body in objects.items()}, documents])


def _start(bundle_path: Path, code: str, given: str = "") -> float:
    started = time.perf_counter()
    subprocess.run(
        # -S: nothing of this environment's packages, only the bundle.
        [sys.executable, "-S", "-c", code],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(bundle_path), **ENVIRONMENT},
        input=given.encode(),
        check=True,
        timeout=60,
    )
    return time.perf_counter() - started

"""How long cold functions take until their first response, beside a process that only makes an S3 client."""

import base64
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchmarks.figures import Figure, Section
from benchmarks.run import Run
from benchmarks.tiny_s3 import BUCKET, tiny_s3
from holdfast.access import Caller, Role
from holdfast.identity import tokens, trust
from infra.bundle import BundleError, bundle
from tests.support import events
from tests.support.certificates import create_certificates
from tests.support.environment import CREDENTIALS, SETTINGS
from tests.support.id_tokens import RSA, Published, claims, record, signed

_LIMIT: Final = 0.85
_ID_TOKEN_LIMIT: Final = 1.5  # with the JWT library
_CHAIN_LIMIT: Final = 0.7  # of another version's

ENVIRONMENT: Final = {**SETTINGS, **CREDENTIALS, "HOLDFAST_BUCKET": BUCKET, "POWERTOOLS_LOG_LEVEL": "INFO"}

_BARE: Final = """
import boto3
boto3.client("s3")
import time
print([[time.monotonic(), time.process_time()]] * 2)
"""

# What an issuer would answer is handed to the process: none of its time is measured.
_RUN: Final = """
import importlib, json, sys, time, types
function, event, documents = json.load(sys.stdin)
handler = importlib.import_module(f"{function}.handler")
ready = time.monotonic(), time.process_time()
if documents:
    from holdfast.identity.oidc import keys
    keys.process_issuers = keys.Issuers(fetch=lambda address: json.dumps(documents[address]).encode())
answer = handler.handle(event, types.SimpleNamespace(get_remaining_time_in_millis=lambda: 25000))
responded = time.monotonic(), time.process_time()
assert answer.get("isAuthorized") or answer.get("statusCode") == 200, answer
assert ("jwt" in sys.modules) is bool(documents)
print(json.dumps([ready, responded]))
"""

_BUNDLES: Final = """
import json, sys
from infra.bundle import bundle
print(json.dumps({name: str(bundle(name, "local").path) for name in sys.argv[1:]}))
"""

# The packages of `boto3` and, of botocore's data, what a client of S3 reads: models of other services only
# make it slower.
_BARE_PACKAGES: Final = ("boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six", "urllib3")
_BARE_DATA: Final = frozenset({"s3", "endpoints.json", "partitions.json", "sdk-default-configuration.json"})


@dataclass(frozen=True, slots=True)
class Started:
    """What a fresh process took, in milliseconds.

    Attributes:
        ready: of a processor, until it could take a request.
        processor: of a processor, until it had responded.
        wall: until it had responded.
    """

    ready: float
    processor: float
    wall: float


@dataclass(frozen=True, slots=True)
class Asked:
    """The first request of a process.

    Attributes:
        documents: that an issuer publishes, by address; empty if none is asked.
    """

    function: str
    event: Mapping[str, Any]
    documents: Mapping[str, object]


def measure(run: Run) -> Section:
    """Start the functions, each from the bundle that is deployed, and the bare client, all in turn.

    S3 is in this process and speaks TLS: the functions load the certificates that they load on AWS.
    """
    folder = run.folder / "cold"
    certificates = create_certificates(folder / "tls")
    authority = certificates.ca.read_bytes()
    asked, objects = first_requests()
    _make_bare(folder / "bare")
    functions = {request.function for request in asked.values()}
    bundles = _trusting(authority, _bundles(functions), folder / "ours")
    chain = {asked[name].function for name in _CHAIN}
    other = _trusting(authority, _bundles_of(run.beside, chain), folder / "beside") if run.beside else {}
    processes = {"bare client": (folder / "bare", _BARE, "")}
    for name, request in asked.items():
        given = json.dumps([request.function, request.event, request.documents])
        processes[name] = (bundles[request.function], _RUN, given)
        if other and name in _CHAIN:
            processes[f"beside: {name}"] = (other[request.function], _RUN, given)
    in_turn = list(processes.items())
    measured: dict[str, list[Started]] = {name: [] for name in processes}
    with tiny_s3(objects, certificates) as address:
        for number in range(run.rounds + 1):
            for name, process in in_turn:
                started = _start(address, *process)
                if number:  # the round before fills the file cache
                    measured[name].append(started)
            in_turn.reverse()
    return Section("Cold functions", [*_figures(measured)], _NOTES)


_CHAIN: Final = ("authorizer", "backend")
_NOTES: Final = (
    "Each process has only its bundle. S3 answers at once, over TLS. All but `wall` is processor time.",
    "`start` is until a function could take a request, `response` until it has responded to the first.",
    "The bare client is a process that only runs boto3.client('s3').",
    "The chain is a plan's first request: its token by a cold authorizer, then its lock by a cold backend.",
)


def first_requests() -> tuple[dict[str, Asked], dict[str, bytes]]:
    """Return the first requests, by name, and the objects in S3 that they need."""
    now = datetime.now(UTC)
    token, secret = tokens.create(
        Role.WRITER, ["*"], description="", created_by="benchmark", now=now, expires=None
    )
    deployers = trust.new_aws(
        "deployers",
        aws_role="Deployer",
        role=Role.WRITER,
        scope=["*"],
        description="",
        created_by="benchmark",
        now=now,
    )
    records = trust.Records((deployers, record()))
    lock = json.dumps({"ID": "c0ffee", "Operation": "OperationTypePlan", "Who": "ada@laptop"})
    acquire = events.request(
        "PUT", "/locks/{name+}", "network/prod", caller=Caller("ada", Role.WRITER, ("*",)), body=lock
    )
    create = events.request("POST", "/sessions/aws", body="{}")
    arn = f"arn:aws:sts::{ENVIRONMENT['HOLDFAST_ACCOUNT']}:assumed-role/Deployer/ada"
    create["requestContext"]["authorizer"] = {"iam": {"userArn": arn}}
    asked = {
        "authorizer": Asked("authorizer", _sign_in(f"{token.id}:{secret}"), {}),
        "backend": Asked("terraform_http", acquire, {}),
        "session": Asked("session_exchange", create, {}),
        "health": Asked("health", events.request("GET", "/health"), {}),
        "ID token": Asked("authorizer", _sign_in(f"oidc:{signed(RSA, claims())}"), Published(RSA).documents),
    }
    return asked, {token.key: token.to_json(), trust.KEY: records.to_json()}


def _sign_in(credentials: str) -> dict[str, Any]:
    return events.sign_in("Basic " + base64.b64encode(credentials.encode()).decode())


def _figures(measured: Mapping[str, Sequence[Started]]) -> Iterator[Figure]:
    bare = measured["bare client"]
    yield Figure.of("bare client", "ms", [each.processor for each in bare])
    yield Figure.of("health: start", "ms", [each.ready for each in measured["health"]])
    for name in ("authorizer", "ID token", "backend", "session"):
        started = measured[name]
        if name != "ID token":
            ready, of_bare = ([each.ready for each in side] for side in (started, bare))
            yield Figure.of(f"{name}: start", "ms", ready)
            yield Figure.ratio(f"{name}: start to bare", ready, of_bare, limit=_LIMIT)
        limit = _ID_TOKEN_LIMIT if name == "ID token" else None
        yield Figure.of(f"{name}: response", "ms", [each.processor for each in started])
        yield _ratio(f"{name}: response to bare", started, bare, limit=limit)
    chain = _chain(*(measured[name] for name in _CHAIN))
    yield Figure.of("chain: response", "ms", [each.processor for each in chain])
    yield Figure.of("chain: wall", "ms", [each.wall for each in chain])
    yield _ratio("chain: response to bare", chain, bare)
    if f"beside: {_CHAIN[0]}" in measured:
        other = _chain(*(measured[f"beside: {name}"] for name in _CHAIN))
        walls = ([each.wall for each in side] for side in (chain, other))
        yield Figure.of("chain, beside: response", "ms", [each.processor for each in other])
        yield _ratio("chain, beside: response to bare", other, bare)
        yield _ratio("chain to beside: response", chain, other, limit=_CHAIN_LIMIT)
        yield Figure.ratio("chain to beside: wall", *walls)


def _chain(first: Sequence[Started], then: Sequence[Started]) -> list[Started]:
    return [
        Started(one.ready + next_.ready, one.processor + next_.processor, one.wall + next_.wall)
        for one, next_ in zip(first, then, strict=True)
    ]


def _ratio(
    name: str, ours: Sequence[Started], theirs: Sequence[Started], *, limit: float | None = None
) -> Figure:
    return Figure.ratio(name, *([each.processor for each in side] for side in (ours, theirs)), limit=limit)


def _bundles(functions: Collection[str]) -> dict[str, Path]:
    try:
        return {name: bundle(name, "local").path for name in functions}
    except BundleError as error:
        raise RuntimeError(str(error)) from error


def _bundles_of(checkout: Path, functions: Collection[str]) -> dict[str, Path]:
    """Have another version bundle its functions."""
    ended = subprocess.run(
        [sys.executable, "-c", _BUNDLES, *functions],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": f"{checkout}{os.pathsep}{checkout / 'functions'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        raise RuntimeError(f"the functions of {checkout} could not be bundled:\n{ended.stderr}")
    return {name: Path(path) for name, path in json.loads(ended.stdout).items()}


def _trusting(authority: bytes, bundles: Mapping[str, Path], folder: Path) -> dict[str, Path]:
    """Copy bundles, and add one authority to those that they trust: as many are loaded as on AWS, and one."""
    copies = {}
    for name, path in bundles.items():
        copies[name] = Path(shutil.copytree(path, folder / name))
        for certificates in copies[name].rglob("*.pem"):
            certificates.write_bytes(certificates.read_bytes() + b"\n" + authority)
    return copies


def _make_bare(folder: Path) -> None:
    """Copy this environment's `boto3` and what it needs, with only the models of S3."""
    folder.mkdir(parents=True)
    for package in _BARE_PACKAGES:
        found = importlib.util.find_spec(package)
        if found is None or found.origin is None:
            raise RuntimeError(f"{package} is not installed")
        origin = Path(found.origin)
        if origin.name == "__init__.py":
            shutil.copytree(origin.parent, folder / package, ignore=_others)
        else:
            shutil.copy2(origin, folder)


def _others(folder: str, names: list[str]) -> Collection[str]:
    return {*names} - _BARE_DATA if folder.endswith(f"botocore{os.sep}data") else ()


def _start(s3: str, path: Path, code: str, given: str) -> Started:
    # The clock is the machine's: both processes read the same.
    started = time.monotonic()
    ended = subprocess.run(
        # -S: nothing of this environment's packages, only the bundle.
        [sys.executable, "-S", "-c", code],
        env={
            **ENVIRONMENT,
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(path),
            "AWS_ENDPOINT_URL_S3": s3,
        },
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if ended.returncode:
        raise RuntimeError(f"a function did not respond:\n{ended.stderr}")
    (_, ready), (responded, processor) = json.loads(ended.stdout.splitlines()[-1])
    return Started(ready * 1000, processor * 1000, (responded - started) * 1000)

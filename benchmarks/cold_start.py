"""Measure cold functions until their first response and, for comparison, the start of an S3 client alone."""

import base64
import importlib
import json
import os
import shutil
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import botocore

from benchmarks.figures import Figure, Section
from benchmarks.run import Run
from benchmarks.stack import printed
from benchmarks.tiny_s3 import BUCKET, tiny_s3
from gateway.function import WARM_UP
from holdfast.access import Caller, Grant, Role
from holdfast.identity import tokens, trust
from local_aws.server import ROOT
from tests.support import events
from tests.support.certificates import create_certificates
from tests.support.environment import CREDENTIALS, SETTINGS
from tests.support.id_tokens import RSA, Published, claims, record, signed

_LIMIT: Final = 0.85
_ID_TOKEN_LIMIT: Final = 1.5  # with the JWT library
_CHAIN_LIMIT: Final = 0.7  # ratio to the time of the other version

ENVIRONMENT: Final = {**SETTINGS, **CREDENTIALS, "HOLDFAST_BUCKET": BUCKET, "POWERTOOLS_LOG_LEVEL": "INFO"}

_BARE: Final = """
import boto3
boto3.client("s3")
import time
print([[time.monotonic(), time.process_time()]] * 2)
"""

# The process gets the issuer's documents as input, so that the issuer's time is not measured.
RUN: Final = """
import importlib, json, sys, time, types
function, event, documents, warm_up = json.load(sys.stdin)
handler = importlib.import_module(f"{function}.handler")
context = types.SimpleNamespace(get_remaining_time_in_millis=lambda: 25000)
if warm_up:
    handler.handle(warm_up, context)
ready = time.monotonic(), time.process_time()
if documents:
    from holdfast.identity.oidc import keys
    keys.process_issuers = keys.Issuers(fetch=lambda address: json.dumps(documents[address]).encode())
answer = handler.handle(event, context)
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

# The packages of `boto3`, and the part of botocore's data that an S3 client reads: models of other services
# only make it slower.
_BARE_PACKAGES: Final = ("boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six", "urllib3")
_BARE_DATA: Final = frozenset({"s3", "endpoints.json", "partitions.json", "sdk-default-configuration.json"})


Asked = tuple[str, Mapping[str, Any], Mapping[str, object]]
"""The first request of a process: the function, its event, and an issuer's documents by address."""
Took = dict[str, list[float]]
"""Milliseconds of each round: processor time as `start` and `response`, and elapsed time as `wall`, and as
`warm` from the start's end."""


def measure(run: Run) -> Section:
    """Start each function from its deployed bundle, and the bare client; take turns in every round.

    S3 runs in this process and uses TLS, so that the functions load as many certificates as on AWS.
    """
    folder = run.folder / "cold"
    certificates = create_certificates(folder / "tls")
    # The SDK's CA certificates and one more, so that a function loads as many as on AWS.
    authorities = folder / "authorities.pem"
    known = Path(botocore.__file__).with_name("cacert.pem").read_bytes()
    authorities.write_bytes(known + b"\n" + certificates.ca.read_bytes())
    asked, objects = first_requests()
    _make_bare(folder / "bare")
    processes = {"bare client": (folder / "bare", _BARE, "")}
    for side, checkout, names in (("", ROOT, asked), ("beside: ", run.beside, _CHAIN)):
        if checkout:
            built = bundles(checkout, {asked[name][0] for name in names})
            for name in names:
                # The functions of the chain get a warm-up, if the version knows it, and then their request.
                warm_up = WARM_UP if name in _CHAIN and not side else None
                processes[side + name] = (built[asked[name][0]], RUN, json.dumps([*asked[name], warm_up]))
    # For each function, the other version runs right after this version.
    in_turn = sorted(processes.items(), key=lambda item: item[0].removeprefix("beside: "))
    measured = {name: Took(start=[], response=[], wall=[], warm=[]) for name in processes}
    with tiny_s3(objects, certificates) as address:
        s3 = {"AWS_ENDPOINT_URL_S3": address, "AWS_CA_BUNDLE": str(authorities)}
        for number in range(run.rounds + 1):
            for name, process in in_turn:
                started = start(s3, *process)
                if number:  # the first round fills the file cache
                    for of, milliseconds in started.items():
                        measured[name][of].append(milliseconds)
            in_turn.reverse()
    return Section("Cold functions", [*_figures(measured)], _NOTES)


_CHAIN: Final = ("authorizer", "backend")
_NOTES: Final = (
    "Each process has only its bundle. S3 answers at once, over TLS. All but `wall` is processor time.",
    "`start` is until a function could take a request, `response` until it has responded to the first.",
    "The bare client is a process that only runs boto3.client('s3').",
    "The chain is a plan's first request: its token by a cold authorizer, then its lock by a cold backend.",
    "`kept warm` is the same request where both had started before it and had only a warm-up since.",
)


def first_requests() -> tuple[dict[str, Asked], dict[str, bytes]]:
    """Return two mappings: name -> first request, and key -> content of an S3 object that a request reads."""
    made: Any = {"description": "", "created_by": "benchmark", "now": datetime.now(UTC)}
    token, secret = tokens.create([Grant(Role.WRITER, ("*",))], expires=None, **made)
    deployers = trust.new_aws("deployers", aws_role="Deployer", grants=[Grant(Role.WRITER, ("*",))], **made)
    records = trust.Records((deployers, record()))
    lock = json.dumps({"ID": "c0ffee", "Operation": "OperationTypePlan", "Who": "ada@laptop"})
    acquire = events.request(
        "PUT",
        "/locks/{name+}",
        "network/prod",
        caller=Caller("ada", (Grant(Role.WRITER, ("*",)),)),
        body=lock,
    )
    create = events.request("POST", "/sessions/aws", body="{}")
    arn = f"arn:aws:sts::{ENVIRONMENT['HOLDFAST_ACCOUNT']}:assumed-role/Deployer/ada"
    create["requestContext"]["authorizer"] = {"iam": {"userArn": arn}}
    asked: dict[str, Asked] = {
        "authorizer": ("authorizer", _sign_in(f"{token.id}:{secret}"), {}),
        "backend": ("terraform_http", acquire, {}),
        "session": ("session_exchange", create, {}),
        "health": ("health", events.request("GET", "/health"), {}),
        "ID token": ("authorizer", _sign_in(f"oidc:{signed(RSA, claims())}"), Published(RSA).documents),
    }
    return asked, {token.key: token.to_json(), trust.KEY: records.to_json()}


def _sign_in(credentials: str) -> dict[str, Any]:
    return events.sign_in("Basic " + base64.b64encode(credentials.encode()).decode())


def _figures(measured: Mapping[str, Took]) -> Iterator[Figure]:
    bare = measured["bare client"]["response"]
    yield Figure.of("bare client", "ms", bare)
    yield Figure.of("health: start", "ms", measured["health"]["start"])
    for name in ("authorizer", "ID token", "backend", "session"):
        took, limit = measured[name], _ID_TOKEN_LIMIT if name == "ID token" else None
        if name != "ID token":
            yield Figure.of(f"{name}: start", "ms", took["start"])
            yield Figure.ratio(f"{name}: start to bare", took["start"], bare, limit=_LIMIT)
        yield Figure.of(f"{name}: response", "ms", took["response"])
        yield Figure.ratio(f"{name}: response to bare", took["response"], bare, limit=limit)
    chain = _chain(measured)
    yield Figure.of("chain: response", "ms", chain["response"])
    yield Figure.of("chain: wall", "ms", chain["wall"])
    yield Figure.ratio("chain: response to bare", chain["response"], bare)
    yield Figure.of("chain, kept warm: wall", "ms", chain["warm"])
    yield Figure.ratio("chain, kept warm: wall to cold", chain["warm"], chain["wall"])
    if f"beside: {_CHAIN[0]}" in measured:
        other = _chain(measured, "beside: ")
        then, name = other["response"], "chain to beside"
        yield Figure.of("chain, beside: response", "ms", then)
        yield Figure.ratio("chain, beside: response to bare", then, bare)
        yield Figure.ratio(f"{name}: response", chain["response"], then, limit=_CHAIN_LIMIT)
        yield Figure.ratio(f"{name}: wall", chain["wall"], other["wall"])


def _chain(measured: Mapping[str, Took], side: str = "") -> Took:
    first, then = (measured[side + name] for name in _CHAIN)
    return {of: [sum(both) for both in zip(first[of], then[of], strict=True)] for of in first}


def bundles(checkout: Path, functions: Collection[str]) -> dict[str, Path]:
    """Build a checkout's bundles with its own code in another process; return function -> bundle folder."""
    paths = printed(
        f"bundling the functions of {checkout}",
        *(sys.executable, "-c", _BUNDLES, *functions),
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": f"{checkout}{os.pathsep}{checkout / 'functions'}"},
    )
    return {name: Path(path) for name, path in json.loads(paths).items()}


def _make_bare(folder: Path) -> None:
    """Copy `boto3` and its dependencies from this environment; of the service models copy only S3's."""
    folder.mkdir(parents=True)
    for package in _BARE_PACKAGES:
        origin = Path(str(importlib.import_module(package).__file__))
        if origin.name == "__init__.py":
            shutil.copytree(origin.parent, folder / package, ignore=_others)
        else:
            shutil.copy2(origin, folder)


def _others(folder: str, names: list[str]) -> Collection[str]:
    return {*names} - _BARE_DATA if folder.endswith(f"botocore{os.sep}data") else ()


def start(s3: Mapping[str, str], path: Path, code: str, given: str) -> Mapping[str, float]:
    environment = {**ENVIRONMENT, **s3, "PATH": os.environ["PATH"], "PYTHONPATH": str(path)}
    # Both processes read the machine's monotonic clock.
    began = time.monotonic()
    # -S: without this environment's packages, only the bundle.
    answer = printed("a function", sys.executable, "-S", "-c", code, env=environment, input=given)
    (started, ready), (responded, processor) = json.loads(answer.splitlines()[-1])
    elapsed = {"wall": (responded - began) * 1000, "warm": (responded - started) * 1000}
    return {"start": ready * 1000, "response": processor * 1000, **elapsed}

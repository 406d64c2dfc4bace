"""Measure cold functions until their first response and, for comparison, the start of an S3 client alone."""

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
from benchmarks.stack import printed, program
from benchmarks.tiny_s3 import BUCKET, tiny_s3
from holdfast.access import Caller, Grant, Role
from holdfast.identity import tokens
from holdfast.identity.credentials import basic
from holdfast.team import WARM_UP
from local_aws.server import ROOT
from tests.support import events
from tests.support.certificates import create_certificates
from tests.support.environment import CREDENTIALS, SETTINGS

_ENVIRONMENT: Final = {**SETTINGS, **CREDENTIALS, "HOLDFAST_BUCKET": BUCKET, "POWERTOOLS_LOG_LEVEL": "INFO"}

# The packages of `boto3`, and the part of botocore's data that an S3 client reads: models of other services
# only make it slower.
_BARE_PACKAGES: Final = ("boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six", "urllib3")
_BARE_DATA: Final = frozenset({"s3", "endpoints.json", "partitions.json", "sdk-default-configuration.json"})

_CHAIN: Final = ("authorizer", "backend")
_NOTES: Final = (
    "Each process has only its bundle. S3 answers at once, over TLS. All but `wall` is processor time.",
    "`response` is until a function has responded to its first request.",
    "The bare client is a process that only runs boto3.client('s3').",
    "The chain is a plan's first request: its token by a cold authorizer, then its lock by a cold backend.",
    "`kept warm` is the same request where both had started before it and had only a warm-up since.",
)

Asked = tuple[str, Mapping[str, Any]]
"""The first request of a process: the folder of the function, and the event."""
Took = dict[str, list[float]]
"""Milliseconds of each round: processor time as `response`, and elapsed time as `wall`, and as `warm` from
the start's end."""


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
    asked, objects = _first_requests()
    _make_bare(folder / "bare")
    processes = {"bare client": (folder / "bare", "bare_client", "")}
    for side, checkout in (("", ROOT), ("beside: ", run.beside)):
        if checkout:
            built = bundles(checkout, [function for function, _ in asked.values()])
            for name, (function, event) in asked.items():
                # This version gets a warm-up and then its request; another version may not know it.
                given = json.dumps([function, event, None if side else WARM_UP])
                processes[side + name] = (built[function], "first_request", given)
    # For each function, the other version runs right after this version.
    in_turn = sorted(processes.items(), key=lambda item: item[0].removeprefix("beside: "))
    measured = {name: Took(response=[], wall=[], warm=[]) for name in processes}
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


def _first_requests() -> tuple[dict[str, Asked], dict[str, bytes]]:
    """Return two mappings: name -> first request, and key -> content of an S3 object that a request reads."""
    writer = Grant(Role.WRITER, ("*",))
    token, secret = tokens.create(
        [writer], description="", created_by="benchmark", now=datetime.now(UTC), expires=None
    )
    lock = json.dumps({"ID": "c0ffee", "Operation": "OperationTypePlan", "Who": "ada@laptop"})
    acquire = events.request(
        "PUT", "/locks/{name+}", "network/prod", caller=Caller("ada", (writer,)), body=lock
    )
    asked: dict[str, Asked] = {
        "authorizer": ("authorizer", events.sign_in(basic(token.id, secret))),
        "backend": ("terraform_http", acquire),
    }
    return asked, {token.key: token.to_json()}


def _figures(measured: Mapping[str, Took]) -> Iterator[Figure]:
    bare = measured["bare client"]["response"]
    for name in _CHAIN:
        yield Figure.of(f"{name}: response", "ms", measured[name]["response"])
    chain = _chain(measured)
    yield Figure.ratio("chain: response to bare", chain["response"], bare)
    yield Figure.of("chain: wall", "ms", chain["wall"])
    yield Figure.of("chain, kept warm: wall", "ms", chain["warm"])
    yield Figure.ratio("chain, kept warm: wall to cold", chain["warm"], chain["wall"])
    if f"beside: {_CHAIN[0]}" in measured:
        other = _chain(measured, "beside: ")
        yield Figure.ratio("chain to beside: response", chain["response"], other["response"])
        yield Figure.ratio("chain to beside: wall", chain["wall"], other["wall"])


def _chain(measured: Mapping[str, Took], side: str = "") -> Took:
    first, then = (measured[side + name] for name in _CHAIN)
    return {of: [sum(both) for both in zip(first[of], then[of], strict=True)] for of in first}


def bundles(checkout: Path, functions: Collection[str]) -> dict[str, Path]:
    """Build a checkout's bundles with its own code in another process; return function -> bundle folder."""
    paths = printed(
        f"bundling the functions of {checkout}",
        *(sys.executable, "-P", str(program("bundles")), *functions),
        cwd=checkout,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(str(checkout / folder) for folder in ("", "functions", "infra")),
        },
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


def start(s3: Mapping[str, str], path: Path, name: str, given: str) -> Mapping[str, float]:
    """Run a program that has only the packages in a folder; return its milliseconds, as in `Took`."""
    environment = {**_ENVIRONMENT, **s3, "PATH": os.environ["PATH"], "PYTHONPATH": str(path)}
    # Both processes read the machine's monotonic clock.
    began = time.monotonic()
    # -S: without this environment's packages; -P: without the modules beside the program.
    answer = printed("a function", sys.executable, "-S", "-P", program(name), env=environment, input=given)
    ready, responded, processor = json.loads(answer.splitlines()[-1])
    elapsed = {"wall": responded - began, "warm": responded - ready}
    return {of: 1000 * seconds for of, seconds in {"response": processor, **elapsed}.items()}

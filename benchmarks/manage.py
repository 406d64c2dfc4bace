"""Measure the management API: lists of many states, a page of a history, and a diff of two large versions."""

import gzip
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

import boto3

from benchmarks.figures import Figure, Section
from benchmarks.run import Run, tell
from benchmarks.stack import HOLDFAST, Client, printed
from benchmarks.state import state
from holdfast.s3.budget import Budget
from holdfast.s3.sdk import connect
from holdfast.s3.store import Store
from local_aws.server import ACCOUNT, REGION

_STATES: Final = (1000, 5000)
_AT_MOST: Final = 1.5
"""The largest allowed ratio of the function's time for a list to the time of its S3 requests."""
_FOLDER: Final = "benchmark/manage/"
_LOCK: Final = json.dumps({"ID": "manage", "Operation": "benchmark", "Who": "us"}).encode()
_COMPARED: Final = 5_000_000
_COMPARED_SECONDS: Final = 2.0

_NOTES: Final = (
    "Through the deployed API, with warm functions. The function's time is by its log, of all pages.",
    "S3: the same ListObjectsV2 requests in the same round, by the function's own client of S3 alone.",
    "Command: `holdfast state list --json`, from the start of its process.",
    "Diff: of two versions of 5 MB of which one resource in ten differs in one attribute, with values.",
)


def measure(run: Run) -> Section:
    """Measure lists of states, a page of a history and a diff of two versions."""
    return Section("The management API", [*_lists(run), *_history(run), *_diff(run)], _NOTES)


def _lists(run: Run) -> Iterator[Figure]:
    client, plain = run.stack.api(), run.stack.s3()
    keys = run.stack.aws.environment()
    session = boto3.Session(keys["AWS_ACCESS_KEY_ID"], keys["AWS_SECRET_ACCESS_KEY"], region_name=REGION)
    s3 = connect(session, endpoint_url=run.stack.aws.endpoint)
    command = (HOLDFAST, "state", "list", "--json")
    environment = {**run.stack.environment(), "HOLDFAST_ADDRESS": run.stack.address}
    for number in _STATES:
        tell(f"{number:,} states")
        folder = f"{_FOLDER}{number}/"
        for each in range(number):
            plain.ask("PUT", f"/states/{folder}team-{each // 50:03}/service-{each:04}.tfstate", b"{}")
        took = defaultdict[str, list[float]](list)
        for _ in range(run.rounds + 1):
            seen = len(run.stack.log("", "management"))
            client_ms, after = _pages(client, folder, number)
            lines = run.stack.log("", "management")[seen:]
            took["requests"].append(sum(line["s3_requests"] for line in lines))
            took["function"].append(sum(line["milliseconds"] for line in lines))
            took["client"].append(client_ms)
            started = time.perf_counter()
            store = Store(s3, run.stack.bucket, ACCOUNT, Budget.seconds(60))
            for key in after:
                store.keys_page(f"states/{folder}", after=key)
            listed = time.perf_counter()
            printed("holdfast state list", *command, folder, env=environment)
            took["S3"].append(1000 * (listed - started))
            took["command"].append(1000 * (time.perf_counter() - listed))
        for values in took.values():
            del values[0]  # the first round may have started the function
        name = f"list of {number:,} states"
        yield Figure.count(f"{name}: S3 requests", took["requests"])
        yield Figure.of(f"{name}: in the function", "ms", took["function"])
        yield Figure.of(f"{name}: S3", "ms", took["S3"])
        yield Figure.ratio(f"{name}: ratio", took["function"], took["S3"], limit=_AT_MOST)
        yield Figure.of(f"{name}: at the client", "ms", took["client"])
        yield Figure.of(f"{name}: command", "ms", took["command"])


def _pages(client: Client, prefix: str, expected: int) -> tuple[float, list[str]]:
    """Read all pages of a list; return the milliseconds of all requests, and each page's start key."""
    asked = {"prefix": prefix}
    after, listed, took = [""], 0, 0.0
    while True:
        response = client.ask("GET", f"/manage/v1/states?{urlencode(asked)}")
        # Small pages are not compressed.
        packed = response.body.startswith(b"\x1f\x8b")
        page = json.loads(gzip.decompress(response.body) if packed else response.body)
        took += response.ms
        listed += len(page["states"])
        if page["next"] is None:
            break
        asked["cursor"] = page["next"]
        after.append(f"states/{page['states'][-1]['name']}.tfstate")
    if listed != expected:
        raise RuntimeError(f"{listed} states were listed instead of {expected}")
    return took, after


def _history(run: Run) -> Iterator[Figure]:
    states = (state(serial, 10_000) for serial in range(1, 26))
    lines, took = _written_and_asked(run, "versions/{}", "history.read", *states)
    yield Figure.count("history, a page: S3 requests", [line["s3_requests"] for line in lines])
    yield Figure.of("history, a page: in the function", "ms", [line["milliseconds"] for line in lines])
    yield Figure.of("history, a page: at the client", "ms", took)


def _diff(run: Run) -> Iterator[Figure]:
    tell("diff of 5 MB")
    before = state(1, _COMPARED)
    lines, took = _written_and_asked(run, "diff/{}?values=true", "state.compared", before, _changed(before))
    yield Figure.of("diff of 5 MB: in the function", "s", [line["milliseconds"] / 1000 for line in lines])
    yield Figure.of("diff of 5 MB: at the client", "s", [ms / 1000 for ms in took], limit=_COMPARED_SECONDS)


def _written_and_asked(
    run: Run, path: str, event: str, *states: bytes
) -> tuple[Sequence[Mapping[str, Any]], Sequence[float]]:
    """Write versions of a state, then request `path` in rounds; return log lines and milliseconds."""
    client, name = run.stack.api(), f"{_FOLDER}{event}"
    client.ask("PUT", f"/locks/{name}", _LOCK)
    for document in states:
        client.ask("POST", f"/states/{name}?ID=manage", document)
    client.ask("DELETE", f"/locks/{name}", _LOCK)
    took = [client.ask("GET", f"/manage/v1/{path.format(name)}").ms for _ in range(run.rounds + 1)]
    lines = [line for line in run.stack.log(name, "management") if line["message"] == event]
    return lines[1:], took[1:]  # the first request may have started the function


def _changed(body: bytes) -> bytes:
    """Return a state's next version: one resource in ten has another instance type."""
    document = json.loads(body)
    document["serial"] += 1
    for resource in document["resources"][::10]:
        resource["instances"][0]["attributes"]["instance_type"] = "m8g.2xlarge"
    return json.dumps(document, indent=2).encode()

"""Measure the management API: lists of many states, a page of a history, and a diff of two large versions."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from benchmarks.figures import Figure, Section
from benchmarks.run import MANY, Run, tell
from benchmarks.stack import Client
from benchmarks.state import state

_FOLDER: Final = "benchmark/manage/"
_LOCK: Final = json.dumps({"ID": "manage", "Operation": "benchmark", "Who": "us"}).encode()
_COMPARED: Final = 5_000_000

_NOTES: Final = (
    "Through the deployed API, with warm functions. The function's time is by its log, of all pages.",
    "Diff: of two versions of 5 MB of which one resource in ten differs in one attribute, with values.",
)


def measure(run: Run) -> Section:
    """Measure lists of states, a page of a history and a diff of two versions."""
    return Section("The management API", [*_lists(run), *_history(run), *_diff(run)], _NOTES)


def _lists(run: Run) -> Iterator[Figure]:
    client = run.stack.api()
    for number in run.some(MANY):
        folder = run.states(number)
        took = defaultdict[str, list[float]](list)
        for _ in range(run.rounds + 1):
            seen = len(run.stack.log("", "management"))
            _list(client, folder, number)
            lines = run.stack.log("", "management")[seen:]
            took["requests"].append(sum(line["s3_requests"] for line in lines))
            took["function"].append(sum(line["milliseconds"] for line in lines))
        for values in took.values():
            del values[0]  # the first round may have started the function
        name = f"list of {number:,} states"
        yield Figure.count(f"{name}: S3 requests", took["requests"])
        yield Figure.of(f"{name}: in the function", "ms", took["function"])


def _list(client: Client, prefix: str, expected: int) -> None:
    """Read all pages of a list."""
    query, listed = {"prefix": prefix}, 0
    while True:
        page = client.ask("GET", f"/manage/v1/states?{urlencode(query)}").json()
        listed += len(page["states"])
        if page["next"] is None:
            break
        query["cursor"] = page["next"]
    if listed != expected:
        raise RuntimeError(f"{listed} states were listed instead of {expected}")


def _history(run: Run) -> Iterator[Figure]:
    states = (state(serial, 10_000) for serial in range(1, 26))
    lines = _written_and_asked(run, "versions/{}", "history.read", *states)
    yield Figure.count("history, a page: S3 requests", [line["s3_requests"] for line in lines])
    yield Figure.of("history, a page: in the function", "ms", [line["milliseconds"] for line in lines])


def _diff(run: Run) -> Iterator[Figure]:
    tell("diff of 5 MB")
    before = state(1, _COMPARED)
    lines = _written_and_asked(run, "diff/{}?values=true", "state.compared", before, _changed(before))
    yield Figure.of("diff of 5 MB: in the function", "s", [line["milliseconds"] / 1000 for line in lines])


def _written_and_asked(run: Run, path: str, event: str, *states: bytes) -> Sequence[Mapping[str, Any]]:
    """Write versions of a state, then request `path` in rounds; return the log's line of each."""
    client, name = run.stack.api(), f"{_FOLDER}{event}"
    client.ask("PUT", f"/locks/{name}", _LOCK)
    for document in states:
        client.ask("POST", f"/states/{name}?ID=manage", document)
    client.ask("DELETE", f"/locks/{name}", _LOCK)
    for _ in range(run.rounds + 1):
        client.ask("GET", f"/manage/v1/{path.format(name)}")
    lines = [line for line in run.stack.log(name, "management") if line["message"] == event]
    return lines[1:]  # the first request may have started the function


def _changed(body: bytes) -> bytes:
    """Return a state's next version: one resource in ten has another instance type."""
    document = json.loads(body)
    document["serial"] += 1
    for resource in document["resources"][::10]:
        resource["instances"][0]["attributes"]["instance_type"] = "m8g.2xlarge"
    return json.dumps(document, indent=2).encode()

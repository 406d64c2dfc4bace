"""Reading and writing states of several sizes, beside plain requests for the same bytes to the same S3."""

import http.client
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from benchmarks.figures import Figure, Section
from benchmarks.run import Run, tell
from benchmarks.stack import Client, Stack
from benchmarks.state import state

_MEGABYTES: Final = (0.1, 1, 5)
_LOCK: Final = json.dumps({"ID": "size", "Operation": "benchmark", "Who": "us"}).encode()
_EVENTS: Final = {"write": "state.written", "read": "state.read"}

_NOTES: Final = (
    "Of one state under a lock, through the deployed API, as Terraform's client asks: reads accept gzip.",
    "Beside: PutObject and GetObject of the same bytes, not compressed and not signed, to the same local S3.",
    "`on the wire` is the body of a read's response as it came, `in the function` is by the function's log.",
)


def measure(run: Run) -> Section:
    """Write and read states of each size, through Holdfast and past it, in turn.

    Raises:
        RuntimeError: a request was refused.
    """
    return Section("States of several sizes", [*_figures(run)], _NOTES)


def _figures(run: Run) -> Iterator[Figure]:
    client, plain = Client(run.stack), _PlainS3(run.stack)
    for megabytes in _MEGABYTES:
        tell(f"{megabytes} MB")
        name = f"benchmark/size/{megabytes}-MB"
        client.ask("PUT", f"/locks/{name}", _LOCK)
        took = defaultdict[str, list[float]](list)
        for serial in range(run.rounds + 1):
            document = state(serial, round(megabytes * 1_000_000))
            wrote = client.ask("POST", f"/states/{name}?ID=size", document)
            put = plain.put(name, document)
            read = client.send("GET", f"/states/{name}")
            got = plain.get(name)
            if serial:  # the first one found no state, and may have found no function that ran
                took["write"].append(wrote * 1000)
                took["PutObject"].append(put * 1000)
                took["read"].append(read.seconds * 1000)
                took["GetObject"].append(got * 1000)
                took["on the wire"].append(read.received / 1000)
        client.ask("DELETE", f"/locks/{name}", _LOCK)
        yield from _of_size(f"{megabytes} MB", took, run.stack.log(name))


def _of_size(
    size: str, took: Mapping[str, Sequence[float]], log: Sequence[Mapping[str, Any]]
) -> Iterator[Figure]:
    for verb, beside in (("write", "PutObject"), ("read", "GetObject")):
        _, *lines = [line["milliseconds"] for line in log if line["message"] == _EVENTS[verb]]
        yield Figure.of(f"{size}, {verb}: at the client", "ms", took[verb])
        yield Figure.of(f"{size}, {verb}: in the function", "ms", lines)
        yield Figure.of(f"{size}, {verb}: {beside}", "ms", took[beside])
        ratios = [ours / theirs for ours, theirs in zip(took[verb], took[beside], strict=True)]
        yield Figure.of(f"{size}, {verb}: ratio", "ratio", ratios)
    yield Figure.of(f"{size}, read: on the wire", "KB", took["on the wire"])


class _PlainS3:
    """The local S3, asked without a signature, which it does not need, and without the SDK's time."""

    def __init__(self, stack: Stack) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(stack.aws.endpoint).netloc, timeout=60)
        self._folder = f"/{stack.bucket}/native"

    def put(self, name: str, body: bytes) -> float:
        """Store an object; return how long it took, in seconds."""
        return self._ask("PUT", name, body)

    def get(self, name: str) -> float:
        """Read an object; return how long it took, in seconds."""
        return self._ask("GET", name)

    def _ask(self, method: str, name: str, body: bytes | None = None) -> float:
        started = time.perf_counter()
        self._connection.request(method, f"{self._folder}/{name}", body)
        answer = self._connection.getresponse()
        answer.read()
        seconds = time.perf_counter() - started
        if answer.status != http.HTTPStatus.OK:
            raise RuntimeError(f"S3 answered {method} with {answer.status}")
        return seconds

"""Reading and writing states of several sizes, beside plain requests for the same bytes to the same S3."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from benchmarks.figures import Figure, Section
from benchmarks.run import Run, tell
from benchmarks.stack import Client, PlainS3
from benchmarks.state import state

_MEGABYTES: Final = (0.1, 1, 5)
_LOCK: Final = json.dumps({"ID": "size", "Operation": "benchmark", "Who": "us"}).encode()
_EVENTS: Final = {"write": "state.written", "read": "state.read"}

_NOTES: Final = (
    "Of one state under a lock, through the deployed API, as Terraform's client asks: reads accept gzip.",
    "Beside: PutObject and GetObject of the same bytes, not compressed and not signed, to the same local S3.",
    "The ratio is of the time at the client, so the emulator's gateway and invocation are in it.",
    "`on the wire` is the body of a read's response as it came, `in the function` is by the function's log.",
)


def measure(run: Run) -> Section:
    """Write and read states of each size, through Holdfast and past it, in turn."""
    return Section("States of several sizes", [*_figures(run)], _NOTES)


def _figures(run: Run) -> Iterator[Figure]:
    client, plain = Client(run.stack), PlainS3(run.stack)
    for megabytes in _MEGABYTES:
        tell(f"{megabytes} MB")
        name = f"benchmark/size/{megabytes}-MB"
        client.ask("PUT", f"/locks/{name}", _LOCK)
        took = defaultdict[str, list[float]](list)
        for serial in range(run.rounds + 1):
            document = state(serial, round(megabytes * 1_000_000))
            wrote = client.ask("POST", f"/states/{name}?ID=size", document)
            put = plain.ask("PUT", f"/native/{name}", document)
            read = client.ask("GET", f"/states/{name}")
            got = plain.ask("GET", f"/native/{name}")
            if serial:  # the first one found no state, and may have found no function that ran
                for verb, response in (
                    ("write", wrote),
                    ("PutObject", put),
                    ("read", read),
                    ("GetObject", got),
                ):
                    took[verb].append(response.seconds * 1000)
                took["on the wire"].append(len(read.body) / 1000)
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
        yield Figure.ratio(f"{size}, {verb}: ratio", took[verb], took[beside])
    yield Figure.of(f"{size}, read: on the wire", "KB", took["on the wire"])

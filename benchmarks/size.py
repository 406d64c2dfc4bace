"""Measure reads and writes of states of several sizes; compare with plain S3 requests of the same bytes."""

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from benchmarks.figures import Figure, Section
from benchmarks.run import Run, tell
from benchmarks.state import state

_MEGABYTES: Final = (0.1, 1, 5)
_LOCK: Final = json.dumps({"ID": "size", "Operation": "benchmark", "Who": "us"}).encode()

_NOTES: Final = (
    "Of one state under a lock, through the deployed API, as Terraform's client asks: reads accept gzip.",
    "The ratio is to a PutObject or GetObject of the same bytes, not compressed and not signed, to the same",
    "  local S3. Both times are at the client, so the emulator's gateway and invocation are in it.",
    "`on the wire` is the body of a read's response as it came.",
)


def measure(run: Run) -> Section:
    """Write and read states of each size, through Holdfast and directly in S3, in turn."""
    return Section("States of several sizes", [*_figures(run)], _NOTES)


def _figures(run: Run) -> Iterator[Figure]:
    client, plain = run.stack.api(), run.stack.s3()
    for megabytes in run.some(_MEGABYTES):
        tell(f"{megabytes} MB")
        name = f"benchmark/size/{megabytes}-MB"
        client.ask("PUT", f"/locks/{name}", _LOCK)
        took = defaultdict[str, list[float]](list)
        for serial in range(run.rounds + 1):
            document = state(serial, round(megabytes * 1_000_000))
            responses = {
                "write": client.ask("POST", f"/states/{name}?ID=size", document),
                "PutObject": plain.ask("PUT", f"/native/{name}", document),
                "read": client.ask("GET", f"/states/{name}"),
                "GetObject": plain.ask("GET", f"/native/{name}"),
            }
            if serial:  # in the first round there was no state yet, and perhaps a cold start
                for verb, response in responses.items():
                    took[verb].append(response.ms)
                took["on the wire"].append(len(responses["read"].body) / 1000)
        client.ask("DELETE", f"/locks/{name}", _LOCK)
        for verb, beside in (("write", "PutObject"), ("read", "GetObject")):
            what = f"{megabytes} MB, {verb}"
            yield Figure.of(f"{what}: at the client", "ms", took[verb])
            yield Figure.ratio(f"{what}: ratio", took[verb], took[beside])
        yield Figure.of(f"{megabytes} MB, read: on the wire", "KB", took["on the wire"])

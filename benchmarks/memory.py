"""`python -m benchmarks.memory`: what the functions that verify credentials cost with how much memory.

It measures processor time on this machine and computes the rest from what AWS documents.
"""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from benchmarks.cold_start import ENVIRONMENT, Asked, first_requests
from benchmarks.tiny_s3 import tiny_s3
from infra.bundle import bundle

SIZES: Final = (256, 512, 1024, 1769)
"""Megabytes that are compared; the last are one vCPU (Lambda's guide, "Configure Lambda function memory")."""

PRICE: Final = 0.0000133334
"""Dollars for a GB and second on arm64 (AWS Lambda pricing, US East, first tier)."""

_WAITING_MS: Final = 20
"""Assumed for the answer of one S3 request in the same region; memory does not change it."""

_ROUNDS: Final = 15
_WARM: Final = 200

_S3_REQUESTS: Final = {"authorizer": 1, "session": 2}
"""Of each of the compared first requests, by its name."""

_RUN: Final = """
import importlib, json, sys, time, types
function, event, warm = json.load(sys.stdin)
handler = importlib.import_module(f"{function}.handler")
context = types.SimpleNamespace(get_remaining_time_in_millis=lambda: 9000)
answer = handler.handle(event, context)
assert answer.get("isAuthorized") or answer.get("statusCode") == 200, answer
took = []
for _ in range(warm):
    started = time.process_time()
    handler.handle(event, context)
    took.append(time.process_time() - started)
print(min(took, default=0) * 1000)
"""


@dataclass(frozen=True, slots=True)
class Processor:
    """What a function takes of a processor, in milliseconds.

    Attributes:
        cold: from the start of its process until it has responded for the first time.
        warm: one request later on.
        s3_requests: how many each request waits for.
    """

    cold: float
    warm: float
    s3_requests: int


@dataclass(frozen=True, slots=True)
class Cost:
    """What a request takes with some memory.

    Attributes:
        ms: until the response.
        dollars: for a million of them, without what Lambda asks for each request.
    """

    ms: float
    dollars: float


def cost(processor_ms: float, waiting_ms: float, megabytes: int) -> Cost:
    """Compute what a request takes: below one vCPU its share is in proportion to the memory.

    >>> cost(400, 20, 1769).ms, round(cost(400, 20, 512).ms)
    (420.0, 1402)
    """
    ms = processor_ms / min(1, megabytes / 1769) + waiting_ms
    return Cost(ms, ms / 1000 * megabytes / 1024 * PRICE * 1_000_000)


def measure(rounds: int = _ROUNDS) -> dict[str, Processor]:
    """Measure both functions with bytecode, against an S3 on this machine without TLS.

    The least of several processes counts: whatever else the machine does only adds to it.
    """
    first, objects = first_requests()
    with tiny_s3(objects) as address:
        return {
            first[name].function: Processor(
                min(_run(first[name], address)[0] for _ in range(rounds)),
                _run(first[name], address, _WARM)[1],
                s3_requests,
            )
            for name, s3_requests in _S3_REQUESTS.items()
        }


def table(measured: Mapping[str, Processor]) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    yield "| Function | Memory | Cold | A million cold | Warm | A million warm |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for function, processor in measured.items():
        waiting = processor.s3_requests * _WAITING_MS
        for megabytes in SIZES:
            cold, warm = (cost(ms, waiting, megabytes) for ms in (processor.cold, processor.warm))
            yield (
                f"| {function} | {megabytes} MB | {cold.ms:,.0f} ms | {cold.dollars:.2f} dollars "
                f"| {warm.ms:.0f} ms | {warm.dollars:.2f} dollars |"
            )


def _run(asked: Asked, address: str, warm: int = 0) -> tuple[float, float]:
    """Start a function's process; return its processor time, and that of a warm request."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(
        [sys.executable, "-S", "-c", _RUN],
        env={
            **ENVIRONMENT,
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(bundle(asked.function, "local").path),
            "AWS_ENDPOINT_URL_S3": address,
        },
        input=json.dumps([asked.function, asked.event, warm]),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return took * 1000, float(ended.stdout.splitlines()[-1])


def main() -> None:
    """Measure and print."""
    measured = measure()
    for function, processor in measured.items():
        print(f"{function}: {processor.cold:.0f} ms of a processor cold, {processor.warm:.1f} ms warm")
    print("\n".join(table(measured)))


if __name__ == "__main__":
    main()

"""Measure an import of many small states beside the same requests without the import."""

import json
import os
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import boto3

from benchmarks.figures import Figure, Section
from benchmarks.run import Run, tell
from benchmarks.stack import HOLDFAST, Stack, printed
from holdfast import names
from holdfast.state import document
from holdfast_cli.api import http
from holdfast_cli.api.management import Api
from holdfast_cli.importing import sources
from holdfast_cli.importing.copying import lock_info
from holdfast_cli.importing.new_place import NewPlace
from holdfast_cli.importing.source import AT_ONCE, OldLock, Settings

_STATES: Final = 1000
_ROUNDS: Final = 2
"""Each round imports `_STATES` states and sends the same requests for as many others."""
_ALONE: Final = 1.2
_BUCKET: Final = "benchmark-import"

_NOTES: Final = (
    "Import: `holdfast import run` with a new process, from a bucket of the same local AWS, read back.",
    "Requests: the same ones, for other names, from as many threads, without journal and comparison.",
)


def measure(run: Run) -> Section:
    """Measure `holdfast import run`, and the time that its requests alone take."""
    ours, alone = [], []
    for number in range(_ROUNDS):
        tell(f"{_STATES:,} states, round {number + 1} of {_ROUNDS}")
        address = _written(run.stack, number)
        with _environment(run.stack):
            alone.append(_requests(run.stack, address, number))
            ours.append(_imported(run.stack, address, run.folder / f"{number}.toml"))
    return Section(
        "Import",
        [
            Figure.of(f"{_STATES:,} states: import", "s", ours),
            Figure.of(f"{_STATES:,} states: their requests alone", "s", alone),
            Figure.ratio(f"{_STATES:,} states: import to requests", ours, alone, limit=_ALONE),
        ],
        _NOTES,
    )


@contextmanager
def _environment(stack: Stack) -> Iterator[None]:
    """Set the environment of a command that uses the stack, for the SDK in this process."""
    before = dict(os.environ)
    os.environ.update(stack.environment())
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _written(stack: Stack, number: int) -> str:
    """Write the states into a bucket, and return their address."""
    with _environment(stack):
        s3 = boto3.client("s3")
    if number == 0:
        s3.create_bucket(Bucket=_BUCKET)
    for each in range(_STATES):
        body = {"version": 4, "serial": 1, "lineage": str(uuid.uuid4()), "outputs": {}, "resources": []}
        s3.put_object(Bucket=_BUCKET, Key=f"{number}/{each}.tfstate", Body=json.dumps(body).encode())
    return f"s3://{_BUCKET}/{number}"


def _imported(stack: Stack, address: str, plan: Path) -> float:
    rule = f"{{key}}.tfstate=import/{plan.stem}/{{key}}"
    command = HOLDFAST, "import"
    where = "--address", stack.address
    environment = stack.environment()
    plan.write_text(printed("the plan", *command, "plan", address, "--map", rule, *where, env=environment))
    begun = time.perf_counter()
    printed("the import", *command, "run", plan, *where, env=environment)
    return time.perf_counter() - begun


def _requests(stack: Stack, address: str, number: int) -> float:
    """Send the requests of an import, and return the seconds."""
    source = sources.open_source(Settings((address,)))
    token = stack.environment()
    basic = http.basic(token["TF_HTTP_USERNAME"], token["TF_HTTP_PASSWORD"])
    place = NewPlace(Api(stack.address, basic, "the benchmark"))
    states: Sequence[str] = [state.id for state in source.states()]

    def copy(state: str) -> None:
        name = names.parse(f"import/alone/{number}/{Path(state).stem}")
        lock = OldLock(lock_info(""))
        source.lock(state, lock)
        body = source.read(state) or b""
        place.lock(name, lock.info, "")
        place.describe(name)
        place.write(name, body, document.parse(body).revision, lock.info, "")
        place.read(name)
        place.unlock(name, lock.info, "")
        source.unlock(state, lock)

    begun = time.perf_counter()
    with http.kept_connections(), ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(copy, states))
    return time.perf_counter() - begun

"""Generated requests to a deployed team: they cause no 5xx, and a refused request changes nothing.

    fuzz.run(requests=500, seconds=60, seed=1, say=print, stack=stack)

Each batch has its own names: a locked state and an unlocked state that it could destroy. Batches run in
parallel; the requests of a batch run one after another. After every request the history of the batch's
states is listed. The seed and the batch's number alone determine a batch, so it can be run alone (`only`).

Nothing else may inject faults meanwhile: a fault on the wire would look like a fault of the functions.
"""

import contextlib
import gzip
import http.client
import json
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import unquote, urlsplit

import yaml
from jsonschema_rs import Draft202012Validator

from holdfast.access import Role
from tests.safety.figures import Figures
from tests.safety.fuzz_requests import (
    CLOUD,
    CURRENT,
    DOCUMENT,
    LOCK_VERSION,
    MANAGEMENT,
    OLDER,
    Ground,
    Request,
    bearer,
    generated,
    with_versions,
)
from tests.support import documents

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

    from tests.safety.wire.stack import Stack

_BATCH: Final = 50
_WORKERS: Final = 4
_TIME_LIMIT: Final = 40.0  # longer than the gateway's 30 s
_REPORTS: Final = 20

History = frozenset[tuple[str, str, bool]]
"""The key and ID of every version and delete marker, and whether it is the latest."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response. `headers` have lower-case names."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class Door(Protocol):
    """The way by which a batch sends its requests."""

    def send(self, request: Request) -> Answer | None:
        """Return the response, None if the connection ended without a response."""

    def close(self) -> None:
        """Close the connections."""


@dataclass(frozen=True, slots=True)
class Target:
    """The deployed team, as the batches see it.

    `door` makes a door for a batch. `history` lists every object whose key begins with a prefix.
    `tokens` are values of `Authorization` by role, for the states below `prefix`.
    """

    door: Callable[[], Door]
    history: Callable[[str], History]
    tokens: Mapping[str, str]
    prefix: str


def run(
    *,
    requests: int,
    seconds: float,
    seed: int,
    say: Callable[[str], None],
    stack: "Stack",
    only: int | None = None,
) -> Figures:
    """Send generated requests to a deployed team. With `only`, run only the batch with this number."""
    prefix = f"fuzz-{seed}-{int(time.time())}"
    tokens = {role.value: stack.token(role, f"{prefix}/*").header for role in Role}
    target = Target(
        door=lambda: Wire(stack.gateway.address, stack.direct_address),
        history=lambda below: history(stack.s3, stack.bucket, below),
        tokens=tokens,
        prefix=prefix,
    )
    before = {key for key, _, _ in target.history("states/")}
    figures = fuzz(target, requests=requests, seconds=seconds, seed=seed, say=say, only=only)
    strays = _strays(stack, target, before, tokens)
    for stray in strays:
        say(f"fuzz: VIOLATION: {stray} was written with a token that covers {prefix}/* alone (seed {seed})")
    return figures + Figures(violations=len(strays))


def fuzz(
    target: Target,
    *,
    requests: int,
    seconds: float,
    seed: int,
    say: Callable[[str], None],
    only: int | None = None,
) -> Figures:
    """Send generated requests to a target; see `run`."""
    began = time.monotonic()
    statuses: Counter[int | None] = Counter()
    total, reported = Figures(), 0
    batches = [number for number in range(-(-requests // _BATCH)) if only in (None, number)]
    with ThreadPoolExecutor(_WORKERS) as pool:
        for start in range(0, len(batches), _WORKERS):
            if time.monotonic() - began > seconds:
                say(f"fuzz: out of time after {seconds:.0f} s")
                break
            running = []
            for number in batches[start : start + _WORKERS]:
                ground = Ground(f"{target.prefix}/{number}", target.tokens)
                size = min(_BATCH, requests - number * _BATCH)
                made = generated(ground, size, seed * 1_000_003 + number)
                running.append(pool.submit(_batch, target, ground, number, made))
            for outcome in (each.result() for each in running):
                statuses.update(outcome.statuses)
                total += Figures(
                    operations=outcome.prepared,
                    requests_fuzzed=sum(outcome.statuses.values()),
                    violations=len(outcome.faults),
                )
                for fault in outcome.faults[: max(0, _REPORTS - reported)]:
                    say(f"fuzz: VIOLATION: {fault}\n  again: seed {seed}, batch {outcome.number}")
                reported += len(outcome.faults)
    took = time.monotonic() - began
    shown = ", ".join(f"{status or 'none'}: {count}" for status, count in sorted(statuses.items(), key=str))
    found = f"{total.violations} violations; answers {shown}"
    say(f"fuzz: {total.requests_fuzzed} requests in {took:.1f} s, {found}")
    return total


@dataclass(slots=True)
class _Outcome:
    """The result of a batch.

    `prepared` counts the requests that created its ground. `statuses` counts the responses to its generated
    requests. `faults` describe what should not have happened.
    """

    number: int
    prepared: int = 0
    statuses: Counter[int | None] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def _batch(target: Target, ground: Ground, number: int, requests: Sequence[Request]) -> _Outcome:
    outcome = _Outcome(number)
    door = target.door()
    with contextlib.closing(door):
        for prepared in _preparations(ground):
            answer = door.send(prepared)
            if answer is None or answer.status != 200:
                raise RuntimeError(f"The ground could not be made: {_shown(prepared, ground)} -> {answer}")
            outcome.prepared += 1
        before = target.history(f"states/{ground.prefix}/")
        for position, made in enumerate(requests):
            request = with_versions(made, _versions(made, ground, before))
            answer = door.send(request)
            after = target.history(f"states/{ground.prefix}/")
            outcome.statuses[answer.status if answer else None] += 1
            outcome.faults += (
                f"{fault}\n  request {position}: {_shown(request, ground)}\n  answer: {answer}"
                for fault in faults(request, answer, before, after)
            )
            before = after
    return outcome


def _versions(request: Request, ground: Ground, history: History) -> Mapping[str, str]:
    """Return the versions of the state in a request, by their placeholders."""
    state = ground.locked if ground.locked in request.target else ground.free
    key = f"states/{state}.tfstate"
    found = sorted((entry for entry in history if entry[0].startswith(key)), key=lambda entry: entry[1])
    ids = {}
    for entry_key, version, is_latest in found:
        placeholder = CURRENT if is_latest else OLDER
        ids[placeholder if entry_key == key else LOCK_VERSION] = version
    return ids


def _preparations(ground: Ground) -> Iterator[Request]:
    """Yield the requests that create the states and the lock of the ground."""
    writer = ground.tokens["writer"]

    def request(method: str, target: str, body: bytes) -> Request:
        headers = (
            ("Authorization", writer),
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))),
        )
        return Request(method, target, headers, body)

    passing = documents.lock_info("passing")
    yield request("PUT", f"/locks/{ground.free}", passing)
    # Two versions, so that a restore has an earlier version.
    yield request("POST", f"/states/{ground.free}?ID=passing", documents.state(4))
    yield request("POST", f"/states/{ground.free}?ID=passing", documents.state(5))
    yield request("DELETE", f"/locks/{ground.free}", passing)
    yield request("PUT", f"/locks/{ground.locked}", ground.held)
    lock_id = documents.lock_id(ground.held)
    yield request("POST", f"/states/{ground.locked}?ID={lock_id}", documents.state(5))


def _strays(stack: "Stack", target: Target, before: set[str], tokens: Mapping[str, str]) -> list[str]:
    """Return new keys outside of the tokens' scope that were written with one of the tokens."""
    principals = {stack.token(role, f"{target.prefix}/*").username for role in tokens}
    new = {
        (key, version)
        for key, version, _ in target.history("states/")
        if key not in before and not key.startswith(f"states/{target.prefix}/")
    }
    found = []
    for key, version in sorted(new):
        head = stack.s3.head_object(Bucket=stack.bucket, Key=key, VersionId=version)
        writers = {head["Metadata"].get("written-by", ""), head["Metadata"].get("locked-by", "")}
        if any(unquote(writer).removeprefix("token:") in principals for writer in writers):
            found.append(key)
    return found


def history(s3: "S3Client", bucket: str, prefix: str) -> History:
    """Return every version and delete marker in a bucket below a prefix."""
    return frozenset(
        (item["Key"], item["VersionId"], item["IsLatest"])
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix)
        for item in [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
    )


def _shown(request: Request, ground: Ground) -> str:
    """Return a request as text, with a role in place of each token."""
    roles = {token: f"<{role}>" for role, token in ground.tokens.items()}
    text = repr(request)
    for token, role in roles.items():
        text = text.replace(token, role).replace(bearer(token), role)
    return text if len(text) < 4000 else f"{text[:3000]} … {text[-500:]} ({len(text)} characters)"


# --- what must hold ------------------------------------------------------------------------------


def faults(request: Request, answer: Answer | None, before: History, after: History) -> Iterator[str]:
    """Yield a description of each fault in a response, and in the changes that the request made."""
    if answer is None:
        if request.whole:
            yield "no answer"
    elif answer.status >= 500:
        yield f"status {answer.status}"
    elif (wrong := _undescribed(request, answer)) is not None:
        yield wrong
    if before == after:
        return
    is_commit = request.target.startswith(f"{CLOUD}state-versions/upload-")
    may_change = is_commit or request.method not in ("GET", "HEAD", "OPTIONS", "PATCH")
    if answer is None or answer.status >= 300 or not may_change:
        status = answer.status if answer else "nothing"
        changes = f"new {sorted(after - before)}, gone {sorted(before - after)}"
        yield f"changed by a request that was answered {status}: {changes}"


_NOT_FOUND: Final = (CLOUD, MANAGEMENT, "/console/")
"""Paths with responses that are 404. Elsewhere a client reads 404 as "no state"."""
# Responses of the gateway itself, before it looks for a route.
_OF_THE_GATEWAY: Final = frozenset({400, 413, 431})


def _undescribed(request: Request, answer: Answer) -> str | None:
    """Return how a response differs from docs/openapi.yaml, None if it does not."""
    if not request.operation:
        is_wrong = answer.status == 404 and not unquote(request.target).startswith(_NOT_FOUND)
        return "a client reads 404 as 'no state'" if is_wrong else None
    path, verb = request.operation
    response = _document()["paths"][path][verb]["responses"].get(str(answer.status))
    if response is None:
        return f"it is not described that {verb} {path} is answered {answer.status}"
    if "$ref" in response:
        response = _document()["components"]["responses"][response["$ref"].rpartition("/")[2]]
    schemas = [each["schema"] for kind, each in response.get("content", {}).items() if "json" in kind]
    if not schemas or request.method == "HEAD":
        return None
    if answer.status in _OF_THE_GATEWAY:
        schemas.append({"$ref": "#/components/schemas/GatewayError"})
    try:
        body = json.loads(answer.body)
    except ValueError:
        return "its body is no JSON"
    is_described = any(_validator(json.dumps(schema)).is_valid(body) for schema in schemas)
    return None if is_described else "its body is not as described"


@cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(DOCUMENT.read_text())
    return document


@cache
def _validator(schema: str) -> Draft202012Validator:
    return Draft202012Validator({**json.loads(schema), "components": _document()["components"]})


# --- the wire ------------------------------------------------------------------------------------


class Wire:
    """Sends requests unchanged.

    Requests that AWS accepts go to `gateway`, which has AWS's limits. The others go to the API at `direct`.
    """

    def __init__(self, gateway: str, direct: str) -> None:
        self._gateway = _Connection(gateway)
        self._direct = _Connection(direct)

    def send(self, request: Request) -> Answer | None:
        return (self._gateway if request.for_gateway else self._direct).send(request)

    def close(self) -> None:
        self._gateway.close()
        self._direct.close()


class _Connection:
    """A connection that stays open as long as both sides agree on the end of each request."""

    def __init__(self, address: str) -> None:
        url = urlsplit(address)
        self._host, self._port, self._base = url.hostname or "", url.port or 80, url.path
        self._socket: socket.socket | None = None

    def send(self, request: Request) -> Answer | None:
        connection = self._socket or self._connect()
        self._socket = None
        lines = [
            f"{request.method} {self._base}{request.target} HTTP/1.1",
            f"Host: {self._host}:{self._port}",
            *(f"{name}: {value}" for name, value in request.headers),
        ]
        kept = False
        try:
            connection.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + request.body)
            if not request.whole:
                connection.shutdown(socket.SHUT_WR)
            response = http.client.HTTPResponse(connection, method=request.method)
            with contextlib.closing(response):
                response.begin()
                body = response.read()
            kept = request.whole and not response.will_close and _ends_where_it_says(request)
        except (OSError, http.client.HTTPException):
            return None
        finally:
            if kept:
                self._socket = connection
            else:
                connection.close()
        headers = {name.lower(): value for name, value in response.getheaders()}
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        return Answer(response.status, headers, body)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()

    def _connect(self) -> socket.socket:
        connection = socket.create_connection((self._host, self._port), timeout=_TIME_LIMIT)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


def _ends_where_it_says(request: Request) -> bool:
    said = [
        value for name, value in request.headers if name.lower() in ("content-length", "transfer-encoding")
    ]
    return said == [str(len(request.body))] or (not said and not request.body)

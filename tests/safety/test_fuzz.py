"""The generated requests find every kind of fault, and the report says how to repeat it."""

import json
from collections.abc import Callable

import pytest

from holdfast.access import Role
from tests.safety.figures import Figures
from tests.safety.fuzz import Answer, History, Target, faults, fuzz
from tests.safety.fuzz_requests import Ground, Request, generated, with_versions
from tests.support.http_client import Credentials

TOKENS = {role.value: Credentials(role.value, "secret").header for role in Role}
JSON = {"content-type": "application/json"}
REFUSED = Answer(429, JSON, b'{"message": "Too Many Requests"}')
OK = Answer(200, JSON)
NOTHING: History = frozenset()
SOMETHING: History = frozenset({("states/x.tfstate", "1", True)})

Behaviour = Callable[["Service"], Answer | None]


class Service:
    """A service that accepts the requests for its ground, and then behaves as the test says."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.versions: set[tuple[str, str, bool]] = set()
        self.prepared = 0
        self.got: list[Request] = []

    def send(self, request: Request) -> Answer | None:
        if self.prepared < 6:
            self.prepared += 1
            return OK
        self.got.append(request)
        return self.behaviour(self)

    def close(self) -> None:
        pass


def crash(service: Service) -> Answer:
    return Answer(502, JSON, b'{"message": null}') if len(service.got) == 7 else REFUSED


def change(service: Service) -> Answer:
    if len(service.got) == 9:
        service.versions.add(("states/x.tfstate", "0", True))
    return REFUSED


@pytest.mark.parametrize(
    ("behaviour", "told"),
    [
        (lambda _: REFUSED, []),
        (crash, ["status 502"]),
        (change, ["changed by a request that was answered 429: new [('states/x.tfstate'"]),
    ],
)
def test_each_fault_is_told_with_its_batch(behaviour: Behaviour, told: list[str]) -> None:
    service = Service(behaviour)
    said: list[str] = []
    target = Target(
        lambda: service, lambda prefix: frozenset(service.versions if prefix else ()), TOKENS, "x"
    )

    figures = fuzz(target, requests=20, seconds=60, seed=3, say=said.append)

    assert figures == Figures(operations=6, requests_fuzzed=20, violations=len(told)), said
    assert len(service.got) == 20
    *violations, last = said
    assert last.startswith("fuzz: 20 requests in ")
    for violation, expected in zip(violations, told, strict=True):
        assert expected in violation
        assert "again: seed 3, batch 0" in violation


def test_the_same_seed_makes_the_same_requests() -> None:
    ground = Ground("fuzz/1", TOKENS)
    once = generated(ground, 30, 5)
    assert len(set(once)) == 30
    assert generated(ground, 30, 5) == once
    assert generated(ground, 30, 6) != once


def error(status: int, code: str) -> Answer:
    """Return an error in the form of the function."""
    message = {"error": code, "message": "What happened and what to do."}
    return Answer(status, JSON, json.dumps(message).encode())


READ, ACQUIRE = ("/states/{name}", "get"), ("/locks/{name}", "put")
LOCK = ("/api/v2/workspaces/{workspace_id}/actions/lock", "post")


@pytest.mark.parametrize(
    ("operation", "answer", "found"),
    [
        (READ, Answer(204), None),
        (READ, Answer(200, JSON, b'{"serial": 1, "version": 4}'), None),
        (READ, Answer(413, JSON, b'{"message": "Request Entity Too Large"}'), None),
        (READ, error(400, "invalid_state_name"), None),
        (READ, error(400, "no_such_code"), "its body is not as described"),
        (READ, Answer(400, JSON, b"<Error/>"), "its body is no JSON"),
        (READ, error(404, "no_state"), "it is not described that get /states/{name} is answered 404"),
        (READ, Answer(500, JSON, b"{}"), "status 500"),
        (READ, None, "no answer"),
        (ACQUIRE, error(423, "locked"), "its body is not as described"),
        (LOCK, Answer(403, JSON, b'{"message": "Forbidden"}'), None),
        (LOCK, Answer(409, JSON, b'{"errors": []}'), "its body is not as described"),
        ((), error(400, "unknown_route"), None),
        ((), Answer(404, JSON, b'{"message": "Not Found"}'), "a client reads 404 as 'no state'"),
    ],
)
def test_a_response_that_is_not_described_is_a_fault(
    operation: tuple[str, str] | tuple[()], answer: Answer | None, found: str | None
) -> None:
    request = Request("GET", "/nowhere", operation=operation)
    assert list(faults(request, answer, NOTHING, NOTHING)) == ([found] if found else [])


@pytest.mark.parametrize(
    ("method", "target", "answer", "is_fault"),
    [
        ("POST", "/states/a", OK, False),
        ("UNLOCK", "/states/a", OK, False),
        ("GET", "/api/v2/state-versions/upload-x", OK, False),
        ("GET", "/api/v2/state-versions/sv-x", OK, True),
        ("GET", "/states/a", Answer(204), True),
        ("POST", "/states/a", error(409, "lock_lost"), True),
        ("POST", "/states/a", None, True),
    ],
)
def test_only_a_write_that_was_acknowledged_may_change_something(
    method: str, target: str, answer: Answer | None, is_fault: bool
) -> None:
    found = list(faults(Request(method, target, whole=False), answer, NOTHING, SOMETHING))
    assert [fault.partition(" by")[0] for fault in found] == ["changed"] * is_fault


def test_a_request_names_versions_that_the_bucket_has() -> None:
    headers = (("Content-Length", "29"), ("X", "29"))
    made = Request("POST", "/manage/v1/x?v=LOCK-VERSION", headers, b'{"version":"CURRENT-VERSION"}')
    request = with_versions(made, {"CURRENT-VERSION": "abc", "LOCK-VERSION": "d e"})
    assert request.target == "/manage/v1/x?v=d%20e"
    assert request.body == b'{"version":"abc"}'
    assert request.headers == (("Content-Length", "17"), ("X", "29"))

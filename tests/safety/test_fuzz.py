"""The generated requests find every kind of fault, and the report says how to repeat it."""

import json
from collections.abc import Callable

import pytest

from holdfast.access import Role
from tests.safety.figures import Figures
from tests.safety.fuzz import Answer, History, Target, faults, fuzz
from tests.safety.fuzz_apis import aimed, from_cloud, from_management
from tests.safety.fuzz_requests import Ground, Request, from_hypothesis, from_schemathesis
from tests.support.http_client import Credentials

TOKENS = {role.value: Credentials(role.value, "secret").header for role in Role}
JSON = {"content-type": "application/json"}
REFUSED = Answer(400, JSON, b'{"message": "Bad Request"}')
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

    def write(self) -> None:
        self.versions.add(("states/x.tfstate", str(len(self.versions)), True))


def fuzzed(behaviour: Behaviour, requests: int = 100) -> tuple[Figures, list[str], list[Service]]:
    """Return the figures, the lines of progress, and the service of each batch."""
    services: list[Service] = []
    said: list[str] = []

    def door() -> Service:
        services.append(Service(behaviour))
        return services[-1]

    def history(prefix: str) -> History:
        return frozenset().union(*(service.versions for service in services)) if prefix else NOTHING

    target = Target(door=door, history=history, tokens=TOKENS, prefix="fuzz")
    return fuzz(target, requests=requests, seconds=60, seed=3, say=said.append), said, services


def test_a_service_that_refuses_everything_breaks_nothing() -> None:
    figures, said, services = fuzzed(lambda _: REFUSED)

    assert figures == Figures(operations=12, requests_fuzzed=100)
    assert sum(len(service.got) for service in services) == 100
    assert said[-1].startswith("fuzz: 100 requests in ")


def test_a_crash_is_found_and_the_batch_is_named_that_shows_it() -> None:
    def crash(service: Service) -> Answer:
        return Answer(502, JSON, b'{"message": null}') if len(service.got) == 7 else REFUSED

    figures, said, _ = fuzzed(crash)

    assert (figures.violations, figures.requests_fuzzed) == (2, 100)
    assert sum("status 502" in line and "again: seed 3, batch " in line for line in said) == 2


def test_a_connection_that_ends_without_an_answer_is_found() -> None:
    figures, said, services = fuzzed(lambda _: None)

    assert figures.violations == sum(request.whole for service in services for request in service.got)
    assert figures.violations > 80
    assert any("no answer" in line for line in said)


def test_a_refusal_that_changed_something_is_found() -> None:
    def change(service: Service) -> Answer:
        if len(service.got) == 9:
            service.write()
        return REFUSED

    figures, said, _ = fuzzed(change, requests=50)

    assert figures.violations == 1
    assert any(
        "changed by a request that was answered 400: new [('states/x.tfstate'" in line for line in said
    )


def test_the_same_seed_makes_the_same_requests() -> None:
    ground = Ground("fuzz/1", TOKENS)

    for source in (from_schemathesis, from_hypothesis, from_cloud, from_management):
        once = source(ground, 30, 5)
        assert len(set(once)) == 30
        assert source(ground, 30, 5) == once
        assert source(ground, 30, 6) != once


def error(status: int, code: str) -> Answer:
    """Return an error in the form of the function."""
    return Answer(
        status, JSON, json.dumps({"error": code, "message": "What happened and what to do."}).encode()
    )


HOLDER = {
    "ID": "x",
    "Operation": "",
    "Info": "",
    "Who": "",
    "Version": "",
    "Created": "0001-01-01T00:00:00Z",
    "Path": "",
}


SESSION = {
    "id": f"session-{'0' * 20}",
    "secret": "x",
    "principal": "x",
    "role": "writer",
    "scope": ["*"],
    "grants": [{"role": "writer", "scope": ["*"]}],
    "trust": "ci",
    "expires": "2026-11-21T13:00:00+00:00",
    "seconds": 3600,
}


@pytest.mark.parametrize(
    ("method", "target", "answer"),
    [
        ("GET", "/states/a", Answer(204)),
        ("GET", "/states/a%2Fb?x", Answer(200, JSON, b'{"serial": 1, "version": 4}')),
        ("POST", "/states/a?ID=x", OK),
        ("POST", "/states/a", error(428, "lock_required")),
        ("POST", "/states/a", Answer(423, JSON, json.dumps(HOLDER).encode())),
        ("LOCK", "/states/a", Answer(423, JSON, json.dumps(HOLDER).encode())),
        ("UNLOCK", "/locks/a", error(409, "lock_not_matched")),
        ("PATCH", "/states/a", error(405, "method_not_allowed")),
        ("HEAD", "/states/a", Answer(405, JSON)),
        ("GET", "/locks/a", error(405, "method_not_allowed")),
        ("GET", "/locks/a", Answer(401, JSON, b'{"message": "Unauthorized"}')),
        ("POST", "/sessions", Answer(200, JSON, json.dumps(SESSION).encode())),
        ("POST", "/sessions", error(403, "not_allowed")),
        ("POST", "/sessions/aws", error(403, "not_signed")),
        ("POST", "/sessions/aws?x", error(400, "invalid_body")),
        ("GET", "/sessions/aws", Answer(403, JSON, b'{"message": "Forbidden"}')),
        ("DELETE", "/sessions", error(405, "method_not_allowed")),
        ("GET", "/outputs/a", Answer(200, JSON, b'{"serial": 1, "version": 4, "outputs": {}}')),
        ("POST", "/unlocks/a", OK),
        ("UNLOCK", "/unlocks/a", error(409, "lock_not_matched")),
        ("LOCK", "/unlocks/a", error(405, "method_not_allowed")),
        ("GET", "/nowhere", error(400, "unknown_route")),
        ("PATCH", "/states/a%0A", error(400, "unknown_route")),
        ("GET", "/nowhere", Answer(401, JSON, b'{"message": "Unauthorized"}')),
        ("GET", "/states/a", Answer(413, JSON, b'{"message": "Request Entity Too Large"}')),
    ],
)
def test_what_is_documented_is_no_fault(method: str, target: str, answer: Answer) -> None:
    assert list(faults(Request(method, target), answer, NOTHING, NOTHING)) == []


@pytest.mark.parametrize(
    ("method", "target", "answer", "fault"),
    [
        ("GET", "/states/a", Answer(500, JSON, b'{"message": "x"}'), "status 500"),
        ("GET", "/states/a", Answer(302), "it is not described that GET is answered 302 here"),
        ("GET", "/locks/a", OK, "it is not described that GET is answered 200 here"),
        ("GET", "/unlocks/a", OK, "it is not described that GET is answered 200 here"),
        ("LOCK", "/unlocks/a", OK, "it is not described that LOCK is answered 200 here"),
        (
            "GET",
            "/outputs/a",
            Answer(200, JSON, b'{"serial": 1, "version": 4, "resources": []}'),
            "its body is not as described",
        ),
        *(
            (
                "GET",
                target,
                Answer(404, JSON, b'{"message": "Not Found"}'),
                "it is not described that GET is answered 404 here",
            )
            for target in ("/states/a", "/nowhere")
        ),
        ("GET", "/nowhere", OK, "it is not described that GET is answered 200 here"),
        (
            "GET",
            "/states/a",
            error(428, "lock_required"),
            "it is not described that GET is answered 428 here",
        ),
        ("GET", "/states/a", error(400, "no_such_code"), "its body is not as described"),
        ("POST", "/states/a", Answer(409, JSON, b'{"message": "x"}'), "its body is not as described"),
        (
            "PUT",
            "/locks/a",
            Answer(423, JSON, json.dumps({**HOLDER, "ID": ""}).encode()),
            "its body is not as described",
        ),
        ("PUT", "/locks/a", error(423, "locked"), "its body is not as described"),
        ("POST", "/sessions", error(403, "not_signed"), "its body is not as described"),
        ("POST", "/sessions", Answer(200, JSON, b'{"id": "x"}'), "its body is not as described"),
        ("GET", "/sessions", OK, "it is not described that GET is answered 200 here"),
        ("POST", "/sessions/x", OK, "it is not described that POST is answered 200 here"),
        ("POST", "/states/a", Answer(400, JSON, b"<Error/>"), "its body is no JSON"),
        ("POST", "/states/a", Answer(200, JSON, b"<Error/>"), "its body is no JSON"),
    ],
)
def test_what_is_not_documented_is_a_fault(method: str, target: str, answer: Answer, fault: str) -> None:
    assert fault in list(faults(Request(method, target), answer, NOTHING, NOTHING))


def test_only_a_write_that_was_acknowledged_may_change_something() -> None:
    def changed(method: str, target: str, answer: Answer | None, *, whole: bool = True) -> bool:
        request = Request(method, target, whole=whole)
        return any("changed" in fault for fault in faults(request, answer, NOTHING, SOMETHING))

    assert not changed("POST", "/states/a", OK)
    assert not changed("UNLOCK", "/states/a", OK)
    assert changed("GET", "/states/a", Answer(204))
    assert changed("POST", "/states/a", error(409, "lock_lost"))
    assert changed("POST", "/states/a", None, whole=False)
    assert not list(faults(Request("POST", "/states/a", whole=False), None, NOTHING, NOTHING))


BENT: list[tuple[str, str, tuple[tuple[str, str], ...], bytes]] = [
    ("GET", "/states/a?ID=x", (), b""),
    ("GET", "/outputs/a?ID=x", (), b""),
    ("GET", "/states/a", (("Content-MD5", "AAAA"),), b""),
    ("GET", "/outputs/a", (("X-Amzn-Remapped-Content-MD5", "AAAA"),), b""),
    ("DELETE", "/states/a", (("Content-Length", "2"),), b"{}"),
    ("DELETE", "/states/a", (("content-type", "text/plain"),), b""),
    ("DELETE", "/states/a", (("Content-MD5", "AAAA"),), b""),
    ("DELETE", "/states/a?ID=x", (), b""),
    ("POST", "/unlocks/a?ID=", (), b""),
    ("DELETE", "/locks/a?ID=x&ID=x", (), b""),
    ("POST", "/states/a?ID", (), b""),
]


@pytest.mark.parametrize(("method", "target", "headers", "body"), BENT)
def test_a_request_that_another_one_became_may_not_succeed(
    method: str, target: str, headers: tuple[tuple[str, str], ...], body: bytes
) -> None:
    request = Request(method, target, headers, body)
    bent = [fault for fault in faults(request, OK, NOTHING, NOTHING) if "was answered 200" in fault]
    assert len(bent) == 1
    assert list(faults(request, error(400, "bent_request"), NOTHING, NOTHING)) == []


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", "/states/a?x=1"),
        ("DELETE", "/states/a"),
        ("DELETE", "/locks/a?ID=x"),
        ("POST", "/states/a?ID=x"),
    ],
)
def test_a_request_as_clients_send_it_may_succeed(method: str, target: str) -> None:
    request = Request(method, target, (("Content-Length", "0"), ("Content-Type", "")))
    assert not any("was answered" in fault for fault in faults(request, OK, NOTHING, NOTHING))


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (error(409, "locked"), "its body is no error that a client can show"),
        (Answer(409, JSON, b'{"errors": [{"status": "409", "title": "Locked"}]}'), None),
        (Answer(409, JSON, b'{"errors": [{"status": "409", "title": ""}]}'), "its error says nothing"),
        (Answer(400, JSON, b'{"errors": []}'), "its body is no error that a client can show"),
        (Answer(403, JSON, b'{"message": "Forbidden"}'), None),
        (Answer(502, JSON, b"{}"), "status 502"),
        (Answer(204), None),
    ],
)
def test_an_answer_that_a_client_of_cloud_cannot_show_is_found(answer: Answer, found: str | None) -> None:
    request = Request("POST", "/api/v2/workspaces/ws-x/actions/lock")
    assert list(faults(request, answer, NOTHING, NOTHING)) == ([found] if found else [])


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (error(409, "base_changed"), None),
        (error(404, "no_state"), None),
        (Answer(404, JSON, b'{"message": "Not Found"}'), "its body is no error that the command can show"),
        (Answer(403, JSON, b'{"message": "Forbidden"}'), None),
        (Answer(423, JSON, json.dumps(HOLDER).encode()), "its body is no error that the command can show"),
        (
            Answer(423, JSON, b'{"error": "locked", "message": "x", "lock": {"ID": ""}}'),
            "its lock has no ID",
        ),
        (Answer(423, JSON, b'{"error": "locked", "message": "x", "lock": {"ID": "x"}}'), None),
        (Answer(409, JSON, b'{"error": "locked", "message": ""}'), "its error says nothing"),
        (Answer(500, JSON, b"{}"), "status 500"),
    ],
)
def test_an_answer_that_the_command_cannot_show_is_found(answer: Answer, found: str | None) -> None:
    request = Request("POST", "/manage/v1/restore/a")
    assert list(faults(request, answer, NOTHING, NOTHING)) == ([found] if found else [])


def test_a_request_of_the_management_api_names_versions_that_the_bucket_has() -> None:
    headers = (("Content-Length", "29"), ("X", "29"))
    made = Request("POST", "/manage/v1/x?v=LOCK-VERSION", headers, b'{"version":"CURRENT-VERSION"}')
    request = aimed(made, {"CURRENT-VERSION": "abc", "LOCK-VERSION": "d e"})
    assert request.target == "/manage/v1/x?v=d%20e"
    assert request.body == b'{"version":"abc"}'
    assert request.headers == (("Content-Length", "17"), ("X", "29"))


def test_only_the_commit_of_an_upload_may_change_something_with_a_get() -> None:
    for target, wrong in (("state-versions/upload-x", 0), ("state-versions/sv-x", 1)):
        request = Request("GET", f"/api/v2/{target}")
        assert len(list(faults(request, OK, NOTHING, SOMETHING))) == wrong


def test_the_page_for_a_token_is_a_page() -> None:
    request = Request("GET", "/app/settings/tokens")
    page = Answer(200, {"content-type": "text/html; charset=utf-8"}, b"<html></html>")
    assert list(faults(request, page, NOTHING, NOTHING)) == []
    assert list(faults(request, OK, NOTHING, NOTHING)) == ["its page is said to be application/json"]

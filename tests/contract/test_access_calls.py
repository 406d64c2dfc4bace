"""The requests that each role may send to the functions behind the API, from event to response."""

import json
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import boto3
import pytest

from gateway.headers import PROTECTED
from gateway.nearest_route import NAMED
from gateway.router import Anyone, Route
from holdfast import audit_log
from holdfast.access import Action, Caller, Grant, Role, allowed
from holdfast.names import StateName
from holdfast_cdk import console
from holdfast_cdk.api import ROUTES
from holdfast_cdk.functions import FUNCTIONS as DECLARED
from tests.contract.conftest import Bucket, Server, started
from tests.support import access_calls
from tests.support.access_calls import (
    CALLS,
    CLOUD,
    INSIDE,
    MANAGEMENT,
    OUTSIDE,
    SCOPE,
    TWO_GRANTS,
    Call,
)
from tests.support.events import Context, cloud_request, console_request, manage_request, request
from tests.support.routes import as_described, names_a_state

BUCKET, STAGING, GROUP = "holdfast-access", "holdfast-access-staging", "/holdfast/access/audit"
SCOPES = (SCOPE, "elsewhere")
"""The scopes. The second covers a state of one segment, and no state of the organization of that name."""
FUNCTIONS = ("terraform_http", "cloud", "management", "session_exchange", "health", "console")
_ORGANIZATION = f"{CLOUD}organizations/{{organization}}"
DECIDED_LATER = {
    **dict.fromkeys(("POST /sessions", "POST /sessions/aws"), "the library judges how the caller signed in"),
    **dict.fromkeys(
        (
            f"GET {_ORGANIZATION}/entitlement-set",
            f"GET {_ORGANIZATION}/projects",
            f"POST {_ORGANIZATION}/projects",
            f"GET {_ORGANIZATION}/workspaces",
        ),
        "the scope must cover some state of the organization",
    ),
    f"POST {_ORGANIZATION}/workspaces": "the body names the state",
    f"GET {MANAGEMENT}activity?state={{name}}": "the query names the state",
    f"GET {CLOUD}state-versions?{access_calls.OF_A_WORKSPACE}": "the query names the state",
    f"GET {CLOUD}state-versions/{{version_id:upload}}": "a version is read, an upload is committed",
}
"""Requests for which the route's check is not enough, and why only the library can decide."""
NAMES_NO_STATE = {
    "cursor": "tests of the lists send one from outside of the scope",
    **dict.fromkeys(("since", "until"), "a time"),
    **dict.fromkeys(("page[number]", "page[size]"), "numbers"),
}
"""Parameters that need no row, and why."""


@dataclass(frozen=True)
class Functions:
    """The functions, and the states of the table in their bucket.

    `prepared` has the values of the placeholders, by the name of the state.
    """

    bucket: Bucket
    prepared: Mapping[str, Mapping[str, str]]
    handlers: Mapping[str, Any]

    @property
    def routes(self) -> Sequence[Route[Any]]:
        return [route for handle in self.handlers.values() for route in handle.__globals__["_ROUTER"].routes]

    def route(self, call: Call) -> Route[Any]:
        (found,) = (
            route
            for route in self.routes
            if as_described(route.path) == call.route and call.method in route.verbs.split()
        )
        return found

    def ask(self, caller: Caller | None, method: str, address: str, body: bytes | None) -> dict[str, Any]:
        path, _, query = address.partition("?")
        sent, parameters = None if body is None else body.decode(), dict(parse_qsl(query))
        first, _, rest = path[1:].partition("/")
        if path.startswith(CLOUD):
            function = "cloud"
            event = cloud_request(
                method, path.removeprefix(CLOUD), caller=caller, body=sent, query=parameters
            )
        elif path.startswith(MANAGEMENT):
            function, path = "management", path.removeprefix(MANAGEMENT)
            event = manage_request(method, path, caller=caller, body=sent, query=parameters)
        elif first in NAMED:
            function = "terraform_http"
            event = request(method, f"/{first}/{{name+}}", rest, caller=caller, body=sent, query=parameters)
        elif first == "console":
            function, event = "console", console_request(method, path)
        else:
            function = "session_exchange" if first == "sessions" else "health"
            event = request(method, path, caller=caller, body=sent)
        answer: dict[str, Any] = self.handlers[function](event, Context())
        return answer

    def send(self, role: Role | None, method: str, address: str, body: bytes | None) -> tuple[int, str]:
        caller = None if role is None else Caller("token:x", (Grant(role, SCOPES),))
        answer = self.ask(caller, method, address, body)
        return answer["statusCode"], answer["body"]


@pytest.fixture(scope="module")
def functions(moto: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Functions]:
    moto.direct.create_bucket(Bucket=STAGING)
    settings = {
        "HOLDFAST_BUCKET": BUCKET,
        "HOLDFAST_STAGING_BUCKET": STAGING,
        "HOLDFAST_AUDIT_GROUP": GROUP,
        "HOLDFAST_PRESIGN_ENDPOINT": moto.direct.meta.endpoint_url,
        "AWS_ENDPOINT_URL": moto.direct.meta.endpoint_url,
    }
    with started(moto, *FUNCTIONS, **settings) as handlers:
        files = tmp_path_factory.mktemp("console")
        console.build(files)
        handlers["console"].__globals__["_FILES"] = files
        logs = boto3.Session().client("logs")
        logs.create_log_group(logGroupName=GROUP)
        now = int(time.time() * 1000)
        stream = audit_log.stream("backend", now - 1000)
        logs.create_log_stream(logGroupName=GROUP, logStreamName=stream)
        events = [{"event": "state.written", "state": state} for state in (INSIDE, *OUTSIDE)]
        logs.put_log_events(
            logGroupName=GROUP,
            logStreamName=stream,
            logEvents=[{"timestamp": now - 1000, "message": json.dumps(event)} for event in events],
        )
        yield Functions(Bucket(BUCKET, moto), access_calls.prepare(moto.direct, BUCKET), handlers)


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_everybody_gets_what_the_table_says_and_who_is_refused_before_s3_is_asked(
    functions: Functions, call: Call, log: list[str]
) -> None:
    before = functions.bucket.history("")

    assert list(access_calls.faults(call, functions.prepared, functions.send)) == []

    assert functions.bucket.history("") == before
    lines = [json.loads(line) for line in log]
    assert {line["s3_requests"] for line in lines if line["status"] in (401, 403)} <= {0}


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_the_library_alone_refuses_what_the_table_refuses(
    functions: Functions, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Route, "check", lambda *_: None)

    assert list(access_calls.faults(call, functions.prepared, functions.send)) == []


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_the_routes_alone_refuse_whoever_lacks_what_they_need(
    functions: Functions, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    route, checks = functions.route(call), list[Route[Any]]()
    check, require, somewhere = Route.check, Caller.require, Caller.require_somewhere

    def checked(route: Route[Any], caller: Caller, name: StateName | None) -> None:
        checks.append(route)
        try:
            check(route, caller, name)
        finally:
            checks.clear()

    def by_route_alone(caller: Caller, action: Action, name: StateName) -> None:
        if checks:
            require(caller, action, name)

    def somewhere_by_route_alone(caller: Caller, action: Action) -> None:
        if checks:
            somewhere(caller, action)

    monkeypatch.setattr(Route, "check", checked)
    monkeypatch.setattr(Caller, "require", by_route_alone)
    monkeypatch.setattr(Caller, "require_somewhere", somewhere_by_route_alone)
    refused = [cell for cell in access_calls.cells(call) if cell[2] == 403]
    by_route = [cell for cell in refused if is_refused(route, *cell[:2])]

    assert list(access_calls.faults(call, functions.prepared, functions.send, by_route)) == []
    assert (by_route == refused) is (str(call) not in DECIDED_LATER), (
        "its route needs less than the table says: change `needs`, or say why in DECIDED_LATER"
    )


def is_refused(route: Route[Any], state: str, role: Role | None) -> bool:
    """Return whether the route itself refuses a role for a state."""
    if role is None or isinstance(route.needs, Anyone):
        return False
    return route.needs not in allowed(role) or (state != INSIDE and names_a_state(route))


@pytest.mark.parametrize("roles", TWO_GRANTS, ids="-".join)
def test_who_has_two_grants_gets_for_each_state_what_its_own_grant_allows(
    functions: Functions, roles: tuple[Role, Role]
) -> None:
    before = functions.bucket.history("")
    for call in CALLS:
        if call.route.startswith("/sessions"):
            continue
        for state, expected in access_calls.cells_of_two_grants(call, *roles):
            caller = Caller("token:x", (Grant(roles[0], SCOPES), Grant(roles[1], ("roles/outside/*",))))
            answer = functions.ask(caller, *access_calls.request(call, functions.prepared[state]))
            assert answer["statusCode"] == expected, (str(call), state, answer["body"][:200])
            role = roles[0] if state == INSIDE else roles[1]
            assert role is not Role.OUTPUTS or f"secret of {state}" not in answer["body"], call
            assert f"of {OUTSIDE[1]}" not in answer["body"], call
    assert functions.bucket.history("") == before


SEEN_BY_EACH = (
    *(
        f"{MANAGEMENT}{path}"
        for path in ("states", "states?deleted=true", "locks", "names?pattern=*", "activity")
    ),
    f"{CLOUD}organizations/roles/workspaces",
)


@pytest.mark.parametrize("address", SEEN_BY_EACH)
def test_a_list_has_exactly_what_each_grant_alone_shows(functions: Functions, address: str) -> None:
    chosen = random.Random(address)  # noqa: S311 the same in every run

    def seen(*grants: Grant) -> set[str]:
        answer = functions.ask(Caller("token:x", grants), "GET", address, None)
        assert answer["statusCode"] in (200, 403), answer
        shown = answer["body"].replace(":", "/") if answer["statusCode"] == 200 else ""
        return {end for end in ("inside/calls", "outside/calls", "elsewhere/outside") if end in shown}

    patterns = ("*", "roles/inside/*", "roles/outside/*", "elsewhere/*", "*/outside/calls", "none")
    lists = set()
    for _ in range(12):
        grants = [
            Grant(chosen.choice(list(Role)), tuple(chosen.sample(patterns, k=chosen.randint(1, 2))))
            for _ in range(chosen.randint(2, 3))
        ]
        assert seen(*grants) == set().union(*(seen(grant) for grant in grants)), grants
        lists.add(frozenset(seen(*grants)))
    assert len(lists) > 1, "the callers see the same"


def test_every_route_has_a_row_and_every_row_a_route(functions: Functions) -> None:
    assert access_calls.unlisted(functions.routes) == set(), (
        "add the row to TABLES of tests/support/access_calls.py, or remove it there"
    )
    assert all(list(call.inside) == [None, *Role] for call in CALLS)


def test_a_row_says_what_is_outside_of_the_scope_if_it_names_a_state_and_only_then() -> None:
    for call in CALLS:
        assert ("{" in call.address) == (None not in call.outside.values()), (
            f"{call}: its columns outside of the scope have a status if it names a state, else '-'"
        )


def test_every_parameter_of_a_route_whose_path_names_nothing_is_sent_by_a_row(functions: Functions) -> None:
    for route in functions.routes:
        if "{" in route.path:
            continue
        rows = [call for call in CALLS if call.route == as_described(route.path)]
        sent = {name for row in rows for name, _ in parse_qsl(row.address.partition("?")[2])}
        missing = set(route.query.split()) - sent - NAMES_NO_STATE.keys()
        assert missing == set(), f"{route.path} needs a row with each: it may name a state outside of a scope"


def test_a_route_that_names_a_state_needs_a_right_to_it_and_tells_what_happened(functions: Functions) -> None:
    for route in functions.routes:
        assert not (names_a_state(route) and isinstance(route.needs, Anyone)), (
            f"{route.path} names a state: `needs` must be an action"
        )
        assert route.event or route.needs is Anyone.PUBLIC, route


def test_every_other_verb_gets_405_with_what_is_allowed(functions: Functions) -> None:
    for call in access_calls.other_verbs(functions.routes, lambda _: 405):
        assert list(access_calls.faults(call, functions.prepared, functions.send)) == []
        verbs = " ".join(route.verbs for route in functions.routes if as_described(route.path) == call.route)
        address = access_calls.filled(call.route, functions.prepared[INSIDE])
        answer = functions.ask(None, call.method, address, None)
        assert answer["headers"]["Allow"] == ", ".join(verbs.split())
        assert answer["headers"]["Cache-Control"] == "no-store"


def test_no_answer_of_any_route_becomes_a_page_a_script_or_a_frame(
    functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    behind_the_api = {spec.folder for spec in DECLARED for route in ROUTES if route.function == spec.name}
    assert behind_the_api == functions.handlers.keys()
    asked = [*CALLS, *access_calls.other_verbs(functions.routes, lambda _: 405)]
    sent = [access_calls.request(call, functions.prepared[INSIDE]) for call in asked]
    roles = [Caller("token:x", (Grant(role, SCOPES),)) for role in (Role.READER, Role.MAINTAINER)]
    answers = [functions.ask(caller, *one) for caller in (None, *roles) for one in sent]
    answers.append(functions.handlers["terraform_http"](request("GET", "$default", path="/x"), Context()))
    monkeypatch.setattr(Route, "check", lambda *_: 1 / 0)
    answers += [functions.ask(roles[0], *one) for one in sent]

    assert {answer["statusCode"] for answer in answers} >= {
        200,
        204,
        307,
        308,
        400,
        401,
        403,
        405,
        409,
        423,
        500,
    }
    for answer in answers:
        headers = answer["headers"]
        is_page = answer["statusCode"] == 200 and headers["Content-Type"].startswith("text/html")
        policy = headers.get("Content-Security-Policy", "").split("; ")
        assert {"default-src 'none'", "frame-ancestors 'none'"} <= set(policy), answer
        assert is_page or headers.items() >= PROTECTED.items(), answer
        assert (headers["X-Content-Type-Options"], headers["Referrer-Policy"]) == ("nosniff", "no-referrer")


def test_who_is_refused_learns_nothing_of_the_rules_that_the_request_breaks(functions: Functions) -> None:
    for call in CALLS:
        method, address, _ = access_calls.request(call, functions.prepared[INSIDE])
        broken = f"{address.partition('?')[0]}?unknown=1"
        assert functions.send(None, method, broken, b"{")[0] == call.inside[None], call
        if "{organization}" in call.address:
            method, address, _ = access_calls.request(call, functions.prepared[OUTSIDE[1]])
            assert functions.send(Role.MAINTAINER, method, address, b"{")[0] == 403, call

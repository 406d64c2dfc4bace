"""The backend's log lines in the audit trail, for requests that end before a request to S3."""

import json
import logging
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, cast

import pytest

from audit_trail.events import received
from gateway.log import JsonLine
from holdfast.access import Caller, Grant, Role
from tests.support.environment import set_environment
from tests.support.events import Context, request
from tests.unit.test_audit_events import delivery

Handle = Callable[[dict[str, Any], Context], dict[str, Any]]

STATES = "/states/{name+}"
READER, WRITER = (Caller("oidc:ci", (Grant(role, ("a/*",)),)) for role in (Role.READER, Role.WRITER))
CONTENT = "confidential"


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Iterator[Handle]:
    """The function, started with the address of an S3 that does not exist."""
    set_environment(monkeypatch)
    with pytest.MonkeyPatch.context() as modules:
        modules.delitem(sys.modules, "terraform_http.handler", raising=False)
        yield cast("Handle", import_module("terraform_http.handler").handle)
        # No other test may import this module with its made-up settings.
        del sys.modules["terraform_http.handler"]


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    written = JsonLine.format

    def record(formatter: JsonLine, entry: logging.LogRecord) -> str:
        lines.append(written(formatter, entry))
        return lines[-1]

    monkeypatch.setattr(JsonLine, "format", record)
    return lines


def only_event(log: list[str]) -> dict[str, Any]:
    """The audit trail's event of the only line."""
    (event,) = received(delivery(*log))
    found: dict[str, Any] = json.loads(event.message)
    return found


def test_a_refusal_tells_who_what_and_why_in_the_audit_trail(backend: Handle, log: list[str]) -> None:
    event = request("POST", STATES, "a/b", caller=READER, body=CONTENT)
    verified = event["requestContext"]["authorizer"]["lambda"]
    verified |= {"source": "oidc", "trust": "ci", "trust_id": "t", "subject": "https://issuer#repo"}

    assert backend(event, Context())["statusCode"] == 403

    told = only_event(log)
    del told["id"], told["time"]
    assert told == {
        "event": "request.refused",
        "function": "backend",
        "principal": "oidc:ci",
        "subject": "https://issuer#repo",
        "source": "oidc",
        "role": "reader",
        "trust": "ci",
        "state": "a/b",
        "error": "not_allowed",
        "status": 403,
        "source_ip": "127.0.0.1",
        "request_id": event["requestContext"]["requestId"],
    }


@pytest.mark.parametrize(
    ("name", "caller", "status", "error"),
    [("a//..", READER, 400, "invalid_state_name"), ("a", None, 401, "not_authenticated")],
)
def test_a_request_with_a_malformed_name_or_without_a_caller_is_an_event_too(
    backend: Handle, log: list[str], name: str, caller: Caller | None, status: int, error: str
) -> None:
    event = request("POST", STATES, name, caller=caller, body=CONTENT)

    assert backend(event, Context())["statusCode"] == status

    told = only_event(log)
    assert (told["event"], told["error"], told["status"]) == ("request.refused", error, status)
    assert (told["state"], told["source_ip"]) == (name, "127.0.0.1")
    assert told["request_id"] == event["requestContext"]["requestId"]
    assert told.get("principal") == (caller.principal if caller else None)
    assert CONTENT not in "".join(log)


def test_a_fault_is_an_event_without_its_text(backend: Handle, log: list[str]) -> None:
    event = request("POST", STATES, "a/b", caller=WRITER, body=CONTENT)
    del event["headers"]  # a gateway never leaves them out

    assert backend(event, Context())["statusCode"] == 500

    told = only_event(log)
    assert (told["event"], told["error"], told["status"]) == ("request.failed", "KeyError", 500)
    assert CONTENT not in "".join(log)

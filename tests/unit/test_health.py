"""The function behind /health, event in and response out."""

import json
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, cast

import pytest

from gateway import responses
from tests.support.events import Context, request

Handle = Callable[[dict[str, Any], Context], dict[str, Any]]


@pytest.fixture
def health(monkeypatch: pytest.MonkeyPatch) -> Iterator[Handle]:
    """The function, started with a version."""
    monkeypatch.setenv("HOLDFAST_VERSION", "1.2.3+abc")
    yield cast("Handle", import_module("health.handler").handle)
    # Nobody else gets this one, whose version is made up.
    del sys.modules["health.handler"]


def test_anybody_gets_the_version_of_the_code(health: Handle) -> None:
    answer = health(request("GET", "/health"), Context())

    assert (answer["statusCode"], json.loads(answer["body"])) == (
        200,
        {"status": "ok", "version": "1.2.3+abc"},
    )
    assert answer["headers"] == vars(responses)["_HEADERS"]


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "LOCK", "UNLOCK"])
def test_another_verb_gets_405_with_what_is_allowed(health: Handle, method: str) -> None:
    refused = health(request(method, "/health"), Context())

    assert (refused["statusCode"], json.loads(refused["body"])["error"]) == (405, "method_not_allowed")
    assert refused["headers"] == {**vars(responses)["_HEADERS"], "Allow": "GET"}


def test_it_logs_nothing(health: Handle, capfd: pytest.CaptureFixture[str]) -> None:
    health(request("GET", "/health"), Context())

    assert capfd.readouterr() == ("", "")

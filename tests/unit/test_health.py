"""The function that answers without credentials, event in and response out."""

import base64
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, cast
from urllib.parse import urljoin

import pytest

from gateway.headers import JSON
from tests.support.events import Context, request

DISCOVERY, TOKENS = "/.well-known/terraform.json", "/app/settings/tokens"

Handle = Callable[[dict[str, Any], Context], dict[str, Any]]


@pytest.fixture
def health(monkeypatch: pytest.MonkeyPatch) -> Iterator[Handle]:
    """The function, started with a version."""
    monkeypatch.setenv("HOLDFAST_VERSION", "1.2.3+abc")
    yield cast("Handle", import_module("health.handler").handle)
    # No other test may import this module with its made-up version.
    del sys.modules["health.handler"]


def test_anybody_gets_the_version_of_the_code(health: Handle) -> None:
    answer = health(request("GET", "/health"), Context())

    assert (answer["statusCode"], json.loads(answer["body"])) == (
        200,
        {"status": "ok", "version": "1.2.3+abc"},
    )
    assert answer["headers"] == JSON


def test_every_client_is_told_where_the_api_is_under_whatever_name_it_asked(health: Handle) -> None:
    answer = health(request("GET", DISCOVERY), Context())

    assert answer["headers"] == JSON
    # `terraform-svchost` resolves them against the address that answered.
    assert {
        service: urljoin(f"https://states.example:8443{DISCOVERY}", where)
        for service, where in json.loads(answer["body"]).items()
    } == dict.fromkeys(("tfe.v2", "tfe.v2.1", "tfe.v2.2", "state.v2"), "https://states.example:8443/api/v2/")


def test_who_logs_in_gets_a_page_that_says_how_to_get_a_token(health: Handle) -> None:
    answer = health(request("GET", TOKENS), Context())

    assert answer["statusCode"] == 200
    assert answer["headers"]["Content-Type"] == "text/html; charset=utf-8"
    assert "holdfast login --address" in answer["body"]
    assert "holdfast token create --role" in answer["body"]


def test_the_page_loads_and_runs_nothing_and_its_browser_lets_nothing_in(health: Handle) -> None:
    answer = health(request("GET", TOKENS), Context())
    page, policy = answer["body"], answer["headers"]["Content-Security-Policy"].split("; ")

    assert re.findall(r"<(?:script|link|img|iframe|form|object|base)|\b(?:src|href|style|on\w+)=", page) == []
    (style,) = re.findall("<style>(.*?)</style>", page, re.DOTALL)
    assert "url(" not in style
    assert "@import" not in style
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert sorted(policy) == [
        "base-uri 'none'",
        "default-src 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        f"style-src 'sha256-{digest}'",
    ]
    assert "color-scheme: light dark" in style
    assert "color:" not in style.replace("color-scheme:", ""), "readable in both only with the browser's own"


def test_it_logs_nothing(health: Handle, capfd: pytest.CaptureFixture[str]) -> None:
    health(request("GET", "/health"), Context())

    assert capfd.readouterr() == ("", "")

"""The findings of `holdfast doctor` about an API that does not respond as Holdfast's does."""

import json
import time
from collections.abc import Callable, Mapping
from email.utils import formatdate
from typing import Any, cast
from urllib.parse import urlsplit

import pytest

import holdfast
from holdfast_cli.api import http
from holdfast_cli.api.response import Response
from holdfast_cli.bucket.stack import Stack
from holdfast_cli.config import cloud_config
from holdfast_cli.doctor import api_probe
from holdfast_cli.doctor.checks import attempt
from holdfast_cli.doctor.findings import Finding, Level
from holdfast_cli.errors import CommandError

ADA = api_probe.Credentials("ada", "secret of ada")
STACK = Stack("payments", "https://api.example.com", "holdfast-payments", "123456789012")

Change = Callable[[str, str, Response], Response]
"""Takes verb, path and response of a request, and returns the response that is sent instead."""


def as_it_is(method: str, path: str, response: Response) -> Response:  # noqa: ARG001
    return response


class Api:
    """An API like Holdfast's, in which every name means the same state."""

    def __init__(self) -> None:
        self.change: Change = as_it_is
        self.state: bytes | None = None
        self.lock: bytes | None = None
        self.written: list[str] = []
        self.authorized: list[str] = []

    def send(self, method: str, url: str, *, headers: Mapping[str, str], body: bytes = b"") -> Response:
        """Respond to a request, in place of `http.send`."""
        path, query = urlsplit(url).path, urlsplit(url).query
        if "Authorization" in headers:
            self.authorized.append(path)
        status, answer = self._respond(method, path, query, headers, body)
        usual = {
            "cache-control": "no-store",
            "content-type": "application/json",
            "date": formatdate(usegmt=True),
            "tfp-api-version": "2.6",
        }
        return self.change(method, path, Response(status, answer, usual))

    def _respond(
        self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, bytes]:
        _, route, name = (*path.split("/", 2), "")[:3]
        if route == "health":
            return 200, json.dumps({"version": f"{holdfast.__version__}+abc"}).encode()
        if path == "/.well-known/terraform.json":
            return 200, json.dumps(dict.fromkeys(cloud_config.SERVICES, "/api/v2/")).encode()
        if path == "/api/v2/ping" and headers.get("Authorization") == "Bearer ada.secret of ada":
            return 204, b""
        if headers.get("Authorization") != ADA.authorization:
            return (403 if "Authorization" in headers else 401), b"{}"
        if route == "stats" or name.endswith("not-a-probe"):
            return 400, b"{}"
        match method, route:
            case "GET", "states":
                return (200, self.state) if self.state else (204, b"")
            case "GET", "outputs":
                return 200, b'{"outputs": {}}'
            case "POST", "states":
                return self._write(query, headers, body)
            case (("PUT" | "LOCK"), "locks"):
                self.lock = self.lock or body
                return (200, b"") if self.lock == body else (423, self.lock)
            case _:  # a release
                self.lock = None if self.lock == body else self.lock
                return 200, b""

    def _write(self, query: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        self.written.append(query)
        if self.lock is None:
            return 428, b"{}"
        if query != f"ID={json.loads(self.lock)['ID']}":
            return 423, self.lock
        if headers["Content-MD5"] != api_probe.content_md5(body):
            return 400, b"{}"
        self.state = body
        return 200, b""


class Empty:
    """An empty bucket."""

    def get_paginator(self, _: str) -> "Empty":
        return self

    def paginate(self, **_: str) -> list[dict[str, Any]]:
        return [{}]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Api:
    made = Api()
    monkeypatch.setattr(http, "send", made.send)
    return made


def look(credentials: api_probe.Credentials | None = ADA) -> list[Finding]:
    bucket = api_probe.Bucket(cast("Any", Empty()), STACK.bucket, STACK.account, keeps_everything=False)
    return list(api_probe.check(STACK, credentials, bucket))


def problems(findings: list[Finding]) -> list[str]:
    """The checks that found a problem. Each finding says what to do, and shows no secret."""
    found = [finding for finding in findings if finding.level is Level.PROBLEM]
    assert all(finding.do for finding in found)
    assert ADA.password not in repr(findings) + repr(ADA)
    return [finding.check for finding in found]


def on(method: str, path: str, change: Callable[[Response], Response]) -> Change:
    """Change the responses to one verb on paths with this beginning."""

    def changed(asked: str, where: str, response: Response) -> Response:
        return change(response) if asked == method and where.startswith(path) else response

    return changed


def status(number: int) -> Callable[[Response], Response]:
    return lambda response: Response(number, b"{}", response.headers)


def lost(_: Response) -> Response:
    raise CommandError("api.example.com does not respond")


def body(content: bytes) -> Callable[[Response], Response]:
    return lambda response: Response(response.status, content, response.headers)


def test_an_api_as_ours_has_no_problem(fake: Api) -> None:
    assert problems(look()) == []
    assert fake.lock is None


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (on("GET", "/stats/", status(404)), "api.unknown_path"),
        (on("GET", "/.well-known/", status(401)), "api.discovery"),
        (on("GET", "/.well-known/", body(b'{"tfe.v2": "/api/v2/"}')), "api.discovery"),
        (on("GET", "/api/v2/ping", status(400)), "api.cloud"),
        (on("GET", "/api/v2/ping", lambda one: Response(one.status, b"", {})), "api.cloud"),
        (on("POST", "/unlocks/", status(404)), "api.release"),
        (on("GET", "/outputs/", status(404)), "api.outputs"),
        (on("GET", "/outputs/", body(b'{"outputs": {}, "resources": []}')), "api.outputs"),
        (on("GET", "/states/", body(b"{}")), "api.read"),
        (
            on("GET", "/states/", lambda one: Response(one.status, one.body, {"cache-control": ""})),
            "api.headers",
        ),
        (on("PUT", "/locks/", body(b"")), "api.held"),
    ],
)
def test_a_response_that_is_not_as_ours_is_found(fake: Api, change: Change, check: str) -> None:
    fake.change = change

    assert check in problems(look())


@pytest.mark.parametrize("change", [status(404), body(b"<html>"), body(b'{"version": 1}')])
def test_what_is_not_holdfast_gets_no_credentials(fake: Api, change: Callable[[Response], Response]) -> None:
    fake.change = on("GET", "/health", change)

    assert [finding.check for finding in look()] == ["api.health"]
    assert problems(look()) == ["api.health"]
    assert fake.authorized == []


@pytest.mark.parametrize("dropped", [["LOCK"], ["LOCK", "UNLOCK"]])
def test_a_proxy_that_drops_a_verb_is_a_note_and_loses_no_check(fake: Api, dropped: list[str]) -> None:
    def drop(method: str, path: str, response: Response) -> Response:  # noqa: ARG001
        return lost(response) if method in dropped else response

    fake.change = drop
    findings = look()

    assert problems(findings) == []
    passed = "none" if "UNLOCK" in dropped else "UNLOCK"
    assert f"the API accepts {passed}." in next(one.text for one in findings if one.check == "api.verbs")
    assert {"api.free", "api.release_delete", "api.removed"} <= {one.check for one in findings}


def test_what_was_found_before_a_request_that_is_lost_is_told(fake: Api) -> None:
    fake.change = on("GET", "/stats/", lost)
    bucket = api_probe.Bucket(cast("Any", Empty()), STACK.bucket, STACK.account, keeps_everything=False)

    findings = list(attempt("api", lambda: api_probe.check(STACK, ADA, bucket)))

    assert [finding.check for finding in findings][-3:] == ["api.absent", "api.cloud", "api"]
    assert problems(findings) == ["api"]


def test_nothing_is_written_to_a_deployment_that_does_not_know_the_reserved_names(fake: Api) -> None:
    fake.change = on("GET", "/states/holdfast-doctor/not-a-probe", status(204))

    assert problems(look()) == ["api.reserved_name"]
    assert (fake.written, fake.lock) == ([], None)


def test_a_delete_of_another_lock_that_releases_ours_is_found(fake: Api) -> None:
    def forget(response: Response) -> Response:
        fake.lock = None
        return response

    fake.change = on("DELETE", "/locks/", forget)
    findings = look()

    assert problems(findings) == ["api.delete_body"]
    assert "responded with 200 and 200, not with" in next(
        one.text for one in findings if one.check == "api.delete_body"
    )


@pytest.mark.parametrize(
    ("version", "text", "do"),
    [
        ("0.0.9+abc", "The deployed version, 0.0.9+abc, is older than this command", "Deploy"),
        ("999.0.0", "This command, {}, is older than the deployed version, 999.0.0.", "Upgrade the command."),
        ("next", "The deployed functions have version next, and this command has version {}.", "Deploy"),
    ],
)
def test_code_of_another_version_is_a_note_that_says_which_is_older(
    fake: Api, version: str, text: str, do: str
) -> None:
    fake.change = on("GET", "/health", body(json.dumps({"version": version}).encode()))
    findings = look()

    assert problems(findings) == []
    assert findings[0].level is Level.NOTE
    assert text.format(holdfast.__version__) in findings[0].text
    assert do in findings[0].do


@pytest.mark.parametrize(("off", "where"), [(100, "ahead of"), (-100, "behind")])
def test_an_api_with_another_clock_is_found(fake: Api, off: int, where: str) -> None:
    theirs = {"date": formatdate(time.time() - off, usegmt=True)}
    fake.change = on("GET", "/health", lambda one: Response(one.status, one.body, theirs))

    findings = look()

    assert problems(findings) == ["api.clock"]
    assert [f"seconds {where} the clock of the API" in one.text for one in findings].count(True) == 1


def test_without_credentials_only_what_needs_none_is_tried(fake: Api) -> None:
    findings = look(None)

    assert problems(findings) == []
    checks = ("health", "clock", "anonymous", "discovery", "credentials")
    assert [finding.check for finding in findings] == [f"api.{check}" for check in checks]
    assert "holdfast token create --team payments --role writer" in findings[-1].do
    assert fake.written == []


def test_an_id_token_is_sent_to_cloud_as_it_is() -> None:
    assert api_probe.Credentials("oidc", "a.b.c").of_cloud == "Bearer a.b.c"

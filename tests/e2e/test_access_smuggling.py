"""Identities that are smuggled past the authorizer, and results that are cached for the wrong caller."""

import json
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from gateway import authorizer_context
from holdfast.access import Caller, Grant, Role
from holdfast.identity.authentication import Authenticated, AuthMethod
from holdfast.identity.credentials import new_id
from tests.support import documents, oidc
from tests.support.access_records import (
    exchange,
    new_token,
    session_of,
    with_header,
)
from tests.support.oidc import Issuer
from tests.support.permissions_judged import Roles
from tests.support.sign_ins import basic
from tests.support.team import Team

# --- an identity in the request ---------------------------------------------------------------------

IDENTITY = authorizer_context.encode(
    Authenticated(Caller("token:root", (Grant(Role.MAINTAINER, ("*",)),)), AuthMethod.TOKEN)
)


def carried() -> dict[str, dict[str, Any]]:
    """Return requests with the authorizer's context in every place where a client could put it."""
    context = json.dumps({"authorizer": {"lambda": IDENTITY}})
    prefixes = (
        "",
        "x-",
        "x-holdfast-",
        "x-amzn-",
        "x-amz-",
        "x-amzn-authorizer-",
        "authorizer.",
        "x-authorizer-",
    )
    headers = {f"{prefix}{name}": value for prefix in prefixes for name, value in IDENTITY.items()}
    query = "&".join(f"{name}={value}" for name, value in IDENTITY.items()).replace('"', "%22")
    nested = "&".join(
        f"{before}{name}{after}={value}".replace('"', "%22")
        for name, value in IDENTITY.items()
        for before, after in (("authorizer.lambda.", ""), ("requestContext[authorizer][lambda][", "]"))
    )
    return {
        "headers": {"headers": headers},
        "headers that name the whole": {
            "headers": {"x-amzn-request-context": context, "requestcontext": context, "authorizer": context}
        },
        "headers that name another place": {
            "headers": {
                "x-original-url": "/health",
                "x-rewrite-url": "/health",
                "x-http-method-override": "GET",
            }
        },
        "the query": {"query": query},
        "the query, nested": {"query": nested},
        "credentials in the query": {
            "query": "Authorization=Basic%20eDp4&authorization=x&X-Amz-Credential=x"
        },
        "cookies": {"headers": {"cookie": "; ".join(f"{name}={value}" for name, value in IDENTITY.items())}},
    }


@pytest.mark.parametrize("place", carried())
def test_an_identity_in_the_request_changes_nothing(
    strict: Team, issuer: Issuer, state: str, place: str
) -> None:
    strict.put(f"states/{state}.tfstate", documents.state())
    _, outputs = new_token(strict, Role.OUTPUTS)
    _, elsewhere = new_token(strict, Role.MAINTAINER, "elsewhere/*")
    more = dict(carried()[place])
    query = more.pop("query", "")

    with strict.unchanged():
        for credentials in (outputs, elsewhere):
            for method, path, body in (
                ("DELETE", f"/states/{state}", None),
                ("PUT", f"/locks/{state}", documents.lock_info()),
            ):
                answer = with_header(strict, credentials.header, f"{path}?{query}", method, body=body, **more)
                assert answer.error == (403, "not_allowed"), (method, path)
        wrong = with_header(strict, basic(outputs.username, "x"), f"/states/{state}?{query}", **more)
        assert wrong.status == 403
        assert strict.client(None).request("GET", f"/states/{state}?{query}", **more).status == 401

    token, writer = new_token(strict, Role.WRITER)
    info = documents.lock_info()
    assert (
        with_header(strict, writer.header, f"/locks/{state}?{query}", "PUT", body=info, **more).status == 200
    )
    path = f"/states/{state}?{query}&ID={documents.lock_id(info)}"
    assert with_header(strict, writer.header, path, "POST", body=documents.state(2), **more).status == 200
    noted = strict.versions(state)[-1].metadata
    assert (noted["written-by"], noted["owner"]) == (f"token:{token.id}", "B%C3%A9a")

    session = with_header(strict, oidc.bearer(issuer.token()), f"/sessions?{query}", "POST", **more)
    assert (session.status, session.json()["role"], session.json()["scope"]) == (200, "writer", ["ci/*"])
    assert "oidc:" in session.json()["principal"]


# --- the authorizer's cache -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Party:
    """A caller whose results the gateway caches. `allowed` are the states that it may read."""

    name: str
    header: str
    allowed: tuple[str, ...]


def test_two_credentials_never_share_an_answer(strict: Team, issuer: Issuer) -> None:
    _, red = new_token(strict, Role.READER, "red/*")
    _, blue = new_token(strict, Role.READER, "blue/*")
    _, green = new_token(strict, Role.READER, "red/*", "blue/*")
    first = issuer.token()
    session = session_of(exchange(strict, oidc.bearer(first)))
    parties = [
        Party("red", red.header, ("red",)),
        Party("blue", blue.header, ("blue",)),
        Party("both", green.header, ("red", "blue")),
        Party("red, with the scheme in other letters", red.header.replace("Basic", "BASIC"), ("red",)),
        Party("red's ID with blue's secret", basic(red.username, blue.password), ()),
        Party("blue's ID with red's secret", basic(blue.username, red.password), ()),
        Party("red's secret cut", basic(red.username, red.password[:-1]), ()),
        Party("an ID token", oidc.basic(first), ("ci",)),
        Party("the same as a bearer", oidc.bearer(first), ("ci",)),
        Party("another ID token", oidc.bearer(issuer.token()), ("ci",)),
        Party("one of another repository", oidc.bearer(issuer.token({"repository": "mallory/x"})), ()),
        Party("a session", session.header, ("ci",)),
        Party("the session's ID with red's secret", basic(session.username, red.password), ()),
    ]
    asked = [(party, place) for party in parties for place in ("red", "blue", "ci")] * 6
    random.Random(5).shuffle(asked)  # noqa: S311 the same order every time

    def answer(one: tuple[Party, str]) -> int:
        party, place = one
        return with_header(strict, party.header, f"/states/{place}/none").status

    with ThreadPoolExecutor(6) as together:
        answers = list(together.map(answer, asked))

    wrong = [
        (party.name, place, got)
        for (party, place), got in zip(asked, answers, strict=True)
        if got != (204 if place in party.allowed else 403)
    ]
    assert wrong == []


# --- faults -----------------------------------------------------------------------------------------


def test_a_fault_is_never_remembered_as_a_refusal(strict: Team, roles: Roles, issuer: Issuer) -> None:
    authorizer, bucket = roles["strict", "authorizer"], f"arn:aws:s3:::{strict.bucket}"
    token, credentials = new_token(strict)
    session = session_of(exchange(strict, oidc.bearer(issuer.token())))
    spare = session_of(exchange(strict, oidc.bearer(issuer.token())))
    cases: list[tuple[str, list[str], list[str]]] = [
        ("tokens/*.json", [credentials.header], [basic(token.id, "x"), basic(new_id(), "x")]),
        ("sessions/*.json", [session.header], [basic(session.username, "x")]),
        (
            "trust/records.json",
            [oidc.bearer(issuer.token()), oidc.basic(issuer.token()), spare.header],
            [oidc.bearer(issuer.token({"repository": "mallory/x"}))],
        ),
    ]

    def statuses(headers: list[str]) -> list[int]:
        return [with_header(strict, header, "/states/ci/none").status for header in headers]

    for records, good, bad in cases:
        with authorizer.lacking("s3:GetObject", f"{bucket}/{records}"):
            during = statuses([*good, *bad])
        assert during == [500] * len(during), records
        # At once, with the same credentials: nothing was cached.
        assert statuses(good) == [204] * len(good), records
        assert statuses(bad) == [403] * len(bad), records

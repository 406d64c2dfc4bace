"""Identities that are carried past the authorizer, and answers that are remembered for the wrong one."""

import json
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from gateway import authorizer_context
from holdfast.access import Caller, Role
from holdfast.identity.authentication import Authenticated, AuthMethod
from holdfast.identity.credentials import new_id
from tests.support import documents, oidc
from tests.support.access_records import (
    add_oidc_trust,
    basic,
    exchange,
    new_token,
    session_of,
    with_header,
)
from tests.support.oidc import Issuer
from tests.support.permissions_judged import Roles
from tests.support.team import Team


@pytest.fixture(scope="module")
def issuer(strict: Team) -> Iterator[Issuer]:
    """An issuer that the team trusts for the repository acme/network, to write below `ci/`."""
    with Issuer() as running:
        add_oidc_trust(strict, running, "ci/*")
        yield running


# --- an identity in the request ---------------------------------------------------------------------

IDENTITY = authorizer_context.encode(
    Authenticated(Caller("token:root", Role.MAINTAINER, ("*",)), AuthMethod.TOKEN)
)


def carried() -> dict[str, dict[str, Any]]:
    """Where a request could carry what only the authorizer says, by place."""
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
def test_an_identity_in_the_request_changes_nothing(strict: Team, state: str, place: str) -> None:
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
                ("POST", f"/states/{state}", documents.state(2)),
            ):
                answer = with_header(strict, credentials.header, f"{path}?{query}", method, body=body, **more)
                assert answer.error == (403, "not_allowed"), (method, path)
        read = with_header(strict, outputs.header, f"/outputs/{state}?{query}", **more)
        assert read.status == 200
        assert read.json().keys() == {"version", "terraform_version", "serial", "lineage", "outputs"}
        wrong = with_header(strict, basic(outputs.username, "x"), f"/states/{state}?{query}", **more)
        assert wrong.status == 403
        assert strict.client(None).request("GET", f"/states/{state}?{query}", **more).status == 401


@pytest.mark.parametrize("place", carried())
def test_what_is_recorded_names_who_signed_in_and_not_who_the_request_says(
    strict: Team, state: str, place: str
) -> None:
    token, credentials = new_token(strict, Role.WRITER)
    info, more = documents.lock_info(), dict(carried()[place])
    query = more.pop("query", "")

    locked = with_header(strict, credentials.header, f"/locks/{state}?{query}", "PUT", body=info, **more)
    assert locked.status == 200
    path = f"/states/{state}?{query}&ID={documents.lock_id(info)}"
    written = with_header(strict, credentials.header, path, "POST", body=documents.state(), **more)
    assert written.status == 200

    [version] = strict.versions(state)
    assert version.metadata["written-by"] == f"token:{token.id}"


@pytest.mark.parametrize("place", carried())
def test_a_session_is_for_whom_the_id_token_names(strict: Team, issuer: Issuer, place: str) -> None:
    more = dict(carried()[place])
    query = more.pop("query", "")

    answer = with_header(strict, oidc.bearer(issuer.token()), f"/sessions?{query}", "POST", **more)

    assert answer.status == 200
    assert (answer.json()["role"], answer.json()["scope"]) == ("writer", ["ci/*"])
    assert "oidc:" in answer.json()["principal"]


# --- the authorizer's cache -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Party:
    """Somebody whose answers the gateway remembers.

    Attributes:
        name: for people.
        header: its `Authorization`.
        allowed: where it may read; nowhere for a refused one.
    """

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
        # At once, with the same credentials: nothing was remembered.
        assert statuses(good) == [204] * len(good), records
        assert statuses(bad) == [403] * len(bad), records


def test_a_damaged_trust_record_is_a_fault_that_takes_no_token_along(strict: Team, issuer: Issuer) -> None:
    _, credentials = new_token(strict)
    key = "trust/records.json"
    whole = strict.s3.get_object(Bucket=strict.bucket, Key=key)["Body"].read()
    authorization = oidc.bearer(issuer.token())
    damages: list[Callable[[bytes], bytes]] = [
        lambda body: body[: len(body) // 2],
        lambda body: body.replace(b'"role": "writer"', b'"role": "admin"'),
    ]

    try:
        for damage in damages:
            strict.put(key, damage(whole))
            assert with_header(strict, authorization, "/states/ci/none").status == 500
            assert strict.client_with(credentials).read("ci/none").status == 204
    finally:
        strict.put(key, whole)

    assert with_header(strict, authorization, "/states/ci/none").status == 204

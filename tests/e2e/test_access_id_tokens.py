"""Attacks on sign-in with ID tokens, and what becomes of it when the issuer fails.

The issuers run on loopback, and the deployed authorizer reaches them over HTTP.
"""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from holdfast.access import Role
from local_aws.issuer import DISCOVERY, Algorithm, SigningKeys
from tests.support.access_records import add_oidc_trust, alike, new_token, with_header
from tests.support.access_records import basic as basic_pair
from tests.support.audit_trail import wait_for_events
from tests.support.http_client import Client
from tests.support.id_tokens import forged, hmac_over
from tests.support.oidc import (
    NETWORK,
    Fault,
    Issuer,
    basic,
    bearer,
    public_forms,
    read_header,
    signed_well,
)
from tests.support.oidc import (
    with_header as with_jwt_header,
)
from tests.support.team import Team
from tests.support.waiting import wait_until

FAULT_REMEMBERED = 5.0
"""Seconds for which the authorizer does not ask an issuer again that it did not reach."""
REFRESH = 10.0
"""Seconds between two fetches of the keys because of a key ID that is not among them."""


def unreached(team: Team, count: int) -> int:
    """How many sign-ins failed because of their issuer; waits until there are so many."""
    return len(wait_for_events(team, count, event="sign_in.failed", error="IssuerUnreachable"))


@pytest.fixture(scope="module")
def issuer(strict: Team) -> Iterator[Issuer]:
    """An issuer that the team trusts for the repository acme/network, to write below `ci/`."""
    with Issuer() as running:
        add_oidc_trust(strict, running, "ci/*")
        yield running


def status(team: Team, authorization: str, state: str = "ci/none") -> int:
    """What a read of a state gets that is not there: 204 for whoever may read it."""
    return with_header(team, authorization, f"/states/{state}").status


# --- good tokens ------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", Algorithm)
@pytest.mark.parametrize("form", [basic, bearer], ids=["user name oidc", "bearer"])
def test_an_id_token_of_the_trusted_repository_gets_the_role_and_scope_of_its_record(
    strict: Team, issuer: Issuer, algorithm: Algorithm, form: Callable[[str], str]
) -> None:
    authorization = form(issuer.token(algorithm=algorithm))

    assert status(strict, authorization) == 204
    assert with_header(strict, authorization, "/states/elsewhere/none").error == (403, "not_allowed")
    assert with_header(strict, authorization, "/states/ci/none", "DELETE").error == (403, "not_allowed")


def test_more_claims_and_more_audiences_do_no_harm(strict: Team, issuer: Issuer) -> None:
    token = issuer.token({**NETWORK, "actor": "ada", "nested": {"a": [1]}}, audience=["other", "holdfast"])

    assert status(strict, bearer(token)) == 204


def test_of_several_records_the_one_with_most_claims_counts(strict: Team) -> None:
    with Issuer() as issuer:
        add_oidc_trust(strict, issuer, role=Role.READER, claims={"repository": "acme/network"}, name="a-many")
        add_oidc_trust(strict, issuer, role=Role.MAINTAINER, name="b-main-branch")
        main = bearer(issuer.token())
        branch = bearer(issuer.token({**NETWORK, "ref": "refs/heads/other"}))

        assert with_header(strict, main, "/states/ci/gone", "DELETE").status == 200
        assert with_header(strict, branch, "/states/ci/gone", "DELETE").error == (403, "not_allowed")


# --- attacks ----------------------------------------------------------------------------------------


@dataclass
class Tempter:
    """Where a token's header says that its keys are.

    Attributes:
        address: its URL.
        asked: every path that was asked for.
    """

    address: str
    asked: list[str]


@pytest.fixture(scope="module")
def tempter() -> Iterator[Tempter]:
    """A server that would hand out the attacker's keys, if anybody asked for them."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = json.dumps(ATTACKERS_KEYS.published()).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the base class names it so
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield Tempter(f"http://127.0.0.1:{server.server_port}", asked)
        server.shutdown()
        thread.join()


ATTACKERS_KEYS = SigningKeys.new()

Forge = Callable[[Issuer, Tempter], str]


def _hmac(form: str, algorithm: Algorithm) -> Forge:
    def make(issuer: Issuer, _: Tempter) -> str:
        key = issuer.keys.current[algorithm]
        header = {"alg": "HS256", "typ": "JWT", "kid": key.kid}
        return forged(header, issuer.claims(), hmac_over(public_forms(key)[form]))

    return make


def _none(name: str, signature: bytes = b"") -> Forge:
    def make(issuer: Issuer, _: Tempter) -> str:
        header = {"alg": name, "typ": "JWT", "kid": issuer.keys.current[Algorithm.RS256].kid}
        return forged(header, issuer.claims(), lambda _: signature)

    return make


def _foreign_key(issuer: Issuer, **header: object) -> str:
    """Signed with the attacker's key under the ID of the issuer's."""
    kid = issuer.keys.current[Algorithm.RS256].kid
    return signed_well(ATTACKERS_KEYS, {"kid": kid, **header}, issuer.claims())


def _attackers_jwk() -> dict[str, object]:
    return dict(ATTACKERS_KEYS.current[Algorithm.RS256].as_dict(private=False))


def _says(**claims: object) -> Forge:
    """Signed well by the issuer, but saying something else."""
    return lambda issuer, _: signed_well(issuer.keys, {}, issuer.claims(**claims))


def _without(name: str) -> Forge:
    def make(issuer: Issuer, _: Tempter) -> str:
        claims = issuer.claims()
        del claims[name]
        return signed_well(issuer.keys, {}, claims)

    return make


def _with_head(**header: object) -> Forge:
    return lambda issuer, _: signed_well(issuer.keys, header, issuer.claims())


def _now(**since: float) -> int:
    return int((datetime.now(UTC) + timedelta(**since)).timestamp())


ATTACKS: dict[str, Forge] = {
    "alg none": _none("none"),
    "alg None": _none("None"),
    "alg nOnE": _none("nOnE"),
    "alg none with a signature": _none("none", b"signature"),
    "no alg": lambda issuer, _: forged({"typ": "JWT"}, issuer.claims(), lambda _: b""),
    "alg empty": _none(""),
    **{f"HMAC over the RSA key's {form}": _hmac(form, Algorithm.RS256) for form in ("PEM", "DER", "JWK")},
    "HMAC over the RSA key's PEM, stripped": _hmac("PEM without its last line end", Algorithm.RS256),
    "HMAC over the EC key's PEM": _hmac("PEM", Algorithm.ES256),
    "HMAC with an empty key": lambda issuer, _: forged(
        {"alg": "HS256", "kid": issuer.keys.current[Algorithm.RS256].kid}, issuer.claims(), hmac_over(b"")
    ),
    "a foreign key under the issuer's key ID": lambda issuer, _: _foreign_key(issuer),
    "a foreign key without a key ID": lambda issuer, _: _foreign_key(issuer, kid=None),
    "a foreign key in the header": lambda issuer, _: _foreign_key(
        issuer, jwk=_attackers_jwk() | {"kid": issuer.keys.current[Algorithm.RS256].kid}
    ),
    "a foreign key in the header with its own key ID": lambda issuer, _: _foreign_key(
        issuer, jwk=_attackers_jwk(), kid=_attackers_jwk()["kid"]
    ),
    "jku elsewhere": lambda issuer, tempter: _foreign_key(issuer, jku=f"{tempter.address}/jku"),
    "jku elsewhere with its own key ID": lambda issuer, tempter: _foreign_key(
        issuer, jku=f"{tempter.address}/jku", kid=ATTACKERS_KEYS.current[Algorithm.RS256].kid
    ),
    "x5u elsewhere": lambda issuer, tempter: _foreign_key(issuer, x5u=f"{tempter.address}/x5u"),
    "a key ID that is an address": lambda issuer, tempter: _foreign_key(issuer, kid=f"{tempter.address}/kid"),
    "a key ID that is a path": lambda issuer, _: _foreign_key(issuer, kid="../../../../dev/null"),
    "a key ID that is a list": lambda issuer, _: _foreign_key(issuer, kid=["x"]),
    "an issuer that nobody trusts": lambda issuer, tempter: signed_well(
        ATTACKERS_KEYS, {}, issuer.claims(iss=tempter.address)
    ),
    "the issuer with a slash": lambda issuer, _: signed_well(
        issuer.keys, {}, issuer.claims(iss=f"{issuer.address}/")
    ),
    "the issuer as a user name elsewhere": lambda issuer, tempter: signed_well(
        ATTACKERS_KEYS,
        {},
        issuer.claims(iss=tempter.address.replace("http://", f"{issuer.address}@")),
    ),
    "the issuer in a list": lambda issuer, _: signed_well(
        issuer.keys, {}, issuer.claims(iss=[issuer.address])
    ),
    "no issuer": _without("iss"),
    "a critical header": _with_head(crit=["exp"], exp=1),
    "a critical header that nobody knows": _with_head(crit=["b64"], b64=False),
    "signed with RS256, said to be PS256": _with_head(alg="PS256"),
    "signed with RS256, said to be ES256": _with_head(alg="ES256"),
    "signed with RS256, said to be RS1": _with_head(alg="RS1"),
    "the RSA key under the EC key's ID": lambda issuer, _: signed_well(
        issuer.keys, {"kid": issuer.keys.current[Algorithm.ES256].kid}, issuer.claims()
    ),
    "another audience": _says(aud="sts.amazonaws.com"),
    "an audience that begins alike": _says(aud="holdfast-other"),
    "an audience that is an object": _says(aud={"holdfast": True}),
    "no audience": _without("aud"),
    "another repository": _says(repository="mallory/network"),
    "a repository that begins alike": _says(repository="acme/network-fork"),
    "a repository in other letters": _says(repository="ACME/network"),
    "a repository with a blank": _says(repository="acme/network "),
    "a repository in a list": _says(repository=["acme/network"]),
    "a repository that is an object": _says(repository={"acme/network": True}),
    "no repository": _without("repository"),
    "another branch": _says(ref="refs/heads/feature"),
    "a pull request": _says(ref="refs/pull/1/merge"),
    "expired": _says(exp=_now(minutes=-2)),
    "expired long ago": _says(exp=1),
    "no expiry": _without("exp"),
    "an expiry that is text": _says(exp="2099-01-01"),
    "an expiry that is endless": _says(exp=float("inf")),
    "an expiry that is null": _says(exp=None),
    "not good yet": _says(nbf=_now(hours=10)),
    "issued in the future": _says(iat=_now(hours=10)),
    "no subject": _without("sub"),
    "an empty subject": _says(sub=""),
    "a subject that is a list": _says(sub=["x"]),
    "another payload under its signature": lambda issuer, _: _swapped(issuer),
    "another header over its signature": lambda issuer, _: with_jwt_header(issuer.token(), typ="at+jwt"),
    "its signature cut": lambda issuer, _: issuer.token()[:-8],
    "its signature gone": lambda issuer, _: issuer.token().rpartition(".")[0] + ".",
    "two parts": lambda issuer, _: issuer.token().rpartition(".")[0],
    "five parts, as if encrypted": lambda issuer, _: issuer.token() + ".e30.e30",
    "claims that are a list": lambda issuer, _: signed_well(issuer.keys, {}, ["x"]),  # type: ignore[arg-type]
}


def _swapped(issuer: Issuer) -> str:
    mine = issuer.token({"repository": "mallory/network"}).split(".")
    theirs = issuer.token().split(".")
    return f"{mine[0]}.{theirs[1]}.{mine[2]}"


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_token_that_is_not_what_the_record_asks_for_is_refused_as_any_other(
    strict: Team, issuer: Issuer, tempter: Tempter, attack: str
) -> None:
    token = ATTACKS[attack](issuer, tempter)
    unknown = with_header(strict, basic_pair("0" * 20, "x"))

    for form in (basic, bearer):
        answer = with_header(strict, form(token), "/states/ci/none")
        assert alike(answer) == alike(unknown), answer

    assert tempter.asked == []


def test_none_of_it_is_refused_for_another_reason(strict: Team, issuer: Issuer) -> None:
    """The forger's tools make good tokens where nothing is forged."""
    assert status(strict, bearer(signed_well(issuer.keys, {}, issuer.claims()))) == 204
    assert (
        status(strict, bearer(signed_well(issuer.keys, {"typ": "JWT"}, issuer.claims(exp=_now(hours=1)))))
        == 204
    )


def test_a_token_is_refused_once_it_has_expired_though_it_was_good(strict: Team, issuer: Issuer) -> None:
    """Within the leeway for clocks it still is good, and after it no form of it is."""
    token = issuer.token(lifetime=timedelta(seconds=1), now=datetime.now(UTC) - timedelta(seconds=20))
    expired = issuer.token(lifetime=timedelta(seconds=1), now=datetime.now(UTC) - timedelta(seconds=60))

    assert status(strict, bearer(token)) == 204
    assert status(strict, bearer(expired)) == 403
    assert status(strict, basic(expired)) == 403


# --- large tokens -----------------------------------------------------------------------------------


def padded(size: int) -> dict[str, str]:
    """Claims of this size in bytes of JSON, beside the ones of the trusted repository."""
    return {**NETWORK, "padding": "x" * size}


def test_nine_kilobytes_of_claims_are_more_than_the_gateway_takes(strict: Team, issuer: Issuer) -> None:
    token = issuer.token(padded(9 * 1024))

    assert status(strict, bearer(token)) == 431


def test_nine_kilobytes_of_claims_do_no_harm_where_they_arrive(strict: Team, issuer: Issuer) -> None:
    """Past the gateway, which has the limit."""
    direct = Client(strict.direct_address, strict.tls, None)
    good = issuer.token(padded(9 * 1024))
    foreign = issuer.token({**padded(9 * 1024), "repository": "mallory/network"})

    got = [
        direct.request("GET", "/states/ci/none", headers={"Authorization": form(token)}).status
        for token in (good, foreign)
        for form in (bearer, basic)
    ]

    assert 500 not in got
    assert got[2:] == [403, 403]
    assert set(got[:2]) <= {204, 403}


def test_a_token_as_large_as_the_gateway_takes_signs_in(strict: Team, issuer: Issuer) -> None:
    token = issuer.token(padded(6500))
    assert 9000 < len(bearer(token)) < 9800

    assert status(strict, bearer(token)) == 204
    assert status(strict, bearer(issuer.token({**padded(6500), "repository": "mallory/network"}))) == 403


# --- issuers that fail ------------------------------------------------------------------------------


def test_an_issuer_that_fails_is_an_error_that_is_not_remembered_and_takes_nobody_else_along(
    strict: Team,
) -> None:
    _, token = new_token(strict)
    with ExitStack() as open_, ThreadPoolExecutor(len(Fault) + 1) as together:
        failing: dict[str, Issuer] = {each.name: open_.enter_context(Issuer()) for each in Fault}
        failing["UNREACHABLE"] = open_.enter_context(Issuer())
        faults = open_.enter_context(ExitStack())
        for name, issuer in failing.items():
            add_oidc_trust(strict, issuer, "ci/*")
            faults.enter_context(
                issuer.unreachable() if name == "UNREACHABLE" else issuer.having(Fault[name])
            )
        headers = {name: bearer(issuer.token()) for name, issuer in failing.items()}

        before = unreached(strict, 0)
        during = dict(
            zip(headers, together.map(lambda each: status(strict, each), headers.values()), strict=True)
        )
        assert strict.client_with(token).read("ci/none").status == 204
        faults.close()
        repaired = time.monotonic()

        # A key set without the key is no fault: that token may never have been one of this issuer's.
        assert {name: got for name, got in during.items() if got != 500} == {"NO_KEYS": 403}
        told = before + len(headers) - 1
        # An authorizer that waits for longer than it lives is stopped, and logs nothing.
        assert unreached(strict, told) >= told
        for name in set(headers) - {"NO_KEYS"}:
            wait_until(
                lambda name=name: status(strict, headers[name]) == 204,  # type: ignore[misc]
                f"{name}: the same token works once the issuer does",
                seconds=FAULT_REMEMBERED + 3,
            )
        print(f"all work {time.monotonic() - repaired:.1f} s after their issuers did")


def test_keys_that_are_known_go_on_serving_while_the_issuer_is_gone(strict: Team) -> None:
    with Issuer() as issuer:
        add_oidc_trust(strict, issuer, "ci/*")
        assert status(strict, bearer(issuer.token())) == 204
        with issuer.unreachable():
            assert status(strict, bearer(issuer.token())) == 204


def test_good_tokens_ask_the_issuer_once_and_not_for_every_sign_in(strict: Team) -> None:
    with Issuer() as issuer:
        add_oidc_trust(strict, issuer, "ci/*")
        assert [status(strict, bearer(issuer.token())) for _ in range(10)] == [204] * 10

        assert [asked.path for asked in issuer.asked] == [DISCOVERY, "/keys"]


def test_unknown_key_ids_ask_the_issuer_at_a_bounded_rate(strict: Team) -> None:
    with Issuer() as issuer:
        add_oidc_trust(strict, issuer, "ci/*")
        assert status(strict, bearer(issuer.token())) == 204
        started = time.monotonic()
        got = [
            status(strict, bearer(signed_well(ATTACKERS_KEYS, {"kid": f"guess-{number}"}, issuer.claims())))
            for number in range(40)
        ]
        took = time.monotonic() - started

        assert set(got) == {403}
        assert issuer.key_requests() <= 2 + took / REFRESH
        assert status(strict, bearer(issuer.token())) == 204, "guesses take nobody good along"


def test_an_issuer_that_nobody_trusts_is_never_asked(strict: Team) -> None:
    with Issuer() as stranger:
        assert status(strict, bearer(stranger.token())) == 403
        assert status(strict, basic(stranger.token())) == 403

        assert stranger.asked == []


def test_rotated_keys_are_fetched_and_the_ones_before_stay_good(strict: Team) -> None:
    with Issuer() as issuer:
        add_oidc_trust(strict, issuer, "ci/*")
        before = issuer.token()
        assert status(strict, bearer(before)) == 204
        fetched = issuer.asked[-1].time
        issuer.rotate()
        time.sleep(max(0.0, fetched + REFRESH + 0.2 - time.monotonic()))  # no fetch sooner after the last
        after = issuer.token()

        assert read_header(after)["kid"] != read_header(before)["kid"]
        assert status(strict, bearer(after)) == 204
        assert status(strict, basic(before)) == 204
        assert issuer.key_requests() == 2

"""From where requests are accepted: the authorizer and the exchange of a team with `networks`."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.identity import trust
from holdfast.identity.oidc import keys
from tests.contract.conftest import Bucket, Server, error, started
from tests.contract.test_sign_in import (
    ARN,
    BUCKET,
    DENIED,
    Functions,
    aws,
    deployers,
    jwt_of,
    stored_session,
    stored_token,
)
from tests.support.events import Context, sign_in
from tests.support.id_tokens import RSA, Published, record
from tests.support.sign_ins import basic

NETWORKS = "203.0.113.0/24,198.51.100.0/24,2001:db8::/32"
INSIDE, ALSO_INSIDE, OUTSIDE = "203.0.113.5", "198.51.100.5", "192.0.2.5"
FROM = ("203.0.113.0/25", "2001:db8::/48")


@pytest.fixture(scope="module")
def started_once(moto: Server) -> Iterator[Functions]:
    settings = {"HOLDFAST_BUCKET": BUCKET, "HOLDFAST_NETWORKS": NETWORKS}
    with started(moto, "authorizer", "session_exchange", **settings) as handlers:
        yield Functions(moto, handlers)


@pytest.fixture
def functions(started_once: Functions, monkeypatch: pytest.MonkeyPatch) -> Iterator[Functions]:
    monkeypatch.setattr(keys, "process_issuers", Published(RSA).issuers)
    yield started_once
    Bucket(BUCKET, started_once.server).empty()


def is_accepted(functions: Functions, authorization: str, address: str, **headers: str) -> bool:
    event = sign_in(authorization, address)
    event["headers"] |= headers
    accepted: bool = functions.handlers["authorizer"](event, Context())["isAuthorized"]
    return accepted


def every_credential(functions: Functions, **restricted: Any) -> list[str]:
    """Store a token, a session and a trust record; return the headers of each way to sign in by them."""
    token, secret = stored_token(functions, **restricted)
    granted_by = deployers(**restricted)
    functions.trust(record(**restricted), granted_by)
    session, of_session = stored_session(functions, granted_by)
    return [basic(token.id, secret), basic(session.id, of_session), jwt_of()]


@pytest.mark.parametrize(
    ("address", "of_team", "of_record"),
    [
        (INSIDE, True, True),
        ("203.0.113.200", True, False),
        (ALSO_INSIDE, True, False),
        (OUTSIDE, False, False),
        ("2001:db8::1", True, True),
        ("2001:db8:1::1", True, False),
        ("2001:db9::1", False, False),
        ("::ffff:203.0.113.5", True, True),
        ("::ffff:192.0.2.5", False, False),
        ("203.0.113.5:443", False, False),
        ("", False, False),
    ],
)
def test_credentials_are_accepted_from_the_networks_of_the_team_and_of_their_record(
    functions: Functions, address: str, *, of_team: bool, of_record: bool
) -> None:
    for authorization in every_credential(functions):
        assert is_accepted(functions, authorization, address) is of_team
    for authorization in every_credential(functions, networks=FROM):
        assert is_accepted(functions, authorization, address) is of_record


def test_one_token_from_two_addresses_is_decided_for_each_and_no_header_names_an_address(
    functions: Functions, log: list[str]
) -> None:
    token, secret = stored_token(functions)
    for inside in (True, False):
        real, forged = (INSIDE, OUTSIDE) if inside else (OUTSIDE, INSIDE)
        names = ("x-forwarded-for", "x-real-ip", "forwarded", "true-client-ip", "cf-connecting-ip")
        assert is_accepted(functions, basic(token.id, secret), real, **dict.fromkeys(names, forged)) is inside
    line = json.loads(log[-1])
    assert (line["message"], line["reason"], line["trail"]) == (
        *("sign_in.refused", "wrong_network", "holdfast.audit"),
    )
    assert (line["token"], line["source_ip"], line["s3_requests"]) == (token.id, OUTSIDE, 0)


@pytest.mark.parametrize("others", [[], [OUTSIDE], [INSIDE, INSIDE]])
def test_while_the_key_of_the_cache_lacks_the_address_no_record_with_networks_counts(
    functions: Functions, others: list[str]
) -> None:
    for authorization in every_credential(functions, networks=FROM):
        event = sign_in(authorization, INSIDE)
        event["identitySource"] = [authorization, *others]
        assert functions.handlers["authorizer"](event, Context()) == DENIED


def test_a_session_gets_the_networks_that_its_trust_record_has_now(functions: Functions) -> None:
    granted_by = deployers()
    session, secret = stored_session(functions, granted_by)
    for networks in ((), FROM, ()):
        update: dict[str, Any] = {"updated_by": "x", "now": granted_by.created, "networks": networks}
        functions.trust(trust.update(granted_by, change=trust.Change(), description=None, **update))
        assert is_accepted(functions, basic(session.id, secret), ALSO_INSIDE) is (networks == ())


@pytest.mark.parametrize(
    ("address", "networks", "rule"),
    [
        (INSIDE, (), None),
        ("::ffff:203.0.113.5", FROM, None),
        ("2001:db8::1", FROM, None),
        (OUTSIDE, (), "The address 192.0.2.5 is not in the networks of the team's setting"),
        (OUTSIDE, FROM, "The address 192.0.2.5 is not in the networks of the team's setting"),
        (
            ALSO_INSIDE,
            FROM,
            "The trust record 'deployers' does not accept requests from the address 198.51.100.5",
        ),
    ],
)
def test_an_aws_role_gets_a_session_from_the_networks_and_is_told_the_rule_elsewhere(
    functions: Functions, log: list[str], address: str, networks: tuple[str, ...], rule: str | None
) -> None:
    functions.trust(deployers(networks=networks))
    answer = functions.make_session(
        "/sessions/aws", aws(ARN), address=address, headers={"x-forwarded-for": INSIDE}
    )
    line = json.loads(log[-1])
    assert line["source_ip"] == address
    if rule is None:
        assert answer["statusCode"] == 200
    else:
        assert error(answer) == (403, "not_allowed")
        assert rule in json.loads(answer["body"])["message"]
        assert (line["message"], line["reason"]) == ("sign_in.refused", "wrong_network")
        assert functions.stored() == [trust.KEY]

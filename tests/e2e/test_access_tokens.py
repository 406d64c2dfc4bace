"""Credentials at the deployed authorizer: every refusal is the same response, and reaches no other key.

`tests/support/sign_ins.py` has the table, which the unit and contract tests try as well. These tests add what
the gateway does to a request.
"""

from collections.abc import Sequence
from dataclasses import replace

from joserfc.jwk import RSAKey

from holdfast.access import Role
from holdfast.identity.credentials import new_secret
from tests.support.access_records import add_aws_trust, add_oidc_trust, alike, new_token, trusted, with_header
from tests.support.http_client import Client
from tests.support.oidc import Issuer
from tests.support.permissions_judged import Roles
from tests.support.sign_ins import ATTEMPTS, SCOPE, World, basic, malformed
from tests.support.team import Team


def world_of(team: Team, issuer: Issuer) -> World:
    """Return the deployed team and an issuer, with the trust records of the table."""
    network = add_oidc_trust(team, issuer, SCOPE)
    add_aws_trust(team, "deployer", SCOPE)
    key = issuer.keys["RS256"]
    assert isinstance(key, RSAKey)
    return World(team.put, network, trusted(team, "deployer"), key)


def is_sent_as_it_is(header: str) -> bool:
    """Return whether an HTTP client sends a header, and the gateway passes it on, as it is written."""
    return header.isascii() and header.isprintable() and header.strip() == header and 0 < len(header) < 9000


def test_every_refusal_of_the_table_is_the_same_response_and_reaches_no_key_outside_of_the_records(
    strict: Team, roles: Roles
) -> None:
    # The objects at these keys are valid records, so that a request that reaches them would succeed.
    bait = replace(new_token(strict)[0], id="bait")
    for key in ("states/access/bait.tfstate", "states/access/bait.json", "bait.json", "tokens/.json"):
        strict.put(key, bait.to_json())
    before = len(asked_keys(roles))
    with Issuer() as issuer:
        world = world_of(strict, issuer)
        unknown = alike(with_header(strict, basic("0" * 20, new_secret()), "/states/ci/none"))
        answers = {
            name: alike(with_header(strict, attempt.sent(world), "/states/ci/none"))
            for name, attempt in ATTEMPTS.items()
        }
        holding_none = {
            header: alike(with_header(strict, header, "/states/ci/none"))
            for header in malformed(world)
            if is_sent_as_it_is(header)
        }

    assert unknown[0] == 403
    refused = {name: answer for name, answer in answers.items() if ATTEMPTS[name].reason}
    assert {name: answer for name, answer in refused.items() if answer != unknown} == {}
    assert {header: answer for header, answer in holding_none.items() if answer != unknown} == {}
    accepted = {name: answer[0] for name, answer in answers.items() if name not in refused}
    assert accepted == dict.fromkeys(accepted, 204)
    assert {key for key in asked_keys(roles)[before:] if not is_record(key)} == set()


def is_record(key: str) -> bool:
    """Return whether the authorizer may read a key."""
    folder, _, name = key.partition("/")
    identifier = name.removesuffix(".json").removeprefix("session-" if folder == "sessions" else "")
    plain = identifier.isascii() and identifier.isalnum() and identifier == identifier.lower()
    return key == "trust/records.json" or (
        folder in ("tokens", "sessions") and name.endswith(".json") and len(identifier) == 20 and plain
    )


def asked_keys(roles: Roles) -> Sequence[str]:
    """Return the key of every object that the authorizer has read so far."""
    return [call.key for call in roles["strict", "authorizer"].calls() if call.bucket]


def test_a_request_without_an_authorization_is_401(strict: Team) -> None:
    for headers in ({}, {"Authorization": ""}):
        answer = Client(strict.gateway.address, strict.tls, None).request(
            "GET", "/states/access/none", headers=headers
        )
        assert answer.status == 401, answer


def test_a_name_that_is_encoded_is_compared_as_what_it_is(strict: Team) -> None:
    """The gateway decodes a path once. The result is the state's name, for the scope and for the key."""
    _, credentials = new_token(strict, Role.READER, "scoped/*")
    client = strict.client_with(credentials)
    tried = ["scoped%2f..%2fother", "scoped/../other", "scoped/%2e%2e/other", "scoped%252f..%252fother"]
    tried += ["scoped/x%00", "scoped/%2e%2e%2fother", "./scoped/x", "scoped/x/.."]

    for name in tried:
        assert client.read(name).status in (400, 403, 404), name
    assert client.read("scoped%2Fprod").status == 204

"""Refused access tokens at the deployed authorizer: all get the same response, and reach no other key.

`tests/unit/test_credentials.py`, `test_tokens.py` and `tests/contract/test_sign_in.py` test which headers,
secrets and records are valid. These tests add what the gateway does to a request.
"""

import base64
from collections.abc import Sequence
from dataclasses import replace

from holdfast.access import Role
from holdfast.identity.credentials import new_id, new_secret
from tests.support.access_records import alike, basic, new_token, with_header
from tests.support.http_client import Client, Credentials
from tests.support.permissions_judged import Roles
from tests.support.team import Team


def wrong(token_hash: str, credentials: Credentials) -> dict[str, str]:
    """Return invalid `Authorization` headers that contain parts of a valid token."""
    good = credentials.header
    encoded = good.removeprefix("Basic ")
    user, secret = credentials.username, credentials.password
    return {
        "a wrong secret of the right form": basic(user, new_secret()),
        "its secret without the last letter": basic(user, secret[:-1]),
        "its secret with a line end": basic(user, f"{secret}\n"),
        "no secret": basic(user, ""),
        "a secret that could be a path": basic(user, "/../../x"),
        "the hash of its secret": basic(user, token_hash),
        "an unknown ID with that secret": basic(new_id(), secret),
        "an unknown ID with no secret": basic(new_id(), ""),
        "truncated in the middle": good[: len(good) // 2],
        "doubled": f"{good}, {good}",
        "Basic twice": f"Basic {good}",
        "no base64": f"Basic {user}:{secret}",
        "base64 with a blank inside": f"Basic {encoded[:10]} {encoded[10:]}",
        "base64 and more": f"Basic {encoded}=AAAA",
        "only the scheme": "Basic",
        "only the base64": encoded,
        "another scheme": f"Digest {encoded}",
        "the secret as a bearer": f"Bearer {secret}",
        "no colon": f"Basic {base64.b64encode(f'{user}{secret}'.encode()).decode()}",
        "no UTF-8": basic(user, b"\xff\xfe"),
        "oidc with the secret": basic("oidc", secret),
        "a JWT without parts": "Bearer ..",
    }


def traversals(token_id: str) -> list[str | bytes]:
    """Return user names that could become a key outside `tokens/`, or another spelling of a token's key."""
    return [
        "../states/access/bait",
        "../states/access/bait.tfstate",
        "",
        "/tokens/" + token_id,
        f"../tokens/{token_id}",
        f"x/../{token_id}",
        f"{token_id}/",
        f"{token_id}.json",
        f"{token_id}?versionId=null",
        f"{token_id}\x00",
        f"{token_id}\r\nx-amz-acl: public-read",
        f" {token_id}",
        f"{token_id} ",
        token_id.upper(),
        token_id[:-1] + "\uff11",  # a digit, but not of ASCII
        token_id[:-1].encode() + b"\xc0\xae",  # an overlong dot
        "%2e%2e%2fstates%2faccess%2fbait",
        f"session-{token_id}",
        f"session-{'0' * 20}/../../tokens/{token_id}",
        "../trust/records",
        "*",
        "a" * 4000,
    ]


def test_a_wrong_header_is_refused_alike_and_no_user_name_reaches_a_key_outside_of_the_records(
    strict: Team, roles: Roles
) -> None:
    token, credentials = new_token(strict)
    # The objects at these keys are valid records, so that a request that reaches them would succeed.
    bait = replace(token, id="bait")
    for key in ("states/access/bait.tfstate", "states/access/bait.json", "bait.json", "tokens/.json"):
        strict.put(key, bait.to_json())
    before = len(asked_keys(roles))
    others = {user: basic(user, credentials.password) for user in traversals(token.id)}

    unknown = alike(with_header(strict, basic("0" * 20, new_secret())))
    answers: dict[str | bytes, object] = {}
    answers |= {name: alike(with_header(strict, header)) for name, header in others.items()}
    assert token.key not in asked_keys(roles)[before:], "a name that is not its own led to the token"
    headers = wrong(token.secret_sha256, credentials)
    answers |= {name: alike(with_header(strict, header)) for name, header in headers.items()}

    assert unknown[0] == 403
    assert {name: answer for name, answer in answers.items() if answer != unknown} == {}
    assert {key for key in asked_keys(roles)[before:] if not is_record(key)} == set()
    assert strict.client_with(credentials).read("access/none").status == 204


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

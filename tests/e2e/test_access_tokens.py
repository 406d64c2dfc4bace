"""Attacks on access tokens, and their life: wrong, guessed, malformed, expired, rotated, tampered."""

import base64
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.access import Role
from holdfast.identity import tokens
from holdfast.identity.credentials import new_id, new_secret
from tests.support.access_records import alike, basic, new_token, put_token, with_header
from tests.support.http_client import Client, Credentials
from tests.support.permissions_judged import Roles
from tests.support.team import Team

SAMPLES = 60
MOST_APART = 3.0
"""How many times as long one kind of refusal may take as the other, by their medians."""

GUESSED = "holdfast_" + "0" * 49


def unknown_id() -> str:
    """An ID of the right form that no token has."""
    return new_id()


# --- which IDs there are ----------------------------------------------------------------------------


def test_a_wrong_secret_and_an_unknown_id_are_answered_alike(strict: Team) -> None:
    token, credentials = new_token(strict)
    secret = credentials.password
    refused = {
        "a wrong secret of the right form": basic(token.id, new_secret()),
        "its secret with the last letter changed": basic(token.id, secret[:-1] + "_"),
        "its secret without the last letter": basic(token.id, secret[:-1]),
        "its secret and more": basic(token.id, secret + "0"),
        "its secret in capitals": basic(token.id, secret.upper()),
        "its secret after a blank": basic(token.id, f" {secret}"),
        "its secret with a line end": basic(token.id, f"{secret}\n"),
        "no secret": basic(token.id, ""),
        "the hash of its secret": basic(token.id, token.secret_sha256),
        "an unknown ID with any secret": basic(unknown_id(), new_secret()),
        "an unknown ID with that secret": basic(unknown_id(), secret),
        "an unknown ID with no secret": basic(unknown_id(), ""),
        "a guessed ID": basic("0" * 20, GUESSED),
        "an ID that is none": basic("admin", "admin"),
    }

    answers = {name: alike(with_header(strict, header)) for name, header in refused.items()}

    assert {name for name, (status, _, _) in answers.items() if status != 403} == set()
    assert len({json.dumps(answer[1:], default=str) for answer in answers.values()}) == 1, answers
    assert strict.client_with(credentials).read("access/none").status == 204


def test_a_wrong_secret_and_an_unknown_id_take_as_long(strict: Team) -> None:
    token, _ = new_token(strict)
    kinds: dict[str, Callable[[], str]] = {
        "a wrong secret": lambda: basic(token.id, new_secret()),
        "an unknown ID": lambda: basic(unknown_id(), new_secret()),
    }
    taken: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(SAMPLES):  # in turns, so that a busy moment meets both
        for name, header in kinds.items():
            sent = header()
            started = time.perf_counter()
            assert with_header(strict, sent).status == 403
            taken[name].append(time.perf_counter() - started)

    medians = {name: statistics.median(times) for name, times in taken.items()}
    slow, fast = max(medians.values()), min(medians.values())
    print({name: f"{median * 1000:.1f} ms" for name, median in medians.items()}, f"ratio {slow / fast:.2f}")
    assert slow / fast < MOST_APART, medians


def test_many_guesses_of_ids_and_secrets_find_nothing(strict: Team) -> None:
    token, credentials = new_token(strict)
    guesses = [basic(f"{number:020d}", GUESSED) for number in range(100)]
    guesses += [basic(token.id[:-1] + letter, credentials.password) for letter in "0123456789abcdefghij"]

    statuses = [with_header(strict, guess).status for guess in guesses if guess != credentials.header]

    assert set(statuses) == {403}


# --- malformed headers ------------------------------------------------------------------------------


def malformed(credentials: Credentials) -> dict[str, str]:
    """`Authorization` headers that a careless reader could take for good ones."""
    good = credentials.header
    encoded = good.removeprefix("Basic ")
    user, secret = credentials.username, credentials.password
    return {
        "truncated in the middle": good[: len(good) // 2],
        "without its last letters": good[:-5],
        "doubled": f"{good}, {good}",
        "doubled without a comma": f"{good} {good}",
        "its base64 doubled": f"Basic {encoded}{encoded}",
        "Basic twice": f"Basic {good}",
        "no base64": f"Basic {user}:{secret}",
        "base64 twice": f"Basic {base64.b64encode(encoded.encode()).decode()}",
        "base64 with a blank inside": f"Basic {encoded[:10]} {encoded[10:]}",
        "base64 with a letter that is none": f"Basic {encoded[:10]}!{encoded[10:]}",
        "base64 and more": f"Basic {encoded}=AAAA",
        "only the scheme": "Basic",
        "only the base64": encoded,
        "another scheme": f"Digest {encoded}",
        "as a bearer": f"Bearer {encoded}",
        "the secret as a bearer": f"Bearer {secret}",
        "no colon": f"Basic {base64.b64encode(f'{user}{secret}'.encode()).decode()}",
        "user and secret exchanged": basic(secret, user),
        "no UTF-8": basic(user, b"\xff\xfe"),
        "oidc with the secret": basic("oidc", secret),
        "oidc with nothing": basic("oidc", ""),
        "a JWT without parts": "Bearer ..",
        "a JWT of nothing": basic("oidc", ".."),
    }


def test_malformed_headers_are_refused_as_wrong_ones_are_and_nothing_is_asked_for(
    strict: Team, roles: Roles
) -> None:
    _, credentials = new_token(strict)
    headers = malformed(credentials)
    before = asked_keys(roles)

    wrong = alike(with_header(strict, basic(unknown_id(), GUESSED)))
    answers = {name: alike(with_header(strict, header)) for name, header in headers.items()}

    assert {name: answer for name, answer in answers.items() if answer != wrong} == {}
    asked = asked_keys(roles)[len(before) :]
    assert [key for key in asked if not key.startswith(("tokens/", "trust/"))] == []
    assert strict.client_with(credentials).read("access/none").status == 204


def test_a_request_without_an_authorization_is_401(strict: Team) -> None:
    for headers in ({}, {"Authorization": ""}):
        answer = Client(strict.gateway.address, strict.tls, None).request(
            "GET", "/states/access/none", headers=headers
        )
        assert answer.status == 401, answer


# --- user names that try to reach other keys ---------------------------------------------------------


def traversals(token_id: str) -> list[str | bytes]:
    """User names that could become a key outside `tokens/`, or another spelling of a token's key."""
    return [
        "../states/access/bait",
        "../states/access/bait.tfstate",
        "..",
        ".",
        "/",
        "//",
        "/tokens/" + token_id,
        f"../tokens/{token_id}",
        f"./{token_id}",
        f"x/../{token_id}",
        f"{token_id}/",
        f"{token_id}/../{token_id}",
        f"{token_id}.json",
        f"{token_id}.json#",
        f"{token_id}?versionId=null",
        f"{token_id}\x00",
        f"\x00{token_id}",
        f"{token_id}\x00.json",
        f"{token_id}\n",
        f"{token_id}\r\nx-amz-acl: public-read",
        f" {token_id}",
        f"{token_id} ",
        f"\t{token_id}",
        token_id.upper(),
        token_id[:-1],
        token_id + "0",
        token_id[:-1] + "é",
        token_id[:-1] + "\u0435",  # a Cyrillic letter that looks like e
        token_id[:-1] + "\uff11",  # a digit, but not of ASCII
        token_id[:-1] + "\u00b2",
        token_id[:-1].encode() + b"\xff",
        token_id[:-1].encode() + b"\xc0\xae",  # an overlong dot
        "%2e%2e%2fstates%2faccess%2fbait",
        "..%2fstates%2faccess%2fbait",
        "..%252fstates",
        "..\\states\\access\\bait",
        f"session-{token_id}",
        f"session-../tokens/{token_id}",
        f"session-{'0' * 20}/../../tokens/{token_id}",
        "session-",
        f"Session-{token_id}",
        f"oidc/../tokens/{token_id}",
        "OIDC",
        "trust/records",
        "../trust/records",
        "records",
        "",
        "*",
        "?" * 20,
        "a" * 4000,
        "🐟" * 20,
    ]


def test_no_user_name_reaches_a_key_outside_of_the_records(strict: Team, roles: Roles) -> None:
    token, credentials = new_token(strict)
    # What would be found there is a good record, so that reaching it would let somebody in.
    bait = replace(token, id="bait")
    for key in ("states/access/bait.tfstate", "states/access/bait.json", "bait.json", "tokens/.json"):
        strict.put(key, bait.to_json())
    before = len(asked_keys(roles))

    statuses = {}
    for user in traversals(token.id):
        for password in (credentials.password, f"x:{credentials.password}"):
            statuses[user, password] = with_header(strict, basic(user, password)).status

    asked = set(asked_keys(roles)[before:])
    assert {user for (user, _), status in statuses.items() if status != 403} == set()
    outside = {key for key in asked if not is_record(key)}
    assert outside == set()
    assert f"tokens/{token.id}.json" not in asked, "a name that is not its own led to the token"


def is_record(key: str) -> bool:
    """Whether a key is one that the authorizer may ask for."""
    folder, _, name = key.partition("/")
    identifier = name.removesuffix(".json").removeprefix("session-" if folder == "sessions" else "")
    plain = identifier.isascii() and identifier.isalnum() and identifier == identifier.lower()
    return key == "trust/records.json" or (
        folder in ("tokens", "sessions") and name.endswith(".json") and len(identifier) == 20 and plain
    )


def asked_keys(roles: Roles) -> Sequence[str]:
    """The keys of every object that the authorizer has asked for so far."""
    return [call.key for call in roles["strict", "authorizer"].calls() if call.bucket]


def test_a_password_may_hold_anything_and_changes_no_key(strict: Team, roles: Roles) -> None:
    token, credentials = new_token(strict)
    before = len(asked_keys(roles))
    passwords = ["/../../x", "\x00", "a:b:c", "ü🐟", "%2e%2e", f"{credentials.password}:x", "x" * 5000]

    statuses = [with_header(strict, basic(token.id, password)).status for password in passwords]

    assert statuses == [403] * len(passwords)
    assert set(asked_keys(roles)[before:]) == {f"tokens/{token.id}.json"}


# --- a token's life ---------------------------------------------------------------------------------


def status_of(team: Team, credentials: Credentials) -> int:
    return team.client_with(credentials).read("access/none").status


def test_a_token_works_until_it_expires_and_then_is_refused_as_an_unknown_one(strict: Team) -> None:
    now = datetime.now(UTC)
    _, lasting = new_token(strict, expires=now + timedelta(hours=1))
    token, ended = new_token(strict, created=now - timedelta(days=90), expires=now - timedelta(seconds=1))
    unknown = with_header(strict, basic(unknown_id(), GUESSED))

    assert status_of(strict, lasting) == 204
    refused = strict.client_with(ended).read("access/none")
    assert alike(refused) == alike(unknown)
    assert token.status(now) == "expired"


def test_a_rotated_token_takes_its_old_secret_for_the_time_that_was_said(strict: Team) -> None:
    now = datetime.now(UTC)

    def rotated(rotation: datetime, keep: timedelta) -> tuple[Credentials, Credentials]:
        """A token that was rotated at another time: its old and its new credentials."""
        token, old = new_token(strict, created=now - timedelta(days=10))
        changed, secret = tokens.rotate(
            token, rotated_by="a test", now=rotation, keep=keep, expires=now + timedelta(days=90)
        )
        put_token(strict, changed)
        return old, Credentials(token.id, secret)

    within_old, within_new = rotated(now - timedelta(hours=1), timedelta(hours=24))
    after_old, after_new = rotated(now - timedelta(hours=25), timedelta(hours=24))
    at_once_old, at_once_new = rotated(now - timedelta(seconds=1), timedelta(0))

    assert [status_of(strict, each) for each in (within_old, within_new)] == [204, 204]
    assert [status_of(strict, each) for each in (after_old, after_new)] == [403, 204]
    assert [status_of(strict, each) for each in (at_once_old, at_once_new)] == [403, 204]


def test_a_second_rotation_ends_the_first_secret_at_once(strict: Team) -> None:
    now = datetime.now(UTC)
    token, first = new_token(strict, created=now - timedelta(days=1))
    day = timedelta(days=1)
    once, secret = tokens.rotate(token, rotated_by="a test", now=now, keep=day, expires=None)
    twice, newest = tokens.rotate(once, rotated_by="a test", now=now, keep=day, expires=None)
    put_token(strict, twice)

    statuses = [
        status_of(strict, each)
        for each in (first, Credentials(token.id, secret), Credentials(token.id, newest))
    ]

    assert statuses == [403, 204, 204]


def test_a_revoked_token_is_refused_with_both_of_its_secrets(strict: Team) -> None:
    now = datetime.now(UTC)
    token, old = new_token(strict)
    rotated, secret = tokens.rotate(token, rotated_by="a test", now=now, keep=timedelta(days=1), expires=None)
    put_token(strict, tokens.revoke(rotated, revoked_by="a test", now=now))

    assert [status_of(strict, each) for each in (old, Credentials(token.id, secret))] == [403, 403]


TAMPERED: dict[str, Callable[[dict[str, Any]], object]] = {
    "no JSON": str,
    "nothing": lambda _: {},
    "a role that is none": lambda record: {**record, "role": "admin"},
    "no scope": lambda record: {**record, "scope": []},
    "a pattern that is none": lambda record: {**record, "scope": ["../*"]},
    "an expiry without a zone": lambda record: {**record, "expires": "2099-01-01T00:00:00"},
    "revoked by a word": lambda record: {**record, "revoked": "no"},
    "another's ID": lambda record: {**record, "id": "0" * 20},
    "the secret for its hash": lambda record: {**record, "secret_sha256": GUESSED},
}


@pytest.mark.parametrize("how", TAMPERED)
def test_a_tampered_record_lets_nobody_in(strict: Team, how: str) -> None:
    token, credentials = new_token(strict)
    record = json.loads(token.to_json())
    strict.put(token.key, json.dumps(TAMPERED[how](record)).encode())

    got = status_of(strict, Credentials(token.id, GUESSED) if "hash" in how else credentials)

    # A damaged record is a fault of the deployment, which is logged and not cached; or nobody's token.
    assert got in (403, 500)
    put_token(strict, token)
    if got == 500:
        assert status_of(strict, credentials) == 204


def test_a_record_that_was_copied_to_another_id_is_not_that_ids_token(strict: Team) -> None:
    token, credentials = new_token(strict)
    other = unknown_id()
    strict.put(f"tokens/{other}.json", token.to_json())

    assert with_header(strict, basic(other, credentials.password)).status == 403


# --- scopes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "covers", "covers_not"),
    [
        (
            "scoped/*",
            ["scoped/prod", "scoped/prod/eu"],
            ["scoped", "scopeds/x", "scoped-x", "other/scoped/x"],
        ),
        ("*/prod", ["scoped/prod"], ["scoped/eu/prod", "prod", "scoped/production", "scoped/prod/eu"]),
        ("scoped/*/prod", ["scoped/eu/prod"], ["scoped/prod", "scoped/eu/west/prod", "scoped//prod"]),
        ("sc*/prod", ["scoped/prod"], ["sc/oped/prod", "xscoped/prod"]),
        ("scoped/p*d", ["scoped/prod"], ["scoped/p/d", "scoped/prod/d"]),
        ("*", ["scoped", "scoped/prod", "a/b/c/d/e/f/g/h"], []),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_pattern_never_matches_across_segments(
    strict: Team, pattern: str, covers: list[str], covers_not: list[str]
) -> None:
    _, credentials = new_token(strict, Role.READER, pattern)
    client = strict.client_with(credentials)

    assert {name: client.read(name).status for name in covers} == dict.fromkeys(covers, 204)
    for name in covers_not:
        assert client.read(name).status in (400, 403), name


def test_a_name_that_is_encoded_is_compared_as_what_it_is(strict: Team) -> None:
    """The gateway decodes a path once; what is decoded then is the state's name, for scope and key alike."""
    _, credentials = new_token(strict, Role.READER, "scoped/*")
    client = strict.client_with(credentials)
    tried = ["scoped%2f..%2fother", "scoped/../other", "scoped/%2e%2e/other", "scoped%252f..%252fother"]
    tried += ["scoped/x%00", "scoped/%2e%2e%2fother", "./scoped/x", "scoped/x/.."]

    for name in tried:
        assert client.read(name).status in (400, 403, 404), name
    assert client.read("scoped%2Fprod").status == 204

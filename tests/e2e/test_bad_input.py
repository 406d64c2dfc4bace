"""Bad requests that the gateway decodes, renames or cuts: documented status, and no change.

`tests/unit` tests which names, lock infos and states are valid. `tests/contract/test_functions.py` tests the
status of each refusal.
"""

import base64
import hashlib

import pytest

from tests.support import documents
from tests.support.team import Team

VERBS = [
    *(("GET", "states"), ("POST", "states"), ("DELETE", "states"), ("GET", "outputs")),
    *(("PUT", "locks"), ("DELETE", "locks"), ("POST", "unlocks")),
]
BODIES = {"states": documents.state(), "locks": documents.lock_info(), "unlocks": documents.lock_info()}


def md5(body: bytes) -> str:
    return base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()


def locked(team: Team, state: str, serial: int = 5) -> str:
    """Write a state under a lock that stays held, and return the lock's ID."""
    lock_id = documents.lock_id(team.locked(state))
    assert team.client("writer").write(state, documents.state(serial), lock_id).status == 200
    return lock_id


# --- names ---------------------------------------------------------------------------------------


START, CHARACTERS, EMPTY = (
    "must start with a letter or a digit",
    "letters, digits, '.', '_' and '-'",
    "segment 2 is empty",
)
BAD_NAMES = {
    "a/../b": START,
    "..%2F..%2Ftokens%2Fx": START,
    "a//b": EMPTY,
    "a%2F%2Fb": EMPTY,
    "a/": EMPTY,
    "a%00b": CHARACTERS,
    "a%20b": CHARACTERS,
    "b%C3%BCro": "(ASCII)",
    "a%3Fb": CHARACTERS,
    "a%252Fb": CHARACTERS,
    "x" * 300: "at most 200",
}


@pytest.mark.parametrize(("method", "route"), VERBS, ids=[f"{verb} {route}" for verb, route in VERBS])
def test_a_malformed_name_is_400_and_names_the_rule(strict: Team, method: str, route: str) -> None:
    body = BODIES[route] if method in ("POST", "PUT") else None

    with strict.unchanged():
        for name, rule in BAD_NAMES.items():
            answer = strict.client("maintainer").request(method, f"/{route}/{name}", body)
            assert answer.error == (400, "invalid_state_name"), name
            assert rule in answer.json()["message"]


def test_an_encoded_slash_is_a_slash(strict: Team, state: str) -> None:
    locked(strict, state)

    assert strict.client("reader").read(state.replace("/", "%2F")).body == documents.state(5)


def test_the_longest_and_the_deepest_name_are_taken(strict: Team) -> None:
    for name in ("long-" + "x" * 195, "deep/b/c/d/e/f/g/h"):
        strict.write(name, documents.state())
        assert strict.current(name) == documents.state()


def test_an_unknown_route_is_400_with_the_nearest_one_and_401_without_credentials(strict: Team) -> None:
    for path, nearest in {
        "/": "/states/network/prod",
        "/states/": "/states/network/prod",
        "/stats/nothing%2Fhere": "/states/nothing/here",
        "/stats/a%0D%0Ab": "/states/network/prod",
        "/stats/a%252Fb": "/states/network/prod",
        "/health/x": "/health",
    }.items():
        answer = strict.client("reader").request("GET", path)
        assert answer.error == (400, "unknown_route"), path
        assert f" {nearest}" in answer.json()["message"]
        assert strict.client(None).request("GET", path).status == 401


# --- lock info -----------------------------------------------------------------------------------


def test_lock_info_that_is_not_text_or_too_large_locks_and_unlocks_nothing(strict: Team, state: str) -> None:
    client = strict.client("maintainer")
    with strict.unchanged():
        assert client.lock(state, b"").error == (400, "invalid_lock_info")
    locked(strict, state)

    with strict.unchanged():
        for body, error in (
            (b"\xff\xfe", (400, "invalid_body")),
            (b'{"ID": "x", "Info": ' + b"[" * 60_000, (400, "invalid_lock_info")),
            (b'{"ID": "x", "Info": "' + b"x" * 1_000_000 + b'"}', (413, "too_large")),
        ):
            assert client.lock(state, body).error == client.unlock(state, body).error == error


@pytest.mark.parametrize("renamed", [True, False], ids=["renamed", "as sent"])
@pytest.mark.parametrize("role", ["writer", "maintainer"])
def test_a_delete_whose_announced_body_did_not_arrive_is_400_and_no_force_unlock(
    strict: Team, state: str, role: str, renamed: bool
) -> None:
    locked(strict, state)
    body = documents.lock_info()
    gateway = strict.gateway

    with strict.unchanged(), gateway.dropping_delete_bodies(), gateway.renaming_headers(renames=renamed):
        answer = strict.client(role).request("DELETE", f"/locks/{state}", body, {"Content-MD5": md5(body)})

    assert answer.error == (400, "invalid_body")


@pytest.mark.parametrize("renamed", [True, False], ids=["renamed", "as sent"])
def test_a_body_that_does_not_match_its_md5_is_400(strict: Team, state: str, renamed: bool) -> None:
    client = strict.client("writer")
    held = locked(strict, state)
    wrong = {"Content-MD5": md5(b"another body")}
    good = {"Content-MD5": md5(documents.state(6))}

    with strict.gateway.renaming_headers(renames=renamed):
        with strict.unchanged():
            write = client.request("POST", f"/states/{state}?ID={held}", documents.state(6), wrong)
            lock = client.request("PUT", f"/locks/{state}/x", documents.lock_info(), wrong)
        right = client.request("POST", f"/states/{state}?ID={held}", documents.state(6), good)

    assert write.error == lock.error == (400, "invalid_body")
    assert right.status == 200


# --- states --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "application/octet-stream", "application/x-www-form-urlencoded", ""],
)
def test_a_state_that_the_gateway_hands_over_as_text_or_base64_is_stored_byte_for_byte(
    strict: Team, state: str, content_type: str
) -> None:
    held = locked(strict, state)
    body = documents.state(6, content='büro 🐟 \u2028 </script> \\ " ') + b" \n\t\n"

    answer = strict.client("writer").request(
        "POST", f"/states/{state}?ID={held}", body, {"Content-Type": content_type}
    )

    assert answer.status == 200
    assert strict.current(state) == body
    read = strict.client("reader").read(state)
    assert read.body == body
    assert (read.headers["content-type"], read.headers["cache-control"]) == ("application/json", "no-store")


@pytest.mark.parametrize("announced", [True, False], ids=["with Content-MD5", "without"])
def test_a_body_that_is_not_utf_8_is_400_instead_of_stored_as_something_else(
    strict: Team, state: str, announced: bool
) -> None:
    held = locked(strict, state)
    body = documents.state(6, content="é").decode().encode("latin-1")

    with strict.unchanged():
        answer = strict.client("writer").request(
            "POST", f"/states/{state}?ID={held}", body, {"Content-MD5": md5(body)} if announced else {}
        )

    assert answer.error == (400, "invalid_body")


# --- verbs that only some gateways pass ----------------------------------------------------------


def test_no_answer_but_that_of_a_read_could_be_followed_elsewhere(strict: Team, state: str) -> None:
    clients = [strict.client("maintainer"), strict.client(None), strict.direct_client("writer")]
    for client in clients:
        for path in (f"/states/{state}", f"/locks/{state}", f"/states/{state}/", f"//locks/{state}"):
            for method in ("POST", "PUT", "DELETE"):
                answer = client.request(method, path, b"{}")
                assert not 300 <= answer.status < 400
                assert answer.status < 500
                assert "location" not in answer.headers

"""Whatever a client sends: the documented status, a message that helps, and nothing changed."""

import base64
import hashlib
import json
from collections.abc import Mapping

import pytest

from tests.support import documents
from tests.support.http_client import Client, Credentials
from tests.support.team import Team

VERBS = [
    *(("GET", "states"), ("POST", "states"), ("DELETE", "states"), ("GET", "outputs")),
    *(("PUT", "locks"), ("DELETE", "locks"), ("POST", "unlocks")),
]
BODIES = {"states": documents.state(), "locks": documents.lock_info(), "unlocks": documents.lock_info()}


def md5(body: bytes) -> str:
    return base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()


def locked(team: Team, state: str, serial: int = 5) -> str:
    """Write a state under a lock that stays held; return the lock's ID."""
    client, info = team.client("writer"), documents.lock_info()
    assert client.lock(state, info).status == 200
    assert client.write(state, documents.state(serial), documents.lock_id(info)).status == 200
    return documents.lock_id(info)


# --- names ---------------------------------------------------------------------------------------


START, CHARACTERS, ASCII = (
    "must start with a letter or a digit",
    "letters, digits, '.', '_' and '-'",
    "(ASCII)",
)
BAD_NAMES = [
    ("..", START),
    ("a/../b", START),
    ("..%2F..%2Ftokens%2Fx", START),
    (".hidden", START),
    ("a//b", "Segment 2 of the state name is empty"),
    ("a%2F%2Fb", "Segment 2 of the state name is empty"),
    ("a/", "Segment 2 of the state name is empty"),
    ("a%00b", CHARACTERS),
    ("a%09b", CHARACTERS),
    ("a%20b", CHARACTERS),
    ("b%C3%BCro", ASCII),
    ("%D9%A3", ASCII),
    ("a%3Fb", CHARACTERS),
    ("a%252Fb", CHARACTERS),
    ("x" * 300, "at most 200"),
    ("a/b/c/d/e/f/g/h/i", "at most 8"),
]


@pytest.mark.parametrize(("method", "route"), VERBS, ids=[f"{verb} {route}" for verb, route in VERBS])
@pytest.mark.parametrize(("name", "rule"), BAD_NAMES, ids=[name[:20] for name, _ in BAD_NAMES])
def test_a_malformed_name_is_400_and_names_the_rule(
    strict: Team, method: str, route: str, name: str, rule: str
) -> None:
    body = BODIES[route] if method != "GET" else None

    with strict.unchanged():
        answer = strict.client("maintainer").request(method, f"/{route}/{name}", body)

    assert answer.error == (400, "invalid_state_name")
    assert rule in answer.json()["message"]


def test_an_encoded_slash_is_a_slash(strict: Team, state: str) -> None:
    locked(strict, state)

    assert strict.client("reader").read(state.replace("/", "%2F")).body == documents.state(5)


def test_the_longest_and_the_deepest_name_are_taken(strict: Team) -> None:
    client = strict.client("writer")
    for name in ("long-" + "x" * 195, "deep/b/c/d/e/f/g/h"):
        info = documents.lock_info()
        assert client.lock(name, info).status == 200
        assert client.write(name, documents.state(), documents.lock_id(info)).status == 200
        assert client.unlock(name, info).status == 200
        assert strict.current(name) == documents.state()


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("/", "/states/network/prod"),
        ("/states", "/states/network/prod"),
        ("/states/", "/states/network/prod"),
        ("/locks/", "/locks/network/prod"),
        ("/nothing/here", "/states/nothing/here"),
        ("/stats/nothing/here", "/states/nothing/here"),
        ("/stats/nothing%2Fhere", "/states/nothing/here"),
        ("/prod/states/here", "/states/here"),
        ("/stats/a%0D%0Ab", "/states/network/prod"),
        ("/stats/a%252Fb", "/states/network/prod"),
        ("/health/x", "/health"),
    ],
)
def test_an_unknown_route_is_400_with_the_nearest_one_and_401_without_credentials(
    strict: Team, path: str, nearest: str
) -> None:
    answer = strict.client("reader").request("GET", path)

    assert answer.error == (400, "unknown_route")
    assert f" {nearest}" in answer.json()["message"]
    assert strict.client(None).request("GET", path).status == 401
    wrong = strict.client_with(Credentials("0" * 20, "wrong"))
    assert wrong.request("GET", path).status == 403


def test_only_a_state_that_does_not_exist_reads_as_no_state(strict: Team, state: str) -> None:
    client = strict.client("reader")
    assert client.read(state).status == client.outputs(state).status == 204

    strict.put(f"states/{state}.tfstate", b"")

    assert client.read(state).error == (409, "unreadable_state")
    assert client.outputs(state).error == (409, "unreadable_state")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PATCH", "/states/a", "GET, POST, PUT, DELETE, LOCK, UNLOCK"),
        ("HEAD", "/states/a", "GET, POST, PUT, DELETE, LOCK, UNLOCK"),
        ("POST", "/outputs/a", "GET"),
        ("GET", "/locks/a", "PUT, POST, LOCK, DELETE, UNLOCK"),
        ("GET", "/unlocks/a", "POST, UNLOCK"),
        ("PATCH", "/locks/a", "PUT, POST, LOCK, DELETE, UNLOCK"),
        ("POST", "/health", "GET"),
    ],
)
def test_a_wrong_verb_is_405_and_told_the_right_ones(
    strict: Team, method: str, path: str, allowed: str
) -> None:
    with strict.unchanged():
        answer = strict.client("maintainer").request(method, path, b"{}")

    assert answer.status == 405
    assert answer.headers["allow"] == allowed
    if method != "HEAD":
        assert answer.error == (405, "method_not_allowed")


# --- credentials ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "authorization",
    ["Basic", "Basic !", "Basic Zm9v", "Basic /w==", "Bearer x", "Digest username=x", "x", "Basic Og=="],
)
def test_malformed_credentials_are_403(strict: Team, state: str, authorization: str) -> None:
    locked(strict, state)

    with strict.unchanged():
        answer = strict.client(None).request(
            "DELETE", f"/locks/{state}", None, {"Authorization": authorization}
        )

    assert answer.status == 403
    assert "message" in answer.json()


def test_wrong_credentials_are_403(strict: Team, loose: Team, state: str) -> None:
    held = locked(strict, state)
    token = strict.token("maintainer")
    wrong = [
        Credentials(token.username, token.password[:-1] + ("0" if token.password[-1] != "0" else "1")),
        Credentials(token.username, ""),
        Credentials(token.username, token.password + "x"),
        Credentials("0" * 20, token.password),
        Credentials(token.username.upper(), token.password),
        Credentials(strict.token("writer").username, token.password),
        Credentials("../states/x", token.password),
        loose.token("maintainer"),
    ]

    for credentials in wrong:
        client = strict.client_with(credentials)
        with strict.unchanged():
            assert client.read(state).status == 403
            assert client.write(state, documents.state(6), held).status == 403
            assert client.unlock(state, None).status == 403


# --- lock info -----------------------------------------------------------------------------------

BAD_LOCK_INFO = [
    pytest.param(b"", (400, "invalid_lock_info"), id="empty"),
    pytest.param(b"{", (400, "invalid_lock_info"), id="not JSON"),
    pytest.param(b"\xff\xfe", (400, "invalid_body"), id="not text"),
    pytest.param(b"[]", (400, "invalid_lock_info"), id="a list"),
    pytest.param(b'"x"', (400, "invalid_lock_info"), id="a string"),
    pytest.param(b"{}", (400, "invalid_lock_info"), id="without ID"),
    pytest.param(b'{"ID": ""}', (400, "invalid_lock_info"), id="empty ID"),
    pytest.param(b'{"ID": 7}', (400, "invalid_lock_info"), id="ID is a number"),
    pytest.param(b'{"ID": "' + b"x" * 1000 + b'"}', (400, "invalid_lock_info"), id="long ID"),
    pytest.param(b'{"ID": "x", "Info": "\\ud800"}', (400, "invalid_lock_info"), id="no Unicode"),
    pytest.param(b'{"ID": "x", "Info": ' + b"[" * 60_000, (400, "invalid_lock_info"), id="deep"),
    pytest.param(b'{"ID": "x", "Info": "' + b"x" * 65_536 + b'"}', (413, "too_large"), id="64 KiB"),
    pytest.param(b'{"ID": "x", "Info": "' + b"x" * 1_000_000 + b'"}', (413, "too_large"), id="1 MB"),
]


@pytest.mark.parametrize(("body", "error"), BAD_LOCK_INFO)
def test_a_lock_request_without_usable_lock_info_locks_nothing(
    strict: Team, state: str, body: bytes, error: tuple[int, str]
) -> None:
    with strict.unchanged():
        assert strict.client("writer").lock(state, body).error == error


@pytest.mark.parametrize(("body", "error"), BAD_LOCK_INFO[1:])
def test_an_unlock_request_without_usable_lock_info_unlocks_nothing(
    strict: Team, state: str, body: bytes, error: tuple[int, str]
) -> None:
    locked(strict, state)

    with strict.unchanged():
        assert strict.client("maintainer").unlock(state, body).error == error


@pytest.mark.parametrize("renamed", [True, False], ids=["renamed", "as sent"])
@pytest.mark.parametrize("role", ["writer", "maintainer"])
def test_a_delete_whose_announced_body_did_not_arrive_is_400_and_no_force_unlock(
    strict: Team, state: str, role: str, renamed: bool
) -> None:
    locked(strict, state)
    body = documents.lock_info()
    gateway = strict.gateway

    gateway.renames_headers = renamed
    try:
        with strict.unchanged(), gateway.dropping_delete_bodies():
            answer = strict.client(role).request(
                "DELETE", f"/locks/{state}", body, {"Content-MD5": md5(body)}
            )
    finally:
        gateway.renames_headers = True

    assert answer.error == (400, "invalid_body")


@pytest.mark.parametrize("role", ["writer", "maintainer"])
def test_a_post_of_an_unlock_whose_announced_body_did_not_arrive_is_400_and_no_force_unlock(
    strict: Team, state: str, role: str
) -> None:
    locked(strict, state)
    announced = {"Content-MD5": md5(documents.lock_info())}

    with strict.unchanged():
        answer = strict.client(role).request("POST", f"/unlocks/{state}", b"", announced)

    assert answer.error == (400, "invalid_body")


@pytest.mark.parametrize("renamed", [True, False], ids=["renamed", "as sent"])
def test_a_body_that_does_not_match_its_md5_is_400(strict: Team, state: str, renamed: bool) -> None:
    client = strict.client("writer")
    held = locked(strict, state)
    wrong = {"Content-MD5": md5(b"another body")}

    strict.gateway.renames_headers = renamed
    try:
        with strict.unchanged():
            write = client.request("POST", f"/states/{state}?ID={held}", documents.state(6), wrong)
            lock = client.request("PUT", f"/locks/{state}/x", documents.lock_info(), wrong)
        right = client.request(
            "POST",
            f"/states/{state}?ID={held}",
            documents.state(6),
            {"Content-MD5": md5(documents.state(6))},
        )
    finally:
        strict.gateway.renames_headers = True

    assert write.error == lock.error == (400, "invalid_body")
    assert right.status == 200


# --- states --------------------------------------------------------------------------------------


def without(field: str) -> bytes:
    document = json.loads(documents.state())
    del document[field]
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"resource {}", id="not JSON"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"null", id="null"),
        pytest.param(b"{}", id="an empty object"),
        pytest.param(documents.state(5)[:-20], id="cut off"),
        pytest.param(base64.b64encode(documents.state(6)), id="base64 that is called JSON"),
        pytest.param(without("serial"), id="no serial"),
        pytest.param(without("version"), id="no version"),
        pytest.param(documents.state(-1), id="negative serial"),
        pytest.param(documents.state(1.5), id="fractional serial"),
        pytest.param(documents.state(2**64), id="huge serial"),
        pytest.param(documents.state(6).replace(b"6", b"9" * 5000), id="serial of 5000 digits"),
        pytest.param(documents.state("6"), id="serial is text"),
        pytest.param(documents.state(True), id="serial is true"),
        pytest.param(documents.state(6).replace(b": 6", b": NaN"), id="serial is NaN"),
        pytest.param(documents.state(6, lineage=7), id="lineage is a number"),
        pytest.param(documents.state(6, lineage="x" * 5000), id="long lineage"),
        pytest.param(b'{"version": 4, "serial": 6, "x": ' + b"[" * 100_000, id="deep"),
    ],
)
def test_a_body_that_is_no_state_document_is_400(strict: Team, state: str, body: bytes) -> None:
    held = locked(strict, state)

    with strict.unchanged():
        assert strict.client("writer").write(state, body, held).error == (400, "invalid_state")


@pytest.mark.parametrize(
    "content_type", ["application/octet-stream", "application/x-www-form-urlencoded", ""]
)
def test_a_state_that_the_gateway_hands_over_as_base64_is_stored_byte_for_byte(
    strict: Team, state: str, content_type: str
) -> None:
    held = locked(strict, state)
    body = documents.state(6, content="büro 🐟")

    answer = strict.client("writer").request(
        "POST", f"/states/{state}?ID={held}", body, {"Content-Type": content_type}
    )

    assert answer.status == 200
    assert strict.current(state) == body
    assert strict.client("reader").read(state).body == body


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


@pytest.mark.parametrize(
    ("body", "error"),
    [
        pytest.param(documents.state(4), (409, "serial_not_newer"), id="serial lower"),
        pytest.param(
            documents.state(5, content="x"), (409, "serial_not_newer"), id="same serial, other bytes"
        ),
        pytest.param(documents.state(6, lineage="other"), (409, "lineage_changed"), id="lineage changed"),
    ],
)
def test_a_state_that_does_not_follow_on_the_current_one_is_409(
    strict: Team, state: str, body: bytes, error: tuple[int, str]
) -> None:
    held = locked(strict, state)

    with strict.unchanged():
        assert strict.client("writer").write(state, body, held).error == error


# --- somebody else's lock ------------------------------------------------------------------------


def assert_held(answer_status: int, holder: Mapping[str, object], lock_id: str) -> None:
    assert answer_status == 423
    assert holder["ID"] == lock_id
    assert holder["Who"] == "ada@laptop"


def test_a_write_without_the_holders_id_is_423_and_names_the_holder(strict: Team, state: str) -> None:
    held = locked(strict, state)
    client = strict.client("writer")

    with strict.unchanged():
        anothers = client.write(state, documents.state(6), "another")
        none = client.write(state, documents.state(6))
        other_token = strict.client("maintainer").write(state, documents.state(6), held)

    for answer in (anothers, none, other_token):
        assert_held(answer.status, answer.json(), held)


def test_a_write_with_the_id_of_a_lock_that_is_gone_is_409(strict: Team, state: str) -> None:
    client, info = strict.client("writer"), documents.lock_info()
    assert client.lock(state, info).status == 200
    assert client.unlock(state, info).status == 200

    with strict.unchanged():
        answer = client.write(state, documents.state(), documents.lock_id(info))

    assert answer.error == (409, "lock_lost")


def test_a_write_without_a_lock_is_428_where_the_team_requires_one(strict: Team, state: str) -> None:
    with strict.unchanged():
        assert strict.client("writer").write(state, documents.state()).error == (428, "lock_required")


def test_an_unlock_with_anothers_id_leaves_the_lock(strict: Team, state: str) -> None:
    held = locked(strict, state)

    # A whole document with another ID is a repeated release of a lock that is gone: nothing to do.
    with strict.unchanged():
        assert strict.client("writer").unlock(state, documents.lock_info("another")).status == 200
        # Only an ID is OpenTofu's force-unlock, which must mean the lock that is held.
        only_id = json.dumps({"ID": "another", "Created": "0001-01-01T00:00:00Z"}).encode()
        assert strict.client("maintainer").unlock(state, only_id).error == (409, "lock_not_matched")

    assert (strict.lock(state) or {})["ID"] == held


def test_an_unlock_with_the_right_id_and_anothers_document_is_a_force_unlock(
    strict: Team, state: str
) -> None:
    held = locked(strict, state)
    anothers = documents.lock_info(held, who="eve@laptop")

    with strict.unchanged():
        assert strict.client("writer").unlock(state, anothers).error == (403, "not_allowed")
    assert strict.client("maintainer").unlock(state, anothers).status == 200

    assert strict.lock(state) is None


def test_an_unlock_without_a_body_needs_a_maintainer_and_a_lock_that_is_not_new(
    strict: Team, state: str
) -> None:
    locked(strict, state)

    with strict.unchanged():
        assert strict.client("writer").unlock(state, None).error == (403, "not_allowed")
        assert strict.client("maintainer").unlock(state, None).error == (409, "lock_not_matched")


@pytest.mark.parametrize(
    "garbage",
    [b"locked!", b"", b"[]", b'{"Who": "x"}', b"\xff"],
    ids=["text", "empty", "list", "no ID", "bytes"],
)
def test_a_lock_object_that_is_no_lock_info_is_423_and_can_be_forced(
    strict: Team, state: str, garbage: bytes
) -> None:
    key = f"states/{state}.tfstate.tflock"
    strict.put(key, garbage)
    client = strict.client("maintainer")

    with strict.unchanged():
        lock = client.lock(state, documents.lock_info())
        write = client.write(state, documents.state(), "x")
    holder = lock.json()

    assert (lock.status, write.status) == (423, 423)
    assert write.json() == holder
    assert holder["ID"]
    assert f"{strict.bucket}/{key}" in holder["Info"]
    only_id = json.dumps({"ID": holder["ID"]}).encode()
    assert client.unlock(state, only_id).status == 200
    assert client.lock(state, documents.lock_info()).status == 200


def test_a_delete_while_the_state_is_locked_is_423(strict: Team, state: str) -> None:
    held = locked(strict, state)

    with strict.unchanged():
        answer = strict.client("maintainer").delete(state)

    assert_held(answer.status, answer.json(), held)


# --- verbs that only some gateways pass ----------------------------------------------------------


def test_no_answer_but_that_of_a_read_could_be_followed_elsewhere(strict: Team, state: str) -> None:
    clients: list[Client] = [strict.client("maintainer"), strict.client(None), strict.direct_client("writer")]
    for client in clients:
        for path in (f"/states/{state}", f"/locks/{state}", f"/states/{state}/", f"//locks/{state}"):
            for method in ("POST", "PUT", "DELETE"):
                answer = client.request(method, path, b"{}")
                assert not 300 <= answer.status < 400
                assert answer.status < 500
                assert "location" not in answer.headers

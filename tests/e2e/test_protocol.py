"""The `http` backend's protocol, request by request, where Terraform itself would hide what happens."""

import gzip

import pytest

import holdfast
from tests.support import documents
from tests.support.team import Team


def test_health_is_open_and_tells_the_version(strict: Team) -> None:
    answer = strict.client(None).request("GET", "/health")

    assert answer.status == 200
    assert answer.json()["status"] == "ok"
    assert answer.json()["version"].startswith(f"{holdfast.__version__}+")


def test_a_state_goes_in_and_out_byte_for_byte(strict: Team, state: str) -> None:
    client, info = strict.client("writer"), documents.lock_info()
    body = documents.state(content='büro 🐟 \u2028 </script> \\ " ') + b" \n\t\n"
    lock_id = documents.lock_id(info)

    assert client.lock(state, info).status == 200
    assert client.write(state, body, lock_id).status == 200
    assert client.unlock(state, info).status == 200

    assert strict.current(state) == body
    read = client.read(state)
    assert (read.status, read.body) == (200, body)
    assert read.headers["content-type"] == "application/json"
    assert read.headers["cache-control"] == "no-store"


def test_a_read_is_compressed_for_a_client_that_takes_gzip(strict: Team, state: str) -> None:
    client, info = strict.client("writer"), documents.lock_info()
    body = documents.state(content="x" * 100_000)
    assert client.lock(state, info).status == 200
    assert client.write(state, body, documents.lock_id(info)).status == 200

    packed = client.request("GET", f"/states/{state}", headers={"Accept-Encoding": "gzip"})

    assert packed.headers["content-encoding"] == "gzip"
    assert len(packed.body) < 2_000
    assert gzip.decompress(packed.body) == body
    assert client.read(state).body == body


@pytest.mark.parametrize(
    ("lock", "unlock"),
    [
        (("LOCK", "states"), ("UNLOCK", "states")),
        (("LOCK", "locks"), ("UNLOCK", "locks")),
        (("POST", "locks"), ("DELETE", "locks")),
        (("PUT", "locks"), ("POST", "unlocks")),
        (("LOCK", "locks"), ("UNLOCK", "unlocks")),
    ],
    ids=["the client's defaults", "on locks", "POST", "POST on unlocks", "on unlocks"],
)
def test_other_verbs_lock_too_behind_gateways_that_pass_them(
    strict: Team, state: str, lock: tuple[str, str], unlock: tuple[str, str]
) -> None:
    client = strict.direct_client("writer")
    info = documents.lock_info()
    write = f"/states/{state}?ID={documents.lock_id(info)}"

    assert client.request(lock[0], f"/{lock[1]}/{state}", info).status == 200
    assert (strict.lock(state) or {})["ID"] == documents.lock_id(info)
    assert client.request("PUT", write, documents.state()).status == 200
    assert client.request(unlock[0], f"/{unlock[1]}/{state}", info).status == 200

    assert strict.lock(state) is None
    assert strict.current(state) == documents.state()


def test_one_teams_bucket_never_sees_anothers_states(strict: Team, loose: Team, state: str) -> None:
    client, info = strict.client("writer"), documents.lock_info()
    assert client.lock(state, info).status == 200
    assert client.write(state, documents.state(), documents.lock_id(info)).status == 200

    assert loose.client("writer").read(state).status == 204
    assert loose.client("writer").lock(state, documents.lock_info()).status == 200


# --- a team that takes writes without a lock -----------------------------------------------------


def test_an_unlocked_write_is_refused_while_somebody_holds_the_lock(loose: Team, state: str) -> None:
    client, info = loose.client("writer"), documents.lock_info()
    assert client.lock(state, info).status == 200

    with loose.unchanged():
        assert client.write(state, documents.state()).status == 423

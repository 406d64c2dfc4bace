"""The `http` backend's protocol, request by request, where Terraform itself would hide what happens."""

import gzip
import json
from http import HTTPStatus

import pytest

import holdfast
from tests.support import documents
from tests.support.team import Team


def test_health_is_open_and_tells_the_version(strict: Team) -> None:
    answer = strict.client(None).request("GET", "/health")

    assert answer.status == 200
    assert answer.json()["status"] == "ok"
    assert answer.json()["version"].startswith(f"{holdfast.__version__}+")


def test_a_state_that_does_not_exist_is_204(strict: Team, state: str) -> None:
    answer = strict.client("reader").read(state)

    assert (answer.status, answer.body) == (204, b"")


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


def test_the_lock_in_the_bucket_is_the_lock_info_with_its_path_filled(strict: Team, state: str) -> None:
    info = documents.lock_info()

    assert strict.client("writer").lock(state, info).status == 200

    path = f"{strict.bucket}/states/{state}.tfstate"
    assert strict.lock(state) == {**json.loads(info), "Path": path}


def test_another_is_told_who_holds_the_lock(strict: Team, state: str) -> None:
    info = documents.lock_info(who="ada@laptop")
    assert strict.client("writer").lock(state, info).status == 200

    with strict.unchanged():
        answer = strict.client("maintainer").lock(state, documents.lock_info(who="bob@laptop"))

    path = f"{strict.bucket}/states/{state}.tfstate"
    assert answer.status == 423
    assert answer.json() == {**json.loads(info), "Path": path}


def test_a_repeated_request_has_one_effect_and_the_same_answer(strict: Team, state: str) -> None:
    client, info = strict.client("writer"), documents.lock_info()
    lock_id = documents.lock_id(info)

    assert [client.lock(state, info).status for _ in range(2)] == [200, 200]
    assert [client.write(state, documents.state(), lock_id).status for _ in range(2)] == [200, 200]
    assert [client.unlock(state, info).status for _ in range(2)] == [200, 200]

    assert len(strict.versions(state)) == 1
    assert strict.lock(state) is None


def test_a_repeated_release_leaves_the_lock_of_the_next_holder(strict: Team, state: str) -> None:
    first, second = documents.lock_info(), documents.lock_info()
    client, next_client = strict.client("writer"), strict.client("maintainer")
    assert client.lock(state, first).status == 200
    assert client.unlock(state, first).status == 200
    assert next_client.lock(state, second).status == 200

    with strict.unchanged():
        assert client.unlock(state, first).status == 200

    assert (strict.lock(state) or {})["ID"] == documents.lock_id(second)


def test_the_same_document_in_anothers_hands_is_another_lock(strict: Team, state: str) -> None:
    info = documents.lock_info()
    assert strict.client("writer").lock(state, info).status == 200

    with strict.unchanged():
        assert strict.client("maintainer").lock(state, info).status == 423


def test_opentofus_force_unlock_frees_the_lock_that_it_names(strict: Team, state: str) -> None:
    info = documents.lock_info()
    assert strict.client("writer").lock(state, info).status == 200
    only_id = {
        **dict.fromkeys(json.loads(info), ""),
        "ID": documents.lock_id(info),
        "Created": "0001-01-01T00:00:00Z",
    }

    assert strict.client("writer").unlock(state, json.dumps(only_id).encode()).error == (403, "not_allowed")
    assert strict.client("maintainer").unlock(state, json.dumps(only_id).encode()).status == 200

    assert strict.lock(state) is None


def test_opentofus_encrypted_state_is_fenced_like_any_other(strict: Team, state: str) -> None:
    def encrypted(serial: int, lineage: str = documents.LINEAGE) -> bytes:
        return json.dumps(
            {
                "serial": serial,
                "lineage": lineage,
                "meta": {"key_provider.pbkdf2.x": "eyJzYWx0Ijoi"},
                "encrypted_data": "bm9uY2U",
                "encryption_version": "v0",
            }
        ).encode()

    client, info = strict.client("writer"), documents.lock_info()
    lock_id = documents.lock_id(info)
    assert client.lock(state, info).status == 200

    assert client.write(state, encrypted(3), lock_id).status == 200
    assert client.write(state, encrypted(2), lock_id).error == (409, "serial_not_newer")
    assert client.write(state, encrypted(4, "another"), lock_id).error == (409, "lineage_changed")

    assert client.read(state).body == encrypted(3)
    assert strict.client("outputs").outputs(state).error == (403, "not_allowed")


def test_an_empty_lineage_follows_on_any_and_any_follows_on_it(strict: Team, state: str) -> None:
    client, info = strict.client("writer"), documents.lock_info()
    lock_id = documents.lock_id(info)
    assert client.lock(state, info).status == 200

    for body in (documents.state(1), documents.state(2, lineage=""), documents.state(3, lineage="another")):
        assert client.write(state, body, lock_id).status == 200

    assert [version.serial for version in strict.versions(state)] == [1, 2, 3]


@pytest.mark.parametrize("operation", ["state-push", "migration destination state"])
def test_what_the_client_has_compared_itself_may_go_back(strict: Team, state: str, operation: str) -> None:
    client, info = strict.client("writer"), documents.lock_info(operation=operation)
    lock_id = documents.lock_id(info)
    assert client.lock(state, info).status == 200
    assert client.write(state, documents.state(5), lock_id).status == 200

    assert client.write(state, documents.state(1, lineage="another"), lock_id).status == 200

    assert [version.serial for version in strict.versions(state)] == [5, 1]


def test_a_state_that_another_program_wrote_is_fenced_by_its_content(strict: Team, state: str) -> None:
    strict.put(f"states/{state}.tfstate", documents.state(7))
    client, info = strict.client("writer"), documents.lock_info()
    lock_id = documents.lock_id(info)
    assert client.lock(state, info).status == 200

    assert client.read(state).body == documents.state(7)
    assert client.write(state, documents.state(7, content="x"), lock_id).error == (409, "serial_not_newer")
    assert client.write(state, documents.state(8, lineage="x"), lock_id).error == (409, "lineage_changed")
    assert client.write(state, documents.state(7), lock_id).status == 200
    assert client.write(state, documents.state(8), lock_id).status == 200

    assert [version.serial for version in strict.versions(state)] == [7, 7, 8]


def test_a_deleted_state_is_gone_its_versions_stay_and_it_starts_anew(strict: Team, state: str) -> None:
    client, info = strict.client("maintainer"), documents.lock_info()
    assert client.lock(state, info).status == 200
    assert client.write(state, documents.state(5), documents.lock_id(info)).status == 200
    assert client.unlock(state, info).status == 200

    assert [client.delete(state).status for _ in range(2)] == [200, 200]

    assert client.read(state).status == 204
    assert strict.current(state) is None
    assert strict.lock(state) is None
    assert client.lock(state, info).status == 200
    assert client.write(state, documents.state(1, lineage="new"), documents.lock_id(info)).status == 200
    assert [version.serial for version in strict.versions(state)] == [5, 1]


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


def test_an_outputs_token_sees_outputs_and_no_resources(strict: Team, state: str) -> None:
    document = {**json.loads(documents.state(content="seen")), "resources": [{"secret": "unseen"}]}
    strict.put(f"states/{state}.tfstate", json.dumps(document).encode())

    answer = strict.client("outputs").outputs(state)

    assert answer.status == HTTPStatus.OK
    assert answer.json()["outputs"]["content"]["value"] == "seen"
    assert b"unseen" not in answer.body


def test_one_teams_bucket_never_sees_anothers_states(strict: Team, loose: Team, state: str) -> None:
    client, info = strict.client("writer"), documents.lock_info()
    assert client.lock(state, info).status == 200
    assert client.write(state, documents.state(), documents.lock_id(info)).status == 200

    assert loose.client("writer").read(state).status == 204
    assert loose.client("writer").lock(state, documents.lock_info()).status == 200


# --- a team that takes writes without a lock -----------------------------------------------------


def test_an_unlocked_write_is_still_ordered_by_serial(loose: Team, state: str) -> None:
    client = loose.client("writer")

    assert client.write(state, documents.state(5)).status == 200
    assert client.write(state, documents.state(5, content="x")).error == (409, "serial_not_newer")
    assert client.write(state, documents.state(6, lineage="x")).error == (409, "lineage_changed")
    assert client.write(state, documents.state(6)).status == 200

    assert [version.serial for version in loose.versions(state)] == [5, 6]


def test_an_unlocked_write_is_refused_while_somebody_holds_the_lock(loose: Team, state: str) -> None:
    client, info = loose.client("writer"), documents.lock_info()
    assert client.lock(state, info).status == 200

    with loose.unchanged():
        assert client.write(state, documents.state()).status == 423

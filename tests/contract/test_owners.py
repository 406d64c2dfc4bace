"""Owners: stored beside locks and versions, shown, and never what releases or retries."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.access import Caller
from holdfast.cloud.ids import WorkspaceId
from holdfast.errors import Frozen, HoldfastError, Locked
from holdfast.s3.object_metadata import encode
from holdfast.state import acquiring, releasing
from holdfast.state.delete import delete
from holdfast.state.freezing.states import unfreeze
from tests.contract.cloud_api import ask, created, data, error, opened
from tests.contract.conftest import CLOUD_BUCKET, COMMAND, KEY, LOCK_KEY, NAME, ONE, TWO, Handle, Server, Team
from tests.contract.test_deleting import undelete_as
from tests.contract.test_operate import frozen, metadata, restored
from tests.support.documents import ADA, BOB, OPERATOR, state
from tests.support.s3_fault_proxy import Fault
from tests.support.work import work


def by(caller: Caller, owner: str) -> Caller:
    return replace(caller, owner=owner)


def stored_lock(team: Team) -> Any:
    [body] = team.bucket.bodies(LOCK_KEY)
    return json.loads(body)


def test_the_name_of_that_moment_is_stored_beside_a_lock_and_a_version_with_no_request_more(
    team: Team,
) -> None:
    requests: dict[str, list[str]] = {}
    for caller in (ADA, by(ADA, "Béa")):
        store = team.bucket.store()
        acquiring.acquire(work(store, NAME, caller), ONE)
        lock, document = metadata(team, LOCK_KEY), stored_lock(team)
        team.write(state(len(requests) + 1), caller=by(caller, caller.owner and f"{caller.owner} 2"))
        releasing.release(work(store, NAME, caller), ONE)
        requests[caller.owner] = store.budget.requests
        version = metadata(team, KEY)
        assert (lock.get("owner"), version.get("owner")) == (
            (encode("Béa"), encode("Béa 2")) if caller.owner else (None, None)
        )
        assert (lock["locked-by"], version["written-by"], version["who"]) == (
            *["token:ada"] * 2,
            "ada@laptop",
        )
        assert document == {**json.loads(ONE), "Path": f"{team.bucket.name}/{KEY}"}
    assert requests[""] == requests["Béa"] == ["PutObject", "GetObject", "DeleteObject"]


@pytest.mark.parametrize("last", ["", "bea@example.com"])
def test_who_has_another_name_by_now_still_has_their_own_lock(team: Team, last: str) -> None:
    for first in ("", "bea@example.com", "beatrix@example.com"):
        locked = acquiring.acquire(team.works(by(ADA, first)), ONE)
        assert acquiring.acquire(team.works(by(ADA, last)), ONE) == locked
        assert team.held_lock().owner == first
        team.write(state(1), caller=by(ADA, last))
        team.unlock(caller=by(ADA, last))
        assert team.held() is None


def test_a_lock_of_the_last_release_is_released_by_who_has_a_name_now(team: Team) -> None:
    document = {**json.loads(ONE), "Path": f"{team.bucket.name}/{KEY}"}
    team.bucket.s3.put_object(
        Bucket=team.bucket.name,
        Key=LOCK_KEY,
        Body=json.dumps(document, separators=(",", ":")),
        Metadata={"locked-by": "token:ada"},
    )
    team.write(state(1), caller=by(ADA, "bea@example.com"))
    team.unlock(caller=by(ADA, "bea@example.com"))
    assert team.held() is None


def test_a_refusal_shows_the_name_of_who_holds_the_lock(team: Team) -> None:
    team.lock(caller=by(ADA, "bea@example.com"))
    with pytest.raises(Locked) as refused:
        team.lock(TWO, by(BOB, "bob@example.com"))
    shown = 'bea@example.com (token:ada) (client says "ada@laptop")'
    assert f"locked by {shown}, lock ID one" in refused.value.message
    proved = 'principal "token:ada", verified by Holdfast; owner "bea@example.com"'
    assert refused.value.body() == {**stored_lock(team), "Info": proved}
    team.unlock()

    frozen(team, caller=by(OPERATOR, "Olga"))
    with pytest.raises(Frozen, match=r"frozen by Olga \(token:operator\): an incident\.") as told:
        team.lock()
    assert told.value.body()["Who"] == "token:operator"
    assert told.value.body()["Info"] == (
        'principal "token:operator", verified by Holdfast; owner "Olga"; info "frozen: an incident"'
    )
    assert stored_lock(team)["Who"] == "token:operator"


# --- verbs that derive their lock -----------------------------------------------------------------------


def restored_as(team: Team, caller: Caller) -> object:
    return restored(team, team.version_ids()[0], caller=caller)


@pytest.mark.parametrize("verb", [restored_as, undelete_as])
def test_a_verb_that_is_repeated_under_another_name_takes_its_own_lock_and_writes_once(
    team: Team, verb: Callable[[Team, Caller], object]
) -> None:
    team.written(state(1, content="old"), state(2))
    if verb is undelete_as:
        delete(team.works(OPERATOR))
    team.bucket.proxy.fail("DELETE", LOCK_KEY, Fault.DENIED, times=2)
    with pytest.raises(HoldfastError):
        verb(team, by(OPERATOR, "Olga"))
    assert team.held_lock().owner == "Olga"
    assert stored_lock(team)["Who"] == "token:operator"

    verb(team, by(OPERATOR, "Olga Petrova"))

    assert len(team.versions()) == 3
    assert metadata(team, KEY)["owner"] == "Olga"
    assert team.held() is None


def test_a_freeze_that_is_repeated_under_another_name_is_the_same_and_can_be_lifted(team: Team) -> None:
    once = frozen(team, caller=by(OPERATOR, "Olga"))
    version = team.held_lock().identity
    for owner in ("Olga Petrova", ""):
        assert frozen(team, caller=by(OPERATOR, owner)) == once
    assert (team.held_lock().identity, team.held_lock().owner) == (version, "Olga")
    unfreeze(team.works(by(OPERATOR, "Olga Petrova")), COMMAND)
    assert team.held() is None


# --- cloud {} ---------------------------------------------------------------------------------------------


def test_a_workspace_is_unlocked_under_another_name_and_shows_the_first(cloud: Handle) -> None:
    mine = created(cloud)
    lock = f"workspaces/{mine}/actions/lock"
    bea, beatrix = (by(ADA, f"{name}@example.com") for name in ("bea", "beatrix"))
    holder = data(ask(cloud, "POST", lock, bea))["relationships"]["locked-by"]["data"]
    assert holder["id"] == "token:ada"
    assert data(ask(cloud, "POST", lock, beatrix))["attributes"]["locked"], "a retry"
    refused = ask(cloud, "POST", f"workspaces/{opened(cloud, BOB)}/actions/lock", BOB)
    assert error(refused) == (409, "locked")
    title = json.loads(refused["body"])["errors"][0]["title"]
    assert "is locked by bea@example.com (token:ada), lock ID" in title
    account = data(ask(cloud, "GET", "account/details", bea))
    assert account["attributes"] == {"username": "bea@example.com (token:ada)"}
    assert ask(cloud, "POST", f"workspaces/{mine}/actions/unlock", beatrix)["statusCode"] == 200
    assert data(ask(cloud, "GET", f"workspaces/{mine}"))["attributes"]["locked"] is False


def test_a_workspace_that_the_last_release_locked_is_unlocked_by_who_has_a_name(
    cloud: Handle, moto: Server
) -> None:
    mine = WorkspaceId.parse(created(cloud))
    document = {
        "ID": mine.lock_id,
        "Operation": "cloud",
        "Info": "",
        "Who": "token:ada",
        "Version": "",
        "Created": f"{datetime.fromtimestamp(mine.minted_at, UTC):%Y-%m-%dT%H:%M:%SZ}",
        "Path": f"{CLOUD_BUCKET}/{KEY}",
    }
    moto.direct.put_object(
        Bucket=CLOUD_BUCKET, Key=LOCK_KEY, Body=json.dumps(document), Metadata={"locked-by": "token:ada"}
    )
    assert data(ask(cloud, "GET", f"workspaces/{mine}"))["attributes"]["locked"]
    bea = by(ADA, "bea@example.com")
    assert ask(cloud, "POST", f"workspaces/{mine}/actions/unlock", bea)["statusCode"] == 200
    assert data(ask(cloud, "GET", f"workspaces/{mine}"))["attributes"]["locked"] is False

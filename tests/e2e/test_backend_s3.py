"""A state of Holdfast under `backend "s3"` with `use_lockfile`, with every installed Terraform.

On AWS the bucket policy's `RefuseStateWritesWithoutCondition` refuses the writes of `backend "s3"`, unless
`native_clients = true` is deployed or the stack is torn down. The local AWS lets them through.
"""

import hashlib
import json

import pytest

from local_aws.server import LocalAws
from tests.e2e.test_cloud_locking import SECOND, past_holdfast
from tests.support import documents
from tests.support.deployed import client
from tests.support.lock_table import item
from tests.support.permissions_drive import manage
from tests.support.project import WAITS, NewProject
from tests.support.team import Team

TABLE = "terraform-locks"
"""The table of `loose`."""


def test_it_takes_over_a_state_where_it_is_and_overwrites_the_next_holder_once_it_has_lost_its_lock(
    loose: Team, state: str, new_project: NewProject
) -> None:
    client = loose.client("writer")
    assert client.write(state, documents.state(7)).status == 200
    late, following = (past_holdfast(new_project, loose, state, main, locks=True) for main in (WAITS, SECOND))
    with late.applying() as apply:
        held = loose.lock(state)
        assert held is not None
        assert client.lock(state, documents.lock_info()).status == 423
        following.ok("force-unlock", "-force", held["ID"])
        following.ok("apply", "-auto-approve")
        late.proceed()
        apply.wait()

    versions = [json.loads(version.body) for version in loose.versions(state)]
    assert {version["lineage"] for version in versions} == {documents.LINEAGE}
    assert [
        (version["serial"], [resource["name"] for resource in version["resources"]]) for version in versions
    ] == [(7, []), (8, ["second"]), (8, ["waits"])]


@pytest.mark.parametrize("locks", [False, True], ids=["table", "table-and-lock-object"])
def test_clients_with_a_table_and_holdfast_exclude_each_other_and_read_what_the_other_wrote(
    aws: LocalAws, loose: Team, state: str, new_project: NewProject, locks: bool
) -> None:
    holdfast, dynamodb = loose.client("writer"), client(aws, "dynamodb")
    key = f"{loose.bucket}/states/{state}.tfstate"
    native = past_holdfast(new_project, loose, state, WAITS, locks=locks, table=TABLE)
    with native.applying() as apply:
        held = json.loads((item(dynamodb, TABLE, key) or {})["Info"])
        refused = holdfast.lock(state, documents.lock_info())
        assert (refused.status, refused.json()["ID"], refused.json()["Who"]) == (423, held["ID"], held["Who"])
        assert holdfast.write(state, documents.state(9)).status == 423
        assert loose.lock(state) is None or locks
        native.proceed()
        assert apply.wait().code == 0

    written = {**json.loads(loose.versions(state)[-1].body), "serial": 9}
    assert holdfast.lock(state, documents.lock_info("one")).status == 200
    assert "Error acquiring the state lock" in native.refused("plan")
    body = json.dumps(written).encode()
    assert holdfast.write(state, body, "one").status == 200
    assert holdfast.unlock(state, documents.lock_info("one")).status == 200

    assert item(dynamodb, TABLE, key) is None
    digest = hashlib.md5(body, usedforsecurity=False).hexdigest()
    assert (item(dynamodb, TABLE, f"{key}-md5") or {})["Digest"] == digest
    assert "No changes" in native.ok("plan").text
    native.ok("apply", "-auto-approve")


@pytest.mark.parametrize("locks", [False, True], ids=["table", "table-and-lock-object"])
def test_one_break_removes_all_that_a_killed_client_with_a_table_has_left(
    aws: LocalAws, loose: Team, state: str, one_project: NewProject, locks: bool
) -> None:
    operator = loose.client("maintainer")
    native = past_holdfast(one_project, loose, state, WAITS, locks=locks, table=TABLE)
    with native.applying() as apply:
        apply.kill()
    held = manage(operator, "GET", f"locks/{state}").json()["lock"]

    broken = manage(operator, "DELETE", f"locks/{state}?id={held['id']}&version={held['version']}")

    assert broken.status == 200
    assert item(client(aws, "dynamodb"), TABLE, f"{loose.bucket}/states/{state}.tfstate") is None
    assert loose.lock(state) is None
    assert operator.lock(state, documents.lock_info()).status == 200

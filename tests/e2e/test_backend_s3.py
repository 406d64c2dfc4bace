"""A state of Holdfast under `backend "s3"` with `use_lockfile`, with every installed Terraform.

On AWS the bucket policy's `RefuseStateWritesWithoutCondition` refuses the writes of `backend "s3"`, unless
`native_clients = true` is deployed or the stack is torn down. The local AWS lets them through.
"""

import json

from tests.e2e.test_cloud_locking import SECOND, past_holdfast
from tests.support import documents
from tests.support.project import WAITS, NewProject
from tests.support.team import Team


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

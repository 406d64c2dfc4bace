"""Two people and one state, with every installed Terraform: waiting, refusal, death and force-unlock."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.state.removing import FORCE_UNLOCK_MIN_AGE
from local_aws.terraform import Product
from tests.support import access_commands, documents
from tests.support.project import WAITS, NewProject, Project, backend, sign_in
from tests.support.team import Team
from tests.support.waiting import wait_until


def project_that_waits(new_project: NewProject, team: Team, state: str) -> Project:
    """A project whose apply waits until the test lets it go on."""
    return new_project.ready(team, state, team.token("maintainer"), main=WAITS)


def second_project(new_project: NewProject, team: Team, state: str) -> Project:
    """Another checkout that adds a resource to the same state."""
    second = 'resource "terraform_data" "second" {}\n'
    return new_project.ready(team, state, team.token("writer"), main=second)


def wait_until_force_unlock_may_remove(team: Team, state: str) -> None:
    """Wait until the lock is old enough for a force-unlock without an ID.

    S3 cuts times to the second.
    """
    key = f"states/{state}.tfstate.tflock"
    taken = team.s3.head_object(Bucket=team.bucket, Key=key)["LastModified"]
    wait_until(
        lambda: datetime.now(UTC) - taken > FORCE_UNLOCK_MIN_AGE + timedelta(seconds=1.5),
        "the lock is old enough",
    )


def test_while_an_apply_is_under_way_another_is_refused_or_waits_and_builds_on_it(
    strict: Team, state: str, new_project: NewProject
) -> None:
    first, second = project_that_waits(new_project, strict, state), second_project(new_project, strict, state)
    second.write(waits='resource "terraform_data" "waits" {}\n')

    with first.applying() as apply:
        held = strict.lock(state)
        assert held is not None
        with strict.gateway.recording() as exchanges:
            refusal = second.refused("apply", "-auto-approve")
        assert [exchange.status for exchange in exchanges if exchange.method == "PUT"] == [423]
        assert "Error acquiring the state lock" in refusal
        assert held["ID"] in refusal
        assert strict.lock(state) == held
        refusal = second.refused("plan")
        assert "Error acquiring the state lock" in refusal
        client = second.terraform.client
        since = (1, 9, 0) if client.product is Product.OPENTOFU else (1, 15, 0)
        shown = "OperationTypeApply" if client.version >= since else "OperationTypePlan"  # the holder's
        assert f"Operation: {shown}" in refusal
        assert second.run("plan", "-lock=false", "-detailed-exitcode").code == 2
        with (
            strict.gateway.recording() as exchanges,
            second.start("apply", "-auto-approve", "-lock-timeout=60s") as waiting,
        ):
            wait_until(lambda: any(each.status == 423 for each in exchanges), "it has met the lock")
            first.proceed()
            assert apply.wait().code == 0
            done = waiting.wait()
        assert done.code == 0, done.text

    assert second.ok("state", "list").out.split() == ["terraform_data.second", "terraform_data.waits"]
    serials = [version.serial for version in strict.versions(state)]
    assert serials == sorted(set(serials))
    assert {exchange.status for exchange in exchanges} <= {200, 204, 423}
    assert strict.lock(state) is None


def test_the_lock_of_a_killed_apply_stays_until_it_is_forced_and_its_late_write_is_refused(
    strict: Team, state: str, new_project: NewProject
) -> None:
    second = second_project(new_project, strict, state)
    killed = project_that_waits(new_project, strict, state)
    second.ok("apply", "-auto-approve")
    with killed.applying() as apply:
        held = strict.lock(state)
        assert held is not None
        apply.kill()

    assert strict.lock(state) == held
    refusal = second.refused("apply", "-auto-approve", "-replace=terraform_data.second")
    assert held["ID"] in refusal

    maintainer = new_project.ready(strict, state, strict.token("maintainer"))
    wait_until_force_unlock_may_remove(strict, state)
    maintainer.ok("force-unlock", "-force", held["ID"])
    assert strict.lock(state) is None

    late = strict.current(state)
    assert late is not None
    late = documents.next_serial(late)
    client = strict.client("maintainer")
    with strict.unchanged():
        assert client.write(state, late, held["ID"]).error == (409, "lock_lost")
    second.ok("apply", "-auto-approve", "-replace=terraform_data.second")
    with strict.unchanged():
        assert client.write(state, documents.next_serial(late), held["ID"]).error == (409, "lock_lost")


def test_a_write_that_arrives_after_its_client_was_killed_and_its_lock_forced_is_refused(
    strict: Team, state: str, new_project: NewProject
) -> None:
    killed, second = second_project(new_project, strict, state), second_project(new_project, strict, state)
    killed.ok("apply", "-auto-approve")

    with strict.gateway.recording() as exchanges, strict.gateway.holding_writes() as write:
        with killed.start("apply", "-auto-approve", "-replace=terraform_data.second"):
            assert write.arrived.wait(30)
        held = strict.lock(state)
        assert held is not None
        wait_until_force_unlock_may_remove(strict, state)
        maintainer = new_project.ready(strict, state, strict.token("maintainer"))
        maintainer.ok("force-unlock", "-force", held["ID"])
        # The next holder is at work when the write arrives.
        taken = strict.locked(state)
        before = strict.versions(state)
        write.released.set()
        assert write.passed.wait(30)

    [late] = [exchange for exchange in exchanges if exchange.is_write]
    assert late.status == 423
    assert json.loads(late.answer)["ID"] == documents.lock_id(taken)
    assert strict.versions(state) == before
    assert strict.client("writer").unlock(state, taken).status == 200
    assert second.run("plan", "-detailed-exitcode").code == 0


def test_force_unlock_removes_a_lock_that_was_just_taken_only_if_the_client_names_it(
    strict: Team, state: str, new_project: NewProject
) -> None:
    project = new_project.ready(strict, state, strict.token("maintainer"))
    info = strict.locked(state)

    done = project.run("force-unlock", "-force", documents.lock_id(info))

    client = project.terraform.client
    if client.product is Product.OPENTOFU and client.version >= (1, 10, 0):
        assert done.code == 0, done.text
        assert strict.lock(state) is None
    else:
        assert done.code == 1
        assert "409" in done.text
        assert strict.lock(state) is not None


def test_a_writer_cannot_force_anothers_lock(strict: Team, state: str, new_project: NewProject) -> None:
    project = second_project(new_project, strict, state)
    info = strict.locked(state, "maintainer")

    assert "403" in project.refused("force-unlock", "-force", documents.lock_id(info))

    assert (strict.lock(state) or {})["ID"] == documents.lock_id(info)


@pytest.mark.parametrize("name", ["strict", "loose"])  # own_locks = "named" and "any"
def test_a_writer_frees_the_lock_of_their_own_killed_apply(
    teams: dict[str, Team], name: str, state: str, new_project: NewProject
) -> None:
    team, token = teams[name], teams[name].token("writer")
    killed = new_project.ready(team, state, token, main=WAITS)
    with killed.applying() as apply:
        held = team.lock(state)
        assert held is not None
        apply.kill()
    wait_until_force_unlock_may_remove(team, state)

    done = killed.run("force-unlock", "-force", held["ID"])

    client = killed.terraform.client
    if name == "loose" or (client.product is Product.OPENTOFU and client.version >= (1, 10, 0)):
        assert done.code == 0, done.text
    else:
        assert "403" in done.text
        assert team.lock(state) == held
        command = ("lock", "break", state, held["ID"], "--address", team.gateway.address)
        access_commands.holdfast(team, *command, environment=sign_in(team, token))
    assert team.lock(state) is None
    # As OpenTofu names a lock, with every installed Terraform.
    by_hand = documents.only_id(documents.lock_id(team.locked(state)))
    assert team.client("writer").request("POST", f"/unlocks/{state}", by_hand).status == 200
    killed.ok("plan")


def test_where_a_gateway_refuses_chunks_a_request_by_hand_frees_the_lock(
    strict: Team, state: str, new_project: NewProject
) -> None:
    project = new_project.ready(strict, state, strict.token("maintainer"))
    info = strict.locked(state)

    client = project.terraform.client
    if client.product is Product.TERRAFORM or client.version < (1, 8, 0):
        with strict.gateway.refusing_chunks():
            refusal = project.refused("force-unlock", "-force", documents.lock_id(info))
        assert "Unexpected HTTP response code 411" in refusal
        assert strict.lock(state) is not None
    by_hand = documents.only_id(documents.lock_id(info))

    assert strict.client("maintainer").request("POST", f"/unlocks/{state}", by_hand).status == 200
    assert strict.lock(state) is None


def test_a_block_that_unlocks_by_delete_releases_and_forces_a_lock_through_any_gateway(
    strict: Team, state: str, new_project: NewProject
) -> None:
    block = backend(strict, state).replace("/unlocks/", "/locks/").replace('"POST"', '"DELETE"')
    fruit = 'resource "terraform_data" "apple" {}\n'
    with strict.gateway.recording() as exchanges:
        project = new_project.applied(strict, None, strict.token("maintainer"), main=fruit, backend=block)

    assert [exchange.status for exchange in exchanges if exchange.method == "DELETE"] == [200]
    assert len([exchange for exchange in exchanges if exchange.method == "POST"]) == 1
    assert strict.lock(state) is None
    held = documents.lock_id(strict.locked(state))
    wait_until_force_unlock_may_remove(strict, state)
    project.ok("force-unlock", "-force", held)

    assert strict.lock(state) is None

"""One state, and clients of every protocol on it: waiting, refusal, failure, death and force-unlock."""

import json
import signal
from collections.abc import Callable

import pytest

from tests.e2e.test_terraform_locking import wait_until_force_unlock_may_remove
from tests.support.cloud_client import place
from tests.support.project import WAITS, NewProject, Project, cloud, native, remote
from tests.support.team import Team
from tests.support.waiting import wait_until

SECOND = 'resource "terraform_data" "second" {}\n'


def checkout(new_project: NewProject, team: Team, state: str, main: str, role: str = "maintainer") -> Project:
    """A checkout under `cloud {}`."""
    return new_project.ready(team, None, team.token(role), main=main, backend=cloud(team, state))


def over_http(new_project: NewProject, team: Team, state: str, main: str) -> Project:
    """A checkout under `backend "http"`."""
    return new_project.ready(team, state, team.token("maintainer"), main=main)


def past_holdfast(new_project: NewProject, team: Team, state: str, main: str, *, locks: bool) -> Project:
    """A checkout under `backend "s3"`."""
    backend = native(team, state, locks=locks)
    project = new_project(team, None, team.token("writer"), main=main, backend=backend)
    project.environment.update(team.environment)
    project.ok("init")
    return project


def test_a_client_says_that_somebody_removed_its_lock(
    strict: Team, state: str, new_project: NewProject
) -> None:
    project = checkout(new_project, strict, state, SECOND)
    with project.start("apply", answers="no\n") as asking:
        wait_until(lambda: strict.lock(state) is not None, "the apply holds the lock")
        strict.s3.delete_object(Bucket=strict.bucket, Key=f"states/{state}.tfstate.tflock")
        done = asking.wait()

    assert "Error releasing the state lock" in done.text
    assert "workspace already unlocked" in done.text


def test_while_an_apply_is_under_way_nobody_else_gets_the_lock_and_one_that_waits_builds_on_it(
    strict: Team, state: str, new_project: NewProject
) -> None:
    first, second = (checkout(new_project, strict, state, main) for main in (WAITS, SECOND))
    second.write(waits='resource "terraform_data" "waits" {}\n')
    other = over_http(new_project, strict, state, SECOND)

    with first.applying() as apply, strict.gateway.recording() as exchanges:
        held = strict.lock(state)
        assert held is not None
        assert (held["Operation"], held["Who"]) == ("cloud", f"token:{strict.token('maintainer').username}")
        assert "Error acquiring the state lock" in second.refused("plan")
        said = other.refused("plan")
        assert "Error acquiring the state lock" in said
        assert held["ID"] in said
        with second.start("apply", "-auto-approve", "-lock-timeout=60s") as waiting:
            refusals = len([exchange for exchange in exchanges if exchange.status == 409])
            wait_until(
                lambda: len([one for one in exchanges if one.status == 409]) > refusals,
                "the second apply met the lock",
            )
            assert strict.lock(state) == held
            first.proceed()
            assert apply.wait().code == 0
            done = waiting.wait()
        assert done.code == 0, done.text

    assert second.ok("state", "list").out.split() == ["terraform_data.second", "terraform_data.waits"]
    assert [version.serial for version in strict.versions(state)] == [1, 2]
    assert strict.lock(state) is None


def test_the_lock_of_another_protocol_is_respected(loose: Team, state: str, new_project: NewProject) -> None:
    project = checkout(new_project, loose, state, SECOND)
    key = f"states/{state}.tfstate.tflock"
    client, under_cloud = loose.client("writer"), loose.cloud_client("writer")

    info = loose.locked(state)
    assert "Error acquiring the state lock" in project.refused("plan")
    assert client.unlock(state, info).status == 200
    # As `backend "s3"` takes it.
    loose.s3.put_object(Bucket=loose.bucket, Key=key, Body=info, IfNoneMatch="*")
    assert "Error acquiring the state lock" in project.refused("apply", "-auto-approve")
    assert loose.object(key) == info
    loose.s3.delete_object(Bucket=loose.bucket, Key=key)
    project.ok("apply", "-auto-approve")
    workspace = under_cloud.open(state)
    assert under_cloud.lock(workspace).status == 200
    past = past_holdfast(new_project, loose, state, SECOND, locks=True)
    assert "Error acquiring the state lock" in past.refused("plan")
    assert under_cloud.unlock(workspace).status == 200
    # The objects have the keys that `backend "s3"` expects, so that a team can leave Holdfast.
    assert past.run("plan", "-detailed-exitcode").code == 0

    assert len(loose.versions(state)) == 1


@pytest.mark.parametrize(("protocol", "stop"), [(cloud, signal.SIGINT), (remote, signal.SIGTERM)])
def test_an_interrupted_first_apply_leaves_no_lock(
    strict: Team, state: str, new_project: NewProject, protocol: Callable[[Team, str], str], stop: int
) -> None:
    block = protocol(strict, state)
    project = new_project.ready(strict, None, strict.token("writer"), main=WAITS, backend=block)
    with project.applying() as apply, strict.gateway.recording() as exchanges:
        apply.process.send_signal(stop)
        done = apply.wait()
    assert done.code == 1
    assert strict.lock(state) is None, done.text
    # The same document twice, and then the resources that were created meanwhile.
    assert [one.status for one in exchanges if one.is_write] == [200, 200, 200]
    assert [version.serial for version in strict.versions(state)] == [1, 2]


def test_a_failed_write_a_lost_answer_and_a_killed_client(
    strict: Team, state: str, new_project: NewProject
) -> None:
    failing, killed = f"{state}-failing", f"{state}-killed"
    project = checkout(new_project, strict, failing, SECOND)
    victim = checkout(new_project, strict, killed, SECOND, "writer")  # it frees its own lock

    # The upload is gone before the commit, so the commit fails.
    with strict.gateway.holding_writes() as write, project.start("apply", "-auto-approve") as apply:
        assert write.arrived.wait(30)
        assert len(strict.staged(failing)) == 2
        for key in strict.staged(failing):
            strict.s3.delete_object(Bucket=strict.staging_bucket, Key=key)
        write.released.set()
        done = apply.wait()
    assert done.code == 1
    assert "No content was uploaded" in done.text
    assert strict.versions(failing) == []
    left = project.folder / "errored.tfstate"
    assert "Error acquiring the state lock" in project.refused("state", "push", left.name)

    # A client is killed between upload and commit. The commit comes while the next holder is at work.
    with strict.gateway.recording() as exchanges, strict.gateway.holding_writes() as late:
        with victim.start("apply", "-auto-approve"):  # it is killed
            assert late.arrived.wait(30)
        assert strict.versions(killed) == []
        wait_until_force_unlock_may_remove(strict, killed)
        for one, name in ((project, failing), (victim, killed)):
            assert strict.lock(name) is not None
            # Clients show this ID for every lock, and compare it with the ID that their user types.
            one.ok("force-unlock", "-force", "/".join(place(name)))
            assert strict.lock(name) is None
        info = strict.locked(killed)
        late.released.set()
        assert late.passed.wait(30)
    [commit] = [exchange for exchange in exchanges if exchange.is_write]
    assert commit.status == 409
    assert strict.versions(killed) == []
    assert strict.client("writer").unlock(killed, info).status == 200

    # The user pushes after the failed write. The response to the commit is lost, and the client retries.
    with strict.gateway.recording() as exchanges, strict.gateway.losing_the_answer_to_a_write():
        project.ok("state", "push", left.name)
    assert [exchange.status for exchange in exchanges if exchange.is_write] == [200, 200]
    [version] = strict.versions(failing)
    assert json.loads(version.body)["resources"] == json.loads(left.read_bytes())["resources"]
    assert project.run("plan", "-detailed-exitcode").code == 0
    assert strict.lock(failing) is None
    assert strict.staged(failing) == []

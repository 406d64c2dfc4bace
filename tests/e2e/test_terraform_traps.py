"""User errors: no plan may want to create existing resources, and no apply may write without a lock."""

import json
from contextlib import nullcontext

import pytest

from tests.support import documents
from tests.support.aws_gateway import MOVED
from tests.support.cloud_client import place
from tests.support.project import WAITS, NewProject, Project, backend, cloud, remote
from tests.support.team import Team

MAIN = """
terraform {
  backend "http" {}
}

resource "terraform_data" "subnet" {}
"""
"""The backend block is empty, as with `holdfast backend-config --env`."""


def addresses(team: Team, state: str) -> dict[str, str]:
    """Return the variables that `backend "http"` reads, with an unlock by POST instead of DELETE."""
    base = team.gateway.address
    return {
        "TF_HTTP_ADDRESS": f"{base}/states/{state}",
        "TF_HTTP_LOCK_ADDRESS": f"{base}/locks/{state}",
        "TF_HTTP_LOCK_METHOD": "PUT",
        "TF_HTTP_UNLOCK_ADDRESS": f"{base}/unlocks/{state}",
        "TF_HTTP_UNLOCK_METHOD": "POST",
    }


def refused_plan(project: Project, **environment: str) -> str:
    """Plan with a mistake in the environment. The plan must fail, and not want to create anything."""
    said = project.refused("plan", "-lock=false", **environment)
    assert "will be created" not in said
    return said


def test_a_plan_that_cannot_see_the_state_fails_and_does_not_want_to_create_it_anew(
    strict: Team, state: str, new_project: NewProject
) -> None:
    project = new_project(strict, None, strict.token("writer"), main=MAIN)
    project.environment.update(addresses(strict, state))
    project.ok("init")
    project.ok("apply", "-auto-approve")
    base, outputs = strict.gateway.address, strict.token("outputs")

    for wrong in (f"stats/{state}", f"prod/states/{state}", state, f"outputs/x/../../{state}", "states/"):
        assert "400" in refused_plan(project, TF_HTTP_ADDRESS=f"{base}/{wrong}"), wrong
    of_outputs = {"TF_HTTP_USERNAME": outputs.username, "TF_HTTP_PASSWORD": outputs.password}
    assert "invalid auth" in refused_plan(project, **of_outputs)
    no_credentials = {"TF_HTTP_USERNAME": "", "TF_HTTP_PASSWORD": ""}
    wrong = f"{base}/stats/{state}"
    assert "requires auth" in refused_plan(project, TF_HTTP_ADDRESS=wrong, **no_credentials)
    with strict.unchanged():
        assert "400" in project.refused("apply", "-auto-approve", TF_HTTP_LOCK_ADDRESS=f"{base}/lock/x")
    strict.put(f"states/{state}.tfstate", b"")
    assert "409" in refused_plan(project)


def test_nothing_of_the_console_is_taken_for_a_state_that_is_missing_or_a_lock_that_is_acquired(
    strict: Team, state: str, one_project: NewProject
) -> None:
    project = one_project(strict, None, strict.token("writer"), main=MAIN)
    project.environment.update(addresses(strict, state))
    project.ok("init")
    project.ok("apply", "-auto-approve")

    for path in ("console", "console/", "console/index.html", "console/x"):
        wrong = f"{strict.gateway.address}/{path}"
        refused_plan(project, TF_HTTP_ADDRESS=wrong)
        with strict.unchanged():
            assert "405" in project.refused("apply", "-auto-approve", TF_HTTP_LOCK_ADDRESS=wrong), path


def test_a_push_of_a_file_that_is_no_state_fails_and_leaves_the_state_that_is_there(
    strict: Team, state: str, new_project: NewProject
) -> None:
    project = new_project(strict, None, strict.token("writer"), main=MAIN)
    project.environment.update(addresses(strict, state))
    project.ok("init")
    project.ok("apply", "-auto-approve")
    before = strict.current(state)
    pointer = {"version": 3, "terraform_version": "1.11.4"}
    pointer["backend"] = {"type": "http", "config": {}, "hash": 1}
    (project.folder / "pointer.tfstate").write_text(json.dumps(pointer))

    for serial in (None, 40):
        if serial:
            pointer["serial"] = serial
            (project.folder / "pointer.tfstate").write_text(json.dumps(pointer))
        for flags in ((), ("-force",)):
            assert "409" in project.refused("state", "push", *flags, "pointer.tfstate")
            assert strict.current(state) == before
            assert strict.lock(state) is None
    assert len(strict.versions(state)) == 1

    assert strict.client("maintainer").delete(state).status == 200
    project.ok("state", "push", "pointer.tfstate")
    assert project.pull()["resources"] == []


def test_outputs_of_a_terraform_before_0_12_are_an_error_until_a_client_has_written_the_state_anew(
    strict: Team, state: str, new_project: NewProject
) -> None:
    strict.put(f"states/{state}.tfstate", documents.old_state(7))
    main = 'output "url" { value = "http://x" }'
    project = new_project.ready(strict, None, strict.token("writer"), main=main, backend=cloud(strict, state))

    assert "Terraform 0.12 or later" in project.refused("output")
    assert strict.client("outputs").outputs(state).status == 409

    # What the error advises if there is nothing to apply.
    project.ok("apply", "-auto-approve")
    assert json.loads(strict.current(state) or b"")["version"] == 3
    pulled = project.pull()
    pulled["serial"] += 1
    (project.folder / "pulled.json").write_text(json.dumps(pulled))
    project.ok("state", "push", "pulled.json")
    assert project.ok("output", "-raw", "url").out == "http://x"
    assert strict.client("outputs").outputs(state).json()["outputs"]["url"]["value"] == "http://x"


# --- a request that becomes another one -------------------------------------------------------------

FRUIT = 'resource "terraform_data" "fruit" {\n  input = "apple"\n}\n'


@pytest.mark.parametrize("locks", [True, False])
@pytest.mark.parametrize("status", [301, 302, 303])
def test_an_apply_whose_write_a_redirect_turns_into_a_read_fails_and_leaves_the_new_state_on_disk(
    strict: Team, state: str, new_project: NewProject, status: int, locks: bool
) -> None:
    block = backend(strict, state, *([] if locks else ["--read-only"]))
    project = new_project.ready(strict, None, strict.token("writer"), main=FRUIT, backend=block)

    with (
        strict.gateway.redirecting(status, "/states/"),
        strict.gateway.recording() as exchanges,
        strict.unchanged(),
    ):
        assert "HTTP error: 400" in project.refused("apply", "-auto-approve")

    errored = json.loads((project.folder / "errored.tfstate").read_text())
    assert [resource["name"] for resource in errored["resources"]] == ["fruit"]
    bent = [each for each in exchanges if each.status == 400]
    assert {(each.method, each.body) for each in bent} == {("GET", b"")}
    # Plain reads go through the redirect.
    assert 204 in {each.status for each in exchanges if each.target.startswith(MOVED)}
    project.ok("state", "push", "errored.tfstate") if locks else project.refused(
        "state", "push", "errored.tfstate"
    )
    assert (strict.current(state) is not None) == locks


@pytest.mark.parametrize("status", [307, 308])
def test_a_redirect_that_keeps_the_method_changes_nothing(
    strict: Team, state: str, one_project: NewProject, status: int
) -> None:
    project = one_project.ready(strict, state, strict.token("writer"), main=FRUIT)
    with strict.gateway.redirecting(status, "/"):
        project.ok("apply", "-auto-approve")
    assert strict.current(state) is not None
    assert strict.lock(state) is None


@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_workspace_whose_deletion_a_redirect_turns_into_a_read_is_not_said_to_be_deleted(
    strict: Team, state: str, new_project: NewProject, status: int
) -> None:
    block = remote(strict, state, f'prefix = "{place(state)[1]}-"')
    project = new_project(strict, None, strict.token("maintainer"), backend=block)
    assert "No existing workspaces" in project.refused("init")
    project.ok("workspace", "new", "one")
    project.ok("workspace", "new", "two")
    with strict.gateway.redirecting(status, "-one"):
        assert "Bent request" in project.refused("workspace", "delete", "-force", "one")
    assert "one" in project.ok("workspace", "list").out
    project.ok("workspace", "delete", "-force", "one")


@pytest.mark.parametrize("redirected", [False, True])
def test_a_lock_whose_address_is_that_of_the_state_is_not_acquired_by_a_read(
    strict: Team, state: str, new_project: NewProject, redirected: bool
) -> None:
    address = f"{strict.gateway.address}/states/{state}"
    settings = {
        "TF_HTTP_ADDRESS": address,
        "TF_HTTP_LOCK_ADDRESS": address,
        "TF_HTTP_LOCK_METHOD": "PUT" if redirected else "GET",
        "TF_HTTP_UNLOCK_ADDRESS": address,
    }
    project = new_project(strict, None, strict.token("maintainer"), main=MAIN)
    project.environment.update(settings)
    project.ok("init")
    front = strict.gateway.redirecting(302, "/states/") if redirected else nullcontext()
    with front, strict.unchanged():
        refusal = project.refused("apply", "-auto-approve")
    assert "Error acquiring the state lock" in refusal
    assert "400" in refusal


def test_a_release_by_delete_at_the_address_of_the_state_never_deletes_the_state(
    strict: Team, state: str, new_project: NewProject
) -> None:
    """GitLab's block with the addresses of the state: LOCK is the client's default, which no AWS passes."""
    address = f"{strict.direct_address}/states/{state}"
    project = new_project(strict, None, strict.token("maintainer"), main=MAIN)
    of_the_state = ("TF_HTTP_ADDRESS", "TF_HTTP_LOCK_ADDRESS", "TF_HTTP_UNLOCK_ADDRESS")
    project.environment.update(dict.fromkeys(of_the_state, address), TF_HTTP_UNLOCK_METHOD="UNLOCK")
    project.ok("init")
    project.ok("apply", "-auto-approve")
    before = strict.current(state)
    project.environment["TF_HTTP_UNLOCK_METHOD"] = "DELETE"
    maintainer = strict.client("maintainer")

    # While the lock is held.
    assert "400" in project.run("plan").text
    held = strict.lock(state)
    assert held is not None
    assert "400" in project.refused("force-unlock", "-force", held["ID"])
    assert strict.lock(state) == held
    assert maintainer.unlock(state, documents.only_id(held["ID"])).status == 200

    # After somebody broke the lock.
    project.write(main=MAIN + WAITS)
    with project.applying() as apply:
        held = strict.lock(state)
        assert held is not None
        assert maintainer.unlock(state, documents.only_id(held["ID"])).status == 200
        project.proceed()
        stopped = apply.wait()
    assert stopped.code == 1, stopped.text
    assert "HTTP error: 409" in stopped.text
    assert "Unexpected HTTP response code 400" in stopped.text
    assert strict.lock(state) is None
    assert "400" in project.refused("force-unlock", "-force", held["ID"])
    assert strict.current(state) == before
    assert maintainer.delete(state).status == 200
    assert strict.current(state) is None

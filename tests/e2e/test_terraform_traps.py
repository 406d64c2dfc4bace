"""Mistakes after which a plan must not want to create what exists, and the unlock that needs no DELETE."""

from tests.e2e.test_terraform_locking import wait_until_force_unlock_may_remove
from tests.support import documents
from tests.support.project import NewProject, Project
from tests.support.team import Team

MAIN = """
terraform {
  backend "http" {}
}

resource "terraform_data" "subnet" {}
"""


def project_with_addresses_of_its_environment(
    new_project: NewProject, team: Team, state: str, role: str
) -> Project:
    """A project whose backend block is empty, as with `holdfast backend-config --env`."""
    project = new_project(team, None, team.token(role))
    project.write(main=MAIN)
    project.environment.update(addresses(team, state))
    project.ok("init")
    return project


def addresses(team: Team, state: str) -> dict[str, str]:
    """What `backend "http"` reads of the environment, with the unlock that is no DELETE."""
    base = team.gateway.address
    return {
        "TF_HTTP_ADDRESS": f"{base}/states/{state}",
        "TF_HTTP_LOCK_ADDRESS": f"{base}/locks/{state}",
        "TF_HTTP_LOCK_METHOD": "PUT",
        "TF_HTTP_UNLOCK_ADDRESS": f"{base}/unlocks/{state}",
        "TF_HTTP_UNLOCK_METHOD": "POST",
    }


def refused_plan(project: Project, **environment: str) -> str:
    """Plan with a mistake in the environment; it fails and wants to create nothing."""
    said = project.refused("plan", "-lock=false", **environment)
    assert "will be created" not in said
    return said


def test_a_plan_that_cannot_see_the_state_fails_and_does_not_want_to_create_it_anew(
    strict: Team, state: str, new_project: NewProject
) -> None:
    project = project_with_addresses_of_its_environment(new_project, strict, state, "writer")
    project.ok("apply", "-auto-approve")
    base, outputs = strict.gateway.address, strict.token("outputs")

    for wrong in (f"stats/{state}", f"prod/states/{state}", state, f"outputs/x/../../{state}", "states/"):
        assert "400" in refused_plan(project, TF_HTTP_ADDRESS=f"{base}/{wrong}"), wrong
    of_outputs = {"TF_HTTP_USERNAME": outputs.username, "TF_HTTP_PASSWORD": outputs.password}
    assert "invalid auth" in refused_plan(project, **of_outputs)
    no_credentials = {"TF_HTTP_USERNAME": "", "TF_HTTP_PASSWORD": ""}
    wrong = f"{base}/stats/{state}"
    assert "requires auth" in refused_plan(project, TF_HTTP_ADDRESS=wrong, **no_credentials)
    strict.put(f"states/{state}.tfstate", b"")
    assert "409" in refused_plan(project)


def test_a_wrong_path_cannot_lock_either(strict: Team, state: str, new_project: NewProject) -> None:
    project = project_with_addresses_of_its_environment(new_project, strict, state, "writer")

    with strict.unchanged():
        said = project.refused(
            "apply", "-auto-approve", TF_HTTP_LOCK_ADDRESS=f"{strict.gateway.address}/lock/x"
        )

    assert "400" in said


def test_a_run_and_a_force_unlock_work_with_an_unlock_by_post(
    strict: Team, state: str, new_project: NewProject
) -> None:
    project = project_with_addresses_of_its_environment(new_project, strict, state, "maintainer")

    with strict.gateway.recording() as exchanges, strict.gateway.dropping_delete_bodies():
        project.ok("apply", "-auto-approve")

    [unlock] = [each for each in exchanges if each.target == f"/unlocks/{state}"]
    assert (unlock.method, unlock.status) == ("POST", 200)
    assert strict.lock(state) is None
    info = documents.lock_info()
    assert strict.client("writer").lock(state, info).status == 200
    wait_until_force_unlock_may_remove(strict, state)
    project.ok("force-unlock", "-force", documents.lock_id(info))
    assert strict.lock(state) is None

"""User errors: no plan may want to create existing resources, and no apply may write without a lock."""

import json

from tests.support import documents
from tests.support.project import NewProject, Project, cloud
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

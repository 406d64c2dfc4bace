"""A state of Holdfast's under `backend "s3"` with `use_lockfile`, with every Terraform that there is."""

import json
from dataclasses import replace

from tests.support import documents
from tests.support.project import WAITS, NewProject, Project
from tests.support.team import Team


def checkout(new_project: NewProject, team: Team, state: str, main: str) -> Project:
    """Return a project that works on a state past Holdfast, with AWS credentials."""
    project = new_project(team, None, team.token("writer"))
    project = replace(project, environment={**project.environment, **team.environment})
    project.write(
        backend=f"""
terraform {{
  backend "s3" {{
    bucket                      = "{team.bucket}"
    key                         = "states/{state}.tfstate"
    use_lockfile                = true
    use_path_style              = true
    skip_credentials_validation = true
    skip_requesting_account_id  = true
    skip_metadata_api_check     = true
  }}
}}
""",
        main=main,
    )
    project.ok("init")
    return project


def test_a_state_of_holdfast_is_read_and_locked_by_backend_s3_where_it_is(
    loose: Team, state: str, new_project: NewProject
) -> None:
    client = loose.client("writer")
    assert client.write(state, documents.state(7)).status == 200
    native = checkout(new_project, loose, state, WAITS)

    assert native.pull() == json.loads(documents.state(7))
    with native.applying():
        held = loose.lock(state)
        assert held is not None
        assert client.lock(state, documents.lock_info()).status == 423


def test_a_client_that_lost_its_lock_overwrites_what_the_next_holder_wrote(
    loose: Team, state: str, new_project: NewProject
) -> None:
    late = checkout(new_project, loose, state, WAITS)
    following = checkout(new_project, loose, state, 'resource "terraform_data" "second" {}\n')
    with late.applying() as apply:
        held = loose.lock(state)
        assert held is not None
        following.ok("force-unlock", "-force", held["ID"])
        following.ok("apply", "-auto-approve")
        assert following.ok("state", "list").out.split() == ["terraform_data.second"]

        late.proceed()
        apply.wait()

    assert following.ok("state", "list").out.split() == ["terraform_data.waits"]

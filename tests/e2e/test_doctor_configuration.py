"""`holdfast doctor STATE` in folders of a real Terraform: it finds each deliberate fault."""

import json
import subprocess
from pathlib import Path

from tests.support.http_client import Credentials
from tests.support.project import NewProject, Project, backend, sign_in
from tests.support.team import HOLDFAST, Team
from tests.support.waiting import HANGS

FRUIT = 'resource "terraform_data" "apple" {\n  input = "red"\n}\n'
UNCHANGED = "No changes."


def problems(project: Project, team: Team, state: str, *options: str, **environment: str) -> list[str]:
    """Return the checks with a problem. The command must show no secret and change nothing in the bucket."""
    own = {**project.environment, "AWS_CA_BUNDLE": team.environment["AWS_CA_BUNDLE"], **environment}
    with team.unchanged():
        done = subprocess.run(
            [HOLDFAST, "doctor", state, "--json", *options],
            cwd=project.folder,
            env=own,
            capture_output=True,
            text=True,
            check=False,
            timeout=HANGS,
        )
    assert own["TF_HTTP_PASSWORD"] not in done.stdout + done.stderr
    found = [finding for finding in json.loads(done.stdout)["findings"] if finding["level"] == "problem"]
    assert done.returncode == (1 if found else 0), done.stdout
    return [finding["check"] for finding in found]


def applied(new_project: NewProject, team: Team, state: str) -> Project:
    """A project with an applied state."""
    return new_project.applied(team, state, team.token("writer"), main=FRUIT)


def test_a_folder_that_terraform_works_in_has_no_problem_before_and_after_init(
    strict: Team, state: str, new_project: NewProject
) -> None:
    project = new_project(strict, state, strict.token("writer"), main=FRUIT)

    assert problems(project, strict, state) == []
    project.ok("init")
    project.ok("apply", "-auto-approve")
    assert problems(project, strict, state, "--address", strict.gateway.address) == []
    assert UNCHANGED in project.ok("plan").text


def test_faults_of_the_block_are_found(strict: Team, state: str, new_project: NewProject) -> None:
    project = new_project(strict, state, strict.token("writer"))
    right = backend(strict, state)

    def fault(old: str, new: str) -> list[str]:
        assert old in right
        project.write(backend=right.replace(old, new))
        return problems(project, strict, state)

    def noted(old: str, new: str) -> list[str]:
        assert fault(old, new) == ["backend.init"]
        project.ok("init", "-reconfigure")
        found = problems(project, strict, state)
        project.write(backend=right)
        project.ok("init", "-reconfigure")
        return found

    assert fault("/states/", "/stats/") == ["backend.address"]
    assert "400" in project.refused("init")
    assert fault("/states/", "/outputs/") == ["backend.init", "backend.address"]  # it was noted all the same
    project.write(backend=right)
    project.ok("init", "-reconfigure")
    assert noted('lock_method    = "PUT"', 'lock_method    = "DELETE"') == ["backend.lock_method"]
    assert noted('unlock_method  = "POST"', 'unlock_method  = "PUT"') == ["backend.unlock_method"]


def test_what_init_was_told_beside_the_block_is_what_terraform_and_the_doctor_use(
    strict: Team, state: str, new_project: NewProject, tmp_path: Path
) -> None:
    project = applied(new_project, strict, state)
    other = tmp_path / "other.tfbackend"
    other.write_text(f'address = "{strict.gateway.address}/states/{state}-other"\n')

    project.ok("init", "-reconfigure", f"-backend-config={other}")

    assert "1 to add" in project.ok("plan", "-lock=false").text
    assert problems(project, strict, state) == ["backend.init", "backend.address"]


def test_a_stale_variable_is_found_whether_terraform_heeds_it_or_not(
    strict: Team, state: str, new_project: NewProject
) -> None:
    project = applied(new_project, strict, state)
    stale = {"TF_HTTP_ADDRESS": f"{strict.gateway.address}/states/{state}-stale"}

    assert problems(project, strict, state, **stale) == ["environment"]
    assert UNCHANGED in project.ok("plan", **stale).text  # the block wins

    block = 'terraform {\n  backend "http" {}\n}\n'
    project.write(backend=block)
    project.ok("init", "-reconfigure", **stale)
    assert "1 to add" in project.ok("plan", "-lock=false", **stale).text  # the variable does
    found = problems(project, strict, state, "--address", strict.gateway.address, **stale)
    assert found == ["backend.address", "backend.lock_address"]


def test_a_workspace_of_an_earlier_backend_is_found(
    strict: Team, state: str, new_project: NewProject
) -> None:
    project = applied(new_project, strict, state)
    noted = project.folder / ".terraform" / "environment"
    noted.write_text("dev")

    assert "workspaces not supported" in project.refused("plan")
    assert problems(project, strict, state) == ["workspace"]

    noted.unlink()
    assert problems(project, strict, state) == []
    assert "workspaces not supported" in project.refused("plan", TF_WORKSPACE="dev")
    assert problems(project, strict, state, TF_WORKSPACE="dev") == ["workspace"]


def test_credentials_that_are_not_enough_are_found(strict: Team, state: str, new_project: NewProject) -> None:
    project = applied(new_project, strict, state)
    right = strict.token("writer")

    def found(credentials: Credentials) -> list[str]:
        return problems(project, strict, state, **sign_in(strict, credentials))

    assert found(Credentials(right.username, strict.token("reader").password)) == ["api.credentials"]
    assert found(strict.token("writer", "elsewhere/*")) == ["api.credentials"]
    assert found(strict.token("outputs")) == ["api.credentials"]
    assert found(strict.token("reader")) == ["api.role"]
    assert found(strict.token("maintainer")) == []


def test_what_a_file_for_init_says_is_used_with_its_password(
    strict: Team, state: str, new_project: NewProject, tmp_path: Path
) -> None:
    token = strict.token("writer")
    project = new_project(strict, None, token, main=FRUIT, backend='terraform {\n  backend "http" {}\n}\n')
    file = tmp_path / "prod.tfbackend"
    file.write_text(backend(strict, state, "--tfbackend"))
    project.ok("init", f"-backend-config={file}")
    assert problems(project, strict, state) == []

    file.write_text(f'{backend(strict, state, "--tfbackend")}\npassword = "{token.password}"\n')
    project.ok("init", "-reconfigure", f"-backend-config={file}")
    assert problems(project, strict, state) == ["credentials.plain_text"]

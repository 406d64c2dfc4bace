"""What people do all day, with every Terraform that there is: each command against the deployed stack."""

import hashlib
import json

from holdfast.access import Role
from tests.support import documents
from tests.support.permissions_judged import Roles
from tests.support.project import NewProject, Project, backend, reads_output
from tests.support.team import Team

FRUIT = """
resource "terraform_data" "apple" {
  input = "red"
}

resource "terraform_data" "pear" {
  input = "green"
}

output "colours" {
  value = [terraform_data.apple.output, terraform_data.pear.output]
}
"""


def fruit(new_project: NewProject, team: Team, state: str) -> Project:
    """A project with an applied state."""
    project = new_project(team, state, team.token("maintainer"))
    project.write(main=FRUIT)
    project.ok("init")
    project.ok("apply", "-auto-approve")
    return project


def test_an_apply_stores_what_the_client_sent_and_leaves_no_lock(
    strict: Team, state: str, new_project: NewProject
) -> None:
    with strict.gateway.recording() as exchanges:
        fruit(new_project, strict, state)

    [write] = [exchange for exchange in exchanges if exchange.is_write]
    [lock] = [exchange for exchange in exchanges if exchange.method == "PUT"]
    assert strict.current(state) == write.body
    assert strict.lock(state) is None
    assert {exchange.status for exchange in exchanges} == {200, 204}
    [version] = strict.versions(state)
    document = json.loads(write.body)
    lock_id = documents.lock_id(lock.body)
    assert write.target.endswith(f"?ID={lock_id}")
    assert version.metadata == {
        "sha256": hashlib.sha256(write.body).hexdigest(),
        "serial": str(document["serial"]),
        "lineage": document["lineage"],
        "terraform-version": document["terraform_version"],
        "lock-id": lock_id,
        "who": json.loads(lock.body)["Who"],
        "operation": "OperationTypeApply",
        "written-by": f"token:{strict.token('maintainer').username}",
    }


def test_a_second_plan_finds_no_changes_and_outputs_can_be_read(
    strict: Team, state: str, new_project: NewProject
) -> None:
    project = fruit(new_project, strict, state)

    unchanged = project.run("plan", "-detailed-exitcode")
    outputs = json.loads(project.ok("output", "-json").out)

    assert unchanged.code == 0, unchanged.text
    assert outputs["colours"]["value"] == ["red", "green"]
    assert len(strict.versions(state)) == 1
    assert strict.lock(state) is None


def test_a_plan_notices_a_change_and_saves_nothing_and_an_apply_saves_it(
    strict: Team, state: str, new_project: NewProject, roles: Roles
) -> None:
    project = fruit(new_project, strict, state)
    project.write(main=FRUIT.replace("red", "yellow"))
    before = len(roles["strict", "backend"].requests_to_s3(state))

    changed = project.run("plan", "-detailed-exitcode")

    assert changed.code == 2, changed.text
    assert len(strict.versions(state)) == 1
    assert strict.lock(state) is None

    project.ok("apply", "-auto-approve")

    assert len(strict.versions(state)) == 2
    asked = roles["strict", "backend"].requests_to_s3(state)[before:]
    # Terraform 1.15 reads the state once more in each command, before it acquires the lock.
    assert asked.count("GetObject .tfstate") in (2, 4)
    assert [one for one in asked if one != "GetObject .tfstate"] == [
        *("PutObject .tfstate.tflock", "GetObject .tfstate.tflock", "DeleteObject .tfstate.tflock"),
        *(
            "PutObject .tfstate.tflock",
            "GetObject .tfstate.tflock",
            "PutObject .tfstate",
            "GetObject .tfstate.tflock",
            "GetObject .tfstate.tflock",
            "DeleteObject .tfstate.tflock",
        ),
    ]


def test_a_state_can_be_read_by_another_checkout(strict: Team, state: str, new_project: NewProject) -> None:
    fruit(new_project, strict, state)
    other = new_project(strict, state, strict.token("writer"))
    other.write(main=FRUIT)
    other.ok("init")

    assert other.run("plan", "-detailed-exitcode").code == 0


def test_list_move_and_remove_work_and_each_change_is_a_version(
    strict: Team, state: str, new_project: NewProject
) -> None:
    project = fruit(new_project, strict, state)
    assert project.ok("state", "list").out.split() == ["terraform_data.apple", "terraform_data.pear"]

    project.ok("state", "mv", "terraform_data.apple", "terraform_data.quince")
    project.ok("state", "rm", "terraform_data.pear")

    assert project.ok("state", "list").out.split() == ["terraform_data.quince"]
    versions = strict.versions(state)
    assert [version.serial for version in versions] == sorted({version.serial for version in versions})
    assert [len(json.loads(version.body)["resources"]) for version in versions] == [2, 2, 1]
    assert strict.lock(state) is None


def test_destroy_leaves_an_empty_state_and_the_history(
    strict: Team, state: str, new_project: NewProject
) -> None:
    project = fruit(new_project, strict, state)

    project.ok("destroy", "-auto-approve")

    before, after = strict.versions(state)[0], strict.versions(state)[-1]
    assert len(json.loads(before.body)["resources"]) == 2
    assert json.loads(after.body)["resources"] == []
    assert after.serial > before.serial
    assert strict.lock(state) is None


def test_a_pulled_state_can_be_pushed_with_the_next_serial(
    strict: Team, state: str, new_project: NewProject
) -> None:
    project = fruit(new_project, strict, state)
    pulled = project.pull()
    [version] = strict.versions(state)
    assert pulled == json.loads(version.body)

    pulled["serial"] += 1
    pulled["outputs"]["colours"]["value"] = ["blue"]
    pulled["outputs"]["colours"]["type"] = ["tuple", ["string"]]
    (project.folder / "next.json").write_text(json.dumps(pulled))
    project.ok("state", "push", "next.json")

    pushed = project.pull()
    assert pushed["outputs"] == pulled["outputs"]
    # The client raises the serial once more where the content differs.
    assert pushed["serial"] >= pulled["serial"]
    assert [version.serial for version in strict.versions(state)] == [version.serial, pushed["serial"]]


def test_an_older_serial_is_pushed_only_by_force_and_the_version_before_stays(
    strict: Team, state: str, new_project: NewProject
) -> None:
    project = fruit(new_project, strict, state)
    (project.folder / "old.json").write_bytes(strict.versions(state)[0].body)
    project.ok("state", "rm", "terraform_data.pear")
    newer = strict.versions(state)[-1]

    refusal = project.refused("state", "push", "old.json")
    assert "serial" in refusal
    assert strict.current(state) == newer.body

    project.ok("state", "push", "-force", "old.json")

    assert len(project.pull()["resources"]) == 2
    assert newer.body in [version.body for version in strict.versions(state)]
    assert strict.lock(state) is None


def test_another_lineage_is_pushed_only_by_force(strict: Team, state: str, new_project: NewProject) -> None:
    project = fruit(new_project, strict, state)
    other = documents.state(100, lineage="00000000-0000-4000-8000-000000000000")
    (project.folder / "other.json").write_bytes(other)

    assert "lineage" in project.refused("state", "push", "other.json")
    project.ok("state", "push", "-force", "other.json")

    assert project.pull()["lineage"] == "00000000-0000-4000-8000-000000000000"


# --- moving in and out ---------------------------------------------------------------------------


def test_a_local_state_moves_in_and_out_again(strict: Team, state: str, new_project: NewProject) -> None:
    project = new_project(strict, None, strict.token("maintainer"))
    project.write(main=FRUIT)
    project.ok("init")
    project.ok("apply", "-auto-approve")
    local = json.loads((project.folder / "terraform.tfstate").read_text())

    project.write(backend=backend(strict, state))
    project.ok("init", "-migrate-state", "-force-copy")

    moved = json.loads(strict.current(state) or b"")
    assert moved["resources"] == local["resources"]
    assert moved["outputs"] == local["outputs"]
    assert strict.lock(state) is None
    assert project.run("plan", "-detailed-exitcode").code == 0

    (project.folder / "backend.tf").unlink()
    project.ok("init", "-migrate-state", "-force-copy")

    back = json.loads((project.folder / "terraform.tfstate").read_text())
    assert back["resources"] == local["resources"]
    assert project.run("plan", "-detailed-exitcode").code == 0
    assert json.loads(strict.current(state) or b"") == moved
    assert strict.lock(state) is None


def test_a_local_state_moves_onto_one_that_exists_whose_version_stays(
    strict: Team, state: str, new_project: NewProject
) -> None:
    fruit(new_project, strict, state)
    before = strict.current(state)
    project = new_project(strict, None, strict.token("maintainer"))
    project.write(main='resource "terraform_data" "nut" {}\n')
    project.ok("init")
    project.ok("apply", "-auto-approve")
    local = json.loads((project.folder / "terraform.tfstate").read_text())
    assert local["lineage"] != json.loads(before or b"")["lineage"]

    project.write(backend=backend(strict, state))
    project.ok("init", "-migrate-state", "-force-copy")

    assert project.ok("state", "list").out.split() == ["terraform_data.nut"]
    assert strict.versions(state)[0].body == before
    assert strict.lock(state) is None


def test_a_state_moves_from_one_name_to_another(strict: Team, state: str, new_project: NewProject) -> None:
    project = fruit(new_project, strict, state)

    project.write(backend=backend(strict, f"{state}/moved"))
    project.ok("init", "-migrate-state", "-force-copy")

    old, new = json.loads(strict.current(state) or b""), json.loads(strict.current(f"{state}/moved") or b"")
    assert new["resources"] == old["resources"]
    assert strict.lock(state) is None
    assert strict.lock(f"{state}/moved") is None


# --- reading another's state ---------------------------------------------------------------------


def test_remote_state_reads_the_outputs_of_another_configuration_with_every_role(
    strict: Team, state: str, new_project: NewProject
) -> None:
    fruit(new_project, strict, state)

    with strict.gateway.recording() as exchanges:
        for role in Role:
            reader = new_project(strict, None, strict.token(role))
            reader.write(main=reads_output(strict, state, "colours"))
            reader.ok("init")
            reader.ok("apply", "-auto-approve")
            assert json.loads(reader.ok("output", "-json").out)["colours"]["value"] == ["red", "green"]

    assert len(exchanges) >= len(Role)
    for exchange in exchanges:
        assert exchange.status == 200
        assert b"resources" not in exchange.answer


def test_a_reader_plans_without_a_lock(strict: Team, state: str, new_project: NewProject) -> None:
    fruit(new_project, strict, state)
    reader = new_project(strict, state, strict.token("reader"))
    reader.write(main=FRUIT)
    reader.ok("init")

    with strict.gateway.recording() as exchanges:
        plan = reader.run("plan", "-lock=false", "-detailed-exitcode")

    assert plan.code == 0, plan.text
    assert {exchange.method for exchange in exchanges} == {"GET"}


def test_a_reader_can_neither_lock_nor_write(strict: Team, state: str, new_project: NewProject) -> None:
    fruit(new_project, strict, state)
    before = strict.versions(state)
    reader = new_project(strict, state, strict.token("reader"))
    reader.write(main=FRUIT.replace("red", "yellow"))
    reader.ok("init")

    assert "invalid auth" in reader.refused("apply", "-auto-approve")
    assert "403" in reader.refused("apply", "-auto-approve", "-lock=false")

    assert strict.versions(state) == before


# --- addresses -----------------------------------------------------------------------------------


def test_a_block_that_unlocks_by_delete_still_works(
    strict: Team, state: str, new_project: NewProject
) -> None:
    project = new_project(strict, state, strict.token("maintainer"))
    block = backend(strict, state)
    project.write(main=FRUIT, backend=block.replace("/unlocks/", "/locks/").replace('"POST"', '"DELETE"'))

    with strict.gateway.recording() as exchanges:
        project.ok("init")
        project.ok("apply", "-auto-approve")

    assert [exchange.status for exchange in exchanges if exchange.method == "DELETE"] == [200]
    assert len([exchange for exchange in exchanges if exchange.method == "POST"]) == 1
    assert strict.lock(state) is None


def test_a_stale_address_in_the_environment_does_not_move_a_checkout(
    strict: Team, state: str, new_project: NewProject
) -> None:
    stale = f"{strict.gateway.address}/states/{state}/dev"
    project = new_project(strict, None, strict.token("maintainer"))
    project.write(main=FRUIT, backend='terraform {\n  backend "http" {}\n}\n')
    (project.folder / "prod.tfbackend").write_text(backend(strict, state, "--tfbackend"))

    project.ok("init", "-backend-config=prod.tfbackend", TF_HTTP_ADDRESS=stale)
    project.ok("apply", "-auto-approve", TF_HTTP_ADDRESS=stale)

    assert strict.current(state) is not None
    assert strict.current(f"{state}/dev") is None
    assert project.run("plan", "-detailed-exitcode", TF_HTTP_ADDRESS=stale).code == 0


# --- without a lock ------------------------------------------------------------------------------


def test_an_apply_without_a_lock_is_428_where_the_team_requires_one(
    strict: Team, state: str, new_project: NewProject
) -> None:
    project = fruit(new_project, strict, state)
    before = strict.versions(state)
    project.write(main=FRUIT.replace("red", "yellow"))

    refusal = project.refused("apply", "-auto-approve", "-lock=false")

    assert "428" in refusal
    assert (project.folder / "errored.tfstate").exists()
    assert strict.versions(state) == before

    # The way back that the documentation gives.
    project.ok("state", "push", "errored.tfstate")
    assert project.run("plan", "-detailed-exitcode").code == 0


def test_an_apply_without_a_lock_works_where_the_team_allows_it(
    loose: Team, state: str, new_project: NewProject
) -> None:
    project = fruit(new_project, loose, state)
    project.write(main=FRUIT.replace("red", "yellow"))

    with loose.gateway.recording() as exchanges:
        project.ok("apply", "-auto-approve", "-lock=false")

    assert {exchange.method for exchange in exchanges} == {"GET", "POST"}
    assert len(loose.versions(state)) == 2
    assert "yellow" in project.ok("output").out

"""The daily commands, with every installed Terraform against the deployed stack."""

import hashlib
import json

from holdfast.access import Action, Role, allowed
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
    return new_project.applied(team, state, team.token("maintainer"), main=FRUIT)


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
        **version.metadata,
        "sha256": hashlib.sha256(write.body).hexdigest(),
        "serial": str(document["serial"]),
        "lineage": document["lineage"],
        "terraform-version": document["terraform_version"],
        "lock-id": lock_id,
        "who": json.loads(lock.body)["Who"],
        "operation": "OperationTypeApply",
        "written-by": f"token:{strict.token('maintainer').username}",
    }


def test_a_plan_notices_a_change_and_saves_nothing_and_an_apply_saves_it(
    strict: Team, state: str, new_project: NewProject, roles: Roles
) -> None:
    project = fruit(new_project, strict, state)
    other = new_project.ready(strict, state, strict.token("writer"), main=FRUIT)
    for checkout in (project, other):
        assert checkout.run("plan", "-detailed-exitcode").code == 0
    assert json.loads(project.ok("output", "-json").out)["colours"]["value"] == ["red", "green"]
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
        *("PutObject .tfstate.tflock", "GetObject .tfstate.tflock", "PutObject .tfstate"),
        *("GetObject .tfstate.tflock", "GetObject .tfstate.tflock", "DeleteObject .tfstate.tflock"),
    ]


def test_list_move_and_remove_work_and_each_change_is_a_version(
    strict: Team, state: str, new_project: NewProject
) -> None:
    project = fruit(new_project, strict, state)
    assert project.ok("state", "list").out.split() == ["terraform_data.apple", "terraform_data.pear"]

    project.ok("state", "mv", "terraform_data.apple", "terraform_data.quince")
    project.ok("state", "rm", "terraform_data.pear")
    assert project.ok("state", "list").out.split() == ["terraform_data.quince"]
    project.ok("destroy", "-auto-approve")

    versions = strict.versions(state)
    assert [version.serial for version in versions] == sorted({version.serial for version in versions})
    assert [len(json.loads(version.body)["resources"]) for version in versions] == [2, 2, 1, 0]
    assert strict.lock(state) is None


def test_a_pulled_state_is_pushed_with_the_next_serial_and_an_older_or_another_one_only_by_force(
    strict: Team, state: str, new_project: NewProject
) -> None:
    project = fruit(new_project, strict, state)
    [first] = strict.versions(state)
    pulled = project.pull()
    assert pulled == json.loads(first.body)
    pulled["serial"] += 1
    pulled["outputs"]["colours"]["value"] = ["blue"]
    pulled["outputs"]["colours"]["type"] = ["tuple", ["string"]]

    def push(document: bytes, *options: str) -> list[str]:
        (project.folder / "pushed.json").write_bytes(document)
        return ["state", "push", *options, "pushed.json"]

    project.ok(*push(json.dumps(pulled).encode()))
    pushed = project.pull()
    assert pushed["outputs"] == pulled["outputs"]
    # The client raises the serial once more if the content differs.
    assert pushed["serial"] >= pulled["serial"]
    assert [version.serial for version in strict.versions(state)] == [first.serial, pushed["serial"]]

    other = documents.state(100, lineage="00000000-0000-4000-8000-000000000000")
    for document, differs in ((first.body, "serial"), (other, "lineage")):
        with strict.unchanged():
            assert differs in project.refused(*push(document))
        project.ok(*push(document, "-force"))
        for same in ("resources", "lineage"):
            assert project.pull()[same] == json.loads(document)[same]
    assert len(strict.versions(state)) == 4
    assert strict.lock(state) is None


# --- moving in and out ---------------------------------------------------------------------------


def test_a_state_moves_in_from_a_name_to_another_and_out_again(
    strict: Team, state: str, new_project: NewProject
) -> None:
    project = new_project.applied(strict, None, strict.token("maintainer"), main=FRUIT)
    local = json.loads((project.folder / "terraform.tfstate").read_text())

    for name in (state, f"{state}/moved"):
        project.write(backend=backend(strict, name))
        project.ok("init", "-migrate-state", "-force-copy")
        moved = json.loads(strict.current(name) or b"")
        assert (moved["resources"], moved["outputs"]) == (local["resources"], local["outputs"])
        assert strict.lock(name) is None
        assert project.run("plan", "-detailed-exitcode").code == 0

    (project.folder / "backend.tf").unlink()
    with strict.unchanged():
        project.ok("init", "-migrate-state", "-force-copy")
        back = json.loads((project.folder / "terraform.tfstate").read_text())
        assert back["resources"] == local["resources"]
        assert project.run("plan", "-detailed-exitcode").code == 0


def test_a_local_state_moves_onto_one_that_exists_whose_version_stays(
    strict: Team, state: str, new_project: NewProject
) -> None:
    strict.write(state, documents.state())
    project = new_project.applied(
        strict, None, strict.token("maintainer"), main='resource "terraform_data" "nut" {}\n'
    )
    local = json.loads((project.folder / "terraform.tfstate").read_text())
    assert local["lineage"] != documents.LINEAGE

    project.write(backend=backend(strict, state))
    project.ok("init", "-migrate-state", "-force-copy")

    assert project.ok("state", "list").out.split() == ["terraform_data.nut"]
    assert strict.versions(state)[0].body == documents.state()
    assert strict.lock(state) is None


# --- reading another's state ---------------------------------------------------------------------


def test_remote_state_reads_the_outputs_of_another_configuration_with_every_role_that_may(
    strict: Team, state: str, new_project: NewProject
) -> None:
    fruit(new_project, strict, state)
    reads = reads_output(strict, state, "colours")
    readers = [role for role in Role if Action.READ_OUTPUTS in allowed(role)]

    with strict.gateway.recording() as exchanges:
        for role in readers:
            reader = new_project.applied(strict, None, strict.token(role), main=reads)
            assert json.loads(reader.ok("output", "-json").out)["colours"]["value"] == ["red", "green"]

    assert len(exchanges) >= len(readers)
    for exchange in exchanges:
        assert exchange.status == 200
        assert b"resources" not in exchange.answer


def test_a_reader_plans_without_a_lock_and_can_neither_lock_nor_write(
    strict: Team, state: str, new_project: NewProject
) -> None:
    fruit(new_project, strict, state)
    reader = new_project.ready(strict, state, strict.token("reader"), main=FRUIT)

    with strict.unchanged():
        with strict.gateway.recording() as exchanges:
            plan = reader.run("plan", "-lock=false", "-detailed-exitcode")
        assert plan.code == 0, plan.text
        assert {exchange.method for exchange in exchanges} == {"GET"}
        reader.write(main=FRUIT.replace("red", "yellow"))
        assert "invalid auth" in reader.refused("apply", "-auto-approve")
        assert "403" in reader.refused("apply", "-auto-approve", "-lock=false")


# --- addresses -----------------------------------------------------------------------------------


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

    # The recovery that the documentation describes.
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

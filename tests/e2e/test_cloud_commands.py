"""The daily commands under `cloud {}` and `backend "remote"`, with every installed Terraform."""

import base64
import json
import re

from local_aws.terraform import Product
from tests.support import audit_trail, documents
from tests.support.cloud_client import place
from tests.support.deployed import FUNCTIONS
from tests.support.permissions_judged import Roles
from tests.support.project import NewProject, Project, cloud, remote, sign_in
from tests.support.team import Team

FRUIT = """
resource "terraform_data" "apple" {
  input = "red"
}

output "colour" {
  value = terraform_data.apple.output
}

output "secret" {
  value     = "swordfish"
  sensitive = true
}
"""


def workspaces(project: Project) -> list[str]:
    return project.ok("workspace", "list").out.replace("*", "").split()


def test_a_day_with_one_workspace(strict: Team, state: str, new_project: NewProject, roles: Roles) -> None:
    project = new_project.ready(
        strict, None, strict.token("maintainer"), main=FRUIT, backend=cloud(strict, state)
    )

    project.ok("plan", "-out=saved")
    project.ok("apply", "saved")
    assert project.run("plan", "-detailed-exitcode").code == 0
    outputs = json.loads(project.ok("output", "-json").out)
    assert (outputs["colour"]["value"], outputs["secret"]["value"]) == ("red", "swordfish")
    project.ok("state", "mv", "terraform_data.apple", "terraform_data.quince")
    project.ok("state", "rm", "terraform_data.quince")
    project.ok("import", "terraform_data.apple", "an-id")
    assert project.ok("state", "list").out.split() == ["terraform_data.apple"]
    pulled = project.pull()
    pulled["serial"] += 1
    pulled["outputs"]["colour"] = {"value": "blue", "type": "string"}
    (project.folder / "next.json").write_text(json.dumps(pulled))
    project.ok("state", "push", "next.json")
    assert project.ok("output", "colour").out.strip() == '"blue"'
    project.ok("destroy", "-auto-approve")

    versions = strict.versions(state)
    assert [len(json.loads(version.body)["resources"]) for version in versions] == [1, 1, 0, 1, 1, 0]
    assert [version.serial for version in versions] == sorted({version.serial for version in versions})
    assert {version.metadata["operation"] for version in versions} == {"cloud"}
    assert all(re.fullmatch("[0-9a-f]{32}", version.metadata["lock-id"]) for version in versions)
    assert strict.lock(state) is None
    assert strict.staged(state) == []
    project.write(backend=cloud(strict, f"{state}/deep"))
    deep = project.run("init")
    # Older clients refuse the `:` themselves, as OpenTofu 1.9.4 does.
    there = strict.cloud_client("reader").read(f"{state}/deep").status == 200
    assert there == (deep.code == 0)
    assert there or "invalid value for workspace" in deep.text
    token = strict.token("maintainer")
    of_strict = [role for (team, name), role in roles.items() if team == strict.name and name in FUNCTIONS]
    logged = [line for role in of_strict for line in role.log_lines()]
    logged.append(json.dumps(audit_trail.events(strict)))
    for secret in ("X-Amz-Signature", token.password, "swordfish"):
        assert not [line for line in logged if secret in line]


ENCRYPTION = """
key_provider "pbkdf2" "mine" {
  passphrase = "correct horse battery staple"
}

method "aes_gcm" "mine" {
  keys = key_provider.pbkdf2.mine
}

state {
  method   = method.aes_gcm.mine
  enforced = true
}
"""


def test_what_a_client_encrypts_is_kept_nowhere_in_plain_text(
    strict: Team, state: str, new_project: NewProject, roles: Roles
) -> None:
    project = new_project(strict, None, strict.token("writer"))
    client = project.terraform.client
    if client.product is Product.OPENTOFU and client.version >= (1, 7, 0):
        project.environment["TF_ENCRYPTION"] = ENCRYPTION
        project.write(main=FRUIT, backend=cloud(strict, state))
        project.ok("init")
        project.ok("apply", "-auto-approve")
        assert project.run("plan", "-detailed-exitcode").code == 0
        outputs = json.loads(project.ok("output", "-json").out)
        assert (outputs["colour"]["value"], outputs["secret"]["value"]) == ("red", "swordfish")
    else:
        send_as_an_encrypting_client(strict, state)

    [version] = strict.versions(state)
    assert "encrypted_data" in json.loads(version.body)
    assert strict.staged(state) == []
    [output] = (
        strict.cloud_client("outputs").outputs(strict.cloud_client("outputs").open(state)).json()["data"]
    )
    assert "detailed-type" not in output["attributes"]
    kept = [version.body, str(version.metadata).encode(), str(output).encode()]
    kept += [line.encode() for line in roles["strict", "cloud"].log_lines()]
    for text in (b"swordfish", base64.b64encode(b"swordfish")[:11]):
        assert not [found for found in kept if text in found]


def send_as_an_encrypting_client(team: Team, state: str) -> None:
    """Write an encrypted state, with the outputs in plain text where OpenTofu sends them so."""
    client = team.cloud_client("writer")
    body = documents.encrypted_state(1, "bm90aGluZyB0byBzZWU=")
    plain = {"secret": {"value": "swordfish", "type": "string", "sensitive": True}}
    assert client.create(state).status == 201
    workspace = client.open(state)
    assert client.lock(workspace).status == 200
    announced = client.announce(
        workspace, body, **{"json-state-outputs": base64.b64encode(json.dumps(plain).encode()).decode()}
    )
    assert announced.status == 201
    assert client.upload(announced, body, json.dumps({"values": {"outputs": plain}}).encode()) == [200, 200]
    assert client.commit(announced).status == 200
    assert client.unlock(workspace).status == 200


def test_two_workspaces_with_a_tag(strict: Team, state: str, new_project: NewProject) -> None:
    one, two = (place(f"{state}-{name}")[1] for name in ("one", "two"))
    tag = re.sub("[^a-z0-9]", "", state)
    block = cloud(strict, state, f'tags = ["{tag}"]')
    project = new_project(strict, None, strict.token("maintainer"), main=FRUIT, backend=block)
    assert strict.cloud_client("writer").create(f"{state}-untagged").status == 201

    project.ok("init", answers=f"{one}\n")
    project.ok("apply", "-auto-approve")
    project.ok("workspace", "new", two)
    project.ok("apply", "-auto-approve")
    assert project.ok("workspace", "show").out.strip() == two
    assert workspaces(project) == [one, two]
    project.ok("workspace", "select", one)
    assert project.ok("output", "colour").out.strip() == '"red"'

    assert "not empty" in project.refused("workspace", "delete", two)
    project.ok("workspace", "delete", "-force", two)

    assert workspaces(project) == [one]
    assert strict.current(f"{state}-two") is None
    assert len(strict.versions(f"{state}-one")) == 1
    assert strict.lock(f"{state}-one") is strict.lock(f"{state}-two") is None


def test_a_day_with_backend_remote(strict: Team, state: str, new_project: NewProject) -> None:
    block = remote(strict, state, f'prefix = "{place(state)[1]}-"')
    project = new_project(strict, None, strict.token("maintainer"), main=FRUIT, backend=block)

    assert "No existing workspaces" in project.refused("init")
    project.ok("workspace", "new", "one")
    project.ok("workspace", "new", "two")
    project.ok("apply", "-auto-approve")
    assert workspaces(project) == ["one", "two"]
    older = strict.current(f"{state}-two") or b""
    project.ok("state", "rm", "terraform_data.apple")
    (project.folder / "older.json").write_bytes(older)
    assert "serial" in project.refused("state", "push", "older.json")
    project.ok("state", "push", "-force", "older.json")
    assert json.loads(strict.current(f"{state}-two") or b"")["resources"] == json.loads(older)["resources"]
    project.ok("destroy", "-auto-approve")
    project.ok("workspace", "select", "one")
    project.ok("workspace", "delete", "two")
    assert workspaces(project) == ["one"]

    block = remote(strict, f"{state}-one")
    reader = new_project.ready(strict, None, strict.token("reader"), main=FRUIT, backend=block)
    assert reader.run("plan", "-lock=false", "-detailed-exitcode").code == 2
    assert "reader" in reader.refused("apply", "-auto-approve")
    assert strict.versions(f"{state}-one") == []


def test_what_outputs_and_readers_may_do(strict: Team, state: str, new_project: NewProject) -> None:
    organization, workspace = place(state)
    body = json.loads(documents.state(1, content="secret of the state"))
    body["outputs"] = {"colour": {"value": "red", "type": "string"}}
    writer = strict.cloud_client("writer")
    assert writer.create(state).status == 201
    locked = writer.open(state)
    assert writer.lock(locked).status == 200
    assert writer.write(locked, json.dumps(body).encode()).status == 200
    assert writer.unlock(locked).status == 200
    # `init` reads the whole state, whichever credentials the commands after it have.
    outputs, elsewhere = (
        new_project(strict, None, token, main=FRUIT, backend=cloud(strict, state))
        for token in (strict.token("outputs"), strict.token("maintainer", "elsewhere/*"))
    )
    reads = new_project.applied(
        *(strict, None, strict.token("reader")),
        main=f"""
data "terraform_remote_state" "fruit" {{
  backend = "remote"
  config = {{
    hostname     = "{strict.host}"
    organization = "{organization}"
    workspaces   = {{ name = "{workspace}" }}
  }}
}}

output "read" {{
  value = data.terraform_remote_state.fruit.outputs.colour
}}
""",
    )

    assert reads.ok("output", "read").out.strip() == '"red"'
    with strict.unchanged():
        assert "does not allow you to read the whole state" in outputs.refused("init")
        outputs.ok("init", **sign_in(strict, strict.token("reader")))
        assert outputs.ok("output", "-json", "colour").out.strip() == '"red"'
        for command in (("state", "pull"), ("plan", "-lock=false"), ("apply", "-auto-approve")):
            said = outputs.refused(*command)
            assert "will be created" not in said
            assert "may not" in said or "not allowed" in said.lower(), said
        outputs.write(backend=cloud(strict, f"{state}-new"))
        assert "does not allow you to write" in outputs.refused("init")
        assert "scope" in elsewhere.refused("init")

"""States of any size, and states that move, with every installed Terraform."""

import json
from urllib.parse import parse_qs, urlsplit

from tests.e2e.test_cloud_commands import FRUIT
from tests.e2e.test_cloud_locking import checkout, over_http, past_holdfast
from tests.e2e.test_terraform_locking import wait_until_force_unlock_may_remove
from tests.support import documents
from tests.support.cloud_client import place, refusal
from tests.support.project import NewProject, cloud
from tests.support.team import Team

LARGE = """
resource "terraform_data" "large" {
  count = 60
  lifecycle {
    ignore_changes = [input]
  }
}
"""
LARGE_BYTES = 30_000_000


def large_state(lineage: str) -> bytes:
    """Return a state of 30 MB that matches the configuration `LARGE`."""
    content = "x" * (LARGE_BYTES // 60 // 2)
    document = json.loads(documents.state(1, lineage=lineage))
    document["outputs"] = {}
    document["resources"] = [
        {
            "mode": "managed",
            "type": "terraform_data",
            "name": "large",
            "provider": 'provider["terraform.io/builtin/terraform"]',
            "instances": [
                {
                    "index_key": number,
                    "schema_version": 0,
                    "attributes": {
                        "id": f"id-{number}",
                        "input": {"value": content, "type": "string"},
                        "output": {"value": content, "type": "string"},
                        "triggers_replace": None,
                    },
                }
                for number in range(60)
            ],
        }
    ]
    return json.dumps(document).encode()


def test_a_state_that_http_cannot_take_goes_in_and_is_planned_with(
    strict: Team, state: str, new_project: NewProject
) -> None:
    body = large_state(documents.LINEAGE)
    assert strict.client("writer").write(state, body).status == 413
    project = checkout(new_project, strict, state, LARGE)
    (project.folder / "large.json").write_bytes(body)

    project.ok("state", "push", "large.json")
    with strict.gateway.recording() as exchanges:
        plan = project.run("plan", "-detailed-exitcode")

    assert plan.code == 0, plan.text
    [version] = strict.versions(state)
    assert len(version.body) >= LARGE_BYTES
    assert strict.staged(state) == []
    assert {one.status for one in exchanges if one.target.endswith("/download")} == {307}
    reader = strict.cloud_client("reader")
    address = urlsplit(reader.download(reader.current(reader.open(state))).headers["location"])
    assert address.hostname != urlsplit(strict.gateway.address).hostname
    query = parse_qs(address.query)
    assert (query["X-Amz-Expires"], query["versionId"]) == (["60"], [version.id])
    refused = strict.client("reader").read(state)
    assert refused.error == (413, "too_large")
    assert b"cloud" in refused.body


BIG_OUTPUT = """
resource "terraform_data" "small" {}

output "big" {
  value = file("big.txt")
}
"""


def test_outputs_above_the_limit_stay_on_the_disk_until_they_are_smaller(
    strict: Team, state: str, one_project: NewProject
) -> None:
    """As `errors.md` says."""
    project = checkout(one_project, strict, state, BIG_OUTPUT)
    (project.folder / "big.txt").write_text("x" * 3_600_000)

    assert "413 Request Entity Too Large" in project.refused("apply", "-auto-approve")

    left = project.folder / "errored.tfstate"
    smaller = json.loads(left.read_text())
    assert len(smaller["resources"]) == 1
    del smaller["outputs"]["big"]
    left.write_text(json.dumps(smaller))
    project.write(main='resource "terraform_data" "small" {}')
    wait_until_force_unlock_may_remove(strict, state)
    project.ok("force-unlock", "-force", "/".join(place(state)))
    project.ok("state", "push", "errored.tfstate")
    assert project.run("plan", "-detailed-exitcode").code == 0


def test_a_state_above_the_limit_of_its_team_is_refused_whole(kept: Team, state: str) -> None:
    writer = kept.cloud_client("writer")
    assert writer.create(state).status == 201
    workspace = writer.open(state)
    assert writer.lock(workspace).status == 200
    body = documents.state(1, content="x" * 1_000_000)

    assert refusal(writer.write(workspace, body)).status == 413
    assert refusal(writer.write_at_once(workspace, body)).status == 413
    assert kept.versions(state) == []
    assert writer.write(workspace, documents.state(1)).status == 200
    assert writer.unlock(workspace).status == 200


def test_a_state_moves_in_from_wherever_it_lies_and_out_again(
    loose: Team, state: str, new_project: NewProject
) -> None:
    local = new_project.applied(loose, None, loose.token("maintainer"), main=FRUIT)
    resources = json.loads((local.folder / "terraform.tfstate").read_text())["resources"]

    # From a local file to `cloud {}`.
    local.write(backend=cloud(loose, f"{state}-one"))
    local.ok("init", answers="yes\n")
    assert json.loads(loose.current(f"{state}-one") or b"")["resources"] == resources
    # Back: the client cannot move a state out of `cloud {}`, but it can pull it.
    pulled = local.ok("state", "pull").out
    (local.folder / "backend.tf").unlink()
    said = local.refused("init")
    assert "not" in said
    assert "migrat" in said.lower()
    away = new_project(loose, None, loose.token("maintainer"), main=FRUIT)
    (away.folder / "terraform.tfstate").write_text(pulled)
    away.ok("init")
    assert away.run("plan", "-detailed-exitcode").code == 0

    # From `backend "http"` to the same state, which needs no copy, and to another state.
    for target, versions in ((f"{state}-one", 1), (f"{state}-two", 1)):
        project = over_http(new_project, loose, f"{state}-one", FRUIT)
        project.write(backend=cloud(loose, target))
        project.ok("init", answers="yes\n")
        assert project.run("plan", "-detailed-exitcode").code == 0
        assert len(loose.versions(target)) == versions

    # To `backend "s3"`, which uses the same object, and from there to another workspace.
    past = past_holdfast(new_project, loose, f"{state}-two", FRUIT, locks=False)
    assert past.run("plan", "-detailed-exitcode").code == 0
    past.write(backend=cloud(loose, f"{state}-three"))
    past.ok("init", answers="yes\n")
    assert past.run("plan", "-detailed-exitcode").code == 0
    for name in ("one", "two", "three"):
        assert json.loads(loose.current(f"{state}-{name}") or b"")["resources"] == resources
        assert loose.lock(f"{state}-{name}") is None


def test_another_name_in_the_block_copies_nothing_and_a_push_moves_the_state(
    strict: Team, state: str, new_project: NewProject
) -> None:
    block = cloud(strict, state)
    project = new_project.applied(strict, None, strict.token("writer"), main=FRUIT, backend=block)
    (project.folder / "old.json").write_text(project.ok("state", "pull").out)

    project.write(backend=cloud(strict, f"{state}-new"))
    project.ok("init")
    assert project.run("plan", "-detailed-exitcode").code == 2
    assert strict.current(f"{state}-new") is None
    project.ok("state", "push", "old.json")

    assert project.run("plan", "-detailed-exitcode").code == 0

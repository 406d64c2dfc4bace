"""Imports into a deployed stack with IAM: a killed run, two at once, a state in use, and a large state."""

import json
import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pytest

from local_aws.server import LocalAws
from tests.e2e.test_cloud_moving import large_state
from tests.support import documents
from tests.support.operators import NewOperator, Operator
from tests.support.project import WAITS, NewProject
from tests.support.team import HOLDFAST, Team
from tests.support.waiting import wait_until

STATES = 100


@dataclass(frozen=True)
class Move:
    """A plan of an old bucket, and the person who follows it."""

    operator: Operator
    team: Team
    bucket: str
    plan: Path

    def command(self, *arguments: str | Path) -> tuple[int, str, str]:
        return self.operator.run("import", *map(str, arguments))

    def write(self, key: str, body: bytes) -> None:
        self.team.s3.put_object(Bucket=self.bucket, Key=key, Body=body)

    def make_plan(self, *more: str) -> None:
        code, out, err = self.command("plan", f"s3://{self.bucket}", *more)
        assert code == 0, err
        self.plan.write_text(out)

    def locks(self) -> list[str]:
        listed = self.team.s3.list_objects_v2(Bucket=self.bucket).get("Contents", [])
        return [found["Key"] for found in listed if found["Key"].endswith(".tflock")]


@pytest.fixture
def move(strict: Team, aws: LocalAws, operator: NewOperator, state: str, tmp_path: Path) -> Move:
    """An empty old bucket, which is named after the test, and a maintainer of the team."""
    bucket = f"old-{state.partition('/')[2][:40].strip('-')}"
    strict.s3.create_bucket(Bucket=bucket)
    person = operator(strict, "maintainer")
    environment = {**person.environment, **aws.environment()}
    return Move(Operator(person.principal, environment), strict, bucket, tmp_path / "move.toml")


def test_a_run_that_is_killed_twice_beside_another_import_ends_with_every_state(
    move: Move, state: str, tmp_path: Path
) -> None:
    bodies = {
        f"{number}.tfstate": documents.state(1, lineage=f"l{number}", content="x" * number)
        for number in range(STATES)
    }
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(move.write, bodies, bodies.values()))
    move.make_plan("--map", f"{{key}}.tfstate={state}/{{key}}")
    journal = move.plan.with_name("move.toml.journal")
    for kill_after in (20, 60):
        with subprocess.Popen(
            [HOLDFAST, "import", "run", str(move.plan)],
            env=dict(move.operator.environment),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as run:
            wait_until(
                lambda: journal.exists() and journal.read_text().count('"imported"') >= kill_after,  # noqa: B023
                f"{kill_after} states are imported",
            )
            os.kill(run.pid, signal.SIGKILL)
    other = tmp_path / "other.toml"
    other.write_bytes(move.plan.read_bytes())

    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(lambda plan: move.command("run", plan), (move.plan, other)))
    if any(code for code, _, _ in runs):  # each may have met the other's locks
        runs = [move.command("run", move.plan), move.command("run", other)]

    assert [code for code, _, _ in runs] == [0, 0], runs
    assert move.locks() == []
    assert move.operator.json("lock", "list", f"{state}/") == []
    for key, body in bodies.items():
        name = f"{state}/{key.removesuffix('.tfstate')}"
        assert [version.body for version in move.team.versions(name)] == [body]
    code, out, _ = move.command("check", move.plan)
    assert (code, out) == (0, f"{STATES} states: {STATES} the same.\n")


def test_a_state_that_terraform_works_on_is_skipped_named_and_imported_afterwards(
    move: Move, state: str, one_project: NewProject
) -> None:
    block = f"""
terraform {{
  backend "s3" {{
    bucket                      = "{move.bucket}"
    key                         = "app.tfstate"
    use_lockfile                = true
    use_path_style              = true
    skip_credentials_validation = true
    skip_requesting_account_id  = true
    skip_metadata_api_check     = true
  }}
}}
"""
    project = one_project(move.team, None, move.team.token("writer"), main=WAITS, backend=block)
    project.environment.update(move.team.environment)
    project.ok("init")
    move.write("idle.tfstate", documents.state(1))
    move.write("app.tfstate", documents.state(0, lineage="app"))
    move.make_plan("--map", f"{{key}}.tfstate={state}/{{key}}")

    with project.applying() as apply:
        code, _, err = move.command("run", move.plan)
        assert code == 1
        assert "2 states: 1 locked, 1 imported" in err
        assert "app.tfstate" in err
        assert "OperationTypeApply" in err
        project.proceed()
        assert apply.wait().code == 0

    assert move.command("run", move.plan)[0] == 0
    assert [version.serial for version in move.team.versions(f"{state}/app")] == [
        json.loads(move.team.s3.get_object(Bucket=move.bucket, Key="app.tfstate")["Body"].read())["serial"]
    ]


KEYS = (
    "moving-one.tfstate",
    "live/moving-two.tfstate",
    "live/eu/moving-three/terraform.tfstate",
    "moving-four",
    "moving.five.tfstate",
    "moving six.tfstate",
)
WORKSPACES = ("default", "dev", "stage", "prod", "prod-eu")
ROOT = """
resource "terraform_data" "it" {
  input = "in-${terraform.workspace}"
}
"""


def applied(workspace: str, lineage: str) -> bytes:
    """Return the state of `ROOT` in a workspace."""
    value = {"value": f"in-{workspace}", "type": "string"}
    document = json.loads(documents.state(1, lineage=lineage))
    document["outputs"] = {}
    document["resources"] = [
        {
            "mode": "managed",
            "type": "terraform_data",
            "name": "it",
            "provider": 'provider["terraform.io/builtin/terraform"]',
            "instances": [
                {
                    "schema_version": 0,
                    "attributes": {"id": lineage, "input": value, "output": value, "triggers_replace": None},
                }
            ],
        }
    ]
    return json.dumps(document).encode()


def test_configurations_with_five_workspaces_each_have_no_changes_after_their_move(
    move: Move, one_project: NewProject, tmp_path: Path
) -> None:
    """`cloud {}` refuses a workspace `default`, so that one gets another name."""
    folder = tmp_path / "all"
    for number, key in enumerate(KEYS):
        (folder / f"{number}").mkdir(parents=True)
        block = f'backend "s3" {{\n    bucket = "{move.bucket}"\n    key    = "{key}"\n  }}'
        (folder / f"{number}" / "main.tf").write_text(f"terraform {{\n  {block}\n}}\n{ROOT}")
        for workspace in WORKSPACES:
            path = key if workspace == "default" else f"env:/{workspace}/{key}"
            move.write(path, applied(workspace, f"{number}-{workspace}"))
    move.make_plan()
    assert move.command("run", move.plan)[1] == "30 states: 30 imported.\n"

    code, diff, notes = move.command("rewrite", move.plan, folder)

    assert code == 1
    uses = [line for line in notes.splitlines() if "terraform.workspace is now 'main', not 'default'" in line]
    assert len(uses) == len(KEYS)
    subprocess.run(["git", "apply"], cwd=folder, input=diff, text=True, check=True)
    kept = uses[0].partition("write ")[2].removesuffix(".")
    for main in folder.glob("*/main.tf"):
        main.write_text(main.read_text().replace("${terraform.workspace}", f"${{{kept}}}"))
    assert move.command("rewrite", move.plan, folder) == (0, "", "")
    _, _, host = move.operator.ok("backend-config", "a/b", "--cloud").partition("# host ")
    (tmp_path / "cloud.tfrc").write_text("host " + host.replace("\n# ", "\n"))
    token = move.team.token("writer")

    def plans(number: int) -> list[str]:
        main = (folder / f"{number}" / "main.tf").read_text()
        project = one_project(move.team, None, token, main=main)
        project.environment["TF_TOKEN_holdfast_local"] = token.cloud_token
        project.environment["TF_CLI_CONFIG_FILE"] = str(tmp_path / "cloud.tfrc")
        project.ok("init", TF_WORKSPACE="main")
        runs = [project.run("plan", TF_WORKSPACE=workspace) for workspace in ("main", *WORKSPACES[1:])]
        return ["No changes." if "No changes." in run.text else run.text for run in runs]

    with ThreadPoolExecutor(len(KEYS)) as pool:
        planned = list(chain.from_iterable(pool.map(plans, range(len(KEYS)))))

    assert planned == ["No changes."] * 30


def test_a_state_of_30_mb_is_imported_and_only_what_a_token_may_write(
    move: Move, state: str, operator: NewOperator
) -> None:
    body = large_state(documents.LINEAGE)
    move.write("large.tfstate", body)
    move.write("bad.tfstate", b"not a state")
    code, out, err = move.command("plan", f"s3://{move.bucket}", "--map", f"{{key}}.tfstate={state}/{{key}}")
    assert code == 1
    assert "bad.tfstate is not a complete state" in err
    move.plan.write_text(out)
    other = operator(move.team, "writer", "elsewhere/*")
    refused = Operator(other.principal, {**move.operator.environment, **other.environment})

    code, _, err = refused.run("import", "run", str(move.plan))
    assert code == 1
    assert f"does not cover the state '{state}/large'" in err
    assert "may still be held" not in err
    assert move.locks() == []
    code, _, err = move.command("run", move.plan)

    assert code == 1
    assert "2 states: 1 left out, 1 imported" in err
    [version] = move.team.versions(f"{state}/large")
    assert version.body == body
    assert move.team.staged(f"{state}/large") == []
    assert move.operator.json("lock", "list", f"{state}/") == []

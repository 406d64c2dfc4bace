"""`make up`, `demo`, `down` and `clean` as a user types them, with a separate folder and ports."""

import json
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import pytest
import urllib3

from holdfast_cdk.config import load_teams
from local_aws.clients import s3_client
from local_aws.server import ROOT, find_running
from tests.support.free_port import free_port
from tests.support.front_door import TIME_LIMIT, FrontDoor, cleaned
from tests.support.pages import page
from tests.support.walkthrough import (
    walk_access,
    walk_clients,
    walk_deploying,
    walk_first_hour,
    walk_moving_in,
    walk_operating,
    walk_readme,
    walk_try,
)


@pytest.fixture(scope="module")
def front_door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FrontDoor]:
    """The local AWS that `make up` started, after a first run that was killed in the middle."""
    front_door = FrontDoor(tmp_path_factory.mktemp("front-door") / "local")
    with cleaned(front_door):
        up = ["up", "--port", str(front_door.port)]
        front_door.kill_when_it_says(b"cdk bootstrap", *up)
        assert front_door.running.port == front_door.port

        assert "Removing the data of a first run that did not finish" in front_door("up")
        yield front_door


def test_it_leaves_what_the_readme_promises(front_door: FrontDoor) -> None:
    address, team = front_door.team()["api_address"], front_door.team()["name"]

    assert front_door.read("connection.json").keys() == {"address", "username", "password"}
    assert front_door.read("connection.json")["address"] == address
    assert address.startswith(f"http://127.0.0.1:{front_door.running.port}/")
    lines = shlex.split((front_door.folder / "aws.env").read_text())
    settings = dict(line.split("=", 1) for line in lines)
    assert settings == {
        **front_door.aws.environment(),
        "HOLDFAST_TEAM": team,
        "HOLDFAST_ADDRESS": address,
    }
    assert stat.S_IMODE(front_door.folder.stat().st_mode) == 0o700
    files = [path for path in front_door.folder.iterdir() if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    copies = front_door.folder / "aws" / "cdk.out"  # of the code
    readable = [path for path in front_door.folder.rglob("*") if path.lstat().st_mode & 0o077]
    assert [path for path in readable if copies not in path.parents] == []


def test_what_it_prints_is_all_that_terraform_needs(front_door: FrontDoor, tmp_path: Path) -> None:
    printed = front_door("up")
    blocks = re.findall(r"^terraform \{.*?^\}$", printed, re.MULTILINE | re.DOTALL)
    [sign_in] = re.findall(r"^ +(\. .*terraform\.env)$", printed, re.MULTILINE)
    [name_file] = re.findall(r"^ +(export TF_CLI_CONFIG_FILE=.*)$", printed, re.MULTILINE)
    terraform = f"{sys.executable} -P {ROOT}/local_aws/packaged_terraform.py"

    def run(block: str, settings: str, command: str) -> str:
        folder = tmp_path / command.partition(" ")[0]
        folder.mkdir()
        (folder / "main.tf").write_text(block + '\nresource "terraform_data" "mine" {}\n')
        done = subprocess.run(
            ["sh", "-euc", f"{settings}; {terraform} init -no-color; {terraform} {command}"],
            cwd=folder,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "CHECKPOINT_DISABLE": "1"},
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    http, cloud = blocks
    assert "Apply complete!" in run(http, sign_in, "apply -auto-approve -no-color")
    # It is the same state.
    assert "No changes." in run(cloud, name_file, "plan -no-color")
    password = front_door.read("connection.json")["password"]
    assert password not in printed
    [console] = re.findall(r"^The console of the team .*: (http://\S+/console/)$", printed, re.MULTILINE)
    page = urllib3.request("GET", console)
    assert (page.status, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    moved = urllib3.request("GET", console.rstrip("/"), redirect=False)
    assert urljoin(console.rstrip("/"), moved.headers["Location"]) == console


def test_once_more_with_nothing_changed_deploys_nothing(front_door: FrontDoor) -> None:
    before = front_door.read("connection.json"), front_door.running
    printed = front_door("up")
    assert "cdk" not in printed.split("\n\n")[0]
    assert (front_door.read("connection.json"), front_door.running) == before


def test_the_demo_shows_the_lock_while_it_is_held_and_the_version_that_was_written(
    front_door: FrontDoor,
) -> None:
    before = front_door.serials()
    printed = front_door("demo")

    lock = printed.index("OperationTypeApply")
    assert printed.index("Enter a value:") < lock < printed.index("Apply complete!")
    assert "No changes." in printed
    serials = front_door.serials()
    assert serials[1:] == before
    history = printed.partition("== holdfast state history demo/hello")[2]
    assert re.search(rf"\b{serials[0]}\b", history)


_TRANSCRIPT = re.compile(r"^(?:(?:ada|bob)[$:] .*|     \S.*)$", re.MULTILINE)
"""The lines of two people's runs."""


def test_the_demo_shows_the_accident_with_backend_s3_and_that_holdfast_refuses_it(
    front_door: FrontDoor,
) -> None:
    """The README shows what the demo prints."""
    printed = front_door("demo")

    _, _, accident = printed.partition("\n== A run that has lost its lock")
    s3, _, fenced = accident.partition("\n== The same two runs")
    told = fenced.partition("\n== ")[0]
    assert s3.count("terraform_data.bobs") == 0 < s3.count("terraform_data.adas")
    assert told.count("terraform_data.adas") == 0 < told.count("terraform_data.bobs")
    assert "HTTP error: 409" in told
    readme = page("README.md").read_text(encoding="utf-8")
    assert _TRANSCRIPT.findall(readme) == [*_TRANSCRIPT.findall(s3), *_TRANSCRIPT.findall(told)]
    buckets = s3_client(front_door.aws).list_buckets()["Buckets"]
    assert [each["Name"] for each in buckets if "demo" in each["Name"]] == []


def test_states_and_the_token_survive_a_crash_and_a_stop(front_door: FrontDoor) -> None:
    front_door("demo")
    serials, connection = front_door.serials(), front_door.read("connection.json")

    os.killpg(front_door.running.pid, signal.SIGKILL)
    assert "cdk" not in front_door("up").split("\n\n")[0]
    assert front_door.serials() == serials

    front_door("down")
    assert find_running(front_door.folder / "aws") is None
    assert "cdk" not in front_door("up").split("\n\n")[0]
    assert front_door.serials() == serials
    assert front_door.read("connection.json") == connection
    front_door("demo")
    assert len(front_door.serials()) == len(serials) + 1


def test_a_demo_that_was_killed_says_how_to_free_its_lock(front_door: FrontDoor) -> None:
    bucket = front_door.team()["bucket_name"]
    lock = {"ID": "8c6b1a3e-53d6-4f0d-9a55-0d2f3d0a7c11", "Operation": "OperationTypeApply", "Info": ""}
    lock |= {"Who": "me@here", "Version": "1.15.5", "Created": "2026-08-01T12:00:00Z", "Path": ""}
    key = "states/demo/hello.tfstate.tflock"
    s3_client(front_door.aws).put_object(Bucket=bucket, Key=key, Body=json.dumps(lock).encode())
    before = front_door.serials()
    done = front_door.run("demo")
    assert done.returncode == 1
    assert front_door.serials() == before

    [command] = re.findall(r"ID that is shown above: (.*) ID\)", done.stderr)
    free = ["sh", "-euc", f"{command} {lock['ID']})"]
    subprocess.run(free, cwd=ROOT, check=True, capture_output=True, timeout=TIME_LIMIT)
    front_door("demo")
    assert len(front_door.serials()) == len(before) + 1


def test_the_state_of_the_readme_is_there_in_five_minutes(front_door: FrontDoor, tmp_path: Path) -> None:
    walk_readme(front_door, tmp_path)


def test_the_walk_through_the_access_document_prints_what_it_says(
    front_door: FrontDoor, tmp_path: Path
) -> None:
    walk_access(front_door, tmp_path)


def test_the_walk_through_the_clients_document_prints_what_it_says(
    front_door: FrontDoor, tmp_path: Path
) -> None:
    walk_clients(front_door, tmp_path)


def test_the_walk_through_the_moving_in_document_imports_closes_and_rewrites(
    front_door: FrontDoor, tmp_path: Path
) -> None:
    walk_moving_in(front_door, tmp_path)


def test_the_walk_through_the_operating_document_prints_what_it_says(
    front_door: FrontDoor, tmp_path: Path
) -> None:
    walk_operating(front_door, tmp_path)


def test_states_survive_the_loss_of_all_records_and_every_team_can_be_added(front_door: FrontDoor) -> None:
    first, before = front_door.team(), front_door.serials()
    assert before
    others = [team.name for team in load_teams(ROOT / "teams.toml")][1:]
    assert f"teams.toml also defines {others[0]}: `make up TEAMS=all`" in front_door("up")
    for name in ("connection.json", "deployment.json"):
        (front_door.folder / name).unlink()

    printed = front_door("up", "--teams", "all")
    assert "Removing" not in printed
    assert front_door.serials() == before
    teams = front_door.read("deployment.json")["teams"]
    assert teams[0] == first
    assert [team["name"] for team in teams[1:]] == others
    assert front_door.read("connection.json")["address"] == first["api_address"]
    assert f"holdfast token create --team {others[0]} --role maintainer --scope '*'" in printed
    front_door("demo")
    assert len(front_door.serials()) == len(before) + 1


def test_the_walk_through_two_teams_prints_what_it_says(front_door: FrontDoor, tmp_path: Path) -> None:
    walk_try(front_door, tmp_path)


def test_every_team_the_states_and_the_token_move_to_another_port(front_door: FrontDoor) -> None:
    teams, serials = front_door.read("deployment.json")["teams"], front_door.serials()
    connection = front_door.read("connection.json")
    port = free_port()

    front_door("up", "--port", str(port))

    assert front_door.running.port == port
    assert front_door.serials() == serials
    moved = front_door.read("connection.json")
    assert moved["address"].startswith(f"http://127.0.0.1:{port}/")
    assert (moved["username"], moved["password"]) == (connection["username"], connection["password"])
    moved_teams = front_door.read("deployment.json")["teams"]
    assert [team["name"] for team in moved_teams] == [team["name"] for team in teams]
    for team in moved_teams:
        assert team["api_address"].startswith(f"http://127.0.0.1:{port}/")
    assert "cdk" not in front_door("up").split("\n\n")[0]
    front_door("demo")
    assert len(front_door.serials()) == len(serials) + 1


def test_data_that_were_removed_by_hand_are_deployed_anew_however_often_that_breaks_off(
    front_door: FrontDoor,
) -> None:
    front_door("down")
    shutil.rmtree(front_door.folder / "aws")
    front_door.kill_when_it_says(b"cdk bootstrap", "up")

    front_door("up")
    assert front_door.serials() == []
    front_door("demo")
    assert len(front_door.serials()) == 1


@pytest.mark.parametrize(
    ("document", "heading"),
    [("README.md", "Deploy to AWS"), ("deploying.md", "Deploy the first team")],
)
def test_readme_and_deploying_deploy_a_team_outside_of_the_clone_that_stores_a_state(
    front_door: FrontDoor, deploying: Path, tmp_path: Path, document: str, heading: str
) -> None:
    walk_deploying(front_door, deploying, tmp_path, document, heading)


def test_the_first_hour_prints_what_its_page_says(
    front_door: FrontDoor, deploying: Path, tmp_path: Path
) -> None:
    walk_first_hour(front_door, deploying, tmp_path)

"""`make up` decides what to do, keeps secrets to its owner, and says in one line what is in its way."""

import json
import os
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from local_aws.home import Connection, Deployment, Home
from local_aws.server import ROOT
from local_aws.up import Situation, Step, steps

BOOTSTRAP, DEPLOY, START, STOP, WIPE = Step.BOOTSTRAP, Step.DEPLOY, Step.START, Step.STOP, Step.WIPE


def situation(
    *,
    finished: bool = True,
    data: bool = True,
    running_port: int | None = 4566,
    wanted_port: int = 4566,
    deployed: bool = True,
    bootstrapped: bool = True,
) -> Situation:
    return Situation(finished, data, running_port, wanted_port, deployed, bootstrapped)


@pytest.mark.parametrize(
    ("found", "done"),
    [
        pytest.param(situation(), [], id="everything is as it should be"),
        pytest.param(situation(running_port=None), [START], id="stopped or crashed"),
        pytest.param(situation(deployed=False), [DEPLOY], id="the code changed"),
        pytest.param(
            situation(deployed=False, running_port=None), [START, DEPLOY], id="changed while stopped"
        ),
        pytest.param(situation(bootstrapped=False), [BOOTSTRAP, DEPLOY], id="a new version of CDK"),
        pytest.param(situation(wanted_port=4600, deployed=False), [STOP, START, DEPLOY], id="another port"),
        pytest.param(
            situation(finished=False, data=False, running_port=None, deployed=False, bootstrapped=False),
            [START, BOOTSTRAP, DEPLOY],
            id="the first run",
        ),
        pytest.param(
            situation(finished=False, running_port=None, deployed=False, bootstrapped=False),
            [WIPE, START, BOOTSTRAP, DEPLOY],
            id="after a first run that broke off",
        ),
        pytest.param(
            situation(finished=False, deployed=False, bootstrapped=False),
            [STOP, WIPE, START, BOOTSTRAP, DEPLOY],
            id="after a first run that was killed, its server lives",
        ),
        pytest.param(
            situation(finished=False, data=False, running_port=None),
            [START, BOOTSTRAP, DEPLOY],
            id="somebody removed the data",
        ),
    ],
)
def test_it_does_what_is_needed_and_no_more(found: Situation, done: list[Step]) -> None:
    assert steps(found) == done


def test_data_that_somebody_may_use_is_never_wiped() -> None:
    for running_port in (None, 4566, 4600):
        for deployed in (True, False):
            for bootstrapped in (True, False):
                found = situation(running_port=running_port, deployed=deployed, bootstrapped=bootstrapped)
                assert WIPE not in steps(found)


def test_whoever_has_a_token_may_have_a_state(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert not home.finished
    home.remember_connection(Connection("http://127.0.0.1:4566/api", "id", "secret"))
    assert home.finished


def test_what_is_remembered_is_found_again_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    home = Home(tmp_path / ".local")
    connection = Connection("http://127.0.0.1:4566/api", "id", "secret")
    deployment = Deployment("1", "2", "platform", connection.address, "bucket")
    with home.alone():
        home.remember_port(4600)
        home.remember_connection(connection)
        home.remember_deployment(deployment)

    again = Home(tmp_path / ".local")
    assert (again.port(), again.connection(), again.deployment()) == (4600, connection, deployment)
    assert stat.S_IMODE(home.folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in home.folder.iterdir()} == {0o600}


def test_the_connection_file_has_what_a_client_needs(tmp_path: Path) -> None:
    Home(tmp_path).remember_connection(Connection("http://127.0.0.1:4566/api", "id", "secret"))
    assert json.loads((tmp_path / "connection.json").read_text()) == {
        "address": "http://127.0.0.1:4566/api",
        "username": "id",
        "password": "secret",
    }


def test_a_connection_does_not_show_its_secret() -> None:
    assert "hush" not in repr(Connection("http://127.0.0.1:4566", "id", "hush"))


@pytest.mark.parametrize("content", ["", "{", "[]", '{"digest": "only"}'])
def test_a_record_that_cannot_be_read_is_as_good_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "deployment.json").write_text(content)
    (tmp_path / "connection.json").write_text(content)
    (tmp_path / "port").write_text(content)
    home = Home(tmp_path)
    assert (home.deployment(), home.connection(), home.port()) == (None, None, None)


def local_aws(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "local_aws", *arguments],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_taken_port_is_said_in_one_line_before_anything_is_started(tmp_path: Path) -> None:
    with socket.socket() as somebody_else:
        somebody_else.bind(("127.0.0.1", 0))
        somebody_else.listen()
        port = somebody_else.getsockname()[1]
        done = local_aws("--folder", str(tmp_path), "up", "--port", str(port))

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        f"Port {port} on 127.0.0.1 is taken by another program; pick another one: make up PORT={port + 1}\n"
    )
    assert not (tmp_path / "aws").exists()
    assert not (tmp_path / "port").exists()


@pytest.mark.parametrize("port", ["0", "65536", "http", "-1", ""])
def test_a_port_that_is_none_is_refused(tmp_path: Path, port: str) -> None:
    done = local_aws("--folder", str(tmp_path), "up", f"--port={port}")
    assert done.returncode == 2
    assert "is no port; pick a number from 1024 to 65535" in done.stderr


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        ("down", 0, "Nothing is running."),
        ("status", 0, "Nothing is running."),
        ("clean", 0, "There was nothing to remove."),
        ("demo", 1, "Nothing is up yet: run `make up` first."),
    ],
)
def test_a_command_with_nothing_there_says_so(tmp_path: Path, command: str, code: int, says: str) -> None:
    done = local_aws("--folder", str(tmp_path / "none"), command)
    assert (done.returncode, (done.stdout + done.stderr).strip()) == (code, says)
    assert not (tmp_path / "none").exists()


def test_clean_with_a_folder_of_its_own_leaves_everything_else_alone(tmp_path: Path) -> None:
    (tmp_path / "local").mkdir()
    (tmp_path / "beside").write_text("")
    caches = ROOT / ".pytest_cache"
    before = caches.exists()

    done = local_aws("--folder", str(tmp_path / "local"), "clean")
    assert done.stdout == f"Removed {tmp_path / 'local'}.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["beside"]
    assert caches.exists() == before


def test_clean_removes_what_was_made_and_says_so_and_leaves_what_was_installed(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "local_aws", tmp_path / "local_aws", ignore=shutil.ignore_patterns("__pycache__"))
    made = (
        ".local/aws/tmp/__pycache__",
        ".build/backend/__pycache__",
        ".mypy_cache",
        "cdk.out",
        "infra/__pycache__",
    )
    for folder in (*made, ".venv/lib/__pycache__", "node_modules", "tests"):
        (tmp_path / folder).mkdir(parents=True)

    done = subprocess.run(
        [sys.executable, "-B", "-m", "local_aws", "clean"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == (
        "Removed .local, .build, cdk.out, .mypy_cache, 1 __pycache__.\n",
        "",
    )
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"local_aws", "infra", ".venv", "node_modules", "tests"}
    assert (tmp_path / ".venv/lib/__pycache__").exists()


def test_the_help_has_examples() -> None:
    done = local_aws("--help")
    assert done.returncode == 0
    assert "examples:" in done.stdout

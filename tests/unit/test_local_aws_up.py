"""`make up` decides what to do, keeps secrets to its owner, and says in one line what is in its way."""

import ast
import json
import re
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any, Literal

import pytest

from holdfast_cdk.team_settings import Team
from local_aws import up as local_aws_up
from local_aws.clients import s3_client, said_plainly
from local_aws.failure import LocalAwsError
from local_aws.files import read_port, write_port
from local_aws.home import Connection, DeployedTeam, Deployment, Home
from local_aws.server import ROOT, LocalAws
from local_aws.up import Step, requested_teams, steps, teams_to_deploy
from tests.support.free_port import free_port
from tests.support.front_door import FrontDoor

PLATFORM = DeployedTeam("platform", "http://127.0.0.1:4566/api", "holdfast-platform-000000000000-us-east-1")
PAYMENTS = DeployedTeam("payments", "http://127.0.0.1:4566/$b", "holdfast-payments-000000000000-us-east-1")
BOOTSTRAP, DEPLOY, START, STOP, WIPE = Step.BOOTSTRAP, Step.DEPLOY, Step.START, Step.STOP, Step.WIPE


AS_IT_SHOULD_BE: Mapping[str, Any] = {
    "finished": True,
    "data": True,
    "running_port": 4566,
    "wanted_port": 4566,
    "deployed": True,
    "bootstrapped": True,
}
NOTHING_DEPLOYED = {"finished": False, "deployed": False, "bootstrapped": False}


@pytest.mark.parametrize(
    ("difference", "done"),
    [
        pytest.param({}, [], id="everything is as it should be"),
        pytest.param({"running_port": None}, [START], id="stopped or crashed"),
        pytest.param({"deployed": False}, [DEPLOY], id="the code changed"),
        pytest.param({"deployed": False, "running_port": None}, [START, DEPLOY], id="changed while stopped"),
        pytest.param({"bootstrapped": False}, [BOOTSTRAP, DEPLOY], id="a new version of CDK"),
        pytest.param({"wanted_port": 4600, "deployed": False}, [STOP, START, DEPLOY], id="another port"),
        pytest.param(
            {**NOTHING_DEPLOYED, "data": False, "running_port": None},
            [START, BOOTSTRAP, DEPLOY],
            id="the first run",
        ),
        pytest.param(
            {**NOTHING_DEPLOYED, "running_port": None},
            [WIPE, START, BOOTSTRAP, DEPLOY],
            id="after a first run that broke off",
        ),
        pytest.param(
            NOTHING_DEPLOYED,
            [STOP, WIPE, START, BOOTSTRAP, DEPLOY],
            id="after a first run that was killed, its server lives",
        ),
        pytest.param(
            {"finished": False, "data": False, "running_port": None},
            [START, BOOTSTRAP, DEPLOY],
            id="somebody removed the data",
        ),
    ],
)
def test_it_does_what_is_needed_and_no_more(difference: Mapping[str, Any], done: list[Step]) -> None:
    assert steps(**{**AS_IT_SHOULD_BE, **difference}) == done


def test_data_that_somebody_may_use_is_never_wiped() -> None:
    for running_port, deployed, bootstrapped in product((None, 4566, 4600), (True, False), (True, False)):
        changed = {"running_port": running_port, "deployed": deployed, "bootstrapped": bootstrapped}
        assert WIPE not in steps(**{**AS_IT_SHOULD_BE, **changed})


@pytest.mark.parametrize("key", ["states/a.tfstate", "tokens/a.json", "states//a.tfstate"])
@pytest.mark.parametrize("deleted", [False, True])
def test_data_with_a_state_or_a_token_are_kept_though_the_records_are_gone(
    tmp_path: Path, key: str, deleted: bool
) -> None:
    home = Home(tmp_path)
    with LocalAws(free_port(), home.aws_data) as aws:
        s3 = s3_client(aws)
        s3.create_bucket(Bucket="bucket")
        s3.put_bucket_versioning(Bucket="bucket", VersioningConfiguration={"Status": "Enabled"})
        s3.put_object(Bucket="bucket", Key="0123.zip", Body=b"made by cdk")
        assert not home.finished
        s3.put_object(Bucket="bucket", Key=key, Body=b"{}")
        if deleted:
            s3.delete_object(Bucket="bucket", Key=key)
        assert home.finished
    assert home.finished


def test_what_is_remembered_is_found_again(tmp_path: Path) -> None:
    home = Home(tmp_path / ".local")
    connection = Connection("http://127.0.0.1:4566/api", "id", "secret")
    deployment = Deployment("1", "2", (PLATFORM, PAYMENTS))
    with home.alone():
        write_port(home.port, 4600)
        assert not home.finished
        home.remember_connection(connection)
        assert home.finished, "a user with a token may have a state"
        home.remember_deployment(deployment)

    again = Home(tmp_path / ".local")
    assert (read_port(again.port), again.connection(), again.deployment()) == (4600, connection, deployment)


def test_a_connection_does_not_show_its_secret() -> None:
    assert "hush" not in repr(Connection("http://127.0.0.1:4566", "id", "hush"))


def test_what_is_forgotten_is_not_found_again(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.forget()
    home.remember_connection(Connection("http://127.0.0.1:4566/api", "id", "secret"))
    home.remember_deployment(Deployment("1", "2", (PLATFORM,)))
    home.cloud_config.touch()
    home.forget()
    assert (home.deployment(), home.connection(), home.finished) == (None, None, False)
    assert not home.cloud_config.exists()


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"digest": "only"}', '{"digest": "1", "bootstrap_digest": "2", "teams": []}'],
)
def test_a_record_that_cannot_be_read_is_as_good_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "deployment.json").write_text(content)
    (tmp_path / "connection.json").write_text(content)
    (tmp_path / "port").write_text(content)
    home = Home(tmp_path)
    assert (home.deployment(), home.connection(), read_port(home.port)) == (None, None, None)


def test_deployed_teams_are_known_by_their_buckets_when_the_record_is_gone(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with LocalAws(free_port(), home.aws_data) as aws:
        s3 = s3_client(aws)
        for bucket in (PLATFORM.bucket_name, PAYMENTS.bucket_name, "holdfast-payments-accesslogs-1", "cdk"):
            s3.create_bucket(Bucket=bucket)
        assert home.deployed_teams() == (), "a first run that broke off; nobody used it"
        s3.put_object(Bucket=PLATFORM.bucket_name, Key="tokens/a.json", Body=b"{}")
        s3.put_object(Bucket=PAYMENTS.bucket_name, Key="states/a.tfstate", Body=b"{}")
        assert home.deployed_teams() == ("payments", "platform")
    home.remember_deployment(Deployment("1", "2", (PLATFORM,)))
    assert home.deployed_teams() == ("platform",)


# --- which teams ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("requested", "means"),
    [
        (None, set()),
        ("", set()),
        ("payments", {"payments"}),
        ("payments platform", {"payments", "platform"}),
        (" payments,  ops\n", {"payments", "ops"}),
        ("all", {"platform", "payments", "ops"}),
        ("payments all", {"platform", "payments", "ops"}),
    ],
)
def test_teams_are_asked_for_by_name_or_all_at_once(requested: str | None, means: set[str]) -> None:
    teams = [Team(name=name) for name in ("platform", "payments", "ops")]
    assert requested_teams(requested, teams) == means


@pytest.mark.parametrize(
    ("deployed", "requested", "wanted"),
    [
        pytest.param([], [], ["platform"], id="a fresh folder: the first"),
        pytest.param([], ["ops"], ["platform", "ops"], id="the first, whose token is made, beside others"),
        pytest.param(
            ["platform", "ops"], [], ["platform", "ops"], id="all that are deployed stay up to date"
        ),
        pytest.param(["platform", "ops"], ["payments"], ["platform", "payments", "ops"], id="one more"),
        pytest.param(["payments"], [], ["platform", "payments"], id="another team became the first"),
    ],
)
def test_the_first_team_the_deployed_ones_and_those_asked_for_are_deployed_in_the_files_order(
    deployed: list[str], requested: list[str], wanted: list[str]
) -> None:
    assert teams_to_deploy(["platform", "payments", "ops"], deployed, requested) == tuple(wanted)


def test_a_renamed_team_is_said_in_one_line_before_anything_is_started(tmp_path: Path) -> None:
    home = Home(tmp_path / "local")
    with home.alone():
        home.aws_data.mkdir()
        before = Deployment("1", "2", (DeployedTeam("old", "http://127.0.0.1:4566/api", "bucket"),))
        home.remember_deployment(before)

    done = FrontDoor(home.folder).run("up", "--port", str(free_port()))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "write [teams.old] again" in done.stderr
    assert home.deployment() == before
    assert list(home.aws_data.iterdir()) == []
    assert read_port(home.port) is None


CLOUD_CONFIG = """\
host "holdfast.local" {
  services = {
    "tfe.v2" = "http://127.0.0.1:4566/$b/api/v2/"
    "tfe.v2.1" = "http://127.0.0.1:4566/$b/api/v2/"
    "tfe.v2.2" = "http://127.0.0.1:4566/$b/api/v2/"
    "state.v2" = "http://127.0.0.1:4566/$b/api/v2/"
  }
}

credentials "holdfast.local" {
  token = "new.hush"
}
"""


def test_when_another_team_becomes_the_first_the_connection_is_its_own_with_a_token_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path)
    calls = []

    def command(*arguments: str, environment: dict[str, str] | None = None) -> str:
        calls.append((arguments, environment))
        return json.dumps({"id": "new", "secret": "hush"})

    def is_taken(connection: Connection, _: LocalAws) -> bool:
        return connection == Connection(PAYMENTS.api_address, "new", "hush")

    teams = (Team(name="payments"), Team(name="platform"))
    monkeypatch.setattr(local_aws_up, "_configured_teams", lambda: teams)
    monkeypatch.setattr(local_aws_up, "_bring_up", lambda *_: Deployment("1", "2", (PAYMENTS, PLATFORM)))
    monkeypatch.setattr(local_aws_up, "_is_taken", is_taken)
    monkeypatch.setattr(local_aws_up, "holdfast", command)
    with home.alone():
        home.aws_data.mkdir()
        home.remember_deployment(Deployment("1", "2", (PLATFORM, PAYMENTS)))
        home.remember_connection(Connection(PLATFORM.api_address, "old", "secret"))

    local_aws_up.up(home, free_port())
    assert home.connection() == Connection(PAYMENTS.api_address, "new", "hush")
    exported = home.terraform_env.read_text()
    assert "TF_HTTP_USERNAME='new'" in exported
    assert f"HOLDFAST_ADDRESS='{PAYMENTS.api_address}'" in exported
    assert home.cloud_config.read_text() == CLOUD_CONFIG
    assert stat.S_IMODE(home.cloud_config.stat().st_mode) == 0o600
    shell = ["sh", "-euc", '. "$0"; echo "$HOLDFAST_TEAM $HOLDFAST_ADDRESS"', str(home.aws_env)]
    assert subprocess.check_output(shell, text=True) == f"payments {PAYMENTS.api_address}\n"
    [(made, _)] = [call for call in calls if call[0][0] == "token"]
    assert made[made.index("--team") + 1] == "payments"


@pytest.mark.parametrize("new_states", ["any", "declared"])
def test_who_must_declare_names_is_told_the_command(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    new_states: Literal["any", "declared"],
) -> None:
    teams = (Team(name="platform", new_states=new_states), Team(name="payments"))
    known = Connection(PLATFORM.api_address, "id", "secret")
    monkeypatch.setattr(local_aws_up, "_configured_teams", lambda: teams)
    monkeypatch.setattr(local_aws_up, "_bring_up", lambda *_: Deployment("1", "2", (PLATFORM,)))
    monkeypatch.setattr(local_aws_up, "_connect", lambda *_: known)
    monkeypatch.setattr(local_aws_up, "holdfast", lambda *_: "")

    local_aws_up.up(Home(tmp_path), free_port())
    told = "holdfast state declare app/first" in capsys.readouterr().out
    assert told == (new_states == "declared")


def test_no_message_recommends_to_remove_data() -> None:
    texts = []
    for path in (ROOT / "local_aws").glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nodes = list(ast.walk(tree))
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        texts += [
            node.value
            for node in nodes
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
        ]
    assert len(texts) > 100
    assert [text for text in texts if re.search(r"make clean|\brm -|states included", text)] == []


# A request to `localhost` may go to the second address.
@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_taken_port_is_said_in_one_line_before_anything_is_started(tmp_path: Path, address: str) -> None:
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as somebody_else:
        somebody_else.bind((address, 0))
        somebody_else.listen()
        port = somebody_else.getsockname()[1]
        done = FrontDoor(tmp_path).run("up", "--port", str(port))

    taken = (
        f"Port {port} on {address} is used by another program; choose another port: make up PORT={port + 1}\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", taken)
    assert not (tmp_path / "aws").exists()
    assert not (tmp_path / "port").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        *(
            (["up", f"--port={port}"], 2, "is not a valid port; pick a number from 1024 to 65535")
            for port in ("0", "65536", "http", "-1", "")
        ),
        (
            ["up", "--teams", "platform paymets"],
            1,
            "teams.toml: there is no team 'paymets'. Did you mean payments? Teams in the file: "
            "platform, payments\n",
        ),
        (["down"], 0, "Nothing is running."),
        (["clean"], 0, "There was nothing to remove."),
        (["demo"], 1, "The local AWS does not run, or has no token: run `make up` first."),
        (["--help"], 0, "examples:"),
    ],
)
def test_where_nothing_is_there_or_to_be_done_it_says_so(
    tmp_path: Path, arguments: list[str], code: int, says: str
) -> None:
    done = FrontDoor(tmp_path / "none").run(*arguments)
    assert (done.returncode, bool(done.stdout)) == (code, code == 0)
    assert says in done.stdout + done.stderr
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("command", ["up", "clean"])
def test_a_folder_with_files_that_up_did_not_make_is_left_alone(tmp_path: Path, command: str) -> None:
    (tmp_path / "aws").mkdir()
    (tmp_path / "aws" / "thesis").write_text("precious")
    tmp_path.chmod(0o755)

    done = FrontDoor(tmp_path).run(command)
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        f"{tmp_path} is not empty, and `make up` did not create it: name another folder, or empty this "
        "one.\n",
    )
    assert [path.name for path in tmp_path.rglob("*")] == ["aws", "thesis"]
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


@pytest.mark.parametrize("command", ["up", "down", "demo", "clean"])
def test_a_file_instead_of_a_folder_is_said_in_one_line(tmp_path: Path, command: str) -> None:
    (tmp_path / "file").write_text("precious")
    done = FrontDoor(tmp_path / "file").run(command)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(rf"{tmp_path}/file.*: (Not a directory|File exists)\n", done.stderr)
    assert (tmp_path / "file").read_text() == "precious"


def test_what_the_sdk_raises_is_said_in_one_line(tmp_path: Path) -> None:
    aws = LocalAws(free_port(), tmp_path)
    message = r"^The local AWS did not .*http://127.0.0.1.* See .*server.log$"
    with pytest.raises(LocalAwsError, match=message), said_plainly(aws):
        s3_client(aws).list_buckets()


def test_clean_waits_for_a_command_that_works_in_the_folder(tmp_path: Path) -> None:
    home = Home(tmp_path / "local")
    with home.alone():
        command = [*FrontDoor(home.folder).argv, "clean"]
        clean = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert clean.stdout is not None
        assert "waiting for it" in clean.stdout.readline()
        assert home.folder.exists()
    with clean:
        assert clean.stdout.read() == f"Removed {home.folder}.\n"
    assert not home.folder.exists()


def test_who_waited_for_clean_gets_a_new_folder(tmp_path: Path) -> None:
    folder = tmp_path / "local"
    program = (
        "import sys; from pathlib import Path; from local_aws.home import Home\n"
        "with Home(Path(sys.argv[1])).alone(): print(sorted(p.name for p in Path(sys.argv[1]).iterdir()))"
    )
    home = Home(folder)
    with home.alone():
        write_port(home.port, 4600)
        waiting = subprocess.Popen(
            [sys.executable, "-u", "-c", program, str(folder)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        assert waiting.stdout is not None
        assert "waiting for it" in waiting.stdout.readline()
        home.remove()
    with waiting:
        assert waiting.stdout.read() == "['.holdfast-local-aws', 'lock']\n"


def test_clean_removes_what_was_made_and_says_so_and_leaves_what_was_installed(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "local_aws", tmp_path / "local_aws", ignore=shutil.ignore_patterns("__pycache__"))
    made = (".local/aws", ".build/backend", ".mypy_cache", "cdk.out")
    for folder in (*made, ".venv/lib", "node_modules", "tests"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / ".local" / ".holdfast-local-aws").touch()

    done = subprocess.run(
        [sys.executable, "-B", "-m", "local_aws", "clean"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("Removed .local, .build, cdk.out, .mypy_cache.\n", "")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"local_aws", ".venv", "node_modules", "tests"}

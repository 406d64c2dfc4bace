"""The app as `cdk` starts it, and `make deploy`: the faults that stop them, and the recorded teams."""

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from holdfast import __version__
from holdfast_cdk.bundle import WITHOUT_BYTECODE, bundle
from holdfast_cdk.prerequisites import OLDEST_NODE
from tests.unit.infra.conftest import ROOT

# CDK's rules for templates take seconds to load; test_checks.py has them judge every template.
WITHOUT_RULES = {"CDK_VALIDATION": "false"}
IMPORTABLE = {"PYTHONPATH": f"{ROOT / 'infra'}:{ROOT / 'functions'}"}
PAYMENTS = '[teams.payments]\naccount = "123456789012"\nregion = "eu-central-1"\n'


def run(*command: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def synth(teams_file: Path) -> subprocess.CompletedProcess[str]:
    """Run the real `cdk synth`, which starts the app."""
    context, output = f"teams={teams_file}", str(teams_file.with_name("cdk.out"))
    command = ("node_modules/.bin/cdk", "synth", "--quiet", "--context", context, "--output", output)
    quiet = {"CDK_DISABLE_VERSION_CHECK": "true", "NODE_NO_WARNINGS": "1"}
    return run(*command, environment=os.environ | WITHOUT_RULES | quiet)


def app(folder: Path, teams_file: Path, *python: str, **context: object) -> subprocess.CompletedProcess[str]:
    """Run the app as `cdk` does, without `cdk`; `python` are other arguments of Python than `app.py`."""
    settings = json.loads((ROOT / "cdk.json").read_text())["context"]
    given = {
        "CDK_CONTEXT_JSON": json.dumps({**settings, "teams": str(teams_file), **context}),
        "CDK_OUTDIR": str(folder / "cdk.out"),
    }
    command = (sys.executable, *(python or ("app.py",)))
    return run(*command, environment=os.environ | WITHOUT_RULES | IMPORTABLE | given)


def make_deploy(team: str, cdk: str) -> subprocess.CompletedProcess[str]:
    """Run `make deploy` with a shell command for `cdk`."""
    arguments = ("--no-print-directory", "--old-file=set-up", "deploy", f"TEAM={team}", f"CDK={cdk}")
    return run("make", *arguments, environment={"PATH": os.environ["PATH"]})


@pytest.fixture
def teams_file(tmp_path: Path) -> Path:
    """A teams file with one team that says where it is."""
    path = tmp_path / "teams.toml"
    path.write_text(PAYMENTS)
    return path


@pytest.mark.parametrize("python", [("app.py",), ("-m", "holdfast_cdk")])
def test_a_wrong_setting_ends_it_with_that_line_and_nothing_else(
    tmp_path: Path, python: tuple[str, ...]
) -> None:
    path = tmp_path / "teams.toml"
    path.write_text('[teams.a]\nregion = "nowhere"')
    ended = app(tmp_path, path, *python)
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr == (
        f"holdfast: {path}: team 'a': region = \"nowhere\" is not allowed; write an AWS region in quotes, "
        'as in "eu-central-1"\n'
    )
    assert list(tmp_path.rglob("*.template.json")) == []


@pytest.mark.parametrize(
    ("says", "line"),
    [
        (f"v{OLDEST_NODE - 1}.9.0", f"`{{node}} --version` says 'v{OLDEST_NODE - 1}.9.0'"),
        ("nothing of use", "`{node} --version` says 'nothing of use'"),
        (None, f"{{node}} does not start: {os.strerror(errno.ENOENT)}"),
    ],
)
def test_a_node_that_is_missing_or_too_old_ends_it_with_one_line(
    teams_file: Path, monkeypatch: pytest.MonkeyPatch, says: str | None, line: str
) -> None:
    node = teams_file.with_name("node")
    if says:
        node.write_text(f"#!/bin/sh\necho {says}\n")
        node.chmod(0o755)
    monkeypatch.setenv("JSII_NODE", str(node))

    ended = app(teams_file.parent, teams_file)

    needs = f"holdfast: the CDK needs Node.js {OLDEST_NODE} or later, and "
    assert (ended.returncode, ended.stderr) == (1, f"{needs}{line.format(node=node)}\n")
    assert not (teams_file.parent / "cdk.out").exists()


def test_an_interrupt_ends_it_without_a_traceback(teams_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = teams_file.with_name("node")
    node.write_text("#!/bin/sh\nkill -INT $PPID\n")
    node.chmod(0o755)
    monkeypatch.setenv("JSII_NODE", str(node))

    ended = app(teams_file.parent, teams_file)

    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_a_file_that_is_not_there_ends_it_with_one_line(teams_file: Path) -> None:
    missing = teams_file.with_name("missing.toml")

    ended = app(teams_file.parent, missing)

    line = f"holdfast: {missing}: the file does not exist; run the command in the folder that has it\n"
    assert (ended.returncode, ended.stderr) == (1, line)


def test_a_package_without_the_extra_ends_it_with_one_line(teams_file: Path) -> None:
    without = "import sys; sys.modules['aws_cdk'] = None; from holdfast_cdk.__main__ import main; main()"
    ended = app(teams_file.parent, teams_file, "-c", without)

    assert (ended.returncode, ended.stderr) == (
        1,
        "holdfast: only the `holdfast` command is installed, not the CDK app; type: "
        f"pip install 'holdfast-state[deploy]=={__version__}'\n",
    )
    assert not (teams_file.parent / "cdk.out").exists()


def test_a_package_without_the_functions_ends_it_with_one_line(teams_file: Path) -> None:
    without = (
        "from pathlib import Path; from holdfast_cdk import app, places; "
        "places.FUNCTIONS = Path('nowhere'); app.main()"
    )
    ended = app(teams_file.parent, teams_file, "-c", without)

    assert (ended.returncode, ended.stderr) == (
        1,
        "holdfast: only the `holdfast` command is installed, not the CDK app; install it again: "
        f"pip install --force-reinstall 'holdfast-state[deploy]=={__version__}'\n",
    )
    assert list(teams_file.parent.rglob("*.template.json")) == []


def test_a_team_is_recorded_and_not_renamed(teams_file: Path) -> None:
    lock = teams_file.with_name("teams.lock")
    synthesized = synth(teams_file)
    assert synthesized.returncode == 0, synthesized.stderr
    assert f"holdfast: {lock} was written. Commit it together with {teams_file}.\n" in synthesized.stderr
    recorded = lock.read_text()
    assert PAYMENTS in recorded

    teams_file.write_text(PAYMENTS.replace("payments", "billing"))
    stopped = synth(teams_file)
    assert stopped.returncode != 0
    assert (
        f"holdfast: {lock}: team 'payments' is recorded and seems to be renamed to 'billing'"
        in stopped.stderr
    )
    assert lock.read_text() == recorded


def test_a_command_that_makes_nothing_ready_records_nothing_and_says_nothing(teams_file: Path) -> None:
    none: dict[str, object] = {"aws:cdk:bundling-stacks": []}  # as `cdk bootstrap` and `cdk ls` say it
    ended = app(teams_file.parent, teams_file, **none)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert not teams_file.with_name("teams.lock").exists()


def test_without_a_compiler_nothing_is_synthesized_unless_it_is_said_which_costs_time(
    teams_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    bundle("console", "aws", bytecode=False)  # Node.js builds its files, and is not on the PATH below
    node = shutil.which("node") or ""
    monkeypatch.setenv("PATH", str(teams_file.parent))
    monkeypatch.setenv("JSII_NODE", node)

    stopped = app(teams_file.parent, teams_file)
    assert stopped.returncode == 1
    assert "the functions cannot be compiled to bytecode" in stopped.stderr
    assert stopped.stderr.count("\n") == 1

    ended = app(teams_file.parent, teams_file, without_bytecode="true")
    assert ended.returncode == 0, ended.stderr
    assert [line for line in ended.stderr.splitlines() if "no bytecode" in line] == [
        f"holdfast: {WITHOUT_BYTECODE}"
    ]


def test_an_import_is_told_what_it_leaves_out(teams_file: Path) -> None:
    [line] = [
        line
        for line in app(teams_file.parent, teams_file, **{"import": "true"}).stderr.splitlines()
        if "cdk import" in line
    ]
    assert line == (
        "holdfast: -c import=true is only for `cdk import`. Until you deploy without it, the audit trail "
        "does not have the changes of tokens and trust records."
    )
    template = json.loads((teams_file.parent / "cdk.out" / "Holdfast-payments.template.json").read_text())
    assert "NotificationConfiguration" not in template["Resources"]["StateBucket"]["Properties"]


def test_the_local_aws_is_not_recorded_and_asks_no_memory(teams_file: Path) -> None:
    lock = teams_file.with_name("teams.lock")
    lock.write_text(PAYMENTS.replace("payments", "gone"))
    before = lock.read_text()
    ended = app(teams_file.parent, teams_file, target="local", local_endpoint="http://127.0.0.1:4566")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert lock.read_text() == before


def test_a_team_that_cannot_be_synthesized_is_not_recorded(teams_file: Path) -> None:
    (teams_file.parent / "cdk.out" / "Holdfast-payments.template.json").mkdir(parents=True)
    ended = app(teams_file.parent, teams_file)
    assert ended.returncode != 0
    assert "Holdfast-payments.template.json" in ended.stderr
    assert not teams_file.with_name("teams.lock").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nope", "there is no team 'nope'. Teams in the file: platform, payments"),
        (
            "Holdfast-payments",
            "there is no team 'Holdfast-payments'. Did you mean payments? Teams in the file: "
            "platform, payments",
        ),
    ],
)
def test_make_deploy_stops_at_an_unknown_team_before_cdk_starts(
    tmp_path: Path, name: str, message: str
) -> None:
    ended = make_deploy(name, f"touch {tmp_path / 'started'};")
    assert ended.returncode != 0
    assert ended.stderr.splitlines()[0] == f"holdfast: teams.toml: {message}"
    assert not (tmp_path / "started").exists()


def test_make_deploy_goes_on_with_a_team_that_is_there(tmp_path: Path) -> None:
    ended = make_deploy("payments", f"echo > {tmp_path / 'started'}")
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "started").read_text() == "deploy Holdfast-payments\n"

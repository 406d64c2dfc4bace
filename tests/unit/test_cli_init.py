"""`holdfast init`: the four files of a deployment, what to type then, and that nothing else changes."""

import errno
import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from holdfast import __version__
from holdfast_cdk import places
from holdfast_cdk.config import load_teams
from holdfast_cli.main import main
from tests.support.pages import ROOT

FILES: Final = ["requirements.txt", "cdk.json", "teams.toml", ".gitignore"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which the command runs."""
    empty = tmp_path / "deployment"
    empty.mkdir()
    monkeypatch.chdir(empty)
    return empty


def content(folder: Path) -> Mapping[str, bytes]:
    return {path.name: path.read_bytes() if path.is_file() else b"" for path in folder.iterdir()}


def test_it_writes_four_files_and_says_what_to_type(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "payments", "platform", "payments"]) == 0

    assert sorted(content(folder)) == sorted(FILES)
    cdk = json.loads((ROOT / "package.json").read_text())["devDependencies"]["aws-cdk"]
    assert capsys.readouterr() == (
        f"""\
Wrote requirements.txt, cdk.json, teams.toml and .gitignore.

Describe the teams in teams.toml. Then set AWS credentials and AWS_REGION, and type:

  pip install -r requirements.txt
  npx aws-cdk@{cdk} bootstrap
  npx aws-cdk@{cdk} deploy Holdfast-payments Holdfast-platform

Each account needs `bootstrap` once in each region.
""",
        "",
    )


def test_the_app_is_that_of_the_package_of_this_version(folder: Path) -> None:
    assert main(["init", "payments"]) == 0

    assert (folder / "requirements.txt").read_text() == f"holdfast-state[deploy]=={__version__}\n"
    written, own = (json.loads((place / "cdk.json").read_text()) for place in (folder, ROOT))
    assert written["app"] == "python -m holdfast_cdk"
    assert written["context"].items() <= own["context"].items()
    assert {key: written[key] for key in own.keys() - {"app", "context"}} == {
        key: own[key] for key in own.keys() - {"app", "context"}
    }


def test_each_team_has_a_table_whose_comments_are_valid_settings(folder: Path) -> None:
    assert main(["init", "payments", "platform"]) == 0

    teams = folder / "teams.toml"
    assert [(team.name, team.account) for team in load_teams(teams)] == [
        ("payments", None),
        ("platform", None),
    ]
    teams.write_text(re.sub("^# (?=[a-z_]+ = )", "", teams.read_text(), flags=re.MULTILINE))
    payments, _ = load_teams(teams)
    assert None not in (payments.account, payments.region, payments.retention, payments.history)


@pytest.mark.parametrize("kind", ["file", "folder", "link to nothing"])
@pytest.mark.parametrize("name", FILES[:3])
def test_a_file_that_is_there_stops_it(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, kind: str
) -> None:
    match kind:
        case "file":
            (folder / name).write_text("mine")
        case "folder":
            (folder / name).mkdir()
        case _:
            (folder / name).symlink_to("nowhere")
    before = content(folder)

    assert main(["init", "payments"]) == 1

    assert content(folder) == before
    or_add = ", or add a table `[teams.<name>]` to teams.toml by hand" if name == "teams.toml" else ""
    assert capsys.readouterr().err == (
        f"holdfast: This folder already has {name}, so nothing was written. Use an empty folder{or_add}.\n"
    )


def test_all_files_that_are_there_are_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in FILES:
        (folder / name).write_text("mine")

    assert main(["init", "payments"]) == 1

    assert set(content(folder).values()) == {b"mine"}
    assert "already has cdk.json, teams.toml, requirements.txt, " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("present", "told"),
    [
        ("*.tfstate\n", "  .holdfast/\n  .venv/\n  cdk.out/\n"),
        (".venv\n/cdk.out/\r\n", "  .holdfast/\n"),
        (".venv/\ncdk.out\n.holdfast/", ""),
    ],
)
def test_a_gitignore_stays_and_the_lines_that_it_lacks_are_told(
    folder: Path, capsys: pytest.CaptureFixture[str], present: str, told: str
) -> None:
    (folder / ".gitignore").write_bytes(present.encode())

    assert main(["init", "payments"]) == 0

    assert (folder / ".gitignore").read_bytes() == present.encode()
    printed = capsys.readouterr()
    assert printed.out.startswith("Wrote requirements.txt, cdk.json and teams.toml.\n")
    head = "holdfast: .gitignore exists already. Add these lines to it:\n"
    assert printed.err == (head + told if told else "")


def test_a_gitignore_that_cannot_be_read_stops_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / ".gitignore").mkdir()

    assert main(["init", "payments"]) == 1

    assert [path.name for path in folder.iterdir()] == [".gitignore"]
    assert capsys.readouterr().err == (
        "holdfast: .gitignore cannot be read: Is a directory. Nothing was written.\n"
    )


def test_a_write_that_fails_in_the_middle_leaves_nothing(folder: Path) -> None:
    """The limit on the size of files acts as a disk that becomes full."""
    ended = subprocess.run(
        [sys.executable, "-m", "holdfast_cli", "init", "payments"],
        cwd=folder,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'functions'}:{ROOT / 'infra'}", "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200)),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (
        1,
        "",
        "holdfast: teams.toml cannot be written: File too large. Nothing was written.\n",
    )
    assert list(folder.iterdir()) == []


def test_an_interrupt_in_the_middle_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create = Path.open

    def interrupted(path: Path, *arguments: str, **more: str) -> object:
        if path.name == "teams.toml":
            raise KeyboardInterrupt
        return create(path, *arguments, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", interrupted)

    assert main(["init", "payments"]) == 130
    assert list(folder.iterdir()) == []


def test_a_folder_that_is_gone_stops_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder.rmdir()

    assert main(["init", "payments"]) == 1

    assert capsys.readouterr().err == (
        f"holdfast: requirements.txt cannot be written: {os.strerror(errno.ENOENT)}. Nothing was written.\n"
    )


def test_a_package_without_what_it_deploys_stops_it(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "PACKAGES", folder / "package.json")

    assert main(["init", "payments"]) == 1

    assert list(folder.iterdir()) == []
    assert capsys.readouterr().err == (
        "holdfast: only the `holdfast` command is installed, not the CDK app; install it again: "
        f"pip install --force-reinstall 'holdfast-state[deploy]=={__version__}'\n"
    )


def test_it_needs_nothing_of_the_extra(folder: Path) -> None:
    look = """
import sys
sys.modules["aws_cdk"] = sys.modules["constructs"] = sys.modules["aws_lambda_powertools"] = None
from holdfast_cli.main import main
sys.exit(main(["init", "payments"]))
"""
    path = ":".join(map(str, (ROOT, ROOT / "functions", ROOT / "infra")))
    ended = subprocess.run([sys.executable, "-c", look], cwd=folder, env={"PYTHONPATH": path}, check=False)

    assert ended.returncode == 0
    assert sorted(content(folder)) == sorted(FILES)

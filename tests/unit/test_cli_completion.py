"""`holdfast completion`: what a real bash completes, and that the other shells get everything too."""

import argparse
import re
from pathlib import Path

import pytest

from holdfast.access import Role
from holdfast_cli.commands.table import parser
from holdfast_cli.main import main
from tests.support.bash_completion import completions


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def test_bash_completes_commands_options_choices_and_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "id-token.txt").touch()
    cases = {
        "holdfast to": "token",
        "holdfast token r": "rotate revoke",
        "holdfast token create --role ''": " ".join(Role),
        "holdfast token create --role w": "writer",
        "holdfast token create --role writer --sc": "--scope",
        "holdfast backend-config network/prod --o": "--outputs",
        "holdfast login --oidc --id-token-file i": "id-token.txt",
        "holdfast login --oi": "--oidc",
        "holdfast completion ''": "bash zsh fish",
    }

    found = completions("bash", script("bash", capsys), list(cases), tmp_path)

    assert dict(zip(cases, found, strict=True)) == cases


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_get_every_command_option_and_choice(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    known = [
        word
        for action in parser().actions()
        if action.help != argparse.SUPPRESS
        for word in (*action.option_strings, *(action.choices or ()))
    ]

    # A script for fish writes the dashes of an option in another way.
    printed = {word.strip("-") for word in re.findall(r"[\w-]+", script(shell, capsys))}
    assert {"undelete", "--scope", "writer"} <= set(known)
    assert {word.strip("-") for word in known} <= printed

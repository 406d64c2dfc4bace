"""`holdfast completion`: what a real bash completes, and that the other shells get everything too."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from holdfast_cli.main import main, parser

_ASK = """
cd "$1"; eval "$2"; shift 2
of_holdfast=$(complete -p holdfast) && of_holdfast=${of_holdfast##*-F } && of_holdfast=${of_holdfast% *}
for line in "$@"; do
    eval "COMP_WORDS=($line)"; COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    "$of_holdfast"; echo "${COMPREPLY[*]}"
done
"""
"""Asks bash for completions of each line's last word, as it does itself when Tab is pressed."""


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
        "holdfast token create --role ''": "outputs reader writer maintainer",
        "holdfast token create --role w": "writer",
        "holdfast token create --role writer --sc": "--scope",
        "holdfast backend-config network/prod --o": "--outputs",
        "holdfast login --oidc --id-token-file i": "id-token.txt",
        "holdfast login --oi": "--oidc",
        "holdfast completion ''": "bash zsh fish",
    }

    done = subprocess.run(
        ["bash", "-uc", _ASK, "bash", tmp_path, script("bash", capsys), *cases],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stderr == ""
    assert dict(zip(cases, done.stdout.splitlines(), strict=True)) == cases


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_get_every_command_option_and_choice(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    known = [
        word for action in parser().actions() for word in (*action.option_strings, *(action.choices or ()))
    ]

    # fish is told the dashes of an option in another way.
    printed = {word.strip("-") for word in re.findall(r"[\w-]+", script(shell, capsys))}
    assert {"undelete", "--scope", "writer"} <= set(known)
    assert {word.strip("-") for word in known} <= printed


def test_another_shell_is_wrong_usage_that_names_those_that_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(shlex.split("completion tcsh"))

    assert "'tcsh' is not one of bash, zsh, fish" in capsys.readouterr().err

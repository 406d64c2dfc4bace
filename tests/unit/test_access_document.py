"""The pages about access: their commands can be typed and parsed."""

import re
import shlex

import pytest

from holdfast_cli.commands.table import parser
from tests.support.pages import page, text

PAGES = ("access.md", "sign-in.md", "tokens.md", "ci.md")
TEXT = "\n".join(text(page(name)) for name in PAGES)
BLOCKS = re.findall(r"^```([a-z]*)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    return [block for kind, block in BLOCKS if kind == language]


def commands() -> list[str]:
    """Every `holdfast` command of the pages, without the shell around it."""
    inline = re.findall(r"`(holdfast [^`]+)`", TEXT.replace("\n", " "))
    typed = [
        found.group()
        for block in blocks("")
        for line in block.replace("\\\n", "").splitlines()
        if (
            found := re.search(
                r"holdfast (?:token|trust|login|audit|backend-config|configure|run)\b[^)\"]*", line
            )
        )
        and line.lstrip("$ ").startswith(("holdfast", "eval", "exports"))
    ]
    return [*inline, *typed]


@pytest.mark.parametrize("command", sorted(set(commands())))
def test_every_command_is_one_that_the_parser_takes(command: str) -> None:
    example = command.replace("<id>", "k2v9x0q7m3c1d8f5a6b4").replace("<name>", "x").replace("STATE", "x")
    _, *arguments = shlex.split(example.partition(" > ")[0])
    if arguments[0] == "run":
        arguments += ["terraform"] if "--" in arguments else ["--", "terraform"]
    if len(arguments) < 3 and not any(word.startswith("-") for word in arguments):
        with pytest.raises(SystemExit, match=r"^0$"):  # the name of a command or of a group
            parser().parse_args([*arguments, "--help"])
        return

    try:
        parser().parse_args(arguments)
    except SystemExit as end:
        pytest.fail(f"{command}: {end}")


def test_the_pages_have_commands_of_every_kind() -> None:
    kinds = {tuple(shlex.split(command)[1:3]) for command in commands()}

    wanted = {("token", each) for each in ("create", "list", "show", "update", "rotate", "revoke")}
    wanted |= {("trust", each) for each in ("create", "list", "show", "update", "remove")}
    assert wanted <= kinds
    assert {"login", "audit"} <= {kind[0] for kind in kinds}

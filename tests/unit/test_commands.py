"""Every command of `holdfast` can be typed, shows how, and is in the documents."""

import argparse
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from pkgutil import iter_modules
from typing import Final

import pytest

from holdfast_cli import commands
from holdfast_cli.commands.table import parser
from holdfast_cli.terminal.parser import Parser
from tests.conftest import GeneratedFile
from tests.support import commands_document
from tests.support.management import run
from tests.support.pages import page

ROOT: Final = Path(__file__).parents[2]


def leaves(group: Parser) -> Iterator[Parser]:
    """Yield the parsers of all commands that can be run."""
    group.load()
    for command in group.commands().values():
        yield from leaves(command)
    if group.get_default("run"):
        yield group


TOP: Final = parser()
COMMANDS: Final = tuple(leaves(TOP))
SECRETS: Final = (
    f"holdfast_{49 * '0'}",
    "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
)
"""One of Holdfast, an ID token, and the example that AWS's documents give of a secret access key."""


NEED_NOTHING: Final = frozenset(
    {
        *("init", "completion", "credentials-helper"),
        *("configure", "configure list", "configure remove", "configure helper"),
        *("import run", "import check", "import close", "import reopen", "import rewrite"),  # first the plan
    }
)
"""The commands that need neither an API nor an AWS account before they have done or refused something."""
VALUES: Final = {
    "STATE": "network/prod",
    "STATE|PATTERN": "network/prod",
    "VERSION": "@12",
    "TEXT": "incident 4711",
    "NAME": "network-main",
    "COMMAND": "true",
    "SOURCE": "s3://bucket",
    "ID": "k2v9x0q7m3c1d8f5a6b4",
    "ROLE:PATTERN": "reader:*",
    "ROLE": "Developer",
    "REGION": "eu-central-1",
    "TYPE": "aws_instance",
}
"""A value of each kind."""


def shortest(command: Parser) -> list[str]:
    """Return the words of a command with what it requires, and with a note if it has to change something."""
    one_of = [group._group_actions[-1] for group in command._mutually_exclusive_groups if group.required]  # noqa: SLF001
    words = command.prog.split()[1:]
    for action in command._actions:  # noqa: SLF001
        if action.required or action in one_of:
            words += [*action.option_strings[-1:], VALUES[str(action.metavar)]]
    return [*words, *(["--description", "drift"] if words[1:2] == ["update"] else [])]


@pytest.mark.parametrize(
    "command",
    [command for command in COMMANDS if command.prog.partition(" ")[2] not in NEED_NOTHING],
    ids=lambda command: command.prog,
)
def test_without_any_configuration_a_command_says_what_to_type_in_order(
    command: Parser, tmp_path: Path
) -> None:
    nothing = {"HOME": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true"}

    done = run(None, *shortest(command), TF_HTTP_USERNAME=None, TF_HTTP_PASSWORD=None, **nothing)

    assert (done.returncode, done.stdout) == (2, ""), done
    head, *steps = done.stderr.splitlines()
    assert head in (
        "holdfast: The API's address is not known. Type these commands in this order:",
        "holdfast: Neither the API's address nor an AWS region is known. Type these commands in this order:",
    )
    assert [step.split("  ")[1] for step in steps[:3]] == [
        "1. holdfast configure",
        '2. eval "$(holdfast login)"',
        "3. holdfast doctor",
    ]


def test_every_module_of_commands_adds_one() -> None:
    added = {command.get_default("run").__module__.rpartition(".")[2] for command in COMMANDS}

    assert added | {"table"} == {module.name for module in iter_modules(commands.__path__)}, (
        "give the module a row in COMMANDS of holdfast_cli/commands/table.py"
    )


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.prog)
def test_the_help_of_a_command_ends_with_examples_of_it_that_are_right_usage(
    command: argparse.ArgumentParser,
) -> None:
    _, _, examples = (command.epilog or "").partition("examples:\n")

    assert command.prog in examples, "its help shows no example of it"
    for example in examples.replace("\\\n", "").splitlines():
        if not re.search(r"[|&;<>$`]", example):  # a shell would do no more than split it
            program, *arguments = shlex.split(example)
            assert program == "holdfast"
            TOP.parse_args(arguments)


def test_neither_help_nor_a_block_waits_for_the_aws_sdk_and_other_large_packages() -> None:
    look = """
import sys
from holdfast_cli.commands.table import parser
from holdfast_cli.main import main
actions = len(list(parser().actions()))
main("backend-config x --address https://api.example.com".split())
print(actions, *{"boto3", "botocore", "urllib3", "rich"} & set(sys.modules))
"""

    printed = subprocess.check_output([sys.executable, "-c", look], env={}, text=True).splitlines()

    assert printed[-1] == f"{len(list(TOP.actions()))}"


def test_the_help_of_a_command_of_states_loads_neither_documents_nor_what_sends_requests() -> None:
    look = """
import sys
from contextlib import suppress
from holdfast_cli.main import main
with suppress(SystemExit):
    main("state list --help".split())
slow = {"email", "hashlib", "holdfast.api.v1", "http.client", "ssl", "tomllib"}
print("loaded:", *slow & set(sys.modules))
"""

    printed = subprocess.check_output([sys.executable, "-c", look], env={}, text=True).splitlines()

    assert printed[-1] == "loaded:"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.prog)
def test_a_command_is_in_the_documents(command: argparse.ArgumentParser) -> None:
    pages = [path for path in (ROOT / "docs").rglob("*.md") if path.name != "reference.md"]
    documents = "\n".join(path.read_text(encoding="utf-8") for path in pages)

    assert command.prog in documents, "no page of docs/ says what it is for"


@pytest.mark.generated
def test_the_reference_has_every_command_with_its_line_of_help(generated_file: GeneratedFile) -> None:
    generated_file(page("reference.md"), commands_document.text())


def test_the_sections_of_the_reference_are_those_of_the_help_and_one_for_programs() -> None:
    shown = re.findall(r"^(\S.*):$", TOP.format_help(), re.MULTILINE)
    sections = re.findall(r"^## (.+)$", page("reference.md").read_text(encoding="utf-8"), re.MULTILINE)

    assert [section[0].lower() + section[1:] for section in sections] == [
        *(heading for heading in shown if heading != "options"),
        "for programs",
        "options of several commands",
        "options of each command",
    ]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.prog)
def test_the_reference_has_every_option_of_a_command(command: argparse.ArgumentParser) -> None:
    reference = page("reference.md").read_text(encoding="utf-8")
    _, _, section = reference.partition(f"\n### {command.prog}\n")
    section = section.partition("\n### ")[0]

    for action in command._actions:  # noqa: SLF001
        if action.option_strings and action.dest != "help" and action.help != argparse.SUPPRESS:
            assert f"`{action.option_strings[-1]}" in section


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.prog)
def test_no_command_repeats_a_secret_that_was_put_in_place_of_any_value(
    command: argparse.ArgumentParser,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Parser, "print_usage", lambda *_: None)  # it takes long, and knows no values
    path = command.prog.split()[1:]
    options = [option for action in command._actions for option in action.option_strings]  # noqa: SLF001
    refused = 0
    for secret in SECRETS:
        lines = [[secret], ["a", secret], [secret, secret, secret]]
        lines += [[option, secret] for option in options] + [[f"{option}={secret},b"] for option in options]
        for line in lines:
            with suppress(SystemExit):
                TOP.parse_args([*path, *line])
                continue
            printed = capsys.readouterr()
            refused += bool(printed.err)
            assert secret not in printed.out + printed.err, line
    assert refused > 0

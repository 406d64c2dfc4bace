"""Each `holdfast` and `aws` command of the documents exists, and has the options with which it is shown.

The AWS CLI makes its commands from the models of the SDK, except those of `CUSTOM`. CHANGELOG.md is left out,
because it has the commands of earlier releases.
"""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import botocore.session
import pytest
from botocore import xform_name

from holdfast_cli.commands.table import parser
from tests.support.aws_command import RENAMED
from tests.support.pages import DOCS, ROOT, text

PAGES: Final = sorted(
    path for path in (*ROOT.glob("*.md"), *DOCS.rglob("*.md")) if path.name != "CHANGELOG.md"
)
CUSTOM: Final = frozenset({"s3 ls", "s3 cp", "s3 rm", "s3 sync", "logs tail", "sso login"})
"""Commands of the AWS CLI that are not made from a model."""
GLOBAL: Final = frozenset({"--query", "--output", "--region", "--profile"})
"""Options of every command of the AWS CLI."""
WORDS: Final = re.compile(r"[a-z][a-z0-9_-]*")
OPTION: Final = re.compile(r"--[a-z][a-z0-9-]*")
ENDS: Final = frozenset({"|", ">", "<", "&&", "||", "&", ";", "2>", ">>"})
"""Words at which a command ends for the shell."""


def commands(document: str, program: str) -> Iterator[list[str]]:
    """Yield the words of each command of a program: of the lines of blocks, and of code in sentences."""
    blocks = re.findall(r"^ *```[a-z]*\n(.*?)^ *```", document, re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^ *```.*?^ *```", "", document, flags=re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in re.sub(r"\\\n *", "", block).splitlines()]
    lines += [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", prose)]
    begins = rf"(?:^|\$ |\$\(|\| |&& |; |-- |\"){program} (.+)"
    for line in lines:
        for found in re.findall(begins, line.strip()):
            yield _words(found)


def _words(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";|&()")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    words = []
    try:
        for word in lexer:
            if word in ENDS or set(word) <= set(";|&()"):
                break
            words.append(word)
    except ValueError:  # a quotation goes on in the next line
        return words
    return words


def _options(words: list[str]) -> list[str]:
    return [found.group() for word in words if (found := OPTION.match(word))]


# --- holdfast -------------------------------------------------------------------------------------

TOP: Final = parser()


def faults_of_holdfast(words: list[str]) -> Iterator[str]:
    """Yield what a command of `holdfast` has that its parsers do not know."""
    at = TOP
    rest = list(words)
    while rest and at.commands():
        at.load()
        if rest[0] not in at.commands():
            break
        at = at.commands()[rest.pop(0)]
        at.load()
    if at.commands() and rest and WORDS.fullmatch(rest[0]) and not at.get_default("run"):
        yield f"holdfast {' '.join(words[:3])}: no command {rest[0]}"
    until = rest.index("--") if "--" in rest else len(rest)
    known = {option for action in at._actions for option in action.option_strings}  # noqa: SLF001
    if not at.commands():
        for option in _options(rest[:until]):
            if option not in known:
                yield f"holdfast {' '.join(words[:3])}: no option {option}"


# --- aws ------------------------------------------------------------------------------------------


@cache
def _service(name: str) -> Any:
    return botocore.session.get_session().get_service_model({"s3api": "s3"}.get(name, name))


def faults_of_aws(words: list[str]) -> Iterator[str]:
    """Yield what a command of the AWS CLI has that the models of AWS do not know."""
    service, operation, *rest = words
    shown = f"aws {service} {operation}"
    if f"{service} {operation}" in CUSTOM:
        return
    model = _service(service)
    if operation == "wait":
        waiters = botocore.session.get_session().get_waiter_model(service).waiter_names
        if rest[0] not in {xform_name(name, "-") for name in waiters}:
            yield f"{shown}: no waiter of this name"
        return
    operations = {xform_name(name, "-"): name for name in model.operation_names}
    if operation not in operations:
        yield f"{shown}: no operation of this name"
        return
    shape = model.operation_model(operations[operation]).input_shape
    members = {f"--{xform_name(name, '-')}" for name in (shape.members if shape else ())}
    members |= {f"--{name}" for name in RENAMED.get(f"{service} {operation}", {})}
    for option in _options(rest):
        if option not in members | GLOBAL and option.replace("--no-", "--") not in members:
            yield f"{shown}: no option {option}"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_command_of_holdfast_exists_with_its_options(path: Path) -> None:
    found = [fault for words in commands(text(path), "holdfast") for fault in faults_of_holdfast(words)]

    assert found == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_command_of_the_aws_cli_exists_with_its_options(path: Path) -> None:
    found = [
        fault for words in commands(text(path), "aws") if len(words) > 1 for fault in faults_of_aws(words)
    ]

    assert found == []


def test_the_documents_have_commands_of_both() -> None:
    assert sum(1 for path in PAGES for _ in commands(text(path), "holdfast")) > 200
    assert sum(1 for path in PAGES for _ in commands(text(path), "aws")) > 30


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("holdfast state brake x", ["holdfast state brake x: no command brake"]),
        (
            'eval "$(holdfast login --adress https://x)"',
            ["holdfast login --adress https://x: no option --adress"],
        ),
        ("holdfast token create --role reader --scope '*' | grep export", []),
        ("holdfast run --aws-profile x -- terraform apply -auto-approve --nothing", []),
    ],
)
def test_a_fault_in_a_command_of_holdfast_is_found(line: str, found: list[str]) -> None:
    [words] = commands(f"```\n{line}\n```\n", "holdfast")

    assert list(faults_of_holdfast(words)) == found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("aws s3api get-buckets --bucket x", ["aws s3api get-buckets: no operation of this name"]),
        ("aws kms enable-key --key x", ["aws kms enable-key: no option --key"]),
        ("aws kms enable-key \\\n  --key-id x --query Y", []),
        ("aws s3 cp a b --nothing", []),
        ("aws cloudformation wait stack-delete-complete --stack-name x", []),
        ("aws cloudformation wait stack-is-gone", ["aws cloudformation wait: no waiter of this name"]),
    ],
)
def test_a_fault_in_a_command_of_the_aws_cli_is_found(line: str, found: list[str]) -> None:
    [words] = commands(f"```\n{line}\n```\n", "aws")

    assert list(faults_of_aws(words)) == found

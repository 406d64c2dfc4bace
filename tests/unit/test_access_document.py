"""docs/access.md: what stands there can be typed, pasted and parsed."""

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from cli.main import parser

TEXT = (Path(__file__).parents[2] / "docs" / "access.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```([a-z]*)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    return [text for kind, text in BLOCKS if kind == language]


def commands() -> list[str]:
    """Every `holdfast` command of the page, without the shell around it."""
    inline = re.findall(r"`(holdfast [^`]+)`", TEXT.replace("\n", " "))
    typed = [
        found.group()
        for block in blocks("")
        for line in block.replace("\\\n", "").splitlines()
        if (found := re.search(r"holdfast (?:token|trust|login|audit|backend-config)\b[^)\"]*", line))
        and line.lstrip("$ ").startswith(("holdfast", "eval", "exports"))
    ]
    return [*inline, *typed]


@pytest.mark.parametrize("command", sorted(set(commands())))
def test_every_command_is_one_that_the_parser_takes(command: str) -> None:
    example = command.replace("<id>", "k2v9x0q7m3c1d8f5a6b4").replace("<name>", "x").replace("STATE", "x")
    _, *arguments = shlex.split(example)
    if len(arguments) < 2 and arguments[0] in ("token", "trust"):
        return  # the name of a group

    try:
        parser().parse_args(arguments)
    except SystemExit as end:
        pytest.fail(f"{command}: {end}")


def test_the_page_has_commands_of_every_kind() -> None:
    kinds = {tuple(shlex.split(command)[1:3]) for command in commands()}

    wanted = {("token", each) for each in ("create", "list", "show", "rotate", "revoke")}
    wanted |= {("trust", each) for each in ("add", "list", "remove")}
    assert wanted <= kinds
    assert {"login", "audit"} <= {kind[0] for kind in kinds}


def test_every_policy_allows_only_named_actions_on_named_resources() -> None:
    policies = [json.loads(text) for text in blocks("json")]

    assert len(policies) == 3
    for policy in policies:
        for statement in policy["Statement"]:
            actions, resources = (
                [value] if isinstance(value, str) else value
                for value in (statement["Action"], statement["Resource"])
            )
            assert not any("*" in action for action in actions)
            assert all(resource.startswith("arn:aws:") for resource in resources)


def test_every_pipeline_is_yaml_that_signs_in() -> None:
    github, gitlab = (yaml.safe_load(text) for text in blocks("yaml"))

    assert github["permissions"]["id-token"] == "write"
    assert "/sessions" in github["jobs"]["apply"]["steps"][2]["run"]
    assert "HOLDFAST_ID_TOKEN" in gitlab["apply"]["id_tokens"]

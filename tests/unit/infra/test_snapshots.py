"""The templates of teams and of a shared trail, and the changes by the settings, in a form for review."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from holdfast_cdk.config import AWS
from holdfast_cdk.team_settings import Team
from tests.conftest import GeneratedFile
from tests.support.every_setting import EVERY_SETTING
from tests.unit.infra.conftest import Synthesize, Synthesized

SNAPSHOTS: Final = Path(__file__).with_name("snapshots")

# Values that follow from the functions' code and change with every line.
OF_THE_CODE: Final = {
    re.compile(r"[0-9a-f]{64}\.zip"): "<code>.zip",
    re.compile(r"[ab]{12}"): "<code>",
    re.compile(r"(CurrentVersion[0-9A-F]{8})[0-9a-f]{32}"): r"\1<code>",
}


def readable(value: Any) -> Any:
    """A part of a template with references as `${StateBucket.Arn}` and without values of the code."""
    match value:
        case {"Ref": str(name), **rest} if not rest:
            return readable("${" + name + "}")
        case {"Fn::GetAtt": [str(name), str(attribute)], **rest} if not rest:
            return readable("${" + name + "." + attribute + "}")
        case {"Fn::Sub": str(text), **rest} if not rest:
            return readable(text)
        case {"Fn::Join": [str(separator), list(parts)], **rest} if not rest:
            return separator.join(str(readable(part)) for part in parts)
        case dict():
            return {readable(key): readable(item) for key, item in value.items()}
        case list():
            return [readable(item) for item in value]
        case str():
            for pattern, word in OF_THE_CODE.items():
                value = pattern.sub(word, value)
            return value
        case _:
            return value


def snapshot(stack: Synthesized) -> str:
    """A stack as YAML: its tags, outputs and resources."""
    parts = {
        "Tags": stack.tags,
        "Outputs": stack.template["Outputs"],
        "Resources": stack.template["Resources"],
    }
    return str(yaml.safe_dump(readable(parts), width=110, sort_keys=True))


@pytest.mark.generated
def test_the_template_is_the_reviewed_one(
    stack: Synthesized, team: str, generated_file: GeneratedFile
) -> None:
    generated_file(SNAPSHOTS / f"{team}.yaml", snapshot(stack))


def changed(template: Any, other: Any, path: str = "") -> dict[str, Any]:
    """Return the other template's value at each path where two templates differ."""
    if not (isinstance(template, dict) and isinstance(other, dict)):
        return {} if template == other else {path: other}
    parts = [
        changed(template.get(key), other.get(key), f"{path}/{key}") for key in sorted({*template, *other})
    ]
    return {path: value for part in parts for path, value in part.items()}


@pytest.mark.generated
def test_the_settings_change_what_was_reviewed(
    synthesize: Synthesize, settled: Synthesized, generated_file: GeneratedFile
) -> None:
    name, account, region = EVERY_SETTING.name, EVERY_SETTING.account, EVERY_SETTING.region
    (plain,) = synthesize([Team(name=name, account=account, region=region)], AWS).values()
    before, after = (yaml.safe_load(snapshot(stack)) for stack in (plain, settled))
    text = yaml.safe_dump(changed(before, after), width=110, sort_keys=True)
    generated_file(SNAPSHOTS / "every_setting.yaml", text)


def test_a_snapshot_shows_every_resource_and_nothing_of_the_code(stack: Synthesized) -> None:
    text = snapshot(stack)
    assert len(yaml.safe_load(text)["Resources"]) == len(stack.template["Resources"])
    assert "a" * 12 not in text
    assert "b" * 12 not in text
    assert "Fn::" not in text


def test_a_stack_has_no_server_no_table_and_no_queue(stack: Synthesized) -> None:
    services = {resource["Type"].split("::")[1] for resource in stack.template["Resources"].values()}
    assert services <= {"ApiGatewayV2", "Events", "IAM", "KMS", "Lambda", "Logs", "S3"}

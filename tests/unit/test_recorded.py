"""Names on which scripts and settings rely are those that were recorded; see `recorded`.

`tests/e2e/test_recorded.py` records the documents themselves.
"""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import yaml

from holdfast.audit import FIELDS
from holdfast.s3.object_metadata import VERSION_FIELDS
from holdfast_cdk import team_settings
from holdfast_cli import errors
from tests.conftest import GeneratedFile
from tests.support import recorded
from tests.unit.test_commands import COMMANDS
from tests.unit.test_errors import LEAVES
from tests.unit.test_openapi import DOCUMENT, TEMPLATE, described

NAME = "interfaces.json"


@pytest.mark.generated
def test_the_names_that_others_rely_on_are_as_recorded(generated_file: GeneratedFile) -> None:
    found = {
        "audit trail": dict.fromkeys(FIELDS, "field"),
        "command": dict(options()),
        "errors of the API": {code: str(status) for status, code in LEAVES},
        "exit codes": {
            str(kind.exit_code): "exit code"
            for kind in vars(errors).values()
            if isinstance(kind, type) and issubclass(kind, errors.CommandError)
        },
        "metadata of a version": dict.fromkeys(VERSION_FIELDS, "metadata"),
        "outputs of the stack": dict.fromkeys(yaml.safe_load(TEMPLATE.read_text())["Outputs"], "output"),
        "settings": dict(settings(team_settings.Team)),
        **{
            f"{verb} {path}": dict(operation(path, verb))
            for path in DOCUMENT["paths"]
            for verb in described(path)
        },
        **{name: dict(schema(name)) for name in DOCUMENT["components"]["schemas"]},
    }

    assert recorded.broken(recorded.read(NAME), found) == {}, recorded.SAYS
    generated_file(recorded.FOLDER / NAME, recorded.text(found))


def options() -> Iterator[tuple[str, str]]:
    """Yield each command, and each with an option."""
    for command in COMMANDS:
        yield command.prog, "command"
        for option in command._option_string_actions:  # noqa: SLF001 they have no other name
            yield f"{command.prog} {option}", "option"


def settings(kind: type) -> Iterator[tuple[str, str]]:
    """Yield each setting, and each setting in it."""
    hints = get_type_hints(kind)
    for each in fields(kind):
        yield each.name, "setting"
        for part in getattr(hints[each.name], "__args__", (hints[each.name],)):
            if is_dataclass(part) and isinstance(part, type):
                yield from ((f"{each.name}.{name}", found) for name, found in settings(part))


def operation(path: str, verb: str) -> Iterator[tuple[str, str]]:
    """Yield the parameters and the statuses of a request."""
    described_ = described(path)[verb]
    for parameter in described_.get("parameters", ()):
        if "name" in parameter:
            yield parameter["name"], "parameter"
    yield from ((status, "status") for status in described_["responses"])


def schema(name: str) -> Iterator[tuple[str, str]]:
    """Yield the members of a document of the API, with their types."""
    for member, said in DOCUMENT["components"]["schemas"][name].get("properties", {}).items():
        yield member, " or ".join(sorted(types(said)))


def types(said: dict[str, Any]) -> set[str]:
    if "$ref" in said:
        return {Path(said["$ref"]).name}
    if "oneOf" in said:
        return set().union(*map(types, said["oneOf"]))
    if "enum" in said:
        return {"null" if word is None else "string" for word in said["enum"]}
    found = said.get("type", "anything")
    return {found} if isinstance(found, str) else {*found}


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ({"a": "text"}, {"a": "text", "b": "text"}, []),
        ({"a": "text"}, {"a": "null or text"}, []),
        ({"a": "null or text"}, {"a": "text"}, ["a is no longer null"]),
        ({"a": "text"}, {"a": "number"}, ["a is no longer text"]),
        ({"a[].b": "text", "c": "text"}, {"c": "text"}, ["a[].b is gone"]),
        ({"": "object"}, {}, ["the document is gone"]),
    ],
)
def test_a_member_that_is_gone_or_has_another_type_is_named(
    before: dict[str, str], now: dict[str, str], said: list[str]
) -> None:
    assert recorded.broken({"x": before}, {"x": now}) == ({"x": said} if said else {})
    assert recorded.broken({"x": before}, {}) == {
        "x": [f"{path or 'the document'} is gone" for path in before]
    }


def test_the_members_of_documents_are_their_paths_with_every_type() -> None:
    documents = [{"a": [{"b": 1}, {"b": None}]}, {"a": [], "claims": {"x": "y"}}]

    assert recorded.members(documents) == {
        "": "object",
        "a": "list",
        "a[]": "object",
        "a[].b": "null or number",
        "claims": "object",
        "claims.*": "text",
    }

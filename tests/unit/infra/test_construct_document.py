"""docs/operate/construct.md shows the public names, and its app works."""

import re
from pathlib import Path

import pytest

import holdfast_cdk
from holdfast_cdk import bundle
from holdfast_cdk.lambdas import Bundles
from tests.conftest import GeneratedFile
from tests.support.construct_document import PATH, construct_document
from tests.support.pages import ROOT, text


@pytest.mark.generated
def test_the_table_of_names_is_generated_from_the_package(generated_file: GeneratedFile) -> None:
    generated_file(PATH, construct_document())


def test_the_table_has_every_public_name_and_no_other() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", construct_document(), re.MULTILINE)
    assert sorted(name for name, _ in rows) == sorted(holdfast_cdk.__all__)
    attributes = re.findall(r"^\| `TeamStack\(…\)\.(\w+)` \|", construct_document(), re.MULTILINE)
    assert attributes == ["api_address", "bucket", "topic", "replica"]


def test_the_app_of_the_page_is_synthesized(bundles: Bundles, monkeypatch: pytest.MonkeyPatch) -> None:
    [source] = re.findall(r"^```python\n(.*?)^```", text(PATH), re.MULTILINE | re.DOTALL)
    monkeypatch.setattr(bundle, "bundles", lambda *_, **__: bundles)
    names: dict[str, object] = {}
    exec(compile(source, PATH.name, "exec"), names)  # noqa: S102 the page says so

    stack = names["backend"]
    assert isinstance(stack, holdfast_cdk.TeamStack)
    assert (stack.stack_name, stack.account) == ("Holdfast-platform", "123456789012")


def test_page_and_example_install_the_same_version() -> None:
    [shown] = re.findall(r"^pip install '(.+)'$", text(PATH), re.MULTILINE)
    assert Path(ROOT / "examples" / "cdk" / "requirements.txt").read_text() == f"{shown}\n"

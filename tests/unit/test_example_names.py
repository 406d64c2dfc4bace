"""The states of examples have the same few names in every document, so that a reader recognises them."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from holdfast_cli.commands.table import parser
from tests.support.pages import DOCS, ROOT, page, text
from tests.unit.test_commands import leaves
from tests.unit.test_documents import BY_HAND

COMPONENTS: Final = frozenset({"network", "app", "shop"})
"""The first segment of each state of an example, as CONTRIBUTING.md says."""
EXCEPTIONS: Final[Mapping[str, str]] = {
    "app-web/prod": "access.md: what the pattern `app-*/prod` matches",
    "app-*/prod": "access.md: a pattern with a star within a segment",
    "demo/late-write": "README.md: the state of `make demo`",
    "holdfast-doctor/*": "the names that the doctor reserves",
    "team-network/prod": "moving-in.md: a name that is derived from a key of another place",
    "*/prod": "a pattern for every component",
}
"""Name of a state, or a pattern -> where it is, and why it has another name."""

_SEGMENT: Final = r"[A-Za-z0-9*][\w.*-]*"
_PLACES: Final = (
    r"holdfast (?:(?:state|lock) \w+|activity|audit|console|backend-config|doctor) ['\"]?",
    r"--scope[ =]['\"]?",
    r"--grant[ =]\w+:['\"]?",
    r"(?:states|locks|unlocks|outputs)/",
)
"""A command, an option, an address or a key, directly before the name of a state or a pattern."""
_NAMES: Final = re.compile(
    rf"(?:{'|'.join(_PLACES)})({_SEGMENT}(?:/{_SEGMENT})+)"
    rf"|(?<![\w./:<>$}}-])({_SEGMENT}(?:/{_SEGMENT})*/(?:prod|dev|staging|test|first))(?![\w/-]|\.\w)"
)
_FILE: Final = re.compile(r"\.tfstate(?:\.tflock)?$|\.$")


def names(document: str) -> Iterator[str]:
    """Yield the names of states and the patterns of an example, of two segments or more."""
    for found in _NAMES.findall(document):
        yield _FILE.sub("", "".join(found))


def documents() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each document, and of each command's help."""
    for path in (*BY_HAND, page("reference.md"), DOCS / "openapi.yaml", *(ROOT / "examples").rglob("*.tf")):
        whole = text(path)
        yield path.name, whole.partition("\n## 0.")[0] if path.name == "CHANGELOG.md" else whole
    for command in leaves(parser()):
        yield command.prog, command.format_help()


def test_the_states_of_examples_have_the_names_that_contributors_read() -> None:
    others = {
        f"{name}: {found}"
        for name, document in documents()
        for found in names(document)
        if found.partition("/")[0] not in COMPONENTS and found not in EXCEPTIONS
    }

    assert others == set()


def test_the_names_and_the_exceptions_are_those_in_use() -> None:
    used = {found for _, document in documents() for found in names(document)}

    assert EXCEPTIONS.keys() <= used
    assert {found.partition("/")[0] for found in used - EXCEPTIONS.keys()} == COMPONENTS
    contributing = text(page("CONTRIBUTING.md"))
    [said] = re.findall(r"^- Examples use the states (.*), and the people", contributing, re.MULTILINE)
    assert {*re.findall(r"`(\w+)/…`", said)} == COMPONENTS


@pytest.mark.parametrize(
    ("document", "found"),
    [
        ("`holdfast state show billing/x`", ["billing/x"]),
        ("holdfast token create --scope 'billing/*' --grant reader:dns/eu", ["billing/*", "dns/eu"]),
        ("key=states/billing/x.tfstate", ["billing/x"]),
        ("https://example.com/outputs/billing/x", ["billing/x"]),
        ("| billing/prod | 3 h ago |", ["billing/prod"]),
        ("see ../start/first.md, refs/heads/main, `a/b` and `holdfast state list --all`", []),
    ],
)
def test_a_name_is_found(document: str, found: list[str]) -> None:
    assert list(names(document)) == found

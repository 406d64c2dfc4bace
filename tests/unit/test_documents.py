"""Documents that are written by hand: what they say of the code is true, and their form is the house's."""

import ast
import fnmatch
import json
import re
import subprocess
import tomllib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import jmespath  # type: ignore[import-untyped]  # it has no stubs
import pytest
import yaml

from holdfast import audit, watching
from holdfast.access import Caller, Grant, Role, allowed
from holdfast.identity.authentication import AuthMethod, DenialReason
from holdfast.s3 import object_metadata
from holdfast.s3.objects import ObjectVersion
from holdfast.state import lock_info, operator, restore
from holdfast.state.current_state import Superseded, version_metadata
from holdfast.state.document import Revision, StateDocument
from holdfast.state.held import CommandLock, LockIdentity
from holdfast.state.lock_info import LockInfo
from holdfast_cdk import keys, places
from holdfast_cdk.functions import FUNCTIONS
from tests.conftest import GeneratedFile
from tests.support import errors_document, hcl, import_contracts, metadata_document, roles_document
from tests.support.pages import DOCS, ROOT, page, text
from tests.unit.test_errors import LEAVES

GENERATED: Final = frozenset(
    {"settings.md", "function-permissions.md", "cost.md", "reference.md", "THIRD-PARTY.md"}
)
BY_HAND: Final = sorted(
    path for path in (*ROOT.glob("*.md"), *DOCS.rglob("*.md")) if path.name not in GENERATED
)
LONGEST_LINE: Final = 120

S3_METADATA_LIMIT: Final = 2048
"""Bytes of all keys and values of an object's user metadata (S3 User Guide on object metadata)."""
S3_METADATA_PREFIX: Final = "x-amz-meta-"
"""The prefix of each key on the wire. It counts here, because the guide does not say whether it counts."""
LARGEST_SERIAL: Final = 2**64 - 1


def one_line(path: Path) -> str:
    """Return a document without its line breaks."""
    return " ".join(text(path).split())


def first_column(document: str, head: str) -> list[str]:
    """Return the code spans in the first column of every table with that head, in order."""
    _, *tables = text(page(document)).split(head)
    assert tables, f"{document} has no table with the head {head}"
    rows = [
        row for table in tables for row in table.partition("\n\n")[0].splitlines() if row.startswith("| `")
    ]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


# --- facts ------------------------------------------------------------------------------------------


ERRORS: Final = LEAVES | {(500, "fault")}  # a fault has no class


def test_every_status_of_an_error_is_in_the_table_for_people() -> None:
    numbers = {int(number) for number in re.findall(r"^\| (\d{3})\b", text(page("errors.md")), re.MULTILINE)}

    assert {status for status, _, _ in errors_document.codes()} <= numbers


@pytest.mark.generated
def test_the_table_of_codes_is_generated_from_the_errors(generated_file: GeneratedFile) -> None:
    generated_file(errors_document.PATH, errors_document.errors_document())


def test_every_error_has_a_meaning_in_the_table_of_codes() -> None:
    assert {(status, code) for status, code, meaning in errors_document.codes() if meaning} == ERRORS


def test_the_query_for_a_states_versions_leaves_out_those_of_its_lock() -> None:
    [query] = re.findall(r'--query "(Versions.+)"', text(page("break-glass.md")))
    key = "states/network/prod.tfstate"
    versions = [
        {
            "Key": listed,
            "LastModified": f"{number}",
            "VersionId": f"{listed} {number}",
            "Size": 1,
            "IsLatest": number == 0,
        }
        for listed in (key, f"{key}.tflock", f"{key}2")
        for number in range(7)
    ]

    found = jmespath.search(query.replace("$key", key), {"Versions": versions})

    assert found == [[f"{number}", f"{key} {number}", 1, number == 0] for number in range(7)]


@pytest.mark.generated
def test_the_tables_of_roles_are_generated_from_what_they_allow(generated_file: GeneratedFile) -> None:
    generated_file(roles_document.PATH, roles_document.roles_document())


@pytest.mark.parametrize("role", Role)
def test_the_purpose_of_a_role_names_each_of_its_actions_and_no_other(role: Role) -> None:
    assert roles_document.named_actions(role) == allowed(role)


def test_every_path_of_the_api_is_in_the_design_and_no_other() -> None:
    paths = first_column("design.md", "| Route | Verbs | Does |")
    described: Any = yaml.safe_load(text(DOCS / "openapi.yaml"))

    # One route has all calls of `cloud {}`, another those of the management API or all files of the console.
    routes = {re.sub(r"^(/api/v2|/manage/v1|/console)/.*", r"\1/{path}", path) for path in described["paths"]}
    assert sorted(path.replace("+}", "}") for path in paths) == sorted(routes)


def section(document: str, heading: str) -> str:
    """Return the text from a heading to the next one of any level."""
    _, _, rest = text(page(document)).partition(f"\n{heading}\n")
    assert rest, f"{document} has no heading {heading}"
    return re.split(r"^#+ ", rest, maxsplit=1, flags=re.MULTILINE)[0]


@pytest.mark.parametrize(("folder", "indent"), [("functions", 4), ("functions/holdfast", 8)])
def test_every_folder_of_functions_is_in_the_tree_of_the_contributors_and_no_other(
    folder: str, indent: int
) -> None:
    tree = section("CONTRIBUTING.md", "### The functions")
    drawn = re.findall(rf"^ {{{indent}}}(\w+)/", tree, re.MULTILINE)

    assert sorted(drawn) == sorted(path.parent.name for path in (ROOT / folder).glob("*/__init__.py"))


def test_every_function_is_in_the_diagram_of_the_design() -> None:
    diagram = re.sub('"[^"]*"', "", text(page("design.md")).split("```")[1])

    assert set(import_contracts.HANDLERS) - set(re.findall(r"\w+", diagram)) == set()


def test_every_prefix_of_a_key_is_in_the_page_of_objects_and_no_other() -> None:
    patterns = {value for name, value in vars(keys).items() if name.isupper() and "/" in value}
    objects = text(page("objects.md"))
    named = {re.sub("<[^>]*>", "*", key).removesuffix("*") for key in re.findall("`([^`]+)`", objects)}
    listed = first_column("objects.md", "| Key | What | Kept |")

    assert {pattern.removesuffix("*") for pattern in patterns} - named == set()
    assert {keys.folder(key) for key in listed} <= {keys.folder(pattern) for pattern in patterns}


def test_the_times_after_which_lambda_stops_a_verb_are_in_the_page_about_retries() -> None:
    said = re.search(
        r"Lambda stops the function after (\d+) seconds \(the management API's after (\d+)\)",
        one_line(page("verbs.md")),
    )
    seconds = {spec.name: spec.seconds for spec in FUNCTIONS}

    assert said
    assert said.groups() == (str(seconds["backend"]), str(seconds["management"]))
    assert seconds["cloud"] == seconds["backend"]


def test_the_documents_name_the_version_of_the_cdks_command_that_is_pinned() -> None:
    named = {path.name: re.findall(r"aws-cdk@(\d+\.[\d.]+)", text(path)) for path in BY_HAND}

    assert {version for versions in named.values() for version in versions} == {places.cdk_version()}
    assert named["README.md"]


def test_every_log_group_of_a_team_is_in_the_page_about_deploying_and_no_other() -> None:
    _, _, rest = text(page("deploying.md")).partition("| Log group, kept for ")
    named = re.findall(r"`(/[\w/<>]+)`", rest.partition("\n\n")[0])
    made = [audit.function_log_group("<team>", spec.name) for spec in FUNCTIONS]

    assert sorted(named) == sorted([*made, audit.audit_log_group("<team>"), audit.access_log_group("<team>")])


def test_every_metric_of_the_watch_is_in_its_page_and_no_other() -> None:
    _, _, rest = one_line(page("watching.md")).partition("The metrics in the namespace ")
    sentence, _, _ = rest.partition(". ")

    assert re.findall(r"`(\w+)`", sentence) == [watching.NAMESPACE, watching.DIMENSION, *watching.Metric]


def test_every_way_to_authenticate_is_in_the_fields_of_an_audit_event() -> None:
    [row] = [line for line in text(page("audit-events.md")).splitlines() if line.startswith("| `source` |")]

    assert [method for method in AuthMethod if f"`{method}`" not in row] == []


def test_every_field_of_an_audit_event_is_in_the_table_of_fields_and_no_other() -> None:
    fields = first_column("audit-events.md", "| Field | Contains |")

    assert sorted(fields) == sorted({*audit.FIELDS, *audit.ADDED_FIELDS})


def test_every_reason_of_a_denial_is_in_the_table_of_reasons_and_no_other() -> None:
    reasons = first_column("audit-events.md", "| `reason` of a denial | The credentials were |")

    assert sorted(reasons) == sorted(DenialReason)


@pytest.mark.generated
def test_the_table_of_a_versions_metadata_is_generated_from_the_fields(generated_file: GeneratedFile) -> None:
    generated_file(metadata_document.PATH, metadata_document.metadata_document())


CUT: Final = 1000
"""Characters of a text that is cut to fit into metadata."""


def metadata(
    character: str, *, is_restored: bool, is_frozen: bool = False, length: int = CUT
) -> dict[str, str]:
    """Return the metadata of a version whose every text has the length, or is as long as it can be."""
    cut = character * length
    whole = "x" * min(length, object_metadata.VALUE_LIMIT)  # a text that is refused if it does not fit
    revision = Revision(LARGEST_SERIAL, whole)
    caller = Caller(whole, (Grant(Role.MAINTAINER, ("*",)),), owner=whole)
    info = LockInfo({**dict.fromkeys(LockInfo({"ID": ""}).for_client(), cut), "ID": whole})
    if is_restored and is_frozen:
        info = lock_info.of_freeze("0" * 32, cut, None, whole)
    elif is_restored:
        info = lock_info.of_verb("a version", caller, operation=restore.OPERATION, info=cut)
    version = ObjectVersion("etag", "version", 1, datetime.now(UTC), {}, has_own_etag=True)
    lock = CommandLock(LockIdentity("version", info, whole), version, datetime.now(UTC))
    document = StateDocument(revision, cut)
    superseded = Superseded(revision, over_refused=True)
    if not is_restored:
        return version_metadata(document, "0" * 64, superseded, lock, caller, {"upload": "0" * 32})
    notes = {
        "operation": restore.OPERATION,
        "who": "" if is_frozen else whole,
        "restored-from": "x" * operator.LONGEST_VERSION_ID,
        "reason": cut,
    }
    return version_metadata(document, "0" * 64, superseded, lock, caller, notes)


@pytest.mark.parametrize(("is_restored", "is_frozen"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("character", ["x", "ü", "\U0001f600"])
def test_the_largest_metadata_of_a_version_is_within_the_limit_of_s3(
    character: str, is_restored: bool, is_frozen: bool
) -> None:
    largest = metadata(character, is_restored=is_restored, is_frozen=is_frozen)

    size = sum(
        len(S3_METADATA_PREFIX) + len(name) + len(value)
        for name, value in object_metadata.encode_all(largest).items()
    )
    assert size <= S3_METADATA_LIMIT


def test_a_version_has_the_listed_metadata_and_no_other() -> None:
    written, restored = (metadata("x", is_restored=is_restored, length=9) for is_restored in (False, True))

    assert written.keys() | restored.keys() == set(object_metadata.VERSION_FIELDS)
    assert restored.keys() - written.keys() == {"restored-from", "reason"}


def test_the_owner_is_in_the_largest_metadata_of_a_write_and_not_of_a_restore() -> None:
    assert "owner" in metadata("x", is_restored=False)
    assert "owner" not in metadata("x", is_restored=True), "there is no room for it beside the rest"


# --- form -------------------------------------------------------------------------------------------


def prose(document: str) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines that are neither code nor a table, without targets of links and comments."""
    fenced = False
    for number, line in enumerate(document.splitlines(), start=1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.lstrip().startswith("|"):
            yield number, re.sub(r"<!--.*?-->", "", re.sub(r"\]\([^)]*\)", "]", line))


def test_the_people_of_examples_are_ada_and_bob() -> None:
    texts = "\n".join(text(path) for path in (*BY_HAND, page("reference.md"), DOCS / "openapi.yaml"))
    people = re.findall(r"\b([a-z]+)@(?:example\.com|laptop|desk|[\w-]*machine)\b", texts)

    assert {*people} == {"ada", "bob"}


@pytest.mark.parametrize("path", BY_HAND, ids=lambda path: path.name)
def test_no_line_is_too_long(path: Path) -> None:
    long = [f"{path.name}:{number}" for number, line in prose(text(path)) if len(line) > LONGEST_LINE]

    assert long == []


def test_no_line_of_the_description_of_the_api_is_too_long() -> None:
    lines = text(DOCS / "openapi.yaml").splitlines()

    assert [number for number, line in enumerate(lines, start=1) if len(line) > LONGEST_LINE] == []


def anchors(document: str) -> set[str]:
    """Return the anchors of a document's headings, as GitHub makes them."""
    headings = [line.lstrip("#").strip() for _, line in prose(document) if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", [*BY_HAND, *map(page, sorted(GENERATED))], ids=lambda p: p.name)
def test_its_links_lead_to_documents_and_headings_that_are_there(path: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", text(path))

    for file, heading in links:
        target = path.parent / file if file else path
        assert target.exists(), f"{path.name}: {file}"
        if heading:
            assert heading in anchors(text(target)), f"{path.name}: {file}#{heading}"


def of_json(block: str) -> object:
    """Parse JSON, or a member of an object that a reader adds to one."""
    return json.loads(f"{{{block}}}" if block.startswith('"') else block)


def of_shell(block: str) -> object:
    return subprocess.run(["bash", "-n"], input=block, text=True, check=True, capture_output=True)


PARSERS: Final[Mapping[str, Callable[[str], object]]] = {
    "json": of_json,
    "toml": tomllib.loads,
    "yaml": yaml.safe_load,
    "sh": of_shell,
    "python": ast.parse,
}
ELSEWHERE: Final = frozenset({"", "hcl", "mermaid"})
"""Blocks of HCL are what `test_printed_hcl.py` parses. The build of the site does not parse its diagrams."""


@pytest.mark.parametrize("path", BY_HAND, ids=lambda path: path.name)
def test_each_block_is_in_the_language_that_it_names(path: Path) -> None:
    for _, language, block in hcl.fenced(path):
        if language not in ELSEWHERE:
            PARSERS[language](block)


# --- recipes -----------------------------------------------------------------------------------------

RECIPES: Final = (
    *("a role", "a route", "a status", "a team setting", "a metadata field"),
    *("a kind of credentials", "a command", "an audit field", "a metric of the watch"),
)


def test_there_is_a_recipe_for_each_common_change() -> None:
    recipes = re.findall(r"^## Add (.+)$", text(page("recipes.md")), re.MULTILINE)

    assert sorted(recipes) == sorted(RECIPES)


# --- names of the repository's own ----------------------------------------------------------------------


def test_every_path_and_every_test_that_a_text_of_the_repository_names_is_there() -> None:
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    printed = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    files = [file for file in printed.split("\0") if (ROOT / file).is_file()]
    tree = {f"/{path}" for file in files for path in (file, *Path(file).parents)}
    folders = "|".join({re.escape(file.partition("/")[0]) for file in files if "/" in file})
    names = (
        rf"`(?:\.?/)?((?:{folders})/[\w./*<>-]*)`",
        r"`([\w./*<>-]+\.(?:py|md|toml|yaml))`",  # the end of a path is enough
        rf"(?<![\w./-])((?:{folders})/[\w./*<>-]+\.(?:py|md|toml|yaml))",
        r"`(test_\w+)`",
    )
    spoken = [file for file in files if file.endswith((".py", ".md", ".yaml", ".toml", "Makefile"))]
    texts = {file: text(ROOT / file) for file in spoken if file != "CHANGELOG.md"}
    tests = set(re.findall(r"def (test_\w+)\(", "\n".join(texts.values())))

    missing = [
        f"{file}: {name}"
        for file, said in texts.items()
        for name in sorted({name for pattern in names for name in re.findall(pattern, said)})
        if name not in tests
        and not fnmatch.filter(tree, "*/" + re.sub("<[^>]*>", "*", name).removeprefix("../").rstrip("/"))
    ]

    assert missing == []

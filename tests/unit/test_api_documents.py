"""The documents of the management API are declared once: function, command and docs/openapi.yaml agree."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from holdfast import names
from holdfast.api import form, v1
from holdfast.api.form import Document
from holdfast.s3.object_metadata import VERSION_FIELDS
from holdfast.s3.objects import HistoryEntry, ObjectVersion
from holdfast.state import operator
from holdfast.state.attribute_diff import Change
from holdfast.state.current_state import parse_metadata
from holdfast.state.cursor import Page
from holdfast.state.find import LONGEST, By, Skipped
from holdfast.state.history import Status, Version
from management import documents
from tests.conftest import GeneratedFile
from tests.support import api_schemas
from tests.support import management as sent

OPENAPI = Path(__file__).parents[2] / "docs" / "openapi.yaml"
BEGIN, END = (
    "# Made from functions/holdfast/api/v1.py by `make generated`.\n",
    "    # The end of what is made.",
)
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.mark.generated
def test_the_schemas_are_made_from_the_documents(generated_file: GeneratedFile) -> None:
    before, _, rest = OPENAPI.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)

    generated_file(OPENAPI, f"{before}{BEGIN}{api_schemas.yaml()}{end}{after}")


def test_a_schema_requires_what_is_always_there_and_nothing_else() -> None:
    schemas = yaml.safe_load(api_schemas.yaml())

    assert schemas["Freeze"]["required"] == ["reason", "id"]
    assert schemas["Freeze"]["properties"]["until"]["type"] == ["string", "null"]
    assert schemas["Restore"]["required"] == ["version", "reason", "id"]
    assert schemas["LockPage"]["properties"]["locks"]["items"]["$ref"].endswith("/ListedLock")
    assert {*schemas["ListedLock"]["required"]} - {*schemas["Lock"]["properties"]} == {"name"}


@pytest.mark.parametrize("kind", api_schemas.documents().values())
def test_each_member_has_a_meaning_and_no_other_is_told_of(kind: type[Document]) -> None:
    assert list(api_schemas.meanings(kind)) == [member.name for member in form.members(kind)]


def test_words_and_limits_are_those_of_the_library() -> None:
    def rules(kind: type[Document], name: str) -> form.Rule:
        [member] = [each for each in form.members(kind) if each.name == name]
        return next(note for note in member.notes if isinstance(note, form.Rule))

    assert tuple(Status) == v1.STATUSES == rules(v1.Version, "status").words
    assert tuple(Change) == rules(v1.ResourceChange, "change").words
    assert tuple(Skipped) == rules(v1.SkippedState, "why").words
    assert (rules(v1.Find, "id").max_length, [*By]) == (LONGEST, form.names(v1.Find)[:3])
    assert rules(v1.Freeze, "reason").max_length == operator.MAX_REASON
    for kind, name in ((v1.Restore, "version"), (v1.Delete, "version"), (v1.Undelete, "marker")):
        rule = rules(kind, name)
        assert (rule.min_length, rule.max_length) == (1, operator.LONGEST_VERSION_ID)


@pytest.mark.parametrize(
    ("kind", "answered"),
    [
        (v1.StateDescription, sent.state(lock=sent.freeze(until="2026-11-20T13:00:00Z"))),
        (
            v1.VersionPage,
            {"name": sent.NAME, "versions": [sent.version("v", 1, "2026-11-20T12:00:00Z")], "next": None},
        ),
        (v1.LockPage, {"locks": [{**sent.lock(), "name": sent.NAME}], "next": "more"}),
    ],
)
def test_an_answer_is_read_and_written_as_it_was(kind: type[Document], answered: dict[str, object]) -> None:
    read = form.read(kind, answered)
    written = form.write(read)

    assert written == answered
    assert [list(written), read.raw] == [list(answered), answered]


def test_a_reader_takes_what_another_version_sends() -> None:
    version = form.read(
        v1.Version,
        {
            "version": "v",
            "status": "of tomorrow",
            "serial": "12",
            "time": "yesterday",
            "lineage": 7,
            "new": [1],
        },
    )

    assert (version.version, version.status, version.serial, version.time) == ("v", "of tomorrow", None, None)
    assert (version.lineage, version.who, version.current) == ("7", None, None)
    assert version.raw["new"] == [1]
    assert form.read(v1.StatePage, {"states": None}).states == ()
    assert form.read(v1.StatePage, {"states": ["x"]}).states[0].name == ""
    assert form.read(v1.LockOfState, []).lock is None
    no_locks: list[object] = [{}, 7, [sent.lock()], "x", True]
    for nothing in no_locks:
        assert form.read(v1.LockOfState, {"lock": nothing}).lock is None


def test_every_metadata_field_of_a_version_is_shown_or_says_why_not() -> None:
    hidden = {name for name, field in VERSION_FIELDS.items() if field.shown_as is None}
    assert all(VERSION_FIELDS[name].hidden_because for name in hidden)
    metadata = {name: "12" if "serial" in name else f"the {name}" for name in VERSION_FIELDS}
    version = ObjectVersion("etag", "v", 1, NOW, metadata, has_own_etag=True)
    entry = HistoryEntry(id="v", last_modified=NOW, size=1, is_delete_marker=False, is_current=True)

    page = documents.history(
        names.parse("a"),
        Page([Version(entry, metadata, parse_metadata(version), Status.ACKNOWLEDGED)], None),
    )

    shown = form.write(page.versions[0])
    for name in VERSION_FIELDS.keys() - hidden:
        assert str(shown[VERSION_FIELDS[name].shown_as or ""]) == metadata[name]

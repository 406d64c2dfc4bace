"""What is read of a state document."""

import json

import pytest

from holdfast.errors import InvalidState, NotAllowed
from holdfast.state import document
from holdfast.state.document import Revision, StateDocument
from tests.support.documents import LINEAGE, encrypted_state, state


def with_field(**fields: object) -> bytes:
    return json.dumps({**json.loads(state(1)), **fields}).encode()


@pytest.mark.parametrize(
    ("body", "read"),
    [
        (state(7), StateDocument(Revision(7, LINEAGE), "1.15.5")),
        (state(0, lineage=""), StateDocument(Revision(0, ""), "1.15.5")),
        (with_field(serial=2**64 - 1), StateDocument(Revision(2**64 - 1, LINEAGE), "1.15.5")),
        (with_field(terraform_version=None), StateDocument(Revision(1, LINEAGE), "")),
        (b'{"version": 4, "serial": 3}', StateDocument(Revision(3, ""), "")),
        (encrypted_state(5, "AAAA"), StateDocument(Revision(5, LINEAGE), "")),
    ],
)
def test_serial_lineage_and_writer_are_read(body: bytes, read: StateDocument) -> None:
    assert document.parse(body) == read


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (b"", "empty"),
        (b"not json", "not a JSON document"),
        (b"[]", "not a JSON object"),
        (b"\xff\xfe", "not a JSON document"),
        (b"{" * 50_000, "not a JSON document"),
        (b"{}", "'version'"),
        (b'{"version": "4", "serial": 1}', "'version'"),
        (b'{"version": 4}', "'serial'"),
        (with_field(serial=None), "'serial'"),
        (with_field(serial="1"), "'serial'"),
        (with_field(serial=-1), "'serial'"),
        (with_field(serial=1.5), "'serial'"),
        (with_field(serial=1.0), "'serial'"),
        (with_field(serial=True), "'serial'"),
        (with_field(serial=2**64), "'serial'"),
        (b'{"version": 4, "serial": ' + b"9" * 5000 + b"}", "not a JSON document"),
        (with_field(lineage=7), "'lineage'"),
        (with_field(lineage="x" * 201), "200 bytes"),
        (with_field(lineage="\ud800"), "Unicode"),
    ],
)
def test_what_is_no_state_is_refused_with_the_rule_that_it_broke(body: bytes, rule: str) -> None:
    with pytest.raises(InvalidState, match=rule):
        document.parse(body)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("a", "a", True), ("a", "b", False), ("", "b", True), ("a", "", True), ("", "", True)],
)
def test_an_empty_lineage_belongs_to_any(one: str, other: str, same: bool) -> None:
    assert Revision(1, one).same_lineage(Revision(9, other)) is same


def test_a_state_is_reduced_to_an_allow_list() -> None:
    whole = with_field(resources=[{"instances": "private"}], check_results=["private"], future="private")
    assert json.loads(document.outputs_only(whole)) == {
        "version": 4,
        "terraform_version": "1.15.5",
        "serial": 1,
        "lineage": LINEAGE,
        "outputs": {"content": {"value": "", "type": "string"}},
    }


def test_an_encrypted_state_cannot_be_reduced() -> None:
    with pytest.raises(NotAllowed, match="encrypted"):
        document.outputs_only(encrypted_state(1, "AAAA"))


@pytest.mark.parametrize("space", ["", " ", "\n\t"])
def test_what_is_kept_of_a_state_keeps_its_text(space: str) -> None:
    number = "123456789.123456789123456789"
    members = [
        '"version":4',
        '"serial":1',
        '"resources":[{"private":"}"}]',
        f'"outputs":{{"n":{{"value":[{number},1e400,"\\u00fc}}"],"type":"dynamic"}}}}',
    ]
    whole = "{" + f"{space},{space}".join(members).replace('":', f'"{space}:{space}') + space + "}"
    reduced = document.outputs_only(whole.encode()).decode()
    assert number in reduced
    assert "1e400" in reduced
    assert '"\\u00fc}"' in reduced
    assert "private" not in reduced
    assert set(json.loads(reduced)) == {"version", "serial", "outputs"}

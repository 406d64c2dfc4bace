"""The fields that are read from a state document."""

import codecs
import gzip
import json
from collections.abc import Callable

import pytest

from holdfast import json_object
from holdfast.errors import InvalidState, NotAllowed
from holdfast.state import document, malformed, tracked
from holdfast.state.document import Mask, Output, Revision, StateDocument
from tests.support.documents import LINEAGE, encrypted_state, state


def with_field(**fields: object) -> bytes:
    return json.dumps({**json.loads(state(1)), **fields}).encode()


@pytest.mark.parametrize("space", [b"", b" " * 2**20], ids=["small", "large"])
@pytest.mark.parametrize(
    ("body", "read"),
    [
        (state(7), StateDocument(Revision(7, LINEAGE), "1.15.5")),
        (state(0, lineage=""), StateDocument(Revision(0, ""), "1.15.5")),
        (with_field(serial=2**64 - 1), StateDocument(Revision(2**64 - 1, LINEAGE), "1.15.5")),
        (with_field(terraform_version=None), StateDocument(Revision(1, LINEAGE), "")),
        (b'{"version": 4, "serial": 3}', StateDocument(Revision(3, ""), "", is_blank=True)),
        (encrypted_state(5, "AAAA"), StateDocument(Revision(5, LINEAGE), "")),
        ('{"version": 4, "serial": 3, "lineage": "größe"}'.encode(), StateDocument(Revision(3, "größe"), "")),
    ],
)
def test_serial_lineage_and_writer_are_read(body: bytes, read: StateDocument, space: bytes) -> None:
    assert document.parse(body + space) == read


@pytest.mark.parametrize("space", [b"", b" " * 2**20], ids=["small", "large"])
@pytest.mark.parametrize(
    ("body", "is_blank"),
    [
        # As `terraform state push .terraform/terraform.tfstate` sends it.
        (with_field(lineage="", outputs={}), True),
        (with_field(lineage="", outputs=None, resources=None), True),
        (with_field(lineage="", outputs={}, check_results=[{"object_kind": "check"}]), True),
        (b'{"version": 3, "serial": 0, "backend": {"type": "http", "config": {}}}', True),
        (b'{"version": 3, "serial": 1, "modules": []}', True),
        (with_field(outputs={}), False),  # after a destroy
        (with_field(lineage=""), False),
        (with_field(lineage="", outputs={}, resources=[{"type": "terraform_data"}]), False),
        (b'{"version": 3, "serial": 1, "modules": [{"resources": {}}]}', False),
        # Of an unknown version every member may be content.
        (b'{"version": 5, "serial": 1, "terraform_version": "9.0.0", "states": []}', True),
        (b'{"version": 0, "serial": 1}', True),
        (b'{"version": 5, "serial": 1, "states": [1]}', False),
        (encrypted_state(1, "AAAA").replace(LINEAGE.encode(), b""), False),
        (with_field(lineage="", outputs={}, encrypted_data="AAAA"), False),
    ],
)
def test_a_document_is_blank_without_lineage_resources_and_outputs(
    body: bytes, space: bytes, is_blank: bool
) -> None:
    assert document.parse(body + space).is_blank is is_blank


def test_an_empty_body_is_no_state() -> None:
    with pytest.raises(InvalidState, match="empty"):
        document.parse(b"")


@pytest.mark.parametrize("space", [b"", b" " * 2**20], ids=["small", "large"])
@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (b"not json", "not a JSON document"),
        (b"[]", "not a JSON object"),
        (b"\xff\xfe", "is UTF-16"),
        (b"{" * 50_000, "not a JSON document"),
        (b"{}", "'version'"),
        (b'{"version": "4", "serial": 1}', "'version'"),
        (b'{"version": 4}', "'serial'"),
        (with_field(serial=None), "'serial'"),
        (with_field(serial="1"), "'serial'"),
        (with_field(serial={"a": 1}), "'serial'"),
        (with_field(version=[4]), "'version'"),
        (with_field(serial=-1), "'serial'"),
        (with_field(serial=1.5), "'serial'"),
        (with_field(serial=1.0), "'serial' is a number with a fraction or an exponent, such as 3.0"),
        (with_field(serial=True), "'serial'"),
        (with_field(serial=2**64), "'serial'"),
        (b'{"version": 4, "serial": ' + b"9" * 5000 + b"}", "not a JSON document"),
        (with_field(lineage=7), "'lineage'"),
        (with_field(lineage=["a"]), "'lineage'"),
        (with_field(lineage="x" * 201), "200 bytes"),
        (with_field(lineage="\ud800"), "Unicode"),
    ],
)
def test_what_is_no_state_is_refused_with_the_rule_that_it_broke(
    body: bytes, rule: str, space: bytes
) -> None:
    with pytest.raises(InvalidState, match=rule):
        document.parse(body + space)


WHOLE = with_field(lineage="größe")


@pytest.mark.parametrize("space", [b"", b" " * 2**20], ids=["small", "large"])
@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"\n", "is empty"),
        (codecs.BOM_UTF8 + WHOLE, "begins with a byte order mark"),
        (WHOLE.decode().encode("utf-16"), "is UTF-16"),
        (WHOLE.decode().encode("utf-16-be"), "is UTF-16"),
        (WHOLE.decode().encode("utf-16-le"), "is UTF-16"),
        (gzip.compress(WHOLE), "is compressed with gzip"),
        (b"\n<!doctype html><html>", "is HTML or XML"),
        (b"\0" * 9, "has only bytes of the value zero"),
        (WHOLE + b"\n<!-- proxied -->", "has more text after its JSON"),
        (WHOLE + WHOLE, "has more text after its JSON"),
        ('{"version": 4, "serial": 1, "lineage": "größe"}'.encode("latin-1"), "is not UTF-8"),
        (b'{"version": 4, "serial": NaN}', "is not a JSON document"),
        (b'{"version": 4, x}', "is not a JSON document"),
        (b'{"version": 4, x} rest', "is not a JSON document"),
    ],
)
def test_what_is_not_json_is_called_what_it_is(body: bytes, said: str, space: bytes) -> None:
    with pytest.raises(InvalidState, match=f"^The body {said}"):
        document.parse(body + space)


def test_a_document_that_was_cut_anywhere_is_called_cut() -> None:
    body = with_field(lineage="größe", check_results=[True, False, None, -1.5e3, "\u00e9\\"])
    for end in range(1, len(body)):
        with pytest.raises(
            InvalidState, match=r"^The body ends in the middle of its JSON; look for the complete"
        ):
            document.parse(body[:end])


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


LONG = "123456789.123456789123456789"
MARKED = f"""{{"version": 4, "serial": 1, "outputs": {{
    "size": {{"value": {LONG}, "type": "number", "sensitive": false}},
    "h\\u0022ö": {{"value": ["s3cr3t"], "type": ["list", "string"], "sensitive": true}},
    "odd": {{"value": "s3cr3t", "type": "string", "sensitive": "no"}},
    "twice": {{"value": "s3cr3t", "sensitive": false, "sensitive": true}}
}}, "resources": [{{"instances": "private"}}]}}""".encode()


@pytest.mark.parametrize(("mask", "size"), [(Mask.SENSITIVE, LONG), (Mask.ALL, "null")])
def test_masked_outputs_have_no_values(mask: Mask, size: str) -> None:
    reduced = document.outputs_only(MARKED, mask)
    assert json.loads(reduced) == {
        "version": 4,
        "serial": 1,
        "outputs": {
            "size": {"value": json.loads(size), "type": "number", "sensitive": False},
            'h"ö': {"value": None, "type": ["list", "string"], "sensitive": True},
            "odd": {"value": None, "type": "string", "sensitive": True},
            "twice": {"value": None, "type": None, "sensitive": True},
        },
    }
    assert f'"value": {size},'.encode() in reduced
    assert json.loads(document.outputs_only(b'{"version": 4, "serial": 1}', mask))["outputs"] == {}


@pytest.mark.parametrize(
    ("body", "tracks"),
    [
        (state(1), False),
        (with_field(resources=[{"type": "terraform_data"}]), True),
        (with_field(resources=[]), False),
        (with_field(resources=None), False),
        (b'{"version": 4, "serial": 1}', False),
        (b'{"version": 3, "serial": 1, "modules": [{"resources": {"a": {}}}]}', True),
        (b'{"version": 3, "serial": 1, "modules": []}', False),
        (b'{"version": 5, "serial": 1, "resources": []}', True),
        (b'{"serial": 1, "resources": []}', True),
        (encrypted_state(1, "AAAA"), True),
        (b"[]", True),
        (with_field(encrypted_data="AAAA"), True),
    ],
)
def test_a_state_tracks_resources_if_it_has_some_or_hides_what_it_has(body: bytes, tracks: bool) -> None:
    assert document.tracks_resources(body) is tracks


def test_outputs_are_those_of_the_document_as_it_writes_them() -> None:
    body = """{"version": 4, "serial": 1, "outputs": {
        "gone": {"value": 0, "type": "number"},
        "long": {"value": 123456789.123456789123456789, "type": "number", "sensitive": false},
        "größe": {"type": ["object", {"a": "string"}], "value": {"a": "\\u00fc}", "b" :\t[ 1e400 ]},
            "sensitive": true},
        "gone": {"value": null, "type": "dynamic", "new": 1}
    }}"""
    assert document.outputs(body.encode()) == {
        "gone": Output("null", '"dynamic"', sensitive=False),
        "long": Output("123456789.123456789123456789", '"number"', sensitive=False),
        "größe": Output('{"a": "\\u00fc}", "b" :\t[ 1e400 ]}', '["object", {"a": "string"}]', sensitive=True),
    }


@pytest.mark.parametrize(
    "body", [with_field(outputs={}), with_field(outputs=None), b'{"version":4,"serial":1}']
)
def test_a_state_without_outputs_has_none(body: bytes) -> None:
    assert document.outputs(body) == {}


def test_the_outputs_of_an_encrypted_state_are_unknown() -> None:
    assert document.outputs(encrypted_state(1, "AAAA")) is None


def test_an_output_without_value_or_type_has_neither() -> None:
    assert document.outputs(with_field(outputs={"a": {}})) == {"a": Output("null", "", sensitive=False)}


@pytest.mark.parametrize("outputs", [["a"], [], "a", "", 0, {"a": 1}, {"a": None}, {"a": []}])
def test_outputs_that_are_none_are_refused(outputs: object) -> None:
    with pytest.raises(InvalidState, match="'outputs'"):
        document.outputs(with_field(outputs=outputs))


@pytest.mark.parametrize(
    ("version", "advice"), [(1, True), (2, True), (3, True), (5, False), (0, False), (10**9, False)]
)
def test_another_version_of_the_format_is_never_read_as_one_without_content(
    version: int, advice: bool
) -> None:
    old = {"version": version, "serial": 7, "lineage": LINEAGE, "modules": [{"outputs": {"url": {}}}]}
    for more in ({}, {"outputs": {"url": {}}, "resources": []}):
        body = json.dumps({**old, **more}).encode()
        assert document.parse(body).revision == Revision(7, LINEAGE)
        found = document.summary(body)
        assert (found.is_encrypted, found.counts) == (False, None)
        for read in (document.outputs, document.outputs_only, tracked.outline, tracked.objects):
            with pytest.raises(InvalidState, match="can read only version 4") as refused:
                read(body)
            assert ("Terraform 0.12 or later" in refused.value.message) is advice
        for mask in Mask:
            with pytest.raises(InvalidState, match="can read only version 4"):
                document.outputs_only(body, mask)


@pytest.mark.parametrize("read", [document.outputs, document.outputs_only])
def test_nothing_is_read_of_what_is_no_state(read: Callable[[bytes], object]) -> None:
    for body, rule in ((b"[]", "not a JSON object"), (b'{"version": 4}', "'serial'")):
        with pytest.raises(InvalidState, match=rule):
            read(body)


def test_a_body_of_too_many_members_is_refused_without_a_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(malformed, "described", lambda *_: pytest.fail("it parses the body again"))
    many = ",".join(f'"x{number}": 1' for number in range(json_object.MOST_MEMBERS + 1))
    with pytest.raises(InvalidState, match="The body has more than 50,000 members"):
        document.summary(f'{{"version": 4, "serial": 1, {many}}}'.encode())

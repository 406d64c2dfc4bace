"""The lock info document: valid documents, and the fields that a client receives."""

import json
from datetime import UTC, datetime

import pytest

from holdfast.errors import InvalidLockInfo, TooLarge
from holdfast.state import lock_info
from tests.support.documents import lock_info as document
from tests.support.documents import only_id

PATH = "bucket/states/a.tfstate.tflock"
CREATED = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (b"", "is empty"),
        (b"not json", "not a JSON document"),
        (b"[]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b"{}", "no ID"),
        (b'{"ID": ""}', "no ID"),
        (b'{"ID": 7}', "no ID"),
        (b'{"id": "lower case"}', "no ID"),
        (b'{"ID": NaN}', "not a JSON document"),
        (b'{"ID": "a"} {"ID": "b"}', "not a JSON document"),
        (b"\xef\xbb\xbf" + b'{"ID": "a"}', "not a JSON document"),
        ('{"ID": "a"}'.encode("utf-16"), "not a JSON document"),
        (b'{"ID": "\\ud800"}', "only be Unicode"),
        (b'{"ID": "a", "\\ud800": 1}', "only be Unicode"),
        (b'{"ID": "a", "x": 1e999}', "finite"),
        (b'{"ID": "a", "x": {}}', "lists are not allowed"),
        (b'{"ID": "a", "x": ' + b"[" * 990 + b"]" * 990 + b"}", "lists are not allowed|nested too deeply"),
        (b"[" * 50_000, "nested too deeply"),
        (b'{"ID": ' + b"9" * 5000 + b"}", "not a JSON document"),
        (json.dumps({"ID": "x" * 201}).encode(), "longer than 200"),
        (json.dumps({"ID": "ü" * 34}).encode(), "longer than 200"),
    ],
)
def test_what_is_no_lock_info_is_refused_with_the_rule_that_it_broke(body: bytes, rule: str) -> None:
    with pytest.raises(InvalidLockInfo, match=rule):
        lock_info.parse(body)


def test_a_lock_info_of_a_megabyte_is_too_large() -> None:
    with pytest.raises(TooLarge, match="65536"):
        lock_info.parse(json.dumps({"ID": "a", "Info": "x" * 1_000_000}).encode())


def test_an_empty_path_is_filled_and_another_one_kept() -> None:
    assert lock_info.parse(document("a")).at(PATH).document["Path"] == PATH
    assert lock_info.parse(b'{"ID": "a"}').at(PATH).document["Path"] == PATH
    assert lock_info.parse(b'{"ID": "a", "Path": "mine"}').at(PATH).document["Path"] == "mine"


def test_fields_that_we_do_not_know_are_kept() -> None:
    body = b'{"ID": "a", "Path": "p", "Extra": 1.5, "\xc3\xbc": null}'
    assert json.loads(lock_info.parse(body).to_json()) == json.loads(body)


@pytest.mark.parametrize(
    ("body", "only"),
    [
        (only_id("a"), True),
        (b'{"ID": "a"}', True),
        (document("a"), False),
        (b'{"ID": "a", "Who": "b"}', False),
    ],
)
def test_a_document_that_only_names_its_id_is_told_from_a_whole_one(body: bytes, only: bool) -> None:
    assert lock_info.parse(body).names_only_its_id is only


@pytest.mark.parametrize(
    ("body", "lock_id", "names"),
    [
        (b"", None, None),
        (b"", "a", b'{"ID": "a"}'),
        (b"", 'ü"\\', '{"ID": "ü\\"\\\\"}'.encode()),
        (only_id("a"), None, only_id("a")),
        (only_id("a"), "a", only_id("a")),
        (document("a"), None, document("a")),
        (document("a"), "a", document("a")),
    ],
)
def test_a_release_names_its_lock_in_the_body_or_in_the_query(
    body: bytes, lock_id: str | None, names: bytes | None
) -> None:
    wanted = None if names is None else lock_info.parse(names)
    assert lock_info.of_release(body, lock_id) == wanted


@pytest.mark.parametrize(
    ("body", "lock_id", "rule"),
    [
        (b"", "", "no ID"),
        (b"", "x" * 201, "longer than 200"),
        (document("a"), "b", "the lock info in the body have different IDs"),
        (document("a"), "", "the lock info in the body have different IDs"),
        (only_id("a"), "A", "the lock info in the body have different IDs"),
        (b"{}", "a", "no ID"),
        (b" ", "a", "not a JSON document"),
    ],
)
def test_a_release_that_names_two_locks_or_an_invalid_one_is_refused(
    body: bytes, lock_id: str, rule: str
) -> None:
    with pytest.raises(InvalidLockInfo, match=rule):
        lock_info.of_release(body, lock_id)


def test_a_client_gets_the_seven_fields_that_it_parses_and_nothing_else() -> None:
    whole = lock_info.read_stored(document("a"), path=PATH, created=CREATED).for_client()
    assert whole == json.loads(document("a"))


@pytest.mark.parametrize(
    "created",
    ["yesterday", 7, None, "2026-11-20", "20261120T100000Z", "2026-13-01T00:00:00Z", "2026-11-20T10:00:00"],
)
def test_a_time_that_go_cannot_parse_becomes_the_zero_time(created: object) -> None:
    body = json.dumps({"ID": "a", "Created": created, "Who": ["a"], "Info": 3, "x": [{}]}).encode()
    shown = lock_info.read_stored(body, path=PATH, created=CREATED).for_client()
    assert shown == {
        "ID": "a",
        "Operation": "",
        "Info": "",
        "Who": "",
        "Version": "",
        "Created": "0001-01-01T00:00:00Z",
        "Path": "",
    }


@pytest.mark.parametrize("body", [b"", b"\xff", b"[]", b'{"ID": 3}', b"x" * 100_000])
def test_a_lock_object_that_is_no_lock_info_gets_one_that_says_so(body: bytes) -> None:
    made_up = lock_info.read_stored(body, path=PATH, created=CREATED)
    assert made_up.id == lock_info.read_stored(body, path=PATH, created=CREATED).id
    assert made_up.id.startswith("unreadable-")
    shown = made_up.for_client()
    assert PATH in shown["Info"]
    assert shown["Created"] == "2026-11-20T10:00:00Z"
    assert made_up.id != lock_info.read_stored(b"other", path=PATH, created=CREATED).id

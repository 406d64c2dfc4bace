"""The JSON documents that requests carry: what refuses each of them, and that one pass decides."""

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from cloud import documents
from gateway.function import Function
from holdfast import json_object
from holdfast.errors import HoldfastError
from holdfast.identity import sessions
from holdfast.s3.budget import Budget
from holdfast.state import lock_info
from management.requests import Request
from tests.support.documents import lock_info as lock_document
from tests.support.events import manage_request
from tests.support.work import policy

_NOT_JSON: Final = "is not a JSON document"
_TOO_DEEP: Final = "is nested too deeply"
_NO_OBJECT: Final = "is not a JSON object"
_TWICE: Final = "has a member twice"
_HALF: Final = "has half of a surrogate pair, which is not valid Unicode"
_FLAT: Final = (
    "The values of the lock info may only be Unicode text, finite numbers, true, false and null; objects and "
    "lists are not allowed."
)
_NO_ID: Final = "The lock info has no ID; send a JSON object with a string in 'ID'."
_NO_DATA: Final = "The document has no 'data', so it is not a JSON:API document."

REFUSED: Final[Mapping[bytes, str]] = {
    b" ": _NOT_JSON,
    b"{": _NOT_JSON,
    b'{"a":1} {}': _NOT_JSON,
    b'{"a":1,}': _NOT_JSON,
    b'{"a":NaN}': _NOT_JSON,
    b'{"a":{"b":-Infinity}}': _NOT_JSON,
    b'{"a":"\n"}': _NOT_JSON,
    b'{"a":"\\u00"}': _NOT_JSON,
    b'{"a":"\xff"}': _NOT_JSON,
    b'{"a":"\xed\xa0\x80"}': _NOT_JSON,
    b'\xef\xbb\xbf{"a":1}': _NOT_JSON,
    '{"a":1}'.encode("utf-16"): _NOT_JSON,
    b'{"a":' + b"9" * 5000 + b"}": _NOT_JSON,
    b"[" * 30_000: _TOO_DEEP,
    b'{"a":' * 10_000: _TOO_DEEP,
    b'{"a":1,"a":2,': _NOT_JSON,
    b'{"a":1,"a":NaN}': _NOT_JSON,
    b'{"a":"\\ud800","b":': _NOT_JSON,
    b"[]": _NO_OBJECT,
    b"null": _NO_OBJECT,
    b'"\\ud800"': _NO_OBJECT,
    b'[{"a":1,"a":2}]': _NO_OBJECT,
    b'{"a":1,"a":2}': _TWICE,
    b'{"\\u0061":1,"a":2}': _TWICE,
    b'{"b":[{"a":1,"a":2}]}': _TWICE,
    b'{"a":"\\ud800","a":2}': _TWICE,
    b'{"a":"\\ud800"}': _HALF,
    b'{"a":"\\uDFFF"}': _HALF,
    b'{"a":"\\uDbfF"}': _HALF,
    b'{"\\ud800":1}': _HALF,
    b'{"a":{"\\udc00":1}}': _HALF,
    b'{"a":[[{"b":["\\udfff"]}]]}': _HALF,
    b'{"a":"\\ude00\\ud83d"}': _HALF,
    b'{"a":"\\ud83d\\ude00\\ud83d"}': _HALF,
    b'{"a":"\\ud83d","b":"\\ude00"}': _HALF,
    b'{"a":"\\\\\\ud800"}': _HALF,
}
"""Why each document is refused by a reader that takes no member twice."""

TAKEN: Final = (
    b'{"a":"\\ud83d\\ude00"}',
    b'{"a":"\\\\ud800"}',
    b'{"\\ud7ff":"\\ue000\\u0000"}',
    '{"ü":"😀"}'.encode(),
)
"""Documents that resemble refused ones."""


_TAG: Final = b'{"type": "tag-bindings", "attributes": {"key": "a", "value": "b"}}'
_VERSION: Final = b'{"type": "state-versions", "attributes": {"serial": 1, "lineage": "l", "md5": "%b"}}' % (
    b"0" * 32
)


def _to_management(event: Mapping[str, Any]) -> Request:
    return Request(event, Function(None, "states", "1", policy(), None), Budget(0))


def _of_management(body: bytes) -> object:
    event = manage_request("POST", "restore/a", body=base64.b64encode(body).decode(), is_base64=True)
    return _to_management(event).document("a")


def _why(read: Callable[[bytes], object], body: bytes) -> str:
    with pytest.raises(HoldfastError) as refused:
        read(body)
    return refused.value.message


@pytest.mark.parametrize(("body", "reason"), REFUSED.items())
def test_a_document_is_refused_with_the_rule_that_it_broke(body: bytes, reason: str) -> None:
    assert _why(_of_management, body) == f"The body {reason}. Send a JSON object."
    seconds = f'The body of the request {reason}. Send no body, or {{"seconds": {sessions.DEFAULT_SECONDS}}}.'
    assert _why(sessions.seconds, body) == seconds


@pytest.mark.parametrize(("body", "reason"), REFUSED.items())
def test_where_a_member_may_come_twice_the_other_rules_hold(body: bytes, reason: str) -> None:
    reason = "" if reason is _TWICE else reason
    of_lock = f"The lock info {reason}. Send the JSON object that Terraform sends, with an ID."
    of_cloud = f"The body {reason}. Send a JSON:API document."
    if reason == _HALF:
        of_lock = _FLAT
    if not reason:
        of_lock = _FLAT if b"[" in body else _NO_ID
        of_cloud = _NO_DATA
    assert _why(lock_info.parse, body) == of_lock
    for read in (documents.received_bindings, documents.new_version):
        assert _why(read, body) == of_cloud


@pytest.mark.parametrize("body", TAKEN)
def test_a_text_that_only_resembles_half_of_a_pair_is_taken(body: bytes) -> None:
    assert json_object.parse_unique(body) == json.loads(body)
    assert _why(lock_info.parse, body) == _NO_ID
    assert _why(documents.new_version, body) == _NO_DATA


@pytest.mark.parametrize(
    ("read", "body"),
    [
        (lock_info.parse, lock_document("one", who="größe")),
        (_of_management, '{"a": ["größe", {"b": "c"}]}'.encode()),
        (sessions.seconds, b'{"seconds": 900}'),
        (documents.received_bindings, b'{"data": [%b, %b]}' % (_TAG, _TAG)),
        (documents.new_version, b'{"data": %b}' % _VERSION),
    ],
)
def test_a_document_is_read_once_and_none_of_its_texts_is_read_again(
    read: Callable[[bytes], object], body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[str] = []

    def counted(name: str, of: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: Any, **more: Any) -> object:
            passes.append(name)
            return of(*arguments, **more)

        return call

    monkeypatch.setattr(json, "loads", counted("loads", json.loads))
    monkeypatch.setattr(json_object, "is_unicode", counted("is_unicode", json_object.is_unicode))
    read(body)
    assert passes == ["loads"]


def test_the_texts_of_a_query_are_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    event = manage_request("GET", "versions/a", query={"cursor": "größe"})
    request = _to_management(event)
    checked: list[object] = []
    monkeypatch.setattr(json_object, "check_unicode", checked.append)
    assert (request.query, request.parameters) == ({"cursor": "größe"}, {"cursor": "größe"})
    request.check_query(["cursor"])
    assert checked == [{"cursor": "größe"}]

"""The reader of a JSON object's members keeps no content, and agrees with a parser that keeps everything."""

import json
import re
import tracemalloc
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast import json_object

_NAMES = st.sampled_from(["serial", "lineage", "größe", "a", '"', "\\", "😀", "\ud800", ""]) | st.text(
    max_size=4
)
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(), max_size=8)
)
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3)
)
_SPACES = st.sampled_from(["", " ", "\n\t\r "])


@st.composite
def _objects(draw: st.DrawFn) -> bytes:
    """A JSON object in which a name can come twice, written as different clients write."""
    space, plain = draw(_SPACES), draw(st.booleans())
    separators = (f"{space},{space}", f"{space}:{space}")
    written = [
        json.dumps({name: value}, ensure_ascii=plain, separators=separators)[1:-1]
        for name, value in draw(st.lists(st.tuples(_NAMES, _VALUES), max_size=5))
    ]
    text = space + "{" + space + separators[0].join(written) + space + "}" + space
    return text.encode(errors="replace")


@st.composite
def _spoiled(draw: st.DrawFn) -> bytes:
    """The same with a byte added, removed or replaced; most results are not JSON."""
    body = draw(_objects())
    at, cut = draw(st.integers(0, len(body))), draw(st.integers(0, 2))
    byte = bytes([draw(st.sampled_from([*b'{}[],:"\\/tn0-.e \x00\x0b\x80\xc3\xff']))])
    return body[:at] + byte + body[at + cut :]


def _outcome(read: Callable[[bytes], Mapping[str, Any]], body: bytes) -> Mapping[str, Any] | str:
    try:
        return read(body)
    except ValueError as error:
        return str(error)


def _whole(body: bytes) -> Mapping[str, Any]:
    return {name: json.loads(member.written(body)) for name, member in json_object.members(body).items()}


def _unique(body: bytes) -> Mapping[str, Any]:
    """Read the body once for each rule."""
    document = json_object.parse(body)
    is_repeated: list[bool] = []
    json.loads(body, object_pairs_hook=lambda pairs: is_repeated.append(len(dict(pairs)) < len(pairs)))
    if any(is_repeated):
        raise ValueError("has a member twice")
    json_object.check_unicode(document)
    return document


def _value(value: object) -> object:
    return bool(value) if isinstance(value, list | dict) else value


@settings(deadline=None)
@given(_objects() | _spoiled())
@example(b"")
@example(b" ")
@example(b"[1]")
@example(b'"text"')
@example(b"[1")
@example(b"{}{}")
@example(b"{} ]")
@example(b'{"a":1,}')
@example(b'{,"a":1}')
@example(b'{"a":1 "b":2}')
@example(b'{"a" 1}')
@example(b'{"a":}')
@example(b'{"a":1')
@example(b"{a:1}")
@example(b"{1:1}")
@example(b'{"a":NaN}')
@example(b'{"a":[-Infinity]}')
@example(b'{"a":{"b":NaN}}')
@example(b'{"a":"\n"}')
@example(b'{"a":"\\x"}')
@example(b'{"a":"\xff"}')
@example(b'{"a":"\xc3"}')
@example(b'{"a":"\xed\xa0\x80"}')
@example(b'\xef\xbb\xbf{"a":1}')
@example('{"a":1}'.encode("utf-16"))
@example(b'{"a":1}\x00')
@example('{"a":1}\u00a0'.encode())
@example(b'{"a":1,"a":{}}')
@example(b'{"\\u0061":1,"a":2}')
@example('{"\\u00fc":"\\u00fc","ü":"ü\\u00fc"}'.encode())
@example(b'{"a":"\\ud800","\\udc00":"\\ud83d\\ude00"}')
@example(b'{"a":' + b"9" * 5000 + b"}")
@example(b'{"a":{"b":' + b"9" * 5000 + b"}}")
@example(b'{"a":1e400,"b":-0,"c":0.1234567890123456789}')
@example(b"{" * 50_000)
@example(b'{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}")
def test_members_are_those_that_a_whole_parse_finds_or_it_is_refused_alike(body: bytes) -> None:
    parsed = _outcome(json_object.parse, body)
    assert _outcome(_whole, body) == parsed
    assert _outcome(json_object.parse_unique, body) == _outcome(_unique, body)
    if not isinstance(parsed, str):
        values = {name: member.value for name, member in json_object.members(body).items()}
        expected = {name: _value(value) for name, value in parsed.items()}
        assert values == expected
        assert [type(value) for value in values.values()] == [type(value) for value in expected.values()]


def test_a_text_that_lies_across_two_pieces_of_a_long_document_is_read() -> None:
    body = '{"a":"' + "😀" * 300_000 + '"}'
    for shift in range(4):
        assert json_object.members(f"{' ' * shift}{body}".encode())["a"].value == "😀" * 300_000
    with pytest.raises(ValueError, match="not a JSON document"):
        json_object.members(body.encode()[:-3])


def test_what_is_in_a_document_is_not_held() -> None:
    resource = {"name": "größe 😀", "instances": [{"attributes": {"id": "x" * 50, "tags": {"a": "b"}}}]}
    body = json.dumps({"resources": [resource] * 10_000}, ensure_ascii=False, indent=2).encode()
    tracemalloc.start()
    try:
        assert json_object.members(body)["resources"].value is True
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1.5 * len(body)  # the body itself was there before


@pytest.mark.parametrize(
    "body",
    [b'{"a": "\\ud800"}', b'{"\\ude00": 1}', b'{"a": [{"b": ["\\udfff"]}]}', b'{"a": "\\ude00\\ud83d"}'],
)
def test_half_of_a_surrogate_pair_is_refused_in_a_request(body: bytes) -> None:
    with pytest.raises(ValueError, match="surrogate"):
        json_object.parse_unique(body)
    assert json_object.parse_unique(b'{"a": "\\ud83d\\ude00"}') == {"a": "\U0001f600"}


# --- how much a document holds ---------------------------------------------------------------------

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[,\[{]', re.DOTALL)


@given(_objects())
@example(rb'{"\\": "\\\"[,{", "\"": ["\\\\", [","], {}]}')
@pytest.mark.parametrize("piece", [1, 3, 64])
def test_commas_and_brackets_in_texts_are_no_values_wherever_a_piece_ends(piece: int, body: bytes) -> None:
    tokens = [token for token in _TOKEN.findall(body) if not token.startswith(b'"')]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_object, "_PIECE", piece)

        assert json_object.count_values(body, -1) == len(tokens)
        assert json_object.count_values(body, len(body)) >= len(tokens)


def _with(value: bytes) -> bytes:
    return b'{"a": [' + b",".join([value] * (json_object.ARRAYS_FROM // (len(value) + 1) + 1)) + b"]}"


@pytest.mark.parametrize("levels", [1, 2, 5, 50, 400])
def test_arrays_that_take_many_times_their_bytes_are_refused_at_any_depth_before_they_are_parsed(
    levels: int,
) -> None:
    body = _with(b"[" * levels + b"]" * levels)

    tracemalloc.start()
    with pytest.raises(ValueError, match="Above 8 MB, a body may have at most one array for each 16 bytes"):
        json_object.check_arrays(body)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * len(body)


@pytest.mark.parametrize(
    "value",
    [
        b"\n              []",  # the shortest among the attributes of an instance
        b'"[[[[[[[[[[[[[[[["',
        rb'"\"[[[[[[[[[[[[[["',
        b'{"a": [{"a": ["a text"]}], "b": "another text"}',
        b'{"a":{"a":{"a":{}}}}',
    ],
)
def test_an_indented_document_and_one_of_texts_and_objects_may_have_any_size(value: bytes) -> None:
    json_object.check_arrays(_with(value))


def test_a_small_document_may_have_any_number_of_arrays() -> None:
    json_object.check_arrays(_with(b"[]")[: json_object.ARRAYS_FROM])


def test_an_object_with_too_many_members_is_refused_while_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_object, "MOST_MEMBERS", 3)
    assert len(json_object.members(b'{"a":1,"b":1,"c":{"d":1,"e":1,"f":1,"g":1},"c":1}')) == 3
    with pytest.raises(ValueError, match="has more than 3 members"):
        json_object.members(b'{"a":1,"b":1,"c":1,"d":1, and no JSON')


def test_what_is_nested_too_deeply_is_called_so() -> None:
    for read in (json_object.parse, json_object.members):
        with pytest.raises(ValueError, match="is nested too deeply"):
            read(b'{"a": ' + b"[" * 1_000_000)

"""Bodies within and beyond what the platform carries."""

import base64
import gzip
import json
import random
import zlib
from typing import ClassVar

import pytest

from benchmarks.state import state
from gateway import payload
from holdfast.errors import TooLarge

BESIDE_BODY = 2048  # bytes of an answer that its body may not take
RANDOM = random.Random(7)  # noqa: S311 bytes that do not compress
COMPRESSOBJ = zlib.compressobj
NOISE = base64.b64encode(RANDOM.randbytes(5_000_000))


def answer_size(carried: payload.Payload) -> int:
    """Bytes of a function's answer as Lambda counts them, in its longest form as JSON."""
    headers = {"Content-Type": "application/json", "Cache-Control": "no-store", **carried.headers}
    return len(
        json.dumps(
            {
                "statusCode": 200,
                "headers": headers,
                "body": carried.text,
                "isBase64Encoded": carried.is_base64,
            }
        )
    )


def body_of(carried: payload.Payload) -> bytes:
    body = payload.decode(carried.text, is_base64=carried.is_base64)
    return gzip.decompress(body) if carried.headers.get("Content-Encoding") == "gzip" else body


@pytest.mark.parametrize("accepts_gzip", [True, False])
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"{}", id="small"),
        pytest.param(b'{"a": "\\n"}' * 100_000, id="quotation grows it"),
        pytest.param("ü\u2028".encode() * 400_000, id="not ASCII"),
        pytest.param(b"\xff\x00" * 2_000_000, id="no text"),
        pytest.param(NOISE[:6_000_000], id="does not compress"),
        pytest.param(b'"' * 4_700_000, id="every byte is quoted"),
    ],
)
def test_what_is_accepted_comes_back_byte_for_byte_within_the_limit(body: bytes, accepts_gzip: bool) -> None:
    payload.require_room(body)
    carried = payload.encode(body, accepts_gzip=accepts_gzip)
    assert body_of(carried) == body
    assert answer_size(carried) <= payload.MAX_BYTES


@pytest.mark.parametrize("body", [NOISE[:6_290_000], b'"' * 4_800_000, b"\xff" * 4_800_000])
def test_what_is_too_large_for_some_client_is_refused(body: bytes) -> None:
    cloud = r"use a \"cloud\" block, which needs a state name of two or more segments"
    with pytest.raises(TooLarge, match=rf"Nothing was written\. To store larger states, {cloud}"):
        payload.require_room(body)
    with pytest.raises(TooLarge, match=cloud):
        payload.encode(body, accepts_gzip=False)


@pytest.mark.parametrize(
    "character", [*'a"\\/\n\r\t\b\f\x00\x1f\x7f', "\x80", "ü", "\uffff", "\U0001f600", "\U0010ffff"]
)
def test_what_a_client_without_gzip_can_read_is_measured_to_the_byte(character: str) -> None:
    text = character * 1000
    room = payload.MAX_BYTES - BESIDE_BODY - len(json.dumps(text))
    body = text.encode() + b"a" * room
    payload.require_room(body)
    assert payload.encode(body, accepts_gzip=False) == payload.Payload(body.decode(), is_base64=False)
    with pytest.raises(TooLarge):
        payload.require_room(body + b"a")


def test_half_a_character_before_one_that_json_does_not_change_is_no_text() -> None:
    payload.require_room(b"a" * 4_800_000 + b"\xc3\xbc")
    with pytest.raises(TooLarge):
        payload.require_room(b"\xc3" + b"a" * 4_800_000 + b"\xbc")


def test_a_state_that_another_program_made_too_large_is_still_read_by_who_accepts_gzip() -> None:
    body = b'{"a": "b"}' * 1_000_000
    assert body_of(payload.encode(body, accepts_gzip=True)) == body
    with pytest.raises(TooLarge, match="holdfast state get"):
        payload.encode(body, accepts_gzip=False)


@pytest.mark.parametrize(("text", "is_base64"), [("a", True), ("ü", True), ("a===", True), ("\ud800", False)])
def test_a_body_that_is_not_what_it_says_is_an_error(text: str, is_base64: bool) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 any of them: the handler answers 400
        payload.decode(text, is_base64=is_base64)


class Compressor:
    """A compressor that records its level, and how many bytes it was fed."""

    used: ClassVar[list["Compressor"]] = []

    def __init__(self, level: int, *, wbits: int) -> None:
        self.level, self.fed = level, 0
        self.compressor = COMPRESSOBJ(level, wbits=wbits)
        self.used.append(self)

    def compress(self, piece: bytes) -> bytes:
        self.fed += len(piece)
        return self.compressor.compress(piece)

    def flush(self) -> bytes:
        return self.compressor.flush()


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[Compressor]:
    """Return the compressors that the code creates from now on, in order."""
    monkeypatch.setattr(zlib, "compressobj", Compressor)
    monkeypatch.setattr(Compressor, "used", [])
    return Compressor.used


def test_what_does_not_fit_is_not_compressed_to_its_end(used: list[Compressor]) -> None:
    with pytest.raises(TooLarge):
        payload.encode(NOISE * 8, accepts_gzip=True)
    assert [compressor.level for compressor in used] == [3, 4]
    assert all(0 < compressor.fed < len(NOISE) * 2 for compressor in used)


@pytest.mark.parametrize("megabytes", [0.1, 5])
def test_a_state_is_compressed_once_at_the_fast_level(used: list[Compressor], megabytes: float) -> None:
    body = state(1, round(megabytes * 1_000_000))
    assert body_of(payload.encode(body, accepts_gzip=True)) == body
    assert [compressor.level for compressor in used] == [3]


def test_a_state_that_fits_only_with_more_compression_gets_more(
    used: list[Compressor], monkeypatch: pytest.MonkeyPatch
) -> None:
    body = state(1, 1_000_000)
    largest = base64.b64encode(gzip.compress(body, 4))
    monkeypatch.setattr(payload, "MAX_BYTES", len(largest) + BESIDE_BODY)
    assert body_of(payload.encode(body, accepts_gzip=True)) == body
    assert [compressor.level for compressor in used] == [3, 4]

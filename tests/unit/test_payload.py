"""Bodies within and beyond what the platform carries."""

import base64
import gzip
import json
import random
import zlib

import pytest

from gateway import payload
from holdfast.errors import TooLarge

RANDOM = random.Random(7)  # noqa: S311 bytes that do not compress
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
    with pytest.raises(TooLarge, match=r"Nothing was written\. A \"cloud\" block .* two segments or more"):
        payload.require_room(body)
    with pytest.raises(TooLarge, match=r"A \"cloud\" block .* two segments or more"):
        payload.encode(body, accepts_gzip=False)


def test_a_state_that_another_program_made_too_large_is_still_read_by_who_accepts_gzip() -> None:
    body = b'{"a": "b"}' * 1_000_000
    assert body_of(payload.encode(body, accepts_gzip=True)) == body
    with pytest.raises(TooLarge, match="from the bucket"):
        payload.encode(body, accepts_gzip=False)


@pytest.mark.parametrize(("text", "is_base64"), [("a", True), ("ü", True), ("a===", True), ("\ud800", False)])
def test_a_body_that_is_not_what_it_says_is_an_error(text: str, is_base64: bool) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 any of them: the handler answers 400
        payload.decode(text, is_base64=is_base64)


def test_what_does_not_fit_is_not_compressed_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    fed: list[int] = []
    compressobj = zlib.compressobj

    class Counting:
        def __init__(self, level: int, *, wbits: int) -> None:
            self.compressor = compressobj(level, wbits=wbits)

        def compress(self, piece: bytes) -> bytes:
            fed.append(len(piece))
            return self.compressor.compress(piece)

        def flush(self) -> bytes:
            return self.compressor.flush()

    monkeypatch.setattr(zlib, "compressobj", Counting)
    with pytest.raises(TooLarge):
        payload.encode(NOISE * 8, accepts_gzip=True)
    assert 0 < sum(fed) < len(NOISE) * 2

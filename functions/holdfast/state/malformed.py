"""Say what a body is that is not a JSON object, such as a sign-in page or half a state document."""

import codecs
import json
from typing import Final

from holdfast import json_object

_GZIP: Final = b"\x1f\x8b"
_ESCAPE: Final = len(r"\u123")
"""The most characters before the end at which the parser stops, if the end is missing."""
_EARLIER: Final = "look for the complete state document, for example in an earlier version"
_JSON: Final = json.JSONDecoder(object_pairs_hook=bool)
"""Replaces a nested object by whether it has members, so that its content is not kept."""


def described(body: bytes, reason: str) -> str:
    """Return what a body is and what to do, as the end of a sentence that begins with "The body".

    The text has nothing of the content.

    Args:
        reason: why `json_object` rejects the body, for a body that is nothing known.

    >>> described(b"<html>", "is not a JSON document")
    'is HTML or XML, such as a sign-in page; check the source of the body and the credentials'
    """
    start = body[:64].lstrip()
    if not start and not body.strip():
        return "is empty; it must be a state document"
    if body.startswith(codecs.BOM_UTF8):
        return "begins with a byte order mark (BOM); remove these three bytes"
    if body.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):  # the first begins as that of UTF-16
        return "is UTF-32; convert it to UTF-8 without a byte order mark"
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or body[:2] in (b"{\0", b"\0{"):
        return "is UTF-16; convert it to UTF-8 without a byte order mark"
    if body.startswith(_GZIP):
        return "is compressed with gzip; decompress it"
    if start.startswith(b"<"):
        return "is HTML or XML, such as a sign-in page; check the source of the body and the credentials"
    if not body.strip(b"\0 \t\r\n"):
        return f"has only bytes of the value zero, as a file may have after a crash; {_EARLIER}"
    return (start.startswith(b"{") and _of_object(body)) or f"{reason}; it must be a state document"


def _of_object(body: bytes) -> str:
    """Describe a body that begins as a JSON object; return '' if it is broken in another way."""
    text = body.decode("latin-1").strip()  # JSON's own characters are ASCII
    try:
        end = _JSON.raw_decode(text)[1]
    except json.JSONDecodeError as error:
        rest = len(text) - error.pos
        is_cut = rest <= 0 or (rest <= _ESCAPE and not text.endswith("}"))
        if is_cut or error.msg.startswith("Unterminated string"):
            return f"ends in the middle of its JSON; {_EARLIER}"
        return ""
    except (ValueError, RecursionError):  # a number of thousands of digits; too deep
        return ""
    if end < len(text):
        return "has more text after its JSON; remove that text"
    return "" if json_object.is_utf8(body) else "is not UTF-8; convert it to UTF-8"

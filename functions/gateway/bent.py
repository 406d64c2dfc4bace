"""Refuse requests that a wrong method, a redirect or a proxy has turned into another request.

A client takes the response for the response to its own request, so these requests must never succeed.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

from gateway.headers import CONTENT_MD5
from holdfast.errors import BentRequest, InvalidRequest

_LOCK_ID: Final = "ID"
_DO: Final = "Nothing was changed. Print the backend block again with 'holdfast backend-config'"


def check_read(headers: Mapping[str, str]) -> None:
    """Raise `BentRequest` if a read has the checksum of a body.

    Go's HTTP client follows a redirect with status 301, 302 or 303 by a GET. It drops the body, and keeps the
    query and `Content-MD5`. It drops or keeps `Content-Type`, which scripts send with a read.
    """
    if any(name in headers for name in CONTENT_MD5):
        raise BentRequest(
            "This read has a Content-MD5 header, which belongs to a request with a body. Either a redirect "
            "has turned a write, or a request to acquire or release a lock, into a read, or the backend "
            f"block sets a method to GET. {_DO}, and use an address that does not redirect."
        )


def check_redirected(headers: Mapping[str, str]) -> None:
    """Raise `BentRequest` if a read came by a redirect and has the type of a body.

    Clients of `cloud {}` send `Content-Type` with every verb but GET, and no checksum. Scripts may send it
    with a read, too. Only a redirect makes Go's HTTP client add `Referer`. Where Go drops `Content-Type` with
    the body, nothing distinguishes the read from others.
    """
    if "referer" in headers and "content-type" in headers:
        raise BentRequest(
            "A redirect has turned a change into this read. Nothing was changed. Use a hostname that does "
            "not redirect."
        )


def check_delete(headers: Mapping[str, str], body: str) -> None:
    """Raise `BentRequest` unless a delete of a state has no body and no header of a body.

    With the method DELETE at the address of the state, Terraform sends the release of a lock here. Its
    force-unlock has an empty body, and still `Content-Type` and `Content-MD5`.
    """
    length = headers.get("content-length", "").strip()
    if body or length not in ("", "0") or any(name in headers for name in ("content-type", *CONTENT_MD5)):
        raise BentRequest(
            "The delete of a state has no body, no Content-Type and no Content-MD5. This request looks like "
            "the release of a lock, or like a write. The backend block probably sets a method to DELETE with "
            f"an address below /states/. {_DO}."
        )


def check_lock_id(query: Mapping[str, str], raw_query: str, *, accepted: bool) -> None:
    """Raise an error unless a request has an `ID` where it is accepted, and one at most.

    Raises:
        BentRequest: a request with an `ID` came where none is accepted.
        InvalidRequest: the `ID` is empty or repeated, or is written `id`.
    """
    for name in query:
        if name != _LOCK_ID and name.upper() == _LOCK_ID:
            raise InvalidRequest(f"The parameter '{name}' must be written '{_LOCK_ID}'. Nothing was changed.")
    if _LOCK_ID not in query:
        return
    if not accepted:
        raise BentRequest(
            "This request does not accept 'ID'. A redirect has turned another request into it, or a method "
            f"of the backend block is wrong. {_DO}, and use an address that does not redirect."
        )
    if not query[_LOCK_ID]:
        raise InvalidRequest("'ID' is empty. Send the ID of the lock, or no 'ID'. Nothing was changed.")
    # API Gateway joins the values of a repeated parameter with commas, which can be in an ID, too.
    if sum(name == _LOCK_ID for name, _ in parse_qsl(raw_query, keep_blank_values=True)) > 1:
        raise InvalidRequest("The query has several parameters 'ID'. Send one. Nothing was changed.")

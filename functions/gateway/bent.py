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
            "This read has the header Content-MD5, which only a request with a body may have. Either a "
            "redirect changed the method of the request to GET, or the backend block sets a method to GET. "
            f"{_DO}, and use an address that does not redirect."
        )


def check_redirected(headers: Mapping[str, str]) -> None:
    """Raise `BentRequest` if a read came by a redirect and has the type of a body.

    Clients of `cloud {}` send `Content-Type` with every verb but GET, and no checksum. Scripts may send it
    with a read, too. Only a redirect makes Go's HTTP client add `Referer`. Where Go drops `Content-Type` with
    the body, nothing distinguishes the read from others.
    """
    if "referer" in headers and "content-type" in headers:
        raise BentRequest(
            "This read was redirected from a request that changes something. Nothing was changed. Use a "
            "hostname that does not redirect."
        )


def check_delete(headers: Mapping[str, str], body: str) -> None:
    """Raise `BentRequest` unless a delete of a state has no body and no header of a body.

    With the method DELETE at the address of the state, Terraform sends the release of a lock here. Its
    force-unlock has an empty body, and still `Content-Type` and `Content-MD5`.
    """
    length = headers.get("content-length", "").strip()
    if body or length not in ("", "0") or any(name in headers for name in ("content-type", *CONTENT_MD5)):
        raise BentRequest(
            "A request to delete a state must not have a body, a Content-Type or a Content-MD5. If Terraform "
            "sent this request, it is a write or the release of a lock, and the backend block sets "
            f"'update_method' or 'unlock_method' to DELETE, with an address below /states/. {_DO}."
        )


def check_lock_id(query: Mapping[str, str], raw_query: str, *, accepted: bool) -> None:
    """Raise an error unless a request has an `ID` where it is accepted, and one at most.

    Raises:
        BentRequest: a request with an `ID` came where none is accepted.
        InvalidRequest: the `ID` is empty or repeated, or is written `id`.
    """
    for name in query:
        if name != _LOCK_ID and name.upper() == _LOCK_ID:
            raise InvalidRequest(
                f"The query parameter '{name}' must be written in capital letters, as "
                f"'{_LOCK_ID}'. Nothing was changed."
            )
    if _LOCK_ID not in query:
        return
    if not accepted:
        raise BentRequest(
            f"This request has the query parameter '{_LOCK_ID}', which only a write and the release of a "
            "lock may have. Either a redirect has changed the method of the request, or the backend block "
            f"sets a wrong method. {_DO}, and use an address that does not redirect."
        )
    if not query[_LOCK_ID]:
        raise InvalidRequest(
            "The query parameter 'ID' is empty. Send the ID of the lock in 'ID', or leave "
            "'ID' out. Nothing was changed."
        )
    # API Gateway joins the values of a repeated parameter with commas, which can be in an ID, too.
    if sum(name == _LOCK_ID for name, _ in parse_qsl(raw_query, keep_blank_values=True)) > 1:
        raise InvalidRequest(
            "The query has the parameter 'ID' more than once. Send it only once. Nothing was changed."
        )

"""Parse requests of the management API: query parameters, and the document in the body."""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from gateway import requests
from holdfast import json_object, timestamp
from holdfast.errors import InvalidRequest, TooLarge
from holdfast.state.operator import check_reason

_MAX_BYTES: Final = 64 * 1024
"""Bytes of the largest document of a request."""


class Request(requests.Request):
    """A request to the management API."""

    __slots__ = ()

    @property
    def parameters(self) -> Mapping[str, str]:
        """The non-empty parameters of the query."""
        return {name: value for name, value in self.query.items() if value}

    def check_query(self, known: Collection[str]) -> None:
        """Raise `InvalidRequest` for an unknown parameter: a misspelled filter must not return everything."""
        _check_known(self.query, known, "parameter")

    def document(self, *known: str) -> Mapping[str, Any]:
        """Return the JSON object in the body, without null members; empty for an empty body.

        Raises:
            InvalidBody, TooLarge: the body did not arrive whole, or is larger than `_MAX_BYTES`.
            InvalidRequest: the body is not a JSON object, or has a member that is not in `known`.
        """
        body = self.body()
        if not body:
            return {}
        if len(body) > _MAX_BYTES:
            raise TooLarge(f"The document has {len(body)} bytes; this route accepts at most {_MAX_BYTES}.")
        try:
            document = json_object.parse_unique(body)
        except ValueError as error:
            raise InvalidRequest(f"The body {error}. Send a JSON object.") from None
        _check_known(document, known, "member")
        return {name: value for name, value in document.items() if value is not None}


def _check_known(names: Iterable[str], known: Collection[str], kind: str) -> None:
    for name in names:
        if name not in known:
            takes = f"it accepts {', '.join(known)}" if known else "it accepts none"
            raise InvalidRequest(f"This route does not accept the {kind} '{name[:40]}'; {takes}.")


def text(members: Mapping[str, Any], name: str) -> str:
    """Return a required text; raise `InvalidRequest` if it is missing or empty."""
    value = members.get(name, "")
    if not isinstance(value, str) or not value:
        raise InvalidRequest(f"'{name}' must be a non-empty string.")
    return value


def flag(parameters: Mapping[str, str], name: str) -> bool:
    """Return a parameter that is `true` or `false`, by default false; `InvalidRequest` for other values."""
    value = parameters.get(name, "false")
    if value not in ("true", "false"):
        raise InvalidRequest(f"'{name}' must be 'true' or 'false'.")
    return value == "true"


def reason(members: Mapping[str, Any]) -> dict[str, str]:
    """Return the log field of an optional reason; `InvalidRequest` if it breaks the rules of reasons."""
    return {"reason": check_reason(text(members, "reason"))} if "reason" in members else {}


def moment(value: object, name: str) -> datetime:
    """Parse a time with an offset (RFC 3339), cut to whole seconds; `InvalidRequest` for other values."""
    if isinstance(value, str):
        with suppress(ValueError):
            return timestamp.parse(value).replace(microsecond=0)
    raise InvalidRequest(f"'{name}' must be a time with an offset, as in '2026-11-20T14:00:00Z'.")

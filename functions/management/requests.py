"""Requests of the management API: the parts of the address, the parameters and the document of the body."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from gateway import requests
from holdfast import json_object, names
from holdfast.errors import HoldfastError, InvalidName, InvalidRequest, TooLarge
from holdfast.names import StateName

_MAX_BYTES: Final = 64 * 1024
"""Bytes of the document of a request."""


@dataclass(frozen=True, slots=True)
class Request(requests.Request):
    """A request to the management API."""

    @property
    def route(self) -> tuple[str, str]:
        """The segment after `/manage/v1/`, and the name of the state after it, which may be empty.

        The gateway has decoded the path: it is never decoded again.
        """
        path: str = self.event["pathParameters"]["path"]
        route, _, name = path.partition("/")
        return route, name

    @property
    def name(self) -> StateName:
        """The name of the state.

        Raises:
            InvalidName: it breaks a rule, or is that of a probe, which this function's role does not reach.
        """
        name = names.parse(self.route[1])
        if name.is_probe:
            raise InvalidName(
                "This is a probe of 'holdfast doctor', which makes and removes it; no operator works on it."
            )
        return name

    @property
    def state(self) -> str | None:
        """What the request says the name of the state is, for the log; None if it names none."""
        try:
            return self.name.value
        except HoldfastError:
            return None

    def parameters(self, *known: str) -> Mapping[str, str]:
        """Return the parameters of the query that are not empty.

        Raises:
            InvalidRequest: there is another than these. A misspelled one must not mean "all".
        """
        for name in self.query:
            if name not in known:
                takes = f"it takes {', '.join(known)}" if known else "it takes none"
                raise InvalidRequest(f"This route takes no parameter '{name[:40]}'; {takes}.")
        return {name: value for name, value in self.query.items() if value}

    def document(self, *known: str) -> Mapping[str, Any]:
        """Return the JSON object of the body, without members that are null; empty for an empty body.

        Raises:
            InvalidBody, TooLarge: the body did not arrive whole, or is larger than any that is expected.
            InvalidRequest: it is not a JSON object, or has another member than these.
        """
        body = self.body()
        if not body:
            return {}
        if len(body) > _MAX_BYTES:
            raise TooLarge(f"The document has {len(body)} bytes; this route takes at most {_MAX_BYTES}.")
        try:
            found = json_object.parse_unique(body)
        except ValueError as error:
            raise InvalidRequest(f"The body {error}; send a JSON object.") from None
        for name in found:
            if name not in known:
                takes = f"it takes {', '.join(known)}" if known else "it takes none"
                raise InvalidRequest(f"This route takes no member '{name[:40]}'; {takes}.")
        return {name: value for name, value in found.items() if value is not None}


def text(members: Mapping[str, Any], name: str) -> str:
    """Return a text that must be there.

    Raises:
        InvalidRequest: it is missing, empty, or not a text.
    """
    value = members.get(name, "")
    if not isinstance(value, str) or not value:
        raise InvalidRequest(f"'{name}' must be a text that is not empty.")
    return value


def moment(value: object, name: str) -> datetime:
    """Return a time of the form of RFC 3339, cut to whole seconds.

    Raises:
        InvalidRequest: it is not one.
    """
    if isinstance(value, str):
        # Of the first and the last day some offset leads out of what there is.
        with suppress(ValueError, OverflowError):
            found = datetime.fromisoformat(value)
            if found.tzinfo:
                return found.astimezone(UTC).replace(microsecond=0)
    raise InvalidRequest(f"'{name}' must be a time with an offset, as in '2026-11-20T14:00:00Z'.")

"""Requests of the HTTP API (payload format 2.0)."""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gateway import payload
from holdfast.errors import InvalidBody
from holdfast.s3.store import Store


@dataclass(frozen=True, slots=True)
class Request:
    """What the functions need of an event.

    Attributes:
        event: as API Gateway sends it.
        store: for what it takes to answer this request.
    """

    event: Mapping[str, Any]
    store: Store

    @property
    def verified(self) -> Mapping[str, Any]:
        """What the token authorizer has found out about the caller; empty if it was not asked."""
        context: Mapping[str, Any] = (self.event["requestContext"].get("authorizer") or {}).get(
            "lambda"
        ) or {}
        return context

    @property
    def signer(self) -> str | None:
        """The ARN of who has signed the request, as AWS found it; None if AWS was not asked."""
        try:
            arn = self.event["requestContext"]["authorizer"]["iam"]["userArn"]
        except (KeyError, TypeError):
            return None
        return arn if isinstance(arn, str) and arn else None

    def header(self, name: str) -> str:
        """A header by its lower-case name, empty if it is missing."""
        value: str = self.event["headers"].get(name, "")
        return value

    def body(self) -> bytes:
        """The body as the client sent it.

        Raises:
            InvalidBody: it did not arrive, or not whole. It must never look like an empty one: an empty body
                is a force-unlock.
        """
        try:
            body = payload.decode(
                self.event.get("body") or "", is_base64=bool(self.event.get("isBase64Encoded"))
            )
        except ValueError:
            raise InvalidBody("The body cannot be decoded; send it as UTF-8 text or base64.") from None
        length = self.header("content-length").strip()
        # The gateway replaces what is no UTF-8 in a text, so that an altered body has another length too.
        if length and length != str(len(body)):
            raise InvalidBody(
                f"The request announced a body of {length[:20]} bytes, {len(body)} arrived: a proxy may have "
                "dropped it, or it is no UTF-8. Nothing was changed."
            )
        # The gateway may rename the header.
        announced = self.header("content-md5") or self.header("x-amzn-remapped-content-md5")
        if announced and announced.strip() != _md5(body):
            raise InvalidBody("The body does not match its Content-MD5. Nothing was changed; send it again.")
        return body


def _md5(body: bytes) -> str:
    return base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()

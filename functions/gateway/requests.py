"""Parse requests of the HTTP API (payload format 2.0)."""

import base64
import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway import authorizer_context, payload
from gateway.function import Function
from gateway.headers import CONTENT_MD5, accepts_gzip
from gateway.router import Target
from holdfast import json_object
from holdfast.access import Caller
from holdfast.audit import Event
from holdfast.errors import InvalidBody, InvalidRequest, NotAuthenticated
from holdfast.identity.authentication import Authenticated
from holdfast.names import StateName
from holdfast.s3.budget import Budget
from holdfast.s3.store import Store
from holdfast.work import Work


@dataclass(slots=True)
class Request:
    """A request, with its parsed event.

    Attributes:
        method: the verb.
        store: the state bucket, within the budget of the invocation.
        authenticated: the caller; None if the authorizer was not invoked, or its context is invalid.
        target: the decoded path; empty before it is decoded.
        changes: the fields of a log line for each state that a request about several states has changed.
    """

    event: Mapping[str, Any]
    function: Function
    budget: Budget
    method: str = field(init=False)
    store: Store = field(init=False)
    authenticated: Authenticated | None = field(init=False)
    target: Target = field(init=False, default_factory=Target)
    changes: list[tuple[Event, Mapping[str, Any]]] = field(init=False, default_factory=list)
    _query: Mapping[str, str] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.method = self.event["requestContext"]["http"]["method"]
        self.store = self.function.store(self.budget)
        authorizer = self.event["requestContext"].get("authorizer") or {}
        self.authenticated = authorizer_context.decode(authorizer.get("lambda"))

    def require_authenticated(self) -> Authenticated:
        """Return the authenticated caller; raise `NotAuthenticated` if the request has no caller."""
        if self.authenticated is None:
            raise NotAuthenticated(
                "The request has no valid credentials. Send an access token, a session or an ID token."
            )
        return self.authenticated

    @property
    def caller(self) -> Caller:
        """The caller that the authorizer authenticated."""
        return self.require_authenticated().caller

    @property
    def name(self) -> StateName:
        """The name of the state, which the route's check has accepted; `LookupError` if there is no name."""
        if self.target.name is None:
            raise LookupError("the route names no state")
        return self.target.name

    @property
    def work(self) -> Work:
        """The caller at the state that the route names; `LookupError` if the route names no state."""
        return self.at(self.name)

    def at(self, name: StateName) -> Work:
        """Return the caller at a state that the body names."""
        return Work(self.store, name, self.caller, self.function.policy, self.function.memory)

    @property
    def state(self) -> str | None:
        """The state's name for the log, which may be invalid; None if the request has no name."""
        if self.target.name is not None:
            return self.target.name.value
        return (self.event.get("pathParameters") or {}).get("name")

    @property
    def accepts_gzip(self) -> bool:
        """Return whether the response may be compressed."""
        return accepts_gzip(self.header("accept-encoding"))

    @property
    def signer(self) -> str | None:
        """The ARN of the signer, as AWS verified it; None if the route does not require a signature."""
        try:
            arn = self.event["requestContext"]["authorizer"]["iam"]["userArn"]
        except (KeyError, TypeError):
            return None
        return arn if isinstance(arn, str) and arn else None

    @property
    def address(self) -> str:
        """The source address, as the gateway saw it; empty if it is unknown."""
        return self.event["requestContext"]["http"].get("sourceIp") or ""

    @property
    def query(self) -> Mapping[str, str]:
        """The query's parameters, decoded by the gateway; `InvalidRequest` if a parameter is not Unicode."""
        if self._query is None:
            query = self.event.get("queryStringParameters") or {}
            try:
                json_object.check_unicode(dict(query))
            except ValueError as error:
                raise InvalidRequest(f"The query {error}.") from None
            self._query = query
        return self._query

    def check_query(self, known: Collection[str]) -> None:
        """Ignore unknown parameters. A subclass raises an error for a parameter that must be in `known`."""

    def header(self, name: str) -> str:
        """Return a header by its lower-case name; empty if it is missing."""
        value: str = self.event["headers"].get(name, "")
        return value

    def body(self) -> bytes:
        """Return the body as the client sent it.

        Raises:
            InvalidBody: the body did not arrive whole. It must never be read as an empty body, because an
                empty body is a force-unlock.
        """
        try:
            body = payload.decode(
                self.event.get("body") or "", is_base64=bool(self.event.get("isBase64Encoded"))
            )
        except ValueError:
            raise InvalidBody(
                "The body did not arrive whole. Nothing was changed; send the request again."
            ) from None
        length = self.header("content-length").strip()
        # API Gateway replaces invalid UTF-8 in a text, which changes the length of the body.
        if length and length != str(len(body)):
            raise InvalidBody(
                f"The header Content-Length is {length[:20]}, but the length of the received body in bytes "
                f"is {len(body)}. A proxy may have dropped or changed the body, or the body is not UTF-8. "
                "Nothing was changed. Send the body as UTF-8, and use an address without such a proxy."
            )
        announced = next(filter(None, map(self.header, CONTENT_MD5)), "")
        if announced and announced.strip() != _md5(body):
            raise InvalidBody(
                "The body does not match the header Content-MD5: the body was altered on the way, or the "
                "header is wrong. Nothing was changed; send the request again."
            )
        return body


def _md5(body: bytes) -> str:
    return base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()

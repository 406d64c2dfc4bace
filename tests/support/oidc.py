"""The issuer of the local AWS for the tests: it can fail in every way."""

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from enum import Enum, auto
from threading import Event
from typing import Any, Final, Self

from local_aws import issuer as local_issuer
from local_aws import loopback
from local_aws.issuer import DISCOVERY, KEYS, new_keys, signed

NETWORK: Final[Mapping[str, str]] = {"repository": "acme/network", "ref": "refs/heads/main"}
"""The claims that the tests' trust records require."""


class Fault(Enum):
    """Faults of an issuer."""

    SLOW = auto()
    SERVER_ERROR = auto()
    NOT_FOUND = auto()
    REDIRECT = auto()
    OTHER_ISSUER = auto()
    KEYS_OVER_HTTP_ELSEWHERE = auto()
    NO_JSON = auto()
    TOO_LARGE = auto()
    NO_KEYS = auto()


class Issuer:
    """An issuer on a free port, for as long as its context lasts.

    `keys` are the keys that it signs with and publishes. `asked` has the path of every request, oldest first.
    `address` is its URL after the context was entered.
    """

    def __init__(self) -> None:
        self.keys = new_keys()
        self.fault: Fault | None = None
        self.asked: list[str] = []
        self._open = ExitStack()
        self._ends = Event()
        self.address = ""

    def __enter__(self) -> Self:
        self.address = self._serve()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._open.close()

    @contextmanager
    def unreachable(self) -> Iterator[None]:
        """Refuse every connection within the context."""
        self._open.close()
        try:
            yield
        finally:
            self._serve(port=int(self.address.rpartition(":")[2]))

    @contextmanager
    def having(self, fault: Fault) -> Iterator[None]:
        self.fault = fault
        try:
            yield
        finally:
            self.fault = None

    def token(
        self,
        claims: Mapping[str, Any] = NETWORK,
        *,
        subject: str = "repo:acme/network:ref:refs/heads/main",
        algorithm: str = "RS256",
    ) -> str:
        """Return an ID token, which is valid unless its claims make it invalid. Each token is different."""
        body = local_issuer.claims(self.address, {"sub": subject, **claims})
        return signed(self.keys[algorithm], body, alg=algorithm)

    def _serve(self, *, port: int = 0) -> str:
        issuer = self

        class Handler(loopback.Handler):
            def respond(self) -> None:
                issuer.asked.append(self.path)
                issuer._respond(self)

        return self._open.enter_context(loopback.serving(Handler, port=port))

    def _respond(self, request: loopback.Handler) -> None:
        path, status, headers = request.path, 200, {"Content-Type": "application/json"}
        document = local_issuer.documents(self.address, self.keys.values())[path]
        match self.fault:
            case Fault.SLOW:
                self._ends.wait(8)  # longer than anybody may wait for it
            case Fault.SERVER_ERROR:
                status = 500
            case Fault.NOT_FOUND:
                status = 404
            case Fault.REDIRECT:
                status, headers = 302, {"Location": f"{self.address}/elsewhere{path}"}
            case Fault.OTHER_ISSUER if path == DISCOVERY:
                document |= {"issuer": "https://issuer.example"}
            case Fault.KEYS_OVER_HTTP_ELSEWHERE if path == DISCOVERY:
                document |= {"jwks_uri": "http://192.0.2.1/keys"}
            case Fault.TOO_LARGE:
                document |= {"padding": "x" * 2_000_000}
            case Fault.NO_KEYS if path == KEYS:
                document = {"keys": []}
            case _:
                pass
        no_json = b"<html>down for maintenance</html>" if self.fault is Fault.NO_JSON else b""
        request.answer(status, no_json or json.dumps(document).encode(), headers)


def basic(token: str) -> str:
    """Return Terraform's `Authorization` header for the user name `oidc` and this password."""
    return f"Basic {base64.b64encode(f'oidc:{token}'.encode()).decode()}"


def bearer(token: str) -> str:
    """Return the `Authorization` header of RFC 6750."""
    return f"Bearer {token}"

"""The issuer of the local AWS for the tests: it can fail in every way."""

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from threading import Event
from typing import Any, Final, Self

from local_aws import issuer as local_issuer
from local_aws.issuer import DISCOVERY, KEYS, Algorithm, Answer, SigningKeys, as_json, id_token, serving
from tests.support.id_tokens import AUDIENCE

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
        self.keys = SigningKeys.new()
        self.fault: Fault | None = None
        self.asked: list[str] = []
        self._open = ExitStack()
        self._ends = Event()
        self.address = ""

    def __enter__(self) -> Self:
        self.address = self._open.enter_context(serving(self._answer))
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
            port = int(self.address.rpartition(":")[2])
            self._open.enter_context(serving(self._answer, port=port))

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
        audience: Any = AUDIENCE,
        lifetime: timedelta = timedelta(minutes=10),
        algorithm: Algorithm = Algorithm.RS256,
        now: datetime | None = None,
    ) -> str:
        """Return an ID token, which is valid unless an argument makes it invalid. Each token is different."""
        return id_token(
            self.keys,
            self.address,
            subject=subject,
            audience=audience,
            claims=claims,
            lifetime=lifetime,
            now=now or datetime.now(UTC),
            algorithm=algorithm,
        )

    def _answer(self, path: str) -> Answer:
        self.asked.append(path)
        good = local_issuer.answer(self.address, self.keys, path)
        match self.fault:
            case Fault.SLOW:
                self._ends.wait(8)  # longer than anybody may wait for it
            case Fault.SERVER_ERROR:
                return as_json({"error": "down"}, status=500)
            case Fault.NOT_FOUND:
                return as_json({"error": "not_found"}, status=404)
            case Fault.REDIRECT:
                return Answer(302, b"", {"Location": f"{self.address}/elsewhere{path}"})
            case Fault.OTHER_ISSUER if path == DISCOVERY:
                return as_json({**json.loads(good.body), "issuer": "https://issuer.example"})
            case Fault.KEYS_OVER_HTTP_ELSEWHERE if path == DISCOVERY:
                return as_json({**json.loads(good.body), "jwks_uri": "http://192.0.2.1/keys"})
            case Fault.NO_JSON:
                return Answer(200, b"<html>down for maintenance</html>")
            case Fault.TOO_LARGE:
                return Answer(200, good.body.rstrip(b"}") + b', "padding": "' + b"x" * 2_000_000 + b'"}')
            case Fault.NO_KEYS if path == KEYS:
                return as_json({"keys": []})
            case _:
                pass
        return good


def basic(token: str) -> str:
    """Return Terraform's `Authorization` header for the user name `oidc` and this password."""
    return f"Basic {base64.b64encode(f'oidc:{token}'.encode()).decode()}"


def bearer(token: str) -> str:
    """Return the `Authorization` header of RFC 6750."""
    return f"Bearer {token}"

"""Sends the requests of the sources with an HTTP API, and says which addresses they may have."""

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from holdfast.networks import LOOPBACK
from holdfast_cli.api import http
from holdfast_cli.api.response import Response
from holdfast_cli.errors import CommandError, UnavailableError, UsageError

_JSON: Final = {"Content-Type": "application/json"}
_COMPRESSED: Final = {"Accept-Encoding": "gzip"}
_PATIENCE: Final = 300.0
"""The most seconds of pauses for one request that is refused with 429, beyond those of `send`."""
_PAUSE: Final = 15.0
"""Seconds before the next attempt, if `Retry-After` does not say more."""
_LONGEST: Final = 60.0

NO_SEGMENTS: Final = ("", ".", "..")
"""Texts that no name in the path of a URL can be: servers resolve the dots to another path."""


def split(address: str, form: str, variables: str) -> SplitResult:
    """Return the parts of an address. UsageError if it is not valid, has credentials, or is not encrypted.

    Args:
        form: an example of a valid address.
        variables: the environment variables for credentials.
    """
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises for a port that is not a number
    except ValueError:
        raise UsageError(f"An address of the source is not a valid URL; write it as in {form}.") from None
    host = parts.netloc.rpartition("@")[2]
    if "@" in parts.netloc:
        raise UsageError(
            f"The address at {host} contains credentials. Remove them from the address, and set {variables} "
            "instead. If others may have read the credentials, replace them."
        )
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        raise UsageError(
            f"The command sends credentials over https:// only, and {address} does not begin with https://."
        )
    if not host or parts.scheme not in (urlsplit(form).scheme, "http") or parts.fragment:
        raise UsageError(f"{address} is not a valid address; write it as in {form}.")
    return parts


def host_and_segments(address: str, form: str, variables: str) -> tuple[str, list[str]]:
    """Return the URL of the host in `SCHEME://HOST/A/B`, and the segments of the path.

    >>> host_and_segments("gitlab://gitlab.example.com/platform/network", "gitlab://HOST/GROUP", "TOKEN")
    ('https://gitlab.example.com', ['platform', 'network'])
    """
    parts = split(address, form, variables)
    segments = [unquote(segment) for segment in parts.path.split("/") if segment]
    if not segments or parts.query or parts.scheme == "http":
        raise UsageError(f"{address} is not a valid address; write it as in {form}.")
    return f"{'http' if parts.hostname in LOOPBACK else 'https'}://{parts.netloc}", segments


@dataclass(frozen=True, slots=True)
class Remote:
    """The API of a source.

    Attributes:
        headers: of every request.
        credentials: says which credentials are needed, after "check that".
    """

    headers: Mapping[str, str] = field(repr=False)
    credentials: str

    def ask(
        self,
        method: str,
        url: str,
        what: str,
        expects: Collection[int],
        *,
        body: bytes = b"",
        anonymous: bool = False,
    ) -> Response:
        """Send an idempotent request, and return its response, with one of the expected statuses.

        Args:
            what: names the state in errors, as the beginning of a sentence.
            anonymous: send no credentials.
        """
        # Some servers compress whether or not they are asked.
        headers = _COMPRESSED | ({} if anonymous else {**(_JSON if body else {}), **self.headers})
        try:
            parts = urlsplit(url)
        except ValueError:
            raise CommandError(f"{what}: the source names an address that is not valid.") from None
        if parts.scheme != "https" and parts.hostname not in LOOPBACK:
            raise CommandError(
                f"{what}: the address of {parts.netloc} does not begin with https://. No request was sent."
            )
        waited = 0.0
        try:
            while True:
                response = http.send(method, url, headers=headers, body=body, redirects=True)
                if response.status != HTTPStatus.TOO_MANY_REQUESTS or waited >= _PATIENCE:
                    break
                pause = min(max(response.retry_after, _PAUSE), _LONGEST)
                time.sleep(pause)
                waited += pause
        except CommandError as error:
            raise type(error)(f"{what}: {error}") from error
        if response.status in expects:
            return response
        host = parts.netloc
        match response.status:
            case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN as status:
                raise CommandError(
                    f"{what}: {host} responds with {int(status)}. Check that {self.credentials}."
                )
            case HTTPStatus.TOO_MANY_REQUESTS:
                raise UnavailableError(
                    f"{what}: {host} still responds with 429 (too many requests). Run the command again "
                    "later."
                )
            case status if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                raise UnavailableError(f"{what}: {host} responds with {status}. Run the command again.")
            case status:
                raise CommandError(
                    f"{what}: {host} responds with {status} to {method}. Check the address and the options "
                    "of the source."
                )

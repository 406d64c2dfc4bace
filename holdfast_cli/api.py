"""Requests over HTTP to what is no AWS service: the team's API, and whoever makes ID tokens for CI jobs."""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from botocore.awsrequest import AWSRequest
from botocore.exceptions import (
    BotoCoreError,
    HTTPClientError,
    SSLError,
)
from botocore.exceptions import ConnectionError as UnreachableError
from botocore.httpsession import URLLib3Session
from botocore.utils import get_environ_proxies

import holdfast
from holdfast_cli.errors import CommandError

_TIMEOUTS = (5.0, 35.0)
"""Seconds for a connection, and without a byte; API Gateway gives up after 30."""
_PAUSES = (0.5, 1.5)
"""Seconds before each repeat."""
_PASSING = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered; the body may hold a secret."""

    status: int
    body: bytes = field(repr=False)


def send(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    body: bytes = b"",
    sign: Callable[[AWSRequest], None] | None = None,
) -> Answer:
    """Send a request; again where its answer is lost or the server has a passing fault.

    Certificates are checked, with those of AWS_CA_BUNDLE if it is set. No redirect is followed.

    Args:
        method: of HTTP; may be carried out more than once.
        url: where to.
        headers: beside those that HTTP demands.
        body: what to send.
        sign: adds a signature; anew for each attempt, because it holds the time.

    Returns:
        The last answer.

    Raises:
        CommandError: nothing answers, its certificate is not accepted, or it sends us elsewhere.
    """
    host = urlsplit(url).netloc
    answer = None
    lost: BotoCoreError | None = None
    for pause in (*_PAUSES, None):
        try:
            answer = _attempt(method, url, headers, body, sign)
            lost = None
        except SSLError as error:
            raise CommandError(
                f"The certificate of {host} was not accepted; check the address and AWS_CA_BUNDLE: "
                f"{_line(error)}"
            ) from error
        except (UnreachableError, HTTPClientError) as error:
            lost = error
        if pause is None or (answer is not None and lost is None and answer.status not in _PASSING):
            break
        time.sleep(pause)
    if lost is not None or answer is None:
        raise CommandError(
            f"{host} does not answer; check the address and the network: {_line(lost)}"
        ) from lost
    if 300 <= answer.status < 400:
        raise CommandError(
            f"{host} answers {answer.status}, a redirect, which is never followed: check the address."
        )
    return answer


def _attempt(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    sign: Callable[[AWSRequest], None] | None,
) -> Answer:
    request = AWSRequest(method=method, url=url, data=body, headers=dict(headers))
    if sign is not None:
        sign(request)
    request.headers["User-Agent"] = f"holdfast/{holdfast.__version__}"
    # A dictionary, because the stubs know fewer types than the SDK takes.
    options: dict[str, Any] = {
        "verify": os.environ.get("AWS_CA_BUNDLE") or True,
        "proxies": get_environ_proxies(url),
        "timeout": _TIMEOUTS,
    }
    session = URLLib3Session(**options)
    try:
        answer = session.send(request.prepare())
        return Answer(answer.status_code, answer.content)
    finally:
        session.close()


def _line(error: BaseException | None) -> str:
    return " ".join(str(error).split())

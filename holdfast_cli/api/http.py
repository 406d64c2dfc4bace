"""Sends HTTP requests to the team's API and to the issuers of CI jobs' ID tokens, but not to AWS."""

import os
import re
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

import holdfast
from holdfast_cli.api.response import Response
from holdfast_cli.errors import CommandError, UnavailableError
from holdfast_cli.terminal import versions
from holdfast_cli.terminal.output import plain

if TYPE_CHECKING:
    from urllib3 import PoolManager

Sign = Callable[[str, str, Mapping[str, str], bytes], Mapping[str, str]]
"""Takes method, URL, headers and body of a request; returns the headers with a signature added."""

_TIMEOUT: Final = (5.0, 35.0)
"""Seconds to connect, and seconds without a received byte; API Gateway's own limit is 30 seconds."""
_SHORT: Final = (2.0, 5.0)
"""The same for a request whose response is only useful if it comes at once."""
_PAUSES: Final = (0.5, 1.5)
"""Seconds before each retry, on average."""
_THROTTLED: Final = (*_PAUSES, 3.0, 5.0)
"""The same after a 429: API Gateway passed nothing on, so many may have been refused at once."""
_KEPT: Final = 32
"""The most connections to one host that `kept_connections` keeps."""
_LONGEST: Final = 10.0
"""The most seconds before a retry, whatever `Retry-After` says."""
LARGEST: Final = 320_000_000
"""The most bytes of a response, also decompressed: the largest state has 300 MB."""
_PIECE: Final = 1 << 16
_CONNECTION: Final = re.compile(r"^(<[^>]*>|HTTPS?Connection(Pool)?\([^)]*\)): ")
"""The prefix of urllib3's error texts. It may name `HTTPConnection` for an https address, or the reverse."""
_TRANSIENT: Final = frozenset({429, 500, 502, 503, 504})


def send(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    body: bytes = b"",
    sign: Sign | None = None,
    redirects: bool = False,
) -> Response:
    """Send a request and return its response. Retry it if there is no response, or a transient error.

    The server's certificate is verified with the CA bundle of AWS_CA_BUNDLE, or else of the AWS SDK, so that
    the command trusts the same authorities in all its requests. HTTP_PROXY, HTTPS_PROXY and NO_PROXY name
    proxies. A redirect is never followed: it raises `CommandError`, or is returned if `redirects` is true.

    Args:
        method: must be idempotent, because it may be retried.
        headers: the headers of the request; the headers that HTTP requires are added.
        sign: adds a signature; called for each attempt, because a signature contains the time.
    """
    import ssl

    from urllib3.exceptions import HTTPError, LocationParseError, ProtocolError, SSLError

    host = urlsplit(url).netloc
    response: Response | None = None
    lost: HTTPError | None = None
    for retry in count():
        try:
            response = _attempt(method, url, headers, body, sign)
            lost = None
        except SSLError as error:
            # The cause may also be an unreadable bundle of certificates.
            cause = error.args[0] if error.args else None
            is_no_tls = isinstance(cause, ssl.SSLError) and not isinstance(
                cause, ssl.SSLCertVerificationError
            )
            line = (
                f"A TLS connection to {host} failed: {_line(error)}. Check the address, and that the server "
                "responds to https://."
                if is_no_tls
                else f"The certificate of {host} could not be verified: {_line(error)}. Check the address. "
                "If a private authority or a proxy signs the certificates, AWS_CA_BUNDLE must name a file "
                "with the authority's certificate."
            )
            raise CommandError(line) from error
        except LocationParseError as error:  # the error's text contains the proxy's password
            raise CommandError(
                f"The address {host}, or that of the proxy in HTTP_PROXY or HTTPS_PROXY, is not valid. Write "
                "a proxy as in 'http://proxy.example.com:3128'."
            ) from error
        except HTTPError as error:
            lost = error
        except ValueError as error:  # the error's text contains the header, which may hold a secret
            raise CommandError(
                f"The credentials for {host} cannot be sent, because an HTTP header cannot have line ends "
                "or letters that are not ASCII. Look for such characters in TF_TOKEN_… or in the AWS "
                "credentials."
            ) from error
        pause = _pause(retry, None if lost else response)
        if pause is None:
            break
        time.sleep(pause)
    if lost is not None or response is None:
        what = (
            f"The connection to {host} ended before the response was complete"
            if isinstance(lost, ProtocolError)
            else f"{host} does not respond"
        )
        local = " Or start the local AWS with `make up`." if host.startswith("127.0.0.1:") else ""
        raise UnavailableError(f"{what}: {_line(lost)}. Check the address and the network.{local}") from lost
    if 300 <= response.status < 400 and not redirects:
        raise CommandError(
            f"{host} responds with {response.status}, a redirect. This command does not follow redirects: "
            "check the address."
        )
    return response


def try_once(url: str, headers: Mapping[str, str]) -> int | None:
    """Send a GET request as `send` does, without a retry, and return its status; None if none comes soon."""
    from urllib3.exceptions import HTTPError

    try:
        return _attempt("GET", url, headers, b"", None, _SHORT).status
    except (HTTPError, ValueError):
        return None


def _pause(retry: int, response: Response | None) -> float | None:
    """Return the seconds before a retry, for a response or its loss; None if there is no further retry.

    They vary by half, so that jobs that were refused together do not come back together.

    Args:
        retry: the number of retries before.
    """
    import random

    wanted, is_throttled = 0.0, False
    if response is not None:
        if response.status not in _TRANSIENT:
            return None
        is_throttled = response.status == HTTPStatus.TOO_MANY_REQUESTS
        wanted = response.retry_after
    pauses = _THROTTLED if is_throttled else _PAUSES
    if retry >= len(pauses):
        return None
    return min(max(pauses[retry] * random.uniform(0.5, 1.5), wanted), _LONGEST)  # noqa: S311 no secret


def version_skew(address: str) -> str:
    """Return a space and a sentence on whether the command or deployed code is older; empty if neither is."""
    try:
        health = send("GET", f"{address}/health", headers={})
    except CommandError:
        return ""
    version = health.text("version")
    is_holdfast = health.status == HTTPStatus.OK and health.text("status") == "ok"
    compared = versions.compare(version) if is_holdfast and version else None
    return "" if compared is None else f" {plain(' '.join(compared))}"


def _attempt(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    sign: Sign | None,
    seconds: tuple[float, float] = _TIMEOUT,
) -> Response:
    from urllib3 import Timeout

    timeout = Timeout(connect=seconds[0], read=seconds[1])
    sent = dict(sign(method, url, headers, body) if sign else headers)
    sent["User-Agent"] = f"holdfast/{holdfast.__version__}"
    with _connections(url, *_kept) as connections:
        response = connections.request(
            method,
            url,
            body=body or None,
            headers=sent,
            timeout=timeout,
            retries=False,
            redirect=False,
            preload_content=False,
            decode_content=False,
        )
        # Not `read` with a limit, which takes a body that is cut off for a whole one.
        content = b"".join(_up_to(LARGEST, response.stream(_PIECE, decode_content=False)))
        if len(content) > LARGEST:
            response.close()
        response.release_conn()
    got = {name.lower(): value for name, value in response.headers.items()}
    return Response(response.status, _decoded(urlsplit(url).netloc, content, sent, got), got)


def _up_to(most: int, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield pieces until they have more than `most` bytes."""
    for piece in pieces:
        yield piece
        most -= len(piece)
        if most < 0:
            return


def _decoded(host: str, content: bytes, sent: Mapping[str, str], got: Mapping[str, str]) -> bytes:
    """Return the content of a response, decompressed if the request asked for that.

    `CommandError`: it is compressed unasked, or has more than `LARGEST` bytes.
    """
    encoding = got.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        if encoding != sent.get("Accept-Encoding"):
            raise CommandError(
                f"{host} responds with a body in an encoding that the command did not request. Check the "
                "address, and whether a proxy changes responses."
            )
        decompressor = zlib.decompressobj(wbits=31)
        try:
            content = decompressor.decompress(content, LARGEST + 1)
        except zlib.error:
            raise CommandError(
                f"{host} responds with a body that is not compressed as its header says. Check the address, "
                "and whether a proxy changes responses."
            ) from None
        if not decompressor.eof and len(content) <= LARGEST:
            raise CommandError(
                f"{host} responds with a compressed body that was cut off. Check the network, and whether a "
                "proxy changes responses."
            )
    if len(content) > LARGEST:
        raise CommandError(
            f"{host} responds with more than {LARGEST // 1000000} MB, which is more than any response of "
            "the API. Check the address."
        )
    return content


_kept: "list[dict[tuple[str, str | None], PoolManager]]" = []
"""The connection pools that `kept_connections` keeps, by bundle of certificates and proxy; else empty."""


@contextmanager
def kept_connections() -> Iterator[None]:
    """Keep connections open between the requests of all threads, until the end of the context."""
    pools: dict[tuple[str, str | None], PoolManager] = {}
    _kept.append(pools)
    try:
        yield
    finally:
        _kept.remove(pools)
        for pool in pools.values():
            pool.clear()


@contextmanager
def _connections(url: str, *kept: "dict[tuple[str, str | None], PoolManager]") -> "Iterator[PoolManager]":
    """Provide a connection pool for a URL: direct, or through the proxy that the environment names."""
    from urllib.request import getproxies, proxy_bypass

    certificates = os.environ.get("AWS_CA_BUNDLE") or _authorities()
    target = urlsplit(url)
    proxy = None if proxy_bypass(target.netloc) else getproxies().get(target.scheme)
    if kept:
        which = certificates, proxy
        yield kept[-1].get(which) or kept[-1].setdefault(which, _pool(*which, size=_KEPT))
        return
    with _pool(certificates, proxy) as pool:
        yield pool


def _authorities() -> str:
    """Return the path of the AWS SDK's CA bundle. Its own function for that takes 30 ms to import."""
    try:
        from certifi import where
    except ImportError:
        import botocore

        return str(Path(botocore.__file__).with_name("cacert.pem"))
    return where()


def _pool(certificates: str, proxy: str | None, size: int = 1) -> "PoolManager":
    from urllib3 import PoolManager, ProxyManager

    if not proxy:
        return PoolManager(ca_certs=certificates, maxsize=size)
    if "://" not in proxy:
        proxy = f"http://{proxy.removeprefix('//')}"
    headers = _proxy_credentials(proxy)
    return ProxyManager(proxy, proxy_headers=headers, ca_certs=certificates, maxsize=size)


def _proxy_credentials(proxy: str) -> dict[str, str]:
    from urllib3.util import parse_url

    from holdfast.identity.credentials import basic

    user, colon, password = (parse_url(proxy).auth or "").partition(":")
    if not colon:
        return {}
    return {"Proxy-Authorization": basic(unquote(user), unquote(password))}


def _line(error: BaseException | None) -> str:
    return _CONNECTION.sub("", " ".join(str(error).split())).rstrip(".")

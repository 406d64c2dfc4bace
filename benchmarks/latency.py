"""The latency of S3 in the benchmark: milliseconds within a region, as others report them from AWS."""

import re
from typing import Final

NEW_CONNECTION: Final = 24
"""The time of a function's new connection: the look-up of the name, TCP and TLS.

Measured: 23 ms. https://theburningmonk.com/2019/02/lambda-optimization-tip-enable-http-keep-alive/
"""

# No figure was found for a plain PUT, which only Terraform's s3 backend sends.
_BY_METHOD: Final = {"GET": 20, "HEAD": 15, "PUT": 30, "DELETE": 30}
_CONDITIONAL_PUT: Final = 60

TABLE: Final = ", ".join(
    [*(f"{method} {taken}" for method, taken in _BY_METHOD.items()), f"conditional PUT {_CONDITIONAL_PUT}"]
)

_HEAD: Final = re.compile(rb"([A-Z]+) (/_aws/)?")
_CONDITION: Final = re.compile(rb"\r\nif-(none-)?match:", re.IGNORECASE)


def of(head: bytes) -> float:
    r"""Return the seconds from a request's arrival at S3 to its response.

    A request to an API takes none: its functions' own requests to S3 take theirs.

    Args:
        head: the request's first bytes, with its headers.

    >>> of(b"GET /bucket/key HTTP/1.1\r\nHost: s3\r\n\r\n")
    0.02
    >>> of(b"PUT /bucket/key HTTP/1.1\r\nIf-None-Match: *\r\n\r\n")
    0.06
    >>> of(b"PUT /_aws/execute-api/1/locks/a HTTP/1.1\r\nHost: api\r\n\r\n")
    0.0
    """
    match = _HEAD.match(head)
    if match is None or match[2]:
        return 0.0
    method = match[1].decode()
    if method == "PUT" and _CONDITION.search(head):
        return _CONDITIONAL_PUT / 1000
    return _BY_METHOD[method] / 1000

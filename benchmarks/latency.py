"""The latency of S3 in the benchmark: milliseconds within a region, as others report them from AWS."""

from typing import Final

from tests.support.fault_relay import Request

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


def of(request: Request) -> float:
    """Return the seconds from a request's arrival at S3 to its response.

    A request to an API takes none: its functions' own requests to S3 take theirs.

    >>> of(Request("GET", "/bucket/key", {}))
    0.02
    >>> of(Request("PUT", "/bucket/key", {"if-none-match": "*"}))
    0.06
    >>> of(Request("PUT", "/_aws/execute-api/1/locks/a", {}))
    0.0
    """
    if request.path.startswith("/_aws/"):
        return 0.0
    if request.method == "PUT" and request.is_conditional_write:
        return _CONDITIONAL_PUT / 1000
    return _BY_METHOD[request.method] / 1000

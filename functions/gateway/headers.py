"""Headers of requests and responses. This module imports nothing, because open functions import it."""

from typing import Final

PROTECTED: Final = {
    # The origin of the API is that of the console, which keeps a credential there. So no other response may
    # become a page or a script of this origin, and none may be framed.
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""The headers of every response. A page replaces the policy by its own."""

JSON: Final = {"Content-Type": "application/json", "Cache-Control": "no-store", **PROTECTED}
"""The headers of a response in JSON."""

CONTENT_MD5: Final = ("content-md5", "x-amzn-remapped-content-md5")
"""The names of `Content-MD5` in an event. API Gateway may rename the header."""


def accepts_gzip(accept_encoding: str) -> bool:
    """Return whether a response to this `Accept-Encoding` may be compressed (RFC 9110 section 12.5.3).

    >>> accepts_gzip("gzip, deflate, br"), accepts_gzip("gzip;q=0, *"), accepts_gzip("")
    (True, False, False)
    """
    for coding in accept_encoding.lower().split(","):
        name, _, weight = coding.replace(" ", "").partition(";q=")
        if name == "gzip":
            return weight.strip("0.") != "" or weight == ""
    return False

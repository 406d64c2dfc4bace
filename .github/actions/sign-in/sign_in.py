"""Signs a job of GitHub Actions in to Holdfast; needs nothing but Python 3.9, which runners have.

Secrets are in no argument of a process, and the runner masks them before they are used or exported.
"""

import base64
import json
import os
import random
import re
import secrets
import sys
import time
from collections.abc import Mapping
from http import HTTPStatus
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

_PERMISSION: Final = "give the job `permissions: id-token: write`"
_PAUSES: Final = (0.5, 1.5, 3.0)
"""Seconds before each retry, on average."""
_TRANSIENT: Final = frozenset({429, 500, 502, 503, 504})
_TIME_LIMIT: Final = 35
"""Seconds without a received byte; API Gateway's own limit is 30 seconds."""
_LARGEST: Final = 1_000_000
"""The most bytes of a response."""
_ADDRESS: Final = re.compile(r"(https://[A-Za-z0-9.-]+|http://(127\.0\.0\.1|localhost))(:[0-9]+)?(/[!-~]*)?")
_JWT: Final = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)
_ID: Final = re.compile(r"session-[a-z0-9]{20}")
_SECRET: Final = re.compile(r"holdfast_[0-9A-Za-z]{49}")
_TOLD: Final = {"iss": "issuer", "aud": "audience", "sub": "subject"}


class SignInError(Exception):
    """The job cannot sign in. The message is one line."""


class _NoRedirects(HTTPRedirectHandler):
    """Sends no credentials to the place to which a response redirects."""

    def redirect_request(self, *_: Any) -> None:
        return None


def main() -> None:
    """Sign in, or exit with one line and status 1."""
    try:
        print(_line(sign_in(os.environ)))
    except SignInError as error:
        print(f"::error::{_line(str(error)).replace('%', '%25')}")
        sys.exit(1)


def sign_in(environment: Mapping[str, str]) -> str:
    """Export a session to the job's next steps, and return a line that says who signed in.

    Raises:
        SignInError: there is no ID token, the API refuses it, or it does not respond.
    """
    address = environment["HOLDFAST_ADDRESS"].rstrip("/")
    if not _ADDRESS.fullmatch(address):
        raise SignInError(f"{address!r} is not an address: write it as in https://states.example.com")
    id_token = _id_token(environment, environment["HOLDFAST_AUDIENCE"] or address)
    _mask(id_token)
    session = _session(address, id_token, environment["HOLDFAST_SECONDS"])
    _mask(session["secret"])
    _export(environment["GITHUB_ENV"], exports(address, session))
    return f"Signed in at {address} as {session.get('principal')}, until {session.get('expires')}."


def _id_token(environment: Mapping[str, str], audience: str) -> str:
    """Return a new ID token of the job from GitHub, which must have the form of one."""
    url = environment.get("ACTIONS_ID_TOKEN_REQUEST_URL")
    token = environment.get("ACTIONS_ID_TOKEN_REQUEST_TOKEN")
    if not (url and token):
        raise SignInError(f"The job gets no ID token: {_PERMISSION}. Pull requests of forks get none.")
    separator = "&" if "?" in url else "?"
    status, document = send(f"{url}{separator}audience={quote(audience, safe='')}", token)
    id_token = document.get("value")
    if status != HTTPStatus.OK or not isinstance(id_token, str) or not _JWT.fullmatch(id_token):
        raise SignInError(f"GitHub responds with {status} and no ID token: {_PERMISSION}.")
    return id_token


def _session(address: str, id_token: str, seconds: str) -> Mapping[str, Any]:
    """Create a session at the API, and return its document, with the ID and the secret of one."""
    if seconds and not re.fullmatch("[0-9]{1,9}", seconds):
        raise SignInError(f"duration-seconds is {seconds!r}: write a whole number.")
    body = json.dumps({"seconds": int(seconds)} if seconds else {}).encode()
    status, document = send(f"{address}/sessions", id_token, body)
    message = str(document.get("message") or "check the address").rstrip(".")
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        raise SignInError(
            f"The API refuses the ID token: {message}. It has expired, no trust record has its issuer, "
            "audience and claims, or the API does not accept requests from this runner's network. Its claims "
            f"are: {_claims(id_token)}."
        )
    if status != HTTPStatus.OK:
        raise SignInError(f"{_host(address)} responds with {status}: {message}.")
    if not (_ID.fullmatch(str(document.get("id"))) and _SECRET.fullmatch(str(document.get("secret")))):
        raise SignInError(f"The response of {_host(address)} has no session of Holdfast: check the address.")
    return document


def exports(address: str, session: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the variables by which Terraform, OpenTofu and `holdfast` use a session.

    They are those of `holdfast login`: `cloud {}` knows an API as `holdfast.local` that is not at the root of
    an https host, or has a port, which no variable can name.
    """
    found = re.fullmatch(r"https://([A-Za-z0-9.-]+)(:443)?", address)
    host = found[1].lower() if found else "holdfast.local"
    return {
        "HOLDFAST_ADDRESS": address,
        "TF_HTTP_USERNAME": session["id"],
        "TF_HTTP_PASSWORD": session["secret"],
        f"TF_TOKEN_{host.replace('-', '__').replace('.', '_')}": f"{session['id']}.{session['secret']}",
    }


def _mask(secret: str) -> None:
    """Have the runner replace a secret of one line by asterisks in all that it logs from now on."""
    print(f"::add-mask::{secret}", flush=True)


def _export(file: str, variables: Mapping[str, str]) -> None:
    """Set variables for the job's next steps. A value cannot end early: the delimiter is random."""
    with open(file, "a", encoding="utf-8") as environment:  # noqa: PTH123 the runner's file
        for name, value in variables.items():
            delimiter = f"end-{secrets.token_hex(16)}"
            environment.write(f"{name}<<{delimiter}\n{value}\n{delimiter}\n")


def send(url: str, bearer: str, body: bytes = b"") -> tuple[int, Mapping[str, Any]]:
    """Send a GET request, or a POST request with a body; return status and JSON object of the response.

    The object is empty if the response has none. The request is sent again if there is no response, or a
    transient error: a session too many ends by itself.
    """
    host = _host(url)
    if not _ADDRESS.fullmatch(url):
        raise SignInError(f"A token is sent over https:// only, and {host} is reached otherwise.")
    headers = {"Authorization": f"Bearer {bearer}", "Content-Type": "application/json"}
    request = Request(url, body or None, headers)  # noqa: S310 the scheme was checked
    connection = build_opener(_NoRedirects)
    for pause in (*_PAUSES, None):
        try:
            with connection.open(request, timeout=_TIME_LIMIT) as response:
                return response.status, _object(response.read(_LARGEST))
        except HTTPError as error:
            if error.code not in _TRANSIENT or pause is None:
                return error.code, _object(error.read(_LARGEST))
        except (OSError, HTTPException) as error:
            if pause is None:
                reason = getattr(error, "reason", error)
                raise SignInError(
                    f"{host} does not respond: check the address and the network: {reason}"
                ) from error
        # Jobs that were refused together do not come back together.
        time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 no secret
    raise AssertionError("the last attempt returns or raises")


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _claims(id_token: str) -> str:
    """Return the claims of a token that a trust record names or a person knows, without verifying them."""
    payload = id_token.split(".")[1]
    try:
        claims = _object(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except ValueError:
        return "nothing"
    return ", ".join(f"{name} {claims.get(key)}" for key, name in _TOLD.items())


def _host(address: str) -> str:
    return urlsplit(address).netloc


def _line(text: str) -> str:
    """Return text on one line, in which the runner finds no command."""
    return re.sub(r"##\[", "## [", " ".join("".join(c if c.isprintable() else " " for c in text).split()))


if __name__ == "__main__":
    main()

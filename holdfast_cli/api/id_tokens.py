"""Finds a CI job's OIDC ID token, and describes it in error messages."""

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from holdfast import json_object
from holdfast.identity import credentials
from holdfast.identity.credentials import IdToken
from holdfast.identity.trust import audiences, is_web_address
from holdfast_cli.api import http
from holdfast_cli.errors import CommandError
from holdfast_cli.terminal.output import plain

_VARIABLE = "HOLDFAST_ID_TOKEN"
_URL = "ACTIONS_ID_TOKEN_REQUEST_URL"
_REQUEST_TOKEN = "ACTIONS_ID_TOKEN_REQUEST_TOKEN"  # noqa: S105 the name of a variable


def find(file: Path | None, audience: str) -> IdToken:
    """Return the ID token of the file, or else of HOLDFAST_ID_TOKEN, or else a new ID token from GitHub.

    `audience` becomes the `aud` of a token from GitHub. `CommandError` if there is no token.
    """
    if file is not None:
        try:
            return _parse(file.read_text(encoding="ascii"), str(file))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "the file is not ASCII text"
            raise CommandError(f"The ID token could not be read from {file}: {reason}.") from error
    if text := os.environ.get(_VARIABLE):
        return _parse(text, _VARIABLE)
    url, request_token = os.environ.get(_URL), os.environ.get(_REQUEST_TOKEN)
    if url and request_token:
        return _from_github(url, request_token, audience)
    raise CommandError(
        f"There is no ID token. Name a file with --id-token-file, or set {_VARIABLE}. In GitHub Actions, "
        "give the job the permission `id-token: write`."
    )


def unverified_claims(token: IdToken) -> Mapping[str, Any] | None:
    """Return a token's claims without verifying them; None if they are not a JSON object."""
    payload = token.jwt.split(".")[1]
    try:
        return json_object.parse(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except ValueError:
        return None


def describe(token: IdToken) -> str:
    """Return a sentence with the token's issuer, audience and subject, without verifying them."""
    claims = unverified_claims(token)
    if claims is None:
        return "The ID token is not valid: its claims cannot be read."
    claimed = {
        "issuer": claims.get("iss"),
        "audience": ", ".join(audiences(claims)),
        "subject": claims.get("sub"),
    }
    shown = [f"{name} {plain(str(value or '-'))[:200]}" for name, value in claimed.items()]
    return f"The ID token has these claims: {', '.join(shown)}."


def _from_github(url: str, request_token: str, audience: str) -> IdToken:
    if not is_web_address(url):
        raise CommandError(f"{_URL} is not an https:// address.")
    separator = "&" if "?" in url else "?"
    response = http.send(
        "GET",
        f"{url}{separator}audience={quote(audience, safe='')}",
        headers={"Authorization": f"Bearer {request_token}", "Accept": "application/json"},
    )
    if response.status != 200:
        raise CommandError(
            f"GitHub responded with {response.status} and no ID token. Run the job again. If that does not "
            "help, check --audience, and that the job has the permission `id-token: write`."
        )
    try:
        text = json_object.parse(response.body)["value"]
    except (KeyError, ValueError):
        text = None
    return _parse(text if isinstance(text, str) else "", "GitHub's response")


def _parse(text: str, where: str) -> IdToken:
    token = credentials.parse(f"Bearer {text.strip()}")
    if not isinstance(token, IdToken):
        raise CommandError(
            f"{where} does not have a valid ID token, which has three base64url parts, joined by dots."
        )
    return token

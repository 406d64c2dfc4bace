"""Where a CI job's OIDC ID token comes from, and what it says of itself."""

import base64
import os
from pathlib import Path
from urllib.parse import quote

from holdfast import json_object
from holdfast.identity import credentials
from holdfast.identity.credentials import IdToken
from holdfast.identity.trust import audiences, is_web_address
from holdfast_cli import api
from holdfast_cli.errors import CommandError
from holdfast_cli.output import plain

_VARIABLE = "HOLDFAST_ID_TOKEN"
_URL = "ACTIONS_ID_TOKEN_REQUEST_URL"
_REQUEST_TOKEN = "ACTIONS_ID_TOKEN_REQUEST_TOKEN"  # noqa: S105 the name of a variable


def find(file: Path | None, audience: str) -> IdToken:
    """Find the ID token: in a file, in HOLDFAST_ID_TOKEN, or by asking GitHub for one.

    Args:
        file: where it stands; None to look elsewhere.
        audience: for whom GitHub is to make it.

    Raises:
        CommandError: there is none, or what is there is none.
    """
    if file is not None:
        try:
            return _parse(file.read_text(encoding="ascii"), str(file))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it holds no text in ASCII"
            raise CommandError(f"The ID token could not be read from {file}: {reason}.") from error
    if text := os.environ.get(_VARIABLE):
        return _parse(text, _VARIABLE)
    url, request_token = os.environ.get(_URL), os.environ.get(_REQUEST_TOKEN)
    if url and request_token:
        return _from_github(url, request_token, audience)
    raise CommandError(
        f"There is no ID token: name a file with --id-token-file, set {_VARIABLE}, or in GitHub Actions give "
        "the job `permissions: id-token: write`."
    )


def describe(token: IdToken) -> str:
    """What a token says of itself, unverified, for a sentence about why it was refused."""
    payload = token.jwt.split(".")[1]
    try:
        claims = json_object.parse(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except ValueError:
        return "It is no ID token: its claims cannot be read."
    said = {
        "issuer": claims.get("iss"),
        "audience": ", ".join(audiences(claims)),
        "subject": claims.get("sub"),
    }
    return f"It says: {', '.join(f'{name} {plain(str(value))[:200]}' for name, value in said.items())}."


def _from_github(url: str, request_token: str, audience: str) -> IdToken:
    if not is_web_address(url):
        raise CommandError(f"{_URL} is no https:// address.")
    separator = "&" if "?" in url else "?"
    answer = api.send(
        "GET",
        f"{url}{separator}audience={quote(audience, safe='')}",
        headers={"Authorization": f"Bearer {request_token}", "Accept": "application/json"},
    )
    if answer.status != 200:
        raise CommandError(
            f"GitHub answers {answer.status} where it should make an ID token: give the job `permissions: "
            "id-token: write`."
        )
    try:
        text = json_object.parse(answer.body)["value"]
    except (KeyError, ValueError):
        text = None
    return _parse(text if isinstance(text, str) else "", "GitHub's answer")


def _parse(text: str, where: str) -> IdToken:
    token = credentials.parse(f"Bearer {text.strip()}")
    if not isinstance(token, IdToken):
        raise CommandError(f"{where} holds no ID token: three parts of base64url, joined by dots.")
    return token

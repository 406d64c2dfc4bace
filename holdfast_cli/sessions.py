"""Sessions, got from the team's API for AWS credentials or for an ID token."""

import json
import re
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.exceptions import NoCredentialsError, NoRegionError

from holdfast import json_object
from holdfast.identity import records as record_fields
from holdfast.identity.credentials import is_secret, is_session_id
from holdfast_cli import api, id_tokens
from holdfast_cli.api import Answer
from holdfast_cli.aws_errors import as_command_errors
from holdfast_cli.errors import CommandError
from holdfast_cli.output import plain

if TYPE_CHECKING:
    import boto3

    from holdfast.identity.credentials import IdToken

_AWS_HOST = re.compile(r"[a-z0-9]+\.execute-api\.([a-z0-9-]+)\.amazonaws\.com(\.cn)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Session:
    """A session that was made.

    Attributes:
        id: the user name of HTTP Basic.
        secret: the password.
        principal: who signed in.
        role: what it may do.
        scope: to which states.
        trust: the name of the trust record that it rests on.
        expires: when it ends.
        seconds: for which it was made.
    """

    id: str
    secret: str = field(repr=False)
    principal: str
    role: str
    scope: tuple[str, ...]
    trust: str
    expires: datetime
    seconds: int


def for_aws(session: "boto3.Session", address: str, seconds: int | None) -> Session:
    """Get a session for AWS credentials.

    Args:
        session: whose credentials and region; the address says a region, too, where AWS made it.
        address: the API's base URL.
        seconds: how long it shall last; None leaves that to the API.

    Raises:
        CommandError: there are no credentials, or the API refuses them or does not answer.
    """
    of_aws = _AWS_HOST.fullmatch(urlsplit(address).hostname or "")
    region = of_aws[1] if of_aws else session.region_name
    with as_command_errors():
        if region is None:
            raise NoRegionError
        credentials = session.get_credentials()
        if credentials is None:
            raise NoCredentialsError
        signer = SigV4Auth(credentials.get_frozen_credentials(), "execute-api", region)
    answer = _post(f"{address}/sessions/aws", {}, seconds, signer)
    if answer.status == HTTPStatus.FORBIDDEN:
        raise CommandError(_aws_refusal(answer, region))
    return _read(answer, address)


def for_id_token(token: "IdToken", address: str, seconds: int | None) -> Session:
    """Get a session for an ID token.

    Args:
        token: the ID token.
        address: the API's base URL.
        seconds: how long it shall last; None leaves that to the API.

    Raises:
        CommandError: the API refuses it or does not answer.
    """
    answer = _post(f"{address}/sessions", {"Authorization": f"Bearer {token.jwt}"}, seconds, None)
    if answer.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        raise CommandError(
            "The API refuses the ID token: it has ended, or no trust record has its issuer, audience and "
            f"claims. {id_tokens.describe(token)} `holdfast trust list --json` shows operators the records."
        )
    if answer.status == HTTPStatus.INTERNAL_SERVER_ERROR:
        raise CommandError(
            f"{urlsplit(address).netloc} answers 500, repeatedly: it may not reach the ID token's issuer. "
            f"{id_tokens.describe(token)} Run the command again; if it stays so, the audit log says why."
        )
    return _read(answer, address)


def _post(url: str, headers: dict[str, str], seconds: int | None, signer: SigV4Auth | None) -> Answer:
    body = b"" if seconds is None else json.dumps({"seconds": seconds}).encode()
    if body:
        headers = headers | {"Content-Type": "application/json"}
    return api.send("POST", url, headers=headers, body=body, sign=signer.add_auth if signer else None)


def _aws_refusal(answer: Answer, region: str) -> str:
    said = _error(answer)
    if said is not None:
        return f"The API refuses these AWS credentials: {said}"
    return (
        "AWS does not let these credentials call the API: they must be valid, of the team's account, and "
        "allowed execute-api:Invoke on POST /sessions/aws (docs/access.md#permissions); the clock must be "
        f"right, and the API in {region}, for which the request was signed."
    )


def _read(answer: Answer, address: str) -> Session:
    host = urlsplit(address).netloc
    if answer.status == HTTPStatus.OK:
        try:
            return _session(answer.body)
        except (KeyError, TypeError, ValueError) as error:
            raise CommandError(
                f"{host} answers what is no session of Holdfast: check the address, and that this command "
                "has the version of what is deployed."
            ) from error
    if answer.status in (HTTPStatus.NOT_FOUND, HTTPStatus.NOT_IMPLEMENTED):
        raise CommandError(
            f"{host} answers {answer.status}: check the address, and deploy the team's stack again if it is "
            "older than `holdfast login`."
        )
    said = _error(answer)
    if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR or answer.status == HTTPStatus.TOO_MANY_REQUESTS:
        reason = f" {said}" if said else ""
        raise CommandError(f"{host} answers {answer.status}, repeatedly: run the command again.{reason}")
    raise CommandError(f"{host} answers {answer.status}: {said or 'check the address.'}")


def _session(body: bytes) -> Session:
    document = json_object.parse(body)
    session_id, secret = (record_fields.text(document[name]) for name in ("id", "secret"))
    seconds = document["seconds"]
    # Nothing else shall ever get to where a shell evaluates it.
    if not (is_session_id(session_id) and is_secret(secret)) or type(seconds) is not int:
        raise ValueError("the credentials of no session")
    return Session(
        id=session_id,
        secret=secret,
        principal=record_fields.text(document["principal"]),
        role=record_fields.text(document["role"]),
        scope=record_fields.scope(document["scope"]),
        trust=record_fields.text(document["trust"]),
        expires=record_fields.time(document["expires"]),
        seconds=seconds,
    )


def _error(answer: Answer) -> str | None:
    """The message of an answer of Holdfast's own, None of others."""
    try:
        document = json_object.parse(answer.body)
        record_fields.text(document["error"])
        return plain(record_fields.text(document["message"]))
    except (KeyError, TypeError, ValueError):
        return None

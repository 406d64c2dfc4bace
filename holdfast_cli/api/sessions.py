"""Creates sessions at the team's API, with AWS credentials or with an ID token.

`seconds` is the lifetime to request; None leaves the choice to the API.
"""

import json
import re
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import NoCredentialsError, NoRegionError

from holdfast import json_object
from holdfast.access import Grant
from holdfast.errors import NotSigned
from holdfast.identity import records as record_fields
from holdfast.identity.credentials import is_secret, is_session_id
from holdfast.networks import LOOPBACK
from holdfast_cli.api import http, id_tokens
from holdfast_cli.api.http import Sign
from holdfast_cli.api.response import Response
from holdfast_cli.bucket.aws_errors import SIGN_IN, as_command_errors
from holdfast_cli.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import boto3

    from holdfast.identity.credentials import IdToken

_LOCAL_REGION: Final = "us-east-1"
"""The region in signatures for the local AWS, which accepts any region."""
_AWS_HOST = re.compile(r"[a-z0-9]+\.execute-api\.([a-z0-9-]+)\.amazonaws\.com(\.cn)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Session:
    """A session that the API created; `id` and `secret` are the user name and password of HTTP Basic.

    Attributes:
        trust: the name of the trust record that matched.
        seconds: the session's whole lifetime.
    """

    id: str
    secret: str = field(repr=False)
    principal: str
    grants: tuple[Grant, ...]
    trust: str
    expires: datetime
    seconds: int


def for_aws(session: "boto3.Session", address: str, seconds: int | None) -> Session:
    """Create a session with AWS credentials.

    The request is signed for the region in an API Gateway address, or else for the region of `session`.
    """
    host = urlsplit(address).hostname or ""
    of_aws = _AWS_HOST.fullmatch(host)
    region = of_aws[1] if of_aws else session.region_name
    if region is None and host in LOOPBACK:
        region = _LOCAL_REGION
    with as_command_errors():
        if region is None:
            raise NoRegionError
        credentials = session.get_credentials()
        if credentials is None:
            raise NoCredentialsError
        signer = SigV4Auth(credentials.get_frozen_credentials(), "execute-api", region)
    response = _post(f"{address}/sessions/aws", {}, seconds, _signing(signer))
    if response.status == HTTPStatus.FORBIDDEN:
        raise CommandError(_aws_denial(response, address, region))
    return _read(response, address)


def for_id_token(token: "IdToken", address: str, seconds: int | None) -> Session:
    """Create a session with an ID token."""
    response = _post(f"{address}/sessions", {"Authorization": f"Bearer {token.jwt}"}, seconds, None)
    if response.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        raise CommandError(
            "The API does not accept the ID token, for example because it has expired, because no trust "
            "record matches its issuer, audience and claims, or because of the network from which it was "
            f"sent. {id_tokens.describe(token)} With AWS credentials, `holdfast trust list --json` shows the "
            "trust records, and `holdfast audit --event sign_in.refused` shows the reason."
        )
    if response.status == HTTPStatus.INTERNAL_SERVER_ERROR:
        raise CommandError(
            f"{urlsplit(address).netloc} still responds with 500 after several attempts, perhaps because the "
            f"API cannot reach the ID token's issuer. {id_tokens.describe(token)} Run the command again. If "
            "that does not help, `holdfast audit --event sign_in.failed`, which needs AWS credentials, shows "
            "the reason."
        )
    return _read(response, address)


def _post(url: str, headers: dict[str, str], seconds: int | None, sign: Sign | None) -> Response:
    body = b"" if seconds is None else json.dumps({"seconds": seconds}).encode()
    if body:
        headers = headers | {"Content-Type": "application/json"}
    return http.send("POST", url, headers=headers, body=body, sign=sign)


def _signing(signer: SigV4Auth) -> Sign:
    def sign(method: str, url: str, headers: "Mapping[str, str]", body: bytes) -> dict[str, str]:
        request = AWSRequest(method=method, url=url, data=body, headers=dict(headers))
        signer.add_auth(request)
        return dict(request.headers.items())

    return sign


def _aws_denial(response: Response, address: str, region: str) -> str:
    if response.text("error") == NotSigned.code:
        return f"AWS does not know these credentials. Check AWS_ACCESS_KEY_ID and AWS_PROFILE, or {SIGN_IN}."
    if response.message:
        return f"The API does not create a session for these AWS credentials: {response.message}"
    return (
        "AWS does not let these credentials call the API. They must be valid, belong to the team's account, "
        "and have execute-api:Invoke on POST /sessions/aws (docs/operate/permissions.md). This machine's "
        f"clock must be right. The API must be in {region}, for which the request was "
        f"signed.{http.version_skew(address)}"
    )


def _read(response: Response, address: str) -> Session:
    host = urlsplit(address).netloc
    if response.status == HTTPStatus.OK:
        try:
            return parse(response.body)
        except (KeyError, TypeError, ValueError) as error:
            raise CommandError(
                f"The response of {host} is not a Holdfast session. Check the address, and check that this "
                f"command has the version of the deployed stack.{http.version_skew(address)}"
            ) from error
    if response.status in (HTTPStatus.NOT_FOUND, HTTPStatus.NOT_IMPLEMENTED):
        raise CommandError(
            f"{host} responds with {response.status}. Check the address. If the team's stack is from an "
            f"older release than this command, deploy the stack again.{http.version_skew(address)}"
        )
    transient = response.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    if transient or response.status == HTTPStatus.TOO_MANY_REQUESTS:
        # A 500 of Holdfast is a fault that stays: its message has the advice.
        has_advice = response.status == HTTPStatus.INTERNAL_SERVER_ERROR and response.message
        again = "" if has_advice else " Run the command again later."
        line = f"{host} still responds with {response.status} after several attempts.{again}"
        raise CommandError(f"{line} {response.message}".rstrip())
    reason = f": {response.message}" if response.message else ". Check the address."
    raise CommandError(f"{host} responds with {response.status}{reason}{http.version_skew(address)}")


def parse(body: bytes) -> Session:
    """Parse the JSON form of a session. KeyError, TypeError or ValueError if it is not valid."""
    document = json_object.parse(body)
    session_id, secret = (record_fields.text(document[name]) for name in ("id", "secret"))
    seconds = document["seconds"]
    # A shell evaluates the ID and the secret, so both must have exactly the form of credentials.
    if not (is_session_id(session_id) and is_secret(secret)) or type(seconds) is not int:
        raise ValueError("not the credentials of a session")
    return Session(
        id=session_id,
        secret=secret,
        principal=record_fields.text(document["principal"]),
        # An API before 0.3.0 sends no `grants`.
        grants=record_fields.grants({"grants": document["grants"]} if "grants" in document else document),
        trust=record_fields.text(document["trust"]),
        expires=record_fields.time(document["expires"]),
        seconds=seconds,
    )

"""Callers of the AWS account: root, a user and sessions of roles, and requests that they sign."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as Signer

from local_aws.server import ACCOUNT, REGION, LocalAws
from tests.e2e.deployed import Credentials as AwsCredentials
from tests.e2e.deployed import client
from tests.e2e.http_client import Client, Response
from tests.e2e.team import Team

PATH = "/sessions/aws"

_MAY_CALL = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": "*"}],
    }
)


@dataclass(frozen=True, slots=True)
class Assumed:
    """A session of an IAM role.

    Attributes:
        role: the role's name.
        arn: of the session.
        credentials: of the session.
    """

    role: str
    arn: str
    credentials: AwsCredentials


def assume(aws: LocalAws, role: str, session: str, *, path: str = "/") -> Assumed:
    """Make an IAM role that may call the API, and a session of it."""
    iam = client(aws, "iam")
    may_assume = {
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"},
        "Action": "sts:AssumeRole",
    }
    try:
        made = iam.create_role(
            RoleName=role,
            Path=path,
            AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [may_assume]}),
        )
        arn = made["Role"]["Arn"]
        iam.put_role_policy(
            RoleName=role,
            PolicyName="call",
            PolicyDocument=_MAY_CALL,
        )
    except iam.exceptions.EntityAlreadyExistsException:
        arn = iam.get_role(RoleName=role)["Role"]["Arn"]
    assumed = client(aws, "sts").assume_role(RoleArn=arn, RoleSessionName=session)
    return Assumed(role, assumed["AssumedRoleUser"]["Arn"], assumed["Credentials"])


def user(aws: LocalAws, name: str) -> AwsCredentials:
    """Make an IAM user with an access key, who may call the API."""
    iam = client(aws, "iam")
    iam.create_user(UserName=name)
    iam.put_user_policy(UserName=name, PolicyName="call", PolicyDocument=_MAY_CALL)
    made: AwsCredentials = iam.create_access_key(UserName=name)["AccessKey"]
    return made


def signed(
    team: Team,
    credentials: AwsCredentials,
    *,
    method: str = "POST",
    query: str = "",
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Send a request for a session that is signed with Signature Version 4.

    Past the gateway of the tests: the local AWS compares the signature with its own address.
    """
    request = AWSRequest(
        method, f"{team.direct_address}{PATH}{query}", data=body, headers=dict(headers or {})
    )
    signer: Any = Signer(
        credentials["AccessKeyId"], credentials["SecretAccessKey"], credentials.get("SessionToken")
    )
    SigV4Auth(signer, "execute-api", REGION).add_auth(request)
    return Client(team.direct_address, team.tls, None).request(
        method, f"{PATH}{query}", body, dict(request.headers.items())
    )


def unsigned(
    team: Team,
    *,
    method: str = "POST",
    query: str = "",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Send a request for a session with these headers and no other."""
    return Client(team.gateway.address, team.tls, None).request(
        method, f"{PATH}{query}", body, {"Content-Type": "application/json", **(headers or {})}
    )

"""Callers in the team's AWS account, with an IAM role or without, that request a session."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as AwsCredentials

from holdfast.identity import trust
from local_aws.server import ACCOUNT, REGION
from tests.support import http_client
from tests.support.deployed import new_user, policy
from tests.support.http_client import Client, Response
from tests.support.team import Team

PREFIX = "holdfast-e2e-"
"""The prefix of the name of every IAM role and user that this module creates."""

PATH = "/sessions/aws"

_MAY_USE_APIS = {"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": "*"}


@dataclass(frozen=True)
class AwsCaller:
    """A session of an IAM role, or another caller. `role_name` is empty for a caller without a role."""

    role_name: str
    arn: str
    credentials: AwsCredentials

    def ask_for_session(
        self, team: Team, body: bytes = b"", *, query: str = "", headers: Mapping[str, str] | None = None
    ) -> Response:
        """Send a signed `POST /sessions/aws` to the API itself: the signature covers the host name."""
        path = PATH + query
        request = AWSRequest("POST", team.direct_address + path, data=body, headers=dict(headers or {}))
        SigV4Auth(self.credentials, "execute-api", REGION).add_auth(request)
        return Client(team.direct_address, team.tls, None).request(
            "POST", path, body, {name: str(value) for name, value in request.headers.items()}
        )

    @property
    def environment(self) -> Mapping[str, str]:
        """Return the variables with which a command signs as this caller."""
        return {
            "AWS_ACCESS_KEY_ID": self.credentials.access_key,
            "AWS_SECRET_ACCESS_KEY": self.credentials.secret_key,
            "AWS_SESSION_TOKEN": self.credentials.token or "",
        }

    def session(self, team: Team) -> http_client.Credentials:
        """Create a session with a team that trusts the role."""
        answer = self.ask_for_session(team)
        assert answer.status == 200, answer
        made = answer.json()
        return http_client.Credentials(made["id"], made["secret"])


def assume(team: Team, name: str, *, session: str = "ada", path: str = "/") -> AwsCaller:
    """Return a caller whose role may use every API of the account; create the role if it does not exist."""
    role_name = f"{PREFIX}{name}"
    iam, sts = aws_client(team, "iam"), aws_client(team, "sts")
    root = {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
    trusting = {"Effect": "Allow", "Principal": root, "Action": "sts:AssumeRole"}
    with suppress(iam.exceptions.EntityAlreadyExistsException):
        iam.create_role(RoleName=role_name, Path=path, AssumeRolePolicyDocument=policy(trusting))
    iam.put_role_policy(RoleName=role_name, PolicyName="apis", PolicyDocument=policy(_MAY_USE_APIS))
    arn = f"arn:aws:iam::{ACCOUNT}:role{path}{role_name}"
    assumed = sts.assume_role(RoleArn=arn, RoleSessionName=session)
    made = assumed["Credentials"]
    credentials = AwsCredentials(made["AccessKeyId"], made["SecretAccessKey"], made["SessionToken"])
    return AwsCaller(role_name, assumed["AssumedRoleUser"]["Arn"], credentials)


def user(team: Team, name: str) -> AwsCaller:
    """Create an IAM user who may use every API of the account, and return it as a caller."""
    user_name = f"{PREFIX}{name}"
    made = new_user(aws_client(team, "iam"), user_name, _MAY_USE_APIS)
    arn = f"arn:aws:iam::{ACCOUNT}:user/{user_name}"
    return AwsCaller("", arn, AwsCredentials(made["AccessKeyId"], made["SecretAccessKey"]))


def root(team: Team) -> AwsCaller:
    environment = team.environment
    credentials = AwsCredentials(environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"])
    return AwsCaller("", f"arn:aws:iam::{ACCOUNT}:root", credentials)


def ask_unsigned(
    team: Team, *, query: str = "", body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """Send `POST /sessions/aws` through the gateway, with these headers only."""
    return Client(team.gateway.address, team.tls, None).request("POST", PATH + query, body, headers)


def trust_records(team: Team) -> trust.Records:
    """Return the team's trust records; none if their object does not exist."""
    found = team.object(trust.KEY)
    return trust.parse(found) if found is not None else trust.Records()


@cache
def aws_client(team: Team, service: str) -> Any:
    """Return a client with root's permissions. It is cached: its creation takes longer than most requests."""
    environment = team.environment
    session: Any = boto3.Session(
        environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"], region_name=REGION
    )
    return session.client(
        service, endpoint_url=environment["AWS_ENDPOINT_URL"], verify=environment.get("AWS_CA_BUNDLE")
    )

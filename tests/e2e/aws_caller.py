"""Somebody with an IAM role of the team's account, who asks for a session with a signed request."""

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as AwsCredentials

from holdfast import trust
from holdfast.access import Role
from local_aws.server import ACCOUNT, REGION
from tests.e2e import http_client
from tests.e2e.http_client import Client, Response
from tests.e2e.team import Team

PREFIX = "holdfast-e2e-"
"""Begins the name of every IAM role that is made here."""


@dataclass(frozen=True)
class AwsCaller:
    """A session of an IAM role.

    Attributes:
        role_name: of the IAM role.
        credentials: of the session.
    """

    role_name: str
    credentials: AwsCredentials

    def ask_for_session(self, team: Team, body: bytes = b"") -> Response:
        """`POST /sessions/aws`, signed, at the API itself: a signature holds for one host name alone."""
        path = "/sessions/aws"
        request = AWSRequest("POST", team.direct_address + path, data=body)
        SigV4Auth(self.credentials, "execute-api", REGION).add_auth(request)
        return Client(team.direct_address, team.tls, None).request(
            "POST", path, body, {name: str(value) for name, value in request.headers.items()}
        )

    def session(self, team: Team) -> http_client.Credentials:
        """A new session with a team that trusts the role."""
        answer = self.ask_for_session(team)
        assert answer.status == 200, answer
        made = answer.json()
        return http_client.Credentials(made["id"], made["secret"])


def assume(team: Team, name: str) -> AwsCaller:
    """Be somebody with a role who may use every API of the account; the role is made if it is not there."""
    role_name = f"{PREFIX}{name}"
    iam, sts = aws_client(team, "iam"), aws_client(team, "sts")
    root = {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
    trusting = {"Effect": "Allow", "Principal": root, "Action": "sts:AssumeRole"}
    allowing = {"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": "*"}
    with suppress(iam.exceptions.EntityAlreadyExistsException):
        iam.create_role(RoleName=role_name, AssumeRolePolicyDocument=_policy(trusting))
    iam.put_role_policy(RoleName=role_name, PolicyName="apis", PolicyDocument=_policy(allowing))
    arn = f"arn:aws:iam::{ACCOUNT}:role/{role_name}"
    assumed = sts.assume_role(RoleArn=arn, RoleSessionName="ada")["Credentials"]
    credentials = AwsCredentials(assumed["AccessKeyId"], assumed["SecretAccessKey"], assumed["SessionToken"])
    return AwsCaller(role_name, credentials)


def trust_role(team: Team, name: str, role: Role = Role.MAINTAINER) -> AwsCaller:
    """As `assume`, with a trust record that lets the role's bearers do something to every state."""
    caller = assume(team, name)
    records = trust_records(team)
    if records.for_aws_role(caller.role_name) is None:
        record = trust.new_aws(
            name,
            aws_role=caller.role_name,
            role=role,
            scope=["*"],
            description="",
            created_by="a test",
            now=datetime.now(UTC),
        )
        team.put(trust.KEY, records.added(record).to_json())
    return caller


def trust_records(team: Team) -> trust.Records:
    """The team's trust records; none if there is no object with them."""
    found = team.object(trust.KEY)
    return trust.parse(found) if found is not None else trust.Records()


def aws_client(team: Team, service: Any) -> Any:
    """A client of root's."""
    environment = team.environment
    session = boto3.Session(
        environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"], region_name=REGION
    )
    return session.client(
        service, endpoint_url=environment["AWS_ENDPOINT_URL"], verify=environment.get("AWS_CA_BUNDLE")
    )


def _policy(statement: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})

"""The local AWS notes the functions' calls: enough to judge their permissions, and no secret."""

import json
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from botocore.config import Config

from local_aws.server import ACCOUNT, REGION, LocalAws
from tests.support.deployed import Credentials, client
from tests.support.free_port import free_port


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAws]:
    folder = tmp_path_factory.mktemp("recorded")
    with LocalAws(free_port(), folder / "aws", iam=True, calls=folder / "calls.jsonl") as running:
        client(running, "s3").create_bucket(Bucket="bucket")
        yield running


@pytest.fixture(scope="module")
def session(aws: LocalAws) -> Credentials:
    """Credentials of a role that may do everything, as a function's are."""
    return assume(aws, "function", action="*", resource="*")


def assume(aws: LocalAws, name: str, *, action: str, resource: str) -> Credentials:
    """Credentials of a new role that may do one thing."""
    iam = client(aws, "iam")
    root = {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
    trusted = {"Effect": "Allow", "Principal": root, "Action": "sts:AssumeRole"}
    allowed = {"Effect": "Allow", "Action": action, "Resource": resource}
    document = {"Version": "2012-10-17", "Statement": [trusted]}
    iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(document))
    document["Statement"] = [allowed]
    iam.put_role_policy(RoleName=name, PolicyName="one", PolicyDocument=json.dumps(document))
    credentials: Credentials = client(aws, "sts").assume_role(
        RoleArn=f"arn:aws:iam::{ACCOUNT}:role/{name}", RoleSessionName="session"
    )["Credentials"]
    return credentials


def secret(session: Credentials) -> list[str]:
    return [session[name] for name in ("AccessKeyId", "SecretAccessKey", "SessionToken")]


def noted(aws: LocalAws) -> list[dict[str, Any]]:
    assert aws.calls is not None
    return [json.loads(line) for line in aws.calls.read_text().splitlines()]


def test_a_call_is_noted_with_whatever_changes_what_aws_demands_for_it(
    aws: LocalAws, session: Credentials
) -> None:
    client(aws, "s3", session).put_object(
        Bucket="bucket", Key="a/b ü.json", Body=b"{}", IfNoneMatch="*", Tagging="holdfast=lock"
    )

    call = noted(aws)[-1]
    assert call["principal"] == f"arn:aws:sts::{ACCOUNT}:assumed-role/function/session"
    assert (call["service"], call["method"], call["path"]) == ("s3", "PUT", "/bucket/a/b ü.json")
    assert (call["query"], call["status"]) == ([], 200)
    assert call["headers"]["if-none-match"] == "*"
    assert "x-amz-tagging" in call["headers"]


def test_a_call_to_another_service_is_noted_with_its_operation_and_without_its_content(
    aws: LocalAws, session: Credentials
) -> None:
    client(aws, "logs", session).create_log_group(logGroupName="the-content")

    call = noted(aws)[-1]
    assert (call["service"], call["method"], call["path"]) == ("logs", "POST", "/")
    assert call["headers"]["x-amz-target"] == "Logs_20140328.CreateLogGroup"
    assert "the-content" not in json.dumps(call)


def test_a_role_may_write_to_the_log_groups_that_its_policy_names_as_aws_has_it_and_to_no_other(
    aws: LocalAws,
) -> None:
    named = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/own:*"
    own = client(aws, "logs", assume(aws, "writer", action="logs:CreateLogStream", resource=named))
    for group in ("/own", "/own_other", "/other"):
        client(aws, "logs").create_log_group(logGroupName=group)

    own.create_log_stream(logGroupName="/own", logStreamName="stream")
    for group in ("/own_other", "/other"):
        with pytest.raises(own.exceptions.ClientError, match="AccessDenied"):
            own.create_log_stream(logGroupName=group, logStreamName="stream")


def test_a_refused_call_is_noted_too(aws: LocalAws, session: Credentials) -> None:
    s3 = client(aws, "s3", session)
    with pytest.raises(s3.exceptions.ClientError):
        s3.delete_object(Bucket="no-such-bucket", Key="key", VersionId="version")

    call = noted(aws)[-1]
    assert (call["method"], call["query"], call["status"]) == ("DELETE", ["versionId"], 404)


@pytest.mark.parametrize(("signature", "parameter"), [("s3v4", "X-Amz-Credential"), ("s3", "AWSAccessKeyId")])
def test_a_presigned_call_is_noted_as_its_signers_and_without_the_signature(
    aws: LocalAws, session: Credentials, signature: str, parameter: str
) -> None:
    key = f"presigned-{signature}"
    client(aws, "s3").put_object(Bucket="bucket", Key=key, Body=b"the content")
    s3 = client(aws, "s3", session, Config(signature_version=signature))
    address = urlsplit(s3.generate_presigned_url("get_object", {"Bucket": "bucket", "Key": key}))

    with closing(HTTPConnection(address.netloc, timeout=10)) as connection:
        connection.request("GET", f"{address.path}?{address.query}")
        assert connection.getresponse().read() == b"the content"

    call = noted(aws)[-1]
    assert call["principal"] == f"arn:aws:sts::{ACCOUNT}:assumed-role/function/session"
    assert (call["service"], call["method"], call["path"]) == ("s3", "GET", f"/bucket/{key}")
    assert parameter in call["query"]
    query = parse_qs(address.query)
    secrets = [*secret(session), *query.get("X-Amz-Signature", []), *query.get("Signature", [])]
    assert [secret for secret in secrets if secret in json.dumps(call)] == []


def test_neither_content_nor_credentials_nor_metadata_are_noted(aws: LocalAws, session: Credentials) -> None:
    client(aws, "s3", session).put_object(
        Bucket="bucket", Key="key", Body=b"the content", Metadata={"who": "the metadata"}
    )

    assert aws.calls is not None
    text = aws.calls.read_text()
    secrets = ["the content", "the metadata", *secret(session)]
    assert "x-amz-meta-who" in text
    assert [secret for secret in secrets if secret in text] == []
    assert aws.calls.stat().st_mode & 0o077 == 0

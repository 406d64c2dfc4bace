"""Errors of the AWS SDK that are not of its families become one line too."""

from typing import Any
from unittest import mock

import pytest
from botocore.exceptions import ClientError
from botocore.model import ShapeResolver
from botocore.parsers import create_parser

from holdfast_cli.bucket import stack
from holdfast_cli.bucket.aws_errors import as_command_errors
from holdfast_cli.errors import CommandError, UnavailableError

OUTPUT: Any = {
    "Output": {"type": "structure", "members": {"events": {"shape": "Events"}}},
    "Events": {"type": "list", "member": {"shape": "Event"}},
    "Event": {"type": "string"},
}
SHAPE = ShapeResolver(OUTPUT).get_shape_by_name("Output", {"resultWrapper": "Result"})
WITHOUT_ERROR: Any = {"ResponseMetadata": {"HTTPStatusCode": 404}}
NOT_OF_AWS = (
    "The response does not come from AWS. Check AWS_ENDPOINT_URL, and check whether a proxy responded."
)


@pytest.mark.parametrize(
    ("protocol", "body"),
    [
        ("query", b""),
        ("query", b"<html>a proxy's page"),
        ("query", b"<br>not xml"),
        ("query", b"<html><body>hi</body></html>"),
        ("query", b"\x00\xff"),
        ("json", b"[]"),
        ("json", b'{"events": 5}'),
        ("json", b"\x00\xff"),
    ],
)
def test_a_response_that_is_not_of_aws_is_one_line_without_the_response(protocol: str, body: bytes) -> None:
    response = {"status_code": 200, "headers": {}, "body": body}

    with pytest.raises(CommandError) as raised, as_command_errors():
        create_parser(protocol).parse(response, SHAPE)

    assert str(raised.value) == NOT_OF_AWS


def test_a_mistake_of_the_command_itself_stays_one() -> None:
    with pytest.raises(KeyError), as_command_errors():
        raise KeyError("mine")


def test_a_page_with_the_status_of_an_error_is_the_same_line_and_not_shown() -> None:
    page = create_parser("json").parse({"status_code": 404, "headers": {}, "body": b"<html>hi</html>"}, SHAPE)

    with pytest.raises(CommandError) as raised, as_command_errors():
        raise ClientError(page, "FilterLogEvents")

    assert str(raised.value) == NOT_OF_AWS


def test_an_expired_session_is_one_line_that_says_to_sign_in() -> None:
    response: Any = {"Error": {"Code": "ExpiredToken"}, "ResponseMetadata": {"HTTPStatusCode": 403}}

    with pytest.raises(CommandError, match=r"session has expired: sign in again"), as_command_errors():
        raise ClientError(response, "DescribeStacks")


@pytest.mark.parametrize("code", ["ThrottlingException", "ProvisionedThroughputExceededException"])
def test_a_throttled_request_may_succeed_later(code: str) -> None:
    response: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": 400}}

    with pytest.raises(UnavailableError), as_command_errors():
        raise ClientError(response, "PutItem")


@pytest.mark.parametrize(
    "described",
    [
        {"side_effect": ClientError(WITHOUT_ERROR, "DescribeStacks")},
        {"return_value": {}},
        {"return_value": {"Stacks": []}},
        {"return_value": {"Stacks": [{"StackId": "x"}]}},
        {"return_value": {"Stacks": [{"StackName": "holdfast-a", "StackId": "x"}]}},
    ],
)
def test_a_stack_that_aws_would_not_describe_so_is_the_same_line(described: dict[str, Any]) -> None:
    session = mock.Mock()
    client = session.client.return_value
    client.describe_stacks.configure_mock(**described)
    client.get_paginator.return_value.paginate = lambda: iter([client.describe_stacks()])

    teams = ["a"] if described.get("return_value") == {"Stacks": []} else ["a", None]
    for team in teams:  # without a team, AWS responds with no stacks too
        with pytest.raises(CommandError) as raised:
            stack.find(session, team)
        assert str(raised.value) == NOT_OF_AWS

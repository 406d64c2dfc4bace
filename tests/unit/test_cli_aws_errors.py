"""Errors of the AWS SDK that are not of its families become one line too."""

import pytest
from botocore.model import StructureShape
from botocore.parsers import create_parser

from holdfast_cli.aws_errors import as_command_errors
from holdfast_cli.errors import CommandError


@pytest.mark.parametrize("body", [b"", b"<html>a proxy's page", b"<br>not xml"])
def test_a_response_that_is_not_of_aws_is_one_line_without_the_response(body: bytes) -> None:
    response = {"status_code": 200, "headers": {}, "body": body}

    with pytest.raises(CommandError) as raised, as_command_errors():
        create_parser("query").parse(response, StructureShape("Output", {"type": "structure", "members": {}}))

    assert str(raised.value).startswith("The response is not one of AWS: check AWS_ENDPOINT_URL")
    assert "\n" not in str(raised.value)

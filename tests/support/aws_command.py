"""A stand-in for the AWS CLI, which calls an operation and prints the result of `--query` as text.

    python -m tests.support.aws_command sts get-caller-identity --query Arn --output text

The AWS CLI is no requirement of the tests. Its commands and options are named like the SDK's operations and
members, which are what this takes.
"""

import sys
from typing import Any

import boto3
import jmespath  # type: ignore[import-untyped]  # it has no stubs
from botocore import xform_name

RENAMED = {"sns subscribe": {"notification-endpoint": "endpoint"}}
"""Options that the AWS CLI does not name like a member, by command, with the member's name."""


def main(service: str, operation: str, *options: str) -> None:
    client: Any = boto3.client(service)  # type: ignore[call-overload]  # any service
    named = {name.removeprefix("--"): value for name, value in zip(options[::2], options[1::2], strict=True)}
    renamed = RENAMED.get(f"{service} {operation}", {})
    query, output = named.pop("query", "@"), named.pop("output", "json")
    method = operation.replace("-", "_")
    shape = client.meta.service_model.operation_model(client.meta.method_to_api_mapping[method]).input_shape
    members = {xform_name(member, "-"): member for member in shape.members}
    arguments = {members[renamed.get(name, name)]: value for name, value in named.items()}
    found = jmespath.search(query, getattr(client, method)(**arguments))
    assert output == "json" or isinstance(found, str)
    print(found)


if __name__ == "__main__":
    main(*sys.argv[1:])

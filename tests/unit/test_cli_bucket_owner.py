"""Every S3 request of the command names the account of the stack, against moto's server over HTTP."""

import json

import pytest

from tests.support.cli_account import Aws
from tests.support.fault_relay import Fault, Injected, Relay, Request

ACCOUNT = "123456789012"
"""The account of moto's stacks; moto does not compare it."""


def test_every_request_to_s3_names_the_account_of_the_stack(aws: Aws, moto: str) -> None:
    owners: list[tuple[str, str | None]] = []

    def note(request: Request) -> None:
        owners.append((request.method, request.headers.get("x-amz-expected-bucket-owner")))

    with Relay(moto, note) as relay:
        endpoint = {"AWS_ENDPOINT_URL_S3": relay.endpoint}
        create = ("token", "create", "--role", "writer", "--scope", "*", "--json")
        token = json.loads(aws.output(*create, **endpoint))["id"]
        for command in (
            ("token", "list"),
            ("token", "show", token),
            ("token", "rotate", token, "--json"),
            ("token", "revoke", token),
            ("trust", "create", "ci", "--aws-role", "Deployer", "--role", "writer", "--scope", "*"),
            ("trust", "list"),
            ("trust", "remove", "ci"),
        ):
            before = len(owners)
            aws.output(*command, **endpoint)
            assert len(owners) > before, f"{command} sent nothing to S3"

    assert {owner for _, owner in owners} == {ACCOUNT}
    assert {method for method, _ in owners} == {"GET", "PUT"}


@pytest.mark.parametrize("command", [("token", "list"), ("trust", "list")])
def test_a_refused_request_names_the_account_that_the_bucket_should_be_in(
    aws: Aws, moto: str, command: tuple[str, ...]
) -> None:
    with Relay(moto, lambda _: Injected(Fault.DENIED)) as relay:
        line = aws.failure(*command, AWS_ENDPOINT_URL_S3=relay.endpoint)

    assert f"perhaps because the bucket is no longer in the account {ACCOUNT}" in line

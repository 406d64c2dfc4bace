"""docs/operate/permissions.md: what it grants to operators is enough for their commands, and no more."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import cli_account
from tests.support.cli_account import Aws, bucket
from tests.support.documents import lock_info
from tests.support.pages import page

TEXT = page("permissions.md").read_text(encoding="utf-8")


def policy(command: str) -> list[dict[str, list[str]]]:
    """Return the statements that the table of permissions has for a command."""
    _, _, rest = TEXT.partition("| For | Allow | On |\n| --- | --- | --- |\n")
    rows = [line.strip("|").split(" | ") for line in rest.partition("\n\n")[0].splitlines()]
    return [
        {"Action": re.findall(r"`([^`]+)`", allowed), "Resource": re.findall(r"`(arn:[^`]+)`", on)}
        for commands, allowed, on in rows
        if f"`{command}" in commands
    ]


def test_every_policy_allows_only_named_actions_on_named_resources() -> None:
    policies = {
        command: policy(f"holdfast {command}") for command in ("token", "trust", "login", "audit", "recover")
    }

    assert all(policies.values())
    assert policies["token"] == policies["trust"]
    for statement in (each for statements in policies.values() for each in statements):
        assert statement["Action"]
        assert not any("*" in action for action in statement["Action"])
        assert statement["Resource"]


# --- the permissions, on an AWS that enforces them ------------------------------------------------


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    with cli_account.running() as endpoint:
        yield endpoint


@contextmanager
def identity(aws: Aws, statements: list[dict[str, list[str]]]) -> Iterator[dict[str, str]]:
    """The environment of somebody who has these permissions and no others.

    moto knows the resources of requests to S3 alone; it takes all other requests for `*`.
    """
    text = json.dumps([{"Effect": "Allow", **statement} for statement in statements])
    ours = json.loads(text.replace("holdfast-platform-123456789012-eu-central-1", bucket("platform")))
    for statement in ours:
        if "s3:" not in str(statement["Action"]):
            statement["Resource"] = "*"
    document = {"Version": "2012-10-17", "Statement": ours}
    iam = aws.client("iam")
    iam.create_user(UserName="ada")
    iam.put_user_policy(UserName="ada", PolicyName="of-the-page", PolicyDocument=json.dumps(document))
    key = iam.create_access_key(UserName="ada")["AccessKey"]
    aws.enforce(authorization=True)
    try:
        yield {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}
    finally:
        aws.enforce(authorization=False)


def test_an_operator_with_the_policy_can_do_everything_with_tokens_and_trust(
    moto: str, tmp_path: Path
) -> None:
    aws = cli_account.empty(moto, tmp_path)
    aws.deploy("platform")
    team = ("--team", "platform")

    with identity(aws, policy("holdfast token")) as ada:
        made = aws.output("token", "create", "--role", "writer", "--scope", "*", "--json", *team, **ada)
        token_id = json.loads(made)["id"]
        for command in ("show", "rotate", "revoke"):
            aws.output("token", command, token_id, "--json", *team, **ada)
        assert "There is no token" in aws.failure("token", "show", "a" * 20, *team, **ada)
        assert token_id in aws.output("token", "list", "--all", *team, **ada)
        aws.output(
            "trust", "create", "x", "--role", "writer", "--scope", "*", "--aws-role", "x", *team, **ada
        )
        aws.output("trust", "list", *team, **ada)
        aws.output("trust", "update", "x", "--role", "reader", *team, **ada)
        aws.output("trust", "remove", "x", *team, **ada)
        assert "does not allow" in aws.failure("audit", *team, **ada)


def test_an_operator_with_the_policy_can_recover(moto: str, tmp_path: Path) -> None:
    aws = cli_account.empty(moto, tmp_path)
    aws.deploy("platform")
    old = "holdfast-platform-123456789012-eu-west-1"
    aws.replicate(old, bucket("platform"))
    aws.client("s3").put_object(Bucket=old, Key="states/a.tfstate", Body=b"{}", Metadata={"serial": "1"})
    aws.put_copy("platform", "states/a.tfstate.tflock", lock_info("earlier"))
    aws.put_copy("platform", "states/a.tfstate.tflock", lock_info("one"))

    # moto takes a request for the replication of a bucket for a list, and ignores the version of a HEAD.
    taken_for = {"Action": ["s3:ListBucket", "s3:GetObject"], "Resource": [f"arn:aws:s3:::{old}*"]}
    with identity(aws, [*policy("holdfast token"), *policy("holdfast recover"), taken_for]) as ada:
        done = aws.run("recover", "--team", "platform", "--from", "eu-west-1", "--yes", **ada)

    assert "Removed 1 lock that S3 had copied from the old bucket.\n" in done.stdout
    assert (
        "S3 has not copied the newest version of the state a. Old bucket: serial 1. New bucket: missing.\n"
        in done.stdout
    )
    assert "S3 has not copied the newest version of 1 object of " in done.stderr, done.stderr


def test_who_has_the_policy_for_the_audit_log_can_read_it_and_make_no_token(
    moto: str, tmp_path: Path
) -> None:
    aws = cli_account.empty(moto, tmp_path)
    aws.deploy("platform")
    aws.make_audit_log("platform")

    with identity(aws, policy("holdfast audit")) as ada:
        aws.output("audit", "--team", "platform", **ada)
        assert "does not allow" in aws.failure("token", "list", "--team", "platform", **ada)

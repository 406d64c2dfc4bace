"""`holdfast state undelete`, against moto's server over HTTP."""

import json
import signal
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import TokenRetrievalError

from holdfast_cli.aws_errors import as_command_errors
from holdfast_cli.errors import CommandError
from holdfast_cli.main import main
from tests.support import cli_account
from tests.support.cli_account import HOLDFAST, Aws, bucket
from tests.support.documents import LINEAGE, lock_info, state
from tests.support.free_port import free_port
from tests.support.s3_fault_proxy import Fault, running

NAME = "network/prod"
KEY = f"states/{NAME}.tfstate"
LOCK_KEY = f"{KEY}.tflock"
UNDELETE = ("state", "undelete", NAME)
MOTOS_ARN = "arn:aws:sts::123456789012:user/moto"


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    with cli_account.running() as endpoint:
        yield endpoint


@pytest.fixture
def aws(moto: str, tmp_path: Path) -> Aws:
    """An account with the stack of one team."""
    account = cli_account.empty(moto, tmp_path)
    account.deploy("payments")
    return account


def deleted(aws: Aws, *bodies: bytes, team: str = "payments") -> str:
    """Delete a state that had these versions; the newest of them."""
    [*_, newest] = [aws.put_state(team, NAME, body) for body in bodies or (state(7),)]
    aws.delete_state(team, NAME)
    return newest


def head(aws: Aws, team: str = "payments") -> dict[str, Any]:
    answer: dict[str, Any] = aws.client("s3").head_object(Bucket=bucket(team), Key=KEY)
    return answer


def locks_left(aws: Aws) -> int:
    """Versions and markers of the state's lock."""
    listed = aws.client("s3").list_object_versions(Bucket=bucket("payments"), Prefix=LOCK_KEY)
    return len(listed.get("Versions", [])) + len(listed.get("DeleteMarkers", []))


def test_a_deleted_state_is_back_with_its_newest_version_and_no_lock(aws: Aws) -> None:
    newest = deleted(aws, state(6), state(7))

    text = aws.output(*UNDELETE)

    assert aws.state("payments", NAME) == state(7)
    assert f"The state {NAME} of the team payments is back." in text
    shown = [line.split(maxsplit=2) for line in text.splitlines() if line.startswith("  ")]
    assert shown[0] == ["serial", "7"]
    assert shown[1][:2] == ["from", "version"]
    assert shown[1][2].startswith(f"{newest}, of {datetime.now(UTC):%Y-%m-}")
    assert shown[2] == ["now", "version", head(aws)["VersionId"]]
    assert "retention" not in text
    assert locks_left(aws) == 0


def test_json_is_one_object_with_what_came_back(aws: Aws) -> None:
    newest = deleted(aws)

    undeleted = json.loads(aws.output(*UNDELETE, "--json"))

    age = datetime.now(UTC) - datetime.fromisoformat(undeleted.pop("from_time"))
    assert timedelta(0) <= age < timedelta(minutes=5)
    assert undeleted == {
        "state": NAME,
        "team": "payments",
        "serial": 7,
        "lineage": LINEAGE,
        "from_version": newest,
        "version": head(aws)["VersionId"],
        "retention": None,
    }


def test_the_new_version_notes_which_aws_identity_brought_it_back(aws: Aws) -> None:
    deleted(aws)

    aws.output(*UNDELETE)

    noted = head(aws)["Metadata"]
    assert (noted["written-by"], noted["operation"]) == (MOTOS_ARN, "undelete")


def test_the_new_version_has_the_retention_of_the_stack(aws: Aws) -> None:
    aws.deploy("platform", retention="governance 30")
    deleted(aws, team="platform")

    text = aws.output(*UNDELETE, "--team", "platform")

    assert "governance 30 days" in text
    assert head(aws, "platform")["ObjectLockMode"] == "GOVERNANCE"
    days = head(aws, "platform")["ObjectLockRetainUntilDate"] - datetime.now(UTC)
    assert timedelta(days=29, hours=23) < days <= timedelta(days=30)


def test_a_stack_without_retention_leaves_it_to_the_bucket(aws: Aws) -> None:
    deleted(aws)

    aws.output(*UNDELETE)

    assert "ObjectLockMode" not in head(aws)


def test_a_retention_that_the_command_does_not_know_is_one_line_and_nothing_is_written(aws: Aws) -> None:
    aws.deploy("platform", retention="eternal")
    deleted(aws, team="platform")

    line = aws.failure(*UNDELETE, "--team", "platform")

    assert "StateRetention" in line
    assert "'eternal'" in line
    assert "npx cdk deploy Holdfast-platform" in line
    assert aws.state("platform", NAME) is None
    assert aws.output("trust", "list", "--team", "platform"), "no other command needs it"


def test_the_team_is_the_one_that_is_named(aws: Aws) -> None:
    aws.deploy("platform")
    for team in ("payments", "platform"):
        deleted(aws, team=team)

    aws.output(*UNDELETE, "--team", "platform")

    assert aws.state("platform", NAME) == state(7)
    assert aws.state("payments", NAME) is None


def test_a_state_that_is_not_deleted_is_one_line_and_stays(aws: Aws) -> None:
    current = aws.put_state("payments", NAME, state(7))

    line = aws.failure(*UNDELETE)

    assert f"'{NAME}' is not deleted" in line
    assert current in line
    assert head(aws)["VersionId"] == current


def test_a_state_that_never_was_is_one_line_that_names_the_bucket(aws: Aws) -> None:
    line = aws.failure(*UNDELETE)

    assert f"no version of the state '{NAME}'" in line
    assert bucket("payments") in line
    assert aws.records("payments") == {}


def test_a_newest_version_that_is_no_state_is_one_line_that_says_how_to_go_further_back(aws: Aws) -> None:
    newest = deleted(aws, state(1), b"not a state")

    line = aws.failure(*UNDELETE)

    assert newest in line
    assert "aws s3api get-object --version-id" in line
    assert "terraform state push" in line
    assert aws.state("payments", NAME) is None


def test_a_locked_state_is_one_line_that_names_the_holder_and_the_lock(aws: Aws) -> None:
    deleted(aws)
    held = lock_info("4fe1", who="bob@desk")
    aws.client("s3").put_object(Bucket=bucket("payments"), Key=LOCK_KEY, Body=held)

    line = aws.failure(*UNDELETE)

    assert "locked by bob@desk (OperationTypeApply), lock ID 4fe1" in line
    assert "terraform force-unlock 4fe1" in line
    assert aws.state("payments", NAME) is None
    assert aws.records("payments")[LOCK_KEY] == held


def test_what_a_holder_writes_into_its_lock_cannot_forge_the_line(aws: Aws) -> None:
    deleted(aws)
    held = lock_info("$(rm -rf ~)", who="bob\n\x1b[31mholdfast: done")
    aws.client("s3").put_object(Bucket=bucket("payments"), Key=LOCK_KEY, Body=held)

    line = aws.failure(*UNDELETE)

    assert "bob??[31mholdfast: done" in line
    assert "terraform force-unlock '$(rm -rf ~)'" in line


def test_a_lost_answer_of_the_bucket_brings_one_version_back(aws: Aws, moto: str) -> None:
    deleted(aws)

    with running(moto) as proxy:
        for key in (LOCK_KEY, KEY):
            proxy.fail("PUT", key, Fault.ANSWER_LOST)
        undeleted = json.loads(aws.output(*UNDELETE, "--json", AWS_ENDPOINT_URL_S3=proxy.endpoint))
        assert proxy.end_rules() == 0

    assert head(aws)["VersionId"] == undeleted["version"]
    listed = aws.client("s3").list_object_versions(Bucket=bucket("payments"), Prefix=KEY)
    assert len(listed["Versions"]) == 2
    assert locks_left(aws) == 0


def test_a_lock_that_stays_is_one_line_that_says_what_is_back_and_how_to_free_it(aws: Aws, moto: str) -> None:
    deleted(aws)

    with running(moto) as proxy:
        proxy.fail("DELETE", LOCK_KEY, Fault.DENIED, times=2)
        line = aws.failure(*UNDELETE, AWS_ENDPOINT_URL_S3=proxy.endpoint)
        assert proxy.end_rules() == 0

    assert aws.state("payments", NAME) == state(7)
    held = json.loads(aws.records("payments")[LOCK_KEY])
    assert f"is restored as version {head(aws)['VersionId']}" in line
    assert f"terraform force-unlock {held['ID']}" in line
    assert held["Who"] == MOTOS_ARN


def test_a_failure_that_leaves_its_lock_is_one_line_with_the_reason_and_the_lock(aws: Aws, moto: str) -> None:
    deleted(aws)

    with running(moto) as proxy:
        proxy.fail("PUT", KEY, Fault.DENIED)
        proxy.fail("DELETE", LOCK_KEY, Fault.DENIED, times=2)
        line = aws.failure(*UNDELETE, AWS_ENDPOINT_URL_S3=proxy.endpoint)
        assert proxy.end_rules() == 0

    held = json.loads(aws.records("payments")[LOCK_KEY])
    assert "does not allow PutObject" in line
    assert f"lock {held['ID']} of this undelete may be left: run the command again" in line

    aws.output(*UNDELETE)
    assert aws.state("payments", NAME) == state(7)
    assert locks_left(aws) == 0


def test_a_lock_that_is_left_is_named_also_where_the_sdk_failed() -> None:
    error = TokenRetrievalError(provider="sso", error_msg="expired")
    error.add_note("The lock 4fe1 may be left.")
    with (
        pytest.raises(CommandError, match=r"session has ended.* The lock 4fe1 may be left\.$"),
        as_command_errors(),
    ):
        raise error


def test_ctrl_c_while_the_state_is_written_is_130_with_one_line_and_leaves_no_lock(
    aws: Aws, moto: str
) -> None:
    deleted(aws)

    with running(moto) as proxy:
        started: list[subprocess.Popen[str]] = []

        def interrupt() -> None:
            started[0].send_signal(signal.SIGINT)
            started[0].wait(timeout=30)

        proxy.before("PUT", KEY, interrupt)
        with subprocess.Popen(
            [HOLDFAST, *UNDELETE],
            env={**aws.environment, "AWS_ENDPOINT_URL_S3": proxy.endpoint},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as command:
            started.append(command)
            output, errors = command.communicate(timeout=60)
        assert proxy.end_rules() == 0

    assert (command.returncode, output) == (130, "")
    [line] = errors.splitlines()
    assert f"Check whether the state {NAME} is back" in line
    assert locks_left(aws) == 0


@pytest.mark.parametrize(
    ("allowed", "call"),
    [
        ([], "ListObjectVersions"),
        (["s3:ListBucketVersions"], "PutObject"),
    ],
)
def test_an_identity_without_permission_is_one_line_that_names_bucket_and_call(
    aws: Aws, allowed: list[str], call: str
) -> None:
    deleted(aws)
    iam = aws.client("iam")
    iam.create_user(UserName="ada")
    statement = {"Effect": "Allow", "Action": ["cloudformation:*", *allowed], "Resource": "*"}
    iam.put_user_policy(
        UserName="ada",
        PolicyName="reads-stacks",
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [statement]}),
    )
    key = iam.create_access_key(UserName="ada")["AccessKey"]
    aws.enforce(authorization=True)
    try:
        line = aws.failure(
            *UNDELETE, AWS_ACCESS_KEY_ID=key["AccessKeyId"], AWS_SECRET_ACCESS_KEY=key["SecretAccessKey"]
        )
    finally:
        aws.enforce(authorization=False)

    assert bucket("payments") in line
    assert f"does not allow {call}" in line
    assert aws.state("payments", NAME) is None


def test_a_bucket_that_is_gone_is_named(aws: Aws) -> None:
    aws.client("s3").delete_bucket(Bucket=bucket("payments"))

    line = aws.failure(*UNDELETE)

    assert bucket("payments") in line
    assert "NoSuchBucket" in line


def test_a_bucket_that_nobody_serves_is_one_line_that_says_to_repeat(
    aws: Aws, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # In this process, so that its patience can be shortened.
    for name, value in aws.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setattr("holdfast_cli.states._PATIENCE", 0.2)

    assert main(UNDELETE) == 1

    [line] = capsys.readouterr().err.splitlines()
    assert bucket("payments") in line
    assert "run the command again" in line


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["state"], "name a command"),
        (["state", "undelete"], "STATE"),
        (["state", "undelete", "a//b"], "empty"),
        (["state", "delete", "a"], "no command"),
    ],
)
def test_wrong_usage_ends_with_2_and_names_what_is_wrong(aws: Aws, arguments: list[str], reason: str) -> None:
    done = aws.run(*arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert reason in done.stderr.splitlines()[-1]

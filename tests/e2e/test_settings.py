"""What a team's settings do once it is deployed, and that the buckets are as the templates say."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from infra.config import TeamConfig, load_teams
from local_aws.server import LocalAws
from tests.e2e.conftest import TEAMS, TEAMS_FILE
from tests.support import documents
from tests.support.deployed import client
from tests.support.permissions_judged import Roles
from tests.support.project import NewProject
from tests.support.team import HOLDFAST, Team

DAY = timedelta(days=1)
CLOCKS = timedelta(minutes=5)


def retention(team: Team, key: str, version_id: str | None = None) -> Mapping[str, Any] | None:
    """The retention of a version, by default of the current one; None if it has none."""
    head = team.s3.head_object(Bucket=team.bucket, Key=key)
    try:
        answer = team.s3.get_object_retention(
            Bucket=team.bucket, Key=key, VersionId=version_id or head["VersionId"]
        )
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchObjectLockConfiguration":
            raise
        return None
    return answer["Retention"]


def assert_retained_for_a_day(team: Team, key: str, before: datetime, version_id: str | None = None) -> None:
    """Expect that a version written since `before` is under the teams' retention."""
    found = retention(team, key, version_id)
    assert found is not None
    assert found["Mode"] == "GOVERNANCE"
    assert before + DAY - CLOCKS < found["RetainUntilDate"] < datetime.now(UTC) + DAY + CLOCKS


def write(team: Team, state: str, serial: int) -> None:
    """Write a version of a state under a lock, and release it."""
    writer, info = team.client("writer"), documents.lock_info()
    assert writer.lock(state, info).status == 200
    assert writer.write(state, documents.state(serial), documents.lock_id(info)).status == 200
    assert writer.unlock(state, info).status == 200


def test_the_teams_differ_in_every_setting_but_those_that_their_file_names() -> None:
    default, *others = load_teams(TEAMS_FILE)
    assert default == TeamConfig(name=default.name)

    same = {
        field.name
        for field in fields(TeamConfig)
        if all(getattr(team, field.name) == getattr(default, field.name) for team in others)
    }
    retentions = {(team.retention.mode, team.retention.bucket_default) for team in others if team.retention}

    assert same == {"account", "region", "access_logs", "token_trail"}
    assert retentions == {("governance", False), ("governance", True)}


def test_every_version_of_a_state_is_kept_for_as_long_as_the_team_says(kept: Team, state: str) -> None:
    before = datetime.now(UTC)
    write(kept, state, 1)
    write(kept, state, 2)

    versions = kept.versions(state)

    assert [version.serial for version in versions] == [1, 2]
    for version in versions:
        assert_retained_for_a_day(kept, f"states/{state}.tfstate", before, version.id)


def test_a_lock_is_not_kept(kept: Team, state: str) -> None:
    assert kept.client("writer").lock(state, documents.lock_info()).status == 200

    assert kept.lock(state) is not None
    assert retention(kept, f"states/{state}.tfstate.tflock") is None


def test_a_state_of_a_team_without_retention_is_not_kept(strict: Team, state: str) -> None:
    write(strict, state, 1)

    assert retention(strict, f"states/{state}.tfstate") is None


@pytest.mark.parametrize("team", [team for team in TEAMS if team != "whole"])
def test_nothing_of_a_lock_stays_once_it_is_released(teams: dict[str, Team], state: str, team: str) -> None:
    write(teams[team], state, 1)

    assert teams[team].versions_and_markers(f"states/{state}.tfstate.tflock") == (0, 0)
    assert teams[team].versions_and_markers(f"states/{state}.tfstate") == (1, 0)


@pytest.mark.parametrize(("team", "read_first"), [("strict", []), ("loose", ["GetObject .tfstate"])])
def test_a_second_write_saves_a_request_only_where_the_team_has_a_key(
    teams: dict[str, Team], roles: Roles, state: str, team: str, read_first: list[str]
) -> None:
    backend = roles[team, "backend"]
    assert (backend.reach.key_arn is not None) is (team == "strict")
    write(teams[team], state, 1)
    before = len(backend.requests_to_s3(state))

    write(teams[team], state, 2)

    assert backend.requests_to_s3(state)[before:] == [
        "PutObject .tfstate.tflock",
        *read_first,
        *("GetObject .tfstate.tflock", "PutObject .tfstate", "GetObject .tfstate.tflock"),
        *("GetObject .tfstate.tflock", "DeleteObject .tfstate.tflock"),
    ]


def test_a_bucket_with_a_default_retains_states_locks_and_tokens_without_being_asked(
    whole: Team, roles: Roles, state: str
) -> None:
    before = datetime.now(UTC)
    whole.declare(state)
    token, info = whole.token("writer", state), documents.lock_info()
    writer = whole.client_with(token)
    assert writer.lock(state, info).status == 200
    assert writer.write(state, documents.state(1), documents.lock_id(info)).status == 200

    for key in (f"states/{state}.tfstate", f"states/{state}.tfstate.tflock", f"tokens/{token.username}.json"):
        assert_retained_for_a_day(whole, key, before)
    calls = [call for call in roles["whole", "backend"].calls() if call.key.startswith(f"states/{state}.")]
    assert "PutObject" in {call.operation for call in calls}
    assert [call for call in calls if "x-amz-object-lock-mode" in call.headers] == []


def test_a_lock_that_its_bucket_retains_is_released_behind_a_marker_and_taken_again(
    whole: Team, roles: Roles, state: str
) -> None:
    writer, key = whole.client("writer"), f"states/{state}.tfstate.tflock"
    whole.declare(state)

    for round_ in (1, 2):
        info = documents.lock_info()
        assert writer.lock(state, info).status == 200
        assert writer.lock(state, documents.lock_info()).status == 423
        assert writer.unlock(state, info).status == 200
        assert whole.lock(state) is None
        assert whole.versions_and_markers(key) == (round_, round_)

    deletes = [
        ("versionId" in call.query, "if-match" in call.headers, call.status)
        for call in roles["whole", "backend"].calls()
        if (call.operation, call.key) == ("DeleteObject", key)
    ]
    assert deletes == 2 * [(True, False, 403), (False, True, 204)]


def test_a_version_under_retention_is_deleted_by_nobody_but_who_bypasses_it(kept: Team, state: str) -> None:
    write(kept, state, 1)
    key = f"states/{state}.tfstate"
    (version,) = kept.versions(state)

    with pytest.raises(ClientError) as refusal:
        kept.s3.delete_object(Bucket=kept.bucket, Key=key, VersionId=version.id)

    assert refusal.value.response["Error"]["Code"] == "AccessDenied"
    assert kept.versions(state) == [version]
    # Root, whom the local AWS lets past every policy. On AWS the bucket's policy refuses it this, too.
    kept.s3.delete_object(Bucket=kept.bucket, Key=key, VersionId=version.id, BypassGovernanceRetention=True)
    assert kept.versions(state) == []


def test_an_administrator_cannot_bypass_it_either(aws: LocalAws, kept: Team, state: str) -> None:
    iam = client(aws, "iam")
    everything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [everything]})
    iam.create_user(UserName="administrator")
    iam.put_user_policy(UserName="administrator", PolicyName="everything", PolicyDocument=document)
    administrator = client(aws, "s3", iam.create_access_key(UserName="administrator")["AccessKey"])
    write(kept, state, 1)
    key = f"states/{state}.tfstate"
    (version,) = kept.versions(state)

    for arguments in ({}, {"BypassGovernanceRetention": True}):
        with pytest.raises(ClientError) as refusal:
            administrator.delete_object(Bucket=kept.bucket, Key=key, VersionId=version.id, **arguments)
        assert refusal.value.response["Error"]["Code"] == "AccessDenied"

    assert administrator.get_object(Bucket=kept.bucket, Key=key)["Body"].read() == version.body


def test_a_deleted_state_comes_back_kept_and_terraform_finds_nothing_to_change(
    kept: Team, state: str, new_project: NewProject
) -> None:
    project = new_project(kept, state, kept.token("maintainer"))
    project.write(main='resource "terraform_data" "one" { input = "first" }\n')
    project.ok("init")
    project.ok("apply", "-auto-approve")
    before = kept.current(state)
    assert kept.client("maintainer").delete(state).status == 200
    assert project.run("plan", "-detailed-exitcode").code == 2

    maintainer = kept.token("maintainer")
    credentials = {"TF_HTTP_USERNAME": maintainer.username, "TF_HTTP_PASSWORD": maintainer.password}
    subprocess.run(
        [HOLDFAST, "state", "undelete", state, "--address", kept.gateway.address],
        env={**kept.environment, **credentials},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert project.run("plan", "-detailed-exitcode").code == 0
    assert kept.current(state) == before
    first, again = kept.versions(state)
    assert (again.body, again.id != first.id) == (first.body, True)
    found = retention(kept, f"states/{state}.tfstate", again.id)
    assert found is not None
    assert found["RetainUntilDate"] > datetime.now(UTC) + DAY - CLOCKS
    assert kept.lock(state) is None


def test_the_settings_reach_what_is_deployed(aws: LocalAws, roles: Roles) -> None:
    functions = {
        role: client(aws, "lambda").get_function_configuration(
            FunctionName=roles["kept", role].principal.rsplit("/", 1)[-1]
        )
        for role in ("backend", "cloud", "management", "authorizer", "sessions")
    }
    groups = client(aws, "logs").describe_log_groups(logGroupNamePrefix="/holdfast/kept/")["logGroups"]
    (stack,) = client(aws, "cloudformation").describe_stacks(StackName="Holdfast-kept")["Stacks"]

    assert {name: function["MemorySize"] for name, function in functions.items()} == {
        "backend": 1024,
        "cloud": 1024,
        "management": 768,
        "authorizer": 256,
        "sessions": 256,
    }
    for function in ("backend", "cloud", "management"):
        assert functions[function]["Environment"]["Variables"]["HOLDFAST_RETENTION"] == "governance 1"
    for function in ("cloud", "management"):
        assert functions[function]["Environment"]["Variables"]["HOLDFAST_MAX_STATE_MB"] == "1"
    assert {group["logGroupName"].rpartition("/")[2]: group["retentionInDays"] for group in groups} == {
        "backend": 30,
        "cloud": 30,
        "management": 30,
        "authorizer": 30,
        "sessions": 30,
        "health": 30,
        "audit_trail": 30,
        "audit": 60,
    }
    assert {tag["Key"]: tag["Value"] for tag in stack["Tags"]} == {
        "holdfast:team": "kept",
        "cost-center": "42",
        "owner:mail": "states@example.com",
    }
    assert roles["loose", "backend"].reach.key_arn is None

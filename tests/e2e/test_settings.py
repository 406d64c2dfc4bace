"""The effects of a deployed team's settings, and the buckets' properties from the templates."""

import json
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from holdfast.team import WARM_UP
from holdfast_cdk import team_settings
from holdfast_cdk.config import load_teams
from local_aws.server import LocalAws
from tests.e2e.conftest import TEAMS, TEAMS_FILE
from tests.support import access_commands, documents
from tests.support.deployed import DeployedRole, client, new_user
from tests.support.permissions_judged import Roles
from tests.support.project import NewProject, sign_in
from tests.support.team import Team

DAY = timedelta(days=1)
CLOCKS = timedelta(minutes=5)


def retention(team: Team, key: str, version_id: str | None = None) -> Mapping[str, Any] | None:
    """Return the retention of a version, by default of the current version; None without retention."""
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
    """Check that a version written since `before` is under the teams' retention."""
    stored = retention(team, key, version_id)
    assert stored is not None
    assert stored["Mode"] == "GOVERNANCE"
    assert before + DAY - CLOCKS < stored["RetainUntilDate"] < datetime.now(UTC) + DAY + CLOCKS


def test_the_teams_differ_in_every_setting_but_those_that_their_file_names() -> None:
    default, *others = load_teams(TEAMS_FILE)
    assert default == team_settings.Team(name=default.name)

    same = {
        field.name
        for field in fields(team_settings.Team)
        if all(getattr(team, field.name) == getattr(default, field.name) for team in others)
    }
    retentions = {(team.retention.mode, team.retention.bucket_default) for team in others if team.retention}

    assert same == {"access_logs"}
    assert retentions == {("governance", False), ("governance", True)}


def test_a_schedule_invokes_what_the_api_invokes_and_the_function_sends_and_logs_nothing(
    aws: LocalAws, roles: Roles
) -> None:
    api, schedules, functions = (client(aws, service) for service in ("apigatewayv2", "events", "lambda"))
    scheduled = {rule["Name"] for rule in schedules.list_rules()["Rules"] if rule["ScheduleExpression"]}
    assert {name.split("-")[1] for name in scheduled} == {*TEAMS} - {"loose"}
    (rule,) = (name for name in scheduled if name.startswith("Holdfast-strict-"))
    targets = {
        target["Id"].lower(): target for target in schedules.list_targets_by_rule(Rule=rule)["Targets"]
    }
    apis = [item["ApiId"] for item in api.get_apis()["Items"]]
    invoked = [item for api_id in apis for item in api.get_integrations(ApiId=api_id)["Items"]]
    authorizers = [item for api_id in apis for item in api.get_authorizers(ApiId=api_id)["Items"]]

    for function, target in targets.items():
        role = roles["strict", function]
        before = len(list(role.calls())), own_lines(role)
        for _ in range(2):  # the local AWS shows some lines only after the next invocation
            answer = functions.invoke(FunctionName=target["Arn"], Payload=target["Input"])
            assert json.loads(answer["Payload"].read()) in ({"isAuthorized": False}, {"statusCode": 400})
        assert (len(list(role.calls())), own_lines(role)) == before
        assert target["Arn"] in json.dumps([invoked, authorizers], default=str)
        assert json.loads(target["Input"]) == WARM_UP
    assert targets.keys() == {"backend", "authorizer"}


def own_lines(role: DeployedRole) -> list[str]:
    """Return the lines that the function itself wrote to its log."""
    return [line for line in role.log_lines() if line.startswith("{")]


def test_every_version_of_a_state_is_kept_for_as_long_as_the_team_says(
    strict: Team, kept: Team, state: str
) -> None:
    before = datetime.now(UTC)
    for team in (strict, kept):
        team.write(state, documents.state(1), documents.state(2))
    kept.locked(state)

    versions = kept.versions(state)

    assert [version.serial for version in versions] == [1, 2]
    for version in versions:
        assert_retained_for_a_day(kept, f"states/{state}.tfstate", before, version.id)
    assert retention(kept, f"states/{state}.tfstate.tflock") is None
    assert retention(strict, f"states/{state}.tfstate") is None


@pytest.mark.parametrize("team", [team for team in TEAMS if team != "whole"])
def test_nothing_of_a_lock_stays_once_it_is_released(teams: dict[str, Team], state: str, team: str) -> None:
    teams[team].write(state, documents.state(1))

    assert teams[team].versions_and_markers(f"states/{state}.tfstate.tflock") == (0, 0)
    assert teams[team].versions_and_markers(f"states/{state}.tfstate") == (1, 0)


@pytest.mark.parametrize(("team", "read_first"), [("strict", []), ("loose", ["GetObject .tfstate"])])
def test_a_second_write_saves_a_request_only_where_the_team_has_a_key(
    teams: dict[str, Team], roles: Roles, state: str, team: str, read_first: list[str]
) -> None:
    backend = roles[team, "backend"]
    assert (backend.reach.key_arn is not None) is (team == "strict")
    teams[team].write(state, documents.state(1))
    before = len(backend.requests_to_s3(state))

    teams[team].write(state, documents.state(2))

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
        info = whole.locked(state)
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


def test_a_version_under_retention_is_deleted_by_nobody_but_who_bypasses_it(
    aws: LocalAws, kept: Team, state: str
) -> None:
    everything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    administrator = client(aws, "s3", new_user(client(aws, "iam"), "administrator", everything))
    kept.write(state, documents.state(1))
    (version,) = kept.versions(state)
    named: Any = {"Bucket": kept.bucket, "Key": f"states/{state}.tfstate", "VersionId": version.id}

    for s3, bypass in ((kept.s3, False), (administrator, False), (administrator, True)):
        with pytest.raises(ClientError) as refusal:
            s3.delete_object(**named, BypassGovernanceRetention=bypass)
        assert refusal.value.response["Error"]["Code"] == "AccessDenied"

    assert administrator.get_object(**named)["Body"].read() == version.body
    # The local AWS allows root everything. On AWS the bucket's policy denies this to root, too.
    kept.s3.delete_object(**named, BypassGovernanceRetention=True)
    assert kept.versions(state) == []


def test_a_deleted_state_comes_back_kept_and_terraform_finds_nothing_to_change(
    kept: Team, state: str, new_project: NewProject
) -> None:
    maintainer, main = kept.token("maintainer"), 'resource "terraform_data" "one" { input = "first" }\n'
    project = new_project.applied(kept, state, maintainer, main=main)
    before = kept.current(state)
    assert kept.client("maintainer").delete(state).status == 200
    assert project.run("plan", "-detailed-exitcode").code == 2

    undeleted, credentials = datetime.now(UTC), sign_in(kept, maintainer)
    access_commands.holdfast(
        *(kept, "state", "undelete", state, "--address", kept.gateway.address), environment=credentials
    )

    assert project.run("plan", "-detailed-exitcode").code == 0
    assert kept.current(state) == before
    first, again = kept.versions(state)
    assert (again.body, again.id != first.id) == (first.body, True)
    assert_retained_for_a_day(kept, f"states/{state}.tfstate", undeleted, again.id)
    assert kept.lock(state) is None

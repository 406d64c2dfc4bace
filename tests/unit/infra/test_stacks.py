"""The synthesized stacks keep their promises."""

import json
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import pytest

from holdfast_cdk import team_stack
from holdfast_cdk.config import AWS
from holdfast_cdk.team_policy import policy_of
from holdfast_cdk.team_settings import History, Replica, Retention, Team, Throttling
from tests.support.every_setting import EVERY_SETTING
from tests.unit.infra.conftest import Synthesize, Synthesized


def test_each_team_is_a_stack_that_is_deployed_with_the_credentials_in_use(
    stacks: dict[str, Synthesized],
) -> None:
    assert {name: stack.environment for name, stack in stacks.items()} == {
        "Holdfast-platform": "aws://unknown-account/unknown-region",
        "Holdfast-payments": "aws://unknown-account/unknown-region",
    }


def test_a_team_with_account_and_region_is_deployed_nowhere_else(settled: Synthesized) -> None:
    assert settled.environment == "aws://123456789012/eu-central-1"


def test_the_settings_of_this_test_differ_from_every_default() -> None:
    for setting in fields(Team):
        if setting.name != "name":
            default_value = getattr(Team(name="plain"), setting.name)
            assert getattr(EVERY_SETTING, setting.name) != default_value, setting.name


# --- the functions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("partition", "region", "replica"),
    [
        ("aws-cn", "cn-north-1", Replica(region="cn-northwest-1")),
        ("aws-us-gov", "us-gov-west-1", Replica(region="us-gov-east-1")),
        ("aws-cn", None, None),
    ],
)
def test_nothing_is_bound_to_the_commercial_partition(
    synthesize: Synthesize, partition: str, region: str | None, replica: Replica | None
) -> None:
    def arn(service: str, resource: str, where: str = region or "cn-north-1") -> str:
        return f"arn:{partition}:{service}:{where}:123456789012:{resource}"

    domain, notify, alarms = EVERY_SETTING.domain, EVERY_SETTING.notify, EVERY_SETTING.alarms
    assert domain
    assert notify
    assert alarms
    team = replace(
        EVERY_SETTING,
        account="123456789012" if region else None,
        region=region,
        key="kms",
        previous_keys=(),
        key_administrators=(arn("iam", "role/security", where=""),),
        replica=replica,
        domain=replace(domain, certificate=arn("acm", "certificate/1a2b3c4d-1111-4222-8333-444455556666")),
        notify=replace(notify, topic=arn("sns", "holdfast")),
        alarms=replace(alarms, topic=arn("sns", "operations")),
    )
    for stack in synthesize([team], AWS).values():
        # Service principals, and a value that a policy compares with `kms:ViaService`.
        known = (
            r"(apigateway|events|lambda|logs|s3|logging\.s3|s3\.(<AWS::Region>|[a-z0-9-]+))"
            r"\.amazonaws\.com"
        )
        text = json.dumps(stack.resolve(stack.template))
        assert "arn:aws:" not in text
        assert re.search("amazonaws", re.sub(known, "", text)) is None


def test_the_health_tells_the_version_of_the_backend_once_the_backend_has_it(default: Synthesized) -> None:
    _, backend = default.function("terraform_http.handler.handle")
    _, health = default.function("health.handler.handle")
    told = health["Environment"]["Variables"]["HOLDFAST_VERSION"]
    assert told == backend["Environment"]["Variables"]["HOLDFAST_VERSION"]
    alias = default.template["Resources"][live_alias(default, "health.handler.handle")]
    assert live_alias(default, "terraform_http.handler.handle") in alias["DependsOn"]


def test_the_functions_that_could_have_snap_start_have_it_no_more(stack: Synthesized) -> None:
    functions = [resource["Properties"] for resource in stack.resources("AWS::Lambda::Function").values()]
    without = {function["Handler"].partition(".")[0] for function in functions if "SnapStart" in function}

    assert without == {"terraform_http", "cloud", "management", "authorizer", "session_exchange"}
    assert [function["SnapStart"] for function in functions if "SnapStart" in function] == [
        {"ApplyOn": "None"}
    ] * 5


@pytest.mark.parametrize(
    ("retention", "each_write"),
    [
        (None, None),
        (Retention(mode="governance", days=30), "governance 30"),
        (Retention(mode="compliance", days=3650), "compliance 3650"),
        (Retention(mode="compliance", days=3650, bucket_default=True), None),
    ],
)
def test_a_write_asks_for_retention_unless_the_bucket_adds_it(
    retention: Retention | None, each_write: str | None
) -> None:
    variables = policy_of(Team(name="ops", retention=retention)).environment()
    assert variables.get("HOLDFAST_RETENTION") == each_write


def live_alias(stack: Synthesized, handler: str) -> str:
    function_name, _ = stack.function(handler)
    ((name, alias),) = (
        (name, stack.resolve(alias["Properties"]))
        for name, alias in stack.resources("AWS::Lambda::Alias").items()
        if stack.resolve(alias["Properties"]["FunctionName"]) == f"<{function_name}>"
    )
    version = re.fullmatch(r"<(.+)\.Version>", alias["FunctionVersion"])
    assert version is not None
    published = stack.template["Resources"][version.group(1)]
    assert published["Type"] == "AWS::Lambda::Version"
    assert stack.resolve(published["Properties"]["FunctionName"]) == f"<{function_name}>"
    assert alias["Name"] == "live"
    return name


# --- warnings --------------------------------------------------------------------------------------


BUCKET_DEFAULT = Retention(mode="compliance", days=400, bucket_default=True)
HISTORY = History(days=400, keep_versions=10)


@pytest.mark.parametrize(
    ("team", "told"),
    [
        (
            Team(name="ops", native_clients=True),
            "team 'ops': each unlock by a client of backend \"s3\" leaves an old version and a delete "
            "marker of the lock. S3 keeps them for ever. To let S3 remove them, write history = "
            "{ days = 365, keep_versions = 100 } [",
        ),
        (
            Team(name="ops", retention=BUCKET_DEFAULT),
            "team 'ops': because of the bucket's default retention, each unlock leaves a delete marker of "
            "the lock. S3 keeps them for ever. To let S3 remove them, write history = "
            "{ days = 400, keep_versions = 100 } [",
        ),
        (
            Team(name="ops", native_clients=True, retention=BUCKET_DEFAULT),
            "team 'ops': each unlock by a client of backend \"s3\" leaves an old version and a delete "
            "marker of the lock, and because of the bucket's default retention, each unlock leaves a delete "
            "marker of the lock. S3 keeps them for ever. To let S3 remove them, write history = ",
        ),
        (
            Team(name="ops", region="eu-south-1", throttling=Throttling(rate=3000)),
            "team 'ops': throttling = { rate = 3000, burst = 200 } is above the default quota in eu-south-1, "
            "which is 2500 requests a second and 1250 at once for all APIs of an account together",
        ),
    ],
)
def test_a_team_is_warned_once_of_what_piles_up_or_is_above_a_quota(
    synthesize: Synthesize, team: Team, told: str
) -> None:
    (warning,) = synthesize([team], AWS)["Holdfast-ops"].warnings
    assert warning.startswith(told)


@pytest.mark.parametrize(
    "team",
    [
        Team(name="ops"),
        Team(name="ops", retention=Retention(mode="governance", days=30)),
        Team(name="ops", native_clients=True, retention=BUCKET_DEFAULT, history=HISTORY),
        EVERY_SETTING,
    ],
)
def test_a_team_whose_locks_leave_nothing_for_ever_is_not_warned(synthesize: Synthesize, team: Team) -> None:
    assert synthesize([team], AWS)["Holdfast-ops"].warnings == []


# --- the teams, the local AWS ---------------------------------------------------------------------


def test_two_teams_share_nothing(stacks: dict[str, Synthesized]) -> None:
    platform, payments = stacks["Holdfast-platform"], stacks["Holdfast-payments"]
    assert "payments" not in json.dumps(platform.template)
    assert "platform" not in json.dumps(payments.template)
    for stack in stacks.values():
        assert "Fn::ImportValue" not in json.dumps(stack.template)
        assert not any("Export" in output for output in stack.template["Outputs"].values())


def differing_paths(template: Any, other: Any, path: str = "") -> Iterator[str]:
    """The paths at which two templates differ."""
    if isinstance(template, dict) and isinstance(other, dict):
        for key in sorted({*template, *other}):
            yield from differing_paths(template.get(key), other.get(key), f"{path}/{key}")
    elif template != other:
        yield path


def test_the_local_aws_gets_the_same_stack_but_for_place_address_and_protection(
    synthesize: Synthesize, on_this_machine: Synthesized, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(team_stack, "checked", lambda team: team)  # it refuses the local AWS's account
    team = replace(EVERY_SETTING, account="000000000000", region="us-east-1")
    on_aws = synthesize([team], AWS)["Holdfast-ops"]
    signing = [on_this_machine.function(f"{name}.handler.handle") for name in ("cloud", "management")]
    watching = on_this_machine.function("watch.handler.handle")
    different = set(differing_paths(on_aws.template, on_this_machine.template))
    # A version's logical ID has a digest of the function's settings in it.
    versions = {path for path in different if re.fullmatch(r"/Resources/\w+CurrentVersion\w+", path)}
    assert len(versions) == 2 * len([*signing, watching])
    assert different - versions == {
        "/Outputs/ApiAddress/Value",
        *(
            f"/Resources/{name}"
            for name, alarm in on_aws.resources("AWS::CloudWatch::Alarm").items()
            if "Metrics" in alarm["Properties"]
        ),
        *(
            f"/Resources/{name}/Properties/Environment/Variables/HOLDFAST_PRESIGN_ENDPOINT"
            for name, _ in signing
        ),
        f"/Resources/{signing[0][0]}/Properties/Environment/Variables/HOLDFAST_API_ADDRESS",
        *(
            f"/Resources/{live_alias(on_aws, function['Handler'])}/Properties/FunctionVersion/Fn::GetAtt"
            for _, function in (*signing, watching)
        ),
        f"/Resources/{watching[0]}/Properties/Environment/Variables/HOLDFAST_PROBED_API",
    }
    # Clients send credentials to the API's host name alone.
    for _, function in signing:
        assert function["Environment"]["Variables"]["HOLDFAST_PRESIGN_ENDPOINT"] == "https://localhost:4566"
    address = signing[0][1]["Environment"]["Variables"]["HOLDFAST_API_ADDRESS"]
    assert address == "https://127.0.0.1:4566/_aws/execute-api/{api}/$default"
    assert on_this_machine.environment == "aws://000000000000/us-east-1"
    assert (on_aws.termination_protection, on_this_machine.termination_protection) == (True, False)
    assert on_this_machine.tags == on_aws.tags

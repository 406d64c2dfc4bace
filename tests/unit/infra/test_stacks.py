"""What the synthesized stacks promise."""

import json
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import pytest

from holdfast import __version__, audit
from infra.config import AWS, History, Retention, TeamConfig, Throttling
from tests.unit.infra.conftest import EVERY_SETTING, Synthesize, Synthesized

ACTIONS_OF_LOG = ["logs:CreateLogStream", "logs:PutLogEvents"]


def test_each_team_is_a_stack_that_is_deployed_with_the_credentials_in_use(
    stacks: dict[str, Synthesized],
) -> None:
    assert {name: stack.environment for name, stack in stacks.items()} == {
        "Holdfast-platform": "aws://unknown-account/unknown-region",
        "Holdfast-payments": "aws://unknown-account/unknown-region",
    }


def test_a_team_with_account_and_region_is_deployed_nowhere_else(settled: Synthesized) -> None:
    assert settled.environment == "aws://123456789012/eu-central-1"


def test_a_stack_says_whose_it_is_and_refuses_to_be_deleted(stack: Synthesized, team: str) -> None:
    assert stack.tags["holdfast:team"] == team
    assert stack.termination_protection


def test_everything_in_a_stack_carries_the_teams_tags(settled: Synthesized, default: Synthesized) -> None:
    assert settled.tags == {"holdfast:team": "ops", "cost-center": "42"}
    assert default.tags == {"holdfast:team": "plain"}


def test_the_settings_of_this_test_differ_from_every_default() -> None:
    for setting in fields(TeamConfig):
        if setting.name != "name":
            default_value = getattr(TeamConfig(name="plain"), setting.name)
            assert getattr(EVERY_SETTING, setting.name) != default_value, setting.name


# --- the functions --------------------------------------------------------------------------------


def statements_of(stack: Synthesized, handler: str) -> list[dict[str, Any]]:
    """All statements of the role of a function, without their names."""
    _, function = stack.function(handler)
    role_name = stack.resolve(function["Role"]).removeprefix("<").removesuffix(".Arn>")
    role = stack.template["Resources"][role_name]["Properties"]
    assert set(role) == {"AssumeRolePolicyDocument", "Description", "Policies"}, "no managed policies"
    return [
        {key: value for key, value in stack.resolve(statement).items() if key != "Sid"}
        for policy in role["Policies"]
        for statement in policy["PolicyDocument"]["Statement"]
    ]


STATES = "<StateBucket.Arn>/states/*.tfstate"
LOCKS = "<StateBucket.Arn>/states/*.tfstate.tflock"
PROBES = "<StateBucket.Arn>/probes/*"
STATES_AND_LOCKS = [
    {
        "Effect": "Allow",
        "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"],
        "Resource": [STATES, LOCKS, PROBES],
    },
    {"Effect": "Allow", "Action": "s3:DeleteObjectVersion", "Resource": [LOCKS, PROBES]},
    {"Effect": "Allow", "Action": "s3:PutObjectTagging", "Resource": [LOCKS, PROBES]},
]
MISSING_KEYS_ARE_404 = {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "<StateBucket.Arn>"}
THROUGH_S3 = {
    "StringEquals": {
        "kms:ViaService": ["s3.<AWS::Region>.amazonaws.com", "s3.<AWS::Region>.<AWS::URLSuffix>"]
    }
}
USE_THE_KEY = {
    "Effect": "Allow",
    "Action": ["kms:GenerateDataKey", "kms:Decrypt"],
    "Resource": "<StateKey.Arn>",
    "Condition": THROUGH_S3,
}
TRUST = "<StateBucket.Arn>/trust/records.json"
SESSIONS = "<StateBucket.Arn>/sessions/*.json"
READ_RECORDS = {
    "Effect": "Allow",
    "Action": "s3:GetObject",
    "Resource": ["<StateBucket.Arn>/tokens/*.json", SESSIONS, TRUST],
}
MAKE_SESSIONS = [
    {"Effect": "Allow", "Action": "s3:GetObject", "Resource": TRUST},
    {"Effect": "Allow", "Action": "s3:PutObject", "Resource": SESSIONS},
]


def may_log(group: str) -> dict[str, Any]:
    """The statement that lets a function write to a log group."""
    return {"Effect": "Allow", "Action": ACTIONS_OF_LOG, "Resource": f"<{group}.Arn>"}


OWN_LOG = may_log("BackendLog")
CLOUD_STATES = [
    {
        "Effect": "Allow",
        "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"],
        "Resource": [STATES, LOCKS],
    },
    {"Effect": "Allow", "Action": "s3:GetObjectVersion", "Resource": STATES},
    {"Effect": "Allow", "Action": "s3:DeleteObjectVersion", "Resource": LOCKS},
    {"Effect": "Allow", "Action": "s3:PutObjectTagging", "Resource": LOCKS},
]
CLOUD_ALONE = [
    {
        "Effect": "Allow",
        "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"],
        "Resource": "<StateBucket.Arn>/workspaces/*.json",
    },
    {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "<StagingBucket.Arn>/uploads/*"},
    {
        "Effect": "Allow",
        "Action": ["s3:PutObject", "s3:DeleteObject"],
        "Resource": ["<StagingBucket.Arn>/uploads/*", "<StagingBucket.Arn>/json/*"],
    },
    {
        "Effect": "Allow",
        "Action": "s3:ListBucket",
        "Resource": ["<StateBucket.Arn>", "<StagingBucket.Arn>"],
    },
    {"Effect": "Allow", "Action": "s3:ListBucketVersions", "Resource": "<StateBucket.Arn>"},
]
MANAGEMENT_ALONE = [
    {
        "Effect": "Allow",
        "Action": ["s3:GetObject", "s3:PutObject"],
        "Resource": "<StateBucket.Arn>/workspaces/*.json",
    },
    {
        "Effect": "Allow",
        "Action": ["s3:ListBucket", "s3:ListBucketVersions"],
        "Resource": "<StateBucket.Arn>",
    },
    {"Effect": "Allow", "Action": "logs:FilterLogEvents", "Resource": "<Audit.Arn>"},
]
DECLARED_NAMES = {
    "Effect": "Allow",
    "Action": "s3:GetObject",
    "Resource": "<StateBucket.Arn>/workspaces/*.json",
}


def test_the_backend_may_use_states_and_locks_and_nothing_else(default: Synthesized) -> None:
    assert statements_of(default, "terraform_http.handler.handle") == [
        *STATES_AND_LOCKS,
        MISSING_KEYS_ARE_404,
        USE_THE_KEY,
        OWN_LOG,
    ]


def test_the_backend_may_retain_states_where_it_has_to(synthesize: Synthesize) -> None:
    team = TeamConfig(name="ops", retention=Retention(mode="governance", days=30))
    (stack,) = synthesize([team], AWS).values()
    assert statements_of(stack, "terraform_http.handler.handle") == [
        *STATES_AND_LOCKS,
        {"Effect": "Allow", "Action": "s3:PutObjectRetention", "Resource": STATES},
        MISSING_KEYS_ARE_404,
        USE_THE_KEY,
        OWN_LOG,
    ]


@pytest.mark.parametrize("retention", [None, Retention(mode="governance", days=30)])
def test_the_cloud_function_may_use_states_workspaces_and_uploads_and_nothing_else(
    synthesize: Synthesize, retention: Retention | None
) -> None:
    (stack,) = synthesize([TeamConfig(name="ops", retention=retention)], AWS).values()
    retains = {"Effect": "Allow", "Action": "s3:PutObjectRetention", "Resource": STATES}
    assert statements_of(stack, "cloud.handler.handle") == [
        *CLOUD_STATES,
        *([retains] if retention else []),
        *CLOUD_ALONE,
        USE_THE_KEY,
        may_log("CloudLog"),
    ]


@pytest.mark.parametrize("retention", [None, Retention(mode="governance", days=30)])
def test_the_management_may_use_states_and_names_and_read_the_trail_and_nothing_else(
    synthesize: Synthesize, retention: Retention | None
) -> None:
    (stack,) = synthesize([TeamConfig(name="ops", retention=retention)], AWS).values()
    retains = {"Effect": "Allow", "Action": "s3:PutObjectRetention", "Resource": STATES}
    assert statements_of(stack, "management.handler.handle") == [
        *CLOUD_STATES,
        *([retains] if retention else []),
        *MANAGEMENT_ALONE,
        USE_THE_KEY,
        may_log("ManagementLog"),
    ]


def test_the_backend_reads_records_of_names_only_where_they_must_be_declared(
    synthesize: Synthesize, default: Synthesized
) -> None:
    (stack,) = synthesize([TeamConfig(name="ops", new_states="declared")], AWS).values()
    assert DECLARED_NAMES in statements_of(stack, "terraform_http.handler.handle")
    assert DECLARED_NAMES not in statements_of(default, "terraform_http.handler.handle")


def test_the_functions_need_no_key_and_no_retention_that_s3_sees_to(settled: Synthesized) -> None:
    assert statements_of(settled, "terraform_http.handler.handle") == [
        *STATES_AND_LOCKS,
        DECLARED_NAMES,
        MISSING_KEYS_ARE_404,
        OWN_LOG,
    ]
    assert statements_of(settled, "cloud.handler.handle") == [
        *CLOUD_STATES,
        *CLOUD_ALONE,
        may_log("CloudLog"),
    ]
    assert statements_of(settled, "management.handler.handle") == [
        *CLOUD_STATES,
        *MANAGEMENT_ALONE,
        may_log("ManagementLog"),
    ]
    assert statements_of(settled, "authorizer.handler.handle") == [
        READ_RECORDS,
        MISSING_KEYS_ARE_404,
        may_log("AuthorizerLog"),
    ]
    assert statements_of(settled, "session_exchange.handler.handle") == [
        *MAKE_SESSIONS,
        MISSING_KEYS_ARE_404,
        may_log("SessionsLog"),
    ]


def test_the_authorizer_may_read_tokens_sessions_and_trust_and_nothing_else(stack: Synthesized) -> None:
    assert statements_of(stack, "authorizer.handler.handle") == [
        READ_RECORDS,
        MISSING_KEYS_ARE_404,
        {
            "Effect": "Allow",
            "Action": "kms:Decrypt",
            "Resource": "<StateKey.Arn>",
            "Condition": THROUGH_S3,
        },
        may_log("AuthorizerLog"),
    ]


def test_the_sessions_function_may_read_trust_and_write_sessions_and_nothing_else(stack: Synthesized) -> None:
    assert statements_of(stack, "session_exchange.handler.handle") == [
        *MAKE_SESSIONS,
        MISSING_KEYS_ARE_404,
        USE_THE_KEY,
        may_log("SessionsLog"),
    ]


def test_the_audit_trail_may_write_to_its_log_group_and_its_own_log_and_nothing_else(
    stack: Synthesized, settled: Synthesized
) -> None:
    for one in (stack, settled):
        assert statements_of(one, "audit_trail.handler.handle") == [
            may_log("Audit"),
            may_log("AuditTrailLog"),
        ]


def test_the_health_may_write_to_its_own_log_and_nothing_else(
    stack: Synthesized, settled: Synthesized
) -> None:
    for one in (stack, settled):
        assert statements_of(one, "health.handler.handle") == [may_log("HealthLog")]


def test_no_permission_stands_anywhere_else(stack: Synthesized) -> None:
    assert len(stack.resources("AWS::IAM::Role")) == len(stack.resources("AWS::Lambda::Function")) == 7
    for elsewhere in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::RolePolicy"):
        assert not stack.resources(elsewhere)


@pytest.mark.parametrize("region", ["cn-north-1", "us-gov-west-1", None])
def test_nothing_is_bound_to_the_commercial_partition(synthesize: Synthesize, region: str | None) -> None:
    account = "123456789012" if region else None
    team = replace(EVERY_SETTING, account=account, region=region, key="kms", token_trail=region is not None)
    for stack in synthesize([team], AWS).values():
        # Service principals and, of KMS, the first of two values that are compared.
        known = (
            r"(apigateway|lambda|logs|cloudtrail|logging\.s3|s3\.(<AWS::Region>|[a-z0-9-]+))\.amazonaws\.com"
        )
        text = json.dumps(stack.resolve(stack.template))
        assert "arn:aws:" not in text
        assert re.search("amazonaws", re.sub(known, "", text)) is None


def test_no_role_has_a_wildcard_action_or_the_bare_resource(stack: Synthesized, settled: Synthesized) -> None:
    for role in [*stack.resources("AWS::IAM::Role").values(), *settled.resources("AWS::IAM::Role").values()]:
        for policy in role["Properties"]["Policies"]:
            for statement in stack.resolve(policy["PolicyDocument"]["Statement"]):
                for listed, forbidden in (("Action", r".*[*?].*"), ("Resource", r"[*?]|arn:[*:?]*")):
                    values = statement[listed]
                    for value in [values] if isinstance(values, str) else values:
                        assert not re.fullmatch(forbidden, value), value


@pytest.mark.parametrize(
    ("handler", "memory", "timeout"),
    [
        ("terraform_http.handler.handle", 1769, 25),
        ("cloud.handler.handle", 1769, 25),
        ("management.handler.handle", 1769, 29),
        ("authorizer.handler.handle", 1769, 10),
        ("session_exchange.handler.handle", 1769, 25),
    ],
)
def test_a_function_runs_python_3_14_on_arm64_and_keeps_no_snapshot(
    stack: Synthesized, handler: str, memory: int, timeout: int
) -> None:
    _, function = stack.function(handler)
    assert function["Runtime"] == "python3.14"
    assert function["Architectures"] == ["arm64"]
    assert "SnapStart" not in function
    assert (function["MemorySize"], function["Timeout"]) == (memory, timeout)
    assert "TracingConfig" not in function


@pytest.mark.parametrize(
    ("handler", "memory"),
    [
        ("terraform_http.handler.handle", 1024),
        ("cloud.handler.handle", 3008),
        ("management.handler.handle", 2048),
        ("authorizer.handler.handle", 256),
        ("session_exchange.handler.handle", 256),
    ],
)
def test_a_team_may_have_other_memory_and_start_from_snapshots(
    settled: Synthesized, handler: str, memory: int
) -> None:
    _, function = settled.function(handler)
    assert function["MemorySize"] == memory
    assert function["SnapStart"] == {"ApplyOn": "PublishedVersions"}
    assert live_alias(settled, handler), "a snapshot is of a published version"


def test_nobody_waits_for_the_audit_trail_so_it_has_no_snapshot(settled: Synthesized) -> None:
    _, function = settled.function("audit_trail.handler.handle")
    assert (function["Runtime"], function["Architectures"]) == ("python3.14", ["arm64"])
    assert (function["MemorySize"], function["Timeout"]) == (256, 60)
    assert "SnapStart" not in function


def test_the_health_is_the_smallest_function_and_never_has_a_snapshot(synthesize: Synthesize) -> None:
    (stack,) = synthesize([TeamConfig(name="ops", snap_start=True)], AWS).values()
    _, function = stack.function("health.handler.handle")
    assert (function["Runtime"], function["Architectures"]) == ("python3.14", ["arm64"])
    assert (function["MemorySize"], function["Timeout"]) == (128, 5)
    assert "SnapStart" not in function


def test_the_health_tells_the_version_of_the_backend_once_the_backend_has_it(default: Synthesized) -> None:
    _, backend = default.function("terraform_http.handler.handle")
    _, health = default.function("health.handler.handle")
    told = health["Environment"]["Variables"]["HOLDFAST_VERSION"]
    assert told == backend["Environment"]["Variables"]["HOLDFAST_VERSION"]
    alias = default.template["Resources"][live_alias(default, "health.handler.handle")]
    assert live_alias(default, "terraform_http.handler.handle") in alias["DependsOn"]


def test_the_functions_know_their_bucket_its_account_and_their_version(default: Synthesized) -> None:
    powertools = {"POWERTOOLS_SERVICE_NAME": "holdfast", "POWERTOOLS_LOG_LEVEL": "INFO"}
    bucket = {"HOLDFAST_BUCKET": "<StateBucket>", "HOLDFAST_ACCOUNT": "<AWS::AccountId>"}
    _, backend = default.function("terraform_http.handler.handle")
    _, authorizer = default.function("authorizer.handler.handle")
    assert default.resolve(backend["Environment"]["Variables"]) == {
        **bucket,
        **powertools,
        "HOLDFAST_REQUIRE_LOCK": "true",
        "HOLDFAST_NEW_STATES": "any",
        "HOLDFAST_VERSION": f"{__version__}+bbbbbbbbbbbb",
    }
    _, cloud = default.function("cloud.handler.handle")
    assert default.resolve(cloud["Environment"]["Variables"]) == {
        **bucket,
        **powertools,
        "HOLDFAST_STAGING_BUCKET": "<StagingBucket>",
        "HOLDFAST_MAX_STATE_MB": "100",
        "HOLDFAST_NEW_STATES": "any",
        "HOLDFAST_VERSION": f"{__version__}+ffffffffffff",
    }
    _, management = default.function("management.handler.handle")
    assert default.resolve(management["Environment"]["Variables"]) == {
        **bucket,
        **powertools,
        "HOLDFAST_AUDIT_GROUP": "<Audit>",
        "HOLDFAST_MAX_STATE_MB": "100",
        "HOLDFAST_NEW_STATES": "any",
        "HOLDFAST_VERSION": f"{__version__}+999999999999",
    }
    assert default.resolve(authorizer["Environment"]["Variables"]) == {
        **bucket,
        **powertools,
        "HOLDFAST_VERSION": f"{__version__}+aaaaaaaaaaaa",
    }
    _, sessions = default.function("session_exchange.handler.handle")
    assert default.resolve(sessions["Environment"]["Variables"]) == {
        **bucket,
        **powertools,
        "HOLDFAST_VERSION": f"{__version__}+cccccccccccc",
    }
    _, audit_trail = default.function("audit_trail.handler.handle")
    assert default.resolve(audit_trail["Environment"]["Variables"]) == {
        **powertools,
        "HOLDFAST_AUDIT_GROUP": "<Audit>",
        "HOLDFAST_VERSION": f"{__version__}+dddddddddddd",
    }


def test_the_sessions_function_knows_the_account_that_it_takes_callers_of(settled: Synthesized) -> None:
    _, sessions = settled.function("session_exchange.handler.handle")
    assert sessions["Environment"]["Variables"]["HOLDFAST_ACCOUNT"] == "123456789012"


def test_a_team_may_do_without_locks(settled: Synthesized) -> None:
    _, backend = settled.function("terraform_http.handler.handle")
    assert backend["Environment"]["Variables"]["HOLDFAST_REQUIRE_LOCK"] == "false"


@pytest.mark.parametrize("function", ["cloud", "management"])
def test_a_team_may_have_larger_states(settled: Synthesized, function: str) -> None:
    _, properties = settled.function(f"{function}.handler.handle")
    assert properties["Environment"]["Variables"]["HOLDFAST_MAX_STATE_MB"] == "250"


@pytest.mark.parametrize("function", ["terraform_http", "cloud", "management"])
def test_a_team_may_have_names_declared(settled: Synthesized, function: str) -> None:
    _, properties = settled.function(f"{function}.handler.handle")
    assert properties["Environment"]["Variables"]["HOLDFAST_NEW_STATES"] == "declared"


@pytest.mark.parametrize(
    ("retention", "asked"),
    [
        (None, None),
        (Retention(mode="governance", days=30), "governance 30"),
        (Retention(mode="compliance", days=3650), "compliance 3650"),
        (Retention(mode="compliance", days=3650, bucket_default=True), None),
    ],
)
def test_who_writes_states_and_the_command_line_know_the_retention_of_each_write(
    synthesize: Synthesize, retention: Retention | None, asked: str | None
) -> None:
    (stack,) = synthesize([TeamConfig(name="ops", retention=retention)], AWS).values()
    _, backend = stack.function("terraform_http.handler.handle")
    _, authorizer = stack.function("authorizer.handler.handle")
    _, cloud = stack.function("cloud.handler.handle")
    _, management = stack.function("management.handler.handle")
    assert backend["Environment"]["Variables"].get("HOLDFAST_RETENTION") == asked
    assert cloud["Environment"]["Variables"].get("HOLDFAST_RETENTION") == asked
    assert management["Environment"]["Variables"].get("HOLDFAST_RETENTION") == asked
    assert "HOLDFAST_RETENTION" not in authorizer["Environment"]["Variables"]
    assert stack.template["Outputs"].get("StateRetention", {}).get("Value") == asked


def test_each_function_logs_to_a_group_of_its_own_for_90_days_and_the_trail_stays_a_year(
    stack: Synthesized, team: str
) -> None:
    assert {
        name: (log["Properties"]["LogGroupName"], log["Properties"]["RetentionInDays"])
        for name, log in stack.resources("AWS::Logs::LogGroup").items()
    } == {
        "BackendLog": (f"/holdfast/{team}/backend", 90),
        "CloudLog": (f"/holdfast/{team}/cloud", 90),
        "ManagementLog": (f"/holdfast/{team}/management", 90),
        "AuthorizerLog": (f"/holdfast/{team}/authorizer", 90),
        "SessionsLog": (f"/holdfast/{team}/sessions", 90),
        "HealthLog": (f"/holdfast/{team}/health", 90),
        "AuditTrailLog": (f"/holdfast/{team}/audit_trail", 90),
        "Audit": (f"/holdfast/{team}/audit", 365),
        "AccessLog": (f"/aws/vendedlogs/holdfast/{team}/access", 90),
    }
    for handler, log in (
        ("terraform_http", "BackendLog"),
        ("cloud", "CloudLog"),
        ("management", "ManagementLog"),
        ("authorizer", "AuthorizerLog"),
        ("session_exchange", "SessionsLog"),
        ("health", "HealthLog"),
        ("audit_trail", "AuditTrailLog"),
    ):
        _, function = stack.function(f"{handler}.handler.handle")
        assert stack.resolve(function["LoggingConfig"]) == {"LogGroup": f"<{log}>"}


def test_a_team_may_keep_its_logs_for_another_time(settled: Synthesized) -> None:
    logs = settled.resources("AWS::Logs::LogGroup")
    days = {name: log["Properties"]["RetentionInDays"] for name, log in logs.items()}
    assert days.pop("Audit") == 731
    assert set(days.values()) == {30}


# --- the audit trail ------------------------------------------------------------------------------

AUDITED = ("BackendLog", "CloudLog", "ManagementLog", "AuthorizerLog", "SessionsLog")


def test_the_marked_lines_of_five_logs_go_to_the_function_that_keeps_the_trail(stack: Synthesized) -> None:
    copying, _ = stack.function("audit_trail.handler.handle")
    filters = [
        stack.resolve(one["Properties"]) for one in stack.resources("AWS::Logs::SubscriptionFilter").values()
    ]
    assert sorted(filters, key=str) == sorted(
        (
            {
                "DestinationArn": f"<{copying}.Arn>",
                "FilterName": "audit",
                "FilterPattern": f'"{audit.MARK}"',
                "LogGroupName": f"<{log}>",
            }
            for log in AUDITED
        ),
        key=str,
    )


def test_only_the_five_logs_of_this_account_may_call_it_and_may_before_they_try(stack: Synthesized) -> None:
    copying, _ = stack.function("audit_trail.handler.handle")
    permissions = {
        name: stack.resolve(permission["Properties"])
        for name, permission in stack.resources("AWS::Lambda::Permission").items()
        if permission["Properties"]["Principal"] == "logs.amazonaws.com"
    }
    assert {
        (one["FunctionName"], one["Action"], one["SourceArn"], one["SourceAccount"])
        for one in permissions.values()
    } == {
        (f"<{copying}.Arn>", "lambda:InvokeFunction", f"<{log}.Arn>", "<AWS::AccountId>") for log in AUDITED
    }
    for one in stack.resources("AWS::Logs::SubscriptionFilter").values():
        of_its_log = [
            name
            for name, permission in permissions.items()
            if permission["SourceArn"] == stack.resolve(one["Properties"]["LogGroupName"])[:-1] + ".Arn>"
        ]
        assert one["DependsOn"] == of_its_log


def live_alias(stack: Synthesized, handler: str) -> str:
    """The logical ID of a function's alias."""
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


def test_new_code_answers_only_once_the_bucket_policy_is_the_new_one(stack: Synthesized) -> None:
    (policy,) = (
        name
        for name, policy in stack.resources("AWS::S3::BucketPolicy").items()
        if policy["Properties"]["Bucket"] == {"Ref": "StateBucket"}
    )
    for handler in ("terraform_http.handler.handle", "cloud.handler.handle", "management.handler.handle"):
        assert policy in stack.template["Resources"][live_alias(stack, handler)]["DependsOn"]


# --- the API --------------------------------------------------------------------------------------


def test_each_route_goes_to_a_published_function_and_lets_in_whom_it_is_for(stack: Synthesized) -> None:
    ((authorizer, _),) = stack.resources("AWS::ApiGatewayV2::Authorizer").items()
    integrations = {
        f"integrations/<{name}>": stack.resolve(one["Properties"])
        for name, one in stack.resources("AWS::ApiGatewayV2::Integration").items()
    }
    routes = [
        stack.resolve(route["Properties"]) for route in stack.resources("AWS::ApiGatewayV2::Route").values()
    ]
    backend, cloud, management, sessions, health = (
        f"<{live_alias(stack, f'{name}.handler.handle')}>"
        for name in ("terraform_http", "cloud", "management", "session_exchange", "health")
    )
    assert {
        route["RouteKey"]: (
            integrations[route["Target"]]["IntegrationUri"],
            route["AuthorizationType"],
            route.get("AuthorizerId"),
        )
        for route in routes
    } == {
        "ANY /states/{name+}": (backend, "CUSTOM", f"<{authorizer}>"),
        "ANY /outputs/{name+}": (backend, "CUSTOM", f"<{authorizer}>"),
        "ANY /locks/{name+}": (backend, "CUSTOM", f"<{authorizer}>"),
        "ANY /unlocks/{name+}": (backend, "CUSTOM", f"<{authorizer}>"),
        "$default": (backend, "CUSTOM", f"<{authorizer}>"),
        "ANY /api/v2/{path+}": (cloud, "CUSTOM", f"<{authorizer}>"),
        "ANY /manage/v1/{path+}": (management, "CUSTOM", f"<{authorizer}>"),
        "ANY /sessions": (sessions, "CUSTOM", f"<{authorizer}>"),
        "ANY /sessions/aws": (sessions, "AWS_IAM", None),
        "ANY /health": (health, "NONE", None),
        "ANY /.well-known/terraform.json": (health, "NONE", None),
        "ANY /app/settings/tokens": (health, "NONE", None),
    }
    assert {(one["IntegrationType"], one["PayloadFormatVersion"]) for one in integrations.values()} == {
        ("AWS_PROXY", "2.0")
    }
    assert set(stack.only("AWS::ApiGatewayV2::Api")["Properties"]) == {"Name", "Description", "ProtocolType"}


def test_the_authorizer_is_asked_once_a_minute_for_each_authorization_header(stack: Synthesized) -> None:
    authorizer = stack.resolve(stack.only("AWS::ApiGatewayV2::Authorizer")["Properties"])
    alias = live_alias(stack, "authorizer.handler.handle")
    assert authorizer["AuthorizerType"] == "REQUEST"
    assert authorizer["AuthorizerPayloadFormatVersion"] == "2.0"
    assert authorizer["EnableSimpleResponses"] is True
    assert authorizer["IdentitySource"] == ["$request.header.Authorization"]
    assert authorizer["AuthorizerResultTtlInSeconds"] == 60
    assert f"<{alias}>" in authorizer["AuthorizerUri"]


def test_only_this_api_may_call_the_functions_and_only_their_aliases(stack: Synthesized) -> None:
    ((api, _),) = stack.resources("AWS::ApiGatewayV2::Api").items()
    ((authorizer, _),) = stack.resources("AWS::ApiGatewayV2::Authorizer").items()
    here = f"arn:<AWS::Partition>:execute-api:<AWS::Region>:<AWS::AccountId>:<{api}>"
    permissions = [
        stack.resolve(permission["Properties"])
        for permission in stack.resources("AWS::Lambda::Permission").values()
    ]
    assert {permission["Principal"] for permission in permissions} == {
        "apigateway.amazonaws.com",
        "logs.amazonaws.com",
    }
    assert {
        (permission["FunctionName"], permission["SourceArn"])
        for permission in permissions
        if permission["Principal"] == "apigateway.amazonaws.com"
    } == {
        *(
            (f"<{live_alias(stack, 'terraform_http.handler.handle')}>", f"{here}/*/*{path}")
            # The last one is `$default`.
            for path in ("/states/{name+}", "/outputs/{name+}", "/locks/{name+}", "/unlocks/{name+}", "")
        ),
        (f"<{live_alias(stack, 'cloud.handler.handle')}>", f"{here}/*/*/api/v2/{{path+}}"),
        (f"<{live_alias(stack, 'management.handler.handle')}>", f"{here}/*/*/manage/v1/{{path+}}"),
        *(
            (f"<{live_alias(stack, 'health.handler.handle')}>", f"{here}/*/*{path}")
            for path in ("/health", "/.well-known/terraform.json", "/app/settings/tokens")
        ),
        (f"<{live_alias(stack, 'session_exchange.handler.handle')}>", f"{here}/*/*/sessions"),
        (f"<{live_alias(stack, 'session_exchange.handler.handle')}>", f"{here}/*/*/sessions/aws"),
        (f"<{live_alias(stack, 'authorizer.handler.handle')}>", f"{here}/authorizers/<{authorizer}>"),
    }


def test_the_stage_throttles_and_logs_no_secret(stack: Synthesized) -> None:
    stage = stack.resolve(stack.only("AWS::ApiGatewayV2::Stage")["Properties"])
    assert stage["StageName"] == "$default"
    assert stage["AutoDeploy"] is True
    assert stage["DefaultRouteSettings"] == {"ThrottlingRateLimit": 100, "ThrottlingBurstLimit": 200}
    assert stage["AccessLogSettings"]["DestinationArn"] == (
        "arn:<AWS::Partition>:logs:<AWS::Region>:<AWS::AccountId>:log-group:<AccessLog>"
    )
    assert json.loads(stage["AccessLogSettings"]["Format"]) == {
        "requestId": "$context.requestId",
        "ip": "$context.identity.sourceIp",
        "time": "$context.requestTime",
        "method": "$context.httpMethod",
        "path": "$context.path",
        "status": "$context.status",
        "responseLength": "$context.responseLength",
        "latency": "$context.responseLatency",
        "principal": "$context.authorizer.access_log",
    }


def test_a_team_may_have_other_limits(settled: Synthesized) -> None:
    stage = settled.only("AWS::ApiGatewayV2::Stage")["Properties"]
    assert stage["DefaultRouteSettings"] == {"ThrottlingRateLimit": 5, "ThrottlingBurstLimit": 7}


@pytest.mark.parametrize(
    ("throttling", "rate", "burst"),
    [(Throttling(), 25, 50), (Throttling(rate=7, burst=8), 1, 2), (Throttling(rate=1, burst=3), 1, 1)],
)
def test_the_management_api_has_a_quarter_of_the_teams_limits_to_itself(
    synthesize: Synthesize, throttling: Throttling, rate: int, burst: int
) -> None:
    (stack,) = synthesize([TeamConfig(name="ops", throttling=throttling)], AWS).values()
    stage = stack.only("AWS::ApiGatewayV2::Stage")["Properties"]
    (route,) = (
        one["Properties"]["RouteKey"]
        for one in stack.resources("AWS::ApiGatewayV2::Route").values()
        if "/manage/" in one["Properties"]["RouteKey"]
    )
    # The key of the route itself: API Gateway refuses settings of a route that it does not know.
    assert stage["RouteSettings"] == {route: {"ThrottlingRateLimit": rate, "ThrottlingBurstLimit": burst}}


def test_the_stage_comes_after_the_route_whose_limits_it_has(stack: Synthesized) -> None:
    stage = stack.only("AWS::ApiGatewayV2::Stage")
    (route,) = (
        name
        for name, one in stack.resources("AWS::ApiGatewayV2::Route").items()
        if one["Properties"]["RouteKey"] in stage["Properties"]["RouteSettings"]
    )
    assert route in stage["DependsOn"]


def test_the_outputs_are_the_address_and_the_bucket(
    default: Synthesized, on_this_machine: Synthesized
) -> None:
    def outputs(of: Synthesized) -> dict[str, Any]:
        return {name: of.resolve(output["Value"]) for name, output in of.template["Outputs"].items()}

    ((api, _),) = default.resources("AWS::ApiGatewayV2::Api").items()
    assert outputs(default) == {"ApiAddress": f"<{api}.ApiEndpoint>", "BucketName": "<StateBucket>"}
    assert outputs(on_this_machine) == {
        "ApiAddress": f"https://127.0.0.1:4566/_aws/execute-api/<{api}>/$default",
        "BucketName": "<StateBucket>",
    }


# --- what piles up --------------------------------------------------------------------------------


BUCKET_DEFAULT = Retention(mode="compliance", days=400, bucket_default=True)
HISTORY = History(days=400, keep_versions=10)


@pytest.mark.parametrize(
    ("team", "told"),
    [
        (
            TeamConfig(name="ops", native_clients=True),
            "team 'ops': each unlock of a native client leaves an old version and a delete marker of its "
            "lock, and they stay for ever; write history = { days = 365, keep_versions = 100 } "
            "to have S3 remove them [",
        ),
        (
            TeamConfig(name="ops", retention=BUCKET_DEFAULT),
            "team 'ops': under a retention of the bucket's own each unlock leaves a delete marker of the "
            "lock, and they stay for ever; write history = { days = 400, keep_versions = 100 } "
            "to have S3 remove them [",
        ),
        (
            TeamConfig(name="ops", native_clients=True, retention=BUCKET_DEFAULT),
            "team 'ops': each unlock of a native client leaves an old version and a delete marker of its "
            "lock, and under a retention of the bucket's own each unlock leaves a delete marker of the "
            "lock, and they stay for ever; write history = ",
        ),
    ],
)
def test_a_team_whose_locks_pile_up_is_warned_once(
    synthesize: Synthesize, team: TeamConfig, told: str
) -> None:
    (stack,) = synthesize([team], AWS).values()
    (warning,) = stack.warnings
    assert warning.startswith(told)


@pytest.mark.parametrize(
    "team",
    [
        TeamConfig(name="ops"),
        TeamConfig(name="ops", retention=Retention(mode="governance", days=30)),
        TeamConfig(name="ops", native_clients=True, retention=BUCKET_DEFAULT, history=HISTORY),
        EVERY_SETTING,
    ],
)
def test_a_team_whose_locks_leave_nothing_for_ever_is_not_warned(
    synthesize: Synthesize, team: TeamConfig
) -> None:
    stack = synthesize([team], AWS)["Holdfast-ops"]
    assert stack.warnings == []


# --- the teams, the local AWS ---------------------------------------------------------------------


def test_a_team_that_throttles_above_its_regions_quota_is_warned(synthesize: Synthesize) -> None:
    busy = TeamConfig(name="ops", region="eu-south-1", throttling=Throttling(rate=3000))
    (warning,) = synthesize([busy], AWS)["Holdfast-ops"].warnings
    assert warning.startswith(
        "team 'ops': throttling = { rate = 3000, burst = 200 } is above the default quota of eu-south-1 for "
        "all APIs of an account, which is 2500 requests a second and 1250 at once"
    )


def test_two_teams_share_nothing(stacks: dict[str, Synthesized]) -> None:
    platform, payments = stacks["Holdfast-platform"], stacks["Holdfast-payments"]
    assert "payments" not in json.dumps(platform.template)
    assert "platform" not in json.dumps(payments.template)
    for stack in stacks.values():
        assert "Fn::ImportValue" not in json.dumps(stack.template)
        assert not any("Export" in output for output in stack.template["Outputs"].values())


def differing_paths(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Where two templates differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            yield from differing_paths(one.get(key), other.get(key), f"{path}/{key}")
    elif one != other:
        yield path


def test_the_local_aws_gets_the_same_stack_but_for_place_address_and_protection(
    synthesize: Synthesize, on_this_machine: Synthesized
) -> None:
    team = replace(EVERY_SETTING, account="000000000000", region="us-east-1")
    on_aws = synthesize([team], AWS)["Holdfast-ops"]
    signing = [on_this_machine.function(f"{name}.handler.handle") for name in ("cloud", "management")]
    different = set(differing_paths(on_aws.template, on_this_machine.template))
    # A version's logical ID has a digest of the function's settings in it.
    versions = {path for path in different if re.fullmatch(r"/Resources/\w+CurrentVersion\w+", path)}
    assert len(versions) == 2 * len(signing)
    assert different - versions == {
        "/Outputs/ApiAddress/Value/Fn::GetAtt",
        "/Outputs/ApiAddress/Value/Fn::Join",
        *(
            f"/Resources/{name}/Properties/Environment/Variables/HOLDFAST_PRESIGN_ENDPOINT"
            for name, _ in signing
        ),
        f"/Resources/{signing[0][0]}/Properties/Environment/Variables/HOLDFAST_API_ADDRESS",
        *(
            f"/Resources/{live_alias(on_aws, function['Handler'])}/Properties/FunctionVersion/Fn::GetAtt"
            for _, function in signing
        ),
    }
    # Clients send no credentials along to another host name than the API's.
    for _, function in signing:
        assert function["Environment"]["Variables"]["HOLDFAST_PRESIGN_ENDPOINT"] == "https://localhost:4566"
    address = signing[0][1]["Environment"]["Variables"]["HOLDFAST_API_ADDRESS"]
    assert address == "https://127.0.0.1:4566/_aws/execute-api/{api}/$default"
    assert on_this_machine.environment == "aws://000000000000/us-east-1"
    assert (on_aws.termination_protection, on_this_machine.termination_protection) == (True, False)
    assert on_this_machine.tags == on_aws.tags

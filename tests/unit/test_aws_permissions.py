"""The judgment of roles: the permissions that a call demands, that a role lacks, or that are superfluous."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.aws_permissions import (
    TABLE,
    WRITES_LOG,
    Call,
    Demand,
    Reach,
    UnknownCallError,
    demands,
    distinct,
    missing,
    superfluous,
)

BUCKET = "holdfast-team"
STAGING = "holdfast-team-staging"
ARN = f"arn:aws:s3:::{BUCKET}"
KEY = "arn:aws:kms:eu-central-1:123456789012:key/1"
LOG = "arn:aws:logs:eu-central-1:123456789012:log-group:/holdfast/team/backend:*"
AUDIT = "arn:aws:logs:eu-central-1:123456789012:log-group:/holdfast/team/audit:*"
ROLE = "arn:aws:iam::123456789012:role/Holdfast-team-eu-central-1-transfers"
KMS = Reach(BUCKET, KEY, LOG, "eu-central-1", AUDIT, STAGING, ROLE)
S3_KEYS = Reach(BUCKET, None, LOG, "eu-central-1")

STATE, LOCK, TOKEN = "states/a.tfstate", "states/a.tfstate.tflock", "tokens/a.json"
STREAM = f"{AUDIT.removesuffix('*')}log-stream:any"


def call(operation: str, key: str, *headers: str, query: str = "", status: int = 200) -> Call:
    return Call(
        operation, BUCKET, key, frozenset({query} - {""}), dict.fromkeys(headers, None), status, time=0
    )


def noted(service: str, method: str, path: str, *query: str, **headers: str) -> Call:
    """A call as the local AWS notes it."""
    return Call.noted(
        {
            "service": service,
            "method": method,
            "path": path,
            "query": sorted(query),
            "headers": headers,
            "status": 200,
            "time": 0,
        }
    )


def demanded(call: Call, reach: Reach = KMS) -> set[tuple[str, str]]:
    return {
        (demand.row.action, demand.resource.removeprefix(ARN + "/"))
        for demand in demands(call, reach, "arn:aws:iam::123456789012:role/backend")
    }


@pytest.mark.parametrize(
    ("one", "actions"),
    [
        (call("GetObject", STATE), {("s3:GetObject", STATE), ("kms:Decrypt", KEY)}),
        (
            call("GetObject", STATE, query="versionId"),
            {("s3:GetObjectVersion", STATE), ("kms:Decrypt", KEY)},
        ),
        (
            noted("s3", "GET", f"/{BUCKET}/{STATE}", "X-Amz-Credential", "X-Amz-Expires", "versionId"),
            {("s3:GetObjectVersion", STATE), ("kms:Decrypt", KEY)},
        ),
        (
            noted("s3", "PUT", f"/{STAGING}/uploads/a/b/c", "X-Amz-Credential", "X-Amz-Expires"),
            {("s3:PutObject", f"arn:aws:s3:::{STAGING}/uploads/a/b/c"), ("kms:GenerateDataKey", KEY)},
        ),
        (
            noted("s3", "GET", f"/{STAGING}/uploads/a/b/c"),
            {("s3:GetObject", f"arn:aws:s3:::{STAGING}/uploads/a/b/c"), ("kms:Decrypt", KEY)},
        ),
        (noted("s3", "GET", f"/{BUCKET}", "list-type", "prefix"), {("s3:ListBucket", ARN)}),
        (noted("s3", "GET", f"/{BUCKET}", "versions", "prefix"), {("s3:ListBucketVersions", ARN)}),
        (call("GetObject", STATE, status=404), {("s3:GetObject", STATE), ("s3:ListBucket", ARN)}),
        (call("GetObject", STATE, "range", status=206), {("s3:GetObject", STATE), ("kms:Decrypt", KEY)}),
        (
            call("PutObject", STATE, "if-none-match"),
            {("s3:PutObject", STATE), ("kms:GenerateDataKey", KEY)},
        ),
        (
            call("PutObject", STATE, "if-match", "x-amz-object-lock-mode"),
            {
                ("s3:PutObject", STATE),
                ("s3:GetObject", STATE),
                ("s3:PutObjectRetention", STATE),
                ("kms:GenerateDataKey", KEY),
            },
        ),
        (
            call("PutObject", LOCK, "x-amz-tagging", "x-amz-meta-locked-by", status=412),
            {("s3:PutObject", LOCK), ("s3:PutObjectTagging", LOCK)},
        ),
        (
            call("DeleteObject", STATE, "if-match", status=204),
            {("s3:DeleteObject", STATE), ("s3:GetObject", STATE)},
        ),
        (
            call("DeleteObject", LOCK, query="versionId", status=204),
            {("s3:DeleteObject", LOCK), ("s3:DeleteObjectVersion", LOCK)},
        ),
        (
            noted("logs", "POST", "/", **{"x-amz-target": "Logs_20140328.PutLogEvents"}),
            {("logs:PutLogEvents", STREAM)},
        ),
        (noted("sts", "POST", "/", **{"x-amz-date": ""}), {("sts:AssumeRole", ROLE)}),
        (
            noted("logs", "POST", "/", **{"x-amz-target": "Logs_20140328.CreateLogStream"}),
            {("logs:CreateLogStream", STREAM)},
        ),
    ],
    ids=lambda value: value.operation if isinstance(value, Call) else "",
)
def test_a_call_demands_what_its_parameters_and_its_answer_call_for(
    one: Call, actions: set[tuple[str, str]]
) -> None:
    assert demanded(one) == actions


def test_keys_that_s3_manages_demand_nothing() -> None:
    assert demanded(call("GetObject", STATE), S3_KEYS) == {("s3:GetObject", STATE)}
    assert demanded(call("PutObject", STATE), S3_KEYS) == {("s3:PutObject", STATE)}


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (call("PutObject", STATE, "x-amz-acl"), "PutObject with x-amz-acl"),
        (call("HEAD", STATE), "HEAD is not in the table"),
        (call("DeleteObject", STATE, "x-amz-bypass-governance-retention"), "x-amz-bypass-governance"),
        (call("GetObject", STATE, query="response-content-type"), "GetObject with response-content-type"),
        (call("DeleteObject", STATE, query="X-Amz-Credential"), "DeleteObject with X-Amz-Credential"),
        (call("POST", STATE), "POST is not in the table"),
        (noted("kms", "POST", "/"), "kms: POST /"),
        (noted("s3", "GET", f"/{BUCKET}"), "s3: GET /holdfast-team"),
        (
            noted("kms", "POST", "/", **{"x-amz-target": "TrentService.Decrypt"}),
            "Decrypt is not in the table",
        ),
        (
            noted("logs", "POST", "/", **{"x-amz-target": "Logs_20140328.PutLogEvents", "x-amz-new": ""}),
            "PutLogEvents with x-amz-new",
        ),
        (noted("s3", "GET", f"/{BUCKET}/uploads/a/b/c"), "uploads/a/b/c, which is of no known kind"),
        (noted("s3", "GET", f"/{STAGING}/{STATE}"), "which is of no known kind"),
        (noted("s3", "GET", f"/{BUCKET}", "list-type", "versions", "fetch-owner"), "with fetch-owner"),
        (call("GetObject", "logs/a"), "GetObject of logs/a, which is of no known kind"),
        (call("GetObject", "trust/other.json"), "which is of no known kind"),
        (Call("GetObject", "another", STATE), "goes to another"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_call_that_the_table_does_not_know_is_never_taken_for_granted(one: Call, says: str) -> None:
    with pytest.raises(UnknownCallError, match=says):
        demanded(one)


def test_every_row_says_why_and_names_a_document_of_aws() -> None:
    assert {row.source.split("/")[2] for row in TABLE} == {"docs.aws.amazon.com"}
    assert [row for row in TABLE if not row.why] == []
    assert len({(row.operation, row.action, row.header, row.query) for row in TABLE}) == len(TABLE)


# --- a role beside what its calls demand -----------------------------------------------------------

CALLS = [
    call("GetObject", STATE),
    call("GetObject", STATE, status=404),
    call("PutObject", STATE, "if-none-match"),
    WRITES_LOG,
]


def needed(calls: list[Call]) -> list[Demand]:
    return [demand for one in calls for demand in demands(one, KMS, "arn:aws:iam::123456789012:role/r")]


def allow(actions: str | list[str], resources: str | list[str]) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": actions, "Resource": resources}


EXACT = [
    allow(["s3:GetObject", "s3:PutObject"], f"{ARN}/states/*.tfstate"),
    allow("s3:ListBucket", ARN),
    allow(["kms:Decrypt", "kms:GenerateDataKey"], KEY),
    allow(["logs:CreateLogStream", "logs:PutLogEvents"], LOG),
]


def test_a_role_with_exactly_what_its_calls_demand_is_found_to_be_so() -> None:
    assert missing(needed(CALLS), EXACT) == []
    assert superfluous(needed(CALLS), EXACT) == []


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        (allow("s3:DeleteObject", f"{ARN}/states/*.tfstate"), "s3:DeleteObject on"),
        (allow("s3:GetObject", f"{ARN}/states/*.tfstate.tflock"), "tflock is allowed"),
        (allow("s3:GetObject", f"{ARN}/*"), f"s3:GetObject on {ARN}/*"),
        (allow("s3:Get*", f"{ARN}/states/*.tfstate"), "s3:Get* on"),
        (allow("s3:ListBucket", "*"), "s3:ListBucket on *"),
        (allow("kms:Decrypt", "*"), "kms:Decrypt on *"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_permission_that_no_call_demands_or_that_is_wider_is_superfluous(
    statement: dict[str, Any], says: str
) -> None:
    (found,) = superfluous(needed(CALLS), [*EXACT, statement])

    assert says in found


def test_what_the_bucket_denies_is_missing_whatever_the_role_allows() -> None:
    deny = {"Effect": "Deny", "Action": "s3:PutObject", "Resource": f"{ARN}/*"}

    assert missing(needed(CALLS), [*EXACT, deny]) == [
        f"s3:PutObject on {ARN}/states/*.tfstate is demanded for `PutObject` and not allowed"
    ]


def retained(time: float, until: str) -> Call:
    headers = {"x-amz-object-lock-mode": "GOVERNANCE", "x-amz-object-lock-retain-until-date": until}
    return Call("PutObject", BUCKET, f"states/{time}.tfstate", headers=headers, time=time)


def test_calls_that_differ_in_a_name_or_a_moment_are_judged_once() -> None:
    calls = [retained(0, "1970-01-02T00:00:10Z"), retained(60, "1970-01-02T00:01:10Z")]

    assert len(distinct(needed(calls))) == len(needed(calls[:1])) == 3


def test_a_later_call_for_a_longer_retention_or_another_mode_is_judged_too() -> None:
    first, longer = retained(0, "1970-01-02T00:00:10Z"), retained(60, "1970-01-31T00:00:10Z")
    too_long = {"NumericGreaterThan": {"s3:object-lock-remaining-retention-days": "2"}}
    deny = {"Effect": "Deny", "Action": "s3:PutObjectRetention", "Resource": "*", "Condition": too_long}
    role = [allow("s3:*", f"{ARN}/*"), allow("kms:*", KEY), deny]

    assert missing(distinct(needed([first])), role) == []
    assert len(missing(distinct(needed([first, longer])), role)) == 1
    compliance = replace(first, headers={**first.headers, "x-amz-object-lock-mode": "COMPLIANCE"})
    assert {
        demand.request.context.get("s3:object-lock-mode") for demand in distinct(needed([first, compliance]))
    } >= {"GOVERNANCE", "COMPLIANCE"}


def test_a_statement_that_allows_by_exclusion_is_refused() -> None:
    with pytest.raises(ValueError, match="everything but something"):
        superfluous([], [{"Effect": "Allow", "NotAction": "s3:DeleteBucket", "Resource": "*"}])

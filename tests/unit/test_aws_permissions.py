"""The judgment of roles: what it does not know, and what is missing or superfluous.

The table itself is right if `test_permissions.py` succeeds: what its rows demand is what the roles have.
"""

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

STATE = "states/a.tfstate"


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
        demands(one, KMS, ROLE)


def test_every_row_names_a_document_of_aws() -> None:
    assert {row.source.split("/")[2] for row in TABLE} == {"docs.aws.amazon.com"}


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


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        (None, set()),
        *(
            (allow(action, resource), {(action, resource)})
            for action, resource in (
                ("s3:DeleteObject", f"{ARN}/states/*.tfstate"),
                ("s3:GetObject", f"{ARN}/states/*.tfstate.tflock"),
                ("s3:GetObject", f"{ARN}/*"),
                ("s3:Get*", f"{ARN}/states/*.tfstate"),
                ("kms:Decrypt", "*"),
            )
        ),
    ],
)
def test_a_permission_that_no_call_demands_or_that_is_wider_is_superfluous(
    statement: dict[str, Any] | None, found: set[tuple[str, str]]
) -> None:
    role = [*EXACT, *([statement] if statement else [])]
    assert superfluous(needed(CALLS), role) == found
    assert missing(needed(CALLS), role) == set()


def test_what_the_bucket_denies_is_missing_whatever_the_role_allows() -> None:
    deny = {"Effect": "Deny", "Action": "s3:PutObject", "Resource": f"{ARN}/*"}

    assert missing(needed(CALLS), [*EXACT, deny]) == {("s3:PutObject", f"{ARN}/states/*.tfstate")}


def retained(time: float, until: str) -> Call:
    headers = {"x-amz-object-lock-mode": "GOVERNANCE", "x-amz-object-lock-retain-until-date": until}
    return Call("PutObject", BUCKET, f"states/{time}.tfstate", headers=headers, time=time)


def test_a_later_call_for_a_longer_retention_or_another_mode_is_judged_too() -> None:
    first, longer = retained(0, "1970-01-02T00:00:10Z"), retained(60, "1970-01-31T00:00:10Z")
    too_long = {"NumericGreaterThan": {"s3:object-lock-remaining-retention-days": "2"}}
    deny = {"Effect": "Deny", "Action": "s3:PutObjectRetention", "Resource": "*", "Condition": too_long}
    role = [allow("s3:*", f"{ARN}/*"), allow("kms:*", KEY), deny]

    assert missing(distinct(needed([first])), role) == set()
    assert len(missing(distinct(needed([first, longer])), role)) == 1


def test_a_statement_that_allows_by_exclusion_is_refused() -> None:
    with pytest.raises(ValueError, match="everything but something"):
        superfluous([], [{"Effect": "Allow", "NotAction": "s3:DeleteBucket", "Resource": "*"}])

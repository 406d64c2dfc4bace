"""The judgment of roles: what it does not know, and calls that differ.

`test_permissions.py` tests with the calls of the deployed functions what is missing and what is superfluous.
"""

import pytest

from tests.support.aws_permissions import (
    TABLE,
    Call,
    Reach,
    UnknownCallError,
    demands,
    distinct,
    missing,
)

BUCKET = "holdfast-team"
STAGING = "holdfast-team-staging"
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


def retained(time: float, until: str) -> Call:
    headers = {"x-amz-object-lock-mode": "GOVERNANCE", "x-amz-object-lock-retain-until-date": until}
    return Call("PutObject", BUCKET, f"states/{time}.tfstate", headers=headers, time=time)


def test_a_later_call_for_a_longer_retention_is_judged_too() -> None:
    first, longer = retained(0, "1970-01-02T00:00:10Z"), retained(60, "1970-01-31T00:00:10Z")
    too_long = {"NumericGreaterThan": {"s3:object-lock-remaining-retention-days": "2"}}
    everything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    deny = {"Effect": "Deny", "Action": "s3:PutObjectRetention", "Resource": "*", "Condition": too_long}

    def lacking(*calls: Call) -> set[tuple[str, str]]:
        needed = distinct(demand for one in calls for demand in demands(one, KMS, ROLE))
        return missing(needed, [everything, deny])

    assert lacking(first) == set()
    assert lacking(first, longer) == {("s3:PutObjectRetention", f"arn:aws:s3:::{BUCKET}/states/*.tfstate")}

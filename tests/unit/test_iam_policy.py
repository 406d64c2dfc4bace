"""The evaluator of IAM policies decides as IAM's documents say.

`infra/test_bucket_policy.py` tries each condition of the policies, with values and without.
"""

from typing import Any

import pytest

from tests.support.iam_policy import Request, evaluate

GET = Request("s3:GetObject", "arn:aws:s3:::states/a/b.tfstate")


def allow(**elements: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*", **elements}


@pytest.mark.parametrize(
    ("elements", "applies"),
    [
        ({"Action": "s3:getobject"}, True),
        ({"Action": "S3:Get*"}, True),
        ({"Action": "*"}, True),
        ({"Action": ["s3:PutObject", "s3:GetObject"]}, True),
        ({"Action": "s3:GetObjectVersion"}, False),
        ({"Action": "s3:GetObject.*"}, False),
        ({"Resource": "arn:aws:s3:::states/*.tfstate"}, True),
        ({"Resource": "arn:aws:s3:::states/*.tflock"}, False),
        ({"Resource": "arn:aws:s3:::STATES/*"}, False),
        ({"Resource": "arn:aws:s3:::states/a/b.tfstate*"}, True),
        ({"Resource": "arn:aws:s3:::states"}, False),
        ({"Resource": ["arn:aws:s3:::other/*", "arn:*:s3:::states/*"]}, True),
        ({"Resource": "arn:aws:sqs:::states/*"}, False),
    ],
)
def test_a_statement_applies_to_the_actions_and_resources_that_it_names(
    elements: dict[str, Any], applies: bool
) -> None:
    assert evaluate([allow(**elements)], GET) == ("allow" if applies else "nothing")


def test_a_wildcard_stays_within_its_part_of_an_arn_but_for_the_last() -> None:
    log = Request("logs:PutLogEvents", "arn:aws:logs:eu-central-1:1:log-group:/a:*")
    assert evaluate([allow(Action="*", Resource="arn:aws:logs:*:log-group:/a:*")], log) == "nothing"
    assert evaluate([allow(Action="*", Resource="arn:aws:logs:*:*:log-group:*")], log) == "allow"


@pytest.mark.parametrize(
    ("principal", "applies"),
    [
        ("*", True),
        ({"AWS": "arn:aws:iam::123456789012:role/backend"}, True),
        ({"AWS": ["arn:aws:iam::123456789012:role/other"]}, False),
        ({"AWS": "arn:aws:iam::123456789012:root"}, True),
        ({"AWS": "arn:aws:iam::999999999999:root"}, False),
    ],
)
def test_a_statement_applies_to_the_principals_that_it_names(principal: Any, applies: bool) -> None:
    request = Request(GET.action, GET.resource, "arn:aws:iam::123456789012:role/backend")
    assert evaluate([allow(Principal=principal)], request) == ("allow" if applies else "nothing")


ROLE = "arn:aws:iam::1:role/backend"


@pytest.mark.parametrize(
    ("operator", "wanted", "found", "applies"),
    [
        ("StringEquals", "a*", "ab", False),
        ("StringEquals", ["a", "b"], "b", True),
        ("StringNotEquals", ["a", "b"], "b", False),
        ("StringNotEquals", ["a", "b"], "c", True),
        ("StringLike", "a*", "ab", True),
        ("ArnNotEquals", ROLE, ROLE, False),
        ("ArnNotEquals", ROLE, f"{ROLE}s", True),
        ("NotIpAddress", "203.0.113.0/24", "203.0.113.5", False),
        ("NotIpAddress", "203.0.113.0/24", "203.0.112.5", True),
    ],
)
def test_a_condition_compares_the_requests_value_with_the_policys(
    operator: str, wanted: Any, found: str, applies: bool
) -> None:
    statement = allow(Condition={operator: {"s3:key": wanted}})
    request = Request(GET.action, GET.resource, context={"s3:Key": found})
    assert evaluate([statement], request) == ("allow" if applies else "nothing")


@pytest.mark.parametrize(
    ("elements", "told"),
    [
        ({"NotPrincipal": "*"}, "NotPrincipal"),
        ({"Effect": "Perhaps"}, "Perhaps"),
        ({"NotAction": "s3:*"}, "NotAction"),
        ({"NotResource": "*"}, "NotResource"),
        ({"Principal": {"Service": "logging.s3.amazonaws.com"}}, "Service"),
        ({"Principal": {"AWS": "123456789012"}}, "123456789012"),
        ({"Action": "s3:GetObjec?"}, "wildcard"),
        ({"Resource": "states/*"}, "no ARN"),
        ({"Resource": "arn:aws:s3:::${aws:username}"}, "aws:username"),
        ({"Resource": {"Ref": "StateBucket"}}, "not resolved"),
        ({"Condition": {"DateLessThan": {"aws:CurrentTime": "2026-01-01"}}}, "DateLessThan"),
        ({"Condition": {"NullIfExists": {"s3:a": "true"}}}, "NullIfExists"),
        ({"Condition": {"Null": {"s3:a": "yes"}}}, "yes"),
        ({"Condition": {"ForAllValues:StringEquals": {"s3:a": "b"}}}, "ForAllValues"),
        ({"Condition": {"StringEquals": {"s3:a": {"Ref": "Key"}}}}, "not resolved"),
    ],
)
def test_what_the_evaluator_does_not_know_is_an_error(elements: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        evaluate([allow(**elements)], GET)


def test_a_statement_that_does_not_apply_is_read_all_the_same() -> None:
    with pytest.raises(ValueError, match="IpAddress"):
        evaluate([allow(Action="s3:PutObject", Condition={"IpAddress": {"aws:SourceIp": "::1"}})], GET)

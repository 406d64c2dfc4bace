"""The evaluator of IAM policies decides as IAM's documents say."""

from typing import Any

import pytest

from tests.support.iam_policy import Request, evaluate, matching

GET = Request("s3:GetObject", "arn:aws:s3:::states/a/b.tfstate")


def allow(**elements: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*", **elements}


def deny(**elements: Any) -> dict[str, Any]:
    return allow(**elements) | {"Effect": "Deny"}


# --- which statements apply -----------------------------------------------------------------------


def test_nothing_is_allowed_that_no_statement_allows() -> None:
    assert evaluate([], GET) == "nothing"
    assert evaluate([allow(Action="s3:PutObject")], GET) == "nothing"


def test_one_statement_that_denies_outweighs_all_that_allow() -> None:
    assert evaluate([allow()], GET) == "allow"
    assert evaluate([allow(), deny(), allow()], GET) == "deny"
    assert evaluate([deny()], GET) == "deny"


def test_the_statements_that_apply_are_told() -> None:
    statements = [allow(Sid="one"), deny(Sid="two"), deny(Sid="three", Action="s3:PutObject")]
    assert [statement["Sid"] for statement in matching(statements, GET)] == ["one", "two"]


@pytest.mark.parametrize(
    ("elements", "applies"),
    [
        ({"Action": "s3:getobject"}, True),
        ({"Action": "S3:Get*"}, True),
        ({"Action": "s3:GetObjec?"}, True),
        ({"Action": "s3:Get?"}, False),
        ({"Action": "*"}, True),
        ({"Action": ["s3:PutObject", "s3:GetObject"]}, True),
        ({"Action": "s3:GetObjectVersion"}, False),
        ({"Action": "s3:GetObject.*"}, False),
        ({"Resource": "arn:aws:s3:::states/*.tfstate"}, True),
        ({"Resource": "arn:aws:s3:::states/*.tflock"}, False),
        ({"Resource": "arn:aws:s3:::STATES/*"}, False),
        ({"Resource": "arn:aws:s3:::states/a/?.tfstate"}, True),
        ({"Resource": "arn:aws:s3:::states/a/b.tfstate*"}, True),
        ({"Resource": "arn:aws:s3:::states"}, False),
        ({"Resource": ["arn:aws:s3:::other/*", "arn:*:s3:::states/*"]}, True),
        ({"Resource": "arn:aws:sqs:::states/*"}, False),
        ({"Resource": "arn:aws:s3:::states/${*}"}, False),
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
        ({"AWS": "*"}, True),
        ({"AWS": "arn:aws:iam::123456789012:role/backend"}, True),
        ({"AWS": ["arn:aws:iam::123456789012:role/other", "123456789012"]}, True),
        ({"AWS": "arn:aws:iam::123456789012:root"}, True),
        ({"AWS": "arn:aws:iam::999999999999:root"}, False),
        ({"Service": "logging.s3.amazonaws.com"}, False),
    ],
)
def test_a_statement_applies_to_the_principals_that_it_names(principal: Any, applies: bool) -> None:
    request = Request(GET.action, GET.resource, "arn:aws:iam::123456789012:role/backend")
    assert evaluate([allow(Principal=principal)], request) == ("allow" if applies else "nothing")


def test_a_service_is_a_principal_by_its_name() -> None:
    statement = allow(Principal={"Service": "logging.s3.amazonaws.com"})
    assert evaluate([statement], Request(GET.action, GET.resource, "logging.s3.amazonaws.com")) == "allow"


# --- conditions -----------------------------------------------------------------------------------


def holds(operator: str, wanted: Any, found: str | list[str] | None) -> bool:
    """Return whether a condition on one key holds for a request with this value."""
    context = {} if found is None else {"s3:Key": found}
    statement = allow(Condition={operator: {"s3:key": wanted}})
    return evaluate([statement], Request(GET.action, GET.resource, context=context)) == "allow"


@pytest.mark.parametrize(
    ("operator", "wanted", "found", "expected"),
    [
        ("Null", "true", None, True),
        ("Null", "true", "a", False),
        ("Null", "true", "", False),
        ("Null", "false", None, False),
        ("Null", "false", "a", True),
        ("Null", True, None, True),
        ("Null", False, "a", True),
        ("Bool", "true", "true", True),
        ("Bool", "true", "True", True),
        ("Bool", "true", "false", False),
        ("Bool", False, "false", True),
        ("Bool", "false", None, False),
        ("StringEquals", "a", "a", True),
        ("StringEquals", "a", "A", False),
        ("StringEquals", "a*", "ab", False),
        ("StringEquals", ["a", "b"], "b", True),
        ("StringEquals", "a", None, False),
        ("StringNotEquals", "a", "b", True),
        ("StringNotEquals", "a", "a", False),
        ("StringNotEquals", ["a", "b"], "b", False),
        ("StringNotEquals", ["a", "b"], "c", True),
        ("StringLike", "a/*", "a/b/c", True),
        ("StringLike", "a/?", "a/bc", False),
        ("StringLike", "a.c", "abc", False),
        ("ArnLike", "arn:aws:s3:::a*", "arn:aws:s3:::ab", True),
        ("ArnLike", "arn:aws:s3:*::*", "arn:aws:sqs:a:b:c", False),
        ("NumericLessThan", 1.2, "1.1", True),
        ("NumericLessThan", "1.2", "1.2", False),
        ("NumericGreaterThan", "31", "100", True),
        ("NumericGreaterThan", "31", "31", False),
    ],
)
def test_a_condition_compares_the_requests_value_with_the_policys(
    operator: str, wanted: Any, found: str | None, expected: bool
) -> None:
    assert holds(operator, wanted, found) is expected


@pytest.mark.parametrize(
    ("operator", "applies"),
    [
        ("StringNotEquals", True),
        *((name, False) for name in ("Bool", "StringEquals", "StringLike", "ArnLike")),
        *((name, False) for name in ("NumericLessThan", "NumericGreaterThan")),
    ],
)
def test_a_key_that_is_missing_meets_a_negated_condition_alone(operator: str, applies: bool) -> None:
    assert holds(operator, "1", None) is applies


def test_all_keys_and_operators_of_a_condition_must_hold() -> None:
    condition = {"Null": {"s3:a": "true", "s3:b": "true"}, "Bool": {"s3:c": "true"}}

    def decide(**context: str) -> str:
        keys = {f"s3:{name}": value for name, value in context.items()}
        return evaluate([deny(Condition=condition)], Request(GET.action, GET.resource, context=keys))

    assert decide(c="true") == "deny"
    assert decide(a="1", c="true") == "nothing"
    assert decide(b="1", c="true") == "nothing"
    assert decide(c="false") == "nothing"
    assert decide() == "nothing"


# --- what is not known ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("elements", "told"),
    [
        ({"NotPrincipal": "*"}, "NotPrincipal"),
        ({"Effect": "Perhaps"}, "Perhaps"),
        ({"NotAction": "s3:*"}, "NotAction"),
        ({"NotResource": "*"}, "NotResource"),
        ({"Principal": {"Group": "a"}}, "Group"),
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


def test_several_values_are_not_compared() -> None:
    with pytest.raises(ValueError, match="several"):
        holds("StringEquals", "a", ["a", "b"])

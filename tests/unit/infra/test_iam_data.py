"""Each policy has actions that AWS lists, with a resource and condition keys that AWS lists for them.

IAM accepts others, and never applies them: a `Deny` with such a key refuses nothing, and an `Allow` on one
resource grants nothing if the action has no resources. The list is AWS's service authorization reference, in
the npm package iam-data; CloudFormation's schemas are another source.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, Final

import pytest

from tests.support.iam_policy import Statement
from tests.support.pages import page, text
from tests.unit.infra.conftest import ROOT, Synthesized
from tests.unit.infra.test_keys import listed, statements_of

DATA: Final = ROOT / "node_modules" / "@cloud-copilot" / "iam-data" / "data"

# Of every service: docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html
GLOBAL: Final = re.compile(r"aws:(principal(account|arn)|securetransport|source(account|arn|ip))")
# CloudFormation's schemas of API Gateway list both, and IAM accepts them.
NOT_LISTED: Final = {"apigateway:TagResource", "apigateway:UntagResource"}


@dataclass(frozen=True)
class Action:
    """An action as AWS lists it; `keys` are patterns of its condition keys, in small letters."""

    has_resources: bool
    keys: frozenset[str]


@cache
def actions(service: str) -> dict[str, Action]:
    """Return the actions of a service, by their names in small letters."""
    path = DATA / "actions" / f"{service}.json"
    entries: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return {
        name: Action(
            bool(entry["resourceTypes"]),
            frozenset(
                re.sub(r"\$\{.*?\}", "*", key.lower())
                for each in (entry, *entry["resourceTypes"])
                for key in each["conditionKeys"]
            ),
        )
        for name, entry in entries.items()
    }


def unknown(statement: Statement) -> Iterator[str]:
    """Yield what a statement has that AWS does not list: an action, or its resource, or a condition key.

    If an action has a wildcard, one of its actions is enough.
    """
    keys = {key for operator in statement.get("Condition", {}).values() for key in operator}
    for action in listed(statement["Action"]):
        service, _, name = action.partition(":")
        meant = [known for one, known in actions(service).items() if fnmatchcase(one, name.lower())]
        if not meant:
            yield action
            continue
        if statement.get("Resource", "*") != "*" and not any(known.has_resources for known in meant):
            yield f"{action} on a resource"
        for key in sorted(keys):
            if not any(_is_listed(key.lower(), known.keys) for known in meant):
                yield f"{action} with {key}"


def _is_listed(key: str, known: frozenset[str]) -> bool:
    return GLOBAL.fullmatch(key) is not None or any(fnmatchcase(key, pattern) for pattern in known)


def of_documents() -> Iterator[Statement]:
    """Yield the statements of the policies beside the documents, and those of the table of permissions."""
    for name in ("deployment-policy.json", "functions-boundary.json"):
        yield from json.loads(text(page(name)))["Statement"]
    _, _, table = text(page("permissions.md")).partition("| For | Allow | On |\n")
    for row in table.partition("\n\n")[0].splitlines()[1:]:
        yield {"Action": re.findall(r"`([a-z0-9-]+:\w+)`", row.split(" | ")[1])}


def test_each_action_and_condition_key_is_listed_by_aws(every_setting_stacks: dict[str, Synthesized]) -> None:
    statements = [
        statement
        for stack in every_setting_stacks.values()
        for resource in stack.template["Resources"].values()
        for statement in statements_of(resource["Properties"])
    ]

    assert len(statements) > 100
    assert {found for each in (*statements, *of_documents()) for found in unknown(each)} == NOT_LISTED


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ({"Action": "s3:GetObjekt"}, ["s3:GetObjekt"]),
        ({"Action": ["s3x:GetObject", "s3:Get*"]}, ["s3x:GetObject"]),
        (
            {"Action": "s3:PutObject", "Condition": {"StringEquals": {"s3:ResourceAkkount": "1"}}},
            ["s3:PutObject with s3:ResourceAkkount"],
        ),
        (
            {"Action": ["s3:PutObject", "s3:GetObject"], "Condition": {"Null": {"s3:if-none-match": "true"}}},
            ["s3:GetObject with s3:if-none-match"],
        ),
        ({"Action": "kms:CreateKey", "Resource": "arn:aws:kms:*:*:key/*"}, ["kms:CreateKey on a resource"]),
        ({"Action": "sns:Publish", "Condition": {"Bool": {"aws:SecureTransport": "true"}}}, []),
        (
            {"Action": "kms:Decrypt", "Condition": {"Null": {"kms:EncryptionContext:aws:s3:arn": "true"}}},
            [],
        ),
    ],
)
def test_a_fault_is_found(statement: Statement, found: list[str]) -> None:
    assert list(unknown(statement)) == found

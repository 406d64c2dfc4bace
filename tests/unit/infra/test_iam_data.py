"""Each policy has actions that AWS lists, and for each action condition keys that AWS lists for it.

IAM accepts others, and never applies them: a `Deny` with such a key would refuse nothing. The list is AWS's
service authorization reference, in the npm package iam-data; CloudFormation's schemas are another source.
"""

import json
import re
from collections.abc import Iterator
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


@cache
def condition_keys(service: str) -> dict[str, set[str]]:
    """Return the condition keys of each action of a service, all in small letters, without placeholders."""
    path = DATA / "actions" / f"{service}.json"
    actions: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return {
        action: {
            re.sub(r"\$\{.*?\}", "*", key.lower())
            for each in (entry, *entry["resourceTypes"])
            for key in each["conditionKeys"]
        }
        for action, entry in actions.items()
    }


def unknown(statement: Statement) -> Iterator[str]:
    """Yield the actions of a statement that AWS does not list, and those for which it lists no such key."""
    keys = {key for operator in statement.get("Condition", {}).values() for key in operator}
    for action in listed(statement["Action"]):
        service, _, name = action.partition(":")
        meant = [known for one, known in condition_keys(service).items() if fnmatchcase(one, name.lower())]
        if not meant:
            yield action
        for key in sorted(keys):
            # `*` in an action: a key that some of the actions have is not for the others.
            if meant and not any(_is_listed(key.lower(), known) for known in meant):
                yield f"{action} with {key}"


def _is_listed(key: str, known: set[str]) -> bool:
    return GLOBAL.fullmatch(key) is not None or any(fnmatchcase(key, pattern) for pattern in known)


def of_documents() -> Iterator[Statement]:
    """Yield the statements of the policies beside the documents, and those of the table of permissions."""
    for name in ("deployment-policy.json", "functions-boundary.json"):
        yield from json.loads(text(page(name)))["Statement"]
    _, _, table = text(page("access.md")).partition("| For | Allow | On |\n")
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
        ({"Action": "sns:Publish", "Condition": {"Bool": {"aws:SecureTransport": "true"}}}, []),
        (
            {"Action": "kms:Decrypt", "Condition": {"Null": {"kms:EncryptionContext:aws:s3:arn": "true"}}},
            [],
        ),
    ],
)
def test_a_fault_is_found(statement: Statement, found: list[str]) -> None:
    assert list(unknown(statement)) == found

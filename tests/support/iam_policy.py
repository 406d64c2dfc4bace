"""Evaluates IAM policy statements as AWS does, as far as Holdfast's policies and their tests need it.

The rules are those of the IAM user guide ("Policy evaluation logic", "IAM JSON policy elements: Condition
operators", "Multivalued context keys"). An unknown element raises, so that no statement is silently
ignored.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any, Final, Literal

from holdfast.template import DeployedTemplate

Statement = Mapping[str, Any]
Value = str | list[str]


@dataclass(frozen=True, slots=True)
class Request:
    """One action, as in `s3:PutObject`, on one resource.

    `principal` is the ARN of the caller, or the name of a service; only a policy with principals looks at it.
    `context` has the condition keys of the request; a list is a key with several values.
    """

    action: str
    resource: str
    principal: str = ""
    context: Mapping[str, Value] = field(default_factory=dict)


def evaluate(statements: Sequence[Statement], request: Request) -> Literal["allow", "deny", "nothing"]:
    """Evaluate statements for a request. A deny outweighs every allow.

    The statements come from `resolved`. ValueError: a statement has something that this module does not know.
    """
    effects = {statement["Effect"] for statement in matching(statements, request)}
    if "Deny" in effects:
        return "deny"
    return "allow" if "Allow" in effects else "nothing"


def matching(statements: Sequence[Statement], request: Request) -> list[Statement]:
    """Return the statements that apply to a request.

    ValueError: a statement has something that this module does not know, whether it applies or not.
    """
    # Every statement is read to its end, so that an unknown element raises for every request.
    return [statement for statement in statements if all([*_checks(statement, request)])]


_ELEMENTS: Final = frozenset({"Sid", "Effect", "Principal", "Action", "Resource", "Condition"})


def _checks(statement: Statement, request: Request) -> list[bool]:
    if unknown := statement.keys() - _ELEMENTS:
        raise ValueError(f"unknown in a statement: {', '.join(sorted(unknown))}")
    if statement["Effect"] not in ("Allow", "Deny"):
        raise ValueError(f"unknown effect {statement['Effect']}")
    context = {name.lower(): value for name, value in request.context.items()}
    return [
        _principal(statement["Principal"], request.principal) if "Principal" in statement else True,
        any(_like(pattern, request.action, re.IGNORECASE) for pattern in _listed(statement["Action"])),
        any(_arn(pattern, request.resource) for pattern in _listed(statement.get("Resource", "*"))),
        *(
            _condition(name, context.get(key.lower()), _listed(values))
            for name, keys in statement.get("Condition", {}).items()
            for key, values in keys.items()
        ),
    ]


def _listed(value: Any) -> list[str]:
    return [_text(one) for one in value] if isinstance(value, list) else [_text(value)]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        raise ValueError(f"not resolved: {value!r}")  # noqa: TRY004 the policy is wrong, not the call
    return str(value)


# --- patterns -------------------------------------------------------------------------------------


def _like(pattern: str, text: str, flags: int = 0) -> bool:
    """Match a pattern, in which `*` is any number of characters."""
    if "?" in pattern or "${" in pattern:
        raise ValueError(f"a wildcard or variable that no policy has: {pattern}")
    expression = ".*".join(re.escape(part) for part in pattern.split("*"))
    return re.fullmatch(expression, text, flags | re.DOTALL) is not None


def _arn(pattern: str, arn: str) -> bool:
    """Match the six parts of an ARN one by one. Only in the last part a wildcard can match a colon."""
    if pattern == "*":
        return True
    patterns, parts = pattern.split(":", 5), arn.split(":", 5)
    if len(patterns) != 6:
        raise ValueError(f"no ARN: {pattern}")
    return len(parts) == 6 and all(
        _like(wanted, found) for wanted, found in zip(patterns, parts, strict=True)
    )


def _principal(wanted: Any, principal: str) -> bool:
    if wanted == "*":
        return True
    if not isinstance(wanted, Mapping) or wanted.keys() != {"AWS"}:
        raise ValueError(f"unknown principal {wanted}")
    return any(_is_principal(one, principal) for one in _listed(wanted["AWS"]))


def _is_principal(wanted: str, principal: str) -> bool:
    if re.fullmatch(r"A(RO|ID)A[A-Z0-9]+", wanted):
        return False  # the unique ID of a deleted role or user
    if not wanted.startswith("arn:"):
        raise ValueError(f"unknown principal {wanted}")
    # The root of an account as principal matches every principal in that account.
    account = re.fullmatch(r"arn:[^:]+:iam::([0-9]{12}):root", wanted)
    return principal.split(":")[4:5] == [account[1]] if account else wanted == principal


# --- conditions -----------------------------------------------------------------------------------

_OPERATORS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "Bool": lambda wanted, found: wanted.lower() == found.lower(),
    "StringEquals": operator.eq,
    "StringNotEquals": operator.ne,
    "StringLike": _like,
    "ArnEquals": _arn,
    "NotIpAddress": lambda wanted, found: ip_address(found) not in ip_network(wanted),
    "ArnNotEquals": lambda wanted, found: not _arn(wanted, found),
    "NumericLessThan": lambda wanted, found: float(found) < float(wanted),
    "NumericGreaterThan": lambda wanted, found: float(found) > float(wanted),
}


def _condition(name: str, found: Value | None, wanted: list[str]) -> bool:
    """Evaluate one key under the operator `name`. `found` is None if the request has no value."""
    if name == "Null":
        if any(value.lower() not in ("true", "false") for value in wanted):
            raise ValueError(f"Null takes true or false: {wanted}")
        return ("true" if found in (None, []) else "false") in {value.lower() for value in wanted}
    compare = _OPERATORS.get(name)
    if compare is None:
        raise ValueError(f"unknown condition operator {name}")
    negated = name in ("StringNotEquals", "ArnNotEquals", "NotIpAddress")
    if found is None or found == []:
        return negated
    if isinstance(found, list):
        raise ValueError(f"{name} compares one value, and there are several: {found}")  # noqa: TRY004 as in _text
    # One of a policy's values must match. Under a negated operator no value may match.
    matched = [compare(one, found) for one in wanted]
    return all(matched) if negated else any(matched)


# --- from a template ------------------------------------------------------------------------------

ACCOUNT: Final = "123456789012"
REGION: Final = "eu-central-1"


def resolved(template: Mapping[str, Any], value: Any, region: str = REGION) -> Any:
    """Replace the CloudFormation functions in a part of a template, as a deployment in a region does.

    A name that CloudFormation would make becomes the logical ID in lower case.
    UnresolvedError: a function, or an attribute of a resource, is not known.
    """
    return DeployedTemplate(template, _Names(template), "aws", region, ACCOUNT).resolve(value)


_NAMED_BY: Final = {
    "AWS::S3::Bucket": "BucketName",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::IAM::Role": "RoleName",
}


class _Names(dict[str, str]):
    """The physical IDs of a template that is not deployed, made when they are asked for."""

    def __init__(self, template: Mapping[str, Any]) -> None:
        super().__init__()
        self._template = template

    def __missing__(self, logical_id: str) -> str:
        resource = self._template["Resources"][logical_id]
        given = resource.get("Properties", {}).get(_NAMED_BY.get(resource["Type"], ""))
        return str(resolved(self._template, given)) if given else logical_id.lower()


def bucket_policy(template: Mapping[str, Any], bucket: str = "StateBucket") -> list[dict[str, Any]]:
    """Return the resolved statements of a bucket's policy; `bucket` is the bucket's logical ID."""
    (policy,) = (
        resource["Properties"]
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::S3::BucketPolicy" and resource["Properties"]["Bucket"] == {"Ref": bucket}
    )
    return [resolved(template, statement) for statement in policy["PolicyDocument"]["Statement"]]

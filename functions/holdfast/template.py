"""The template of a deployed stack. It resolves the forms of references that Holdfast's templates use."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

_ARNS: Final = {
    "AWS::IAM::Role": "arn:{partition}:iam::{account}:role/{id}",
    "AWS::KMS::Key": "arn:{partition}:kms:{region}:{account}:key/{id}",
    "AWS::Lambda::Function": "arn:{partition}:lambda:{region}:{account}:function:{id}",
    "AWS::Logs::LogGroup": "arn:{partition}:logs:{region}:{account}:log-group:{id}:*",
    "AWS::S3::Bucket": "arn:{partition}:s3:::{id}",
}
"""Resource type -> the ARN that `Fn::GetAtt` returns, as a format string."""


class UnresolvedError(ValueError):
    """The template has an unknown reference, or the stack lacks a resource. The message names it."""


def physical_ids(cloudformation: Any, stack: str) -> dict[str, str]:
    """Return logical ID -> physical ID of every existing resource of a stack.

    Args:
        cloudformation: the SDK's client.
    """
    return {
        resource["LogicalResourceId"]: resource["PhysicalResourceId"]
        for page in cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack)
        for resource in page["StackResourceSummaries"]
        if "PhysicalResourceId" in resource
    }


@dataclass(frozen=True, slots=True)
class DeployedTemplate:
    """The template of a stack, with the stack's partition (such as `aws`), region and account.

    `physical_ids` has what the function of that name returns.
    """

    document: Mapping[str, Any]
    physical_ids: Mapping[str, str]
    partition: str
    region: str
    account: str

    def resources(self, resource_type: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield logical ID and properties of the resources of a type, with their references resolved."""
        for logical_id, resource in self.document["Resources"].items():
            if resource["Type"] == resource_type:
                yield logical_id, self.resolve(resource.get("Properties", {}))

    def resolve(self, value: Any) -> Any:
        """Return a value of the template with every reference replaced by its value.

        Raises:
            UnresolvedError: a reference cannot be resolved.
        """
        match value:
            case {"Ref": str(name), **others} if not others:
                return self._pseudo_parameter(name) or self._physical_id(name)
            case {"Fn::GetAtt": [str(name), "Arn"], **others} if not others:
                return self._arn(name)
            case {"Fn::Join": [str(separator), list(parts)], **others} if not others:
                return separator.join(str(self.resolve(part)) for part in parts)
            case dict():
                if unknown := [key for key in value if key == "Ref" or key.startswith("Fn::")]:
                    raise UnresolvedError(f"The template has the unknown {unknown[0]} {value[unknown[0]]}.")
                return {key: self.resolve(item) for key, item in value.items()}
            case list():
                return [self.resolve(item) for item in value]
            case _:
                return value

    def _pseudo_parameter(self, name: str) -> str | None:
        suffix = "amazonaws.com.cn" if self.partition == "aws-cn" else "amazonaws.com"
        return {
            "AWS::AccountId": self.account,
            "AWS::Partition": self.partition,
            "AWS::Region": self.region,
            "AWS::URLSuffix": suffix,
        }.get(name)

    def _physical_id(self, name: str) -> str:
        try:
            return self.physical_ids[name]
        except KeyError:
            raise UnresolvedError(f"The stack has no resource {name}.") from None

    def _arn(self, name: str) -> str:
        resource_type = self.document["Resources"].get(name, {}).get("Type")
        if resource_type not in _ARNS:
            raise UnresolvedError(f"The ARN of {name} is unknown, because its type is {resource_type}.")
        return _ARNS[resource_type].format(
            partition=self.partition, region=self.region, account=self.account, id=self._physical_id(name)
        )

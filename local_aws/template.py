"""Resolve the CloudFormation functions in the template of a deployed stack."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from local_aws.failure import LocalAwsError
from local_aws.server import ACCOUNT, REGION

Template = Mapping[str, Any]

_ARNS: Final = {
    "AWS::S3::Bucket": "arn:aws:s3:::{name}",
    "AWS::KMS::Key": "arn:aws:kms:{region}:{account}:key/{name}",
    "AWS::Logs::LogGroup": "arn:aws:logs:{region}:{account}:log-group:{name}:*",
    "AWS::Lambda::Function": "arn:aws:lambda:{region}:{account}:function:{name}",
    "AWS::IAM::Role": "arn:aws:iam::{account}:role/{name}",
}


class UnsupportedTemplateError(LocalAwsError):
    """The template has a property or a function that this code does not know."""


def resolve(
    value: Any,
    template: Template,
    name: Callable[[str], str],
    *,
    account: str = ACCOUNT,
    region: str = REGION,
) -> Any:
    """Return a part of a template with its CloudFormation functions replaced by their values.

    `name` returns the physical name of a resource by its logical ID. Raises `UnsupportedTemplateError`.
    """
    pseudo_parameters = {
        "AWS::AccountId": account,
        "AWS::Region": region,
        "AWS::Partition": "aws",
        "AWS::URLSuffix": "amazonaws.com",
    }

    def replaced(part: Any) -> Any:
        match part:
            case {"Ref": str(of), **rest} if not rest:
                return pseudo_parameters.get(of) or name(of)
            case {"Fn::GetAtt": [str(of), "Arn"], **rest} if not rest:
                kind = template["Resources"][of]["Type"]
                if kind not in _ARNS:
                    raise UnsupportedTemplateError(f"the ARN of {of}, {kind}, is not known")
                return _ARNS[kind].format(name=name(of), account=account, region=region)
            case {"Fn::Join": [str(separator), [*parts]], **rest} if not rest:
                return separator.join(str(replaced(each)) for each in parts)
            case dict():
                if functions := [key for key in part if key == "Ref" or key.startswith("Fn::")]:
                    raise UnsupportedTemplateError(f"{functions[0]} is not known: {part}")
                return {key: replaced(item) for key, item in part.items()}
            case list():
                return [replaced(item) for item in part]
            case _:
                return part

    return replaced(value)

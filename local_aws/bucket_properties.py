"""Gives a bucket of the local AWS the properties that its template asks for, and compares the two.

MiniStack's CloudFormation leaves out a bucket's encryption, Object Lock, ownership, lifecycle, logging
and tags; its S3 API takes them. A property that is not known here is an error, so that no new line in
a template is silently without effect.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from local_aws.failure import LocalAwsError
from local_aws.server import ACCOUNT, REGION

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

Template = Mapping[str, Any]
Properties = Mapping[str, Any]

_SET_BY_CLOUDFORMATION: Final = frozenset({"BucketName", "NotificationConfiguration", "CorsConfiguration"})
_OBJECT_LOCK: Final = frozenset({"ObjectLockEnabled", "ObjectLockConfiguration"})


class UnsupportedTemplateError(LocalAwsError):
    """The template says something about a bucket that this module cannot carry over."""


def apply(template: Template, physical_ids: Mapping[str, str], s3: "S3Client") -> None:
    """Give every bucket of a stack the properties that its template asks for.

    Args:
        template: the synthesized template.
        physical_ids: the deployed stack's resources, logical ID to physical ID.
        s3: a client of the local AWS.

    Raises:
        UnsupportedTemplateError: the template asks for something unknown; nothing was changed.
    """
    for bucket, wanted in list(_buckets(template, physical_ids)):
        for setting in _SETTINGS:
            if setting.name in wanted:
                setting.put(s3, bucket, wanted[setting.name])
            elif setting.remove:
                setting.remove(s3, bucket)


def differences(template: Template, physical_ids: Mapping[str, str], s3: "S3Client") -> list[str]:
    """Compare every bucket of a stack with its template, as far as `apply` goes.

    Returns:
        One sentence for each difference; empty if there is none.

    Raises:
        UnsupportedTemplateError: the template asks for something unknown.
    """
    return [
        f"{bucket}: {setting.name} is {found!r}, the template asks for {wanted.get(setting.name)!r}"
        for bucket, wanted in _buckets(template, physical_ids)
        for setting in _SETTINGS
        if setting.name in wanted or setting.remove
        if (found := _read(setting, s3, bucket)) != wanted.get(setting.name)
    ]


def _buckets(template: Template, physical_ids: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each bucket's name, and its settings as the S3 API has them."""
    for logical_id, resource in template["Resources"].items():
        if resource["Type"] == "AWS::S3::Bucket":
            properties = _resolve(resource.get("Properties", {}), template, physical_ids)
            yield physical_ids[logical_id], _wanted(logical_id, properties)


def _wanted(logical_id: str, properties: Properties) -> dict[str, Any]:
    known = {setting.name for setting in _SETTINGS} | _SET_BY_CLOUDFORMATION | _OBJECT_LOCK
    if unknown := properties.keys() - known:
        raise UnsupportedTemplateError(
            f"The bucket {logical_id} has {', '.join(sorted(unknown))}; local_aws/bucket_properties.py has "
            "to learn how to set that."
        )
    return {
        setting.name: wanted for setting in _SETTINGS if (wanted := setting.translate(properties)) is not None
    }


# --- intrinsic functions -------------------------------------------------------------------------

_PSEUDO_PARAMETERS: Final = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Region": REGION,
    "AWS::Partition": "aws",
    "AWS::URLSuffix": "amazonaws.com",
}
_ARNS: Final = {
    "AWS::KMS::Key": f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{{}}",
    "AWS::S3::Bucket": "arn:aws:s3:::{}",
}


def _resolve(value: Any, template: Template, physical_ids: Mapping[str, str]) -> Any:
    match value:
        case {"Ref": str(name), **rest} if not rest:
            return _PSEUDO_PARAMETERS.get(name) or physical_ids[name]
        case {"Fn::GetAtt": [str(name), "Arn"], **rest} if not rest:
            return _ARNS[template["Resources"][name]["Type"]].format(physical_ids[name])
        case {"Fn::Join": [str(separator), [*parts]], **rest} if not rest:
            return separator.join(_resolve(part, template, physical_ids) for part in parts)
        case dict():
            if unknown := [key for key in value if key.startswith("Fn::")]:
                raise UnsupportedTemplateError(f"{unknown[0]} in a bucket's properties: {value}")
            return {key: _resolve(item, template, physical_ids) for key, item in value.items()}
        case list():
            return [_resolve(item, template, physical_ids) for item in value]
        case _:
            return value


# --- from CloudFormation's names to those of the S3 API ------------------------------------------


def _renamed(value: Properties, names: Mapping[str, str]) -> dict[str, Any]:
    """Rename keys, with nothing left behind: the two APIs differ in some names only."""
    if unknown := value.keys() - names.keys():
        raise UnsupportedTemplateError(f"{', '.join(sorted(unknown))} in a bucket's {dict(value)}")
    return {names[key]: item for key, item in value.items()}


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


def _encryption(value: Properties) -> dict[str, Any]:
    names = {
        "ServerSideEncryptionByDefault": "ApplyServerSideEncryptionByDefault",
        **_same("BucketKeyEnabled"),
    }
    return {"Rules": [_renamed(rule, names) for rule in value["ServerSideEncryptionConfiguration"]]}


def _logging(value: Properties) -> dict[str, Any]:
    names = {"DestinationBucketName": "TargetBucket", "LogFilePrefix": "TargetPrefix"}
    return {"TargetPrefix": "", **_renamed(value, {**names, **_same("TargetObjectKeyFormat")})}


def _lifecycle(value: Properties) -> list[dict[str, Any]]:
    return [_lifecycle_rule(rule) for rule in value["Rules"]]


def _lifecycle_rule(rule: Properties) -> dict[str, Any]:
    expiration = {"ExpirationInDays": "Days", "ExpiredObjectDeleteMarker": "ExpiredObjectDeleteMarker"}
    filters = {"Prefix", "TagFilters", "ObjectSizeGreaterThan", "ObjectSizeLessThan"}
    nested = {"Transitions", "NoncurrentVersionTransitions"}
    names = {
        "Id": "ID",
        **_same("Status", "AbortIncompleteMultipartUpload", "NoncurrentVersionExpiration"),
    }
    rest = {key: item for key, item in rule.items() if key not in expiration.keys() | filters | nested}
    translated = {"Filter": _filter(rule), **_renamed(rest, names)}
    if expires := {name: rule[key] for key, name in expiration.items() if key in rule}:
        translated["Expiration"] = expires
    storage = _same("StorageClass")
    if "Transitions" in rule:
        translated["Transitions"] = [
            _renamed(item, {**storage, "TransitionInDays": "Days"}) for item in rule["Transitions"]
        ]
    if "NoncurrentVersionTransitions" in rule:
        names = {**storage, "TransitionInDays": "NoncurrentDays", **_same("NewerNoncurrentVersions")}
        translated["NoncurrentVersionTransitions"] = [
            _renamed(item, names) for item in rule["NoncurrentVersionTransitions"]
        ]
    return translated


def _filter(rule: Properties) -> dict[str, Any]:
    conditions = {
        key: int(rule[key]) if key.startswith("ObjectSize") else rule[key]
        for key in ("Prefix", "ObjectSizeGreaterThan", "ObjectSizeLessThan")
        if key in rule
    }
    tags = rule.get("TagFilters", [])
    if len(conditions) + len(tags) > 1:
        return {"And": {**conditions, **({"Tags": tags} if tags else {})}}
    if tags:
        return {"Tag": tags[0]}
    return conditions or {"Prefix": ""}


def _object_lock(properties: Properties) -> dict[str, Any] | None:
    configuration = properties.get("ObjectLockConfiguration", {})
    if not configuration and not properties.get("ObjectLockEnabled"):
        return None
    return {"ObjectLockEnabled": "Enabled", **configuration}


# --- the settings --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Setting:
    """One setting of a bucket.

    Attributes:
        name: the property's name in CloudFormation.
        translate: the bucket's properties -> the setting as the S3 API has it; None if it is not asked for.
        put: sets it.
        get: reads it.
        remove: takes it away, where a bucket can be without.
    """

    name: str
    translate: Callable[[Properties], Any]
    put: "Callable[[S3Client, str, Any], object]"
    get: "Callable[[S3Client, str], Any]"
    remove: "Callable[[S3Client, str], object] | None" = None


def _property(
    name: str, translate: Callable[[Any], Any] = lambda value: value
) -> Callable[[Properties], Any]:
    return lambda properties: translate(properties[name]) if name in properties else None


def _read(setting: _Setting, s3: "S3Client", bucket: str) -> Any:
    try:
        return setting.get(s3, bucket)
    except ClientError as error:
        # S3 has one code each for "there is none": NoSuchLifecycleConfiguration, NoSuchTagSet, …
        code = error.response["Error"]["Code"]
        if code != "NoSuchBucket" and (code.startswith("NoSuch") or code.endswith("NotFoundError")):
            return None
        raise


def _get_lifecycle(s3: "S3Client", bucket: str) -> list[dict[str, Any]]:
    rules: Sequence[Any] = s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    return [{**rule, "Filter": _without_defaults(rule["Filter"])} for rule in rules]


def _without_defaults(rule_filter: Mapping[str, Any]) -> dict[str, Any]:
    # S3 answers an `And` with a Prefix and a smallest size, whether they were set or not.
    if "And" not in rule_filter:
        return dict(rule_filter)
    return {"And": {key: item for key, item in rule_filter["And"].items() if item not in ("", 0)}}


def _tags(value: Sequence[Any]) -> list[Any]:
    return sorted(value, key=lambda tag: tag["Key"])


_SETTINGS: Final = (
    _Setting(
        "VersioningConfiguration",
        _property("VersioningConfiguration"),
        lambda s3, bucket, value: s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=value),
        lambda s3, bucket: {"Status": s3.get_bucket_versioning(Bucket=bucket).get("Status")},
    ),
    _Setting(
        "ObjectLockConfiguration",  # after versioning, which it needs
        _object_lock,
        lambda s3, bucket, value: s3.put_object_lock_configuration(
            Bucket=bucket, ObjectLockConfiguration=value
        ),
        lambda s3, bucket: s3.get_object_lock_configuration(Bucket=bucket)["ObjectLockConfiguration"],
    ),
    _Setting(
        "BucketEncryption",
        _property("BucketEncryption", _encryption),
        lambda s3, bucket, value: s3.put_bucket_encryption(
            Bucket=bucket, ServerSideEncryptionConfiguration=value
        ),
        lambda s3, bucket: s3.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"],
    ),
    _Setting(
        "PublicAccessBlockConfiguration",
        _property("PublicAccessBlockConfiguration"),
        lambda s3, bucket, value: s3.put_public_access_block(
            Bucket=bucket, PublicAccessBlockConfiguration=value
        ),
        lambda s3, bucket: s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"],
    ),
    _Setting(
        "OwnershipControls",
        _property("OwnershipControls"),
        lambda s3, bucket, value: s3.put_bucket_ownership_controls(Bucket=bucket, OwnershipControls=value),
        lambda s3, bucket: s3.get_bucket_ownership_controls(Bucket=bucket)["OwnershipControls"],
    ),
    _Setting(
        "LifecycleConfiguration",
        _property("LifecycleConfiguration", _lifecycle),
        lambda s3, bucket, value: s3.put_bucket_lifecycle_configuration(
            Bucket=bucket, LifecycleConfiguration={"Rules": value}
        ),
        _get_lifecycle,
        lambda s3, bucket: s3.delete_bucket_lifecycle(Bucket=bucket),
    ),
    _Setting(
        "LoggingConfiguration",
        _property("LoggingConfiguration", _logging),
        lambda s3, bucket, value: s3.put_bucket_logging(
            Bucket=bucket, BucketLoggingStatus={"LoggingEnabled": value}
        ),
        lambda s3, bucket: s3.get_bucket_logging(Bucket=bucket).get("LoggingEnabled"),
        lambda s3, bucket: s3.put_bucket_logging(Bucket=bucket, BucketLoggingStatus={}),
    ),
    _Setting(
        "Tags",
        _property("Tags", _tags),
        lambda s3, bucket, value: s3.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": value}),
        lambda s3, bucket: _tags(s3.get_bucket_tagging(Bucket=bucket)["TagSet"]),
        lambda s3, bucket: s3.delete_bucket_tagging(Bucket=bucket),
    ),
)

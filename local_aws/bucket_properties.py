"""Set the properties of buckets that MiniStack's CloudFormation ignores in a template.

These are encryption, Object Lock, ownership, lifecycle, logging, replication and tags; MiniStack's S3 API
supports them. An unknown property is an error, so that no new line of a template silently has no effect: here
for a bucket's own properties, in the SDK for their parts.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from holdfast.template import DeployedTemplate, UnresolvedError
from local_aws.failure import LocalAwsError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

Properties = Mapping[str, Any]


class UnsupportedTemplateError(LocalAwsError):
    """The template has a property or a reference that this code does not know."""


_SET_BY_CLOUDFORMATION: Final = frozenset(
    {
        *("BucketName", "NotificationConfiguration", "CorsConfiguration"),
        *("VersioningConfiguration", "PublicAccessBlockConfiguration"),
    }
)


def apply(template: DeployedTemplate, s3: "S3Client") -> None:
    """Set the properties of every bucket in a stack's template; `UnsupportedTemplateError` before any."""
    for bucket, wanted in list(_buckets(template)):
        for setting in _SETTINGS:
            if setting.name in wanted:
                getattr(s3, f"put_{setting.api}")(Bucket=bucket, **{setting.parameter: wanted[setting.name]})
            elif setting.delete:
                getattr(s3, setting.delete)(Bucket=bucket)


def _buckets(template: DeployedTemplate) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each bucket's name, and its settings in the form of the S3 API."""
    try:
        for logical_id, properties in template.resources("AWS::S3::Bucket"):
            yield template.physical_ids[logical_id], _wanted(logical_id, properties)
    except UnresolvedError as error:
        raise UnsupportedTemplateError(str(error)) from error


def _wanted(logical_id: str, properties: Properties) -> dict[str, Any]:
    known = {setting.name for setting in _SETTINGS} | _SET_BY_CLOUDFORMATION | {"ObjectLockEnabled"}
    if unknown := properties.keys() - known:
        raise UnsupportedTemplateError(
            f"The bucket {logical_id} has the properties {', '.join(sorted(unknown))}, which "
            "local_aws/bucket_properties.py cannot set yet."
        )
    if properties.get("ObjectLockEnabled"):
        properties = {"ObjectLockConfiguration": {"ObjectLockEnabled": "Enabled"}, **properties}
    # A bucket without logging has an empty logging configuration.
    properties = {"LoggingConfiguration": {}, **properties}
    return {
        setting.name: setting.translate(properties[setting.name])
        for setting in _SETTINGS
        if setting.name in properties
    }


# --- from CloudFormation's names to those of the S3 API ------------------------------------------


def _renamed(value: Properties, **other: str) -> dict[str, Any]:
    """Rename the keys that have another name in the S3 API."""
    return {other.get(key, key): item for key, item in value.items()}


def _encryption(value: Properties) -> dict[str, Any]:
    return {
        "Rules": [
            _renamed(rule, ServerSideEncryptionByDefault="ApplyServerSideEncryptionByDefault")
            for rule in value["ServerSideEncryptionConfiguration"]
        ]
    }


def _logging(value: Properties) -> dict[str, Any]:
    if not value:
        return {}
    renamed = _renamed(value, DestinationBucketName="TargetBucket", LogFilePrefix="TargetPrefix")
    return {"LoggingEnabled": {"TargetPrefix": "", **renamed}}


def _lifecycle(value: Properties) -> dict[str, Any]:
    return {"Rules": [_lifecycle_rule(dict(rule)) for rule in value["Rules"]]}


def _lifecycle_rule(rule: dict[str, Any]) -> dict[str, Any]:
    prefix, tags = rule.pop("Prefix", ""), rule.pop("TagFilters", [])
    if len(tags) + bool(prefix) > 1:
        raise UnsupportedTemplateError(f"more than one condition in the rule of a bucket's lifecycle: {rule}")
    expiration = {"ExpirationInDays": "Days", "ExpiredObjectDeleteMarker": "ExpiredObjectDeleteMarker"}
    expires = {name: rule.pop(key) for key, name in expiration.items() if key in rule}
    return {
        "Filter": {"Tag": tags[0]} if tags else {"Prefix": prefix},
        **({"Expiration": expires} if expires else {}),
        **_renamed(rule, Id="ID"),
    }


def _replication(value: Properties) -> dict[str, Any]:
    return {**value, "Rules": [_renamed(rule, Id="ID") for rule in value["Rules"]]}


def _tags(value: Any) -> dict[str, Any]:
    return {"TagSet": sorted(value, key=lambda tag: tag["Key"])}


# --- the settings --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Setting:
    """One setting of a bucket.

    Attributes:
        name: the property's name in CloudFormation.
        api: the name of the S3 API's operation without `put_`; `parameter` is its parameter.
        delete: the operation that removes the setting, if the setting is optional.
    """

    name: str
    api: str
    parameter: str
    translate: Callable[[Any], Any] = lambda value: value
    delete: str = ""


_SETTINGS: Final = (
    _Setting("ObjectLockConfiguration", "object_lock_configuration", "ObjectLockConfiguration"),
    _Setting("BucketEncryption", "bucket_encryption", "ServerSideEncryptionConfiguration", _encryption),
    _Setting("OwnershipControls", "bucket_ownership_controls", "OwnershipControls"),
    _Setting(
        "LifecycleConfiguration",
        "bucket_lifecycle_configuration",
        "LifecycleConfiguration",
        _lifecycle,
        delete="delete_bucket_lifecycle",
    ),
    _Setting("LoggingConfiguration", "bucket_logging", "BucketLoggingStatus", _logging),
    _Setting(
        "ReplicationConfiguration",
        "bucket_replication",
        "ReplicationConfiguration",
        _replication,
        delete="delete_bucket_replication",
    ),
    _Setting("Tags", "bucket_tagging", "Tagging", _tags, delete="delete_bucket_tagging"),
)

"""What the state bucket refuses by itself, whoever asks: Holdfast, an administrator, another program.

Every statement is a refusal; who may do what is up to the roles. Its ID says what it refuses. What S3's
lifecycle rules remove is not subject to it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from infra.config import TeamConfig

# Several keys of one condition must all hold. A comparison that negates holds for a header that is missing,
# hence the `Null` beside it.

_CREATES_AN_OBJECT = {"s3:ObjectCreationOperation": "true"}
"""Not so CreateMultipartUpload and UploadPart: they are s3:PutObject too and cannot carry a condition."""

_ENCRYPTION = "s3:x-amz-server-side-encryption"


def refusals(bucket: s3.IBucket, key: kms.IKey | None, team: TeamConfig) -> list[iam.PolicyStatement]:
    """The statements of a team's state bucket.

    Args:
        bucket: the state bucket.
        key: its KMS key, or None where S3 manages the keys.
        team: whose it is.
    """
    locks, states = bucket.arn_for_objects("*.tflock"), bucket.arn_for_objects("*.tfstate")
    records = [bucket.arn_for_objects(f"{folder}/*") for folder in ("tokens", "trust", "sessions")]
    return [
        *refuse_old_tls(bucket),
        _refuse(
            "RefuseLockWritesWithoutCondition",
            "s3:PutObject",
            [locks],
            {"Null": {"s3:if-none-match": "true"}, "Bool": _CREATES_AN_OBJECT},
        ),
        # backend "s3" writes a state without a condition.
        *(
            []
            if team.native_clients
            else [
                _refuse(
                    "RefuseStateWritesWithoutCondition",
                    "s3:PutObject",
                    [states],
                    {
                        "Null": {"s3:if-none-match": "true", "s3:if-match": "true"},
                        "Bool": _CREATES_AN_OBJECT,
                    },
                )
            ]
        ),
        # Written over blindly, a record that was revoked meanwhile would be good again.
        _refuse(
            "RefuseRecordWritesWithoutCondition",
            "s3:PutObject",
            records,
            {"Null": {"s3:if-none-match": "true", "s3:if-match": "true"}, "Bool": _CREATES_AN_OBJECT},
        ),
        *_refuse_other_encryption(bucket, key),
        _refuse("RefuseToDeleteStateVersions", "s3:DeleteObjectVersion", [states]),
        # Without its newest version a record is the one before, which was not revoked yet.
        _refuse("RefuseToDeleteRecordVersions", "s3:DeleteObjectVersion", records),
        # A lifecycle rule removes old versions that have a lock's tag, whatever their key.
        _refuse("RefuseToTagStates", ["s3:PutObjectTagging", "s3:PutObjectVersionTagging"], [states]),
        _refuse("RefuseToBypassGovernance", "s3:BypassGovernanceRetention", [states]),
        _refuse_retention(bucket, team),
    ]


def refuse_old_tls(bucket: s3.IBucket) -> list[iam.PolicyStatement]:
    """The statements that keep a bucket to TLS 1.2 and later."""
    everything = [bucket.bucket_arn, bucket.arn_for_objects("*")]
    return [
        _refuse("RefuseWithoutTls", "s3:*", everything, {"Bool": {"aws:SecureTransport": "false"}}),
        _refuse("RefuseTlsBefore12", "s3:*", everything, {"NumericLessThan": {"s3:TlsVersion": "1.2"}}),
    ]


def _refuse_other_encryption(bucket: s3.IBucket, key: kms.IKey | None) -> list[iam.PolicyStatement]:
    """Without a header S3 encrypts as the bucket says; these refuse a header that says otherwise."""
    objects = [bucket.arn_for_objects("*")]
    asked = {_ENCRYPTION: "false"}
    statements = [
        _refuse(
            "RefuseOtherEncryption",
            "s3:PutObject",
            objects,
            {"Null": asked, "StringNotEquals": {_ENCRYPTION: "aws:kms" if key else "AES256"}},
        ),
        _refuse(
            "RefuseKeysOfTheClient",
            "s3:PutObject",
            objects,
            {"Null": {f"{_ENCRYPTION}-customer-algorithm": "false"}},
        ),
        # Encrypts what is there anew, in place: under a foreign key a version is lost with that key.
        _refuse("RefuseToChangeEncryption", "s3:UpdateObjectEncryption", objects),
    ]
    if key:
        statements.append(
            # Also refuses `aws:kms` that names no key: S3 takes the account's own key then, not the bucket's.
            _refuse(
                "RefuseOtherKeys",
                "s3:PutObject",
                objects,
                {"Null": asked, "StringNotEquals": {f"{_ENCRYPTION}-aws-kms-key-id": key.key_arn}},
            )
        )
    return statements


def _refuse_retention(bucket: s3.IBucket, team: TeamConfig) -> iam.PolicyStatement:
    action, objects = "s3:PutObjectRetention", [bucket.arn_for_objects("*")]
    if team.retention is None:
        return _refuse("RefuseRetention", action, objects)
    # A day more than the team's: a client's clock may be ahead, and a part of a day may count as a whole one.
    most = str(team.retention.days + 1)
    return _refuse(
        "RefuseLongerRetention",
        action,
        objects,
        {"NumericGreaterThan": {"s3:object-lock-remaining-retention-days": most}},
    )


def _refuse(
    sid: str,
    action: str | Sequence[str],
    resources: Sequence[str],
    conditions: Mapping[str, Any] | None = None,
) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        sid=sid,
        effect=iam.Effect.DENY,
        principals=[iam.StarPrincipal()],
        actions=[action] if isinstance(action, str) else action,
        resources=resources,
        conditions=conditions,
    )

"""The deny statements of the state bucket's policy, which apply to every caller.

The policy only denies; the roles have the permissions. The ID of a statement says what the statement denies.
The policy does not apply to S3's lifecycle rules.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3

from holdfast.cloud.staging import UPLOAD_SECONDS
from holdfast_cdk import keys
from holdfast_cdk.team_settings import Team

# All keys of one condition must match. A negated comparison also matches a missing header, hence the `Null`
# beside it.

_CREATES_AN_OBJECT = {"s3:ObjectCreationOperation": "true"}
"""Excludes CreateMultipartUpload and UploadPart, which need s3:PutObject too but accept no precondition."""

_WITHOUT_CONDITION: Mapping[str, Any] = {
    "Null": {"s3:if-none-match": "true", "s3:if-match": "true"},
    "Bool": _CREATES_AN_OBJECT,
}

_ENCRYPTION = "s3:x-amz-server-side-encryption"


def deny_statements(bucket: s3.IBucket, key_arns: Sequence[str], team: Team) -> list[iam.PolicyStatement]:
    """Return the deny statements of a team's state bucket, except the statements about TLS."""
    locks, states = bucket.arn_for_objects("*.tflock"), bucket.arn_for_objects("*.tfstate")
    records = [
        bucket.arn_for_objects(f"{keys.folder(kind)}*")
        for kind in (keys.TOKENS, keys.TRUST, keys.SESSIONS, keys.WORKSPACES, keys.FREEZES)
    ]

    def blind(sid: str, resources: Sequence[str]) -> iam.PolicyStatement:
        return _deny(sid, "s3:PutObject", resources, _WITHOUT_CONDITION)

    return [
        _deny(
            "RefuseLockWritesWithoutCondition",
            "s3:PutObject",
            [locks],
            {"Null": {"s3:if-none-match": "true"}, "Bool": _CREATES_AN_OBJECT},
        ),
        # backend "s3" writes a state without a condition.
        *(() if team.native_clients else (blind("RefuseStateWritesWithoutCondition", [states]),)),
        # A write without a condition could make a revoked record valid again, or drop the tags that another
        # process gave a workspace.
        blind("RefuseRecordWritesWithoutCondition", records),
        *_deny_other_encryption(bucket, key_arns, plain=team.key == "s3"),
        _deny("RefuseToDeleteStateVersions", "s3:DeleteObjectVersion", [states]),
        # Deleting a record's newest version makes an older version current, perhaps from before a revocation.
        _deny("RefuseToDeleteRecordVersions", "s3:DeleteObjectVersion", records),
        # A lifecycle rule removes old versions with a lock's tag under any key.
        _deny("RefuseToTagStates", ["s3:PutObjectTagging", "s3:PutObjectVersionTagging"], [states]),
        _deny("RefuseToBypassGovernance", "s3:BypassGovernanceRetention", [states]),
        _deny_retention(bucket, team),
        *deny_addresses_from_elsewhere(bucket, team),
    ]


def deny_to_others(bucket: s3.IBucket, role_arn: str) -> iam.PolicyStatement:
    """Return the statement that lets one role alone read the credentials of the probe of `watch`."""
    return _deny(
        "RefuseToReadTheProbesSecret",
        ["s3:GetObject", "s3:GetObjectVersion"],
        [bucket.arn_for_objects(f"{keys.folder(keys.WATCH)}*")],
        {"ArnNotEquals": {"aws:PrincipalArn": role_arn}},
    )


def deny_old_tls(bucket: s3.IBucket) -> list[iam.PolicyStatement]:
    """Return the statements that deny requests to a bucket without TLS 1.2 or later."""
    everything = [bucket.bucket_arn, bucket.arn_for_objects("*")]
    return [
        _deny("RefuseWithoutTls", "s3:*", everything, {"Bool": {"aws:SecureTransport": "false"}}),
        _deny("RefuseTlsBefore12", "s3:*", everything, {"NumericLessThan": {"s3:TlsVersion": "1.2"}}),
    ]


def deny_addresses_from_elsewhere(bucket: s3.IBucket, team: Team) -> list[iam.PolicyStatement]:
    """Return the statement that denies presigned addresses outside the team's networks, if it has networks.

    It does not apply to the functions, which sign headers and no addresses. `NotIpAddress` also holds for a
    request through a VPC endpoint, which has no public address.
    """
    if not team.networks:
        return []
    conditions = {
        "StringEquals": {"s3:authType": "REST-QUERY-STRING"},
        "NotIpAddress": {"aws:SourceIp": list(team.networks)},
    }
    return [_deny("RefuseAddressesFromElsewhere", "s3:*", [bucket.arn_for_objects("*")], conditions)]


def deny_old_signatures(bucket: s3.IBucket) -> iam.PolicyStatement:
    """Return the statement that denies requests to the staging bucket that were signed too long ago.

    No address that the functions sign is valid for longer; an address by somebody else's mistake could be.
    """
    oldest = {"NumericGreaterThan": {"s3:signatureAge": str(UPLOAD_SECONDS * 1000)}}
    return _deny("RefuseOldSignatures", "s3:*", [bucket.arn_for_objects("*")], oldest)


def _deny_other_encryption(
    bucket: s3.IBucket, key_arns: Sequence[str], *, plain: bool
) -> list[iam.PolicyStatement]:
    """Return statements that deny writes with another encryption than those of the team.

    Args:
        plain: whether S3's own keys are the bucket's default.
    """
    objects = [bucket.arn_for_objects("*")]
    with_header = {"Null": {_ENCRYPTION: "false"}}
    algorithms = [*(["AES256"] if plain else []), *(["aws:kms"] if key_arns else [])]
    statements = [
        _deny(
            "RefuseOtherEncryption",
            "s3:PutObject",
            objects,
            {**with_header, "StringNotEquals": {_ENCRYPTION: _one_or_all(algorithms)}},
        ),
        _deny(
            "RefuseKeysOfTheClient",
            "s3:PutObject",
            objects,
            {"Null": {f"{_ENCRYPTION}-customer-algorithm": "false"}},
        ),
        # This action encrypts an object again, in place. Without the new key the version is lost.
        _deny("RefuseToChangeEncryption", "s3:UpdateObjectEncryption", objects),
    ]
    if key_arns:
        other = {f"{_ENCRYPTION}-aws-kms-key-id": _one_or_all(key_arns)}
        statements.append(
            # Also denies `aws:kms` without a key: S3 would use the account's own key, not the bucket's key.
            _deny(
                "RefuseOtherKeys",
                "s3:PutObject",
                objects,
                {
                    **({"StringEquals": {_ENCRYPTION: "aws:kms"}} if plain else with_header),
                    "StringNotEquals": other,
                },
            )
        )
    return statements


def _one_or_all(values: Sequence[str]) -> str | list[str]:
    return values[0] if len(values) == 1 else [*values]


def _deny_retention(bucket: s3.IBucket, team: Team) -> iam.PolicyStatement:
    action, objects = "s3:PutObjectRetention", [bucket.arn_for_objects("*")]
    if team.retention is None:
        return _deny("RefuseRetention", action, objects)
    # A day more than the team's setting: a client's clock may be ahead, and part of a day may count as a day.
    most = str(team.retention.days + 1)
    return _deny(
        "RefuseLongerRetention",
        action,
        objects,
        {"NumericGreaterThan": {"s3:object-lock-remaining-retention-days": most}},
    )


def _deny(
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

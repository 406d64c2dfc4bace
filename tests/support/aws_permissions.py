"""The permissions that AWS demands for each call, by its documents, compared with a role's policy.

Review the table: a new kind of call raises `UnknownCallError` until the table has the permissions that AWS
demands for it, and the document that says so.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum, auto
from fnmatch import fnmatchcase
from itertools import product
from typing import Any, Final

from holdfast import watching
from tests.support.iam_policy import Request, evaluate

Statement = Mapping[str, Any]
Permission = tuple[str, str]
"""An action, and the pattern of its resource."""

OBJECTS: Final = (
    *("states/*.tfstate", "states/*.tfstate.tflock", "probes/*"),
    *("tokens/*.json", "sessions/*.json", "trust/records.json", "workspaces/*.json"),
    *("freezes/patterns.json", "watch/*.json"),
)
"""The kinds of objects, as patterns of a policy. Every key is of at most one kind."""
STAGED: Final = ("uploads/*", "json/*")
"""The kinds of objects in the staging bucket."""
ARCHIVED: Final = ("events/*", "aws/lambda/async/*")
"""The kinds of objects in the audit trail's archive."""


class UnknownCallError(Exception):
    """The table does not have the permissions that AWS demands for this call."""


# --- what is judged --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """A request that a function made, or that Lambda made with its role.

    `operation` is AWS's name. `bucket` is empty for a call to a service other than S3. `query` has the names
    of the query parameters. `headers` has the headers whose names begin with `if-` or `x-amz-`. It has the
    value only of the header that names an operation and of headers that a bucket policy compares. `time` is
    in seconds since 1970.
    """

    operation: str
    bucket: str = ""
    key: str = ""
    query: frozenset[str] = frozenset()
    headers: Mapping[str, str | None] = field(default_factory=dict)
    status: int = 200
    time: float = 0.0

    @classmethod
    def noted(cls, line: Mapping[str, Any]) -> "Call":
        """Parse a call that the local AWS recorded."""
        bucket, _, key = line["path"].removeprefix("/").partition("/")
        rest = (frozenset(line["query"]), line["headers"], line["status"], line["time"])
        if target := line["headers"].get("x-amz-target"):
            return cls(target.rpartition(".")[2], "", "", *rest)
        operation = _OPERATIONS.get(line["method"], line["method"]) if key else _listing(line)
        # Its name is in the body, and the functions send no other.
        if only := _ONLY.get((line["service"], line["method"])):
            return cls(only, "", "", *rest)
        if line["service"] != "s3" or not operation:
            return cls(f"{line['service']}: {line['method']} {line['path']}")
        return cls(operation, bucket, key, *rest)


_ONLY: Final = {
    ("monitoring", "POST"): "PutMetricData",
    ("sts", "POST"): "AssumeRole",
    ("sns", "POST"): "Publish",
}
_OPERATIONS: Final = {"GET": "GetObject", "PUT": "PutObject", "DELETE": "DeleteObject"}


def _listing(line: Mapping[str, Any]) -> str:
    """Name the operation that lists a bucket, or return nothing."""
    lists = {"list-type": "ListObjectsV2", "versions": "ListObjectVersions"}
    return next((lists[name] for name in line["query"] if name in lists and line["method"] == "GET"), "")


WRITES_LOG: Final = Call("Lambda writes the log")
"""A call that Lambda makes with the function's role after a run. The function itself does not send it."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The resources that a function works on.

    `bucket` holds the team's states, `staging_bucket` its uploads. `key_arn` names the KMS key that encrypts
    the bucket; it is None if S3 manages the keys. `log_group_arn` names the function's own log group, and
    `audit_group_arn` the team's audit trail. Both end in `:*`. `transfers_arn` names the role for transfers,
    `topic_arn` the topic of `notify`. `archive_bucket` holds the audit trail's archive. `other_keys` are
    those that objects may be under as well.
    """

    bucket: str
    key_arn: str | None
    log_group_arn: str
    region: str
    audit_group_arn: str = ""
    staging_bucket: str = ""
    transfers_arn: str = ""
    topic_arn: str = ""
    archive_bucket: str = ""
    other_keys: tuple[str, ...] = ()


def keeps_lost_deliveries(reach: Reach) -> tuple[Call, ...]:
    """Return the calls by which Lambda stores a delivery with the function's role.

    See https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
    """
    key = "aws/lambda/async/audit/2026/11/21/2026-11-21T12.00.00-1a2b3c4d"
    return Call("ListObjectsV2", reach.archive_bucket), Call("PutObject", reach.archive_bucket, key)


# --- the reviewed table ----------------------------------------------------------------------------

_API: Final = "https://docs.aws.amazon.com/AmazonS3/latest/API/API_"
_GUIDE: Final = "https://docs.aws.amazon.com/AmazonS3/latest/userguide/"

CONDITIONAL_WRITES: Final = f"{_GUIDE}conditional-writes-enforce.html"
CONDITIONAL_DELETES: Final = f"{_GUIDE}conditional-delete-enforce.html"
REQUIRED_PERMISSIONS: Final = f"{_GUIDE}using-with-s3-policy-actions.html"
KMS_ENCRYPTION: Final = f"{_GUIDE}UsingKMSEncryption.html"
LAMBDA_LOGS: Final = "https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs.html"
LOGS_PERMISSIONS: Final = (
    "https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/permissions-reference-cwl.html"
)
SNS_PERMISSIONS: Final = "https://docs.aws.amazon.com/sns/latest/api/API_Publish.html"
METRIC_PERMISSIONS: Final = (
    "https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/iam-cw-condition-keys-namespace.html"
)
STS_PERMISSIONS: Final = "https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html"


class On(Enum):
    """The kind of resource that a permission applies to."""

    OBJECT = auto()
    BUCKET = auto()
    KEY = auto()
    LOG = auto()
    AUDIT = auto()
    TRANSFERS = auto()
    TOPIC = auto()
    METRICS = auto()


@dataclass(frozen=True, slots=True)
class Row:
    """One action that AWS demands for one kind of call.

    `source` is the address of AWS's document. AWS demands the action only if the call has this `header` and
    this `query` parameter, does not have the parameter `without`, and gets one of these `statuses`.
    `encrypted`: only if a KMS key of the team encrypts the bucket.
    """

    operation: str
    action: str
    on: On
    source: str
    header: str = ""
    query: str = ""
    without: str = ""
    statuses: tuple[int, ...] = ()
    encrypted: bool = False

    def covers(self, call: Call, reach: Reach) -> bool:
        """Return whether AWS demands this permission for the call."""
        return (
            self.operation == call.operation
            and (not self.header or self.header in call.headers)
            and (not self.query or self.query in call.query)
            and self.without not in call.query
            and (not self.statuses or call.status in self.statuses)
            and (not self.encrypted or (reach.key_arn is not None and call.bucket != reach.archive_bucket))
        )


def _of_s3(operation: str, action: str, on: On = On.OBJECT, *, source: str = "", **only: Any) -> Row:
    """Make a row. Without a source, its source is the page of the operation."""
    return Row(operation, f"s3:{action}", on, source or f"{_API}{operation}.html", **only)


def _of_key(operation: str, action: str, *statuses: int) -> Row:
    return Row(operation, f"kms:{action}", On.KEY, KMS_ENCRYPTION, statuses=statuses, encrypted=True)


TABLE: Final = (
    _of_s3("GetObject", "GetObject", without="versionId"),
    _of_s3("GetObject", "GetObjectVersion", query="versionId"),
    _of_key("GetObject", "Decrypt", 200, 206),
    # S3 answers 404; without it 403, as for a fault.
    _of_s3("GetObject", "ListBucket", On.BUCKET, statuses=(404,)),
    _of_s3("ListObjectsV2", "ListBucket", On.BUCKET),
    _of_s3("ListObjectVersions", "ListBucketVersions", On.BUCKET),
    _of_s3("PutObject", "PutObject"),
    _of_s3("PutObject", "PutObjectTagging", header="x-amz-tagging"),
    _of_s3("PutObject", "PutObjectRetention", header="x-amz-object-lock-mode", source=REQUIRED_PERMISSIONS),
    _of_s3("PutObject", "GetObject", header="if-match", source=CONDITIONAL_WRITES),
    _of_key("PutObject", "GenerateDataKey", 200),
    _of_s3("DeleteObject", "DeleteObject"),
    _of_s3("DeleteObject", "GetObject", header="if-match", source=CONDITIONAL_DELETES),
    _of_s3("DeleteObject", "DeleteObjectVersion", query="versionId"),
    Row(WRITES_LOG.operation, "logs:CreateLogStream", On.LOG, LAMBDA_LOGS),
    Row(WRITES_LOG.operation, "logs:PutLogEvents", On.LOG, LAMBDA_LOGS),
    Row("CreateLogStream", "logs:CreateLogStream", On.AUDIT, LOGS_PERMISSIONS),
    Row("PutLogEvents", "logs:PutLogEvents", On.AUDIT, LOGS_PERMISSIONS),
    Row("FilterLogEvents", "logs:FilterLogEvents", On.AUDIT, LOGS_PERMISSIONS),
    Row("Publish", "sns:Publish", On.TOPIC, SNS_PERMISSIONS),
    Row("PutMetricData", "cloudwatch:PutMetricData", On.METRICS, METRIC_PERMISSIONS),
    Row("AssumeRole", "sts:AssumeRole", On.TRANSFERS, STS_PERMISSIONS),
)

# Parameters for which AWS demands no further permission. A name with `*` at its end is a prefix.
_SIGNATURE = (
    *("x-amz-content-sha256", "x-amz-date", "x-amz-expected-bucket-owner"),
    *("x-amz-security-token", "x-amz-user-agent"),
)
_CHECKSUM = ("x-amz-checksum-*", "x-amz-decoded-content-length", "x-amz-sdk-checksum-*", "x-amz-trailer")
_PRESIGNED = ("X-Amz-*",)
_HARMLESS: Final[Mapping[str, Collection[str]]] = {
    "GetObject": (*_SIGNATURE, *_PRESIGNED, "range", "x-amz-checksum-mode"),
    "ListObjectsV2": (
        *(*_SIGNATURE, "continuation-token", "encoding-type", "list-type", "max-keys", "prefix"),
        "start-after",
    ),
    "ListObjectVersions": (
        *(*_SIGNATURE, "encoding-type", "key-marker", "max-keys", "prefix", "version-id-marker"),
        "versions",
    ),
    # The date of a retention is sent with its mode, which is in the table.
    "PutObject": (
        *(*_SIGNATURE, *_PRESIGNED, *_CHECKSUM, "x-amz-meta-*"),
        *("if-none-match", "x-amz-object-lock-retain-until-date"),
    ),
    "DeleteObject": _SIGNATURE,
    "CreateLogStream": (*_SIGNATURE, "x-amz-target"),
    "PutLogEvents": (*_SIGNATURE, "x-amz-target"),
    "FilterLogEvents": (*_SIGNATURE, "x-amz-target"),
    "AssumeRole": _SIGNATURE,
    "Publish": _SIGNATURE,
    "PutMetricData": (*_SIGNATURE, "x-amz-target"),
}


# --- judging ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Demand:
    """A permission that one call needs.

    `pattern` is the ARN that a policy should have for it, not wider and not narrower. `request` is the
    request that a policy is evaluated for; its resource is the ARN that AWS checks.
    """

    pattern: str
    request: Request


def demands(call: Call, reach: Reach, principal: str) -> list[Demand]:
    """Return the permissions that AWS demands for a call. `principal` is the ARN of the function's role.

    UnknownCallError: the table does not cover the call with all its parameters.
    """
    rows = [row for row in TABLE if row.operation == call.operation]
    if not rows:
        raise UnknownCallError(f"{call.operation} is not in the table")
    parameters = [*call.headers, *call.query]
    known = {*_HARMLESS.get(call.operation, ()), *(row.header for row in rows), *(row.query for row in rows)}
    if unknown := [name for name in parameters if not any(fnmatchcase(name, one) for one in known if one)]:
        raise UnknownCallError(
            f"{call.operation} with {', '.join(sorted(unknown))} is in no row of the table"
        )
    each_key = [replace(reach, key_arn=key) for key in (reach.key_arn, *reach.other_keys)]
    return [
        _demand(row, call, one, principal)
        for row in rows
        if row.covers(call, reach)
        for one in (each_key if row.on is On.KEY else (reach,))
    ]


def _demand(row: Row, call: Call, reach: Reach, principal: str) -> Demand:
    if call.bucket not in ("", reach.bucket, reach.staging_bucket, reach.archive_bucket):
        raise UnknownCallError(f"{call.operation} goes to {call.bucket}, the team's bucket is {reach.bucket}")
    resource, pattern = _place(row, call, reach)
    return Demand(pattern, Request(row.action, resource, principal, _context(call, row, reach, principal)))


def _place(row: Row, call: Call, reach: Reach) -> tuple[str, str]:
    """Return the resource of a row's demand for a call, and its pattern."""
    bucket = f"arn:aws:s3:::{call.bucket}"
    of_bucket = {reach.staging_bucket: STAGED, reach.archive_bucket: ARCHIVED}.get(call.bucket, OBJECTS)
    match row.on:
        case On.OBJECT:
            kinds = [kind for kind in of_bucket if fnmatchcase(call.key, kind)]
            if len(kinds) != 1:
                raise UnknownCallError(f"{call.operation} of {call.key}, which is of no known kind")
            return f"{bucket}/{call.key}", f"{bucket}/{kinds[0]}"
        case On.LOG | On.AUDIT:
            group = reach.log_group_arn if row.on is On.LOG else reach.audit_group_arn
            return f"{group.removesuffix('*')}log-stream:any", group
        case On.KEY:
            assert reach.key_arn is not None
            return reach.key_arn, reach.key_arn
        case On.BUCKET:
            return bucket, bucket
        case On.TRANSFERS:
            return reach.transfers_arn, reach.transfers_arn
        case On.TOPIC:
            return reach.topic_arn, reach.topic_arn
        case On.METRICS:
            return "*", "*"


_RETAIN_UNTIL: Final = "s3:object-lock-retain-until-date"


def _context(call: Call, row: Row, reach: Reach, principal: str) -> dict[str, str | list[str]]:
    """Return the condition keys that AWS sets for a call. The team's buckets belong to the role's account."""
    account, _, role = principal.removeprefix("arn:aws:sts::").partition(":assumed-role/")
    role_arn = f"arn:aws:iam::{account}:role/{role.partition('/')[0]}"
    context: dict[str, str | list[str]] = {"aws:SecureTransport": "true", "aws:PrincipalArn": role_arn}
    if row.on is On.KEY:
        context["kms:ViaService"] = f"s3.{reach.region}.amazonaws.com"
        # The buckets have a bucket key, so S3 names the bucket and not the object.
        context["kms:EncryptionContext:aws:s3:arn"] = f"arn:aws:s3:::{call.bucket}"
        return context
    if row.on is On.METRICS:
        context["cloudwatch:namespace"] = watching.NAMESPACE  # in the body of the request
    if row.on in (On.OBJECT, On.BUCKET):
        context["s3:ResourceAccount"] = principal.split(":")[4]
    context["s3:TlsVersion"] = "1.2"
    for name, value in call.headers.items():
        if name in ("if-match", "if-none-match") or name.startswith("x-amz-server-side-encryption"):
            context[f"s3:{name}"] = value or "given"
        elif name.startswith("x-amz-object-lock-") and value:
            context[f"s3:{name.removeprefix('x-amz-')}"] = value
    if call.operation == "PutObject":
        context["s3:ObjectCreationOperation"] = "true"
    if until := call.headers.get("x-amz-object-lock-retain-until-date"):
        seconds = datetime.fromisoformat(until).timestamp() - call.time
        # S3 counts the remaining time in whole days.
        context["s3:object-lock-remaining-retention-days"] = str(int(seconds // 86_400))
    return context


def distinct(demands: Iterable[Demand]) -> list[Demand]:
    """Return one demand of each kind: two demands that no policy can tell apart are of the same kind.

    A policy sees only the pattern of an object's name, and only the remaining days of a retention.
    """
    kinds: dict[object, Demand] = {}
    for demand in demands:
        context = demand.request.context
        values = {(key, str(context[key])) for key in context if key != _RETAIN_UNTIL}
        kinds.setdefault((demand.request.action, demand.pattern, frozenset(values)), demand)
    return list(kinds.values())


def missing(needed: Iterable[Demand], statements: Sequence[Statement]) -> set[Permission]:
    """Return what calls demand and the statements, of a role and its bucket, do not allow."""
    return {
        (demand.request.action, demand.pattern)
        for demand in needed
        if evaluate(statements, demand.request) != "allow"
    }


def allowed(statements: Sequence[Statement]) -> Iterator[Permission]:
    """Yield each action with each resource pattern that the statements allow.

    KeyError: a statement allows by exclusion, which is never least privilege.
    """
    for statement in statements:
        if statement["Effect"] == "Allow":
            yield from product(_list(statement["Action"]), _list(statement["Resource"]))


def without(statements: Sequence[Statement], action: str, resource: str) -> list[dict[str, Any]]:
    """Return the statements without one action on one resource; ValueError if they do not allow it."""
    kept: list[dict[str, Any]] = []
    if (action, resource) not in set(allowed(statements)):
        raise ValueError(f"{action} on {resource} is not allowed anyway")
    for statement in statements:
        if statement["Effect"] != "Allow" or (action, resource) not in set(allowed([statement])):
            kept.append(dict(statement))
            continue
        actions, resources = _list(statement["Action"]), _list(statement["Resource"])
        rest = {key: value for key, value in statement.items() if key != "Sid"}
        if others := [one for one in actions if one != action]:
            kept.append({**rest, "Action": others})
        if others := [one for one in resources if one != resource]:
            kept.append({**rest, "Action": action, "Resource": others})
    return kept


def _list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value

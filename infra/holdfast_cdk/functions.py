"""The declaration of every function: its code, its permissions and how it runs.

Bundles, logs, the audit trail's subscriptions and prices are made from `FUNCTIONS`, roles and
`function-permissions.md` from `ROLES`.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal

from holdfast_cdk import keys


@dataclass(frozen=True, slots=True)
class Place:
    """A resource, or all objects of a bucket whose keys match a pattern.

    Attributes:
        resource: its logical ID.
        keys: the pattern; empty for the resource itself.
        reason: why a role has permissions for the pattern instead of single keys.
    """

    resource: str
    keys: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Grant:
    """A statement of a role's policy.

    Attributes:
        when: the team's setting that the statement needs; empty if every team gets the statement.
        of_bucket: for a statement about the KMS key, the bucket whose objects the role encrypts or decrypts.
    """

    sid: str
    actions: tuple[str, ...]
    on: tuple[Place, ...]
    when: Literal["", "retention", "declared", "kms", "notify", "audit_archive"] = ""
    of_bucket: Place | None = None

    def also(self, place: Place) -> "Grant":
        """Return a copy of the grant with another place added."""
        return replace(self, on=(*self.on, place))


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleSpec:
    """The declaration of a role.

    Attributes:
        name: for a function, also the name of its log group; audit events contain it, and a new stack finds
            kept logs by it.
        purpose: a sentence for `function-permissions.md`.
        grants: its permissions, except a function's permissions for its own log.
        setting: the team's setting that can leave it out, or empty.
    """

    name: str
    purpose: str
    grants: tuple[Grant, ...]
    setting: Literal["", "console", "watch"] = ""

    @property
    def construct_id(self) -> str:
        """Return the name in CamelCase, from which logical IDs are made."""
        return self.name.title().replace("_", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSpec(RoleSpec):
    """The declaration of a function.

    Attributes:
        folder: the name of its folder below `functions/`, which has `handler.py`.
        memory: megabytes, or the name of a setting in the team's `memory`.
        seconds: its timeout.
        audited: whether the marked lines of its log are copied to the audit trail.
        services: the AWS services that it calls; its bundle has the SDK's models of these services only.
        kept_warm: whether a schedule keeps a process of it running, if the team enables that. A schedule
            cannot tell whether a function is in use, so only the two behind `backend "http"` are.
        log_stays: whether its log stays when the team's setting leaves it out, or the stack is deleted.
        version_of: the function whose version it reports and after which it is deployed, or empty.
    """

    folder: str
    memory: Literal["backend", "cloud", "management", "authorizer"] | int
    seconds: int
    audited: bool = True
    services: tuple[str, ...] = ("s3",)
    kept_warm: bool = False
    log_stays: bool = True
    version_of: str = ""


_SCOPED: Final = (
    "The function serves all states of the team. The caller's scope decides which of them a request may use."
)
_RANDOM: Final = "Each upload has a new random S3 key."

STATE_BUCKET: Final = Place("StateBucket")
STAGING_BUCKET: Final = Place("StagingBucket")
STATE_KEY: Final = Place("StateKey")
AUDIT_TRAIL: Final = Place("Audit")
AUDIT_ARCHIVE: Final = Place("AuditArchive")
NOTIFIED_TOPIC: Final = Place("NotifiedTopic")
TRANSFERS_ROLE: Final = Place("Transfers")
METRICS: Final = Place("Metrics")
STATES: Final = replace(STATE_BUCKET, keys=keys.STATES, reason=_SCOPED)
LOCKS: Final = replace(STATE_BUCKET, keys=keys.LOCKS, reason=_SCOPED)
PROBES: Final = replace(STATE_BUCKET, keys=keys.PROBES, reason=_SCOPED)
WORKSPACES: Final = replace(STATE_BUCKET, keys=keys.WORKSPACES, reason=_SCOPED)
TOKENS: Final = replace(
    STATE_BUCKET, keys=keys.TOKENS, reason="The request decides which token the function uses."
)
SESSIONS: Final = replace(
    STATE_BUCKET,
    keys=keys.SESSIONS,
    reason="The request decides which session the function uses. A new session has a new ID.",
)
TRUST: Final = replace(STATE_BUCKET, keys=keys.TRUST)
FREEZES: Final = replace(STATE_BUCKET, keys=keys.FREEZES)
WATCH: Final = replace(STATE_BUCKET, keys=keys.WATCH, reason="Each token of the probe has a new random ID.")
UPLOADS: Final = replace(STAGING_BUCKET, keys=keys.UPLOADS, reason=_RANDOM)
ARCHIVED: Final = replace(AUDIT_ARCHIVE, keys=keys.ARCHIVED, reason="Each batch of events has its own key.")
LOST: Final = replace(
    AUDIT_ARCHIVE, keys=keys.LOST, reason=("Lambda gives each failed batch of events its own key.")
)
UPLOADED_JSON: Final = replace(STAGING_BUCKET, keys=keys.UPLOADED_JSON, reason=_RANDOM)

_USE: Final = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject")
STATES_RW: Final = Grant("StatesAndLocks", _USE, (STATES, LOCKS))
READ_VERSIONS: Final = Grant("ReadVersions", ("s3:GetObjectVersion",), (STATES,))
REMOVE_LOCKS: Final = Grant("RemoveLocks", ("s3:DeleteObjectVersion",), (LOCKS,))
"""A release deletes the lock's own version, so that locking leaves no old versions."""
TAG_LOCKS: Final = Grant("TagLocks", ("s3:PutObjectTagging",), (LOCKS,))
RETAIN_STATES: Final = Grant("RetainStates", ("s3:PutObjectRetention",), (STATES,), when="retention")
FROZEN_PATTERNS: Final = Grant("FrozenPatterns", ("s3:GetObject",), (FREEZES,))
MISSING_KEYS_ARE_404: Final = Grant("MissingKeysAre404", ("s3:ListBucket",), (STATE_BUCKET,))
"""Without this grant S3 responds with 403 for an absent key, as it does for a missing permission."""
NOTIFY: Final = Grant("Notify", ("sns:Publish",), (NOTIFIED_TOPIC,), when="notify")
SIGN_ADDRESSES: Final = Grant("SignAddresses", ("sts:AssumeRole",), (TRANSFERS_ROLE,))


def _key(sid: str, *actions: str, of: Place = STATE_BUCKET) -> Grant:
    return Grant(sid, tuple(f"kms:{action}" for action in actions), (STATE_KEY,), when="kms", of_bucket=of)


USE_KEY: Final = _key("EncryptAndDecrypt", "GenerateDataKey", "Decrypt")

FUNCTIONS: Final = (
    FunctionSpec(
        name="backend",
        folder="terraform_http",
        purpose=(
            'Handles the requests of `backend "http"`: reads and writes states, acquires and releases locks.'
        ),
        memory="backend",
        seconds=25,  # below the gateway's 30 s, so that it always sends our response
        grants=(
            *(STATES_RW.also(PROBES), REMOVE_LOCKS.also(PROBES), TAG_LOCKS.also(PROBES)),
            RETAIN_STATES,
            Grant("DeclaredNames", ("s3:GetObject",), (WORKSPACES,), when="declared"),
            FROZEN_PATTERNS,
            MISSING_KEYS_ARE_404,
            USE_KEY,
        ),
        kept_warm=True,
    ),
    FunctionSpec(
        name="cloud",
        folder="cloud",
        purpose='Handles the requests of `cloud {}` and `backend "remote"`.',
        memory="cloud",
        seconds=25,
        grants=(
            *(STATES_RW, READ_VERSIONS, REMOVE_LOCKS, TAG_LOCKS, RETAIN_STATES),
            Grant("Workspaces", _USE, (WORKSPACES,)),
            FROZEN_PATTERNS,
            Grant("ReadUploads", ("s3:GetObject",), (UPLOADS,)),
            Grant("RemoveUploads", ("s3:DeleteObject",), (UPLOADS, UPLOADED_JSON)),
            MISSING_KEYS_ARE_404.also(STAGING_BUCKET),
            # The versions show whether a workspace was deleted moments ago.
            Grant("ListVersions", ("s3:ListBucketVersions",), (STATE_BUCKET,)),
            *(SIGN_ADDRESSES, USE_KEY),
            _key("DecryptUploads", "Decrypt", of=STAGING_BUCKET),
        ),
        services=("s3", "sts"),
    ),
    FunctionSpec(
        name="management",
        folder="management",
        purpose="Handles operators' requests, for example to list, compare, restore or freeze states.",
        memory="management",
        seconds=29,
        grants=(
            *(STATES_RW, READ_VERSIONS, REMOVE_LOCKS, TAG_LOCKS, RETAIN_STATES),
            Grant("DeclareNames", _USE, (WORKSPACES,)),
            Grant("FreezePatterns", ("s3:GetObject", "s3:PutObject"), (FREEZES,)),
            Grant("ListStatesAndVersions", ("s3:ListBucket", "s3:ListBucketVersions"), (STATE_BUCKET,)),
            Grant("ReadAuditTrail", ("logs:FilterLogEvents",), (AUDIT_TRAIL,)),
            *(SIGN_ADDRESSES, USE_KEY),
        ),
        services=("logs", "s3", "sts"),
    ),
    FunctionSpec(
        name="authorizer",
        folder="authorizer",
        purpose="Verifies access tokens, sessions and ID tokens.",
        memory="authorizer",
        # As long as API Gateway waits. The function ends earlier, by `time_limit.py`, which counts the init.
        seconds=10,
        grants=(
            Grant("ReadRecords", ("s3:GetObject",), (TOKENS, SESSIONS, TRUST)),
            MISSING_KEYS_ARE_404,
            _key("Decrypt", "Decrypt"),
        ),
        kept_warm=True,
    ),
    FunctionSpec(
        name="sessions",
        folder="session_exchange",
        purpose="Exchanges an ID token or an AWS identity for a session.",
        memory="authorizer",  # similar work: reads a record, writes another
        seconds=25,
        grants=(
            Grant("ReadTrust", ("s3:GetObject",), (TRUST,)),
            Grant("MakeSessions", ("s3:PutObject",), (SESSIONS,)),
            MISSING_KEYS_ARE_404,
            USE_KEY,
        ),
    ),
    FunctionSpec(
        name="health",
        folder="health",
        purpose=(
            "Returns the version, the paths of the API for `cloud {}`, and a page about tokens, without "
            "authentication."
        ),
        memory=128,  # the least that Lambda has
        seconds=5,
        grants=(),
        audited=False,
        version_of="backend",
    ),
    FunctionSpec(
        name="console",
        folder="console",
        purpose="Serves the files of the console, without authentication.",
        memory=256,
        seconds=5,
        grants=(),
        audited=False,
        setting="console",
    ),
    FunctionSpec(
        name="audit_trail",
        folder="audit_trail",
        purpose="Copies events from the logs of the functions above, except health and console, to the "
        "audit trail. Adds an event for each changed token or trust record and, if `notify` is set, for "
        "failed copies to the replica.",
        memory=256,
        seconds=60,  # no client waits for it
        grants=(
            Grant("AuditTrail", ("logs:CreateLogStream", "logs:PutLogEvents"), (AUDIT_TRAIL,)),
            Grant("ArchiveAuditTrail", ("s3:PutObject",), (ARCHIVED,), when="audit_archive"),
            # For Lambda, which stores with this role the deliveries on which the function failed.
            Grant("KeepLostDeliveries", ("s3:PutObject",), (LOST,), when="audit_archive"),
            Grant("ListArchive", ("s3:ListBucket",), (AUDIT_ARCHIVE,), when="audit_archive"),
            NOTIFY,
        ),
        audited=False,
        services=("logs", "s3", "sns"),
    ),
    FunctionSpec(
        name="watch",
        folder="watch",
        purpose="Looks every hour for old locks, large states and expiring tokens, and can probe the API.",
        memory=512,
        seconds=180,  # three responses of the API, and lists of some 100,000 states
        grants=(
            Grant("ReadLocksAndTokens", ("s3:GetObject",), (LOCKS, TOKENS, WATCH)),
            Grant("List", ("s3:ListBucket",), (STATE_BUCKET,)),
            Grant("WriteMetrics", ("cloudwatch:PutMetricData",), (METRICS,)),
            NOTIFY,
            _key("Decrypt", "Decrypt"),
        ),
        audited=False,
        services=("cloudwatch", "s3", "sns"),
        log_stays=False,
        setting="watch",
    ),
)

TRANSFERS: Final = RoleSpec(
    name="transfers",
    purpose="Signs the addresses at which clients upload and download states.",
    grants=(
        Grant("Upload", ("s3:PutObject",), (UPLOADS, UPLOADED_JSON)),
        READ_VERSIONS,
        _key("EncryptUploads", "GenerateDataKey", of=STAGING_BUCKET),
        _key("DecryptVersions", "Decrypt"),
    ),
)
"""The role that functions with `SIGN_ADDRESSES` assume. No function runs with it."""

ROLES: Final = (*FUNCTIONS, TRANSFERS)

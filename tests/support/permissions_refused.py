"""The permissions that no function may ever get, and what each protects.

The end-to-end tests ask the deployed policies for all of them.
"""

from dataclasses import dataclass
from typing import Final

from infra.functions import FUNCTIONS, ROLES, TRANSFERS


@dataclass(frozen=True, slots=True)
class Refused:
    """Something that a function must never be allowed: each action on each resource.

    `on` has patterns below the team's bucket, `""` for the bucket itself, or a whole ARN with `{team}`,
    `{account}`, `{region}` and `{staging}` for those of the deployment; `KEY` and `TRANSFERS_ARN` are the
    ARNs of the team's key and of the role for transfers.
    `why` is what it protects. `by_bucket`: the bucket's policy denies it to everybody, whatever their own
    policies say.
    """

    functions: tuple[str, ...]
    actions: tuple[str, ...]
    on: tuple[str, ...]
    why: str
    by_bucket: bool = False


KEY: Final = "{key}"
TRANSFERS_ARN: Final = "{transfers}"

_ALL: Final = tuple(spec.name for spec in ROLES)
_FUNCTIONS: Final = tuple(spec.name for spec in FUNCTIONS)
_STAGED: Final = ("arn:aws:s3:::{staging}/uploads/*", "arn:aws:s3:::{staging}/json/*")
_STATES: Final = ("states/*.tfstate", "states/*.tfstate.tflock", "probes/*")
_RECORDS: Final = ("tokens/*.json", "sessions/*.json", "trust/records.json")
_NAMES: Final = ("workspaces/*.json", "freezes/patterns.json")
_WATCH: Final = ("watch/*.json",)
_AUDIT: Final = "arn:aws:logs:{region}:{account}:log-group:/holdfast/{team}/audit:log-stream:any"
_ANOTHERS_AUDIT: Final = (
    "arn:aws:logs:{region}:{account}:log-group:/holdfast/another-team/audit:log-stream:any"
)
_USE: Final = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject")

REFUSED: Final = (
    Refused(
        ("backend", "cloud", "management"),
        _USE,
        _RECORDS,
        "a hole in the protocol reaches no token and creates none",
    ),
    Refused(
        ("authorizer", "sessions"),
        _USE,
        (*_STATES, *_NAMES, *_STAGED),
        "a hole in the sign-in reaches no state",
    ),
    Refused(
        ("backend",),
        _USE,
        _STAGED,
        "workspaces and uploads belong to the other protocol",
    ),
    Refused(
        ("backend",),
        ("s3:PutObject", "s3:DeleteObject"),
        ("workspaces/*.json",),
        "a typing error declares no name",
    ),
    Refused(
        ("backend", "cloud"),
        ("s3:PutObject", "s3:DeleteObject"),
        ("freezes/patterns.json",),
        "a function that creates states lifts no freeze",
    ),
    Refused(
        ("management",),
        _USE,
        ("probes/*", *_STAGED),
        "operators work on states, and not on uploads",
    ),
    Refused(
        ("cloud",),
        _USE,
        ("probes/*",),
        "`holdfast doctor` tries the other protocol",
    ),
    Refused(
        ("cloud",),
        ("s3:GetObject",),
        _STAGED[1:],
        "the upload beside a state may be that state in plain text, and nobody reads it",
    ),
    Refused(
        (TRANSFERS.name,),
        ("s3:GetObject", "s3:DeleteObject"),
        (*_STATES, *_RECORDS, *_NAMES, *_STAGED),
        "an address reads a version of a state, or creates an upload, and does nothing else",
    ),
    Refused(
        (TRANSFERS.name,),
        ("s3:PutObject",),
        (*_STATES, *_RECORDS, *_NAMES),
        "an address writes no state, lock or record",
    ),
    Refused(
        _FUNCTIONS,
        ("s3:PutObject",),
        _STAGED,
        "a function signs no upload with its own credentials",
    ),
    Refused(
        tuple(function for function in _ALL if function not in ("cloud", "management")),
        ("sts:AssumeRole",),
        (TRANSFERS_ARN,),
        "only functions that sign addresses assume the role for transfers",
    ),
    Refused(
        ("authorizer",),
        ("s3:PutObject", "s3:DeleteObject"),
        _RECORDS,
        "the function that verifies credentials cannot create any",
    ),
    Refused(
        ("sessions",),
        _USE,
        ("tokens/*.json",),
        "tokens are created and removed by people, with their own AWS credentials",
    ),
    Refused(
        ("sessions",),
        ("s3:PutObject", "s3:DeleteObject"),
        ("trust/records.json",),
        "people alone decide whom a team trusts",
    ),
    Refused(
        ("sessions",),
        ("s3:GetObject", "s3:DeleteObject"),
        ("sessions/*.json",),
        "the function that creates sessions reads and ends none",
    ),
    Refused(
        _ALL,
        ("kms:Decrypt", "kms:GenerateDataKey"),
        (KEY,),
        "a function's credentials decrypt only objects that S3 lets the function read",
    ),
    Refused(
        ("watch",),
        ("s3:PutObject", "s3:DeleteObject", "s3:DeleteObjectVersion", "s3:GetObjectVersion"),
        (*_STATES, *_RECORDS, *_NAMES, *_STAGED, *_WATCH),
        "who looks changes nothing",
    ),
    Refused(
        ("watch",),
        ("s3:GetObject",),
        (_STATES[0], *_RECORDS[1:], *_NAMES, *_STAGED),
        "who looks reads no state",
    ),
    Refused(
        tuple(function for function in _ALL if function != "watch"),
        _USE,
        _WATCH,
        "the probe's secret is for one function",
    ),
    Refused(
        ("health", "console", "audit_trail"),
        (*_USE, "s3:ListBucket"),
        ("", *_STATES, *_RECORDS, *_NAMES, *_STAGED),
        "anybody may call the first two, and the last one needs lines of logs alone",
    ),
    Refused(
        tuple(function for function in _ALL if function != "audit_trail"),
        ("logs:PutLogEvents", "logs:CreateLogStream"),
        (_AUDIT,),
        "an event came through the log of the function that acted",
    ),
    Refused(
        _ALL,
        ("logs:DeleteLogStream", "logs:DeleteLogGroup", "logs:PutRetentionPolicy"),
        (_AUDIT,),
        "no recorded caller can remove anything from the trail",
    ),
    Refused(
        tuple(function for function in _ALL if function != "management"),
        ("logs:FilterLogEvents",),
        (_AUDIT,),
        "only the function that looks at each operator's scope reads the trail",
    ),
    Refused(
        _ALL,
        ("s3:DeleteObjectVersion", "s3:BypassGovernanceRetention"),
        ("states/*.tfstate",),
        "a version of a state stays; only the bucket's lifecycle rules remove old ones",
        by_bucket=True,
    ),
    Refused(
        _ALL,
        ("s3:DeleteObjectVersion",),
        (*_RECORDS, *_NAMES),
        "a record that was revoked or removed does not come back",
        by_bucket=True,
    ),
    Refused(
        tuple(function for function in _FUNCTIONS if function not in ("cloud", "management")),
        ("s3:GetObjectVersion", "s3:ListBucketVersions"),
        ("states/*.tfstate", ""),
        "the history is for the operators, through `holdfast state`",
    ),
    Refused(
        ("cloud", "management", TRANSFERS.name),
        ("s3:GetObjectVersion",),
        (*_STATES[1:], *_RECORDS, *_NAMES),
        "they read versions of states and of nothing else",
    ),
    Refused(
        _ALL,
        (
            "s3:PutBucketPolicy",
            "s3:PutBucketVersioning",
            "s3:PutBucketObjectLockConfiguration",
            "s3:PutLifecycleConfiguration",
            "s3:PutEncryptionConfiguration",
            "s3:DeleteBucket",
        ),
        ("",),
        "only a deployment changes the bucket's own rules",
    ),
    Refused(
        _ALL,
        (*_USE, "s3:ListBucket"),
        ("arn:aws:s3:::holdfast-another-team", "arn:aws:s3:::holdfast-another-team/states/*.tfstate"),
        "one team's functions reach nothing of another's",
    ),
    Refused(
        ("audit_trail", "management"),
        ("logs:PutLogEvents", "logs:FilterLogEvents"),
        (_ANOTHERS_AUDIT,),
        "one team's functions reach nothing of another's",
    ),
)

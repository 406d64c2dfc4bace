"""The text of `permissions.md`: what each function may do, for which call, why, and where AWS says so."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from infra.functions import FUNCTIONS
from tests.support.aws_permissions import TABLE, Demand


@dataclass(frozen=True, slots=True)
class Refused:
    """Something that a function must never be allowed: each action on each resource.

    `on` has patterns below the team's bucket, `""` for the bucket itself, or a whole ARN with `{team}`,
    `{account}`, `{region}` and `{staging}` for those of the deployment; `KEY` is the ARN of the team's key.
    `why` is what it protects. `by_bucket`: the bucket's policy denies it to everybody, whatever their own
    policies say.
    """

    functions: tuple[str, ...]
    actions: tuple[str, ...]
    on: tuple[str, ...]
    why: str
    by_bucket: bool = False


KEY: Final = "{key}"

_ALL: Final = tuple(spec.name for spec in FUNCTIONS)
_STAGED: Final = ("arn:aws:s3:::{staging}/uploads/*", "arn:aws:s3:::{staging}/json/*")
_STATES: Final = ("states/*.tfstate", "states/*.tfstate.tflock", "probes/*")
_RECORDS: Final = ("tokens/*.json", "sessions/*.json", "trust/records.json")
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
        "whoever finds a hole in the protocol finds no tokens behind it, and cannot create any",
    ),
    Refused(
        ("authorizer", "sessions"),
        _USE,
        (*_STATES, "workspaces/*.json", *_STAGED),
        "whoever finds a hole in the sign-in finds no states behind it",
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
        ("management",),
        _USE,
        ("probes/*", *_STAGED),
        "operators work on states, and on nothing that is on its way to one",
    ),
    Refused(
        ("management",),
        ("s3:DeleteObject",),
        ("workspaces/*.json",),
        "a name that was declared stays declared, and a workspace keeps its tags",
    ),
    Refused(
        ("cloud",),
        _USE,
        ("probes/*",),
        "`holdfast doctor` tries the deployment by the other protocol",
    ),
    Refused(
        ("cloud",),
        ("s3:GetObject",),
        _STAGED[1:],
        "what a client sends beside a state may be that state in plain text, and nobody reads it",
    ),
    Refused(
        ("authorizer",),
        ("s3:PutObject", "s3:DeleteObject"),
        _RECORDS,
        "who verifies credentials cannot create any",
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
        "people alone say whom a team trusts",
    ),
    Refused(
        ("sessions",),
        ("s3:GetObject", "s3:DeleteObject"),
        ("sessions/*.json",),
        "who makes sessions sees no other's, and ends none",
    ),
    Refused(
        _ALL,
        ("kms:Decrypt", "kms:GenerateDataKey"),
        (KEY,),
        "whoever has a function's credentials decrypts only what S3 lets the function read",
    ),
    Refused(
        ("health", "audit_trail"),
        (*_USE, "s3:ListBucket"),
        ("", *_STATES, *_RECORDS, "workspaces/*.json", *_STAGED),
        "anybody may call the one, and the other has lines of logs and nothing else",
    ),
    Refused(
        tuple(function for function in _ALL if function != "audit_trail"),
        ("logs:PutLogEvents", "logs:CreateLogStream"),
        (_AUDIT,),
        "what stands in the audit trail came through the log of the function that did it",
    ),
    Refused(
        _ALL,
        ("logs:DeleteLogStream", "logs:DeleteLogGroup", "logs:PutRetentionPolicy"),
        (_AUDIT,),
        "nobody whom the trail records can remove anything from it",
    ),
    Refused(
        tuple(function for function in _ALL if function != "management"),
        ("logs:FilterLogEvents",),
        (_AUDIT,),
        "the trail is read by the one function that shows each operator what is in their scope",
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
        (*_RECORDS, "workspaces/*.json"),
        "a record that was revoked or removed does not come back",
        by_bucket=True,
    ),
    Refused(
        tuple(function for function in _ALL if function not in ("cloud", "management")),
        ("s3:GetObjectVersion", "s3:ListBucketVersions"),
        ("states/*.tfstate", ""),
        "the history is for the operators, through `holdfast state`",
    ),
    Refused(
        ("cloud", "management"),
        ("s3:GetObjectVersion",),
        (*_STATES[1:], *_RECORDS, "workspaces/*.json"),
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
        "the bucket's own rules are changed by a deployment and by nothing else",
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

_INTRODUCTION: Final = """\
# Permissions

What each function may do in AWS, for which of its calls and why, and where AWS's documents say so.

This file is generated. The local AWS of the end-to-end tests notes every call that the deployed functions
make, with its parameters. A reviewed table, `tests/support/aws_permissions.py`, says what AWS demands for
each. The tests compare that with the deployed policies. They fail where a call needs a permission that the
policy lacks. They also fail where the policy has a permission that no call needs, or one that is wider
than the calls need. After a change `make generated` writes this file anew.

Each team has its own functions and roles, for its own buckets and key. `*` stands for a state's name, or for
the ID of a token or a session; `probes/*` is a probe or its lock. `uploads/*` and `json/*` are in the staging
bucket; everything else is in the bucket with the states. S3 uses the permissions of the KMS key on
behalf of the function, which never calls KMS itself: the condition `kms:ViaService` of each role's policy
admits S3 of the region alone. The key's own policy gives the account's root `kms:*`, which is the CDK's
default and leaves the decision to IAM. No function's role has more on the key than the tables say.
"""

_LISTING: Final = """\
`s3:ListBucket` also lets a function list the names of the bucket's keys. There is no smaller permission for
a clean 404. The names tell which states there are, and the IDs of tokens and sessions. They tell neither a
state's content nor a secret.
"""


def text(needed: Mapping[str, Iterable[Demand]]) -> str:
    """The whole document; `needed` is by function, of all teams together."""
    sources = list(dict.fromkeys(row.source for row in TABLE))
    numbers = {source: number for number, source in enumerate(sources, start=1)}
    parts = [_INTRODUCTION]
    for spec in FUNCTIONS:
        rows = sorted(
            {(demand.row.action, demand.on, TABLE.index(demand.row)) for demand in needed[spec.name]},
            key=lambda row: (not row[0].startswith("s3:"), row),
        )
        lines = [
            f"| `{action}` | {on} | {TABLE[row].call} | {TABLE[row].why} | [{numbers[TABLE[row].source]}] |"
            for action, on, row in rows
        ]
        parts += [
            f"## The {_name(spec.name)} function\n\n{spec.purpose}\n",
            _table(("Action", "On", "For", "Why", "Source"), lines),
        ]
    parts += [
        _LISTING,
        "## What no function may do\n\nThe same tests ask the deployed policies for all of this.\n",
    ]
    parts.append(_table(("Who", "What", "On", "So that"), [_refused(one) for one in REFUSED]))
    parts.append(
        "Where it says everybody, the bucket's policy denies it, also to the account's administrators.\n"
        "Whoever may change that policy can remove the deny statement. CloudTrail records that.\n"
    )
    # Definitions of links are not shown, so each address stands in a list too.
    parts.append("## Sources\n\n" + "".join(f"{number}. <{source}>\n" for source, number in numbers.items()))
    parts.append("".join(f"[{number}]: {source}\n" for source, number in numbers.items()))
    return "\n".join(parts)


def _table(head: tuple[str, ...], lines: list[str]) -> str:
    return "\n".join([f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *lines]) + "\n"


def _refused(one: Refused) -> str:
    who = "everybody" if one.by_bucket else _who(one.functions)
    actions = ", ".join(f"`{action}`" for action in one.actions)
    on = ", ".join(_place(place) for place in one.on)
    return f"| {who} | {actions} | {on} | {one.why} |"


def _who(functions: tuple[str, ...]) -> str:
    if functions == _ALL:
        return "every function"
    *others, last = map(_name, functions)
    if not others:
        return f"the {last} function"
    return f"the {', '.join(others)} and {last} functions"


def _place(place: str) -> str:
    if place == KEY:
        return "the team's KMS key, in a request of the function's own to KMS"
    if place.startswith("arn:aws:logs:"):
        return "another team's audit trail" if "another-team" in place else "the audit trail"
    if "{staging}" in place:
        return f"`{place.partition('/')[2]}`"
    if place.startswith("arn:"):
        return "another team's " + ("states" if "/" in place else "bucket")
    return f"`{place}`" if place else "the bucket"


def _name(function: str) -> str:
    return function.replace("_", " ")

"""The text of `function-permissions.md`: what each role may do, and what the bucket policy denies.

Both are as the CDK app synthesizes them. That no role has a permission too many or too few is what
`test_permissions.py` compares with the calls of the deployed functions.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from holdfast_cdk.functions import FUNCTIONS, ROLES
from tests.support.aws_permissions import OBJECTS, STAGED

Permission = tuple[str, str]
"""An action, and what it is on: a place of `PLACES`."""
Denied = Mapping[str, frozenset[str]]
"""The deny statements that meet a request, each with the teams whose buckets have it."""

_OBJECTS: Final = "<StateBucket.Arn>/"
_STAGED: Final = "<StagingBucket.Arn>/"
PLACES: Final = {
    "<StateBucket.Arn>": "the state bucket",
    "<StagingBucket.Arn>": "the staging bucket",
    "<StateKey.Arn>": "the team's KMS keys, only through S3",
    "<Audit.Arn>": "the team's audit trail",
    "<OwnLog>": "the function's own log",
    "<Transfers>": "the role for transfers",
    "<Metrics>": "metrics of the namespace `Holdfast`",
    "<AuditArchive.Arn>/events/*": "the archive of the audit trail",
    "<AuditArchive.Arn>/aws/lambda/async/*": "the archive's failed deliveries to `audit_trail`",
    "<AuditArchive.Arn>": "the archive's bucket",
    "<NotifiedTopic>": "the topic of `notify`",
}
"""Resources in words. The objects of a bucket go by the pattern of their keys."""

_INTRODUCTION: Final = """\
# Permissions of the functions

This page is for people who review what Holdfast may do in an AWS account. The page lists the permissions of
each function, and the requests that the policy of the state bucket denies to everybody. The tables are
generated from the policies that the CDK app deploys. [AWS permissions](permissions.md) lists the permissions
that people need.

Each team has its own functions, roles and buckets, and by default its own KMS key. The functions that handle
states cannot read tokens, and the functions that verify credentials cannot read states.

"""
_ROLES: Final = """\
## What each function may do

An empty cell means no permission. Tests compare the deployed functions' calls with these roles, and fail if a
permission is missing or unused. `tests/support/aws_permissions.py` names the permissions that each call
needs, and where AWS documents them.

"""
_LISTING: Final = """\
The functions need `ListBucket` because S3 otherwise returns `403` for a missing object. With `ListBucket`, a
function can list the names of states, and the IDs of tokens and sessions. No function runs as `transfers`.
The functions `cloud` and `management` assume this role to sign addresses. The policy of the stack's KMS key
lets IAM decide who may use the key.

"""
_BUCKET: Final = """\
## What the bucket policy denies

The policy of the state bucket denies these requests to everybody, including administrators and root. If a
cell is empty, the caller's own permissions decide. Under any prefix, `*.tfstate` objects are states and
`*.tflock` objects are locks. If `watch` is set, `RefuseToReadTheProbesSecret` also denies reads of objects
below `watch/` to everybody except the function `watch`.
[The design](../understand/design.md#what-the-bucket-itself-refuses) explains the reasons.

"""
_LIMITS: Final = """\
The policy denies neither lifecycle rules nor changes of the policy itself. The deletion of the stack removes
the policy. IAM decides who may change versioning, lifecycle rules and the policy, and who may delete the
bucket. S3 itself refuses to suspend versioning under Object Lock, and to delete a bucket that has objects.
The tests evaluate the policy by IAM's documented rules ([Status](../understand/status.md)).
"""

Roles = Mapping[str, Iterable[Permission]]
"""The permissions of each function."""


def text(
    of_all_settings: Roles,
    without: Mapping[str, Sequence[Roles]],
    denied: Mapping[str, Mapping[str, Denied]],
    when: Mapping[frozenset[str], str],
) -> str:
    """Return the whole document.

    Args:
        of_all_settings: the permissions of each function, of a team with every setting that adds some.
        without: the same, of teams that lack a setting, by the setting in words.
        denied: the statements that deny a request, by the request and by the kind of the key.
        when: the setting that some teams share, in words, by these teams.
    """
    everywhere = {name: kinds for name, kinds in denied.items() if _same_everywhere(kinds)}
    by_kind = {name: kinds for name, kinds in denied.items() if name not in everywhere}
    kinds = list(next(iter(denied.values())))
    return "".join(
        (
            *(_INTRODUCTION, _functions(), _ROLES, _matrix(of_all_settings, without), _LISTING),
            *(_others(of_all_settings, without), _BUCKET),
            _table(
                ("Request for an object", *kinds),
                [(name, *(_denial(row[kind], when) for kind in kinds)) for name, row in by_kind.items()],
            ),
            _table(
                ("Request for any object", "Denied by"),
                [(name, _denial(row[kinds[0]], when)) for name, row in everywhere.items()],
            ),
            _LIMITS,
        )
    )


def _functions() -> str:
    return _table(("Role", "Purpose"), [(_name(spec.name), spec.purpose) for spec in ROLES])


def _matrix(of_all: Roles, without: Mapping[str, Sequence[Roles]]) -> str:
    """Return place x function, with the actions of S3."""
    found = {
        function: [(action, on) for action, on in permissions if action.startswith("s3:")]
        for function, permissions in of_all.items()
    }
    columns = [function for function, permissions in found.items() if permissions]
    rows = [
        (
            _place(place),
            *(
                ", ".join(
                    _conditional(action, on, function, without)
                    for action, on in found[function]
                    if on == place
                )
                for function in columns
            ),
        )
        for place in sorted({on for permissions in found.values() for _, on in permissions}, key=_order)
    ]
    return _table(("S3", *map(_name, columns)), rows)


def _others(of_all: Roles, without: Mapping[str, Sequence[Roles]]) -> str:
    """Return the actions of other services, with the functions that may use them."""
    having: dict[Permission, list[str]] = {}
    for function, permissions in of_all.items():
        for permission in permissions:
            if not permission[0].startswith("s3:") and function not in having.setdefault(permission, []):
                having[permission].append(function)
    rows: dict[tuple[str, str], list[str]] = {}
    for (action, on), functions in having.items():
        who = "all" if len(functions) == len(FUNCTIONS) else ", ".join(map(_name, functions))
        rows.setdefault((on, who), []).append(_conditional(action, on, functions[0], without))
    return _table(
        ("Other services", "On", "Functions"),
        [(", ".join(sorted(actions)), _place(on), who) for (on, who), actions in sorted(rows.items())],
    )


def _conditional(action: str, on: str, function: str, without: Mapping[str, Sequence[Roles]]) -> str:
    """Return an action, and the settings without which a team's function may not use it there."""
    needs = [
        setting
        for setting, teams in without.items()
        if all((action, on) not in roles[function] for roles in teams)
    ]
    return " if ".join((f"`{action.removeprefix('s3:')}`", *needs))


def _order(place: str) -> tuple[bool, bool, int]:
    kinds = [*OBJECTS, *STAGED, *PLACES]
    key = place.removeprefix(_OBJECTS).removeprefix(_STAGED)
    return place.startswith(_STAGED[:-1]), place in PLACES, kinds.index(key)


def _place(place: str) -> str:
    if place in PLACES:
        return PLACES[place]
    if place.startswith(_STAGED):
        return f"`{place.removeprefix(_STAGED)}` in the staging bucket"
    return f"`{place.removeprefix(_OBJECTS)}`"


def _name(function: str) -> str:
    return function.replace("_", " ")


def _same_everywhere(kinds: Mapping[str, Denied]) -> bool:
    first, *others = kinds.values()
    return bool(first) and all(other == first for other in others)


def _denial(denied: Denied, when: Mapping[frozenset[str], str]) -> str:
    return ", ".join(f"`{sid}`{when[teams]}" for sid, teams in denied.items())


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    lines += [f"| {' | '.join(row)} |".replace("|  |", "| |").replace("|  |", "| |") for row in rows]
    return "\n".join(lines) + "\n\n"

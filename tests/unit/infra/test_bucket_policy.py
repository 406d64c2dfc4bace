"""The bucket policy, asked about one request after another: what it denies, and by which statement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Final

import pytest

from holdfast_cdk.config import AWS
from holdfast_cdk.team_settings import Retention, Team
from tests.support.iam_policy import ACCOUNT, REGION, Request, Statement, bucket_policy, evaluate, matching
from tests.unit.infra.conftest import Synthesize

# The teams whose policies differ, named after what differs.
TEAMS: Final = {
    "default": Team(name="default"),
    "retention": Team(name="retention", retention=Retention(mode="governance", days=30)),
    "native": Team(name="native", native_clients=True),
    "s3": Team(name="s3", key="s3"),
    "from-kms": Team(name="from-kms", key="s3", previous_keys=("kms",)),
    "networks": Team(name="networks", networks=("203.0.113.0/24", "2001:db8::/32")),
}
ALL: Final = frozenset(TEAMS)

# Other clients of S3 may keep states and locks outside of `states/`, where the policy protects them as well.
# A probe holds no resources, so nothing is lost with its versions.
KEYS: Final = {
    "state": ("states/network/prod.tfstate", "env:/dev/network.tfstate"),
    "lock": (
        "states/network/prod.tfstate.tflock",
        "elsewhere/a.tfstate.tflock",
        "probes/0123456789abcdef0123456789abcdef.tflock",
    ),
    "token, session, trust record, workspace, freeze": (
        *("tokens/5gk2.json", "sessions/session-7hd1.json", "trust/records.json"),
        *("workspaces/network/prod.json", "freezes/patterns.json"),
    ),
    "probe": ("probes/0123456789abcdef0123456789abcdef",),
}
"""Keys of each kind, which the policy treats alike."""

TLS: Final = {"aws:SecureTransport": "true", "s3:TlsVersion": "1.3"}
CREATES: Final = {"s3:ObjectCreationOperation": "true"}
PART: Final = {"s3:ObjectCreationOperation": "false"}
IF_ABSENT: Final = {**CREATES, "s3:if-none-match": "*"}
IF_MATCH: Final = {**CREATES, "s3:if-match": '"etag"'}

KEY: Final = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/statekey"
ANOTHER_KEY: Final = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/another"


def encrypted(algorithm: str, key: str | None = None) -> dict[str, str]:
    """Return the condition keys of a write with headers for an encryption."""
    name = "s3:x-amz-server-side-encryption"
    return {**IF_ABSENT, name: algorithm, **({f"{name}-aws-kms-key-id": key} if key else {})}


def retained(days: int) -> dict[str, str]:
    """Return the condition keys of a request for a retention that ends after some days."""
    return {"s3:object-lock-remaining-retention-days": str(days), "s3:object-lock-mode": "GOVERNANCE"}


Sids = Mapping[str, frozenset[str]]
"""Names of statements that deny a request, each with the teams whose buckets have it."""


@dataclass(frozen=True)
class Row:
    """A kind of request, and which statements deny it for a key of each kind, and no others.

    `actions` are IAM's names for it; those of parts of an upload, of copies and of deletes are others.
    `contexts` have the condition keys that S3 fills in. A request is each action with each context.
    """

    actions: tuple[str, ...]
    contexts: tuple[Mapping[str, str], ...] = ({},)
    denied: Mapping[str, Sids] = field(default_factory=dict)


def everywhere(**sids: frozenset[str]) -> Mapping[str, Sids]:
    """Return that statements deny a request for every key."""
    return dict.fromkeys(KEYS, sids)


def puts(*contexts: Mapping[str, str], denied: Mapping[str, Sids]) -> Row:
    return Row(("s3:PutObject",), contexts, denied)


def addressed(kind: str, *sources: str) -> tuple[Mapping[str, str], ...]:
    """Return the condition keys of requests that are authorized like `kind`, from each source."""
    return tuple({**IF_ABSENT, "s3:authType": kind, "aws:SourceIp": source} for source in sources)


INSIDE: Final = ("203.0.113.5", "2001:db8::1")
"""Sources in the networks of the team that has some."""
OUTSIDE: Final = ("203.0.112.5", "2001:db9::1")
PRESIGNED: Final = "REST-QUERY-STRING"
STATE, LOCK, RECORD, _ = KEYS
ANY: Final = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject")
KMS: Final = ALL - {"s3"}
"""Teams whose functions may use a KMS key."""
KMS_BY_DEFAULT: Final = KMS - {"from-kms"}
"""Teams whose buckets encrypt with a KMS key."""
KMS_HEADERS: Final = (
    encrypted("aws:kms", ANOTHER_KEY),
    encrypted("aws:kms", "alias/states"),
    encrypted("aws:kms"),  # S3 takes the account's own key, not the bucket's
)
SSE_C: Final = {**IF_ABSENT, "s3:x-amz-server-side-encryption-customer-algorithm": "AES256"}

TABLE: Final[Mapping[str, Row]] = {
    "write with `If-None-Match`": puts(IF_ABSENT, denied={}),
    "write with `If-Match`": puts(IF_MATCH, denied={LOCK: {"RefuseLockWritesWithoutCondition": ALL}}),
    "write or copy without a condition": puts(
        CREATES,
        denied={
            STATE: {"RefuseStateWritesWithoutCondition": ALL - {"native"}},
            LOCK: {"RefuseLockWritesWithoutCondition": ALL},
            # A record that was revoked must not come back by a blind write.
            RECORD: {"RefuseRecordWritesWithoutCondition": ALL},
        },
    ),
    # They cannot carry a condition; CompleteMultipartUpload can, and is a write.
    "create a multipart upload, or upload a part": puts({}, PART, denied={}),
    "delete without a version ID": Row(("s3:DeleteObject",)),
    "delete a version": Row(
        ("s3:DeleteObjectVersion",),
        denied={
            STATE: {"RefuseToDeleteStateVersions": ALL},
            # Without its newest version, or its delete marker, a record is the version before.
            RECORD: {"RefuseToDeleteRecordVersions": ALL},
        },
    ),
    "bypass governance retention": Row(
        ("s3:BypassGovernanceRetention",), denied={STATE: {"RefuseToBypassGovernance": ALL}}
    ),
    "tag a version": Row(
        ("s3:PutObjectTagging", "s3:PutObjectVersionTagging"), denied={STATE: {"RefuseToTagStates": ALL}}
    ),
    "use plain HTTP": Row(
        ANY, ({**IF_ABSENT, "aws:SecureTransport": "false"},), everywhere(RefuseWithoutTls=ALL)
    ),
    "use TLS 1.0 or 1.1": Row(
        ANY,
        tuple({**IF_ABSENT, "s3:TlsVersion": version} for version in ("1.0", "1.1")),
        everywhere(RefuseTlsBefore12=ALL),
    ),
    "use a presigned address from outside the `networks`": Row(
        ANY,
        (*addressed(PRESIGNED, *OUTSIDE), {**IF_ABSENT, "s3:authType": PRESIGNED}),
        everywhere(RefuseAddressesFromElsewhere=frozenset({"networks"})),
    ),
    "write with `aws:kms` and a KMS key of the team": puts(
        encrypted("aws:kms", KEY), denied=everywhere(RefuseOtherEncryption=ALL - KMS)
    ),
    "write with `aws:kms` and another KMS key, an alias or no key": puts(
        *KMS_HEADERS, denied=everywhere(RefuseOtherKeys=KMS, RefuseOtherEncryption=ALL - KMS)
    ),
    "write with `aws:kms:dsse`": puts(
        encrypted("aws:kms:dsse", KEY), denied=everywhere(RefuseOtherEncryption=ALL)
    ),
    "write with `AES256`": puts(
        encrypted("AES256"),
        denied=everywhere(RefuseOtherEncryption=KMS_BY_DEFAULT, RefuseOtherKeys=KMS_BY_DEFAULT),
    ),
    "write with the client's own key (SSE-C)": puts(SSE_C, denied=everywhere(RefuseKeysOfTheClient=ALL)),
    "change an object's encryption": Row(
        ("s3:UpdateObjectEncryption",), denied=everywhere(RefuseToChangeEncryption=ALL)
    ),
    # A client's clock may be ahead, and AWS does not say whether S3 counts a part of a day as a whole one.
    "set retention, at most one day longer than the team's": Row(
        ("s3:PutObjectRetention",),
        (retained(29), retained(30), retained(31)),
        everywhere(RefuseRetention=ALL - {"retention"}),
    ),
    "set longer retention": Row(
        ("s3:PutObjectRetention",),
        (retained(32),),
        everywhere(RefuseRetention=ALL - {"retention"}, RefuseLongerRetention=frozenset({"retention"})),
    ),
}

BUCKET: Final = (
    *("s3:ListBucket", "s3:PutBucketVersioning", "s3:PutLifecycleConfiguration", "s3:PutBucketPolicy"),
    *("s3:DeleteBucketPolicy", "s3:DeleteBucket"),
)
"""Actions on the bucket itself, which IAM alone decides about."""


@dataclass(frozen=True)
class Case:
    """A request, and which statements deny it in the buckets of which teams; no others do."""

    action: str
    key: str
    context: Mapping[str, str]
    denied: Sids


CASES: Final = {
    f"{name}: {action} of {key}, {number}": Case(action, key, context, row.denied.get(kind, {}))
    for name, row in TABLE.items()
    for kind, keys in KEYS.items()
    for action, key, (number, context) in product(row.actions, keys, enumerate(row.contexts))
} | {
    **{action: Case(action, "", {}, {}) for action in BUCKET},
    **{
        f"read over TLS {version}": Case("s3:GetObject", KEYS[STATE][0], {"s3:TlsVersion": version}, {})
        for version in ("1.2", "1.3")
    },
    "list over plain HTTP": Case(
        "s3:ListBucket", "", {"aws:SecureTransport": "false"}, {"RefuseWithoutTls": ALL}
    ),
}


@pytest.fixture(scope="session")
def policies(synthesize: Synthesize) -> dict[str, list[Statement]]:
    """Each team's bucket policy, resolved, by the team's name."""
    stacks = synthesize(list(TEAMS.values()), AWS)
    return {name: [*bucket_policy(stacks[f"Holdfast-{name}"].template)] for name in TEAMS}


def sent(case: Case, team: str) -> Request:
    """A case as a request to a team's bucket by an administrator."""
    bucket = f"arn:aws:s3:::holdfast-{team}-{ACCOUNT}-{REGION}"
    return Request(
        case.action,
        f"{bucket}/{case.key}" if case.key else bucket,
        principal=f"arn:aws:iam::{ACCOUNT}:role/administrator",
        context={**TLS, **case.context},
    )


def denials(policies: Mapping[str, Sequence[Statement]], case: Case) -> dict[str, frozenset[str]]:
    """Return which statements deny a request, in which teams' buckets."""
    teams_of: dict[str, set[str]] = {}
    for team, statements in policies.items():
        for statement in matching(statements, sent(case, team)):
            teams_of.setdefault(statement["Sid"], set()).add(team)
    return {sid: frozenset(teams) for sid, teams in teams_of.items()}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_bucket_denies_exactly_what_the_table_says(
    policies: dict[str, list[Statement]], case: Case
) -> None:
    assert denials(policies, case) == case.denied


def test_what_the_bucket_denies_nobody_may_do(policies: dict[str, list[Statement]]) -> None:
    administrator: Statement = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    for case in CASES.values():
        for team, statements in policies.items():
            denied = any(team in teams for teams in case.denied.values())
            decision = evaluate([administrator, *statements], sent(case, team))
            assert decision == ("deny" if denied else "allow"), (team, case)


def test_every_statement_denies_has_a_name_and_is_in_the_table(
    policies: dict[str, list[Statement]],
) -> None:
    in_the_table = {sid for row in TABLE.values() for sids in row.denied.values() for sid in sids}
    for statements in policies.values():
        sids = [statement["Sid"] for statement in statements]
        assert len(set(sids)) == len(sids)
        assert {(statement["Effect"], statement["Principal"]) for statement in statements} == {("Deny", "*")}
    assert {statement["Sid"] for statements in policies.values() for statement in statements} == in_the_table

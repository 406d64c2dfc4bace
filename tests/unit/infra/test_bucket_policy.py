"""The bucket policy, asked about one request after another: what it refuses, and by which statement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pytest

from infra.config import AWS, Retention, TeamConfig
from tests.conftest import GeneratedFile
from tests.support.iam_policy import ACCOUNT, REGION, Request, Statement, bucket_policy, evaluate, matching
from tests.support.pages import page
from tests.unit.infra.conftest import Synthesize

# The teams whose policies differ, named after what differs.
TEAMS: Final = {
    "default": TeamConfig(name="default"),
    "retention": TeamConfig(name="retention", retention=Retention(mode="governance", days=30)),
    "native": TeamConfig(name="native", native_clients=True),
    "s3": TeamConfig(name="s3", key="s3"),
}
ALL: Final = frozenset(TEAMS)

STATE: Final = "states/network/prod.tfstate"
LOCK: Final = f"{STATE}.tflock"
STATE_ELSEWHERE: Final = "env:/dev/network.tfstate"
PROBE: Final = "probes/0123456789abcdef0123456789abcdef"
PROBE_LOCK: Final = f"{PROBE}.tflock"
TOKEN: Final = "tokens/5gk2.json"
TRUST: Final = "trust/records.json"
SESSION: Final = "sessions/session-7hd1.json"
WORKSPACE: Final = "workspaces/network/prod.json"

TLS: Final = {"aws:SecureTransport": "true", "s3:TlsVersion": "1.3"}
CREATES: Final = {"s3:ObjectCreationOperation": "true"}
IF_ABSENT: Final = {**CREATES, "s3:if-none-match": "*"}
IF_MATCH: Final = {**CREATES, "s3:if-match": '"etag"'}

KEY: Final = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/statekey"
ANOTHER_KEY: Final = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/another"


def encrypted(algorithm: str, key: str | None = None) -> dict[str, str]:
    """The condition keys that S3 fills in from the headers that ask for an encryption."""
    name = "s3:x-amz-server-side-encryption"
    return {**IF_MATCH, name: algorithm, **({f"{name}-aws-kms-key-id": key} if key else {})}


def retained(days: int) -> dict[str, str]:
    """The condition keys that S3 fills in for a retention of some days."""
    return {"s3:object-lock-remaining-retention-days": str(days), "s3:object-lock-mode": "GOVERNANCE"}


@dataclass(frozen=True)
class Case:
    """A request and what becomes of it.

    `action` is IAM's name for it; that of parts of an upload, of copies and of deletes is another. `key` is
    "" for the bucket. `context` has the condition keys that S3 fills in. `refused` is which statement refuses
    it in the buckets of which teams; no other does.
    """

    request: str
    action: str
    key: str
    context: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, frozenset[str]] = field(default_factory=dict)


WITHOUT_TLS: Final = {"RefuseWithoutTls": ALL}
OLD_TLS: Final = {"RefuseTlsBefore12": ALL}
BLIND_LOCK: Final = {"RefuseLockWritesWithoutCondition": ALL}
BLIND_STATE: Final = {"RefuseStateWritesWithoutCondition": ALL - {"native"}}
BLIND_RECORD: Final = {"RefuseRecordWritesWithoutCondition": ALL}
NO_EARLIER_RECORD: Final = {"RefuseToDeleteRecordVersions": ALL}
OF_THE_CLIENT: Final = {"RefuseKeysOfTheClient": ALL}
NO_KMS: Final = {"RefuseOtherEncryption": frozenset({"s3"})}
OTHER_KEY: Final = {"RefuseOtherKeys": ALL - {"s3"}, **NO_KMS}
NO_DELETION: Final = {"RefuseToDeleteStateVersions": ALL}
NO_BYPASS: Final = {"RefuseToBypassGovernance": ALL}
NO_TAGS: Final = {"RefuseToTagStates": ALL}
NO_OTHER_KEY_LATER: Final = {"RefuseToChangeEncryption": ALL}
RETENTION: Final = {"RefuseRetention": ALL - {"retention"}}

TABLE: Final[Mapping[str, Sequence[Case]]] = {
    "Transport": [
        Case("read over plain HTTP", "s3:GetObject", STATE, {"aws:SecureTransport": "false"}, WITHOUT_TLS),
        Case("list over plain HTTP", "s3:ListBucket", "", {"aws:SecureTransport": "false"}, WITHOUT_TLS),
        Case("read over TLS 1.1", "s3:GetObject", STATE, {**TLS, "s3:TlsVersion": "1.1"}, OLD_TLS),
        Case(
            "write of a lock over TLS 1.0",
            "s3:PutObject",
            LOCK,
            {**TLS, **IF_ABSENT, "s3:TlsVersion": "1.0"},
            OLD_TLS,
        ),
        Case("read over TLS 1.2", "s3:GetObject", STATE, {**TLS, "s3:TlsVersion": "1.2"}),
        Case("read over TLS 1.3", "s3:GetObject", STATE),
    ],
    "Locks": [
        Case("PutObject with `If-None-Match`", "s3:PutObject", LOCK, IF_ABSENT),
        Case("PutObject", "s3:PutObject", LOCK, CREATES, BLIND_LOCK),
        Case("PutObject with `If-Match`", "s3:PutObject", LOCK, IF_MATCH, BLIND_LOCK),
        Case(
            "PutObject of a lock outside of `states/`",
            "s3:PutObject",
            "elsewhere/a.tfstate.tflock",
            CREATES,
            BLIND_LOCK,
        ),
        Case("CreateMultipartUpload", "s3:PutObject", LOCK),
        Case("UploadPart", "s3:PutObject", LOCK, {"s3:ObjectCreationOperation": "false"}),
        Case("CompleteMultipartUpload", "s3:PutObject", LOCK, CREATES, BLIND_LOCK),
        Case("CompleteMultipartUpload with `If-None-Match`", "s3:PutObject", LOCK, IF_ABSENT),
        Case("CopyObject onto it", "s3:PutObject", LOCK, CREATES, BLIND_LOCK),
        Case("DeleteObject", "s3:DeleteObject", LOCK),
        Case("DeleteObject of one version", "s3:DeleteObjectVersion", LOCK),
        Case("tag it, on the write or later", "s3:PutObjectTagging", LOCK),
        Case(
            "a key that the client sends (SSE-C)",
            "s3:PutObject",
            LOCK,
            {**IF_ABSENT, "s3:x-amz-server-side-encryption-customer-algorithm": "AES256"},
            OF_THE_CLIENT,
        ),
    ],
    "States": [
        Case("PutObject with `If-None-Match`", "s3:PutObject", STATE, IF_ABSENT),
        Case("PutObject with `If-Match`", "s3:PutObject", STATE, IF_MATCH),
        Case('PutObject, as by `backend "s3"`', "s3:PutObject", STATE, CREATES, BLIND_STATE),
        Case("CreateMultipartUpload", "s3:PutObject", STATE),
        Case("UploadPart", "s3:PutObject", STATE, {"s3:ObjectCreationOperation": "false"}),
        Case("CompleteMultipartUpload", "s3:PutObject", STATE, CREATES, BLIND_STATE),
        Case("CompleteMultipartUpload with `If-Match`", "s3:PutObject", STATE, IF_MATCH),
        Case("CopyObject onto it", "s3:PutObject", STATE, CREATES, BLIND_STATE),
        Case("DeleteObject (a delete marker)", "s3:DeleteObject", STATE),
        Case("DeleteObject of one version", "s3:DeleteObjectVersion", STATE, {}, NO_DELETION),
        Case("bypass of governance", "s3:BypassGovernanceRetention", STATE, {}, NO_BYPASS),
        Case("tag it, on the write or later", "s3:PutObjectTagging", STATE, {}, NO_TAGS),
        Case("tag an old version", "s3:PutObjectVersionTagging", STATE, {}, NO_TAGS),
        Case("PutObject outside of `states/`", "s3:PutObject", STATE_ELSEWHERE, CREATES, BLIND_STATE),
        Case(
            "DeleteObject of one version outside of `states/`",
            "s3:DeleteObjectVersion",
            STATE_ELSEWHERE,
            {},
            NO_DELETION,
        ),
        Case(
            "bypass of governance outside of `states/`",
            "s3:BypassGovernanceRetention",
            STATE_ELSEWHERE,
            {},
            NO_BYPASS,
        ),
        Case("tag it outside of `states/`", "s3:PutObjectTagging", STATE_ELSEWHERE, {}, NO_TAGS),
    ],
    "Probes": [
        Case("PutObject with `If-None-Match`", "s3:PutObject", PROBE, IF_ABSENT),
        Case("PutObject with `If-Match`", "s3:PutObject", PROBE, IF_MATCH),
        Case("PutObject", "s3:PutObject", PROBE, CREATES),
        Case("DeleteObject", "s3:DeleteObject", PROBE),
        Case("DeleteObject of one version", "s3:DeleteObjectVersion", PROBE),
        Case("PutObject of its lock with `If-None-Match`", "s3:PutObject", PROBE_LOCK, IF_ABSENT),
        Case("PutObject of its lock", "s3:PutObject", PROBE_LOCK, CREATES, BLIND_LOCK),
        Case("PutObject of its lock with `If-Match`", "s3:PutObject", PROBE_LOCK, IF_MATCH, BLIND_LOCK),
        Case("DeleteObject of one version of its lock", "s3:DeleteObjectVersion", PROBE_LOCK),
        Case("retention of 30 days", "s3:PutObjectRetention", PROBE, retained(30), RETENTION),
        Case(
            "PutObject with `aws:kms` and another key",
            "s3:PutObject",
            PROBE,
            encrypted("aws:kms", ANOTHER_KEY),
            OTHER_KEY,
        ),
        Case(
            "a key that the client sends (SSE-C)",
            "s3:PutObject",
            PROBE,
            {**IF_MATCH, "s3:x-amz-server-side-encryption-customer-algorithm": "AES256"},
            OF_THE_CLIENT,
        ),
    ],
    "Encryption of a state": [
        Case("no header", "s3:PutObject", STATE, IF_MATCH),
        Case("`aws:kms`, the bucket's key", "s3:PutObject", STATE, encrypted("aws:kms", KEY), NO_KMS),
        Case("`aws:kms`, another key", "s3:PutObject", STATE, encrypted("aws:kms", ANOTHER_KEY), OTHER_KEY),
        Case(
            "`aws:kms`, an alias of the bucket's key",
            "s3:PutObject",
            STATE,
            encrypted("aws:kms", "alias/states"),
            OTHER_KEY,
        ),
        Case(
            "`aws:kms` without a key (S3 takes the account's)",
            "s3:PutObject",
            STATE,
            encrypted("aws:kms"),
            OTHER_KEY,
        ),
        Case(
            "`aws:kms:dsse`, the bucket's key",
            "s3:PutObject",
            STATE,
            encrypted("aws:kms:dsse", KEY),
            {"RefuseOtherEncryption": ALL},
        ),
        Case(
            "`AES256`",
            "s3:PutObject",
            STATE,
            encrypted("AES256"),
            {"RefuseOtherEncryption": ALL - {"s3"}, "RefuseOtherKeys": ALL - {"s3"}},
        ),
        Case(
            "a key that the client sends (SSE-C)",
            "s3:PutObject",
            STATE,
            {**IF_MATCH, "s3:x-amz-server-side-encryption-customer-algorithm": "AES256"},
            OF_THE_CLIENT,
        ),
        Case(
            "another key later (UpdateObjectEncryption)",
            "s3:UpdateObjectEncryption",
            STATE,
            {},
            NO_OTHER_KEY_LATER,
        ),
    ],
    "Retention of a state": [
        Case("of 29 days", "s3:PutObjectRetention", STATE, retained(29), RETENTION),
        Case("of 30 days", "s3:PutObjectRetention", STATE, retained(30), RETENTION),
        Case("of 31 days", "s3:PutObjectRetention", STATE, retained(31), RETENTION),
        Case(
            "of 32 days",
            "s3:PutObjectRetention",
            STATE,
            retained(32),
            {**RETENTION, "RefuseLongerRetention": frozenset({"retention"})},
        ),
        Case(
            "of 32 days, on a lock",
            "s3:PutObjectRetention",
            LOCK,
            retained(32),
            {**RETENTION, "RefuseLongerRetention": frozenset({"retention"})},
        ),
        Case("none: PutObject with `If-Match`", "s3:PutObject", STATE, IF_MATCH),
    ],
    "Tokens, trust and sessions": [
        Case("PutObject of a token with `If-None-Match`", "s3:PutObject", TOKEN, IF_ABSENT),
        Case("PutObject of a token with `If-Match`", "s3:PutObject", TOKEN, IF_MATCH),
        Case("PutObject of a token", "s3:PutObject", TOKEN, CREATES, BLIND_RECORD),
        Case("PutObject of the trust records with `If-None-Match`", "s3:PutObject", TRUST, IF_ABSENT),
        Case("PutObject of the trust records with `If-Match`", "s3:PutObject", TRUST, IF_MATCH),
        Case("PutObject of the trust records", "s3:PutObject", TRUST, CREATES, BLIND_RECORD),
        Case("PutObject of a session with `If-None-Match`", "s3:PutObject", SESSION, IF_ABSENT),
        Case("PutObject of a session", "s3:PutObject", SESSION, CREATES, BLIND_RECORD),
        Case("CopyObject of an old version onto it", "s3:PutObject", TOKEN, CREATES, BLIND_RECORD),
        Case("CompleteMultipartUpload", "s3:PutObject", TOKEN, CREATES, BLIND_RECORD),
        Case(
            "PutObject with `aws:kms` and another key",
            "s3:PutObject",
            TOKEN,
            encrypted("aws:kms", ANOTHER_KEY),
            OTHER_KEY,
        ),
        Case(
            "a key that the client sends (SSE-C)",
            "s3:PutObject",
            TOKEN,
            {**IF_ABSENT, "s3:x-amz-server-side-encryption-customer-algorithm": "AES256"},
            OF_THE_CLIENT,
        ),
        Case("DeleteObject of a token, as by `aws s3 rm`", "s3:DeleteObject", TOKEN),
        Case("DeleteObject of the trust records", "s3:DeleteObject", TRUST),
        Case("DeleteObject of a session", "s3:DeleteObject", SESSION),
        Case(
            "DeleteObject of one version of a token", "s3:DeleteObjectVersion", TOKEN, {}, NO_EARLIER_RECORD
        ),
        Case(
            "DeleteObject of one version of the trust records",
            "s3:DeleteObjectVersion",
            TRUST,
            {},
            NO_EARLIER_RECORD,
        ),
        Case(
            "DeleteObject of one version of a session",
            "s3:DeleteObjectVersion",
            SESSION,
            {},
            NO_EARLIER_RECORD,
        ),
    ],
    "Workspaces": [
        Case("PutObject with `If-None-Match`", "s3:PutObject", WORKSPACE, IF_ABSENT),
        Case("PutObject with `If-Match`", "s3:PutObject", WORKSPACE, IF_MATCH),
        Case("PutObject", "s3:PutObject", WORKSPACE, CREATES, BLIND_RECORD),
        Case("DeleteObject", "s3:DeleteObject", WORKSPACE),
        Case("DeleteObject of one version", "s3:DeleteObjectVersion", WORKSPACE, {}, NO_EARLIER_RECORD),
    ],
    "The bucket": [
        Case("suspend versioning", "s3:PutBucketVersioning", ""),
        Case("change the lifecycle rules", "s3:PutLifecycleConfiguration", ""),
        Case("change the policy", "s3:PutBucketPolicy", ""),
        Case("remove the policy", "s3:DeleteBucketPolicy", ""),
        Case("delete the bucket", "s3:DeleteBucket", ""),
    ],
}

NOTES: Final[Mapping[str, str]] = {
    "Retention of a state": """\
The limit is one day above the team's 30: a client's clock may be ahead, and AWS does not say whether S3
counts a part of a day as a whole one.
""",
    "Tokens, trust and sessions": """\
A record that was revoked or removed must not come back by a blind write, or by taking its newest version or
its delete marker away. Who removes a token with `aws s3 rm` adds a delete marker, and the token is refused.
""",
    "Workspaces": """\
The record of a workspace has its tags. A delete marker removes it; S3 removes the versions beneath after 30
days.
""",
    "Probes": """\
A probe is a state that `holdfast doctor` makes to try a deployment, and removes. Its objects are below
`probes/` and hold no resources, so nothing is lost with their versions.
""",
    "The bucket": """\
IAM decides here. S3 itself refuses to suspend versioning where Object Lock is enabled, as it is on every
state bucket, and to delete a bucket that is not empty.
""",
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


def refusals(policies: Mapping[str, Sequence[Statement]], case: Case) -> dict[str, frozenset[str]]:
    """Which statement refuses a request, in which teams' buckets."""
    found: dict[str, set[str]] = {}
    for team, statements in policies.items():
        for statement in matching(statements, sent(case, team)):
            found.setdefault(statement["Sid"], set()).add(team)
    return {sid: frozenset(teams) for sid, teams in found.items()}


@pytest.mark.parametrize(
    "case",
    [case for cases in TABLE.values() for case in cases],
    ids=[f"{group}: {case.request}" for group, cases in TABLE.items() for case in cases],
)
def test_the_bucket_refuses_exactly_what_the_table_says(
    policies: dict[str, list[Statement]], case: Case
) -> None:
    assert refusals(policies, case) == case.refused


def test_what_the_bucket_refuses_nobody_may_do(policies: dict[str, list[Statement]]) -> None:
    administrator: Statement = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    for case in [case for cases in TABLE.values() for case in cases]:
        for team, statements in policies.items():
            refused = any(team in teams for teams in case.refused.values())
            decision = evaluate([administrator, *statements], sent(case, team))
            assert decision == ("deny" if refused else "allow"), (team, case)


def test_every_statement_refuses_has_a_name_and_stands_in_the_table(
    policies: dict[str, list[Statement]],
) -> None:
    in_the_table = {sid for cases in TABLE.values() for case in cases for sid in case.refused}
    for statements in policies.values():
        sids = [statement["Sid"] for statement in statements]
        assert len(set(sids)) == len(sids)
        assert {(statement["Effect"], statement["Principal"]) for statement in statements} == {("Deny", "*")}
    assert {statement["Sid"] for statements in policies.values() for statement in statements} == in_the_table


# --- the document ---------------------------------------------------------------------------------

INTRODUCTION: Final = """\
# What the bucket itself refuses

The bucket policy holds for everybody: Holdfast's functions, administrators, other programs, root. It gives
nobody a permission; it takes away what would harm a state, a lock, the history or a revocation. So it also
stands against a fault in Holdfast. [The design](../understand/design.md#what-the-bucket-itself-refuses)
says why each statement is there.

What it does not cover: S3's lifecycle rules, which no bucket policy stops; somebody who may change the policy
itself; and the time after the stack is removed, because the policy goes with it. Object Lock holds all the
same.

The tables are generated from the tests, which evaluate the synthesized policies by IAM's documented rules for
every line. No bucket on AWS was asked, and the local AWS does not know all of the conditions. An empty cell
is a request that the bucket does not deny: then the caller's own permissions decide. A denial applies to
every team, unless teams are named:

| Team | Its settings |
| --- | --- |
| default | the defaults |
| retention | `retention` of 30 days, `governance` or `compliance` |
| native | `native_clients = true` |
| s3 | `key = "s3"` |
"""


def as_document() -> str:
    """The table for people."""
    lines = [INTRODUCTION]
    for group, cases in TABLE.items():
        lines += [f"## {group}", "", *([NOTES[group]] if group in NOTES else [])]
        lines += ["| Request | Action in IAM | Deny statement |", "| --- | --- | --- |"]
        for case in cases:
            by = [f"`{sid}`{_of_teams(teams)}" for sid, teams in case.refused.items()]
            lines.append(f"| {case.request} | `{case.action}` | {', '.join(by)} |".replace("|  |", "| |"))
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _of_teams(teams: frozenset[str]) -> str:
    if teams == ALL:
        return ""
    if len(teams) == len(ALL) - 1:
        return f" (all but {', '.join(ALL - teams)})"
    return f" ({', '.join(name for name in TEAMS if name in teams)})"


@pytest.mark.generated
def test_the_document_shows_the_table(generated_file: GeneratedFile) -> None:
    generated_file(page("bucket-policy.md"), as_document())

"""The settings of a team: each is a field of `Team`, or of a table in it.

`holdfast_cdk.config` reads them, and checks what concerns more than one setting or team.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from holdfast import networks
from holdfast.s3.retention import MAX_DAYS
from holdfast_cdk.alarm_settings import AlarmSettings
from holdfast_cdk.domain_settings import DomainSettings
from holdfast_cdk.functions import FunctionSpec, RoleSpec
from holdfast_cdk.notify_settings import AuditArchive, Notify
from holdfast_cdk.regions import partitions
from holdfast_cdk.settings import (
    NamedTexts,
    Table,
    Texts,
    as_toml,
    document,
    flag,
    one_of,
    setting,
    settings_of,
    text,
    whole_number,
    word,
    word_of,
)

LOCAL_ACCOUNT = "000000000000"
"""The only account of the local AWS; no account of AWS has this number."""

_NEVER = "A changed value creates another stack, which has no states."
_STAY = "Holdfast does not move existing logs."
_TWO_DEPLOYMENTS = "Most [changes of `key`](keys.md#change-the-key) need two deployments."
_OLD_TOO = "The new value also applies to existing logs."

# The values that CloudWatch Logs accepts. CDK and botocore have them only in texts; a test compares them.
LOG_RETENTION_DAYS = (
    *(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180),
    *(365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653),
)

# S3's rules; the endings are reserved for its aliases and other kinds of buckets.
_BUCKET_NAME = re.compile(
    r"(?!xn--|sthree-|amzn-s3-demo-)(?!.*\.\.)(?![0-9]+\.[0-9]+\.[0-9]+\.[0-9]+$)"
    r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?<!-s3alias)(?<!--ol-s3)(?<!\.mrap)(?<!--x-s3)(?<!--table-s3)"
)


# An alias is no key: a bucket's policy compares keys, and an alias may lead to another one tomorrow.
KMS_KEY = re.compile(
    r"arn:(?P<partition>aws(-[a-z]+)*):kms:(?P<region>[a-z]+(-[a-z]+)+-[0-9]+):[0-9]{12}:key/"
    r"(mrk-[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})"
)
_KMS_KEY_WRITTEN = 'as in "arn:aws:kms:eu-central-1:123456789012:key/1a2b3c4d-1111-4222-8333-444455556666"'

ADMINISTRATOR = re.compile(
    r"arn:(?P<partition>aws(-[a-z]+)*):iam::(?P<account>[0-9]{12}):(role|user)(/[\w+=,.@-]+)+", re.ASCII
)

# The characters that all services with a stack's tags accept.
_TAG_KEY = re.compile(r"(?!(?i:aws:|holdfast:team$))[\w .:/=+@-]{1,128}")
_TAG_VALUE = re.compile(r"[\w .:/=+@-]{1,256}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long S3 Object Lock protects each state version that Holdfast writes."""

    mode: Literal["governance", "compliance"] = setting(
        word("governance", "compliance"),
        "With `governance`, only a principal that may bypass the retention can delete a protected version. "
        "While the stack exists, the bucket policy denies the bypass, so the principal must also be allowed "
        "to change this policy. With `compliance`, nobody can delete a protected version before its "
        "retention ends.",
    )
    days: int = setting(
        whole_number(1, MAX_DAYS), "S3 protects each version for this many days after it was written."
    )
    bucket_default: bool = setting(
        flag(),
        'S3 protects every new object, including locks, tokens and objects that `backend "s3"` writes.',
        default=False,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """When S3 removes old state versions."""

    days: int = setting(
        whole_number(1, 36500),
        "S3 can remove a version this many days after another version or a delete marker replaced it. The "
        "value must be at least `retention.days`.",
    )
    keep_versions: int = setting(
        whole_number(1, 100),
        "In addition to the current version of a state, S3 keeps this many of its newest earlier versions, "
        "whatever their age.",
        default=100,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttling:
    """The request limits of the API. The API responds with 429 above them, and Terraform usually retries."""

    rate: int = setting(
        whole_number(1, 10000), "Most routes accept this many requests a second.", default=100
    )
    burst: int = setting(whole_number(1, 5000), "Most routes accept this many requests at once.", default=200)


FEW_RATE, FEW_BURST = 10, 20
"""The same of each route that neither a sign-in nor an apply needs."""
FIND_RATE, FIND_BURST = 1, 2
"""The same of searches, each of which holds an execution of the function for some seconds."""

_WHOLE_VCPU = 1769
"""The megabytes at which a function has one vCPU; processor time is proportional to memory."""


def _megabytes(sentence: str) -> Any:
    return setting(whole_number(256, 10240), sentence, default=_WHOLE_VCPU)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The memory of the main functions, in megabytes."""

    backend: int = _megabytes('The memory of the function for `backend "http"`, in MB.')
    cloud: int = _megabytes(
        'The memory of the function for `cloud {}` and `backend "remote"`, in MB. It must be at least 128 '
        "plus 4 times `max_state_mb`."
    )
    management: int = _megabytes(
        "The memory of the function for the management API, in MB. It must be at least 128 plus 4 times "
        "`max_state_mb`."
    )
    authorizer: int = _megabytes(
        "The memory of the functions for [credentials and sessions](limits.md#memory-of-the-authorizer), in "
        "MB."
    )

    def of(self, spec: FunctionSpec) -> int:
        return spec.memory if isinstance(spec.memory, int) else int(getattr(self, spec.memory))


LARGEST_STATE_MB = 300
"""The most that `max_state_mb` allows.

A commit reads a state from S3 and writes it again, at an assumed 50 MB a second, and needs at most 8 ms of
processor time for each megabyte (measured). With 300 MB this takes 14.4 s. Then the lock is read again, and
requests to S3 begin within 15 s (`holdfast.s3.budget`).
"""


# The characters of addresses; the library says what is wrong with their order.
_NETWORK = re.compile("(?=.*[.:])[0-9A-Fa-f.:/]{2,60}")

ENVIRONMENT_BYTES = 4096
"""The most that AWS Lambda accepts as names and values of a function's variables."""
_OTHER_VARIABLES = 1096
"""Bytes for the other variables of the functions that get the networks; a test counts them."""
LONGEST_NETWORKS = ENVIRONMENT_BYTES - _OTHER_VARIABLES
"""The most characters of a team's networks, with a comma between two.

A bucket policy, of at most 20 KB, has room for more: a test makes the longest one.
"""


def _check_networks(texts: Sequence[str]) -> None:
    networks.check(texts)
    if (length := len(",".join(texts))) > LONGEST_NETWORKS:
        raise ValueError(
            f"the list is too long: joined with commas, it has {length} characters, but a Lambda function "
            f"has room for {LONGEST_NETWORKS}; write fewer or wider networks"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessLogs:
    """The destination of S3's server access logs."""

    bucket: str = setting(
        text('the name of a bucket, as in "acme-s3-logs"', _BUCKET_NAME.fullmatch),
        "The bucket must be in the account and region of the team, must have neither Object Lock nor a KMS "
        "key, and must [let S3 write]"
        "(https://docs.aws.amazon.com/AmazonS3/latest/userguide/enable-server-access-logging.html).",
    )
    prefix: str = setting(
        text(
            "at most 512 ASCII letters, digits, spaces and punctuation marks",
            re.compile("[ -~]{0,512}").fullmatch,
        ),
        "The keys of the log objects begin with this prefix.",
        default="",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """The replica of the state bucket."""

    region: str = setting(
        word_of('an AWS region in quotes, as in "eu-west-1"', partitions),
        "The region of the replica. It must not be the team's own region, and must be in the same partition "
        "and bootstrapped for CDK.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """A team; its name is part of the names of its stack, its bucket and its log groups."""

    name: str
    account: str | None = setting(
        text(
            'the 12 digits of an AWS account in quotes, as in "123456789012"',
            re.compile(f"(?!{LOCAL_ACCOUNT})[0-9]{{12}}").fullmatch,
        ),
        "The stack is in this AWS account.",
        deployed=_NEVER,
        unset="from your credentials",
        default=None,
    )
    region: str | None = setting(
        word_of('an AWS region in quotes, as in "eu-central-1"', partitions),
        "The stack is in this AWS region.",
        deployed=_NEVER,
        unset="from your credentials",
        default=None,
    )
    require_lock: bool = setting(
        flag(),
        'With `backend "http"`, a client can write a state only if it holds the state\'s lock. A client '
        "of `cloud {}` always needs the lock.",
        default=True,
    )
    new_states: Literal["any", "declared"] = setting(
        word("any", "declared"),
        "With `declared`, the API lets clients use a name that has no state only if the name [is declared]"
        "(../use/clients.md#names-that-must-be-declared).",
        default="any",
    )
    own_locks: Literal["named", "any", False] = setting(
        word("named", "any", False),
        "A `writer` may remove [a lock of the same principal](../use/access.md#own-locks) with clients whose "
        "requests name the lock (`named`), with every client (`any`), or not at all (`false`).",
        default="named",
    )
    native_clients: bool = setting(
        flag(),
        'The bucket policy also allows unconditional writes of states, which `backend "s3"` needs. Such a '
        "write can replace a newer version.",
        default=False,
    )
    max_state_mb: int = setting(
        whole_number(1, LARGEST_STATE_MB),
        "The largest state that `cloud {}` or a restore writes, in MB. A higher value may need [more "
        "`memory`](limits.md#states-through-cloud).",
        default=100,
    )
    retention: Retention | None = setting(
        Table(Retention, '{ mode = "governance", days = 30 }'),
        "S3 Object Lock protects each state version that Holdfast writes against deletion.",
        deployed="A version keeps the retention that was set when it was written.",
        unset="none",
        default=None,
    )
    history: History | None = setting(
        Table(History, "{ days = 365, keep_versions = 100 }"),
        "S3 removes old versions of states and locks, except the newest `keep_versions` of each.",
        deployed="S3 removes old versions for good, usually within two days, or when their retention ends.",
        unset="S3 keeps every version of a state",
        default=None,
    )
    key: str = setting(
        text(
            f'"kms", "s3" or the ARN of a KMS key, {_KMS_KEY_WRITTEN}',
            lambda key: key in ("kms", "s3") or KMS_KEY.fullmatch(key),
        ),
        "S3 encrypts new states, locks and records with this key: `kms` means the stack's own KMS key, `s3` "
        "means S3's own keys, and an ARN means [your key](keys.md).",
        deployed=_TWO_DEPLOYMENTS,
        default="kms",
    )
    previous_keys: tuple[str, ...] = setting(
        Texts(
            '["kms", "arn:aws:kms:…:key/…"]',
            text(
                f'"kms" or the ARN of a KMS key, {_KMS_KEY_WRITTEN}',
                lambda key: key == "kms" or KMS_KEY.fullmatch(key),
            ),
            most=5,
        ),
        "The functions may also use these keys, for example to read older versions.",
        deployed=_TWO_DEPLOYMENTS,
        unset="none",
        default=(),
    )
    key_administrators: tuple[str, ...] = setting(
        Texts(
            '["arn:aws:iam::123456789012:role/security"]',
            text(
                'the ARN of a role or a user, as in "arn:aws:iam::123456789012:role/security"',
                ADMINISTRATOR.fullmatch,
            ),
            most=10,
        ),
        "Only these roles and users, and CloudFormation in a deployment, can "
        "[administer](keys.md#administrators) the stack's KMS key.",
        unset="every principal that IAM allows",
        default=(),
    )
    replica: Replica | None = setting(
        Table(Replica, '{ region = "eu-west-1" }'),
        "S3 copies new versions and delete markers of states, of locks and of the records that a recovery "
        "needs to [a replica](recovery.md#prepare-a-replica). The setting requires `account` and "
        "`region`.",
        deployed="S3 does not copy the objects that the bucket already has.",
        unset="none",
        default=None,
    )
    access_logs: AccessLogs | None = setting(
        Table(AccessLogs, '{ bucket = "acme-s3-logs", prefix = "holdfast/" }'),
        "S3 writes the server access logs of the state bucket to this bucket.",
        deployed=_STAY,
        unset="the stack's own bucket",
        default=None,
    )
    log_retention: int = setting(
        one_of(LOG_RETENTION_DAYS),
        "CloudWatch keeps the logs, except the audit trail, for this many days. The stack's own bucket for "
        "S3 access logs keeps each log for the same time.",
        deployed=_OLD_TOO,
        default=90,
    )
    audit_retention: int = setting(
        one_of(LOG_RETENTION_DAYS),
        "CloudWatch keeps the audit trail for this many days.",
        deployed=_OLD_TOO,
        default=365,
    )
    audit_archive: AuditArchive | None = setting(
        Table(AuditArchive, "{ days = 365 }"),
        "[A bucket under Object Lock](audit.md#the-archive) also keeps the audit trail.",
        unset="none",
        default=None,
    )
    notify: Notify | None = setting(
        Table(Notify, '{ topic = "arn:aws:sns:eu-central-1:123456789012:holdfast" }'),
        "Holdfast [notifies an SNS topic of events](watching.md#notifications). AWS [charges for it]"
        "(cost.md#what-increases-the-bill).",
        unset="none",
        default=None,
    )
    throttling: Throttling = setting(
        Table(Throttling, as_toml(asdict(Throttling()))),
        "The limits of requests; some routes have [other limits](limits.md#limits-of-routes).",
        default=Throttling(),
    )
    memory: Memory = setting(
        Table(Memory, as_toml(asdict(Memory()))),
        f"The memory of the main functions in MB. {_WHOLE_VCPU} MB give a function one vCPU. A new AWS "
        "account may allow only 3008 MB.",
        default=Memory(),
    )
    keep_warm: bool = setting(
        flag(),
        "A schedule invokes the authorizer and the backend every five minutes. Then [fewer commands wait for "
        "a start](../understand/speed.md#cold-start).",
        default=True,
    )
    console: bool = setting(
        flag(),
        "The API serves [the console](console.md) at `/console/`, a page that shows the team's states.",
        default=True,
    )
    domain: DomainSettings | None = setting(
        Table(
            DomainSettings,
            '{ name = "states.example.com", certificate = "arn:aws:acm:eu-central-1:123456789012:certificate/'
            '1a2b3c4d-1111-4222-8333-444455556666" }',
        ),
        "The API has your domain name. The address that AWS gave the API is then disabled, unless "
        "`domain.keep_default_endpoint` is `true`.",
        deployed="With `domain.keep_default_endpoint = true`, the address that AWS gave the API keeps "
        "working while you [change the address of each client](networks.md#when-the-apis-address-changes). "
        "Otherwise, that address responds with `404`, and a plan without a lock may want to create "
        "everything.",
        unset="none",
        default=None,
    )
    watch: bool = setting(
        flag(),
        "A function checks hourly for [old locks and other findings](watching.md#watch), and writes metrics.",
        default=False,
    )
    alarms: AlarmSettings | None = setting(
        Table(
            AlarmSettings,
            '{ topic = "arn:aws:sns:eu-central-1:123456789012:operations" }',
        ),
        "CloudWatch has [alarms](watching.md#alarms) for the team. AWS [charges for them]"
        "(cost.md#what-increases-the-bill).",
        unset="none",
        default=None,
    )
    networks: tuple[str, ...] = setting(
        Texts(
            '["203.0.113.0/24", "198.51.100.0/24"]',
            values=text('a network in quotes, as in "203.0.113.0/24"', _NETWORK.fullmatch),
            most=LONGEST_NETWORKS // len("1.0.0.0/8,"),
            check=_check_networks,
        ),
        "The API accepts credentials, and S3 accepts presigned addresses, only [from these networks]"
        "(networks.md). IPv6 networks have no effect.",
        deployed="The first `cdk diff`, `cdk synth` or `cdk deploy` with a new list needs `-c address=` with "
        "your public address, to check that the list does not lock you out, or `-c address=elsewhere`.",
        unset="every address",
        default=(),
    )
    tags: Mapping[str, str] = setting(
        NamedTexts(
            '{ cost-center = "42" }',
            names=text(
                "1 to 128 letters, digits, spaces and . : / = + - @ _, which "
                'must not start with "aws:" and must not be "holdfast:team"',
                _TAG_KEY.fullmatch,
            ),
            # Most services accept an empty value, but CloudFormation does not.
            values=text(
                "1 to 256 letters, digits, spaces and . : / = + - @ _ in quotes", _TAG_VALUE.fullmatch
            ),
            # A stack has at most 50 tags, including holdfast:team.
            most=48,
        ),
        "Each resource of the stack that can have tags has these tags and `holdfast:team`.",
        unset="none",
        default_factory=dict,
    )

    @property
    def kms_keys(self) -> tuple[str, ...]:
        """Return the KMS keys that the functions may use, in an order that does not depend on `key`."""
        return tuple(sorted({self.key, *self.previous_keys} - {"s3"}))

    def has(self, spec: RoleSpec) -> bool:
        """Return whether the team has a function or a role."""
        return not spec.setting or bool(getattr(self, spec.setting))


for _table in (
    Team,
    *(one.kind.members for one, _ in settings_of(Team).values() if isinstance(one.kind, Table)),
):
    document(_table)

GONE: Final[Mapping[str, str]] = {
    "dynamodb_lock": 'Holdfast no longer keeps locks in a DynamoDB table. Clients of backend "s3" '
    "with use_lockfile share the locks of Holdfast (docs/start/moving.md). Remove the line",
    "snap_start": "Holdfast no longer uses Lambda SnapStart. Remove the line",
    "token_trail": "the audit trail now always has the changes of tokens and trust records. To record who "
    "reads them, use a CloudTrail trail of your own (docs/operate/audit.md). Remove the line",
}
"""The name of each setting of an earlier release -> what happens instead, and what to do."""

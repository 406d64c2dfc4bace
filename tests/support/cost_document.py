"""The text of `cost.md`: what a team's stack costs a month, by counted requests and AWS's prices.

Prices are in dollars.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from typing import Final

from holdfast.watching import NAMESPACE, Metric
from holdfast_cdk.alarm_settings import AlarmSettings
from holdfast_cdk.alarms import alarms_of
from holdfast_cdk.functions import FUNCTIONS
from holdfast_cdk.keep_warm import MINUTES
from holdfast_cdk.team_settings import FEW_RATE, Memory, Team, Throttling
from tests.support.request_budget import ACQUIRE, READ, RELEASE, WRITE

_RUNS: Final = (100, 1_000, 10_000)
_TEAMS: Final = 5
"""The teams in the example that compares a stack for each team with one stack for all."""

_INIT: Final = (READ, READ)
_PLAN: Final = (*_INIT, READ, ACQUIRE, READ, RELEASE)
_APPLY: Final = (*_INIT, READ, ACQUIRE, READ, WRITE, RELEASE)
"""Requests of Terraform 1.15.5, with those to S3 of each. Terraform 1.11.4 reads twice less."""
_VERIFY: Final = ("GET", "GET")
"""To S3, when a session is used: its record and the trust records."""
_SESSION: Final = ("GET", "PUT", *_VERIFY)
"""To S3, for a session: the ID token is verified, the session stored, and verified when it is used."""
CLOUD: Final = ((13, {"GET": 14, "PUT": 1}), (15, {"GET": 22, "PUT": 4}))
"""With `cloud {}`: requests to the API and to S3 of a plan and of an apply, each with `init` (`speed.md`).

The client's own two uploads to S3 are not among them in `speed.md`. `DELETE` counts as `GET`.
"""
_AUTHORIZED: Final = 2
"""Calls of the authorizer for each command: the ID token, then the session, cached for 60 seconds."""

_COLD_MS: Final = {"backend": 700, "authorizer": 500, "sessions": 500}
"""Processor time of a cold start and its request on a whole vCPU, rounded up (`limits.md`, benchmarks).

The session function's is as the authorizer's.
"""
_WARM_MS: Final = 100
_AND_ITS_AUDIT: Final = 2
"""Invocations for each of backend, session function and authorizer: the audit function copies its line."""
_AUDIT_MEGABYTES: Final = next(
    Team(name="team").memory.of(spec) for spec in FUNCTIONS if spec.name == "audit_trail"
)
_AUDIT_COLD_SECONDS: Final = 4.0
_AUDIT_WARM_SECONDS: Final = 0.3

_LOG_KB: Final = 3
"""In all log groups, for each request to the API; rounded up from lines of the local AWS."""
_S3_LOG_KB: Final = 1
_ACCESS_LOG_KB: Final = 0.43
"""The access log's line of a request that API Gateway refuses, with the shortest values."""
_FLOOD: Final = Throttling().rate
_FLOOD_OF_OPEN_ROUTES: Final = FEW_RATE
"""Requests a second that the default limits let through."""
_STATE_KB: Final = 100
LARGEST_FILE_KB: Final = 128
"""The largest file of the console, for a client that refuses compression."""

# US East (N. Virginia), first tier; the pages are those that the document links to.
_API_REQUEST: Final = 1.00 / 1_000_000
_INVOCATION: Final = 0.20 / 1_000_000
_PUT: Final = 0.005 / 1_000
_GET: Final = 0.0004 / 1_000
GB_SECOND: Final = 0.0000133334
_REQUESTS: Final = {"PUT": _PUT, "LIST": _PUT, "GET": _GET, "HEAD": _GET, "DELETE": 0.0}
"""S3's, by kind."""
_KEY: Final = 1.00
_KEY_REQUEST: Final = 0.03 / 10_000
_LOG_GB: Final = 0.50
_LOG_GB_MONTH: Final = 0.03
_S3_GB_MONTH: Final = 0.023
_OUT_GB: Final = 0.09
_ACROSS_REGIONS_GB: Final = 0.02
_ALARM_METRIC: Final = 0.10
_CUSTOM_METRIC: Final = 0.30
_REPLICATION_METRICS: Final = 4
"""Metrics of the rule of the states: latency, pending bytes, pending operations, failed operations."""
_WATCHED: Final = len(Metric) * _CUSTOM_METRIC
_WARM_UP_SECONDS: Final = 0.01
_WARM_UP_KB: Final = 0.5
"""Lambda's own lines in the log for each invocation, rounded up. The function writes none."""
_PROCESS_HOURS: Final = 2
"""The time after which Lambda ends a process in any case; its guide says "every few hours"."""
_KB_OF_A_GB: Final = 1024 * 1024
_DAYS_OF_A_MONTH: Final = 30
_SECONDS_OF_A_MONTH: Final = 730 * 3600


@dataclass(frozen=True, slots=True)
class Month:
    """Dollars for a month."""

    api: float
    functions: float
    s3: float
    kms: float
    logs: float
    out: float
    versions: float

    @property
    def total(self) -> float:
        """All of it, with the key and the warm-ups."""
        return _KEY + keep_warm_price() + sum(self.parts())

    def parts(self) -> tuple[float, ...]:
        """Return each amount but the key's, in the order of the table."""
        return astuple(self)


def month(runs: int) -> Month:
    """Compute what a team's stack costs in a month at the end of its first year.

    A run is a plan in one CI job and an apply in another, which both sign in.
    """
    team = Team(name="team")
    commands = (_PLAN, _APPLY)
    api = sum(1 + len(command) for command in commands)
    s3 = [method for command in commands for verb in (_SESSION, *command) for method in verb]
    logged = runs * api * _LOG_KB / _KB_OF_A_GB
    s3_logged = runs * len(s3) * _S3_LOG_KB / _KB_OF_A_GB
    reads = sum(command.count(READ) for command in commands)
    return Month(
        api=runs * api_price(api),
        functions=runs * sum(functions_price(len(command)) for command in commands),
        s3=runs * s3_price(Counter(s3)),
        kms=runs * kms_price(Counter(s3)),
        logs=logged * (_LOG_GB + _LOG_GB_MONTH * team.audit_retention / _DAYS_OF_A_MONTH)
        + s3_logged * _S3_GB_MONTH * team.log_retention / _DAYS_OF_A_MONTH,
        out=runs * reads * _STATE_KB / _KB_OF_A_GB * _OUT_GB,
        versions=12 * runs * _STATE_KB / _KB_OF_A_GB * _S3_GB_MONTH,
    )


def api_price(requests: int) -> float:
    return requests * _API_REQUEST


def functions_price(requests: int, *, session: bool = True) -> float:
    """Return what Lambda asks for a command, which signs in and finds every function cold.

    `requests` are to the API, the session's not among them. With `session` it signs in with an ID token and
    gets a session; otherwise with a stored token.
    """
    authorized = _AUTHORIZED if session else 1
    invocations = requests + session + authorized
    seconds = _gb_seconds(requests, authorized, Team(name="team").memory, session=session)
    return _AND_ITS_AUDIT * invocations * _INVOCATION + seconds * GB_SECOND


def s3_price(requests: Mapping[str, int]) -> float:
    return sum(count * _REQUESTS[kind] for kind, count in requests.items())


def kms_price(requests: Mapping[str, int]) -> float:
    """Return what KMS asks for the requests that S3 makes for others."""
    return (requests.get("PUT", 0) + requests.get("GET", 0)) * _KEY_REQUEST


def _seconds(processor_ms: float, megabytes: int) -> float:
    """Return what a request takes: below one vCPU, 1769 MB, its share is in proportion to the memory."""
    return (processor_ms / min(1, megabytes / 1769) + _WARM_MS) / 1000


def _gb_seconds(requests: int, authorized: int, memory: Memory, *, session: bool) -> float:
    """Return the GB-seconds of a command that finds every function cold."""
    cold = sum(
        _seconds(processor_ms, megabytes) * megabytes / 1024
        for processor_ms, megabytes in (
            (_COLD_MS["backend"], memory.backend),
            (_COLD_MS["authorizer"], memory.authorizer),
            *([(_COLD_MS["sessions"], memory.authorizer)] if session else []),
        )
    )
    warm = _WARM_MS / 1000 * ((requests - 1) * memory.backend + (authorized - 1) * memory.authorizer) / 1024
    audited = requests + session + authorized  # the first of them is the cold one
    audit = (_AUDIT_COLD_SECONDS + (audited - 1) * _AUDIT_WARM_SECONDS) * _AUDIT_MEGABYTES / 1024
    return cold + warm + audit


def _ten_minutes(memory: Memory) -> float:
    """Return what ten more minutes of an apply cost, without logs and versions.

    Terraform saves every 20 seconds, and API Gateway asks the authorizer every 60.
    """
    saved, verified = 30, 10
    requests = saved * WRITE + verified * _VERIFY
    s3_cost = sum(_PUT if method == "PUT" else _GET for method in requests) + len(requests) * _KEY_REQUEST
    warm = _WARM_MS / 1000 * (saved * memory.backend + verified * memory.authorizer)
    audit = (saved + verified) * _AUDIT_WARM_SECONDS * _AUDIT_MEGABYTES
    invocations = _AND_ITS_AUDIT * (saved + verified)
    return saved * _API_REQUEST + invocations * _INVOCATION + s3_cost + (warm + audit) / 1024 * GB_SECOND


def _operators(memory: Memory) -> float:
    """Return what a request to the management API costs whose function starts as the backend does."""
    seconds = _seconds(_COLD_MS["backend"], memory.management)
    audit = _AUDIT_COLD_SECONDS * _AUDIT_MEGABYTES
    billed = (seconds * memory.management + audit) / 1024 * GB_SECOND
    return _API_REQUEST + _AND_ITS_AUDIT * _INVOCATION + billed


def cloud_cents() -> float:
    """Return what 100 runs cost with `cloud {}`, in a CI job whose ID token is its token; without the key."""
    http = month(100)
    s3_requests = sum((Counter(s3) for _, s3 in CLOUD), Counter[str]())
    api = sum(requests for requests, _ in CLOUD)
    logs = http.logs * api / sum(1 + len(command) for command in (_PLAN, _APPLY))
    functions = sum(functions_price(requests, session=False) for requests, _ in CLOUD)
    requests = api_price(api) + functions + s3_price(s3_requests) + kms_price(s3_requests)
    return 100 * (100 * requests + logs + http.out + http.versions)


def _flood(
    rate: int,
    *,
    billed: bool = True,
    megabytes: int = 0,
    logged_kb: float = _ACCESS_LOG_KB,
    s3: Mapping[str, int] | None = None,
    out_kb: float = 0,
) -> float:
    """Return what `rate` requests a second cost in a month, without the audit function.

    Args:
        billed: whether API Gateway bills the requests.
        megabytes: the memory of the function that each request invokes; 0 if it invokes none.
        s3: the requests of that function to S3.
        out_kb: the size of its response, if that is not small.
    """
    invoked = _INVOCATION + _WARM_MS / 1000 * megabytes / 1024 * GB_SECOND if megabytes else 0
    logged = logged_kb / _KB_OF_A_GB * _LOG_GB
    out = out_kb / _KB_OF_A_GB * _OUT_GB
    return rate * _SECONDS_OF_A_MONTH * (billed * _API_REQUEST + invoked + logged + s3_price(s3 or {}) + out)


def _floods(memory: Memory) -> str:
    """Return the cell about requests that a stranger sends all the time."""
    health, console = (memory.of(spec) for spec in FUNCTIONS if spec.name in ("health", "console"))
    files = _flood(_FLOOD_OF_OPEN_ROUTES, megabytes=console, out_kb=LARGEST_FILE_KB)
    unknown = _flood(_FLOOD, megabytes=memory.authorizer, logged_kb=_LOG_KB, s3={"GET": 1})
    refused = _flood(_FLOOD, billed=False)
    return (
        f"{unknown:,.0f} dollars with unknown tokens, at {_FLOOD} requests a second; the function "
        f"`audit_trail` costs extra. {refused:.0f} dollars "
        f"without credentials, at the same rate, and {_flood(_FLOOD) - refused:.0f} dollars more [if AWS "
        "bills these requests](../understand/status.md#not-documented-by-aws). "
        f"{_flood(_FLOOD_OF_OPEN_ROUTES, megabytes=health):.0f} dollars for `/health`, and {files:.0f} "
        f"dollars for files of the console, at {_FLOOD_OF_OPEN_ROUTES} requests a second"
    )


def alarms_price(team: Team) -> float:
    """Return the price of a team's alarms and of the metrics that exist for them."""
    named = {spec.name: spec.name for spec in FUNCTIONS if team.has(spec)}
    metrics = [metric for alarm in alarms_of(team, "", named) for metric in alarm.metrics]
    own = [metric for metric in metrics if metric.namespace == NAMESPACE]
    return len(metrics) * _ALARM_METRIC + len(own) * _CUSTOM_METRIC


def keep_warm_price() -> float:
    """Return what the warm-ups of a month cost: invocations, starts, Lambda's lines in the log."""
    team, hours = Team(name="team"), 24 * _DAYS_OF_A_MONTH
    calls, starts = hours * 60 / MINUTES, hours / _PROCESS_HOURS
    price = 0.0
    for spec in (spec for spec in FUNCTIONS if spec.kept_warm):
        megabytes = team.memory.of(spec)
        seconds = calls * _WARM_UP_SECONDS + starts * _seconds(_COLD_MS[spec.name], megabytes)
        price += calls * (_INVOCATION + _WARM_UP_KB / _KB_OF_A_GB * _LOG_GB)
        price += seconds * megabytes / 1024 * GB_SECOND
    return price


def _watch_price() -> float:
    """Return what the hourly looks of a month cost, which find each function cold, and of their metrics."""
    (megabytes,) = (Team(name="team").memory.of(spec) for spec in FUNCTIONS if spec.name == "watch")
    looking = _INVOCATION + _seconds(_COLD_MS["backend"], megabytes) * megabytes / 1024 * GB_SECOND
    probing = api_price(2) + functions_price(2, session=False) + s3_price(Counter((*ACQUIRE, *RELEASE)))
    return _WATCHED + 24 * _DAYS_OF_A_MONTH * (looking + probing)


def cents() -> float:
    """Return what 100 runs cost, without the key."""
    return sum(month(100).parts()) * 100


def _replication(runs: int) -> float:
    """Return what S3 and KMS bill for copies of the locks and states of runs, without their storage."""
    copies = runs * sum(verb.count("PUT") for command in (_PLAN, _APPLY) for verb in command)
    copied = runs * _STATE_KB / _KB_OF_A_GB
    return copies * (_PUT + 2 * _KEY_REQUEST) + copied * _ACROSS_REGIONS_GB


def dollars(amount: float) -> str:
    """Write an amount as the document does.

    >>> dollars(1.234), dollars(0.004)
    ('1.23', '< 0.01')
    """
    return f"{amount:.2f}" if amount >= 0.005 else "< 0.01"


def document() -> str:
    team = Team(name="team")
    memory = team.memory
    topic = "arn:aws:sns:us-east-1:123456789012:operations"
    alarmed = replace(team, watch=True, alarms=AlarmSettings(topic=topic))
    plan, apply = (sum(map(len, command)) for command in (_PLAN, _APPLY))
    table = "\n".join(_table())
    backend, authorizer, sessions = _COLD_MS.values()
    idle = _KEY + keep_warm_price()
    return f"""\
# What it costs

<!-- Generated from tests/support/cost_document.py by `make generated`: change it there. -->

For people who pay for a team's stack. This page helps to estimate the bill, and lists what increases it.

In the first year, a team's stack costs {idle:.2f} dollars a month without any run, mostly
for its KMS key. Every 100 runs cost about {cents():.1f} cents more. A run is a `plan` and an `apply` over
`backend "http"`. The amounts on this page are **computed** from AWS's prices. They do not come from a bill.

{table}

![Dollars a month by runs a month, on logarithmic scales](cost.svg)

- **The amounts in the table** are US dollars a month, with the default settings. "Together" includes the key
  and `keep_warm`.
- **Prices** are the prices of US East (N. Virginia), first tier, in November 2026:
  [API Gateway](https://aws.amazon.com/api-gateway/pricing/),
  [Lambda](https://aws.amazon.com/lambda/pricing/) on arm64, [S3](https://aws.amazon.com/s3/pricing/),
  [KMS](https://aws.amazon.com/kms/pricing/), [CloudWatch](https://aws.amazon.com/cloudwatch/pricing/).
  AWS's free tier is not subtracted.
- **The key** costs three dollars a month from the third year on: KMS rotates the key every year, and each of
  the first two rotations adds one dollar. With `key = "s3"`, the team needs no key.

## What is counted

| Part | Assumption |
| --- | --- |
| plan, apply | each runs in its own CI job, which creates a session with an ID token, and first runs `init` \
(Terraform 1.15.5) |
| requests to the API | {len(_PLAN)} for a plan, {len(_APPLY)} for an apply, 1 for a session |
| [requests to S3](../understand/speed.md#requests-of-each-verb) | {plan} for a plan, {apply} for an apply, \
{len(_SESSION)} for a session; `DELETE` is free |
| functions | the functions have the default `memory`. Each command causes a cold start of each function \
that it uses, and {_AUTHORIZED} calls of the authorizer. The function `audit_trail` runs once for each \
request and once for each call of the authorizer |
| cold start | {backend} ms of processor time for the backend, {authorizer} ms for the authorizer and \
{sessions} ms for the session function; {_AUDIT_COLD_SECONDS} s of elapsed time for `audit_trail`, which has \
{_AUDIT_MEGABYTES} MB |
| each call of a function | {_WARM_MS} ms, in addition to a cold start; a call of a warm `audit_trail` takes \
{_AUDIT_WARM_SECONDS} s |
| requests to KMS | one for each `GET` and `PUT` request to S3; in fact, S3 sends fewer requests to KMS, \
because it uses an S3 Bucket Key |
| logs | {_LOG_KB} KB for each request to the API, kept for {team.audit_retention} days; \
{_S3_LOG_KB} KB for each request to S3, kept for {team.log_retention} days |
| data out | {_PLAN.count(READ)} reads for each command, {_STATE_KB} KB each, to the internet |
| versions | each run writes a version of {_STATE_KB} KB, and S3 keeps all versions; the amounts are for the \
last month of the first year |

## What increases the bill

| What | Costs |
| --- | --- |
| several teams | each stack has its own functions, and by default its own key. Without any run, \
{_TEAMS} stacks cost {_TEAMS * idle:.2f} dollars a month. If {_TEAMS} teams share one stack, and each team \
has its own [scope](../use/access.md#scopes), the stack costs {idle:.2f} dollars. A run costs the same in \
both cases. The amounts of `alarms`, `notify`, `watch` and `replica` below are for each stack that has the \
setting |
| `keep_warm = true`, the default | {keep_warm_price():.2f} dollars a month, even without requests |
| `cloud {{}}` | {cloud_cents():.1f} cents for 100 runs, which send [more requests](../understand/speed.md) \
than with `backend "http"` |
| versions | {_S3_GB_MONTH} dollars a month for each GB; [`history`](settings.md) removes old versions |
| a larger state | "Data out" and "Versions" grow with the state; API Gateway bills each 512 KB \
of a request or response as one request |
| operators' commands | {1_000 * _operators(memory):.2f} dollars for 1,000 requests, each with a \
cold start; the requests to S3 cost extra |
| a long apply | {_ten_minutes(memory):.4f} dollars for each ten minutes; logs and versions cost extra |
| `log_retention`, `audit_retention` | {_LOG_GB_MONTH} dollars a month for each GB in CloudWatch Logs, and \
{_S3_GB_MONTH} dollars a month for each GB of S3 access logs |
| `alarms` | {alarms_price(replace(alarmed, watch=False)):.2f} dollars a month, \
{alarms_price(alarmed):.2f} dollars with `watch` |
| `notify` | {_CUSTOM_METRIC + _ALARM_METRIC:.2f} dollars a month, \
and the price of [SNS](https://aws.amazon.com/sns/pricing/) messages |
| `watch` | {_watch_price():.2f} dollars a month, including its [probe](watching.md). This amount includes \
{_WATCHED:.2f} dollars for metrics. The amount of `alarms` with `watch` includes the same metrics. \
The requests to S3 cost extra: 720 a month for each 1,000 states, 720 for each lock and 720 for each token |
| `replica` | {_KEY:.2f} dollar a month for its key, {_replication(1_000):.2f} dollars for 1,000 runs, \
and the storage of each version a second time. With `notify`, S3 needs metrics to report a failed copy. \
These metrics cost {_REPLICATION_METRICS * _CUSTOM_METRIC:.2f} dollars a month more, unless \
`notify.events` omits `replica.failed` |
| `audit_archive` | at most {1_000 * _PUT:.3f} dollars for 1,000 events, and the storage of the events in S3 |
| a stranger who sends requests to one route, at its limit, for a month | {_floods(memory)} |
| AWS Config, GuardDuty or a trail of S3 data events, if the account uses them | these services also bill \
for what Holdfast does: for example, 0.003 dollars for each resource that a deployment changes, \
4 dollars for a million calls to KMS, and 0.10 dollars for 100,000 requests to S3 |
"""


def _table() -> Iterator[str]:
    yield (
        "| Runs a month | API Gateway | Lambda | S3 requests | KMS requests | Logs | Data out | Versions "
        "| Together |"
    )
    yield "|" + " --- |" * 9
    for runs in _RUNS:
        spent = month(runs)
        cells = map(dollars, spent.parts())
        yield f"| {runs:,} | {' | '.join(cells)} | **{spent.total:.2f}** |"

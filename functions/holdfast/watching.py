"""Find what somebody should look at in a team's bucket, from lists, locks and token records.

No state is read: a list has the size and the time of each. A freeze is a lock with a mark, so each lock is
read, up to a bound. Trust records do not end, so they are not read either.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from secrets import token_hex
from typing import Final

from holdfast import at_once, json_object, names
from holdfast.access import ANOTHER_PROGRAM, Grant, Role
from holdfast.identity import records, tokens
from holdfast.identity.credentials import TokenCredentials
from holdfast.identity.tokens import Token
from holdfast.names import LOCKS, RESERVED, STATES, StateName
from holdfast.notification import MOST
from holdfast.s3.objects import ListedKey
from holdfast.s3.store import Store
from holdfast.state import held
from holdfast.state.held import HeldLock
from holdfast.team import LAMBDA_PAYLOAD

NAMESPACE: Final = "Holdfast"
DIMENSION: Final = "Team"
"""The dimension of each metric; its value is the team's name."""
OLD: Final = timedelta(hours=1)
"""The age from which a lock is a finding, without the setting `alarms.oldest_lock`."""
LARGE: Final = LAMBDA_PAYLOAD * 7 // 10
"""Bytes from which a state nears the limit of `backend "http"`. A state above the limit does not use it."""
ENDS_SOON: Final = timedelta(days=14)
"""The time before the end of a token in which it is a finding, unless it was made for a shorter time."""

MOST_LOCKS: Final = 3_000
"""The most locks and freezes that a look reads, so that it ends before the function does."""

_PROBES: Final = f"{RESERVED}/{'0' * 16}"

SECRETS: Final = "watch/"
"""The prefix of the objects with the probe's credentials, which the bucket policy lets one function read."""

_DAILY_HOUR: Final = 6
"""The hour, in UTC, whose look sends every finding."""
_NEW: Final = timedelta(hours=1, minutes=5)
"""The age up to which a finding is new. Looks are not exactly an hour apart: twice is better than never."""
_TOKENS: Final = tokens.token_key("").removesuffix(".json")


class Metric(StrEnum):
    """The metrics that a look writes, each of which AWS bills."""

    OLDEST_LOCK = "OldestLockSeconds"
    PROBE_FAILED = "ProbeFailed"
    ATTENTION = "Attention"


class Kind(StrEnum):
    """The kinds of findings, as the events of their messages."""

    LOCK_HELD = "watch.lock_held"
    LOCKS_UNREAD = "watch.locks_unread"
    STATE_LARGE = "watch.state_large"
    TOKEN_ENDS = "watch.token_ends"  # noqa: S105 the name of an event
    PROBE_ENDS = "watch.probe_ends"
    PROBE_ENDED = "watch.probe_ended"
    PROBE_FAILED = "watch.probe_failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that somebody should look at.

    Attributes:
        fields: what was found, for a message; somebody may have typed the values.
        text: the same in one sentence, with the same care.
        do: the command that shows more or helps, without anybody's text.
        since: when it began to be a finding; None if that is not known, and then it always counts as new.
    """

    kind: Kind
    fields: Mapping[str, object]
    text: str
    do: str
    since: datetime | None

    def is_due(self, now: datetime) -> bool:
        """Return whether this look sends the finding: it is new, or it is the look of the day."""
        return self.since is None or now - self.since <= _NEW or now.hour == _DAILY_HOUR


@dataclass(frozen=True, slots=True)
class Seen:
    """The result of a look.

    Attributes:
        locks: held locks by their states, without freezes, the oldest first.
        frozen: the number of frozen states.
        large: states near the limit of `backend "http"`.
        tokens: the valid tokens that end, without the probe's; sorted by their ends.
        enabled: whether the probe has credentials.
        probe: the valid token of the newest of them, or None.
        unread: the number of locks and freezes that were not read, because there are too many.
        unread_since: the time of the oldest of them; None without such a lock.
    """

    locks: Sequence[tuple[StateName, HeldLock]]
    frozen: int
    large: Sequence[tuple[StateName, ListedKey]]
    tokens: Sequence[Token]
    enabled: bool
    probe: Token | None
    unread: int = 0
    unread_since: datetime | None = None

    @property
    def oldest_lock(self) -> int:
        """The age of the oldest lock in seconds, by S3's clock; 0 without a lock."""
        return max((int(_age(lock).total_seconds()) for _, lock in self.locks), default=0)


def look(store: Store, now: datetime) -> Seen:
    """Look at a bucket: one request for each thousand keys, one for each token, and one for each lock.

    Of the locks it reads the oldest `MOST_LOCKS`, because one writer can hold any number of them.
    """
    all_locks, large = [], []
    for entry in _listed(store, LOCKS.prefix):
        if name := LOCKS.name(entry.key):
            all_locks.append((entry.last_modified, name))
        elif (name := STATES.name(entry.key)) and LARGE <= entry.size <= LAMBDA_PAYLOAD:
            large.append((name, entry))
    all_locks.sort(key=lambda listed: listed[0])
    locked, unread = [name for _, name in all_locks[:MOST_LOCKS]], all_locks[MOST_LOCKS:]
    read = zip(locked, at_once.results(lambda name: held.read(store, name), locked), strict=True)
    locks = [(name, lock) for name, lock in read if lock]
    valid = [token for token in _tokens(store) if token.status(now) == "active"]
    newest = _newest_secret(store)
    others = [token for token in valid if not is_probes(token)]
    return Seen(
        locks=sorted(
            ((name, lock) for name, lock in locks if lock.freeze is None), key=lambda pair: -_age(pair[1])
        ),
        frozen=sum(lock.freeze is not None for _, lock in locks),
        large=large,
        tokens=sorted((token for token in others if token.expires), key=_last),
        enabled=newest is not None,
        probe=next((token for token in valid if secret_key(token.id) == newest), None),
        unread=len(unread),
        unread_since=unread[0][0] if unread else None,
    )


def findings(
    seen: Seen, team: str, now: datetime, *, old: timedelta = OLD, failed: str = ""
) -> list[Finding]:
    """Return what somebody should look at, first what is about the watch itself.

    Args:
        old: the age from which a lock is a finding.
        failed: why the probe failed; empty if it did not, or was not made.
    """
    all_findings = []
    if failed:
        text = f"The probe, the hourly test of the API, failed: {failed}."
        all_findings.append(
            Finding(Kind.PROBE_FAILED, {"why": failed}, text, f"holdfast doctor --team {team}", None)
        )
    if seen.probe and _ends_soon(seen.probe, now):
        all_findings.append(_probe_ends(seen.probe, team))
    elif seen.enabled and not seen.probe:
        text = "The token of the probe, the hourly test of the API, has expired or was revoked."
        all_findings.append(Finding(Kind.PROBE_ENDED, {}, text, f"holdfast watch enable --team {team}", None))
    if seen.unread_since:
        all_findings.append(_unread(seen.unread, seen.unread_since))
    all_findings += [_ends(token, team) for token in seen.tokens if _ends_soon(token, now)]
    all_findings += [_large(name, entry) for name, entry in seen.large]
    all_findings += [_held(name, lock, old) for name, lock in seen.locks if _age(lock) >= old]
    return all_findings


def due(found: Sequence[Finding], now: datetime) -> list[tuple[Finding, int]]:
    """Return the findings that a look sends, at most `MOST` of a kind.

    Beside each is how many others of its kind are left out; only the last of a kind has any.
    """
    kinds: dict[Kind, list[Finding]] = {}
    for finding in found:
        if finding.is_due(now):
            kinds.setdefault(finding.kind, []).append(finding)
    sent = []
    for of_kind in kinds.values():
        *first, last = of_kind[:MOST]
        sent += [*((finding, 0) for finding in first), (last, max(len(of_kind) - MOST, 0))]
    return sent


def secret_key(token_id: str) -> str:
    """Return the key of the object with a probe's credentials. No key is written twice."""
    return f"{SECRETS}{token_id}.json"


def new_probe() -> StateName:
    """Return a state whose lock a probe acquires and releases; lists, freezes, declared names leave it out.

    Each token has its own, because nobody else may release the lock that a killed probe left.
    """
    return StateName(f"{_PROBES}{token_hex(8)}")


def probe_grants(state: StateName) -> tuple[Grant, ...]:
    return (Grant(Role.WRITER, (state.value,)),)


def is_probes(token: Token) -> bool:
    """Return whether a token is the probe's. Its grants identify it: no other token has such grants."""
    pattern = token.grants[0].scope[0]
    return pattern.startswith(_PROBES) and token.grants == probe_grants(StateName(pattern))


@dataclass(frozen=True, slots=True)
class Probe:
    """The credentials of a probe, and the state whose lock they may acquire."""

    credentials: TokenCredentials
    state: StateName


def secret(token_id: str, value: str, state: StateName) -> bytes:
    """Return the object with a probe's credentials."""
    return json.dumps({"schema": 1, "id": token_id, "secret": value, "state": state.value}).encode()


def read_secret(store: Store) -> Probe | None:
    """Return the newest credentials of the probe, or None.

    Raises:
        ValueError: the object is damaged, or of a later version.
    """
    newest = _newest_secret(store)
    stored = store.read(newest) if newest else None
    if stored is None:
        return None
    try:
        document = json_object.parse(stored.body)
        if document["schema"] != 1:
            raise ValueError("was written by a later version")
        credentials = TokenCredentials(records.text(document["id"]), records.text(document["secret"]))
        return Probe(credentials, names.parse(records.text(document["state"])))
    except (KeyError, TypeError) as error:
        raise ValueError(f"the probe's credentials cannot be read: {error!r}") from error


def _newest_secret(store: Store) -> str | None:
    newest = max(_listed(store, SECRETS), key=lambda entry: entry.last_modified, default=None)
    return newest.key if newest else None


def attention(findings: Iterable[Finding]) -> int:
    """Return how many findings need somebody and have no metric of their own, as locks and the probe have."""
    return sum(finding.kind not in (Kind.LOCK_HELD, Kind.PROBE_FAILED) for finding in findings)


def metrics(team: str, values: Mapping[Metric, float]) -> dict[str, object]:
    """Return the arguments of PutMetricData."""
    dimensions = [{"Name": DIMENSION, "Value": team}]
    data = [
        {"MetricName": name.value, "Dimensions": dimensions, "Value": value, "Unit": _unit(name)}
        for name, value in values.items()
    ]
    return {"Namespace": NAMESPACE, "MetricData": data}


def _unit(name: Metric) -> str:
    return "Seconds" if name is Metric.OLDEST_LOCK else "Count"


def _held(name: StateName, lock: HeldLock, old: timedelta) -> Finding:
    taken = lock.version.last_modified
    fields = {
        "state": name,
        "held_by": lock.principal or ANOTHER_PROGRAM,
        **({"owner": lock.owner} if lock.owner else {}),
        **({"who": lock.info.who} if lock.info.who else {}),
        "lock_id": lock.info.id,
        "since": _written(taken),
    }
    text = f"The state {name} has been locked since {_written(taken)} by {lock.holder}."
    return Finding(Kind.LOCK_HELD, fields, text, f"holdfast lock show {name}", taken + old)


def _unread(count: int, since: datetime) -> Finding:
    text = (
        f"This check read only the {MOST_LOCKS:,} oldest locks and freezes. Number of locks and freezes that "
        f"it did not read: {count:,}. The oldest of these is from {_written(since)}."
    )
    fields = {"read": MOST_LOCKS, "unread": count, "unread_since": _written(since)}
    return Finding(Kind.LOCKS_UNREAD, fields, text, "holdfast lock list", since)


def _large(name: StateName, entry: ListedKey) -> Finding:
    percent = entry.size * 100 // LAMBDA_PAYLOAD
    text = f'The state {name} has reached {percent} % of the largest size for `backend "http"`.'
    fields = {"state": name, "bytes": entry.size, "percent": percent}
    return Finding(Kind.STATE_LARGE, fields, text, f"holdfast state resources {name}", entry.last_modified)


def _ends(token: Token, team: str) -> Finding:
    fields = {"token": token.id, "description": token.description, "owner": token.owner}
    described = f"Its description: {token.description}." if token.description else "It has no description."
    return Finding(
        Kind.TOKEN_ENDS,
        {**fields, "ends": _end(token)},
        f"The token {token.id} expires on {_end(token)}. {described}",
        f"holdfast token rotate {token.id} --team {team}",
        _began(token),
    )


def _probe_ends(token: Token, team: str) -> Finding:
    text = f"The token {token.id} of the probe, the hourly test of the API, expires on {_end(token)}."
    fields = {"token": token.id, "ends": _end(token)}
    return Finding(Kind.PROBE_ENDS, fields, text, f"holdfast watch enable --team {team}", _began(token))


def _ends_soon(token: Token, now: datetime) -> bool:
    span, began = tokens.lifetime(token), _began(token)
    return span is not None and span > ENDS_SOON and began is not None and began <= now


def _last(token: Token) -> datetime:
    return token.expires or datetime.max.replace(tzinfo=UTC)


def _began(token: Token) -> datetime | None:
    return token.expires - ENDS_SOON if token.expires else None


def _end(token: Token) -> str:
    return _written(token.expires) if token.expires else "never"


def _written(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M} UTC"


def _age(lock: HeldLock) -> timedelta:
    return lock.read_at - lock.version.last_modified


def _listed(store: Store, prefix: str) -> Iterator[ListedKey]:
    after: str | None = ""
    while after is not None:
        page = store.keys_page(prefix, after=after)
        yield from page.keys
        after = page.last


def _tokens(store: Store) -> Iterator[Token]:
    """Yield the readable tokens; `holdfast token list` names the others."""
    keys = [entry.key for entry in _listed(store, _TOKENS)]
    for stored in at_once.results(store.read, keys):
        with suppress(ValueError):
            if stored:
                yield Token.from_json(stored.body)

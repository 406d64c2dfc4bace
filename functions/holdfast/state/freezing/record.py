"""The record of frozen patterns, which refuses the creation of states.

States that exist, and names that are locked, are frozen one by one, by locks. A record of all frozen patterns
refuses what begins a state: `require_not_frozen` reads it wherever a verb finds no state.

A freeze writes the record first, and then lists locks and states. A first write whose lock is not in the list
acquired it after the record, and finds the record. A first write whose lock is older than the record may have
created everything already, so it is not refused: its lock is listed, and is waited for.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from holdfast import json_object, timestamp
from holdfast.access import Caller, called, check_pattern, matches
from holdfast.errors import Frozen, UnreadableRecord
from holdfast.names import FROZEN_PATTERNS
from holdfast.s3.objects import IfAbsent, IfMatch, Object, Stored
from holdfast.s3.store import Store
from holdfast.state import held, lock_info
from holdfast.state.held import CommandLock, Freeze, HeldLock
from holdfast.work import Work

_SCHEMA: Final = 1


@dataclass(frozen=True, slots=True)
class PatternFreeze:
    """A frozen pattern.

    Attributes:
        by: the principal who froze it.
        since: when S3 stored the first record with it; None if it is not stored yet.
        owner: the person in the credentials of `by`, as for a lock: only shown, never compared.
    """

    pattern: str
    freeze: Freeze
    by: str
    since: datetime | None
    owner: str = field(default="", compare=False)

    def has_ended(self, now: datetime) -> bool:
        return self.freeze.until is not None and self.freeze.until <= now

    def to_json(self) -> Mapping[str, str | None]:
        times = {"until": self.freeze.until, "since": self.since}
        return {
            "pattern": self.pattern,
            "id": self.freeze.id,
            "reason": self.freeze.reason,
            "by": self.by,
            "owner": self.owner,
            **{name: at.astimezone(UTC).isoformat() if at else None for name, at in times.items()},
        }

    def refusal(self) -> Frozen:
        freeze = self.freeze
        by = called(self.by, self.owner)
        info = lock_info.of_freeze(freeze.id, freeze.reason, freeze.until, self.by)
        holder = info.for_refused(self.by, self.owner)
        if self.since:
            holder["Created"] = timestamp.write(self.since)
        ends = f" The freeze ends at {timestamp.write(freeze.until)}." if freeze.until else ""
        return Frozen(
            holder,
            f"The pattern {self.pattern} is frozen by {by}: {freeze.reason}. No state whose name matches the "
            f"pattern can be created.{ends} A maintainer can lift the freeze with 'holdfast state unfreeze' "
            "and this pattern.",
            held_by=self.by,
        )


def require_not_frozen(work: Work) -> None:
    """Raise `Frozen` if a name that has no state matches a frozen pattern, with one request.

    The caller's lock that is older than the record is no reason to refuse; reading it takes one request more.
    S3's times are in whole seconds: a lock of the same second counts as younger.
    """
    if work.name.is_probe:
        return
    stored = work.store.read(FROZEN_PATTERNS)
    if stored is None:
        return
    for entry in entries(stored):
        if not matches(entry.pattern, work.name) or entry.has_ended(stored.read_at):
            continue
        if not _is_older(held.read(work.store, work.name), entry, work.caller):
            raise entry.refusal()


def replace(store: Store, before: Object | None, freezes: Iterable[PatternFreeze]) -> bool:
    """Replace the record, and return whether it was as before. A new pattern has the time of the object."""
    document = {"schema": _SCHEMA, "freezes": [freeze.to_json() for freeze in freezes]}
    condition = IfMatch(before.version.etag) if before else IfAbsent()
    stored = store.write(FROZEN_PATTERNS, json.dumps(document).encode(), condition, metadata={})
    return isinstance(stored, Stored)


def entries(stored: Object | None) -> Sequence[PatternFreeze]:
    """Parse the record.

    Raises:
        UnreadableRecord: something in it is not understood, so it may freeze any name.
    """
    if stored is None:
        return []
    try:
        document: Mapping[str, Any] = json_object.parse(stored.body)
        _check_schema(document)
        return [_entry(entry, stored.version.last_modified) for entry in document["freezes"]]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UnreadableRecord(
            f"Holdfast cannot read the frozen patterns, which are in the object {FROZEN_PATTERNS} in the "
            "bucket, so no state can be created. If a newer release of Holdfast wrote the object, deploy "
            "that "
            "release. Otherwise, delete the object. This lifts the freezes of all patterns; S3 keeps the "
            "earlier versions of the object."
        ) from error


def _check_schema(document: Mapping[str, Any]) -> None:
    if document["schema"] != _SCHEMA:
        raise ValueError("was written by a later version")


def _entry(document: Mapping[str, Any], stored: datetime) -> PatternFreeze:
    until, since = (
        timestamp.parse(document[name]) if document[name] is not None else None for name in ("until", "since")
    )
    texts = [*(document[name] for name in ("pattern", "id", "reason", "by")), document.get("owner", "")]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("has a value that is not a string")
    pattern, freeze_id, reason, by, owner = texts
    freeze = Freeze(freeze_id, reason, until)
    return PatternFreeze(check_pattern(pattern), freeze, by, since or stored, owner)


def _is_older(lock: HeldLock | None, frozen: PatternFreeze, caller: Caller) -> bool:
    """Return whether a lock is the caller's, and was acquired before a pattern was frozen."""
    if not isinstance(lock, CommandLock) or lock.principal != caller.principal:
        return False
    return frozen.since is not None and lock.version.last_modified < frozen.since

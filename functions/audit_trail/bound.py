"""Bound how many messages one caller causes, and count the events that get none.

The events of a burst arrive in many deliveries, so a bound for each delivery would bound nothing. The count
is kept in the memory of the process and in no other place, because the audit log has every event anyway. A
process that ends loses its count, and a second process has its own.

The bound is for a kind of event and a caller. So nobody can hide another caller's event behind many events.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from holdfast.audit import Event
from holdfast.notification import MOST

_HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Told:
    """An event that gets a message.

    Attributes:
        others: how many events of the same kind and caller got none since the message before.
        is_full: whether further ones of this hour are counted.
    """

    event: Mapping[str, Any]
    others: int = 0
    is_full: bool = False


@dataclass(slots=True)
class _Counted:
    """The events of a kind and a caller since the first of them.

    Attributes:
        ends: the time at which the hour ends.
        told_at: the next number of events, beyond `MOST`, at which one gets a message.
        last: the last event without a message.
    """

    ends: float
    events: int = 0
    others: int = 0
    told_at: int = MOST * 2
    last: Mapping[str, Any] | None = None


class Bound:
    """The events of the last hour, by kind and caller."""

    def __init__(self) -> None:
        self._counted: dict[tuple[object, object], _Counted] = {}

    def due(self, events: Sequence[Mapping[str, Any]], now: float) -> list[Told]:
        """Return the events that get a message.

        In an hour these are the first `MOST` of a kind and a caller, then the one at twice that number, at
        four times, and so on. After the hour the last event that got no message gets one.

        Args:
            now: the time in seconds, by a clock that never goes back.
        """
        return [*self._ended(now), *(told for event in events if (told := self._count(event, now)))]

    def _ended(self, now: float) -> Iterator[Told]:
        for key, counted in list(self._counted.items()):
            if counted.ends <= now:
                del self._counted[key]
                if counted.last:
                    yield Told(counted.last, counted.others - 1)

    def _count(self, event: Mapping[str, Any], now: float) -> Told | None:
        key = event["event"], event.get("principal")
        counted = self._counted.setdefault(key, _Counted(now + _HOUR))
        counted.events += 1
        if counted.events <= MOST:
            return Told(event, is_full=counted.events == MOST)
        if counted.events == counted.told_at:
            told = Told(event, counted.others, is_full=True)
            counted.told_at, counted.others, counted.last = counted.told_at * 2, 0, None
            return told
        counted.others, counted.last = counted.others + 1, event
        return None


def is_of_nobody_else(event: Mapping[str, Any]) -> bool:
    """Return whether an event is the break of a caller's own lock, or of no lock.

    A writer can cause as many as they like, and nobody else lost a lock.
    """
    return event["event"] == Event.LOCK_FORCE_UNLOCKED and (
        "lock_id" not in event or event.get("held_by") == event.get("principal")
    )

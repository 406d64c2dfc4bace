"""The verdict on a run: compares the witnesses' journals with the content of the bucket.

This module sends no requests. Everything that it judges is passed to it.
"""

import itertools
import json
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from tests.safety.wire.witness import Content

_LATEST: Final = 60.0  # the most seconds after which a request can still take effect


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request.

    `asked` is the time before it was sent, `told` the time when its response was there; None if the client
    ended before. Both are `time.monotonic()` seconds, which all processes share. `status` is None if there
    was no response. `error` is the response's error code, or the reason why no response came.
    """

    asked: float
    told: float | None = None
    status: int | None = None
    error: str = ""

    @property
    def undecided(self) -> bool:
        """Return whether the outcome is unknown: no response came, or a status that leaves it open."""
        return self.status is None or self.status == 429 or self.status >= 500


@dataclass(frozen=True, slots=True)
class Operation:
    """A request with its retries.

    Attributes:
        verb: `lock`, `read`, `write`, `unlock` or `force`; for a client of `cloud {}` also `open`, `make`,
            `current`, `create` and `upload`; over the management API `history`, `fetch`, `holder`, `restore`,
            `freeze` and `unfreeze`.
        lock: the lock's name in the journals; None for a request that has none.
        attempts: the requests, oldest first.
        written: the document of a write, or of a restore whose response has the serial.
        over: the SHA-256 of the document that the writer had read before; None if there was no state.
        read: the document in the response to a read; None if there was no state.
        holder: the ID of the lock in a refusal.
        source: the `Content.bare` of the version that a restore copies.
        until: the end of a freeze in `time.monotonic()` seconds.
    """

    client: str
    verb: str
    state: str
    lock: str | None
    attempts: tuple[Attempt, ...]
    written: Content | None = None
    over: str | None = None
    read: Content | None = None
    holder: str | None = None
    cloud: bool = False
    source: str | None = None
    until: float = float("inf")

    @property
    def began(self) -> float:
        """The time before the first request was sent."""
        return self.attempts[0].asked

    @property
    def status(self) -> int | None:
        """The status of the last response; None if the outcome is unknown."""
        last = self.attempts[-1]
        return None if last.undecided else last.status

    @property
    def ended(self) -> float:
        """The time when the last response was there; infinite if the outcome is unknown."""
        last = self.attempts[-1]
        return float("inf") if last.undecided or last.told is None else last.told

    @property
    def over_at(self) -> float:
        """The time after which no try can take effect any more."""
        return max(attempt.asked for attempt in self.attempts) + _LATEST if self.undecided else self.ended

    @property
    def undecided(self) -> bool:
        """Return whether the outcome of any try is unknown."""
        return any(attempt.undecided for attempt in self.attempts)

    @property
    def acknowledged(self) -> bool:
        """Return whether it was answered with success."""
        return self.status in (200, 204)

    def __str__(self) -> str:
        told = [attempt.status or attempt.error or "no answer" for attempt in self.attempts]
        lock = f" under {self.lock}" if self.lock else ""
        said = f" of {self.written}" if self.written else ""
        return f"{self.client}'s {self.verb} of {self.state}{lock}{said} at {self.began:.3f} (told {told})"


def operations(client: str, lines: Iterable[str]) -> Iterator[Operation]:
    """Read a journal. An incomplete last line is ignored: that request was not sent, or got no response."""
    asked: dict[int, list[dict[str, Any]]] = defaultdict(list)
    told: dict[tuple[int, int], dict[str, Any]] = {}
    for line in lines:
        if not line.endswith("\n"):
            break
        entry = json.loads(line)
        if "verb" in entry:
            asked[entry["number"]].append(entry)
        else:
            told[entry["number"], entry["attempt"]] = entry
    for number, entries in asked.items():
        first = entries[0]
        answers = [told.get((number, attempt), {}) for attempt in range(len(entries))]
        yield Operation(
            client=client,
            verb=first["verb"],
            state=first["state"],
            lock=first["lock"],
            attempts=tuple(
                Attempt(
                    entry.get("since", entry["at"]),
                    answer.get("at"),
                    answer.get("status"),
                    answer.get("error", ""),
                )
                for entry, answer in zip(entries, answers, strict=True)
            ),
            written=_content(first.get("written") or answers[-1].get("written")),
            over=first.get("over"),
            read=_content(answers[-1].get("read")),
            holder=answers[-1].get("holder"),
            cloud=first.get("cloud", False),
            source=first.get("source"),
            until=first.get("until", float("inf")),
        )


def _content(noted: Mapping[str, Any] | None) -> Content | None:
    return Content(**noted) if noted else None


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of the comparison.

    `lost` has a sentence for each acknowledged write that is not in the history. `violations` has a sentence
    for every other violated invariant. `acknowledged` counts the writes that were answered with success,
    `requests` all requests. `unacknowledged` counts the versions in the history without such a response.
    `locks_left` counts the locks of clients that were killed or got no response. `restored` and `frozen`
    count successes.
    """

    lost: tuple[str, ...]
    violations: tuple[str, ...]
    acknowledged: int
    requests: int
    unacknowledged: int
    locks_left: int
    restored: int
    frozen: int


def verify(
    done: Iterable[Operation],
    history: Mapping[str, Sequence[Content]],
    locks: Mapping[str, str],
    killed: Iterable[str] = (),
) -> Findings:
    """Judge the operations of clients by the content of the bucket.

    `history` has the versions of each state, oldest first. `locks` has the name of the lock of each locked
    state. `killed` has the names of killed clients.
    """
    by_state: dict[str, list[Operation]] = defaultdict(list)
    acknowledged = requests = restored = frozen = 0
    for operation in done:
        by_state[operation.state].append(operation)
        requests += len(operation.attempts)
        acknowledged += operation.verb == "write" and operation.acknowledged
        restored += operation.verb == "restore" and operation.acknowledged and operation.written is not None
        frozen += operation.verb == "freeze" and operation.acknowledged
    dead = frozenset(killed)
    judged = [
        _OneState(state, by_state.get(state, []), history.get(state, ()), locks.get(state), dead)
        for state in sorted({*by_state, *history, *locks})
    ]
    for one in judged:
        one.judge()
    return Findings(
        lost=tuple(sentence for one in judged for sentence in one.lost),
        violations=tuple(sentence for one in judged for sentence in one.violations),
        acknowledged=acknowledged,
        requests=requests,
        unacknowledged=sum(one.unacknowledged for one in judged),
        locks_left=sum(one.lock_excused for one in judged),
        restored=restored,
        frozen=frozen,
    )


_EXPECTED: Final[Mapping[str, frozenset[int]]] = {
    "lock": frozenset({200, 423}),
    "read": frozenset({200, 204}),
    "write": frozenset({200, 409, 423}),
    "unlock": frozenset({200}),
    "force": frozenset({200, 409, 423}),
    "history": frozenset({200, 404}),
    "fetch": frozenset({200}),
    "holder": frozenset({200}),
    "restore": frozenset({200, 409, 423}),
    "freeze": frozenset({200, 423}),
    "unfreeze": frozenset({200, 409}),
}
_EXPECTED_OVER_CLOUD: Final[Mapping[str, frozenset[int]]] = {
    "open": frozenset({200, 404}),
    "make": frozenset({201, 409}),
    "lock": frozenset({200, 409, 423}),
    "current": frozenset({200, 404}),
    "read": frozenset({200}),
    "create": frozenset({201, 409, 423}),
    "upload": frozenset({200}),
    "write": frozenset({200, 409, 423}),
    "unlock": frozenset({200, 409}),
    "force": frozenset({200, 409, 423}),
}
"""There a held lock gives 409, as does an unlock that finds another client's lock or none. A freeze: 423."""


class _OneState:
    """The operations and the history of one state."""

    def __init__(
        self,
        state: str,
        done: Sequence[Operation],
        history: Sequence[Content],
        lock: str | None,
        killed: frozenset[str],
    ) -> None:
        self.lost: list[str] = []
        self.violations: list[str] = []
        self.lock_excused = False
        self._state = state
        self._done = sorted(done, key=lambda operation: operation.began)
        self._history = history
        self._lock = lock
        self._killed = killed
        self._place = {version.sha256: place for place, version in enumerate(history)}
        self._writes = {
            operation.written.sha256: operation
            for operation in self._done
            if operation.verb in ("write", "restore") and operation.written
        }
        self._writes |= self._restored_untold()
        self._acknowledged = [write for write in self._writes.values() if write.acknowledged]
        # In the order of the history.
        self._kept = sorted(
            (write for write in self._acknowledged if _sha(write) in self._place),
            key=lambda write: self._place[_sha(write)],
        )

    def _restored_untold(self) -> dict[str, Operation]:
        """Return the restores, by version, whose version is stored and whose success nobody heard."""
        untold = [one for one in self._done if one.source and (one.undecided or not one.acknowledged)]
        found = {}
        for version in self._history:
            made = next((one for one in untold if one.source == version.bare), None)
            if made and version.sha256 not in self._writes:
                found[version.sha256] = replace(made, written=version, attempts=(Attempt(made.began),))
        return found

    @property
    def unacknowledged(self) -> int:
        return len(self._history) - len(self._kept)

    def judge(self) -> None:
        self._answers()
        self._nothing_is_lost()
        self._nothing_is_made_up()
        self._seen_before_written_over()
        self._counted()
        self._reads_are_of_now()
        self._one_holder_at_a_time()
        self._no_restore_under_anothers_lock()
        self._no_write_after_the_lock_was_removed()
        self._no_lock_is_left()

    def _broken(self, sentence: str) -> None:
        self.violations.append(f"{self._state}: {sentence}")

    def _answers(self) -> None:
        known = {
            operation.lock for operation in self._done if operation.verb in ("lock", "restore", "freeze")
        }
        for operation in self._done:
            expected = (_EXPECTED_OVER_CLOUD if operation.cloud else _EXPECTED)[operation.verb]
            if operation.verb == "freeze" and operation.ended > operation.until:
                expected |= {400}  # a retry after the end of the freeze
            if operation.status is not None and operation.status not in expected:
                self._broken(f"{operation} should never get that answer.")
            # A refusal of `cloud {}` names the holder only in its text.
            if operation.status == 423 and not operation.cloud and operation.holder not in known:
                self._broken(f"{operation} was refused in favour of {operation.holder!r}, whom nobody knows.")

    def _nothing_is_lost(self) -> None:
        for write in self._acknowledged:
            if _sha(write) not in self._place:
                self.lost.append(f"{self._state}: {write} is not in the history of {len(self._history)}.")

    def _nothing_is_made_up(self) -> None:
        for version, times in Counter(version.sha256 for version in self._history).items():
            if version not in self._writes:
                self._broken(f"the version {version} in the history was written by nobody.")
            elif times > 1:
                self._broken(f"{self._writes[version]} is in the history {times} times.")

    def _seen_before_written_over(self) -> None:
        """Check that the writer of each version had read the last acknowledged version before it.

        A writer has begun after it has read, so the order of the history follows.
        """
        last: str | None = None
        for version in self._history:
            write = self._writes.get(version.sha256)
            if write is None:
                continue
            found = self._acknowledged_below(write)
            if found != last:
                over = self._writes[last] if last else None
                self._broken(
                    f"{write} follows {over}, which its writer had not read; it had read {write.over}."
                )
            if write.acknowledged:
                if last and version.serial <= _written(self._writes[last]).serial:
                    self._broken(f"{write} goes back in serial, after {self._writes[last]}.")
                last = version.sha256

    def _acknowledged_below(self, write: Operation) -> str | None:
        """Return the newest acknowledged version among those on which a write is based."""
        over = write.over
        while over is not None:
            below = self._writes.get(over)
            if below is None or below.acknowledged:
                return over
            over = below.over
        return None

    def _counted(self) -> None:
        """Check that every acknowledged write added 1 to the counter, unless a restore has set it back."""
        counter = self._history[-1].counter if self._history else 0
        least, most = len(self._acknowledged), len(self._writes)
        if not any(write.source for write in self._writes.values()) and not least <= counter <= most:
            self._broken(f"the counter is {counter} after {least} acknowledged writes of {most}.")

    def _reads_are_of_now(self) -> None:
        """Check that a read returns the last version acknowledged before it was sent, or a later version."""
        ended = sorted((write.ended, self._place[_sha(write)]) for write in self._kept)
        newest = list(itertools.accumulate((place for _, place in ended), max))
        times = [when for when, _ in ended]
        for operation in self._done:
            if operation.verb != "read" or not operation.acknowledged:
                continue
            place = self._place.get(operation.read.sha256) if operation.read else -1
            if place is None:
                self._broken(f"{operation} was given {operation.read}, which is not in the history.")
                continue
            before = bisect_left(times, operation.attempts[-1].asked)
            if before and newest[before - 1] > place:
                missed = self._history[newest[before - 1]]
                self._broken(f"{operation} was given {operation.read}, after {missed} was acknowledged.")

    def _one_holder_at_a_time(self) -> None:
        latest: tuple[float, Operation] | None = None
        for start, end, lock in self._holds():
            if latest and start < latest[0]:
                self._broken(f"{lock} was told that it holds the lock while {latest[1]} held it.")
            if latest is None or end > latest[0]:
                latest = end, lock

    def _holds(self) -> list[tuple[float, float, Operation]]:
        """Return when each lock was certainly held: from the response to its acquire until it may be gone."""
        holds = [(lock.ended, self._given_up(lock), lock) for lock in self._locks()]
        # A lock may have been removed before its holder got the response.
        return sorted((hold for hold in holds if hold[0] < hold[1]), key=lambda hold: hold[0])

    def _locks(self) -> list[Operation]:
        return [one for one in self._done if one.verb in ("lock", "freeze") and one.status == 200]

    def _given_up(self, lock: Operation) -> float:
        """Return the earliest time at which an acquired lock may have been gone."""
        removed = (max(one.began, lock.ended) for one in self._done if _may_remove(one, lock))
        return min(lock.until, min(removed, default=float("inf")))

    def _no_restore_under_anothers_lock(self) -> None:
        for write in self._acknowledged:
            for start, end, lock in self._holds() if write.source else ():
                if start < write.began and write.ended < end:
                    self._broken(f"{write} was acknowledged while {lock} held it.")

    def _no_write_after_the_lock_was_removed(self) -> None:
        # An acquire whose outcome was unknown may take effect a second time, by its retry.
        again = {one.lock for one in self._done if one.verb == "lock" and one.undecided}
        told = {lock.lock: lock.ended for lock in self._locks() if lock.lock not in again}
        # A removal before the holder got its response does not count: the function may have acquired again.
        removed = {
            one.lock: one.ended
            for one in reversed(self._done)
            if one.verb == "force" and one.status == 200 and told.get(one.lock, float("inf")) < one.began
        }
        for write in self._acknowledged:
            if write.lock in removed and removed[write.lock] < write.began:
                self._broken(f"{write} was acknowledged after its lock had been removed.")

    def _no_lock_is_left(self) -> None:
        if self._lock is None:
            return
        named = [one for one in self._done if one.lock == self._lock]
        taken = [one for one in named if one.verb in ("lock", "restore", "freeze")]
        if not taken:
            self._broken(f"the lock {self._lock} is left, which nobody has asked for.")
            return
        released = [one for one in named if one.verb in ("unlock", "restore", "unfreeze")]
        self.lock_excused = (
            taken[0].client in self._killed
            or any(one.undecided for one in taken)
            or not any(one.status == 200 or (one.verb, one.status) == ("unlock", 409) for one in released)
        )
        if not self.lock_excused:
            self._broken(f"the lock {self._lock} is left, though {released[-1]}.")


def _may_remove(one: Operation, lock: Operation) -> bool:
    """Return whether an operation may have removed this lock after its last acquire was sent."""
    ways = ("unfreeze",) if lock.verb == "freeze" else ("unlock", "force")
    return one.verb in ways and one.lock == lock.lock and one.over_at >= lock.attempts[-1].asked


def _written(write: Operation) -> Content:
    assert write.written is not None
    return write.written


def _sha(write: Operation) -> str:
    return _written(write).sha256

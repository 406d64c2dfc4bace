"""What happened in a history, and what of docs/design.md's invariants did not hold in it.

A history is recorded while it happens and judged when it is over, from the bucket's side: which lock and
which state were current at what moment, who changed them, and what was answered meanwhile. Nothing here
asks the code for its reasons.
"""

import json
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from tests.safety.model.production import HttpRequest, Reply
from tests.safety.model.s3 import Effect, Entry

MIN_AGE: Final = 10
"""Seconds that a lock has to be old before a force-unlock that names none removes it."""


@dataclass(eq=False, slots=True)
class Session:
    """One command of a client.

    Attributes:
        name: such as `s3`; part of its lock's ID and of every state that it writes.
        state: which state it works on.
        seen: how many versions the state had when the session last read it.
    """

    name: str
    state: str
    seen: int = 0


@dataclass(eq=False, slots=True)
class Call:
    """A request of a client, repeats included.

    Attributes:
        session: on whose behalf.
        client: the number of the client.
        request: what was sent.
        sent: when it was first sent.
        seen: how many versions the state had when the session last read it.
        attempts: every time that it was sent.
    """

    session: Session
    client: int
    request: HttpRequest
    sent: int
    seen: int
    attempts: list["Attempt"] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Attempt:
    """One arrival of a request at the function.

    Attributes:
        number: among all of the history.
        call: what it is an attempt at.
        began: the moment of its first request to S3.
        ended: the moment of its reply.
        reply: what the function answered, None if it never did.
        seen: how many versions the state had when this last read one.
        read: the versions that it has read, by key.
    """

    number: int
    call: Call
    began: int | None = None
    ended: int | None = None
    reply: Reply | None = None
    seen: int = 0
    read: set[tuple[str, int]] = field(default_factory=set)

    @property
    def succeeded(self) -> bool:
        """Whether the function answered with success."""
        return self.reply is not None and self.reply.status in (200, 204)


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the bucket.

    Attributes:
        moment: when.
        time: in seconds of S3's clock.
        effect: what.
        current: what is current at the key from now on, None for nothing or a delete marker.
        attempt: by whom.
        late: whether the function had given the request up.
    """

    moment: int
    time: int
    effect: Effect
    current: Entry | None
    attempt: Attempt
    late: bool


def state_key(state: str) -> str:
    """The key of a state."""
    return f"states/{state}.tfstate"


def lock_key(state: str) -> str:
    """The key of its lock."""
    return f"states/{state}.tfstate.tflock"


@dataclass(slots=True)
class History:
    """What happened, in order.

    Attributes:
        moment: counts what happens.
        calls: what clients have asked for.
        changes: of the bucket.
        told: every event in words.
    """

    moment: int = 0
    calls: list[Call] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def tell(self, event: str) -> None:
        """Note an event in words."""
        self.told.append(f"{self.moment:4} {event}")

    def of(self, key: str) -> list[Change]:
        """The changes of a key."""
        return [change for change in self.changes if change.effect.key == key]

    def current_during(self, key: str, begin: int, end: int) -> list[Entry | None]:
        """All that was current at a key at some moment of a span, both ends included."""
        changes = self.of(key)
        before = [change.current for change in changes if change.moment < begin]
        during = [change.current for change in changes if begin <= change.moment <= end]
        return [before[-1] if before else None, *during]

    def current_at(self, key: str, moment: int) -> Entry | None:
        """What was current at a key just before a moment."""
        before = [change.current for change in self.of(key) if change.moment < moment]
        return before[-1] if before else None


def problems(history: History, *, digests: bool) -> list[str]:
    """What did not hold in a history that is over."""
    states = sorted({call.session.state for call in history.calls})
    return [
        *_mixed_up(history),
        *_wrong_answers(history),
        *(problem for state in states for problem in _locks(history, state)),
        *(problem for state in states for problem in _writes(history, state, digests=digests)),
        *(problem for call in history.calls for problem in _repeats(history, call)),
    ]


# Who and what


def _author(body: bytes) -> str:
    return str(json.loads(body)["outputs"]["author"]["value"])


def _serial(body: bytes) -> int:
    return int(json.loads(body)["serial"])


def _lineage(body: bytes) -> str:
    return str(json.loads(body)["lineage"])


def _lock_id(body: bytes) -> str:
    return str(json.loads(body)["ID"])


def _operation(body: bytes) -> str:
    return str(json.loads(body)["Operation"])


def _principal(lock: Entry) -> str:
    return dict(lock.metadata)["locked-by"]


def _is_lock_of(lock: Entry | None, request: HttpRequest) -> bool:
    """Whether a lock was taken by this very request or a repeat."""
    return (
        lock is not None
        and lock.body is not None
        and _lock_id(lock.body) == _lock_id(request.body)
        and _principal(lock) == request.principal
    )


def _attempts(history: History, verb: str, state: str | None = None) -> Iterator[Attempt]:
    for call in history.calls:
        if call.request.verb == verb and state in (None, call.request.state):
            yield from call.attempts


def _span(attempt: Attempt) -> tuple[int, int]:
    """From an attempt's first request to S3 until its reply."""
    if attempt.began is None or attempt.ended is None:
        raise ValueError("the attempt has not ended")
    return attempt.began, attempt.ended


def _said(attempt: Attempt) -> str:
    request = attempt.call.request
    status = attempt.reply.status if attempt.reply else "nothing"
    return f"attempt {attempt.number} ({attempt.call.session.name}, {request.verb} {request.state}: {status})"


# Nothing of one state shows in another


def _mixed_up(history: History) -> Iterator[str]:
    authors = {
        _author(change.effect.added.body): change.effect.key
        for change in history.changes
        if not change.effect.key.endswith(".tflock") and change.effect.added and change.effect.added.body
    }
    locked = {
        _lock_id(change.effect.added.body): change.effect.key
        for change in history.changes
        if change.effect.key.endswith(".tflock") and change.effect.added and change.effect.added.body
    }
    for change in history.changes:
        state = change.attempt.call.request.state
        if change.effect.key not in (state_key(state), lock_key(state)):
            yield f"isolation: {_said(change.attempt)} changed {change.effect.key}"
    for call in history.calls:
        state = call.request.state
        for attempt in call.attempts:
            match call.request.verb, attempt.reply:
                case "read", Reply(200, body) if authors.get(_author(body.encode())) != state_key(state):
                    yield f"isolation: {_said(attempt)} was given another state's"
                case _, Reply(423, body) if locked.get(_lock_id(body.encode())) != lock_key(state):
                    yield f"isolation: {_said(attempt)} was told of another state's lock"


# What an answer says was true at some moment while it was made


def _wrong_answers(history: History) -> Iterator[str]:
    for call in history.calls:
        state = call.request.state
        for attempt in call.attempts:
            if attempt.reply is None:
                continue
            begin, end = _span(attempt)
            locks = history.current_during(lock_key(state), begin, end)
            states = history.current_during(state_key(state), begin, end)
            if not _is_true(call.request, attempt.reply, states, locks):
                yield f"1, 3 or 4: what {_said(attempt)} says was true at no moment of it"


def _is_true(
    request: HttpRequest, reply: Reply, states: Sequence[Entry | None], locks: Sequence[Entry | None]
) -> bool:
    if reply.status == 423:
        holder = _lock_id(reply.body.encode())
        return any(lock and lock.body and _lock_id(lock.body) == holder for lock in locks)
    bodies = [entry.body if entry else None for entry in states]
    match request.verb, reply.status:
        case "read", 200:
            return reply.body.encode() in bodies
        case "read", 204:
            return None in bodies
        case "write", 200:
            held = [lock for lock in locks if lock and lock.body]
            named = [lock for lock in held if _lock_id(lock.body or b"") == request.lock_id]
            return request.body in bodies and any(_principal(lock) == request.principal for lock in named)
        case "lock", 200:
            return any(_is_lock_of(lock, request) for lock in locks)
        case "unlock", 200 if not request.body:
            return None in locks
        case "unlock", 200:
            named_id = _lock_id(request.body)
            return any(lock is None or _lock_id(lock.body or b"") != named_id for lock in locks)
        case "delete", 200:
            return None in bodies
        case "undelete", 200:
            return any(bodies)
    return True


# Invariants 1 and 4: locks


def _locks(history: History, state: str) -> Iterator[str]:
    changes = history.of(lock_key(state))
    made: dict[int, Change] = {}
    for change in changes:
        effect = change.effect
        if effect.added is not None and effect.added.body is not None:
            made[effect.added.version] = change
            if effect.before is not None:
                yield f"1: {_said(change.attempt)} put a lock over a lock"
            if change.attempt.call.request.verb not in ("lock", "delete", "undelete"):
                yield f"1: {_said(change.attempt)} took a lock"
        gone = effect.removed or (effect.before if effect.added and effect.added.body is None else None)
        if gone is not None and gone.body is not None:
            why_not = _why_not_removed(change, gone, made[gone.version])
            if why_not:
                yield f"4: {_said(change.attempt)} removed the lock {_lock_id(gone.body)} {why_not}"
    yield from _both_held(history, state, changes)


def _why_not_removed(change: Change, gone: Entry, made: Change) -> str:
    """Why a lock may not be removed by who did it; empty if it may."""
    request, attempt = change.attempt.call.request, change.attempt
    own = (lock_key(request.state), gone.version) in attempt.read or made.attempt is attempt
    if not own:
        return "without having read it"
    body = gone.body or b""
    match request.verb:
        case "unlock" if not request.body:
            return "" if change.time - gone.modified > MIN_AGE else "though it was young and not named"
        case "unlock":
            return "" if _lock_id(request.body) == _lock_id(body) else "though another was named"
        case "delete" | "undelete":
            mine = _principal(gone) == request.principal and _operation(body) == request.verb
            return "" if mine else "that was not its own"
    return "though it is not for that"


def _both_held(history: History, state: str, changes: Sequence[Change]) -> Iterator[str]:
    acquired = [attempt for attempt in _attempts(history, "lock", state) if attempt.succeeded]
    acquired.sort(key=lambda attempt: attempt.ended or 0)
    for index, first in enumerate(acquired):
        for second in acquired[index + 1 :]:
            if first.call.request == second.call.request:
                continue
            _, ended = _span(second)
            if not any(
                change.moment <= ended and _removes(change) and _is_lock_of(_gone(change), first.call.request)
                for change in changes
            ):
                yield f"1: {_said(first)} and {_said(second)} both hold the lock"


def _gone(change: Change) -> Entry | None:
    return change.effect.removed or change.effect.before


def _removes(change: Change) -> bool:
    return change.effect.added is None or change.effect.added.body is None


# Invariants 2, 3 and 5: writes


def _writes(history: History, state: str, *, digests: bool) -> Iterator[str]:
    changes = history.of(state_key(state))
    if any(change.effect.removed for change in changes):
        yield f"3: a version of {state} was removed"
    acknowledged = _acknowledged(history, state)
    yield from _unlocked(history, state, changes, acknowledged)
    every: list[Entry] = []
    chain: list[Entry] = []  # what was current, one after the other, since there last was nothing
    for change in changes:
        added = change.effect.added
        if added is None:
            continue
        read = [entry for entry in every if (change.effect.key, entry.version) in change.attempt.read]
        if added.body is None:
            yield from _deleted(change, chain, read, digests=digests)
            chain = []
            continue
        if bool(chain) != (change.effect.before is not None):
            yield f"3: {state} was not what was written last"
        if not _met_equal_bytes(chain, read) and not _under_a_lock_taken_again(history, change):
            yield from _unseen(change, chain, acknowledged)
        yield from _went_back(change, chain, acknowledged)
        chain.append(added)
        every.append(added)


def _acknowledged(history: History, state: str) -> dict[int, list[Attempt]]:
    """The versions whose writers were told that they are written, by version."""
    found: dict[int, list[Attempt]] = {}
    for attempt in _attempts(history, "write", state):
        if attempt.succeeded:
            was = history.current_during(state_key(state), *_span(attempt))
            same = [entry.version for entry in was if entry and entry.body == attempt.call.request.body]
            if same:  # else its answer is wrong, which is said elsewhere
                found.setdefault(min(same), []).append(attempt)
    return found


def _unlocked(
    history: History, state: str, changes: Sequence[Change], acknowledged: dict[int, list[Attempt]]
) -> Iterator[str]:
    """A write that counts was made while its lock was held."""
    for change in changes:
        added, request = change.effect.added, change.attempt.call.request
        if added is None or added.version not in acknowledged or request.verb != "write":
            continue
        if change.attempt.call not in [attempt.call for attempt in acknowledged[added.version]]:
            continue
        lock = history.current_at(lock_key(state), change.moment)
        if lock is None or lock.body is None or _lock_id(lock.body) != request.lock_id:
            yield f"2: {_said(change.attempt)} is acknowledged and was made without the lock"


def _unseen(change: Change, chain: Sequence[Entry], acknowledged: dict[int, list[Attempt]]) -> Iterator[str]:
    """An acknowledged write was replaced by somebody who had not seen it."""
    writer = change.attempt.call.session
    for entry in chain:
        for attempt in acknowledged.get(entry.version, []):
            if attempt.call.session is not writer and _seen_by(change.attempt) < entry.version:
                yield f"2: {_said(change.attempt)} replaced what it had not seen: {_said(attempt)}"


def _met_equal_bytes(chain: Sequence[Entry], read: Sequence[Entry]) -> bool:
    """Whether If-Match meant a version that this attempt has read and met a later one with equal bytes.

    S3 cannot tell the two where the ETag is a digest of the bytes. The writer's lock was broken in between,
    so it is told 409 and its write counts as never acknowledged; but it is current.
    """
    met = chain[-1] if chain else None
    return (
        met is not None
        and met not in read
        and any((met.body, met.etag) == (known.body, known.etag) for known in read)
    )


def _under_a_lock_taken_again(history: History, change: Change) -> bool:
    """Whether a late acquire took the writer's lock once more after it had been given back.

    Then a write of that session that is late, too, finds its lock.
    """
    key = lock_key(change.attempt.call.request.state)
    lock = history.current_at(key, change.moment)
    taken = [earlier.effect.added for earlier in history.of(key) if earlier.moment < change.moment]
    return lock is not None and sum(entry is not None and entry.body == lock.body for entry in taken) > 1


def _seen_by(attempt: Attempt) -> int:
    """How many versions the client had seen that sent this write."""
    return attempt.call.seen if attempt.call.request.verb == "write" else attempt.seen


def _deleted(
    change: Change, chain: Sequence[Entry], known: Sequence[Entry], *, digests: bool
) -> Iterator[str]:
    """A state was deleted by somebody who had not read it."""
    if change.attempt.call.request.verb != "delete":
        yield f"3: {_said(change.attempt)} deleted the state"
    if not chain:
        return
    # Not covered: a delete that S3 carries out only after the same bytes came back, where equal bytes have
    # equal ETags.
    if chain[-1] not in known and not (digests and chain[-1].body in [entry.body for entry in known]):
        yield f"2: {_said(change.attempt)} deleted what it had not read"


def _went_back(change: Change, chain: Sequence[Entry], acknowledged: Container[int]) -> Iterator[str]:
    """An acknowledged write went behind the last one before it that counts."""
    added = change.effect.added
    if added is None or added.version not in acknowledged or _is_pushed(added):
        return
    for entry in reversed(chain):
        if _is_pushed(entry):
            return  # acknowledged or not, a push may go where it likes
        if entry.version in acknowledged:
            if _lineage(added.body or b"") != _lineage(entry.body or b""):
                yield f"5: {_said(change.attempt)} changed the lineage"
            elif _serial(added.body or b"") <= _serial(entry.body or b""):
                yield f"5: {_said(change.attempt)} went back in serial"
            return


def _is_pushed(entry: Entry) -> bool:
    return dict(entry.metadata).get("operation") in ("state-push", "migration destination state")


# Invariant 6: repeats


def _repeats(history: History, call: Call) -> Iterator[str]:
    begun = [attempt for attempt in call.attempts if attempt.began is not None]
    decided = [a for a in begun if a.reply is not None and a.reply.status < 500]
    if len(begun) < 2 or not decided or not _is_comparable(call):
        return
    first, last = min(_began(a) for a in begun), max(a.ended or 0 for a in decided)
    keys = (state_key(call.request.state), lock_key(call.request.state))
    during = [c for c in history.changes if c.effect.key in keys and first <= c.moment <= last]
    if any(change.attempt.call is not call for change in during):
        return
    if len({attempt.reply for attempt in decided}) > 1:
        yield f"6: {' and '.join(_said(attempt) for attempt in decided)} are answered differently"
    kinds = [(c.effect.key, c.effect.added is None, c.effect.added and c.effect.added.body) for c in during]
    if call.request.verb in ("lock", "unlock", "write") and len(kinds) > 1:
        yield f"6: {_said(decided[-1])} and its repeats had {len(kinds)} effects"
    on_state = [change for change in during if change.effect.key == keys[0]]
    if len(on_state) > 1:
        yield f"6: {_said(decided[-1])} and its repeats had {len(on_state)} effects on the state"


def _began(attempt: Attempt) -> int:
    return attempt.began or 0


def _is_comparable(call: Call) -> bool:
    """Not of a force-unlock without an ID, whose answer depends on the lock's age, and which is answered
    409 where S3 leaves it undecided; nor of two deletes at the same time, of which one may be refused."""
    request = call.request
    if request.verb == "unlock" and not request.body:
        return False
    if request.verb == "undelete":
        return False  # no client repeats the command by itself
    if request.verb == "delete":
        spans = sorted((_began(a), a.ended) for a in call.attempts if a.began is not None)
        return all(end is not None and end < begin for (_, end), (begin, _) in pairwise(spans))
    return True

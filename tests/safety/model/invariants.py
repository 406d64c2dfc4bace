"""The invariants of `safety.md`, checked after every event that can violate them.

In every function, `bucket` is the bucket as it is now, `effect` the change that a request made, and `point`
the progress of an invocation.
"""

import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Iterable, Sequence
from enum import Enum
from functools import cache
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from tests.safety.model.clients import LOCK_KEY, PATTERNS_KEY, RECORD_KEY, STATE_KEY
from tests.safety.model.production import MAIN, READERS, WRITERS, HttpRequest, Point, Reply, seconds_of
from tests.safety.model.s3 import LOST, Bucket, Effect, Entry

LOCKS: Final = frozenset({"lock", "cloud-lock", "native-lock", "freeze"})
"""The verbs after which a client holds the lock. A freeze holds it for its creator until an unfreeze."""
UNLOCKS: Final = frozenset({"unlock", "cloud-unlock", "native-unlock"})
READS: Final = frozenset({"read", "download", "native-read", "see-state"})
WRITES: Final = frozenset({"write", "commit", "write-at-once"})
REFUSABLE: Final = WRITES | {"create"}
"""The requests that can refuse a write. With `cloud {}` the create can, before the upload."""
WORKSPACE_DELETES: Final = frozenset({"workspace-delete", "workspace-safe-delete"})
RECORD_DELETES: Final = WORKSPACE_DELETES | {"undeclare"}
DELETES: Final = WORKSPACE_DELETES | {"delete", "manage-delete"}
OWN_LOCK: Final = DELETES | {"undelete", "restore", "undeclare"}
"""The verbs that acquire a lock of their own."""
LIFTS: Final = OWN_LOCK | {"lock", "cloud-lock", "freeze", "freeze-pattern", "unfreeze-pattern"}
"""The verbs that remove a freeze that has ended, because they acquire the lock."""
RELEASES: Final = OWN_LOCK | {"unlock", "cloud-unlock", "cloud-force-unlock", "break", "unfreeze"}
BLIND: Final = "X"
"""The name of the client that restores without a look at the current version."""
FORCED: Final = frozenset({"state-push", "migration destination state"})
_OF_CLOUD: Final = frozenset({"cloud-unlock", "cloud-force-unlock"})
_OF_MAINTAINERS: Final = DELETES | {
    *("undelete", "undeclare", "restore", "freeze", "unfreeze"),
    *("freeze-pattern", "unfreeze-pattern"),
}
"""The verbs that need the role maintainer. A writer removes only a named lock of their own."""
_OF_VERBS: Final = frozenset({"delete", "undelete", "undeclare", "restore"})
"""The operations of the locks of verbs. A writer removes such a lock only by its whole lock info."""
_UNFREEZES: Final = frozenset({"unfreeze", "unfreeze-pattern"})
_BY_FORCE: Final = frozenset({"unlock", "break", "cloud-force-unlock"})
_MIN_AGE: Final = 10
_DELETED: Final = b"deleted by "
_LATE: Final = b"deleted late at "
_FROZEN: Final = b"frozen until "
_LOCK_LEFT: Final = re.compile(r" The lock \S+ of this \w+ may still be held\..*'holdfast lock break \S+'\.")
_UNTOLD: Final = frozenset({LOST, 409, 500, 503})
"""The statuses of S3 that leave the outcome unknown, or make the code retry."""


class Invariant(Enum):
    """The invariants, by the numbers of `safety.md`."""

    ONE_HOLDER = "1 two acquires are never both acknowledged unless the first was released in between"
    SEEN = "2 no acknowledged write is overwritten by a writer that had not seen it"
    KEPT = "3 an acknowledged write can be read back, byte for byte"
    OWN_LOCK = "4 a release never removes a lock that it was not meant for"
    FORWARD = "5 within a lineage the serial of acknowledged writes never goes back"
    REPEATED = "6 a repeated request has one effect and the same answer"
    HELD = "7 a write is acknowledged only if no other client held the lock when it was last read"
    RELEASED = "8 a lock whose release was acknowledged, or refused over `cloud {}`, is not held any more"
    FOLLOWED = "9 a client that holds the lock and has seen the last acknowledged version can write"
    DELETED = "10 once a delete is answered with success, the state that it found is deleted"
    CURRENT = "11 a write that is acknowledged to the lock's holder is the current state"
    ALLOWED = "12 nobody changes anything by a request that their role does not allow"

    @property
    def number(self) -> int:
        """The number of the invariant in `safety.md`."""
        return int(self.value.split()[0])


class Exemption(Enum):
    """Known violations of an invariant. `fencing.md` describes them under "What is not covered"."""

    LATE_CREATE = "a PutObject that only creates, and was on its way when a delete was acknowledged"
    LATE_DELETE = "a delete that had its lock when it was sent, and lands under the next holder's"


class Violation(NamedTuple):
    """A violated invariant, and what happened."""

    invariant: Invariant
    what: str


class Party(NamedTuple):
    """A client, with everything about it that an invariant needs.

    `holds`: the client got a response that it holds the lock, has not begun to release it, and nobody has
    removed the lock by force. `seen` are the state documents that the client received.
    """

    name: str
    holds: bool
    seen: frozenset[bytes]


@cache
def _document(body: bytes) -> dict[str, Any]:
    """Parse a state or a lock info. There are few of them, and each is judged many times."""
    document: dict[str, Any] = json.loads(body)
    return document


def author(entry: Entry) -> str:
    """Return the name of a state's writer. A client that restores gives its name as the reason."""
    if _operation(entry) == "restore":
        return dict(entry.metadata).get("reason", "")
    document = _document(entry.body or b"{}")
    if _is_blank(document):
        return str(document["check_results"][0]["config_addr"])
    return str(document["outputs"]["author"]["value"])


def _is_blank(document: dict[str, Any]) -> bool:
    """Return whether a state document has no lineage, no resources and no outputs."""
    return not any(document.get(member) for member in ("lineage", "resources", "outputs"))


def lock_owner(entry: Entry) -> str:
    """Return the lock ID in a lock object."""
    return lock_id(entry.body or b"{}")


def lock_id(document: bytes) -> str:
    return str(_document(document)["ID"])


def named_lock(request: HttpRequest) -> str | None:
    """Return the ID that an unlock names in its body or its query; None for a force-unlock without an ID."""
    return lock_id(request.body) if request.body else request.lock_id


def client_of_lock(entry: Entry) -> str:
    """Return the name of the client whose lock this is; empty for a lock that a verb acquired itself."""
    lock = lock_owner(entry)
    if lock.startswith("lock-"):
        return str(_document(entry.body or b"{}")["Who"])
    if lock.startswith("frozen"):
        lock = lock.rpartition("[")[2]
    if "-" in lock:
        return ""
    return bytes.fromhex(lock[:2]).decode()


class _Workspace(NamedTuple):
    """The fields of a workspace ID."""

    name: str
    lock_id: str
    minted_at: int
    seen_lock: str


@cache
def _fields(id_: str) -> list[Any]:
    """Return the fields of an ID of `cloud {}`."""
    _, _, coded = id_.partition("-")
    fields: list[Any] = json.loads(urlsafe_b64decode(coded + "=" * (-len(coded) % 4)))
    return fields


def unread_base(created: Reply, bucket: Bucket) -> frozenset[bytes]:
    """Return the base document of an upload that was created just now, if another program wrote that base.

    The upload's client may not have read the base: a program that acquires no lock can write between the
    client's read and its create.
    """
    base = _fields(json.loads(created.body)["id"])[3]
    return frozenset(
        entry.body
        for entry in bucket.key(STATE_KEY).entries
        if base and entry.version_id == base[0] and entry.body and _past_the_api(entry)
    )


def document_in(request: HttpRequest, reply: Reply) -> bytes:
    """Return the state document in a response to a read; empty if there is no state."""
    if request.verb != "see-state":
        return reply.body.encode()
    found = json.loads(reply.body)
    return found["document"].encode() if found else b""


def in_essence(reply: Reply) -> tuple[int, str, str]:
    """Return the part of a response that is the same for every try of a request.

    A response of the management API also says what this try did: whether it removed the lock, which pattern
    and states it unfroze, and which version it deleted. A later try finds that done. Only a later try knows
    since when a pattern is frozen, because S3 tells the time of an object to those who read it.
    """
    if reply.status != 200 or not reply.body.startswith(('{"name"', '{"pattern"', '{"freeze"')):
        return reply.status, _LOCK_LEFT.sub("", reply.body), ""
    told = {**_document(reply.body.encode())}
    if reply.body.startswith('{"freeze"'):
        told["freeze"] = {**told["freeze"], "since": None}
    for what_was_there in ("removed", "pattern", "unfrozen", "covered"):
        told.pop(what_was_there, None)
    if "serial" not in told:
        told.pop("version", None)
    return reply.status, "", json.dumps(told)


def has_left_lock(reply: Reply) -> bool:
    """Return whether an error says that the lock of its verb may be left."""
    return _LOCK_LEFT.search(reply.body) is not None


def of_role(request: HttpRequest, effect: Effect) -> Iterable[Violation]:
    """Judge a change by its caller's role."""
    if request.principal.startswith(READERS):
        yield Violation(Invariant.ALLOWED, f"{_named(request)} of a reader changed something")
    if not request.principal.startswith(WRITERS):
        return
    is_beyond = request.verb in _OF_MAINTAINERS
    lock = effect.removed or (effect.before if effect.added else None)
    if effect.key == LOCK_KEY and lock is not None and request.verb not in LIFTS:
        names_none = request.verb == "unlock" and named_lock(request) is None
        is_whole = request.verb == "unlock" and len(_document(request.body or b"{}")) > 1
        is_by_force = request.verb in _BY_FORCE and not is_whole
        is_of_verb = _document(lock.body or b"{}")["Operation"] in _OF_VERBS
        is_own = dict(lock.metadata).get("locked-by") == request.principal
        is_beyond |= not is_own or names_none or (is_by_force and is_of_verb)
    if is_beyond:
        yield Violation(Invariant.ALLOWED, f"{_named(request)} of a writer changed something")


def of_answered_role(request: HttpRequest) -> Iterable[Violation]:
    """Judge a request that was answered with success by its caller's role."""
    is_beyond = request.verb in _OF_MAINTAINERS or (request.verb == "unlock" and not named_lock(request))
    if is_beyond and request.principal.startswith(WRITERS):
        yield Violation(Invariant.ALLOWED, f"{_named(request)} of a writer was answered with success")


def of_read(point: Point, body: bytes, bucket: Bucket) -> Iterable[Violation]:
    """Judge a read that was answered just now. Without a state it then looks for frozen patterns."""
    told = [answer.status for answer, *_ in point.answers if answer.status in (200, 404)]
    if not body and told[:1] == [404] and len(told) > 1:
        return
    current = bucket.current(STATE_KEY)
    if body != ((current.body if current else None) or b""):
        yield Violation(Invariant.KEPT, "a read was answered with another document than the current state")


def of_download(request: HttpRequest, body: bytes, bucket: Bucket) -> Iterable[Violation]:
    """Judge a download of a version that was answered just now."""
    version_id = _fields(request.id)[1]
    if body not in {entry.body for entry in bucket.key(STATE_KEY).entries if entry.version_id == version_id}:
        yield Violation(Invariant.KEPT, "a download was answered with another document than its version")


def of_lock_effect(effect: Effect, request: HttpRequest, now: int, first: int) -> Iterable[Violation]:
    """Judge a change of the lock object.

    `first` is the result of `lock_to_unlock` when the invocation began.
    """
    gone = effect.removed or (effect.before if effect.added else None)
    if gone is None or gone.body is None:
        return
    owner = lock_owner(gone)
    if effect.added is not None and effect.added.body is not None:
        yield Violation(Invariant.OWN_LOCK, f"{request.verb} put a lock over the lock {owner}")
    elif not _may_remove(gone, request, now):
        yield Violation(Invariant.OWN_LOCK, f"{_named(request)} removed the lock {owner}")
    elif first not in (-1, gone.version) and _is_anothers(gone, request):
        yield Violation(Invariant.OWN_LOCK, f"{_named(request)} removed the next lock {owner}")


def _is_anothers(lock: Entry, request: HttpRequest) -> bool:
    """Return whether a release has the document that acquired its lock, and a lock has another document."""
    sent, stored = _document(request.body or b"{}"), _document(lock.body or b"{}")
    return _is_release(request) and {**sent, "Path": ""} != {**stored, "Path": ""}


def _is_release(request: HttpRequest) -> bool:
    """Return whether an unlock has a whole document, and not an ID alone or nothing."""
    return request.verb == "unlock" and len(_document(request.body or b"{}")) > 1


def _may_remove(lock: Entry, request: HttpRequest, now: int) -> bool:
    noted = dict(lock.metadata)
    if "freeze" in noted:
        ends = noted.get("freeze-until")
        has_ended = ends is not None and seconds_of(ends) <= now
        is_named = request.verb in _UNFREEZES and request.id == noted["freeze"]
        return is_named or (has_ended and request.verb in LIFTS)
    if request.verb in OWN_LOCK or request.verb == "break":
        return _meant(lock, request)
    if request.verb in _OF_CLOUD:
        old_enough = request.verb == "cloud-unlock" or now - lock.modified > _MIN_AGE
        return _meant(lock, request) and old_enough
    if request.verb not in UNLOCKS:
        return False
    named = named_lock(request)
    return now - lock.modified > _MIN_AGE if named is None else named == lock_owner(lock)


def brought_back(document: bytes) -> bytes:
    """Mark the document of an undelete's version, to tell it from the version that the undelete copied."""
    return b"again: " + document


def forced(document: bytes) -> bytes:
    """Mark a document that was uploaded with force. Its lock does not show that."""
    return b"forced: " + document


def of_shared_lock(
    effect: Effect, place: int, remover: Point, bucket: Bucket, working: Iterable[tuple[int, Point]]
) -> Iterable[Violation]:
    """Judge a restore, or a delete that found no state, that removed its lock: no other command may use it.

    Two deletes that found the same state share their lock, and the slower delete is not acknowledged. `place`
    is the client whose request removed the lock, `remover` the point at which the request was sent. `working`
    has the clients' places and the points of their invocations.
    """
    lock = effect.removed
    if lock is None or "freeze" in dict(lock.metadata):
        return  # a command that finds a freeze that has ended acquires its own lock
    verbs = {"restore"} & {remover.request.verb}
    if remover.request.verb in DELETES and _found_state(remover) is None and bucket.current(STATE_KEY):
        verbs = set(DELETES)
    for other, point in working:
        if other == place or point.request.verb not in verbs or not point.pending:
            continue
        # An invocation that reads another's lock first is answered at once.
        entries = (answer.entry for answer, *_ in point.answers if answer.entry)
        if next((entry for entry in entries if "locked-by" in dict(entry.metadata)), None) == lock:
            yield Violation(
                Invariant.OWN_LOCK, f"the lock {lock_owner(lock)} was removed, and another uses it"
            )


def _counts(entry: Entry, acknowledged: frozenset[bytes]) -> bool:
    """Return whether a version was acknowledged."""
    if entry.body is None:
        return False
    return (brought_back(entry.body) if _operation(entry) == "undelete" else entry.body) in acknowledged


def _operation(entry: Entry) -> str:
    return unquote(dict(entry.metadata).get("operation", ""))


def _past_the_api(entry: Entry) -> bool:
    """Return whether another program wrote a version past the API, such as a `backend "s3"` client."""
    return "sha256" not in dict(entry.metadata)


def _what_and_under(entry: Entry) -> tuple[bytes | None, str | None]:
    """Return a version's document, and the ID of the lock under which it was written."""
    return entry.body, dict(entry.metadata).get("lock-id")


def of_state_effect(
    effect: Effect,
    point: Point,
    writer: Party,
    parties: Iterable[Party],
    acknowledged: frozenset[bytes],
    excused: frozenset[Exemption],
) -> Iterable[Violation]:
    """Judge a change of the state object. `point` is the point at which the request was sent."""
    if effect.removed is not None:
        yield Violation(Invariant.KEPT, f"{point.request.verb} removed a version of the state")
        return
    before = effect.before
    if before is None or before.body is None:
        return
    if effect.added is not None and _what_and_under(effect.added) == _what_and_under(before):
        yield Violation(Invariant.REPEATED, f"{writer.name} wrote the same document twice")
    if effect.added is not None and point.request.verb == "restore":
        yield from _of_restored(before, effect.added, writer)
    is_late = Exemption.LATE_DELETE in excused and _had_its_lock(point)
    if point.request.verb in DELETES and not is_late:
        for other in parties:
            if other.holds:
                what = f"{writer.name} deleted the state, and {other.name} holds the lock"
                yield Violation(Invariant.ONE_HOLDER, what)
    if not _counts(before, acknowledged):
        return
    if (
        point.request.verb == "manage-delete"
        and before.version_id != _document(point.request.body)["version"]
    ):
        yield Violation(Invariant.SEEN, f"{writer.name} deleted another version than it had seen")
    if point.request.verb in DELETES:
        read = {answer.entry.body for answer, *_ in point.answers if answer.entry}
        if before.body not in read:
            yield Violation(Invariant.SEEN, f"a delete by {writer.name} deleted a state that it had not read")
        return
    is_blind = effect.added is not None and _is_blind(effect.added)
    if before.body not in writer.seen and author(before) != writer.name and not is_blind:
        yield Violation(
            Invariant.SEEN,
            f"{writer.name} wrote over the acknowledged {_described(before)} and had not seen it",
        )
    if effect.added is not None and not point.request.force:
        yield from _empties(before, effect.added)
        if _operation(effect.added) not in FORCED:
            yield from _goes_back(before, effect.added)


def _of_restored(before: Entry, added: Entry, writer: Party) -> Iterable[Violation]:
    """Judge a version that a restore wrote."""
    last_noted, noted = dict(before.metadata), dict(added.metadata)
    # Several restores can have one freeze as their lock, but none writes again what another has restored.
    same = last_noted.get("lock-id") == noted.get("lock-id")
    is_frozen = (noted.get("lock-id") or "").startswith("frozen")
    if same and (not is_frozen or last_noted.get("restored-from") == noted.get("restored-from")):
        yield Violation(Invariant.REPEATED, f"{writer.name} restored the state twice")
    last, document = _document(before.body or b""), _document(added.body or b"")
    if last["lineage"] == document["lineage"] and document["serial"] <= last["serial"]:
        # This also holds for an unacknowledged version: a client may have seen it.
        yield Violation(Invariant.FORWARD, f"{_described(added)} came after serial {last['serial']}")


def of_restored(
    point: Point,
    reply: Reply,
    writer: Party,
    parties: Sequence[Party],
    bucket: Bucket,
    acknowledged: frozenset[bytes],
    now: int,
    *,
    any_push_counts: bool,
) -> Iterable[Violation]:
    """Judge a restore that was answered with success. `acknowledged` includes its version."""
    told, asked = _document(reply.body.encode()), _document(point.request.body)
    if "frozen" in asked:
        yield from _of_freeze(asked["frozen"], point.request.principal, writer, bucket, now)
    entries = bucket.key(STATE_KEY).entries
    places = [place for place, entry in enumerate(entries) if entry.version_id == told["version"]]
    source = next((entry for entry in entries if entry.version_id == asked["version"]), None)
    if not places or source is None or not _has_content(entries[places[0]], source):
        yield Violation(Invariant.KEPT, f"a restore of {writer.name}'s was acknowledged and is nowhere")
        return
    if told["changed"]:
        yield from _written_over(entries[places[0] :], writer, parties)
        # The last acknowledged version may lie below others. Who has seen these has seen successors of it.
        for entry in () if _is_blind(entries[places[0]]) else reversed(entries[: places[0]]):
            if entry.body in writer.seen or (entry.body is not None and author(entry) == writer.name):
                break
            if _counts(entry, acknowledged):
                what = f"{writer.name} restored over the acknowledged {_described(entry)} and had not seen it"
                yield Violation(Invariant.SEEN, what)
                break
    yield from _forward(entries, acknowledged, any_push_counts=any_push_counts)


def _of_freeze(
    freeze_id: str, principal: str, writer: Party, bucket: Bucket, now: int
) -> Iterable[Violation]:
    """Judge a restore under a freeze: its own freeze holds the state, and has not ended."""
    lock = bucket.current(LOCK_KEY)
    noted = dict(lock.metadata) if lock else {}
    is_own = (noted.get("freeze"), noted.get("locked-by")) == (freeze_id, principal)
    if not is_own or ("freeze-until" in noted and seconds_of(noted["freeze-until"]) <= now):
        what = f"a restore of {writer.name}'s was acknowledged, and the freeze that it named does not hold"
        yield Violation(Invariant.HELD, what)


def restored(reply: Reply, bucket: Bucket) -> frozenset[bytes]:
    """Return the document that a restore wrote, which was answered with success just now."""
    told = _document(reply.body.encode())
    return frozenset(
        entry.body
        for entry in bucket.key(STATE_KEY).entries
        if told["changed"] and entry.body and entry.version_id == told["version"]
    )


def of_undeleted(request: HttpRequest, reply: Reply, bucket: Bucket) -> Iterable[Violation]:
    """Judge an undelete that was answered with success."""
    told = _document(reply.body.encode())
    versions = {entry.version_id: entry for entry in bucket.key(STATE_KEY).entries}
    made, source = versions.get(told["version"]), versions.get(told["from_version"])
    writer = dict(made.metadata).get("written-by") if made else None
    is_own = made is not None and (_operation(made), writer) == ("undelete", request.principal)
    if not (is_own and source and made and made.body == source.body):
        yield Violation(
            Invariant.KEPT, f"an undelete of {request.principal}'s was acknowledged and is nowhere"
        )


def _has_content(entry: Entry, source: Entry) -> bool:
    """Return whether a version equals another one except for its serial."""
    serials = [b'"serial": %d' % _document(each.body or b"{}").get("serial", -1) for each in (entry, source)]
    return (entry.body or b"").replace(serials[0], serials[1], 1) == source.body


def _had_its_lock(point: Point) -> bool:
    """Return whether S3 has shown a delete or undeclare its lock, and the verb has removed nothing since."""
    told = [answer for answer, *_ in point.answers]
    while told and told[-1].status != 204:
        entry = told.pop().entry
        if entry is not None and re.search(rb'"Operation":"(delete|undeclare)"', entry.body or b""):
            return True
    return False


def lock_to_unlock(request: HttpRequest, bucket: Bucket) -> int:
    """Return the version of the current lock, if a request is to remove that lock; otherwise -1."""
    if request.verb not in ("unlock", "break", "unfreeze", *_OF_CLOUD):
        return -1
    lock = bucket.current(LOCK_KEY)
    return lock.version if lock is not None and _meant(lock, request) else -1


def says_released(request: HttpRequest, reply: Reply) -> bool:
    """Return whether a response says that the lock is not held. A refused `cloud {}` release says so, too."""
    is_refused = request.verb == "cloud-unlock" and reply.status == 409
    return is_refused or (request.verb in RELEASES and reply.status == 200)


def finds_released(point: Point, reply: Reply, before: Bucket, bucket: Bucket) -> bool:
    """Return whether a repeated release over `cloud {}` is refused, because an earlier try has released.

    `before` is the bucket before the first try. A released lock leaves nothing that tells this try from the
    release of a workspace that nobody has locked: `safety.md`.
    """
    if point.request.verb != "cloud-unlock" or reply.status != 409:
        return False
    was_held = lock_to_unlock(point.request, before) >= 0
    finds_none = not any(answer.entry for answer, *_ in point.answers)
    return was_held and finds_none and bucket.current(LOCK_KEY) is None


def of_released(point: Point, first: int, bucket: Bucket) -> Iterable[Violation]:
    """Judge a response that says that the lock of a request is not held any more.

    `first` is the result of `lock_to_unlock` when the invocation began.
    """
    lock = bucket.current(LOCK_KEY)
    if lock is None or not _meant(lock, point.request) or _is_anothers(lock, point.request):
        return
    by = dict(lock.metadata).get("locked-by")
    if _is_release(point.request) and by != point.request.principal:
        return  # another principal has acquired it with a copy of the document
    if point.request.verb in DELETES and _found_state(point) is None:
        return  # then it acquired no lock: this lock is another try's
    # A lock that came after the lock that was read or removed is another lock, even with the same document.
    was_read = any(answer.entry == lock for answer, *_ in point.answers)
    # A lock that it has not read was there all the time, if it was there at the beginning.
    if was_read or lock.version == first or not _was_told(point):
        yield Violation(
            Invariant.RELEASED,
            f"{_named(point.request)} was said to be done and left the lock {lock_owner(lock)}",
        )


def _was_told(point: Point) -> bool:
    """Return whether an invocation has got an answer of S3 on which its response can rest."""
    return any(answer.status in (200, 204, 404) for answer, *_ in point.answers)


def late_delete(effect: Effect, point: Point, parties: Iterable[Party]) -> frozenset[bytes]:
    """Return a mark for a delete of state or record that had its lock, and lands under the next holder's."""
    lands = point.request.verb in DELETES and effect.key == STATE_KEY
    lands |= point.request.verb in RECORD_DELETES and effect.key == RECORD_KEY and _had_its_lock(point)
    is_late = lands and effect.before is not None and any(each.holds for each in parties)
    marks = {_LATE + str(point.number).encode()}
    if effect.key == RECORD_KEY:
        marks.add(b"record deleted late")
    return frozenset(marks if is_late else ())


def sent_by_late_deletes(acknowledged: frozenset[bytes]) -> list[int]:
    """Return the numbers of the points of the deletes that are marked as late."""
    return [int(mark.removeprefix(_LATE)) for mark in acknowledged if mark.startswith(_LATE)]


def of_deleted(point: Point, bucket: Bucket, late: Iterable[Point]) -> Iterable[Violation]:
    """Judge a delete that was answered with success.

    `late` are the points of deletes that landed under the next holder's lock.
    """
    if any(
        then.request == point.request and then.answers == point.answers[: len(then.answers)] for then in late
    ):
        yield Violation(Invariant.HELD, "a delete was acknowledged, and another held the lock when it landed")
    entries = bucket.key(STATE_KEY).entries
    found = _found_state(point)
    if found in entries and all(entry.body is not None for entry in entries[entries.index(found) :]):
        yield Violation(
            Invariant.DELETED, f"a delete was answered with success and left {_described(entries[-1])}"
        )


def has_deleted(point: Point, bucket: Bucket) -> bool:
    """Return whether a delete that was answered with success found a state, and no state is current now."""
    return _found_state(point) is not None and bucket.current(STATE_KEY) is None


def of_undone_delete(
    effect: Effect, point: Point, then: Point, bucket: Bucket, excused: frozenset[Exemption]
) -> Iterable[Violation]:
    """Judge a change of the state object by a request that was sent before a delete was acknowledged.

    `then` is the point of its invocation when the delete was acknowledged. `excused` are the exemptions that
    count as no violation.
    """
    if effect.added is None or effect.added.body is None or effect.before is not None:
        return
    request = point.request
    if request.verb == "undelete":
        beneath = bucket.key(STATE_KEY).entries[-2:-1]
        if any(entry.version_id == _document(request.body)["marker"] for entry in beneath):
            return  # it has seen that delete
    # The same PutObject, retried or not, and S3 has answered its invocation with no known outcome since.
    since = point.answers[len(then.answers) :]
    pending = then.pending.get(MAIN)
    was_on_its_way = (
        (then.pending == point.pending and pending is not None and pending.if_none_match)
        and point.answers[: len(then.answers)] == then.answers
        and all(answer.status in _UNTOLD for answer, *_ in since)
    )
    if not (Exemption.LATE_CREATE in excused and was_on_its_way):
        yield Violation(
            Invariant.DELETED,
            f"a delete was answered with success, and a {request.verb} from before has undone it",
        )


def _found_state(point: Point) -> Entry | None:
    """Return the state that a delete read first. The delete of a workspace reads the record before."""
    told = [answer.entry for answer, *_ in point.answers if answer.status in (200, 404)]
    place = 1 if point.request.verb in WORKSPACE_DELETES else 0
    return told[place] if len(told) > place else None


def _meant(lock: Entry, request: HttpRequest) -> bool:
    if request.verb in _OF_CLOUD:
        workspace = _Workspace(*_fields(request.id))
        if request.verb == "cloud-force-unlock":
            return lock.version_id == workspace.seen_lock
        owner = (lock_owner(lock), dict(lock.metadata).get("locked-by"))
        return owner == (workspace.lock_id, request.principal)
    if request.verb == "unlock":
        return named_lock(request) in (None, lock_owner(lock))
    if request.verb == "break":
        return (lock_owner(lock), lock.version_id) == (request.lock_id, request.id)
    if request.verb == "unfreeze":
        return dict(lock.metadata).get("freeze") == request.id
    info = _document(lock.body or b"")
    if request.verb == "restore" and not info["Info"].endswith(f": {_document(request.body)['reason']}"):
        return False
    verbs = {"delete"} if request.verb in DELETES else {request.verb}
    if request.verb in WORKSPACE_DELETES:
        verbs.add("undeclare")  # the lock under which it deletes the record alone
    return info["Operation"] in verbs and info["Who"] == request.principal


def of_acquired(holder: Party, parties: Iterable[Party]) -> Iterable[Violation]:
    """Judge an acquire that was answered with success."""
    for other in parties:
        if other.name != holder.name and other.holds:
            yield Violation(
                Invariant.ONE_HOLDER,
                f"{holder.name} was told that it holds the lock, and {other.name} still does",
            )


def of_acknowledged(
    request: HttpRequest,
    writer: Party,
    parties: Sequence[Party],
    bucket: Bucket,
    acknowledged: frozenset[bytes],
    *,
    any_push_counts: bool,
) -> Iterable[Violation]:
    """Judge a write that was answered with success. `acknowledged` includes its document."""
    body = request.body
    for other in parties:
        if other.name != writer.name and other.holds:
            yield Violation(
                Invariant.HELD,
                f"a write by {writer.name} was acknowledged, and {other.name} holds the lock",
            )
    entries = bucket.key(STATE_KEY).entries
    places = [place for place, entry in enumerate(entries) if entry.body == body]
    if not places:
        yield Violation(Invariant.KEPT, f"a write of {writer.name}'s was acknowledged and is nowhere")
        return
    yield from _written_over(entries[places[-1] :], writer, parties)
    # Its client may have written again meanwhile.
    later = next((e for e in entries[places[-1] + 1 :] if e.body and author(e) != writer.name), None)
    if later is not None and _past_the_api(later):
        later = None
    if (request.lock_id or request.verb != "write") and later is not None:
        what = f"a write of {writer.name}'s was acknowledged, and {_described(later)} had replaced it"
        yield Violation(Invariant.CURRENT, what)
    yield from _forward(entries, acknowledged, any_push_counts=any_push_counts)


def holding(reply: Reply, bucket: Bucket) -> frozenset[bytes]:
    """Return a mark if a freeze of a pattern left no name: it holds until somebody lifts it.

    The mark has the number of versions: one of these may still be acknowledged.
    """
    told, record = _document(reply.body.encode()), bucket.current(PATTERNS_KEY)
    until = told["freeze"]["until"]
    is_whole = not told["names"] and told["next"] is None
    holds = is_whole and record is not None and told["freeze"]["id"].encode() in (record.body or b"")
    ends, count = seconds_of(until) if until else 10**9, len(bucket.key(STATE_KEY).entries)
    return frozenset({_FROZEN + f"{ends} {count}".encode()} if holds else ())


def without_holding(acknowledged: frozenset[bytes]) -> frozenset[bytes]:
    """Return the marks without those of frozen patterns."""
    return frozenset(mark for mark in acknowledged if not mark.startswith(_FROZEN))


def of_pattern(
    verb: str, writer: Party, bucket: Bucket, acknowledged: frozenset[bytes], now: int
) -> Iterable[Violation]:
    """Judge a write that was answered with success, beside a freeze of a pattern that holds.

    `acknowledged` includes its document. A first write that was refused, and had released its lock, can still
    create the state afterwards: `fencing.md`.
    """
    entries = bucket.key(STATE_KEY).entries
    deleted = [place for place, entry in enumerate(entries) if entry.body is None]
    first = entries[deleted[-1] + 1 if deleted else 0 :][:1]
    current = bucket.current(STATE_KEY)
    under = [dict(each.metadata).get("lock-id") for each in (first[0], current)] if first and current else []
    same = len(under) == 2 and under[0] == under[1]
    if verb != "undelete" and first and not _counts(first[0], acknowledged) and not same:
        return
    marks = (mark.removeprefix(_FROZEN).split() for mark in acknowledged if mark.startswith(_FROZEN))
    if any(int(ends) > now and len(entries) > int(count) for ends, count in marks):
        what = f"a {verb} by {writer.name} was acknowledged, and a freeze of its pattern was said to hold"
        yield Violation(Invariant.HELD, what)


def _may_refuse(bucket: Bucket, lock: Entry) -> bool:
    """Return whether a frozen pattern may have refused the first write under a lock that is no older."""
    return any(
        lock.modified >= (seconds_of(one["since"]) if one["since"] else record.modified)
        for record in bucket.key(PATTERNS_KEY).entries
        for one in _document(record.body or b"")["freezes"]
    )


def _is_blind(entry: Entry) -> bool:
    """Return whether a restore wrote a version blindly. It counts as having seen the version before."""
    return _operation(entry) == "restore" and author(entry) == BLIND


def _written_over(entries: Sequence[Entry], writer: Party, parties: Iterable[Party]) -> Iterable[Violation]:
    """Judge the successor of a version that was acknowledged just now, the first of the entries."""
    if len(entries) == 1:
        return
    written, after, *_ = entries
    if after.body is None or _past_the_api(after):
        return
    seen = next((party.seen for party in parties if party.name == author(after)), frozenset())
    if author(after) != writer.name and written.body not in seen and not _is_blind(after):
        yield Violation(
            Invariant.SEEN,
            f"{_described(written)} was acknowledged after {author(after)}, who had not seen it, had written "
            "over it",
        )


def _forward(
    entries: Iterable[Entry], acknowledged: frozenset[bytes], *, any_push_counts: bool
) -> Iterable[Violation]:
    last: Entry | None = None
    for entry in entries:
        if entry.body is None:
            last = None
        elif _counts(entry, acknowledged):
            is_forced = forced(entry.body) in acknowledged
            is_free = _operation(entry) in FORCED or is_forced
            if last is not None and not is_free and not _past_the_api(entry):
                yield from _goes_back(last, entry)
            if last is not None and not is_forced:
                yield from _empties(last, entry)
            last = entry
        elif any_push_counts and _operation(entry) in FORCED:
            last = None


def _goes_back(before: Entry, after: Entry) -> Iterable[Violation]:
    """Judge a state that follows an acknowledged state."""
    last, document = _document(before.body or b""), _document(after.body or b"")
    if document["lineage"] != last["lineage"]:
        yield Violation(Invariant.FORWARD, f"{_described(after)} changed the lineage")
    elif document["serial"] <= last["serial"]:
        yield Violation(Invariant.FORWARD, f"{_described(after)} came after serial {last['serial']}")


def _empties(before: Entry, after: Entry) -> Iterable[Violation]:
    """Judge a state that follows an acknowledged state, perhaps by a push without force."""
    if _is_blank(_document(after.body or b"")) and _document(before.body or b"")["lineage"]:
        yield Violation(Invariant.FORWARD, f"{_described(after)} is blank, and replaced {_described(before)}")


def of_announced(point: Point, acknowledged: frozenset[bytes]) -> Iterable[Violation]:
    """Judge an upload that was created just now, by the state and the lock that its create read."""
    *states, lock = [answer.entry for answer, *_ in point.answers if answer.entry]
    if point.request.force or not states or not _counts(states[-1], acknowledged):
        return
    new, last = _document(point.request.body), _document(states[-1].body or b"")
    if new["serial"] <= last["serial"] and not _written_under(states[-1], lock):
        what = f"an upload of serial {new['serial']} was created over the acknowledged {last['serial']}"
        yield Violation(Invariant.FORWARD, what)


def _written_under(state: Entry, lock: Entry) -> bool:
    """Return whether a state was written under this lock. In the lock's first second only the ID shows it."""
    return dict(state.metadata).get("lock-id") == lock_owner(lock) and state.modified >= lock.modified


# --- workspaces with their records ----------------------------------------------------------------


def since_deleted(effect: Effect, request: HttpRequest, name: str, known: frozenset[bytes]) -> set[bytes]:
    """Return the marks of a change of state or record: a delete's client, or what came since its delete."""
    if effect.added is None:
        return set()
    if effect.added.body is None:
        return {_DELETED + name.encode()} if request.verb in RECORD_DELETES else set()
    deleters = [mark.removeprefix(_DELETED).decode() for mark in known if mark.startswith(_DELETED)]
    return {_since(deleter, effect.key, effect.added) for deleter in deleters}


def of_workspace_effect(
    effect: Effect, request: HttpRequest, name: str, known: frozenset[bytes]
) -> Iterable[Violation]:
    """Judge a change of state or record: a request deletes nothing that came after it began to delete."""
    if request.verb not in RECORD_DELETES or effect.before is None:
        return
    if _since(name, effect.key, effect.before) in known:
        what = f"a {request.verb} of {name}'s deleted a version of {effect.key} from after its first delete"
        yield Violation(Invariant.REPEATED, what)


def may_be_anew(request: HttpRequest, reply: Reply, bucket: Bucket) -> bool:
    """Return whether a delete was refused because it and a later creation have the same second of S3's."""
    if request.verb not in WORKSPACE_DELETES or reply.status != 409:
        return False
    histories = [bucket.key(key).entries for key in (RECORD_KEY, STATE_KEY)]
    deleted = {history[-1].modified for history in histories if history and history[-1].body is None}
    made = ([entry.modified for entry in history if entry.body is not None] for history in histories)
    return any(times[-1] in deleted for times in made if times)


def of_created(request: HttpRequest, bucket: Bucket) -> Iterable[Violation]:
    """Judge a create of a workspace that was answered with success."""
    records = [_document(entry.body) for entry in bucket.key(RECORD_KEY).entries if entry.body]
    if not any(record["created_by"] == request.principal for record in records):
        what = f"a workspace of {request.principal}'s was acknowledged as created and is nowhere"
        yield Violation(Invariant.KEPT, what)


def _since(deleter: str, key: str, entry: Entry) -> bytes:
    return f"{deleter}: {key} {entry.version}".encode()


# --- writes that were answered --------------------------------------------------------------------


def of_heard_write(request: HttpRequest, writer: Party, bucket: Bucket) -> Iterable[Violation]:
    """Judge a write whose success its client heard just now."""
    current = bucket.current(STATE_KEY)
    if current is not None and _past_the_api(current):
        return
    if writer.holds and (current is None or current.body != request.body):
        what = f"{writer.name} holds the lock, and what it was told is saved is not the current state"
        yield Violation(Invariant.CURRENT, what)


def of_refused_write(
    request: HttpRequest, status: int, writer: Party, bucket: Bucket, acknowledged: frozenset[bytes]
) -> Iterable[Violation]:
    """Judge the refusal of a write: the lock's holder whose write follows what it read is not refused."""
    lock = bucket.current(LOCK_KEY)
    if lock is None or not writer.holds:
        return
    if status == 423 and b"record deleted late" in acknowledged:
        return  # `Exemption.LATE_DELETE`: an undeclare has removed the record
    uploaded = {entry.body for key in bucket.staged for entry in key.entries}
    if request.verb == "commit" and request.body not in uploaded:
        return  # it uploaded nothing, or another document
    entries = bucket.key(STATE_KEY).entries
    last: Entry | None = None
    for entry in entries:
        if entry.body is None:
            last = None
        elif _counts(entry, acknowledged):
            last = entry
    # An earlier try of the first write can take effect after this try has found no state.
    is_first = last is None or all(entry.body is None or author(entry) == writer.name for entry in entries)
    if status == 423 and is_first and _may_refuse(bucket, lock):
        return
    if last is not None and last.body not in writer.seen and author(last) != writer.name:
        return  # it has not read the last acknowledged state
    operation = _document(lock.body or b"").get("Operation")
    if last is not None and operation not in FORCED and not request.force:
        new, document = _document(request.body), _document(last.body or b"")
        is_saved = last.body == request.body and _written_under(last, lock)
        if not is_saved and (new["lineage"] != document["lineage"] or new["serial"] <= document["serial"]):
            return  # it does not follow the last acknowledged state
    if last is not None and not request.force and any(_empties(last, last._replace(body=request.body))):
        return
    # An unacknowledged state in the lock's own second cannot be told from a state before the lock.
    if any(e.modified == lock.modified and e.body and not _counts(e, acknowledged) for e in entries):
        return
    yield Violation(
        Invariant.FOLLOWED,
        f"{writer.name} holds the lock, follows on what it read, and was refused with {status}",
    )


def _described(entry: Entry) -> str:
    return f"{author(entry)}'s state of serial {_document(entry.body or b'')['serial']}"


def _named(request: HttpRequest) -> str:
    if request.verb == "break":
        return f"a break of version {request.id} of the lock {request.lock_id}"
    if request.verb not in ("unlock", "native-unlock"):
        return f"a {request.verb}"
    named = named_lock(request)
    return "a force-unlock without an ID" if named is None else f"an unlock of {named}"

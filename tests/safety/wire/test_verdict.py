"""The verdict on the journals of witnesses: every possible finding in one state, and what must be none."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import count
from typing import Any

import pytest

from tests.safety.wire.verdict import Attempt, Operation, operations, verify
from tests.safety.wire.witness import Content, content, with_serial

STATE = "load/a"


def version(counter: int, serial: int | None = None, by: str = "") -> Content:
    """Return a version, `by` a client if several have the same number."""
    return Content(f"sha-{counter}{by}", serial or counter, counter, f"bare-{counter}{by}")


def again(source: Content, serial: int) -> Content:
    """Return the version that a restore of `source` writes."""
    return replace(source, sha256=f"{source.sha256} at {serial}", serial=serial)


ONE, TWO, THREE = version(1), version(2), version(3)


class Story:
    """Operations of some clients. Each takes half a second and begins a second after the last."""

    def __init__(self) -> None:
        self.told: list[Operation] = []
        self._seconds = count(100.0)

    def do(self, client: str, verb: str, *statuses: int | None, lock: str = "", **facts: Any) -> "Story":
        """Add an operation, by default acknowledged and under the lock with the client's name."""
        begun = [next(self._seconds) for _ in statuses or (200,)]
        attempts = tuple(
            Attempt(at, at + 0.5, status) for at, status in zip(begun, statuses or (200,), strict=True)
        )
        self.told.append(Operation(client, verb, STATE, lock or client, attempts, **facts))
        return self

    def lock(self, client: str, *statuses: int | None, **facts: Any) -> "Story":
        return self.do(client, "lock", *statuses, **facts)

    def read(self, client: str, found: Content | None) -> "Story":
        return self.do(client, "read", 200 if found else 204, read=found)

    def write(self, client: str, new: Content, over: Content | None, *statuses: int | None) -> "Story":
        return self.do(client, "write", *statuses, written=new, over=over and over.sha256)

    def unlock(self, client: str, *statuses: int | None) -> "Story":
        return self.do(client, "unlock", *statuses)

    def force(self, lock: str, *statuses: int | None) -> "Story":
        return self.do("operator", "force", *statuses, lock=lock)

    def restore(self, new: Content | None, source: Content, over: Content, *statuses: int | None) -> "Story":
        """Add a restore. `new` is None if no response with the serial reached the client."""
        facts = {"written": new, "source": source.bare, "over": over.sha256}
        return self.do("restorer", "restore", *statuses, lock="restore-x", **facts)

    def freeze(self, *statuses: int | None, until: float = float("inf")) -> "Story":
        return self.do("freezer", "freeze", *statuses, lock="freeze-x", until=until)

    def unfreeze(self) -> "Story":
        return self.do("freezer", "unfreeze", lock="freeze-x")

    def round(self, client: str, new: Content, over: Content | None) -> "Story":
        return self.lock(client).read(client, over).write(client, new, over).unlock(client)

    def at(self, began: float, ended: float, client: str, verb: str, lock: str) -> "Story":
        """Add an acknowledged operation at another time."""
        self.told.append(Operation(client, verb, STATE, lock, (Attempt(began, ended, 200),)))
        return self

    def later(self, seconds: int) -> "Story":
        for _ in range(seconds):
            next(self._seconds)
        return self


def counted() -> Story:
    """Two rounds, of clients a and b: the history is ONE, TWO."""
    return Story().round("a", ONE, None).round("b", TWO, ONE)


REFUSED = version(2, by="refused")
LATER = version(3, by="c")
RESTORED = again(ONE, 3)
ON_RESTORED = version(2, serial=4, by="c")

FINE = {
    "three rounds": (counted().round("a2", THREE, TWO), [ONE, TWO, THREE]),
    "a write without an answer, stored": (
        counted().lock("c").write("c", LATER, TWO, None),
        [ONE, TWO, LATER],
    ),
    "a write without an answer, not stored": (counted().lock("c").write("c", LATER, TWO, None), [ONE, TWO]),
    "a refused write that its successor did not see": (
        Story()
        .round("a", ONE, None)
        .lock("b")
        .force("b")
        .lock("c")
        .read("c", ONE)
        .write("b", REFUSED, ONE, 409)
        .write("c", THREE, ONE),
        [ONE, REFUSED, THREE],
    ),
    "a refused write that its successor saw": (
        Story()
        .round("a", ONE, None)
        .lock("b")
        .force("b")
        .write("b", REFUSED, ONE, 409)
        .round("c", THREE, REFUSED),
        [ONE, REFUSED, THREE],
    ),
    "a new holder after a removal": (Story().lock("a").force("a", None, 409).lock("b"), []),
    "a removal before its holder was told": (
        Story().lock("a").lock("b").unlock("b").at(99.8, 100.2, "operator", "force", "a"),
        [],
    ),
    "an acquire by a retry, after a removal": (
        Story()
        .later(2)
        .lock("b")
        .later(4)
        .unlock("b")
        .at(100, 104.5, "a", "lock", "a")
        .at(101, 101.5, "o", "force", "a"),
        [],
    ),
    "a write under a lock that was acquired once more": (
        Story()
        .later(3)
        .write("a", ONE, None)
        .at(100, 102.5, "a", "lock", "a")
        .at(101, 101.5, "o", "force", "a"),
        [ONE],
    ),
    "a refusal in favour of a holder": (Story().lock("a").lock("b", 423, holder="a"), []),
    "a restore and its successor": (
        counted().restore(RESTORED, ONE, TWO).round("c", ON_RESTORED, RESTORED),
        [ONE, TWO, RESTORED, ON_RESTORED],
    ),
    "a restore that changed nothing": (counted().restore(None, TWO, TWO), [ONE, TWO]),
    "a restore without an answer that is not there": (counted().restore(None, ONE, TWO, None), [ONE, TWO]),
    "a restore without an answer that was seen": (
        counted().restore(None, ONE, TWO, 409).round("c", ON_RESTORED, RESTORED),
        [ONE, TWO, RESTORED, ON_RESTORED],
    ),
    "a restore without an answer that was not seen": (
        counted().restore(None, ONE, TWO, None).round("c", version(3, 4), TWO),
        [ONE, TWO, RESTORED, version(3, 4)],
    ),
    "a freeze that keeps others out until it is lifted": (
        Story().freeze().lock("a", 423, holder="freeze-x").unfreeze().round("a2", ONE, None),
        [ONE],
    ),
    "a freeze that has ended": (Story().freeze(until=102).later(3).lock("a"), []),
    "a freeze that is told that its end has passed": (Story().freeze(None, 400, until=101), []),
}


@pytest.mark.parametrize(("story", "history"), FINE.values(), ids=FINE)
def test_no_finding(story: Story, history: Sequence[Content]) -> None:
    findings = verify(story.told, {STATE: history}, {})
    assert findings.lost == findings.violations == ()


def test_the_findings_are_counted() -> None:
    story = counted().restore(RESTORED, ONE, TWO).freeze().unfreeze().lock("c")
    findings = verify(story.told, {STATE: [ONE, TWO, RESTORED]}, {STATE: "c"}, ["c"])
    counts = (findings.acknowledged, findings.requests, findings.unacknowledged, findings.locks_left)
    assert counts == (2, 12, 0, 1)
    assert (findings.restored, findings.frozen) == (1, 1)


STALE = version(2, serial=3, by="stale")
ON_STALE = version(3, serial=4)
HELD = "while a's lock"
FROZEN = "while freezer's freeze"
UNSEEN = "which its writer had not read"
ODD = "should never get that answer"

BROKEN = {
    "a write over an unread version": (
        counted().lock("c").write("c", STALE, ONE),
        [ONE, TWO, STALE],
        [UNSEEN, "the counter is 2"],
    ),
    "a refused write over an unread version": (
        counted().write("c", STALE, ONE, 409),
        [ONE, TWO, STALE],
        [UNSEEN],
    ),
    "a serial that goes back": (
        Story().round("a", ONE, None).round("b", version(2, 1), ONE),
        [ONE, version(2, 1)],
        ["goes back in serial"],
    ),
    "another order than that of the answers": (
        counted(),
        [TWO, ONE],
        [UNSEEN, UNSEEN, "goes back in serial", "the counter is 1"],
    ),
    "a version of nobody": (Story(), [version(1)], ["was written by nobody", "the counter is 1"]),
    "a version twice": (
        Story().round("a", ONE, None),
        [ONE, ONE],
        ["2 times", UNSEEN, "goes back in serial"],
    ),
    "two holders": (Story().lock("a").lock("b").unlock("a"), [], [HELD]),
    "a new holder after the removal of another lock": (Story().lock("a").force("x").lock("b"), [], [HELD]),
    "a removal after its holder was told": (
        Story().lock("a").lock("b").unlock("a").at(99.8, 99.9, "operator", "force", "a"),
        [],
        [HELD],
    ),
    "a write under a lock that was removed": (
        Story().lock("a").force("a").write("a", ONE, None),
        [ONE],
        ["after its lock had been removed"],
    ),
    "a read of the past": (counted().lock("c").read("c", ONE), [ONE, TWO], ["after Content(sha256='sha-2'"]),
    "a read of what is not there": (counted().read("c", THREE), [ONE, TWO], ["which is not in the history"]),
    "an acquire that is denied": (Story().lock("a", 403), [], [ODD]),
    "a release that is refused": (Story().lock("a").unlock("a", 409), [], [ODD]),
    "a write that needs a lock": (Story().lock("a").write("a", ONE, None, 428), [], [ODD]),
    "a freeze whose end has not passed": (Story().freeze(None, 400), [], [ODD]),
    "a refusal in favour of nobody": (Story().lock("b", 423, holder="x"), [], ["whom nobody knows"]),
    "a version that a refused restore cannot have written": (
        counted().restore(None, ONE, TWO, 409),
        [ONE, TWO, again(TWO, 3)],
        ["was written by nobody"],
    ),
    "a restore over a version that was not seen": (
        counted().restore(RESTORED, ONE, ONE),
        [ONE, TWO, RESTORED],
        [UNSEEN],
    ),
    "a write over a restore that was not read": (
        counted().restore(RESTORED, ONE, TWO).write("c", ON_STALE, TWO),
        [ONE, TWO, RESTORED, ON_STALE],
        [UNSEEN],
    ),
    "a restore while somebody holds the lock": (
        counted().lock("c").restore(RESTORED, ONE, TWO).unlock("c"),
        [ONE, TWO, RESTORED],
        ["was acknowledged while c's lock"],
    ),
    "a holder in a frozen state": (Story().freeze().lock("a").unlock("a").unfreeze(), [], [FROZEN]),
    "a freeze of a held state": (Story().lock("a").freeze().unlock("a"), [], [HELD]),
    "a force-unlock of a freeze": (Story().freeze().force("freeze-x").lock("a"), [], [FROZEN]),
    "a holder before the end of a freeze": (Story().freeze(until=105).lock("a"), [], [FROZEN]),
}


@pytest.mark.parametrize(("story", "history", "told"), BROKEN.values(), ids=BROKEN)
def test_a_finding(story: Story, history: Sequence[Content], told: Sequence[str]) -> None:
    findings = verify(story.told, {STATE: history}, {})
    assert findings.lost == ()
    assert len(findings.violations) == len(told), findings.violations
    for sentence, words in zip(findings.violations, told, strict=True):
        assert words in sentence


@pytest.mark.parametrize("history", [[ONE, TWO], [ONE, RESTORED], [RESTORED], []])
def test_what_was_acknowledged_and_is_not_in_the_history_is_lost(history: list[Content]) -> None:
    story = counted().restore(RESTORED, ONE, TWO)
    assert len(verify(story.told, {STATE: history}, {}).lost) == 3 - len(history)


@pytest.mark.parametrize(
    ("story", "lock", "killed", "told"),
    [
        (counted(), "b", "", "is left, though b's unlock"),
        (Story(), "x", "", "nobody has asked for"),
        (Story().lock("a").do("a", "unlock", 409, cloud=True), "a", "", "is left, though a's unlock"),
        (counted().restore(None, TWO, TWO), "restore-x", "", "is left, though restorer's restore"),
        (Story().freeze().unfreeze(), "freeze-x", "", "is left, though freezer's unfreeze"),
        (Story().lock("a"), "a", "a", ""),
        (Story().lock("a", None, 200).unlock("a"), "a", "", ""),
        (Story().lock("a").unlock("a", 500, 500), "a", "", ""),
        (counted().restore(None, TWO, TWO, None), "restore-x", "", ""),
        (Story().freeze(until=103), "freeze-x", "", ""),
    ],
)
def test_a_lock_is_left_only_by_who_was_killed_or_not_told(
    story: Story, lock: str, killed: str, told: str
) -> None:
    history = [ONE, TWO] if len(story.told) > 7 else []
    findings = verify(story.told, {STATE: history}, {STATE: lock}, [killed])
    assert [told in sentence for sentence in findings.violations] == [True] * bool(told)
    assert findings.locks_left == (not told)


@pytest.mark.parametrize(
    ("verb", "cloud", "is_fine"),
    [
        ("lock", True, True),
        ("lock", False, False),
        ("unlock", True, True),
        ("create", True, True),
        ("upload", True, False),
    ],
)
def test_a_conflict_is_an_answer_to_some_requests_of_one_protocol(
    verb: str, cloud: bool, is_fine: bool
) -> None:
    findings = verify(Story().do("a", verb, 409, cloud=cloud).told, {}, {})
    assert (findings.violations == ()) is is_fine


# --- journals ----------------------------------------------------------------------------------------


def test_a_journal_whose_last_line_is_cut_tells_what_is_whole() -> None:
    said = Content("s", 2, 2)
    asked = {"number": 1, "verb": "write", "state": STATE, "lock": "l", "written": asdict(said), "over": "r"}
    lines = [
        json.dumps({**asked, "attempt": 0, "at": 1.0}) + "\n",
        json.dumps({"at": 2.0, "number": 1, "attempt": 0, "status": 500, "error": "fault"}) + "\n",
        json.dumps({**asked, "attempt": 1, "at": 3.0}) + "\n",
        '{"at":4.0,"number":1,"attempt":1,"status":200}',
    ]
    attempts = (Attempt(1.0, 2.0, 500, "fault"), Attempt(3.0))
    expected = Operation("a", "write", STATE, "l", attempts, said, "r")
    assert list(operations("a", lines)) == [expected]
    (whole,) = operations("a", [*lines[:3], lines[3] + "\n"])
    assert (whole.acknowledged, expected.acknowledged) == (True, False)


@pytest.mark.parametrize(("since", "told"), [({}, ["after Content"]), ({"since": 104.0}, [])])
def test_a_download_is_of_the_moment_in_which_its_client_asked_which_version_is_current(
    since: dict[str, float], told: list[str]
) -> None:
    asked = {"number": 1, "attempt": 0, "verb": "read", "state": STATE, "lock": "b", "at": 200.0, **since}
    answer = {"number": 1, "attempt": 0, "status": 200, "read": asdict(ONE), "at": 201.0}
    read = operations("b", [json.dumps(line) + "\n" for line in (asked, answer)])
    findings = verify([*counted().told, *read], {STATE: [ONE, TWO]}, {})
    assert [words in found for words, found in zip(told, findings.violations, strict=True)] == [True] * len(
        told
    )


def test_the_bytes_of_a_restored_version_are_told_from_its_serial() -> None:
    body = json.dumps({"serial": 7, "outputs": {"counter": {"value": 3}}}).encode()
    moved = with_serial(body, 100)
    assert json.loads(moved)["serial"] == 100
    assert content(moved).bare == content(body).bare
    assert content(moved).sha256 != content(body).sha256


def test_what_no_witness_wrote_has_no_counter() -> None:
    with pytest.raises(ValueError, match="no state of a witness"):
        content(b'{"serial": 1}')

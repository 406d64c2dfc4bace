"""The verdict on the journals of witnesses: every possible finding, each in one state."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import count

import pytest

from tests.safety.wire.verdict import Attempt, Findings, Operation, operations, verify
from tests.safety.wire.witness import Content, content, with_serial

STATE = "load/a"


def version(counter: int, serial: int | None = None, by: str = "") -> Content:
    bare = f"bare-{counter}{by}"
    return Content(f"sha-{counter}{by}", counter if serial is None else serial, counter, bare)


def again(source: Content, serial: int) -> Content:
    """Return the version that a restore of `source` writes."""
    return replace(source, sha256=f"{source.sha256} at {serial}", serial=serial)


ONE, TWO, THREE = version(1), version(2), version(3)


class Story:
    """Operations of some clients. Each takes half a second and begins a second after the last."""

    def __init__(self) -> None:
        self.told: list[Operation] = []
        self._seconds = count(100.0)

    def _add(
        self,
        client: str,
        verb: str,
        lock: str | None,
        statuses: Sequence[int | None],
        *,
        written: Content | None = None,
        over: Content | None = None,
        read: Content | None = None,
        holder: str | None = None,
    ) -> "Story":
        attempts = []
        for status in statuses:
            now = next(self._seconds)
            attempts.append(Attempt(now, now + 0.5, status))
        found = Operation(client, verb, STATE, lock, tuple(attempts), written, None, read, holder)
        self.told.append(replace(found, over=over.sha256 if over else None))
        return self

    def lock(self, client: str, *statuses: int | None, holder: str | None = None) -> "Story":
        return self._add(client, "lock", client, statuses or (200,), holder=holder)

    def read(self, client: str, found: Content | None) -> "Story":
        return self._add(client, "read", client, (200 if found else 204,), read=found)

    def write(self, client: str, new: Content, over: Content | None, *statuses: int | None) -> "Story":
        return self._add(client, "write", client, statuses or (200,), written=new, over=over)

    def unlock(self, client: str, *statuses: int | None) -> "Story":
        return self._add(client, "unlock", client, statuses or (200,))

    def force(self, lock: str | None, *statuses: int | None) -> "Story":
        return self._add("operator", "force", lock, statuses or (200,))

    def restore(
        self, serial: int | None, source: Content, over: Content | None, *statuses: int | None
    ) -> "Story":
        """Add a restore. `serial` is None if no response with the serial reached the client."""
        new = again(source, serial) if serial else None
        self._add("restorer", "restore", "restore-x", statuses or (200,), written=new, over=over)
        self.told[-1] = replace(self.told[-1], source=source.bare)
        return self

    def freeze(self, *statuses: int | None, seconds: float = 1000) -> "Story":
        self._add("freezer", "freeze", "freeze-x", statuses or (200,))
        self.told[-1] = replace(self.told[-1], until=self.told[-1].began + seconds)
        return self

    def unfreeze(self, *statuses: int | None) -> "Story":
        return self._add("freezer", "unfreeze", "freeze-x", statuses or (200,))

    def round(self, client: str, new: Content, over: Content | None) -> "Story":
        return self.lock(client).read(client, over).write(client, new, over).unlock(client)

    def later(self, seconds: int) -> "Story":
        for _ in range(seconds):
            next(self._seconds)
        return self

    def judge(self, *history: Content, left: str | None = None, killed: Sequence[str] = ()) -> Findings:
        return verify(self.told, {STATE: history}, {STATE: left} if left else {}, killed)


def assert_fine(findings: Findings) -> None:
    assert findings.lost == findings.violations == ()


def assert_broken(findings: Findings, *words: str) -> None:
    """Check that the findings are exactly these, each with its words."""
    assert findings.lost == ()
    assert len(findings.violations) == len(words), findings.violations
    for sentence, expected in zip(findings.violations, words, strict=True):
        assert expected in sentence


def test_three_rounds_one_after_another_are_fine() -> None:
    findings = (
        Story().round("a", ONE, None).round("b", TWO, ONE).round("a2", THREE, TWO).judge(ONE, TWO, THREE)
    )
    assert_fine(findings)
    assert (findings.acknowledged, findings.requests, findings.unacknowledged) == (3, 12, 0)


@pytest.mark.parametrize("history", [[ONE, THREE], [TWO, THREE], [ONE, TWO], []])
def test_an_acknowledged_write_that_is_not_in_the_history_is_lost(history: list[Content]) -> None:
    findings = Story().round("a", ONE, None).round("b", TWO, ONE).round("c", THREE, TWO).judge(*history)
    assert len(findings.lost) == 3 - len(history)
    assert "is not in the history" in findings.lost[0]


def test_a_write_without_an_answer_may_be_in_the_history_and_may_not() -> None:
    story = Story().round("a", ONE, None).lock("b").read("b", ONE).write("b", TWO, ONE, None).unlock("b")
    assert_fine(story.judge(ONE))
    findings = story.judge(ONE, TWO)
    assert_fine(findings)
    assert findings.unacknowledged == 1


def test_a_refused_write_may_be_in_the_history_and_be_written_over_by_somebody_who_did_not_see_it() -> None:
    refused = version(2, serial=2, by="refused")
    story = Story().round("a", ONE, None).lock("b").read("b", ONE).force("b").lock("c").read("c", ONE)
    story.write("b", refused, ONE, 409).unlock("b").write("c", TWO, ONE).unlock("c")
    assert_fine(story.judge(ONE, refused, TWO))


def test_a_refused_write_that_somebody_read_counts() -> None:
    refused = version(2, by="refused")
    story = Story().round("a", ONE, None).lock("b").read("b", ONE).force("b").write("b", refused, ONE, 409)
    story.round("c", THREE, refused)
    assert_fine(story.judge(ONE, refused, THREE))


def test_an_acknowledged_write_over_one_that_its_writer_had_not_read() -> None:
    story = Story().round("a", ONE, None).round("b", TWO, ONE)
    story.lock("c").read("c", ONE).write("c", version(2, serial=3, by="c"), ONE).unlock("c")
    findings = story.judge(ONE, TWO, version(2, serial=3, by="c"))
    assert_broken(findings, "which its writer had not read", "the counter is 2", "after Content")


def test_a_refused_write_over_an_acknowledged_one_that_its_writer_had_not_read() -> None:
    stale = version(2, serial=3, by="c")
    story = Story().round("a", ONE, None).lock("c").read("c", ONE).force("c").round("b", TWO, ONE)
    story.write("c", stale, ONE, 409)
    assert_broken(story.judge(ONE, TWO, stale), "which its writer had not read")


def test_a_serial_that_goes_back() -> None:
    findings = (
        Story().round("a", ONE, None).round("b", version(2, serial=1), ONE).judge(ONE, version(2, serial=1))
    )
    assert_broken(findings, "goes back in serial")


def test_a_history_in_another_order_than_the_answers() -> None:
    findings = Story().round("a", ONE, None).round("b", TWO, ONE).judge(TWO, ONE)
    assert any("was acknowledged before it" in sentence for sentence in findings.violations)


def test_a_version_that_nobody_wrote_and_one_that_is_there_twice() -> None:
    story = Story().round("a", ONE, None)
    assert_broken(story.judge(ONE, version(9)), "was written by nobody", "the counter is 9")
    assert_broken(story.judge(ONE, ONE), "2 times", "had not read")


def test_two_holders_at_once() -> None:
    story = Story().lock("a").lock("b").unlock("b").unlock("a")
    assert_broken(story.judge(), "while a's lock")


def test_a_new_holder_while_a_killed_one_still_has_the_lock() -> None:
    assert_broken(Story().lock("a").lock("b").unlock("b").judge(killed=["a"]), "while a's lock")


@pytest.mark.parametrize("statuses", [(200,), (None,), (None, 409)])
def test_a_new_holder_after_the_lock_was_removed_by_its_id(statuses: Sequence[int | None]) -> None:
    assert_fine(Story().lock("a").force("a", *statuses).lock("b").unlock("b").judge(killed=["a"]))


@pytest.mark.parametrize(("told", "sentences"), [(100.2, ()), (99.9, ("while a's lock",))])
def test_a_lock_may_be_removed_before_its_holder_is_told(told: float, sentences: Sequence[str]) -> None:
    story = Story().lock("a").lock("b").unlock("b").unlock("a")  # acquired between 100 and 100.5
    story.told.append(Operation("operator", "force", STATE, "a", (Attempt(99.8, told, 200),)))
    assert_broken(story.judge(), *sentences)


@pytest.mark.parametrize(("removed", "sentences"), [("a", ()), ("x", ("while b's lock",))])
def test_a_holder_may_be_told_only_when_the_lock_was_removed_and_taken_again(
    removed: str, sentences: Sequence[str]
) -> None:
    story = Story().later(2).lock("b").later(4).unlock("b")  # acquired at 102.5, given up at 107
    story.told.append(Operation("a", "lock", STATE, "a", (Attempt(100, 104.5, 200),)))
    story.told.append(Operation("operator", "force", STATE, removed, (Attempt(101, 101.5, 200),)))
    assert_broken(story.judge(killed=["a"]), *sentences)


def test_a_new_holder_after_another_lock_was_removed() -> None:
    assert_broken(Story().lock("a").force("x").lock("b").unlock("b").judge(killed=["a"]), "while a's lock")


def test_a_lock_that_was_removed_without_its_id_had_to_be_old() -> None:
    assert_fine(Story().lock("a").later(10).force(None).lock("b").unlock("b").judge(killed=["a"]))
    young = Story().lock("a").later(5).force(None).lock("b").unlock("b").judge(killed=["a"])
    assert_broken(young, "while a's lock")


def test_a_write_under_a_lock_that_was_removed() -> None:
    story = Story().lock("a").read("a", None).force("a").write("a", ONE, None).unlock("a")
    assert_broken(story.judge(ONE), "after its lock had been removed")


def test_a_lock_that_was_removed_before_its_holder_was_told_may_have_been_taken_once_more() -> None:
    story = Story().later(3).read("a", None).write("a", ONE, None).unlock("a")  # the write at 104
    story.told.append(Operation("a", "lock", STATE, "a", (Attempt(100, 102.5, 200),)))
    story.told.append(Operation("operator", "force", STATE, "a", (Attempt(101, 101.5, 200),)))
    assert_fine(story.judge(ONE))


def test_a_lock_that_is_left() -> None:
    assert_broken(Story().round("a", ONE, None).judge(ONE, left="a"), "is left, though a's unlock")
    assert_broken(Story().judge(left="x"), "nobody has asked for")
    story = Story().lock("a")
    refused = Operation("a", "unlock", STATE, "a", (Attempt(199.0, 199.5, 409),), cloud=True)
    story.told.append(refused)  # it says that the lock is gone
    assert_broken(story.judge(left="a"), "is left, though a's unlock")
    for story, killed in (
        (Story().lock("a"), ["a"]),
        (Story().lock("a", None, None, None), []),
        (Story().lock("a", None, 200).unlock("a"), []),
        (Story().lock("a").unlock("a", 500, 500, 500), []),
    ):
        findings = story.judge(left="a", killed=killed)
        assert_fine(findings)
        assert findings.locks_left == 1


def test_a_read_of_the_past() -> None:
    story = Story().round("a", ONE, None).round("b", TWO, ONE).lock("c").read("c", ONE).unlock("c")
    assert_broken(story.judge(ONE, TWO), "after Content(sha256='sha-2'")


def test_a_read_of_what_is_not_in_the_history() -> None:
    story = Story().round("a", ONE, None).lock("c").read("c", version(8)).unlock("c")
    assert_broken(story.judge(ONE), "which is not in the history")


@pytest.mark.parametrize(
    "story",
    [
        Story().lock("a", 403),
        Story().lock("a").unlock("a", 409),
        Story().lock("a").write("a", ONE, None, 428).unlock("a"),
        Story().lock("a").force("a", 403).unlock("a"),
    ],
)
def test_an_answer_that_nobody_should_get(story: Story) -> None:
    assert_broken(story.judge(), "should never get that answer")


def test_a_refusal_in_favour_of_nobody() -> None:
    story = Story().lock("a").lock("b", 423, holder="x").unlock("a")
    assert_broken(story.judge(), "whom nobody knows")
    assert_fine(Story().lock("a").lock("b", 423, holder="a").unlock("a").judge())


# --- restores --------------------------------------------------------------------------------------


def test_a_restore_goes_back_in_what_is_counted_and_forth_in_serial() -> None:
    restored = again(ONE, 3)
    story = Story().round("a", ONE, None).round("b", TWO, ONE).restore(3, ONE, TWO)
    findings = story.judge(ONE, TWO, restored)
    assert_fine(findings)
    assert (findings.acknowledged, findings.restored, findings.unacknowledged) == (2, 1, 0)
    story.round("c", version(2, serial=4, by="c"), restored)
    assert_fine(story.judge(ONE, TWO, restored, version(2, serial=4, by="c")))


def test_a_restore_that_was_acknowledged_and_is_gone_is_lost() -> None:
    story = Story().round("a", ONE, None).round("b", TWO, ONE).restore(3, ONE, TWO)
    assert len(story.judge(ONE, TWO).lost) == 1


def test_a_restore_that_changed_nothing_is_in_no_history() -> None:
    assert_fine(Story().round("a", ONE, None).restore(None, ONE, ONE).judge(ONE))


@pytest.mark.parametrize("status", [None, 409])
def test_a_restore_whose_caller_was_not_told_may_have_taken_effect_and_be_read_or_not(
    status: int | None,
) -> None:
    restored = again(ONE, 3)
    story = Story().round("a", ONE, None).round("b", TWO, ONE).restore(None, ONE, TWO, status)
    for history in ((ONE, TWO), (ONE, TWO, restored)):
        assert_fine(story.judge(*history))
    told = list(story.told)
    after = version(2, serial=4, by="c")
    assert_fine(story.round("c", after, restored).judge(ONE, TWO, restored, after))
    story.told = told
    after = version(3, serial=4, by="c")
    assert_fine(story.round("c", after, TWO).judge(ONE, TWO, restored, after))


def test_a_version_that_a_refused_restore_cannot_have_written() -> None:
    story = Story().round("a", ONE, None).round("b", TWO, ONE).restore(None, ONE, TWO, 409)
    assert_broken(story.judge(ONE, TWO, again(TWO, 3)), "was written by nobody")


def test_a_restore_over_a_version_that_its_operator_had_not_seen() -> None:
    story = Story().round("a", ONE, None).round("b", TWO, ONE).restore(3, ONE, ONE)
    assert_broken(story.judge(ONE, TWO, again(ONE, 3)), "which its writer had not read")


def test_a_writer_that_had_not_read_the_restored_version() -> None:
    stale = version(3, serial=4)
    story = Story().round("a", ONE, None).round("b", TWO, ONE).restore(3, ONE, TWO).lock("c").read("c", TWO)
    story.write("c", stale, TWO).unlock("c")
    findings = story.judge(ONE, TWO, again(ONE, 3), stale)
    assert_broken(findings, "which its writer had not read", "the counter is 3", "after Content")


def test_a_restore_while_somebody_holds_the_lock() -> None:
    story = Story().round("a", ONE, None).round("b", TWO, ONE).lock("c").restore(3, ONE, TWO).unlock("c")
    assert_broken(story.judge(ONE, TWO, again(ONE, 3)), "was acknowledged while c's lock")


def test_the_lock_of_a_restore_that_was_acknowledged_is_left() -> None:
    story = Story().round("a", ONE, None).restore(2, ONE, ONE)
    assert_broken(story.judge(ONE, again(ONE, 2), left="restore-x"), "is left, though restorer's restore")
    undecided = Story().round("a", ONE, None).restore(None, ONE, ONE, None)
    assert undecided.judge(ONE, left="restore-x").locks_left == 1


# --- freezes ---------------------------------------------------------------------------------------


def test_who_meets_a_freeze_is_refused_in_its_favour_and_goes_on_when_it_is_lifted() -> None:
    story = Story().freeze().lock("a", 423, holder="freeze-x").force("freeze-x", 423)
    story.told[-1] = replace(story.told[-1], holder="freeze-x")
    findings = story.unfreeze().round("a2", ONE, None).judge(ONE)
    assert_fine(findings)
    assert findings.frozen == 1


def test_a_holder_in_a_frozen_state() -> None:
    assert_broken(Story().freeze().lock("a").unlock("a").unfreeze().judge(), "while freezer's freeze")


def test_a_freeze_of_a_state_that_somebody_holds() -> None:
    assert_broken(Story().lock("a").freeze().unlock("a").judge(), "while a's lock")


@pytest.mark.parametrize("by", ["freeze-x", None])
def test_no_force_unlock_lifts_a_freeze(by: str | None) -> None:
    story = Story().freeze().later(20).force(by).lock("a").unlock("a")
    assert_broken(story.judge(), "while freezer's freeze")


def test_a_freeze_that_has_ended_is_lifted_by_whoever_locks() -> None:
    assert_fine(Story().freeze(seconds=5).later(5).lock("a").unlock("a").judge())
    assert_broken(Story().freeze(seconds=5).lock("a").unlock("a").judge(), "while freezer's freeze")


def test_a_freeze_is_told_that_its_end_has_passed_only_then() -> None:
    assert_fine(Story().freeze(None, 400, seconds=1).judge())
    assert_broken(Story().freeze(None, 400).judge(), "should never get that answer")


def test_a_freeze_that_was_lifted_is_left() -> None:
    findings = Story().freeze().unfreeze().judge(left="freeze-x")
    assert_broken(findings, "is left, though freezer's unfreeze")
    assert_fine(Story().freeze(seconds=3).judge(left="freeze-x"))


def test_the_bytes_of_a_restored_version_are_told_from_its_serial() -> None:
    body = json.dumps({"serial": 7, "outputs": {"counter": {"value": 3}}}).encode()
    moved = with_serial(body, 100)
    assert json.loads(moved)["serial"] == 100
    assert content(moved).bare == content(body).bare
    assert content(moved).sha256 != content(body).sha256


def test_a_journal_whose_last_line_is_cut_tells_what_is_whole() -> None:
    said = Content("s", 2, 2)
    written = asdict(said)
    asked = {"at": 1.0, "number": 1, "attempt": 0, "verb": "write", "state": STATE, "lock": "l"}
    lines = [
        json.dumps({**asked, "written": written, "over": "r"}) + "\n",
        json.dumps({"at": 2.0, "number": 1, "attempt": 0, "status": 500, "error": "fault"}) + "\n",
        json.dumps({**asked, "at": 3.0, "attempt": 1, "written": written, "over": "r"}) + "\n",
        '{"at":4.0,"number":1,"attempt":1,"status":200}',
    ]
    attempts = (Attempt(1.0, 2.0, 500, "fault"), Attempt(3.0))
    expected = Operation("a", "write", STATE, "l", attempts, said, "r")
    assert list(operations("a", lines)) == [expected]
    (whole,) = operations("a", [*lines[:3], lines[3] + "\n"])
    assert (whole.acknowledged, expected.acknowledged) == (True, False)
    assert (whole.ended, expected.ended) == (4.0, float("inf"))


def test_what_no_witness_wrote_has_no_counter() -> None:
    with pytest.raises(ValueError, match="no state of a witness"):
        content(b'{"serial": 1}')


@pytest.mark.parametrize(
    ("verb", "cloud", "fine"),
    [
        ("lock", True, True),
        ("lock", False, False),
        ("unlock", True, True),
        ("unlock", False, False),
        ("create", True, True),
        ("upload", True, False),
        ("current", True, False),
    ],
)
def test_a_conflict_is_an_answer_to_some_requests_of_one_protocol(verb: str, cloud: bool, fine: bool) -> None:
    story = Story()
    told = (Attempt(99.0, 99.5, 409),)
    story.told.append(Operation("a", verb, STATE, "a", told, cloud=cloud))
    assert_broken(story.judge(), *([] if fine else ["should never get that answer"]))


def test_a_download_is_of_the_moment_in_which_its_client_asked_which_version_is_current() -> None:
    story = Story().round("a", ONE, None).lock("b").force("b").round("c", TWO, ONE)
    asked = {"number": 1, "attempt": 0, "verb": "read", "state": STATE, "lock": "b", "cloud": True}
    told = {"number": 1, "attempt": 0, "status": 200, "read": asdict(ONE), "at": 201.0}
    late, early = {**asked, "at": 200.0}, {**asked, "at": 200.0, "since": 104.0}
    for asking, sentences in ((late, ["after Content"]), (early, [])):
        (read,) = operations("b", [json.dumps(line) + "\n" for line in (asking, told)])
        both = Story()
        both.told = [*story.told, read]
        assert_broken(both.judge(ONE, TWO), *sentences)

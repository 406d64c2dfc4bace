"""Imports against the deployed functions in this process, killed and disturbed at each of their requests."""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from holdfast import names
from holdfast.api import form, v1
from holdfast.state import held
from holdfast.state.document import Revision
from holdfast_cli.api import http
from holdfast_cli.api.management import Api
from holdfast_cli.errors import CommandError, UnavailableError
from holdfast_cli.importing import closing, copying, planning
from holdfast_cli.importing.comparing import Content, MovedOn, Same, Verdict, compare
from holdfast_cli.importing.journal import Event, Journal
from holdfast_cli.importing.many import Outcome
from holdfast_cli.importing.new_place import OPERATION, NewPlace
from holdfast_cli.importing.plan import Plan, Planned
from holdfast_cli.importing.planning import Rule
from holdfast_cli.importing.run import Run
from holdfast_cli.importing.source import Settings
from tests.contract.conftest import CLOUD_BUCKET, CLOUD_STAGING, Bucket, Handle, Server, started
from tests.support.documents import LINEAGE, OPERATOR, lock_info, next_serial, only_id, state
from tests.support.in_process_api import ADDRESS, InProcessApi
from tests.support.shelf import Shelf, serial

OLD, NAME = "old/prod", names.parse("network/prod")
MINE = json.loads(lock_info("mine"))


class Killed(BaseException):
    """The process is gone: nothing that it would do afterwards happens."""


@pytest.fixture(scope="module")
def handlers(moto: Server) -> Iterator[dict[str, Handle]]:
    settings = {
        "HOLDFAST_BUCKET": CLOUD_BUCKET,
        "HOLDFAST_STAGING_BUCKET": CLOUD_STAGING,
        "HOLDFAST_MAX_STATE_MB": "20",
        "HOLDFAST_PRESIGN_ENDPOINT": str(moto.direct.meta.endpoint_url),
    }
    with started(moto, "terraform_http", "management", "cloud", **settings) as started_handlers:
        Bucket(CLOUD_BUCKET, moto).encrypt_with_kms()
        moto.direct.create_bucket(Bucket=CLOUD_STAGING)
        yield started_handlers


@dataclass
class Move:
    """An import of one state. `steps` counts its requests in both places, each twice: before and after it."""

    api: InProcessApi
    shelf: Shelf
    bucket: Bucket
    folder: Path
    patch: pytest.MonkeyPatch
    plan: Plan = field(default_factory=lambda: Plan(Settings(("shelf",)), [Planned(OLD, NAME)]))
    steps: int = 0
    at_step: Callable[[int], None] = lambda _: None

    def step(self, *_: str) -> None:
        self.steps += 1
        self.at_step(self.steps)

    def _in(self, journal: str, work: Callable[[Run], list[Outcome]]) -> list[Outcome]:
        with Journal.opened(self.folder / journal) as opened:
            opened.begin(ADDRESS, self.plan.settings)
            return work(Run(self.plan, opened, self.shelf, self.place))

    @property
    def place(self) -> NewPlace:
        return NewPlace(Api(ADDRESS, "Basic made-up", "the test"))

    def run_all(self, journal: str = "move.toml") -> list[Outcome]:
        return self._in(journal, lambda run: copying.copy(run, 0))

    def check_all(self) -> list[Outcome]:
        return self._in("move.toml", Run.check)

    def close_all(self, journal: str = "move.toml", *, refuse_writes: bool = False) -> list[Outcome]:
        return self._in(journal, lambda run: closing.close(run, refuse_writes=refuse_writes))

    def open_all(self, journal: str = "move.toml") -> list[Outcome]:
        return self._in(journal, closing.reopen)

    def run(self, journal: str = "move.toml") -> Outcome:
        [outcome] = self.run_all(journal)
        return outcome

    def check(self) -> Outcome:
        [outcome] = self.check_all()
        return outcome

    def close(self, *, refuse_writes: bool = False) -> Outcome:
        [outcome] = self.close_all(refuse_writes=refuse_writes)
        return outcome

    def open(self) -> Outcome:
        [outcome] = self.open_all()
        return outcome

    def named(self, **states: str) -> None:
        """Plan these states, with these names."""
        planned = [Planned(state, names.parse(name)) for state, name in states.items()]
        self.plan = replace(self.plan, states=planned)

    def kill_at(self, step: int) -> None:
        """Kill the process at a step: later requests and lines of the journal do not happen."""

        def die(now: int) -> None:
            if now >= step:
                raise Killed

        self.steps, self.at_step = 0, die

    def live(self) -> None:
        self.steps, self.at_step = 0, lambda _: None

    def here(self) -> bytes | None:
        """Return the current state in the new place."""
        bodies = self.bucket.bodies(NAME.state_key)
        return bodies[-1] if bodies else None

    def held(self) -> str | None:
        """Return the ID of the lock in the new place."""
        lock = held.read(self.bucket.direct_store(), NAME)
        return lock.info.id if lock else None

    def send(self, method: str, path: str, document: Any = None, **query: str) -> int:
        """Send a request of somebody else, and return its status."""
        asked = "&".join(f"{name}={value}" for name, value in query.items())
        other = InProcessApi(self.api.handlers, OPERATOR)
        if document is None:
            return other.send(method, f"{ADDRESS}{path}?{asked}", headers={}).status
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        headers = {"Content-Type": "application/json"}
        return other.send(method, f"{ADDRESS}{path}?{asked}", headers=headers, body=body).status

    def apply_here(self) -> None:
        """Change the state in the new place, as a pipeline does that has switched."""
        current = self.here()
        assert current is not None
        assert self.send("PUT", f"/locks/{NAME}", MINE) == 200
        assert self.send("POST", f"/states/{NAME}", next_serial(current), ID="mine") == 200
        assert self.send("POST", f"/unlocks/{NAME}", MINE) == 200


@pytest.fixture
def move(
    handlers: dict[str, Handle], moto: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Move]:
    api = InProcessApi(handlers, OPERATOR)
    found = Move(api, Shelf({OLD: state(3)}), Bucket(CLOUD_BUCKET, moto), tmp_path, monkeypatch)
    api.before = api.after = found.step
    found.shelf.each = found.step
    note = Journal.note

    def note_unless_killed(journal: Journal, event: Event) -> None:
        found.at_step(found.steps)
        note(journal, event)

    monkeypatch.setattr(Journal, "note", note_unless_killed)
    monkeypatch.setattr(http, "send", api.send)
    yield found
    Bucket(CLOUD_BUCKET, moto).empty()
    Bucket(CLOUD_STAGING, moto).empty()


def test_a_state_is_imported_byte_for_byte_and_both_locks_are_released(move: Move) -> None:
    assert move.run() == Outcome(OLD, NAME.value, "imported")

    assert move.bucket.bodies(NAME.state_key) == [move.shelf.contents[OLD]]
    assert (move.held(), move.shelf.locks) == (None, {})
    assert [move.run().word, move.check().word] == ["imported before", "the same"]
    assert len(move.bucket.bodies(NAME.state_key)) == 1


def test_an_import_that_is_killed_at_any_request_is_finished_by_the_next_run(move: Move) -> None:
    move.run()
    requests = move.steps
    assert requests > 15
    for step in range(1, requests + 1):
        move.bucket.empty()
        for journal in move.folder.iterdir():
            journal.unlink()
        move.kill_at(step)
        with pytest.raises(Killed):
            move.run()
        assert move.here() in (None, move.shelf.contents[OLD])
        move.live()

        outcome = move.run()

        assert outcome.word in ("imported", "imported before"), (step, outcome)
        assert move.here() == move.shelf.contents[OLD], step
        assert (move.held(), move.shelf.locks) == (None, {}), step
        # A late request of the killed run then acquires no other lock.
        lines = [json.loads(line) for line in (move.folder / "move.toml.journal").read_text().splitlines()]
        assert len({line["lock"]["ID"] for line in lines if line["event"] == "hold"}) == 1, step


def test_a_newer_state_replaces_what_was_imported_and_nothing_else(move: Move) -> None:
    move.run()
    move.shelf.apply(OLD)
    assert move.check().word == "moved on"

    assert move.run().word == "replaced"

    assert move.here() == move.shelf.contents[OLD]
    move.apply_here()
    assert [move.run().word, move.check().word] == ["in use", "in use"]
    move.shelf.apply(OLD)
    move.shelf.apply(OLD)
    before = move.here()
    for outcome in (move.run(), move.check()):
        assert (outcome.word, outcome.is_problem) == ("differs", True)
        assert OPERATOR.principal in outcome.text
    assert move.here() == before


def test_a_lost_journal_costs_nothing_while_only_the_import_has_written(move: Move) -> None:
    move.run()
    move.shelf.apply(OLD)

    assert move.run("another.toml").word == "replaced"
    move.apply_here()
    move.shelf.apply(OLD)
    move.shelf.apply(OLD)
    assert move.run("third.toml").word == "differs"


@pytest.mark.parametrize(
    "here",
    [state(3, lineage="another"), state(3, content="another"), state(4, content="another")],
    ids=["lineage", "content", "serial"],
)
def test_what_others_wrote_under_the_name_is_never_replaced(move: Move, here: bytes) -> None:
    assert move.send("PUT", f"/locks/{NAME}", MINE) == 200
    assert move.send("POST", f"/states/{NAME}", here, ID="mine") == 200
    assert move.run().word == "locked"
    assert move.send("POST", f"/unlocks/{NAME}", MINE) == 200

    assert move.run().word == "differs"

    assert move.bucket.bodies(NAME.state_key) == [here]
    assert move.shelf.locks == {}


def test_a_large_state_is_imported_through_an_upload(move: Move) -> None:
    move.shelf.contents[OLD] = state(3, content="x" * 4_100_000)

    assert move.run().word == "imported"

    assert move.here() == move.shelf.contents[OLD]
    assert any(path.startswith("/api/v2/state-versions/") for _, path in move.api.sent)
    assert (move.held(), move.shelf.locks) == (None, {})


def test_a_lock_that_is_broken_during_the_import_refuses_the_write(move: Move) -> None:
    def break_lock(method: str, path: str) -> None:
        if method == "POST" and path.startswith("/states/"):
            lock_id = move.held()
            assert lock_id
            assert move.send("POST", f"/unlocks/{NAME}", json.loads(only_id(lock_id))) == 200

    move.api.before = break_lock
    outcome = move.run()

    assert (outcome.word, outcome.is_problem) == ("failed", True)
    assert "the write was not accepted" in outcome.text
    assert (move.here(), move.shelf.locks) == (None, {})


def test_two_imports_of_a_state_exclude_each_other(move: Move) -> None:
    seen = []

    def import_too(method: str, path: str) -> None:
        if method == "POST" and path.startswith("/states/"):
            move.api.before = move.step
            seen.append(move.run("another.toml"))

    move.api.before = import_too
    assert move.run().word == "imported"

    assert [outcome.word for outcome in seen] == ["locked"]
    assert len(move.bucket.bodies(NAME.state_key)) == 1
    assert move.run("another.toml").word == "imported before"


def test_a_plan_is_used_by_one_process_at_a_time(move: Move) -> None:
    with Journal.opened(move.folder / "move.toml"), pytest.raises(CommandError, match="Another 'holdfast"):
        move.run()


def test_an_apply_at_any_request_of_close_is_refused_or_found(move: Move) -> None:
    move.run()
    move.live()
    assert move.close().word == "closed"
    requests = move.steps
    assert move.open().word == "opened"
    refused = 0
    move.live()
    for step in range(1, requests + 1):
        applied: list[bool] = []

        def apply_then(now: int, at: int = step, applied: list[bool] = applied) -> None:
            if now == at:
                applied.append(move.shelf.apply(OLD))

        move.steps, move.at_step = 0, apply_then

        outcome = move.close()

        move.live()
        assert outcome.word == ("left open" if applied == [True] else "closed"), step
        assert (OLD in move.shelf.locks) == (outcome.word == "closed"), step
        refused += applied == [False]
        if outcome.word == "closed":
            assert serial(move.shelf.contents[OLD]) == serial(move.here())
            move.open()
        else:
            assert move.run().word == "replaced"
    assert refused >= 4


def test_a_close_that_is_killed_at_any_request_is_verified_by_the_next(move: Move) -> None:
    move.run()
    move.live()
    move.close()
    requests = move.steps
    move.open()
    for step in range(1, requests + 1):
        move.kill_at(step)
        with pytest.raises(Killed):
            move.close()
        move.live()
        assert (move.run().word == "closed before") == (OLD in move.shelf.locks), step
        assert move.close().word == "closed", step
        assert move.open().word == "opened"
        assert move.shelf.locks == {}


def test_a_closed_state_stays_closed_if_it_is_closed_again_and_killed(move: Move) -> None:
    move.run()
    move.close()
    lock = dict(move.shelf.locks)
    move.live()
    move.close()
    requests = move.steps
    for step in range(1, requests + 1):
        move.kill_at(step)
        with pytest.raises(Killed):
            move.close()
        move.live()
        assert (move.run().word, move.shelf.locks) == ("closed before", lock), step


def test_open_leaves_a_lock_that_is_not_its_own(move: Move) -> None:
    move.run()
    move.close()
    move.shelf.locks[OLD] = "of an apply"

    assert move.open().word == "opened"

    assert move.shelf.locks == {OLD: "of an apply"}


def test_only_a_closed_state_is_refused_by_the_source_itself(move: Move) -> None:
    move.run()
    move.shelf.apply(OLD)

    assert move.close(refuse_writes=True).word == "left open"
    assert move.shelf.refused == set()
    move.run()
    assert move.close(refuse_writes=True).word == "closed"
    move.shelf.refused.add("of another plan")
    assert move.shelf.refused == {OLD, "of another plan"}
    move.open()
    assert move.shelf.refused == {"of another plan"}


def test_a_state_that_was_not_imported_is_not_closed(move: Move) -> None:
    outcome = move.close()

    assert (outcome.word, outcome.is_problem) == ("left open", True)
    assert move.shelf.locks == {}


@pytest.mark.parametrize("name", [names.parse("network/broken"), None], ids=["named", "unnamed"])
def test_nothing_is_closed_while_a_state_of_the_plan_is_not_imported(
    move: Move, name: names.StateName | None
) -> None:
    move.shelf.contents["broken"] = state(3)[:-20]
    whole = Planned(OLD, NAME)
    broken = Planned("broken", name, problem="" if name else "it has no name")
    move.plan = replace(move.plan, states=[broken, whole])
    word = "failed" if name else "left out"
    assert [outcome.word for outcome in move.run_all()] == [word, "imported"]

    outcomes = move.close_all(refuse_writes=True)

    assert [outcome.is_problem for outcome in outcomes] == [True, False]
    assert [outcome.word for outcome in outcomes] == ["left open" if name else "left out", "imported"]
    assert (move.shelf.locks, move.shelf.refused) == ({}, set())
    move.plan = replace(move.plan, states=[whole])
    assert move.close(refuse_writes=True).word == "closed"
    # What is closed stays so, even if the plan gets another state.
    move.plan = replace(move.plan, states=[broken, whole])
    assert [outcome.word for outcome in move.close_all(refuse_writes=True)][1] == "closed before"
    assert (list(move.shelf.locks), move.shelf.refused) == ([OLD], {OLD})


@pytest.mark.parametrize("content", [b"not a state", state(3)[:-20], b""])
def test_what_is_not_a_state_is_named_and_not_imported(move: Move, content: bytes) -> None:
    move.shelf.contents[OLD] = content

    outcome = move.run()

    assert (outcome.word, outcome.is_problem) == ("failed", True)
    assert OLD in outcome.text
    assert (move.here(), move.held(), move.shelf.locks) == (None, None, {})


def test_a_lock_that_somebody_else_holds_is_never_released(move: Move) -> None:
    move.shelf.locks[OLD] = "of an apply"
    unlocked: list[str] = []
    move.patch.setattr(move.shelf, "unlock", lambda state, _: unlocked.append(state))

    assert [move.run().word, move.run().word] == ["locked", "locked"]
    assert unlocked == []
    del move.shelf.locks[OLD]
    move.run()
    move.shelf.locks[OLD] = "of an apply"
    unlocked.clear()
    assert move.close().word == "locked"
    assert [move.run().word, unlocked] == ["imported before", []]


@pytest.mark.parametrize("size", [1, 4_100_000], ids=["http", "cloud"])
def test_a_lock_that_is_released_between_its_refusal_and_the_look_at_it_was_a_lock(
    move: Move, size: int
) -> None:
    move.shelf.contents[OLD] = state(3, content="x" * size)
    assert move.send("PUT", f"/locks/{NAME}", MINE) == 200

    def hold_until_the_look(method: str, path: str) -> None:
        if path == f"/manage/v1/locks/{NAME}":
            assert move.send("POST", f"/unlocks/{NAME}", MINE) == 200
        elif (method, path) == ("PUT", f"/locks/{NAME}") or path.endswith("/actions/lock"):
            assert move.send("PUT", f"/locks/{NAME}", MINE) == 200

    move.api.before = hold_until_the_look
    outcome = move.run()

    assert (outcome.word, outcome.is_problem) == ("locked", True)
    assert f"{NAME} was locked in Holdfast, but the lock was just released" in outcome.text
    move.api.before = move.step
    assert (move.run().word, move.shelf.locks) == ("imported", {})


def test_a_name_in_a_frozen_pattern_is_refused_and_not_locked(move: Move) -> None:
    """Nobody releases it, so nobody waits for it."""
    frozen = {"pattern": "network/*", "reason": "an incident", "id": "0123456789abcdef0123456789abcdef"}
    assert move.send("PUT", "/manage/v1/freezes", frozen) == 200

    outcome = move.run()

    assert (outcome.word, outcome.is_problem) == ("failed", True)
    assert "an incident" in outcome.text


@pytest.mark.parametrize("renamed", [False, True])
def test_a_lock_that_cannot_be_released_is_not_forgotten(move: Move, renamed: bool) -> None:
    move.kill_at(12)
    with pytest.raises(Killed):
        move.run()
    move.live()
    assert move.held()
    if renamed:
        move.named(**{OLD: "network/other"})
    silent = [True]

    def fail(_: str, path: str) -> None:
        if silent[0] and path.startswith("/unlocks/"):
            raise UnavailableError("503")

    move.api.before = fail
    outcome = move.run()
    assert (outcome.word, outcome.is_problem) == ("failed", True)
    assert "The import may still hold locks" in outcome.text
    silent[0] = False

    assert move.run().word in ("imported", "imported before")
    assert (move.held(), move.shelf.locks) == (None, {})


def test_a_closed_state_that_was_written_or_renamed_all_the_same_is_found(move: Move) -> None:
    move.run()
    move.close()
    assert move.run() == Outcome(OLD, NAME.value, "closed before")
    lock = move.shelf.locks.pop(OLD)
    move.shelf.apply(OLD)
    assert [move.run().is_problem, move.check().word] == [True, "moved on"]
    move.shelf.locks[OLD] = lock
    move.named(**{OLD: "network/other"})
    assert [move.run().word, move.close().word] == ["closed", "left open"]
    assert move.shelf.locks == {OLD: lock}
    assert move.open().word == "opened"


def test_a_state_is_opened_also_when_the_plan_has_it_no_longer(move: Move) -> None:
    move.run()
    move.close(refuse_writes=True)
    move.plan = replace(move.plan, states=[])

    assert [outcome.word for outcome in move.open_all()] == ["opened"]
    assert (move.shelf.locks, move.shelf.refused) == ({}, set())
    with pytest.raises(CommandError, match="no lock was released"):
        move.open_all()


def test_names_that_are_swapped_between_two_runs_mix_up_no_states(move: Move) -> None:
    move.shelf.contents = {"a": state(5, content="A"), "b": state(3, content="B")}
    move.named(a="net/x", b="net/y")
    assert [outcome.word for outcome in move.run_all()] == ["imported", "imported"]
    move.named(a="net/y", b="net/x")

    assert [outcome.word for outcome in (*move.run_all(), *move.check_all())] == ["differs"] * 4

    for name, content in (("net/x", "A"), ("net/y", "B")):
        [body] = move.bucket.bodies(names.parse(name).state_key)
        assert json.loads(body)["outputs"]["content"]["value"] == content


def test_a_plan_names_states_and_says_why_one_has_no_name(move: Move) -> None:
    move.shelf.contents = {
        "a": state(3),
        "b": state(1, lineage="b"),
        "no name": state(1),
        "script.sh": b"echo",
        "x.tfstate": b"{",
    }
    move.named(a=NAME.value)
    move.run_all()

    made = planning.make(
        Settings(("shelf",)),
        move.shelf,
        move.place,
        [Rule.parse("a=network/prod"), Rule.parse("b=network/prod")],
    )

    notes = {planned.id: (planned.name, planned.note) for planned in made.plan.states}
    assert "script.sh" not in notes
    assert [(each.id, each.why) for each in made.plan.left_out] == [
        ("script.sh", "the body is not a JSON document; it must be a state document.")
    ]
    assert (notes["a"][0], notes["x.tfstate"][0]) == (NAME, None)
    assert "is not a complete state" in notes["x.tfstate"][1]
    assert notes["b"][0] == names.parse("network/prod-2")
    assert "renamed, because another state is named network/prod" in notes["b"][1]
    assert notes["no name"][0] == names.parse("no-name")
    assert "the name 'no name' is not valid" in notes["no name"][1]
    assert made.renamed.keys() == {"b", "no name"}
    [planned] = planning.make(
        Settings(("shelf",)), Shelf({"a": state(3)}), move.place, [Rule.parse("a=network/prod")]
    ).plan.states
    assert (planned.name, planned.note) == (NAME, f"serial 3, {len(state(3))} B, already imported")
    with pytest.raises(CommandError, match=r"matches no state.* state in the source, such as 'a'"):
        planning.make(Settings(("shelf",)), move.shelf, move.place, [Rule.parse("{x}.zip={x}")])


def test_a_name_that_cannot_stay_becomes_one_that_is_free_in_the_plan_and_in_holdfast(move: Move) -> None:
    """Each of these had to be named by hand."""
    move.shelf.contents = {"a": state(3, lineage="here"), "a-2": state(1, lineage="a-2")}
    move.named(**{"a": "prod", "a-2": "prod-3"})
    assert [outcome.word for outcome in move.run_all()] == ["imported", "imported"]
    ids = [
        "prod",
        "prod-2",
        "prod 4",
        "prod(4)",
        "prod-4",
        "Über/prod",
        "_x",
        "..",
        "a//b",
        "holdfast-doctor",
    ]
    ids += ["holdfast-doctor/x", "a/b/c/d/e/f/g/h/i", "x" * 250, "x" * 251]
    move.shelf.contents = {id_: state(1, lineage=f"{number}") for number, id_ in enumerate(ids)}

    made = planning.make(Settings(("shelf",)), move.shelf, move.place, [])

    found = {each.id: each.name.value for each in made.plan.states if each.name}
    assert found == {
        "prod": "prod-5",  # prod and prod-3 are other states in Holdfast
        "prod-2": "prod-2",
        "prod-4": "prod-4",
        "prod 4": "prod-4-2",
        "prod(4)": "prod-4-3",
        "Über/prod": "Uber/prod",
        "_x": "x",
        "..": "state",
        "a//b": "a/state/b",
        "holdfast-doctor": "old-holdfast-doctor",
        "holdfast-doctor/x": "old-holdfast-doctor/x",
        "a/b/c/d/e/f/g/h/i": "a/b/c/d/e/f/g/h-i",
        "x" * 250: "x" * 200,
        "x" * 251: "x" * 198 + "-2",
    }
    move.plan = made.plan
    assert {outcome.word for outcome in move.run_all()} == {"imported"}
    again = planning.make(Settings(("shelf",)), move.shelf, move.place, []).plan.states
    assert all(
        each.note.partition("; ")[0].endswith("B, already imported") or each.id == "prod" for each in again
    )


def test_a_state_that_cannot_be_imported_under_a_new_name_either_has_none(move: Move) -> None:
    move.shelf.contents = {"a b": state(3)}
    move.named(**{"a b": "a-b"})
    move.run_all()
    assert move.send("PUT", "/locks/a-b", MINE) == 200
    assert move.send("POST", "/states/a-b", state(4, content="another"), ID="mine") == 200
    move.shelf.apply("a b")

    made = planning.make(Settings(("shelf",)), move.shelf, move.place, [])

    [planned] = made.plan.states
    assert (planned.name, made.renamed) == (None, {})
    assert planned.note.startswith("clients wrote the state in the source and in Holdfast: ")
    assert "not valid" not in planned.note


def test_two_states_of_one_lineage_are_told(move: Move) -> None:
    move.shelf.contents = {
        "a": state(3),
        "b": state(2, lineage="b"),
        "copy": state(3),
        "none": state(1, lineage=""),
    }
    move.shelf.contents["none too"] = state(1, lineage="")

    made = planning.make(Settings(("shelf",)), move.shelf, move.place, [])

    assert made.alike == [["a", "copy"]]
    notes = {planned.id: planned.note for planned in made.plan.states}
    assert "it has the same lineage as copy, so one may be a copy of the other" in notes["a"]
    assert "it has the same lineage as a, so" in notes["copy"]
    assert not any("lineage" in notes[id_] for id_ in ("b", "none", "none too"))


def test_a_state_that_the_source_does_not_list_is_neither_read_nor_locked(move: Move) -> None:
    """A plan may be somebody else's."""
    move.shelf.contents["elsewhere/x"] = state(3)
    move.plan = replace(move.plan, states=[Planned("elsewhere/x", NAME)])
    requests = move.steps

    outcomes = [move.run(), move.check(), move.close()]

    assert {outcome.word for outcome in outcomes} == {"left out"}
    assert all(outcome.is_problem and "elsewhere/x is not in shelf" in outcome.text for outcome in outcomes)
    assert (move.steps, move.shelf.locks, move.here()) == (requests, {}, None)


def test_a_lock_of_a_journal_that_names_a_state_of_another_place_is_not_released(move: Move) -> None:
    move.run()
    journal = move.folder / "move.toml.journal"
    journal.write_text(
        journal.read_text().replace(f'"{OLD}"', '"elsewhere/x"').rpartition('{"event": "release"')[0]
    )
    lock_id = json.loads(journal.read_text().splitlines()[1])["lock"]["ID"]
    move.shelf.locks["elsewhere/x"] = lock_id

    outcomes = move.run_all()

    assert [outcome.word for outcome in outcomes] == ["imported before", "left locked"]
    assert move.shelf.locks == {"elsewhere/x": lock_id}


def test_a_state_that_another_journal_imported_and_people_use_is_in_use(move: Move) -> None:
    move.run("another.toml")
    move.apply_here()

    assert [move.check().word, move.run().word, move.close().word] == ["in use", "in use", "closed"]


def test_a_state_in_use_whose_imported_version_is_gone_is_not_closed(move: Move) -> None:
    move.run()
    [(_, imported)] = move.bucket.history(NAME.state_key)
    move.apply_here()
    move.bucket.s3.delete_object(Bucket=CLOUD_BUCKET, Key=NAME.state_key, VersionId=imported)

    outcome = move.close()

    assert (outcome.word, outcome.is_problem) == ("left open", True)
    assert f"the history of {NAME} does not have the imported version" in outcome.text
    assert move.shelf.locks == {}


def test_what_announces_a_request_is_on_the_disk_before_the_request(move: Move) -> None:
    journal = move.folder / "move.toml.journal"
    on_disk = 0

    def events() -> list[str]:
        lines = journal.read_text().splitlines() if journal.exists() else []
        return [json.loads(line)["event"] for line in lines]

    def sync(_: int) -> None:
        nonlocal on_disk
        on_disk = len(events())

    def look(_: int) -> None:
        announced = [
            number
            for number, event in enumerate(events(), 1)
            if event in ("begin", "hold", "close", "refuse")
        ]
        assert max(announced, default=0) <= on_disk

    move.patch.setattr("holdfast_cli.importing.journal.os.fsync", sync)
    move.at_step = look
    move.run()
    move.close(refuse_writes=True)

    assert {"begin", "hold", "close", "refuse"} <= set(events())


def test_another_state_that_an_import_wrote_is_not_replaced_by_a_higher_serial(move: Move) -> None:
    move.run("another.toml")
    move.shelf.contents[OLD] = state(9, lineage="another")

    assert move.run().word == "differs"


def test_a_version_that_was_never_acknowledged_is_written_again() -> None:
    old = Content(state(3), Revision(3, LINEAGE), hashlib.sha256(state(3)).hexdigest())
    there = {"name": NAME.value, "version": "v", "serial": 3, "lineage": LINEAGE, "status": "acknowledged"}

    def found(**changes: str) -> Verdict:
        new = form.read(v1.StateDescription, there | changes)
        return compare(old, new, None, lambda: ("v", old.sha256), lambda: "", is_ours=False)

    assert found() == Same("v")
    assert found(status="never_acknowledged") == MovedOn()


def test_what_is_not_read_back_as_it_was_written_is_no_import(move: Move) -> None:
    move.patch.setattr(NewPlace, "read", lambda *_: ("v", "another digest"))

    outcome = move.run()

    assert (outcome.word, outcome.is_problem) == ("failed", True)
    assert "is not the imported state. Do not use " in outcome.text
    assert (move.held(), move.shelf.locks) == (None, {})


def test_states_stay_refused_until_they_are_opened(move: Move) -> None:
    move.shelf.contents = {"a": state(5, content="A"), "b": state(3, lineage="b")}
    move.named(a="net/x", b="net/y")
    move.run_all()
    move.close_all(refuse_writes=True)
    move.named(a="net/x")
    move.close_all(refuse_writes=True)
    assert move.shelf.refused == {"a", "b"}

    move.open_all()

    assert (move.shelf.refused, move.shelf.locks) == (set(), {})


def test_a_state_that_was_deleted_after_its_import_stays_deleted(move: Move) -> None:
    move.run()
    assert move.send("DELETE", f"/states/{NAME}") == 200

    for outcome in (move.run(), move.check()):
        assert outcome.word == "differs"
        assert "holdfast state undelete" in outcome.text
    assert move.close().word == "left open"


def test_a_journal_is_not_used_for_another_source(move: Move) -> None:
    move.run()
    move.plan = replace(move.plan, settings=Settings(("another",)))

    with pytest.raises(CommandError, match="source or its options have changed"):
        move.run()


def test_a_check_writes_no_journal_and_needs_none(move: Move) -> None:
    move.run("another.toml")
    with Journal.opened(move.folder / "move.toml", only_read=True) as journal:
        journal.begin(ADDRESS, move.plan.settings)
        [outcome] = Run(move.plan, journal, move.shelf, move.place).check()

    assert outcome.word == "the same"
    assert [path.name for path in move.folder.iterdir()] == ["another.toml.journal"]


def test_a_fault_in_one_state_does_not_end_the_others(move: Move) -> None:
    move.shelf.contents = {"a": state(5), "b": state(3)}
    move.named(a="net/x", b="net/y")
    read = move.shelf.read

    def fail(of: str) -> bytes | None:
        return read(of) if of == "b" else json.loads("no JSON")

    move.patch.setattr(move.shelf, "read", fail)

    first, second = move.run_all()

    assert (first.word, first.is_problem, second.word) == ("failed", True, "imported")
    assert "JSONDecodeError" in first.text
    assert move.shelf.locks == {}


def test_the_versions_of_an_import_say_so(move: Move) -> None:
    move.run()
    [version] = move.bucket.s3.list_object_versions(Bucket=CLOUD_BUCKET, Prefix=NAME.state_key)["Versions"]
    head = move.bucket.s3.head_object(Bucket=CLOUD_BUCKET, Key=NAME.state_key, VersionId=version["VersionId"])
    assert head["Metadata"]["operation"] == OPERATION

"""The plan of an import: names by rules, the file that people change, and the answers to their mistakes."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast import names
from holdfast.state import lock_info
from holdfast.state.lock_info import LockInfo
from holdfast_cli.api.management import Api
from holdfast_cli.errors import CommandError
from holdfast_cli.importing import plan, planning, sources
from holdfast_cli.importing.journal import (
    Begin,
    Close,
    Closed,
    Entry,
    Event,
    Hold,
    Imported,
    Journal,
    Open,
    Refuse,
    Release,
)
from holdfast_cli.importing.new_place import LockedHereError, NewPlace
from holdfast_cli.importing.plan import Plan, Planned
from holdfast_cli.importing.planning import Rule
from holdfast_cli.importing.source import OldLock, Settings
from holdfast_cli.main import main
from tests.support.api_stub import ApiStub, Reply

HEAD = 'version = 1\nsource = ["s3://old"]\n'


def test_a_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    states = [
        Planned('a "quoted" \\ key\n\x7f', names.parse("network/prod"), {"env": "prod", "cost center": "7"}),
        Planned(
            "möve",
            None,
            note="why\nnot",
            problem="the state has no name: write a name in the plan, or remove the state's table",
        ),
    ]
    written = Plan(Settings(("s3://old/prefix",), {"dynamodb_table": "locks"}), states)
    file = tmp_path / "move.toml"
    file.write_text(plan.write(written))

    read = plan.read(file)

    assert read.settings == written.settings
    assert [(one.id, one.name, one.tags, one.problem) for one in read.states] == [
        (one.id, one.name, one.tags, one.problem) for one in states
    ]
    assert 'name = ""  # why?not' in file.read_text()


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("env:/prod/a/b.tfstate", "a/b/prod"),
        ("a/b/terraform.tfstate", "a/b"),
        ("a/b.tfstate", "a/b"),
        ("a=b", None),
    ],
)
def test_the_first_rule_that_matches_the_whole_path_names_a_state(path: str, name: str | None) -> None:
    texts = ("env:/{ws}/{key}.tfstate={key}/{ws}", "{key}/terraform.tfstate={key}", "{key}.tfstate={key}")
    assert planning.name_of(path, [Rule.parse(text) for text in texts]) == name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{key}.tfstate", "is not PATTERN=NAME"),
        ("=x", "is not PATTERN=NAME"),
        ("{a}/{a}={a}", "a placeholder twice"),
        ("{a}={b}", "{b}, which is not in"),
    ],
)
def test_a_rule_that_cannot_name_says_why(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Rule.parse(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("version = ", "is not TOML"),
        ("", "it is empty"),
        ("x = " + "[" * 5000, "is not TOML"),
        ("version = 2\n", "'version' must be 1"),
        ("version = 1\n", "'source' must be a list"),
        (HEAD + "history = 1\n", "has 'history', which is unknown"),
        (HEAD + "[options]\nregion = 1\n", r"\[options\] must be strings"),
        (HEAD + "[[states]]\nname = 'a'\n", "the state number 1 has no 'from'"),
        (HEAD + "[[states]]\nfrom = 'a'\nnmae = 'a'\n", "the state 'a' has 'nmae'"),
        (HEAD + "[[states]]\nfrom = 'a'\nname = 1\n", "'name' of 'a' must be a string"),
        (HEAD + "[[states]]\nfrom = 'a'\ntags = 1\n", "'tags' of 'a' must be a table"),
    ],
)
def test_a_plan_that_cannot_be_followed_says_what_to_correct(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "move.toml").write_text(text)

    with pytest.raises(CommandError, match=said):
        plan.read(tmp_path / "move.toml")


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ([("a", "no good")], "is not valid"),
        ([("a", "holdfast-doctor/0123456789abcdef0123456789abcdef")], "reserved"),
        ([("a", "")], "has no name"),
        ([("a", "x"), ("b", "x")], "another state in the plan has the same name, x"),
        ([("a", "x"), ("a", "y")], "is in the plan twice"),
    ],
)
def test_a_mistake_in_one_state_leaves_the_others(
    tmp_path: Path, tables: list[tuple[str, str]], said: str
) -> None:
    written = "".join(f"[[states]]\nfrom = '{of}'\nname = '{name}'\n" for of, name in [*tables, ("ok", "ok")])
    (tmp_path / "move.toml").write_text(HEAD + written)

    *bad, good = plan.read(tmp_path / "move.toml").states

    assert all(said in state.problem for state in bad)
    assert (good.name, good.problem) == (names.parse("ok"), "")


@pytest.mark.parametrize(
    ("addresses", "options", "said"),
    [
        (("ftp://old",), {}, "must begin with s3://"),
        (("s3://a", "s3://b"), {}, "Write a separate plan for each source"),
        (("s3://a", "https://b"), {}, "can have only one kind of source"),
        (("s3://a",), {"lock_method": "POST"}, "does not accept the option --lock-method"),
        (("gitlab://a/b",), {"region": "eu-central-1"}, "it accepts no option"),
        (("folder",), {}, "For states in local files, use `terraform init -migrate-state`"),
    ],
)
def test_an_address_or_option_that_no_source_has_is_refused(
    addresses: tuple[str, ...], options: dict[str, str], said: str
) -> None:
    with pytest.raises(CommandError, match=said):
        sources.open_source(Settings(addresses, options))


def test_a_line_that_a_killed_import_did_not_finish_is_dropped(tmp_path: Path) -> None:
    with Journal.opened(tmp_path / "move.toml") as journal:
        journal.begin("https://api.example.com", Settings(("s3://old",)))
    file = tmp_path / "move.toml.journal"
    whole = file.read_text()
    file.write_text(whole + '{"event": "hol')

    with Journal.opened(tmp_path / "move.toml") as journal:
        journal.note(Release("x"))

    assert file.read_text() == whole + '{"event": "release", "state": "x"}\n'
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_journal_that_is_a_link_leaves_the_file_that_it_leads_to(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("a line without an end, as of a killed import")
    (tmp_path / "move.toml.journal").symlink_to(other)

    with (
        pytest.raises(CommandError, match=r"journal .* cannot be opened: Too many levels of symbolic links"),
        Journal.opened(tmp_path / "move.toml"),
    ):
        pass

    assert other.read_text() == "a line without an end, as of a killed import"


LOCK = OldLock(LockInfo({"ID": "a", "Who": "ada@laptop"}), "ws-1")
IMPORTED = Imported("x", "net/x", "v1", 3, "l", "00")
EVENTS: Mapping[str, Event] = {
    '{"event": "begin", "api": "https://a", "source": {}}': Begin("https://a", {}),
    '{"event": "hold", "state": "x", "name": "net/x", "lock": {"ID": "a", "Who": "ada@laptop"}, '
    '"handle": "ws-1", "workspace": "ws-2"}': Hold("x", "net/x", LOCK, "ws-2"),
    '{"event": "release", "state": "x"}': Release("x"),
    '{"event": "imported", "state": "x", "name": "net/x", "version": "v1", "serial": 3, "lineage": "l", '
    '"sha256": "00"}': IMPORTED,
    '{"event": "close", "state": "x", "lock": {"ID": "a", "Who": "ada@laptop"}, "handle": "ws-1"}': Close(
        "x", LOCK
    ),
    '{"event": "closed", "state": "x"}': Closed("x"),
    '{"event": "refuse", "states": ["x"]}': Refuse(["x"]),
    '{"event": "open", "state": "x"}': Open("x"),
}
"""The lines of a journal, which a later version reads too."""


def entry_of(folder: Path, lines: Iterable[str]) -> tuple[Entry, list[str], list[str]]:
    (folder / "move.toml.journal").write_text("".join(f"{line}\n" for line in lines))
    with Journal.opened(folder / "move.toml") as journal:
        return journal.of("x"), journal.left, journal.refused


def test_an_event_is_the_line_that_every_version_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, stored = tmp_path / "move.toml.journal", list[str]()
    monkeypatch.setattr("os.fsync", lambda _: stored.append(file.read_text().splitlines()[-1]))
    with Journal.opened(tmp_path / "move.toml") as journal:
        for event in EVENTS.values():
            journal.note(event)

    assert file.read_text().splitlines() == list(EVENTS)
    assert [EVENTS[line] for line in stored] == [
        event for event in EVENTS.values() if isinstance(event, Begin | Hold | Close | Refuse)
    ]


def test_a_journal_tells_what_was_done_and_what_may_be_locked(tmp_path: Path) -> None:
    begin, hold, release, imported, close, closed, refuse, opened = EVENTS
    held = EVENTS[hold]
    assert isinstance(held, Hold)

    def after(*lines: str) -> tuple[Entry, list[str], list[str]]:
        return entry_of(tmp_path, (begin, *lines))

    assert after(hold) == (Entry(held, is_held=True), ["x"], [])
    assert after(hold, release) == (Entry(held), [], [])
    done = (hold, imported, release)
    assert after(*done) == (Entry(held, imported=IMPORTED), [], [])
    assert after(*done, close) == (Entry(held, imported=IMPORTED, closing=LOCK), ["x"], [])
    shut = Entry(held, imported=IMPORTED, closing=LOCK, is_closed=True)
    assert after(*done, refuse, close, closed) == (shut, [], ["x"])
    assert after(*done, close, closed, close) == (replace(shut, is_closed=False), ["x"], [])
    assert after(*done, close, closed, opened) == (Entry(held, imported=IMPORTED), [], [])


def test_a_journal_of_a_version_that_copied_history_is_read(tmp_path: Path) -> None:
    line = next(line for line in EVENTS if '"imported"' in line).replace("}", ', "history": 7}')

    assert entry_of(tmp_path, [line])[0].imported == IMPORTED


@pytest.mark.parametrize(
    "line", ["nonsense", "{}", '{"event": "hold", "state": "x"}', '{"event": "later", "state": "x"}', "[]"]
)
def test_a_damaged_journal_is_named_with_its_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "move.toml.journal").write_text(f'{{"event": "begin", "api": "a", "source": {{}}}}\n{line}\n')

    with pytest.raises(CommandError, match="damaged at line 2"), Journal.opened(tmp_path / "move.toml"):
        pass


def test_a_journal_belongs_to_one_api(tmp_path: Path) -> None:
    with Journal.opened(tmp_path / "move.toml") as journal:
        journal.begin("https://a.example.com", Settings(("s3://old",)))
        journal.begin("https://a.example.com", Settings(("s3://old",)))
        with pytest.raises(CommandError, match=r"begun for https://a\.example\.com"):
            journal.begin("https://b.example.com", Settings(("s3://old",)))


LOCKED = LockInfo({"ID": "theirs", "Operation": "OperationTypeApply"}).for_client()
FROZEN = lock_info.of_freeze("0123456789abcdef", "an incident", None, "token:ada").for_client()
NOT_DECLARED = LockInfo({"ID": "no such state: net", "Operation": "", "Who": "Holdfast"}).for_client()


@pytest.mark.parametrize(
    ("workspace", "status", "body", "is_locked"),
    [
        ("", 423, LOCKED, True),
        ("", 423, FROZEN, False),
        ("", 423, NOT_DECLARED, False),
        ("ws-1", 409, {"errors": [{"status": "409", "code": "locked", "title": "it is locked"}]}, True),
        ("ws-1", 423, {"errors": [{"status": "423", "code": "frozen", "title": "it is frozen"}]}, False),
    ],
)
def test_only_the_refusal_of_a_lock_is_one_for_which_an_import_waits(
    stub: ApiStub, workspace: str, status: int, body: Mapping[str, object], is_locked: bool
) -> None:
    """The lock itself is gone when the import looks at it."""
    place = NewPlace(Api(stub.address, "Basic made-up", "the test"))
    stub.reply(Reply(status, json.dumps(body).encode()), Reply(200, b'{"name": "net", "lock": null}'))

    with pytest.raises(CommandError) as refused:
        place.lock(names.parse("net"), LOCK.info, workspace)

    assert isinstance(refused.value, LockedHereError) == is_locked


def test_a_role_that_is_not_enough_is_said_once_and_before_any_state_is_read(
    tmp_path: Path, stub: ApiStub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "move.toml").write_text(
        'version = 1\nsource = ["s3://old"]\n'
        + "".join(f"[[states]]\nfrom = '{n}'\nname = 's{n}'\n" for n in range(9))
    )
    monkeypatch.setenv("TF_HTTP_USERNAME", "id")
    monkeypatch.setenv("TF_HTTP_PASSWORD", "made-up")
    grants = [{"role": "reader", "scope": ["*"]}]
    stub.reply(Reply(200, json.dumps({"principal": "token:ada", "grants": grants}).encode()))

    assert main(["import", "run", str(tmp_path / "move.toml"), "--address", stub.address]) == 1

    said = capsys.readouterr()
    assert said.err == "holdfast: This command needs the role 'writer', which token:ada does not have.\n"
    assert [asked.path for asked in stub.asked] == ["/manage/v1/whoami"]


@pytest.mark.parametrize(
    ("step", "work"), [("run", "copying.copy"), ("close", "closing.close"), ("reopen", "closing.reopen")]
)
def test_an_interrupt_is_told_with_the_command_that_continues(
    tmp_path: Path,
    stub: ApiStub,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    step: str,
    work: str,
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    old = "https://old.example.com/a"
    file = tmp_path / "move.toml"
    file.write_text(plan.write(Plan(Settings((old,), {"lock_address": f"{old}/lock"}), [])))
    monkeypatch.setenv("TF_HTTP_USERNAME", "id")
    monkeypatch.setenv("TF_HTTP_PASSWORD", "made-up")
    monkeypatch.setattr(f"holdfast_cli.importing.{work}", interrupted)
    grants = [{"role": "writer", "scope": ["*"]}]
    stub.reply(Reply(200, json.dumps({"principal": "token:ada", "grants": grants}).encode()))

    assert main(["import", step, str(file), "--address", stub.address]) == 130

    assert f"run `holdfast import {step} {file}` again." in capsys.readouterr().err

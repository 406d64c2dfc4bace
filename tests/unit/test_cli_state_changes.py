"""`holdfast state restore`, `delete`, `undelete` and `create`."""

import json
import re
from typing import Any

import pytest

from holdfast_cli.main import main
from tests.support import terminal
from tests.support.api_stub import ApiStub, Reply, refused
from tests.support.cli_account import HOLDFAST, unread
from tests.support.management import (
    NAME,
    answer,
    environment,
    failure,
    output,
    page,
    refusal,
    resolved,
    run,
    state,
    version,
)

MARKER = resolved("v-m", None, "2026-11-20T15:00:00Z", None)
RESTORED = {
    "name": NAME,
    "version": "v-15",
    "serial": 15,
    "restored_from": "v-12",
    "restored_serial": 12,
    "changed": True,
}
RESTORE = ("state", "restore", NAME)
REASON = ("--reason", "incident 4711")


# --- restore -------------------------------------------------------------------------------------


V_12 = version("v-12", 12, "2026-11-20T12:00:00Z")
NEVER = page("versions", V_12 | {"status": "never_acknowledged"})
OTHERS = page("versions", version("v-14", 14, "2026-11-20T14:00:00Z"))
UNKNOWN = refusal(404, "no_such_version", "The state 'network/prod' has no version v-12.")
NO_PARAMETER = refusal(
    400, "invalid_request", "This route does not accept the parameter 'version'; it accepts cursor."
)
SAID = "version v-12, serial 12, of 2026-11-20 12:00:00 UTC"


@pytest.mark.parametrize(
    ("named", "looked_up", "said"),
    [
        ("@12", (resolved("v-12"),), SAID),
        ("@previous", (resolved("v-12"),), SAID),
        ("v-12", (answer(state()), NEVER), f"{SAID}, never acknowledged"),
        ("v-12", (answer(state()), UNKNOWN), "version v-12"),
        # An API before the parameter lists pages alone, or ignores the parameter.
        (
            "v-12",
            (answer(state()), NO_PARAMETER, page("versions", next_="more"), NEVER),
            f"{SAID}, never acknowledged",
        ),
        ("v-12", (answer(state()), NO_PARAMETER, OTHERS), "version v-12"),
        ("v-12", (answer(state()), page("versions", next_="more"), NEVER), f"{SAID}, never acknowledged"),
        ("v-12", (answer(state()), OTHERS), "version v-12"),
    ],
)
def test_a_restore_says_what_it_restores_and_sends_exact_ids(
    stub: ApiStub, named: str, looked_up: tuple[Reply, ...], said: str
) -> None:
    stub.reply(*looked_up, answer(RESTORED))

    done = run(stub, *RESTORE, named, *REASON)

    assert done.returncode == 0
    assert "version v-15 with serial 15 has the content of version v-12, whose serial is 12" in done.stdout
    assert "A restore does not change the infrastructure: run `terraform plan`" in done.stdout
    which = f"{named}, {said}" if named.startswith("@") else said
    assert f"Restoring network/prod to {which}. The current version has serial 14." in done.stderr
    *_, asked = stub.asked
    assert len(stub.asked) == len(looked_up) + 1
    assert (asked.method, asked.path) == ("POST", f"/manage/v1/restore/{NAME}")
    sent = json.loads(asked.body)
    assert re.fullmatch("[0-9a-f]{32}", sent.pop("id"))
    assert sent == {"version": "v-12", "reason": "incident 4711", "current": "v-14"}


@pytest.mark.parametrize("options", [["--replace-lineage"], ["--replace-lineage", "--yes"]])
def test_the_options_that_replaced_a_lineage_name_the_commands_that_do(
    stub: ApiStub, options: list[str]
) -> None:
    done = run(stub, *RESTORE, "@12", *REASON, *options)

    said = " ".join(done.stderr.split())
    assert done.returncode == 2
    assert "`holdfast state get STATE --version VERSION --output old.tfstate`" in said
    assert "`terraform state push -force old.tfstate`" in said
    assert stub.asked == []
    assert "--replace-lineage" not in run(stub, "state", "restore", "--help").stdout


@pytest.mark.parametrize(
    ("named", "looked_up"),
    [
        ("@12", (resolved("v-12"), page("versions", V_12))),
        ("v-12", (answer(state()), page("versions", V_12))),
    ],
)
def test_a_terminal_is_told_of_a_restore_by_serial_age_and_person(
    stub: ApiStub, named: str, looked_up: tuple[Reply, ...]
) -> None:
    plain = environment(stub, TERM="dumb")

    def shown(replies: tuple[Reply, ...], *options: str) -> str:
        stub.reply(*replies, answer(RESTORED))
        return terminal.run([HOLDFAST, *RESTORE, named, *REASON, *options], plain, columns=400)

    brief = shown(looked_up)
    long = shown(looked_up[:1] if named == "@12" else looked_up, "--long")

    which = r'serial 12, written \d+ d ago by "bob@desk"'
    at = "@12, " if named == "@12" else ""
    assert re.search(f"Restoring network/prod to {at}{which}. The current version has serial 14.", brief)
    assert "The state network/prod has serial 15 now, restored from serial 12. A" in brief
    assert "v-1" not in brief
    assert SAID in long
    assert "version v-15 with serial 15 has the content of version v-12" in long


def test_a_restore_does_not_ask_and_says_so(stub: ApiStub) -> None:
    done = run(stub, *RESTORE, "@12", *REASON, "--yes")

    assert done.returncode == 2
    assert "a restore does not ask" in done.stderr
    assert "lineage" not in done.stderr
    assert stub.asked == []


def test_a_version_that_is_named_by_its_id_is_read_alone(stub: ApiStub) -> None:
    stub.reply(answer(state()), NEVER, answer(RESTORED))

    assert run(stub, *RESTORE, "v-12", *REASON).returncode == 0
    assert [asked.path for asked in stub.asked[:-1]] == [
        f"/manage/v1/states/{NAME}",
        f"/manage/v1/versions/{NAME}?version=v-12",
    ]


def test_a_history_that_may_not_be_read_is_not_restored_from(stub: ApiStub) -> None:
    stub.reply(answer(state()), refusal(403, "forbidden", "Ask somebody with the role."))

    assert "Ask somebody with the role." in failure(stub, *RESTORE, "v-12", *REASON)
    assert {asked.method for asked in stub.asked} == {"GET"}


def test_a_restore_under_a_freeze_names_it(stub: ApiStub) -> None:
    stub.reply(resolved("v-12"), answer(RESTORED))

    assert run(stub, *RESTORE, "@12", *REASON, "--frozen", f"[{'0123456789abcdef' * 2}]").returncode == 0
    sent = json.loads(stub.asked[-1].body)
    assert (sent["frozen"], sent["current"]) == ("0123456789abcdef" * 2, "v-14")

    assert run(stub, *RESTORE, "@12", *REASON, "--frozen", "frozen: a release").returncode == 2

    stub.reply(resolved("v-12"), refusal(423, "frozen", "It has ended."), answer({"lock": None}))
    done = run(stub, *RESTORE, "@12", *REASON, "--frozen", "0123456789abcdef" * 2)
    said = "It has ended. --frozen must name your own freeze. After the freeze has ended, restore without "
    "--frozen."
    assert said in " ".join(done.stderr.split())


def test_a_retry_has_the_same_ids(stub: ApiStub) -> None:
    stub.reply(resolved("v-12"), Reply(503), Reply(lost=True), answer(RESTORED))

    done = run(stub, *RESTORE, "@previous", *REASON, "--json")

    assert json.loads(done.stdout) == RESTORED
    bodies = [asked.body for asked in stub.asked if asked.method == "POST"]
    assert len(bodies) == 3
    assert len(set(bodies)) == 1


def test_what_was_never_acknowledged_is_restored_by_its_id_alone(stub: ApiStub) -> None:
    stub.reply(resolved("v-13", 13, status="never_acknowledged"))
    done = run(stub, *RESTORE, "@13", *REASON)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Holdfast refused this write" in done.stderr
    assert "by its ID, v-13." in done.stderr
    assert {asked.method for asked in stub.asked} == {"GET"}

    stub.reply(answer(state()), OTHERS, answer(RESTORED))
    assert run(stub, *RESTORE, "v-13", *REASON).returncode == 0
    assert json.loads(stub.asked[-1].body)["version"] == "v-13"


@pytest.mark.parametrize(
    ("named", "looked_up"),
    [("@12", (resolved("v-12", current=False),)), ("v-12", (answer(state(version=None)), OTHERS))],
)
def test_what_has_no_current_version_is_not_restored(
    stub: ApiStub, named: str, looked_up: tuple[Reply, ...]
) -> None:
    stub.reply(*looked_up)

    assert "nothing was restored. If the state was deleted, `holdfast state undelete" in failure(
        stub, *RESTORE, named, *REASON
    )
    assert {asked.method for asked in stub.asked} == {"GET"}


def test_restoring_what_is_current_is_said_to_change_nothing(stub: ApiStub) -> None:
    stub.reply(answer(state()), OTHERS, answer(RESTORED | {"changed": False}))

    assert "nothing was written" in run(stub, *RESTORE, "v-14", *REASON).stdout


def test_a_restore_whose_output_is_lost_is_told(stub: ApiStub) -> None:
    stub.reply(answer(state()), OTHERS, answer(RESTORED))

    code, lines = unread(environment(stub), *RESTORE, "v-12", *REASON)

    assert code == 1
    assert "version v-15 with serial 15" in lines[-1]


def test_an_interrupt_says_that_the_request_may_have_taken_effect(
    stub: ApiStub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    for name, value in environment(stub).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("holdfast_cli.api.http.time.sleep", interrupt)
    stub.reply(MARKER, Reply(503))

    assert main(["state", "undelete", NAME]) == 130
    assert f"`holdfast state show {NAME}` shows whether it did." in capsys.readouterr().err


# --- delete --------------------------------------------------------------------------------------

DELETE = ("state", "delete", NAME)
GONE = {"name": NAME, "version": "v-14"}
BACK = {
    "name": NAME,
    "version": "v-15",
    "serial": 14,
    "lineage": "2f1c8f3e",
    "from_version": "v-14",
    "from_time": "2026-11-20T14:00:00Z",
}


def test_a_delete_names_the_version_that_was_shown(stub: ApiStub) -> None:
    stub.reply(answer(state()), answer(GONE))

    assert f"`holdfast state undelete {NAME}` brings it back" in output(stub, *DELETE, "--yes")
    asked = stub.asked[-1]
    assert (asked.method, asked.path) == ("POST", f"/manage/v1/delete/{NAME}")
    assert json.loads(asked.body) == {"version": "v-14"}


@pytest.mark.parametrize(
    ("command", "first", "last", "sent"),
    [
        ((*DELETE, "--yes"), answer(state()), GONE, {"version": "v-14"}),
        (("state", "undelete", NAME), MARKER, BACK, {"marker": "v-m"}),
    ],
    ids=["delete", "undelete"],
)
def test_a_reason_is_sent_if_it_was_given(
    stub: ApiStub, command: tuple[str, ...], first: Reply, last: dict[str, Any], sent: dict[str, str]
) -> None:
    stub.reply(first, answer(last))
    output(stub, *command, "--reason", "moved to network/new")
    assert json.loads(stub.asked[-1].body) == {**sent, "reason": "moved to network/new"}

    asked = len(stub.asked)
    for wrong in ("", "two\nlines", 201 * "x"):
        assert "--reason" in run(stub, *command, "--reason", wrong).stderr
    assert len(stub.asked) == asked


def test_a_terminal_is_asked_for_the_name(stub: ApiStub) -> None:
    stub.reply(answer(state()), answer(GONE))

    printed = terminal.run([HOLDFAST, *DELETE], environment(stub), columns=200, typed=f"{NAME}\n")

    assert re.search(
        r"deletes the state network/prod: serial 14, written \d+ d ago by \"bob@desk\"\. Its", printed
    )
    assert "v-14" not in printed
    assert "12 managed resources continue to exist, but no state will track them" in printed
    assert "was deleted" in printed


def test_a_question_has_the_id_of_the_version_with_long_and_a_script_has_it_always(stub: ApiStub) -> None:
    stub.reply(answer(state(modified="2026-11-20T12:00:00Z")))
    said = "version v-14, serial 14, of 2026-11-20 12:00:00 UTC"

    printed = terminal.run(
        [HOLDFAST, *DELETE, "--long"], environment(stub), columns=200, typed="no\n", code=1
    )

    assert said in printed
    assert said in failure(stub, *DELETE, code=2)


def test_a_delete_of_a_state_whose_content_was_not_read_does_not_pass_it_off_as_empty(stub: ApiStub) -> None:
    stub.reply(answer(state(resources=None)), answer(GONE))

    printed = terminal.run([HOLDFAST, *DELETE], environment(stub), columns=200, typed=f"{NAME}\n")

    assert "The number of its resources is unknown" in printed


@pytest.mark.parametrize("typed", ["\n", "network/prd\n", "y\n", "\x04"])
def test_another_answer_deletes_nothing(stub: ApiStub, typed: str) -> None:
    stub.reply(answer(state()))

    printed = terminal.run([HOLDFAST, *DELETE], environment(stub), columns=200, typed=typed, code=1)

    assert f"The answer is not '{NAME}'. Nothing was changed." in printed
    assert len(stub.asked) == 1


CHANGED = refusal(409, "base_changed", "The state has changed since you looked.")
NOT_DELETED = refusal(404, "no_such_version", "The state is not deleted.")


@pytest.mark.parametrize(
    ("command", "replies", "code", "said"),
    [
        (DELETE, [answer(state())], 2, "--yes"),  # where there is no terminal to ask on
        ((*DELETE, "--yes"), [answer(state(version=None))], 1, "nothing was deleted"),
        ((*DELETE, "--yes"), [answer(state()), CHANGED], 1, "The state has changed since you looked."),
        (("state", "undelete", NAME), [NOT_DELETED], 1, "holdfast: The state is not deleted."),
    ],
)
def test_what_is_not_done_is_told(
    stub: ApiStub, command: tuple[str, ...], replies: list[Reply], code: int, said: str
) -> None:
    stub.reply(*replies)

    assert said in failure(stub, *command, code=code)
    assert len(stub.asked) == len(replies)


# --- undelete and create -------------------------------------------------------------------------


def test_an_undelete_says_what_is_back(stub: ApiStub) -> None:
    stub.reply(MARKER, answer(BACK), MARKER, answer(BACK))

    text = output(stub, "state", "undelete", NAME)

    assert (
        "back as version v-15 with serial 14. It has the content of version v-14, which was written "
        "2026-11-20 14:00:00" in text
    )
    assert json.loads(output(stub, "state", "undelete", NAME, "--json")) == BACK
    assert stub.asked[0].path == f"/manage/v1/resolve/{NAME}?version=%40deleted"
    undone = json.dumps({"marker": "v-m"}).encode()
    assert (stub.asked[1].path, stub.asked[1].body) == (f"/manage/v1/undelete/{NAME}", undone)


@pytest.mark.parametrize(
    ("history", "said"),
    [
        (
            page("versions", version("v-14", 14, "2026-11-20T14:00:00Z")),
            r'serial 14, written \d+ d ago by "bob@desk"',
        ),
        (
            refusal(403, "forbidden", "Ask somebody with the role."),
            r"the deleted version, written \d+ d ago",
        ),
    ],
)
def test_a_terminal_is_told_of_an_undelete_by_serial_age_and_person(
    stub: ApiStub, history: Reply, said: str
) -> None:
    plain = environment(stub, TERM="dumb")
    stub.reply(MARKER, answer(BACK), history)

    printed = terminal.run([HOLDFAST, "state", "undelete", NAME], plain, columns=400)

    back = "The state network/prod is back as serial 14. It was restored from"
    assert re.search(rf"{back} {said}\. Run", printed)
    assert "v-1" not in printed
    stub.reply(MARKER, answer(BACK))
    printed = terminal.run([HOLDFAST, "state", "undelete", NAME, "--long"], plain, columns=400)
    assert "back as version v-15 with serial 14. It has the content of version v-14" in printed


@pytest.mark.parametrize(("created", "said"), [(True, "the first apply may write"), (False, "already")])
def test_a_name_is_declared(stub: ApiStub, created: bool, said: str) -> None:
    stub.reply(answer({"name": NAME, "created": created}))

    assert said in output(stub, "state", "declare", NAME)
    assert (stub.asked[0].method, stub.asked[0].path) == ("POST", f"/manage/v1/create/{NAME}")


def test_a_declaration_is_undone_by_the_record_that_was_seen(stub: ApiStub) -> None:
    stub.reply(
        answer(state(version=None, record=True, record_version="r-1")),
        answer({"name": NAME, "removed": True}),
    )

    assert output(stub, "state", "undeclare", NAME) == f"The name {NAME} is not declared any more.\n"
    sent = stub.asked[1]
    assert (sent.method, sent.path) == ("POST", f"/manage/v1/undeclare/{NAME}")
    assert json.loads(sent.body) == {"record": "r-1"}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (answer(state()), "has a state, and the command undeclares only names without a state"),
        (answer(state(version=None)), "is not declared"),
        (refused(404, "no_state", "There is no state 'dc/one'."), "is not declared"),
    ],
)
def test_what_cannot_be_undeclared_is_said_and_nothing_is_sent(
    stub: ApiStub, found: Reply, said: str
) -> None:
    stub.reply(found)

    assert said in failure(stub, "state", "undeclare", NAME)
    assert [one.method for one in stub.asked] == ["GET"]

"""The command's output: on a terminal, and without its extras everywhere else."""

import io
import os
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TextIO

import pytest

from holdfast_cli.bucket import audit, stack, tokens
from holdfast_cli.errors import CommandError
from holdfast_cli.importing import many
from holdfast_cli.main import main
from holdfast_cli.terminal import ages, asking, output
from holdfast_cli.terminal.flowing import flowing
from holdfast_cli.terminal.output import Progress, coloured, listed, table, wrapped
from tests.support.terminal import Terminal
from tests.unit import test_doctor_objects
from tests.unit.test_cli_audit_log import Logs, MovedClock

API = "https://api.example.com"
Rows = Sequence[Sequence[str | Sequence[str]]]


@pytest.fixture(autouse=True)
def without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that the test sets."""
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_progress_is_shown_after_two_seconds_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)

    with Progress() as progress:
        clock[0] += 1.9
        progress.show("1 of 9")
        assert terminal.getvalue() == ""

        clock[0] += 0.2
        progress.show("2 of 9")
        progress.show("3 of 9")
        clock[0] += 0.2
        progress.show("4 of 9")
    assert terminal.getvalue() == "\r\x1b[K2 of 9\r\x1b[K4 of 9\r\x1b[K"


def test_progress_has_a_rate_and_the_time_that_is_left_if_the_total_is_known(
    monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(Progress, "show", lambda _, text: shown.append(text))

    progress = Progress()
    for seconds, done, total in (
        (3.0, 10, 1000),  # no rate yet
        (10.0, 110, 1000),
        (20.0, 310, 650),
        (200.0, 410, None),
        (1.0, 1, 4),  # another count
        (60.0, 2, 4),
        (60.0, 4, 4),
    ):
        clock[0] += seconds
        progress.count(done, total, "states searched")

    assert shown == [
        "[--------------------] 10 of 1000 states searched",
        "[##------------------] 110 of 1000 states searched, 10 a second, about 89 s left",
        "[#########-----------] 310 of 650 states searched, 10 a second, about 34 s left",
        "410 states searched, 2 a second",
        "[#####---------------] 1 of 4 states searched",
        "[##########----------] 2 of 4 states searched, 1 a minute, about 2 min left",
        "[####################] 4 of 4 states searched, 2 a minute, about 0 s left",
    ]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int | None]]:
    """The numbers of each shown progress: how many things are done, and of how many."""
    shown: list[tuple[int, int | None]] = []
    monkeypatch.setattr(Progress, "count", lambda _, done, total, __: shown.append((done, total)))
    return shown


def test_an_import_shows_how_many_states_of_how_many_are_done(counted: list[tuple[int, int | None]]) -> None:
    assert many.for_each(["a", "b", "c"], str.upper, "imported") == ["A", "B", "C"]
    assert counted == [(1, 3), (2, 3), (3, 3)]


def test_the_doctor_shows_how_many_objects_of_how_many_it_looked_at(
    counted: list[tuple[int, int | None]],
) -> None:
    test_doctor_objects.found({"a": {}, "b": {}})

    assert counted == [(1, 2), (2, 2)]


def test_the_audit_log_shows_how_many_events_were_read(counted: list[tuple[int, int | None]]) -> None:
    logs = Logs()
    for number in range(3):
        logs.add(f"{number}", datetime(2026, 11, 22, 12, number, tzinfo=UTC))
    log = audit.Log(logs, "payments", "eu-central-1", MovedClock())
    log.read(audit.Search({}, datetime(2026, 11, 1, tzinfo=UTC)), Progress())

    assert counted == [(0, None), (2, None), (3, None)]


def test_progress_of_what_is_quick_or_not_watched_is_silent(
    monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    for stream, seconds in ((io.StringIO(), 60.0), (Terminal(), 1.0)):
        monkeypatch.setattr(sys, "stderr", stream)
        progress = Progress()
        clock[0] += seconds
        progress.show("1 of 9")
        progress.end()
        assert stream.getvalue() == ""


def test_progress_does_not_wrap_and_is_left_out_where_it_cannot_be_erased(
    monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "10")
    progress = Progress()
    clock[0] += 3

    monkeypatch.setenv("TERM", "dumb")
    progress.show("9 of 9")
    monkeypatch.setenv("TERM", "xterm")
    progress.show("8 of 9 in a long name")

    assert terminal.getvalue() == "\r\x1b[K8 of 9 in"


# --- changes and questions -----------------------------------------------------------------------


def test_a_change_is_told_even_if_it_cannot_be_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: str) -> None:
        raise CommandError("The output could not be written: no space.")

    monkeypatch.setattr(output, "write", fail)
    for document in (None, {"done": True}):
        with pytest.raises(CommandError, match=r"no space\. The state is deleted\.$"):
            output.outcome("The state is deleted.", document)


@pytest.mark.parametrize(
    ("stdin", "stderr", "possible"),
    [
        (Terminal(), Terminal(), True),
        (Terminal(), io.StringIO(), False),
        (io.StringIO(), Terminal(), False),
        (None, Terminal(), False),
    ],
)
def test_a_question_needs_a_terminal_to_be_shown_on_and_one_to_be_answered_on(
    monkeypatch: pytest.MonkeyPatch, stdin: TextIO | None, stderr: TextIO, possible: bool
) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    monkeypatch.setattr(sys, "stderr", stderr)
    assert asking.is_possible() is possible


# --- tables, lists and sentences -----------------------------------------------------------------

ID = "k2v9x0q7m3c1d8f5a6b4"
HEADINGS = ("ID", "ROLE", "SCOPE", "NOTE")
ROWS = (
    (ID, "writer", ("network/*", "shared/*", "payments/eu/*"), "[red]for the `holdfast token rotate` job"),
    (ID, "maintainer", ("*",), ""),
    (ID, "reader", ("*",), "网络管道的部署令牌由平台团队维护到期前请轮换"),
)
PIPED = f"""\
ID                    ROLE        SCOPE                             NOTE
{ID}  writer      network/*,shared/*,payments/eu/*  [red]for the `holdfast token rotate` job
{ID}  maintainer  *                                 -
{ID}  reader      *                                 网络管道的部署令牌由平台团队维护到期前请轮换"""
WIDE = f"""\
ID                    ROLE        SCOPE                  NOTE
{ID}  writer      network/*, shared/*,   [red]for the
                                  payments/eu/*          `holdfast token rotate`
                                                         job
{ID}  maintainer  *                      -
{ID}  reader      *                      网络管道的部署令牌由平
                                                         台团队维护到期前请轮换"""
NARROW = f"""\
ID                    ROLE
{ID}  writer
  SCOPE  network/*, shared/*,
         payments/eu/*
  NOTE   [red]for the
         `holdfast token rotate` job
{ID}  maintainer
  SCOPE  *
{ID}  reader
  SCOPE  *
  NOTE   网络管道的部署令牌由平台团队维
         护到期前请轮换"""
NARROWEST = f"""\
ID
{ID}
  ROLE   maintainer
  SCOPE  *"""

LONG = f"a/{41 * 'b'}"
AROUND_A_LONG_NAME = f"""\
ID                    ROLE        SCOPE  NOTE
{ID}  maintainer  *      -
{LONG}
                      reader      *      it has been here (3 h ago)
{ID}  maintainer  *      -"""


@pytest.mark.parametrize(
    ("columns", "rows", "laid"),
    [
        (80, ROWS, WIDE),
        (40, ROWS, NARROW),
        (10, ROWS[1:2], NARROWEST),
        (80, (ROWS[1], (LONG, "reader", ("*",), "it has been here (3 h ago)"), ROWS[1]), AROUND_A_LONG_NAME),
    ],
)
def test_a_table_fits_the_terminal_and_breaks_neither_an_id_nor_a_command(
    monkeypatch: pytest.MonkeyPatch, columns: int, rows: Rows, laid: str
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys, "stdout", Terminal())

    assert table(HEADINGS, rows) == laid


def test_one_wide_word_goes_below_its_own_row_and_the_other_rows_keep_their_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stdout", Terminal())
    url = f"https://{60 * 'x'}"
    rows = (("address", url, "HOLDFAST_ADDRESS"), ("team", "platform", "-"), ("region", "eu", "AWS_REGION"))

    assert table(("SETTING", "VALUE", "FROM"), rows).splitlines() == [
        "SETTING  VALUE     FROM",
        "address            HOLDFAST_ADDRESS",
        f"  VALUE  {url}",
        "team     platform  -",
        "region   eu        AWS_REGION",
    ]
    assert "  FROM  AWS_REGION" in table(
        ("SETTING", "VALUE", "FROM"), [(*row[:1], url, row[2]) for row in rows]
    )


def test_a_row_whose_wide_word_fits_without_padding_takes_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setattr(sys, "stdout", Terminal())
    rows = (
        ("network/vpc", "ada@example.com", "apply"),
        ("platform/eks/prod", '"runner@ci-runner-17"', "plan"),
        ("platform/eks/staging", '"runner@ci-runner-17"', "apply"),
        ("platform/eks/integration", '"runner@ci-runner-17"', "apply"),
        ("network/eu-central-1/vpn", "ada@example.com", "apply"),
        ("network/eu-central-1/vpc", "ada@example.com", "apply"),
        ("network/eu-central-1/dns", "ada@example.com", "apply"),
    )

    lines = table(("STATE", "BY", "FOR"), rows).splitlines()

    assert lines[:6] == [
        "STATE                     BY               FOR",
        "network/vpc               ada@example.com  apply",
        'platform/eks/prod      "runner@ci-runner-17"  plan',
        'platform/eks/staging  "runner@ci-runner-17"  apply',
        "platform/eks/integration                   apply",
        '  BY  "runner@ci-runner-17"',
    ]


def test_a_long_name_with_nothing_beside_it_takes_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stdout", Terminal())
    rows = ((56 * "a", ""), (75 * "b", ""), ("c.d", "tainted"), (75 * "e", "deposed"))

    assert table(("ADDRESS", "NOTE"), rows).splitlines() == [
        f"{'ADDRESS':<56}  NOTE",
        f"{56 * 'a'}  -",
        75 * "b",
        f"{'c.d':<56}  tainted",
        75 * "e",
        f"{56 * ' '}  deposed",
    ]


OF_EVENTS = ("AGE", "EVENT", "WHO", "STATE", "DETAIL")
EVENTS = (
    ("5 min", "state.written", "bea@example.com", "payments/api/prod", "serial 14"),
    ("9 d", "session.created", "ada", "", "network"),
    ("9 d", "lock.broken", "ada", "a/b", "runner was killed"),
)


@pytest.mark.parametrize(
    ("columns", "laid"),
    [
        (
            80,
            """\
AGE    EVENT            WHO              STATE              DETAIL
5 min  state.written    bea@example.com  payments/api/prod  serial 14
9 d    session.created  ada              -                  network
9 d    lock.broken      ada              a/b                runner was killed""",
        ),
        (
            60,
            """\
AGE    EVENT            WHO  STATE  DETAIL
5 min  state.written    bea@example.com  payments/api/prod
       serial 14
9 d    session.created  ada  -      network
9 d    lock.broken      ada  a/b    runner was killed""",
        ),
    ],
)
def test_a_row_takes_one_line_and_what_does_not_fit_is_below_it(
    monkeypatch: pytest.MonkeyPatch, columns: int, laid: str
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys, "stdout", Terminal())

    assert flowing(OF_EVENTS, EVENTS) == laid


@pytest.mark.parametrize("length", [30, 110])
@pytest.mark.parametrize("column", [2, 3])
def test_a_cell_that_is_too_long_changes_its_own_row_alone(
    monkeypatch: pytest.MonkeyPatch, length: int, column: int
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stdout", Terminal())
    long = list(EVENTS[0])
    long[column] = length * "x"

    usual = [*EVENTS, *EVENTS]
    without = flowing(OF_EVENTS, usual).splitlines()
    heading, *others = flowing(OF_EVENTS, [*usual, long]).splitlines()

    assert [heading, *others[: len(usual)]] == without
    assert len(others) - len(usual) <= (2 if length < 80 else 4)
    assert long[column] in " ".join(others[len(usual) :]).split()


def test_a_long_name_has_a_line_of_its_own_and_a_long_reason_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stdout", Terminal())
    long, state = 110 * "x", "payments/ledger/prod"
    reason = "the runner was killed, and nobody knows when it will be back"
    rows = [
        *(("12 min", "lock acquired", "bea@example.com", state, "apply") for _ in range(5)),
        ("3 h", "lock acquired", "network pipeline of the team for GitHub", long, "apply"),
        ("3 h", "lock broken", "東京東京東京東京", state, reason),
    ]

    heading, *lines = flowing(OF_EVENTS, rows).splitlines()

    assert heading == f"AGE     EVENT          WHO               {'STATE':<20}  DETAIL"
    assert lines[4:] == [
        f"12 min  lock acquired  bea@example.com   {state}  apply",
        "3 h     lock acquired  network pipeline of the team for GitHub",
        f"        {long}",
        "        apply",
        f"3 h     lock broken    東京東京東京東京  {state}  the runner was…",
    ]


def test_a_cell_moves_to_where_its_row_takes_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stdout", Terminal())
    usual = ("12 min", "state written", "bea@example.com", "payments/gateway/prod", "push, serial 12")
    rows = [
        *[usual] * 9,
        ("2 h", "state written", "bea@example.com", "payments/gateway/staging", "serial 12"),
        ("3 h", "copy to replica failed", "carl@example.com", "payments/api/prod", "denied"),
        ("5 h", "state deleted", "ada", "payments/old/prod", "moved to payments/gateway/prod"),
        ("9 h", "state frozen", "", "", "incident 4711"),
        ("9 d", "lock released", "arn:aws:sts::123456789012:role/Deployer", "a/prod", ""),
    ]

    lines = flowing(OF_EVENTS, rows).splitlines()

    assert lines[0] == "AGE     EVENT          WHO              STATE                  DETAIL"
    assert lines[9:] == [
        "12 min  state written  bea@example.com  payments/gateway/prod  push, serial 12",
        "2 h     state written  bea@example.com  payments/gateway/staging  serial 12",
        "3 h     copy to replica failed  carl@example.com  payments/api/prod  denied",
        "5 h     state deleted  ada     payments/old/prod  moved to payments/gateway/prod",
        "9 h     state frozen   -                -                      incident 4711",
        "9 d     lock released  arn:aws:sts::123456789012:role/Deployer  a/prod",
    ]


def test_a_last_cell_of_which_enough_fits_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stdout", Terminal())
    usual = ("12 min", "lock broken", "bea@example.com", "payments/gateway/prod")
    rows = [
        (*usual, "the build runner was gone"),
        (*usual, "the runner 日本 was gone"),
        (*usual, "the runner was gon… too"),
        (*usual[:3], 29 * "s", "the runner was gone"),  # 11 cells are left for the reason
    ]

    _, *lines = flowing(OF_EVENTS, rows).splitlines()

    assert lines == [
        "12 min  lock broken  bea@example.com  payments/gateway/prod  the build runner…",
        "12 min  lock broken  bea@example.com  payments/gateway/prod  the runner 日本…",
        "12 min  lock broken  bea@example.com  payments/gateway/prod  the runner was…",
        f"12 min  lock broken  bea@example.com  {29 * 's'}",
        "        the runner was gone",
    ]


def test_the_last_cells_of_a_table_are_cut_if_that_is_wanted_and_enough_of_them_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys, "stdout", Terminal())
    rows = (
        ("network/prod", "1 d ago", "locked 25 min, the deployment of payments"),
        ("network/eu", "2 d ago", "locked 25 min, ada"),
        (50 * "x", "2 d ago", "frozen with network/*: the year's end"),
    )

    assert table(("STATE", "MODIFIED", "LOCK"), rows, cut_last=True).splitlines() == [
        "STATE         MODIFIED  LOCK",
        "network/prod  1 d ago   locked 25 min, the deployment of…",
        "network/eu    2 d ago   locked 25 min, ada",
        50 * "x",
        "              2 d ago   frozen with network/*: the year's…",
    ]
    assert 41 * "y" in table(("STATE", "NOTE"), [(9 * "x", 41 * "y")], cut_last=True)
    assert 71 * "y" in table(("STATE", "BY", "NOTE"), [(9 * "x", 50 * "z", 71 * "y")], cut_last=True)


def test_a_heading_is_to_the_right_of_rows_that_end_before_its_column(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stdout", Terminal())
    rows = [*[("3 h", "lock released", "runner@ci-runner-17", "")] * 3, ("2 h", "lock broken", "ada", "plan")]

    assert flowing(("AGE", "EVENT", "WHO", "DETAIL"), rows).splitlines() == [
        f"AGE  EVENT          {'WHO':<19}  DETAIL",
        *["3 h  lock released  runner@ci-runner-17"] * 3,
        f"2 h  lock broken    {'ada':<19}  plan",
    ]


def test_long_words_that_leave_too_little_room_are_below_their_row_and_others_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setattr(sys, "stdout", Terminal())
    rows = (
        (20 * "1", "ada", "writer:network/*", "network pipeline"),
        (20 * "2", 40 * "x", "reader:*", "of the team"),
        (20 * "3", "bea", "reader:*", ""),
    )

    assert table(("ID", "OWNER", "GRANTS", "DESCRIPTION"), rows).splitlines() == [
        f"{'ID':<20}  OWNER  GRANTS",
        f"{20 * '1'}  ada    writer:network/*",
        "  DESCRIPTION  network pipeline",
        f"{20 * '2'}         reader:*",
        f"  OWNER        {40 * 'x'}",
        "  DESCRIPTION  of the team",
        f"{20 * '3'}  bea    reader:*",
    ]


def test_a_cell_that_was_taken_out_is_put_back_if_it_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stdout", Terminal())
    rows = (
        (20 * "1", "network pipeline", ("maintainer:payments/*",), "in 3 h", "drift"),
        (20 * "2", "the operators team", ("writer:*",), "in 2 d", "nightly audit"),
        (20 * "3", "bea@example.com", ("maintainer:payments/*",), "in 3 h", ""),
        (20 * "4", "the operators team", ("reader:payments/*",), "in 2 d", "plan of pull requests"),
        (20 * "5", "audit@example.com", ("writer:network/*", "reader:data/*"), "in 2 d", "deployments"),
    )

    heading, *lines = table(("ID", "OWNER", "GRANTS", "EXPIRES", "DESCRIPTION"), rows).splitlines()

    assert not [line for line in lines if line.startswith("  GRANTS")]
    assert any(line.startswith(f"{20 * '3'}  bea@example.com     maintainer:payments/*  ") for line in lines)
    assert max(map(len, [heading, *lines])) <= 80


def test_cells_below_a_row_share_a_line_if_they_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys, "stdout", Terminal())
    long = ("3 h", "locked", 46 * "w", "a/b", "")
    rows = [*(("5 min", "locked", "ada@example.com", "payments/prod", 8 * "d") for _ in range(9)), long]

    *_, row, below = flowing(OF_EVENTS, rows).splitlines()

    assert row.split() == ["3", "h", "locked"]
    assert below == f"       {46 * 'w'}  a/b"


def test_a_cell_that_would_take_many_lines_is_below_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys, "stdout", Terminal())
    rows = [("network/prod", "1 d ago", 30 * "word "), ("network/eu", "2 d ago", "locked 25 min, ada")]

    assert table(("STATE", "MODIFIED", "LOCK"), rows).splitlines() == [
        "STATE         MODIFIED  LOCK",
        "network/prod  1 d ago",
        *[f"  LOCK  {' '.join(10 * ['word'])}", *[f"        {' '.join(10 * ['word'])}"] * 2],
        "network/eu    2 d ago   locked 25 min, ada",
    ]


def test_a_number_stays_with_its_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "22")

    said = "Outputs of it: 3 changed. No 3 a.b is kept."

    assert wrapped(said, stream=Terminal()).splitlines() == [
        "Outputs of it:",
        "3 changed. No 3 a.b is",
        "kept.",
    ]
    monkeypatch.setenv("COLUMNS", "17")
    assert wrapped("Nothing has no 3 a.b", stream=Terminal()).splitlines() == ["Nothing has no 3", "a.b"]


def test_names_of_usual_length_are_padded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stdout", Terminal())
    rows = [("5 min", "state.written", "ada", name, "serial 14") for name in (26 * "x", "a/b")]

    heading, *lines = flowing(OF_EVENTS, rows).splitlines()

    assert {line.index("serial 14") for line in lines} == {heading.index("DETAIL")}


def test_an_age_is_not_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "34")
    time_ = datetime(2027, 2, 19, 15, 44, 5, tzinfo=UTC)

    for now, age in (
        (time_ + timedelta(minutes=12), "(12 min ago)"),
        (time_ - timedelta(minutes=12), "(in 12 min)"),
    ):
        shown = wrapped(f"by {output.word(time_, now)}", stream=Terminal())
        assert shown.splitlines() == ["by 2027-02-19T15:44:05Z", age]
        alone = ages.ago(time_, now)
        assert wrapped(f"{22 * 'x'} and {alone}, so", stream=Terminal()).splitlines()[1:] == [f"{alone}, so"]


@pytest.mark.parametrize(
    ("left", "shown"),
    [
        (timedelta(hours=47, minutes=59), "in 1 d 23 h"),
        (timedelta(days=3) - timedelta(seconds=1), "in 2 d 23 h"),
        (timedelta(hours=3), "in 3 h"),
        (timedelta(days=2, minutes=50), "in 2 d"),
        (timedelta(minutes=12, seconds=5), "in 12 min 5 s"),
        (timedelta(days=7, hours=5), "in 7 d"),
        (timedelta(seconds=5), "in 5 s"),
    ],
)
def test_the_time_until_an_end_below_a_week_has_two_units(left: timedelta, shown: str) -> None:
    now = datetime(2027, 2, 19, 15, 44, 5, tzinfo=UTC)

    assert ages.ago(now + left, now) == shown
    assert output._WORD.fullmatch(shown)  # noqa: SLF001 no line breaks in it
    assert " " not in ages.ago(now - left, now).removesuffix(" ago").partition(" ")[2]


def test_a_terminal_that_reports_no_columns_has_80(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(os, "get_terminal_size", lambda *_: os.terminal_size((0, 0)))
    terminal = Terminal()
    monkeypatch.setattr(terminal, "fileno", lambda: 1)

    assert wrapped(40 * "a ", stream=terminal) == 40 * "a "


def test_a_pipe_gets_one_line_a_row_however_wide_the_terminal_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    text = "word " * 40

    assert table(HEADINGS, ROWS) == PIPED
    assert listed([("note", text)]) == f"  note  {text}"
    assert wrapped(text, head="ok  ") == f"ok  {text}"


def test_values_wrap_under_their_column_and_exports_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setattr(sys, "stdout", Terminal())
    secret = "s" * 40
    export = f"  export TF_HTTP_PASSWORD='{secret}'"

    assert listed([("ID", ID), ("secret", secret), ("note", "one two three\x1b four five")]) == (
        f"  ID      {ID}\n  secret  {secret}\n  note    one two three? four\n          five"
    )
    assert wrapped(
        f"It is shown only now, and stored nowhere:\n\n{export}\n\nThen run `a b c d e f g h i j k l`."
    ) == (f"It is shown only now, and\nstored nowhere:\n\n{export}\n\nThen run\n`a b c d e f g h i j k l`.")


def test_wrong_usage_is_wrapped_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)

    with pytest.raises(SystemExit):
        main(["token", "list", "more"])
    assert terminal.getvalue().endswith("token list: error: there is one\nargument too many: 'more'\n")


@pytest.mark.parametrize(
    ("stream", "variables", "is_coloured"),
    [
        (Terminal(), {"TERM": "xterm"}, True),
        (Terminal(), {"TERM": "xterm", "NO_COLOR": ""}, True),
        (Terminal(), {"TERM": "xterm", "NO_COLOR": "0"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {"TERM": "xterm", "FORCE_COLOR": "1"}, False),
    ],
)
def test_only_a_terminal_has_colours_and_only_if_they_are_wanted(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, variables: dict[str, str], is_coloured: bool
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert coloured("[b]bad", "red", stream) == ("\x1b[31m[b]bad\x1b[0m" if is_coloured else "[b]bad")
    monkeypatch.setattr(sys, "stdout", stream)
    headings = [lay(("NAME",), [["x"]]).splitlines()[0] for lay in (table, flowing)]
    assert headings == 2 * ["\x1b[1mNAME\x1b[0m" if is_coloured else "NAME"]


# --- output that nobody reads --------------------------------------------------------------------


@pytest.fixture
def closed() -> Iterator[TextIO]:
    """A pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as stream:  # noqa: PTH123 it has no path
        yield stream


@pytest.mark.parametrize(
    "arguments",
    [
        *(["--help"], ["--version"], ["token", "list", "--help"]),
        ["backend-config", "x", "--env", "--address", API],
    ],
)
def test_a_command_that_only_reads_ends_quietly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], closed: TextIO, arguments: list[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", closed)

    assert main(arguments) == 0
    assert capsys.readouterr().err == ""
    closed.flush()  # as Python does at its end


def test_a_list_whose_reader_went_away_still_tells_of_a_record_that_is_not_valid(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], closed: TextIO
) -> None:
    found = stack.Stack("payments", API, "bucket", "123456789012")
    monkeypatch.setenv("HOLDFAST_CONFIG_FILE", "/dev/null")
    monkeypatch.setattr(stack, "open_team", lambda _: (stack.Session("eu-central-1"), found))
    monkeypatch.setattr(tokens, "read_all", lambda *_: tokens.Listing([], ["a is not valid.", "b is not."]))
    monkeypatch.setattr(sys, "stdout", closed)

    assert main(["token", "list"]) == 1
    assert capsys.readouterr().err == "holdfast: a is not valid. Further records that cannot be read: 1.\n"


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_doctor_whose_findings_are_lost_has_not_said_that_all_is_well(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    closed: TextIO,
    tmp_path: Path,
    options: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdout", closed)

    assert main(["doctor", "x", "--address", API, *options]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("holdfast: The output could not be written: Broken pipe. Some results were")


def test_wrong_usage_is_told_and_help_is_not_where_standard_output_was_closed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(SystemExit) as ended:
        main(["token", "lst"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("usage: holdfast token")
    sys.stdout.close()

    monkeypatch.setattr(sys, "stdout", None)
    assert main(["--help"]) == 1
    sys.stdout.close()
    assert capsys.readouterr().err == "holdfast: The output could not be written: Bad file descriptor.\n"


def test_a_full_disk_is_an_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)

        assert main(["--version"]) == 1
    assert capsys.readouterr().err == "holdfast: The output could not be written: No space left on device.\n"


@pytest.mark.parametrize("arguments", [["login", "--audience", "a"], ["token", "shwo"]])
def test_errors_and_usage_that_nobody_reads_keep_their_exit_code(
    monkeypatch: pytest.MonkeyPatch, closed: TextIO, arguments: list[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", closed)

    with pytest.raises(SystemExit) as ended:
        sys.exit(main(arguments))
    assert ended.value.code == 2
    closed.flush()  # as Python does at its end

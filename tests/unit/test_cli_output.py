"""What the command tells a terminal, and what it keeps from everything else."""

import io
import sys

import pytest

from holdfast_cli.output import Progress, table


class Terminal(io.StringIO):
    """Takes text, and says that somebody looks at it."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, to be set."""
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_progress_is_shown_after_two_seconds_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    progress = Progress()

    clock[0] += 1.9
    progress.show("1 of 9")
    assert terminal.getvalue() == ""

    clock[0] += 0.2
    progress.show("2 of 9")
    progress.show("3 of 9")
    clock[0] += 0.2
    progress.show("4 of 9")
    progress.end()
    assert terminal.getvalue() == "\r\x1b[K2 of 9\r\x1b[K4 of 9\r\x1b[K"


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


@pytest.mark.parametrize("columns", [200, 40, 30, 1])
def test_only_columns_that_may_be_cut_are_cut_the_first_of_them_first(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys, "stdout", Terminal())
    rows = [["i" * 20, "s" * 12, "d" * 30], ["i" * 20, "", "d"]]

    laid = table(("ID", "SCOPE", "NOTE"), rows, cut=("NOTE", "SCOPE"))

    notes = {200: "d" * 30, 40: "d" * 7 + "…", 30: "d" * 7 + "…", 1: "d" * 7 + "…"}
    scopes = {200: "s" * 12, 40: "s" * 7 + "…", 30: "s" * 7 + "…", 1: "s" * 7 + "…"}
    assert laid.splitlines()[1] == f"{'i' * 20}  {scopes[columns]}  {notes[columns]}"
    assert laid.splitlines()[2].split() == ["i" * 20, "-", "d"]
    assert all(line == line.rstrip() for line in laid.splitlines())


def test_a_table_that_fits_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "22")
    monkeypatch.setattr(sys, "stdout", Terminal())

    assert table(("ID", "NOTE"), [["i" * 10, "d" * 10]], cut=("NOTE",)).splitlines()[1] == (
        f"{'i' * 10}  {'d' * 10}"
    )

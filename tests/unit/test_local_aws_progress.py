"""A user at a terminal sees that a step goes on; a file gets one line for each step."""

import sys
import threading
import time

import pytest

from local_aws import progress
from local_aws.progress import step


def test_a_terminal_sees_the_seconds_count_until_the_step_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_PAUSE", 0.001)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    before = threading.active_count()
    ends = time.monotonic() + 10
    printed = ""

    with step("Waiting"):
        while "\b" not in printed and time.monotonic() < ends:
            printed += capsys.readouterr().out

    assert "   0   s\b" in printed
    assert capsys.readouterr().out.endswith(" s\n")
    assert threading.active_count() == before


def test_a_file_gets_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with step("Waiting"):
        pass

    assert capsys.readouterr().out == f"{'Waiting …':<58}   0.0 s\n"

"""The benchmark: its arguments and its output. No assertion is on a time."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from botocore.exceptions import EndpointConnectionError

from benchmarks import __main__ as benchmarks
from benchmarks.figures import Figure, Section
from benchmarks.run import Run
from benchmarks.state import state
from local_aws.failure import LocalAwsError

Ask = Callable[..., tuple[int, str, str]]


def _words(output: str) -> list[str]:
    return [" ".join(line.split()) for line in output.splitlines()]


_SLOW = Section(
    "Slow",
    [Figure.of("plan: ratio", "ratio", [0.9, 0.8, 1.2]), Figure.count("plan: S3", [4, 4, 5])],
    ["A sentence."],
)
_FAST = Section("Fast", [Figure.of("read", "ms", [2000.0])])


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Run the benchmark; return its exit code, output and errors. Its two sections measure nothing.

    `failure` is what the section `slow` raises.
    """

    def run(*arguments: str, failure: BaseException | None = None) -> tuple[int, str, str]:
        def slow(_: Run) -> Section:
            if failure:
                raise failure
            return _SLOW

        monkeypatch.setattr(benchmarks, "SECTIONS", {"slow": slow, "fast": lambda _: _FAST})
        monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
        try:
            code = benchmarks.main()
        except SystemExit as exited:
            code = int(exited.code or 0)
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (LocalAwsError("it did not start"), "it did not start"),
        (RuntimeError("it answered 500"), "it answered 500"),
        (subprocess.TimeoutExpired("a", 9), "Command 'a' timed out after 9 seconds"),
        (EndpointConnectionError(endpoint_url="x"), 'Could not connect to the endpoint URL: "x"'),
    ],
)
def test_a_section_that_fails_is_named_and_the_other_sections_are_measured(
    failure: Exception, message: str, ask: Ask
) -> None:
    code, output, errors = ask(failure=failure)
    assert code == 1
    assert errors.splitlines() == ["... slow", f"The section slow failed: {message}", "... fast"]
    assert _words(output)[1] == "Fast"
    code, output, _ = ask("--json", failure=failure)
    assert code == 1
    assert [*json.loads(output)["sections"]] == ["fast"]


def test_a_fault_of_the_benchmark_is_shown_with_its_place(ask: Ask) -> None:
    code, output, errors = ask(failure=KeyError("grants"))
    assert (code, _words(output)[1]) == (1, "Fast")
    assert "Traceback" in errors
    assert "The section slow failed: 'grants'" in errors


def test_an_interrupt_ends_the_run(ask: Ask) -> None:
    code, output, errors = ask(failure=KeyboardInterrupt())
    assert (code, output) == (130, "")
    assert errors.splitlines() == ["... slow", "", "Interrupted."]


def test_a_table_has_the_spread_and_the_notes(ask: Ask) -> None:
    code, output, errors = ask("--only", "slow")
    assert code == 0
    assert errors == "... slow\n"
    assert _words(output) == [
        "",
        "Slow",
        "median from to n",
        "plan",
        "ratio ratio 0.90 0.85 1.05 3",
        "S3 requests 4 4 5 3",
        "A sentence.",
    ]


def test_a_run_can_be_saved(ask: Ask) -> None:
    assert json.loads(ask("--json")[1])["sections"]["slow"]["figures"][1] == {
        "name": "plan: S3",
        "unit": "requests",
        "median": 4,
        "lower": 4,
        "upper": 5,
        "n": 3,
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--only", "slow,weather"), "there is no section 'weather'; there are slow, fast"),
        (
            ("--only", "slow", "--beside", str(Path(__file__).parents[2])),
            "--beside is for the section cold, which --only leaves out",
        ),
        (("--beside", "/no/such/folder"), "/no/such/folder is not a checkout of Holdfast"),
        (("--rounds", "0"), "--rounds takes a number from 1"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(arguments: Sequence[str], message: str, ask: Ask) -> None:
    code, output, errors = ask(*arguments)
    assert (code, output) == (2, "")
    assert errors.splitlines()[-1].endswith(message)


@pytest.mark.parametrize("size", [10_000, 100_000])
def test_a_state_has_about_the_size_that_is_asked_for(size: int) -> None:
    document = state(3, size)
    assert len(document) == pytest.approx(size, rel=0.1)
    assert json.loads(document)["serial"] == 3

"""How the benchmark is asked and what it prints; nothing is measured."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks.figures import Figure, Section
from benchmarks.run import Run
from local_aws.failure import LocalAwsError

_SLOW = Section(
    "Slow",
    [Figure.of("plan: ratio", "ratio", [0.9, 0.8, 1.2], limit=0.87), Figure.count("plan: S3", [4, 4, 5])],
    ["A sentence."],
)
_FAST = Section("Fast", [Figure.of("read", "ms", [2000.0])])


@pytest.fixture
def ask(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Run the benchmark, with two sections that measure nothing; its exit code, output and errors."""

    def run(*arguments: str, sections: Sequence[Section] = (_SLOW, _FAST)) -> tuple[int, str, str]:
        measured = {section.title.lower(): lambda _, section=section: section for section in sections}
        monkeypatch.setattr(benchmarks, "SECTIONS", measured)
        monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
        try:
            code = benchmarks.main()
        except SystemExit as exited:
            code = int(exited.code or 0)
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize("failure", [LocalAwsError("it did not start"), RuntimeError("it answered 500")])
def test_a_failure_is_one_line_and_exit_code_1(
    failure: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: Run) -> Section:
        raise failure

    monkeypatch.setattr(sys, "argv", ["benchmarks", "--only", "cold"])
    monkeypatch.setitem(benchmarks.SECTIONS, "cold", fail)
    assert benchmarks.main() == 1
    assert capsys.readouterr().err.splitlines()[1:] == [str(failure)]


def test_a_table_has_the_spread_and_marks_what_is_above_its_limit(
    ask: Callable[..., tuple[int, str, str]],
) -> None:
    code, output, errors = ask("--only", "slow")
    assert code == 0
    assert errors == "... slow\n"
    assert output.splitlines()[1:] == [
        "Slow",
        "                           median       from         to    n  at most",
        "plan: ratio  ratio           0.90       0.85       1.05    3     0.87  <- above",
        "plan: S3     requests           4          4          5    3",
        "A sentence.",
    ]


def test_a_saved_run_stands_beside_a_later_one(
    ask: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    before = tmp_path / "before.json"
    before.write_text(ask("--json")[1])
    assert json.loads(before.read_text())["sections"]["slow"]["figures"][1] == {
        "name": "plan: S3",
        "unit": "requests",
        "median": 4,
        "lower": 4,
        "upper": 5,
        "n": 3,
        "limit": None,
        "counted": True,
    }
    later = Section("Slow", [Figure.of("plan: ratio", "ratio", [0.45]), Figure.count("apply: S3", [7])])
    code, output, _ = ask("--against", str(before), sections=(later,))
    assert code == 0
    assert output.splitlines()[2:] == [
        "                           median       from         to    n  at most      saved  new/old",
        "plan: ratio  ratio           0.45       0.45       0.45    1                0.90     0.50",
        "apply: S3    requests           7          7          7    1           not saved",
        "plan: S3: only in the saved run",
        "",
        "Saved and not measured this time: fast",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--only", "slow,month"), "there is no section 'month'; there are slow, fast"),
        (("--beside", "/no/such/folder"), "/no/such/folder is not a checkout of Holdfast"),
        (("--rounds", "0"), "--rounds takes a number from 1"),
        (
            ("--against", "/no/such/file"),
            "--against: /no/such/file cannot be read: No such file or directory",
        ),
        (
            ("--against", __file__),
            f"--against: {__file__} is not a run that `python -m benchmarks --json` printed",
        ),
    ],
)
def test_what_was_asked_wrongly_is_said_in_one_line_with_exit_code_2(
    arguments: Sequence[str], said: str, ask: Callable[..., tuple[int, str, str]]
) -> None:
    code, output, errors = ask(*arguments)
    assert (code, output) == (2, "")
    assert errors.splitlines()[-1].endswith(said)

"""The benchmark: its arguments and its output, and each section once in its smallest form.

No assertion is on a time. The sections share a local AWS of their own. The local AWS of the other tests has
TLS and IAM, and its requests go through a gateway.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from botocore.exceptions import EndpointConnectionError

from benchmarks import __main__ as benchmarks
from benchmarks import console, project
from benchmarks.figures import Figure, Section
from benchmarks.run import Run
from benchmarks.state import state
from local_aws.failure import LocalAwsError
from local_aws.terraform import terraforms
from tests.support.pages import page

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


# --- each section, measured -------------------------------------------------------------------------

SPEED: Final = page("speed.md").read_text(encoding="utf-8")
COLUMNS: Final = tuple(re.findall(r"with Terraform (\d+\.\d+\.\d+)", SPEED))
"""The versions of Terraform for which the page has requests."""
ROWS: Final = {
    "`http`: API requests": "http, API",
    "`http`: S3 requests of the functions": "http, S3",
    "`cloud {}`: API requests": "cloud, API",
    "`cloud {}`: S3 requests of the functions": "cloud, S3",
    '`backend "s3"`: S3 requests': "beside, S3",
}
"""Row of the page's first table -> the end of the figures' names."""
DISCOVERY: Final = "cloud, API"
"""Here the page has one request more, which needs HTTPS."""
BROWSER: Final = "list of 1,000 states: "


def figures(client: str) -> dict[str, dict[str, int | None]]:
    """Return the figures of each section, by name. A count has its value as on the page; others have None."""
    column = COLUMNS.index(client.removeprefix("Terraform "))
    requests: dict[str, int | None] = {}
    for row, name in ROWS.items():
        [cells] = re.findall(rf"^\| {re.escape(row)} \|(.*)\|$", SPEED, re.MULTILINE)
        for command, cell in zip(("init", "plan", "apply", "output"), cells.split("|"), strict=True):
            told = int(cell.split("/")[column])
            requests[f"{command}, {client}: {name}"] = told - (name == DISCOVERY)
    in_browser = ("until it is shown", "from a keystroke to the screen")
    measured: dict[str, Sequence[str]] = {
        "distance": [
            f"{command}, {client}: {figure}"
            for command in ("plan", "apply")
            for figure in (
                "beside, waiting",
                *(f"{of}, {what}" for of in ("in use", "idle") for what in ("waiting", "ratio")),
            )
        ],
        "cold": [
            *(f"{function}: response" for function in ("authorizer", "backend")),
            *("chain: response to bare", "chain: wall"),
            *("chain, kept warm: wall", "chain, kept warm: wall to cold"),
        ],
        "size": [
            *(f"0.1 MB, {verb}: {of}" for verb in ("write", "read") for of in ("at the client", "ratio")),
            "0.1 MB, read: on the wire",
        ],
        "cloud": ["1 MB: commit, processor", "1 MB: commit, memory at most"],
        "manage": [
            f"{what}: in the function" for what in ("list of 1,000 states", "history, a page", "diff of 5 MB")
        ],
        "console": [
            *("page: together", "index.html: cold", *(BROWSER + each for each in in_browser)),
            # A page of a search ends after seconds, so a busy machine needs more of them.
            *(f"search, {of}" for of in ("alone: requests", "alone: 100 states")),
            *(f"search, beside applies: {of}" for of in ("requests", "100 states")),
            *("apply: alone", "apply: beside a search"),
        ],
    }
    counted: dict[str, dict[str, int | None]] = {
        "cloud": requests,
        "manage": {"list of 1,000 states: S3 requests": 2, "history, a page: S3 requests": 22},
        "console": {"page: files": 3, f"{BROWSER}requests until it is shown": 7},
    }
    return {name: {**dict.fromkeys(of), **counted.get(name, {})} for name, of in measured.items()}


def test_each_section_has_its_figures_and_the_requests_of_the_page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [one, *_] = [each for each in terraforms() if str(each.client).removeprefix("Terraform ") in COLUMNS]
    monkeypatch.setattr(project, "terraforms", lambda: [one])
    monkeypatch.setattr(benchmarks, "Run", partial(Run, smallest=True))
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--rounds", "1", "--json"])

    code = benchmarks.main()

    output, errors = capsys.readouterr()
    assert code == 0, errors
    measured = {
        section: {figure["name"]: figure for figure in of["figures"]}
        for section, of in json.loads(output)["sections"].items()
    }
    expected = figures(str(one.client))
    if not console.chromium():
        expected["console"] = {
            name: value for name, value in expected["console"].items() if not name.startswith(BROWSER)
        }
    assert {name: {*of} for name, of in measured.items()} == {name: {*of} for name, of in expected.items()}
    counts = {
        (section, name): value
        for section, of in expected.items()
        for name, value in of.items()
        if value is not None
    }
    assert {(section, name): measured[section][name]["median"] for section, name in counts} == counts

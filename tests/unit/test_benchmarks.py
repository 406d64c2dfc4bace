"""The arguments of the benchmark, its output and its relay; nothing is measured."""

import http.client
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import EndpointConnectionError

from benchmarks import __main__ as benchmarks
from benchmarks import latency
from benchmarks.figures import Figure, Section
from benchmarks.relay import Passed, Relay
from benchmarks.run import Run
from benchmarks.state import state
from local_aws import loopback
from local_aws.failure import LocalAwsError


def _words(output: str) -> list[str]:
    return [" ".join(line.split()) for line in output.splitlines()]


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

    def run(*arguments: str) -> tuple[int, str, str]:
        measured = {section.title.lower(): lambda _, section=section: section for section in (_SLOW, _FAST)}
        monkeypatch.setattr(benchmarks, "SECTIONS", measured)
        monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
        try:
            code = benchmarks.main()
        except SystemExit as exited:
            code = int(exited.code or 0)
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize(
    ("failure", "code", "said"),
    [
        (LocalAwsError("it did not start"), 1, ["it did not start"]),
        (RuntimeError("it answered 500"), 1, ["it answered 500"]),
        (subprocess.TimeoutExpired("a", 9), 1, ["Command 'a' timed out after 9 seconds"]),
        (EndpointConnectionError(endpoint_url="x"), 1, ['Could not connect to the endpoint URL: "x"']),
        (KeyboardInterrupt(), 130, ["", "Interrupted."]),
    ],
)
def test_a_failure_is_one_line_and_an_exit_code(
    failure: BaseException,
    code: int,
    said: Sequence[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(_: Run) -> Section:
        raise failure

    monkeypatch.setattr(sys, "argv", ["benchmarks", "--only", "cold"])
    monkeypatch.setitem(benchmarks.SECTIONS, "cold", fail)
    assert benchmarks.main() == code
    assert capsys.readouterr().err.splitlines()[1:] == said


def test_a_table_has_the_spread_and_marks_what_is_above_its_limit(
    ask: Callable[..., tuple[int, str, str]],
) -> None:
    code, output, errors = ask("--only", "slow")
    assert code == 0
    assert errors == "... slow\n"
    assert _words(output) == [
        "",
        "Slow",
        "median from to n at most",
        "plan",
        "ratio ratio 0.90 0.85 1.05 3 0.87 <- above",
        "S3 requests 4 4 5 3",
        "A sentence.",
    ]


def test_a_run_can_be_saved(ask: Callable[..., tuple[int, str, str]]) -> None:
    assert json.loads(ask("--json")[1])["sections"]["slow"]["figures"][1] == {
        "name": "plan: S3",
        "unit": "requests",
        "median": 4,
        "lower": 4,
        "upper": 5,
        "n": 3,
        "limit": None,
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
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
def test_what_was_asked_wrongly_is_said_in_one_line_with_exit_code_2(
    arguments: Sequence[str], said: str, ask: Callable[..., tuple[int, str, str]]
) -> None:
    code, output, errors = ask(*arguments)
    assert (code, output) == (2, "")
    assert errors.splitlines()[-1].endswith(said)


def test_a_relay_passes_everything_on_and_counts_it() -> None:
    sent = random.Random(1).randbytes(3_000_000)  # noqa: S311 the same in every run

    class Echo(loopback.Handler):
        def respond(self) -> None:
            self.answer(200, self.read_body())

    with loopback.serving(Echo) as address, Relay(address, 0.001) as relay:
        client = http.client.HTTPConnection(urlsplit(relay.endpoint).netloc, timeout=10)
        for body in (sent, b"short"):
            client.request("PUT", "/", body)
            assert client.getresponse().read() == body
        assert relay.take() == Passed(connections=1, requests=2)
        relay.disconnect()
        assert client.sock.recv(1) == b""
        client.close()


@pytest.mark.parametrize(
    ("method", "path", "condition", "seconds"),
    [
        ("GET", "/bucket/key", {}, 0.02),
        ("PUT", "/bucket/key", {}, 0.03),
        ("PUT", "/bucket/key", {"if-match": '"1"'}, 0.06),
        ("DELETE", "/bucket/key", {}, 0.03),
        ("PUT", "/_aws/execute-api/1/locks/a", {}, 0.0),
    ],
)
def test_a_response_takes_the_latency_of_its_method(
    method: str, path: str, condition: Mapping[str, str], seconds: float
) -> None:
    class Empty(loopback.Handler):
        def respond(self) -> None:
            self.read_body()
            self.answer(200)

    with (
        loopback.serving(Empty) as address,
        Relay(address, 0.01, connecting=0.05, latency=latency.of) as relay,
    ):
        client = http.client.HTTPConnection(urlsplit(relay.endpoint).netloc, timeout=10)
        for waiting in (0.06 + seconds, 0.01 + seconds):
            started = time.perf_counter()
            client.request(method, path, b"body", dict(condition))
            client.getresponse().read()
            assert time.perf_counter() - started >= waiting
            assert relay.waiting(relay.take()) == pytest.approx(waiting)
        client.close()


@pytest.mark.parametrize("size", [10_000, 100_000])
def test_a_state_has_about_the_size_that_is_asked_for(size: int) -> None:
    document = state(3, size)
    assert len(document) == pytest.approx(size, rel=0.1)
    assert json.loads(document)["serial"] == 3

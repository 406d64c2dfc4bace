"""A benchmark that cannot be measured says so in one line."""

import sys

import pytest

from benchmarks import __main__ as benchmarks
from local_aws.failure import LocalAwsError


@pytest.mark.parametrize("failure", [LocalAwsError("it did not start"), RuntimeError("it answered 500")])
def test_a_failure_is_one_line_and_exit_code_1(
    failure: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: int) -> None:
        raise failure

    monkeypatch.setattr(sys, "argv", ["benchmarks"])
    monkeypatch.setattr("benchmarks.cold_start.measure", fail)
    assert benchmarks.main() == 1
    assert capsys.readouterr().err.splitlines()[1:] == [str(failure)]

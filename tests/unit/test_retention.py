"""How a stack tells its functions and the command the retention of its states."""

from datetime import UTC, datetime

import pytest

from holdfast.s3.retention import Retention, parse


@pytest.mark.parametrize(
    ("text", "retention"),
    [
        ("governance 1", Retention("GOVERNANCE", 1)),
        ("governance 30", Retention("GOVERNANCE", 30)),
        ("compliance 36500", Retention("COMPLIANCE", 36_500)),
    ],
)
def test_mode_and_days_are_read_and_written_the_same(text: str, retention: Retention) -> None:
    assert parse(text) == retention
    assert str(retention) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "governance",
        "30",
        "Governance 30",
        "GOVERNANCE 30",
        "governance 0",
        "governance 030",
        "governance -1",
        "governance 1.5",
        "governance 36501",
        "governance 99999",
        "governance 30 ",
        "governance 30\n",
        "governance  30",
        "governance ٣",
        "legal 30",
    ],
)
def test_anything_else_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match="'governance 30'"):
        parse(text)


def test_the_days_count_from_the_write() -> None:
    written = datetime(2026, 2, 27, 10, 30, tzinfo=UTC)
    assert Retention("GOVERNANCE", 3).until(written) == datetime(2026, 3, 2, 10, 30, tzinfo=UTC)

"""The text in which a stack passes the retention of its states to the functions and the command."""

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
        *("", "30", "governance", "governance  30", "Governance 30", "GOVERNANCE 30", "legal 30"),
        *(f"governance {days}" for days in ("0", "030", "-1", "1.5", "36501", "99999", "30 ", "30\n", "٣")),
    ],
)
def test_anything_else_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match="'governance 30'"):
        parse(text)


def test_the_days_count_from_the_write() -> None:
    written = datetime(2026, 2, 27, 10, 30, tzinfo=UTC)
    assert Retention("GOVERNANCE", 3).until(written) == datetime(2026, 3, 2, 10, 30, tzinfo=UTC)

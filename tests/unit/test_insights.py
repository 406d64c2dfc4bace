"""The evaluator with which the queries of docs/audit.md are tried."""

import pytest

from tests.support.insights import query

EVENTS = [
    {"@timestamp": 3, "event": "state.written", "serial": 12, "state": "a|b", "left": True},
    {"@timestamp": 1, "event": "state.read", "state": "a"},
    {"@timestamp": 2, "event": "state.written", "serial": 2, "state": "a"},
]


def test_fields_are_shown_where_an_event_has_them() -> None:
    assert query("fields @timestamp, serial\n| sort @timestamp asc", EVENTS) == [
        {"@timestamp": "1"},
        {"@timestamp": "2", "serial": "2"},
        {"@timestamp": "3", "serial": "12"},
    ]


def test_numbers_are_sorted_as_numbers() -> None:
    rows = query('fields serial | filter event = "state.written" | sort serial desc', EVENTS)
    assert rows == [{"serial": "12"}, {"serial": "2"}]


@pytest.mark.parametrize(
    ("condition", "times"),
    [
        ('event = "state.written"', ["3", "2"]),
        ('event != "state.written"', ["1"]),
        ("serial = 2", ["2"]),
        ("serial != 2", ["3", "1"]),
        ('state = "a" and event = "state.written"', ["2"]),
        ('state = "a|b"', ["3"]),
        ("event like /^state.w|x/", ["3", "2"]),
        ("event like /written$/ and serial = 12", ["3"]),
        ('event in ["state.read", "other"]', ["1"]),
        ('left = "true"', ["3"]),
        ('none = ""', ["3", "1", "2"]),
        ('none = "x"', []),
    ],
)
def test_a_filter_keeps_what_fits(condition: str, times: list[str]) -> None:
    assert [row["@timestamp"] for row in query(f"fields @timestamp | filter {condition}", EVENTS)] == times


def test_stats_count_what_is_alike() -> None:
    assert query('filter state = "a" | stats count(*) by state, serial', EVENTS) == [
        {"state": "a", "count(*)": "1"},
        {"serial": "2", "state": "a", "count(*)": "1"},
    ]
    assert query("stats count(*) by event", EVENTS) == [
        {"event": "state.written", "count(*)": "2"},
        {"event": "state.read", "count(*)": "1"},
    ]


def test_the_limit_counts_what_is_left() -> None:
    assert len(query('filter event = "state.written" | limit 1', EVENTS)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "parse @message /x/",
        "fields",
        "fields a b",
        "filter a = b",
        "filter a ~= 1",
        'filter a = "x" or b = "y"',
        "filter isPresent(a)",
        "sort a",
        "limit x",
        "stats count(a) by b",
        "stats count(*) by b | sort b asc",
        "",
    ],
)
def test_what_is_not_known_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="not known here"):
        query(text, EVENTS)

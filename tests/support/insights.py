"""The part of CloudWatch Logs Insights' query language that docs/audit.md uses, over JSON events.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/CWL_QuerySyntax.html; whatever is not known here is
an error, so that no query passes because half of it was ignored.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Event = Mapping[str, Any]
Row = dict[str, str]

_PIPE = re.compile(r"""\|(?=(?:[^"/]|"[^"]*"|/[^/]*/)*$)""")
_FIELD = r"@?[A-Za-z_][A-Za-z0-9_]*"
_FIELDS = re.compile(rf"{_FIELD}(?:\s*,\s*{_FIELD})*")
_EQUAL = re.compile(rf'({_FIELD})\s*(!?=)\s*(?:"([^"]*)"|(\d+))')
_LIKE = re.compile(rf"({_FIELD})\s+like\s+/([^/]+)/")
_IN = re.compile(rf'({_FIELD})\s+in\s+\[((?:\s*"[^"]*"\s*,?)+)\]')
_SORT = re.compile(rf"({_FIELD})\s+(asc|desc)")
_STATS = re.compile(rf"count\(\*\)\s+by\s+({_FIELDS.pattern})")


def query(text: str, events: Sequence[Event]) -> list[Row]:
    """Run a query.

    Args:
        text: the query.
        events: in any order; each also has `@timestamp`.

    Returns:
        What it finds: every value as text, and only the fields that an event has. Without `fields` and
        `stats` the whole events.

    Raises:
        ValueError: the query uses something that is not known here.
    """
    found = list(events)
    shown: tuple[str, ...] | None = None
    rows: list[Row] | None = None
    for command in _PIPE.split(text):
        name, _, rest = command.strip().partition(" ")
        rest = rest.strip()
        match name:
            case "fields" if _FIELDS.fullmatch(rest) and rows is None:
                shown = _names(rest)
            case "filter" if rows is None:
                conditions = [_condition(each) for each in re.split(r"\s+and\s+", rest)]
                found = [event for event in found if all(holds(event) for holds in conditions)]
            case "sort" if (order := _SORT.fullmatch(rest)) and rows is None:
                field, direction = order.groups()
                found.sort(key=lambda event: _key(event.get(field)), reverse=direction == "desc")
            case "limit" if rest.isdecimal() and rows is None:
                found = found[: int(rest)]
            case "stats" if (stats := _STATS.fullmatch(rest)) and rows is None:
                rows = _counted(found, _names(stats[1]))
            case _:
                raise ValueError(f"not known here: {command.strip()!r}")
    if rows is not None:
        return rows
    return [_row(event, shown or tuple(event)) for event in found]


def _names(text: str) -> tuple[str, ...]:
    return tuple(re.findall(_FIELD, text))


def _condition(text: str) -> Callable[[Event], bool]:
    if found := _EQUAL.fullmatch(text):
        name, operator, quoted, number = found.groups()
        wanted = number if quoted is None else quoted
        # A field that an event lacks is equal to nothing and different from everything.
        return lambda event: (_text(event.get(name)) == wanted) == (operator == "=")
    if found := _LIKE.fullmatch(text):
        name, pattern = found.groups()
        return lambda event: re.search(pattern, _text(event.get(name))) is not None
    if found := _IN.fullmatch(text):
        name, values = found[1], set(re.findall(r'"([^"]*)"', found[2]))
        return lambda event: _text(event.get(name)) in values
    raise ValueError(f"not known here: {text!r}")


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def _key(value: object) -> tuple[int, float, str]:
    if isinstance(value, int | float):
        return 0, float(value), ""
    return 1, 0.0, _text(value)


def _row(event: Event, names: Sequence[str]) -> Row:
    return {name: _text(event[name]) for name in names if event.get(name) is not None}


def _counted(events: Sequence[Event], names: Sequence[str]) -> list[Row]:
    counts = Counter(tuple(sorted(_row(event, names).items())) for event in events)
    return [{**dict(group), "count(*)": str(count)} for group, count in counts.items()]

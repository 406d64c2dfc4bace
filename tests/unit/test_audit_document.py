"""`audit-events.md` names every event, field and reason and no other; queries of `audit.md` use these fields.

No test runs the queries: the local AWS does not have CloudWatch Logs Insights.
"""

import re
from typing import Final

import pytest

from holdfast import audit
from holdfast.identity.authentication import DenialReason
from tests.support.pages import page

DOCUMENT: Final = page("audit.md").read_text()
REFERENCE: Final = page("audit-events.md").read_text()
FIELDS: Final = {*audit.ADDED_FIELDS, *audit.FIELDS}

_COMMANDS: Final = frozenset({"fields", "filter", "sort", "limit", "stats"})
_WORDS: Final = frozenset({"and", "asc", "by", "count", "desc", "in", "like"})


def table(first_cell: str) -> list[str]:
    """The rows of the table whose heading begins with this cell."""
    [found] = re.findall(rf"^\| {first_cell} \|.*?\n\n", f"{REFERENCE}\n", re.MULTILINE | re.DOTALL)
    rows: list[str] = found.strip().splitlines()
    return rows[2:]


def first_names(rows: list[str]) -> set[str]:
    """The names in the first cell of each row."""
    return {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}


def queries() -> list[str]:
    """Every query of `audit.md`."""
    _, _, rest = DOCUMENT.partition("## Queries\n")
    section, _, _ = rest.partition("\n## ")
    return re.findall(r"^```\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


def used_fields(query: str) -> set[str]:
    """The words of a query that can be fields, in any of its commands."""
    without_values = re.sub(r'"[^"]*"|/[^/]*/|<\w+>|\b\d+\b', "", query)
    commands = [re.findall(r"@?\b[A-Za-z_]\w*", command) for command in without_values.split("|")]
    assert {command[0] for command in commands} <= _COMMANDS, query
    return {word for command in commands for word in command[1:]} - _WORDS


def test_the_document_names_every_field() -> None:
    assert first_names(table("Field")) == FIELDS


def test_the_document_names_every_event() -> None:
    rows = "".join(row.split("|")[1] for row in table("Event"))

    assert set(re.findall(r"`([\w.]+)`", rows)) == set(audit.EVENTS)


def test_the_document_says_which_events_are_writes() -> None:
    [named] = re.findall(r"^\| `--writes` \| (.*) \|$", DOCUMENT, re.MULTILINE)

    assert re.findall(r"`([\w.]+)`", named) == list(audit.WRITES)


def test_the_document_names_every_denial_reason() -> None:
    assert first_names(table("`reason` of a denial")) == set(DenialReason)


def test_there_are_queries() -> None:
    assert queries()


@pytest.mark.parametrize("query", queries())
def test_a_query_uses_only_fields_that_events_have(query: str) -> None:
    assert used_fields(query) - {"@timestamp"} <= FIELDS


def test_a_field_that_no_event_has_would_be_noticed() -> None:
    query = (
        'fields @timestamp, principal, serail\n| filter state = "a" and status > 400\n| stats count(*) by who'
    )

    assert used_fields(query) == {"@timestamp", "principal", "serail", "state", "status", "who"}

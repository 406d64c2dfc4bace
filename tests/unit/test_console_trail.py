"""The console selects the events of the audit trail as the command does."""

import re
from pathlib import Path

from holdfast.audit import EVENTS, READINGS, WRITES
from holdfast.identity.authentication import DenialReason
from holdfast_cli.api import trail_texts
from holdfast_cli.api.trail_texts import OF_S3, REFUSALS, refusal
from holdfast_cli.bucket.audit import NOTHING_TO_READ
from tests.unit.test_errors import LEAVES

ROOT = Path(__file__).resolve().parents[2]
TRAIL = ROOT / "console" / "src" / "trail.ts"
WORDS = TRAIL.with_name("words.ts")
NOTIFICATIONS = ROOT / "infra" / "holdfast_cdk" / "notifications.py"


def _selected(constant: str) -> set[str]:
    """Return the events that a regular expression of the console finds."""
    found = re.search(rf"^const {constant} = /(.+)/;$", TRAIL.read_text("utf-8"), re.MULTILINE)
    assert found, f"{TRAIL.name} has no regular expression {constant}"
    return {str(event) for event in EVENTS if re.search(found[1], event)}


def test_every_event_has_words_and_no_other() -> None:
    table = re.search(r"^const EVENTS: .+ = \{$([^}]+)^\};$", TRAIL.read_text("utf-8"), re.MULTILINE)
    assert table, f"{TRAIL.name} has no table of events"
    told = dict(re.findall(r'^  "(.+)": "(.+)",$', table[1], re.MULTILINE))
    assert told.keys() <= set(EVENTS)
    words = {event: told.get(event, _words(event)) for event in EVENTS}

    assert [one for one in words.values() if not re.fullmatch(r"[A-Z][a-z]+([- ][a-z]+)+", one)] == []
    assert len(set(words.values())) == len(words), "two events have the same words"
    assert [event for event, plain in told.items() if plain == _words(event)] == []
    assert words == {code: said.capitalize() for code, said in trail_texts.EVENTS.items()}


def _words(event: str) -> str:
    """Return the words that the console makes of an event's name."""
    return event.replace(".", " ").replace("_", "-").capitalize()


def test_every_operation_of_s3_that_becomes_an_event_has_words() -> None:
    notified = set(re.findall(r'"(?:s3:)?(Object\w+|Replication)\b', NOTIFICATIONS.read_text("utf-8")))
    table = re.search(r"^const OF_S3: .+ = \{$([^}]+)^\};$", WORDS.read_text("utf-8"), re.MULTILINE)

    assert table, f"{WORDS.name} has no table of operations"
    assert set(re.findall(r"(\w+): ", table[1])) == notified
    assert dict(re.findall(r'(\w+): "([^"]+)"', table[1])) == OF_S3


def test_the_command_and_the_console_have_the_same_words_for_refusals() -> None:
    table = re.search(r"^const REFUSALS: .+ = \{$([^}]+)^\};$", TRAIL.read_text("utf-8"), re.MULTILINE)

    assert table, f"{TRAIL.name} has no table of refusals"
    assert dict(re.findall(r'^  (\w+): "(.+)",$', table[1], re.MULTILINE)) == REFUSALS


def test_every_code_of_a_refusal_has_words() -> None:
    codes = {code for _, code in LEAVES} | {str(reason) for reason in DenialReason}

    assert codes >= REFUSALS.keys()
    assert [code for code in codes if not re.fullmatch(r"[A-Za-z]+( [a-zA-Z]+)*", refusal(code))] == []


def test_writes_only_shows_the_writes_of_the_command() -> None:
    assert _selected("WRITES") == set(WRITES)


def test_the_command_and_the_console_hide_the_same_events_as_readings() -> None:
    assert _selected("LOOKS") == set(READINGS)


def test_the_errors_of_readings_are_those_of_the_api() -> None:
    assert {code for _, code in LEAVES} >= NOTHING_TO_READ


def test_no_event_that_changed_something_or_was_refused_is_hidden_as_reading() -> None:
    done = re.compile(
        r"\.(written|unchanged|deleted|restored|undeleted|declared|undeclared|frozen|unfrozen|acquired|released"
        r"|force_unlocked|created|changed|refused|failed)$"
    )
    assert not {event for event in _selected("LOOKS") if done.search(event)}
    assert _selected("LOOKS") | {str(event) for event in EVENTS if done.search(event)} == set(EVENTS)

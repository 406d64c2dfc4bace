"""docs/audit.md: every command and every query that it has, on real events of the deployed team."""

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from holdfast.access import Role
from holdfast.identity import principals
from holdfast.identity.authentication import DenialReason
from local_aws.server import ROOT, LocalAws
from tests.support import documents, insights, oidc
from tests.support.access_records import (
    add_oidc_trust,
    basic,
    exchange,
    new_token,
    session_of,
    with_header,
)
from tests.support.audit_events import audit_events
from tests.support.deployed import FUNCTIONS, client
from tests.support.insights import Row
from tests.support.oidc import Issuer
from tests.support.team import HOLDFAST, Team
from tests.support.waiting import wait_until

DOCUMENT: Final = ROOT / "docs" / "audit.md"
STATE: Final = "audit/of/one/state"
SUBJECT: Final = "repo:acme/network:ref:refs/heads/main"
HERE: Final = "127.0.0.1"
NOT_COMPARED: Final = frozenset({"@timestamp"})


@dataclass(frozen=True)
class Story:
    """What happened, and to whom.

    Attributes:
        alice: the ID of a writer's token, who locked, wrote twice and left the lock.
        operator: the ID of the maintainer's token who broke it.
        lock_id: of that lock.
        versions: S3's IDs of what was written, by serial.
        trust: the name of the trust record of a CI job.
        subject: in full, of that job.
        session: the ID of its session.
        secrets: which no log may hold.
        since: seconds since 1970.
        events: the trail of it.
    """

    alice: str
    operator: str
    lock_id: str
    versions: Mapping[int, str]
    trust: str
    subject: str
    session: str
    secrets: Sequence[str]
    since: float
    events: Sequence[Mapping[str, Any]]

    @property
    def job(self) -> str:
        """The principal of the CI job."""
        return principals.principal(f"oidc:{self.subject}")


TOLD: Final = (
    "lock.acquired",
    "lock.force_unlocked",
    "request.refused",
    "session.created",
    "sign_in.accepted",
    "sign_in.accepted",
    "sign_in.accepted",
    "sign_in.accepted",
    "sign_in.refused",
    "sign_in.refused",
    "state.read",
    "state.read",
    "state.written",
    "state.written",
)


@pytest.fixture(scope="module")
def story(strict: Team, aws: LocalAws) -> Iterator[Story]:
    with Issuer() as issuer:
        trust = add_oidc_trust(strict, issuer, "audit/*", name="audit-ci")
        alice, alices = new_token(strict, Role.WRITER, "audit/*")
        operator, operators = new_token(strict, Role.MAINTAINER)
        since = time.time()
        info = documents.lock_info()
        lock_id = documents.lock_id(info)

        client = strict.client_with(alices)
        assert client.lock(STATE, info).status == 200
        for serial in (1, 2):
            assert client.write(STATE, documents.state(serial, content="kept secret"), lock_id).status == 200
        breaking = strict.client_with(operators).unlock(STATE, documents.only_id(lock_id))
        assert breaking.status == 200
        token, foreign = issuer.token(subject=SUBJECT), issuer.token({"repository": "mallory/x"})
        job = oidc.bearer(token)
        assert with_header(strict, job, f"/states/{STATE}").status == 200
        session = session_of(exchange(strict, job))
        assert strict.client_with(session).read(STATE).status == 200
        assert client.delete(STATE).status == 403
        assert with_header(strict, basic(alice.id, "guessed"), f"/states/{STATE}").status == 403
        assert with_header(strict, oidc.bearer(foreign), f"/states/{STATE}").status == 403

        def events() -> list[dict[str, Any]]:
            return [each for each in audit_events(aws, strict) if _timestamp(each) >= since]

        wait_until(lambda: len(events()) >= len(TOLD), "all of it is in the trail", seconds=20)
        yield Story(
            alice=alice.id,
            operator=operator.id,
            lock_id=lock_id,
            versions={version.serial: version.id for version in strict.versions(STATE)},
            trust=trust.name,
            subject=f"{issuer.address}#{SUBJECT}",
            session=session.username,
            secrets=[alices.password, operators.password, session.password, token, foreign],
            since=since,
            events=[{**each, "@timestamp": each["time"]} for each in events()],
        )


def _timestamp(event: Mapping[str, Any]) -> float:
    from datetime import datetime

    return datetime.fromisoformat(event["time"]).timestamp()


# --- the events -------------------------------------------------------------------------------------


def test_each_thing_that_happened_is_one_event(story: Story) -> None:
    assert sorted(event["event"] for event in story.events) == sorted(TOLD)


def test_events_have_the_fields_of_the_document_and_no_others(story: Story) -> None:
    [table] = re.findall(r"^\| Field \| Holds \|\n.*?\n\n", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    first_cells = re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE)
    fields = {name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)}

    assert {name for event in story.events for name in event} - {"@timestamp"} <= fields
    for event in story.events:
        assert event.keys() >= {"id", "time", "event", "function", "request_id", "source_ip"}, event
        assert event["source_ip"] == HERE


def test_the_document_names_every_event(story: Story) -> None:
    [table] = re.findall(r"^\| Event \| When \|\n.*?\n\n", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    named = set(re.findall(r"`(\w+\.\w+)`", table))

    assert {event["event"] for event in story.events} <= named


def test_the_document_names_every_reason_of_a_refused_sign_in() -> None:
    [table] = re.findall(r"^\| `reason` .*?\n\n", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    rows = table.strip().splitlines()[2:]
    named = {name for line in rows for name in re.findall(r"`(\w+)`", line.split("|")[1])}

    assert named == set(DenialReason)


def test_an_event_says_who_it_was_in_every_way_in_which_somebody_can_sign_in(story: Story) -> None:
    written = next(event for event in story.events if event["event"] == "state.written")
    assert (written["principal"], written["source"], written["role"]) == (
        f"token:{story.alice}",
        "token",
        "writer",
    )
    reads = [event for event in story.events if event["event"] == "state.read"]
    assert [event["source"] for event in reads] == ["oidc", "session"]
    for event in reads:
        assert (event["principal"], event["subject"], event["trust"]) == (
            story.job,
            story.subject,
            story.trust,
        )


def test_no_log_of_any_function_holds_a_secret(strict: Team, aws: LocalAws, story: Story) -> None:
    logs = client(aws, "logs")
    groups = [f"/holdfast/{strict.name}/{name}" for name in (*FUNCTIONS, "audit")]
    for group in groups:
        lines = logs.filter_log_events(logGroupName=group, startTime=int(story.since * 1000))["events"]
        assert lines, group
        text = "\n".join(line["message"] for line in lines)
        for secret in (*story.secrets, "kept secret", "guessed"):
            assert secret not in text, group
        assert "Bearer " not in text
        assert "Basic " not in text


# --- the document -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    """A command or a query of the document.

    Attributes:
        question: the heading above it.
        number: its place under that heading.
        text: as it stands there.
    """

    question: str
    number: int
    text: str

    @property
    def is_query(self) -> bool:
        """Whether it is for Insights."""
        return not self.text.startswith("holdfast ")

    def __str__(self) -> str:
        kind = "query" if self.is_query else "command"
        return f"{self.question} {kind} {self.number}"


def asked() -> Iterator[Asked]:
    """Everything below the headings that ask something."""
    _, _, questions = DOCUMENT.read_text().partition("## Questions, and how to ask them\n")
    for section in questions.split("\n### ")[1:]:
        question, _, rest = section.partition("\n")
        blocks = re.findall(r"^```\n(.*?)^```$", rest, re.MULTILINE | re.DOTALL)
        for kind in (True, False):
            found = [text.strip() for text in blocks if text.startswith("holdfast ") is not kind]
            yield from (Asked(question, number, text) for number, text in enumerate(found, 1))


ASKED: Final = tuple(asked())

Rows = Callable[[Story], list[Row]]


def row(event: str | None, who: str | None, **fields: object) -> Row:
    """A row that is expected; fields that are None are not there."""
    found = {"event": event, "principal": who, "source_ip": HERE, **fields}
    return {name: str(value) for name, value in found.items() if value is not None}


def without_address(rows: list[Row]) -> list[Row]:
    """For queries that do not ask where from."""
    return [{name: value for name, value in row.items() if name != "source_ip"} for row in rows]


QUERIES: Final[Mapping[tuple[str, int], Rows]] = {
    ("Who wrote version N?", 1): lambda told: [
        row("state.written", f"token:{told.alice}", serial_before=1, serial=2, lock_id=told.lock_id)
    ],
    ("Who wrote version N?", 2): lambda told: [row(None, f"token:{told.alice}", version_id=told.versions[2])],
    ("Who broke this lock?", 1): lambda told: [
        row("lock.force_unlocked", f"token:{told.operator}", held_by=f"token:{told.alice}", state=STATE)
    ],
    ("Who broke this lock?", 2): lambda told: without_address(
        [row(None, f"token:{told.operator}", held_by=f"token:{told.alice}", lock_id=told.lock_id)]
    ),
    ("What did this token do last month?", 1): lambda told: [
        row("sign_in.accepted", None),
        row("lock.acquired", None, state=STATE),
        row("state.written", None, state=STATE, serial=1, version_id=told.versions[1]),
        row("state.written", None, state=STATE, serial=2, version_id=told.versions[2]),
        row("request.refused", None, state=STATE, error="not_allowed"),
    ],
    ("What did this token do last month?", 2): lambda _: [
        {"event": "sign_in.accepted", "count(*)": "1"},
        {"event": "lock.acquired", "state": STATE, "count(*)": "1"},
        {"event": "state.written", "state": STATE, "count(*)": "2"},
        {"event": "request.refused", "state": STATE, "count(*)": "1"},
    ],
    ("What did this token do last month?", 3): lambda _: [
        {"event": "sign_in.accepted", "source_ip": HERE, "count(*)": "1"},
        {"event": "sign_in.refused", "reason": "unknown_or_wrong", "source_ip": HERE, "count(*)": "1"},
    ],
    ("Who signed in with this trust record?", 1): lambda told: [
        row("sign_in.accepted", None, subject=told.subject, source="oidc"),
        row("session.created", None, subject=told.subject, source="oidc", session=told.session),
        row("sign_in.accepted", None, subject=told.subject, source="session", session=told.session),
    ],
    ("Who signed in with this trust record?", 2): lambda told: [
        {"subject": told.subject, "source": "oidc", "count(*)": "2"},
        {"subject": told.subject, "source": "session", "count(*)": "1"},
    ],
    ("What was refused?", 1): lambda told: [
        row("sign_in.refused", None, reason="not_trusted"),
        row("sign_in.refused", None, reason="unknown_or_wrong", token=told.alice),
        row("request.refused", f"token:{told.alice}", state=STATE, error="not_allowed"),
    ],
    ("What was refused?", 2): lambda told: [
        {"principal": f"token:{told.alice}", "source_ip": HERE, "count(*)": "1"}
    ],
    ("What happened to this state?", 1): lambda told: without_address(
        [
            row("lock.acquired", f"token:{told.alice}", lock_id=told.lock_id),
            row("state.written", f"token:{told.alice}", lock_id=told.lock_id, serial=1),
            row("state.written", f"token:{told.alice}", lock_id=told.lock_id, serial=2),
            row("lock.force_unlocked", f"token:{told.operator}", lock_id=told.lock_id),
            row("request.refused", f"token:{told.alice}", error="not_allowed"),
        ]
    ),
}

Lines = Callable[[Story], list[tuple[str, ...]]]

COMMANDS: Final[Mapping[tuple[str, int], Lines]] = {
    ("Who wrote version N?", 1): lambda told: [
        ("state.written", f"token:{told.alice}", STATE, "serial_before=1", "serial=2")
    ],
    ("Who broke this lock?", 1): lambda told: [
        ("lock.acquired", f"token:{told.alice}"),
        ("state.written", f"token:{told.alice}"),
        ("state.written", f"token:{told.alice}"),
        ("lock.force_unlocked", f"token:{told.operator}", f"held_by=token:{told.alice}"),
    ],
    ("Who broke this lock?", 2): lambda told: [
        ("lock.force_unlocked", f"token:{told.operator}", f"lock_id={told.lock_id}")
    ],
    ("What did this token do last month?", 1): lambda told: [
        ("sign_in.accepted",),
        ("lock.acquired", STATE),
        ("state.written", STATE, f"version_id={told.versions[1]}"),
        ("state.written", STATE, f"version_id={told.versions[2]}"),
        ("request.refused", STATE, "error=not_allowed"),
        ("sign_in.refused", f"token={told.alice}", "reason=unknown_or_wrong"),
    ],
    ("Who signed in with this trust record?", 1): lambda told: [
        ('"event": "session.created"', told.session, told.subject)
    ],
    ("What was refused?", 1): lambda told: [
        ("request.refused", f"token:{told.alice}", STATE, "error=not_allowed"),
        ("sign_in.refused", f"token={told.alice}", "reason=unknown_or_wrong"),
        ("sign_in.refused", "reason=not_trusted"),
    ],
    ("What happened to this state?", 1): lambda told: [
        ("lock.acquired", told.alice),
        ("state.written", told.alice, "serial=1"),
        ("state.written", told.alice, "serial=2"),
        ("lock.force_unlocked", told.operator),
        ("state.read", "oidc:"),
        ("state.read", "oidc:"),
        ("request.refused", told.alice),
    ],
}


def filled(text: str, story: Story) -> str:
    """With what happened in the places of the examples; nothing of them is left."""
    for example, real in {
        "<version-id>": story.versions[2],
        "<lock-id>": story.lock_id,
        "<token-id>": story.alice,
        "<trust>": story.trust,
        "<serial>": "2",
        "network/prod": STATE,
    }.items():
        text = text.replace(example, real)
    assert "<" not in text, text
    return text


def test_every_command_and_query_of_the_document_is_tried() -> None:
    assert {(each.question, each.number) for each in ASKED if each.is_query} == set(QUERIES)
    assert {(each.question, each.number) for each in ASKED if not each.is_query} == set(COMMANDS)


@pytest.mark.parametrize("each", [each for each in ASKED if each.is_query], ids=str)
def test_a_query_finds_what_happened(story: Story, each: Asked) -> None:
    found = insights.query(filled(each.text, story), story.events)

    told = [
        {name: value for name, value in row.items() if value and name not in NOT_COMPARED} for row in found
    ]
    assert told == QUERIES[each.question, each.number](story)


@pytest.mark.parametrize("each", [each for each in ASKED if not each.is_query], ids=str)
def test_a_command_shows_what_happened(strict: Team, story: Story, each: Asked, tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", "-euc", filled(each.text, story)],
        cwd=tmp_path,
        env={
            **strict.environment,
            "PATH": f"{HOLDFAST.parent}:{os.environ['PATH']}",
            "HOLDFAST_TEAM": strict.name,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr

    # What other tests did at the same team comes before; what this one looks for comes last, or stands out.
    ids = (story.alice, story.operator, story.session, story.job, STATE, "reason=not_trusted")
    lines = [line for line in done.stdout.splitlines() if any(one in line for one in ids)]
    expected = COMMANDS[each.question, each.number](story)
    if each.question == "What was refused?":  # by all tests; the last of each kind are of this one
        lines = [line for line in lines if story.alice in line or line == lines[-1]]
    assert len(lines) == len(expected), done.stdout
    for line, parts in zip(lines, expected, strict=True):
        for part in parts:
            assert part in line


def test_json_lines_are_whole_events(strict: Team, story: Story) -> None:
    done = subprocess.run(
        [HOLDFAST, "audit", "--state", STATE, "--team", strict.name, "--json"],
        env={"PATH": os.environ["PATH"], **strict.environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )

    printed = [json.loads(line) for line in done.stdout.splitlines()]
    expected = [
        {name: value for name, value in event.items() if name != "@timestamp"}
        for event in story.events
        if event.get("state") == STATE
    ]
    assert printed == expected

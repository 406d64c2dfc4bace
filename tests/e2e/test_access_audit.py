"""Every command of docs/operate/audit.md, on real events of the deployed team."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest

from holdfast import audit
from holdfast.access import Role
from holdfast.identity import principals
from holdfast_cdk.functions import FUNCTIONS
from local_aws.server import LocalAws
from tests.support import audit_trail, documents, oidc
from tests.support.access_records import (
    add_oidc_trust,
    exchange,
    new_token,
    session_of,
    with_header,
)
from tests.support.deployed import client
from tests.support.oidc import Issuer
from tests.support.pages import page
from tests.support.sign_ins import basic
from tests.support.team import HOLDFAST, Team
from tests.support.waiting import HANGS, wait_until

DOCUMENT: Final = page("audit.md")
STATE: Final = "audit/of/one/state"
SUBJECT: Final = "repo:acme/network:ref:refs/heads/main"
HERE: Final = "127.0.0.1"


@dataclass(frozen=True)
class Story:
    """The events that the trail must show, by their IDs.

    `alice` is the ID of a writer's token: the writer locked, wrote twice and left the lock. `operator` is the
    ID of the token of the maintainer who broke that lock. `versions` are S3's IDs, by serial. `trust` is the
    name of a CI job's trust record, `subject` the job in full, `session` the ID of its session. No log may
    contain `secrets`. `since` is in seconds since 1970.
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
    "caller.described",
    "lock.acquired",
    "lock.force_unlocked",
    "request.refused",
    "service.described",
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
def story(strict: Team) -> Iterator[Story]:
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
        assert strict.client_with(session).request("GET", "/api/v2/account/details").status == 200
        assert strict.client_with(session).request("GET", "/manage/v1/whoami").status == 200
        assert client.delete(STATE).status == 403
        assert with_header(strict, basic(alice.id, "guessed"), f"/states/{STATE}").status == 403
        assert with_header(strict, oidc.bearer(foreign), f"/states/{STATE}").status == 403

        def events() -> list[dict[str, Any]]:
            return [each for each in audit_trail.events(strict) if _timestamp(each) >= since]

        wait_until(lambda: len(events()) >= len(TOLD), "all of it is in the trail")
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
            events=events(),
        )


def _timestamp(event: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(event["time"]).timestamp()


# --- the events -------------------------------------------------------------------------------------


def test_each_thing_that_happened_is_one_event(story: Story) -> None:
    assert sorted(event["event"] for event in story.events) == sorted(TOLD)


def test_events_have_the_fields_of_an_event_and_no_others(story: Story) -> None:
    fields = {*audit.ADDED_FIELDS, *audit.FIELDS}

    assert {name for event in story.events for name in event} <= fields
    for event in story.events:
        assert event.keys() >= {"id", "time", "event", "function", "request_id", "source_ip"}, event
        assert event["source_ip"] == HERE


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
    # Nobody in this story calls `health` or what a setting adds, so they have logged nothing.
    logging = [spec.name for spec in FUNCTIONS if not spec.setting and spec.name != "health"]
    groups = [f"/holdfast/{strict.name}/{name}" for name in (*logging, "audit")]
    for group in groups:
        lines = logs.filter_log_events(logGroupName=group, startTime=int(story.since * 1000))["events"]
        assert lines, group
        text = "\n".join(line["message"] for line in lines)
        for secret in (*story.secrets, "kept secret", "guessed"):
            assert secret not in text, group
        assert "Bearer " not in text
        assert "Basic " not in text


# --- the document -----------------------------------------------------------------------------------


def asked() -> dict[str, str]:
    """Return the command for each question."""
    _, _, rest = DOCUMENT.read_text().partition("| Question | Command |\n| --- | --- |\n")
    rows = rest.partition("\n\n")[0].replace("\\|", "\0").splitlines()
    cells = [[cell.strip().replace("\0", "|") for cell in row.strip("|").split("|")] for row in rows]
    return {question: command.strip("`") for question, command in cells}


ASKED: Final = asked()

Lines = Callable[[Story], list[tuple[str, ...]]]

COMMANDS: Final[Mapping[str, Lines]] = {
    "Who wrote this version?": lambda told: [
        ("state.written", f"token:{told.alice}", STATE, "serial_before=1", "serial=2")
    ],
    "What changed lately?": lambda told: (
        [("state.written", f"token:{told.alice}", STATE, "operation=OperationTypeApply", "who=ada@laptop")]
        * 2
    ),
    "What happened to this state?": lambda told: [
        ("lock.acquired", told.alice),
        ("state.written", told.alice, "serial=1"),
        ("state.written", told.alice, "serial=2"),
        ("lock.force_unlocked", told.operator),
        ("state.read", "oidc:"),
        ("state.read", "oidc:"),
        ("request.refused", told.alice),
    ],
    "What happened to this lock?": lambda told: [
        ("lock.acquired", f"token:{told.alice}"),
        ("state.written", f"token:{told.alice}"),
        ("state.written", f"token:{told.alice}"),
        ("lock.force_unlocked", f"token:{told.operator}", f"held_by=token:{told.alice}"),
    ],
    "What did this token do?": lambda told: [
        ("sign_in.accepted",),
        ("lock.acquired", STATE),
        ("state.written", STATE, f"version_id={told.versions[1]}"),
        ("state.written", STATE, f"version_id={told.versions[2]}"),
        ("request.refused", STATE, "error=not_allowed"),
        ("sign_in.refused", f"token={told.alice}", "reason=unknown_or_wrong"),
    ],
    "Which sessions did this trust record allow?": lambda told: [
        ('"event": "session.created"', told.session, told.subject)
    ],
    "Which requests were refused?": lambda told: [
        ("request.refused", f"token:{told.alice}", STATE, "error=not_allowed")
    ],
    "Which sign-ins were refused?": lambda told: [
        ("sign_in.refused", f"token={told.alice}", "reason=unknown_or_wrong"),
        ("sign_in.refused", "reason=not_trusted"),
    ],
}


def filled(text: str, story: Story) -> str:
    """Replace the document's examples by the IDs of the story, and check that no example is left."""
    for example, real in {
        "<version-id>": story.versions[2],
        "<lock-id>": story.lock_id,
        "<token-id>": story.alice,
        "<trust>": story.trust,
        "network/prod": STATE,
    }.items():
        text = text.replace(example, real)
    assert "<" not in text, text
    return text


def test_every_command_of_the_document_is_tried() -> None:
    assert set(ASKED) == set(COMMANDS)


@pytest.mark.parametrize("question", ASKED)
def test_a_command_shows_what_happened(strict: Team, story: Story, question: str, tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", "-euc", filled(ASKED[question], story)],
        cwd=tmp_path,
        env={
            **strict.environment,
            "PATH": f"{HOLDFAST.parent}:{os.environ['PATH']}",
            "HOLDFAST_TEAM": strict.name,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGS,
    )
    assert done.returncode == 0, done.stderr

    # The events of other tests with the same team come before. This test's events are last, or distinct.
    ids = (story.alice, story.operator, story.session, story.job, STATE, "reason=not_trusted")
    lines = [line for line in done.stdout.splitlines() if any(one in line for one in ids)]
    expected = COMMANDS[question](story)
    if question == "Which sign-ins were refused?":  # those of all tests; the last is of this one
        lines = [line for line in lines if story.alice in line or line == lines[-1]]
    assert len(lines) == len(expected), done.stdout
    for line, parts in zip(lines, expected, strict=True):
        for part in parts:
            assert part in line

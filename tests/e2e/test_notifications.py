"""What happens to the deployed team `watched` reaches its topic, and the archive of its audit trail."""

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.access import Role
from holdfast.audit import NOTIFIED, Event
from local_aws.server import ACCOUNT, REGION, LocalAws
from tests.support import access_commands, audit_trail, documents
from tests.support.access_records import new_token, trust_role
from tests.support.deployed import stack
from tests.support.operators import NewOperator
from tests.support.subscribed_queue import SubscribedQueue, subscribed
from tests.support.team import Team
from tests.support.waiting import wait_until

TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:watched"


@pytest.fixture(scope="module")
def queue(aws: LocalAws, watched: Team) -> Iterator[SubscribedQueue]:  # noqa: ARG001 the topic comes with the team
    with subscribed(aws, TOPIC, "events") as queue:
        yield queue


def has(queue: SubscribedQueue, event: Event, *texts: str) -> bool:
    """Return whether there is a message about this event with these texts."""
    queue.receive()
    subject = f"Holdfast: {event} in team watched"
    return any(
        one["Subject"] == subject and all(text in one["Message"] for text in texts) for one in queue.messages
    )


def test_a_broken_lock_and_a_changed_token_reach_the_topic_after_the_audit_trail(
    watched: Team, state: str, queue: SubscribedQueue, operator: NewOperator
) -> None:
    maintainer, writer = operator(watched, "maintainer"), watched.client("writer")
    broken, forced = documents.lock_info(who="<!channel> ada@laptop"), documents.lock_info()
    assert writer.lock(state, broken).status == 200
    maintainer.ok("lock", "break", state, documents.lock_id(broken))
    assert writer.lock(state, forced).status == 200
    forcing = watched.client("maintainer").unlock(state, documents.only_id(documents.lock_id(forced)))
    assert forcing.status == 200
    token, _ = new_token(watched, Role.READER, state)
    access_commands.holdfast(watched, "token", "revoke", token.id)
    trust_role(watched, "watched")

    more = f"More: holdfast audit --team watched {state}"
    for lock in (broken, forced):
        lock_id = documents.lock_id(lock)
        wait_until(lambda: has(queue, Event.LOCK_FORCE_UNLOCKED, lock_id, more), "the broken lock")  # noqa: B023
    wait_until(lambda: has(queue, Event.TRUST_CHANGED, "--event trust.changed"), "the trust record")
    wait_until(lambda: has(queue, Event.TOKEN_CHANGED, token.id, "127.0.0.1"), "the token")

    texts = [one["Message"] for one in queue.messages]
    assert not any(word in text for text in texts for word in ("<!", "ada@", "\\n"))
    ids = {event["id"] for event in audit_trail.events(watched)}
    assert {json.loads(line[4:]) for text in texts for line in text.splitlines() if line[:4] == "id: "} <= ids
    assert {one["MessageAttributes"]["event"]["Value"] for one in queue.messages} <= {*NOTIFIED}
    changes = audit_trail.wait_for_events(watched, 2, token=token.id, event=Event.TOKEN_CHANGED)
    assert [change["operation"] for change in changes] == ["ObjectCreated:Put"] * 2  # created, then revoked
    assert len({change["version_id"] for change in changes}) == 2


def test_the_archive_has_every_event_of_the_audit_trail_under_retention(
    aws: LocalAws, watched: Team, state: str
) -> None:
    watched.write(state, documents.state(1, content="kept secret"))
    (written,) = audit_trail.wait_for_events(watched, 1, state=state, event="state.written")
    bucket = stack(aws, watched.name).physical_ids["AuditArchive"]
    folder = f"events/backend/{written['time'][:10]}/"

    def archived() -> dict[str, list[dict[str, Any]]]:
        keys = [one["Key"] for one in watched.s3.list_objects_v2(Bucket=bucket, Prefix=folder)["Contents"]]
        bodies = {key: watched.s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}
        return {key: [*map(json.loads, gzip.decompress(body).splitlines())] for key, body in bodies.items()}

    wait_until(lambda: any(written in events for events in archived().values()), "the event in the archive")
    (key,) = (key for key, events in archived().items() if written in events)
    retained = watched.s3.get_object_retention(Bucket=bucket, Key=key)["Retention"]
    assert retained["Mode"] == "COMPLIANCE"
    assert "kept secret" not in str(archived())


def test_the_events_of_a_process_are_numbered(watched: Team, state: str) -> None:
    for serial in (1, 2, 3):
        watched.write(state, documents.state(serial))
    audit_trail.wait_for_events(watched, 3, state=state, event="lock.released")

    events = [one for one in audit_trail.events(watched) if one.get("state") == state]
    first = events[0]["number"]
    assert [one["number"] for one in events] == [*range(first, first + 9)]
    assert all("[" in one["stream"] for one in events), "as in 2026/11/21/[1]abc"

"""Changes through a deployed API reach its team's audit trail, and no other trail."""

import json
from typing import Any

from holdfast.access import Role
from holdfast.identity import trust
from tests.support import access_commands, documents
from tests.support.access_records import new_token, trust_role
from tests.support.audit_trail import events, wait_for_events
from tests.support.team import Team

CONTENT = "a value that is nobody's business"


def told(found: list[dict[str, Any]], *fields: str) -> list[tuple[Any, ...]]:
    """Some fields of each event."""
    return [tuple(event.get(field) for field in fields) for event in found]


def test_a_run_and_a_broken_lock_are_told_with_who_what_and_which_serial(
    strict: Team, loose: Team, state: str
) -> None:
    writer, maintainer = strict.client("writer"), strict.client("maintainer")
    info, other = documents.lock_info(), documents.lock_info(who="bob@laptop")
    lock_id, broken = documents.lock_id(info), documents.lock_id(other)
    assert writer.lock(state, info).status == 200
    for serial in (1, 2):
        assert writer.write(state, documents.state(serial, content=CONTENT), lock_id).status == 200
    assert maintainer.lock(state, other).status == 423
    assert writer.unlock(state, info).status == 200
    assert writer.lock(state, other).status == 200
    assert maintainer.unlock(state, documents.only_id(broken)).status == 200
    assert maintainer.read(state).status == 200

    found = wait_for_events(strict, 8, state=state)

    by_writer, by_maintainer = (f"token:{strict.token(role).username}" for role in ("writer", "maintainer"))
    assert told(found, "event", "principal", "status", "lock_id", "serial", "serial_before") == [
        ("lock.acquired", by_writer, 200, lock_id, None, None),
        ("state.written", by_writer, 200, lock_id, 1, None),
        ("state.written", by_writer, 200, lock_id, 2, 1),
        ("request.refused", by_maintainer, 423, None, None, None),
        ("lock.released", by_writer, 200, lock_id, None, None),
        ("lock.acquired", by_writer, 200, broken, None, None),
        ("lock.force_unlocked", by_maintainer, 200, broken, None, None),
        ("state.read", by_maintainer, 200, None, None, None),
    ]
    assert [event.get("version_id") for event in found if event["event"] == "state.written"] == [
        version.id for version in strict.versions(state)
    ]
    assert found[6]["held_by"] == by_writer
    assert told(found, "operation", "who") == [
        *[("OperationTypeApply", "ada@laptop")] * 3,
        *[(None, None)] * 2,
        *[("OperationTypeApply", "bob@laptop")] * 2,
        (None, None),
    ]
    assert {(event["source"], event["source_ip"], event["function"]) for event in found} == {
        ("token", "127.0.0.1", "backend")
    }
    assert len({event["id"] for event in found}) == len({event["request_id"] for event in found}) == 8
    assert CONTENT not in json.dumps(found)
    assert [event for event in events(loose) if event.get("state") == state] == []


def test_changed_tokens_and_trust_records_of_a_team_without_a_topic_are_told(
    strict: Team, loose: Team, state: str
) -> None:
    token, _ = new_token(strict, Role.READER, state)
    access_commands.holdfast(strict, "token", "revoke", token.id)
    trust_role(strict, "told")
    written = strict.s3.head_object(Bucket=strict.bucket, Key=trust.KEY)["VersionId"]

    changes = wait_for_events(strict, 2, event="token.changed", token=token.id)
    (trusted,) = wait_for_events(strict, 1, event="trust.changed", version_id=written)

    assert told([*changes, trusted], "function", "operation", "source_ip") == 3 * [
        ("audit_trail", "ObjectCreated:Put", "127.0.0.1")
    ]
    assert len({change["version_id"] for change in changes}) == 2
    assert all(change["principal"] for change in (*changes, trusted))
    assert [event for event in events(loose) if event.get("version_id") == written] == []

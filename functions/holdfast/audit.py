"""Names of the audit trail: events, their fields, the mark of an audited log line, and log groups."""

from enum import StrEnum
from typing import Final

MARK_FIELD: Final = "trail"
"""The field of a log line that contains the mark."""
MARK: Final = "holdfast.audit"
"""The mark of an audited log line. The subscription filters of the functions' logs match this phrase."""


_FAILURES: Final = {"OutcomeUnknown": "Undecided"}
"""The logged names of renamed exceptions. Scripts read the old names, so logs keep these."""


def failure(error: BaseException) -> str:
    """Return the name of an exception as it appears in logs and in the audit trail.

    >>> failure(ValueError())
    'ValueError'
    """
    name = type(error).__name__
    return _FAILURES.get(name, name)


class Event(StrEnum):
    """The events that the functions log. An event is the `message` of the log line of a request."""

    SIGN_IN_ACCEPTED = "sign_in.accepted"
    SIGN_IN_REFUSED = "sign_in.refused"
    SIGN_IN_FAILED = "sign_in.failed"
    SESSION_CREATED = "session.created"
    LOCK_ACQUIRED = "lock.acquired"
    LOCK_RELEASED = "lock.released"
    LOCK_FORCE_UNLOCKED = "lock.force_unlocked"
    STATE_READ = "state.read"
    STATE_ABSENT = "state.absent"
    OUTPUTS_READ = "outputs.read"
    STATE_WRITTEN = "state.written"
    STATE_UNCHANGED = "state.unchanged"
    STATE_DELETED = "state.deleted"
    WORKSPACE_READ = "workspace.read"
    WORKSPACE_ABSENT = "workspace.absent"
    WORKSPACES_LISTED = "workspaces.listed"
    WORKSPACE_CREATED = "workspace.created"
    WORKSPACE_CHANGED = "workspace.changed"
    WORKSPACE_DELETED = "workspace.deleted"
    UPLOAD_CREATED = "upload.created"
    SERVICE_DESCRIBED = "service.described"
    STATES_LISTED = "states.listed"
    STATE_DESCRIBED = "state.described"
    HISTORY_READ = "history.read"
    STATE_COMPARED = "state.compared"
    STATES_SEARCHED = "states.searched"
    STATE_RESTORED = "state.restored"
    STATE_UNDELETED = "state.undeleted"
    STATE_DECLARED = "state.declared"
    STATE_UNDECLARED = "state.undeclared"
    STATE_FROZEN = "state.frozen"
    STATE_UNFROZEN = "state.unfrozen"
    LOCKS_LISTED = "locks.listed"
    ACTIVITY_READ = "activity.read"
    TOKEN_CHANGED = "token.changed"  # noqa: S105 an event
    TRUST_CHANGED = "trust.changed"
    REPLICA_FAILED = "replica.failed"
    CALLER_DESCRIBED = "caller.described"
    REQUEST_REFUSED = "request.refused"
    REQUEST_FAILED = "request.failed"


EVENTS: Final = tuple(Event)


def changed_a_state(event: Event) -> bool:
    """Return whether an event replaced or deleted a state's current version."""
    match event:
        case Event.STATE_WRITTEN | Event.STATE_DELETED | Event.STATE_RESTORED | Event.STATE_UNDELETED:
            return True
        case (
            Event.SIGN_IN_ACCEPTED
            | Event.SIGN_IN_REFUSED
            | Event.SIGN_IN_FAILED
            | Event.SESSION_CREATED
            | Event.LOCK_ACQUIRED
            | Event.LOCK_RELEASED
            | Event.LOCK_FORCE_UNLOCKED
            | Event.STATE_READ
            | Event.STATE_ABSENT
            | Event.OUTPUTS_READ
            | Event.STATE_UNCHANGED
            | Event.WORKSPACE_READ
            | Event.WORKSPACE_ABSENT
            | Event.WORKSPACES_LISTED
            | Event.WORKSPACE_CREATED
            | Event.WORKSPACE_CHANGED
            | Event.WORKSPACE_DELETED
            | Event.UPLOAD_CREATED
            | Event.SERVICE_DESCRIBED
            | Event.STATES_LISTED
            | Event.STATE_DESCRIBED
            | Event.HISTORY_READ
            | Event.STATE_COMPARED
            | Event.STATES_SEARCHED
            | Event.STATE_DECLARED
            | Event.STATE_UNDECLARED
            | Event.STATE_FROZEN
            | Event.STATE_UNFROZEN
            | Event.LOCKS_LISTED
            | Event.ACTIVITY_READ
            | Event.TOKEN_CHANGED
            | Event.TRUST_CHANGED
            | Event.REPLICA_FAILED
            | Event.CALLER_DESCRIBED
            | Event.REQUEST_REFUSED
            | Event.REQUEST_FAILED
        ):
            return False


WRITES: Final = tuple(filter(changed_a_state, Event))

READINGS: Final = frozenset(
    {
        *(Event.SIGN_IN_ACCEPTED, Event.CALLER_DESCRIBED, Event.SERVICE_DESCRIBED, Event.ACTIVITY_READ),
        *(Event.STATE_READ, Event.STATE_ABSENT, Event.OUTPUTS_READ, Event.STATES_LISTED),
        *(Event.STATE_DESCRIBED, Event.HISTORY_READ, Event.STATE_COMPARED, Event.STATES_SEARCHED),
        *(Event.WORKSPACE_READ, Event.WORKSPACE_ABSENT, Event.WORKSPACES_LISTED, Event.LOCKS_LISTED),
    }
)
"""The events of requests that only read, and of what precedes every request."""

NOTIFIABLE: Final = tuple(
    event for event in Event if event not in (Event.SIGN_IN_REFUSED, Event.SIGN_IN_FAILED)
)
"""The events of which a topic may be notified. Strangers can cause the others, as often as they like."""

NOTIFIED: Final = (
    *(Event.LOCK_FORCE_UNLOCKED, Event.STATE_DELETED, Event.STATE_RESTORED, Event.STATE_UNDELETED),
    *(Event.STATE_FROZEN, Event.STATE_UNFROZEN, Event.TOKEN_CHANGED, Event.TRUST_CHANGED),
    Event.REPLICA_FAILED,
)
"""The events of which a topic is notified by default."""

FIELDS: Final = (
    *("principal", "owner", "subject", "source", "role", "trust"),
    *("state", "lock_id", "held_by", "operation", "who"),
    *("serial_before", "serial", "version_id", "marker_left", "restored_from", "restored_serial"),
    *("freeze", "until"),
    *("token", "session", "reason", "error", "status", "source_ip", "request_id", "stream", "number"),
)
"""The fields of a log line that the audit trail keeps in its event, beside `ADDED_FIELDS`."""

ADDED_FIELDS: Final = ("id", "time", "event", "function")
"""The fields that every event of the audit trail also has, from CloudWatch and the name of the log group."""


def function_log_group(team: str, function: str) -> str:
    """Return the name of the log group of a team's function, such as `backend`."""
    return f"/holdfast/{team}/{function}"


def audit_log_group(team: str) -> str:
    return function_log_group(team, "audit")


def access_log_group(team: str) -> str:
    """Return the name of the log group of a team's access log.

    Names under /aws/vendedlogs/ do not count against the size limit of CloudWatch's resource policy.
    """
    return f"/aws/vendedlogs/holdfast/{team}/access"

"""Texts about the events of the audit trail. The console has the same words, in `console/src/trail.ts`."""

import re
from collections.abc import Mapping
from typing import Final

from holdfast.audit import Event
from holdfast_cli.api import state_texts

EVENTS: Final[Mapping[str, str]] = {
    Event.SIGN_IN_ACCEPTED: "signed in",
    Event.SIGN_IN_REFUSED: "sign-in refused",
    Event.SIGN_IN_FAILED: "sign-in failed",
    Event.SESSION_CREATED: "session created",
    Event.LOCK_ACQUIRED: "lock acquired",
    Event.LOCK_RELEASED: "lock released",
    Event.LOCK_FORCE_UNLOCKED: "lock broken",
    Event.STATE_READ: "state read",
    Event.STATE_ABSENT: "missing state read",
    Event.OUTPUTS_READ: "outputs read",
    Event.STATE_WRITTEN: "state written",
    Event.STATE_UNCHANGED: "nothing changed",
    Event.STATE_DELETED: "state deleted",
    Event.WORKSPACE_READ: "workspace read",
    Event.WORKSPACE_ABSENT: "missing workspace read",
    Event.WORKSPACES_LISTED: "workspaces listed",
    Event.WORKSPACE_CREATED: "workspace created",
    Event.WORKSPACE_CHANGED: "workspace changed",
    Event.WORKSPACE_DELETED: "workspace deleted",
    Event.UPLOAD_CREATED: "upload begun",
    Event.SERVICE_DESCRIBED: "service discovered",
    Event.STATES_LISTED: "states listed",
    Event.STATE_DESCRIBED: "state looked at",
    Event.HISTORY_READ: "history read",
    Event.STATE_COMPARED: "versions compared",
    Event.STATES_SEARCHED: "resource searched for",
    Event.STATE_RESTORED: "version restored",
    Event.STATE_UNDELETED: "state undeleted",
    Event.STATE_DECLARED: "state declared",
    Event.STATE_UNDECLARED: "state undeclared",
    Event.STATE_FROZEN: "state frozen",
    Event.STATE_UNFROZEN: "state unfrozen",
    Event.LOCKS_LISTED: "locks listed",
    Event.ACTIVITY_READ: "activity read",
    Event.TOKEN_CHANGED: "token changed",
    Event.TRUST_CHANGED: "trust changed",
    Event.REPLICA_FAILED: "copy to replica failed",
    Event.CALLER_DESCRIBED: "own rights read",
    Event.REQUEST_REFUSED: "request refused",
    Event.REQUEST_FAILED: "request failed",
}
"""The code of an event -> what happened."""
REFUSALS: Final[Mapping[str, str]] = {
    "not_allowed": "the role or scope does not allow it",
    "undecided": "the outcome is unknown",
    "unknown_or_wrong": "unknown ID or wrong secret",
}
"""The code of a refusal, or the reason for a denied sign-in -> what it does not say plainly itself."""
OF_S3: Final[Mapping[str, str]] = {
    "ObjectCreated": "created or changed",
    "ObjectRemoved": "deleted",
    "Replication": "not copied",
}
"""The beginning of the name of an S3 event -> the word for people."""
_S3_EVENT: Final = re.compile(r"(\w+):\w+")


def event(code: str) -> str:
    """Return what happened in words; an event that only a newer version knows is returned unchanged.

    >>> event("lock.force_unlocked"), event("moon.rose")
    ('lock broken', 'moon.rose')
    """
    return EVENTS.get(code, code)


def refusal(code: str) -> str:
    """Return a refusal's code, or the reason for a denied sign-in, in words.

    >>> refusal("not_allowed"), refusal("unlock_undecided"), refusal("lock_not_matched")
    ('the role or scope does not allow it', 'the outcome is unknown', 'lock not matched')
    """
    known = "undecided" if code.endswith("undecided") else code
    return REFUSALS.get(known, code.replace("_", " "))


def operation(text: str) -> str:
    """Return an event's operation in words: the client's, or what S3 says of an object.

    >>> operation("OperationTypeApply"), operation("ObjectRemoved:DeleteMarkerCreated")
    ('apply', 'deleted')
    """
    of_s3 = _S3_EVENT.fullmatch(text)
    return (of_s3 and OF_S3.get(of_s3[1])) or state_texts.operation(text)

"""Texts about the events of the audit trail. The console has the same words, in `console/src/trail.ts`."""

import re
from collections.abc import Mapping
from typing import Final

from holdfast.audit import Event
from holdfast_cli.api import state_texts

_EVENTS: Final[Mapping[str, str]] = {
    Event.SIGN_IN_ACCEPTED: "signed in",
    Event.LOCK_FORCE_UNLOCKED: "lock broken",
    Event.STATE_UNCHANGED: "nothing changed",
    Event.REPLICA_FAILED: "copy to replica failed",
    Event.CALLER_DESCRIBED: "own rights read",
}
"""The code of an event -> what it does not say plainly itself."""
EVENTS: Final[Mapping[str, str]] = {
    each: _EVENTS.get(each, each.replace(".", " ").replace("_", "-")) for each in Event
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

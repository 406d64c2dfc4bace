"""The JSON documents of the management API."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from gateway.payload import Payload
from holdfast.errors import HoldfastError, Locked
from holdfast.state.locks import Freeze, HeldLock


def answer(document: Mapping[str, Any]) -> Payload:
    """Return a document as the body of a response."""
    return Payload(json.dumps(document), is_base64=False)


def error(raised: HoldfastError) -> tuple[int, Payload]:
    """Return the status and the document of an error."""
    # An error that leaves something behind has a note that says so.
    message = " ".join((raised.message, *getattr(raised, "__notes__", ())))
    document: dict[str, Any] = {"error": raised.code, "message": message}
    if isinstance(raised, Locked):
        document["lock"] = raised.holder
    return raised.status, answer(document)


def time(moment: datetime) -> str:
    """Return a time in the form of RFC 3339, in whole seconds."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def lock(held: HeldLock) -> Mapping[str, Any]:
    """Return a lock, with the freeze if it is one."""
    since = time(held.version.last_modified)
    return {
        "id": held.info.id,
        "version": held.identity.version_id,
        "who": held.info.who,
        "principal": held.principal,
        "operation": held.info.operation,
        "info": held.info.text,
        "since": since,
        "freeze": {
            **freeze(held.freeze),
            "by": held.principal,
            "since": since,
            "ended": held.is_ended_freeze,
        }
        if held.freeze
        else None,
    }


def freeze(found: Freeze) -> Mapping[str, Any]:
    """Return a freeze, as far as it is known without its lock."""
    return {"id": found.id, "reason": found.reason, "until": time(found.until) if found.until else None}

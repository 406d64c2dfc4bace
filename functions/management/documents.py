"""The JSON documents of the management API."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from gateway import payload
from gateway.payload import Payload
from holdfast.errors import HoldfastError, Locked
from holdfast.identity.authentication import Authenticated
from holdfast.names import StateName
from holdfast.state import catalog
from holdfast.state.current_state import CurrentState
from holdfast.state.description import Current, Description
from holdfast.state.history import History, Version
from holdfast.state.locks import Freeze, HeldLock

_OF_CLIENT: Final = 200
"""Characters of each text of a client that a list shows: a page with all of them might not fit a response."""


def answer(document: Mapping[str, Any]) -> Payload:
    """Return a document as the body of a response."""
    return Payload(json.dumps(document), is_base64=False)


def large(document: Mapping[str, Any], *, accepts_gzip: bool) -> Payload:
    """Return a document as the body of a response that can be long.

    Raises:
        TooLarge: no form of it is small enough.
    """
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    # A lone surrogate, which JSON can escape, has no other form.
    return payload.encode(text.encode(errors="backslashreplace"), accepts_gzip=accepts_gzip)


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
    # A list has a thousand of them, and `strftime` takes five times as long.
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


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


def listed_lock(held: HeldLock) -> Mapping[str, Any]:
    """Return a lock as a list shows it: without the end of texts that are long."""
    whole = lock(held)
    return {**whole, **{name: whole[name][:_OF_CLIENT] for name in ("id", "who", "operation", "info")}}


def states(page: catalog.Page) -> Mapping[str, Any]:
    """Return a page of states."""
    return {
        "states": [
            {
                "name": one.name.value,
                "size": one.size,
                "modified": time(one.modified) if one.modified else None,
                "deleted": one.deleted,
                "lock": listed_lock(one.lock) if one.lock else None,
            }
            for one in page.items
        ],
        "next": page.next,
    }


def locks(page: catalog.Page) -> Mapping[str, Any]:
    """Return a page of locks."""
    return {
        "locks": [{"name": one.name.value, **listed_lock(one.lock)} for one in page.items if one.lock],
        "next": page.next,
    }


def state(name: StateName, found: Description, *, has_record: bool) -> Mapping[str, Any]:
    """Return one state as it is now."""
    return {
        "name": name.value,
        **(_current(found.current) if found.current else dict.fromkeys(_OF_CURRENT)),
        "lock": lock(found.lock) if found.lock else None,
        "record": has_record,
    }


_OF_CURRENT: Final = (
    *("version", "size", "modified", "serial", "lineage", "terraform_version"),
    *("principal", "who", "operation", "status", "encrypted", "resources"),
)


def _current(current: Current) -> Mapping[str, Any]:
    summary, metadata = current.summary, current.version.metadata if current.noted else {}
    # Holdfast noted what the document says; of another program's version the document alone tells.
    revision = current.noted.revision if current.noted else summary.document.revision if summary else None
    writer = metadata.get("terraform-version") or (summary.document.terraform_version if summary else None)
    counts = summary.counts if summary else None
    return {
        "version": current.version.version_id,
        "size": current.version.size,
        "modified": time(current.version.last_modified),
        "serial": revision.serial if revision else None,
        "lineage": (revision.lineage or None) if revision else None,
        "terraform_version": writer or None,
        "principal": metadata.get("written-by"),
        "who": metadata.get("who"),
        "operation": metadata.get("operation"),
        "status": current.status.value,
        "encrypted": summary.is_encrypted if summary else None,
        "resources": (
            {"managed": counts.managed, "data": counts.data, "outputs": counts.outputs} if counts else None
        ),
    }


def history(name: StateName, page: History) -> Mapping[str, Any]:
    """Return a page of the history of a state."""
    return {"name": name.value, "versions": list(map(_version, page.versions)), "next": page.next}


def _version(version: Version) -> Mapping[str, Any]:
    entry, metadata = version.entry, version.metadata
    return {
        "version": entry.id,
        "time": time(entry.last_modified),
        "size": entry.size,
        "current": entry.is_current,
        "delete_marker": entry.is_delete_marker,
        **_revision(version.noted),
        "terraform_version": metadata.get("terraform-version"),
        "principal": metadata.get("written-by"),
        "who": metadata.get("who"),
        "operation": metadata.get("operation"),
        "lock_id": metadata.get("lock-id"),
        "sha256": metadata.get("sha256"),
        "status": version.status.value if version.status else None,
        "restored_from": metadata.get("restored-from"),
        "reason": metadata.get("reason"),
    }


def _revision(noted: CurrentState | None) -> Mapping[str, Any]:
    revision = noted.revision if noted else None
    return {
        "serial": revision.serial if revision else None,
        "lineage": (revision.lineage or None) if revision else None,
    }


def caller(authenticated: Authenticated) -> Mapping[str, Any]:
    """Return who the caller is, what they may do, and how they proved it."""
    who = authenticated.caller
    return {
        "principal": who.principal,
        "role": who.role.value,
        "scope": list(who.scope),
        "method": authenticated.method.value,
        "trust": authenticated.trust or None,
        "expires": time(authenticated.expires_at) if authenticated.expires_at else None,
    }

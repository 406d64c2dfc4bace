"""Convert the library's results to the management API's documents (`holdfast.api.v1`)."""

import json
from typing import Any, Final

from gateway import payload
from gateway.payload import Payload
from holdfast import access
from holdfast.api import form, v1
from holdfast.api.form import Document
from holdfast.errors import HoldfastError, Locked
from holdfast.identity.authentication import Authenticated
from holdfast.names import StateName
from holdfast.s3.object_metadata import VERSION_FIELDS
from holdfast.s3.objects import ObjectVersion
from holdfast.state.catalog import Listed
from holdfast.state.cursor import Page
from holdfast.state.description import Current, Description
from holdfast.state.freezing.patterns import covers
from holdfast.state.freezing.record import PatternFreeze
from holdfast.state.held import Freeze, HeldLock
from holdfast.state.history import Version
from holdfast.state.resolve import Match, Reference, Resolution

_OF_CLIENT: Final = 200
"""The most characters of a client's text in a list, so that a page of a list fits into a response."""


def answer(document: Document) -> Payload:
    return Payload(json.dumps(form.write(document)), is_base64=False)


def large(document: Document, *, accepts_gzip: bool) -> Payload:
    """Return the body of a response that can be large; raise `TooLarge` if it does not fit compressed."""
    text = json.dumps(form.write(document), ensure_ascii=False, separators=(",", ":"))
    # A lone surrogate can only be written as a JSON escape.
    return payload.encode(text.encode(errors="backslashreplace"), accepts_gzip=accepts_gzip)


def error(raised: HoldfastError) -> tuple[int, Payload]:
    if isinstance(raised, Locked):
        return raised.status, answer(
            v1.LockedError(error=raised.code, message=raised.text, lock=raised.holder)
        )
    return raised.status, answer(v1.Error(error=raised.code, message=raised.text))


def lock(held: HeldLock, *, longest: int | None = None) -> v1.Lock:
    """Return a lock, with each of the client's texts cut to `longest` characters."""
    since = held.version.last_modified
    return v1.Lock(
        id=held.info.id[:longest],
        version=held.identity.version_id,
        who=held.info.who[:longest],
        principal=held.principal,
        owner=held.owner or None,
        operation=held.info.operation[:longest],
        info=held.info.text[:longest],
        since=since,
        freeze=v1.FreezeOfLock(
            id=held.freeze.id,
            reason=held.freeze.reason,
            until=held.freeze.until,
            by=held.principal,
            since=since,
            ended=held.is_ended_freeze,
        )
        if held.freeze
        else None,
    )


def freeze(placed: Freeze) -> v1.PlacedFreeze:
    """Return a freeze, without the members that come from its lock."""
    return v1.PlacedFreeze(id=placed.id, reason=placed.reason, until=placed.until)


def pattern_freeze(placed: PatternFreeze, reader: access.Caller) -> v1.PatternFreeze:
    """Return the document of a frozen pattern for a caller."""
    of = placed.freeze
    return v1.PatternFreeze(
        id=of.id,
        reason=of.reason,
        until=of.until,
        pattern=placed.pattern,
        by=placed.by,
        owner=placed.owner or None,
        since=placed.since,
        liftable=covers(reader, access.Action.FREEZE, placed.pattern),
    )


def states(page: Page[Listed]) -> v1.StatePage:
    return v1.StatePage(
        states=tuple(
            v1.StateItem(
                name=item.name.value,
                size=item.size,
                modified=item.modified,
                deleted=item.deleted,
                lock=lock(item.lock, longest=_OF_CLIENT) if item.lock else None,
            )
            for item in page.items
        ),
        next=page.next,
    )


def locks(page: Page[Listed]) -> v1.LockPage:
    locked = ((item.name, item.lock) for item in page.items if item.lock)
    return v1.LockPage(locks=tuple(_listed(name, held) for name, held in locked), next=page.next)


def _listed(name: StateName, held: HeldLock) -> v1.ListedLock:
    short = lock(held, longest=_OF_CLIENT)
    of_lock = {each.attribute: getattr(short, each.attribute) for each in form.members(v1.Lock)}
    return v1.ListedLock(name=name.value, **of_lock)


def state(name: StateName, description: Description, record: ObjectVersion | None) -> v1.StateDescription:
    current = description.current
    version = current.version if current else None
    # Metadata of Holdfast's own versions; for another program's version only the document is used.
    metadata = current.version.metadata if current and current.state else {}
    summary = current.summary if current else None
    counts = summary.counts if summary else None
    serial, lineage = _revision(current)
    writer = metadata.get("terraform-version") or (summary.document.terraform_version if summary else None)
    return v1.StateDescription(
        name=name.value,
        version=version.version_id if version else None,
        size=version.size if version else None,
        modified=version.last_modified if version else None,
        serial=serial,
        lineage=lineage,
        terraform_version=writer or None,
        principal=metadata.get("written-by"),
        owner=metadata.get("owner"),
        who=metadata.get("who"),
        operation=metadata.get("operation"),
        status=current.status.value if current else None,
        encrypted=summary.is_encrypted if summary else None,
        resources=v1.Resources(managed=counts.managed, data=counts.data, outputs=counts.outputs)
        if counts
        else None,
        lock=lock(description.lock) if description.lock else None,
        record=record is not None,
        record_version=record.version_id if record else None,
    )


def _revision(current: Current | None) -> tuple[int | None, str | None]:
    if current and current.state:
        revision = current.state.revision
    else:
        revision = current.summary.document.revision if current and current.summary else None
    return (revision.serial, revision.lineage or None) if revision else (None, None)


def history(name: StateName, page: Page[Version]) -> v1.VersionPage:
    return v1.VersionPage(name=name.value, versions=tuple(map(_version, page.items)), next=page.next)


def _version(version: Version) -> v1.Version:
    entry = version.entry
    shown: dict[str, Any] = {
        field.shown_as: version.metadata.get(name) for name, field in VERSION_FIELDS.items() if field.shown_as
    }
    shown["serial"] = version.state.revision.serial if version.state and version.state.revision else None
    return v1.Version(
        version=entry.id,
        time=entry.last_modified,
        size=entry.size,
        current=entry.is_current,
        delete_marker=entry.is_delete_marker,
        status=version.status.value if version.status else None,
        **shown,
    )


def resolved(name: StateName, reference: Reference, resolution: Resolution) -> v1.Resolved:
    return v1.Resolved(
        name=name.value,
        reference=reference.text,
        found=_match(resolution.version),
        current=_match(resolution.current),
        next=resolution.next,
    )


def _match(match: Match | None) -> v1.ResolvedVersion | None:
    if match is None:
        return None
    return v1.ResolvedVersion(
        version=match.id,
        serial=match.serial if match.serial >= 0 else None,
        time=match.time,
        status=match.status or None,
    )


def caller(authenticated: Authenticated, team: str, account: str) -> v1.Principal:
    """Return the caller's principal, grants and method of authentication, and the team whose API this is."""
    who = authenticated.caller
    grants = access.described(who.grants)
    return v1.Principal(
        team=team,
        account=account,
        principal=who.principal,
        owner=who.owner or None,
        role=grants["role"],
        scope=grants["scope"],
        grants=tuple(v1.Grant(**grant) for grant in grants["grants"]),
        may=tuple(
            v1.AllowedAction(action=action, scope=who.patterns(action), roles=access.roles_with(action))
            for action in access.Action
        ),
        method=authenticated.method.value,
        trust=authenticated.trust or None,
        expires=authenticated.expires_at,
    )

"""Finds in the audit trail who deleted states: S3 keeps no more than the time of a deletion."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from holdfast import names, timestamp
from holdfast.access import Action, matches, named
from holdfast.api.form import Document
from holdfast.audit import Event
from holdfast.errors import InvalidName
from holdfast_cli.errors import CommandError
from holdfast_cli.terminal import output
from holdfast_cli.terminal.people import brief_person

if TYPE_CHECKING:
    from holdfast_cli.api.management import Api

_APART: Final = timedelta(minutes=1)
"""The most by which the times of a deletion and of its event differ: by the request's time and by clocks."""
_MOST: Final = 50
"""The most requests for events. Deletions that follow each other closely share one."""
NOT_KNOWN: Final = "not known"


class Deletion(NamedTuple):
    """A state's name, and when the state was deleted."""

    name: str
    time: datetime


class Deleter(NamedTuple):
    """Who deleted a state, in one name and in full, and why; the reason is empty if none was given."""

    brief: str = NOT_KNOWN
    long: str = NOT_KNOWN
    reason: str = ""


def deleters(api: "Api", deletions: Collection[Deletion]) -> Mapping[Deletion, Deleter]:
    """Return who deleted which state, as far as the caller may see it and the audit trail still has it.

    Without deletions nothing is requested. A failed request leaves out what it would have found.
    """
    found: dict[Deletion, Deleter] = {}
    with suppress(CommandError):  # it is not what the user asked for
        close = _close(_visible(api, deletions)) if deletions else []
        for together in close[:_MOST]:
            events = _events(api, together)
            for deletion in together:
                if event := _nearest(events, deletion):
                    principal, owner, reason = (
                        str(event.get(field) or "") for field in ("principal", "owner", "reason")
                    )
                    brief = brief_person(principal, owner, "")
                    found[deletion] = Deleter(brief, named(principal, owner), reason)
        if len(close) > _MOST:
            output.tell(
                "holdfast: The command did not look up who made the oldest of these deletions, because there "
                "are too many."
            )
    return found


def _visible(api: "Api", deletions: Iterable[Deletion]) -> list[Deletion]:
    """Return the deletions whose events the caller may see: the trail has an event of each refusal."""
    from holdfast.api import v1

    may = api.get(v1.Principal, "whoami").may or ()
    scope = [pattern for each in may if each.action == Action.READ_ACTIVITY for pattern in each.scope]
    return [deletion for deletion in deletions if _covers(scope, deletion.name)]


def _covers(scope: Iterable[str], name: str) -> bool:
    try:
        return any(matches(pattern, names.parse(name)) for pattern in scope)
    except InvalidName:
        return False


def _close(deletions: Iterable[Deletion]) -> list[list[Deletion]]:
    """Return deletions in groups whose events one request finds, the newest first."""
    groups: list[list[Deletion]] = []
    for deletion in sorted(deletions, key=lambda each: each.time, reverse=True):
        if groups and groups[-1][-1].time - deletion.time <= 2 * _APART:
            groups[-1].append(deletion)
        else:
            groups.append([deletion])
    return groups


def _events(api: "Api", deletions: Sequence[Deletion]) -> list[Mapping[str, Any]]:
    states = {deletion.name for deletion in deletions}
    query = {
        "state": states.pop() if len(states) == 1 else None,
        "since": output.word(deletions[-1].time - _APART),
        "until": output.word(deletions[0].time + _APART),
    }
    with closing(api.pages(Document, "activity", "events", **query)) as listed:
        return [document.raw for document in listed if document.raw.get("event") == Event.STATE_DELETED]


def _nearest(events: Iterable[Mapping[str, Any]], deletion: Deletion) -> Mapping[str, Any] | None:
    """Return the event of a deletion: of those of its state, the one whose time differs least."""
    apart: dict[timedelta, Mapping[str, Any]] = {}
    for event in events:
        with suppress(ValueError):
            difference = abs(timestamp.parse(str(event.get("time"))) - deletion.time)
            if event.get("state") == deletion.name and difference <= _APART:
                apart.setdefault(difference, event)
    return apart[min(apart)] if apart else None

"""Texts about the states, versions, locks and freezes of the management API."""

import re
from datetime import datetime
from typing import TYPE_CHECKING, Final

from holdfast.access import claimed, named, proved_and_claimed
from holdfast.api import form
from holdfast.api.form import Document
from holdfast_cli.terminal import ages, output
from holdfast_cli.terminal.people import person, short_person

if TYPE_CHECKING:
    from holdfast.api import v1

_OPERATIONS: Final = {
    "OperationTypeApply": "apply",
    "OperationTypePlan": "plan",
    "OperationTypeRefresh": "refresh",
    "state-push": "push",
    "state-mv": "mv",
    "state-rm": "rm",
    "state-replace-provider": "replace-provider",
}
"""An operation as Terraform and OpenTofu name it -> the word for people."""
_WORD: Final = re.compile(r"[\w-]+")
_UNITS: Final = ((1000**3, "GB"), (1000**2, "MB"), (1000, "KB"))


def size(count: int | None) -> str:
    """Format a number of bytes; None becomes the empty string.

    >>> size(812), size(4_200_000), size(5_000_000)
    ('812 B', '4.2 MB', '5 MB')
    """
    if count is None:
        return ""
    for unit, name in _UNITS:
        if count >= unit:
            return f"{count / unit:.1f}".removesuffix(".0") + f" {name}"
    return f"{count} B"


def word(document: Document, name: str, now: datetime | None = None) -> str:
    """Format a time of a document for a table: empty if absent, unchanged if it is not a valid time."""
    time = getattr(document, name)
    return output.word(time, now) if time else form.text(document.raw.get(name))


def moment(document: Document, name: str, now: datetime | None = None) -> str:
    """Format a time of a document for a sentence: empty if absent, unchanged if it is not a valid time."""
    time = getattr(document, name)
    return output.moment(time, now) if time else form.text(document.raw.get(name))


def age(document: Document, name: str, now: datetime) -> str:
    """Format a time of a document as its age, such as `5 min ago`; else as `word` does."""
    time = getattr(document, name)
    return ages.ago(time, now) if time else word(document, name)


def operation(text: str | None) -> str:
    """Return the client's operation in words; another text is returned unchanged.

    >>> operation("OperationTypeApply"), operation("state-push"), operation("restore")
    ('apply', 'push', 'restore')
    """
    return _OPERATIONS.get(text or "", text or "")


def in_sentence(operation_: str) -> str:
    """Return the client's operation in words for a sentence, in quotes if it is not one word."""
    words = operation(operation_)
    return words if _WORD.fullmatch(words) else claimed(words)


def whole(number: int | None) -> str:
    """Format a number; None becomes the empty string."""
    return "" if number is None else str(number)


def status_words(status: str | None) -> str:
    """Return a status in words. A status that only a newer API knows is returned unchanged."""
    from holdfast.api import v1

    return {
        v1.NEVER_ACKNOWLEDGED: "never acknowledged",
        v1.OTHER_PROGRAM: "written by another program",
    }.get(status or "", status or "")


def described(version: "v1.Version | v1.ResolvedVersion") -> str:
    """Describe a version by its ID, serial, time and, if it was not acknowledged, its status."""
    from holdfast.api import v1

    return ", ".join(
        (
            f"version {version.version}",
            *([f"serial {version.serial}"] if version.serial is not None else []),
            *([f"of {output.moment(version.time)}"] if version.time else []),
            *([status_words(version.status)] if version.status not in (None, v1.ACKNOWLEDGED) else []),
        )
    )


def described_briefly(version: "v1.Version | v1.ResolvedVersion | v1.StateDescription", now: datetime) -> str:
    """Describe a version as `described` does, with its age and who wrote it, and without its ID.

    The ID is all that is said of a version of which nothing else is known.
    """
    from holdfast.api import v1

    time = version.modified if isinstance(version, v1.StateDescription) else version.time
    by = ""
    if not isinstance(version, v1.ResolvedVersion) and writer(version):
        by = f" by {person(version.principal, version.owner, version.who)}"
    parts = (
        f"serial {version.serial}" if version.serial is not None else "",
        f"written {ages.ago(time, now)}{by}" if time else "",
        "" if version.status == v1.ACKNOWLEDGED else status_words(version.status),
    )
    return ", ".join(filter(None, parts)) or f"version {version.version}"


def writer(version: "v1.Version | v1.StateDescription") -> str:
    """Return who wrote a version: the principal, and apart what the client says; empty without both."""
    principal, who = version.principal, version.who or ""
    return proved_and_claimed(principal, version.owner or "", who) if principal or who else ""


def holder(lock: "v1.Lock") -> str:
    """Return who holds a lock, without what the client says of itself."""
    return proved_and_claimed(lock.principal, lock.owner or "", "")


def client_says(lock: "v1.Lock") -> str:
    """Return the client's `who`; empty for a lock of Holdfast's own, which has the principal there."""
    return "" if lock.who == lock.principal else lock.who


def frozen_by(lock: "v1.Lock") -> str:
    """Return who froze a state."""
    by = lock.freeze.by if lock.freeze else None
    return named(by, lock.owner or "") if by else holder(lock)


def freezer(lock: "v1.Lock") -> str:
    """Return who froze a state, in one name."""
    return person((lock.freeze and lock.freeze.by) or lock.principal, lock.owner, "")


def lock_words(lock: "v1.Lock | None", now: datetime | None = None) -> str:
    """Describe a lock or a freeze in a few words; None becomes the empty string."""
    if lock is None:
        return ""
    freeze = lock.freeze
    if freeze is None:
        for_what = f" for {claimed(lock.operation)}" if lock.operation else ""
        by = proved_and_claimed(lock.principal, lock.owner or "", lock.who)
        return f"locked by {by}{for_what} since {word(lock, 'since', now)}"
    if freeze.ended:
        return f"freeze ended {word(freeze, 'until', now)}: {freeze.reason}"
    return freeze_words(freeze, now)


def lock_sentence(lock: "v1.Lock", now: datetime) -> str:
    """Describe a lock or a freeze for the middle of a sentence, behind `is`, with names, ages and no ID."""
    if lock.freeze:
        return lock_brief(lock, now)
    held = f" for {ages.span(lock.since, now)}" if lock.since else ""
    for_what = f" ({in_sentence(lock.operation)})" if lock.operation else ""
    return f"locked by {person(lock.principal, lock.owner, lock.who)}{held}{for_what}"


def lock_brief(lock: "v1.Lock | None", now: datetime) -> str:
    """Describe a lock or a freeze with ages and one name; None becomes the empty string."""
    if lock is None:
        return ""
    freeze = lock.freeze
    if freeze is None:
        held = f" {ages.span(lock.since, now)}" if lock.since else ""
        return f"locked{held}, {short_person(lock.principal, lock.owner, lock.who)}"
    if freeze.ended:
        return f"freeze ended {age(freeze, 'until', now)}: {freeze.reason}"
    return freeze_brief(freeze, now)


def freeze_brief(freeze: "v1.PlacedFreeze", now: datetime, pattern: str = "") -> str:
    """Describe a freeze that has not ended, with the time that is left, and its pattern if there is one."""
    ends = age(freeze, "until", now)
    together = f" with {pattern}" if pattern else ""
    return f"frozen{together}{f', ends {ends}' if ends else ''}: {freeze.reason}"


def freeze_words(freeze: "v1.PlacedFreeze", now: datetime | None = None) -> str:
    """Describe a freeze that has not ended in a few words."""
    until = word(freeze, "until", now)
    return f"frozen{f' until {until}' if until else ''}: {freeze.reason}"


def is_frozen(lock: "v1.Lock | None") -> bool:
    """Return whether a lock is a freeze that has not ended."""
    return lock is not None and lock.freeze is not None and not lock.freeze.ended


def colour(lock: "v1.Lock | None") -> str | None:
    """Return the colour of a row about a state: None if it is not locked, or if its freeze has ended."""
    if is_frozen(lock):
        return "cyan"
    return None if lock is None or lock.freeze else "yellow"


def lock_id(lock: "v1.Lock", *, for_people: bool) -> str:
    """Return a lock's ID; for people a freeze's own ID, because its lock ID repeats the reason."""
    return lock.freeze.id if for_people and lock.freeze else lock.id


def lock_fields(
    lock: "v1.Lock", now: datetime, *, for_people: bool, brief: bool = False, pattern: str = ""
) -> list[tuple[str, str]]:
    """Return names and values that describe a lock or a freeze, for a list of fields.

    With `for_people` the names differ from those of a state, the operation is in words, and a freeze has its
    own ID instead of that of its lock. With `brief` who holds it is one name. `pattern` is the pattern with
    which the state is frozen, if there is one.
    """
    freeze = lock.freeze
    if freeze:
        passed = (
            ", which has passed: the next command that acquires the lock lifts the freeze"
            if freeze.ended
            else ""
        )
        return [
            ("frozen by", freezer(lock) if brief else frozen_by(lock)),
            *([("frozen with", pattern)] if pattern else []),
            ("frozen since" if for_people else "since", moment(lock, "since", now) or "-"),
            ("until", f"{moment(freeze, 'until', now) or 'it is unfrozen'}{passed}"),
            ("reason", freeze.reason),
            ("freeze ID" if for_people else "lock ID", lock_id(lock, for_people=for_people)),
        ]
    who = [("locked by", holder(lock)), *([("client says", client_says(lock))] if client_says(lock) else [])]
    return [
        *([("locked by", person(lock.principal, lock.owner, lock.who))] if brief else who),
        ("locked since" if for_people else "since", moment(lock, "since", now) or "-"),
        *(
            [("locked for", operation(lock.operation) or "-")]
            if for_people
            else [("operation", lock.operation or "-")]
        ),
        *([("info", lock.info)] if lock.info else []),
        ("lock ID", lock.id),
    ]

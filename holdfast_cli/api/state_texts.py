"""How states, locks and freezes of the management API are shown."""

from datetime import UTC, datetime
from typing import Final

from holdfast_cli.api.management import Document, member, number, text, time
from holdfast_cli.terminal import output

ACKNOWLEDGED: Final = "acknowledged"
"""The status of a version that counts."""
NEVER_ACKNOWLEDGED: Final = "never_acknowledged"
"""The status of a version whose writer was refused."""

_UNITS: Final = ((1000**3, "GB"), (1000**2, "MB"), (1000, "KB"))


def size(count: int | None) -> str:
    """Format a number of bytes; empty if there is none.

    >>> size(812), size(4_200_000), size(5_000_000)
    ('812 B', '4.2 MB', '5 MB')
    """
    if count is None:
        return ""
    for unit, name in _UNITS:
        if count >= unit:
            return f"{count / unit:.1f}".removesuffix(".0") + f" {name}"
    return f"{count} B"


def word(document: Document, name: str) -> str:
    """Format a time of a document for a table; empty if there is none, and what is not a time as it is."""
    found = time(document, name)
    return output.word(found) if found else text(document, name)


def moment(document: Document, name: str) -> str:
    """Format a time of a document for a sentence; empty if there is none, and what is not a time as it is."""
    found = time(document, name)
    return output.moment(found) if found else text(document, name)


def status_words(status: str) -> str:
    """Return a status in words; one that a newer API has, as it is."""
    return {
        NEVER_ACKNOWLEDGED: "never acknowledged",
        "other_program": "written by another program",
    }.get(status, status)


def whole(document: Document, name: str) -> str:
    """Format a number of a document; empty if there is none."""
    found = number(document, name)
    return "" if found is None else str(found)


def holder(lock: Document) -> str:
    """Return who holds a lock: what the client says, and the principal where that is something else."""
    who, principal = text(lock, "who"), text(lock, "principal")
    return (
        f"{who} ({principal})" if who and principal and who != principal else who or principal or "somebody"
    )


def lock_words(lock: Document) -> str:
    """Describe a lock or a freeze in a few words; empty if there is none."""
    if not lock:
        return ""
    freeze = member(lock, "freeze")
    if not freeze:
        operation = text(lock, "operation")
        for_what = f" for {operation}" if operation else ""
        return f"locked by {holder(lock)}{for_what} since {word(lock, 'since')}"
    return f"{_frozen(freeze)}: {text(freeze, 'reason')}"


def is_frozen(lock: Document) -> bool:
    """Return whether a lock is a freeze that has not ended."""
    freeze = member(lock, "freeze")
    return bool(freeze) and freeze.get("ended") is not True


def lock_fields(lock: Document) -> list[tuple[str, str]]:
    """Return what there is to say about a lock, for a list of fields."""
    freeze = member(lock, "freeze")
    if freeze:
        return [
            ("frozen by", text(freeze, "by") or holder(lock)),
            ("since", _ago(lock)),
            ("until", f"{moment(freeze, 'until') or 'it is unfrozen'}{_ended(freeze)}"),
            ("reason", text(freeze, "reason")),
            ("lock ID", text(lock, "id")),
        ]
    return [
        ("locked by", holder(lock)),
        ("since", _ago(lock)),
        ("operation", text(lock, "operation") or "-"),
        *([("info", text(lock, "info"))] if text(lock, "info") else []),
        ("lock ID", text(lock, "id")),
    ]


def _frozen(freeze: Document) -> str:
    if freeze.get("ended") is True:
        return f"freeze ended {word(freeze, 'until')}"
    return f"frozen until {word(freeze, 'until')}" if text(freeze, "until") else "frozen"


def _ended(freeze: Document) -> str:
    return (
        ", which has passed: the next command that acquires the lock lifts it"
        if freeze.get("ended") is True
        else ""
    )


def _ago(lock: Document) -> str:
    since = time(lock, "since")
    if since is None:
        return text(lock, "since") or "-"
    seconds = max(0, int((datetime.now(UTC) - since).total_seconds()))
    for length, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= length:
            many = seconds // length
            return f"{output.moment(since)}, {many} {unit}{'' if many == 1 else 's'} ago"
    return f"{output.moment(since)}, less than a minute ago"

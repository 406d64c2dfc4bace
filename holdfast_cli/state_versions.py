"""Finds the version of a state that a command names: by its ID, its serial or a time."""

import re
from argparse import ArgumentTypeError
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from holdfast_cli import management, output
from holdfast_cli.errors import CommandError
from holdfast_cli.management import Api, Document, text

NEVER_ACKNOWLEDGED: Final = "never_acknowledged"
"""The status of a version whose writer was refused."""
HELP: Final = """\
VERSION is the ID of a version, as `holdfast state history` shows it; or its serial,
as @12; or a time, as @2026-11-20T14:00, which means the version that was current
then. A time without an offset is local, a date alone is its 00:00."""
"""How a version is named."""

_SERIAL: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
_TIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?)?",
    re.ASCII | re.IGNORECASE,
)
_ID: Final = re.compile(r"[!-~]{1,1024}", re.ASCII)
_MOST_NAMED: Final = 5
"""Versions in one line."""


@dataclass(frozen=True, slots=True)
class Reference:
    """How a version is named.

    Attributes:
        typed: as it was typed.
        id: its ID, or None.
        serial: its serial, or None.
        at: the time at which it was current, or None.
    """

    typed: str
    id: str | None = None
    serial: int | None = None
    at: datetime | None = None

    def __str__(self) -> str:
        return self.typed


def reference(value: str) -> Reference:
    """Parse how a version is named.

    Raises:
        ArgumentTypeError: it is neither an ID nor a serial nor a time that has passed.
    """
    if not value.startswith("@"):
        if not _ID.fullmatch(value):
            raise ArgumentTypeError(
                "it is not a valid version: an ID, a serial as @12, or a time as @2026-11-20"
            )
        return Reference(value, id=value)
    if _SERIAL.fullmatch(value[1:]):
        return Reference(value, serial=int(value[1:]))
    at = local_time(value[1:])
    if at > datetime.now(UTC):
        raise ArgumentTypeError(f"{value!r} is in the future: it is {output.moment(at)}")
    return Reference(value, at=at)


def local_time(value: str) -> datetime:
    """Parse a time; one without an offset is local.

    Raises:
        ArgumentTypeError: it is not one.
    """
    if _TIME.fullmatch(value):
        with suppress(ValueError, OverflowError, OSError):
            return datetime.fromisoformat(value.upper()).astimezone(UTC)
    raise ArgumentTypeError(
        f"{value!r} is not a valid time, as 2026-11-20, 2026-11-20T14:00 or 2026-11-20T14:00+01:00"
    )


def all_of(api: Api, name: object) -> Generator[Document, None, None]:
    """Yield the versions of a state, newest first, as they are read.

    Raises:
        CommandError: as by `Api.pages`.
    """
    yield from api.pages("versions", "versions", name, progress="versions")


def find(api: Api, name: object, references: Sequence[Reference]) -> list[Document]:
    """Find versions in the history of a state. What a serial or a time means is told on standard error.

    Args:
        api: the management API.
        name: of the state.
        references: what is looked for.

    Returns:
        The versions in the order of the references; of an ID that the history does not have, the ID alone.

    Raises:
        CommandError: there is no such version, or there are several.
    """
    if not references:
        return []
    history = all_of(api, name)
    read: list[Document] = []
    found = [_find(one, name, history, read) for one in references]
    history.close()  # which ends its progress
    for one, version in zip(references, found, strict=True):
        if one.id is None:
            output.tell(f"holdfast: {one} is {described(version)}.")
    return found


def described(version: Document) -> str:
    """Say which version it is: by its ID, its serial and its time, and whether it was acknowledged."""
    serial, written = management.number(version, "serial"), management.time(version, "time")
    parts = [f"version {text(version, 'version')}"]
    if serial is not None:
        parts.append(f"serial {serial}")
    if written is not None:
        parts.append(f"of {output.moment(written)}")
    if (status := text(version, "status")) not in ("", "acknowledged"):
        parts.append(status_words(status))
    return ", ".join(parts)


def status_words(status: str) -> str:
    """Return a status in words; one that a newer API has, as it is."""
    return {
        NEVER_ACKNOWLEDGED: "never acknowledged",
        "other_program": "written by another program",
    }.get(status, status)


def _find(one: Reference, name: object, history: Iterator[Document], read: list[Document]) -> Document:
    """Find a version among those that were read and those that follow; what is read on the way is kept."""

    def versions() -> Iterator[Document]:
        yield from list(read)
        for version in history:
            read.append(version)
            yield version

    if one.id is not None:
        return next((found for found in versions() if text(found, "version") == one.id), {"version": one.id})
    if one.serial is not None:
        return _of_serial(one.serial, name, list(versions()))
    assert one.at is not None  # noqa: S101 one of the three is there
    return _at(one.at, one, name, versions())


def _of_serial(serial: int, name: object, versions: Sequence[Document]) -> Document:
    found = [version for version in versions if management.number(version, "serial") == serial]
    if len(found) == 1:
        return found[0]
    if found:
        raise CommandError(
            f"The state {name} has {len(found)} versions with the serial {serial}: {_named(found)}. Name one "
            "by its ID."
        )
    serials = [number for one in versions if (number := management.number(one, "serial")) is not None]
    there = (
        f"its serials are {min(serials)} to {max(serials)}" if serials else "no version of it has a serial"
    )
    raise CommandError(
        f"The state {name} has no version with the serial {serial}: {there}. `holdfast state history {name}` "
        "shows them."
    )


def _at(at: datetime, one: Reference, name: object, versions: Iterator[Document]) -> Document:
    """Return the version that was current at a time: the newest before it whose writer was not refused."""
    oldest: Document | None = None
    for version in versions:
        written = management.time(version, "time")
        if version.get("delete_marker") is True:
            if written is not None and written <= at:
                raise CommandError(
                    f"The state {name} was deleted at {one}, since {output.moment(written)}. `holdfast state "
                    f"history {name}` shows the versions before; name one by its ID."
                )
            continue
        if text(version, "status") == NEVER_ACKNOWLEDGED:
            continue
        if written is not None and written <= at:
            return version
        oldest = version
    if oldest is None:
        raise CommandError(f"The state {name} has no version that was acknowledged.")
    raise CommandError(
        f"The state {name} has no version at {one} ({output.moment(at)}): the oldest that there is is "
        f"{described(oldest)}."
    )


def _named(versions: Sequence[Document]) -> str:
    more = f" and {len(versions) - _MOST_NAMED} more" if len(versions) > _MOST_NAMED else ""
    return f"{'; '.join(described(version) for version in versions[:_MOST_NAMED])}{more}"


def refuse_never_acknowledged(version: Document, one: Reference, name: object) -> None:
    """Check that a version that was not named by its ID was acknowledged.

    Raises:
        CommandError: its writer was refused.
    """
    if one.id is None and text(version, "status") == NEVER_ACKNOWLEDGED:
        raise CommandError(
            f"{one} of the state {name} is {described(version)}: its writer was refused. If it is the one "
            f"that you want, name it by its ID, {text(version, 'version')}."
        )

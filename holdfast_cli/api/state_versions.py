"""Finds the version of a state that a command names in its history."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from datetime import datetime
from typing import Final

from holdfast_cli.api import management, state_texts
from holdfast_cli.api.management import Api, Document, text
from holdfast_cli.api.version_reference import Reference
from holdfast_cli.errors import CommandError
from holdfast_cli.terminal import output

_MOST_NAMED: Final = 5
"""Versions in one line."""


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


def marker_to_undo(api: Api, name: object) -> str:
    """Return the version ID of the delete marker that an undelete is to undo.

    That is the newest entry of the history; or the marker beneath a version that an undelete wrote, so that a
    repeated command finds what it has done.

    Raises:
        CommandError: the state is not deleted, or has no version; or as by `Api.pages`.
    """
    with closing(all_of(api, name)) as history:
        newest = next(history, None)
        if newest is None:
            raise CommandError(f"There is no version of the state {name} that could come back.")
        if newest.get("delete_marker") is True:
            return text(newest, "version")
        if text(newest, "operation") == "undelete":
            for entry in history:
                if entry.get("delete_marker") is True:
                    return text(entry, "version")
    raise CommandError(
        f"The state {name} is not deleted: its version {text(newest, 'version')} is current, and stays. To "
        "go back to an earlier version, use `holdfast state restore`."
    )


def described(version: Document) -> str:
    """Say which version it is: by its ID, its serial and its time, and whether it was acknowledged."""
    serial, written = management.number(version, "serial"), management.time(version, "time")
    parts = [f"version {text(version, 'version')}"]
    if serial is not None:
        parts.append(f"serial {serial}")
    if written is not None:
        parts.append(f"of {output.moment(written)}")
    if (status := text(version, "status")) not in ("", "acknowledged"):
        parts.append(state_texts.status_words(status))
    return ", ".join(parts)


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
    contents = {text(version, "sha256") for version in found}
    if len(found) == 1 or (len(contents) == 1 and "" not in contents):
        # All have the same bytes. A version whose writer was refused could not be restored by its serial.
        acknowledged = (one for one in found if text(one, "status") == state_texts.ACKNOWLEDGED)
        return next(acknowledged, found[0])
    if found:
        raise CommandError(
            f"The state {name} has {len(found)} versions with the serial {serial} and not one content: "
            f"{_named(found)}. Name one by its ID."
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
        if text(version, "status") == state_texts.NEVER_ACKNOWLEDGED:
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
    if one.id is None and text(version, "status") == state_texts.NEVER_ACKNOWLEDGED:
        raise CommandError(
            f"{one} of the state {name} is {described(version)}: its writer was refused. If it is the one "
            f"that you want, name it by its ID, {text(version, 'version')}."
        )

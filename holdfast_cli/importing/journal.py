"""The journal of an import: the locks that it may hold, and the states that it has imported and closed.

The journal is a file of JSON lines beside the plan. It is the memory of an import across processes: a lock is
noted, and stored on the disk, before the first request that acquires it, so a killed import leaves no lock
that the next run does not find. One process at a time uses a journal.
"""

import fcntl
import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, TextIO, get_args

from holdfast.names import StateName
from holdfast.state.lock_info import LockInfo
from holdfast_cli.errors import CommandError
from holdfast_cli.importing.source import OldLock, Settings

_MODE: Final = 0o600


@dataclass(frozen=True, slots=True)
class Begin:
    """States of this source are imported into this API."""

    api: str
    source: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Hold:
    """A state may be locked in both places: in the source by `lock`, in the new place with its lock info.

    `workspace` is the ID of the workspace that is locked in the new place; empty for `/locks`.
    """

    state: str
    name: str
    lock: OldLock
    workspace: str = ""


@dataclass(frozen=True, slots=True)
class Release:
    """Both locks of a state are released."""

    state: str


@dataclass(frozen=True, slots=True)
class Imported:
    """The import wrote this version in the new place, or found it there, and verified it.

    `sha256` is that of the content, which is the same in both places.
    """

    state: str
    name: str
    version: str
    serial: int
    lineage: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Close:
    """A lock that closes a state in the source may be held."""

    state: str
    lock: OldLock


@dataclass(frozen=True, slots=True)
class Closed:
    """A state was compared under the lock that closes it, so it is closed."""

    state: str


@dataclass(frozen=True, slots=True)
class Open:
    """The lock that closed a state is released."""

    state: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """The source may refuse writes of these states, and of no other."""

    states: list[str]


Event = Begin | Hold | Release | Imported | Close | Closed | Open | Refuse
_BEFORE_A_REQUEST: Final = (Begin, Hold, Close, Refuse)
"""The events that are on the disk before the request that they announce."""
_KINDS: Final[Mapping[str, type[Event]]] = {kind.__name__.lower(): kind for kind in get_args(Event)}


def _to_json(event: Event) -> str:
    members: dict[str, Any] = {"event": type(event).__name__.lower()}
    for each in fields(event):
        value = getattr(event, each.name)
        is_lock = isinstance(value, OldLock)
        members |= {"lock": value.info.document, "handle": value.handle} if is_lock else {each.name: value}
    return json.dumps(members)


def _from_json(line: str) -> Event:
    """Parse a line; members that an earlier version wrote are left out."""
    members = json.loads(line)
    kind = _KINDS[members["event"]]
    if "lock" in members:
        members["lock"] = OldLock(LockInfo(members["lock"]), members["handle"])
    return kind(**{each.name: members[each.name] for each in fields(kind)})


@dataclass(slots=True)
class Entry:
    """The journal's record of one state.

    Attributes:
        hold: the last locks for a copy; the next copy to the same name has the same lock info.
        is_held: whether these locks may be held.
        imported: the last version that was imported.
        closing: the lock that closes the state in the source; None if it was never closed, or opened again.
        is_closed: whether the state was compared under that lock, so that it is closed.
    """

    hold: Hold | None = None
    is_held: bool = False
    imported: Imported | None = None
    closing: OldLock | None = None
    is_closed: bool = False

    @property
    def name(self) -> str:
        """Return the name in the new place of the last copy; empty before it."""
        return self.hold.name if self.hold else ""

    @property
    def may_hold_a_lock(self) -> bool:
        """Return whether a lock may be left that is to be released, unlike the lock of a closed state."""
        return self.is_held or (self.closing is not None and not self.is_closed)

    def imported_as(self, name: StateName) -> Imported | None:
        """Return the imported version of a name; the plan may have named the state otherwise before."""
        return self.imported if self.imported and self.imported.name == name.value else None


class Journal:
    """The journal of a plan. Several threads may use it, each for other states.

    Attributes:
        refused: the states whose writes the source may have been told to refuse.
    """

    def __init__(self, file: TextIO | None, name: str) -> None:
        self._file, self._name = file, name
        self._entries: dict[str, Entry] = {}
        self._writing = threading.Lock()
        self._begun: Begin | None = None
        self.refused: list[str] = []

    def of(self, state: str) -> Entry:
        """Return the record of a state."""
        return self._entries.setdefault(state, Entry())

    @property
    def left(self) -> list[str]:
        """Return the states with a lock that a killed import may have left."""
        return [state for state, entry in self._entries.items() if entry.may_hold_a_lock]

    @property
    def closing(self) -> dict[str, OldLock]:
        """Return the locks that close states, by state."""
        return {state: entry.closing for state, entry in self._entries.items() if entry.closing}

    def wrote_for_another(self, state: str, version: str) -> bool:
        """Return whether a version was imported from another state of the source."""
        return any(
            entry.imported is not None and entry.imported.version == version
            for other, entry in list(self._entries.items())
            if other != state
        )

    def begin(self, api: str, settings: Settings) -> None:
        """Note the API and the source. Raise `CommandError` if the journal is about others."""
        # The addresses of an `http` source are those of its states, which may become more.
        is_list = settings.addresses[0].startswith("http")
        source = {"addresses": [] if is_list else list(settings.addresses), "options": dict(settings.options)}
        if self._begun is None:
            self.note(Begin(api, source))
        elif self._begun.api != api:
            raise CommandError(
                f"The journal of this plan was begun for {self._begun.api}, but you are signed in to {api}. "
                f"Sign in to {self._begun.api}, or write a new plan to another file."
            )
        elif self._begun.source != source:
            raise CommandError(
                f"The plan's source or its options have changed since the journal {self._name} was begun, "
                "and the locks in the journal belong to the earlier source. Undo the change, or write a new "
                "plan to another file."
            )

    def note(self, event: Event) -> None:
        """Write an event; it is on the disk if a request may follow that it announces."""
        if self._file is not None:
            try:
                with self._writing:
                    self._file.write(f"{_to_json(event)}\n")
                    self._file.flush()
                if isinstance(event, _BEFORE_A_REQUEST):
                    os.fsync(self._file.fileno())
            except OSError as error:
                raise CommandError(
                    f"The journal {self._name} cannot be written: {error.strerror}."
                ) from error
        self._replay(event)

    def _replay(self, event: Event) -> None:
        match event:
            case Begin():
                self._begun = event
            case Hold(state):
                entry = self.of(state)
                entry.hold, entry.is_held = event, True
            case Release(state):
                self.of(state).is_held = False
            case Imported(state):
                self.of(state).imported = event
            case Close(state, lock):
                entry = self.of(state)
                entry.closing, entry.is_closed = lock, False
            case Closed(state):
                self.of(state).is_closed = True
            case Open(state):
                entry = self.of(state)
                entry.closing, entry.is_closed = None, False
            case Refuse(states):
                self.refused = states

    @classmethod
    @contextmanager
    def opened(cls, plan: Path, *, only_read: bool = False) -> Iterator["Journal"]:
        """Open the journal of a plan for this process alone, and create it if it does not exist.

        Args:
            only_read: change no file: nothing is stored, and another process may use the journal.

        Raises:
            CommandError: another process uses the journal, or it is damaged.
        """
        path = plan.with_name(f"{plan.name}.journal")
        if only_read and not path.exists():
            yield cls(None, str(path))
            return
        try:
            flags = os.O_RDONLY if only_read else os.O_RDWR | os.O_CREAT | os.O_APPEND
            # The folder may be somebody else's, and a link in it lead to any file of this user.
            file = os.fdopen(
                os.open(path, flags | os.O_NOFOLLOW, _MODE), "r" if only_read else "r+", encoding="utf-8"
            )
        except OSError as error:
            raise CommandError(f"The journal {path} cannot be opened: {error.strerror}.") from error
        try:
            if not only_read:
                _lock_file(file, path)
            journal = cls(None if only_read else file, str(path))
            journal._read(file)
            yield journal
        finally:
            with suppress(OSError):  # a full disk, of which `note` has told
                file.close()

    def _read(self, file: TextIO) -> None:
        read = 0
        try:
            *lines, rest = file.read().split("\n")
            for line in lines:
                self._replay(_from_json(line))
                read += 1
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CommandError(
                f"The journal {self._name} is damaged at line {read + 1}. Restore the file, because only the "
                "journal lists the locks that the import may still hold."
            ) from error
        if rest and self._file is not None:
            # A killed import was writing this line, and sent no request that depends on it.
            file.truncate(len("".join(f"{line}\n" for line in lines).encode()))


def _lock_file(file: TextIO, path: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise CommandError(
            f"Another 'holdfast import' uses {path}: wait until it ends, or end it."
        ) from error

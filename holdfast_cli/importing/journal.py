"""The journal of an import: the locks that it may hold, and the states that it has imported and closed.

The journal is a file of JSON lines beside the plan. It is the memory of an import across processes: a lock is
noted, and stored on the disk, before the first request that acquires it, so a killed import leaves no lock
that the next run does not find. One process at a time uses a journal.
"""

import fcntl
import json
import os
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TextIO

from holdfast.names import StateName
from holdfast.state.lock_info import LockInfo
from holdfast_cli.errors import CommandError
from holdfast_cli.importing.source import OldLock, Settings

_MODE: Final = 0o600


@dataclass(frozen=True, slots=True)
class Imported:
    """A version that the import wrote or found in the new place, and verified.

    Attributes:
        version: its version ID in the new place.
        sha256: of the content, which is the same in both places.
    """

    name: str
    version: str
    serial: int
    lineage: str
    sha256: str


@dataclass(slots=True)
class Entry:
    """The journal's record of one state.

    Attributes:
        name: the name in the new place that the lock is for.
        lock: the import's lock in the source; the new place's lock has the same lock info.
        workspace: the ID of the workspace under which the new place was locked; empty for `/locks`.
        held: whether the two locks may be held.
        imported: the last version that was imported.
        closing: the lock that closes the state in the source; None if it was never closed, or opened again.
        is_closed: whether the state was compared under that lock, so that it is closed.
    """

    name: str = ""
    lock: OldLock | None = None
    workspace: str = ""
    held: bool = False
    imported: Imported | None = None
    closing: OldLock | None = None
    is_closed: bool = False

    @property
    def may_hold_a_lock(self) -> bool:
        """Return whether a lock may be left that is to be released, unlike the lock of a closed state."""
        return self.held or (self.closing is not None and not self.is_closed)

    def imported_as(self, name: StateName) -> Imported | None:
        """Return the imported version of a name; the plan may have named the state otherwise before."""
        return self.imported if self.imported and self.imported.name == name.value else None


class Journal:
    """The journal of a plan. Several threads may use it, each for other states.

    Attributes:
        api: the address of the API into which states were imported; empty at first.
        refused: the states whose writes the source may have been told to refuse.
    """

    def __init__(self, file: TextIO | None, name: str) -> None:
        self._file, self._name = file, name
        self._entries: dict[str, Entry] = {}
        self._writing = threading.Lock()
        self._begun: Mapping[str, Any] = {}
        self.api = ""
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
        if not self.api:
            self._note({"event": "begin", "api": api, "source": source}, at_once=True)
        if self.api != api:
            raise CommandError(
                f"This plan's states were imported into {self.api}, and you are signed in to {api}: sign in "
                "there, or write a new plan."
            )
        if self._begun != source:
            raise CommandError(
                f"The plan's source or its options were changed since {self._name} was begun. Undo that, or "
                "write a new plan: the locks in the journal are those of the other source."
            )

    def hold(self, state: str, name: StateName, lock: OldLock, workspace: str = "") -> None:
        """Store the locks of a state on the disk; afterwards they may be acquired."""
        said = {"event": "hold", "state": state, "name": name.value, **_of_lock(lock), "workspace": workspace}
        self._note(said, at_once=True)

    def release(self, state: str) -> None:
        """Note that both locks of a state are released."""
        self._note({"event": "release", "state": state})

    def imported(self, state: str, imported: Imported) -> None:
        self._note({"event": "imported", "state": state, **asdict(imported)})

    def close(self, state: str, lock: OldLock) -> None:
        """Store the lock that closes a state on the disk; afterwards it may be acquired."""
        self._note({"event": "close", "state": state, **_of_lock(lock)}, at_once=True)

    def closed(self, state: str) -> None:
        """Note that a state was compared under the lock that closes it."""
        self._note({"event": "closed", "state": state})

    def open(self, state: str) -> None:
        """Note that the lock that closed a state is released."""
        self._note({"event": "open", "state": state})

    def refuse(self, states: Sequence[str]) -> None:
        """Store on the disk that the source may refuse writes of these states, and of no other."""
        self._note({"event": "refuse", "states": list(states)}, at_once=True)

    def _note(self, line: Mapping[str, Any], *, at_once: bool = False) -> None:
        if self._file is not None:
            try:
                with self._writing:
                    self._file.write(json.dumps(line) + "\n")
                    self._file.flush()
                if at_once:
                    os.fsync(self._file.fileno())
            except OSError as error:
                raise CommandError(
                    f"The journal {self._name} cannot be written: {error.strerror}."
                ) from error
        self._replay(dict(line))

    def _replay(self, said: dict[str, Any]) -> None:
        event, state = said.pop("event"), said.pop("state", None)
        entry = Entry() if state is None else self.of(state)
        match event:
            case "begin":
                self.api, self._begun = said["api"], said["source"]
            case "hold":
                entry.name, entry.lock, entry.held = said["name"], _lock(said), True
                entry.workspace = said["workspace"]
            case "release":
                entry.held = False
            case "imported":
                entry.imported = Imported(**said)
            case "close":
                entry.closing, entry.is_closed = _lock(said), False
            case "closed":
                entry.is_closed = True
            case "open":
                entry.closing, entry.is_closed = None, False
            case "refuse":
                self.refused = said["states"]
            case _:
                raise ValueError(event)

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
            file = os.fdopen(os.open(path, flags, _MODE), "r" if only_read else "r+", encoding="utf-8")
        except OSError as error:
            raise CommandError(f"The journal {path} cannot be opened: {error.strerror}.") from error
        try:
            if not only_read:
                _lock_file(file, path)
            journal = cls(None if only_read else file, str(path))
            journal._read(file)
            yield journal
        finally:
            with suppress(OSError):  # a full disk, of which `_note` has told
                file.close()

    def _read(self, file: TextIO) -> None:
        read = 0
        try:
            *lines, rest = file.read().split("\n")
            for line in lines:
                self._replay(json.loads(line))
                read += 1
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CommandError(f"The journal {self._name} is damaged at line {read + 1}.") from error
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


def new_id() -> str:
    """Return a random lock ID, in the form of Terraform's."""
    return str(uuid.uuid4())


def _of_lock(lock: OldLock) -> dict[str, Any]:
    return {"lock": lock.info.document, "handle": lock.handle}


def _lock(said: Mapping[str, Any]) -> OldLock:
    return OldLock(LockInfo(said["lock"]), said["handle"])

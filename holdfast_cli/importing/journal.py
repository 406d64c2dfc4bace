"""The journal of an import: which locks it may hold, and what it has imported and closed.

The journal is a file of JSON lines beside the plan. It is the memory of an import across processes: a lock is
noted, and stored on the disk, before the first request that acquires it, so a killed import leaves no lock
that the next run does not find. One process at a time uses a journal.
"""

import fcntl
import json
import os
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TextIO

from holdfast.state.lock_info import LockInfo
from holdfast_cli.errors import CommandError
from holdfast_cli.importing.source import OldLock

_MODE: Final = 0o600


@dataclass(frozen=True, slots=True)
class Imported:
    """A version that the import wrote or found in the new place, and verified.

    Attributes:
        version: its version ID in the new place.
        sha256: of the content, which is the same in both places.
        history: how many superseded versions were asked for and are there; None for all.
    """

    name: str
    version: str
    serial: int
    lineage: str
    sha256: str
    history: int | None = 0


@dataclass(slots=True)
class Entry:
    """What the journal says about one state.

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


class Journal:
    """The journal of a plan. Several threads may use it, each for other states."""

    def __init__(self, file: TextIO, name: str) -> None:
        self._file, self._name = file, name
        self._entries: dict[str, Entry] = {}
        self._writing = threading.Lock()
        self.api = ""
        """The address of the API into which states were imported; empty at first."""
        self.refuses = False
        """Whether `close` may have told the source to refuse writes."""

    def of(self, state: str) -> Entry:
        """Return what the journal says about a state."""
        return self._entries.setdefault(state, Entry())

    @property
    def left(self) -> list[str]:
        """Return the states with a lock that a killed import may have left."""
        return [
            state
            for state, entry in self._entries.items()
            if entry.held or (entry.closing and not entry.is_closed)
        ]

    def begin(self, api: str) -> None:
        """Note the API's address. Raise `CommandError` if the journal has another address."""
        if self.api and self.api != api:
            raise CommandError(
                f"This plan's states were imported into {self.api}, and you are signed in to {api}. Sign in "
                f"there, or remove {self._name} to begin again."
            )
        if not self.api:
            self._note({"event": "begin", "api": api}, at_once=True)
            self.api = api

    def hold(self, state: str, name: str, lock: OldLock, workspace: str = "") -> None:
        """Store the locks of a state on the disk; afterwards they may be acquired."""
        said = {"event": "hold", "state": state, "name": name, **_of_lock(lock), "workspace": workspace}
        self._note(said, at_once=True)
        entry = self.of(state)
        entry.name, entry.lock, entry.workspace, entry.held = name, lock, workspace, True

    def release(self, state: str) -> None:
        """Note that both locks of a state are released."""
        self._note({"event": "release", "state": state})
        self.of(state).held = False

    def imported(self, state: str, imported: Imported) -> None:
        self._note({"event": "imported", "state": state, **asdict(imported)})
        self.of(state).imported = imported

    def close(self, state: str, lock: OldLock) -> None:
        """Store the lock that closes a state on the disk; afterwards it may be acquired."""
        self._note({"event": "close", "state": state, **_of_lock(lock)}, at_once=True)
        self.of(state).closing = lock

    def closed(self, state: str) -> None:
        """Note that a state was compared under the lock that closes it."""
        self._note({"event": "closed", "state": state})
        self.of(state).is_closed = True

    def open(self, state: str) -> None:
        """Note that the lock that closed a state is released."""
        self._note({"event": "open", "state": state})
        entry = self.of(state)
        entry.closing, entry.is_closed = None, False

    def refuse(self, *, refuses: bool) -> None:
        """Note that the source may refuse writes from now on, or does not refuse them any more."""
        self._note({"event": "refuse", "refuses": refuses}, at_once=True)
        self.refuses = refuses

    def _note(self, line: Mapping[str, Any], *, at_once: bool = False) -> None:
        try:
            with self._writing:
                self._file.write(json.dumps(line) + "\n")
                self._file.flush()
            if at_once:
                os.fsync(self._file.fileno())
        except OSError as error:
            raise CommandError(f"The journal {self._name} cannot be written: {error.strerror}.") from error

    def _replay(self, line: str) -> None:
        said = json.loads(line)
        event, entry = said.pop("event"), self.of(said.pop("state", ""))
        match event:
            case "begin":
                self.api = said["api"]
            case "hold":
                entry.name, entry.lock, entry.held = said["name"], _lock(said), True
                entry.workspace = said["workspace"]
            case "release":
                entry.held = False
            case "imported":
                entry.imported = Imported(**said)
            case "close":
                entry.closing = _lock(said)
            case "closed":
                entry.is_closed = True
            case "open":
                entry.closing, entry.is_closed = None, False
            case "refuse":
                self.refuses = said["refuses"]
            case _:
                raise ValueError(event)

    @classmethod
    @contextmanager
    def opened(cls, plan: Path) -> Iterator["Journal"]:
        """Open the journal of a plan for this process alone, and create it if it does not exist.

        Raises `CommandError` if another process uses it, or if it is damaged.
        """
        path = plan.with_name(f"{plan.name}.journal")
        try:
            file = os.fdopen(
                os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, _MODE), "r+", encoding="utf-8"
            )
        except OSError as error:
            raise CommandError(f"The journal {path} cannot be opened: {error.strerror}.") from error
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise CommandError(
                    f"Another 'holdfast import' uses {path}: wait until it ends, or end it."
                ) from error
            journal = cls(file, str(path))
            lines = file.read().split("\n")
            if lines[-1]:  # a killed import was writing it, and sent no request that depends on it
                file.truncate(len("\n".join(lines[:-1]).encode()) + (len(lines) > 1))
            for number, line in enumerate(lines[:-1], start=1):
                try:
                    journal._replay(line)
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    raise CommandError(f"The journal {path} is damaged at line {number}.") from error
            yield journal


def new_id() -> str:
    """Return a random lock ID, in the form of Terraform's."""
    return str(uuid.uuid4())


def _of_lock(lock: OldLock) -> dict[str, Any]:
    return {"lock": lock.info.document, "handle": lock.handle}


def _lock(said: Mapping[str, Any]) -> OldLock:
    return OldLock(LockInfo(said["lock"]), said["handle"])

"""Copy states from the source into the new place, under the locks of both places."""

import getpass
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from holdfast import __version__
from holdfast.names import StateName
from holdfast.state.lock_info import LockInfo
from holdfast_cli.errors import CommandError, UnavailableError
from holdfast_cli.importing import comparing, journal, many
from holdfast_cli.importing.comparing import Absent, Content, Differs, InUse, Same
from holdfast_cli.importing.journal import Imported, Journal
from holdfast_cli.importing.many import LOCKED, Outcome
from holdfast_cli.importing.new_place import OPERATION, NewPlace
from holdfast_cli.importing.plan import Plan, Planned
from holdfast_cli.importing.source import LockedThereError, OldLock, Source

_PAUSE: Final = 5.0
"""Seconds between two looks at locked states."""


def lock_info(text: str) -> LockInfo:
    """Return the lock info of a new lock; clients that find the state locked show `text`."""
    return LockInfo(
        {
            "ID": journal.new_id(),
            "Operation": OPERATION,
            "Info": text,
            "Who": f"{_user()}@{socket.gethostname()}",
            "Version": __version__,
            "Created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "Path": "",
        }
    )


def _user() -> str:
    with suppress(OSError, KeyError):  # a container may run as a user without a name
        return getpass.getuser()
    return "unknown"


@dataclass(frozen=True, slots=True)
class Copier:
    """Copies the states of a plan. Several threads may copy different states."""

    plan: Plan
    journal: Journal
    source: Source
    place: NewPlace

    def run(self, wait: float) -> list[Outcome]:
        """Copy every state. Locked states are tried again at the end, for `wait` seconds."""
        self.release_left()
        states = self.plan.states
        outcomes = many.for_states(states, self._copied, "imported", self.journal)
        until = time.monotonic() + wait
        while locked := [place for place, outcome in enumerate(outcomes) if outcome.word == LOCKED]:
            of_locked = [states[place] for place in locked]
            again = many.for_states(of_locked, self._copied, "tried again", self.journal)
            for place, outcome in zip(locked, again, strict=True):
                outcomes[place] = outcome
            if time.monotonic() + _PAUSE > until:
                break
            time.sleep(_PAUSE)
        return outcomes + self._still_left()

    def release_left(self) -> None:
        """Release the locks that a killed import has left, also of states that the plan has no longer."""
        many.for_each(self.journal.left, self._release_left, "released")

    def _release_left(self, state: str) -> None:
        entry = self.journal.of(state)
        if entry.held:
            self._release(state)
        if entry.closing and not entry.is_closed:
            with suppress(CommandError):
                self.source.unlock(state, entry.closing)
                self.journal.open(state)

    def _still_left(self) -> list[Outcome]:
        planned = {state.id for state in self.plan.states}
        return [
            Outcome(
                state,
                self.journal.of(state).name,
                "left locked",
                f"{state} is not in the plan any more, and a lock of the import may be left.",
                is_problem=True,
            )
            for state in self.journal.left
            if state not in planned
        ]

    def _copied(self, state: Planned, name: StateName) -> Outcome:
        entry = self.journal.of(state.id)
        if entry.may_hold_a_lock:  # another lock would replace it in the journal
            raise CommandError("a lock of an earlier run could not be released; run it again.")
        was_imported = entry.is_closed or entry.imported_as(name)
        if was_imported and (done := self._done_before(state.id, name)):
            return done
        # The same ID again: a late request of a killed run then finds its own lock.
        info = entry.lock.info if entry.lock and entry.name == name.value else None
        info = info or lock_info(f"It is being imported into Holdfast as {name}.")
        lock = OldLock(info, self.source.prepare_lock(state.id))
        self.journal.hold(state.id, name, lock)
        try:
            self.source.lock(state.id, lock)
        except LockedThereError:
            self.journal.release(state.id)
            raise
        except BaseException:
            self._release(state.id)
            raise
        try:
            return self._copied_under_lock(state.id, name, state.tags, lock)
        finally:
            if entry.held:
                self._release(state.id)

    def _done_before(self, state: str, name: StateName) -> Outcome | None:
        """Return the outcome for a state that needs no copy, else None. Doing nothing takes no lock."""
        entry = self.journal.of(state)
        compared = comparing.look(self.source, self.place, self.journal, state, name)
        is_done = isinstance(compared.verdict, Same | InUse)
        if entry.is_closed:
            if is_done and entry.imported_as(name):
                return Outcome(state, name.value, "closed before")
            text = f"{state} is closed in the source, but is not in Holdfast as {name} with its content: run "
            text += "'holdfast import open', then run it again."
            return Outcome(state, name.value, "closed", text, is_problem=True)
        if not is_done:
            return None
        word = "imported before" if isinstance(compared.verdict, Same) else "in use"
        return Outcome(state, name.value, word)

    def _copied_under_lock(
        self, state: str, name: StateName, tags: Mapping[str, str], lock: OldLock
    ) -> Outcome:
        try:
            old = comparing.read_old(self.source, state)
            if workspace := self.place.workspace(name, len(old.body)):
                self.journal.hold(state, name, lock, workspace)
            self.place.lock(name, lock.info, workspace)
        except UnavailableError:
            raise
        except CommandError:  # nothing is held in the new place
            self.source.unlock(state, lock)
            self.journal.release(state)
            raise
        compared = comparing.look(self.source, self.place, self.journal, state, name, old)
        match compared.verdict:
            case InUse(version):
                self.journal.imported(state, _imported(name, version, old))
                return Outcome(state, name.value, "in use")
            case Differs(why):
                return Outcome(state, name.value, "differs", f"{state}: {why}.", is_problem=True)
            case Same(version):
                word = "imported before"
            case _:
                version = self._written(name, old, lock, workspace)
                word = "imported" if isinstance(compared.verdict, Absent) else "replaced"
        text = ""
        if tags and not self.place.tag(name, tags):
            text = f"{state}: its tags are left out, because {name} has one segment and so is no workspace."
        self.journal.imported(state, _imported(name, version, old))
        return Outcome(state, name.value, word, text)

    def _written(self, name: StateName, old: Content, lock: OldLock, workspace: str) -> str:
        """Write the state, read it back, and return its version."""
        self.place.write(name, old.body, old.revision, lock.info, workspace)
        version, sha256 = self.place.read(name)
        if sha256 != old.sha256:
            raise CommandError(
                f"What was read back from {name} is not what was written. Do not use it: look at 'holdfast "
                f"state history {name}'."
            )
        return version

    def _release(self, state: str) -> None:
        """Release both locks of a state. A lock that cannot be released stays in the journal."""
        entry = self.journal.of(state)
        if entry.lock is None:
            return
        released = 0
        with suppress(CommandError):
            self.place.unlock(StateName(entry.name), entry.lock.info, entry.workspace)
            released += 1
        with suppress(CommandError):
            self.source.unlock(state, entry.lock)
            released += 1
        if released == 2:
            with suppress(CommandError):  # then the next run releases them again
                self.journal.release(state)


def _imported(name: StateName, version: str, old: Content) -> Imported:
    return Imported(name.value, version, old.revision.serial, old.revision.lineage, old.sha256)

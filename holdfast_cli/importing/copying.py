"""Copy states from the source into the new place, under the locks of both places."""

import getpass
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Final

from holdfast import __version__
from holdfast.names import StateName
from holdfast.state.lock_info import LockInfo
from holdfast_cli.errors import CommandError
from holdfast_cli.importing import comparing, journal, many
from holdfast_cli.importing.comparing import Absent, Content, Differs, InUse, MovedOn, Same
from holdfast_cli.importing.journal import Imported, Journal
from holdfast_cli.importing.many import Outcome
from holdfast_cli.importing.new_place import OPERATION, LockedHereError, NewPlace
from holdfast_cli.importing.plan import Plan, Planned
from holdfast_cli.importing.source import LockedThereError, OldLock, Source

LOCKED: Final = "locked"
"""The word for a state that was not imported because somebody holds a lock of it."""
_PAUSE: Final = 5.0
"""Seconds between two looks at locked states."""


def lock_info(text: str) -> LockInfo:
    """Return the lock info of a new lock; `text` is what clients show to whoever finds the state locked."""
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
        outcomes = many.for_each(states, self._outcome, "imported")
        until = time.monotonic() + wait
        while locked := [place for place, outcome in enumerate(outcomes) if outcome.word == LOCKED]:
            again = many.for_each([states[place] for place in locked], self._outcome, "tried again")
            for place, outcome in zip(locked, again, strict=True):
                outcomes[place] = outcome
            if time.monotonic() + _PAUSE > until:
                break
            time.sleep(_PAUSE)
        return outcomes

    def release_left(self) -> None:
        """Release the locks that a killed import has left."""
        many.for_each(self.journal.left, self._release_left, "released")

    def _release_left(self, state: str) -> None:
        entry = self.journal.of(state)
        if entry.held:
            self._release(state)
        if entry.closing and not entry.is_closed:
            with suppress(CommandError):
                self.source.unlock(state, entry.closing)
                self.journal.open(state)

    def _outcome(self, state: Planned) -> Outcome:
        name = state.name.value if state.name else ""
        if state.problem or state.name is None:
            return Outcome(state.id, name, "left out", state.problem, is_problem=True)
        try:
            outcome = self._copied(state.id, state.name, state.tags)
        except (LockedThereError, LockedHereError) as error:
            outcome = Outcome(state.id, name, LOCKED, str(error), is_problem=True)
        except CommandError as error:
            outcome = Outcome(state.id, name, "failed", str(error), is_problem=True)
        if self.journal.of(state.id).held:
            left = f"{outcome.text} A lock of the import may be left: the next run releases it.".lstrip()
            return replace(outcome, text=left, is_problem=True)
        return outcome

    def _copied(self, state: str, name: StateName, tags: Mapping[str, str]) -> Outcome:
        entry = self.journal.of(state)
        if entry.is_closed:
            return Outcome(state, name.value, "closed before")
        if done := self._done_before(state, name):
            return Outcome(state, name.value, done)
        lock = entry.lock if entry.name == name.value else None
        if lock is None:
            text = f"It is being imported into Holdfast as {name}."
            lock = OldLock(lock_info(text), self.source.prepare_lock(state))
        self.journal.hold(state, name.value, lock)
        try:
            self.source.lock(state, lock)
            return self._copied_under_lock(state, name, tags, lock)
        finally:
            self._release(state)

    def _done_before(self, state: str, name: StateName) -> str:
        """Return the word for a state that needs no copy, else ''. Doing nothing takes no lock."""
        imported = self._imported(state, name)
        if imported is None or not _has(imported.history, self.plan.history):
            return ""
        old = comparing.parse(state, self.source.read(state))
        match comparing.compare(old, self.place.describe(name), imported, lambda: self.place.read(name)):
            case Same():
                return "imported before"
            case InUse():
                return "in use"
            case Absent() | MovedOn() | Differs():
                return ""

    def _copied_under_lock(
        self, state: str, name: StateName, tags: Mapping[str, str], lock: OldLock
    ) -> Outcome:
        old = comparing.parse(state, self.source.read(state))
        workspace = self.place.workspace(name, len(old.body))
        if workspace:
            self.journal.hold(state, name.value, lock, workspace)
        self.place.lock(name, lock.info, workspace)
        verdict = comparing.compare(
            old, self.place.describe(name), self._imported(state, name), lambda: self.place.read(name)
        )
        match verdict:
            case InUse():
                return Outcome(state, name.value, "in use")
            case Differs(why):
                return Outcome(state, name.value, "differs", f"{state}: {why}", is_problem=True)
            case Same(version):
                word = "imported before"
            case _:
                version = self._written(name, old, lock, workspace)
                word = "imported" if isinstance(verdict, Absent) else "replaced"
        text = ""
        if tags and not self.place.tag(name, tags):
            text = f"{state}: its tags are left out, because {name} has one segment and so is no workspace."
        left_out = self._brought_history(state, name)
        done = Imported(name.value, version, old.revision.serial, old.revision.lineage, old.sha256)
        self.journal.imported(state, done if left_out else replace(done, history=self.plan.history))
        return Outcome(state, name.value, word, left_out or text, is_problem=bool(left_out))

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

    def _imported(self, state: str, name: StateName) -> Imported | None:
        """Return what was imported under this name; the plan may have named the state otherwise before."""
        imported = self.journal.of(state).imported
        return imported if imported and imported.name == name.value else None

    def _brought_history(self, state: str, name: StateName) -> str:
        """Import superseded versions, and return a sentence about those that cannot be imported, or ''."""
        left_out: list[str] = []
        for version in islice(self.source.versions(state), self.plan.history):
            try:
                self.place.import_version(name, version, self.source.address)
            except CommandError as error:
                left_out.append(str(error))
        if not left_out:
            return ""
        count = "1 earlier version is" if len(left_out) == 1 else f"{len(left_out)} earlier versions are"
        return f"{state}: {count} left out; the newest because: {left_out[0]}"

    def _release(self, state: str) -> None:
        """Release both locks of a state. What cannot be released stays in the journal, for the next run."""
        entry = self.journal.of(state)
        if entry.lock is None:
            return
        try:
            self.place.unlock(StateName(entry.name), entry.lock.info, entry.workspace)
        except CommandError:
            with suppress(CommandError):
                self.source.unlock(state, entry.lock)
            return
        with suppress(CommandError):
            self.source.unlock(state, entry.lock)
            self.journal.release(state)


def _has(imported: int | None, wanted: int | None) -> bool:
    """Return whether an imported history has as many versions as wanted; None is all."""
    return imported is None or (wanted is not None and imported >= wanted)

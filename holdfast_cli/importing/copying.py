"""Copy states from the source into the new place, under the locks of both places."""

import getpass
import socket
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Final

from holdfast import __version__, timestamp
from holdfast.names import StateName
from holdfast.state.lock_info import LockInfo
from holdfast_cli.errors import CommandError, UnavailableError
from holdfast_cli.importing import comparing, many
from holdfast_cli.importing.comparing import Absent, Content, Differs, InUse, Same
from holdfast_cli.importing.journal import Hold, Imported, Open, Release
from holdfast_cli.importing.many import LOCKED, Outcome
from holdfast_cli.importing.new_place import OPERATION
from holdfast_cli.importing.plan import Planned
from holdfast_cli.importing.run import Run
from holdfast_cli.importing.source import LockedThereError, OldLock

_PAUSE: Final = 5.0
"""Seconds between two looks at locked states."""
_RELEASE_AGAIN: Final = (
    "Run the command again, which tries to release them. If this message remains, release the locks in the "
    "source, and in Holdfast with 'holdfast lock break STATE'."
)


def lock_info(text: str) -> LockInfo:
    """Return the lock info of a new lock; clients that find the state locked show `text`."""
    return LockInfo(
        {
            "ID": str(uuid.uuid4()),
            "Operation": OPERATION,
            "Info": text,
            "Who": f"{_user()}@{socket.gethostname()}",
            "Version": __version__,
            "Created": timestamp.write(datetime.now(UTC)),
            "Path": "",
        }
    )


def _user() -> str:
    with suppress(OSError, KeyError):  # a container may run as a user without a name
        return getpass.getuser()
    return "unknown"


def copy(run: Run, wait: float) -> list[Outcome]:
    """Copy every state. Locked states are tried again at the end, for `wait` seconds."""
    many.for_each(run.journal.left, partial(_release_left, run), "released")
    states = run.plan.states
    outcomes = run.for_states(_copied, "imported")
    until = time.monotonic() + wait
    while locked := [place for place, outcome in enumerate(outcomes) if outcome.word == LOCKED]:
        of_locked = [states[place] for place in locked]
        again = run.for_states(_copied, "tried again", of_locked)
        for place, outcome in zip(locked, again, strict=True):
            outcomes[place] = outcome
        if time.monotonic() + _PAUSE > until:
            break
        time.sleep(_PAUSE)
    return outcomes + _still_left(run)


def _release_left(run: Run, state: str) -> None:
    """Release the locks that a killed import has left, also of a state that the plan has no longer."""
    entry = run.journal.of(state)
    if entry.is_held:
        _release(run, state)
    if entry.closing and not entry.is_closed:
        with suppress(CommandError):
            run.unlock(state, entry.closing)
            run.journal.note(Open(state))


def _still_left(run: Run) -> list[Outcome]:
    planned = {state.id for state in run.plan.states}
    return [
        Outcome(
            state,
            run.journal.of(state).name,
            "left locked",
            f"{state} is no longer in the plan, but the import may still hold locks of this state. "
            f"{_RELEASE_AGAIN}",
            is_problem=True,
        )
        for state in run.journal.left
        if state not in planned
    ]


def _copied(run: Run, state: Planned, name: StateName) -> Outcome:
    entry = run.journal.of(state.id)
    if entry.may_hold_a_lock:  # another lock would replace it in the journal
        raise CommandError(f"the locks of an earlier run could not be released. {_RELEASE_AGAIN}")
    was_imported = entry.is_closed or entry.imported_as(name)
    if was_imported and (done := _done_before(run, state.id, name)):
        return done
    # The same ID again: a late request of a killed run then finds its own lock.
    info = entry.hold.lock.info if entry.hold and entry.hold.name == name.value else None
    info = info or lock_info(f"The state is being imported into Holdfast as {name}.")
    lock = OldLock(info, run.source.prepare_lock(state.id))
    run.journal.note(Hold(state.id, name.value, lock))
    try:
        run.source.lock(state.id, lock)
    except LockedThereError:
        run.journal.note(Release(state.id))
        raise
    except BaseException:
        _release(run, state.id)
        raise
    try:
        return _copied_under_lock(run, state.id, name, state.tags, lock)
    finally:
        if entry.is_held:
            _release(run, state.id)


def _done_before(run: Run, state: str, name: StateName) -> Outcome | None:
    """Return the outcome for a state that needs no copy, else None. Doing nothing takes no lock."""
    entry = run.journal.of(state)
    compared = run.compared(state, name)
    is_done = isinstance(compared.verdict, Same | InUse)
    if entry.is_closed:
        if is_done and entry.imported_as(name):
            return Outcome(state, name.value, "closed before")
        text = (
            f"'holdfast import close' has locked {state} in the source, but {name} in Holdfast is missing or "
            "has other content. Run 'holdfast import reopen', which releases the lock, and then 'holdfast "
            "import run' again."
        )
        return Outcome(state, name.value, "closed", text, is_problem=True)
    if not is_done:
        return None
    word = "imported before" if isinstance(compared.verdict, Same) else "in use"
    return Outcome(state, name.value, word)


def _copied_under_lock(
    run: Run, state: str, name: StateName, tags: Mapping[str, str], lock: OldLock
) -> Outcome:
    try:
        old = comparing.read_old(run.source, state)
        if workspace := run.place.workspace(name, len(old.body)):
            run.journal.note(Hold(state, name.value, lock, workspace))
        run.place.lock(name, lock.info, workspace)
    except UnavailableError:
        raise
    except CommandError:  # nothing is held in the new place
        run.unlock(state, lock)
        run.journal.note(Release(state))
        raise
    compared = run.compared(state, name, old)
    match compared.verdict:
        case InUse(version):
            run.journal.note(_imported(state, name, version, old))
            return Outcome(state, name.value, "in use")
        case Differs(why):
            return Outcome(state, name.value, "differs", f"{state}: {why}.", is_problem=True)
        case Same(version):
            word = "imported before"
        case _:
            version = _written(run, name, old, lock, workspace)
            word = "imported" if isinstance(compared.verdict, Absent) else "replaced"
    text = ""
    if tags and not run.place.tag(name, tags):
        text = (
            f"{state}: the tags are not imported. The name {name} has only one segment, so the state is "
            "not a workspace, and only workspaces have tags."
        )
    run.journal.note(_imported(state, name, version, old))
    return Outcome(state, name.value, word, text)


def _written(run: Run, name: StateName, old: Content, lock: OldLock, workspace: str) -> str:
    """Write the state, read it back, and return its version."""
    run.place.write(name, old.body, old.revision, lock.info, workspace)
    version, sha256 = run.place.read(name)
    if sha256 != old.sha256:
        raise CommandError(
            f"The state that was read back from {name} is not the imported state. Do not use {name}. "
            f"'holdfast state history {name}' shows its versions."
        )
    return version


def _release(run: Run, state: str) -> None:
    """Release both locks of a state. A lock that cannot be released stays in the journal."""
    hold = run.journal.of(state).hold
    if hold is None:
        return
    released = 0
    with suppress(CommandError):
        run.place.unlock(StateName(hold.name), hold.lock.info, hold.workspace)
        released += 1
    with suppress(CommandError):
        run.unlock(state, hold.lock)
        released += 1
    if released == 2:
        with suppress(CommandError):  # then the next run releases them again
            run.journal.note(Release(state))


def _imported(state: str, name: StateName, version: str, old: Content) -> Imported:
    return Imported(state, name.value, version, old.revision.serial, old.revision.lineage, old.sha256)

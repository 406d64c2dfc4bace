"""Compare a state in the source with the state of its new name, and decide whether an import may write."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holdfast.errors import InvalidState
from holdfast.state import document
from holdfast.state.document import Revision
from holdfast_cli.api.state_texts import moment, writer
from holdfast_cli.errors import CommandError
from holdfast_cli.importing.journal import Imported
from holdfast_cli.importing.source import Source

if TYPE_CHECKING:
    from holdfast.api import v1

_REMOVE: Final = "remove the state's table from the plan"


@dataclass(frozen=True, slots=True)
class Content:
    """A state in the source. `body` is empty where nobody needs it any more."""

    body: bytes
    revision: Revision
    sha256: str


@dataclass(frozen=True, slots=True)
class Absent:
    """The new name has no state: the import writes it."""


@dataclass(frozen=True, slots=True)
class Same:
    """Both places have the same bytes; `version` is the version in the new place."""

    version: str


@dataclass(frozen=True, slots=True)
class MovedOn:
    """Only the source was written since the import: the import may replace the imported version."""


@dataclass(frozen=True, slots=True)
class InUse:
    """Only the new place was written since the import of `version`: there is nothing to import."""

    version: str


@dataclass(frozen=True, slots=True)
class Differs:
    """The import may not write; `why` says which state is there, and who wrote it."""

    why: str


@dataclass(frozen=True, slots=True)
class Taken(Differs):
    """The new name has another state; `holder` says which, as the beginning of a sentence."""

    holder: str


Verdict = Absent | Same | MovedOn | InUse | Differs


@dataclass(frozen=True, slots=True)
class Compared:
    """Both states, and the decision about them."""

    old: Content
    new: "v1.StateDescription | None"
    verdict: Verdict


class NotAStateError(CommandError):
    """The source has something else than a state; `why` says what it is, as a sentence."""

    def __init__(self, message: str, why: str) -> None:
        super().__init__(message)
        self.why = why


def read_old(source: Source, state: str) -> Content:
    """Read a state in the source; raise `CommandError` if it cannot be imported."""
    body = source.read(state)
    if body is None:
        raise CommandError(f"{state} does not exist in the source: check the source's address, or {_REMOVE}.")
    if not body:
        raise NotAStateError(
            f"{state} is empty in the source, so there is nothing to import: {_REMOVE}.", "it is empty."
        )
    try:
        found = document.parse(body)
    except InvalidState as error:
        why = error.message[:1].lower() + error.message[1:]
        raise NotAStateError(
            f"{state} is not a complete state of Terraform 0.12 or later: {why} Repair it in the source, or "
            f"{_REMOVE}.",
            why,
        ) from None
    return Content(body, found.revision, hashlib.sha256(body).hexdigest())


def compare(
    old: Content,
    new: "v1.StateDescription | None",
    imported: Imported | None,
    read_new: Callable[[], tuple[str, str]],
    find_old: Callable[[], str],
    *,
    is_ours: bool,
) -> Verdict:
    """Decide whether an import may write.

    Args:
        new: the state of the new name; None if it has no current version.
        imported: the version that the journal has for this state and name.
        read_new: returns the current version's ID and SHA-256; called only if the serials are equal.
        find_old: returns the version of the new name's history that has the source's bytes, or ''.
        is_ours: whether an import of this state wrote the current version.
    """
    from holdfast.api import v1

    if new is None:
        if imported is None:
            return Absent()
        return Differs(
            f"{imported.name} was deleted in Holdfast after its import. Bring the state back with 'holdfast "
            f"state undelete {imported.name}', or choose another name"
        )
    serial, written = old.revision.serial, f"written by {_writer(new)}"
    # An empty lineage matches any for clients; an import compares exactly.
    if new.serial is None or old.revision.lineage != (new.lineage or ""):
        holder = (
            f"{new.name} is another state in Holdfast, with the lineage {new.lineage or 'unknown'}, {written}"
        )
        return Taken(f"{holder}. Choose another name, or {_REMOVE}", holder)
    if serial == new.serial:
        is_known = imported is not None and imported.version == new.version
        version, sha256 = (imported.version, imported.sha256) if imported and is_known else read_new()
        if sha256 == old.sha256:
            # A version that was never acknowledged does not count: the import writes it again.
            return MovedOn() if new.status == v1.NEVER_ACKNOWLEDGED else Same(version)
    if is_ours and serial > new.serial:
        return MovedOn()
    if imported is not None and imported.sha256 == old.sha256 and not is_ours:
        return InUse(imported.version)
    if not is_ours and (version := find_old()):  # another journal has imported it
        return InUse(version)
    both = f"the source has serial {serial}, and {new.name} has serial {new.serial}, {written}"
    if is_ours:
        return Differs(
            f"{both}. The state in the source went back to an earlier version, or changed without a new "
            "serial. Compare the two states. If the source has the right one, push it there with a serial "
            f"above {new.serial}, and import it again"
        )
    return Differs(
        f"clients wrote the state in the source and in Holdfast: {both}. Compare the two states, and push "
        "the right state to the source and to Holdfast"
    )


def _writer(new: "v1.StateDescription") -> str:
    return f"{writer(new) or 'another program'} at {moment(new, 'modified') or 'an unknown time'}"

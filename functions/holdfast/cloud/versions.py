"""Versions of a workspace's state, and their outputs. A version that is gone raises `NoVersion`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from holdfast.access import Action
from holdfast.cloud import workspaces
from holdfast.cloud.ids import OutputId, VersionId
from holdfast.cloud.names import organization_and_workspace
from holdfast.errors import InvalidState, NoState, NoVersion, UnreadableState
from holdfast.names import StateName
from holdfast.s3.objects import Object, ObjectVersion
from holdfast.state import document, fence, history
from holdfast.state.current_state import parse_metadata
from holdfast.state.document import Output, Revision
from holdfast.state.history import Status
from holdfast.state.read import require_not_empty
from holdfast.work import Work


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a state.

    Attributes:
        revision: None if the metadata does not contain it.
        was_refused: whether the history shows that its write was refused.
    """

    id: VersionId
    revision: Revision | None
    created_at: datetime
    was_refused: bool = False


@dataclass(frozen=True, slots=True)
class Outputs:
    """The outputs of a version by name; None if the client encrypted the state."""

    version: VersionId
    values: Mapping[str, Output] | None


def current(work: Work) -> Version:
    """Return the current version, without its content.

    Raises:
        NoState: the state does not exist.
        UnreadableState: the current object has zero bytes.
    """
    work.require(Action.READ)
    version = work.store.read_version(work.name.state_key)
    if version is None:
        raise _no_state(work)
    require_not_empty(version.size)
    return _described(work.name, version)


def listed(work: Work, first: int, count: int) -> tuple[Sequence[Version], int]:
    """Return versions without their content, the newest first, and how many there are.

    A workspace whose state was deleted has the versions from before.

    Raises:
        NoWorkspace: there is neither a version nor a workspace.
    """
    found, total = history.numbered(work, first, count)
    if total == 0:
        workspaces.require_exists(work)
    return [
        Version(
            VersionId(work.name, each.entry.id, each.entry.size or 0),
            each.state.revision if each.state else None,
            each.entry.last_modified,
            was_refused=each.status is Status.NEVER_ACKNOWLEDGED,
        )
        for each in found
    ], total


def describe(work: Work, version_id: str) -> Version:
    """Return a version, without its content."""
    work.require(Action.READ)
    version = work.store.read_version(work.name.state_key, version_id)
    if version is None:
        raise _gone()
    return _described(work.name, version)


def read(work: Work, version_id: str) -> bytes:
    """Return the exact bytes of a version."""
    work.require(Action.READ)
    return _read(work, version_id).body


def outputs(work: Work) -> Outputs:
    """Read the outputs of the current version.

    Raises:
        NoState: the state does not exist.
        UnreadableState: the current object is not a state document.
    """
    work.require(Action.READ_OUTPUTS)
    stored = work.store.read(work.name.state_key)
    if stored is None:
        raise _no_state(work)
    version = VersionId(work.name, stored.version.version_id, stored.version.size)
    return Outputs(version, _outputs(stored))


def output(work: Work, output_id: OutputId) -> Output:
    """Read one output of a version. An unknown output raises `NoVersion`, like a version that is gone.

    Raises:
        UnreadableState: the version is not a state document.
    """
    work.require(Action.READ_OUTPUTS)
    values = _outputs(_read(work, output_id.version.version_id))
    if values is None or output_id.output not in values:
        raise NoVersion(
            "The version of the state that this ID names does not have this output. The state may have "
            "changed since the client read its outputs. Run the command again, so that the client reads the "
            "outputs of the current version."
        )
    return values[output_id.output]


def _outputs(stored: Object) -> Mapping[str, Output] | None:
    require_not_empty(len(stored.body))
    try:
        return document.outputs(stored.body)
    except InvalidState as error:
        raise UnreadableState(f"The outputs of this state cannot be read. {error.message}") from None


def _read(work: Work, version_id: str) -> Object:
    stored = work.store.read(work.name.state_key, version_id)
    if stored is None:
        raise _gone()
    return stored


def _described(name: StateName, version: ObjectVersion) -> Version:
    state = parse_metadata(version)
    which = VersionId(name, version.version_id, version.size)
    return Version(which, state.revision if state else None, version.last_modified)


def _gone() -> NoVersion:
    return NoVersion(
        "The version of the state that this ID names was removed after the client had requested the ID. Run "
        "the command again, so that the client requests the current version."
    )


def _no_state(work: Work) -> NoState:
    fence.require_creatable(work)
    organization, workspace = organization_and_workspace(work.name) or ("", work.name.value)
    return NoState(f"The workspace '{workspace}' of the organization '{organization}' has no state yet.")

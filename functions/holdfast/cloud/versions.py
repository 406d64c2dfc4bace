"""Versions of a workspace's state, and their outputs. A version that is gone raises `NoVersion`."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from holdfast.access import Action, Caller
from holdfast.cloud.ids import OutputId, VersionId, WorkspaceId
from holdfast.cloud.names import organization_and_workspace
from holdfast.errors import InvalidState, NoState, NoVersion, UnreadableState
from holdfast.names import StateName
from holdfast.s3.store import Object, ObjectVersion, Store
from holdfast.state import document, fence
from holdfast.state.current_state import noted
from holdfast.state.document import Output, Revision
from holdfast.state.read import require_not_empty


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a state; its revision is None if the metadata does not contain it."""

    id: VersionId
    revision: Revision | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Outputs:
    """The outputs of a version by name; None if the client encrypted the state."""

    version: VersionId
    values: Mapping[str, Output] | None


def current(store: Store, name: StateName, caller: Caller, *, declared_only: bool = False) -> Version:
    """Return the current version, without its content.

    Raises:
        NoState: the state does not exist.
        UnreadableState: the current object has zero bytes.
    """
    caller.require(Action.READ, name)
    version = store.read_version(name.state_key)
    if version is None:
        raise _no_state(store, name, caller, declared_only=declared_only)
    require_not_empty(version.size)
    return _described(name, version)


def describe(store: Store, version: VersionId, caller: Caller) -> Version:
    caller.require(Action.READ, version.name)
    found = store.read_version(version.name.state_key, version.version_id)
    if found is None:
        raise _gone()
    return _described(version.name, found)


def read(store: Store, version: VersionId, caller: Caller) -> bytes:
    """Return the exact bytes of a version."""
    caller.require(Action.READ, version.name)
    return _read(store, version).body


def outputs(store: Store, workspace: WorkspaceId, caller: Caller, *, declared_only: bool = False) -> Outputs:
    """Read the outputs of the current version.

    Raises:
        NoState: the state does not exist.
        UnreadableState: the current object is not a state document.
    """
    name = workspace.name
    caller.require(Action.READ_OUTPUTS, name)
    found = store.read(name.state_key)
    if found is None:
        raise _no_state(store, name, caller, declared_only=declared_only)
    version = VersionId(name, found.version.version_id, found.version.size)
    return Outputs(version, _outputs(found))


def output(store: Store, output_id: OutputId, caller: Caller) -> Output:
    """Read one output of a version. An unknown output raises `NoVersion`, like a version that is gone.

    Raises:
        UnreadableState: the version is not a state document.
    """
    version = output_id.version
    caller.require(Action.READ_OUTPUTS, version.name)
    values = _outputs(_read(store, version))
    if values is None or output_id.output not in values:
        raise NoVersion("This version of the state does not have this output. Run the command again.")
    return values[output_id.output]


def _outputs(found: Object) -> Mapping[str, Output] | None:
    require_not_empty(len(found.body))
    try:
        return document.outputs(found.body)
    except InvalidState as error:
        raise UnreadableState(f"The outputs of the current state cannot be read. {error.message}") from None


def _read(store: Store, version: VersionId) -> Object:
    found = store.read(version.name.state_key, version.version_id)
    if found is None:
        raise _gone()
    return found


def _described(name: StateName, version: ObjectVersion) -> Version:
    state = noted(version)
    which = VersionId(name, version.version_id, version.size)
    return Version(which, state.revision if state else None, version.last_modified)


def _gone() -> NoVersion:
    return NoVersion("This version of the state is gone. Run the command again.")


def _no_state(store: Store, name: StateName, caller: Caller, *, declared_only: bool) -> NoState:
    fence.require_creatable(store, name, caller, declared_only=declared_only)
    organization, workspace = organization_and_workspace(name) or ("", name.value)
    return NoState(f"The workspace '{workspace}' of the organization '{organization}' has no state yet.")

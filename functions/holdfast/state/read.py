"""Read a state or one of its versions, whole or reduced to its outputs."""

from holdfast.access import Action, Caller
from holdfast.errors import InvalidState, NoState, NoSuchVersion, TooLarge, UnreadableState
from holdfast.names import StateName
from holdfast.s3.store import Larger, Object, ObjectVersion, Store
from holdfast.state import document, fence
from holdfast.state.document import Mask
from holdfast.state.memory import Memory
from holdfast.state.operator import no_such_version


def read(
    store: Store,
    name: StateName,
    caller: Caller,
    memory: Memory | None = None,
    *,
    declared_only: bool = False,
) -> bytes | None:
    """Return the exact bytes of the current state, which are never empty; None if it does not exist.

    Raises:
        NotAllowed: the caller may not read this state. If they may read its outputs, the message contains the
            address of the outputs.
        UnreadableState: the current object has zero bytes.
    """
    caller.require(Action.READ, name)
    return _current(store, name, caller, memory, declared_only=declared_only)


def read_outputs(
    store: Store,
    name: StateName,
    caller: Caller,
    memory: Memory | None = None,
    *,
    mask: Mask | None = None,
    declared_only: bool = False,
) -> bytes | None:
    """Return the current state reduced to its outputs, without the masked values; None without a state.

    Raises:
        NotAllowed: the state is not in the caller's scope, or its client encrypted it.
    """
    caller.require(Action.READ_OUTPUTS, name)
    body = _current(store, name, caller, memory, declared_only=declared_only)
    return None if body is None else _reduced(body, mask)


def read_version(
    store: Store, name: StateName, version_id: str | None, caller: Caller, *, limit: int
) -> Object | ObjectVersion:
    """Read a version with its content. If it is larger than the limit, read only its metadata."""
    caller.require(Action.READ, name)
    found: Object | Larger | ObjectVersion | None = store.read_at_most(name.state_key, limit, version_id)
    if isinstance(found, Larger):
        found = store.read_version(name.state_key, version_id)
    if found is None:
        raise _missing(store, name, version_id, caller)
    return found


def read_outputs_of_version(
    store: Store, name: StateName, version_id: str | None, caller: Caller, *, limit: int
) -> tuple[ObjectVersion, bytes]:
    """Return a version's metadata, and its document reduced to its outputs.

    Raises:
        NotAllowed: the state is not in the caller's scope, or its client encrypted it.
    """
    caller.require(Action.READ_OUTPUTS, name)
    found = store.read_at_most(name.state_key, limit, version_id)
    if found is None:
        raise _missing(store, name, version_id, caller)
    if isinstance(found, Larger):
        raise TooLarge(
            f"The state has {found.size} bytes; one of at most {limit} is reduced to its outputs. Read it "
            "whole, with a token that has the role 'reader'."
        )
    return found.version, _reduced(found.body)


def _missing(
    store: Store, name: StateName, version_id: str | None, caller: Caller
) -> NoState | NoSuchVersion:
    if version_id is None:
        fence.require_creatable(store, name, caller)
        return NoState(f"There is no state '{name}'.")
    return no_such_version(name, version_id)


def _reduced(body: bytes, mask: Mask | None = None) -> bytes:
    try:
        return document.outputs_only(body, mask)
    except InvalidState as error:
        raise UnreadableState(f"The state cannot be reduced to its outputs. {error.message}") from None


def _current(
    store: Store, name: StateName, caller: Caller, memory: Memory | None, *, declared_only: bool
) -> bytes | None:
    found = store.read(name.state_key)
    if memory:
        memory.learn(name, found.version if found else None)
    if found is None:
        fence.require_creatable(store, name, caller, declared_only=declared_only)
        return None
    require_not_empty(len(found.body))
    return found.body


def require_not_empty(size: int) -> None:
    """Raise `UnreadableState` if a version has zero bytes.

    Clients would take an empty body for "no state yet", and create everything.
    """
    if not size:
        raise UnreadableState(
            "The current object of this state has zero bytes, so it is not a state document. Go back to an "
            "earlier version: 'holdfast state history' shows them, 'holdfast state restore' writes one again."
        )

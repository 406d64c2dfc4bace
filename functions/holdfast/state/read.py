"""Read a state or one of its versions, whole or reduced to its outputs."""

from holdfast.access import Action, Caller
from holdfast.errors import InvalidState, NoState, NoSuchVersion, TooLarge, UnreadableState
from holdfast.names import StateName
from holdfast.s3.store import Larger, Object, ObjectVersion, Store
from holdfast.state import declared, document
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
    """Read the current state, byte for byte; None if there is no state yet. It is never empty.

    Raises:
        NotAllowed: the caller may not read this state; the message says where its outputs are, if it may
            read those.
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
    declared_only: bool = False,
) -> bytes | None:
    """Read the current state reduced to its outputs, for every role; None if there is no state yet.

    Raises:
        NotAllowed: the caller may not read its outputs, or its client encrypted it.
    """
    caller.require(Action.READ_OUTPUTS, name)
    body = _current(store, name, caller, memory, declared_only=declared_only)
    return None if body is None else _reduced(body)


def read_version(
    store: Store, name: StateName, version_id: str | None, caller: Caller, *, limit: int
) -> Object | ObjectVersion:
    """Read a version, byte for byte; of one above the limit, only what S3 tells about it."""
    caller.require(Action.READ, name)
    found: Object | Larger | ObjectVersion | None = store.read_at_most(name.state_key, limit, version_id)
    if isinstance(found, Larger):
        found = store.read_version(name.state_key, version_id)
    if found is None:
        raise _missing(name, version_id)
    return found


def read_outputs_of_version(
    store: Store, name: StateName, version_id: str | None, caller: Caller, *, limit: int
) -> tuple[ObjectVersion, bytes]:
    """Read a version reduced to its outputs; return also what S3 tells about it.

    Raises:
        NotAllowed: the caller may not read its outputs, or its client encrypted it.
    """
    caller.require(Action.READ_OUTPUTS, name)
    found = store.read_at_most(name.state_key, limit, version_id)
    if found is None:
        raise _missing(name, version_id)
    if isinstance(found, Larger):
        raise TooLarge(
            f"The state has {found.size} bytes; one of at most {limit} is reduced to its outputs. Read it "
            "whole, with a token that has the role 'reader'."
        )
    return found.version, _reduced(found.body)


def _missing(name: StateName, version_id: str | None) -> NoState | NoSuchVersion:
    if version_id is None:
        return NoState(f"There is no state '{name}'.")
    return no_such_version(name, version_id)


def _reduced(body: bytes) -> bytes:
    try:
        return document.outputs_only(body)
    except InvalidState as error:
        raise UnreadableState(f"The state cannot be reduced to its outputs. {error.message}") from None


def _current(
    store: Store, name: StateName, caller: Caller, memory: Memory | None, *, declared_only: bool
) -> bytes | None:
    found = store.read(name.state_key)
    if memory:
        memory.learn(name, found.version if found else None)
    if found is None:
        if declared_only:
            declared.require_record(store, name, caller)
        return None
    require_not_empty(len(found.body))
    return found.body


def require_not_empty(size: int) -> None:
    """Check that a version has bytes: clients take an empty body for "no state yet", and create everything.

    Raises:
        UnreadableState: it has none.
    """
    if not size:
        raise UnreadableState(
            "The current object of this state has zero bytes, so it is not a state document. Go back to an "
            "earlier version: 'holdfast state history' shows them, 'holdfast state restore' writes one again."
        )

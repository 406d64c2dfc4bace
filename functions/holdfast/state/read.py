"""Read a state or one of its versions, whole or reduced to its outputs."""

from holdfast.access import Action
from holdfast.errors import InvalidState, NoState, NoSuchVersion, TooLarge, UnreadableState
from holdfast.s3.objects import Larger, Object, ObjectVersion
from holdfast.state import document, fence
from holdfast.state.document import Mask
from holdfast.state.operator import no_such_version
from holdfast.work import Work


def read(work: Work) -> bytes | None:
    """Return the exact bytes of the current state, which are never empty; None if it does not exist.

    Raises:
        NotAllowed: the caller may not read this state. If they may read its outputs, the message contains the
            address of the outputs.
        UnreadableState: the current object has zero bytes.
    """
    work.require(Action.READ)
    return _current(work)


def read_outputs(work: Work, mask: Mask | None = None) -> bytes | None:
    """Return the current state reduced to its outputs, without the masked values; None without a state.

    Raises:
        NotAllowed: the state is not in the caller's scope, or its client encrypted it.
    """
    work.require(Action.READ_OUTPUTS)
    body = _current(work)
    return None if body is None else _reduced(body, mask)


def read_version(work: Work, version_id: str | None, *, limit: int) -> Object | ObjectVersion:
    """Read a version with its content. If it is larger than the limit, read only its metadata."""
    work.require(Action.READ)
    key = work.name.state_key
    stored: Object | Larger | ObjectVersion | None = work.store.read_at_most(key, limit, version_id)
    if isinstance(stored, Larger):
        stored = work.store.read_version(key, version_id)
    if stored is None:
        raise _missing(work, version_id)
    return stored


def read_outputs_of_version(work: Work, version_id: str | None, *, limit: int) -> tuple[ObjectVersion, bytes]:
    """Return a version's metadata, and its document reduced to its outputs.

    Raises:
        NotAllowed: the state is not in the caller's scope, or its client encrypted it.
    """
    work.require(Action.READ_OUTPUTS)
    stored = work.store.read_at_most(work.name.state_key, limit, version_id)
    if stored is None:
        raise _missing(work, version_id)
    if isinstance(stored, Larger):
        raise TooLarge(
            f"The state has {stored.size} bytes, but Holdfast can return the outputs only of states of at "
            f"most {limit} bytes. Read the whole state, with credentials that have the role 'reader'."
        )
    return stored.version, _reduced(stored.body)


def _missing(work: Work, version_id: str | None) -> NoState | NoSuchVersion:
    if version_id is None:
        fence.require_not_frozen(work)
        return NoState(
            f"There is no state '{work.name}'. 'holdfast state list' shows the states in your scope, and "
            "with '--deleted' the deleted states."
        )
    return no_such_version(work.name, version_id)


def _reduced(body: bytes, mask: Mask | None = None) -> bytes:
    try:
        return document.outputs_only(body, mask)
    except InvalidState as error:
        raise UnreadableState(f"Holdfast cannot read the outputs of this state. {error.message}") from None


def _current(work: Work) -> bytes | None:
    stored = work.store.read(work.name.state_key)
    if work.memory:
        work.memory.learn(work.name, stored.version if stored else None)
    if stored is None:
        fence.require_creatable(work)
        return None
    require_not_empty(len(stored.body))
    return stored.body


def require_not_empty(size: int) -> None:
    """Raise `UnreadableState` if a version has zero bytes.

    Clients would take an empty body for "no state yet", and create everything.
    """
    if not size:
        raise UnreadableState(
            "The object of this state has zero bytes, so it is not a state document. 'holdfast state "
            "history' shows the other versions, and a maintainer can restore one with 'holdfast state "
            "restore'."
        )

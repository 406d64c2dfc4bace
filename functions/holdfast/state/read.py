"""Read the current state, whole or reduced to its outputs."""

from holdfast.access import Action, Caller
from holdfast.errors import InvalidState, UnreadableState
from holdfast.names import StateName
from holdfast.s3.store import Store
from holdfast.state import document


def read(store: Store, name: StateName, caller: Caller) -> bytes | None:
    """Read the current state, byte for byte; reduced to its outputs for a caller who may see no more.

    Returns:
        The document, or None if there is no state yet.

    Raises:
        NotAllowed: the caller may not read this state.
        UnreadableState: the current object is not a state document, so it cannot be reduced.
        OutcomeUnknown: S3 did not answer in time.
    """
    whole = caller.may(Action.READ, name)
    if not whole:
        caller.require(Action.READ_OUTPUTS, name)
    found = store.read(name.state_key)
    if found is None or not found.body:
        return None
    if whole:
        return found.body
    try:
        return document.outputs_only(found.body)
    except InvalidState as error:
        raise UnreadableState(
            f"The current state cannot be reduced to its outputs. {error.message}"
        ) from None

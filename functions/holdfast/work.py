"""The work of a verb: one state, for one caller, in one request."""

from dataclasses import dataclass

from holdfast.access import Action, Caller
from holdfast.memory import Memory
from holdfast.names import StateName
from holdfast.policy import Policy
from holdfast.s3.store import Store


@dataclass(frozen=True, slots=True)
class Work:
    """One caller at one state, in one request.

    Attributes:
        store: the state bucket, within the budget of the invocation.
        policy: the decisions of the team. A field that the function does not declare raises `KeyError`.
        memory: the process's cache of current versions; None if the function has none.
    """

    store: Store
    name: StateName
    caller: Caller
    policy: Policy
    memory: Memory | None = None

    @property
    def address(self) -> str:
        """The place of the state's object, as `<bucket>/<key>`."""
        return f"{self.store.bucket}/{self.name.state_key}"

    def require(self, action: Action) -> None:
        """Raise `NotAllowed` unless the caller may do an action to the state."""
        self.caller.require(action, self.name)

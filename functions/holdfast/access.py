"""Who may do what to which states: roles, scopes and callers."""

from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from fnmatch import fnmatchcase

from holdfast.errors import InvalidName, NotAllowed
from holdfast.names import StateName, split


class Action(Enum):
    READ_OUTPUTS = auto()
    READ = auto()
    LOCK = auto()
    UNLOCK = auto()
    WRITE = auto()
    FORCE_UNLOCK = auto()
    DELETE = auto()
    UNDELETE = auto()
    RESTORE = auto()
    FREEZE = auto()
    READ_ACTIVITY = auto()


class Role(StrEnum):
    """A named set of actions. Each role includes the actions of the role before it."""

    OUTPUTS = "outputs"
    READER = "reader"
    WRITER = "writer"
    MAINTAINER = "maintainer"


_OUTPUTS = frozenset({Action.READ_OUTPUTS})
_READER = _OUTPUTS | {Action.READ}
_WRITER = _READER | {Action.LOCK, Action.UNLOCK, Action.WRITE}
_MAINTAINER = _WRITER | {
    *(Action.FORCE_UNLOCK, Action.DELETE, Action.UNDELETE, Action.RESTORE),
    *(Action.FREEZE, Action.READ_ACTIVITY),
}


def allowed(role: Role) -> frozenset[Action]:
    match role:
        case Role.OUTPUTS:
            return _OUTPUTS
        case Role.READER:
            return _READER
        case Role.WRITER:
            return _WRITER
        case Role.MAINTAINER:
            return _MAINTAINER


def check_pattern(pattern: str) -> str:
    """Return a scope pattern unchanged, or raise `ValueError` if it cannot match any valid state name.

    `*` alone covers every state, and a trailing `/*` everything below. Elsewhere `*` does not match a `/`.
    The message of the `ValueError` names the broken rule.
    """
    try:
        # Not `parse`: a scope such as 'holdfast-doctor/*' may cover reserved names.
        split(pattern.replace("*", "x"))
    except InvalidName as error:
        raise ValueError(
            f"the scope pattern {pattern!r} covers no possible state, as 'network/*' would: {error.message}"
        ) from None
    return pattern


def matches(pattern: str, name: StateName) -> bool:
    """Return whether a scope pattern covers a state.

    >>> from holdfast.names import parse
    >>> matches("network/*", parse("network/prod/eu")), matches("*/prod", parse("network/eu/prod"))
    (True, False)
    """
    if pattern == "*":
        return True
    wanted = pattern.split("/")
    segments = name.value.split("/")
    if wanted[-1] == "*" and len(segments) > len(wanted):
        segments = segments[: len(wanted)]
    return len(wanted) == len(segments) and all(map(fnmatchcase, segments, wanted))


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated caller. Their role applies to the states that match a pattern of `scope`.

    Attributes:
        principal: the same in every retry, such as `token:3f9a…`.
    """

    principal: str
    role: Role
    scope: tuple[str, ...]

    def may(self, action: Action, name: StateName) -> bool:
        return action in allowed(self.role) and any(matches(pattern, name) for pattern in self.scope)

    def require(self, action: Action, name: StateName) -> None:
        """Raise `NotAllowed` if the role does not allow the action, or the scope does not cover the state.

        If the caller may only read the state's outputs, the message contains the address of the outputs.
        """
        if action is Action.READ and not self.may(action, name) and self.may(Action.READ_OUTPUTS, name):
            raise NotAllowed(
                f"The role '{self.role}' of {self.principal} reads no whole state. Its outputs are at "
                f"/outputs/{name}; for the rest use a token with the role 'reader'."
            )
        self.require_role(action)
        if not self.may(action, name):
            raise NotAllowed(
                f"The scope of {self.principal} does not cover the state '{name}'; use a token that does."
            )

    def require_role(self, action: Action) -> None:
        """Raise `NotAllowed` if the role does not allow the action; the scope is not checked."""
        if action not in allowed(self.role):
            enough = next(role for role in Role if action in allowed(role))
            verb = action.name.lower().replace("_", " ")
            raise NotAllowed(
                f"The role '{self.role}' of {self.principal} does not allow to {verb}; "
                f"use a token with the role '{enough}'."
            )

"""Who may do what to which states: roles, scopes and callers."""

from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from fnmatch import fnmatchcase

from holdfast.errors import InvalidName, NotAllowed
from holdfast.names import StateName, parse


class Action(Enum):
    """What can be done to a state."""

    READ_OUTPUTS = auto()
    READ = auto()
    LOCK = auto()
    UNLOCK = auto()
    WRITE = auto()
    FORCE_UNLOCK = auto()
    DELETE = auto()


class Role(StrEnum):
    """A named set of actions; each includes the one before it."""

    OUTPUTS = "outputs"
    READER = "reader"
    WRITER = "writer"
    MAINTAINER = "maintainer"


_OUTPUTS = frozenset({Action.READ_OUTPUTS})
_READER = _OUTPUTS | {Action.READ}
_WRITER = _READER | {Action.LOCK, Action.UNLOCK, Action.WRITE}
_MAINTAINER = _WRITER | {Action.FORCE_UNLOCK, Action.DELETE}

_ALLOWED = {
    Role.OUTPUTS: _OUTPUTS,
    Role.READER: _READER,
    Role.WRITER: _WRITER,
    Role.MAINTAINER: _MAINTAINER,
}


def check_pattern(pattern: str) -> str:
    """Return a scope pattern unchanged if a state can have a name that it covers.

    `*` alone is every state, a trailing `/*` everything below, elsewhere `*` stays within a segment.

    Raises:
        ValueError: with the rule that it broke.
    """
    try:
        parse(pattern.replace("*", "x"))
    except InvalidName as error:
        raise ValueError(
            f"the scope pattern {pattern!r} covers no possible state, as 'network/*' would: {error.message}"
        ) from None
    return pattern


def matches(pattern: str, name: StateName) -> bool:
    """Whether a scope pattern covers a state.

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
    """A verified caller.

    Attributes:
        principal: who it is, stable over retries, such as `token:3f9a…`.
        role: what it may do.
        scope: the patterns of the states that it may do it to.
    """

    principal: str
    role: Role
    scope: tuple[str, ...]

    def may(self, action: Action, name: StateName) -> bool:
        """Whether this caller may do this to that state."""
        return action in _ALLOWED[self.role] and any(matches(pattern, name) for pattern in self.scope)

    def require(self, action: Action, name: StateName) -> None:
        """Do nothing if the caller may do this.

        Raises:
            NotAllowed: the role or the scope does not cover it.
        """
        if action not in _ALLOWED[self.role]:
            enough = next(role for role in Role if action in _ALLOWED[role])
            verb = action.name.lower().replace("_", " ")
            raise NotAllowed(
                f"The role '{self.role}' of {self.principal} does not allow to {verb}; "
                f"use a token with the role '{enough}'."
            )
        if not self.may(action, name):
            raise NotAllowed(
                f"The scope of {self.principal} does not cover the state '{name}'; use a token that does."
            )

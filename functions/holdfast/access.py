"""Who may do what to which states: roles, scopes and callers."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum, auto
from fnmatch import fnmatchcase
from typing import Any, Final

from holdfast.errors import NotAllowed
from holdfast.names import StateName, broken_rule

MAX_SCOPES: Final = 2000
"""The most characters of all scope patterns of a new record, each with a separator."""

ANOTHER_PROGRAM: Final = "another program"
"""Who holds a lock or wrote a version without Holdfast, and so without a principal."""
_CLAIM: Final = 200
"""The most characters that are shown of what a client says of itself."""

_BETWEEN: Final = '", "'  # two patterns as JSON


class Action(StrEnum):
    """Actions on a state. Metadata is all but content, values of outputs and past versions.

    The API sends the names to clients: never rename a member.
    """

    READ_METADATA = auto()
    READ_OUTPUTS = auto()
    READ_HISTORY = auto()
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


class OwnLocks(StrEnum):
    """The locks that a caller with the action UNLOCK may remove: those of the same principal."""

    NONE = "none"
    NAMED = "named"
    """Only the lock that the request names."""
    ANY = "any"
    """Also the current lock, by a request that names no lock."""

    @property
    def needs(self) -> Action:
        """The action that a caller needs at least to remove a lock which the request names."""
        return Action.FORCE_UNLOCK if self is OwnLocks.NONE else Action.UNLOCK


class Role(StrEnum):
    """A named set of actions. Only `maintainer` includes `auditor`; the others include those before them."""

    OUTPUTS = "outputs"
    AUDITOR = "auditor"
    READER = "reader"
    WRITER = "writer"
    MAINTAINER = "maintainer"


_OUTPUTS = frozenset({Action.READ_METADATA, Action.READ_OUTPUTS})
_AUDITOR = frozenset({Action.READ_METADATA, Action.READ_HISTORY, Action.READ_ACTIVITY})
_READER = _OUTPUTS | {Action.READ_HISTORY, Action.READ}
_WRITER = _READER | {Action.LOCK, Action.UNLOCK, Action.WRITE}
_MAINTAINER = _WRITER | {
    *(Action.FORCE_UNLOCK, Action.DELETE, Action.UNDELETE, Action.RESTORE),
    *(Action.FREEZE, Action.READ_ACTIVITY),
}


def allowed(role: Role) -> frozenset[Action]:
    match role:
        case Role.OUTPUTS:
            return _OUTPUTS
        case Role.AUDITOR:
            return _AUDITOR
        case Role.READER:
            return _READER
        case Role.WRITER:
            return _WRITER
        case Role.MAINTAINER:
            return _MAINTAINER


def purpose(role: Role) -> str:
    """Return what a role allows, in a few words for the command's help and the documents."""
    match role:
        case Role.OUTPUTS:
            return "see names and locks, and read outputs"
        case Role.AUDITOR:
            return "see names, locks, history and activity, but no content and no output"
        case Role.READER:
            return "do everything that the role outputs may do; also see history, and read whole states"
        case Role.WRITER:
            return (
                "do everything that the role reader may do; also acquire locks, release their own, and write "
                "states"
            )
        case Role.MAINTAINER:
            return (
                "do everything that the role writer may do; also remove any lock, delete, undelete, restore "
                "and freeze states, and see activity"
            )


def roles_with(action: Action) -> tuple[Role, ...]:
    """Return the roles that allow an action, the least first."""
    return tuple(role for role in Role if action in allowed(role))


def check_pattern(pattern: str) -> str:
    """Return a scope pattern unchanged, or raise `ValueError` if it cannot match any valid state name.

    `*` alone covers every state, and a trailing `/*` everything below. Elsewhere `*` does not match a `/`.
    The message of the `ValueError` names the broken rule.
    """
    # Not `parse`: a scope such as 'holdfast-doctor/*' may cover reserved names.
    if rule := broken_rule(pattern.replace("*", "x")):
        raise ValueError(
            f"the scope pattern {pattern!r} cannot match a state name: {rule}; write a pattern such as "
            "'network/*'"
        )
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
class Grant:
    """A role for the states that match a pattern of `scope`."""

    role: Role
    scope: tuple[str, ...]

    def allows(self, action: Action) -> bool:
        return action in allowed(self.role)

    def covers(self, name: StateName) -> bool:
        return any(matches(pattern, name) for pattern in self.scope)


def check_grants(grants: Sequence[Grant]) -> tuple[Grant, ...]:
    """Return the grants of a new record, at most one for each role.

    Raise `ValueError` for an empty or invalid scope, for a pattern that adds nothing to that of another
    grant, and for grants that are too large for the authorizer's context.
    """
    merged: dict[Role, list[str]] = {}
    for grant in grants:
        merged.setdefault(grant.role, []).extend(check_pattern(pattern) for pattern in grant.scope)
    checked = tuple(Grant(role, tuple(scope)) for role, scope in merged.items())
    if not checked or not all(grant.scope for grant in checked):
        raise ValueError("at least one scope pattern is required; the pattern '*' matches every state")
    if sum(len(pattern) + len(_BETWEEN) for grant in checked for pattern in grant.scope) > MAX_SCOPES:
        raise ValueError(
            f"the scope patterns are too long: in total they may have at most {MAX_SCOPES} characters, where "
            f"each pattern counts its own length plus {len(_BETWEEN)}; use fewer or shorter patterns"
        )
    if len(grants) > 1:
        _check_each_adds(checked)
    return checked


def _check_each_adds(grants: Sequence[Grant]) -> None:
    """Raise `ValueError` if a pattern adds nothing: grants only add up, and none narrows another."""
    each = [(grant.role, pattern) for grant in grants for pattern in grant.scope]
    for number, (role, pattern) in enumerate(each):
        if each.count((role, pattern)) > 1:
            raise ValueError(f"the grant {role}:{pattern} is given more than once; give it once")
        for other_role, other in each[:number] + each[number + 1 :]:
            if allowed(role) <= allowed(other_role) and _includes(other, pattern):
                raise ValueError(
                    f"the grant {role}:{pattern} is redundant, because the grant {other_role}:{other} "
                    f"includes it; remove the grant {role}:{pattern}"
                )


def _includes(pattern: str, other: str) -> bool:
    """Return whether a pattern surely covers every name that another one covers."""
    return pattern in ("*", other) or (pattern.endswith("/*") and other.startswith(pattern.removesuffix("*")))


def described(grants: Sequence[Grant]) -> dict[str, Any]:
    """Return grants as JSON members for scripts: `role` and `scope` are null if there are several grants."""
    only = grants[0] if len(grants) == 1 else None
    return {
        "role": only and only.role,
        "scope": only and only.scope,
        "grants": [{"role": grant.role, "scope": grant.scope} for grant in grants],
    }


def named(principal: str, owner: str) -> str:
    """Return a principal for people, after the owner of its credentials if there is one.

    >>> named("token:3pk3z36v6m9s030dnljz", "bob@example.com")
    'bob@example.com (token:3pk3z36v6m9s030dnljz)'
    """
    return f"{owner} ({principal})" if owner else principal


def called(principal: str, owner: str) -> str:
    """Return what a sentence calls a principal: as `named`, or without an owner with its kind as a word.

    >>> called("token:3pk3z36v6m9s030dnljz", "")
    'the token 3pk3z36v6m9s030dnljz'
    """
    kind, _, rest = principal.partition(":")
    return f"the token {rest}" if kind == "token" and not owner else named(principal, owner)


def claimed(text: str) -> str:
    r"""Return a text that a client typed, in quotes and on one line, so that it cannot pass for ours.

    >>> print(claimed('ci" by Ada (token:x)\n'))
    "ci\" by Ada (token:x)?"
    """
    shown = f"{text[:_CLAIM]}..." if len(text) > _CLAIM else text
    return json.dumps(on_one_line(shown), ensure_ascii=False)


def on_one_line(text: str) -> str:
    """Return a text with `?` for each character that can end a line or change how others are shown."""
    return "".join(character if character.isprintable() else "?" for character in text)


def proved_and_claimed(principal: str | None, owner: str, who: str) -> str:
    """Return a principal for people, and after it, apart, what its client says of itself.

    Args:
        principal: None if another program than Holdfast was used.
        who: the client's `Who`, which proves nothing; empty if it sent none.

    >>> print(proved_and_claimed("token:3pk3z36v6m9s030dnljz", "", "ada@laptop"))
    token:3pk3z36v6m9s030dnljz (client says "ada@laptop")
    """
    return with_claim(named(principal, owner) if principal else ANOTHER_PROGRAM, principal, who)


def with_claim(proved: str, principal: str | None, who: str) -> str:
    """Return the text about a principal, and after it what the client says of itself if that differs."""
    return f"{proved} (client says {claimed(who)})" if who not in ("", principal) else proved


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated caller. They may do what at least one of their grants allows.

    There is no role or scope of a caller: a role of one grant never applies to the scope of another.

    Attributes:
        principal: the same in every retry, such as `token:3f9a…`.
        owner: the person in the credentials' record, such as `bob@example.com`; empty if it names nobody.
            It is unproved and may change between retries, so it is only shown, never compared.
    """

    principal: str
    grants: tuple[Grant, ...]
    owner: str = field(default="", compare=False)

    def may(self, action: Action, name: StateName) -> bool:
        return any(grant.allows(action) and grant.covers(name) for grant in self.grants)

    def somewhere(self, action: Action) -> bool:
        """Return whether the caller may do an action to some states."""
        return any(grant.allows(action) for grant in self.grants)

    def everywhere(self, action: Action) -> bool:
        """Return whether the caller may do an action to every state, and see what belongs to no state."""
        return any(grant.allows(action) and "*" in grant.scope for grant in self.grants)

    def patterns(self, action: Action) -> tuple[str, ...]:
        """Return the patterns of the states to which the caller may do an action."""
        return tuple(pattern for grant in self.grants if grant.allows(action) for pattern in grant.scope)

    def require(self, action: Action, name: StateName) -> None:
        """Raise `NotAllowed` if no grant both allows the action and covers the state.

        If the caller may only read the state's outputs, the message contains the address of the outputs.
        """
        if self.may(action, name):
            return
        here = [grant for grant in self.grants if grant.covers(name)]
        if action is Action.READ and self.may(Action.READ_OUTPUTS, name):
            does = "does" if len(here) == 1 else "do"
            raise NotAllowed(
                f"{_roles(here, self)} {does} not allow you to read the whole state. You may read the "
                "outputs "
                f"of the state, at /outputs/{name}. To read the whole state, use credentials with the role "
                "'reader'."
            )
        self.require_somewhere(action)
        if here:
            raise _not_allowed(here, self, action, f" for the state '{name}'")
        raise NotAllowed(
            f"The scope of {called(self.principal, self.owner)} does not cover the state '{name}'. Use "
            "credentials whose scope covers this state."
        )

    def require_somewhere(self, action: Action) -> None:
        """Raise `NotAllowed` if no grant allows the action; the scopes are not checked."""
        if not self.somewhere(action):
            raise _not_allowed(self.grants, self, action)


def _not_allowed(grants: Sequence[Grant], caller: Caller, action: Action, where: str = "") -> NotAllowed:
    enough, *_ = roles_with(action)
    verb = "force-unlock" if action is Action.FORCE_UNLOCK else action.replace("_", " ")
    do = "does" if len(grants) == 1 else "do"
    refusal = f"{_roles(grants, caller)}{where} {do} not allow you to {verb}"
    return NotAllowed(f"{refusal}. Use credentials with the role '{enough}'.")


def _roles(grants: Sequence[Grant], caller: Caller) -> str:
    each = " and ".join(f"'{grant.role}'" for grant in grants)
    return f"The role{'' if len(grants) == 1 else 's'} {each} of {called(caller.principal, caller.owner)}"

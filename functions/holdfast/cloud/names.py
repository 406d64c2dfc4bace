"""Map organizations and workspaces to state names and back.

An organization is the first segment of a state's name; a workspace is the rest, with `:` instead of `/`. No
segment contains a `:`, so every state name of two or more segments is exactly one workspace.
"""

from fnmatch import fnmatchcase
from typing import Final

from holdfast import names
from holdfast.access import Action, Caller, called
from holdfast.errors import InvalidName, NotAllowed
from holdfast.names import StateName

_BETWEEN_SEGMENTS: Final = ":"


def state_name(organization: str, workspace: str) -> StateName:
    """Return the name of a workspace's state.

    >>> state_name("network", "eu:prod").value
    'network/eu/prod'
    """
    check_organization(organization)
    if "/" in workspace:
        raise InvalidName(
            "The name of a workspace must not contain '/'. Where the name of the state has '/', write ':', "
            "as in 'eu:prod'."
        )
    return names.parse(f"{organization}/{workspace.replace(_BETWEEN_SEGMENTS, '/')}")


def check_organization(organization: str) -> None:
    """Raise `InvalidName` unless a name can be the first segment of a workspace's state."""
    segments = names.split(organization)
    if len(segments) != 1:
        raise InvalidName(
            "The organization must not contain '/'. It is the first segment of the state's name, such as "
            "'network'. The workspace is the rest of the name."
        )
    if organization == names.RESERVED:
        raise InvalidName(f"The organization '{names.RESERVED}' is reserved; use another name.")


def organization_and_workspace(name: StateName) -> tuple[str, str] | None:
    """Return the organization and the workspace of a state; None for a name of one segment, or a probe.

    >>> from holdfast.names import parse
    >>> organization_and_workspace(parse("network/eu/prod")), organization_and_workspace(parse("prod"))
    (('network', 'eu:prod'), None)
    """
    organization, slash, rest = name.value.partition("/")
    if not slash or name.is_probe:
        return None
    return organization, rest.replace("/", _BETWEEN_SEGMENTS)


def require_organization(organization: str, caller: Caller) -> None:
    """Raise `NotAllowed` unless the caller may list at least one state name of an organization."""
    check_organization(organization)
    if not any(_covers_some(pattern, organization) for pattern in caller.patterns(Action.READ_METADATA)):
        raise NotAllowed(
            f"The scope of {called(caller.principal, caller.owner)} covers no state of the organization "
            f"'{organization}'. Use credentials whose scope covers one, or use another organization."
        )


def _covers_some(pattern: str, organization: str) -> bool:
    first, slash, _ = pattern.partition("/")
    return pattern == "*" or (bool(slash) and fnmatchcase(organization, first))

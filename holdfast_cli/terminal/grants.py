"""The texts that show what a token, a trust record or a caller has been granted."""

from collections.abc import Iterable, Sequence
from typing import Protocol


class Grant(Protocol):
    """A role for the states that match a pattern of `scope`."""

    @property
    def role(self) -> str: ...

    @property
    def scope(self) -> Sequence[str]: ...


def text(grants: Iterable[Grant]) -> str:
    """Return what is granted, such as `writer of app/*, shop/*; outputs of network/*`."""
    return "; ".join(f"{grant.role} of {', '.join(grant.scope)}" for grant in grants)


def typed(grants: Iterable[Grant]) -> list[str]:
    """Return what is granted in the form of --grant, one text for each pattern."""
    return [f"{grant.role}:{pattern}" for grant in grants for pattern in grant.scope]


def cells(grants: Sequence[Grant]) -> tuple[list[str], list[str]]:
    """Return the roles, and the patterns; those of several grants have the form of --grant."""
    many = len(grants) > 1
    patterns = typed(grants) if many else [one for grant in grants for one in grant.scope]
    return [str(grant.role) for grant in grants], patterns


def fields(grants: Sequence[Grant]) -> list[tuple[str, str]]:
    """Return the fields `role` and `scope`."""
    roles, patterns = cells(grants)
    return [("role", ", ".join(roles) or "-"), ("scope", ", ".join(patterns) or "-")]

"""Suggest a path for a request that no route matches."""

from typing import Final

from holdfast import names
from holdfast.errors import InvalidName

NAMED: Final = ("states", "outputs", "locks", "unlocks")
"""The first segments of routes that are followed by a state's name."""
FIXED: Final = (
    "/sessions",
    "/sessions/aws",
    "/health",
    "/.well-known/terraform.json",
    "/app/settings/tokens",
    "/api/v2/ping",
    "/manage/v1/whoami",
)
"""Routes without a state's name. Other routes below `/api/v2/` and `/manage/v1/` are not suggested, because
people do not type them. The console is not suggested, because only browsers open it."""

_EXAMPLE: Final = "network/prod"
# With this cutoff `stage/x` is still the name of a state, but `stats/x` is corrected to `states/x`.
_CUTOFF: Final = 0.75


def advice(path: str) -> str:
    """Return the error message for a path that no route matches.

    The message repeats only a valid state name of the path, which is short and has no control characters.

    >>> advice("/stats/a")
    'The API does not have this route. The nearest route is /states/a; use it in the address.'
    >>> advice("/states/")
    'The API does not have this route. Write an address with the name of a state, as in /states/network/prod.'
    """
    nearest, is_complete = _nearest(path)
    if is_complete:
        return f"The API does not have this route. The nearest route is {nearest}; use it in the address."
    return f"The API does not have this route. Write an address with the name of a state, as in {nearest}."


def _nearest(path: str) -> tuple[str, bool]:
    """Return the nearest path, and whether it is complete. In an incomplete path the name is an example."""
    # Imported here, because a client with a correct address never needs it.
    from difflib import get_close_matches

    fixed = get_close_matches(path, FIXED, n=1, cutoff=_CUTOFF)
    if fixed:
        return fixed[0], True
    segments = path.strip("/").split("/")
    # Perhaps another version of the management API. Its routes have the same names as Terraform's protocol.
    if segments[0] == "manage":
        return "/manage/v1/whoami", True
    # Perhaps a correct path behind a prefix, such as a stage.
    for position, segment in enumerate(segments[:-1]):
        if segment in NAMED:
            return _with_name(segment, segments[position + 1 :])
    similar = get_close_matches(segments[0].lower(), NAMED, n=1, cutoff=_CUTOFF)
    if similar:
        return _with_name(similar[0], segments[1:])
    return _with_name("states", segments)


def _with_name(route: str, segments: list[str]) -> tuple[str, bool]:
    try:
        return f"/{route}/{names.parse('/'.join(segments))}", True
    except InvalidName:
        return f"/{route}/{_EXAMPLE}", False

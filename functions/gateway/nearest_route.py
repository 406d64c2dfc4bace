"""The right path for a request that no route matches."""

from typing import Final

from holdfast import names
from holdfast.errors import InvalidName

NAMED: Final = ("states", "outputs", "locks", "unlocks")
"""Routes with the name of a state behind them."""
FIXED: Final = (
    "/sessions",
    "/sessions/aws",
    "/health",
    "/.well-known/terraform.json",
    "/app/settings/tokens",
    "/api/v2/ping",
    "/manage/v1/whoami",
)
"""Routes without one. What else there is below `/api/v2/`, only clients of `cloud {}` spell, and below
`/manage/v1/` mostly `holdfast`."""

_EXAMPLE: Final = "network/prod"
# Above it `stage/x` stays the name of a state, and `stats/x` becomes `states/x`.
_CUTOFF: Final = 0.75


def advice(path: str) -> str:
    """Return what to say to a request for a path that is no route.

    What it repeats of the path is a valid state name: short, and without control characters.

    >>> advice("/stats/network/prod")
    'There is no such route. The nearest one is /states/network/prod; set the address to it.'
    >>> advice("/states/")
    'There is no such route. Name the state in the address, as in /states/network/prod.'
    """
    nearest, is_complete = _nearest(path)
    if is_complete:
        return f"There is no such route. The nearest one is {nearest}; set the address to it."
    return f"There is no such route. Name the state in the address, as in {nearest}."


def _nearest(path: str) -> tuple[str, bool]:
    """Return the nearest path, and whether its name, if it needs one, is the client's and not an example."""
    # Here, because a client with a right address never needs it.
    from difflib import get_close_matches

    fixed = get_close_matches(path, FIXED, n=1, cutoff=_CUTOFF)
    if fixed:
        return fixed[0], True
    segments = path.strip("/").split("/")
    # Another version of the management API, whose routes are named as those of Terraform's protocol.
    if segments[0] == "manage":
        return "/manage/v1/whoami", True
    # A prefix in front of a right path, such as a stage.
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

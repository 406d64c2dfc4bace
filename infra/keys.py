"""Patterns of the keys in a team's bucket, for policies. The library's own key functions make them."""

from typing import Final

from holdfast.identity import trust
from holdfast.identity.sessions import session_key
from holdfast.identity.tokens import token_key
from holdfast.names import RESERVED, StateName

STATES: Final = StateName("*").state_key
LOCKS: Final = StateName("*").lock_key
PROBES: Final = StateName(f"{RESERVED}/*").state_key
"""The states that `holdfast doctor` makes and removes, and also their locks."""
TOKENS: Final = token_key("*")
SESSIONS: Final = session_key("*")
TRUST: Final = trust.KEY
"""The one object with all trust records."""
WORKSPACES: Final = "workspaces/*.json"

UPLOADS: Final = "uploads/*"
"""States that were sent and not written yet; in the staging bucket, as the next ones."""
UPLOADED_JSON: Final = "json/*"
"""What `cloud {}` sends beside each state, and nobody reads."""


def folder(key: str) -> str:
    """Return the first segment of a key, with the slash after it.

    >>> folder("tokens/*.json")
    'tokens/'
    """
    first, slash, _ = key.partition("/")
    return first + slash

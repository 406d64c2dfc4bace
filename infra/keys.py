"""Patterns of the keys in a team's buckets, for policies. The library's own key functions make them."""

from typing import Final

from holdfast.cloud import staging
from holdfast.identity import trust
from holdfast.identity.sessions import session_key
from holdfast.identity.tokens import token_key
from holdfast.names import RESERVED, StateName


def folder(key: str) -> str:
    """Return the first segment of a key, with the slash after it.

    >>> folder("tokens/*.json")
    'tokens/'
    """
    first, slash, _ = key.partition("/")
    return first + slash


STATES: Final = StateName("*").state_key
LOCKS: Final = StateName("*").lock_key
PROBES: Final = StateName(f"{RESERVED}/*").state_key
"""The states that `holdfast doctor` makes and removes, and also their locks."""
TOKENS: Final = token_key("*")
SESSIONS: Final = session_key("*")
TRUST: Final = trust.KEY
"""The one object with all trust records."""
WORKSPACES: Final = StateName("*").record_key

UPLOADS: Final = f"{folder(staging.state_key('*', '*', '*'))}*"
"""States that were sent and not written yet; in the staging bucket, as the next ones."""
UPLOADED_JSON: Final = f"{folder(staging.json_key('*', '*', '*'))}*"
"""What `cloud {}` sends beside each state, and nobody reads."""

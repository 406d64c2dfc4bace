"""Patterns of the keys in a team's buckets, for policies. The library's key functions make the patterns."""

from typing import Final

from holdfast import watching
from holdfast.cloud import staging
from holdfast.identity import trust
from holdfast.identity.sessions import session_key
from holdfast.identity.tokens import token_key
from holdfast.names import FROZEN_PATTERNS, RESERVED, StateName


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
"""The states that `holdfast doctor` writes and removes, and their locks."""
TOKENS: Final = token_key("*")
SESSIONS: Final = session_key("*")
TRUST: Final = trust.KEY
"""The object that contains all trust records."""
WORKSPACES: Final = StateName("*").record_key
FREEZES: Final = FROZEN_PATTERNS
"""The object that contains all frozen patterns."""

WATCH: Final = watching.secret_key("*")
"""The credentials of the probe of `watch`."""
ARCHIVED: Final = "events/*"
"""Events of the audit trail, in the archive."""
LOST: Final = "aws/lambda/async/*"
"""Deliveries on which the audit function failed, in the archive. Lambda chooses the keys."""

UPLOADS: Final = f"{folder(staging.state_key('*', '*', '*'))}*"
"""Uploaded states that are not committed yet, in the staging bucket."""
UPLOADED_JSON: Final = f"{folder(staging.json_key('*', '*', '*'))}*"
"""The JSON form, in the staging bucket, that `cloud {}` uploads with each state and that nothing reads."""

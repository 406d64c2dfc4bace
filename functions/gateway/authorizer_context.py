"""The authorizer's context: what API Gateway carries from the authorizer to the functions behind the API.

API Gateway carries texts by name, caches them with the authorizer's response and fills them into its access
log. This module is the only one that knows the names and how each value becomes a text.
"""

import json
from collections.abc import Mapping
from enum import StrEnum

from holdfast.access import Caller, Role
from holdfast.identity.authentication import Authenticated, AuthMethod
from holdfast.s3 import object_metadata


class Key(StrEnum):
    """The names of the context."""

    PRINCIPAL = "principal"
    ROLE = "role"
    SOURCE = "source"
    TRUST = "trust"
    SCOPE = "scope"
    TRUST_ID = "trust_id"
    SUBJECT = "subject"
    ENDS = "ends"
    EXPIRES = "expires"
    ACCESS_LOG = "access_log"


def encode(authenticated: Authenticated) -> dict[str, str]:
    """Return the context that stands for somebody."""
    caller = authenticated.caller
    return {
        Key.PRINCIPAL.value: caller.principal,
        Key.ROLE.value: caller.role.value,
        Key.SOURCE.value: authenticated.method.value,
        Key.TRUST.value: authenticated.trust,
        Key.SCOPE.value: json.dumps(caller.scope),
        Key.TRUST_ID.value: authenticated.trust_id,
        Key.SUBJECT.value: authenticated.subject,
        Key.ENDS.value: str(authenticated.ends),
        Key.EXPIRES.value: str(authenticated.expires),
        # API Gateway puts it into its access log as it is, and a principal may hold quotes.
        Key.ACCESS_LOG.value: object_metadata.encode(caller.principal),
    }


def decode(context: object) -> Authenticated | None:
    """Return what `encode` made a context of, or None if it is missing or another one."""
    if not isinstance(context, Mapping):
        return None
    try:
        scope = json.loads(_text(context, Key.SCOPE))
        if not isinstance(scope, list) or not all(isinstance(pattern, str) for pattern in scope):
            return None
        caller = Caller(_text(context, Key.PRINCIPAL), Role(_text(context, Key.ROLE)), tuple(scope))
        method = AuthMethod(_text(context, Key.SOURCE))
        # A token has no more, and whether API Gateway keeps an empty text is not documented.
        nothing, never = ("", "0") if method is AuthMethod.TOKEN else (None, None)
        return Authenticated(
            caller,
            method,
            trust=_text(context, Key.TRUST, nothing),
            trust_id=_text(context, Key.TRUST_ID, nothing),
            subject=_text(context, Key.SUBJECT, nothing),
            ends=int(_text(context, Key.ENDS, never)),
            # API Gateway may have cached a context without it, of an authorizer before version 0.2.0.
            expires=int(_text(context, Key.EXPIRES, "0")),
        )
    except (KeyError, TypeError, ValueError, RecursionError):
        return None


def access_log_variable() -> str:
    """Return the variable of API Gateway's access log that holds the caller's principal, percent-encoded."""
    return f"$context.authorizer.{Key.ACCESS_LOG}"


def _text(context: Mapping[str, object], key: Key, default: str | None = None) -> str:
    value = context[key.value] if default is None else context.get(key.value, default)
    if not isinstance(value, str):
        raise TypeError(f"{key} is not a text")
    return value

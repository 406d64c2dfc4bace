"""Encode the authenticated caller as the authorizer's context, which API Gateway passes to the functions.

The context consists of named texts. API Gateway caches them with the authorizer's response, and can write
them to its access log. Only this module knows the names and the encoding of the values.
"""

import json
from collections.abc import Mapping
from enum import StrEnum

from holdfast.access import Caller, Role
from holdfast.identity.authentication import Authenticated, AuthMethod
from holdfast.s3 import object_metadata


class Key(StrEnum):
    """The names of the texts in the context."""

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
    """Return the context of an authenticated caller."""
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
        # API Gateway does not escape it in its access log, and a principal may contain quotes.
        Key.ACCESS_LOG.value: object_metadata.encode(caller.principal),
    }


def decode(context: object) -> Authenticated | None:
    """Return the authenticated caller in a context; None if the context is missing or invalid."""
    if not isinstance(context, Mapping):
        return None
    try:
        scope = json.loads(_text(context, Key.SCOPE))
        if not isinstance(scope, list) or not all(isinstance(pattern, str) for pattern in scope):
            return None
        caller = Caller(_text(context, Key.PRINCIPAL), Role(_text(context, Key.ROLE)), tuple(scope))
        method = AuthMethod(_text(context, Key.SOURCE))
        # For a token these are empty, and it is not documented whether API Gateway keeps empty texts.
        nothing, never = ("", "0") if method is AuthMethod.TOKEN else (None, None)
        return Authenticated(
            caller,
            method,
            trust=_text(context, Key.TRUST, nothing),
            trust_id=_text(context, Key.TRUST_ID, nothing),
            subject=_text(context, Key.SUBJECT, nothing),
            ends=int(_text(context, Key.ENDS, never)),
            # Missing in a cached context of an authorizer before version 0.2.0.
            expires=int(_text(context, Key.EXPIRES, "0")),
        )
    except (KeyError, TypeError, ValueError, RecursionError):
        return None


def access_log_variable() -> str:
    """Return the access log variable of the caller's percent-encoded principal."""
    return f"$context.authorizer.{Key.ACCESS_LOG}"


def _text(context: Mapping[str, object], key: Key, default: str | None = None) -> str:
    value = context[key.value] if default is None else context.get(key.value, default)
    if not isinstance(value, str):
        raise TypeError(f"{key} is not a text")
    return value

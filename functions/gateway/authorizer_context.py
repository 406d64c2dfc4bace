"""Encode the authenticated caller as the authorizer's context, which API Gateway passes to the functions.

The context consists of named texts. API Gateway caches them with the authorizer's response, and can write
them to its access log. Only this module knows the names and the encoding of the values.
"""

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from holdfast.access import Caller, Grant, Role
from holdfast.identity.authentication import Authenticated, AuthMethod, DenialReason, Denied
from holdfast.s3 import object_metadata
from holdfast.team import LOGGED_PRINCIPAL


class Key(StrEnum):
    """The names of the texts in the context."""

    PRINCIPAL = "principal"
    OWNER = "owner"
    ROLE = "role"
    SOURCE = "source"
    TRUST = "trust"
    SCOPE = "scope"
    GRANTS = "grants"
    TRUST_ID = "trust_id"
    SUBJECT = "subject"
    ENDS = "ends"
    EXPIRES = "expires"
    ACCESS_LOG = LOGGED_PRINCIPAL


MAX_BYTES: Final = 4096
"""The most bytes of all names and texts. AWS does not document a limit, and a larger one may be a 500."""


def encode(authenticated: Authenticated) -> dict[str, str]:
    """Return the context of an authenticated caller.

    One grant is `role` and `scope`. Several are `grants` alone: functions before 0.3.0 then see no caller.
    """
    caller = authenticated.caller
    return {
        Key.PRINCIPAL.value: caller.principal,
        **({Key.OWNER.value: caller.owner} if caller.owner else {}),
        **_of_grants(caller.grants),
        Key.SOURCE.value: authenticated.method.value,
        Key.TRUST.value: authenticated.trust,
        Key.TRUST_ID.value: authenticated.trust_id,
        Key.SUBJECT.value: authenticated.subject,
        Key.ENDS.value: str(authenticated.ends),
        Key.EXPIRES.value: str(authenticated.expires),
        # API Gateway does not escape it in its access log, and a principal may contain quotes.
        Key.ACCESS_LOG.value: object_metadata.encode(caller.principal),
    }


def bounded(outcome: Authenticated | Denied) -> Authenticated | Denied:
    """Return the outcome of an authentication, or a denial if its context is larger than `MAX_BYTES`."""
    if isinstance(outcome, Denied):
        return outcome
    size = sum(len(name) + len(text.encode()) for name, text in encode(outcome).items())
    return Denied(DenialReason.TOO_LARGE) if size > MAX_BYTES else outcome


def _of_grants(grants: Sequence[Grant]) -> dict[str, str]:
    if len(grants) == 1:
        return {Key.ROLE.value: grants[0].role.value, Key.SCOPE.value: json.dumps(grants[0].scope)}
    return {Key.GRANTS.value: json.dumps([[grant.role, *grant.scope] for grant in grants])}


def decode(context: object) -> Authenticated | None:
    """Return the authenticated caller in a context; None if the context is missing or invalid."""
    if not isinstance(context, Mapping):
        return None
    try:
        owner = _text(context, Key.OWNER, "")
        caller = Caller(_text(context, Key.PRINCIPAL), _grants(context), owner)
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


def _grants(context: Mapping[str, object]) -> tuple[Grant, ...]:
    """Return the grants in a context, in exactly one of their forms."""
    if Key.GRANTS.value not in context:
        return (_grant(_text(context, Key.ROLE), json.loads(_text(context, Key.SCOPE))),)
    if Key.ROLE.value in context or Key.SCOPE.value in context:
        raise ValueError("both forms of grants")
    first, *others = json.loads(_text(context, Key.GRANTS))
    return tuple(_grant(role, scope) for role, *scope in (first, *others))


def _grant(role: str, scope: object) -> Grant:
    if not isinstance(scope, list) or not all(isinstance(pattern, str) for pattern in scope):
        raise TypeError("expected a list of patterns")
    return Grant(Role(role), tuple(scope))


def _text(context: Mapping[str, object], key: Key, default: str | None = None) -> str:
    value = context[key.value] if default is None else context.get(key.value, default)
    if not isinstance(value, str):
        raise TypeError(f"{key} is not a text")
    return value

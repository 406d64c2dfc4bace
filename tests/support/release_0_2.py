"""Read and write roles and scopes as version 0.2.0 does: a copy of its code, reduced to what decides.

Tests pass it what this release writes, and this release what it writes.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

ROLES: Final = ("outputs", "reader", "writer", "maintainer")
TEXTS_OF_A_TOKEN: Final = {"trust": "", "trust_id": "", "subject": "", "ends": "0"}


@dataclass(frozen=True)
class Caller:
    principal: str
    role: str
    scope: tuple[str, ...]


def decode(context: Mapping[str, object]) -> Caller | None:
    """Return the caller in an authorizer's context, as a function does; None is a 401."""
    try:
        scope = json.loads(_text(context["scope"]))
        if not isinstance(scope, list) or not all(isinstance(pattern, str) for pattern in scope):
            return None
        caller = Caller(_text(context["principal"]), _role(context["role"]), tuple(scope))
        of_token = context["source"] == "token"
        for name, nothing in TEXTS_OF_A_TOKEN.items():
            _text(context.get(name, nothing) if of_token else context[name])
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
    return caller


def encode(caller: Caller) -> dict[str, str]:
    """Return the context of a token's caller, as the authorizer does."""
    return {
        **TEXTS_OF_A_TOKEN,
        "principal": caller.principal,
        "role": caller.role,
        "source": "token",
        "scope": json.dumps(caller.scope),
        "expires": "0",
        "access_log": caller.principal,
    }


def token(body: bytes) -> Caller:
    """Return what the record of a token grants; an exception is a 500 for this token."""
    document = json.loads(body)
    _check_schema(document)
    return Caller(f"token:{document['id']}", _role(document["role"]), _scope(document["scope"]))


def trust(body: bytes) -> dict[str, Caller]:
    """Return what the trust records grant, by name; an exception is a 500 for every sign-in by a record."""
    document = json.loads(body)
    _check_schema(document)
    return {
        one["name"]: Caller(one["id"], _role(one["role"]), _scope(one["scope"]))
        for one in document["records"]
    }


def _check_schema(document: Mapping[str, Any]) -> None:
    version = document.get("schema", 1)
    if type(version) is not int or version < 1:
        raise ValueError("expected a 'schema' from 1")


def _role(value: object) -> str:
    if value not in ROLES:
        raise ValueError(f"{value!r} is not a valid Role")
    return str(value)


def _scope(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise TypeError("expected a list of scope patterns")
    return tuple(map(_text, value))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("expected text")
    return value

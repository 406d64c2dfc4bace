"""Read tokens and trust records as version 0.3.0 does: a copy of its code, reduced to what decides."""

import json
from collections.abc import Mapping
from typing import Any, Final

ROLES: Final = ("outputs", "auditor", "reader", "writer", "maintainer")
_OF_ONE_GRANT: Final = {"role", "scope"}


def grants(document: Mapping[str, Any]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the roles and scopes of a record; an exception is a 500, or a trust record that is skipped."""
    if "grants" not in document:
        return [_grant({"role": document["role"], "scope": document["scope"]})]
    if not document.keys().isdisjoint(_OF_ONE_GRANT):
        raise ValueError("expected either 'role' and 'scope', or 'grants'")
    first, *others = document["grants"]
    return list(map(_grant, (first, *others)))


def _grant(document: Any) -> tuple[str, tuple[str, ...]]:
    if not isinstance(document, dict) or document.keys() != _OF_ONE_GRANT:
        raise TypeError("expected a grant with role and scope")
    if document["role"] not in ROLES:
        raise ValueError("not a valid Role")
    return document["role"], tuple(document["scope"])


def trust(body: bytes, claims: Mapping[str, Any]) -> tuple[str, list[tuple[str, tuple[str, ...]]] | None]:
    """Return the name of the trust record for claims, and its grants; None if it is not understood.

    A record that is not understood takes part in the choice, by its condition.
    """
    matching = [
        record
        for record in json.loads(body)["records"]
        if record.get("issuer") == claims["iss"]
        and record["audience"] == claims["aud"]
        and all(claims.get(name) == value for name, value in record["claims"].items())
    ]
    best = min(matching, key=lambda record: (-len(record["claims"]), record["name"]))
    try:
        return best["name"], grants(best)
    except (AttributeError, KeyError, TypeError, ValueError):
        return best["name"], None

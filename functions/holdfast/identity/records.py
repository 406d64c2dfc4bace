"""Parse the fields of stored records strictly: a record that was edited by hand must fail closed.

A member of the wrong type raises `TypeError`, a wrong value `ValueError`.

Every record has a schema version, the member `schema`; a record without it has version 1. The version tells
people which release wrote a record. Readers accept higher versions, and these rules make that safe:

- A higher version only adds members that a reader may ignore without granting more than the record says.
- A restriction that no reader may ignore must make older readers reject the record: a required member gets
  another name, or a value that older readers do not know.
- The name, the ID and the condition of a trust record (`issuer`, `audience`, `claims`, `aws_role`) keep their
  names and meaning, so that an older reader can name the callers of a record that it rejects.

So a function of an older deployment either reads the record of a newer command, or denies the caller. Before
0.3.0, one trust record that a function rejected made it fail for all trust records. An older command that
changes a record keeps its unknown members and the higher version. This applies to members of the record
itself: a newer release adds no members within a member, such as `previous`. The command of 0.1.0 drops
unknown members.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from holdfast import json_object, timestamp
from holdfast import networks as addresses
from holdfast.access import Grant, Role, check_pattern
from holdfast.s3 import object_metadata

FIRST_SCHEMA: Final = 1
SCHEMA: Final = 3
"""The highest schema version that this release writes. A record has the lowest possible one."""

_OF_ONE_GRANT: Final = {"role", "scope"}
_OF_ANYWHERE: Final = {*_OF_ONE_GRANT, "grants"}
_WITHIN: Final = {"from", "grants_within"}
MEMBERS: Final = _OF_ANYWHERE | _WITHIN
"""The names of all members that `of_grants` may return."""
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)


def check_schema(document: Mapping[str, Any]) -> None:
    """Raise `TypeError` or `ValueError` unless the schema version of a record is a whole number from 1."""
    version = document.get("schema", 1)
    if type(version) is not int:  # True is an int to isinstance
        raise TypeError("expected a whole number as 'schema'")
    if version < 1:
        raise ValueError("expected a 'schema' from 1")


def newer(document: Mapping[str, Any], known: Collection[str]) -> Mapping[str, Any]:
    """Return the members that a newer release stored in a record: unknown members, and a higher `schema`.

    Args:
        known: the names of the members that this release stores.
    """
    return {
        name: value
        for name, value in document.items()
        if name not in known or (name == "schema" and value > SCHEMA)
    }


def is_newer(body: bytes) -> bool:
    """Return whether a stored record has a higher schema version, even if its other members are invalid."""
    try:
        version = json_object.parse(body).get("schema")
    except ValueError:
        return False
    return type(version) is int and version > SCHEMA


def text(value: object) -> str:
    """Return a text unchanged; raise `TypeError` for another value."""
    if not isinstance(value, str):
        raise TypeError("expected text")
    return value


def owner(value: object) -> str:
    """Return an owner unchanged; raise `ValueError` if it cannot be shown to others safely and as a whole.

    `str.isprintable` is false for line breaks, escapes and bidirectional marks.
    """
    name = text(value)
    if not name.isprintable() or not {"<", ">"}.isdisjoint(name) or name != name.strip():
        raise ValueError(
            "an owner must be one line of printable characters, without '<' and '>', and without spaces at "
            "its ends"
        )
    if not object_metadata.fits(name):
        raise ValueError(
            f"an owner must have at most {object_metadata.VALUE_LIMIT} bytes in percent-encoding"
        )
    return name


def items(value: object) -> list[Any]:
    """Return a list unchanged; raise `TypeError` for another value."""
    if not isinstance(value, list):
        raise TypeError("expected a list")
    return value


def grants(document: Mapping[str, Any]) -> tuple[Grant, ...]:
    """Parse what a record grants: `role` and `scope`, `grants`, or `grants_within` beside `from`."""
    if not document.keys().isdisjoint(_WITHIN):
        return _several(document, "grants_within", _OF_ANYWHERE)
    if "grants" in document:
        return _several(document, "grants", _OF_ONE_GRANT)
    return (_grant({"role": document["role"], "scope": document["scope"]}),)


def _several(document: Mapping[str, Any], member: str, others: Collection[str]) -> tuple[Grant, ...]:
    if not document.keys().isdisjoint(others):
        raise ValueError("expected either 'role' and 'scope', or 'grants', or 'from' and 'grants_within'")
    first, *more = items(document[member])
    return tuple(map(_grant, (first, *more)))


def networks(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Parse the networks to which a record is restricted; empty for every address."""
    if document.keys().isdisjoint(_WITHIN):
        return ()
    return check_networks([text(network) for network in items(document["from"])])


def check_networks(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the networks of a record; raise `ValueError` if they are invalid, none, or too many."""
    if len(texts) > addresses.MAX_OF_A_RECORD:
        raise ValueError(
            f"there are {len(texts)} networks, but at most {addresses.MAX_OF_A_RECORD} are allowed"
        )
    return addresses.check(texts)


def check_new_networks(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the networks of a new record, as `check_networks` does; refuse IPv6 alone."""
    return addresses.check_new(check_networks(texts))


def _grant(document: Any) -> Grant:
    # An unknown member could be a restriction.
    if not isinstance(document, dict) or document.keys() != _OF_ONE_GRANT:
        raise TypeError("expected a grant with role and scope")
    return Grant(Role(document["role"]), scope(document["scope"]))


def of_grants(grants: Sequence[Grant], networks: Sequence[str] = ()) -> dict[str, Any]:
    """Return the members of a record for its grants and the networks to which it is restricted.

    Readers before 0.3.0 reject `grants`, and auditors. Readers before 0.4.0 reject every record without
    `role` and `grants`, so they never read one as unrestricted.
    """
    several = [{"role": grant.role, "scope": grant.scope} for grant in grants]
    if networks:
        return {"from": list(networks), "grants_within": several}
    return several[0] if len(several) == 1 else {"grants": several}


def schema(grants: Sequence[Grant], networks: Sequence[str] = ()) -> int:
    """Return the schema version of a record with these grants and networks."""
    if networks:
        return SCHEMA
    is_first = len(grants) < 2 and all(grant.role is not Role.AUDITOR for grant in grants)
    return FIRST_SCHEMA if is_first else 2


def sha256(value: object) -> str:
    """Return a hexadecimal SHA-256 unchanged; raise `ValueError` for another text."""
    if not _SHA256.fullmatch(text(value)):
        raise ValueError("expected a SHA-256 in hexadecimal")
    return text(value)


def scope(value: object) -> tuple[str, ...]:
    """Parse a list of scope patterns; `TypeError` for an empty list, `ValueError` for an invalid pattern."""
    if not isinstance(value, list | tuple) or not value:
        raise TypeError("expected a list of scope patterns")
    return tuple(check_pattern(text(pattern)) for pattern in value)


def time(value: object) -> datetime:
    """Parse an ISO 8601 time to UTC. It must have a zone, and a year from 1 to 9999."""
    return timestamp.parse(text(value))


def optional_time(value: object) -> datetime | None:
    """Parse a time that may be null."""
    return None if value is None else time(value)


def whole_seconds(moment: datetime) -> datetime:
    """Return a time as records store it: UTC, truncated to seconds."""
    return moment.astimezone(UTC).replace(microsecond=0)


def written(moment: datetime | None) -> str | None:
    """Return a time in the form of a record (ISO 8601); None if no time is given."""
    return None if moment is None else moment.isoformat(timespec="seconds")

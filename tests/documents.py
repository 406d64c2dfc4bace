"""Lock info and state documents as Terraform and OpenTofu send them."""

import json
from uuid import uuid4

from holdfast.access import Caller, Role

LINEAGE = "7f9c2ba4-1111-4222-8333-444455556666"

ADA = Caller("token:ada", Role.WRITER, ("*",))
BOB = Caller("token:bob", Role.WRITER, ("*",))
OPERATOR = Caller("token:operator", Role.MAINTAINER, ("*",))


def lock_info(
    lock_id: str | None = None, *, operation: str = "OperationTypeApply", who: str = "ada@laptop"
) -> bytes:
    """A lock request's body."""
    return json.dumps(
        {
            "ID": lock_id or str(uuid4()),
            "Operation": operation,
            "Info": "",
            "Who": who,
            "Version": "1.15.5",
            "Created": "2026-11-20T10:00:00.123456789Z",
            "Path": "",
        }
    ).encode()


def only_id(lock_id: str) -> bytes:
    """OpenTofu's force-unlock."""
    return json.dumps(
        {
            "ID": lock_id,
            "Operation": "",
            "Info": "",
            "Who": "",
            "Version": "",
            "Created": "0001-01-01T00:00:00Z",
            "Path": "",
        }
    ).encode()


def state(serial: int, *, lineage: str = LINEAGE, content: str = "") -> bytes:
    """A state document."""
    return json.dumps(
        {
            "version": 4,
            "terraform_version": "1.15.5",
            "serial": serial,
            "lineage": lineage,
            "outputs": {"content": {"value": content, "type": "string"}},
            "resources": [],
            "check_results": None,
        },
        indent=2,
    ).encode()


def encrypted_state(serial: int, data: str) -> bytes:
    """OpenTofu's encrypted form: no version, compact."""
    return json.dumps(
        {
            "serial": serial,
            "lineage": LINEAGE,
            "meta": {"key_provider.pbkdf2.mine": "e30="},
            "encrypted_data": data,
            "encryption_version": "v0",
        },
        separators=(",", ":"),
    ).encode()

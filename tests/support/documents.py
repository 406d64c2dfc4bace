"""Lock info and state documents as Terraform and OpenTofu send them."""

import json
from uuid import uuid4

from holdfast.access import Caller, Grant, Role

LINEAGE = "7f9c2ba4-1111-4222-8333-444455556666"

ADA = Caller("token:ada", (Grant(Role.WRITER, ("*",)),))
BOB = Caller("token:bob", (Grant(Role.WRITER, ("*",)),))
OPERATOR = Caller("token:operator", (Grant(Role.MAINTAINER, ("*",)),))


def lock_info(
    lock_id: str | None = None, *, operation: str = "OperationTypeApply", who: str = "ada@laptop"
) -> bytes:
    """Return the body of a lock request."""
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
    """Return the body of OpenTofu's force-unlock."""
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


def lock_id(info: bytes) -> str:
    return str(json.loads(info)["ID"])


def state(serial: object = 1, *, lineage: object = LINEAGE, content: str = "") -> bytes:
    """Return a state document as Terraform writes it. With `content` documents of the same serial differ."""
    document = {
        "version": 4,
        "terraform_version": "1.15.5",
        "serial": serial,
        "lineage": lineage,
        "outputs": {"content": {"value": content, "type": "string"}},
        "resources": [],
        "check_results": None,
    }
    return json.dumps(document, indent=2, ensure_ascii=False).encode() + b"\n"


def probe_state(serial: int = 1) -> bytes:
    """Return a state document without resources, the only content that a probe may have."""
    document = {**json.loads(state(serial)), "outputs": {}}
    return json.dumps(document, indent=2).encode() + b"\n"


def blank_state(serial: int = 1) -> bytes:
    """Return what `terraform state push` sends for `.terraform/terraform.tfstate`, which is no state."""
    document = {**json.loads(probe_state(serial)), "lineage": ""}
    return json.dumps(document, indent=2).encode() + b"\n"


def old_state(serial: int = 7) -> bytes:
    """Return a state with an output as Terraform before 0.12 writes it, in version 3 of the format."""
    outputs = {"url": {"sensitive": False, "type": "string", "value": "http://x"}}
    document = {
        "version": 3,
        "terraform_version": "0.11.14",
        "serial": serial,
        "lineage": LINEAGE,
        "modules": [{"path": ["root"], "outputs": outputs, "resources": {}, "depends_on": []}],
    }
    return json.dumps(document, indent=2).encode()


def next_serial(body: bytes) -> bytes:
    """Return the same state document with the next serial, as a client does after a change."""
    document = json.loads(body)
    document["serial"] += 1
    return json.dumps(document, indent=2).encode() + b"\n"


def encrypted_state(serial: int, data: str) -> bytes:
    """Return a state in OpenTofu's encrypted form: no version, compact."""
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

"""The documents that Terraform sends, made by hand."""

import json
from uuid import uuid4

LINEAGE = "3f0c2b1a-7b7e-4d7c-9a55-0d2f7f3f9f10"


def state(serial: object = 1, *, lineage: object = LINEAGE, note: str = "") -> bytes:
    """A state document as Terraform prints it; `note` makes two of the same serial differ."""
    document = {
        "version": 4,
        "terraform_version": "1.15.5",
        "serial": serial,
        "lineage": lineage,
        "outputs": {"note": {"value": note, "type": "string"}},
        "resources": [],
        "check_results": None,
    }
    return json.dumps(document, indent=2, ensure_ascii=False).encode() + b"\n"


def lock_info(
    lock_id: str | None = None, *, operation: str = "OperationTypeApply", who: str = "ada@laptop"
) -> bytes:
    """A lock info document as Terraform sends it."""
    document = {
        "ID": lock_id or str(uuid4()),
        "Operation": operation,
        "Info": "",
        "Who": who,
        "Version": "1.15.5",
        "Created": "2026-01-02T03:04:05.678901234Z",
        "Path": "",
    }
    return json.dumps(document).encode()


def lock_id(info: bytes) -> str:
    """The ID of a lock info document."""
    return str(json.loads(info)["ID"])


def next_serial(body: bytes) -> bytes:
    """The same state document with the next serial, as a client makes it that changes something."""
    document = json.loads(body)
    document["serial"] += 1
    return json.dumps(document, indent=2).encode() + b"\n"

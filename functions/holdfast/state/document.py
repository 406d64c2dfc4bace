"""State documents: parse revision (serial and lineage) and writer, and reduce to outputs.

Version 4 of Terraform's and OpenTofu's format, and OpenTofu's encrypted form, whose serial and lineage
stay readable.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

from holdfast import json_object
from holdfast.errors import InvalidState, NotAllowed
from holdfast.s3 import object_metadata

_SERIAL_END: Final = 2**64  # Terraform keeps the serial in a uint64
_OUTPUTS_ONLY: Final = ("version", "terraform_version", "serial", "lineage", "outputs")


@dataclass(frozen=True, slots=True)
class Revision:
    """The revision of a state document.

    Attributes:
        serial: rises with every change.
        lineage: names the history; empty matches any.
    """

    serial: int
    lineage: str

    def same_lineage(self, other: "Revision") -> bool:
        """Return whether both belong to one history; an empty lineage belongs to any."""
        return self.lineage == other.lineage or not self.lineage or not other.lineage


@dataclass(frozen=True, slots=True)
class StateDocument:
    """A state document.

    Attributes:
        revision: its serial and lineage.
        terraform_version: who wrote it; empty if it does not say.
    """

    revision: Revision
    terraform_version: str


def parse(body: bytes) -> StateDocument:
    """Parse a state document.

    Raises:
        InvalidState: with the rule that it broke.
    """
    return _read(_load(body))


def outputs_only(body: bytes) -> bytes:
    """Reduce a state document to version, terraform_version, serial, lineage and outputs.

    Raises:
        InvalidState: it is not a state document.
        NotAllowed: it is encrypted, so its outputs cannot be told from the rest.
    """
    document = _load(body)
    _read(document)
    if "encrypted_data" in document:
        raise NotAllowed(
            "The state is encrypted by its client, so its outputs cannot be separated; read it whole, at "
            "/states/, with a token that has the role 'reader'."
        )
    members = json_object.members(body)
    kept = [f'  "{field}": {members[field]}' for field in _OUTPUTS_ONLY if field in members]
    return ("{\n" + ",\n".join(kept) + "\n}\n").encode()


def _load(body: bytes) -> Mapping[str, Any]:
    try:
        return json_object.parse(body)
    except ValueError as error:
        raise InvalidState(f"The body {error}; send a state document.") from None


def _read(document: Mapping[str, Any]) -> StateDocument:
    # Encrypted states have no version.
    if "encrypted_data" not in document and not _is_integer(document.get("version")):
        raise InvalidState("The document has no integer 'version', so it is not a state document.")
    serial = document.get("serial")
    if not _is_integer(serial) or not 0 <= serial < _SERIAL_END:
        raise InvalidState("The state's 'serial' must be an integer from 0 to 2^64-1.")
    lineage = document.get("lineage", "")
    if not isinstance(lineage, str):
        raise InvalidState("The state's 'lineage' must be text.")
    if not (object_metadata.fits(lineage) and json_object.is_unicode(lineage)):
        raise InvalidState(
            f"The state's 'lineage' must be Unicode text of at most {object_metadata.VALUE_LIMIT} bytes, "
            "percent-encoded."
        )
    version = document.get("terraform_version")
    return StateDocument(Revision(serial, lineage), version if isinstance(version, str) else "")


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)

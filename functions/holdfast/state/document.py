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

SERIAL_END: Final = 2**64
"""The first serial that is none: Terraform keeps it in a uint64."""
_HEAD: Final = ("version", "terraform_version", "serial", "lineage")
_OUTPUTS_ONLY: Final = (*_HEAD, "outputs")


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


def require_nothing_tracked(body: bytes) -> None:
    """Check that a state document has no resources and no outputs, and nothing else that could be lost.

    Raises:
        InvalidState: it has some, or it is not a state document.
    """
    if any(value for member, value in _load(body).items() if member not in _HEAD):
        raise InvalidState(
            "A state under this name is removed by 'holdfast doctor', so it may hold no resources, no "
            "outputs and nothing else. Write it under another name."
        )


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


@dataclass(frozen=True, slots=True)
class Output:
    """An output of a state document.

    Attributes:
        value: as the text in the document: Python would round long numbers.
        type: as the text in the document; empty if it says none.
        sensitive: whether a client shows the value only when asked.
    """

    value: str
    type: str
    sensitive: bool


def outputs(body: bytes) -> Mapping[str, Output] | None:
    """Return the outputs of a state document by name; None if its client encrypted it.

    Raises:
        InvalidState: it is not a state document.
    """
    document = _load(body)
    _read(document)
    if "encrypted_data" in document:
        return None
    text = json_object.members(body).get("outputs", "{}")
    if not isinstance(document.get("outputs", {}), Mapping):
        raise InvalidState("The state's 'outputs' must be an object.")
    found = {}
    for name, output in json_object.members(text.encode()).items():
        try:
            fields = json_object.members(output.encode())
        except ValueError:
            raise InvalidState(f"The state's output {name!r} must be an object.") from None
        found[name] = Output(
            fields.get("value", "null"), fields.get("type", ""), fields.get("sensitive") == "true"
        )
    return found


def tracks_resources(body: bytes) -> bool:
    """Return whether a state document has resources, or could: one that is encrypted, or is none.

    >>> tracks_resources(b'{"version": 4, "serial": 1, "resources": []}')
    False
    """
    try:
        document = _load(body)
    except InvalidState:
        return True
    return "encrypted_data" in document or bool(document.get("resources"))


def is_lineage(text: str) -> bool:
    """Return whether a text can be the lineage of a state that is stored."""
    return object_metadata.fits(text) and json_object.is_unicode(text)


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
    if not _is_integer(serial) or not 0 <= serial < SERIAL_END:
        raise InvalidState("The state's 'serial' must be an integer from 0 to 2^64-1.")
    lineage = document.get("lineage", "")
    if not isinstance(lineage, str):
        raise InvalidState("The state's 'lineage' must be text.")
    if not is_lineage(lineage):
        raise InvalidState(
            f"The state's 'lineage' must be Unicode text of at most {object_metadata.VALUE_LIMIT} bytes, "
            "percent-encoded."
        )
    version = document.get("terraform_version")
    return StateDocument(Revision(serial, lineage), version if isinstance(version, str) else "")


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)

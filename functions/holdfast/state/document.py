"""Parse state documents: their revision (serial and lineage), their client's version, and their outputs.

The format is version 4 of Terraform's and OpenTofu's, or OpenTofu's encrypted form, whose serial and lineage
are readable.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeGuard, TypeVar

from holdfast import json_object
from holdfast.errors import InvalidState, NotAllowed
from holdfast.json_object import Member
from holdfast.s3 import object_metadata
from holdfast.state import malformed

FORMAT: Final = 4
"""The only version of the format whose resources and outputs can be read."""
SERIAL_END: Final = 2**64
"""One more than the highest serial, which Terraform stores in a uint64."""
_HEAD: Final = ("version", "terraform_version", "serial", "lineage")
_OUTPUTS_ONLY: Final = (*_HEAD, "outputs")
_SMALL: Final = 1024 * 1024
"""Size in bytes up to which a document is parsed whole: this is 30 µs faster, and needs little memory."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Revision:
    """The revision of a state document. Every change raises the serial. An empty lineage matches any text."""

    serial: int
    lineage: str

    def same_lineage(self, other: "Revision") -> bool:
        return self.lineage == other.lineage or not self.lineage or not other.lineage


@dataclass(frozen=True, slots=True)
class StateDocument:
    """The head of a state document.

    Attributes:
        terraform_version: empty if the document does not have it.
        is_blank: whether it has no lineage, no resources and no outputs. `terraform state push` sends such a
            document for a file that is no state, such as `.terraform/terraform.tfstate`.
    """

    revision: Revision
    terraform_version: str
    is_blank: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """A state document to be written again with another serial. `serial` has the position of the digits."""

    body: bytes
    document: StateDocument
    is_encrypted: bool
    serial: Member

    @classmethod
    def parse(cls, body: bytes) -> "Source":
        members = _members(body)
        return cls(body, _read(_values(members)), "encrypted_data" in members, members["serial"])

    def with_serial(self, serial: int) -> bytes:
        """Return the document with another serial; all other bytes stay the same.

        >>> Source.parse(b'{"version": 4, "serial": 9, "lineage": "a"}').with_serial(12)
        b'{"version": 4, "serial": 12, "lineage": "a"}'
        """
        return b"%b%d%b" % (self.body[: self.serial.start], serial, self.body[self.serial.end :])


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of instances of resources and of data sources, and of outputs of the root module."""

    managed: int
    data: int
    outputs: int


@dataclass(frozen=True, slots=True)
class Summary:
    """A state document without its content.

    `counts` is None if the document is encrypted, or its content does not have the form of version 4.
    """

    document: StateDocument
    is_encrypted: bool
    counts: Counts | None


@dataclass(frozen=True, slots=True)
class Output:
    """An output of a state document.

    Attributes:
        value: the JSON text in the document, because Python would round long numbers.
        type: the JSON text in the document; empty if the output has no type.
        sensitive: whether clients show the value only on request.
    """

    value: str
    type: str
    sensitive: bool


class Mask(StrEnum):
    """The outputs whose values a reader does not want. Clients send the values."""

    SENSITIVE = "sensitive"
    ALL = "all"


def parse(body: bytes) -> StateDocument:
    """Parse the head of a state document of any size, without keeping its content."""
    if len(body) > _SMALL:
        return _read(_values(_members(body)))
    return _read(_parsed(json_object.parse, body))


def require_nothing_tracked(body: bytes) -> None:
    """Raise `InvalidState` if a state document has resources, outputs or another non-empty member."""
    if any(member.value for name, member in _members(body).items() if name not in _HEAD):
        raise InvalidState(
            "State names that begin with 'holdfast-doctor/' are reserved for 'holdfast doctor', so only an "
            "empty state may have such a name. Write this state under another name."
        )


def tracks_resources(body: bytes) -> bool:
    """Return whether a state document has resources, is encrypted, or cannot be read.

    >>> tracks_resources(b'{"version": 4, "serial": 1, "resources": []}')
    False
    """
    try:
        document = _members(body)
    except InvalidState:
        return True
    values = _values(document)
    return not _is_known(values) or any(values.get(name) for name in ("resources", "modules"))


def require_known_format(version: object) -> None:
    """Raise `InvalidState` unless a document of this version of the format can be read."""
    if type(version) is int and version == FORMAT:
        return
    defect = f"has version {version}" if type(version) is int and version < 100 else "has no known version"
    advice = ""
    if type(version) is int and 0 < version < FORMAT:
        advice = (
            " Terraform 0.12 or later writes version 4. Apply a change, or pull the state, add 1 to its "
            "serial, and push the state."
        )
    raise InvalidState(
        f"The state document {defect} of the state format, and Holdfast can read only "
        f"version {FORMAT}.{advice}"
    )


def is_encrypted(body: bytes) -> bool:
    """Return whether the client encrypted a state document; `InvalidState` if it is not a JSON object."""
    return "encrypted_data" in _members(body)


def summary(body: bytes) -> Summary:
    """Return the revision of a state document and the numbers of its instances, with little memory."""
    members = _members(body)
    parsed = _read(_values(members))
    encrypted = "encrypted_data" in members
    if encrypted or members["version"].value != FORMAT:
        return Summary(parsed, encrypted, None)
    resources = _counted(body, members.get("resources"), _INSTANCES)
    outputs = _counted(body, members.get("outputs"), _MEMBERS)
    if not isinstance(resources, list | None) or not isinstance(outputs, int | None):
        return Summary(parsed, encrypted, None)
    modes = dict.fromkeys(("managed", "data"), 0)
    for resource in resources or ():
        mode, instances = resource if isinstance(resource, tuple) else (None, 0)
        if isinstance(mode, str) and mode in modes:
            modes[mode] += instances
    return Summary(parsed, encrypted, Counts(**modes, outputs=outputs or 0))


def _counted(body: bytes, member: Member | None, decoder: json.JSONDecoder) -> Any:
    if member is None:
        return None
    # Latin-1 has one character per byte, and the member names that matter here are ASCII.
    text = member.written(body).decode("latin-1")
    try:
        return decoder.decode(text)
    except RecursionError:  # in some versions of Python the hook raises it at a smaller depth
        raise InvalidState("The body is nested too deeply; send a state document.") from None


def _instances(pairs: list[tuple[str, Any]]) -> tuple[Any, int] | None:
    """Return the mode of a resource and the number of its instances; None for another object."""
    members = dict(pairs)
    instances = members.get("instances")
    return (members.get("mode"), len(instances)) if isinstance(instances, list) else None


_INSTANCES: Final = json.JSONDecoder(object_pairs_hook=_instances)
"""Decodes an array of resources to a list of their modes and numbers of instances, without attributes."""
_MEMBERS: Final = json.JSONDecoder(object_pairs_hook=len)
"""Decodes an object to the number of its members."""


def _is_lineage(text: str) -> bool:
    """Return whether a text can be stored as a lineage: Unicode that fits into a metadata value."""
    return object_metadata.fits(text) and json_object.is_unicode(text)


def outputs(body: bytes) -> Mapping[str, Output] | None:
    """Return the outputs of a state document by name; None if its client encrypted it.

    Raises:
        InvalidState: the body is not a state document, or its version of the format is not 4.
    """
    document = _members(body)
    _read(_values(document))
    if "encrypted_data" in document:
        return None
    require_known_format(document["version"].value)
    return _outputs(body, document)


def _outputs(body: bytes, document: Mapping[str, Member]) -> Mapping[str, Output]:
    if "outputs" not in document or document["outputs"].value is None:
        return {}
    whole = document["outputs"].written(body)
    try:
        return {name: _output(member.written(whole)) for name, member in json_object.members(whole).items()}
    except ValueError:
        raise InvalidState(
            "In the state document, 'outputs' must be an object, and each output must be an object. Each may "
            f"have at most {json_object.MOST_MEMBERS:,} members."
        ) from None


def _output(whole: bytes) -> Output:
    written = {name: member.written(whole).decode() for name, member in json_object.members(whole).items()}
    # An unexpected value counts as "sensitive".
    is_sensitive = written.get("sensitive", "false") not in ("false", "null")
    return Output(written.get("value", "null"), written.get("type", ""), is_sensitive)


def outputs_only(body: bytes, mask: Mask | None = None) -> bytes:
    """Reduce a state document to version, terraform_version, serial, lineage and outputs.

    A masked value is null. Without a mask the outputs keep their exact bytes.

    Raises:
        NotAllowed: the document is encrypted, so its outputs cannot be separated.
        InvalidState: the body is not a state document, or its version of the format is not 4.
    """
    document = _members(body)
    _read(_values(document))
    if "encrypted_data" in document:
        raise NotAllowed(
            "The client encrypted the state, so Holdfast cannot separate its outputs from its resources. "
            "Read the whole state instead, with credentials that have the role 'reader'."
        )
    require_known_format(document["version"].value)
    kept = {name: document[name].written(body) for name in _OUTPUTS_ONLY if name in document}
    if mask:
        kept["outputs"] = _masked(_outputs(body, document), mask)
    lines = [b'  "%s": %s' % (name.encode(), written) for name, written in kept.items()]
    return b"{\n" + b",\n".join(lines) + b"\n}\n"


def _masked(outputs: Mapping[str, Output], mask: Mask) -> bytes:
    # Joined as text, so that values and types keep their exact form.
    members = [
        f'{json.dumps(name)}: {{"value": {"null" if mask is Mask.ALL or output.sensitive else output.value}, '
        f'"type": {output.type or "null"}, "sensitive": {json.dumps(output.sensitive)}}}'
        for name, output in outputs.items()
    ]
    return f"{{{', '.join(members)}}}".encode()


def _members(body: bytes) -> Mapping[str, Member]:
    try:
        json_object.check_arrays(body)
    except ValueError as error:
        raise InvalidState(f"The body {error}.") from None
    return _parsed(json_object.members, body)


def _values(members: Mapping[str, Member]) -> Mapping[str, Any]:
    return {name: member.value for name, member in members.items()}


def _parsed(how: Callable[[bytes], _T], body: bytes) -> _T:
    try:
        return how(body)
    except json_object.TooManyMembersError as error:
        raise InvalidState(f"The body {error}, so it is not a state document.") from None
    except ValueError as error:
        reason = str(error)
    # The error is gone here, and with it the body's text, which its traceback kept in memory.
    raise InvalidState(f"The body {malformed.described(body, reason)}.")


def _read(document: Mapping[str, Any]) -> StateDocument:
    # Encrypted states have no version.
    if "encrypted_data" not in document and not _is_integer(document.get("version")):
        raise InvalidState("The document has no integer 'version', so it is not a state document.")
    serial = document.get("serial")
    if isinstance(serial, float):
        raise InvalidState(
            "The state's 'serial' is a number with a fraction or an exponent, such as 3.0; write it as an "
            "integer from 0 to 2^64-1."
        )
    if not _is_integer(serial) or not 0 <= serial < SERIAL_END:
        raise InvalidState("The state's 'serial' must be an integer from 0 to 2^64-1.")
    lineage = document.get("lineage", "")
    if not isinstance(lineage, str):
        raise InvalidState("The state's 'lineage' must be a string.")
    if not _is_lineage(lineage):
        raise InvalidState(
            "The state's 'lineage' must be Unicode text of at most "
            f"{object_metadata.VALUE_LIMIT} bytes in percent-encoding."
        )
    version = document.get("terraform_version")
    return StateDocument(
        Revision(serial, lineage),
        version if isinstance(version, str) else "",
        is_blank=not lineage and not _has_content(document),
    )


def _is_known(document: Mapping[str, Any]) -> bool:
    """Return whether it is known which members have a document's content. Encrypted content is unknown."""
    version = document.get("version")
    return _is_integer(version) and 0 < version <= FORMAT and "encrypted_data" not in document


def _has_content(document: Mapping[str, Any]) -> bool:
    """Return whether a document has resources or outputs or, if its version is unknown, anything at all."""
    # Versions 1 to 3 of the format have resources and outputs in `modules`.
    known = ("resources", "modules", "outputs")
    names = known if _is_known(document) else [name for name in document if name not in _HEAD]
    return any(document.get(name) for name in names)


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)

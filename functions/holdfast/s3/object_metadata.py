"""User-defined metadata of S3 objects: values are percent-encoded, and cut to a limit."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

VALUE_LIMIT: Final = 200
"""The maximum size of an encoded metadata value in bytes."""
TOTAL_LIMIT: Final = 2048
"""The maximum size of an object's metadata in bytes. Here, `PREFIX` counts; S3 does not say if it does."""
PREFIX: Final = "x-amz-meta-"
REASON_LIMIT: Final = 500
"""The maximum size of an encoded `reason` in bytes. It is higher, because each space takes three bytes."""


@dataclass(frozen=True, slots=True)
class Field:
    """A metadata field of a state version.

    Attributes:
        shown_as: the member of the API's version document that shows the field; None if the field is hidden.
        hidden_because: the reason why the field is hidden; empty if the field is shown.
        limit: the maximum size of the encoded value in bytes.
    """

    shown_as: str | None = None
    hidden_because: str = ""
    limit: int = VALUE_LIMIT


_FOR_FENCE: Final = (
    "Holdfast compares this value with the values of other versions, and the history shows the result as "
    "`status`"
)

VERSION_FIELDS: Final[Mapping[str, Field]] = {
    "sha256": Field("sha256"),
    "serial": Field("serial"),
    "lineage": Field("lineage"),
    "terraform-version": Field("terraform_version"),
    "lock-id": Field("lock_id"),
    "who": Field("who"),
    "operation": Field("operation"),
    "written-by": Field("principal"),
    "owner": Field("owner"),
    "over-serial": Field(hidden_because=_FOR_FENCE),
    "over-lineage": Field(hidden_because=_FOR_FENCE),
    "over-refused": Field(hidden_because=_FOR_FENCE),
    "upload": Field(hidden_because="the key of an upload has no meaning for people"),
    "restored-from": Field("restored_from"),
    "reason": Field("reason", limit=REASON_LIMIT),
}
"""The user metadata of a state version; `over-*` is the superseded revision. S3 stores these names."""


def encode(value: str, limit: int | None = VALUE_LIMIT) -> str:
    """Percent-encode a metadata value, cut to `limit` bytes.

    >>> encode("ada@büro")
    'ada@b%C3%BCro'
    """
    encoded = quote(value, safe="/:@+,()", errors="replace")
    if limit is None or len(encoded) <= limit:
        return encoded
    cut = encoded[:limit]
    return cut.rpartition("%")[0] if "%" in cut[-2:] else cut


def encode_all(metadata: Mapping[str, str]) -> dict[str, str]:
    """Percent-encode metadata, each value cut to the limit of its field."""
    return {
        name: encode(value, VERSION_FIELDS[name].limit if name in VERSION_FIELDS else VALUE_LIMIT)
        for name, value in metadata.items()
    }


def with_owner(metadata: Mapping[str, str], owner: str) -> dict[str, str]:
    """Return metadata, with the owner of the caller's credentials unless it is empty or does not fit.

    The owner is left out, not cut: a part of a name can be somebody else's name.
    """
    more = {**metadata, "owner": owner}
    return more if owner and _size(more) <= TOTAL_LIMIT else dict(metadata)


def _size(metadata: Mapping[str, str]) -> int:
    return sum(len(PREFIX) + len(name) + len(value) for name, value in encode_all(metadata).items())


def fits(value: str) -> bool:
    """Return whether a value fits into `VALUE_LIMIT`, so that it is stored whole."""
    return len(encode(value, limit=None)) <= VALUE_LIMIT


def cut(value: str, limit: int) -> str:
    """Cut a value to the longest beginning that takes at most `limit` bytes when percent-encoded.

    >>> cut("büro", 8)
    'bür'
    """
    while len(encode(value, limit=None)) > limit:
        value = value[:-1]
    return value

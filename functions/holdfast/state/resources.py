"""List the resources of a state, page by page and without their attributes; read the attributes of one."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import astuple, dataclass
from itertools import islice
from typing import Final

from holdfast.access import Action
from holdfast.errors import (
    EncryptedState,
    InvalidRequest,
    NoResource,
    NoState,
    TooLarge,
)
from holdfast.names import StateName
from holdfast.s3.objects import Larger, Object
from holdfast.state import attribute_diff, tracked
from holdfast.state import cursor as cursors
from holdfast.state.attribute_diff import Attribute, Telling
from holdfast.state.description import LARGEST_READ
from holdfast.state.operator import LONGEST_VERSION_ID, no_such_version
from holdfast.state.tracked import Address, Tracked
from holdfast.work import Work

PAGE: Final = 1000
"""The most resources on a page."""
MAX_TOLD: Final = 250_000
"""About how many characters the texts of a page may have, so that the page fits into a response."""
LONGEST: Final = 500
"""Characters of the longest text of a resource; a longer text is cut."""
LONGEST_ADDRESS: Final = 4000
"""Characters of the longest address whose attributes can be requested: it is part of a URL."""
MAX_ATTRIBUTES: Final = 5_000_000
"""About how many characters the attributes of a resource may have, with their paths."""


@dataclass(frozen=True, slots=True)
class Resource:
    """An object that a state tracks. Its texts are cut to `LONGEST` characters.

    Attributes:
        address: as clients print it.
        module: empty for the root module.
        mode: `managed` or `data`.
        provider: the provider's source address.
        is_tainted: whether the next apply replaces it.
        deposed: the ID of a deposed object; empty for the current one.
    """

    address: str
    module: str
    mode: str
    type: str
    name: str
    provider: str
    is_tainted: bool
    deposed: str

    @classmethod
    def of(cls, address: Address, instance: Tracked) -> "Resource":
        return cls(
            str(address)[:LONGEST],
            address.module[:LONGEST],
            address.mode[:LONGEST],
            address.type[:LONGEST],
            address.name[:LONGEST],
            instance.provider[:LONGEST],
            instance.is_tainted,
            address.deposed[:LONGEST],
        )

    @property
    def characters(self) -> int:
        """The number of characters of its texts."""
        return sum(len(text) for text in astuple(self) if isinstance(text, str))


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the resources of one version; `next` is the cursor of the next page.

    If the client `encrypted` the version, the page is empty.
    """

    version_id: str
    encrypted: bool
    resources: tuple[Resource, ...]
    next: str | None


def page(work: Work, cursor: str | None, *, page_size: int = PAGE) -> Page:
    """List the resources of the current version, in its order. Later pages are of the first page's version.

    Each page takes one request, which reads the whole version.

    Raises:
        NoState, NoSuchVersion: the state, or the version of a later page, does not exist.
        TooLarge: the version is larger than `LARGEST_READ`, or has too many values.
        UnreadableVersion: the version is not a state document of version 4 of the format.
    """
    work.require(Action.READ)
    version_id, first = _begin(work.name, cursor)
    stored = _read(work, version_id)
    with _reading(work.name):
        objects = tracked.objects(stored.body)
        resources, has_more = _take(islice(objects or (), first, None), page_size)
    version_id = stored.version.version_id
    next_ = cursors.encode("resources", [work.name.value, version_id, first + len(resources)])
    return Page(version_id, objects is None, tuple(resources), next_ if has_more else None)


@dataclass(frozen=True, slots=True)
class Detail:
    """A resource of one version with its attributes. Attributes that are null are left out.

    Objects and lists are told in their parts.
    """

    version_id: str
    resource: Resource
    attributes: tuple[Attribute, ...]


def detail(work: Work, address: str, version_id: str | None, *, values: bool) -> Detail:
    """Read the attributes of one resource, in one request, which reads the whole version.

    Args:
        address: the whole address, as clients print it; ` (deposed ID)` follows it for a deposed object.
        version_id: the version; None for the current one.
        values: whether to include values that the state does not mark as sensitive.

    Raises:
        InvalidRequest: the address is longer than `LONGEST_ADDRESS`.
        NoState, NoSuchVersion, NoResource: the state, the version or the resource does not exist.
        TooLarge: the version is larger than `LARGEST_READ`, or it or the resource has too many values.
        EncryptedState: the client encrypted the version.
        UnreadableVersion: the version is not a state document of version 4 of the format.
    """
    work.require(Action.READ)
    if len(address) > LONGEST_ADDRESS:
        raise InvalidRequest(f"The address of the resource must have at most {LONGEST_ADDRESS} characters.")
    stored = _read(work, version_id)
    with _reading(work.name):
        objects = tracked.objects(stored.body)
        if objects is None:
            raise EncryptedState(
                f"The client encrypted the state '{work.name}', so its resources can be read only with the "
                "client's key."
            )
        for at, instance in objects:
            # No text is made of an address that is too long: a name may have megabytes, for each instance.
            if at.characters - len(at.mode) <= len(address) and str(at) == address:
                attributes = _attributes(work.name, version_id, instance, values=values)
                return Detail(stored.version.version_id, Resource.of(at, instance), attributes)
    raise NoResource(
        f"The version {stored.version.version_id} of the state '{work.name}' has no resource with this "
        "address. Write the whole address, with its module and its index or key. 'holdfast state "
        f"resources {work.name}' shows the addresses in the current version."
    )


def _attributes(
    name: StateName, version_id: str | None, instance: Tracked, *, values: bool
) -> tuple[Attribute, ...]:
    try:
        return tuple(attribute_diff.attributes(None, instance, Telling(values, MAX_ATTRIBUTES)))
    except TooLarge:
        raise TooLarge(
            "The attributes of this resource are too large for one response. Save the state with "
            f"'{_get(name, version_id)}', and look at the resource in that file."
        ) from None


def _read(work: Work, version_id: str | None) -> Object:
    """Read a version, by default the current version."""
    name = work.name
    stored = work.store.read_at_most(name.state_key, LARGEST_READ, version_id)
    if stored is None:
        raise (
            no_such_version(name, version_id)
            if version_id
            else NoState(
                f"There is no state '{name}'. 'holdfast state list' shows the states in your scope, and with "
                "'--deleted' the deleted states."
            )
        )
    if isinstance(stored, Larger):
        raise TooLarge(
            f"The state has {stored.size} bytes, but Holdfast can read the resources only of states of at "
            f"most {LARGEST_READ} bytes. Save the state with '{_get(name, version_id)}', and look at that "
            "file."
        )
    return stored


def _get(name: StateName, version_id: str | None) -> str:
    """Return the command that saves a version, by default the current version."""
    which = f" --version {version_id}" if version_id else ""
    return f"holdfast state get {name}{which} --output saved.tfstate"


def _reading(name: StateName) -> AbstractContextManager[None]:
    return tracked.reading(f"Holdfast cannot read the resources of the state '{name}'.")


def _take(objects: Iterable[tuple[Address, Tracked]], page_size: int) -> tuple[list[Resource], bool]:
    """Return the resources of a page, and whether others follow."""
    taken: list[Resource] = []
    left = MAX_TOLD
    for address, instance in objects:
        if left <= 0 or len(taken) == page_size:
            return taken, True
        taken.append(Resource.of(address, instance))
        left -= taken[-1].characters
    return taken, False


def _begin(name: StateName, cursor: str | None) -> tuple[str | None, int]:
    """Return the version of a page, None for the current one, and the position of its first resource."""
    if cursor is None:
        return None, 0
    of, version_id, first = cursors.decode("resources", cursor, str, str, int)
    if of != name.value or not 0 < len(version_id) <= LONGEST_VERSION_ID or not 0 < first < LARGEST_READ:
        raise cursors.invalid()
    return version_id, first

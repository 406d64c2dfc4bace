"""Recordings of the members of each JSON document that is stored or answered, with their types.

A recording is a file of the repository. `make generated` records a new member. The test fails if a member is
gone or has another type, even with `make generated`: stored documents are read for ever, and scripts read
the answers. A change that breaks something on purpose deletes the entry from the file, and says so in
CHANGELOG.md and docs/operate/upgrading.md.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).resolve().parents[1] / "recordings"
SAYS: Final = (
    "an upgrade breaks who reads this; if it must be, take it out of the recording, and say so in "
    "CHANGELOG.md and docs/operate/upgrading.md"
)
OPEN: Final = frozenset({"claims", "[].claims", "body.tags", "body.records[].claims", "outputs"})
"""Objects whose members have names that users choose. These names are recorded as `*`."""
_TYPES: Final = {str: "text", int: "number", float: "number", bool: "boolean", type(None): "null"}

Members = Mapping[str, str]
"""The path of each member, as `grants[].scope[]`, with its types. The path of the whole document is empty."""


def members(documents: Iterable[Any]) -> dict[str, str]:
    """Return the members of documents that are all of one kind."""
    found: dict[str, set[str]] = {}
    for document in documents:
        for path, kind in _walk("", document):
            found.setdefault(path, set()).add(kind)
    return {path: " or ".join(sorted(kinds)) for path, kinds in sorted(found.items())}


def by_kind(found: Iterable[tuple[str, Any]]) -> dict[str, dict[str, str]]:
    """Return the members of each kind of document, from pairs of a kind and a document."""
    kinds: dict[str, list[Any]] = {}
    for kind, document in found:
        kinds.setdefault(kind, []).append(document)
    return {kind: members(documents) for kind, documents in kinds.items()}


def _walk(path: str, value: Any) -> Iterator[tuple[str, str]]:
    match value:
        case dict():
            yield path, "object"
            for name, member in value.items():
                said = "*" if path in OPEN else name
                yield from _walk(f"{path}.{said}" if path else said, member)
        case list():
            yield path, "list"
            for item in value:
                yield from _walk(f"{path}[]", item)
        case _:
            yield path, _TYPES[type(value)]


def broken(recorded: Mapping[str, Members], found: Mapping[str, Members]) -> dict[str, list[str]]:
    """Return what is gone or has another type than recorded, for each kind of document."""
    return {
        kind: wrong
        for kind, before in recorded.items()
        if (wrong := list(_broken(before, found.get(kind, {}))))
    }


def _broken(before: Members, now: Members) -> Iterator[str]:
    for path, types in before.items():
        if path not in now:
            yield f"{path or 'the document'} is gone"
        elif lost := {*types.split(" or ")} - {*now[path].split(" or ")}:
            yield f"{path or 'the document'} is no longer {' or '.join(sorted(lost))}"


def renewed(recorded: Mapping[str, Members], found: Mapping[str, Members]) -> Mapping[str, Members]:
    """Return what a recording shall have: each kind as it was found, if it has other members than recorded.

    A member that is also null here, because other tests left something in a list, is no new member.
    """
    return {
        kind: recorded[kind] if recorded.get(kind, {}).keys() == now.keys() else now
        for kind, now in found.items()
    }


def read(name: str) -> dict[str, dict[str, str]]:
    """Return a recording; an empty one if there is no file."""
    path = FOLDER / name
    recorded: dict[str, dict[str, str]] = json.loads(path.read_text()) if path.exists() else {}
    return recorded


def text(found: Mapping[str, Members]) -> str:
    """Return what a recording's file contains."""
    return json.dumps(found, indent=2, sort_keys=True, ensure_ascii=False) + "\n"

"""Renders the differences between two versions of a state for people.

The API's response has values only if they were requested, and never values that the state marks as sensitive.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from holdfast.access import named
from holdfast_cli.errors import CommandError
from holdfast_cli.terminal.output import coloured, plain, wrapped

_SIGNS: Final = {
    "added": ("+", "green"),
    "removed": ("-", "red"),
    "changed": ("~", "yellow"),
    "replaced": ("-+", "magenta"),
    "moved": ("→", "cyan"),
}
"""Kind of change -> its sign and the sign's colour."""
_ARROW: Final = "→"
_ASCII: Final = {_ARROW: "->", "…": "..."}
_LONGEST_VALUE: Final = 120
"""How many characters of a long value are shown."""
_CONTEXT: Final = 20
"""How many characters are shown before the first difference of two long values."""
_HIDDEN: Final = "(sensitive)"
_MARKED: Final[Mapping[bool | None, str]] = {
    None: "",
    True: ", now sensitive",
    False: ", no longer sensitive",
}
_NOT_COMPARED: Final = (
    "Identities, schema versions, dependencies, private data and results of checks are not compared."
)

_Item = Mapping[str, Any]


def text(document: Mapping[str, Any]) -> str:
    """Return the differences in a response of the management API as text for standard output."""
    try:
        return "\n".join(_lines(document))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise CommandError(
            "The response lacks what 'holdfast state diff' shows: the stack is of another version than this "
            "command. See the response with --json."
        ) from None


def _lines(document: _Item) -> Iterator[str]:
    signs = {change: coloured(_fit(sign), colour) for change, (sign, colour) in _SIGNS.items()}
    line = partial(_line, signs)
    yield wrapped(_fit(plain(f"{document['name']}:")))
    for side in ("from", "to"):
        yield wrapped(_fit(plain(_version(document[side]))), head=f"  {side:<4}  ")
    if document["lineage_changed"]:
        yield wrapped("The lineages differ: these are states of two histories.")
    yield ""
    if document["encrypted"]:
        yield wrapped(
            "Terraform or OpenTofu encrypted the state before it was stored, so only serial, time and size "
            "can be compared. To see more, save both versions with 'holdfast state get' and decrypt them "
            "where the key is."
        )
        return
    resources, outputs = document["resources"], document["outputs"]
    if not resources and not outputs:
        yield wrapped("No differences in resources and outputs.")
        yield wrapped(_NOT_COMPARED)
        return
    for resource in resources:
        yield line(resource["change"], _resource(resource), indent=2)
        for attribute in resource["attributes"]:
            yield line(attribute["change"], _valued("path", attribute), indent=6)
    if outputs:
        if resources:
            yield ""
        yield "Outputs:"
        for output in outputs:
            yield line(output["change"], _valued("name", output), indent=2)
    yield ""
    yield wrapped(_summary(document["summary"]))
    if not document["values"]:
        yield wrapped(
            "Values are hidden; --show-values shows those that the state does not mark as sensitive."
        )


def _line(signs: Mapping[str, str], change: str, said: str, *, indent: int) -> str:
    sign = _fit(_SIGNS[change][0]) if change in _SIGNS else "?"
    head = f"{' ' * indent}{sign:<2} "
    whole = wrapped(_fit(plain(said)), head=head, hanging=2)
    # Colours are added last, because they have no width.
    return f"{' ' * indent}{signs.get(change, sign)}{whole[indent + len(sign) :]}"


def _version(side: _Item) -> str:
    said = [f"serial {side['serial']}", str(side["time"]), f"{side['size']:,} bytes"]
    if side.get("terraform_version"):
        said.append(f"client {side['terraform_version']}")
    if side.get("principal"):
        said.append(f"by {named(side['principal'], side.get('owner') or '')}")
    return f"{', '.join(said)}, version {side['version']}"


def _resource(resource: _Item) -> str:
    said = [str(resource["address"])]
    if resource["moved_from"] is not None:
        said.append(f"moved from {resource['moved_from']}")
    if resource["change"] == "replaced":
        said.append("replaced")
    if resource.get("tainted") is not None:
        said.append("now tainted" if resource["tainted"] else "no longer tainted")
    if provider := resource.get("provider"):
        said.append(f"{provider['before']} {_ARROW} {provider['after']}")
    return ", ".join(said)


def _valued(name: str, item: _Item) -> str:
    """Return the name of an attribute or an output, with the values that the response has."""
    if item["sensitive"]:
        return f"{item[name]}  {_HIDDEN}{_MARKED[item.get('now_sensitive')]}"
    before, after = item["before"], item["after"]
    known = [value for value in (before, after) if value is not None]
    if not known:
        return str(item[name])
    return f"{item[name]}  {f' {_ARROW} '.join(_shortened(known))}"


def _shortened(values: Sequence[str]) -> list[str]:
    """Return the values, cut to a readable length around the first difference between them."""
    if all(len(value) <= _LONGEST_VALUE for value in values):
        return list(values)
    start = 0
    if len(values) > 1:
        pairs = zip(*values, strict=False)
        same = next((place for place, (a, b) in enumerate(pairs) if a != b), min(map(len, values)))
        start = max(0, same - _CONTEXT)
    return [_cut(value, start) for value in values]


def _cut(value: str, start: int) -> str:
    end = start + _LONGEST_VALUE
    shown = f"{'…' if start else ''}{value[start:end]}{'…' if end < len(value) else ''}"
    return shown if shown == value else f"{shown} ({len(value):,} characters)"


def _summary(summary: Mapping[str, int]) -> str:
    counted = [
        f"{summary.get(change, 0)} {change}"
        for change in ("added", "removed", "moved", "replaced", "changed")
    ]
    return f"Resources: {', '.join(counted)}. Outputs: {summary.get('outputs', 0)} changed."


def _fit(said: str) -> str:
    """Return a text with ASCII in place of characters that standard output cannot encode."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        said.encode(encoding)
    except UnicodeEncodeError:
        for sign, instead in _ASCII.items():
            said = said.replace(sign, instead)
        said = said.encode(encoding, "replace").decode(encoding)
    return said

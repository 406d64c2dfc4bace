"""Renders the differences between two versions of a state for people.

The API's response has values only if they were requested, and never values that the state marks as sensitive.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from holdfast import timestamp
from holdfast.access import named
from holdfast_cli.errors import CommandError
from holdfast_cli.terminal import json_text
from holdfast_cli.terminal.ages import ago
from holdfast_cli.terminal.output import coloured, plain, some, wrapped
from holdfast_cli.terminal.people import person

_SIGNS: Final = {
    "added": ("+", "green"),
    "removed": ("-", "red"),
    "changed": ("~", "yellow"),
    "replaced": ("-+", "magenta"),
    "moved": ("→", "cyan"),
}
"""Kind of change -> its sign and the sign's colour."""
_COUNTED: Final = ("added", "removed", "moved", "replaced", "changed")
"""The kinds of change in the order in which a summary counts them."""
_ARROW: Final = "→"
_ASCII: Final = {_ARROW: "->", "…": "..."}
_LONGEST_VALUE: Final = 120
"""How many characters of a long value are shown."""
_CONTEXT: Final = 20
"""How many characters are shown before the first difference of two long values."""
_HIDDEN: Final = "(sensitive)"
_SEVERAL: Final = "(different values)"
_MARKED: Final[Mapping[bool | None, str]] = {
    None: "",
    True: ", now sensitive",
    False: ", no longer sensitive",
}
_NOT_COMPARED: Final = (
    "Identities, schema versions, dependencies, private data and results of checks are not compared."
)

_KEY: Final = re.compile(r'\[(?:\d+|"(?:[^"\\]|\\.)*")\]')
"""The key of an instance in an address, such as `[0]` or `["eu"]`."""
_NAMED_ALIKE: Final = 8
"""How many of the resources that differ alike are named behind the first."""
_WIDEST_PATH: Final = 30
"""The longest path of an attribute that has its values beside it."""
_AROUND: Final = 2
"""How many equal lines are shown around lines that differ."""
_MARKS: Final = {"-": "red", "+": "green"}
"""The sign of a line of the older or the newer value, and its colour."""

_Item = Mapping[str, Any]
_NO_VALUES: Final[_Item] = {"before": None, "after": None}
_DIFFERENT: Final[_Item] = {"before": None, "after": None, "differs": True}
"""The members of an attribute whose values in alike resources differ."""
_Codes = Mapping[str, tuple[str, str]]
"""Colour -> what precedes and what follows a text in this colour."""


def text(document: Mapping[str, Any], now: datetime | None = None) -> str:
    """Return the differences in a response of the management API as text for standard output.

    Args:
        document: the response.
        now: the time by the API's clock, for a terminal: the text is then brief and reads like a plan. With
            None it names both versions, and each difference has one line in a pipe.

    Raises:
        CommandError: the response lacks what is shown.
    """
    try:
        return "\n".join(_lines(document) if now is None else _brief(document, now))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise CommandError(
            "This command cannot show the response, probably because the deployed stack and this command "
            "have different versions. To see the response, use --json."
        ) from None


def _lines(document: _Item) -> Iterator[str]:
    signs = {change: coloured(_fit(sign), colour) for change, (sign, colour) in _SIGNS.items()}
    line = partial(_line, signs)
    yield wrapped(_fit(plain(f"{document['name']}:")))
    for side in ("from", "to"):
        yield wrapped(_fit(plain(_version(document[side]))), head=f"  {side:<4}  ")
    yield from _before_changes(document)
    resources, outputs = _changed(document)
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
    yield from _after_changes(document, _summary(document["summary"]))


def _before_changes(document: _Item) -> Iterator[str]:
    """Yield what precedes the changes, or what is said instead of them."""
    if document["lineage_changed"]:
        yield wrapped("The versions have different lineages, so they belong to different states.")
    yield ""
    if document["encrypted"]:
        yield wrapped(
            "The client encrypted at least one of the versions, so only their serials, times and sizes can "
            "be compared. To see more, save both versions with 'holdfast state get' and decrypt them on a "
            "machine that has the key."
        )
    elif not any(_changed(document)):
        yield wrapped("No differences in resources and outputs.")
        yield wrapped(_NOT_COMPARED)


def _changed(document: _Item) -> tuple[Sequence[_Item], Sequence[_Item]]:
    """Return the resources and the outputs that differ."""
    if document["encrypted"]:
        return (), ()
    return document["resources"], document["outputs"]


def _after_changes(document: _Item, *summary: str) -> Iterator[str]:
    if not any(_changed(document)):
        return
    yield ""
    yield from map(wrapped, summary)
    if not document["values"]:
        yield wrapped(
            "Values are hidden. --show-values shows the values that the state does not mark as sensitive."
        )


# --- like a plan ---------------------------------------------------------------------------------


def _brief(document: _Item, now: datetime) -> Iterator[str]:
    """Yield the lines of the brief text: a sign for a resource, and values on lines of their own."""
    yield wrapped(_fit(plain(_head(document, now))))
    yield from _before_changes(document)
    resources, outputs = _changed(document)
    codes = {colour: _codes(colour) for colour in {*dict(_SIGNS.values()).values(), *_MARKS.values()}}
    for alike in _alike(resources):
        first, *others = alike
        said = _resource(first)
        if others:
            _, *keys = _differing([str(each["address"]) for each in alike])
            said += f" and {len(others)} alike: {some(keys, _NAMED_ALIKE)}"
        yield _signed(codes, first["change"], said)
        yield from _attributes(codes, "path", _in_common(alike), whole=first["change"])
    if outputs:
        if resources:
            yield ""
        yield "Outputs:"
        yield from _attributes(codes, "name", outputs)
    yield from _after_changes(document, *_brief_summary(document["summary"]))


def _head(document: _Item, now: datetime) -> str:
    sides = (document["from"], document["to"])
    writers = [_writer(side) for side in sides]
    is_one = writers[0] == writers[1] != ""
    older, newer = (
        f"serial {side['serial']} ({ago(timestamp.parse(side['time']), now)}"
        f"{f', {writer}' if writer and not is_one else ''})"
        for side, writer in zip(sides, writers, strict=True)
    )
    both = f", both by {writers[0]}" if is_one else ""
    return f"{document['name']}: from {older} to {newer}{both}"


def _writer(side: _Item) -> str:
    """Return who wrote a version in one name; empty for another program's."""
    names = (side.get(name) for name in ("principal", "owner", "who"))
    return person(*names) if side.get("principal") else ""


def _alike(resources: Sequence[_Item]) -> Sequence[Sequence[_Item]]:
    """Return the resources in groups: those of a group have the same differences and the same address, but
    for the keys of instances. Values of added and of removed resources may differ, as IDs always do."""
    groups: dict[str, list[_Item]] = {}
    for resource in resources:
        same = {**resource, "address": _KEY.sub("[]", str(resource["address"]))}
        if resource["change"] in ("added", "removed"):
            same["attributes"] = [{**each, **_NO_VALUES} for each in resource["attributes"]]
        groups.setdefault(json.dumps(same, sort_keys=True), []).append(resource)
    return list(groups.values())


def _in_common(alike: Sequence[_Item]) -> Sequence[_Item]:
    """Return the attributes of alike resources, without the values that not all of them have."""
    first, *others = (resource["attributes"] for resource in alike)
    return [
        attribute if all(other[number] == attribute for other in others) else {**attribute, **_DIFFERENT}
        for number, attribute in enumerate(first)
    ]


def _differing(addresses: Sequence[str]) -> Sequence[str]:
    """Return the addresses of alike resources from the first key of an instance in which they differ."""
    beginnings = ((key.start(), key.string[: key.end()]) for key in _KEY.finditer(addresses[0]))
    begun = next(
        (at for at, same in beginnings if not all(address.startswith(same) for address in addresses)), 0
    )
    return [address[begun:] for address in addresses]


def _codes(colour: str) -> tuple[str, str]:
    """Return what precedes and what follows a text in a colour; `coloured` is slow for many texts."""
    begin, _, end = coloured("x", colour).partition("x")
    return begin, end


def _signed(codes: _Codes, change: str, said: str) -> str:
    sign, colour = _SIGNS.get(change, ("?", ""))
    fitted = _fit(sign)
    begin, end = codes.get(colour, ("", ""))
    whole = wrapped(_fit(plain(said)), head=f"{fitted:<2} ", hanging=2)
    return f"{begin}{fitted}{end}{whole[len(fitted) :]}"


def _attributes(codes: _Codes, name: str, items: Sequence[_Item], whole: str = "") -> Iterator[str]:
    """Yield the lines of attributes or outputs; `whole` is the change of the resource that they are of."""
    paths = [_fit(plain(str(item[name]))) for item in items]
    width = max((len(path) for path in paths if len(path) <= _WIDEST_PATH), default=_WIDEST_PATH)
    for path, item in zip(paths, items, strict=True):
        values = _values(item, whole)
        head = f"    {path:<{width}}  "
        if not values or len(path) > width:
            yield f"    {path}"
            head = " " * 6
        for mark, value in values:
            begin = f"{head}{mark} " if mark else head
            shown = wrapped(_fit(plain(value)), head=begin)[len(head) :].rstrip()
            first, last = codes.get(_MARKS.get(mark, ""), ("", ""))
            yield f"{head}{first}{shown}{last}"
            head = " " * len(head)


def _values(item: _Item, whole: str) -> Sequence[tuple[str, str]]:
    """Return what is shown beside an attribute or an output: lines with the sign of their version."""
    change = item["change"]
    if item["sensitive"]:
        return [("", f"(sensitive, {change}{_MARKED[item.get('now_sensitive')]})")]
    before, after = item["before"], item["after"]
    if item.get("differs"):
        return [("", _SEVERAL)]
    if before is None and after is None:
        return [] if change in ("changed", whole) else [("", f"({change})")]
    return _compared(before, after)


def _compared(before: str | None, after: str | None) -> Sequence[tuple[str, str]]:
    """Return the older and the newer value, or of values with several lines those that differ."""
    if before is not None and after is not None:
        older, newer = json_text.lines(before), json_text.lines(after)
        if older != newer and max(len(older), len(newer)) > 1:
            return list(_by_line(older, newer))
    known = [(mark, value) for mark, value in (("-", before), ("+", after)) if value is not None]
    shown = _shortened([value for _, value in known])
    return [(mark, value) for (mark, _), value in zip(known, shown, strict=True)]


def _by_line(older: Sequence[str], newer: Sequence[str]) -> Iterator[tuple[str, str]]:
    import difflib  # most values have one line

    compared = difflib.unified_diff(older, newer, n=_AROUND, lineterm="")
    for number, line in enumerate(compared):
        if line.startswith("@@"):
            if number > 2:
                yield " ", "…"
        elif number >= 2:  # the first two lines have the names of files
            yield line[0], line[1:]


# --- a line for each difference ------------------------------------------------------------------


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
    counted = [f"{summary.get(change, 0)} {change}" for change in _COUNTED]
    return f"Resources: {', '.join(counted)}. Outputs: {summary.get('outputs', 0)} changed."


def _brief_summary(summary: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for resources and one for outputs, each without what did not happen."""
    if counted := [f"{summary[change]} {change}" for change in _COUNTED if summary.get(change)]:
        yield f"Resources: {', '.join(counted)}."
    if outputs := summary.get("outputs"):
        yield f"Outputs: {outputs} changed."


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

"""`holdfast state resources` and `find`: show the resources of a state, one of them, and its state."""

import argparse
from typing import TYPE_CHECKING

from holdfast_cli.api import state_versions, version_reference
from holdfast_cli.api.management import ApiError
from holdfast_cli.api.sign_in import sign_in
from holdfast_cli.api.state_texts import size
from holdfast_cli.config import arguments, rules
from holdfast_cli.errors import CommandError, UsageError
from holdfast_cli.terminal import json_text, output
from holdfast_cli.terminal.declaration import Command, either, option

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.api import v1
    from holdfast_cli.api.management import Api

_FOLDED_FROM = 6
"""How many lines about its hits a state has at most on a terminal: the last line counts the others."""
_USUAL_HOST = "registry.terraform.io/"
"""The beginning of a provider's address that a terminal leaves out, as configurations do."""
_WHY = {
    "too_large": "because it is too large",
    "encrypted": "because its client encrypted it",
    "unreadable": "because its content is not version 4 of the state format",
}

COMMAND = Command()


def _searched(value: str) -> str:
    if not rules.unicode_text(value):
        raise argparse.ArgumentTypeError("the value is empty; write what to search for")
    return value


def _prefix(value: str) -> str:
    found = rules.beginning(value)
    if found.pattern is not None:
        raise argparse.ArgumentTypeError(f"{value!r} is a pattern; write only the beginning of the names")
    return found.prefix


@COMMAND.add(
    "resources",
    "list the resources of a state, or show one",
    f"""\
Show the addresses of the resources and data sources in the current version of a
state, their providers, and which are tainted or deposed. Needs the role reader.

With an ADDRESS from the list, show the attributes of that resource. Values are masked
unless you use --show-values. Values that the state marks as sensitive are always
masked. A state may lack such marks, especially if an older client wrote it.

{version_reference.HELP}""",
    """\
  holdfast state resources network/prod
  holdfast state resources network/prod --type aws_instance
  holdfast state resources network/prod --module module.eu --json
  holdfast state resources network/prod 'aws_instance.web["a"]'
  holdfast state resources network/prod module.eu.aws_instance.web --show-values --version @12
""",
    arguments.STATE,
    option(
        "resource",
        nargs="?",
        type=rules.unicode_text,
        default=None,
        metavar="ADDRESS",
        help="the resource whose attributes are shown; default: all resources are listed",
    ),
    option(
        "--type",
        type=rules.unicode_text,
        metavar="TYPE",
        help="show only resources of this type, such as aws_instance",
    ),
    option(
        "--module",
        type=rules.unicode_text,
        metavar="ADDRESS",
        help="show only resources of this module, such as module.eu, and of the modules in it",
    ),
    option(
        "--show-values",
        action="store_true",
        help="with ADDRESS: show values, except those that the state marks sensitive",
    ),
    option(
        "--version",
        type=version_reference.reference,
        metavar="VERSION",
        help="with ADDRESS: the version to read; default: the current one",
    ),
    arguments.API,
    arguments.as_json("one JSON array; with ADDRESS, print one JSON object"),
)
def _resources(args: argparse.Namespace) -> None:
    if args.resource is None and (args.show_values or args.version):
        raise UsageError("--show-values and --version need the ADDRESS of a resource.")
    if args.resource is not None and (args.type is not None or args.module is not None):
        raise UsageError("--type and --module filter the list. Use them or ADDRESS, not both.")
    if args.resource is None:
        _list(sign_in(args), args)
    else:
        _show(sign_in(args), args)


def _show(api: "Api", args: argparse.Namespace) -> None:
    from holdfast.api import v1

    version, _ = state_versions.exact_id(api, args.state, args.version)
    query = {"address": args.resource, "version": version, "values": "true" if args.show_values else None}
    try:
        found = api.get(v1.Attributes, "attributes", args.state, **query)
    except ApiError as failure:
        if failure.code != "no_resource":
            raise
        raise CommandError(f"{failure}{_nearest(api, args)}") from failure
    if args.json:
        output.write_json(found.raw)
        return
    fields = [
        ("address", found.address),
        ("type", found.type),
        ("provider", found.provider),
        ("version", found.version),
        *([("note", "tainted: the next apply replaces it")] if found.tainted else []),
    ]
    output.write(output.listed(fields))
    if found.attributes:
        output.write(f"\n{_attributes(found.attributes)}")
    if not found.values:
        output.tell(
            "holdfast: Values are masked. --show-values shows the values that are not marked as sensitive."
        )
    elif found.attributes:
        output.tell(
            "holdfast: Some of these values may be sensitive. Holdfast hides only the values that the state "
            "marks as sensitive, and older clients mark fewer of them."
        )


def _attributes(attributes: "Sequence[v1.AttributeValue]") -> str:
    """Return a table of attributes; on a terminal JSON in a string is below it, as it would be written."""
    laid_out = {}
    if output.is_brief(long=False):
        values = ((each.path, each.value) for each in attributes if each.value is not None)
        laid_out = {path: lines for path, value in values if len(lines := json_text.lines(value)) > 1}
    rows = [[each.path, _value(each)] for each in attributes if each.path not in laid_out]
    parts = [output.table(("ATTRIBUTE", "VALUE"), rows)] if rows else []
    for path, lines in laid_out.items():
        parts.append("\n".join([output.plain(path), *(f"  {output.plain(line)}" for line in lines)]))
    return "\n\n".join(parts)


def _value(attribute: "v1.AttributeValue") -> str:
    if attribute.sensitive or attribute.value is None:
        return "(sensitive)" if attribute.sensitive else "(masked)"
    return attribute.value


def _nearest(api: "Api", args: argparse.Namespace) -> str:
    """Return a sentence with the addresses of the current version that are similar; empty without any."""
    import difflib

    try:
        known = [resource.address for resource in _listed(api, args)]
    except CommandError:  # it is not what the user asked for
        return ""
    near = difflib.get_close_matches(args.resource, known)
    return f" Similar addresses in the current version: {', '.join(near)}." if near else ""


def _list(api: "Api", args: argparse.Namespace) -> None:
    found = [resource for resource in _listed(api, args) if _is_wanted(resource, args)]
    if args.json:
        output.write_json([resource.raw for resource in found])
    elif found:
        if output.is_brief(long=False):
            found.sort(key=lambda resource: (resource.module or "", resource.type or "", resource.address))
            output.write(_table(found))
        else:
            rows = [[resource.address, resource.provider, _note(resource)] for resource in found]
            output.write(output.table(("ADDRESS", "PROVIDER", "NOTE"), rows))
    else:
        matching = "" if args.type is None and args.module is None else "matching "
        output.write(output.wrapped(f"The state {args.state} has no {matching}resources."))


def _table(resources: "Sequence[v1.Resource]") -> str:
    """Return a table for a terminal, without a provider that all have, and without empty notes."""
    providers = [resource.provider.removeprefix(_USUAL_HOST) for resource in resources]
    columns = {
        "ADDRESS": [resource.address for resource in resources],
        **({"PROVIDER": providers} if len(set(providers)) > 1 else {}),
        **({"NOTE": notes} if any(notes := [_note(resource) for resource in resources]) else {}),
    }
    table = output.table(list(columns), list(zip(*columns.values(), strict=True)))
    if "PROVIDER" in columns:
        return table
    return f"{output.wrapped(f'Provider: {output.plain(providers[0])}')}\n\n{table}"


def _listed(api: "Api", args: argparse.Namespace) -> "list[v1.Resource]":
    from holdfast.api import v1

    found: list[v1.Resource] = []
    with output.Progress() as progress:
        for page in api.follow(
            lambda cursor: api.get(v1.ResourcePage, "resources", args.state, cursor=cursor)
        ):
            if page.encrypted:
                raise CommandError(
                    f"The state {args.state} was encrypted by the client, so its resources cannot be listed."
                )
            found += page.resources
            progress.show(f"Resources read: {len(found)}")
    return found


def _is_wanted(resource: "v1.Resource", args: argparse.Namespace) -> bool:
    module = resource.module or ""
    return args.type in (None, resource.type) and (
        args.module in (None, module) or module.startswith((f"{args.module}.", f"{args.module}["))
    )


def _note(resource: "v1.Resource") -> str:
    notes = ("tainted" if resource.tainted else "", "deposed" if resource.deposed else "")
    return ", ".join(filter(None, notes))


@COMMAND.add(
    "find",
    "find the states that contain a resource",
    """\
Show which states have a resource. Search for WORD, a part of its address; for its whole
type; or for the whole value of its attribute id, arn, self_link or urn. The command
does not compare other attributes or sensitive values, and shows no attributes. Needs
the role reader for each state.

The command skips states that are encrypted, too large (usually above 16 MB) or
unreadable, and names each of them.""",
    """\
  holdfast state find aws_instance.web
  holdfast state find --type aws_db_instance --prefix network/
  holdfast state find --id i-0123456789abcdef0 --json
""",
    either(
        option(
            "word",
            nargs="?",
            type=_searched,
            default=None,
            metavar="WORD",
            help="a part of the resource's address; case is ignored",
        ),
        option("--type", type=_searched, metavar="TYPE", help="the whole type, such as aws_instance"),
        option("--id", type=_searched, metavar="ID", help="the whole ID, ARN, self link or URN"),
        required=True,
    ),
    option(
        "--prefix",
        type=_prefix,
        metavar="PREFIX",
        help="search only states whose names begin with this, such as network/",
    ),
    arguments.API,
    arguments.LONG,
    arguments.as_json(),
)
def _find(args: argparse.Namespace) -> None:
    states: list[v1.FoundState] = []
    skipped: list[v1.SkippedState] = []
    searched = 0
    for page in _pages(sign_in(args), args):
        states += page.states
        skipped += page.skipped
        searched += page.searched or 0
    if args.json:
        found = {
            "states": [state.raw for state in states],
            "skipped": [state.raw for state in skipped],
            "searched": searched,
        }
        output.write_json(found)
        return
    rows = [[state.name, each.address, _note(each)] for state in states for each in state.resources]
    brief = output.is_brief(long=args.long)
    if not rows:
        none = f"No searched state has such a resource. States searched: {searched - len(skipped)}."
        output.write(output.wrapped(none))
    elif brief:
        output.write("\n".join(line for state in states for line in _group(state)))
    else:
        output.write(output.table(("STATE", "ADDRESS", "NOTE"), rows))
    for state in () if brief else states:
        if more := (state.matches or 0) - len(state.resources):
            output.tell(
                f"holdfast: {state.name} has more matching resources: {more}. `holdfast state resources "
                f"{state.name}` shows all resources of the state."
            )
    for each in skipped:
        why = _WHY.get(each.why, f"for the reason '{each.why}'")
        if each.why == "too_large":
            why = f"{why}: {size(each.size)}"
        output.tell(f"holdfast: {each.name} was not searched, {why}.")


def _group(state: "v1.FoundState") -> "Iterator[str]":
    """Yield the lines about a state: one for a single hit, else its name and the first hits below it."""
    count = max(state.matches or 0, len(state.resources))
    shown = state.resources if count <= _FOLDED_FROM else state.resources[: _FOLDED_FROM - 1]
    hits = [each.address + (f"  ({note})" if (note := _note(each)) else "") for each in shown]
    if count == len(hits) == 1:
        yield output.wrapped(output.plain(f"{state.name}: {hits[0]}"), hanging=2)
        return
    yield output.wrapped(
        output.plain(f"{state.name}: {'1 resource' if count == 1 else f'{count} resources'}")
    )
    for hit in hits:
        yield output.wrapped(output.plain(hit), head="  ", hanging=2)
    if more := count - len(shown):
        then = (
            "--long shows them"
            if count == len(state.resources)
            else f"run `holdfast state resources {state.name}`"
        )
        yield output.wrapped(output.plain(f"and {more} more: {then}"), head="  ", hanging=2)


def _pages(api: "Api", args: argparse.Namespace) -> "Iterator[v1.FoundPage]":
    """Yield the pages of a search, and show how far it is; so does the note of a KeyboardInterrupt."""
    from holdfast.api import v1

    done = "States searched: 0"
    searched = 0

    def fetch(cursor: str | None) -> "v1.FoundPage":
        wanted = v1.Find(address=args.word, type=args.type, id=args.id, prefix=args.prefix, cursor=cursor)
        return api.search(v1.FoundPage, "find", wanted)

    try:
        with output.Progress() as progress:
            for page in api.follow(fetch):
                searched += page.searched or 0
                of = "" if page.left is None else f" of {searched + page.left}"
                done = f"States searched: {searched}{of}"
                progress.count(
                    searched, None if page.left is None else searched + page.left, "states searched"
                )
                yield page
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(f"{done}. What the search found until then is not shown.")
        raise

"""`holdfast state resources` and `find`: show the resources of a state, and the state of a resource."""

import argparse
from typing import TYPE_CHECKING

from holdfast_cli.api.sign_in import sign_in
from holdfast_cli.api.state_texts import size
from holdfast_cli.config import arguments, rules
from holdfast_cli.errors import CommandError
from holdfast_cli.terminal import output
from holdfast_cli.terminal.declaration import Command, either, option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.api import v1
    from holdfast_cli.api.management import Api

_WHY = {
    "too_large": "too large",
    "encrypted": "encrypted by its client",
    "unreadable": "not a state of version 4 of the format",
}

COMMAND = Command()


def _prefix(value: str) -> str:
    found = rules.beginning(value)
    if found.pattern is not None:
        raise argparse.ArgumentTypeError(f"{value!r} is a pattern; name the beginning alone")
    return found.prefix


@COMMAND.add(
    "resources",
    "list the resources of a state",
    """\
Show the addresses of the resources and data sources in the current version of a
state, their providers, and which are tainted or deposed. No attributes are shown.
Takes the role reader.""",
    """\
  holdfast state resources network/prod
  holdfast state resources network/prod --type aws_instance
  holdfast state resources network/prod --module module.eu --json
""",
    arguments.STATE,
    option("--type", type=rules.unicode_text, metavar="TYPE", help="only of this type, as aws_instance"),
    option(
        "--module",
        type=rules.unicode_text,
        metavar="ADDRESS",
        help="only of this module and of the modules in it, as module.eu",
    ),
    arguments.API,
    arguments.as_json("one JSON array"),
)
def _resources(args: argparse.Namespace) -> None:
    from holdfast.api import v1

    api = sign_in(args)
    found: list[v1.Resource] = []
    with output.Progress() as progress:
        for page in api.follow(
            lambda cursor: api.get(v1.ResourcePage, "resources", args.state, cursor=cursor)
        ):
            if page.encrypted:
                raise CommandError(
                    f"The state {args.state} is encrypted by its client, so its resources cannot be listed."
                )
            found += (resource for resource in page.resources if _is_wanted(resource, args))
            progress.show(f"{len(found)} resources read")
    if args.json:
        output.write_json([resource.raw for resource in found])
    elif found:
        rows = [[resource.address, resource.provider, _note(resource)] for resource in found]
        output.write(output.table(("ADDRESS", "PROVIDER", "NOTE"), rows))
    else:
        output.write(output.wrapped(f"The state {args.state} has none of these resources."))


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
    "find the state of a resource",
    """\
Show which states have a resource: by WORD, a part of its address; by its whole type;
or by the whole value of its attribute id, arn, self_link or urn, unless the
state marks that as sensitive. No attributes are shown, and none of the others is
compared. Takes the role reader, for each state.

It reads each state, except those above 16 MB and encrypted ones, and names the
states that it did not search.""",
    """\
  holdfast state find aws_instance.web
  holdfast state find --type aws_db_instance --prefix network/
  holdfast state find --id i-0123456789abcdef0 --json
""",
    either(
        option(
            "word",
            nargs="?",
            type=rules.unicode_text,
            default=None,
            metavar="WORD",
            help="a part of the address, in upper or lower case",
        ),
        option("--type", type=rules.unicode_text, metavar="TYPE", help="the whole type, as aws_instance"),
        option("--id", type=rules.unicode_text, metavar="ID", help="the whole ID, ARN, self link or URN"),
        required=True,
    ),
    option(
        "--prefix", type=_prefix, metavar="PREFIX", help="only in states whose names begin so, as network/"
    ),
    arguments.API,
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
    if rows:
        output.write(output.table(("STATE", "ADDRESS", "NOTE"), rows))
    else:
        output.write(f"None of the {searched - len(skipped)} searched states has such a resource.")
    for state in states:
        if more := (state.matches or 0) - len(state.resources):
            output.tell(f"holdfast: {state.name} has {more} more; `holdfast state resources {state.name}`.")
    for each in skipped:
        why = _WHY.get(each.why, each.why)
        output.tell(f"holdfast: {each.name} was not searched: it is {why} ({size(each.size)}).")


def _pages(api: "Api", args: argparse.Namespace) -> "Iterator[v1.FoundPage]":
    """Yield the pages of a search, and show how far it is; so does the note of a KeyboardInterrupt."""
    from holdfast.api import v1

    done = "No states searched"
    searched = 0

    def fetch(cursor: str | None) -> "v1.FoundPage":
        wanted = v1.Find(address=args.word, type=args.type, id=args.id, prefix=args.prefix, cursor=cursor)
        return api.search(v1.FoundPage, "find", wanted)

    try:
        with output.Progress() as progress:
            for page in api.follow(fetch):
                searched += page.searched or 0
                of = "" if page.left is None else f" of {searched + page.left}"
                done = f"{searched}{of} states searched"
                progress.show(done)
                yield page
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(f"{done}, and what was found is not shown.")
        raise

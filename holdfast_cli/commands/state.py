"""`holdfast state`: lists, shows and changes states without Terraform."""

import argparse
import os
import sys
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from holdfast.api import form
from holdfast_cli import private_file
from holdfast_cli.api import deletions, frozen_patterns, state_versions, version_reference
from holdfast_cli.api.deletions import Deleter, Deletion
from holdfast_cli.api.management import ApiError
from holdfast_cli.api.sign_in import sign_in
from holdfast_cli.api.state_texts import (
    age,
    colour,
    lock_brief,
    lock_fields,
    lock_words,
    moment,
    operation,
    size,
    status_words,
    whole,
    word,
    writer,
)
from holdfast_cli.commands import freeze, state_changes, state_resources
from holdfast_cli.config import arguments, rules
from holdfast_cli.errors import CommandError, UsageError
from holdfast_cli.terminal import output, state_diff
from holdfast_cli.terminal.declaration import Command, Option, either, option, renamed
from holdfast_cli.terminal.people import brief_person, person

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from holdfast.api import v1
    from holdfast_cli.api.management import Api

_LIMIT: Final = 20
"""The number of versions that `history` shows by default: one page of the API."""

_FIRST: Final = ("state", "serial", "written", "written by", "operation", "status")
"""The fields of a state that a terminal shows above the lock; the others are below."""
_IDS: Final = ("version", "lineage")
"""The fields that a terminal shows last; without a version, `version` stays above them."""


COMMAND = Command(
    """\
Show and change states in ways that Terraform does not offer. The commands use
Terraform's credentials, which `holdfast login` exports: TF_HTTP_USERNAME and
TF_HTTP_PASSWORD, or TF_TOKEN_… of the API's host. They need no AWS credentials.""",
    """\
  holdfast state list
  holdfast state history network/prod
  holdfast state diff network/prod @12
  holdfast state find aws_instance.web
  holdfast state restore network/prod @12 --reason "undo Tuesday's apply"
  holdfast state freeze 'network/*' --reason 'incident 4711' --until 2h
""",
    renamed("create", "declare"),
)


def _version(name: str, metavar: str, default: str) -> Option:
    return option(
        name,
        nargs="?",
        type=version_reference.reference,
        default=None,
        metavar=metavar,
        help=f"a version; default: {default}",
    )


@COMMAND.add(
    "list",
    "list states",
    "Show the states in your scope, with their locks and freezes. Options narrow the list.",
    """\
  holdfast state list
  holdfast state list network/ --locked
  holdfast state list '*/prod'
  holdfast state list --larger-than 4MB --older-than 30d
  holdfast state list --deleted --json
  holdfast state list --declared
""",
    arguments.PREFIX,
    option("--locked", action="store_true", help="show only states that are locked or frozen"),
    either(
        option("--deleted", action="store_true", help="show only deleted states"),
        option("--declared", action="store_true", help="show only declared names that have no state"),
    ),
    option(
        "--larger-than",
        type=rules.size,
        metavar="SIZE",
        help="show only states larger than this, such as 4MB",
    ),
    option(
        "--older-than",
        type=rules.duration,
        metavar="DURATION",
        help="show only states that were last written or deleted longer ago than this, such as 30d",
    ),
    arguments.API,
    arguments.LONG,
    arguments.as_json("one JSON array"),
)
def _list(args: argparse.Namespace) -> None:
    from holdfast.api import v1

    api, prefix = sign_in(args), args.states.prefix
    kind = {"deleted": "true"} if args.deleted else {"declared": "true"} if args.declared else {}
    listed = list(api.pages(v1.StateItem, "states", "states", prefix=prefix, **kind))
    if args.declared:
        listed = _without_state(listed, api.pages(v1.StateItem, "states", "states", prefix=prefix))
    states = [item for item in listed if _is_wanted(item, args, api.now())]
    if args.json:
        output.write_json([item.raw for item in states])
    elif states:
        brief = output.is_brief(long=args.long)
        if args.deleted:
            output.write(_table_of_deleted(api, states, brief=brief))
        else:
            heading = "DECLARED" if args.declared else "MODIFIED"
            output.write(_table_of_states(api, states, heading, brief=brief))
    else:
        narrowed = args.locked or args.larger_than is not None or args.older_than is not None
        options = " with these options" if narrowed else ""
        output.write(output.wrapped(f"{_none(args)} were found in your scope{options}."))


def _none(args: argparse.Namespace) -> str:
    """Return what was not found, for the beginning of a sentence."""
    what = (
        "deleted states" if args.deleted else "declared names without a state" if args.declared else "states"
    )
    if args.states.pattern is not None:
        return f"No {what} that match {args.states.pattern}"
    return f"No {what}{f' whose names begin with {args.states.prefix}' if args.states.prefix else ''}"


def _without_state(
    declared: "Iterable[v1.StateItem]", later: "Iterable[v1.StateItem]"
) -> "list[v1.StateItem]":
    """Return the declared names that have no state in a later list of states, with their locks."""
    from holdfast.api import v1

    found = {item.name: item for item in declared}
    for item in later:
        if item.modified is not None:
            found.pop(item.name, None)
        elif item.name in found:
            found[item.name] = form.read(v1.StateItem, {**found[item.name].raw, "lock": item.raw["lock"]})
    return list(found.values())


def _is_wanted(item: "v1.StateItem", args: argparse.Namespace, now: datetime) -> bool:
    size, modified = item.size, item.modified
    return (
        args.states.covers(item.name)
        and (not args.locked or item.lock is not None)
        and (item.deleted is True) == args.deleted
        and (args.larger_than is None or (size is not None and size > args.larger_than))
        and (args.older_than is None or (modified is not None and now - modified > args.older_than))
    )


def _table_of_states(api: "Api", states: "list[v1.StateItem]", modified: str, *, brief: bool) -> str:
    columns = _columns(states, modified, api.now(), brief=brief)
    if brief:
        columns["LOCK"] = frozen_patterns.briefly(api, [item.lock for item in states])
    if brief and modified != "MODIFIED":
        columns = _telling(columns)
    return _in_colours(states, columns, brief=brief)


def _table_of_deleted(api: "Api", states: "list[v1.StateItem]", *, brief: bool) -> str:
    """Return a table of deleted states, with who deleted each and why; if it is brief, without IDs."""
    found = deletions.deleters(api, {Deletion(item.name, item.modified) for item in states if item.modified})
    who = [(item.modified and found.get(Deletion(item.name, item.modified))) or Deleter() for item in states]
    columns = {
        **_columns(states, "DELETED", api.now(), brief=brief),
        "BY": [each.brief if brief else each.long for each in who],
        "REASON": [each.reason for each in who],
    }
    return _in_colours(states, _telling(columns) if brief else columns, brief=brief)


def _columns(
    states: "list[v1.StateItem]", modified: str, now: datetime, *, brief: bool
) -> dict[str, list[str]]:
    written, held = (age, lock_brief) if brief else (word, lock_words)
    return {
        "STATE": [item.name for item in states],
        "SIZE": [size(item.size) for item in states],
        modified: [written(item, "modified", now) for item in states],
        "LOCK": [held(item.lock, now) for item in states],
    }


def _telling(columns: "Mapping[str, list[str]]") -> dict[str, list[str]]:
    """Return the columns that have something to say."""
    return {heading: cells for heading, cells in columns.items() if any(cells)}


def _in_colours(states: "list[v1.StateItem]", columns: "Mapping[str, list[str]]", *, brief: bool) -> str:
    rows = list(zip(*columns.values(), strict=True))
    return output.table(list(columns), rows, [colour(item.lock) for item in states], cut_last=brief)


@COMMAND.add(
    "show",
    "show one state",
    """\
Show the current version of a state, its writer, its lock and the number of its
resources. Only callers with the role reader see this number.""",
    """\
  holdfast state show network/prod
  holdfast state show network/prod --json
""",
    arguments.STATE,
    arguments.API,
    arguments.LONG,
    arguments.as_json(),
)
def _show(args: argparse.Namespace) -> None:
    from holdfast.api import v1

    api = sign_in(args)
    try:
        state = api.get(v1.StateDescription, "states", args.state)
    except ApiError as failure:
        if failure.code == "no_state" and (deleted := _deleted(api, args.state.value)):
            raise CommandError(
                f"The state {args.state} was deleted {deleted}. `holdfast state history {args.state}` shows "
                f"its versions, and `holdfast state undelete {args.state}` brings it back."
            ) from failure
        raise
    if args.json:
        output.write_json(state.raw)
    else:
        now = api.now()
        if output.is_brief(long=False):
            fields = _in_order(state, now, frozen_patterns.of(api, state.lock), brief=not args.long)
        else:
            fields = [*_fields(state, now), *_lock(state, now, for_people=False)]
        output.write(output.listed(fields))


def _deleted(api: "Api", name: str) -> str:
    """Return how long ago a state was deleted; empty if it was not, or if that cannot be read."""
    from holdfast.api import v1

    try:
        listed = api.pages(v1.StateItem, "states", "states", prefix=name, deleted="true")
        found = next((item for item in listed if item.name == name), None)
    except CommandError:  # it is not what the user asked for
        return ""
    return age(found, "modified", api.now()) if found else ""


def _fields(state: "v1.StateDescription", now: datetime) -> list[tuple[str, str]]:
    fields: list[tuple[str, str | None]] = [("state", state.name)]
    if not state.version:
        fields.append(("version", "none: there is no state with this name now"))
    else:
        counts = state.resources
        kinds = {"managed": counts.managed, "data": counts.data} if counts else {}
        # `encrypted` is null if the document was not read.
        is_unreadable = counts is None and state.encrypted is False
        fields += [
            ("version", state.version),
            ("serial", whole(state.serial)),
            ("lineage", state.lineage),
            ("size", size(state.size)),
            ("written", moment(state, "modified", now)),
            ("by", writer(state)),
            ("operation", state.operation),
            ("status", status_words(state.status)),
            ("client", state.terraform_version),
            ("resources", ", ".join(f"{many} {kind}" for kind, many in kinds.items() if many is not None)),
            ("outputs", whole(counts.outputs if counts else None)),
            ("content", "unknown: not version 4 of the state format" if is_unreadable else None),
            ("encrypted", "by the client, so its content is not shown" if state.encrypted else None),
        ]
    fields.append(("declared", "yes" if state.record else None))
    return [(name, value) for name, value in fields if value]


def _in_order(
    state: "v1.StateDescription", now: datetime, pattern: str, *, brief: bool
) -> list[tuple[str, str]]:
    """Return the fields for people: what they look for first, and the IDs at the end.

    If the fields are `brief`, the writer is one name, and the usual status is left out. `pattern` is the
    pattern with which the state is frozen, or the empty string.
    """
    from holdfast.api import v1

    fields = dict(_fields(state, now))
    if state.version:
        fields |= {"operation": operation(state.operation), "written by": fields.pop("by", "")}
    if state.version and brief:
        by = person(state.principal, state.owner, state.who) if writer(state) else ""
        fields |= {"written by": by}
        if state.status == v1.ACKNOWLEDGED:
            fields.pop("status", "")
    if state.resources:
        fields |= {"resources": _counted(state.resources)}
    above = [(name, fields.pop(name)) for name in _FIRST if name in fields]
    ids = [(name, fields.pop(name)) for name in _IDS if name in fields and state.version]
    lock = _lock(state, now, pattern, for_people=True, brief=brief)
    lock_id = [lock.pop()] if state.lock else []
    return [(name, value) for name, value in (*above, *lock, *fields.items(), *ids, *lock_id) if value]


def _lock(
    state: "v1.StateDescription", now: datetime, pattern: str = "", *, for_people: bool, brief: bool = False
) -> list[tuple[str, str]]:
    if state.lock is None:
        return [("lock", "none")]
    return lock_fields(state.lock, now, for_people=for_people, brief=brief, pattern=pattern)


def _counted(counts: "v1.Resources") -> str:
    kinds = {"managed": counts.managed, "data": counts.data}
    return ", ".join(f"{many} {kind}" for kind, many in kinds.items() if many) or "none"


@COMMAND.add(
    "history",
    "list the versions of a state",
    """\
Show the versions of a state, newest first, with the writer of each version and whether
the version was acknowledged. A version was never acknowledged if S3 stored it, but
Holdfast then refused the write, for example because the writer had lost its lock. Needs
the role reader or auditor.""",
    """\
  holdfast state history network/prod
  holdfast state history network/prod --limit 100
  holdfast state history network/prod --all --json
""",
    arguments.STATE,
    either(
        option(
            "--limit",
            type=rules.count,
            default=_LIMIT,
            metavar="COUNT",
            help=f"show only the newest COUNT versions; default: {_LIMIT}",
        ),
        option("--all", action="store_true", help="show all versions"),
    ),
    arguments.API,
    arguments.LONG,
    arguments.as_json("one JSON array"),
)
def _history(args: argparse.Namespace) -> None:
    from holdfast.api import v1

    api = sign_in(args)
    history = api.pages(v1.Version, "versions", "versions", args.state)
    versions = list(islice(history, None if args.all else args.limit))
    history.close()
    if args.json:
        output.write_json([version.raw for version in versions])
    elif versions:
        brief = output.is_brief(long=args.long)
        name = args.state.value
        deleted = {Deletion(name, each.time): each for each in versions if each.delete_marker and each.time}
        found = deletions.deleters(api, deleted)
        who = {version.version: found.get(each, Deleter()) for each, version in deleted.items()}
        output.write((_brief_history if brief else _table_of_versions)(versions, who, api.now()))
    else:
        output.write(output.wrapped(f"The state {args.state} has no versions."))
    if not args.all and len(versions) == args.limit:
        output.tell(
            f"holdfast: --limit is {args.limit}, so there may be older versions. --all shows all versions."
        )


def _table_of_versions(versions: "list[v1.Version]", deleters: "Mapping[str, Deleter]", now: datetime) -> str:
    rows = [
        [
            whole(version.serial),
            word(version, "time", now),
            _status(version),
            version.version,
            deleters[version.version].long if version.version in deleters else writer(version),
            version.operation,
            size(version.size),
            deleters[version.version].reason if version.version in deleters else _note(version),
        ]
        for version in versions
    ]
    headings = ("SERIAL", "TIME", "STATUS", "VERSION", "BY", "OPERATION", "SIZE", "NOTE")
    return output.table(headings, rows)


def _brief_history(versions: "list[v1.Version]", deleters: "Mapping[str, Deleter]", now: datetime) -> str:
    serials = {version.version: version.serial for version in versions}
    rows = []
    for version in versions:
        written = age(version, "time", now)
        if version.delete_marker:
            deleter = deleters.get(version.version, Deleter())
            rows.append(["", written, "deleted", deleter.brief, deleter.reason])
        else:
            by = brief_person(version.principal, version.owner, version.who) if writer(version) else ""
            note = _brief_note(version, serials)
            rows.append([whole(version.serial), written, operation(version.operation), by, note])
    return output.table(("SERIAL", "WRITTEN", "WHAT", "BY", "NOTE"), rows, cut_last=True)


def _brief_note(version: "v1.Version", serials: "Mapping[str, int | None]") -> str:
    from holdfast.api import v1

    restored = ""
    if version.restored_from:
        serial = serials.get(version.restored_from)
        restored = "restored" if serial is None else f"restored from serial {serial}"
    status = "" if version.status == v1.ACKNOWLEDGED else status_words(version.status)
    notes = ", ".join(filter(None, ("current" if version.current else "", status, restored)))
    return ": ".join(filter(None, (notes, version.reason)))


def _status(version: "v1.Version") -> str:
    status = "deleted" if version.delete_marker else status_words(version.status)
    return ", ".join(filter(None, ("current" if version.current else "", status)))


def _note(version: "v1.Version") -> str:
    restored = f"restored from {version.restored_from}" if version.restored_from else ""
    return ": ".join(filter(None, (restored, version.reason)))


@COMMAND.add(
    "diff",
    "show the differences between two versions",
    f"""\
Show which resources, attributes and outputs differ between two versions of a state. By
default, TO is the current version, and FROM is the version before TO. Needs the role
reader.

Values are masked unless you use --show-values. Values that the state marks as sensitive
are always masked. A state does not mark everything that the provider's schema calls
sensitive.

With --exit-code, the exit codes are like those of `terraform plan -detailed-exitcode`:
0 if the versions do not differ, 2 if they differ, and 1 if the command failed or cannot
compare them. A wrong command line also ends with 2, but prints nothing to standard
output.

{version_reference.HELP}""",
    """\
  holdfast state diff network/prod
  holdfast state diff network/prod @12
  holdfast state diff network/prod @2026-11-20T14:00 @2026-11-21 --show-values
  holdfast state diff network/prod @12 @14 --json
  holdfast state diff network/prod @12 --exit-code
""",
    arguments.STATE,
    _version("from_", "FROM", "the version before TO"),
    _version("to", "TO", "the current one"),
    option(
        "--show-values", action="store_true", help="show values, except those that the state marks sensitive"
    ),
    option(
        "--exit-code",
        action="store_true",
        help="exit with 0 if nothing differs, and with 2 if something differs",
    ),
    arguments.API,
    arguments.LONG,
    arguments.as_json(),
)
def _diff(args: argparse.Namespace) -> None:
    try:
        api = sign_in(args)
        differences = _read_differences(api, args)
    except UsageError as failure:
        if args.exit_code:  # 2 says that they differ
            raise CommandError(f"{failure}") from failure
        raise
    if args.json:
        output.write_json(differences.raw)
    else:
        brief = output.is_brief(long=args.long)
        output.write(state_diff.text(differences.raw, api.now() if brief else None))
    if args.exit_code:
        _end_with_difference(args, differences)


def _read_differences(api: "Api", args: argparse.Namespace) -> "v1.Differences":
    from holdfast.api import v1

    silent = not args.json and output.is_brief(long=args.long)
    older, current = state_versions.exact_id(api, args.state, args.from_, silent=silent, long=args.long)
    newer, _ = state_versions.exact_id(api, args.state, args.to, silent=silent, long=args.long)
    values = "true" if args.show_values else None
    return api.get(
        v1.Differences, "diff", args.state, **{"from": older, "to": newer or current}, values=values
    )


def _end_with_difference(args: argparse.Namespace, differences: "v1.Differences") -> None:
    """Exit with 2 if two versions differ. Raise `CommandError` if they cannot be compared."""
    if differences.encrypted:
        raise CommandError(
            f"The client encrypted the state {args.state}, so it is unknown whether the versions differ."
        )
    if differences.lineage_changed or differences.resources or differences.outputs:
        sys.exit(2)


@COMMAND.add(
    "get",
    "print the content of a state",
    f"""\
Print a version of a state as it is stored, by default the current one. Needs the role
reader. With the role outputs, the command prints only the outputs.

{version_reference.HELP}""",
    """\
  holdfast state get network/prod > now.tfstate
  holdfast state get network/prod --version @12 --output old.tfstate
""",
    arguments.STATE,
    option(
        "--version",
        type=version_reference.reference,
        metavar="VERSION",
        help="which version; default: the current one",
    ),
    option(
        "--output", type=Path, metavar="FILE", help="write to this new file, which only its owner can read"
    ),
    arguments.API,
    arguments.as_json("one JSON object about what was written; needs --output"),
)
def _get(args: argparse.Namespace) -> None:
    if args.json and args.output is None:
        raise UsageError("--json needs --output. Without --output, the command prints the content itself.")
    if args.output is not None and os.path.lexists(args.output):
        raise CommandError(f"{args.output} already exists: remove it, or name another file.")

    api = sign_in(args)
    version, _ = state_versions.exact_id(api, args.state, args.version)
    content, read = api.content(args.state, version)
    if args.output is None:
        _print(content)
        return
    _write(args.output, content)
    done = f"Wrote {len(content)} bytes to {args.output}."
    with output.after(done):
        if args.json:
            written = {
                "name": args.state.value,
                "version": read or version,
                "size": len(content),
                "file": str(args.output),
            }
            output.write_json(written)
        else:
            output.tell(f"holdfast: {done}")


def _print(content: bytes) -> None:
    """Print the bytes unchanged, or without control characters if the output is a terminal."""
    with output.checked():
        if sys.stdout.isatty():
            lines = content.decode(errors="replace").split("\n")
            print("\n".join(map(output.plain, lines)), end="")
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()


def _write(file: Path, content: bytes) -> None:
    """Create a file for its owner only. Raise `CommandError` if it exists."""
    try:
        private_file.create(file, content)
    except FileExistsError as error:
        raise CommandError(f"{file} already exists: remove it, or name another file.") from error
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}.") from error


COMMAND.include(state_resources.COMMAND)
COMMAND.include(state_changes.COMMAND)
COMMAND.include(freeze.COMMAND)

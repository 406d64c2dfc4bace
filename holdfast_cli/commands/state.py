"""`holdfast state`: states, their history, and what can be done about them without Terraform."""

import argparse
import json
import os
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from holdfast_cli.api import management, state_versions, version_reference
from holdfast_cli.api.management import member, number, text, time
from holdfast_cli.api.sign_in import sign_in
from holdfast_cli.api.state_texts import lock_fields, lock_words, moment, size, status_words, whole, word
from holdfast_cli.commands import freeze, state_changes
from holdfast_cli.config import arguments, rules
from holdfast_cli.errors import CommandError, UsageError
from holdfast_cli.terminal import output, state_diff
from holdfast_cli.terminal.declaration import Command, Option, either, option

if TYPE_CHECKING:
    from holdfast_cli.api.management import Document

_LIMIT: Final = 20
"""Versions of a history, as many as the API has in a page."""


COMMAND = Command(
    """\
Operations on states that Terraform does not have. They use the credentials that
Terraform uses: TF_HTTP_USERNAME and TF_HTTP_PASSWORD, or TF_TOKEN_… of the API's
host, as `holdfast login` exports them; and no AWS credentials.""",
    """\
  holdfast state list
  holdfast state history network/prod
  holdfast state diff network/prod @12
  holdfast state restore network/prod @12 --reason 'the apply of Tuesday'
  holdfast state freeze 'network/*' --reason 'incident 4711' --until 2h
""",
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
    "show which states there are",
    "Show the states in your scope, with their locks and freezes. Options narrow it down.",
    """\
  holdfast state list
  holdfast state list network/ --locked
  holdfast state list '*/prod'
  holdfast state list --larger-than 4MB --older-than 30d
  holdfast state list --deleted --json
""",
    arguments.PREFIX,
    option("--locked", action="store_true", help="only those that are locked or frozen"),
    option("--deleted", action="store_true", help="only those that are deleted"),
    option("--larger-than", type=rules.size, metavar="SIZE", help="only larger ones, as 4MB"),
    option(
        "--older-than",
        type=rules.duration,
        metavar="DURATION",
        help="only those that were last written, or deleted, longer ago, as 30d",
    ),
    arguments.API,
    arguments.as_json("one JSON array"),
)
def _list(asked: argparse.Namespace) -> None:
    api = sign_in(asked)
    found = api.pages(
        "states",
        "states",
        progress="states",
        prefix=asked.states.prefix,
        deleted="true" if asked.deleted else None,
    )
    states = [item for item in found if _is_wanted(item, asked)]
    if asked.json:
        output.write(json.dumps(states, indent=2))
    elif states:
        output.write(_table_of_states(states, deleted=asked.deleted))
    else:
        output.write("There are no such states in your scope.")


def _is_wanted(item: "Document", asked: argparse.Namespace) -> bool:
    size, modified = number(item, "size"), time(item, "modified")
    return (
        asked.states.covers(text(item, "name"))
        and (not asked.locked or bool(member(item, "lock")))
        and (item.get("deleted") is True) == asked.deleted
        and (asked.larger_than is None or (size is not None and size > asked.larger_than))
        and (asked.older_than is None or (modified is not None and _age(modified) > asked.older_than))
    )


def _age(moment: datetime) -> timedelta:
    return datetime.now(UTC) - moment


def _table_of_states(states: "list[Document]", *, deleted: bool) -> str:
    rows = [
        [
            text(item, "name"),
            size(number(item, "size")),
            word(item, "modified"),
            lock_words(member(item, "lock")),
        ]
        for item in states
    ]
    return output.table(("STATE", "SIZE", "DELETED" if deleted else "MODIFIED", "LOCK"), rows)


@COMMAND.add(
    "show",
    "show one state",
    """\
Show the current version of a state, who wrote it, how many resources it has (to
the role reader), and its lock.""",
    """\
  holdfast state show network/prod
  holdfast state show network/prod --json
""",
    arguments.STATE,
    arguments.API,
    arguments.as_json(),
)
def _show(asked: argparse.Namespace) -> None:
    found = sign_in(asked).get("states", asked.state)
    output.write(json.dumps(found, indent=2) if asked.json else output.listed(_fields(found)))


def _fields(found: "Document") -> list[tuple[str, str]]:
    fields = [("state", text(found, "name"))]
    if not text(found, "version"):
        fields.append(("version", "none: there is no state of this name now"))
    else:
        counts = member(found, "resources")
        resources = ", ".join(
            f"{whole(counts, kind)} {kind}" for kind in ("managed", "data") if kind in counts
        )
        fields += [
            ("version", text(found, "version")),
            ("serial", whole(found, "serial")),
            ("lineage", text(found, "lineage")),
            ("size", size(number(found, "size"))),
            ("written", moment(found, "modified")),
            ("by", _writer(found)),
            ("operation", text(found, "operation")),
            ("status", status_words(text(found, "status"))),
            ("Terraform", text(found, "terraform_version")),
            ("resources", resources),
            ("outputs", whole(counts, "outputs")),
        ]
        if found.get("encrypted") is True:
            fields.append(("encrypted", "by the client, so that its content is not shown"))
    fields.append(("declared", "yes" if found.get("record") is True else ""))
    fields = [(name, value) for name, value in fields if value]
    lock = member(found, "lock")
    return [*fields, *(lock_fields(lock) if lock else [("lock", "none")])]


def _writer(version: "Document") -> str:
    principal, who = text(version, "principal"), text(version, "who")
    return f"{principal} ({who})" if principal and who and who != principal else principal or who


@COMMAND.add(
    "history",
    "show the versions of a state",
    """\
Show the versions of a state, newest first: who wrote which, and whether it was
acknowledged. The writer of one that was never acknowledged was refused. Takes the
role reader.""",
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
            help=f"only the newest COUNT; default: {_LIMIT}",
        ),
        option("--all", action="store_true", help="all versions that there are"),
    ),
    arguments.API,
    arguments.as_json("one JSON array"),
)
def _history(asked: argparse.Namespace) -> None:
    history = state_versions.all_of(sign_in(asked), asked.state)
    versions = list(islice(history, None if asked.all else asked.limit))
    history.close()
    if asked.json:
        output.write(json.dumps(versions, indent=2))
    elif versions:
        output.write(_table_of_versions(versions))
    else:
        output.write(output.wrapped(f"The state {asked.state} has no versions."))
    if not asked.all and len(versions) == asked.limit:
        output.tell(f"holdfast: These are the newest {asked.limit}; --all shows all that there are.")


def _table_of_versions(versions: "list[Document]") -> str:
    rows = [
        [
            whole(version, "serial"),
            word(version, "time"),
            _status(version),
            text(version, "version"),
            _writer(version),
            text(version, "operation"),
            size(number(version, "size")),
            _note(version),
        ]
        for version in versions
    ]
    headings = ("SERIAL", "TIME", "STATUS", "VERSION", "BY", "OPERATION", "SIZE", "NOTE")
    return output.table(headings, rows)


def _status(version: "Document") -> str:
    status = status_words(text(version, "status"))
    words = ["deleted" if version.get("delete_marker") is True else status]
    if version.get("current") is True:
        words.insert(0, "current")
    return ", ".join(filter(None, words))


def _note(version: "Document") -> str:
    source, reason = text(version, "restored_from"), text(version, "reason")
    restored = f"restored from {source}" if source else ""
    return ": ".join(filter(None, (restored, reason)))


@COMMAND.add(
    "diff",
    "show what differs between two versions",
    f"""\
Show which resources, attributes and outputs differ between two versions of a
state. Without TO it is the current version, without FROM the version before TO.
Takes the role reader.

Values are masked unless --show-values; with it, what the state marks sensitive
stays masked. A state does not know everything that a provider's schema calls
sensitive.

{version_reference.HELP}""",
    """\
  holdfast state diff network/prod
  holdfast state diff network/prod @12
  holdfast state diff network/prod @2026-11-20T14:00 @2026-11-21 --show-values
  holdfast state diff network/prod @12 @14 --json
""",
    arguments.STATE,
    _version("from_", "FROM", "the version before TO"),
    _version("to", "TO", "the current one"),
    option(
        "--show-values", action="store_true", help="show values, except those that the state marks sensitive"
    ),
    arguments.API,
    arguments.as_json(),
)
def _diff(asked: argparse.Namespace) -> None:
    api = sign_in(asked)
    named = [one for one in (asked.from_, asked.to) if one is not None]
    searched = [one for one in named if one.id is None]  # an ID needs no search
    found = state_versions.find(api, asked.state, searched)
    ids = {one: one.id for one in named}
    ids |= {one: management.text(version, "version") for one, version in zip(searched, found, strict=True)}
    document = api.get(
        "diff",
        asked.state,
        **{"from": ids.get(asked.from_), "to": ids.get(asked.to)},
        values="true" if asked.show_values else None,
    )
    if asked.json:
        output.write(json.dumps(document, indent=2))
        return
    output.write(state_diff.text(document))


@COMMAND.add(
    "get",
    "print the content of a state",
    f"""\
Print a version of a state as it is stored, by default the current one. Takes the
role reader; the role outputs gets it reduced to its outputs.

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
    option("--output", type=Path, metavar="FILE", help="a new file, which only its owner can read"),
    arguments.API,
    arguments.as_json("one JSON object about what was written; goes with --output"),
)
def _get(asked: argparse.Namespace) -> None:
    if asked.json and asked.output is None:
        raise UsageError("Without --output the content itself is printed: --json goes with --output.")
    if asked.output is not None and os.path.lexists(asked.output):
        raise CommandError(f"{asked.output} is there already: remove it, or name another file.")

    api, version = sign_in(asked), None
    if asked.version is not None:
        version = asked.version.id
        if version is None:
            [found] = state_versions.find(api, asked.state, [asked.version])
            version = management.text(found, "version")
    progress = output.Progress()
    try:
        progress.show(f"Reading {asked.state}")
        content, read = api.content(asked.state, version)
    finally:
        progress.end()
    if asked.output is None:
        _print(content)
        return
    _write(asked.output, content)
    done = f"Wrote {len(content)} bytes to {asked.output}."
    with output.after(done):
        if asked.json:
            written = {
                "name": asked.state.value,
                "version": read or version,
                "size": len(content),
                "file": str(asked.output),
            }
            output.write(json.dumps(written, indent=2))
        else:
            output.tell(f"holdfast: {done}")


def _print(content: bytes) -> None:
    """Print the bytes as they are; on a terminal without characters that control it."""
    with output.checked():
        if sys.stdout.isatty():
            lines = content.decode(errors="replace").split("\n")
            print("\n".join(map(output.plain, lines)), end="")
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()


def _write(file: Path, content: bytes) -> None:
    """Create a file that only its owner can read.

    Raises:
        CommandError: it is there already, or cannot be written. A part of it is not left.
    """
    try:
        number = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise CommandError(f"{file} is there already: remove it, or name another file.") from error
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}.") from error
    try:
        with open(number, "wb") as stream:  # noqa: PTH123 it is open already
            stream.write(content)
    except BaseException as error:
        with suppress(OSError):
            file.unlink()
        if isinstance(error, OSError):
            raise CommandError(f"{file} cannot be written: {error.strerror}.") from error
        raise


COMMAND.include(state_changes.COMMAND)
COMMAND.include(freeze.COMMAND)

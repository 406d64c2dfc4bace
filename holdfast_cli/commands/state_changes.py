"""`holdfast state restore`, `delete`, `undelete` and `create`."""

import argparse
import json
import secrets
from typing import TYPE_CHECKING

from holdfast_cli.api import management, state_versions, version_reference
from holdfast_cli.api.management import text
from holdfast_cli.api.sign_in import sign_in
from holdfast_cli.api.state_texts import moment, whole
from holdfast_cli.config import arguments
from holdfast_cli.errors import CommandError
from holdfast_cli.terminal import asking, output
from holdfast_cli.terminal.declaration import Command, option

if TYPE_CHECKING:
    from holdfast_cli.api.management import Document

_PLAN = "Infrastructure does not go back with the state: run `terraform plan` to see what it lacks."


COMMAND = Command()


@COMMAND.add(
    "restore",
    "go back to an earlier version",
    f"""\
Write the content of an earlier version again, as a new version with the next
serial, under a lock. No version is lost, so that a restore can be undone by
another. Infrastructure does not go back with the state: run `terraform plan`
afterwards. Restoring what is current changes nothing. Takes the role maintainer.

{version_reference.HELP}
A version that was never acknowledged is restored only by its ID.""",
    """\
  holdfast state restore network/prod @12 --reason 'the apply of Tuesday'
  holdfast state restore network/prod @2026-11-20T14:00 --reason 'incident 4711'
  holdfast state restore network/prod L4kqtJlcpXroDTDmJ7rmSpXd3dIbrHY8 --reason 'undo' --json
""",
    arguments.STATE,
    option(
        "version",
        type=version_reference.reference,
        metavar="VERSION",
        help="which version, by ID, @12 or @TIME",
    ),
    arguments.REASON,
    arguments.API,
    arguments.as_json(),
)
def _restore(asked: argparse.Namespace) -> None:
    command_id = secrets.token_hex(16)
    api = sign_in(asked)
    current = api.get("states", asked.state)
    [version] = state_versions.find(api, asked.state, [asked.version])
    state_versions.refuse_never_acknowledged(version, asked.version, asked.state)
    now = f" The current version has serial {whole(current, 'serial')}." if whole(current, "serial") else ""
    output.tell(f"holdfast: Restoring {asked.state} to {state_versions.described(version)}.{now}")
    wanted = {"version": text(version, "version"), "reason": asked.reason, "id": command_id}
    if text(current, "version"):
        wanted["current"] = text(current, "version")
    restored = api.change("POST", "restore", asked.state, wanted)
    if restored.get("changed") is False:
        done = f"The state {asked.state} has that content already: nothing was written."
    else:
        source = text(restored, "restored_from") or wanted["version"]
        done = (
            f"The state {asked.state} is restored: version {text(restored, 'version')} with serial "
            f"{whole(restored, 'serial')} has the content of version {source}, whose serial is "
            f"{whole(restored, 'restored_serial')}. {_PLAN}"
        )
    _tell(asked, restored, done)


@COMMAND.add(
    "delete",
    "delete a state",
    """\
Delete a state, after the name was typed to confirm it. Its versions stay, and
`holdfast state undelete` brings it back. Infrastructure stays as it is. A state that
changed since it was shown is not deleted. Takes the role maintainer.""",
    """\
  holdfast state delete network/old
  holdfast state delete network/old --yes
""",
    arguments.STATE,
    option("--yes", action="store_true", help="do not ask"),
    arguments.API,
    arguments.as_json(),
)
def _delete(asked: argparse.Namespace) -> None:
    api = sign_in(asked)
    found = api.get("states", asked.state)
    version = text(found, "version")
    if not version:
        raise CommandError(f"There is no current version of the state {asked.state}: nothing was deleted.")
    counts = management.member(found, "resources")
    tracked = management.number(counts, "managed")
    resources = f" It has {tracked} managed resources, which stay without a state." if tracked else ""
    if not asked.yes:
        asking.for_word(
            f"This deletes the state {asked.state}: version {version}, serial "
            f"{whole(found, 'serial') or '-'}, of {moment(found, 'modified') or '-'}.{resources}",
            asked.state.value,
        )
    deleted = api.change("POST", "delete", asked.state, {"version": version})
    done = (
        f"The state {asked.state} is deleted. Its versions stay: `holdfast state undelete {asked.state}` "
        "brings it back."
    )
    _tell(asked, deleted, done)


@COMMAND.add(
    "undelete",
    "bring a deleted state back",
    """\
Write the newest version of a deleted state again, under a lock. A state that is
not deleted stays as it is. Takes the role maintainer.""",
    """\
  holdfast state list --deleted
  holdfast state undelete network/prod
  holdfast state undelete network/prod --json
""",
    arguments.STATE,
    arguments.API,
    arguments.as_json(),
)
def _undelete(asked: argparse.Namespace) -> None:
    api = sign_in(asked)
    marker = state_versions.marker_to_undo(api, asked.state)
    undeleted = api.change("POST", "undelete", asked.state, {"marker": marker})
    done = (
        f"The state {asked.state} is back as version {text(undeleted, 'version')} with serial "
        f"{whole(undeleted, 'serial')}: the content of version {text(undeleted, 'from_version')}, of "
        f"{moment(undeleted, 'from_time')}. Run `terraform plan` to see whether it still matches what it "
        "describes."
    )
    _tell(asked, undeleted, done)


@COMMAND.add(
    "create",
    "declare the name of a new state",
    """\
Declare a name, for a team that takes no names of new states which nobody has
declared. No state is written: the first apply does that. Takes the role writer.""",
    """\
  holdfast state create network/staging
  holdfast state create network/staging --json
""",
    arguments.STATE,
    arguments.API,
    arguments.as_json(),
)
def _create(asked: argparse.Namespace) -> None:
    created = sign_in(asked).change("POST", "create", asked.state, {})
    done = (
        f"The name {asked.state} is declared already."
        if created.get("created") is False
        else f"The name {asked.state} is declared: the first apply may write the state."
    )
    _tell(asked, created, done)


def _tell(asked: argparse.Namespace, document: "Document", done: str) -> None:
    """Print what was done: the document of the API, or sentences."""
    with output.after(output.plain(done)):
        output.write(json.dumps(document, indent=2) if asked.json else output.wrapped(output.plain(done)))

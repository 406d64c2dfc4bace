"""`holdfast state restore`, `delete`, `undelete`, `create`, `undeclare`: change a state or declare a name."""

import argparse
import json
import secrets

from holdfast.api import form, v1
from holdfast_cli.api import state_versions, version_reference
from holdfast_cli.api.management import ApiError
from holdfast_cli.api.sign_in import sign_in
from holdfast_cli.api.state_texts import described, moment, whole
from holdfast_cli.config import arguments, rules
from holdfast_cli.errors import CommandError
from holdfast_cli.terminal import asking, output
from holdfast_cli.terminal.declaration import Command, option

_PLAN = "Infrastructure does not go back with the state: run `terraform plan` to see what it lacks."


class _Removed(argparse.Action):
    """The options of 0.3.0 that replaced a lineage. The error names the commands that do."""

    def __call__(self, *_: object) -> None:
        raise argparse.ArgumentError(
            self,
            "a restore keeps the lineage. To replace the state by a version of another lineage, run "
            "`holdfast state get STATE --version VERSION --output old.tfstate`, then `terraform state push "
            "-force old.tfstate`",
        )


COMMAND = Command()


@COMMAND.add(
    "restore",
    "restore an earlier version of a state",
    f"""\
Write the content of an earlier version again, as a new version with the next
serial, under a lock. No version is lost, so that a restore can be undone by
another. Infrastructure does not go back with the state: run `terraform plan`
afterwards. Restoring what is current changes nothing. With --frozen the lock is your
own freeze, which stays, so that nobody can write in between. Takes the role
maintainer.

{version_reference.HELP}
A version that was never acknowledged is restored only by its ID.""",
    """\
  holdfast state restore network/prod @12 --reason 'the apply of Tuesday'
  holdfast state restore network/prod @2026-11-20T14:00 --reason 'incident 4711'
  holdfast state restore network/prod L4kqtJlcpXroDTDmJ7rmSpXd3dIbrHY8 --reason 'undo' --json
  holdfast state restore network/prod @12 --reason 'undo' --frozen 0123456789abcdef0123456789abcdef
""",
    arguments.STATE,
    option(
        "version",
        type=version_reference.reference,
        metavar="VERSION",
        help="which version, by ID, @12, @TIME or @previous",
    ),
    arguments.REASON,
    option("--replace-lineage", "--yes", nargs=0, action=_Removed, help=argparse.SUPPRESS),
    option(
        "--frozen",
        type=rules.freeze_id,
        metavar="ID",
        help="the ID of your own freeze, which `holdfast lock list` shows in brackets",
    ),
    arguments.API,
    arguments.as_json(),
)
def _restore(asked: argparse.Namespace) -> None:
    command_id = secrets.token_hex(16)
    api = sign_in(asked)
    current: v1.StateDescription | v1.ResolvedVersion | None
    version: v1.Version | v1.ResolvedVersion
    if asked.version.is_id:
        current = api.get(v1.StateDescription, "states", asked.state)
        version = state_versions.with_id(api, asked.state, asked.version.sent)
    else:
        version, current = state_versions.resolve(api, asked.state, asked.version.sent)
        if version.status == v1.NEVER_ACKNOWLEDGED:
            raise CommandError(
                f"{asked.version} of the state {asked.state} is {described(version)}: its writer was "
                f"refused. To restore it all the same, name it by its ID, {version.version}."
            )
    if not (current and current.version):  # the request needs a current version to compare
        raise CommandError(
            f"There is no current version of the state {asked.state}: nothing was restored. If it was "
            f"deleted, `holdfast state undelete {asked.state}` brings it back."
        )
    if not asked.version.is_id:
        output.tell(f"holdfast: {asked.version} is {described(version)}.")
    now = f" The current version has serial {current.serial}." if current.serial is not None else ""
    output.tell(f"holdfast: Restoring {asked.state} to {described(version)}.{now}")
    wanted = v1.Restore(
        version=version.version,
        reason=asked.reason,
        id=command_id,
        current=current.version,
        frozen=asked.frozen,
    )
    try:
        restored = api.change(v1.Restored, "POST", "restore", asked.state, wanted)
    except ApiError as failure:
        if asked.frozen is None or failure.code != "frozen":
            raise
        raise CommandError(
            f"{failure} --frozen names your own freeze, until it ends; afterwards restore without it."
        ) from failure
    if restored.changed is False:
        done = f"The state {asked.state} has that content already: nothing was written."
    else:
        source = restored.restored_from or version.version
        done = (
            f"The state {asked.state} is restored: version {restored.version} with serial "
            f"{whole(restored.serial)} has the content of version {source}, whose "
            f"serial is {whole(restored.restored_serial)}. {_PLAN}"
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
    state = api.get(v1.StateDescription, "states", asked.state)
    if not state.version:
        raise CommandError(f"There is no current version of the state {asked.state}: nothing was deleted.")
    if state.resources is None:
        resources = " How many resources it has is unknown: its content was not read."
    else:
        tracked = state.resources.managed
        resources = f" It has {tracked} managed resources, which stay without a state." if tracked else ""
    if not asked.yes:
        asking.for_word(
            f"This deletes the state {asked.state}: version {state.version}, serial "
            f"{whole(state.serial) or '-'}, of {moment(state, 'modified') or '-'}.{resources}",
            asked.state.value,
        )
    deleted = api.change(v1.Deleted, "POST", "delete", asked.state, v1.Delete(version=state.version))
    done = (
        f"The state {asked.state} is deleted. Its versions stay: `holdfast state undelete {asked.state}` "
        "brings it back."
    )
    _tell(asked, deleted, done)


@COMMAND.add(
    "undelete",
    "restore a deleted state",
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
    marker, _ = state_versions.resolve(api, asked.state, "@deleted")
    wanted = v1.Undelete(marker=marker.version)
    undeleted = api.change(v1.Undeleted, "POST", "undelete", asked.state, wanted)
    done = (
        f"The state {asked.state} is back as version {undeleted.version} with serial "
        f"{whole(undeleted.serial)}: the content of version {undeleted.from_version}, of "
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
    created = sign_in(asked).change(v1.Declared, "POST", "create", asked.state, form.Document())
    done = (
        f"The name {asked.state} is declared already."
        if created.created is False
        else f"The name {asked.state} is declared: the first apply may write the state."
    )
    _tell(asked, created, done)


@COMMAND.add(
    "undeclare",
    "undo the declaration of a name",
    """\
Delete the record of a name that has no state: a typing error, or a workspace that
nobody needs, whose tags go with it. It holds the lock of the name meanwhile, so
that no first apply is cut off. A name with a state stays. Takes the role
maintainer.""",
    """\
  holdfast state list --declared
  holdfast state undeclare network/prdo
  holdfast state undeclare network/prdo --json
""",
    arguments.STATE,
    arguments.API,
    arguments.as_json(),
)
def _undeclare(asked: argparse.Namespace) -> None:
    api = sign_in(asked)
    undeclared_already = f"The name {asked.state} is not declared: nothing was undeclared."
    try:
        found = api.get(v1.StateDescription, "states", asked.state)
    except ApiError as failure:
        if failure.code == "no_state":
            raise CommandError(undeclared_already) from failure
        raise
    if found.version:
        raise CommandError(f"The name {asked.state} has a state, which declares it: nothing was undeclared.")
    if not found.record:
        raise CommandError(undeclared_already)
    wanted = v1.Undeclare(record=found.record_version or "")
    undeclared = api.change(v1.Undeclared, "POST", "undeclare", asked.state, wanted)
    done = f"The name {asked.state} is not declared any more."
    _tell(asked, undeclared, done)


def _tell(asked: argparse.Namespace, document: form.Document, done: str) -> None:
    with output.after(output.plain(done)):
        output.write(json.dumps(document.raw, indent=2) if asked.json else output.wrapped(output.plain(done)))

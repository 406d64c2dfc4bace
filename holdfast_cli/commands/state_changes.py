"""`holdfast state restore`, `delete`, `undelete`, `declare`, `undeclare`: change a state or its name."""

import argparse
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.api import form
from holdfast_cli.api import state_versions, version_reference
from holdfast_cli.api.management import ApiError
from holdfast_cli.api.sign_in import sign_in
from holdfast_cli.api.state_texts import described, described_briefly, moment, whole
from holdfast_cli.config import arguments, rules
from holdfast_cli.errors import CommandError
from holdfast_cli.terminal import asking, output
from holdfast_cli.terminal.declaration import Command, option

if TYPE_CHECKING:
    from holdfast.api import v1
    from holdfast_cli.api.management import Api

_PLAN = "A restore does not change the infrastructure: run `terraform plan` to compare it with the state."


class _NeverAsks(argparse.Action):
    """`--yes`, as other commands have it."""

    def __call__(self, *_: object) -> None:
        raise argparse.ArgumentError(self, "a restore does not ask for confirmation; remove this option")


class _Removed(argparse.Action):
    """The option of 0.3.0 that replaced a lineage. The error names the commands that do."""

    def __call__(self, *_: object) -> None:
        raise argparse.ArgumentError(
            self,
            "a restore keeps the lineage. To replace the state with a version of another lineage, run "
            "`holdfast state get STATE --version VERSION --output old.tfstate`, then `terraform state push "
            "-force old.tfstate`",
        )


COMMAND = Command()


@COMMAND.add(
    "restore",
    "restore an earlier version of a state",
    f"""\
Write the content of an earlier version again, as a new version with the next serial.
The command holds the state's lock while it writes. No version is lost, so you can undo
a restore with another restore. A restore does not change the infrastructure: run
`terraform plan` afterwards. If the current version is already the version that you
name, or a copy of it that an earlier restore wrote, the command writes nothing. With
--frozen, the command writes under your own freeze. The freeze stays, so no client can
write before or after the restore. Needs the role maintainer.

{version_reference.HELP}
To restore a version that was never acknowledged, name it by its ID.""",
    """\
  holdfast state restore network/prod @12 --reason "undo Tuesday's apply"
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
    option("--replace-lineage", nargs=0, action=_Removed, help=argparse.SUPPRESS),
    option("--yes", nargs=0, action=_NeverAsks, help=argparse.SUPPRESS),
    option(
        "--frozen",
        type=rules.freeze_id,
        metavar="ID",
        help="the ID of your own freeze, which `holdfast lock show` shows",
    ),
    arguments.API,
    arguments.LONG,
    arguments.as_json(),
)
def _restore(args: argparse.Namespace) -> None:
    import secrets

    from holdfast.api import v1

    command_id = secrets.token_hex(16)
    api = sign_in(args)
    current: v1.StateDescription | v1.ResolvedVersion | None
    version: v1.Version | v1.ResolvedVersion
    if args.version.is_id:
        current = api.get(v1.StateDescription, "states", args.state)
        version = state_versions.with_id(api, args.state, args.version.sent)
    else:
        version, current = state_versions.resolve(api, args.state, args.version.sent)
        if version.status == v1.NEVER_ACKNOWLEDGED:
            raise CommandError(
                f"{args.version} of the state {args.state} is {_described(api, args, version)}. Holdfast "
                "refused this write. To restore the version anyway, name it by its ID, "
                f"{version.version}."
            )
    if not (current and current.version):  # the request needs a current version to compare
        raise CommandError(
            f"There is no current version of the state {args.state}: nothing was restored. If the state "
            f"was deleted, `holdfast state undelete {args.state}` brings it back."
        )
    said = _described(api, args, version)
    which = said if args.version.is_id else f"{args.version}, {said}"
    now = f" The current version has serial {current.serial}." if current.serial is not None else ""
    output.tell(f"holdfast: Restoring {args.state} to {which}.{now}")
    wanted = v1.Restore(
        version=version.version,
        reason=args.reason,
        id=command_id,
        current=current.version,
        frozen=args.frozen,
    )
    try:
        restored = api.change(v1.Restored, "POST", "restore", args.state, wanted)
    except ApiError as failure:
        if args.frozen is None or failure.code != "frozen":
            raise
        raise CommandError(
            f"{failure} --frozen must name your own freeze. After the freeze has ended, restore without "
            "--frozen."
        ) from failure
    if restored.changed is False:
        done = f"The state {args.state} already has that content: nothing was written."
    else:
        now, source = _with_serial(args, restored), whole(restored.restored_serial)
        if _is_brief(args):
            outcome = f"has {now} now, restored from serial {source}"
        else:
            which = f"version {restored.restored_from or version.version}, whose serial is {source}"
            outcome = f"is restored: {now} has the content of {which}"
        done = f"The state {args.state} {outcome}. {_PLAN}"
    _tell(args, restored, done)


@COMMAND.add(
    "delete",
    "delete a state",
    """\
Delete a state, after you type its name to confirm. Its versions are kept, and `holdfast
state undelete` brings it back. The infrastructure is not changed. If the state changes
before you confirm, it is not deleted. Needs the role maintainer.""",
    """\
  holdfast state delete network/old
  holdfast state delete network/old --yes --reason 'moved to network/new'
""",
    arguments.STATE,
    arguments.NOTED_REASON,
    option("--yes", action="store_true", help="do not ask for confirmation"),
    arguments.API,
    arguments.LONG,
    arguments.as_json(),
)
def _delete(args: argparse.Namespace) -> None:
    from holdfast.api import v1

    api = sign_in(args)
    state = api.get(v1.StateDescription, "states", args.state)
    if not state.version:
        raise CommandError(
            f"There is no current version of the state {args.state}: nothing was deleted. `holdfast state "
            "list` shows the states that you can delete."
        )
    if state.resources is None:
        resources = " The number of its resources is unknown."
    else:
        tracked = state.resources.managed
        is_one = tracked == 1
        exist = "resource continues to exist" if is_one else "resources continue to exist"
        resources = (
            f" Its {tracked} managed {exist}, but no state will track {'it' if is_one else 'them'}."
            if tracked
            else ""
        )
    if not args.yes:
        which = (
            described_briefly(state, api.now())
            if _is_brief(args)
            else f"version {state.version}, serial {whole(state.serial) or '-'}, "
            f"of {moment(state, 'modified') or '-'}"
        )
        asking.for_word(f"The command deletes the state {args.state}: {which}.{resources}", args.state.value)
    deleted = api.change(
        v1.Deleted, "POST", "delete", args.state, v1.Delete(version=state.version, reason=args.reason)
    )
    done = (
        f"The state {args.state} was deleted. Its versions are kept: `holdfast state undelete {args.state}` "
        "brings it back."
    )
    _tell(args, deleted, done)


@COMMAND.add(
    "undelete",
    "restore a deleted state",
    """\
Write the newest version of a deleted state again, under a lock. A state that is
not deleted is not changed. Needs the role maintainer.""",
    """\
  holdfast state list --deleted
  holdfast state undelete network/prod
  holdfast state undelete network/prod --reason 'deleted by mistake' --json
""",
    arguments.STATE,
    arguments.NOTED_REASON,
    arguments.API,
    arguments.LONG,
    arguments.as_json(),
)
def _undelete(args: argparse.Namespace) -> None:
    from holdfast.api import v1

    api = sign_in(args)
    marker, _ = state_versions.resolve(api, args.state, "@deleted")
    wanted = v1.Undelete(marker=marker.version, reason=args.reason)
    undeleted = api.change(v1.Undeleted, "POST", "undelete", args.state, wanted)
    back = f"The state {args.state} is back as {_with_serial(args, undeleted)}."
    plan = "Run `terraform plan` to compare it with the infrastructure."
    if _is_brief(args):
        source = form.read(
            v1.ResolvedVersion, {"version": undeleted.from_version, "time": undeleted.raw.get("from_time")}
        )
        with output.after(back):
            which = _described(api, args, source)
            of_marker = "" if which.startswith("serial") else "the deleted version, "
            content = f"It was restored from {of_marker}{which}."
    else:
        content = (
            f"It has the content of version {undeleted.from_version}, which was written "
            f"{moment(undeleted, 'from_time')}."
        )
    _tell(args, undeleted, f"{back} {content} {plan}")


@COMMAND.add(
    "declare",
    "declare the name of a new state",
    """\
Declare the name of a new state. If the team has the setting `new_states = "declared"`,
Holdfast refuses the first apply under a name that is not declared. The command writes
no state. Needs the role writer.""",
    """\
  holdfast state declare network/staging
  holdfast state declare network/staging --json
""",
    arguments.STATE,
    arguments.API,
    arguments.as_json(),
)
def _declare(args: argparse.Namespace) -> None:
    from holdfast.api import v1

    declared = sign_in(args).change(v1.Declared, "POST", "create", args.state, form.Document())
    done = (
        f"The name {args.state} was declared before, or already has a state. Nothing was changed."
        if declared.created is False
        else f"The name {args.state} is declared: the first apply may write the state."
    )
    _tell(args, declared, done)


@COMMAND.add(
    "undeclare",
    "undo the declaration of a name",
    """\
Delete the declaration of a name that has no state, for example after a typing error. If
the name is an unused workspace, its tags are also deleted. The command holds the lock
of the name while it runs, so that it does not interrupt a first apply. A name with a
state is not changed. Needs the role maintainer.""",
    """\
  holdfast state list --declared
  holdfast state undeclare network/prdo
  holdfast state undeclare network/prdo --json
""",
    arguments.STATE,
    arguments.API,
    arguments.as_json(),
)
def _undeclare(args: argparse.Namespace) -> None:
    from holdfast.api import v1

    api = sign_in(args)
    undeclared_already = (
        f"The name {args.state} is not declared, so nothing was changed. `holdfast state list --declared` "
        "lists the declared names that have no state."
    )
    try:
        found = api.get(v1.StateDescription, "states", args.state)
    except ApiError as failure:
        if failure.code == "no_state":
            raise CommandError(undeclared_already) from failure
        raise
    if found.version:
        raise CommandError(
            f"The name {args.state} has a state, and the command undeclares only names without a state. "
            "Nothing was changed."
        )
    if not found.record:
        raise CommandError(undeclared_already)
    wanted = v1.Undeclare(record=found.record_version or "")
    undeclared = api.change(v1.Undeclared, "POST", "undeclare", args.state, wanted)
    done = f"The name {args.state} is not declared any more."
    _tell(args, undeclared, done)


def _is_brief(args: argparse.Namespace) -> bool:
    return not args.json and output.is_brief(long=args.long)


def _with_serial(args: argparse.Namespace, written: "v1.Restored | v1.Undeleted") -> str:
    """Return which version was written: its serial, and except for people its ID."""
    serial = f"serial {whole(written.serial)}"
    return serial if _is_brief(args) else f"version {written.version} with {serial}"


def _described(api: "Api", args: argparse.Namespace, version: "v1.Version | v1.ResolvedVersion") -> str:
    """Describe a version: for people with its age and who wrote it, else with its ID and its time."""
    from holdfast.api import v1

    if not _is_brief(args):
        return described(version)
    known = version
    if isinstance(version, v1.ResolvedVersion):  # it does not say who wrote it
        with suppress(CommandError):
            found = state_versions.with_id(api, args.state, version.version)
            known = found if found.time else version
    return described_briefly(known, api.now())


def _tell(args: argparse.Namespace, document: form.Document, done: str) -> None:
    output.outcome(output.plain(done), document.raw if args.json else None)

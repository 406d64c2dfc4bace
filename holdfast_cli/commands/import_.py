"""`holdfast import`: moves states from another backend into Holdfast, and closes the other place."""

import argparse
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from holdfast.access import Action, Role, allowed
from holdfast_cli.api.sign_in import sign_in
from holdfast_cli.config import arguments, rules
from holdfast_cli.errors import CommandError, UsageError
from holdfast_cli.importing import closing, copying, layout, many, plan, planning, rewrite, sources
from holdfast_cli.importing.journal import Journal
from holdfast_cli.importing.many import Outcome
from holdfast_cli.importing.new_place import NewPlace
from holdfast_cli.importing.planning import Rule
from holdfast_cli.importing.run import Run
from holdfast_cli.importing.source import Settings
from holdfast_cli.terminal import output
from holdfast_cli.terminal.declaration import Command, Option, option, renamed
from holdfast_cli.terminal.output import some

COMMAND = Command(
    """\
Move many states from another backend. `plan` prints a plan to review. `run` imports the
states of the plan. `check` compares each state in the source and in Holdfast. Repeat
`check` until all pipelines use Holdfast. `close` locks the states in the source for
good. No command deletes a state.""",
    """\
  holdfast import plan s3://old-bucket/prefix --dynamodb-table locks > move.toml
  holdfast import run move.toml
  holdfast import check move.toml
  holdfast import close move.toml
""",
    renamed("open", "reopen"),
)

_FIRST = 3
"""How many states or objects are named on standard error for one reason."""
_PLAN = option(
    "plan", type=Path, metavar="PLAN", help="the plan, saved from the output of `holdfast import plan`"
)


_ROLES = {role.value: role for role in Role}


def _rule(text: str) -> Rule:
    try:
        return Rule.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _of_source(name: str, metavar: str, text: str) -> Option:
    return option(f"--{name}", type=rules.unicode_text, metavar=metavar, help=text)


@COMMAND.add(
    "plan",
    "write a plan: the states of a source, and their names",
    """\
List the states of a source, give each a name in Holdfast, and print a plan. A comment
at each state has its serial, or says why the state has no name. If a state has no name,
the exit code is 1. Save the plan in a file, and change names there. The command reads
the source and Holdfast, and changes nothing. Needs the role reader. The command
replaces an invalid name, or a name that another state has, with the nearest free name.

The plan of a bucket does not include errored.tfstate and *.backup, unless SOURCE is the
key of such a file. It also omits an object that is not a state, unless the object's key
ends with .tfstate or SOURCE is that key.

A rule of --map is PATTERN=NAME. The pattern matches what the plan has after 'from'. The
last {placeholder} of a pattern matches any text; the others match text without /. The
first rule that matches names the state.

sources:
  s3://BUCKET[/PREFIX]           with your AWS credentials
  gitlab://HOST/GROUP[/PROJECT]  with GITLAB_TOKEN
  hcp://HOST/ORGANIZATION        with TF_TOKEN_...; also Terraform Enterprise
  https://...                    addresses of another http backend, with IMPORT_HTTP_USERNAME
                                 and IMPORT_HTTP_PASSWORD""",
    """\
  holdfast import plan s3://old-bucket/prefix --dynamodb-table locks > move.toml
  holdfast import plan s3://old-bucket --map 'env:/{ws}/{key}.tfstate={key}/{ws}'
  holdfast import plan gitlab://gitlab.example.com/infra --map 'infra/{project}#{name}={project}/{name}'
  holdfast import plan https://old.example.com/states/a --lock-address '{address}/lock'
""",
    option("source", nargs="+", metavar="SOURCE", help="where the states are"),
    option(
        "--map",
        action="append",
        type=_rule,
        metavar="PATTERN=NAME",
        help="a rule that names states; may be repeated; applies before the rules of the source",
    ),
    _of_source("dynamodb-table", "TABLE", "s3: the DynamoDB table with the clients' locks"),
    _of_source(
        "workspace-key-prefix",
        "TEXT",
        "s3: the workspace_key_prefix of the clients' blocks, even if they set it to ''; default: env:",
    ),
    _of_source(
        "lock-address", "URL", "https: the clients' lock_address, with {address} for the state's address"
    ),
    _of_source("unlock-address", "URL", "https: the clients' unlock_address; default: the lock_address"),
    _of_source("lock-method", "VERB", "https: the clients' lock_method; default: LOCK"),
    _of_source("unlock-method", "VERB", "https: the clients' unlock_method; default: UNLOCK"),
    option(
        "--region",
        type=rules.region,
        metavar="REGION",
        help="s3: the region of the bucket; default: AWS_REGION, or else the region of the AWS profile",
    ),
    arguments.API,
)
def _plan(args: argparse.Namespace) -> None:
    options = {name: value for name in sources.OPTIONS if (value := getattr(args, name))}
    if args.workspace_key_prefix == "":  # as an argument of the block it differs from none
        options["workspace_key_prefix"] = ""
    settings = Settings(tuple(args.source), options)
    source = sources.open_source(settings)
    place = _place(args, {Action.READ})
    made = planning.make(settings, source, place, args.map or [])
    unnamed = [state for state in made.plan.states if state.name is None]
    output.write(plan.write(made.plan).rstrip("\n"))
    _tell(made)
    for state in unnamed:
        output.tell(f"holdfast: {Outcome(state.id, '', '', state.note).line}")
    count = len(made.plan.states)
    if unnamed:
        raise CommandError(
            f"States without a name: {len(unnamed)} of {count}. In the plan, name these states or remove "
            "their tables."
        )
    output.tell(f"holdfast: {'1 state' if count == 1 else f'{count} states'} can be imported.")


def _tell(made: planning.Made) -> None:
    """Say what the reader of a plan must not overlook."""
    if left_out := [each.id for each in made.plan.left_out]:
        objects = "1 object" if len(left_out) == 1 else f"{len(left_out)} objects"
        first = some(left_out, _FIRST)
        output.tell(
            f"holdfast: The plan does not include {objects}: {first}. The end of the plan says why each is "
            "not a state."
        )
    for state, why in made.renamed.items():
        output.tell(f"holdfast: {state} {why}")
    for group in made.alike:
        first = some(group, _FIRST)
        output.tell(
            f"holdfast: {first} have the same lineage, so they may be copies. Remove the tables of the "
            "copies from the plan."
        )
    if made.moved:
        changes = "1 state" if len(made.moved) == 1 else f"{len(made.moved)} states"
        first = some(made.moved, _FIRST)
        output.tell(
            f"holdfast: After the import, terraform.workspace will have a different value in {changes}: "
            f"{first}. The plan shows the new values."
        )


def _place(args: argparse.Namespace, actions: Collection[Action]) -> NewPlace:
    """Return the new place; raise `CommandError` at once if the caller may not do these actions anywhere."""
    from holdfast.api import v1

    api = sign_in(args)
    who = api.get(v1.Principal, "whoami")
    # A role of a newer API is left to the API.
    granted = [_ROLES[grant.role] for grant in who.grants or () if grant.role in _ROLES]
    if granted and not any(allowed(role).issuperset(actions) for role in granted):
        enough = next(role for role in Role if allowed(role).issuperset(actions))
        raise CommandError(f"This command needs the role '{enough}', which {who.principal} does not have.")
    return NewPlace(api)


_INTERRUPTED: Final[Mapping[str, str]] = {
    "run": "The import may still hold locks. To release these locks and to continue, run `holdfast import "
    "run {file}` again.",
    "close": "The command may have locked some of the states in the source. To lock the others, run "
    "`holdfast import close {file}` again. To release the locks, run `holdfast import reopen {file}`.",
    "reopen": "Some states may still be locked in the source. To release their locks, run `holdfast import "
    "reopen {file}` again.",
}
"""What to do after Ctrl-C in a command that holds locks; `{file}` is the path of the plan."""


@contextmanager
def _opened(args: argparse.Namespace, command: str) -> Iterator[Run]:
    read = plan.read(args.plan)
    place = _place(args, {Action.WRITE if command == "run" else Action.READ})
    source = sources.open_source(read.settings)
    with Journal.opened(args.plan, only_read=command == "check") as journal:
        journal.begin(place.api.address, read.settings)
        try:
            yield Run(read, journal, source, place)
        except KeyboardInterrupt as interrupt:
            if command in _INTERRUPTED:
                interrupt.add_note(_INTERRUPTED[command].format(file=args.plan))
            raise


def _report(args: argparse.Namespace, outcomes: Sequence[Outcome], more: str = "") -> None:
    """Print problems and a summary; raise `CommandError` with the summary if there are problems."""
    problems = [outcome for outcome in outcomes if outcome.is_problem]
    if args.json:
        output.write_json([outcome.to_json() for outcome in outcomes])
    for outcome in outcomes:
        if outcome.text and not args.json:
            output.tell(f"holdfast: {outcome.line}")
    line = f"{many.summary(outcomes)}.{more}"
    if problems:
        raise CommandError(line)
    if not args.json:
        output.write(output.wrapped(output.plain(line)))


def _step(
    name: str, short: str, description: str, examples: str, *more: Option
) -> Callable[[Callable[[argparse.Namespace, Run], None]], None]:
    """Declare a command that works on a plan."""

    def declare(work: Callable[[argparse.Namespace, Run], None]) -> None:
        def run(args: argparse.Namespace) -> None:
            with _opened(args, name) as opened:
                work(args, opened)

        options = (
            _PLAN,
            *more,
            arguments.API,
            arguments.as_json("one JSON array, with an object for each state"),
        )
        COMMAND.add(name, short, description, examples, *options)(run)

    return declare


@_step(
    "run",
    "import the states of a plan",
    """\
Copy every state byte for byte, under the locks of the source and of Holdfast, and read
it back. If an earlier import wrote the current version in Holdfast, a newer version in
the source replaces it. The import never replaces a version that another client wrote.
You can run the command again at any time, even after it was killed: the journal
PLAN.journal lists the locks that it must release. Needs the role writer.""",
    """\
  holdfast import run move.toml
  holdfast import run move.toml --wait 10m
""",
    option(
        "--wait",
        type=rules.duration,
        metavar="DURATION",
        help="for how long to retry locked states, such as 10m; default: one retry",
    ),
)
def _run(args: argparse.Namespace, run: Run) -> None:
    _report(args, copying.copy(run, args.wait.total_seconds() if args.wait else 0))


@_step(
    "check",
    "compare the states in the source and in Holdfast",
    """\
Compare every state in the source and in Holdfast, and name the states that were written
in the source after their import. The command changes nothing. Needs the role reader.""",
    """\
  holdfast import check move.toml
  holdfast import check move.toml --json
""",
)
def _check(args: argparse.Namespace, run: Run) -> None:
    _report(args, run.check())


@_step(
    "close",
    "lock the states in the source for good",
    """\
Acquire the source's locks with a message that says where the states are now, compare
every state once more, and keep the locks. The command does not close a state that was
written after its import. It closes no state while a state of the plan is not imported.
`holdfast import reopen` undoes the close. Needs the role reader.""",
    """\
  holdfast import close move.toml
  holdfast import close move.toml --bucket-policy
""",
    option(
        "--bucket-policy",
        action="store_true",
        help="s3: also let the bucket's policy deny writes, to stop clients that do not lock",
    ),
)
def _close(args: argparse.Namespace, run: Run) -> None:
    stopped, not_stopped = run.source.stopped_by_lock()
    if args.bucket_policy and not run.source.can_refuse_writes:
        raise UsageError("--bucket-policy is only for sources whose address begins with s3://.")
    if not stopped:
        raise CommandError(f"`close` does not lock this source, because a lock would not stop {not_stopped}.")
    outcomes = closing.close(run, refuse_writes=args.bucket_policy)
    more = f" The locks stop {stopped}. They do not stop {not_stopped}."
    if not any(outcome.word == closing.CLOSED for outcome in outcomes):
        more = " This run left no new lock in the source."
    elif args.bucket_policy:
        more = " The bucket's policy refuses every write to the states that this command locked."
    _report(args, outcomes, more)


@_step(
    "reopen",
    "undo `close`",
    "Release the locks that `holdfast import close` has acquired, and no others.",
    """\
  holdfast import reopen move.toml
""",
)
def _reopen(args: argparse.Namespace, run: Run) -> None:
    _report(args, closing.reopen(run))


@COMMAND.add(
    "rewrite",
    "print the changes that configurations need",
    """\
In the files below a folder, find the `backend`, `cloud` and Terragrunt `remote_state`
blocks of the plan's states, and print a diff that changes these blocks to Holdfast. The
command changes no file: review the diff, then apply it with `git apply`. If you must
change blocks by hand, standard error names them, and the exit code is 1.""",
    """\
  holdfast import rewrite move.toml . > blocks.diff
""",
    _PLAN,
    option("folder", type=Path, metavar="FOLDER", help="the folder with the configurations"),
    arguments.API,
)
def _rewrite(args: argparse.Namespace) -> None:
    read = plan.read(args.plan)
    moved = rewrite.Moved(
        sources.kind(read.settings),
        read.settings.addresses[0],
        {state.id: state.name for state in read.states if state.name and not state.problem},
        sign_in(args).address,
        layout.folder_of(read.settings.options),
        {state.name: state.tags for state in read.states if state.name},
        [state.id for state in read.states if state.name is None],
    )
    diff, notes = rewrite.rewrite_folder(args.folder, moved)
    if diff:
        output.write(diff.removesuffix("\n"))
    for note in notes:
        output.tell(f"{note}")
    if notes:
        raise CommandError(
            f"{'1 change is' if len(notes) == 1 else f'{len(notes)} changes are'} left to make by hand. The "
            "lines above say where."
        )

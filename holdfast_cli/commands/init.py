"""`holdfast init`: writes the files of a deployment into an empty folder, and says what to type next."""

import argparse
from pathlib import Path

from holdfast_cli.config import rules
from holdfast_cli.errors import CommandError
from holdfast_cli.terminal import output
from holdfast_cli.terminal.declaration import Command, option

COMMAND = Command()


@COMMAND.define(
    """\
Write the four files that a deployment to AWS needs, and print the next commands. The
files are requirements.txt (with this version of Holdfast), cdk.json, teams.toml and
.gitignore.

The command does not change existing files. If only .gitignore exists, the command
writes the other three files. If one of the other files exists, it writes nothing.""",
    """\
  holdfast init payments
  holdfast init payments platform
""",
    option("teams", nargs="+", type=rules.team, metavar="TEAM", help="the name of each team"),
)
def _run(args: argparse.Namespace) -> None:
    from holdfast_cdk import deployment_files  # no other command needs it
    from holdfast_cdk.places import PlaceError

    teams = [*dict.fromkeys(args.teams)]
    try:
        to_type = deployment_files.commands(teams)
        written = deployment_files.write(Path(), teams)
    except (PlaceError, deployment_files.NotWrittenError) as error:
        raise CommandError(f"{error}") from error
    *most, last = written.files
    done = f"Wrote {', '.join(most)} and {last}."
    lines = "\n".join(f"  {line}" for line in to_type)
    text = f"""\
{done}

Describe the teams in teams.toml. Then set AWS credentials and AWS_REGION, and type:

{lines}

Each account needs `bootstrap` once in each region."""
    with output.after(done):
        output.write(output.wrapped(text))
    if written.not_ignored:
        output.tell("holdfast: .gitignore exists already. Add these lines to it:")
        for line in written.not_ignored:
            output.tell(f"  {line}")

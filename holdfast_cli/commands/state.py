"""`holdfast state`: operations on states that Terraform does not have."""

import argparse
import json
from typing import TYPE_CHECKING

from holdfast_cli import arguments, output, settings

if TYPE_CHECKING:
    from holdfast.names import StateName
    from holdfast.state.undelete import Undeleted
    from holdfast_cli.arguments import Commands
    from holdfast_cli.stack import Stack


def add(commands: "Commands") -> None:
    """Add the commands."""
    state = arguments.group(
        commands,
        "state",
        short="bring a deleted state back",
        description="Operations on states that Terraform does not have.",
        epilog="""\
examples:
  holdfast state undelete network/prod
  holdfast state undelete --help
""",
    )
    undelete = arguments.command(
        state,
        "undelete",
        _undelete,
        short="bring a deleted state back",
        description="""\
Write the newest version of a deleted state again, under a lock. A state that is
not deleted stays as it is. Needs AWS credentials that may list, read and write
the versions of the team's bucket; for the local AWS: set -a; . .local/aws.env;
set +a.""",
        epilog="""\
examples:
  holdfast state undelete network/prod
  holdfast state undelete network/prod --team payments
  holdfast state undelete network/prod --json
""",
    )
    undelete.add_argument(
        "state", type=arguments.state, metavar="STATE", help="the state's name, such as network/prod"
    )
    arguments.add_team(undelete)
    arguments.add_json(undelete)


def _undelete(asked: argparse.Namespace) -> None:
    from holdfast_cli import stack, states  # the SDK is loaded only by what talks to AWS

    session, found = stack.open_team(settings.resolve(asked))
    undeleted = states.undelete(session, found, asked.state)
    with output.after(f"The state {asked.state} is back as version {undeleted.version_id}."):
        output.write((_json if asked.json else _text)(found, asked.state, undeleted))


def _json(stack: "Stack", name: "StateName", undeleted: "Undeleted") -> str:
    return json.dumps(
        {
            "state": name.value,
            "team": stack.team,
            "serial": undeleted.revision.serial,
            "lineage": undeleted.revision.lineage,
            "from_version": undeleted.from_version,
            "from_time": undeleted.from_time.isoformat(timespec="seconds"),
            "version": undeleted.version_id,
            "retention": None if stack.retention is None else str(stack.retention),
        },
        indent=2,
    )


def _text(stack: "Stack", name: "StateName", undeleted: "Undeleted") -> str:
    fields = [
        ("serial", str(undeleted.revision.serial)),
        ("from version", f"{undeleted.from_version}, of {output.moment(undeleted.from_time)}"),
        ("now version", undeleted.version_id),
    ]
    if stack.retention is not None:
        fields.append(("retention", f"{stack.retention} days"))
    return output.wrapped(f"""\
The state {name} of the team {stack.team} is back.

{output.listed(fields)}

Run `terraform plan` to see whether it still matches what it describes.""")

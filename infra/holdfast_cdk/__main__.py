"""`python -m holdfast_cdk`: the CDK app, which `cdk` starts.

With `team <name>` it checks that teams.toml has the team, before anything is created.
"""

import argparse
import sys
from pathlib import Path

from holdfast_cdk import app
from holdfast_cdk.config import ConfigError, load_teams, team_named


def main() -> None:
    """Exit with one line and status 1 as the app does, or if teams.toml does not have the team."""
    parser = argparse.ArgumentParser(
        prog="python -m holdfast_cdk",
        description="Create the stacks of teams.toml when `cdk` starts this program, or only check the file.",
        epilog="example:\n  python -m holdfast_cdk team payments",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(title="commands", metavar="[COMMAND]", dest="command")
    team = commands.add_parser("team", help="check that the file is valid and has this team")
    team.add_argument("name", help="the team's name")
    team.add_argument("--teams", type=Path, default=Path("teams.toml"), help="the file (default: teams.toml)")
    arguments = parser.parse_args()
    if arguments.command is None:
        app.main()
        return
    try:
        team_named(arguments.name, load_teams(arguments.teams), arguments.teams)
    except ConfigError as error:
        sys.exit(f"holdfast: {error}")


if __name__ == "__main__":
    main()

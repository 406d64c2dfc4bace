"""The CDK app: one stack for each team in teams.toml."""

import sys
from pathlib import Path

import infra  # noqa: F401 before aws_cdk, because it says how that is to start

# isort: split
from aws_cdk import App

from infra.bundle import BundleError, bundle
from infra.config import ConfigError, load_teams, read_target
from infra.lambdas import Bundles
from infra.team_stack import TeamStack


def main() -> None:
    """Synthesize the stacks; a wrong setting ends with one line and exit status 1."""
    app = App()
    try:
        target = read_target(app.node.try_get_context)
        teams = load_teams(Path(app.node.try_get_context("teams") or "teams.toml"))
        bundles = Bundles(
            backend=bundle("backend", target.name), authorizer=bundle("authorizer", target.name)
        )
    except (BundleError, ConfigError) as error:
        sys.exit(f"holdfast: {error}")
    for team in teams:
        TeamStack(app, team, target, bundles)
    app.synth()


if __name__ == "__main__":
    main()

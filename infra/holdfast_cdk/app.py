"""The CDK app: one stack for each team in teams.toml."""

import os
import sys
from pathlib import Path

from holdfast_cdk import prerequisites
from holdfast_cdk.bundle import WITHOUT_BYTECODE, BundleError
from holdfast_cdk.config import AWS, ConfigError, check_places, in_file, load_teams, read_target
from holdfast_cdk.prerequisites import PrerequisiteError
from holdfast_cdk.teams_lock import TeamsLock, check_loopback, placed


def main() -> None:
    """Synthesize the stacks; exit with one line and status 1 if a setting or this machine is not right."""
    try:
        prerequisites.check()
        _synthesize()
    except (BundleError, ConfigError, PrerequisiteError) as error:
        sys.exit(f"holdfast: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


def _synthesize() -> None:
    # Importing aws_cdk starts Node.js, for which `prerequisites` looked.
    from aws_cdk import App

    from holdfast_cdk.team_stack import IMPORT, TeamStack, has_bytecode, imports

    app = App()
    target = read_target(app.node.try_get_context)
    teams_file = Path(app.node.try_get_context("teams") or "teams.toml")
    teams = load_teams(teams_file)
    # Deployments to the local AWS are not recorded.
    lock = TeamsLock(teams_file) if target == AWS else None
    where = placed(teams, os.environ)
    if lock:
        lock.check(where)
        with in_file(teams_file):
            check_places(where)
    stacks = [TeamStack(app, team, target=target) for team in teams]
    # True for a stack that a command deploys, compares or synthesizes, but not with `cdk bootstrap`, `cdk
    # ls` and `cdk destroy`.
    made = [team for team, stack in zip(where, stacks, strict=True) if stack.bundling_required]
    if lock:
        lock.check_networks(made, app.node.try_get_context("address"))
    else:
        check_loopback(made)
    app.synth()
    if lock and made:
        if lock.record(where, {team.name for team in made}):
            sys.stderr.write(f"holdfast: {lock.path} was written. Commit it together with {teams_file}.\n")
        if not has_bytecode(app):
            sys.stderr.write(f"holdfast: {WITHOUT_BYTECODE}\n")
        if imports(app):
            sys.stderr.write(
                f"holdfast: -c {IMPORT}=true is only for `cdk import`. Until you deploy without it, the "
                "audit trail does not have the changes of tokens and trust records.\n"
            )

"""`holdfast doctor`: finds problems of an account, a deployment or a configuration."""

import argparse
import os
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

from holdfast_cli.config import arguments, rules, settings
from holdfast_cli.doctor import report
from holdfast_cli.doctor.findings import Finding
from holdfast_cli.errors import UsageError
from holdfast_cli.terminal.declaration import Command, option

COMMAND = Command()


@COMMAND.define(
    """\
Look for faults, and print what was found and what to do:
  holdfast doctor --account   before a deployment: the AWS account
  holdfast doctor             after it: the team's stack, API and bucket
  holdfast doctor STATE       in a configuration's folder: its backend

The command removes all test data that it writes. The first two forms need AWS
credentials. The third form needs AWS credentials only if the API's address is not
known. For the local AWS, run `set -a; . .local/aws.env; set +a`. The exit code is 1 if
you must do something.""",
    """\
  holdfast doctor --account
  holdfast doctor --team payments
  holdfast doctor network/prod
  holdfast doctor network/prod --address https://abc123.execute-api.eu-central-1.amazonaws.com
  holdfast doctor --team payments --json
""",
    option(
        "state",
        nargs="?",
        type=rules.state,
        metavar="STATE",
        help="the state whose configuration is in this folder",
    ),
    option("--account", action="store_true", help="check the AWS account, before a deployment"),
    option(
        "--team",
        type=rules.team,
        metavar="TEAM",
        help="the team whose account, stack or API is checked; default: HOLDFAST_TEAM, or else the profile's "
        "team. With STATE, the command ignores HOLDFAST_TEAM. With STATE or --account, it uses the profile's "
        "team only if you name the profile",
    ),
    option(
        "--address",
        type=rules.address,
        metavar="URL",
        help="the API's base URL, as clients reach it; default, with STATE: HOLDFAST_ADDRESS, or else the "
        "address of the profile that you name",
    ),
    arguments.PROFILE,
    arguments.REGION,
    arguments.as_json("one JSON object, at the end"),
)
def _run(args: argparse.Namespace) -> None:
    if args.account and args.state is not None:
        raise UsageError("--account does not check a state. Use --account or STATE, not both.")
    if args.account and args.address is not None:
        raise UsageError("--account does not check an API. Use --account or --address, not both.")
    if args.state is not None and None not in (args.team, args.address):
        raise UsageError("--team and --address both name the API of STATE. Use one of them, not both.")
    with closing(_look(args)) as findings:  # the checks clean up even if the output breaks
        report.show(findings, as_json=args.json)


def _look(args: argparse.Namespace) -> Generator[Finding]:
    from holdfast_cli.bucket import stack
    from holdfast_cli.doctor import account, checks, configuration, team

    here = Path()
    if args.state is not None:
        # HOLDFAST_TEAM is ignored: the block has the address, so AWS need not be asked for it.
        environment = {name: value for name, value in os.environ.items() if name != "HOLDFAST_TEAM"}
        where = settings.resolve(args, environment, default=False)
        yield from checks.attempt(
            "configuration", lambda: configuration.check(here, args.state, where, os.environ)
        )
        return
    # An address that was not typed may be another team's.
    of_team = argparse.Namespace(profile=args.profile, team=args.team, region=args.region)
    chosen = settings.resolve(of_team, default=not args.account)
    if args.account:
        yield from checks.attempt(
            "account", lambda: account.check(lambda: stack.sign_in(chosen), here, chosen.team)
        )
    else:
        if args.address is None and not team.is_named_for_terraform():
            stack.refuse_without_configuration(chosen, stack.sign_in(chosen))
        yield from checks.attempt("setup", lambda: team.setup(of_team))
        yield from checks.attempt(
            "stack", lambda: team.check(stack.sign_in(chosen), chosen.team, args.address)
        )

"""`holdfast doctor`: finds problems of an account, a deployment or a configuration."""

import argparse
import json
import os
from collections import Counter
from collections.abc import Generator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Final

from holdfast_cli.bucket import stack
from holdfast_cli.config import arguments, rules, settings
from holdfast_cli.doctor import account, checks, configuration, team
from holdfast_cli.doctor.findings import Finding, Level
from holdfast_cli.errors import CommandError, OutputClosedError, UsageError
from holdfast_cli.terminal import output
from holdfast_cli.terminal.declaration import Command, option

_WIDEST_LEVEL: Final = max(map(len, Level))
_COLOURS: Final = {Level.OK: "green", Level.NOTE: "yellow", Level.PROBLEM: "red"}

COMMAND = Command()


@COMMAND.define(
    """\
Look for faults, and print one line for each finding with what to do:
  holdfast doctor --account   before a deployment: the AWS account
  holdfast doctor             after it: the team's stack, API and bucket
  holdfast doctor STATE       in a configuration's folder: its backend

Nothing is left behind. The first two need AWS credentials, the third only where
it is not told the API's address; for the local AWS: set -a; . .local/aws.env;
set +a. The exit code is 1 where something must be done.""",
    """\
  holdfast doctor --account
  holdfast doctor --team payments
  holdfast doctor network/prod
  holdfast doctor network/prod --address https://abc123.execute-api.eu-central-1.amazonaws.com
  holdfast doctor --team payments --json
""",
    option(
        "state", nargs="?", type=rules.state, metavar="STATE", help="whose configuration is in this folder"
    ),
    option("--account", action="store_true", help="the AWS account, before a deployment"),
    option(
        "--team",
        type=rules.team,
        metavar="TEAM",
        help="whose account, stack or API; default: HOLDFAST_TEAM, except with STATE, or else the profile's",
    ),
    option(
        "--address",
        type=rules.address,
        metavar="URL",
        help="the API's base URL, as clients reach it; default, with STATE: HOLDFAST_ADDRESS, or else the "
        "profile's",
    ),
    arguments.PROFILE,
    arguments.REGION,
    arguments.as_json("one JSON object, at the end"),
)
def _run(asked: argparse.Namespace) -> None:
    if asked.account and asked.state is not None:
        raise UsageError("--account looks at no state; leave one of the two out.")
    if asked.account and asked.address is not None:
        raise UsageError("--account looks at no API; leave --address out.")
    if asked.state is not None and None not in (asked.team, asked.address):
        raise UsageError("--team and --address both name the API of STATE; leave one of the two out.")
    try:
        _print(asked)
    except OutputClosedError as closed:
        # The exit code is about all findings, and some were not printed.
        raise CommandError(f"{closed} Findings are lost: run the command again.") from closed


def _print(asked: argparse.Namespace) -> None:
    found: list[Finding] = []
    with closing(_look(asked)) as findings:  # the checks clean up even if the output breaks
        for finding in findings:
            found.append(finding)
            if not asked.json:
                output.write(_line(finding))
    if asked.json:
        output.write(_json(found))
    if any(finding.level is Level.PROBLEM for finding in found):
        raise CommandError(f"{_count(found)} Each problem says what to do.")
    if not asked.json:
        output.write(_count(found))


def _look(asked: argparse.Namespace) -> Generator[Finding]:
    here = Path()
    if asked.state is not None:
        # HOLDFAST_TEAM is ignored: the block has the address, so AWS need not be asked for it.
        environment = {name: value for name, value in os.environ.items() if name != "HOLDFAST_TEAM"}
        where = settings.resolve(asked, environment, default=False)
        yield from checks.attempt(
            "configuration", lambda: configuration.check(here, asked.state, where, os.environ)
        )
        return
    # An address that was not typed may be another team's.
    of_team = argparse.Namespace(profile=asked.profile, team=asked.team, region=asked.region)
    chosen = settings.resolve(of_team, default=not asked.account)
    if asked.account:
        yield from checks.attempt(
            "account", lambda: account.check(lambda: stack.sign_in(chosen), here, chosen.team)
        )
    else:
        yield from checks.attempt(
            "stack", lambda: team.check(stack.sign_in(chosen), chosen.team, asked.address)
        )


def _line(finding: Finding) -> str:
    words = " ".join(filter(None, (finding.text, finding.do)))
    line = output.wrapped(
        f"{finding.check}: {output.plain(words)}", head=f"{finding.level:<{_WIDEST_LEVEL}}  "
    )
    return output.coloured(finding.level, _COLOURS[finding.level]) + line.removeprefix(finding.level)


def _count(found: list[Finding]) -> str:
    counted = Counter(finding.level for finding in found)
    notes, problems = (
        f"{counted[level]} {level}{'' if counted[level] == 1 else 's'}"
        for level in (Level.NOTE, Level.PROBLEM)
    )
    return f"{counted[Level.OK]} ok, {notes}, {problems}."


def _json(found: list[Finding]) -> str:
    counted = Counter(finding.level for finding in found)
    return json.dumps(
        {
            "findings": [asdict(finding) for finding in found],
            "summary": {level.value: counted[level] for level in Level},
        },
        indent=2,
    )

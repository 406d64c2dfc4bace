"""`holdfast watch`: enables the hourly probe, and shows what the watch would find now."""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from holdfast.identity.tokens import DEFAULT_LIFETIME
from holdfast_cli.config import arguments, rules, settings
from holdfast_cli.doctor import report
from holdfast_cli.doctor.findings import Finding, note, ok, problem
from holdfast_cli.terminal import output
from holdfast_cli.terminal.declaration import Command, option

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.watching import Seen
    from holdfast_cli.bucket.stack import Stack


COMMAND = Command(
    "With the setting `watch = true`, a function checks the team every hour.",
    """\
  holdfast watch status
  holdfast watch enable
  holdfast watch enable --help
""",
)


@COMMAND.add(
    "status",
    "show what needs attention now",
    f"""\
Show the old locks, large states and expiring tokens that the function would find. The
command does not test the API. The exit code is 1 if you must do something.
{arguments.needs("list and read")}""",
    """\
  holdfast watch status
  holdfast watch status --team payments --json
""",
    arguments.TEAM,
    arguments.as_json(),
)
def _status(args: argparse.Namespace) -> None:
    from holdfast_cli.bucket import stack, watch

    session, found = stack.open_team(settings.resolve(args))
    seen = watch.look(session, found)
    report.show(_findings(seen, found, session.clock.now()), as_json=args.json)


@COMMAND.add(
    "enable",
    "enable the hourly test of the API, or renew its token",
    f"""\
Let the function test every hour whether the API can acquire and release a lock. The
command creates a token for these tests, which is valid only for one reserved name, and
stores the token in the team's bucket for the function. The token expires after
{DEFAULT_LIFETIME.days} days, or at the time in --expires; run the command again before
that. The command revokes the tokens that earlier runs created.
{arguments.needs("list, read and write")}""",
    """\
  holdfast watch enable
  holdfast watch enable --expires 365d --team payments
""",
    option(
        "--expires",
        type=rules.expiry,
        metavar="WHEN",
        help=f"when the token expires: {arguments.FROM_NOW}; or never; default: "
        f"{rules.shown(DEFAULT_LIFETIME)}",
    ),
    arguments.TEAM,
)
def _enable(args: argparse.Namespace) -> None:
    from holdfast_cli.bucket import stack, watch

    session, found = stack.open_team(settings.resolve(args))
    token = watch.enable(session, found, args.expires)
    ends = f"expires {output.moment(token.expires)}" if token.expires else "never expires"
    output.outcome(
        f"The hourly test of the API is enabled for the team {found.team}. Its token {token.id} {ends}."
    )


@COMMAND.add(
    "disable",
    "disable the hourly test of the API",
    f"""\
Revoke the token of the test, and remove the token from the bucket. The function still
checks the bucket. {arguments.needs("list, read and write")}""",
    """\
  holdfast watch disable
  holdfast watch disable --team payments
""",
    arguments.TEAM,
)
def _disable(args: argparse.Namespace) -> None:
    from holdfast_cli.bucket import stack, watch

    session, found = stack.open_team(settings.resolve(args))
    count = watch.disable(session, found)
    output.outcome(
        f"The hourly test of the API is disabled for the team {found.team}. Revoked tokens: {count}."
    )


def _findings(seen: "Seen", stack: "Stack", now: "datetime") -> Iterator[Finding]:
    from holdfast import watching  # it loads the AWS SDK, which the help does not need

    if not stack.watched:
        seen = replace(seen, enabled=False)  # no function uses the credentials
    old = timedelta(seconds=stack.watched) or watching.OLD
    found = watching.findings(seen, stack.team, now, old=old)
    soon = rules.shown(watching.ENDS_SOON)
    for kind, nothing in (
        (watching.Kind.LOCK_HELD, f"No lock is older than {rules.shown(old)}."),
        (watching.Kind.STATE_LARGE, 'No state is near the size limit of `backend "http"`.'),
        (
            watching.Kind.TOKEN_ENDS,
            f"No token expires within {soon}. Tokens with a lifetime of at most {soon} do not count.",
        ),
    ):
        if all(one.kind is not kind for one in found):
            yield ok(kind, nothing)
    for one in found:
        yield problem(one.kind, one.text, f"Run `{one.do}`.")
    if seen.frozen:
        yield note("watch.frozen", f"Frozen states: {seen.frozen}.", "`holdfast lock list` shows them.")
    if not stack.watched:
        yield note(
            "watch.probe",
            "The team has no watch function.",
            "To add one, write `watch = true` in the team's settings, and deploy its stack.",
        )
    elif not seen.enabled:
        yield note(
            "watch.probe",
            "The hourly test of the API is not enabled.",
            f"To enable it, run `holdfast watch enable --team {stack.team}`.",
        )
    elif seen.probe and seen.probe.expires:
        yield ok(
            "watch.probe",
            (
                "The hourly test of the API is enabled. Its token expires on "
                f"{output.moment(seen.probe.expires, now)}."
            ),
        )

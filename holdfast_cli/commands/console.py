"""`holdfast console`: opens the console in a browser, signed in."""

import argparse
import os
import select
import signal
import sys
import threading
import time
import webbrowser
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from http import HTTPStatus
from types import FrameType
from typing import TYPE_CHECKING, Final, NoReturn
from urllib.parse import urlsplit

from holdfast import timestamp
from holdfast.identity import credentials
from holdfast.identity.credentials import IdToken, SessionCredentials, TokenCredentials
from holdfast.identity.sessions import DEFAULT_SECONDS
from holdfast.identity.trust import is_web_address
from holdfast_cli.api import hand_over, http, own_sessions
from holdfast_cli.api.hand_over import Given, Warned
from holdfast_cli.api.management import how_to_sign_in
from holdfast_cli.api.sign_in import address_in, with_credentials
from holdfast_cli.config import arguments, rules, settings
from holdfast_cli.errors import CommandError, UsageError
from holdfast_cli.terminal import output
from holdfast_cli.terminal.declaration import Command, option

if TYPE_CHECKING:
    from holdfast.api import v1
    from holdfast_cli.api.management import Api
    from holdfast_cli.config.profiles import Settings

_LONGEST: Final = timedelta(seconds=DEFAULT_SECONDS)
"""How long credentials may last that a browser gets without a question."""
_SECONDS: Final = 30
"""The time after which the page that signs in is removed."""
_ENDINGS: Final = ("SIGTERM", "SIGHUP", "SIGQUIT")
"""Signals that end the process, which must remove the page first."""


class _Gone(argparse.Action):
    """An option that nothing needs any more."""

    def __call__(self, *_: object) -> None:
        raise argparse.ArgumentError(self, "this command no longer asks for confirmation: remove this option")


COMMAND = Command()


@COMMAND.define(
    f"""\
Open the console in a browser, signed in. If the environment has credentials for the
API, the browser receives these credentials. If they are a token, or if they last longer
than {rules.shown(_LONGEST)}, a page warns you first. If the environment has no
credentials for the API, or if an option says how to sign in, the command creates a
session for at most {rules.shown(_LONGEST)}, as `holdfast login` does.

The command writes a page that only you can read, opens the page, and removes it after
{_SECONDS} seconds. When you click the button on the page, the page opens the console,
hands the credentials over and closes itself. The credentials are not in an address, in
an argument of a process or in the browser's history.""",
    """\
  holdfast console
  holdfast console network/prod
  holdfast console --print
  holdfast console --profile staging --aws-profile platform
""",
    option(
        "state",
        nargs="?",
        type=rules.state,
        default=None,
        metavar="STATE",
        help="open the page of this state; default: the list of states",
    ),
    arguments.sign_in(DEFAULT_SECONDS, longest=DEFAULT_SECONDS),
    arguments.ADDRESS_OR_TEAM,
    option(
        "--print", action="store_true", help="only print the console's address, where you can paste a token"
    ),
    option("--yes", nargs=0, action=_Gone, help=argparse.SUPPRESS),
)
def _run(args: argparse.Namespace) -> None:
    from holdfast_cli.bucket import stack

    own_sessions.check(args)
    if args.duration is not None and args.duration > DEFAULT_SECONDS:
        raise UsageError(
            f"A session for a browser lasts at most {rules.shown(_LONGEST)}. Use a shorter --duration."
        )
    chosen = _resolve(args)
    address = stack.api_address(chosen)
    if args.print:
        output.write(f"{address}/console/{_fragment(args)}")
        return
    if not is_web_address(address):
        raise UsageError(
            f"The command sends credentials over https:// only, and {address} does not begin with https://."
        )
    _require_console(address)
    _require_browser(f"{address}/console/{_fragment(args)}")
    for name in _ENDINGS:
        if number := getattr(signal, name, None):  # Windows has only the first
            signal.signal(number, _end)
    _open(address, _given(args, chosen, address), _fragment(args))


def _fragment(args: argparse.Namespace) -> str:
    """Return the end of the address of the page to open: no character of a name must be encoded."""
    return f"#/states/{args.state}" if args.state else ""


def _resolve(args: argparse.Namespace) -> "Settings":
    """Return the settings. If they name no API, the address in Terraform's variables is used, if any."""
    chosen = settings.resolve(args)
    if chosen.address is None and chosen.team is None:
        with suppress(UsageError):  # then it is the only stack's
            return replace(chosen, address=address_in(os.environ))
    return chosen


def _require_console(address: str) -> None:
    found = http.send("GET", f"{address}/console/sign-in.html", headers={})
    if found.status != HTTPStatus.OK:
        raise CommandError(
            f"{urlsplit(address).netloc} responds with {found.status} instead of the console. Check the "
            "address. The team may have the setting `console = false`, or its stack may be older than this "
            f"command.{http.version_skew(address)}"
        )


def _require_browser(page: str) -> None:
    try:
        webbrowser.get()
    except webbrowser.Error as error:
        raise CommandError(
            f"No browser was found. Open {page} in a browser and paste a token there, or set BROWSER to the "
            "program of a browser."
        ) from error


# --- credentials ---------------------------------------------------------------------------------


def _given(args: argparse.Namespace, chosen: "Settings", address: str) -> Given:
    """Return the credentials for the browser, with a warning unless they end within `_LONGEST`."""
    from holdfast.api import v1

    wants_new = args.oidc or args.aws_profile is not None or args.duration is not None
    # The environment's credentials are for the API that it names, which may be another than a stack's.
    api = None if wants_new or chosen.address is None else with_credentials(address, os.environ)
    if api is None:
        session = own_sessions.create(args, chosen, address, args.duration or DEFAULT_SECONDS)
        output.tell(
            f"holdfast: A session for the browser was created. It expires {output.moment(session.expires)}."
        )
        return Given(credentials.bearer(session.id, session.secret), session.principal, session.expires)
    what, token = _read(api)
    who = api.get(v1.Principal, "whoami")
    return Given(token, who.principal, who.expires, _warning(what, who, api), who.owner or "")


def _read(api: "Api") -> tuple[str, str]:
    """Return the kind of the credentials in the environment, and their form for the console."""
    match credentials.parse(api.authorization):
        case TokenCredentials(record_id, secret):
            return "token", credentials.bearer(record_id, secret)
        case SessionCredentials(record_id, secret):
            return "session", credentials.bearer(record_id, secret)
        case IdToken(jwt):
            return "ID token", jwt
        case None:
            raise CommandError(
                f"The credentials in {api.source} are not a token, a session or an ID token. "
                f"{how_to_sign_in(api.address)}."
            )


def _warning(what: str, who: "v1.Principal", api: "Api") -> Warned:
    """Return what the page says of credentials that outlast a session for a browser; empty for others."""
    if what != "token" and who.expires and who.expires - api.now() <= _LONGEST:
        return ()
    given = f"The browser will receive the {what} in {api.source}. The {what} "
    ends: Warned = (("text", f"{given}never expires"),)
    if who.expires:
        ends = (("text", f"{given}lasts until "), ("time", timestamp.write(who.expires)))
    return (
        *ends,
        ("text", ". Sign out when you are done. "),
        ("code", f"holdfast console --duration {rules.shown(_LONGEST)}"),
        ("text", " gives the browser a new session instead, if you can sign in with AWS credentials."),
    )


# --- the browser ---------------------------------------------------------------------------------


def _open(address: str, given: Given, fragment: str) -> None:
    with hand_over.page(address, given, fragment) as file:
        output.tell(
            f"holdfast: Your browser opens a page that leads to {address}/console/. If it does not, open "
            f"{file} in the browser, or paste a token at the console's address. The page is removed in "
            f"{_SECONDS} seconds, or when you press Enter."
        )
        # Some programs in BROWSER return only when the browser is closed.
        threading.Thread(target=webbrowser.open, args=(file.as_uri(),), daemon=True).start()
        _wait(_SECONDS)


def _wait(seconds: float) -> None:
    """Wait for some seconds; on a terminal at most until the user presses Enter."""
    if os.name == "posix" and sys.stdin is not None and sys.stdin.isatty():
        if select.select([sys.stdin], [], [], seconds)[0]:
            sys.stdin.readline()  # or the shell would read it
    else:
        time.sleep(seconds)


def _end(number: int, _: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)

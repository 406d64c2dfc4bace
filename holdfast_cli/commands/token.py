"""`holdfast token`: creates, lists, updates, rotates and revokes access tokens."""

import argparse
import shlex
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from holdfast.access import described
from holdfast.identity.records import written
from holdfast.identity.tokens import DEFAULT_KEPT, DEFAULT_LIFETIME
from holdfast_cli.api import deployed
from holdfast_cli.config import arguments, cloud_config, rules, settings
from holdfast_cli.errors import UsageError
from holdfast_cli.terminal import ages, output
from holdfast_cli.terminal import grants as granted
from holdfast_cli.terminal.declaration import Command, Option, option

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.identity.tokens import Token
    from holdfast_cli.bucket.stack import Stack


COMMAND = Command(
    "Create and manage access tokens, with which Terraform signs in.",
    """\
  holdfast token create --role writer --scope 'network/*'
  holdfast token list
  holdfast token create --help
""",
)


_ID: Final = option(
    "id", type=rules.token_id, metavar="ID", help="the token's ID, the value of TF_HTTP_USERNAME"
)


def _expires_option(default: str) -> Option:
    return option(
        "--expires",
        type=rules.expiry,
        metavar="WHEN",
        help=f"when the token expires: {arguments.FROM_NOW}; or never; {default}",
    )


@COMMAND.add(
    "create",
    "create an access token",
    f"""\
Create an access token, and print exports with its ID and secret, for a shell to
evaluate. The secret is shown only once. The token expires after {DEFAULT_LIFETIME.days}
days, or at the time in --expires. Without --owner, the description becomes the owner,
unless it cannot be an owner, for example because it is too long.
All users who see the token's locks and versions also see its owner.
{arguments.needs("write to")}""",
    """\
  holdfast token create --role writer --scope 'network/*' --description 'network pipeline'
  eval "$(holdfast token create --role maintainer --scope '*')"
  holdfast token create --role reader --scope network/prod --scope 'shop/*' --team payments
  holdfast token create --grant writer:'app/*' --grant outputs:'network/*' --expires 12h
  holdfast token create --role writer --scope 'app/*' --owner bob@example.com
  holdfast token create --role writer --scope 'app/*' --from 203.0.113.0/24
  holdfast token create --role maintainer --scope '*' --expires never --json
""",
    arguments.grants(),
    _expires_option(f"default: {rules.shown(DEFAULT_LIFETIME)}"),
    arguments.networks(),
    arguments.description(),
    arguments.owner(default=None),
    arguments.TEAM,
    arguments.as_json(),
)
def _create(args: argparse.Namespace) -> None:
    from holdfast_cli.bucket import stack, tokens

    grants, networks = arguments.granted(args), arguments.networks_of(args) or ()
    session, found = stack.open_team(settings.resolve(args))
    deployed.check_grants(found, grants)
    deployed.check_networks(found, networks)
    token, secret = tokens.create(
        session, found, grants, args.description, args.expires, _owner(args), networks
    )
    lost = (
        f"The token {token.id} was created, but its secret is lost: revoke the token with "
        f"`holdfast token revoke {token.id} --team {found.team}`."
    )
    with output.after(lost):
        _write_secret(args, found, token, secret, _created(found, token))


def _owner(args: argparse.Namespace) -> str:
    """Return --owner; without it the description, or nothing if that cannot be shown as an owner."""
    if args.owner is not None:
        return str(args.owner)
    try:
        return rules.owner(args.description)
    except argparse.ArgumentTypeError:
        return ""


@COMMAND.add(
    "list",
    "list access tokens",
    f"""\
List the valid access tokens. The list has no secrets.
{arguments.needs("list and read")}""",
    """\
  holdfast token list
  holdfast token list --all --team payments
  holdfast token list --json
""",
    option("--all", action="store_true", help="also list expired and revoked tokens"),
    arguments.TEAM,
    arguments.LONG,
    arguments.as_json("one JSON array"),
)
def _list(args: argparse.Namespace) -> None:
    from holdfast_cli.bucket import stack, tokens

    session, found = stack.open_team(settings.resolve(args))
    listing = tokens.read_all(session, found, output.Progress())
    now = session.clock.now()
    shown = [token for token in listing.tokens if args.all or token.status(now) == "active"]
    if args.json:
        text = output.as_json([_document(token, now) for token in shown])
    elif shown:
        text = _table(shown, now, brief=output.is_brief(long=args.long))
    else:
        hidden = len(listing.tokens)
        other = f". Expired or revoked tokens: {hidden}. --all shows all tokens" if hidden else ""
        text = output.wrapped(
            f"The team {found.team} has no valid tokens{other}. `holdfast token create --help` shows how to "
            "create one."
        )
    output.write_list(text, listing.unreadable)


@COMMAND.add(
    "show",
    "show an access token",
    f"""\
Show the role, scope and expiry of an access token, and who created, rotated and revoked
it. The command does not show the secret. {arguments.needs("read")}""",
    """\
  holdfast token show k2v9x0q7m3c1d8f5a6b4
  holdfast token show k2v9x0q7m3c1d8f5a6b4 --json
""",
    _ID,
    arguments.TEAM,
    arguments.as_json(),
)
def _show(args: argparse.Namespace) -> None:
    from holdfast_cli.bucket import stack, tokens

    session, found = stack.open_team(settings.resolve(args))
    token = tokens.read(session, found, args.id)
    now = session.clock.now()
    if args.json:
        output.write_json(_document(token, now))
    else:
        output.write(output.listed(_fields(token, now)))


@COMMAND.add(
    "update",
    "change the description or owner of an access token",
    f"""\
Change a token's description or owner. Its secret, grants and expiry are not changed. For
other grants or networks, create another token, and revoke this token. Locks and versions
keep the owner that they were written with. {arguments.needs("read and write")}""",
    """\
  holdfast token update k2v9x0q7m3c1d8f5a6b4 --owner bob@example.com
  holdfast token update k2v9x0q7m3c1d8f5a6b4 --description 'network pipeline' --json
""",
    _ID,
    arguments.description(default=None),
    arguments.owner(default=None),
    arguments.TEAM,
    arguments.as_json(),
)
def _update(args: argparse.Namespace) -> None:
    from holdfast_cli.bucket import stack, tokens

    if args.description is None and args.owner is None:
        raise UsageError("There is nothing to change: use --description or --owner.")
    session, found = stack.open_team(settings.resolve(args))
    before, after = tokens.update(session, found, args.id, description=args.description, owner=args.owner)
    which = f"the token {after.id} of the team {found.team}"
    done = (
        f"Nothing was changed: {which} already had these values." if before == after else f"Updated {which}."
    )
    with output.after(done):
        document = _document(after, session.clock.now()) if args.json else None
        output.write_either(_changes(before, after, done), document)


def _changes(before: "Token", after: "Token", done: str) -> str:
    """Return the text `done`, followed by a line for each changed value with the old and the new one."""
    values = (
        ("description", before.description, after.description),
        ("owner", before.owner, after.owner),
    )
    changed = [(name, f"{old or '-'} -> {new or '-'}") for name, old, new in values if old != new]
    return f"{done}\n\n{output.listed(changed)}" if changed else done


@COMMAND.add(
    "rotate",
    "give an access token a new secret",
    f"""\
Give an access token a new secret, and print exports with it. The secret is shown only
once. The old secret stays valid for {rules.shown(DEFAULT_KEPT)}, or as long as --keep
says. Still older secrets expire within 60 seconds. The ID and the grants are not
changed. The token's lifetime starts again. {arguments.needs("read and write")}""",
    """\
  holdfast token rotate k2v9x0q7m3c1d8f5a6b4
  holdfast token rotate k2v9x0q7m3c1d8f5a6b4 --keep 2h --expires 30d
  holdfast token rotate k2v9x0q7m3c1d8f5a6b4 --keep 0s --json
""",
    _ID,
    option(
        "--keep",
        type=rules.duration,
        default=DEFAULT_KEPT,
        metavar="DURATION",
        help=(
            "how long the old secret stays valid, such as 12h, 30m or 0s; default: "
            f"{rules.shown(DEFAULT_KEPT)}"
        ),
    ),
    _expires_option("default: the same lifetime again"),
    arguments.TEAM,
    arguments.as_json(),
)
def _rotate(args: argparse.Namespace) -> None:
    from holdfast_cli.bucket import stack, tokens

    session, found = stack.open_team(settings.resolve(args))
    token, secret = tokens.rotate(session, found, args.id, args.keep, args.expires)
    lost = (
        f"The token {token.id} was rotated, but its new secret is lost. The old secret {_old(token)}. Create "
        "another token, because a second rotation would end the old secret."
    )
    with output.after(lost):
        old = {"old_secret_until": written(_old_until(token))}
        _write_secret(args, found, token, secret, _rotated(found, token), old)


@COMMAND.add(
    "revoke",
    "revoke an access token permanently",
    f"""\
Revoke an access token for good: it is refused everywhere within 60 seconds. A token
that is already revoked is not changed. {arguments.needs("read and write")}""",
    """\
  holdfast token revoke k2v9x0q7m3c1d8f5a6b4
  holdfast token revoke k2v9x0q7m3c1d8f5a6b4 --team payments --json
""",
    _ID,
    arguments.TEAM,
    arguments.as_json(),
)
def _revoke(args: argparse.Namespace) -> None:
    from holdfast_cli.bucket import stack, tokens

    session, found = stack.open_team(settings.resolve(args))
    token = tokens.revoke(session, found, args.id)
    done = (
        f"Revoked the token {token.id} of the team {found.team}: it is refused everywhere within 60 seconds."
    )
    output.outcome(done, _document(token, session.clock.now()) if args.json else None)


# --- output --------------------------------------------------------------------------------------


def _old_until(token: "Token") -> datetime | None:
    return token.previous.until if token.previous else None


def _document(token: "Token", now: datetime) -> dict[str, Any]:
    return {
        "id": token.id,
        "status": token.status(now),
        **described(token.grants),
        "expires": written(token.expires),
        "description": token.description,
        "owner": token.owner,
        "from": token.networks,
        "created": written(token.created),
        "created_by": token.created_by,
        "rotated": written(token.rotated),
        "rotated_by": token.rotated_by,
        "old_secret_until": written(_old_until(token)),
        "revoked": written(token.revoked),
        "revoked_by": token.revoked_by,
    }


def _with_secret(stack: "Stack", token: "Token", secret: str) -> dict[str, Any]:
    return {
        "id": token.id,
        "secret": secret,
        **described(token.grants),
        "expires": written(token.expires),
        "team": stack.team,
        "description": token.description,
        "owner": token.owner,
        "from": token.networks,
        "address": stack.api_address,
        "cloud": cloud_config.credentials_document(stack.api_address, token.id, secret),
    }


def _expires(token: "Token", now: datetime | None = None) -> str:
    return output.moment(token.expires, now) if token.expires else "never"


def _old(token: "Token", now: datetime | None = None) -> str:
    until = _old_until(token)
    if until is None:
        return "is refused everywhere within 60 seconds"
    return f"works until {output.moment(until, now)}"


def _write_secret(
    args: argparse.Namespace,
    stack: "Stack",
    token: "Token",
    secret: str,
    done: str,
    more: "Mapping[str, Any] | None" = None,
) -> None:
    """Print the exports for a shell to evaluate, and on standard error what was done; or the document.

    Args:
        done: sentences on what was done.
        more: members of the document that only this command has.
    """
    if args.json:
        output.write_json(_with_secret(stack, token, secret) | {**(more or {})})
        return
    output.write(_exports(stack, token, secret))
    output.tell(done)
    output.tell("The secret is shown only now and is not stored: keep it in a safe place.")


def _created(stack: "Stack", token: "Token") -> str:
    owner = f" Its owner is {token.owner}." if token.owner else ""
    return (
        f"Created the token {token.id} of the team {stack.team}: {granted.text(token.grants)}. "
        f"It {_ends(token)}.{owner} `holdfast backend-config STATE --team {stack.team}` prints a backend "
        "block."
    )


def _rotated(stack: "Stack", token: "Token") -> str:
    return (
        f"Rotated the token {token.id} of the team {stack.team}: {granted.text(token.grants)}. "
        f"It {_ends(token)}. The old secret {_old(token)}."
    )


def _ends(token: "Token") -> str:
    return f"expires {output.moment(token.expires)}" if token.expires else "never expires"


def _exports(stack: "Stack", token: "Token", secret: str) -> str:
    cloud = cloud_config.credentials_document(stack.api_address, token.id, secret)
    variables = {
        "TF_HTTP_USERNAME": token.id,
        "TF_HTTP_PASSWORD": secret,
        "HOLDFAST_ADDRESS": stack.api_address,
        cloud["variable"]: cloud["token"],
    }
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items())


def _fields(token: "Token", now: datetime) -> list[tuple[str, str]]:
    fields = [
        ("ID", token.id),
        ("status", token.status(now)),
        *granted.fields(token.grants),
        ("expires", _expires(token, now)),
        ("description", token.description or "-"),
        ("owner", token.owner or "-"),
        ("from", ", ".join(token.networks) or arguments.ANYWHERE),
        ("created", f"{output.moment(token.created, now)} by {token.created_by}"),
    ]
    if token.rotated is not None:
        fields.append(("rotated", f"{output.moment(token.rotated, now)} by {token.rotated_by}"))
    until = _old_until(token)
    if until is not None and now < until and token.revoked is None:
        fields.append(("old secret", _old(token, now)))
    if token.revoked is not None:
        fields.append(("revoked", f"{output.moment(token.revoked, now)} by {token.revoked_by}"))
    return fields


def _table(shown: "list[Token]", now: datetime, *, brief: bool) -> str:
    """Return the tokens as a table.

    If it is brief, it lacks a column that says nothing of any of them, a role stands only once, and the
    columns that people look for come first.
    """
    moment = ages.ago if brief else output.word
    columns: dict[str, Sequence[str | Sequence[str]]] = {
        "ID": [token.id for token in shown],
        "ROLE": [granted.cells(token.grants)[0] for token in shown],
        "SCOPE": [granted.cells(token.grants)[1] for token in shown],
        "EXPIRES": [moment(token.expires, now) if token.expires else "never" for token in shown],
        "STATUS": [token.status(now) for token in shown],
        "OWNER": [token.owner for token in shown],
        "FROM": [token.networks for token in shown],
        "DESCRIPTION": [token.description for token in shown],
    }
    left_out = set() if any(columns["FROM"]) else {"FROM"}
    if brief:
        columns["DESCRIPTION"] = [
            "" if each.description == each.owner else each.description for each in shown
        ]
        left_out |= {name for name, cells in columns.items() if not any(cells)}
        if set(columns["STATUS"]) == {"active"}:
            left_out.add("STATUS")
        left_out |= {"ROLE", "SCOPE"}
        id_, *others = columns.items()
        grants = [granted.typed(token.grants) for token in shown]
        columns = dict([id_, ("OWNER", columns["OWNER"]), ("GRANTS", grants), *others])
    names = [name for name in columns if name not in left_out]
    return output.table(names, list(zip(*(columns[name] for name in names), strict=True)))

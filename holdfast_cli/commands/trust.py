"""`holdfast trust`: manages trust records, with which people and CI jobs sign in without a stored secret."""

import argparse
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from holdfast.access import described
from holdfast.identity import trust
from holdfast.identity.records import written
from holdfast.identity.trust import AwsTrust, Change, OidcTrust, Unreadable
from holdfast_cli.api import deployed
from holdfast_cli.config import arguments, rules, settings
from holdfast_cli.errors import UsageError
from holdfast_cli.terminal import grants as granted
from holdfast_cli.terminal import output
from holdfast_cli.terminal.declaration import Command, Option, either, option, renamed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.identity.trust import Trust

# The real address is known only when the stack is found; all other errors are reported before.
_API_ADDRESS = "https://api.invalid"


COMMAND = Command(
    """\
A trust record lets certain ID tokens of an OIDC issuer, or an IAM role of the team's
AWS account, sign in without a stored secret, and grants them roles for states.""",
    """\
  holdfast trust list
  holdfast trust create --help
""",
    renamed("add", "create"),
)

_NAME: Final = option("name", type=rules.trust_name, metavar="NAME", help="the record's name")


class _Fixed(argparse.Action):
    """An option that `create` accepts and `update` refuses. The error names the reason."""

    def __call__(self, *_: object) -> None:
        raise argparse.ArgumentError(
            self,
            "an update cannot change who may sign in, because existing sessions would stay valid. Create a "
            "new trust record, then remove the old one, which ends its sessions",
        )


def _claim(value: str) -> tuple[str, str]:
    name, equals, wanted = rules.unicode_text(value).partition("=")
    if not (name and equals and wanted):
        raise argparse.ArgumentTypeError(
            f"{value!r} is not a valid claim: write name=value, as in repository=acme/network"
        )
    if "*" in wanted:
        raise argparse.ArgumentTypeError(
            f"{value!r} has a '*', but a claim must be exactly the value in the token"
        )
    return name, wanted


def _record(*who: Option, replace: bool) -> tuple[Option, ...]:
    """Return the options for what a record has; `who` are those for who may sign in.

    Args:
        replace: whether they change a record: nothing has a default then.
    """
    default = None if replace else ""
    return (
        arguments.grants(replace=replace),
        *who,
        arguments.networks(replace=replace),
        arguments.description(default=default),
        arguments.owner(default=default),
        arguments.TEAM,
        arguments.as_json(),
    )


@COMMAND.add(
    "create",
    "create a trust record",
    f"""\
Let callers sign in with an IAM role, or with an OIDC issuer's ID token that contains
all the given claims. If several records match, the one with the most claims applies.
{arguments.needs("read and write")}""",
    """\
  holdfast trust create network-main --role writer --scope 'network/*' \\
    --issuer https://token.actions.githubusercontent.com \\
    --claim repository=acme/network --claim ref=refs/heads/main
  holdfast trust create network-gitlab --role writer --scope 'network/*' \\
    --issuer https://gitlab.com --audience https://holdfast.example.com --claim project_path=acme/network
  holdfast trust create developers --role reader --scope '*' --aws-role Developer --owner 'platform team'
""",
    option("name", metavar="NAME", help="the record's name, of lower-case letters, digits and '-'"),
    *_record(
        either(
            option(
                "--issuer",
                metavar="URL",
                type=rules.unicode_text,
                help="the exact value of 'iss' in the ID tokens",
            ),
            option(
                "--aws-role",
                metavar="ROLE",
                help="the name of an IAM role in the team's account, without its path",
            ),
            required=True,
        ),
        option(
            "--audience",
            type=rules.unicode_text,
            metavar="TEXT",
            help="the value of 'aud' in the ID tokens; default: the API's address",
        ),
        option(
            "--claim",
            action="append",
            default=[],
            type=_claim,
            metavar="NAME=VALUE",
            help="a claim that the ID tokens must have; may be repeated, to require several",
        ),
        replace=False,
    ),
)
def _create(args: argparse.Namespace) -> None:
    from holdfast_cli.bucket import stack, trust_records

    record = _new(args)

    session, found = stack.open_team(settings.resolve(args))
    deployed.check_grants(found, record.grants)
    deployed.check_networks(found, record.networks)
    if isinstance(record, OidcTrust) and args.audience is None:
        record = replace(record, audience=found.api_address)
    record = trust_records.create(session, found, record)
    done = f"Created the trust record {record.name} of the team {found.team}"
    with output.after(f"{done}."):
        text = f"{done}: {granted.text(record.grants)}\n\n{output.listed(_fields(record))}"
        output.write_either(text, _document(record) if args.json else None)


@COMMAND.add(
    "list",
    "list trust records",
    f"""\
List the trust records.
{arguments.needs("read")}""",
    """\
  holdfast trust list
  holdfast trust list --team payments --json
""",
    arguments.TEAM,
    arguments.as_json("one JSON array"),
)
def _list(args: argparse.Namespace) -> None:
    from holdfast_cli.bucket import stack, trust_records

    session, found = stack.open_team(settings.resolve(args))
    records = trust_records.read(session, found)
    shown = sorted(records, key=lambda record: record.name)
    if args.json:
        text = output.as_json([_document(record) for record in shown])
    elif shown:
        text = _table(shown, brief=output.is_brief(long=False))
    else:
        text = f"The team {found.team} has no {'valid ' if records.unreadable else ''}trust records."
        if not records.unreadable:
            text = output.wrapped(f"{text} `holdfast trust create --help` shows how to create one.")
    output.write_list(text, [trust_records.unreadable(found, records, one) for one in records.unreadable])


@COMMAND.add(
    "show",
    "show a trust record",
    f"""\
Show who may sign in with a trust record, which roles it grants for which states, from
which networks it accepts requests, and who created and updated it.
{arguments.needs("read")}""",
    """\
  holdfast trust show network-main
  holdfast trust show network-main --team payments --json
""",
    _NAME,
    arguments.TEAM,
    arguments.as_json(),
)
def _show(args: argparse.Namespace) -> None:
    from holdfast_cli.bucket import stack, trust_records

    session, found = stack.open_team(settings.resolve(args))
    record = trust_records.read_one(session, found, args.name)
    if args.json:
        output.write_json(_document(record))
    else:
        output.write(output.listed(_all_fields(record, session.clock.now())))


@COMMAND.add(
    "update",
    "change a trust record; its sessions stay valid",
    f"""\
Change the grants, networks, description or owner of a trust record. Callers that signed
in with the record stay signed in, and the change applies to them within 60 seconds.

You cannot change who may sign in with the record, because existing sessions would stay
valid. Create another record, then remove this one. {arguments.needs("read and write")}""",
    """\
  holdfast trust update network-main --role reader
  holdfast trust update network-main --scope 'network/*' --scope 'shop/*' --team payments --json
  holdfast trust update network-main --grant writer:'network/*' --grant outputs:'app/*'
  holdfast trust update network-main --owner 'network team' --from 203.0.113.0/24
""",
    _NAME,
    *_record(
        *(
            option(name, action=_Fixed, help=argparse.SUPPRESS)
            for name in ("--issuer", "--audience", "--claim", "--aws-role")
        ),
        replace=True,
    ),
)
def _update(args: argparse.Namespace) -> None:
    from holdfast_cli.bucket import stack, trust_records

    change, networks = arguments.changed_grants(args), arguments.networks_of(args)
    if change == Change() and {args.description, args.owner, networks} == {None}:
        raise UsageError(
            "There is nothing to change: use --role, --scope, --grant, --from, --description or --owner."
        )

    session, found = stack.open_team(settings.resolve(args))
    deployed.check_grants(found, change.new)
    deployed.check_networks(found, networks or ())
    before, after = trust_records.update(
        session,
        found,
        args.name,
        change_grants=change,
        description=args.description,
        owner=args.owner,
        networks=networks,
    )
    record = f"the trust record {after.name} of the team {found.team}"
    done = (
        f"Nothing was changed: {record} already had these values" if before == after else f"Updated {record}"
    )
    with output.after(f"{done}."):
        output.write_either(_changes(before, after, done), _document(after) if args.json else None)


@COMMAND.add(
    "remove",
    "remove a trust record",
    f"""\
Remove a trust record. Within 60 seconds, Holdfast refuses the sessions that the record
granted, and the ID tokens that no other record matches.
{arguments.needs("read and write")}""",
    """\
  holdfast trust remove network-main
  holdfast trust remove network-main --team payments --json
""",
    _NAME,
    arguments.TEAM,
    arguments.as_json(),
)
def _remove(args: argparse.Namespace) -> None:
    from holdfast_cli.bucket import stack, trust_records

    session, found = stack.open_team(settings.resolve(args))
    record = trust_records.remove(session, found, args.name)
    whose = (
        "its sessions are"
        if isinstance(record, AwsTrust)
        else "its sessions, and ID tokens that no other record matches, are"
    )
    done = f"Removed the trust record {record.name} of the team {found.team}"
    with output.after(f"{done}."):
        text = f"{done}: {whose} refused after at most 60 seconds."
        output.write_either(text, _document(record) if args.json else None)


def _new(args: argparse.Namespace) -> "Trust":
    """Return a new record with the values of the options and an empty `created_by`."""
    common: dict[str, Any] = {
        "grants": arguments.granted(args),
        "description": args.description,
        "owner": args.owner,
        "networks": arguments.networks_of(args) or (),
        "created_by": "",
        "now": datetime.now(UTC),
    }
    claims = dict(args.claim)
    if len(claims) < len(args.claim):
        raise UsageError(
            "A claim is named twice, but a trust record can require only one value of a claim. Create two "
            "trust records."
        )
    try:
        if args.issuer is not None:
            audience = _API_ADDRESS if args.audience is None else args.audience
            return trust.new_oidc(args.name, issuer=args.issuer, audience=audience, claims=claims, **common)
        if claims or args.audience is not None:
            raise UsageError(
                "--claim and --audience are only for trust records with --issuer. Remove them, or use "
                "--issuer instead of --aws-role."
            )
        return trust.new_aws(args.name, aws_role=args.aws_role, **common)
    except ValueError as error:
        raise UsageError(f"The trust record is not valid: {error}.") from error


# --- output --------------------------------------------------------------------------------------


def _table(records: "Sequence[Trust]", *, brief: bool) -> str:
    """Return a table of records; if it is brief, grants have one column, and empty columns are left out."""
    cells = [granted.cells(record.grants) for record in records]
    of_grants: dict[str, Sequence[str | Sequence[str]]] = (
        {"GRANTS": [granted.typed(record.grants) for record in records]}
        if brief
        else {"ROLE": [role for role, _ in cells], "SCOPE": [scope for _, scope in cells]}
    )
    columns = {
        "NAME": [record.name for record in records],
        **of_grants,
        "OWNER": [record.owner for record in records],
        "FROM": [record.networks for record in records],
        "WHO": [_who(record) for record in records],
    }
    may_lack = ("OWNER", "FROM") if brief else ("FROM",)
    names = [name for name in columns if name not in may_lack or any(columns[name])]
    return output.table(names, list(zip(*(columns[name] for name in names), strict=True)))


def _document(record: "Trust | Unreadable") -> Any:
    """Return a record as JSON members, the same for both kinds: members of the other kind are null."""
    if isinstance(record, Unreadable):
        return record.stored
    of_kind: dict[str, Any] = dict.fromkeys(("kind", "issuer", "audience", "claims", "aws_role"))
    match record:
        case OidcTrust(issuer=issuer, audience=audience, claims=claims):
            of_kind |= {"kind": "oidc", "issuer": issuer, "audience": audience, "claims": dict(claims)}
        case AwsTrust():
            of_kind |= {"kind": "aws", "aws_role": record.aws_role}
    return {
        "name": record.name,
        "id": record.id,
        **of_kind,
        **described(record.grants),
        "description": record.description,
        "owner": record.owner,
        "from": record.networks,
        "created": written(record.created),
        "created_by": record.created_by,
        "updated": written(record.updated),
        "updated_by": record.updated_by,
    }


def _fields(record: "Trust") -> list[tuple[str, str]]:
    match record:
        case OidcTrust():
            return [
                ("issuer", record.issuer),
                ("audience", record.audience),
                ("claims", ", ".join(_claims(record))),
            ]
        case AwsTrust():
            return [("AWS role", record.aws_role)]


def _all_fields(record: "Trust", now: datetime) -> list[tuple[str, str]]:
    fields = [
        ("name", record.name),
        *_fields(record),
        *_changeable(record),
        ("created", f"{output.moment(record.created, now)} by {record.created_by}"),
    ]
    if record.updated is not None:
        fields.append(("updated", f"{output.moment(record.updated, now)} by {record.updated_by}"))
    return fields


def _changeable(record: "Trust") -> list[tuple[str, str]]:
    """Return the fields that `update` can change."""
    return [
        *granted.fields(record.grants),
        ("from", ", ".join(record.networks) or arguments.ANYWHERE),
        ("description", record.description or "-"),
        ("owner", record.owner or "-"),
    ]


def _changes(before: "Trust", after: "Trust", done: str) -> str:
    """Return the text `done`, followed by a line for each changed field with its old and new value."""
    old, new = (dict(_changeable(one)) for one in (before, after))
    changed = [(name, f"{old[name]} -> {new[name]}") for name in new if old[name] != new[name]]
    if not changed:
        return f"{done}."
    whose = "Its ID tokens and sessions" if isinstance(after, OidcTrust) else "Its sessions"
    return (
        f"{done}. {whose} stay valid, and the change applies to them within 60 "
        f"seconds.\n\n{output.listed(changed)}"
    )


def _who(record: "Trust") -> str:
    match record:
        case OidcTrust():
            return " ".join([record.issuer, *_claims(record)])
        case AwsTrust():
            return f"AWS role {record.aws_role}"


def _claims(record: OidcTrust) -> list[str]:
    return [f"{name}={value}" for name, value in record.claims.items()]

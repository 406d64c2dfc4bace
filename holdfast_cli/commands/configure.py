"""`holdfast configure`: writes, lists and removes profiles, and installs the credentials helper."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from holdfast.identity.sessions import MAX_SECONDS
from holdfast_cli.api import own_sessions
from holdfast_cli.config import arguments, cloud_config, profiles, rules, settings, terraform_cli
from holdfast_cli.errors import CommandError, UsageError
from holdfast_cli.terminal import asking, output
from holdfast_cli.terminal.declaration import Command, Option, option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast_cli.config.settings import Found

_WORDS: Final = {"address": "API address", "team": "Team", "region": "AWS region"}
"""The name of each setting in the questions."""

COMMAND = Command()


def _profile_option(default: str | None) -> Option:
    return option(
        "--profile",
        type=rules.profile,
        default=default,
        metavar="NAME",
        help="which profile; default: HOLDFAST_PROFILE, or else `default`",
    )


def _setting(value: str) -> str:
    # `choices` would refuse an empty list.
    if value not in profiles.RULES:
        raise argparse.ArgumentTypeError(
            f"{value!r} is not a setting of a profile: use {', '.join(profiles.RULES)}"
        )
    return value


@COMMAND.define(
    """\
Write a profile: the API's address, the team and the AWS region. The other commands use
these settings if no option and no variable names them. Without --address, --team and
--region, the command asks for each setting, which needs a terminal. Settings that you
do not name are not changed.

HOLDFAST_CONFIG_FILE names the file. Without this variable, the file is
holdfast/config.toml below XDG_CONFIG_HOME, or else ~/.config/holdfast/config.toml. The
file never has a secret. Terraform's credentials are in TF_HTTP_USERNAME and
TF_HTTP_PASSWORD. AWS credentials are in a profile of AWS, which AWS_PROFILE names.""",
    """\
  holdfast configure
  holdfast configure --profile staging --team payments --region eu-central-1
  holdfast configure --address https://abc123.execute-api.eu-central-1.amazonaws.com
  holdfast configure list
  holdfast configure remove staging
  holdfast configure helper
""",
    _profile_option(default=None),
    option("--address", type=rules.address, metavar="URL", help="the API's base URL"),
    option("--team", type=rules.team, metavar="TEAM", help="the team whose stack is used"),
    option("--region", type=rules.region, metavar="REGION", help="the AWS region of the stack"),
)
def _configure(args: argparse.Namespace) -> None:
    file = _file()
    found = profiles.read(file)  # reports an invalid file before any question
    name = settings.profile_name(args).value
    values = {setting: value for setting in profiles.RULES if (value := getattr(args, setting)) is not None}
    if not values:
        if not asking.is_possible():
            raise UsageError(
                "There is nothing to write. Use --address, --team or --region. Without these options, the "
                "command asks for each setting, which needs a terminal."
            )
        values = _ask(name, found.get(name, {}), file)
        if not values:
            output.write(asking.NOTHING)
            return
    profiles.change(file, name, values)
    done = f"Wrote the profile {name} to {file}"
    use = "" if name == profiles.DEFAULT else f"\n\nUse it with --profile {name} or HOLDFAST_PROFILE={name}."
    written = {**found.get(name, {}), **values}
    fields = [(setting, written[setting]) for setting in profiles.RULES if setting in written]
    with output.after(f"{done}."):
        output.write(f"{done}:\n\n{output.listed(fields)}{use}")


@COMMAND.add(
    "list",
    "show the value and the source of each setting",
    """\
Show which profile, address, team and region the commands use here, and where each
comes from. The command sends no request to AWS.""",
    """\
  holdfast configure list
  holdfast configure list --profile staging
  holdfast configure list --json
""",
    _profile_option(default=argparse.SUPPRESS),
    arguments.as_json(),
)
def _list(args: argparse.Namespace) -> None:
    _refuse_options(args, "list")
    file = profiles.path(os.environ)
    found, no_region = dict(settings.sources(args)), ""
    if found["region"] is None:
        try:
            found["region"] = _region_of_aws()
        except CommandError as error:  # AWS's own settings are not valid; the rest is still shown
            no_region = str(error)
    names = sorted(profiles.read(file))
    if args.json:
        output.write_json(_document(found, file, names))
    else:
        rows = [
            [setting, value.value, value.source]
            if value
            else [setting, "", _without(setting, found) or no_region]
            for setting, value in found.items()
        ]
        text = output.table(("SETTING", "VALUE", "FROM"), rows)
        has = f"{file} has {', '.join(names)}." if names else f"{file} has no profiles."
        has = has if file else profiles.NO_FILE
        output.write(f"{text}\n\n{output.wrapped(has)}")


@COMMAND.add(
    "remove",
    "remove a profile, or some of its settings",
    "Remove a profile. With the names of settings, remove only these settings of the profile.",
    """\
  holdfast configure remove staging
  holdfast configure remove staging region
  holdfast configure remove staging address team
""",
    option("name", type=rules.profile, metavar="NAME", help="the profile's name"),
    option(
        "settings",
        nargs="*",
        default=[],  # otherwise argparse says that it is required
        type=_setting,
        metavar="SETTING",
        help=f"a setting to remove: {', '.join(profiles.RULES)}; default: the whole profile",
    ),
)
def _remove(args: argparse.Namespace) -> None:
    _refuse_options(args, "remove")
    if args.profile is not None:
        raise UsageError(
            "Remove --profile. Name the profile as an argument, as in `holdfast configure remove staging`."
        )
    file = _file()
    named = list(dict.fromkeys(args.settings))
    if named:
        profiles.change(file, args.name, dict.fromkeys(named))
    else:
        profiles.remove(file, args.name)
    what = f"{', '.join(named)} of the profile" if named else "the profile"
    output.outcome(f"Removed {what} {args.name} from {file}.")


@COMMAND.add(
    "helper",
    "let Terraform sign in by itself with `cloud {}`",
    """\
Install a credentials helper, with which Terraform and OpenTofu sign in by themselves,
as `holdfast login` does. They sign in at the hosts of the profiles' addresses and of
HOLDFAST_ADDRESS, and need no TF_TOKEN_… for these hosts. The options choose the
credentials that sign in.

The program of the helper is ~/.terraform.d/plugins/terraform-credentials-holdfast. Its
setting is in ~/.terraform.d/holdfast.tfrc. A machine can have only one credentials
helper: if another helper is configured, the command installs nothing.""",
    """\
  holdfast configure helper
  holdfast configure helper --aws-profile platform
  holdfast configure helper --oidc
  holdfast configure helper --remove
""",
    arguments.sign_in(MAX_SECONDS),
    option("--remove", action="store_true", help="remove the helper"),
)
def _helper(args: argparse.Namespace) -> None:
    _refuse_options(args, "helper")
    if args.profile is not None:
        raise UsageError("Remove --profile: the helper signs in at the addresses of all profiles.")
    if args.remove:
        removed = terraform_cli.remove(os.environ)
        output.write(f"Removed {' and '.join(map(str, removed))}." if removed else asking.NOTHING)
        return
    own_sessions.check(args)
    hosts = {host for _, address in settings.apis(os.environ) if (host := cloud_config.host(address))}
    if not hosts:
        raise UsageError(
            "`cloud {}` needs an https:// address without a path, and neither a profile nor HOLDFAST_ADDRESS "
            "has one. Run `holdfast configure --address URL` first."
        )
    written = terraform_cli.install(os.environ, _sign_in_arguments(args))
    done = f"Wrote {' and '.join(map(str, written))}."
    with output.after(done):
        output.write(f"{done}\n\nTerraform signs in by itself at {', '.join(sorted(hosts))}.")
    for host in sorted(hosts):
        for place in terraform_cli.preferred(os.environ, host):
            output.tell(
                f"holdfast: {place} has a token for {host}, so Terraform does not use the helper for this "
                "host. Remove the token."
            )


def _sign_in_arguments(args: argparse.Namespace) -> list[str]:
    """Return the options of `arguments.sign_in` as they are typed, with an absolute path."""
    values = {
        "--id-token-file": args.id_token_file and args.id_token_file.absolute(),
        "--audience": args.audience,
        "--aws-profile": args.aws_profile,
        "--duration": args.duration and f"{args.duration}s",
    }
    typed = [f"{name}={value}" for name, value in values.items() if value]
    return ["--oidc", *typed] if args.oidc else typed


def _file() -> Path:
    file = profiles.path(os.environ)
    if file is None:
        raise UsageError(profiles.NO_FILE)
    return file


def _refuse_options(args: argparse.Namespace, command: str) -> None:
    for setting in profiles.RULES:
        if getattr(args, setting) is not None:
            raise UsageError(
                f"`holdfast configure {command}` does not accept --{setting}: remove the option."
            )


# --- asking --------------------------------------------------------------------------------------


def _ask(name: str, present: "Mapping[str, str]", file: Path) -> dict[str, str]:
    """Ask for each setting, and return the settings for which the answer is not empty."""
    output.tell(
        f"Settings of the profile {name} in {file}. `cdk deploy` and `make up` print the API's address. "
        "Press Enter to keep the value in brackets."
    )
    answers = {setting: _answer(setting, present.get(setting)) for setting in profiles.RULES}
    return {setting: value for setting, value in answers.items() if value is not None}


def _answer(setting: str, present: str | None) -> str | None:
    while True:
        try:
            line = asking.line(f"{_WORDS[setting]} [{present or 'none'}]: ")
            if not line:
                output.tell("")
                raise CommandError(f"The input ended. {asking.NOTHING}")
            return profiles.RULES[setting](answer) if (answer := line.strip()) else None
        except UnicodeDecodeError:
            output.tell("The answer is not valid text.")
        except argparse.ArgumentTypeError as error:
            output.tell(f"{error}")


# --- what `list` prints --------------------------------------------------------------------------


def _region_of_aws() -> "Found | None":
    from holdfast_cli.bucket import stack

    region = stack.sign_in(profiles.Settings(None, None, None)).region_name
    return settings.Found(region, "the AWS profile") if region else None


def _without(setting: str, found: "Mapping[str, Found | None]") -> str:
    """Return a text that says what commands use if a setting has no value."""
    match setting:
        case "address":
            return f"the team's stack ({team.source})" if (team := found["team"]) else "the team's stack"
        case "team":
            return "the only deployed team"
        case _:
            return ""


def _document(found: "Mapping[str, Found | None]", file: Path | None, names: list[str]) -> dict[str, object]:
    document = {
        setting: {"value": value and value.value, "from": (value and value.source) or None}
        for setting, value in found.items()
    }
    return {**document, "file": None if file is None else str(file), "profiles": names}

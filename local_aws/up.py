"""`make up`: the local AWS with Holdfast on it, and everything that Terraform needs to use it."""

import http.client
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from enum import Enum, auto
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

from holdfast.identity.credentials import basic
from holdfast.names import RESERVED
from holdfast_cdk.config import ConfigError, load_teams, team_named
from holdfast_cdk.team_settings import Team
from local_aws.failure import LocalAwsError
from local_aws.files import digest, read_port, tail, write_port, write_private
from local_aws.home import Connection, DeployedTeam, Deployment, Home
from local_aws.progress import step
from local_aws.server import ROOT, LocalAws, Running, check_port_free, find_running, for_local_commands

DEFAULT_PORT = 4566
_TEAMS_FILE = ROOT / "teams.toml"
_EVERY_TEAM = "all"

# The inputs of a deployment. A change of any other file needs no deployment.
_DEPLOYED = [
    ROOT / path
    for path in (
        *("app.py", "cdk.json", "teams.toml", "infra", "functions", "requirements.txt"),
        *("console", "package-lock.json", "local_aws/requirements.txt"),
        *("local_aws/deploy.py", "local_aws/bucket_properties.py", "local_aws/server.py"),
    )
]
_BOOTSTRAPPED = [ROOT / "package-lock.json"]

_EXAMPLE_STATE = "app/first"
_NO_STATE = f"{RESERVED}/{'0' * 32}"
"""The name with which a new token is tested. The name of a probe need not be declared in any team."""
_CLOUD_HOST = "holdfast.local"
"""The host name in a `cloud` block. Terraform finds it in `cloud.tfrc` and never resolves it."""
_COMMAND_TIME_LIMIT = 60
_REQUEST_TIME_LIMIT = 60
"""Seconds. The first request starts two functions, which takes long on a busy machine."""


class Step(Enum):
    """The steps of `make up`, in their order."""

    STOP = auto()
    WIPE = auto()
    START = auto()
    BOOTSTRAP = auto()
    DEPLOY = auto()


def steps(
    *,
    finished: bool,
    data: bool,
    running_port: int | None,
    wanted_port: int,
    deployed: bool,
    bootstrapped: bool,
) -> list[Step]:
    """Return the steps that are needed, in order.

    An interrupted first run leaves objects of stacks without a record. The next run would clash with these
    objects, so it wipes them: nobody has had a token for them yet.

    Args:
        finished: an earlier run got so far that there may be states, which must be kept.
        data: the local AWS has a folder.
        running_port: the server's port, or None if it does not run.
        deployed: the inputs of the last deployment are unchanged.
        bootstrapped: the inputs of `cdk bootstrap` are unchanged.
    """
    wipe = data and not finished
    stop = running_port is not None and (wipe or running_port != wanted_port)
    bootstrap = not (finished and bootstrapped)
    needed = {
        Step.STOP: stop,
        Step.WIPE: wipe,
        Step.START: stop or running_port is None,
        Step.BOOTSTRAP: bootstrap,
        Step.DEPLOY: bootstrap or not deployed,
    }
    return [each for each in Step if needed[each]]


def requested_teams(requested: str | None, teams: Sequence[Team]) -> frozenset[str]:
    """Return the teams that the user named, as `all` or as names separated by blanks or commas."""
    names = frozenset(re.findall(r"[^\s,]+", requested or ""))
    try:
        for name in sorted(names - {_EVERY_TEAM}):
            team_named(name, teams, _TEAMS_FILE)
    except ConfigError as error:
        raise LocalAwsError(str(error)) from error
    return frozenset(team.name for team in teams) if _EVERY_TEAM in names else names


def teams_to_deploy(
    known: Sequence[str], deployed: Iterable[str], requested: Iterable[str]
) -> tuple[str, ...]:
    """Return the first team, the deployed teams and the requested teams, in the order of teams.toml.

    `known` are all teams of teams.toml, at least one. `LocalAwsError` if it lacks a deployed team.
    """
    gone = sorted(set(deployed) - set(known))
    if gone:
        raise LocalAwsError(
            f"The team {gone[0]} is deployed here, but is no longer in teams.toml: write [teams.{gone[0]}] "
            "again. A renamed team would get a new stack without the states."
        )
    wanted = {known[0], *deployed, *requested}
    return tuple(team for team in known if team in wanted)


def up(home: Home, port: int | None, teams: str | None = None) -> None:
    """Start the local AWS, deploy to it, print what to do next, and leave the server running.

    A port of None is the port used last, or else 4566. `teams` (see `requested_teams`) are deployed in
    addition to the first team of teams.toml and the teams that are deployed already.
    """
    configured = {team.name: team for team in _configured_teams()}
    requested = requested_teams(teams, [*configured.values()])
    wanted_port = port or read_port(home.port) or DEFAULT_PORT
    with home.alone():
        if not home.aws_data.exists():
            home.forget()
        wanted = teams_to_deploy([*configured], home.deployed_teams(), requested)
        running = find_running(home.aws_data)
        if running is None or running.port != wanted_port:
            check_port_free(wanted_port)
        aws = LocalAws(wanted_port, home.aws_data)
        write_port(home.port, wanted_port)
        deployment = _bring_up(home, aws, running, wanted)
        first = deployment.teams[0]
        chosen = {"HOLDFAST_TEAM": first.name, "HOLDFAST_ADDRESS": first.api_address}
        # The API's address may have a `$`.
        variables = (f"{key}={shlex.quote(value)}\n" for key, value in (aws.environment() | chosen).items())
        write_private(home.aws_env, "".join(variables))
        connection = _connect(home, aws, first)
        exports = (f"export {key}='{value}'\n" for key, value in connection.environment().items())
        write_private(home.terraform_env, "".join(exports))
        write_private(home.cloud_config, cloud_config(connection))
    _print_next(home, deployment, configured)


def takes_declared_names_alone(team: str) -> bool:
    """Return whether a team's names must be declared before the first write (`new_states = "declared"`)."""
    return any(each.name == team and each.new_states == "declared" for each in _configured_teams())


def holdfast(*arguments: str, environment: dict[str, str] | None = None) -> str:
    command = f"holdfast {' '.join(arguments[:2])}"
    try:
        ended = subprocess.run(
            [Path(sys.executable).with_name("holdfast"), *arguments],
            env=for_local_commands(os.environ) | (environment or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_COMMAND_TIME_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise LocalAwsError(f"{command} did not end within {_COMMAND_TIME_LIMIT} s.") from error
    if ended.returncode != 0:
        raise LocalAwsError(f"{command} failed:\n{ended.stderr.strip()}")
    return ended.stdout


# --- server and stack ----------------------------------------------------------------------------


def _bring_up(home: Home, aws: LocalAws, running: Running | None, teams: Sequence[str]) -> Deployment:
    digests = digest(_DEPLOYED, *teams, aws.endpoint), digest(_BOOTSTRAPPED)
    known = home.deployment()
    todo = steps(
        finished=home.finished,
        data=home.aws_data.exists(),
        running_port=running.port if running else None,
        wanted_port=aws.port,
        deployed=known is not None and known.digest == digests[0],
        bootstrapped=known is not None and known.bootstrap_digest == digests[1],
    )
    if Step.DEPLOY in todo:
        print("Deploying takes about half a minute. If nothing has changed, `make up` takes seconds.")
    if Step.STOP in todo:
        with step("Stopping the local AWS"):
            aws.stop()
    if Step.WIPE in todo:
        with step("Removing the data of a first run that did not finish"):
            shutil.rmtree(home.aws_data)
    if Step.START in todo:
        with step(f"Starting the local AWS on {aws.endpoint}"):
            aws.start(stays=True)
    else:
        print(f"The local AWS runs on {aws.endpoint}")
    if Step.DEPLOY not in todo and known:
        stacks = _and(f"Holdfast-{team}" for team in teams)
        print(f"{stacks} {'is' if len(teams) == 1 else 'are'} already deployed from this version of the code")
        return known
    try:
        return _deploy(home, aws, teams, digests, bootstrap=Step.BOOTSTRAP in todo)
    except BaseException:
        if not home.finished:
            aws.kill()
        raise


def _deploy(
    home: Home, aws: LocalAws, teams: Sequence[str], digests: tuple[str, str], *, bootstrap: bool
) -> Deployment:
    from local_aws import deploy  # not needed when nothing changed, and slow to load

    if bootstrap:
        with step("Preparing the local AWS for CDK (cdk bootstrap)"):
            deploy.bootstrap(aws)
    with step(f"Deploying {_and(f'Holdfast-{team}' for team in teams)} (cdk deploy)"):
        deployed = deploy.deploy(aws, teams)
    # The server keeps APIs, functions and stacks in memory and saves them only when it stops.
    with step("Saving the deployment, so that a crash cannot lose it"):
        aws.stop()
        aws.start(stays=True)
    deployment = Deployment(*digests, deployed)
    home.remember_deployment(deployment)
    return deployment


def _configured_teams() -> tuple[Team, ...]:
    try:
        return load_teams(_TEAMS_FILE)
    except ConfigError as error:
        raise LocalAwsError(str(error)) from error


def _and(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


# --- the token -----------------------------------------------------------------------------------


def _connect(home: Home, aws: LocalAws, team: DeployedTeam) -> Connection:
    known = home.connection()
    connection = known and Connection(team.api_address, known.username, known.password)
    if connection is None or not _is_taken(connection, aws):
        if connection:
            print(f"The team {team.name} does not accept the token in connection.json.")
        with step("Creating a token (holdfast token create)"):
            options = ["--role", "maintainer", "--scope", "*", "--description", "made by make up", "--json"]
            printed = holdfast(
                "token", "create", "--team", team.name, *options, environment=aws.environment()
            )
        made = json.loads(printed)
        connection = Connection(team.api_address, made["id"], made["secret"])
        if not _is_taken(connection, aws):
            raise LocalAwsError(f"Holdfast does not accept the new token; see {aws.log}")
    home.remember_connection(connection)
    return connection


def _is_taken(connection: Connection, aws: LocalAws) -> bool:
    """Return whether the API accepts the token: read an absent state through authorizer, backend and S3."""
    address = urlsplit(f"{connection.address}/states/{_NO_STATE}")
    request = http.client.HTTPConnection(address.netloc, timeout=_REQUEST_TIME_LIMIT)
    with step("Requesting a state from Holdfast"), closing(request):
        try:
            authorization = basic(connection.username, connection.password)
            request.request("GET", address.path, headers={"Authorization": authorization})
            status = request.getresponse().status
        except OSError as error:
            raise LocalAwsError(f"Holdfast does not respond ({error}); see {aws.log}") from error
    match status:
        case HTTPStatus.OK | HTTPStatus.NO_CONTENT:
            return True
        case HTTPStatus.FORBIDDEN:
            return False
        case _:
            raise LocalAwsError(
                f"Holdfast responded with {status} to a request for a state. The end of {aws.log}:\n"
                f"{tail(aws.log)}\n"
                "Try `make down` and `make up`, which keep the states."
            )


# --- what the user gets --------------------------------------------------------------------------


def cloud_config(connection: Connection) -> str:
    """Return a CLI configuration with a host's services, because discovery would need HTTPS."""
    services = "".join(
        f'    "{service}" = "{connection.address}/api/v2/"\n'
        # A `host` block replaces the discovery document, so the block must have all of its services.
        for service in ("tfe.v2", "tfe.v2.1", "tfe.v2.2", "state.v2")
    )
    return f"""\
host "{_CLOUD_HOST}" {{
  services = {{
{services}  }}
}}

credentials "{_CLOUD_HOST}" {{
  token = "{connection.username}.{connection.password}"
}}
"""


def cloud_block(state: str) -> str:
    """Return the `cloud` block for a state."""
    organization, _, rest = state.partition("/")
    return f"""\
terraform {{
  cloud {{
    hostname     = "{_CLOUD_HOST}"
    organization = "{organization}"
    workspaces {{ name = "{rest.replace("/", ":")}" }}
  }}
}}"""


def _print_next(home: Home, deployment: Deployment, configured: Mapping[str, Team]) -> None:
    first, *others = deployment.teams
    block = holdfast("backend-config", _EXAMPLE_STATE, "--address", first.api_address)
    whom = f"team {first.name}" if not others else f"teams {_and(team.name for team in deployment.teams)}"
    whose = f"the team {first.name}" if others else "your own"
    # The shell with Terraform's credentials can run this.
    declare = (
        f"""
teams.toml says that names of the team {first.name} must be declared. Before `terraform init`, run:

    .venv/bin/holdfast state declare {_EXAMPLE_STATE}
"""
        if configured[first.name].new_states == "declared"
        else ""
    )
    print(f"""
Holdfast is up, for the {whom}.

For a state of {whose}, paste this block into its configuration (or use another name than {_EXAMPLE_STATE}):

{block.rstrip()}

In the shell that runs Terraform, set the credentials:

    . {_display(home.terraform_env)}

A `cloud` block reaches the same state as a workspace:

{cloud_block(_EXAMPLE_STATE)}

For a `cloud` block, the address and the token are in another file:

    export TF_CLI_CONFIG_FILE={_display(home.cloud_config)}

Then run `terraform init`, `plan` and `apply` as usual. The first file exports HOLDFAST_ADDRESS,
TF_HTTP_USERNAME and TF_HTTP_PASSWORD, with which commands for operators also work:

    .venv/bin/holdfast state list
{declare}
    make demo    runs a real Terraform with Holdfast
    make down    stops the local AWS; states, locks and the token stay in {_display(home.folder)}

For `holdfast token`, `holdfast trust` and the AWS CLI: set -a; . {_display(home.aws_env)}; set +a
The API's address, for `holdfast configure`: {first.api_address}""")
    for team in deployment.teams:
        if configured[team.name].console:
            print(f"The console of the team {team.name}, for a browser: {team.api_address}/console/")
    for team in others:
        print(f"""
The team {team.name} has tokens and a backend block of its own. In a shell with the variables of
{_display(home.aws_env)}, these commands print them:

    .venv/bin/holdfast token create --team {team.name} --role maintainer --scope '*'
    .venv/bin/holdfast backend-config {_EXAMPLE_STATE} --team {team.name}""")
    deployed = {team.name for team in deployment.teams}
    if not_deployed := [team for team in configured if team not in deployed]:
        print(f"\nteams.toml also defines {_and(not_deployed)}: `make up TEAMS=all` deploys every team.")


def _display(path: Path) -> str:
    return shlex.quote(str(path))

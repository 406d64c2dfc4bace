"""The deployed stack of a team, found through CloudFormation."""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from holdfast import team as names
from holdfast_cli.bucket.aws_errors import NOT_OF_AWS, as_command_errors, code_of
from holdfast_cli.clock import Clock
from holdfast_cli.config.profiles import Settings
from holdfast_cli.errors import CommandError, NotSetUpError, UsageError

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudformation.type_defs import StackTypeDef

CLIENT_CONFIG = Config(
    connect_timeout=5, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 3}
)


@dataclass(frozen=True, slots=True)
class Stack:
    """A deployed Holdfast stack: its team, API address and bucket, and the ID of its AWS account.

    `networks` are those of the team's setting, with commas between them; empty without it.
    `watched` is the age in seconds from which the function `watch` finds a lock; 0 without the function.
    """

    team: str
    api_address: str
    bucket: str
    account: str
    networks: str = ""
    watched: int = 0


class Session(boto3.Session):
    """The credentials, the region and the clock of AWS, as its responses show it."""

    def __init__(self, region: str | None, profile: str | None = None) -> None:
        super().__init__(region_name=region, profile_name=profile)
        self.clock = Clock()
        self.events.register("after-call", self._hear)

    def _hear(self, http_response: Any, **_: object) -> None:
        self.clock.hear(http_response.headers.get("date", ""))


def sign_in(settings: Settings) -> Session:
    """Return a session with the AWS settings of the environment and its profiles.

    A region in `settings` overrides the region of the AWS profile.
    """
    with as_command_errors():
        return Session(settings.region, settings.aws_profile)


def refuse_without_configuration(settings: Settings, session: Session) -> None:
    """Raise `NotSetUpError` if neither an API, a team, a region nor anything of AWS is configured."""
    named = settings.address, settings.team, settings.aws_profile, session.region_name
    if not any((*named, session.available_profiles, os.environ.get("AWS_ACCESS_KEY_ID"))):
        raise NotSetUpError(
            "Neither the API's address nor an AWS region is known. Type these commands in this order:",
            "set -a; . .local/aws.env; set +a",
        )


def open_account(settings: Settings) -> Session:
    """Return an AWS session, as `sign_in` does. Raise `NotSetUpError` if nothing at all is configured."""
    session = sign_in(settings)
    refuse_without_configuration(settings, session)
    return session


def open_team(settings: Settings) -> tuple[Session, Stack]:
    """Return an AWS session, and the stack of the team that the settings name."""
    session = open_account(settings)
    return session, find(session, settings.team)


def api_address(settings: Settings) -> str:
    """Return the API's base URL from the settings, or else from the stack that they name."""
    if settings.address is not None:
        return settings.address
    _, found = open_team(settings)
    return found.api_address


def find(session: boto3.Session, team: str | None) -> Stack:
    """Find the stack of a team; if `team` is None, find the only deployed stack."""
    with as_command_errors():
        cloudformation: CloudFormationClient = session.client("cloudformation", config=CLIENT_CONFIG)
        try:
            return _read(_named(cloudformation, team) if team else _only(cloudformation))
        except LookupError as error:  # every stack of AWS has these fields
            raise CommandError(NOT_OF_AWS) from error


def find_replica(session: boto3.Session, team: str) -> Stack | None:
    """Find a team's replica in the session's region; return None once its stack is deleted.

    Its `api_address` is empty.
    """
    with as_command_errors():
        cloudformation: CloudFormationClient = session.client("cloudformation", config=CLIENT_CONFIG)
        try:
            described = cloudformation.describe_stacks(StackName=names.replica_stack_name(team))["Stacks"][0]
        except ClientError as error:
            if code_of(error) != "ValidationError":
                raise
            return None
        except LookupError as error:
            raise CommandError(NOT_OF_AWS) from error
        account = described["StackId"].split(":")[4]
        bucket = names.bucket_name(team, account, cloudformation.meta.region_name)
        return Stack(team, "", bucket, account)


def _named(cloudformation: "CloudFormationClient", team: str) -> "StackTypeDef":
    name = names.stack_name(team)
    try:
        return cloudformation.describe_stacks(StackName=name)["Stacks"][0]
    except ClientError as error:
        # A missing stack has no error code of its own: it is a ValidationError.
        if code_of(error) != "ValidationError":
            raise
        raise CommandError(
            f"There is no stack {name} in {cloudformation.meta.region_name}. Check the team and the region; "
            "`holdfast configure list` shows where they come from. If the stack is not deployed, run `npx "
            f"cdk deploy {name}`."
        ) from error


def _only(cloudformation: "CloudFormationClient") -> "StackTypeDef":
    stacks = [
        stack
        for page in cloudformation.get_paginator("describe_stacks").paginate()
        for stack in page["Stacks"]
        if stack["StackName"].startswith(names.STACK_PREFIX)
        or any(tag["Key"] == names.TAG for tag in stack["Tags"])
    ]
    if not stacks:
        raise CommandError(
            f"There is no Holdfast stack in {cloudformation.meta.region_name}. Check the region (--region, "
            f"AWS_REGION or a profile), or deploy a stack with `npx cdk deploy {names.stack_name('<team>')}`."
        )
    if len(stacks) > 1:
        teams = ", ".join(sorted(_team(stack) for stack in stacks))
        raise UsageError(
            f"Several teams are deployed in this account and region: {teams}. Name one of them with --team, "
            "HOLDFAST_TEAM or a profile (`holdfast configure`)."
        )
    return stacks[0]


def _team(stack: "StackTypeDef") -> str:
    return stack["StackName"].removeprefix(names.STACK_PREFIX)


def _read(stack: "StackTypeDef") -> Stack:
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}
    name, arn = stack["StackName"], stack["StackId"]
    try:
        return Stack(
            _team(stack),
            outputs[names.API_ADDRESS].rstrip("/"),
            outputs[names.BUCKET_NAME],
            arn.split(":")[4],
            outputs.get(names.NETWORKS, ""),
            int(outputs.get(names.WATCHED, 0)),
        )
    except KeyError as error:
        is_moving = stack["StackStatus"].endswith("_IN_PROGRESS")
        do = (
            "wait until the operation has ended"
            if is_moving
            else f"deploy the stack with `npx cdk deploy {name}`"
        )
        raise CommandError(
            f"The stack {name} is {stack['StackStatus']} and has no output {error.args[0]}: {do}."
        ) from error

"""`holdfast doctor --account`: check before a deployment whether the account allows the teams' settings.

No call to AWS changes anything. docs/operate/doctor.md lists the permissions that the calls need.
"""

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import boto3
from botocore.exceptions import ClientError

from holdfast import team as names
from holdfast.lambda_python import lambda_python
from holdfast_cli.bucket.stack import CLIENT_CONFIG
from holdfast_cli.doctor import kms_keys
from holdfast_cli.doctor.checks import attempt, existing, judge
from holdfast_cli.doctor.findings import Finding, Level, Outcome

_LEAST_CONCURRENCY: Final = 100
"""The concurrency that Lambda keeps for functions without a reservation. New accounts may have 10 in all."""
_DEFAULT_CONCURRENCY: Final = 1000
_CONCURRENCY_QUOTA: Final = "L-B99A9384"
_NEW_ACCOUNTS_MEMORY: Final = 3008
"""The memory limit of a function in a new account, in MB. No AWS call returns an account's actual limit."""
_BOOTSTRAP_VERSION: Final = 6
"""The oldest version that aws-cdk-lib's `DefaultStackSynthesizer` accepts (MIN_BOOTSTRAP_STACK_VERSION)."""
_DEFAULT_QUALIFIER: Final = "hnb659fds"
_QUALIFIER_KEY: Final = "@aws-cdk/core:bootstrapQualifier"
_FORMER_STACKS: Final = ("HoldfastTokenTrail", "HoldfastDashboard")
"""Stacks of earlier releases, which the teams of an account and region shared. Until release 0.5.0."""


@dataclass(frozen=True, slots=True)
class Team:
    """The settings of a team that its AWS account might refuse.

    Attributes:
        name: None if the command names no team and there is no teams.toml.
        account, region: the place of deployment; None for the account and region of the credentials.
        settings: the team's table in `teams.toml`; None if the file does not have it.
    """

    name: str | None
    account: str | None = None
    region: str | None = None
    settings: Mapping[str, Any] | None = None

    def get(self, setting: str) -> Any:
        """Return the value of a setting; None if `teams.toml` does not have the setting."""
        return (self.settings or {}).get(setting)

    def __str__(self) -> str:
        return f"The team {self.name}" if self.name else "A team"


def check(sign_in: Callable[[], boto3.Session], folder: Path, team: str | None) -> Iterator[Finding]:
    """Yield the findings about the AWS account to which the credentials belong.

    Args:
        sign_in: returns a session. If it fails, only the checks without AWS calls run.
        folder: may hold `teams.toml`, `cdk.json` and `cdk.context.json`.
        team: the only team to check; None for all of `teams.toml`.
    """
    teams: list[Team] = []
    yield from judge("teams", partial(_read_teams, folder, team, teams))
    teams = teams or [Team(team)]
    yield from judge("python", _python)
    found: list[tuple[boto3.Session, str]] = []
    yield from judge("credentials", partial(_credentials, sign_in, found))
    if not found:
        return  # every other call would fail, too
    [(session, account)] = found
    by_region: dict[str, list[Team]] = {}
    for one in teams:
        place = [
            Finding("account", *_account(one, account)),
            Finding("region", *_region(one, session.region_name)),
        ]
        yield from place
        if not any(finding.level is Level.PROBLEM for finding in place):
            by_region.setdefault(one.region or session.region_name, []).append(one)
    for region, there in by_region.items():
        at = _At(session, account, region, there)
        yield from judge("bootstrap", partial(at.bootstrap, folder))
        yield from judge("lambda.concurrency", at.concurrency)
        yield from judge("lambda.memory", at.memory)
        yield from judge("api.throttling", at.throttling)
        yield from judge("former_stacks", at.former_stacks)
        yield from attempt("keys", at.keys)
        yield from attempt("topics", at.topics)
        for one in there:
            if one.name is not None:
                yield from judge("bucket.name", partial(at.bucket, one.name))


# --- the teams, and Python ------------------------------------------------------------------------


def _read_teams(folder: Path, wanted: str | None, teams: list[Team]) -> Iterator[Outcome]:
    """Add the teams of teams.toml to `teams`. The CDK app validates the settings; this command does not."""
    path = folder / "teams.toml"
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        tables = document.get("teams", {})
        teams += [
            Team(name, _text(table, "account"), _text(table, "region"), table)
            for name, table in tables.items()
            if isinstance(table, dict) and wanted in (None, name)
        ]
    except FileNotFoundError:
        yield Level.NOTE, "There is no teams.toml in this folder, so only the account itself is checked."
        return
    except (OSError, ValueError, AttributeError, RecursionError):
        yield (
            Level.PROBLEM,
            f"{path} cannot be read as a list of teams.",
            "Run `npx cdk ls`, which says what is wrong.",
        )
        return
    if not teams and wanted is not None:
        yield (
            Level.PROBLEM,
            f"{path} has no team {wanted}.",
            f"Write a table [teams.{wanted}], or name another team.",
        )
    else:
        yield Level.OK, f"{path} names {', '.join(one.name or '' for one in teams) or 'no team'}."


def _text(table: Mapping[str, Any], setting: str) -> str | None:
    value = table.get(setting)
    return value if isinstance(value, str) else None


def _python() -> Iterator[Outcome]:
    """Yield whether a deployment with this Python includes the functions' bytecode."""
    name = f"python{names.LAMBDA_PYTHON}"
    path = lambda_python() or f"There is no working {name} on the PATH, so npm's pyodide"
    yield Level.OK, f"{path} compiles the functions before they are deployed."


# --- account and region ----------------------------------------------------------------------------


def _credentials(
    sign_in: Callable[[], boto3.Session], found: list[tuple[boto3.Session, str]]
) -> Iterator[Outcome]:
    session = sign_in()
    sts = session.client("sts", region_name=session.region_name or "us-east-1", config=CLIENT_CONFIG)
    identity = sts.get_caller_identity()
    found.append((session, identity["Account"]))
    yield Level.OK, f"The credentials are those of {identity['Arn']}."


def _account(team: Team, account: str) -> Outcome:
    """Return whether a team's account is that of the credentials."""
    if team.account is None:
        return Level.OK, f"{team} uses the account of the credentials, {account}."
    if team.account == account:
        return Level.OK, f"{team} belongs to the account of the credentials, {account}."
    return (
        Level.PROBLEM,
        f"{team} belongs to the account {team.account}, but the credentials are those of {account}.",
        f"Sign in to {team.account}, and run the command again with --team {team.name}.",
    )


def _region(team: Team, region: str | None) -> Outcome:
    """Return whether the region of a team is that of the environment."""
    if team.region is None and region is None:
        return Level.PROBLEM, f"{team} has no region, and the environment has none.", "Set AWS_REGION."
    if team.region is None:
        return Level.OK, f"{team} uses {region}, the region of the environment."
    if region is None or team.region == region:
        return Level.OK, f"{team} uses the region {team.region}."
    return (
        Level.NOTE,
        f"{team} uses the region {team.region}, but the environment has the region {region}.",
        f"Set AWS_REGION={team.region} for the other commands of `holdfast`.",
    )


@dataclass(frozen=True, slots=True)
class _At:
    """The checks for the teams of one account and region."""

    session: boto3.Session
    account: str
    region: str
    teams: list[Team]

    def client(self, service: Any) -> Any:
        return self.session.client(service, region_name=self.region, config=CLIENT_CONFIG)

    def stack(self, name: str) -> Any:
        """Return CloudFormation's description of a stack; None if it does not exist."""
        describe = self.client("cloudformation").describe_stacks
        found = existing(describe, "ValidationError", StackName=name)
        if found is None:
            return None
        [stack] = found["Stacks"]
        return stack

    def bootstrap(self, folder: Path) -> Iterator[Outcome]:
        """Yield whether the account and region are bootstrapped for CDK."""
        qualifier = _qualifier(folder)
        custom = (
            ""
            if qualifier == _DEFAULT_QUALIFIER
            else f" --qualifier {qualifier} --toolkit-stack-name CDKToolkit-{qualifier}"
        )
        command = f"Run `npx cdk bootstrap aws://{self.account}/{self.region}{custom}` as an administrator."
        where = f"{self.account}/{self.region}"
        name = f"/cdk-bootstrap/{qualifier}/version"
        parameter = existing(self.client("ssm").get_parameter, "ParameterNotFound", Name=name)
        if parameter is None:
            yield Level.PROBLEM, f"{where} is not prepared for CDK with the qualifier {qualifier}.", command
            return
        version = int(parameter["Parameter"]["Value"])
        if version < _BOOTSTRAP_VERSION:
            yield (
                Level.PROBLEM,
                f"{where} has version {version} of the CDK bootstrap stack; version {_BOOTSTRAP_VERSION} is "
                "required.",
                command,
            )
        else:
            yield Level.OK, f"{where} is prepared for CDK, with version {version} of the bootstrap stack."

    def concurrency(self) -> Iterator[Outcome]:
        """Yield whether Lambda allows enough concurrent executions."""
        limit = self.client("lambda").get_account_settings()["AccountLimit"]
        allowed = limit["ConcurrentExecutions"]
        unreserved = limit.get("UnreservedConcurrentExecutions", allowed)
        text = (
            f"In {self.region}, the account may have {allowed} concurrent Lambda executions (unreserved: "
            f"{unreserved})"
        )
        if unreserved < _LEAST_CONCURRENCY:
            yield (
                Level.PROBLEM,
                f"{text}. A request needs up to two executions, and requests above the limit fail with 5xx.",
                (
                    f"Request a quota of {_DEFAULT_CONCURRENCY} with `aws service-quotas "
                    f"request-service-quota-increase --service-code lambda --quota-code {_CONCURRENCY_QUOTA} "
                    f"--desired-value {_DEFAULT_CONCURRENCY} --region {self.region}`."
                    if allowed < _DEFAULT_CONCURRENCY
                    else "Lower the reserved concurrency of other functions in this account and region, or "
                    "request a higher quota."
                ),
            )
        else:
            yield Level.OK, f"{text}."

    def memory(self) -> Iterator[Outcome]:
        """Yield whether a team's functions have more memory than a new account allows."""
        for team in self.teams:
            large = [size for size in _numbers(team.get("memory")).values() if size > _NEW_ACCOUNTS_MEMORY]
            if large:
                yield (
                    Level.NOTE,
                    f"{team} asks for {max(large)} MB of memory. A new account may allow only "
                    f"{_NEW_ACCOUNTS_MEMORY} MB, and no AWS call returns the limit of an account.",
                    (
                        "If the deployment fails because of this limit, ask AWS Support to raise it, or "
                        "lower `memory`."
                    ),
                )
            else:
                yield Level.OK, f"{team} asks for at most {_NEW_ACCOUNTS_MEMORY} MB for each function."

    def throttling(self) -> Iterator[Outcome]:
        """Yield whether a team's throttling settings exceed the account's quota of API Gateway."""
        quota = _numbers(self.client("apigateway").get_account().get("throttleSettings"))
        rate, burst = quota.get("rateLimit"), quota.get("burstLimit")
        if rate is None or burst is None:
            yield Level.NOTE, "Not checked: API Gateway does not return the quota of the account."
            return
        has = (
            f"All APIs of the account in {self.region} share a quota of {rate:g} requests a second and "
            f"{burst:g} at once"
        )
        for team in self.teams:
            limits = _numbers(team.get("throttling"))
            if limits.get("rate", 0) > rate or limits.get("burst", 0) > burst:
                yield (
                    Level.PROBLEM,
                    f"{has}. {team} asks for more.",
                    f"Write throttling = {{ rate = {min(limits.get('rate', rate), rate):g}, burst = "
                    f"{min(limits.get('burst', burst), burst):g} }} or less, or request a higher quota.",
                )
            else:
                yield Level.OK, f"{has}. {team} does not ask for more."

    def former_stacks(self) -> Iterator[Outcome]:
        """Yield which stacks of earlier releases are still deployed."""
        deployed = False
        for name in _FORMER_STACKS:
            if stack := self.stack(name):
                deployed = True
                yield Level.NOTE, *_still_deployed(stack, self.region)
        if not deployed:
            yield (
                Level.OK,
                f"{self.region} has no stack that an earlier release needed and this release does not need.",
            )

    def keys(self) -> Iterator[Finding]:
        """Yield whether S3 can encrypt with the keys that the teams' settings name, and who administers."""
        for team in self.teams:
            kms, cloudformation = self.client("kms"), self.client("cloudformation")
            own = _arns([team.get("key")])
            for key in (*own, *_arns(team.get("previous_keys"))):
                yield from judge("keys.usable", partial(kms_keys.usable, kms, key, self.account))
            if own and team.name:
                look = partial(_deployed_first, cloudformation, team.name, *own)
                yield from judge("keys.deployed", look)
            for arn in _arns(team.get("key_administrators")):
                yield from judge("keys.administrators", partial(_administrator, self.client("iam"), arn))

    def topics(self) -> Iterator[Finding]:
        """Yield whether the topics that the teams' settings name exist and accept messages."""
        for team in self.teams:
            for setting in ("notify", "alarms"):
                table = team.get(setting)
                topic = table.get("topic") if isinstance(table, dict) else None
                if isinstance(topic, str):
                    look = partial(_topic, self.client("sns"), self.region, f"{setting}.topic", topic)
                    yield from judge("topics.usable", look)

    def bucket(self, team: str) -> Iterator[Outcome]:
        """Yield whether a team's bucket name is free or belongs to the bucket of the team's stack."""
        name = names.bucket_name(team, self.account, self.region)
        try:
            self.client("s3").head_bucket(Bucket=name, ExpectedBucketOwner=self.account)
        except ClientError as error:
            status = error.response["ResponseMetadata"].get("HTTPStatusCode")
            if status == 404:
                yield Level.OK, f"The name {name} is free."
            elif status == 403:
                yield (
                    Level.PROBLEM,
                    f"The bucket {name} exists, but S3 does not let these credentials see it.",
                    "Use credentials with s3:ListBucket on the bucket. If they have this permission, the "
                    "bucket belongs to another account: choose another name for the team.",
                )
            else:
                raise
            return
        stack = names.stack_name(team)
        found = self.stack(stack)
        if found is None:
            which = f"there is no stack {stack}"
            do = "Import the bucket as docs/operate/removing.md says, or choose another name for the team."
        else:
            if _outputs(found).get(names.BUCKET_NAME) == name:
                yield Level.OK, f"The bucket {name} belongs to the stack {stack}."
                return
            which = f"the outputs of the stack {stack} ({found['StackStatus']}) do not name this bucket"
            do = (
                "If the stack is being deployed now, wait until the deployment ends, and run this check "
                "again. Otherwise delete the stack, and then import the bucket as docs/operate/removing.md "
                "says."
            )
        yield (
            Level.PROBLEM,
            f"The bucket {name} already exists, but {which}. A deployment would fail, "
            "because the team's stack creates a bucket with this name.",
            do,
        )


def _outputs(stack: Mapping[str, Any]) -> dict[str, str]:
    return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}


def _still_deployed(stack: Mapping[str, Any], region: str) -> tuple[str, str]:
    """Return what is wrong with a stack of an earlier release, and what to do."""
    name = stack["StackName"]
    which = f"--stack-name {name} --region {region}"
    unprotect = f"aws cloudformation update-termination-protection --no-enable-termination-protection {which}"
    commands = [
        *([unprotect] if stack.get("EnableTerminationProtection") else []),
        f"aws cloudformation delete-stack {which}",
    ]
    bucket = _outputs(stack).get("TrailBucket")
    return (
        (
            f"The stack {name} of an earlier release is still deployed in {region}. This release does not "
            "use it, but AWS bills it."
        ),
        f"Once every team in {region} is upgraded, remove the stack with `{' && '.join(commands)}`."
        + (f" The bucket {bucket} is kept, with its logs." if bucket else ""),
    )


def _deployed_first(cloudformation: Any, team: str, key: str) -> Iterator[Outcome]:
    """Yield whether the functions of a deployed stack may use a key that becomes the bucket's."""
    stack = names.stack_name(team)
    template = existing(cloudformation.get_template, "ValidationError", StackName=stack)
    if template is None:
        return  # there is no stack, and nobody writes yet
    if key in json.dumps(template["TemplateBody"]):
        yield Level.OK, f"The functions of {stack} may use the key {key} already."
    else:
        yield (
            Level.PROBLEM,
            (
                f"The functions of {stack} may not use the key {key} yet, so writes would fail "
                "while a deployment changes the key."
            ),
            f'First add "{key}" to previous_keys, and deploy the stack with its current key.',
        )


def _administrator(iam: Any, arn: str) -> Iterator[Outcome]:
    """Yield whether there is a role or user with this ARN: the key's policy accepts any."""
    kind, _, path = arn.rpartition(":")[2].partition("/")
    name = path.rpartition("/")[2]
    if kind == "user":
        found = existing(iam.get_user, "NoSuchEntity", UserName=name)
    elif kind != "role":
        yield (
            Level.PROBLEM,
            f"key_administrators has {arn}, which is not the ARN of a role or user.",
            "In the setting, write an ARN such as arn:aws:iam::123456789012:role/security.",
        )
        return
    else:
        found = existing(iam.get_role, "NoSuchEntity", RoleName=name)
    there = None if found is None else found[kind.capitalize()]["Arn"]
    if there == arn:
        yield Level.OK, f"key_administrators: the {kind} {arn} exists."
    else:
        yield (
            Level.PROBLEM,
            f"key_administrators names the {kind} {arn}, which does not exist.",
            f"In teams.toml, write {there}."
            if there
            else f"Create the {kind}, or write the ARN of another {kind} in teams.toml.",
        )


def _topic(sns: Any, region: str, setting: str, topic: str) -> Iterator[Outcome]:
    """Yield whether a topic exists and no statement of its policy refuses messages."""
    found = existing(sns.get_topic_attributes, "NotFound", "InvalidParameter", TopicArn=topic)
    if found is None:
        yield (
            Level.PROBLEM,
            f"{setting}: there is no topic {topic} in {region}.",
            f"Run `aws sns create-topic --name {topic.rpartition(':')[2]} --region {region}`, and write the "
            "ARN that it prints in teams.toml. Or write the ARN of another topic there.",
        )
        return
    statements = json.loads(found["Attributes"].get("Policy", "{}")).get("Statement", [])
    refuses = [
        str(one.get("Sid", "without a Sid"))
        for one in (statements if isinstance(statements, list) else [statements])
        if one["Effect"] == "Deny"
    ]
    if refuses:
        yield (
            Level.NOTE,
            f"{setting}: the policy of {topic} has Deny statements: {', '.join(refuses)}.",
            "Check that these statements do not stop the team's audit function or CloudWatch from "
            "publishing.",
        )
    else:
        yield Level.OK, f"{setting}: the topic {topic} exists."


def _arns(settings: object) -> list[str]:
    """Return the ARNs of a list; return none if it is not a list."""
    listed = settings if isinstance(settings, list) else []
    return [one for one in listed if isinstance(one, str) and one.startswith("arn:")]


def _numbers(table: object) -> dict[str, float]:
    """Return the entries of a table whose values are numbers; return no entry if it is not a table."""
    if not isinstance(table, dict):
        return {}
    return {
        name: value
        for name, value in table.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def _qualifier(folder: Path) -> str:
    """Return the CDK bootstrap qualifier from a folder's cdk.json or cdk.context.json, else the default."""
    for file, keys in (("cdk.json", ("context", _QUALIFIER_KEY)), ("cdk.context.json", (_QUALIFIER_KEY,))):
        try:
            value = json.loads((folder / file).read_text(encoding="utf-8"))
            for key in keys:
                value = value[key]
            return str(value)
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return _DEFAULT_QUALIFIER

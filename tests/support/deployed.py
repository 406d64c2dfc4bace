"""The roles in a deployed team's template, with every reference resolved."""

import heapq
import io
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

import boto3

from holdfast.template import DeployedTemplate
from holdfast_cdk import functions
from local_aws.server import ACCOUNT, REGION, LocalAws
from tests.support.aws_permissions import Call, Reach, Statement, without

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

Credentials = Mapping[str, str]
"""Credentials in the form of IAM and STS: `AccessKeyId`, `SecretAccessKey`; a session has `SessionToken`."""

HANDLERS = {spec.name: spec.folder for spec in functions.FUNCTIONS}
"""The folder with the handler of each function, by the function's name in its log group."""
FUNCTIONS = tuple(HANDLERS)
ROLES = tuple(spec.name for spec in functions.ROLES)
"""The name of each role: a function's name, or that of the role for transfers."""

_BY_HAND = "by-hand"
_ALIAS = "live"

ROOT: Credentials = {"AccessKeyId": "test", "SecretAccessKey": "test"}


def client(aws: LocalAws, service: str, credentials: Credentials = ROOT, config: Any = None) -> Any:
    session: Any = _session()
    return session.client(
        service,
        aws_access_key_id=credentials["AccessKeyId"],
        aws_secret_access_key=credentials["SecretAccessKey"],
        aws_session_token=credentials.get("SessionToken"),
        endpoint_url=aws.endpoint,
        verify=str(aws.tls.ca) if aws.tls else None,
        config=config,
    )


def zipped(name: str, code: str) -> bytes:
    """The code of a function of one module."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(name, code)
    return packed.getvalue()


def policy(*statements: Mapping[str, Any]) -> str:
    """Return the document of a policy."""
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def new_user(iam: Any, name: str, *statements: Mapping[str, Any]) -> Credentials:
    """Create an IAM user with these statements as policy, and return an access key."""
    iam.create_user(UserName=name)
    if statements:
        iam.put_user_policy(UserName=name, PolicyName="of-a-test", PolicyDocument=policy(*statements))
    key: Credentials = iam.create_access_key(UserName=name)["AccessKey"]
    return key


def function_name(aws: LocalAws, stack: str, name: str) -> str:
    """Return the physical name of a stack's function; `name` is its name in its log group."""
    (found,) = (
        item["PhysicalResourceId"]
        for page in client(aws, "cloudformation")
        .get_paginator("list_stack_resources")
        .paginate(StackName=stack)
        for item in page["StackResourceSummaries"]
        if item["ResourceType"] == "AWS::Lambda::Function" and name in item["LogicalResourceId"].lower()
    )
    return str(found)


def route_through(aws: LocalAws, functions: Iterable[str], endpoint: str | None) -> None:
    """Let functions send their S3 requests to another endpoint, such as a proxy.

    It works as an operator would: change the function's environment, publish a version, and move the alias
    that the API calls. A later deployment resets the endpoint only if it changes the function. `functions`
    are physical names. `endpoint` has no trailing slash; None = S3 itself.
    """
    lambda_ = client(aws, "lambda")
    for function in functions:
        variables = lambda_.get_function_configuration(FunctionName=function)["Environment"]["Variables"]
        variables.pop("AWS_ENDPOINT_URL_S3", None)
        if endpoint:
            variables["AWS_ENDPOINT_URL_S3"] = endpoint
        lambda_.update_function_configuration(FunctionName=function, Environment={"Variables": variables})
        version = lambda_.publish_version(FunctionName=function)["Version"]
        lambda_.update_alias(FunctionName=function, Name=_ALIAS, FunctionVersion=version)


@cache
def _session() -> boto3.Session:
    """Return the session of all clients. It parses the descriptions of the services once."""
    return boto3.Session(region_name=REGION)


class DeployedRole:
    """A deployed role of `ROLES`.

    `name` is the role's name in IAM. `principals` has the ARN of the session of each function that signs its
    requests, or addresses, with this role; `by_hand` is the ARN of a test's session with this role.
    """

    def __init__(self, aws: LocalAws, stack: "Stack", function: str) -> None:
        users = [stack.function(function)] if function in HANDLERS else stack.signers()
        role = stack.role_of(users[0][1]) if function in HANDLERS else stack.transfers
        ((_, policy),) = (
            (one["PolicyName"], one["PolicyDocument"])
            for one in stack.template["Resources"][role]["Properties"]["Policies"]
        )
        self._aws = aws
        self.function = function
        self.name = stack.physical_ids[role]
        sessions = f"arn:aws:sts::{ACCOUNT}:assumed-role/{self.name}"
        self.principals = frozenset(f"{sessions}/{stack.physical_ids[user]}" for user, _ in users)
        self.by_hand = f"{sessions}/{_BY_HAND}"
        self.statements: list[dict[str, Any]] = stack.resolve(policy)["Statement"]
        self.bucket_policy = stack.bucket_policy
        log_group = stack.resolve(users[0][1]["LoggingConfig"]["LogGroup"])
        variables = users[0][1]["Environment"]["Variables"]
        groups = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group"
        self.reach = Reach(
            stack.bucket,
            stack.key_arn,
            f"{groups}:{log_group}:*",
            REGION,
            f"{groups}:{stack.physical_ids['Audit']}:*",
            stack.physical_ids["StagingBucket"],
            f"arn:aws:iam::{ACCOUNT}:role/{stack.physical_ids[stack.transfers]}",
            variables.get("HOLDFAST_NOTIFY_TOPIC", ""),
            stack.physical_ids.get("AuditArchive", ""),
            stack.other_keys,
        )

    @property
    def principal(self) -> str:
        """The ARN of one of the sessions; a function's role has no other."""
        return min(self.principals)

    @property
    def log_group(self) -> str:
        return self.reach.log_group_arn.split(":")[6]

    def calls(self) -> Iterator[Call]:
        """Return the calls of this role that the local AWS has recorded so far, oldest first."""
        lines = heapq.merge(
            *(_noted(self._aws, one) for one in self.principals), key=lambda line: line["time"]
        )
        return (Call.noted(line) for line in lines)

    def session(self) -> Credentials:
        """Return credentials of this role, as Lambda gets them.

        Root may not assume the role, so the trust policy names root while this runs.
        """
        iam = client(self._aws, "iam")
        trust = iam.get_role(RoleName=self.name)["Role"]["AssumeRolePolicyDocument"]
        assert self.function not in HANDLERS or _principals(trust) == [{"Service": "lambda.amazonaws.com"}]
        root = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}}
        opened = policy({**root, "Action": "sts:AssumeRole"})
        iam.update_assume_role_policy(RoleName=self.name, PolicyDocument=opened)
        try:
            assumed = client(self._aws, "sts").assume_role(
                RoleArn=f"arn:aws:iam::{ACCOUNT}:role/{self.name}", RoleSessionName=_BY_HAND
            )
        finally:
            iam.update_assume_role_policy(RoleName=self.name, PolicyDocument=json.dumps(trust))
        credentials: Credentials = assumed["Credentials"]
        return credentials

    def log_lines(self) -> list[str]:
        """Return the lines of the function's own log."""
        logs = client(self._aws, "logs")
        pages = logs.get_paginator("filter_log_events").paginate(logGroupName=self.log_group)
        return [event["message"] for page in pages for event in page["events"]]

    def requests_to_s3(self, state: str) -> list[str]:
        """Return the function's requests to S3 so far for a state and its lock, such as `PutObject .tfstate`.

        A release may send its two requests at once. They are in the order in which one waits for the other.

        The local AWS recorded them before it answered. The function's log has them too, but some of its lines
        appear only after the next invocation.
        """
        key = f"states/{state}."
        sent = [
            f"{call.operation} .{call.key.removeprefix(key)}"
            for call in self.calls()
            if call.key.startswith(key)
        ]
        in_turn = ["GetObject .tfstate.tflock", "DeleteObject .tfstate.tflock"]
        for place in range(len(sent) - 1):
            if sent[place : place + 2] == in_turn[::-1]:
                sent[place : place + 2] = in_turn
        return sent

    @cached_property
    def s3(self) -> "S3Client":
        """An S3 client with this role's permissions. Its requests do not count as the function's."""
        found: S3Client = client(self._aws, "s3", self.session())
        return found

    def lacking(self, action: str, resource: str) -> AbstractContextManager[None]:
        """Remove one action on one resource from the deployed role's policy within the context."""
        return self.having(without(self.statements, action, resource))

    @contextmanager
    def having(self, statements: Sequence[Statement]) -> Iterator[None]:
        """Replace the statements of the deployed role's policy within the context."""
        iam = client(self._aws, "iam")
        (name,) = iam.list_role_policies(RoleName=self.name)["PolicyNames"]
        put = partial(iam.put_role_policy, RoleName=self.name, PolicyName=name)
        put(PolicyDocument=policy(*statements))
        try:
            yield
        finally:
            put(PolicyDocument=policy(*self.statements))


@dataclass(frozen=True)
class Stack:
    """A deployed stack. `physical_ids` has the physical ID of each logical ID."""

    team: str
    template: Mapping[str, Any]
    physical_ids: Mapping[str, str]

    @property
    def bucket(self) -> str:
        return self.physical_ids["StateBucket"]

    @property
    def key_arn(self) -> str | None:
        """The KMS key that encrypts the bucket, None if S3 manages the keys."""
        rules = self.template["Resources"]["StateBucket"]["Properties"]["BucketEncryption"]
        (rule,) = rules["ServerSideEncryptionConfiguration"]
        by_default = self.resolve(rule["ServerSideEncryptionByDefault"])
        found: str | None = by_default.get("KMSMasterKeyID")
        return found

    @property
    def other_keys(self) -> tuple[str, ...]:
        """The KMS keys, besides the bucket's, that the bucket's policy lets a client name."""
        [named] = [
            condition["s3:x-amz-server-side-encryption-aws-kms-key-id"]
            for statement in self.bucket_policy
            if statement["Sid"] == "RefuseOtherKeys"
            for condition in [statement["Condition"]["StringNotEquals"]]
        ] or [()]
        return tuple({*([named] if isinstance(named, str) else named)} - {self.key_arn})

    @property
    def bucket_policy(self) -> list[Statement]:
        _, properties = self.only("AWS::S3::BucketPolicy", Bucket={"Ref": "StateBucket"})
        found: list[Statement] = self.resolve(properties["PolicyDocument"])["Statement"]
        return found

    @property
    def transfers(self) -> str:
        """The logical ID of the role for transfers."""
        name, _ = self.only("AWS::IAM::Role", Description=f"Holdfast transfers of team {self.team}")
        return name

    def function(self, name: str) -> tuple[str, dict[str, Any]]:
        """Return the logical ID and the properties of a function."""
        return self.only("AWS::Lambda::Function", Handler=f"{HANDLERS[name]}.handler.handle")

    def signers(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the functions that sign addresses."""
        grant = functions.SIGN_ADDRESSES
        return [self.function(spec.name) for spec in functions.FUNCTIONS if grant in spec.grants]

    @staticmethod
    def role_of(function: Mapping[str, Any]) -> str:
        """Return the logical ID of the role of a function with these properties."""
        return str(function["Role"]["Fn::GetAtt"][0])

    def only(self, resource_type: str, **wanted: Any) -> tuple[str, dict[str, Any]]:
        """Return the logical ID and the properties of the only resource of a type with these properties."""
        ((logical_id, properties),) = (
            (logical_id, resource["Properties"])
            for logical_id, resource in self.template["Resources"].items()
            if resource["Type"] == resource_type
            and all(resource["Properties"].get(name) == value for name, value in wanted.items())
        )
        return logical_id, properties

    def resolve(self, value: Any) -> Any:
        """Replace every reference by the physical ID or the value that it refers to."""
        return DeployedTemplate(self.template, self.physical_ids, "aws", REGION, ACCOUNT).resolve(value)


def stack(aws: LocalAws, team: str) -> Stack:
    name = f"Holdfast-{team}"
    template = json.loads((aws.data_dir / "cdk.out" / f"{name}.template.json").read_text())
    physical_ids = {
        resource["LogicalResourceId"]: resource["PhysicalResourceId"] for resource in _resources(aws, name)
    }
    return Stack(team, template, physical_ids)


def callers(aws: LocalAws) -> set[str]:
    """Return the ARN of every role session, of a function or not, whose calls the local AWS recorded."""
    return {line["principal"] for line in _noted(aws)}


def deploying_roles(aws: LocalAws) -> set[str]:
    """Return the names of the roles that CDK uses for a deployment. `cdk bootstrap` created them.

    Those of a replica's region have the same names, but for the region.
    """
    return {
        role["RoleName"]
        for page in client(aws, "iam").get_paginator("list_roles").paginate()
        for role in page["Roles"]
        if role["RoleName"].startswith("cdk-hnb659fds-")
    }


def _noted(aws: LocalAws, principal: str = "") -> Iterator[dict[str, Any]]:
    """Yield the recorded calls of a principal, or of every principal."""
    assert aws.calls is not None
    with aws.calls.open() as lines:
        found = (json.loads(line) for line in lines if principal in line)
        yield from (one for one in found if principal in ("", one["principal"]))


def _resources(aws: LocalAws, stack_name: str) -> Iterator[dict[str, Any]]:
    paginator = client(aws, "cloudformation").get_paginator("list_stack_resources")
    for page in paginator.paginate(StackName=stack_name):
        yield from page["StackResourceSummaries"]


def _principals(trust: Any) -> list[Any]:
    return [statement["Principal"] for statement in trust["Statement"]]

"""`holdfast doctor`: check a team's stack, bucket, roles and API after a deployment."""

import argparse
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.exceptions import ClientError

from holdfast import team as names
from holdfast.s3.sdk import connect
from holdfast.template import DeployedTemplate, physical_ids
from holdfast_cli.api import sign_in
from holdfast_cli.bucket import records, stack
from holdfast_cli.config import settings
from holdfast_cli.doctor import api_probe, clock, deployed, kms_keys, objects, s3_probe
from holdfast_cli.doctor.checks import attempt, is_denied, judge
from holdfast_cli.doctor.findings import Finding, Level, Outcome, note, ok, problem
from holdfast_cli.errors import CommandError, NotSetUpError, UsageError

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudformation.type_defs import StackTypeDef
    from mypy_boto3_s3 import S3Client

_COMPLETE: Final = frozenset({"CREATE_COMPLETE", "IMPORT_COMPLETE", "UPDATE_COMPLETE"})


def is_named_for_terraform() -> bool:
    """Return whether Terraform's variables name an API, or several."""
    try:
        sign_in.address_in(os.environ)
    except NotSetUpError:
        return False
    except UsageError:
        return True
    return True


def setup(args: argparse.Namespace) -> Iterator[Finding]:
    """Yield which API the commands use that need no AWS credentials, or that they cannot know one.

    Args:
        args: has `profile` and `team`, as they were typed.
    """
    typed = argparse.Namespace(profile=args.profile, address=None)
    found = settings.sources(typed)
    if address := found["address"]:
        yield ok("setup", f"Commands use the API at {address.value} ({address.source}).")
        return
    try:
        address_in_variables = sign_in.address_in(os.environ)
    except NotSetUpError:
        if not (args.team or settings.sources(args)["team"]):
            yield note(
                "setup",
                "Neither a profile nor a variable names the API's address or a team. This command looks for "
                "the only deployed team, but commands such as `holdfast state list` cannot find the API.",
                "`holdfast configure --address URL` writes a profile. `cdk deploy` and `make up` print the "
                "URL.",
            )
    except UsageError as error:
        yield note("setup", f"{error}")
    else:
        yield ok("setup", f"Commands use the API at {address_in_variables} (Terraform's variables).")


def check(session: boto3.Session, team: str | None, address: str | None = None) -> Iterator[Finding]:
    """Yield the findings about a team's stack. The API is tested at `address`, by default the stack's."""
    try:
        found = stack.find(session, team)
    except CommandError as error:
        yield from _clock(error.__cause__)
        raise
    yield ok(
        "stack",
        f"The stack {names.stack_name(found.team)} is deployed. Its API is {address or found.api_address}.",
    )
    s3: S3Client = session.client("s3", config=stack.CLIENT_CONFIG)
    yield from judge("bucket", lambda: bucket_is_there(s3, found))
    yield from attempt("stack.template", lambda: _deployed(session, s3, found))
    yield from attempt("stack.probes", lambda: _probes(session, s3, found, address))


def _clock(error: BaseException | None) -> Iterator[Finding]:
    """Yield a finding if AWS refused a request and this machine's clock is wrong, which breaks signatures."""
    if not isinstance(error, ClientError):
        return
    headers = error.response["ResponseMetadata"].get("HTTPHeaders", {})
    now = time.time()
    off = clock.seconds_off(headers.get("date", ""), now, now)
    for deviation in clock.deviation(off or 0.0, "AWS"):
        yield problem("stack.clock", deviation, clock.DO)


def bucket_is_there(client: "S3Client", found: stack.Stack) -> Iterator[Outcome]:
    """Yield whether the bucket exists and belongs to the account of its stack."""
    try:
        client.head_bucket(Bucket=found.bucket, ExpectedBucketOwner=found.account)
    except ClientError as error:
        if not is_denied(error):
            raise
        do = (
            "Use an identity that may list the bucket. If S3 also refuses this identity, the bucket "
            "belongs to another account."
        )
        yield Level.PROBLEM, records.refused(found), do
    else:
        yield Level.OK, f"The bucket {found.bucket} exists in the account {found.account}."


def _deployed(session: boto3.Session, s3: "S3Client", found: stack.Stack) -> Iterator[Finding]:
    """Compare the deployed resources with the template."""
    cloudformation: CloudFormationClient = session.client("cloudformation", config=stack.CLIENT_CONFIG)
    name = names.stack_name(found.team)
    [described] = cloudformation.describe_stacks(StackName=name)["Stacks"]
    yield from stack_findings(described)
    template = _template(cloudformation, described)
    yield from attempt("bucket", lambda: deployed.bucket(s3, found.bucket, template))
    yield from attempt("staging_bucket", lambda: deployed.staging_bucket(s3, template))
    iam = session.client("iam", config=stack.CLIENT_CONFIG)
    yield from attempt("roles", lambda: deployed.roles(iam, template))
    if deployed.domains(template):
        gateway = session.client("apigatewayv2", config=stack.CLIENT_CONFIG)
        yield from attempt("domain", lambda: deployed.domain(gateway, template))
    kms = session.client("kms", config=stack.CLIENT_CONFIG)
    yield from attempt("keys", lambda: kms_keys.check(kms, template))
    keys = kms_keys.of_functions(template)
    yield from attempt("keys.objects", lambda: objects.check(s3, found.bucket, template, keys))


def stack_findings(described: "StackTypeDef") -> Iterator[Finding]:
    """Yield the findings about the stack's status and termination protection."""
    name = described["StackName"]
    which = f"--stack-name {name} --region {described['StackId'].split(':')[3]}"
    yield Finding("stack.status", *_status(name, which, described["StackStatus"]))
    is_protected = described.get("EnableTerminationProtection", False)
    yield Finding("stack.termination_protection", *_termination_protection(which, is_protected))


def _status(name: str, which: str, status: str) -> Outcome:
    if status in _COMPLETE:
        return Level.OK, f"The stack is {status}."
    if status.endswith("_IN_PROGRESS"):
        return (
            Level.NOTE,
            f"The stack is {status}.",
            "Run this command again when CloudFormation has ended this operation.",
        )
    what, events = "deployment", "Look at the stack's events in CloudFormation"
    match status:
        case "UPDATE_ROLLBACK_FAILED":
            do = f"{events}, fix the cause, and run `aws cloudformation continue-update-rollback {which}`."
        case "DELETE_FAILED":
            what = "deletion"
            do = f"{events}, fix the cause, and delete the stack as docs/operate/removing.md says."
        case _:
            do = f"{events}, then deploy the stack again with `npx cdk deploy {name}`."
    return Level.PROBLEM, f"The stack is {status}: its last {what} failed.", do


def _termination_protection(which: str, is_protected: bool) -> Outcome:
    if is_protected:
        return Level.OK, "The stack is protected from being deleted."
    return (
        Level.NOTE,
        "The stack is not protected from being deleted.",
        "Protect it with `aws cloudformation update-termination-protection "
        f"--enable-termination-protection {which}`.",
    )


def _template(cloudformation: "CloudFormationClient", described: "StackTypeDef") -> DeployedTemplate:
    """Return the template that a stack was deployed with. `CommandError` if it is not JSON."""
    name = described["StackName"]
    document, ids = _document(cloudformation, name), physical_ids(cloudformation, name)
    _, partition, _, region, account, _ = described["StackId"].split(":", 5)
    return DeployedTemplate(document, ids, partition, region, account)


def _document(cloudformation: "CloudFormationClient", name: str) -> Mapping[str, Any]:
    document: Any = cloudformation.get_template(StackName=name)["TemplateBody"]
    if not isinstance(document, Mapping):
        raise CommandError(
            f"The template of {name} is not the JSON that `npx cdk deploy` uploads. Deploy the stack again."
        )
    return document


def _probes(
    session: boto3.Session, s3: "S3Client", found: stack.Stack, address: str | None
) -> Iterator[Finding]:
    """Test the bucket and the API."""
    keeps_everything = deployed.default_retention(s3, found.bucket, found.account)
    if keeps_everything:
        yield note(
            "s3",
            "S3's conditional requests were not tested. The bucket puts every object under retention, so the "
            "objects of the test could not be removed.",
        )
    else:
        yield from attempt("s3", lambda: _conditions(session, found))
    where = api_probe.Bucket(s3, found.bucket, found.account, keeps_everything)
    reached = replace(found, api_address=address or found.api_address)
    yield from attempt("api", lambda: api_probe.check(reached, _credentials(), where))


def _conditions(session: boto3.Session, found: stack.Stack) -> Iterator[Finding]:
    """Test the bucket's conditions if the stack's lifecycle rule removes the objects of a killed probe."""
    cloudformation: CloudFormationClient = session.client("cloudformation", config=stack.CLIENT_CONFIG)
    name = names.stack_name(found.team)
    if removes_probes(_document(cloudformation, name)):
        yield from s3_probe.check(connect(session), found.bucket, found.account)
    else:
        yield note(
            "s3",
            "S3's conditional requests were not tested. The stack is from an older release, whose bucket "
            "lacks the lifecycle rule that removes the objects of an interrupted test.",
            f"Deploy the stack again with `npx cdk deploy {name}`, and then run this command.",
        )


def removes_probes(document: Mapping[str, Any]) -> bool:
    """Return whether a template has the lifecycle rule that removes the objects of probes."""
    return any(
        rule.get("Id") == "probes"
        for resource in document["Resources"].values()
        if resource["Type"] == "AWS::S3::Bucket"
        for rule in resource.get("Properties", {}).get("LifecycleConfiguration", {}).get("Rules", [])
    )


def _credentials() -> api_probe.Credentials | None:
    """Return Terraform's credentials from the environment; None if they are not set."""
    username, password = os.environ.get("TF_HTTP_USERNAME"), os.environ.get("TF_HTTP_PASSWORD")
    return api_probe.Credentials(username, password) if username and password else None

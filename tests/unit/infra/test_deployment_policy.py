"""The policies beside docs/operate/permissions.md allow what CloudFormation and the functions need.

Sources: CloudFormation's resource schemas; API Gateway's guide on access logs and on its service-linked role.
"""

import json
import re
import subprocess
from dataclasses import replace
from functools import cache
from typing import Any, Final

import pytest
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER  # type: ignore[import-untyped]  # it ships no types

from holdfast_cdk.config import AWS
from tests.support.every_setting import EVERY_SETTING
from tests.support.iam_policy import ACCOUNT, REGION, Request, Statement, evaluate, resolved
from tests.support.pages import DOCS, page, text
from tests.unit.infra.conftest import Synthesize, Synthesized

# Actions that a schema lists for properties of no template, or for other AWS services.
UNUSED: Final = re.compile(
    r"(codedeploy|ec2|elasticfilesystem|firehose|organizations|s3files|s3tables):.*"
    # AWS::IAM::Role with a managed policy or without its boundary
    r"|iam:((Attach|Detach)RolePolicy|(Delete|Put)RolePermissionsBoundary)"
    # AWS::KMS::Key that is disabled, does not rotate any more, or goes
    r"|kms:(DisableKey|DisableKeyRotation|EnableKey|ScheduleKeyDeletion)"
    # AWS::Lambda::Function and its versions: keys, layers, code signing, concurrency, other runtimes
    r"|kms:(CreateGrant|Decrypt|Encrypt|GenerateDataKey)"
    r"|lambda:(Put(?!FunctionEventInvokeConfig)|Associate|Pass|Delete(FunctionCodeSigning|FunctionConcurrency|ProvisionedConcurrency)).*"
    # AWS::Logs::LogGroup: keys, indexes, data protection, policies
    r"|logs:((Put|Delete)(BearerToken|DataProtection|IndexPolicy|LogGroupDeletionProtection).*"
    r"|(Associate|Disassociate)KmsKey|Delete(ResourcePolicy|RetentionPolicy))"
    # AWS::S3::Bucket: replication, website, inventories, metadata tables, ACLs
    r"|s3:(Create|Delete|Update)Bucket(Analytics|Cors|Encryption|Lifecycle|Metadata|Metrics|Replication|Website).*"
    r"|s3:Put(Accelerate|Analytics|Inventory|IntelligentTiering|Metrics|ObjectLock)Configuration"
    r"|s3:PutBucket(Abac|Acl|CORS|Replication|Website)"
    r"|s3:(DeleteObject|PutObjectAcl|REST.PUT.OBJECT)",
    re.IGNORECASE,
)


@cache
def policy(file: str, region: str = REGION) -> tuple[Statement, ...]:
    """Return the statements of a policy beside the document, for a region."""
    document = json.loads(text(page(file)).replace(REGION, region))
    # The limit of a managed policy; white space does not count.
    assert len(json.dumps(document, separators=(",", ":"))) <= 6144
    return tuple(document["Statement"])


@cache
def needed(resource_type: str) -> frozenset[str]:
    """Return the actions that CloudFormation's schema of a type lists for all but its listing."""
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(REGION, resource_type).schema
    handlers: dict[str, Any] = schema["handlers"]
    listed = {action for name, one in handlers.items() if name != "list" for action in one["permissions"]}
    return frozenset(action for action in listed if not UNUSED.fullmatch(action))


def region_of(stack: Synthesized) -> str:
    """Return the region of a stack; REGION if its team leaves the region to the credentials."""
    region = stack.environment.rpartition("/")[2]
    return REGION if region == "unknown-region" else region


def arn(resource_type: str, name: str, region: str = REGION) -> str:
    """Return the ARN of a resource that CloudFormation would make."""
    of_type = {
        "AWS::ApiGatewayV2::ApiMapping": f"arn:aws:apigateway:{region}::/domainnames/a/apimappings/b1",
        "AWS::ApiGatewayV2::DomainName": f"arn:aws:apigateway:{region}::/domainnames/{name}",
        "AWS::KMS::Alias": f"arn:aws:kms:{region}:{ACCOUNT}:{name}",
    }
    of_service = {
        "AWS::ApiGatewayV2": f"arn:aws:apigateway:{region}::/apis/a1b2c3d4e5/routes/f6g7",
        "AWS::CloudWatch": f"arn:aws:cloudwatch:{region}:{ACCOUNT}:alarm:{name}",
        "AWS::Events": f"arn:aws:events:{region}:{ACCOUNT}:rule/{name}",
        "AWS::IAM": f"arn:aws:iam::{ACCOUNT}:role/{name}",
        "AWS::KMS": f"arn:aws:kms:{region}:{ACCOUNT}:key/1a2b3c4d-1111-4222-8333-444455556666",
        "AWS::Lambda": f"arn:aws:lambda:{region}:{ACCOUNT}:function:{name}",
        "AWS::Logs": f"arn:aws:logs:{region}:{ACCOUNT}:log-group:{name}",
        "AWS::S3": f"arn:aws:s3:::{name}",
    }
    return of_type.get(resource_type) or of_service[resource_type.rpartition("::")[0]]


def elsewhere(action: str, region: str) -> str | None:
    """Return the ARN of the resource of an action that is on another resource than the new one."""
    role = f"arn:aws:iam::{ACCOUNT}:role/Holdfast-ops-Role-1A2B"
    code = f"arn:aws:s3:::cdk-hnb659fds-assets-{ACCOUNT}-{region}/code.zip"
    return {
        "iam:CreateServiceLinkedRole": (
            f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/ops.apigateway.amazonaws.com/"
            "AWSServiceRoleForAPIGateway"
        ),
        "iam:PassRole": role,
        "iam:GetRole": role,
        "kms:DescribeKey": f"arn:aws:kms:{region}:{ACCOUNT}:key/1a2b3c4d-1111-4222-8333-444455556666",
        "s3:GetObject": code,
        "s3:GetObjectVersion": code,
        "s3:getObject": code,
    }.get(action)


CONTEXT: Final = {
    "iam:PassedToService": "lambda.amazonaws.com",
    "iam:AWSServiceName": "ops.apigateway.amazonaws.com",
}


def name_of(stack: Synthesized, logical_id: str) -> str:
    """Return the name of a resource; CloudFormation derives a missing name from the stack's."""
    resource = stack.template["Resources"][logical_id]
    for property_name in (
        "BucketName",
        "Bucket",
        "LogGroupName",
        "RoleName",
        "DomainName",
        "AlarmName",
        "AliasName",
    ):
        match resource.get("Properties", {}).get(property_name):
            case {"Ref": str(other)}:
                return name_of(stack, other)
            case None:
                pass
            case given:
                return str(resolved(stack.template, given, region_of(stack)))
    made_up = f"{stack.stack_name}-{logical_id}-1A2B3C4D5E6F"
    return made_up.lower() if resource["Type"] == "AWS::S3::Bucket" else made_up


@pytest.fixture(
    scope="session",
    params=[
        "Holdfast-platform",
        "Holdfast-payments",
        "Holdfast-ops",
        "HoldfastReplica-ops",
        "Holdfast-data",
        "HoldfastReplica-data",
    ],
)
def deployed(
    request: pytest.FixtureRequest,
    stacks: dict[str, Synthesized],
    every_setting_stacks: dict[str, Synthesized],
) -> Synthesized:
    """Each example team's stack, and those of teams with every setting, in two regions."""
    name: str = request.param
    return stacks[name] if name in stacks else every_setting_stacks[name]


def test_a_page_leads_to_each_file_beside_it() -> None:
    linked = {
        document.parent / name
        for document in DOCS.rglob("*.md")
        for name in re.findall(r"\]\(([\w-]+\.json)\)", text(document))
    }

    assert linked == set(DOCS.rglob("*.json"))


def test_the_document_replaces_account_and_region_in_each_policy() -> None:
    document = page("permissions.md")
    [script] = re.findall(r"^sed '(.+)' deployment-policy.json", text(document), re.MULTILINE)
    files = [page(name) for name in re.findall(r"\]\(([\w-]+\.json)\)", text(document))]

    assert len(files) == 2
    assert not re.search(f"{ACCOUNT}|{REGION}", subprocess.check_output(["sed", script, *files], text=True))
    assert REGION not in text(page("functions-boundary.json"))
    assert len(re.findall(r"holdfast-deployment-<region>", text(document))) == 3


def test_the_document_says_the_capability_that_the_roles_of_a_stack_need(settled: Synthesized) -> None:
    is_named = any("RoleName" in role["Properties"] for role in settled.resources("AWS::IAM::Role").values())
    said = re.findall(r"CAPABILITY_\w+", "".join(map(text, DOCS.rglob("*.md"))))

    assert set(said) == {"CAPABILITY_NAMED_IAM" if is_named else "CAPABILITY_IAM"}


def test_the_deployment_policy_allows_what_cloudformation_needs_for_each_resource(
    deployed: Synthesized,
) -> None:
    region = region_of(deployed)
    denied = {
        (logical_id, action)
        for logical_id, resource in deployed.template["Resources"].items()
        for action in needed(resource["Type"])
        if evaluate(
            policy("deployment-policy.json", region),
            Request(
                action,
                elsewhere(action, region) or arn(resource["Type"], name_of(deployed, logical_id), region),
                context=CONTEXT,
            ),
        )
        != "allow"
    }

    assert denied == set()


# KMS evaluates no key's policy: the key does not exist yet, or the action is not on a key.
WITHOUT_A_KEY: Final = {"kms:CreateKey", "kms:ListAliases"}


@pytest.mark.parametrize("administrators", [(), EVERY_SETTING.key_administrators])
@pytest.mark.parametrize("name", ["Holdfast-ops", "HoldfastReplica-ops"])
def test_the_policies_of_role_and_key_allow_what_cloudformation_needs_for_the_key_and_its_alias(
    synthesize: Synthesize, name: str, administrators: tuple[str, ...]
) -> None:
    stack = synthesize([replace(EVERY_SETTING, key_administrators=administrators)], AWS)[name]
    statements = resolved(stack.template, stack.only("AWS::KMS::Key")["Properties"]["KeyPolicy"]["Statement"])
    region = stack.environment.rpartition("/")[2]
    role = f"arn:aws:iam::{ACCOUNT}:role/cdk-hnb659fds-cfn-exec-role-{ACCOUNT}-{region}"
    types = {one["Type"] for one in stack.template["Resources"].values() if "::KMS::" in one["Type"]}
    denied = {
        (resource_type, action, where)
        for resource_type in types
        for action in needed(resource_type) - WITHOUT_A_KEY
        for where, policies in {"role": policy("deployment-policy.json"), "key": statements}.items()
        if evaluate(policies, Request(action, arn("AWS::KMS::Key", ""), role, {"aws:PrincipalArn": role}))
        != "allow"
    }

    assert ("AWS::KMS::Alias" in types) is name.startswith("HoldfastReplica")
    assert denied == set()


@pytest.mark.parametrize("action", ["s3:GetObject", "s3:PutObject", "s3:DeleteObjectVersion"])
def test_the_deployment_policy_reaches_no_object_of_a_state_bucket(action: str) -> None:
    state = f"arn:aws:s3:::holdfast-ops-{ACCOUNT}-{REGION}/states/a.tfstate"

    assert evaluate(policy("deployment-policy.json"), Request(action, state)) == "nothing"


def test_the_deployment_policy_cannot_schedule_the_deletion_of_a_key() -> None:
    key = arn("AWS::KMS::Key", "")

    assert evaluate(policy("deployment-policy.json"), Request("kms:ScheduleKeyDeletion", key)) == "nothing"


def test_the_functions_boundary_allows_what_each_role_has(deployed: Synthesized) -> None:
    region = region_of(deployed)
    context = {"kms:ViaService": f"s3.{region}.amazonaws.com", "cloudwatch:namespace": "Holdfast"}

    def as_deployed(resource: str) -> str:
        # By its logical ID alone, where a deployment has the stack's name in front.
        for logical_id in ("StagingBucket", "AuditArchive"):
            if f":::{logical_id.lower()}" in resource:
                resource = resource.replace(logical_id.lower(), name_of(deployed, logical_id))
        return resource

    beyond = {
        (action, resource)
        for role in deployed.resources("AWS::IAM::Role").values()
        for inline in role["Properties"]["Policies"]
        for statement in resolved(deployed.template, inline["PolicyDocument"]["Statement"], region)
        for action in _listed(statement["Action"])
        for resource in map(as_deployed, _listed(statement["Resource"]))
        if evaluate(policy("functions-boundary.json"), Request(action, resource, context=context)) != "allow"
    }

    assert beyond == set()


def _listed(value: str | list[str]) -> list[str]:
    return value if isinstance(value, list) else [value]

"""Compares the permissions of a deployed stack's roles with the stack's template."""

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast_cli.doctor.findings import REVERT, Finding, ok, problem
from holdfast_cli.doctor.policies import differences
from holdfast_cli.doctor.template import DeployedTemplate


def check(client: Any, template: DeployedTemplate) -> Iterator[Finding]:
    """Yield a finding for each difference, or one finding if no role differs. `client` is an IAM client."""
    roles = list(template.resources("AWS::IAM::Role"))
    found = False
    for logical_id, wanted in roles:
        name = template.resolve({"Ref": logical_id})
        for clause in _differences(client, name, wanted):
            found = True
            yield problem("roles", f"In the role {name} {clause}.", REVERT)
    if not found:
        yield ok("roles", f"The {len(roles)} roles have the permissions of the template and no others.")


def _differences(client: Any, name: str, wanted: Mapping[str, Any]) -> Iterator[str]:
    role = client.get_role(RoleName=name)["Role"]
    for clause in differences(wanted["AssumeRolePolicyDocument"], role["AssumeRolePolicyDocument"]):
        yield f"the trust policy differs: {clause}"
    boundary = role.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn")
    if boundary != (right := wanted.get("PermissionsBoundary")):
        yield f"the permissions boundary is {boundary or 'missing'}, in the template {right or 'none'}"
    policies = {one["PolicyName"]: one["PolicyDocument"] for one in wanted.get("Policies", [])}
    deployed = {
        policy
        for page in client.get_paginator("list_role_policies").paginate(RoleName=name)
        for policy in page["PolicyNames"]
    }
    for policy in sorted(policies.keys() - deployed):
        yield f"the policy {policy} is missing"
    for policy in sorted(deployed - policies.keys()):
        yield f"the policy {policy} is additional"
    for policy in sorted(deployed & policies.keys()):
        document = client.get_role_policy(RoleName=name, PolicyName=policy)["PolicyDocument"]
        yield from differences(policies[policy], document)
    attached = {
        policy["PolicyArn"]
        for page in client.get_paginator("list_attached_role_policies").paginate(RoleName=name)
        for policy in page["AttachedPolicies"]
    }
    managed = set(wanted.get("ManagedPolicyArns", []))
    for arn in sorted(managed - attached):
        yield f"the managed policy {arn} is missing"
    for arn in sorted(attached - managed):
        yield f"the managed policy {arn} is attached in addition"

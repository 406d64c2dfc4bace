"""docs/operate/recovery.md on the local AWS: a region is lost, and the team goes on in its replica.

The local AWS has two regions, and copies between them. It gives a copy another version ID, and no retention.
The stack that imports the bucket has no functions here: the library writes in their place.
"""

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast import names
from holdfast import team as teams
from holdfast.s3.budget import Budget
from holdfast.s3.store import Store
from holdfast.state.acquiring import acquire
from holdfast.state.write import write
from local_aws.clients import cloudformation_client, s3_client
from local_aws.server import ACCOUNT, REGION, LocalAws
from tests.support import access_commands, documents
from tests.support.documents import ADA, lock_info
from tests.support.pages import page, text
from tests.support.team import Team
from tests.support.waiting import wait_until
from tests.support.work import work

THERE = "eu-west-1"


class Regions:
    """The replica of a team, and what a stack of the team in its region imports."""

    def __init__(self, aws: LocalAws, team: Team) -> None:
        self.bucket = teams.bucket_name(team.name, ACCOUNT, THERE)
        self.s3 = s3_client(aws, THERE)
        self.stacks: Any = cloudformation_client(aws, THERE)
        self.team = team.name

    def store(self) -> Store:
        return Store(self.s3, self.bucket, ACCOUNT, Budget.seconds(20))

    def copies(self, key: str) -> int:
        listed = self.s3.list_object_versions(Bucket=self.bucket, Prefix=key)
        entries: list[Any] = [*listed.get("Versions", []), *listed.get("DeleteMarkers", [])]
        return sum(one["Key"] == key for one in entries)

    def delete_stack(self, name: str) -> None:
        self.stacks.delete_stack(StackName=name)
        self.stacks.get_waiter("stack_delete_complete").wait(StackName=name, WaiterConfig={"Delay": 1})

    def deploy(self) -> None:
        """Import the kept bucket as `cdk import` does, and then deploy the outputs of the stack."""
        name = teams.stack_name(self.team)
        bucket = {
            "Type": "AWS::S3::Bucket",
            "DeletionPolicy": "Retain",
            "Properties": {"BucketName": self.bucket},
        }
        outputs = {"ApiAddress": "https://x.example.com", "BucketName": self.bucket}
        template: dict[str, Any] = {"Resources": {"StateBucket": bucket}}
        self.stacks.create_change_set(
            StackName=name,
            ChangeSetName="imports",
            ChangeSetType="IMPORT",
            TemplateBody=json.dumps(template),
            ResourcesToImport=[
                {
                    "ResourceType": "AWS::S3::Bucket",
                    "LogicalResourceId": "StateBucket",
                    "ResourceIdentifier": {"BucketName": self.bucket},
                }
            ],
        )
        self.stacks.execute_change_set(StackName=name, ChangeSetName="imports")
        wait_until(
            lambda: (
                self.stacks.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"] == "IMPORT_COMPLETE"
            ),
            "the import of the bucket",
        )
        template["Outputs"] = {key: {"Value": value} for key, value in outputs.items()}
        self.stacks.update_stack(StackName=name, TemplateBody=json.dumps(template))
        self.stacks.get_waiter("stack_update_complete").wait(StackName=name, WaiterConfig={"Delay": 1})


@pytest.fixture
def regions(aws: LocalAws, kept: Team) -> Iterator[Regions]:
    """The regions of the team; at the end the old bucket is open again, for other tests."""
    policy = kept.s3.get_bucket_policy(Bucket=kept.bucket)["Policy"]
    found = Regions(aws, kept)
    try:
        yield found
    finally:
        kept.s3.put_bucket_policy(Bucket=kept.bucket, Policy=policy)


def typed(kept: Team) -> list[str]:
    """The words of the document's command, for this team and these regions; two steps have the same."""
    [command] = re.findall(r"^ +(holdfast recover .+)$", text(page("recovery.md")), re.MULTILINE)
    for theirs, ours in (("eu-central-1", REGION), ("payments", kept.name)):
        command = command.replace(theirs, ours)
    return [*shlex.split(command)[1:], "--yes"]


def test_a_team_goes_on_in_another_region_with_the_steps_of_the_document(
    regions: Regions, kept: Team, state: str
) -> None:
    name = names.parse(state)
    kept.write(state, documents.state(1))  # under a lock, which is released
    kept.locked(state)
    deleted = f"{state}-deleted"
    kept.write(deleted, documents.state(1))
    kept.s3.delete_object(Bucket=kept.bucket, Key=names.parse(deleted).state_key)
    wait_until(lambda: regions.copies(name.lock_key) == 2, "the copies of both locks")
    wait_until(lambda: regions.copies(names.parse(deleted).state_key) == 2, "the copy of the deletion")
    held = kept.lock(state)
    assert held is not None

    since = kept.s3.get_bucket_policy(Bucket=kept.bucket)["Policy"]
    fenced = access_commands.run(kept, *typed(kept))
    assert (fenced.returncode, "Wait a minute, run the command" in fenced.stderr) == (1, True)
    assert kept.s3.get_bucket_policy(Bucket=kept.bucket)["Policy"] != since
    assert "Now delete the stack HoldfastReplica-kept as " in access_commands.holdfast(kept, *typed(kept))
    assert regions.copies(name.lock_key) == 2
    regions.delete_stack(teams.replica_stack_name(kept.name))
    regions.deploy()
    told = access_commands.holdfast(kept, *typed(kept))

    assert re.search(rf"^{re.escape(state)} .+ {re.escape(held['ID'])}$", told, re.MULTILINE), told
    assert f"The bucket {kept.bucket} refuses writes now" in told
    assert "Not copied" not in told
    assert regions.copies(name.lock_key) == 0
    assert regions.store().read(names.parse(deleted).state_key) is None

    # A client chooses its `Path`.
    lock = json.dumps({**json.loads(lock_info("one")), "Path": f"{kept.bucket}/{name.state_key}"}).encode()
    acquire(work(regions.store(), name, ADA), lock)
    write(work(regions.store(), name, ADA, require_lock=True), documents.state(2), "one")
    late = kept.client("writer").write(state, documents.state(3), str(held["ID"]))
    assert late.status == 500
    assert [version.serial for version in kept.versions(state)] == [1]

    again = access_commands.holdfast(kept, *typed(kept))
    assert "Removed 0 locks that S3 had copied" in again
    assert f"The lock one of {state} was not removed, because S3 does not report it as a copy." in again

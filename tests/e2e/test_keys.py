"""A team with a KMS key of its own, whose earlier states are under the stack's key."""

from holdfast.names import StateName
from local_aws.server import LocalAws
from tests.e2e.test_doctor import doctor, problems
from tests.support import documents
from tests.support.deployed import client, stack
from tests.support.team import Team


def test_a_team_writes_under_its_own_key_and_reads_what_is_under_the_previous_one(
    aws: LocalAws, watched: Team, state: str
) -> None:
    deployed = stack(aws, watched.name)
    own = client(aws, "kms").describe_key(KeyId=deployed.physical_ids["StateKey"])["KeyMetadata"]["Arn"]
    foreign = client(aws, "kms").create_key()["KeyMetadata"]["Arn"]
    earlier, stranger = f"{state}-earlier", f"{state}-stranger"

    def put(name: str, key: str) -> None:
        watched.s3.put_object(
            Bucket=watched.bucket,
            Key=StateName(name).state_key,
            Body=documents.state(7),
            ServerSideEncryption="aws:kms",
            SSEKMSKeyId=key,
            IfNoneMatch="*",
        )

    watched.write(state, documents.state(1))
    put(earlier, own)
    head = watched.s3.head_object(Bucket=watched.bucket, Key=StateName(state).state_key)
    reader = watched.client_with(watched.token("reader", f"{state}*"))

    assert head["SSEKMSKeyId"] == deployed.key_arn != own
    assert reader.read(state).body == documents.state(1)
    assert reader.read(earlier).body == documents.state(7)

    findings = doctor(watched)
    said = {one["check"]: one["text"] for one in findings if one["check"].startswith("keys.")}
    assert problems(findings) == {}
    assert f"1 with {own}" in said["keys.objects"]
    assert said["keys.policy"] == "The policy of the stack's key is as in the template."

    # The local AWS does not ask the bucket policy about the account's root.
    put(stranger, foreign)
    try:
        found = problems(doctor(watched))
    finally:
        watched.s3.delete_object(Bucket=watched.bucket, Key=StateName(stranger).state_key)
    assert found == {
        "keys.objects": [
            f"The functions may not use the key {foreign}, which encrypts {StateName(stranger).state_key}."
        ]
    }

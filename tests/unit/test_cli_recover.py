"""`holdfast recover` as it is typed, against moto's server over HTTP."""

import json
import re

import pytest

from holdfast import team as names
from tests.support import terminal
from tests.support.cli_account import HOLDFAST, Aws, bucket
from tests.support.documents import lock_info, state

ACCOUNT = "123456789012"
"""The account of moto's stacks."""
OLD = names.bucket_name("payments", ACCOUNT, "us-west-2")
RECOVER = ("recover", "--team", "payments", "--from", "us-west-2")
LOCK = "states/network/prod.tfstate.tflock"


@pytest.fixture
def left(aws: Aws) -> Aws:
    """An account with the bucket of a region that is left, whose replica has a lock and a token of it."""
    aws.replicate(OLD, bucket("payments"))
    aws.put_copy("payments", LOCK, lock_info("one"))
    aws.put_record("payments", "tokens/k2v9x0q7m3c1d8f5a6b4.json", b"{}")
    return aws


def test_it_removes_nothing_while_s3_can_still_copy_and_ends_well_once_everything_is_copied(aws: Aws) -> None:
    replica, s3 = aws.deploy_replica("payments"), aws.client("s3")
    aws.replicate(OLD, replica)
    first, second = (state(serial) for serial in (1, 2))
    for name, body in ((OLD, first), (OLD, second), (replica, first)):
        s3.put_object(Bucket=name, Key="states/a.tfstate", Body=body)
    s3.put_object(Bucket=replica, Key=LOCK, Body=lock_info("one"))

    asked = aws.run(*RECOVER)
    assert (asked.returncode, asked.stdout) == (2, "")
    assert f"The command makes the bucket {OLD} refuse writes." in asked.stderr
    missing = aws.run(*RECOVER, "--yes")
    assert missing.returncode == 1
    assert f"The bucket {OLD} refuses writes now" in missing.stdout
    assert "S3 has not copied the newest version of the state a. Old bucket: written " in missing.stdout
    assert "Do not delete the stack HoldfastReplica-payments now" in missing.stderr

    s3.put_object(Bucket=replica, Key="states/a.tfstate", Body=second)
    assert aws.output(*RECOVER, "--yes").splitlines()[1:] == [
        "S3 has copied the current version of every object. Now delete the stack HoldfastReplica-payments as "
        "docs/operate/recovery.md says."
    ]
    told = json.loads(aws.output(*RECOVER, "--yes", "--json"))
    assert (told["bucket"], told["fenced"], told["locks"], told["not_copied"]) == (replica, True, None, [])
    assert s3.get_object(Bucket=replica, Key=LOCK)["Body"].read() == lock_info("one")


def test_the_run_that_fences_does_not_end_well_because_a_policy_takes_seconds(aws: Aws) -> None:
    aws.replicate(OLD, aws.deploy_replica("payments"))

    first = aws.run(*RECOVER, "--yes")

    assert first.returncode == 1
    assert f"S3 may accept writes to {OLD} for some more seconds" in first.stderr
    assert "S3 has copied the current version of every object." in aws.output(*RECOVER, "--yes")


def test_an_old_side_out_of_reach_is_no_comparison_whatever_is_said_of_it(aws: Aws) -> None:
    aws.replicate(OLD, aws.deploy_replica("payments"))
    elsewhere = (*RECOVER[:-1], "us-east-2", "--yes", "--old-side-is-gone")

    line = aws.failure(*elsewhere)

    assert "cannot make the old bucket" in line
    assert line.endswith(
        "If you cannot wait, delete the stack HoldfastReplica-payments although the buckets were not "
        "compared."
    )
    aws.client("s3").delete_bucket_replication(Bucket=OLD)
    assert "is not its replica. Nothing was changed" in aws.failure(*RECOVER, "--yes")


def test_it_says_which_lock_it_removed_and_what_to_check(left: Aws) -> None:
    fenced, heading, row, removed, check = left.output(*RECOVER, "--yes").splitlines()

    assert fenced == f"The bucket {OLD} refuses writes now (statement HoldfastRecovered of its policy)."
    assert heading.split() == ["STATE", "SINCE", "HELD", "BY", "CLIENT", "SAYS", "ID"]
    assert row.startswith("network/prod  20")
    assert row.endswith("  another program  ada@laptop   one")
    assert removed == "Removed 1 lock that S3 had copied from the old bucket."
    assert check.endswith("h before that copy: tokens/k2v9x0q7m3c1d8f5a6b4.json")
    assert LOCK not in left.records("payments")
    left.put_record("payments", LOCK, lock_info("later"))
    assert left.output(*RECOVER, "--yes").splitlines()[1:3] == [
        "Removed 0 locks that S3 had copied from the old bucket.",
        "The lock later of network/prod was not removed, because S3 does not report it as a copy. If the "
        "lock's holder is gone, run `holdfast lock break network/prod`.",
    ]


def test_a_terminal_has_the_age_of_a_lock_that_is_removed(left: Aws) -> None:
    shown = terminal.run([HOLDFAST, *RECOVER, "--yes"], left.environment, columns=120)

    assert re.search(r"^network/prod  \d+ \w+ ago +another program  ada@laptop   one$", shown, re.MULTILINE)


def test_what_had_not_been_copied_is_named_and_ends_with_1(left: Aws) -> None:
    left.client("s3").put_object(
        Bucket=OLD, Key="states/a.tfstate", Body=state(4), Metadata={"serial": "4", "lineage": "x"}
    )

    done = left.run(*RECOVER, "--yes")

    assert done.returncode == 1
    assert (
        "S3 has not copied the newest version of the state a. Old bucket: serial 4. New bucket: missing."
        in " ".join(done.stdout.split())
    )
    assert (
        f"S3 has not copied the newest version of 1 object of {OLD}. Wait a minute, and run the command again"
        in done.stderr
    )
    told = json.loads(left.run(*RECOVER, "--yes", "--json").stdout)
    assert told["not_copied"] == [
        {"key": "states/a.tfstate", "state": "a", "there": "serial 4", "here": "missing"}
    ]


def test_an_older_version_above_the_newest_is_named_and_ends_with_1(left: Aws) -> None:
    s3, key = left.client("s3"), "states/a.tfstate"
    written = [s3.put_object(Bucket=OLD, Key=key, Body=state(serial))["VersionId"] for serial in (1, 2)]
    for version_id, serial in zip(reversed(written), (2, 1), strict=True):
        left.put_copy("payments", key, state(serial), version_id=version_id)

    done = left.run(*RECOVER, "--yes")

    assert done.returncode == 1
    assert (
        f"The version {written[1]} of the state a is not current in the new bucket. Old bucket: written "
        in " ".join(done.stdout.split())
    )
    assert (
        f"In {bucket('payments')}, the current version of 1 object is older than in the old bucket."
        in done.stderr
    )
    told = json.loads(left.run(*RECOVER, "--yes", "--json").stdout)
    assert told["not_copied"] == []
    assert [(one["key"], one["version"]) for one in told["not_current"]] == [(key, written[1])]


def test_without_an_old_side_somebody_has_to_say_that_it_is_gone(left: Aws) -> None:
    elsewhere = (*RECOVER[:-1], "us-east-2")
    refused = left.run(*elsewhere, "--yes")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "cannot make the old bucket" in refused.stderr
    assert "--old-side-is-gone" in refused.stderr
    assert LOCK in left.records("payments")

    told = left.output(*elsewhere, "--yes", "--old-side-is-gone", "--json")

    document = json.loads(told)
    assert (document["fenced"], document["not_copied"], document["not_current"]) == (False, None, None)
    assert [(one["id"], one["removed"]) for one in document["locks"]] == [("one", True)]
    left.put_record("payments", LOCK, lock_info("later"))
    told = left.output(*elsewhere, "--yes", "--old-side-is-gone", "--json")
    assert [(one["id"], one["removed"]) for one in json.loads(told)["locks"]] == [("later", False)]
    lines = left.output(*elsewhere, "--yes", "--old-side-is-gone").splitlines()
    assert any("it is unknown whether S3 copied the newest versions of the states" in line for line in lines)


def test_it_asks_first_and_refuses_its_own_region_and_a_bucket_with_another_replica(left: Aws) -> None:
    asked = left.run(*RECOVER)
    assert (asked.returncode, asked.stdout) == (2, "")
    assert "confirm with --yes. Nothing was changed." in asked.stderr
    s3 = left.client("s3")
    s3.delete_bucket_replication(Bucket=OLD)
    assert f"{bucket('payments')} is not its replica" in left.failure(*RECOVER, "--yes", "--old-side-is-gone")
    left.deploy("own", ApiAddress="https://own.example.com", BucketName=OLD.replace("payments", "own"))
    line = left.failure("recover", "--team", "own", "--from", "us-west-2", "--yes")
    assert line == (
        "holdfast: --from and the command's own region are both us-west-2. With --from, name the region "
        "that the team leaves. With --region, name the region of the replica."
    )
    assert LOCK in left.records("payments")


def test_a_freeze_stays_and_is_named(left: Aws) -> None:
    left.client("s3").put_object(
        Bucket=bucket("payments"),
        Key=LOCK,
        Body=json.dumps(json.loads(lock_info("one")) | {"Info": "frozen: audit"}).encode(),
        Metadata={"freeze": "0" * 32},
    )
    assert (
        "network/prod is still frozen: audit. If the freeze was lifted in the old bucket, run"
        in left.output(*RECOVER, "--yes")
    )
    assert LOCK in left.records("payments")

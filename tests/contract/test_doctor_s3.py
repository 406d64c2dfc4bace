"""The findings of `holdfast doctor` on stores that honour every condition, and on stores that do not."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from holdfast_cli.doctor import s3_probe
from holdfast_cli.doctor.findings import Finding, Level
from tests.contract.conftest import ACCOUNT, Bucket, client
from tests.support.aws_gateway import AwsGateway

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


@pytest.fixture
def gateway(bucket: Bucket) -> Iterator[AwsGateway]:
    """A proxy in front of the store that alters requests and responses."""
    with AwsGateway(bucket.s3.meta.endpoint_url) as running:
        running.renames_headers = False
        yield running


@pytest.fixture
def through(gateway: AwsGateway) -> "S3Client":
    """A client that talks to the store through the gateway."""
    return client(gateway.address)


def problems(findings: list[Finding]) -> dict[str, str]:
    """Return the text of every problem, by check. Each text must say what to do."""
    found = {finding.check: finding for finding in findings if finding.level is Level.PROBLEM}
    assert all(finding.do for finding in found.values())
    return {check: finding.text for check, finding in found.items()}


@pytest.mark.two_servers
def test_a_store_that_honours_every_condition_has_no_problem_and_nothing_is_left(
    bucket: Bucket, through: "S3Client"
) -> None:
    findings = s3_probe.check(through, bucket.name, ACCOUNT)

    assert {finding.level for finding in findings} == {Level.OK}
    assert len(findings) == 12
    assert bucket.history("") == []


@pytest.mark.two_servers
@pytest.mark.parametrize(
    ("method", "header", "found", "says"),
    [
        ("DELETE", "if-match", "s3.delete", "ignores If-Match on DELETE"),
        (
            "PUT",
            "if-none-match",
            "s3.create s3.create_at_once",
            "8 of 8 concurrent writers created the same object",
        ),
        ("PUT", "if-match", "s3.replace s3.replace_at_once", ""),
    ],
)
def test_a_store_that_ignores_a_condition_is_found(
    bucket: Bucket, gateway: AwsGateway, through: "S3Client", method: str, header: str, found: str, says: str
) -> None:
    with gateway.dropping(method, header):
        told = problems(s3_probe.check(through, bucket.name, ACCOUNT))

    assert told.keys() == set(found.split())
    assert says in " ".join(told.values())
    assert bucket.history("") == []


@pytest.mark.two_servers
def test_a_bucket_that_keeps_one_version_only_is_found(unversioned: Bucket) -> None:
    found = problems(s3_probe.check(unversioned.s3, unversioned.name, ACCOUNT))

    assert {"s3.versioning", "s3.remove_version"} <= found.keys()
    assert "keeps only one version and no history" in found["s3.versioning"]
    assert unversioned.history("") == []


def test_a_store_with_another_clock_is_found(
    bucket: Bucket, gateway: AwsGateway, through: "S3Client"
) -> None:
    with gateway.with_clock_ahead(90):
        found = problems(s3_probe.check(through, bucket.name, ACCOUNT))

    assert found.keys() == {"s3.clock"}
    assert "seconds behind the clock of S3" in found["s3.clock"]


def test_what_was_made_before_an_interrupt_is_removed(bucket: Bucket, through: "S3Client") -> None:
    def interrupt(params: dict[str, Any], **_: object) -> None:
        if params["Key"].endswith("/replace"):
            assert bucket.history("")
            raise KeyboardInterrupt

    through.meta.events.register("before-parameter-build.s3.PutObject", interrupt)
    with pytest.raises(KeyboardInterrupt) as raised:
        s3_probe.check(through, bucket.name, ACCOUNT)

    assert bucket.history("") == []
    assert not hasattr(raised.value, "__notes__")


def test_an_interrupt_tells_what_could_not_be_removed(bucket: Bucket, through: "S3Client") -> None:
    def interrupt(params: dict[str, Any], **_: object) -> None:
        if params["Key"].endswith("/replace"):
            raise KeyboardInterrupt

    def deny(**_: object) -> None:
        raise ClientError({"Error": {"Code": "AccessDenied"}}, "ListObjectVersions")

    through.meta.events.register("before-parameter-build.s3.PutObject", interrupt)
    through.meta.events.register("before-parameter-build.s3.ListObjectVersions", deny)
    with pytest.raises(KeyboardInterrupt) as raised:
        s3_probe.check(through, bucket.name, ACCOUNT)

    [note] = raised.value.__notes__
    assert note.startswith("Some versions of probes/")
    assert "AccessDenied" in note


@pytest.mark.parametrize("times", [1, 2])
def test_only_a_second_interrupt_stops_the_removal_and_tells_so(
    bucket: Bucket, through: "S3Client", times: int
) -> None:
    interrupts = iter(range(times))

    def interrupt(**_: object) -> None:
        if next(interrupts, None) is not None:
            raise KeyboardInterrupt

    # Nothing but the removal lists.
    through.meta.events.register("before-parameter-build.s3.ListObjectVersions", interrupt)
    with pytest.raises(KeyboardInterrupt) as raised:
        s3_probe.check(through, bucket.name, ACCOUNT)

    if times == 1:
        assert bucket.history("") == []
        assert not hasattr(raised.value, "__notes__")
    else:
        [note] = raised.value.__notes__
        assert note.startswith("Some versions of probes/")
        assert note.endswith("/* were not removed: interrupted.")


@pytest.mark.two_servers
def test_a_version_that_cannot_be_removed_stops_no_other(bucket: Bucket, through: "S3Client") -> None:
    def deny(params: dict[str, Any], **_: object) -> None:
        if params["Key"].endswith("/create"):
            raise ClientError({"Error": {"Code": "AccessDenied"}}, "DeleteObject")

    through.meta.events.register("before-parameter-build.s3.DeleteObject", deny)
    findings = s3_probe.check(through, bucket.name, ACCOUNT)

    assert problems(findings) == {}
    assert {key.rpartition("/")[2] for key, _ in bucket.history("")} == {"create"}
    assert "/create were not removed: An error occurred (AccessDenied)" in findings[-1].text


@pytest.mark.parametrize(
    ("code", "status", "says"),
    [
        ("KMS.DisabledException", 400, "Not checked. AWS refused PutObject: "),
        ("NotImplemented", 501, "S3 refused to write a new object with If-None-Match: 501 NotImplemented."),
    ],
)
def test_a_store_that_refuses_the_first_write_is_one_problem(
    bucket: Bucket, through: "S3Client", code: str, status: int, says: str
) -> None:
    refuse(through, code, status, "IfNoneMatch")

    findings = s3_probe.check(through, bucket.name, ACCOUNT)

    assert [finding.check for finding in findings] == ["s3.clock", "s3", "s3.removed"]
    assert says in problems(findings)["s3"]


def test_a_bucket_that_is_not_there_is_one_problem(bucket: Bucket) -> None:
    found = problems(s3_probe.check(bucket.s3, f"{bucket.name}-gone", ACCOUNT))

    assert found.keys() == {"s3"}
    assert "NoSuchBucket" in found["s3"]


def test_versioning_is_advised_only_for_version_ids(bucket: Bucket, through: "S3Client") -> None:
    refuse(through, "NotImplemented", 501, "IfMatch")

    found = problems(s3_probe.check(through, bucket.name, ACCOUNT))

    assert "s3.replace" in found
    assert "s3.versioning" not in found


def refuse(through: "S3Client", code: str, status: int, condition: str) -> None:
    """Let every write with a condition fail."""

    def fail(params: dict[str, Any], **_: object) -> None:
        if condition in params:
            response: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
            raise ClientError(response, "PutObject")

    through.meta.events.register("before-parameter-build.s3.PutObject", fail)


@pytest.mark.two_servers
def test_versions_that_cannot_be_removed_are_named(bucket: Bucket, through: "S3Client") -> None:
    bucket.retain_everything()

    findings = s3_probe.check(through, bucket.name, ACCOUNT)

    assert findings[-1].check == "s3.removed"
    assert findings[-1].level is Level.NOTE
    assert "within four days" in findings[-1].do


def test_a_store_that_does_not_respond_is_one_problem(bucket: Bucket) -> None:
    findings = s3_probe.check(client("http://127.0.0.1:1"), bucket.name, ACCOUNT)

    assert problems(findings).keys() == {"s3"}
    assert [finding.check for finding in findings] == ["s3", "s3.removed"]

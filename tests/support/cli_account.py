"""Runs the command in an AWS account on moto's server."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import boto3
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends
from moto.server import ThreadedMotoServer

from holdfast import team as names
from tests.support import forked_command
from tests.support.fault_relay import Fault
from tests.support.s3_fault_proxy import S3FaultProxy
from tests.support.waiting import HANGS

BIN = Path(sys.executable).parent
HOLDFAST = BIN / "holdfast"
REGION = "eu-central-1"


@contextmanager
def running() -> Iterator[str]:
    """Run a server that simulates AWS, and yield its address."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def empty(endpoint: str, home: Path) -> "Aws":
    with urlopen(Request(f"{endpoint}/moto-api/reset", method="POST")):  # noqa: S310 http, to moto's server
        pass
    return Aws(endpoint, home)


@cache
def _client(endpoint: str, service: Any) -> Any:
    return boto3.client(
        service,
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )


class Aws:
    """An AWS account on a server, empty at first."""

    def __init__(self, endpoint: str, home: Path) -> None:
        self.environment = {
            "HOME": str(home),
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_REGION": REGION,
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
        }
        self._endpoint = endpoint

    def client(self, service: Any) -> Any:
        return _client(self._endpoint, service)

    def deploy(self, team: str, **outputs: object) -> None:
        """Create the parts of a team's stack that the command reads.

        `outputs` replace the outputs that every stack has.
        """
        outputs = outputs or {"ApiAddress": f"https://{team}.example.com", "BucketName": {"Ref": "Bucket"}}
        template = {
            "Resources": {"Bucket": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": bucket(team)}}},
            "Outputs": {name: {"Value": value} for name, value in outputs.items()},
        }
        self.client("cloudformation").create_stack(
            StackName=f"Holdfast-{team}",
            TemplateBody=json.dumps(template),
            Tags=[{"Key": "holdfast:team", "Value": team}],
        )
        # moto's CloudFormation ignores both properties.
        s3 = self.client("s3")
        s3.put_bucket_versioning(Bucket=bucket(team), VersioningConfiguration={"Status": "Enabled"})
        s3.put_object_lock_configuration(
            Bucket=bucket(team), ObjectLockConfiguration={"ObjectLockEnabled": "Enabled"}
        )

    def replicate(self, source: str, replica: str) -> None:
        """Create a bucket with a replica. moto copies nothing."""
        s3 = self.client("s3")
        s3.create_bucket(Bucket=source, CreateBucketConfiguration={"LocationConstraint": REGION})
        s3.put_bucket_versioning(Bucket=source, VersioningConfiguration={"Status": "Enabled"})
        rule = {
            "ID": "everything",
            "Priority": 0,
            "Status": "Enabled",
            "Filter": {"Prefix": ""},
            "DeleteMarkerReplication": {"Status": "Enabled"},
            "Destination": {"Bucket": f"arn:aws:s3:::{replica}"},
        }
        role = "arn:aws:iam::123456789012:role/x"
        s3.put_bucket_replication(Bucket=source, ReplicationConfiguration={"Role": role, "Rules": [rule]})

    def deploy_replica(self, team: str) -> str:
        """Create the stack of a team's replica, and return the name of its bucket."""
        name = names.bucket_name(team, DEFAULT_ACCOUNT_ID, REGION)
        resource = {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": name}}
        self.client("cloudformation").create_stack(
            StackName=names.replica_stack_name(team),
            TemplateBody=json.dumps({"Resources": {"StateBucket": resource}}),
        )
        self.client("s3").put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
        return name

    def put_state(self, team: str, name: str, body: bytes) -> str:
        """Write a state as another program does, and return its version."""
        key = f"states/{name}.tfstate"
        return str(self.client("s3").put_object(Bucket=bucket(team), Key=key, Body=body)["VersionId"])

    def put_record(self, team: str, key: str, body: bytes) -> None:
        """Write an object as another operator does."""
        self.client("s3").put_object(Bucket=bucket(team), Key=key, Body=body)

    def make_audit_log(self, team: str, *events: dict[str, object]) -> None:
        """Create a team's audit log with these events. Their times are in `time`."""
        logs, group = self.client("logs"), {"logGroupName": f"/holdfast/{team}/audit"}
        stream = {"logStreamName": "backend/2026-11-20"}
        logs.create_log_group(**group)
        logs.create_log_stream(**group, **stream)
        for event in events:
            happened = datetime.fromisoformat(str(event["time"]))
            line = {"timestamp": int(happened.timestamp() * 1000), "message": json.dumps(event)}
            logs.put_log_events(**group, **stream, logEvents=[line])

    def put_copy(self, team: str, key: str, body: bytes, *, version_id: str | None = None) -> None:
        """Write an object as S3's replication does, with its status and, if given, the original's version ID.

        moto returns this key of the metadata as a header.
        """
        self.put_record(team, key, body)
        stored = s3_backends[DEFAULT_ACCOUNT_ID]["aws"].get_object(bucket(team), key)
        assert stored is not None
        stored.metadata["x-amz-replication-status"] = "REPLICA"
        stored._version_id = version_id or stored.version_id  # noqa: SLF001 moto has no setter

    def records(self, team: str) -> dict[str, bytes]:
        """Return the objects of a team's bucket."""
        s3 = self.client("s3")
        listed = s3.list_objects_v2(Bucket=bucket(team)).get("Contents", [])
        return {
            item["Key"]: s3.get_object(Bucket=bucket(team), Key=item["Key"])["Body"].read() for item in listed
        }

    def enforce(self, *, authorization: bool) -> None:
        """Start or stop to check signatures and policies."""
        free_calls = b"0" if authorization else b"Infinity"
        request = Request(  # noqa: S310 http, to moto's server
            f"{self._endpoint}/moto-api/reset-auth", data=free_calls, headers={"Content-Type": "text/plain"}
        )
        with urlopen(request):  # noqa: S310
            pass

    @contextmanager
    def faults(
        self, key: str, *faults: Fault, before: Callable[[], object] | None = None, times: int = 1
    ) -> Iterator[dict[str, str]]:
        """Inject faults into writes to a key with this suffix; yield the variable that sets the proxy.

        `faults` happen to the next writes. `before` is called just before the write after these. `times` is
        how often each fault happens; with more than 1 it may happen less often.
        """
        with S3FaultProxy(self._endpoint) as proxy:
            for fault in faults:
                proxy.fail("PUT", key, fault, times=times)
            if before:
                proxy.before("PUT", key, before)
            yield {"AWS_ENDPOINT_URL_S3": proxy.endpoint}
            assert times > 1 or proxy.end_rules() == 0

    def run(self, *arguments: str, **environment: str | None) -> subprocess.CompletedProcess[str]:
        """Run the command. A variable of None is not set."""
        variables = {**self.environment, **environment}
        set_ones = {name: value for name, value in variables.items() if value is not None}
        return forked_command.run(arguments, set_ones, timeout=HANGS)

    def output(self, *arguments: str, **environment: str | None) -> str:
        """Run the command, which must succeed, and return what it prints."""
        done = self.run(*arguments, **environment)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout

    def failure(self, *arguments: str, **environment: str | None) -> str:
        """Run the command, which must fail, and return its one line."""
        return self.failure_with(1, *arguments, **environment)

    def failure_with(self, code: int, *arguments: str, **environment: str | None) -> str:
        """Run the command, which must fail with an exit code, and return its one line."""
        done = self.run(*arguments, **environment)
        assert (done.returncode, done.stdout) == (code, "")
        [line] = done.stderr.splitlines()
        return line

    def failure_of(self, allowed: str | None, *arguments: str) -> str:
        """Run the command, which must fail, and return its one line.

        `allowed` is the only action that the user may take; with None AWS does not know the user's keys.
        """
        environment = {}
        if allowed:
            iam = self.client("iam")
            iam.create_user(UserName="ada")
            statement = {"Effect": "Allow", "Action": allowed, "Resource": "*"}
            policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
            iam.put_user_policy(UserName="ada", PolicyName="own", PolicyDocument=policy)
            key = iam.create_access_key(UserName="ada")["AccessKey"]
            environment = {
                "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
                "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
            }
        self.enforce(authorization=True)
        try:
            return self.failure(*arguments, **environment)
        finally:
            self.enforce(authorization=False)


def unread(environment: Mapping[str, str], *arguments: str) -> tuple[int, list[str]]:
    """Run the command while nobody reads its output; return the exit code and lines of standard error."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [HOLDFAST, *arguments],
            env=environment,
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=HANGS,
        )
    finally:
        os.close(writer)
    return done.returncode, done.stderr.splitlines()


def bucket(team: str) -> str:
    return f"holdfast-{team}-states"

"""A deployed team: its API as clients see it, and its bucket."""

import json
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import boto3
import botocore.session

from local_aws.server import REGION
from tests.support import documents
from tests.support.aws_gateway import AwsGateway
from tests.support.cloud_client import CloudClient
from tests.support.http_client import Client, Credentials
from tests.support.waiting import HANGS

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

HOLDFAST = Path(sys.executable).with_name("holdfast")


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a state in the bucket. `metadata` is encoded as S3 stores it."""

    id: str
    body: bytes
    metadata: Mapping[str, str]

    @property
    def serial(self) -> int:
        return int(json.loads(self.body)["serial"])


@dataclass(frozen=True, eq=False)
class Team:
    """A deployed team.

    Clients reach it through `gateway`, which has AWS's limits. `direct_address` is the API itself, which also
    passes LOCK and UNLOCK. `staging_bucket` is for uploads. `s3` is a client with root's permissions.
    `environment` has root's AWS settings.
    """

    name: str
    gateway: AwsGateway
    direct_address: str
    bucket: str
    staging_bucket: str
    s3: "S3Client"
    tls: ssl.SSLContext
    environment: Mapping[str, str]

    @cache  # noqa: B019 a team lives as long as the tests
    def token(self, role: str, *scope: str) -> Credentials:
        """Return an access token, the same for the same arguments. Without a scope it covers every state."""
        return self.new_token(role, *scope)

    def new_token(self, role: str, *scope: str) -> Credentials:
        """Create an access token with the real command."""
        scopes = [argument for pattern in scope or ("*",) for argument in ("--scope", pattern)]
        done = subprocess.run(
            [HOLDFAST, "token", "create", "--team", self.name, "--role", role, *scopes, "--json"],
            env=dict(self.environment),
            capture_output=True,
            text=True,
            check=True,
            timeout=HANGS,
        )
        made = json.loads(done.stdout)
        return Credentials(made["id"], made["secret"])

    def client(self, role: str | None, *scope: str) -> Client:
        """Return a client through the gateway, with a token or without."""
        return Client(self.gateway.address, self.tls, self.token(role, *scope) if role else None)

    def client_with(self, credentials: Credentials) -> Client:
        return Client(self.gateway.address, self.tls, credentials)

    def direct_client(self, role: str) -> Client:
        """Return a client that bypasses the gateway."""
        return Client(self.direct_address, self.tls, self.token(role))

    def declare(self, state: str) -> None:
        """Declare the name of a state, as `holdfast state declare` does."""
        answer = self.client("writer").request("POST", f"/manage/v1/create/{state}")
        assert answer.status == 200, answer

    def locked(self, state: str, role: str = "writer") -> bytes:
        """Lock a state through the gateway, and return the lock info."""
        info = documents.lock_info()
        answer = self.client(role).lock(state, info)
        assert answer.status == 200, answer
        return info

    def write(self, state: str, *bodies: bytes) -> None:
        """Write versions of a state under a lock, and release it."""
        client, info = self.client("writer"), self.locked(state)
        for body in bodies:
            answer = client.write(state, body, documents.lock_id(info))
            assert answer.status == 200, answer
        assert client.unlock(state, info).status == 200

    @property
    def host(self) -> str:
        """The `hostname` for a `cloud` block."""
        return urlsplit(self.gateway.address).netloc

    def cloud_client(self, role: str, *scope: str) -> CloudClient:
        """Return a client that speaks the protocol of `cloud {}` through the gateway, with a token."""
        return CloudClient(self.gateway.address, self.token(role, *scope), self.tls)

    # --- the bucket ----------------------------------------------------------------------------------

    def versions(self, state: str) -> list[Version]:
        """Return every version of a state, oldest first."""
        key = f"states/{state}.tfstate"
        listed = self.s3.list_object_versions(Bucket=self.bucket, Prefix=key).get("Versions", [])
        found = []
        for version_id in [item["VersionId"] for item in reversed(listed) if item["Key"] == key]:
            got = self.s3.get_object(Bucket=self.bucket, Key=key, VersionId=version_id)
            found.append(Version(version_id, got["Body"].read(), got["Metadata"]))
        return found

    def current(self, state: str) -> bytes | None:
        return self.object(f"states/{state}.tfstate")

    def lock(self, state: str) -> dict[str, Any] | None:
        """Return the lock info in the bucket, None if the state is not locked."""
        body = self.object(f"states/{state}.tfstate.tflock")
        return json.loads(body) if body is not None else None

    def object(self, key: str) -> bytes | None:
        try:
            return self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        except self.s3.exceptions.NoSuchKey:
            return None

    def staged(self, state: str) -> list[str]:
        """Return the keys of a state's uploads that were not removed."""
        listed = self.s3.list_objects_v2(Bucket=self.staging_bucket).get("Contents", [])
        return [item["Key"] for item in listed if f"/{state}/" in item["Key"]]

    def put(self, key: str, body: bytes) -> None:
        """Write an object as another program would: without condition and metadata."""
        self.s3.put_object(Bucket=self.bucket, Key=key, Body=body)

    def versions_and_markers(self, key: str) -> tuple[int, int]:
        """Return how many versions and how many delete markers of an object the bucket has."""
        listed = self.s3.list_object_versions(Bucket=self.bucket, Prefix=key)
        versions = [item for item in listed.get("Versions", []) if item["Key"] == key]
        markers = [item for item in listed.get("DeleteMarkers", []) if item["Key"] == key]
        return len(versions), len(markers)

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Check that nothing in the whole bucket changes within the context."""
        before = self._everything()
        yield
        assert self._everything() == before

    @cached_property
    def _listing(self) -> "S3Client":
        """A client as `s3` that does not parse times, which takes most of the time of a long listing."""
        session = botocore.session.Session()
        session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=str)
        made: S3Client = boto3.Session(
            self.environment["AWS_ACCESS_KEY_ID"],
            self.environment["AWS_SECRET_ACCESS_KEY"],
            region_name=REGION,
            botocore_session=session,
        ).client(
            "s3",
            endpoint_url=self.environment["AWS_ENDPOINT_URL"],
            verify=self.environment.get("AWS_CA_BUNDLE"),
        )
        return made

    def _everything(self) -> list[tuple[str, str, bool]]:
        return sorted(
            (item["Key"], item["VersionId"], item["IsLatest"])
            for page in self._listing.get_paginator("list_object_versions").paginate(Bucket=self.bucket)
            for item in [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
        )

"""Two independent S3 servers, each behind a proxy that can inject faults.

A test that uses `server`, as each with a `bucket` does, runs on moto. It runs on MiniStack too if it has the
mark `two_servers`. A module has this mark if it asks S3 for what could differ between servers and cost a
state or a lock: conditions on versions of states and locks, their removal, lists of them, and responses that
are cut on the wire. The other modules test decisions about what the store returned.
"""

import base64
import json
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial, partialmethod
from importlib import import_module
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

import boto3
import pytest
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter
from moto.s3.models import S3Backend
from moto.s3.responses import S3Response
from moto.server import ThreadedMotoServer

from gateway.log import JsonLine
from holdfast import names
from holdfast.access import Caller, Grant, Role
from holdfast.s3.budget import Budget
from holdfast.s3.sdk import connect
from holdfast.s3.store import Store
from holdfast.state import acquiring, held, releasing
from holdfast.state.delete import delete
from holdfast.state.held import HeldLock
from holdfast.state.read import read
from holdfast.state.write import Written, write
from holdfast.work import Work
from local_aws.server import LocalAws
from tests.support.documents import ADA, BOB, OPERATOR, lock_info, only_id, state
from tests.support.environment import set_environment
from tests.support.events import Context
from tests.support.free_port import free_port
from tests.support.s3_fault_proxy import S3FaultProxy
from tests.support.work import work

if TYPE_CHECKING:
    from pathlib import Path

    from mypy_boto3_s3 import S3Client

ACCOUNT = "123456789012"
"""The owner of the buckets. moto uses it as its own account, and neither server compares it."""


NAME = names.parse("network/prod")
KEY = NAME.state_key
LOCK_KEY = NAME.lock_key
READER = Caller("token:reader", (Grant(Role.READER, ("*",)),))
ONLY_OUTPUTS = Caller("token:outputs", (Grant(Role.OUTPUTS, ("*",)),))
ANOTHER = Caller("token:another", (Grant(Role.MAINTAINER, ("*",)),))
ONE = lock_info("one")
TWO = lock_info("two", who="bob@desk")
COMMAND = "0123456789abcdef" * 2
PROBE = names.parse(f"{names.RESERVED}/{COMMAND}")

Answer = dict[str, Any]
Handle = Callable[[dict[str, Any], Context], Answer]


def error(answer: Answer) -> tuple[int, str]:
    """Return the status and the code of a refusal."""
    document = json.loads(answer["body"])
    assert document["message"]
    return answer["statusCode"], document["error"]


def coded(*fields: object) -> str:
    """Return a made-up cursor of a page."""
    document = json.dumps(fields, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(document).decode().rstrip("=")


def decoded(cursor: str) -> list[Any]:
    """Return the fields of a cursor."""
    fields: list[Any] = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    return fields


def never_asked() -> Store:
    return Store(None, "none", "none", Budget(0))  # type: ignore[arg-type] # nobody sends anything by it


@dataclass(frozen=True)
class Server:
    """An S3 server: `direct` for other people and for a look at the result, or `proxied`."""

    direct: "S3Client"
    proxy: S3FaultProxy
    proxied: "S3Client"


@contextmanager
def noted(client: "S3Client", header: str) -> Iterator[list[tuple[str, str | None]]]:
    """Record the method and one header of every request of a client, including retries."""
    seen: list[tuple[str, str | None]] = []

    def note(request: Any, **_: object) -> None:
        value = request.headers.get(header)
        seen.append((request.method, value.decode() if isinstance(value, bytes) else value))

    client.meta.events.register("before-send.s3", note)
    try:
        yield seen
    finally:
        client.meta.events.unregister("before-send.s3", note)


@contextmanager
def function_environment(**settings: str) -> Iterator[None]:
    """Set the environment of a deployed function, with these variables in place of the usual ones."""
    with pytest.MonkeyPatch.context() as environment:
        set_environment(environment, **settings)
        yield


@contextmanager
def new_processes(*functions: str) -> Iterator[None]:
    """Let functions read their environment as new processes do, for as long as the context lasts."""
    before = _take_modules(functions)
    try:
        yield
    finally:
        _take_modules(functions)
        sys.modules.update(before)


def _take_modules(functions: tuple[str, ...]) -> dict[str, ModuleType]:
    of_functions = [name for name in sys.modules if name.partition(".")[0] in functions]
    return {name: sys.modules.pop(name) for name in of_functions}


@contextmanager
def started(server: Server, *functions: str, **settings: str) -> Iterator[dict[str, Any]]:
    """Start functions as Lambda does, with these settings and a new bucket; yield their handlers."""
    server.direct.create_bucket(Bucket=settings["HOLDFAST_BUCKET"], ObjectLockEnabledForBucket=True)
    settings.setdefault("AWS_ENDPOINT_URL_S3", server.proxy.endpoint)
    settings.setdefault("AWS_ENDPOINT_URL_STS", server.direct.meta.endpoint_url)
    with function_environment(**settings), new_processes(*functions):
        yield {name: import_module(f"{name}.handler").handle for name in functions}


def client(endpoint: str) -> "S3Client":
    """Return an S3 client as the product creates it, with made-up credentials."""
    return connect(boto3.Session("test", "test", region_name="us-east-1"), endpoint_url=endpoint)


@contextmanager
def _behind_proxy(endpoint: str) -> Iterator[Server]:
    with S3FaultProxy(endpoint) as proxy:
        yield Server(client(endpoint), proxy, client(proxy.endpoint))


@pytest.fixture(scope="session")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("ministack")
    with LocalAws(free_port(), folder) as aws, _behind_proxy(aws.endpoint) as server:
        yield server


@pytest.fixture(scope="session")
def moto() -> Iterator[Server]:
    moto_server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto_server.start()
    listed = S3Backend.list_object_versions

    def list_object_versions(backend: S3Backend, bucket_name: str, **asked: Any) -> Any:
        """A marker without a version is after all versions of its key, as on AWS; moto skips one entry."""
        key = asked.get("key_marker")
        if key and not asked.get("version_id_marker"):
            versions = listed(backend, bucket_name, max_keys=None)
            before = [each for kind in (versions[0], versions[2]) for each in kind if each.name <= key]
            last = max(before, key=lambda each: (each.name, -each.last_modified.timestamp()), default=None)
            asked |= {
                "key_marker": last and last.name,
                "version_id_marker": last and last.version_id,
            }
        return listed(backend, bucket_name, **asked)

    one_after_the_other = Lock()
    put = S3Response.put_object

    def put_object(response: S3Response) -> Any:
        """A condition holds until the object is stored, as on AWS; moto lets another request in between."""
        with one_after_the_other:
            return put(response)

    patch = pytest.MonkeyPatch()
    patch.setattr(S3Backend, "list_object_versions", list_object_versions)
    patch.setattr(S3Response, "put_object", put_object)
    try:
        host, port = moto_server.get_host_and_port()
        with _behind_proxy(f"http://{host}:{port}") as server:
            yield server
    finally:
        patch.undo()
        moto_server.stop()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test on moto, and on MiniStack too if it or its module has the mark `two_servers`."""
    if "server" in metafunc.fixturenames:
        both = metafunc.definition.get_closest_marker("two_servers")
        metafunc.parametrize("server", ["ministack", "moto"] if both else ["moto"], indirect=True)


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


@dataclass(frozen=True)
class Bucket:
    """A test's own bucket, versioned and with Object Lock, as a team's bucket."""

    name: str
    server: Server

    @property
    def s3(self) -> "S3Client":
        return self.server.direct

    @property
    def proxy(self) -> S3FaultProxy:
        """Makes the requests of `store` go wrong."""
        return self.server.proxy

    def store(self, *, seconds: float = 20.0) -> Store:
        """Return a store for one request, through the proxy."""
        return Store(self.server.proxied, self.name, ACCOUNT, Budget.seconds(seconds))

    def direct_store(self) -> Store:
        """Return a store for one request of somebody else, past the proxy."""
        return Store(self.s3, self.name, ACCOUNT, Budget.seconds(20))

    def history(self, prefix: str) -> list[tuple[str, str]]:
        """Return key and version ID of every version and delete marker."""
        listed = self.s3.list_object_versions(Bucket=self.name, Prefix=prefix)
        return [
            (entry["Key"], entry["VersionId"])
            for entry in (*listed.get("Versions", []), *listed.get("DeleteMarkers", []))
        ]

    def empty(self) -> None:
        """Remove every version, and check that every fault of the test has happened."""
        assert self.proxy.end_rules() == 0, "a fault that the test asked for did not happen"
        for key, version in self.history(""):
            self.s3.delete_object(
                Bucket=self.name, Key=key, VersionId=version, BypassGovernanceRetention=True
            )

    def delete_markers(self, key: str) -> int:
        listed = self.s3.list_object_versions(Bucket=self.name, Prefix=key)
        return sum(marker["Key"] == key for marker in listed.get("DeleteMarkers", []))

    def marker(self, key: str) -> str:
        """Return the version ID of a key's newest delete marker, or an ID that no marker has."""
        listed = self.s3.list_object_versions(Bucket=self.name, Prefix=key)
        markers = (each["VersionId"] for each in listed.get("DeleteMarkers", []) if each["Key"] == key)
        return next(markers, "none")

    def retain_everything(self) -> None:
        """Put every new version under the bucket's own retention, locks too."""
        self.s3.put_object_lock_configuration(
            Bucket=self.name,
            ObjectLockConfiguration={
                "ObjectLockEnabled": "Enabled",
                "Rule": {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 1}},
            },
        )

    def encrypt_with_kms(self) -> None:
        """Encrypt every new version with a KMS key, as the bucket of a team does by default.

        Both servers then report this for each version, but its ETag stays a digest of its bytes.
        """
        self._encrypt("aws:kms")

    def encrypt_with_s3_keys(self) -> None:
        """Encrypt every new version with keys that S3 manages, as with `key = "s3"`."""
        self._encrypt("AES256")

    def _encrypt(self, algorithm: Literal["aws:kms", "AES256"]) -> None:
        self.s3.put_bucket_encryption(
            Bucket=self.name,
            ServerSideEncryptionConfiguration={
                "Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": algorithm}}]
            },
        )

    def sent(self, header: str) -> AbstractContextManager[list[tuple[str, str | None]]]:
        """Record the method and one header of every request of `store`, including retries."""
        return noted(self.server.proxied, header)

    def bodies(self, key: str) -> list[bytes]:
        """Return every version of a key, oldest first."""
        versions = self.s3.list_object_versions(Bucket=self.name, Prefix=key).get("Versions", [])
        return [
            self.s3.get_object(Bucket=self.name, Key=key, VersionId=version["VersionId"])["Body"].read()
            for version in reversed(versions)
            if version["Key"] == key
        ]


@pytest.fixture
def bucket(server: Server) -> Iterator[Bucket]:
    name = f"holdfast-{uuid4().hex}"
    server.direct.create_bucket(Bucket=name, ObjectLockEnabledForBucket=True)
    yield Bucket(name, server)
    assert server.proxy.end_rules() == 0, "a fault that the test asked for did not happen"


@dataclass(frozen=True)
class Team:
    """People who work on one state, each through their own store and without faults."""

    bucket: Bucket

    def works(self, caller: Caller = ADA, **decided: Any) -> Work:
        """Return the work of a caller at the state, with the fields of the policy that are named."""
        return work(self.bucket.direct_store(), NAME, caller, **decided)

    def lock(self, body: bytes = ONE, caller: Caller = ADA) -> None:
        acquiring.acquire(self.works(caller), body)

    def unlock(self, body: bytes = ONE, caller: Caller = ADA) -> None:
        releasing.release(self.works(caller), body)

    def write(self, body: bytes, lock_id: str | None = "one", caller: Caller = ADA) -> Written:
        return write(self.works(caller, require_lock=True), body, lock_id)

    def write_through_faults(
        self, body: bytes, lock_id: str | None = "one", caller: Caller = ADA, *, seconds: float = 20.0
    ) -> Written:
        store = self.bucket.store(seconds=seconds)
        return write(work(store, NAME, caller, require_lock=True), body, lock_id)

    def write_unlocked(self, body: bytes, caller: Caller = ADA) -> Written:
        return write(work(self.bucket.store(), NAME, caller), body, None)

    def write_beside(self, body: bytes) -> None:
        """Write without a lock, as somebody else."""
        write(self.works(BOB), body, None)

    def put_beside(self, body: bytes) -> None:
        """Write as another program, which does not look at the lock."""
        self.bucket.s3.put_object(Bucket=self.bucket.name, Key=KEY, Body=body)

    def break_lock(self, lock_id: str = "one") -> None:
        releasing.release(self.works(OPERATOR), only_id(lock_id))

    def current(self) -> bytes | None:
        return read(self.works(READER))

    def versions(self) -> list[bytes]:
        return self.bucket.bodies(KEY)

    def written(self, *bodies: bytes) -> list[str]:
        """Write these versions under a lock, and release it; return their IDs."""
        self.lock()
        found = [self.write(body).version_id for body in bodies]
        self.unlock()
        return found

    def deleted(self, *bodies: bytes) -> None:
        """Write these versions of a state, by default two, and delete it."""
        self.written(*bodies or (state(1), state(2)))
        delete(self.works(OPERATOR))

    def version_ids(self) -> list[str]:
        """Return the state's versions, oldest first, without delete markers."""
        history = self.bucket.direct_store().versions(KEY)
        return [version.id for version in history if not version.is_delete_marker][::-1]

    def held(self) -> HeldLock | None:
        return held.read(self.bucket.direct_store(), NAME)

    def held_lock(self) -> HeldLock:
        """Return the held lock."""
        lock = self.held()
        assert lock is not None
        return lock

    def broken(self) -> None:
        self.break_lock(self.held_lock().info.id)

    def broken_and_taken(self) -> None:
        """Break the held lock, and acquire it for somebody else."""
        self.broken()
        self.lock(TWO, BOB)

    def broken_and_taken_again(self) -> None:
        """Break the lock of a verb, and acquire it for another run of the same request."""
        info = self.held_lock().info
        self.break_lock(info.id)
        acquiring.acquire_own(self.works(OPERATOR), info)

    def next_second(self) -> None:
        """Wait for the next second. S3's times have whole seconds."""
        limit = time.monotonic() + 5
        first = self.bucket.s3.head_bucket(Bucket=self.bucket.name)["ResponseMetadata"]["HTTPHeaders"]["date"]
        while time.monotonic() < limit:
            now = self.bucket.s3.head_bucket(Bucket=self.bucket.name)["ResponseMetadata"]["HTTPHeaders"][
                "date"
            ]
            if now != first:
                return
            time.sleep(0.05)
        pytest.fail("the server's clock stands still")


@pytest.fixture
def team(bucket: Bucket) -> Team:
    return Team(bucket)


@pytest.fixture(params=["off", "suspended"])
def unversioned(request: pytest.FixtureRequest, bucket: Bucket) -> Bucket:
    """A bucket with a wrong setup: its versioning was never on, or is suspended."""
    name = f"holdfast-{uuid4().hex}"
    bucket.s3.create_bucket(Bucket=name)
    if request.param == "suspended":
        bucket.s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
        bucket.s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Suspended"})
    return Bucket(name, bucket.server)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []

    def record(written: Callable[..., str], formatter: logging.Formatter, entry: logging.LogRecord) -> str:
        lines.append(written(formatter, entry))
        return lines[-1]

    for form in (JsonLine, LambdaPowertoolsFormatter):
        monkeypatch.setattr(form, "format", partialmethod(partial(record, form.format)))
    return lines


CLOUD_BUCKET, CLOUD_STAGING = "holdfast-cloud", "holdfast-cloud-staging"


@pytest.fixture(scope="module")
def cloud_function(moto: Server) -> Iterator[Handle]:
    settings = {
        "HOLDFAST_BUCKET": CLOUD_BUCKET,
        "HOLDFAST_STAGING_BUCKET": CLOUD_STAGING,
        "HOLDFAST_MAX_STATE_MB": "7",
        "HOLDFAST_PRESIGN_ENDPOINT": str(moto.direct.meta.endpoint_url),
    }
    with started(moto, "cloud", **settings) as handlers:
        Bucket(CLOUD_BUCKET, moto).encrypt_with_kms()
        moto.direct.create_bucket(Bucket=CLOUD_STAGING)
        yield handlers["cloud"]


@pytest.fixture
def cloud(cloud_function: Handle, moto: Server) -> Iterator[Handle]:
    yield cloud_function
    Bucket(CLOUD_BUCKET, moto).empty()
    Bucket(CLOUD_STAGING, moto).empty()

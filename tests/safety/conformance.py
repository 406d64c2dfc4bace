"""Compares the model of S3 with two S3 servers: both get the same requests, one after another.

The requests are those that `holdfast.s3.store` sends, with right, stale and foreign conditions and versions.
They use a few keys, one of which is a prefix of another, and the staging bucket without versions. Both sides
get the SDK's calls, so that the comparison includes the responses that `production` makes from the model.

The servers compute an ETag from the bytes alone, as S3 does with keys that it manages, even for `aws:kms`. So
the model is compared with `digests=True`. Without `digests` only the text of the ETag differs. S3's documents
only say that this ETag is not a digest of the bytes.

Not compared: requests that are in flight at the same time (in the model each takes effect as a whole), and
the ETag of a delete marker, which no response contains.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import boto3
from botocore.exceptions import ClientError
from hypothesis import Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from moto.server import ThreadedMotoServer

from holdfast.s3.sdk import connect
from holdfast.s3.store import CONTENT_TYPE
from local_aws.server import LocalAws
from tests.safety.figures import Figures
from tests.safety.model import s3
from tests.safety.model.production import MAIN, STAGING_BUCKET, AsksForMore, Clock, Replay, Told
from tests.safety.model.s3 import Answer, Bucket, Effect, Request
from tests.support.free_port import free_port

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

CarryOut = Callable[[Bucket, Request, int], tuple[Bucket, Answer, Effect | None]]
"""The model: from a bucket, a request and the time to the next bucket, the answer and the effect."""

_KEYS: Final = ("a.tfstate", "a.tfstate.tflock", "a/b.tfstate")
_PREFIXES: Final = (*_KEYS, "a", "a/", "b")
_BODIES: Final = (b"{}", b'{"serial":1}', b"")
_METADATA: Final[Sequence[Mapping[str, str]]] = ({}, {"locked-by": "token:ada", "sha256": "00"})
_FOREIGN_ETAG: Final = '"00000000000000000000000000000000"'
_CURRENT: Final = 0
_OTHERWISE: Final[Mapping[str, Sequence[tuple[object, object]]]] = {
    # A GetObject of a delete marker by its version: S3's user guide ("Working with delete markers") says 405.
    # The model and MiniStack answer 405, moto's server answers that the version does not exist.
    "moto": [
        (
            {"status": 405, "code": "MethodNotAllowed"},
            {"status": 404, "code": "NoSuchVersion"},
        )
    ],
}
"""Known differences: the answer of the model, and the answer of the server."""
_EPOCH: Final = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class Step:
    """A request, before the servers have given the versions their IDs.

    `operation` is the SDK's name. `key` is the prefix for ListObjectVersions. `first_byte`: a GetObject of
    the first byte only. `version` counts a key's versions from 1; a number that is too high gives the version
    ID of another object. `if_match` is the number of the version whose ETag is sent; 0 is the current
    version. If that version does not exist, the ETag is made up. `staged`: the request goes to the bucket
    without versions.
    """

    operation: str
    key: str
    first_byte: bool = False
    version: int | None = None
    if_match: int | None = None
    if_none_match: bool = False
    body: bytes = b""
    metadata: tuple[tuple[str, str], ...] = ()
    staged: bool = False

    def __str__(self) -> str:
        said = [self.operation, self.key]
        said += ["staged"] if self.staged else []
        said += ["Range=bytes=0-0"] if self.first_byte else []
        said += [f"VersionId={self.version}"] if self.version is not None else []
        said += [f"IfMatch={self.if_match or 'current'}"] if self.if_match is not None else []
        said += ["IfNoneMatch=*"] if self.if_none_match else []
        said += [self.body.decode(), str(dict(self.metadata))] if self.operation == "PutObject" else []
        return " ".join(said)


def _steps() -> st.SearchStrategy[Step]:
    keys = st.sampled_from((_KEYS[0], *_KEYS))  # the first key more often, so that it gets more versions
    versions = st.integers(1, 5)
    matched = st.just(_CURRENT) | st.integers(_CURRENT, 5)
    bodies = st.sampled_from(_BODIES)
    metadata = st.sampled_from(_METADATA).map(lambda pairs: tuple(sorted(pairs.items())))
    put = {"body": bodies, "metadata": metadata}
    return st.one_of(
        st.builds(Step, st.just("PutObject"), keys, if_none_match=st.just(True), **put),
        st.builds(Step, st.just("PutObject"), keys, if_match=matched, **put),
        st.builds(Step, st.just("DeleteObject"), keys, if_match=matched),
        st.builds(Step, st.just("DeleteObject"), keys, version=versions),
        st.builds(Step, st.just("GetObject"), keys, version=st.none() | versions),
        st.builds(Step, st.just("GetObject"), keys, first_byte=st.just(True)),
        st.builds(Step, st.just("ListObjectVersions"), st.sampled_from(_PREFIXES)),
        st.builds(Step, st.just("PutObject"), keys, body=bodies, staged=st.just(True)),
        st.builds(Step, st.sampled_from(("GetObject", "DeleteObject")), keys, staged=st.just(True)),
    )


def _sequences() -> st.SearchStrategy[list[Step]]:
    # Lists of lists are longer on average than lists, and shrink as well as these.
    few = st.lists(_steps(), min_size=1, max_size=6)
    return st.lists(few, min_size=1, max_size=8).map(lambda lists: list(chain.from_iterable(lists)))


@dataclass(frozen=True, slots=True)
class Server:
    """An S3 server. `foreign` is the version ID of an object that no sequence uses."""

    name: str
    client: "S3Client"
    foreign: str

    def new_bucket(self) -> str:
        """Create a versioned bucket for one sequence: moto's server is slow if a bucket has many keys."""
        name = f"holdfast-{uuid4().hex}"
        self.client.create_bucket(Bucket=name, ObjectLockEnabledForBucket=True)
        return name

    def new_staging_bucket(self) -> str:
        name = f"holdfast-{uuid4().hex}"
        self.client.create_bucket(Bucket=name)
        return name


class DisagreementError(AssertionError):
    """The model and a server answer differently."""


class _Side:
    """The model or a server, with its own IDs for the versions of a sequence."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._versions: dict[str, list[str]] = {key: [] for key in _KEYS}
        self._since: dict[tuple[str, str], datetime] = {}
        self._told: dict[tuple[str, str], datetime] = {}

    def version_id(self, key: str, number: int, foreign: str) -> str:
        """Return the ID of a version; `foreign` if the key never had a version with this number."""
        versions = self._versions[key]
        return versions[number - 1] if number <= len(versions) else foreign

    def number(self, key: str, version_id: str) -> int:
        """Return the number of a version among all versions of its key."""
        if version_id not in self._versions[key]:
            raise DisagreementError(f"{self.name} names a version of {key} that nobody created")
        return self._versions[key].index(version_id) + 1

    def made(self, key: str, version_id: str, since: datetime) -> int:
        """Note a new version, and a time before its creation."""
        if (key, version_id) in self._since:
            raise DisagreementError(f"{self.name} has used a version ID of {key} twice")
        self._since[key, version_id] = since
        self._versions[key].append(version_id)
        return len(self._versions[key])

    def told(self, key: str, version_id: str, last_modified: datetime) -> None:
        """Check a version's time in a response, to the second. It must stay the same in all responses."""
        whole, since = last_modified.replace(microsecond=0), self._since[key, version_id]
        if not since <= whole <= datetime.now(UTC):
            raise DisagreementError(f"{self.name} dates a version {whole} that was made after {since}")
        if self._told.setdefault((key, version_id), whole) != whole:
            raise DisagreementError(f"{self.name} dates a version {whole} and then otherwise")

    def made_count(self, key: str) -> int:
        """Return how many versions and delete markers the key ever had."""
        return len(self._versions[key])


class _Sequence:
    def __init__(self, server: Server, carry_out: CarryOut) -> None:
        self._server = server
        self._carry_out = carry_out
        self._bucket = Bucket(digests=True)
        self._name = server.new_bucket()
        self._staging = ""
        self._model, self._real = _Side("the model"), _Side(server.name)

    def run(self, steps: Sequence[Step]) -> None:
        """Compare every answer, and at the end the whole content of the buckets."""
        if any(step.staged for step in steps):
            self._staging = self._server.new_staging_bucket()
        for step in steps:
            self._compare(step)
        self._compare(Step("ListObjectVersions", ""))
        for key in {step.key for step in steps if step.staged}:
            self._compare(Step("GetObject", key, staged=True))
        for key in {step.key for step in steps if not step.staged} & set(_KEYS):
            self._compare(Step("GetObject", key, first_byte=True))
            self._compare(Step("GetObject", key))
            for number in range(1, self._model.made_count(key) + 1):
                self._compare(Step("GetObject", key, version=number))

    def _compare(self, step: Step) -> None:
        etag = self._etag(step)
        modelled = self._ask_model(step, etag)
        real = self._ask_server(step, etag)
        if modelled != real and (modelled, real) not in _OTHERWISE.get(self._server.name, ()):
            raise DisagreementError(f"{step}\n  the model: {modelled}\n  {self._server.name}: {real}")

    def _etag(self, step: Step) -> str | None:
        """Return the ETag for If-Match. The server has the same ETags, because every answer was compared."""
        if step.if_match is None:
            return None
        key = self._bucket.key(step.key)
        current = self._bucket.current(key.name)
        entries = [current] if step.if_match == _CURRENT and current else key.entries
        named = [e.etag for e in entries if e is current or e.version == step.if_match]
        return (named and named[0]) or _FOREIGN_ETAG

    def _request(self, step: Step, side: _Side, etag: str | None, foreign: str) -> dict[str, Any]:
        """Return the parameters of the SDK's call, as `holdfast.s3.store` sends them."""
        if step.operation == "ListObjectVersions":
            return {"Prefix": step.key, "MaxKeys": 1000}
        request: dict[str, Any] = {"Key": step.key}
        if step.first_byte:
            request["Range"] = "bytes=0-0"
        if step.version is not None:
            request["VersionId"] = side.version_id(step.key, step.version, foreign)
        if etag is not None:
            request["IfMatch"] = etag
        if step.if_none_match:
            request["IfNoneMatch"] = "*"
        if step.operation == "PutObject":
            request |= {
                "Body": step.body,
                "Metadata": dict(step.metadata),
                "ContentType": CONTENT_TYPE,
                "ChecksumAlgorithm": "SHA256",
            }
        return request

    def _ask_model(self, step: Step, etag: str | None) -> Mapping[str, object]:
        clock = Clock()
        request = self._request(step, self._model, etag, "never")
        request |= {"Bucket": STAGING_BUCKET} if step.staged else {}
        asking = Replay((), clock)
        with suppress(AsksForMore):
            _call(asking, step, request)
        if not asking.asked:
            raise ValueError("the replacement of the SDK's client has recorded no request")
        self._bucket, answer, effect = self._carry_out(self._bucket, asking.asked[MAIN], 0)
        if effect and effect.added and step.operation == "DeleteObject":
            self._model.made(step.key, effect.added.version_id, _EPOCH)
        answering = Replay((Told(answer, 0, MAIN),), clock)
        call = partial(_call, answering, step, request)
        return self._observed(step, self._model, call, answer.status, _EPOCH)

    def _ask_server(self, step: Step, etag: str | None) -> Mapping[str, object]:
        since = datetime.now(UTC).replace(microsecond=0)
        request = self._request(step, self._real, etag, self._server.foreign)
        request["Bucket"] = self._staging if step.staged else self._name

        def call() -> Mapping[str, Any]:
            answer = _call(self._server.client, step, request)
            if step.operation == "DeleteObject" and answer.get("DeleteMarker") and step.version is None:
                self._real.made(step.key, answer["VersionId"], since)
            return answer

        return self._observed(step, self._real, call, None, since)

    def _observed(
        self,
        step: Step,
        side: _Side,
        call: Callable[[], Mapping[str, Any]],
        status: int | None,
        since: datetime,
    ) -> Mapping[str, object]:
        """Return the content of an answer, with version numbers in place of the side's own IDs and times."""
        try:
            answer = call()
        except ClientError as error:
            return {
                "status": error.response["ResponseMetadata"]["HTTPStatusCode"],
                "code": error.response["Error"]["Code"],
            }
        observed: dict[str, object] = {"status": status or answer["ResponseMetadata"]["HTTPStatusCode"]}
        match step.operation:
            case "PutObject" if step.staged:
                observed["etag"] = answer["ETag"]
                observed["version"] = answer.get("VersionId")
            case "PutObject":
                observed["version"] = side.made(step.key, answer["VersionId"], since)
                observed["etag"] = answer["ETag"]
            case "GetObject" if step.staged:
                observed |= {name: answer.get(name) for name in ("ETag", "ContentLength", "VersionId")}
                observed["body"] = answer["Body"].read()
            case "GetObject":
                observed["version"] = side.number(step.key, answer["VersionId"])
                named = ("ETag", "ContentLength", "ContentRange", "Metadata")
                observed |= {name: answer.get(name) for name in named}
                side.told(step.key, answer["VersionId"], answer["LastModified"])
                observed["body"] = answer["Body"].read()
                date = parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
                observed["dated before its time"] = date < answer["LastModified"].replace(microsecond=0)
            case "ListObjectVersions":
                for which in ("Versions", "DeleteMarkers"):
                    observed[which] = [self._listed(side, entry) for entry in answer.get(which, [])]
                observed["IsTruncated"] = answer["IsTruncated"]
            case _:
                pass  # the response to a DeleteObject says nothing else
        return observed

    def _listed(self, side: _Side, entry: Mapping[str, Any]) -> tuple[str, int, bool]:
        key, version_id = entry["Key"], entry["VersionId"]
        number = side.number(key, version_id)
        side.told(key, version_id, entry["LastModified"])
        return key, number, entry["IsLatest"]


def _call(client: Any, step: Step, request: Mapping[str, Any]) -> Mapping[str, Any]:
    method = {
        "PutObject": "put_object",
        "GetObject": "get_object",
        "DeleteObject": "delete_object",
        "ListObjectVersions": "list_object_versions",
    }[step.operation]
    answer: Mapping[str, Any] = getattr(client, method)(**request)
    return answer


@contextmanager
def servers() -> Iterator[tuple[Server, ...]]:
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    log = logging.getLogger("werkzeug")  # moto's server logs every request
    level = log.level
    log.setLevel(logging.ERROR)
    moto.start()
    try:
        host, port = moto.get_host_and_port()
        with TemporaryDirectory() as folder, LocalAws(free_port(), Path(folder)) as aws:
            yield _server("MiniStack", aws.endpoint), _server("moto", f"http://{host}:{port}")
    finally:
        moto.stop()
        log.setLevel(level)


def _server(name: str, endpoint: str) -> Server:
    session = boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1")
    server = Server(name, connect(session, endpoint_url=endpoint), "")
    made = server.client.put_object(Bucket=server.new_bucket(), Key="foreign", Body=b"")
    return replace(server, foreign=made["VersionId"])


def compare(
    against: Sequence[Server],
    *,
    sequences: int,
    seconds: float,
    seed: int,
    say: Callable[[str], None],
    carry_out: CarryOut = s3.carry_out,
) -> Figures:
    """Compare a model with running servers; otherwise as `run`."""
    until = time.monotonic() + seconds
    told = time.monotonic()
    done = requests = 0
    failed: tuple[Sequence[Step], DisagreementError] | None = None

    @seeded(seed)
    @settings(
        max_examples=sequences,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),  # the phase "explain" takes longer than all the others
        report_multiple_bugs=False,
        print_blob=False,
    )
    @given(_sequences())
    def agree(steps: list[Step]) -> None:
        nonlocal done, requests, failed, told
        if failed is None and time.monotonic() > until:
            return
        done += 1
        requests += len(steps)
        if failed is None and time.monotonic() > told + 10:
            told = time.monotonic()
            say(f"conformance: {done} sequences, {requests} requests so far")
        try:
            for server in against:
                _Sequence(server, carry_out).run(steps)
        except DisagreementError as found:
            failed = (steps, found)  # the last failure that hypothesis finds is the shortest
            raise

    try:
        agree()
    except DisagreementError:
        if failed is None:
            raise
        steps, found = failed
        say(f"the model of S3 and a server disagree (seed {seed}), after these requests:")
        for step in steps:
            say(f"  {step}")
        say(f"at {found}")
        return Figures(violations=1)
    say(f"conformance: {done} sequences, {requests} requests: the model of S3 and the servers agree")
    return Figures(sequences=done)


def run(*, sequences: int, seconds: float, seed: int, say: Callable[[str], None]) -> Figures:
    """Compare the model with both servers, in at most so many `sequences`."""
    with servers() as both:
        return compare(both, sequences=sequences, seconds=seconds, seed=seed, say=say)

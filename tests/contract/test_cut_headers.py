"""A cut response counts as no response, wherever it is cut: in its status line, headers or body.

The SDK takes the end of the connection for the end of the headers. So the tests cut each response before,
within and after each of its headers. The next response is whole.
"""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, TypeVar

import pytest

from holdfast import names
from holdfast.errors import StorageRefused
from holdfast.s3 import retry
from holdfast.s3.budget import Budget
from holdfast.s3.objects import (
    Deleted,
    IfAbsent,
    IfMatch,
    Object,
    ObjectVersion,
    PreconditionFailed,
    Protected,
    Stored,
)
from holdfast.s3.store import Store
from tests.contract.conftest import ACCOUNT, Bucket, client
from tests.support.fault_relay import Exchange, Fault, Injected, Relay, Request

KEY: Final = names.parse("cut").state_key
METADATA: Final = {"sha256": "0" * 64, "serial": "123", "lineage": "a-lineage", "over-serial": "122"}

T = TypeVar("T")

pytestmark = [
    pytest.mark.two_servers,
    # The SDK's reading of a time of which only "G" of "GMT" came.
    pytest.mark.filterwarnings("ignore::dateutil.parser.UnknownTimezoneWarning"),
]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry at once: these tests cut thousands of responses."""

    class Always:
        def uniform(self, *_: float) -> float:
            return 0.0

    monkeypatch.setattr(retry, "_JITTER", Always())


def open_store(endpoint: str, bucket: str) -> Store:
    return Store(client(endpoint), bucket, ACCOUNT, Budget.seconds(120))


def places(answer: bytes) -> list[int]:
    """Return the numbers of bytes after which to cut: around and within each line, its name and its value."""
    found = {len(answer) - 1}
    begin = 0
    for line in answer.splitlines(keepends=True):
        value = line.find(b": ") + 2
        end = len(line.rstrip(b"\r\n"))
        found |= {begin + at for at in (0, 3, value - 1, value, value + 1, end // 2, end - 1, end, end + 1)}
        begin += len(line)
    return sorted(place for place in found if place < len(answer))


def cut_everywhere(
    bucket: Bucket, ask: Callable[[Store, int], T], *, name: str = "", number: int = 0
) -> Iterator[tuple[int, T]]:
    """Get the whole response, then once for each place where it can end.

    `ask` is told how many bytes come of the first answer, or of the one with `number`. `name` is of the
    bucket that is asked; by default it is `bucket`.
    """
    answers: list[bytes] = []
    faults: list[Injected | None] = []

    def decide(_: Request) -> Injected | None:
        return faults.pop() if faults else None

    def heard(exchange: Exchange) -> None:
        answers.append(exchange.answer)

    with Relay(str(bucket.s3.meta.endpoint_url), decide, heard=heard) as relay:
        asking = open_store(relay.endpoint, name or bucket.name)
        yield -1, ask(asking, -1)
        relay.settle()
        for after in places(answers[number]):
            faults[:] = [Injected(Fault.HALF_THE_HEADERS, after=after), *[None] * number]
            yield after, ask(asking, after)
            assert not faults


def found(bucket: Bucket) -> Object:
    read = bucket.direct_store().read(KEY)
    assert read is not None
    return read


@pytest.mark.parametrize("is_stored", [True, False], ids=["a state", "a missing key"])
def test_what_is_read_is_whole_with_all_that_is_known_of_it_or_asked_for_again(
    bucket: Bucket, is_stored: bool
) -> None:
    """A missing key is missing only if S3 says so itself."""
    if is_stored:
        bucket.direct_store().write(KEY, b'{"serial":123}', IfAbsent(), metadata=METADATA)
        version = found(bucket).version
        assert (version.size, version.metadata) == (14, METADATA)
    whole = bucket.direct_store().read(KEY)
    for after, head in cut_everywhere(bucket, lambda asking, _: asking.read_version(KEY)):
        assert head == (whole and whole.version), after
    for after, read in cut_everywhere(bucket, lambda asking, _: asking.read(KEY)):
        assert (read and (read.version, read.body)) == (whole and (whole.version, whole.body)), after
        assert read is None or read.read_at.tzinfo is not None


def test_a_bucket_that_is_gone_never_reads_as_a_missing_key(bucket: Bucket) -> None:
    def refused(asking: Store, _: int) -> str:
        with pytest.raises(StorageRefused) as caught:
            asking.read_version(KEY)
        return str(caught.value)

    for after, message in cut_everywhere(bucket, refused, name="holdfast-gone"):
        assert "NoSuchBucket" in message, after


@pytest.mark.parametrize("number", [0, 1], ids=["of the first byte", "of the whole"])
def test_a_head_of_zero_bytes_is_whole_too_but_for_its_metadata(bucket: Bucket, number: int) -> None:
    bucket.s3.put_object(Bucket=bucket.name, Key=KEY, Body=b"", Metadata={"a": "b"})
    whole = found(bucket).version
    for after, head in cut_everywhere(bucket, lambda asking, _: asking.read_version(KEY), number=number):
        assert head is not None, after
        # No header after the metadata would show the cut. An object of zero bytes is never Holdfast's.
        assert (head.etag, head.version_id, head.size, head.last_modified) == (
            *(whole.etag, whole.version_id, 0, whole.last_modified),
        ), after
        assert number == 1 or head == whole, after


def test_a_write_is_told_with_what_a_read_will_tell_or_not_at_all(bucket: Bucket) -> None:
    bucket.encrypt_with_kms()

    def write(asking: Store, after: int) -> tuple[Stored | PreconditionFailed, ObjectVersion | None]:
        key = f"{KEY}.{after}"
        return asking.write(key, b"{}", IfAbsent(), metadata=METADATA), bucket.direct_store().read_version(
            key
        )

    outcomes = []
    for after, (stored, head) in cut_everywhere(bucket, write):
        assert head is not None, after
        assert head.has_own_etag
        if isinstance(stored, Stored):
            # The header that names the KMS key can be cut off. Then the version has no ETag of its own.
            unsure = replace(
                head, last_modified=stored.version.last_modified, has_own_etag=stored.version.has_own_etag
            )
            assert stored.version == unsure, after
        outcomes.append(type(stored))
    assert outcomes[0] is Stored
    assert outcomes[1] is PreconditionFailed


def test_a_write_that_was_refused_is_refused_wherever_the_answer_ends(bucket: Bucket) -> None:
    first = bucket.direct_store().write(KEY, b"{}", IfAbsent(), metadata={})
    assert isinstance(first, Stored)
    for condition in (IfAbsent(), IfMatch('"0"')):

        def write(
            asking: Store, _: int, condition: IfAbsent | IfMatch = condition
        ) -> Stored | PreconditionFailed:
            return asking.write(KEY, b"[]", condition, metadata={})

        for after, outcome in cut_everywhere(bucket, write):
            assert outcome == PreconditionFailed(), after
    assert bucket.bodies(KEY) == [b"{}"]


# --- answers as AWS sends them -------------------------------------------------------------------------

PUT_ANSWER: Final = (
    b"HTTP/1.1 200 OK\r\n"
    b"Connection: close\r\n"
    b"x-amz-id-2: LriYPLdmOdAiIfgSm/F1YsViT1LW94\r\n"
    b"x-amz-request-id: 0A49CE4060975EAC\r\n"
    b"Date: Wed, 12 Oct 2022 17:50:00 GMT\r\n"
    b"x-amz-version-id: 43jfkodU8493jnFJD9fjj3HHNVfdsQUI\r\n"
    b"x-amz-server-side-encryption: aws:kms\r\n"
    b'ETag: "fbacf535f27731c9771645a398633287"\r\n'
    b"x-amz-checksum-sha256: LXEWQrcmsEQBYnyp+6wy9chTD7GQPMTbAiWHF5IaSIE=\r\n"
    b"Content-Length: 0\r\n"
    b"Server: AmazonS3\r\n"
    b"\r\n"
)
"""Headers in the order of S3's documents, without `Connection`, so that no connection is reused here."""


def error_answer(status: int, code: str) -> bytes:
    """An error as S3 sends it: its body in chunks."""
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Key>a</Key></Error>'.encode()
    return (
        b"HTTP/1.1 %d Error\r\nx-amz-request-id: 0A49CE4060975EAC\r\nContent-Type: application/xml\r\n"
        b"Transfer-Encoding: chunked\r\nDate: Wed, 12 Oct 2022 17:50:00 GMT\r\nServer: AmazonS3\r\n\r\n"
        b"%x\r\n%b\r\n0\r\n\r\n"
    ) % (status, len(body), body)


@contextmanager
def answering(next_answer: Callable[[], bytes]) -> Iterator[Store]:
    """Run an S3 that gives made-up responses, each on a separate connection, which then ends."""

    def serve() -> None:
        with suppress(OSError):  # the end of the test
            while True:
                peer, _ = server.accept()
                with peer, peer.makefile("rb") as stream:
                    length = 0
                    while (line := stream.readline().lower()) not in (b"\r\n", b""):
                        if line.startswith(b"content-length:"):
                            length = int(line.partition(b":")[2])
                        if line.startswith(b"expect:"):
                            peer.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                    stream.read(length)
                    peer.sendall(next_answer())

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield open_store(f"http://127.0.0.1:{server.getsockname()[1]}", "bucket")
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def cut_then_whole(whole: bytes, ask: Callable[[Store], T], *, then: bytes = b"") -> Iterator[tuple[int, T]]:
    """Get a response that is cut, for each place. The retry gets the whole response, or another response."""
    cut: list[bytes] = []
    with answering(lambda: cut.pop() if cut else then or whole) as asking:
        for after in places(whole):
            cut[:] = [whole[:after]]
            yield after, ask(asking)
            assert not cut


def test_a_cut_refusal_never_reads_as_a_decision() -> None:
    gone = error_answer(404, "NoSuchBucket")
    for ask in (
        lambda asking: asking.read_version(KEY),
        lambda asking: asking.read(KEY),
        lambda asking: asking.write(KEY, b"{}", IfMatch('"0"'), metadata={}),
        lambda asking: asking.delete(KEY, IfMatch('"0"')),
        lambda asking: asking.remove_version(KEY, "one"),
    ):

        def refused(asking: Store, ask: Callable[[Store], object] = ask) -> str:
            with pytest.raises(StorageRefused) as caught:
                ask(asking)
            return str(caught.value)

        for after, message in cut_then_whole(gone, refused):
            assert "404 NoSuchBucket" in message, after


@pytest.mark.parametrize(
    ("status", "code", "ask", "decided"),
    [
        (404, "NoSuchKey", lambda asking: asking.read_version(KEY), None),
        (404, "NoSuchKey", lambda asking: asking.read(KEY), None),
        (404, "NoSuchVersion", lambda asking: asking.read(KEY, "one"), None),
        (405, "MethodNotAllowed", lambda asking: asking.read(KEY, "one"), None),
        (404, "NoSuchKey", lambda asking: asking.delete(KEY, IfMatch('"0"')), Deleted()),
        (412, "PreconditionFailed", lambda asking: asking.delete(KEY, IfMatch('"0"')), PreconditionFailed()),
        (403, "AccessDenied", lambda asking: asking.remove_version(KEY, "one"), Protected()),
    ],
)
def test_a_decision_in_chunks_is_whole_or_asked_for_again(
    status: int, code: str, ask: Callable[[Store], object], decided: object
) -> None:
    for after, outcome in cut_then_whole(error_answer(status, code), ask):
        assert outcome == decided, after


def test_a_passing_refusal_that_is_cut_is_not_final() -> None:
    """Also where its status alone would be: 403 for a version reads as protected."""
    passing = error_answer(403, "RequestTimeTooSkewed")
    then = error_answer(404, "NoSuchVersion")
    for after, outcome in cut_then_whole(
        passing, lambda asking: asking.remove_version(KEY, "one"), then=then
    ):
        assert outcome == Deleted(), after


TOLD: Final = Stored(
    ObjectVersion(
        '"fbacf535f27731c9771645a398633287"',
        "43jfkodU8493jnFJD9fjj3HHNVfdsQUI",
        *(2, datetime(2022, 10, 12, 17, 50, tzinfo=UTC), METADATA, True),
    )
)
"""The parsed content of `PUT_ANSWER`."""


def put(asking: Store) -> Stored | PreconditionFailed:
    return asking.write(KEY, b"{}", IfAbsent(), metadata=METADATA)


def moved_to_the_end(name: bytes) -> bytes:
    """Return `PUT_ANSWER` with one of its headers behind those that S3 always sends."""
    (line,) = [line for line in PUT_ANSWER.splitlines(keepends=True) if line.startswith(name)]
    return PUT_ANSWER.replace(line, b"").replace(b"Server: AmazonS3\r\n", line)


def test_a_write_in_the_order_of_aws_is_told_whole_or_asked_for_again() -> None:
    def write(asking: Store) -> tuple[Stored | PreconditionFailed, int]:
        before = len(asking.budget.requests)
        return put(asking), len(asking.budget.requests) - before

    for after, (stored, requests) in cut_then_whole(PUT_ANSWER, write):
        assert stored == TOLD, after
        assert requests == (1 if b"Content-Length: 0" in PUT_ANSWER[:after] else 2), after


def test_an_etag_that_comes_last_is_whole_or_asked_for_again() -> None:
    for after, stored in cut_then_whole(moved_to_the_end(b"ETag"), put):
        assert stored == TOLD, after


def test_a_write_of_which_the_encryption_comes_last_and_is_cut_counts_and_has_no_etag_of_its_own() -> None:
    whole = moved_to_the_end(b"x-amz-server-side-encryption")
    unsure = Stored(replace(TOLD.version, has_own_etag=False))
    outcomes = dict(cut_then_whole(whole, put))
    told = whole.index(b"aws:kms") + len(b"aws:kms")
    always = whole.index(b"Content-Length: 0") + len(b"Content-Length: 0")
    assert outcomes == {after: TOLD if after >= told or after < always else unsure for after in outcomes}
    assert unsure in outcomes.values()


def test_a_version_that_stands_behind_all_that_s3_always_sends_can_be_cut_unseen() -> None:
    """Pin a known limit. No document of S3 shows the headers in this order."""
    otherwise = moved_to_the_end(b"x-amz-version-id")
    cut = otherwise[: otherwise.index(b"nFJD")]
    with answering(lambda: cut) as asking:
        assert put(asking) == Stored(replace(TOLD.version, version_id="43jfkodU8493j"))


@pytest.mark.parametrize(
    ("kind", "entry", "ask", "told"),
    [
        (
            "ListVersionsResult",
            "<Version><Key>{key}</Key><VersionId>one</VersionId><IsLatest>true</IsLatest>{time}</Version>",
            lambda asking: [version.id for version in asking.versions(KEY)],
            ["one"],
        ),
        (
            "ListBucketResult",
            "<Contents><Key>{key}</Key>{time}<Size>7</Size></Contents>",
            lambda asking: [(entry.key, entry.size) for entry in asking.keys_page("states/").keys],
            [(KEY, 7)],
        ),
    ],
    ids=["of the history", "of keys"],
)
def test_a_page_that_is_cut_is_asked_for_again(
    kind: str, entry: str, ask: Callable[[Store], object], told: object
) -> None:
    listed = entry.format(key=KEY, time="<LastModified>2022-10-12T17:50:00.000Z</LastModified>")
    body = f"<{kind}><IsTruncated>false</IsTruncated>{listed}</{kind}>".encode()
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nServer: AmazonS3\r\n\r\n"
    whole = head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    for after, read in cut_then_whole(whole, ask):
        assert read == told, after

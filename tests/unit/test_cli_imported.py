"""The client of the route for imported versions."""

import gzip
import os
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from holdfast_cli.api import http
from holdfast_cli.api.imported_versions import import_version
from holdfast_cli.api.management import Api, ApiError
from holdfast_cli.errors import CommandError
from tests.support import api_stub
from tests.support.api_stub import ApiStub, Reply
from tests.support.management import NAME, answer, refusal

BODY = b'{"version": 4, "serial": 12}'
AT = datetime(2024, 2, 29, 12, tzinfo=UTC)


@pytest.fixture
def stub() -> Iterator[ApiStub]:
    with api_stub.running() as running:
        yield running


@pytest.fixture
def api(stub: ApiStub) -> Api:
    return Api(stub.address, http.basic("id", "secret"), "the test")


def stored(*, created: bool) -> Reply:
    return answer({"name": NAME, "number": "12-0123456789abcdef", "created": created})


def test_a_version_is_sent_compressed_with_its_claims_and_a_lost_answer_is_asked_for_again(
    stub: ApiStub, api: Api
) -> None:
    stub.reply(Reply(lost=True), stored(created=True), stored(created=False))

    assert import_version(api, NAME, BODY, author="ada b", time=AT, source="s3://old")
    assert not import_version(api, NAME, BODY)

    first, again, plain = stub.asked
    assert first == again
    assert (first.method, gzip.decompress(first.body)) == ("PUT", BODY)
    assert (first.headers["content-encoding"], first.headers["content-type"]) == (
        "gzip",
        "application/octet-stream",
    )
    query = "author=ada+b&time=2024-02-29T12%3A00%3A00Z&from=s3%3A%2F%2Fold"
    assert first.path == f"/manage/v1/imported/{NAME}?{query}"
    assert plain.path == f"/manage/v1/imported/{NAME}"


def test_a_refused_version_is_told(stub: ApiStub, api: Api) -> None:
    stub.reply(refusal(400, "invalid_state", "It has no serial."))
    with pytest.raises(ApiError, match="no serial"):
        import_version(api, NAME, BODY)


def test_a_version_that_no_request_carries_is_not_sent(stub: ApiStub, api: Api) -> None:
    with pytest.raises(CommandError, match=f"{NAME} has 5000000 bytes"):
        import_version(api, NAME, os.urandom(5_000_000))
    assert stub.asked == []

"""A search through many states on a deployed stack, beside a client that applies."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from holdfast.state.find import MAX_STATE
from tests.support import documents
from tests.support.http_client import Client
from tests.support.team import Team

STATES = 1500
"""More than the two pages of a list of states: the benchmark `console` searches 5,000."""
LONGEST_PAGE = 29
"""Seconds: a page ends after three, but its function may have to start, and the machine may be busy."""


@pytest.fixture
def many(loose: Team, state: str) -> Iterator[str]:
    """Return the beginning of the names of many states with a resource each; one is too large to search."""
    resource = {"mode": "managed", "type": "aws_instance", "name": "web", "instances": [{"attributes": {}}]}
    body = json.dumps({**json.loads(documents.state(1)), "resources": [resource]}).encode()
    prefix = f"{state}/readable/"
    keys = [f"states/{prefix}{number:04}.tfstate" for number in range(STATES)]
    with ThreadPoolExecutor(4) as writers:
        list(writers.map(loose.put, keys, [body] * (STATES - 1) + [b" " * (MAX_STATE + 1)]))
    yield prefix
    # Other tests list the whole bucket.
    listed = loose.s3.get_paginator("list_object_versions").paginate(
        Bucket=loose.bucket, Prefix=f"states/{state}/"
    )
    for page in listed:
        loose.s3.delete_objects(
            Bucket=loose.bucket,
            Delete={
                "Objects": [
                    {"Key": version["Key"], "VersionId": version["VersionId"]}
                    for version in [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
                ],
                "Quiet": True,
            },
        )


def pages(client: Client, **wanted: str) -> Iterator[tuple[Any, float]]:
    """Yield each page of a search, with the seconds that it took."""
    cursor: str | None = None
    while True:
        sent = json.dumps({**wanted, **({"cursor": cursor} if cursor else {})}).encode()
        began = time.monotonic()
        answer = client.request("POST", "/manage/v1/find", sent)
        assert answer.status == 200, answer
        page = answer.json()
        yield page, time.monotonic() - began
        cursor = page["next"]
        if cursor is None:
            return


def test_pages_of_a_search_end_in_time_and_every_apply_beside_it_succeeds(
    loose: Team, state: str, many: str
) -> None:
    searched = Event()

    def apply() -> int:
        serial = 0
        while not searched.is_set():
            serial += 1
            loose.write(f"{state}/applied", documents.state(serial))
        return serial

    with ThreadPoolExecutor(1) as beside:
        applied = beside.submit(apply)
        try:
            found = list(pages(loose.client("reader"), type="aws_nothing", prefix=many))
        finally:
            searched.set()
        assert applied.result() > len(found)

    assert sum(page["searched"] for page, _ in found) == STATES
    assert [skipped["name"] for page, _ in found for skipped in page["skipped"]] == [f"{many}{STATES - 1}"]
    assert max(seconds for _, seconds in found) < LONGEST_PAGE

"""The versions and locks that a process caches, how many, and from which versions a write begins."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

import pytest

from holdfast import names
from holdfast.memory import LIMIT, Memory
from holdfast.s3.objects import ObjectVersion
from holdfast.state import write
from tests.support.documents import ADA
from tests.support.work import work

if TYPE_CHECKING:
    from holdfast.s3.store import Store

NAME = names.parse("network/prod")
VERSION = ObjectVersion(
    '"etag"',
    "version",
    100,
    datetime(2026, 11, 22, tzinfo=UTC),
    {"sha256": "0", "serial": "1"},
    has_own_etag=True,
)


def test_a_version_is_taken_once() -> None:
    memory = Memory()
    memory.learn(NAME, VERSION)

    assert memory.take(NAME) == VERSION
    assert memory.take(NAME) is None


@pytest.mark.parametrize(
    "version",
    [
        None,
        replace(VERSION, has_own_etag=False),
        replace(VERSION, version_id=""),
        replace(VERSION, version_id="null"),
        replace(VERSION, size=0),
    ],
)
def test_a_version_that_another_may_pass_for_is_not_remembered_and_ends_what_was(
    version: ObjectVersion | None,
) -> None:
    memory = Memory()
    memory.learn(NAME, VERSION)

    memory.learn(NAME, version)

    assert memory.take(NAME) is None


@pytest.mark.parametrize("metadata", [{}, {"serial": "1"}, {"sha256": "0"}])
def test_no_write_begins_from_a_version_of_another_program(metadata: dict[str, str]) -> None:
    begin = vars(write)["_remembered"]
    memory = Memory()
    of = work(cast("Store", None), NAME, ADA, memory)  # nothing sends a request by it
    memory.learn(NAME, VERSION)
    assert begin(of).version == VERSION

    memory.learn(NAME, replace(VERSION, metadata=metadata))

    assert begin(of) is None
    assert memory.take(NAME) is None


def test_of_more_states_than_the_limit_the_one_goes_that_was_learned_first() -> None:
    memory = Memory()
    first, second, *others = [names.parse(str(number)) for number in range(LIMIT)]
    for name in (first, second, *others, first, NAME):
        memory.learn(name, VERSION)

    remembered = [name for name in (first, second, *others, NAME) if memory.take(name)]

    assert remembered == [first, *others, NAME]


def test_a_lock_is_taken_once_and_only_with_its_document_by_its_principal() -> None:
    memory = Memory()
    memory.learn_lock(NAME, b"document", "token:ada", "version")

    assert memory.take_lock(NAME, b"another", "token:ada") is None
    assert memory.take_lock(NAME, b"document", "token:bob") is None
    assert memory.take_lock(names.parse("network/test"), b"document", "token:ada") is None
    assert memory.take_lock(NAME, b"document", "token:ada") == "version"
    assert memory.take_lock(NAME, b"document", "token:ada") is None


@pytest.mark.parametrize("version_id", ["", "null"])
def test_a_lock_without_a_version_id_of_its_own_is_not_cached_and_ends_what_was(version_id: str) -> None:
    memory = Memory()
    memory.learn_lock(NAME, b"document", "token:ada", "version")

    memory.learn_lock(NAME, b"document", "token:ada", version_id)

    assert memory.take_lock(NAME, b"document", "token:ada") is None


def test_of_more_locks_than_the_limit_the_one_goes_that_was_learned_first() -> None:
    memory = Memory()
    first, second, *others = [names.parse(str(number)) for number in range(LIMIT)]
    for name in (first, second, *others, first, NAME):
        memory.learn_lock(name, b"document", "token:ada", "version")

    cached = [
        name for name in (first, second, *others, NAME) if memory.take_lock(name, b"document", "token:ada")
    ]

    assert cached == [first, *others, NAME]

"""The versions that a process caches for states, and how many."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from holdfast import names
from holdfast.memory import LIMIT, Memory
from holdfast.s3.objects import ObjectVersion

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

    taken = memory.take(NAME)

    assert taken
    assert taken.version == VERSION
    assert memory.take(NAME) is None


@pytest.mark.parametrize(
    "version",
    [
        None,
        replace(VERSION, has_own_etag=False),
        replace(VERSION, version_id=""),
        replace(VERSION, version_id="null"),
        replace(VERSION, size=0),
        replace(VERSION, metadata={}),
        replace(VERSION, metadata={"serial": "1"}),
        replace(VERSION, metadata={"sha256": "0"}),
    ],
)
def test_a_version_that_another_may_pass_for_is_not_remembered_and_ends_what_was(
    version: ObjectVersion | None,
) -> None:
    memory = Memory()
    memory.learn(NAME, VERSION)

    memory.learn(NAME, version)

    assert memory.take(NAME) is None


def test_of_more_states_than_the_limit_the_one_goes_that_was_learned_first() -> None:
    memory = Memory()
    first, second, *others = [names.parse(str(number)) for number in range(LIMIT)]
    for name in (first, second, *others, first, NAME):
        memory.learn(name, VERSION)

    remembered = [name for name in (first, second, *others, NAME) if memory.take(name)]

    assert remembered == [first, *others, NAME]

"""A caller causes a few messages of a kind an hour, and no event is left out without its number."""

import pytest

from audit_trail.bound import Bound, Told
from holdfast.notification import MOST

HOUR = 3600.0


def event(number: int, kind: str = "state.deleted", principal: str = "token:a") -> dict[str, object]:
    return {"id": number, "event": kind, "principal": principal}


def due(bound: Bound, number: int, now: float = 0.0) -> list[Told]:
    return bound.due([event(number)], now)


@pytest.mark.parametrize("at_once", [1, 7, 300])
def test_each_event_has_a_message_or_is_counted_by_a_later_one(at_once: int) -> None:
    bound, told = Bound(), list[Told]()
    for first in range(0, 300, at_once):
        told += bound.due([event(number) for number in range(first, min(first + at_once, 300))], 10.0)
    told += bound.due([], 10.0 + HOUR)

    assert [one.event["id"] for one in told] == [*range(MOST), 19, 39, 79, 159, 299]
    assert [one.others for one in told[MOST:]] == [9, 19, 39, 79, 139]
    assert len(told) + sum(one.others for one in told) == 300
    assert [one.is_full for one in told] == [*[False] * (MOST - 1), *[True] * 5, False]


def test_many_events_of_one_caller_or_kind_hide_none_of_another() -> None:
    bound = Bound()
    bound.due([event(number) for number in range(300)], 0.0)

    another = bound.due([event(1, principal="token:b"), event(2, kind="state.frozen")], 1.0)

    assert [one.event["id"] for one in another] == [1, 2]


def test_an_hour_after_the_first_the_count_begins_anew() -> None:
    bound = Bound()
    for number in range(MOST):
        assert len(due(bound, number)) == 1
    assert due(bound, MOST, HOUR - 1) == []

    last, first = due(bound, MOST + 1, HOUR)

    assert (last.event["id"], last.others) == (MOST, 0)
    assert (first.event["id"], first.others, first.is_full) == (MOST + 1, 0, False)
    assert bound.due([], 2 * HOUR) == [], "nothing was left out"

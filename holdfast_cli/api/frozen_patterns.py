"""Finds the patterns with which states were frozen. A failed request is as if no pattern were frozen."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast_cli.api.state_texts import freeze_brief, lock_brief
from holdfast_cli.errors import CommandError

if TYPE_CHECKING:
    from holdfast.api import v1
    from holdfast_cli.api.management import Api


def patterns(api: "Api", ids: Collection[str]) -> Mapping[str, str]:
    """Return the patterns with these freezes, by the IDs of the freezes. Without IDs nothing is requested."""
    from holdfast.api import v1

    found: dict[str, str] = {}
    if ids:
        with suppress(CommandError):  # it is not what the user asked for
            freezes = api.get(v1.PatternFreezes, "freezes").freezes
            found = {one.id: one.pattern for one in freezes if one.id in ids}
    return found


def of(api: "Api", lock: "v1.Lock | None") -> str:
    """Return the pattern with which a state is frozen; empty if it is frozen alone, or not frozen."""
    ids = [lock.freeze.id] if lock and lock.freeze and not lock.freeze.ended else []
    return next(iter(patterns(api, ids).values()), "")


def briefly(api: "Api", locks: "Sequence[v1.Lock | None]") -> list[str]:
    """Describe locks as `lock_brief` does, but each reason of a pattern's freeze only once."""
    counted = Counter(lock.freeze.id for lock in locks if lock and lock.freeze)
    found = patterns(api, {each for each, count in counted.items() if count > 1})
    now = api.now()
    described = []
    told: set[str] = set()
    for lock in locks:
        freeze = lock.freeze if lock else None
        pattern = None if freeze is None or freeze.ended else found.get(freeze.id)
        if freeze is None or pattern is None:
            described.append(lock_brief(lock, now))
        elif freeze.id in told:
            described.append(f"frozen with {pattern}")
        else:
            described.append(freeze_brief(freeze, now, pattern))
            told.add(freeze.id)
    return described

"""The model of S3's lifecycle keeps to what AWS documents, one rule at a time.

The addresses in comments are the last part of those below docs.aws.amazon.com/AmazonS3/latest/.
"""

import random

import pytest

from benchmarks.s3_lifecycle import DAY, Key, ProtectedError, Rule, UnknownRuleError, read_rules

HOUR = 60
LOCK_TAG = frozenset({("holdfast", "lock")})
LOCKS = Rule(tags=LOCK_TAG, noncurrent_days=1)
MARKERS = Rule(expired_markers=True)


def history(days: int, keep: int) -> Rule:
    return Rule(prefix="states/", noncurrent_days=days, keep_newer=keep)


def key(*made: int, name: str = "states/a.tfstate") -> Key:
    """A key with a version made at each of these minutes."""
    new = Key(name)
    for now in made:
        new.put(now)
    return new


def left(found: Key) -> list[int]:
    """When each remaining version was made."""
    return [version.made for version in found.versions]


# userguide/intro-lifecycle-rules.html: made on the 15th at 10:30, three days: midnight before the 19th
def test_days_are_counted_from_the_successor_and_rounded_up_to_the_next_midnight() -> None:
    versions = key(1 * DAY, 15 * DAY + 10 * HOUR + 30)
    versions.expire([Rule(noncurrent_days=3)], 18 * DAY)
    assert len(versions.versions) == 2
    versions.expire([Rule(noncurrent_days=3)], 19 * DAY)
    assert left(versions) == [15 * DAY + 10 * HOUR + 30]


# userguide/intro-lifecycle-rules.html: the action is for noncurrent versions only
def test_the_current_version_stays_whatever_its_age() -> None:
    versions = key(0)
    versions.expire([Rule(noncurrent_days=1, expired_markers=True)], 10_000 * DAY)
    assert left(versions) == [0]


SESSIONS = Rule(prefix="sessions/", current_days=1, noncurrent_days=1)


# userguide/intro-lifecycle-rules.html: where there are versions, what expires gets a delete marker
def test_a_version_that_expires_stays_beneath_a_marker_until_it_is_old_and_then_nothing_is_left() -> None:
    session = key(12 * HOUR, name="sessions/a.json")
    remaining = []
    for midnight in range(1, 6):
        session.expire([SESSIONS, MARKERS], midnight * DAY)
        remaining.append((session.objects, session.markers))
    assert remaining == [(1, 0), (1, 1), (1, 1), (0, 1), (0, 0)]


@pytest.mark.parametrize("name", ["states/a.tfstate", "sessions"])
def test_a_current_version_expires_only_below_the_rules_prefix(name: str) -> None:
    other = key(0, name=name)
    other.expire([SESSIONS], 1000 * DAY)
    assert (other.objects, other.markers) == (1, 0)


# userguide/object-lock-managing.html: a marker may come above a version under retention
def test_a_version_under_retention_expires_and_stays() -> None:
    session = Key("sessions/a.json")
    session.put(0, retained_days=30)
    for midnight in range(1, 10):
        session.expire([SESSIONS, MARKERS], midnight * DAY)
    assert (session.objects, session.markers) == (1, 1)


# API/API_NoncurrentVersionExpiration.html and userguide/intro-lifecycle-rules.html: both must be exceeded
def test_newer_noncurrent_versions_stay_whatever_their_age_and_the_others_until_they_are_old() -> None:
    versions = key(0, 1 * DAY, 2 * DAY, 3 * DAY, 4 * DAY, 5 * DAY)
    versions.expire([history(days=2, keep=2)], 5 * DAY)
    assert left(versions) == [2 * DAY, 3 * DAY, 4 * DAY, 5 * DAY], "the first of these is not old enough"
    versions.expire([history(days=2, keep=2)], 1000 * DAY)
    assert left(versions) == [3 * DAY, 4 * DAY, 5 * DAY]


# userguide/intro-lifecycle-filters.html
def test_a_rule_with_a_prefix_is_for_keys_that_begin_with_it() -> None:
    token = key(0, 1, name="tokens/a.json")
    token.expire([history(days=1, keep=0)], 10 * DAY)
    assert left(token) == [0, 1]


# userguide/intro-lifecycle-filters.html
def test_a_rule_with_a_tag_is_for_versions_that_carry_it() -> None:
    lock = Key("states/a.tfstate.tflock")
    lock.put(0, tags=LOCK_TAG)
    lock.put(1, tags=frozenset({("holdfast", "session")}))
    lock.put(2)
    lock.put(3, tags=LOCK_TAG)
    lock.expire([LOCKS], 10 * DAY)
    assert left(lock) == [1, 2, 3]


# userguide/DeleteMarker.html: a marker has no tags
def test_a_rule_with_a_tag_never_removes_a_marker() -> None:
    lock = Key("states/a.tfstate.tflock")
    lock.put(0, tags=LOCK_TAG)
    lock.delete(1)
    lock.put(2, tags=LOCK_TAG)
    lock.expire([LOCKS], 10 * DAY)
    assert [(version.made, version.marker) for version in lock.versions] == [(1, True), (2, False)]


# userguide/DeleteMarker.html: a marker is a version, so it becomes noncurrent as one
def test_a_rule_without_a_tag_removes_a_marker_that_is_not_current() -> None:
    lock = key(0, name="states/a.tfstate.tflock")
    lock.delete(1)
    lock.put(2)
    lock.expire([history(days=1, keep=0)], 2 * DAY)
    assert left(lock) == [2]


# userguide/intro-lifecycle-rules.html: an expired marker is one with no version left beneath
def test_an_expired_marker_is_current_and_alone() -> None:
    beneath = key(0)
    beneath.delete(1)
    above = Key("states/b.tfstate")
    above.delete(0)
    above.put(1)
    two = Key("states/c.tfstate")
    two.delete(0)
    two.delete(1)
    alone = Key("states/d.tfstate")
    alone.delete(0)
    for marked in (beneath, above, two, alone):
        marked.expire([MARKERS], 100 * DAY)
    assert [left(marked) for marked in (beneath, above, two, alone)] == [[0, 1], [0, 1], [0, 1], []]


def test_a_marker_goes_a_day_after_what_was_beneath_it() -> None:
    lock = key(0)
    lock.delete(1)
    rules = [history(days=1, keep=0), MARKERS]
    lock.expire(rules, 2 * DAY)
    assert left(lock) == [1]
    lock.expire(rules, 3 * DAY)
    assert left(lock) == []


# userguide/object-lock-managing.html: no lifecycle action removes a protected version
def test_a_version_under_retention_stays_until_that_ends() -> None:
    state = Key("states/a.tfstate")
    state.put(0, retained_days=30)
    state.put(1)
    state.expire([history(days=1, keep=0)], 29 * DAY)
    assert left(state) == [0, 1]
    state.expire([history(days=1, keep=0)], 30 * DAY)
    assert left(state) == [1]


# userguide/object-lock-managing.html: markers are not protected, whatever lies beneath
def test_a_marker_above_a_protected_version_is_not_protected() -> None:
    state = Key("states/a.tfstate")
    state.put(0, retained_days=30)
    state.delete(1)
    state.put(2)
    state.expire([history(days=1, keep=0)], 2 * DAY)
    assert left(state) == [0, 2]


# API/API_DeleteObject.html: with a version ID that very version is gone, under retention it is refused
def test_a_version_is_removed_for_good_unless_it_is_under_retention() -> None:
    lock = Key("states/a.tfstate.tflock")
    lock.remove(lock.put(0), 1)
    assert lock.versions == []
    protected = lock.put(2, retained_days=1)
    with pytest.raises(ProtectedError):
        lock.remove(protected, 3)
    lock.remove(protected, 2 + DAY)
    assert lock.versions == []


# userguide/DeletingObjectVersions.html: what was beneath the removed current version is current again
def test_a_version_that_is_current_again_is_not_counted_from_its_former_successor() -> None:
    state = key(0)
    state.remove(state.put(1), 2)
    state.expire([history(days=1, keep=0)], 10 * DAY)
    assert left(state) == [0]
    state.put(20 * DAY)
    state.expire([history(days=1, keep=0)], 21 * DAY)
    assert left(state) == [0, 20 * DAY]


def test_no_rules_remove_what_they_must_not_whatever_happens_to_a_key() -> None:
    chance = random.Random(3)  # noqa: S311 the same sequence each time is what it is for
    for _ in range(200):
        days, keep = chance.randint(1, 20), chance.randint(1, 5)
        found, rules = Key("states/a.tfstate"), [LOCKS, MARKERS, history(days, keep)]
        for day in range(100):
            for minute in sorted(chance.choices(range(DAY), k=chance.randint(0, 2))):
                chance.choice([found.put, found.delete])(day * DAY + minute)
            before, midnight = list(found.versions), (day + 1) * DAY
            found.expire(rules, midnight)
            gone = [version for version in before if version not in found.versions]
            if len(before) == 1 and before[0].marker:
                continue
            assert not set(gone) & set(before[-1 - keep :]), "the current one and the newest before it"
            assert all(midnight - (version.noncurrent_since or 0) > days * DAY for version in gone)


# --- from a template -----------------------------------------------------------------------------


def test_rules_are_read_as_cloudformation_has_them() -> None:
    assert read_rules(
        [
            {
                "Id": "locks",
                "Status": "Enabled",
                "TagFilters": [{"Key": "holdfast", "Value": "lock"}],
                "NoncurrentVersionExpiration": {"NoncurrentDays": 1},
            },
            {"Id": "markers", "Status": "Enabled", "ExpiredObjectDeleteMarker": True},
            {
                "Id": "uploads",
                "Status": "Enabled",
                "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
            },
            {
                "Id": "history",
                "Status": "Enabled",
                "Prefix": "states/",
                "NoncurrentVersionExpiration": {"NoncurrentDays": 365, "NewerNoncurrentVersions": 100},
            },
            {"Id": "off", "Status": "Disabled", "NoncurrentVersionExpiration": {"NoncurrentDays": 1}},
        ]
    ) == (LOCKS, MARKERS, Rule(), history(days=365, keep=100))


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"ExpirationDate": "2027-01-01"}, "ExpirationDate in the rule history"),
        ({"ObjectSizeLessThan": "1000"}, "ObjectSizeLessThan in the rule history"),
        ({"NoncurrentVersionExpiration": {"NoncurrentHours": 1}}, "NoncurrentHours in the rule history"),
    ],
)
def test_a_rule_that_the_model_does_not_know_is_an_error(more: dict[str, object], told: str) -> None:
    with pytest.raises(UnknownRuleError, match=told):
        read_rules([{"Id": "history", "Status": "Enabled", **more}])

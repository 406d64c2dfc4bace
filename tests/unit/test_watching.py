"""The watch finds old locks, large states and ending tokens, reports each in time, and counts them."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest

from gateway import payload
from holdfast import notification, watching
from holdfast.access import Grant, Role
from holdfast.identity import credentials, tokens
from holdfast.identity.tokens import Token
from holdfast.names import StateName
from holdfast.s3.objects import KeysPage, ListedKey, Object, ObjectVersion
from holdfast.state import lock_info
from holdfast.watching import Kind

if TYPE_CHECKING:
    from holdfast.s3.store import Store

NOW = datetime(2026, 11, 28, 12, 30, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
LARGE = watching.LARGE + 1


class Bucket:
    """A store with objects of any age. It lists two keys a request."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.requests: list[str] = []

    def put(self, key: str, age: timedelta, body: bytes = b"", size: int = 0, **metadata: Any) -> None:
        version = ObjectVersion("etag", "version", size, NOW - age, metadata, has_own_etag=True)
        self.objects[key] = Object(version, body, NOW)

    def lock(self, name: str, age: timedelta, **metadata: Any) -> None:
        info = lock_info.LockInfo({"ID": f"id of {name}", "Who": "ada@laptop", "Operation": "apply"})
        self.put(StateName(name).lock_key, age, info.to_json(), **metadata)

    def token(self, left: timedelta, *, of: timedelta = 90 * DAY, **more: Any) -> Token:
        grants = more.pop("grants", [Grant(Role.READER, ("*",))])
        created, ends = NOW + left - of, NOW + left
        token, _ = tokens.create(
            grants, description="pipeline", created_by="ada", now=created, expires=ends, **more
        )
        self.put(token.key, DAY, token.to_json())
        return token

    def probe(self, left: timedelta, *, age: timedelta = DAY) -> Token:
        token = self.token(left, grants=watching.probe_grants(watching.new_probe()))
        self.put(watching.secret_key(token.id), age)
        return token

    def keys_page(self, prefix: str, *, after: str = "") -> KeysPage:
        self.requests.append("list")
        keys = sorted(key for key in self.objects if key.startswith(prefix) and key > after)
        page = [self.objects[key].version for key in keys[:2]]
        listed = [
            ListedKey(key, one.size, one.last_modified) for key, one in zip(keys[:2], page, strict=True)
        ]
        return KeysPage(listed, keys[1] if len(keys) > 2 else None)

    def read(self, key: str) -> Object | None:
        assert not key.endswith(".tfstate"), "no state is read"
        self.requests.append(key)
        return self.objects.get(key)

    table = None
    bucket = "bucket"

    def look(self) -> watching.Seen:
        return watching.look(cast("Store", self), NOW)

    def found(self, **how: Any) -> list[watching.Finding]:
        return watching.findings(self.look(), "payments", NOW, **how)


@pytest.fixture
def bucket() -> Bucket:
    return Bucket()


def test_a_freeze_of_a_year_is_no_lock_and_an_ordinary_lock_of_a_minute_is_the_oldest(bucket: Bucket) -> None:
    bucket.lock("network/prod", 365 * DAY, freeze="0" * 32)
    bucket.lock("network/old", 365 * DAY, freeze="1" * 32, **{"freeze-until": "2026-01-01T00:00:00Z"})
    bucket.lock("network/dev", MINUTE)
    bucket.lock("network/test", MINUTE / 2)

    assert (bucket.look().oldest_lock, bucket.look().frozen) == (60, 2)
    assert bucket.found() == []


def test_without_a_lock_the_oldest_is_zero(bucket: Bucket) -> None:
    bucket.put("states/network/prod.tfstate", 900 * DAY)

    assert bucket.look() == watching.Seen([], 0, [], [], enabled=False, probe=None)
    assert bucket.look().oldest_lock == 0


def test_a_lock_is_a_finding_from_an_hour_on_with_its_holder_and_a_command(bucket: Bucket) -> None:
    bucket.lock("network/dev", HOUR - MINUTE)
    bucket.lock("network/prod", HOUR, owner="bea@example.com", **{"locked-by": "token:abc"})

    (held,) = bucket.found()

    assert held.kind is Kind.LOCK_HELD
    assert held.do == "holdfast lock show network/prod"
    assert (
        held.text
        == "The state network/prod has been locked since 2026-11-28 11:30 UTC by bea@example.com (token:abc)."
    )
    assert held.fields == {
        "state": StateName("network/prod"),
        "held_by": "token:abc",
        "owner": "bea@example.com",
        "who": "ada@laptop",
        "lock_id": "id of network/prod",
        "since": "2026-11-28 11:30 UTC",
    }


def test_a_client_that_names_another_principal_is_not_taken_for_it(bucket: Bucket) -> None:
    info = lock_info.LockInfo({"ID": "1", "Who": "Olga (token:ops)\nheld_by: token:ops"})
    proved: dict[str, Any] = {"locked-by": "token:abc"}
    bucket.put(StateName("a").lock_key, HOUR, info.to_json(), **proved)
    bucket.put(StateName("b").lock_key, HOUR, info.to_json())

    by_token, without = bucket.found()

    assert (by_token.fields["held_by"], by_token.text.endswith(" by the token abc.")) == ("token:abc", True)
    assert (without.fields["held_by"], "token:ops" in without.text) == ("another program", False)
    body = notification.message("payments", by_token.kind, by_token.fields, by_token.do).body.splitlines()
    assert [line for line in body if line.startswith("held_by:")] == ['held_by: "token:abc"']


def test_a_look_reads_the_oldest_locks_up_to_a_bound_and_says_where_it_stopped(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "MOST_LOCKS", 3)
    for name, age in {"a": MINUTE, "b": DAY, "c": 2 * MINUTE, "d": HOUR, "e": 2 * DAY}.items():
        bucket.lock(f"network/{name}", age)

    seen = bucket.look()

    assert [name.value for name, _ in seen.locks] == ["network/e", "network/b", "network/d"]
    assert seen.oldest_lock == 2 * DAY.total_seconds()
    assert len([request for request in bucket.requests if request.endswith(".tflock")]) == 3
    unread, *_ = bucket.found()
    assert unread.kind is Kind.LOCKS_UNREAD
    assert unread.text == (
        "This check read only the 3 oldest locks and freezes. Number of locks and freezes that it did not "
        "read: 2. The oldest of these is from 2026-11-28 12:28 UTC."
    )
    assert unread.fields["unread"] == 2
    assert watching.attention([unread]) == 1
    del bucket.objects[StateName("network/a").lock_key], bucket.objects[StateName("network/b").lock_key]
    assert (bucket.look().unread, [one.kind for one in bucket.found()]) == (0, [Kind.LOCK_HELD] * 2)


def test_hundreds_of_locks_of_one_writer_are_ten_messages_and_their_number(bucket: Bucket) -> None:
    for number in range(300):
        bucket.lock(f"network/{number}", HOUR + MINUTE / 60 * number)
    bucket.token(DAY)

    due = watching.due(bucket.found(old=HOUR), NOW.replace(hour=6))

    assert [(one.kind, others) for one, others in due] == [
        (Kind.TOKEN_ENDS, 0),
        *[(Kind.LOCK_HELD, 0)] * 9,
        (Kind.LOCK_HELD, 290),
    ]
    assert due[1][0].fields["state"] == StateName("network/299"), "the oldest first"
    ten = [one for one, _ in due if one.kind is Kind.LOCK_HELD]
    assert watching.due(ten, NOW.replace(hour=6))[-1] == (ten[-1], 0)
    assert watching.due([], NOW) == []


@pytest.mark.parametrize(
    ("size", "found"),
    [
        (watching.LARGE - 1, False),
        (watching.LARGE, True),
        (payload.MAX_BYTES, True),
        (payload.MAX_BYTES + 1, False),  # no client of `backend "http"` has it
    ],
)
def test_a_state_is_large_from_seven_tenths_of_the_limit_up_to_the_limit(
    bucket: Bucket, size: int, *, found: bool
) -> None:
    bucket.put("states/network/prod.tfstate", DAY, size=size)
    bucket.put("states/elsewhere", DAY, size=LARGE)
    bucket.put("states/../x.tfstate", DAY, size=LARGE)

    assert [one.fields["state"] for one in bucket.found()] == [StateName("network/prod")] * found


@pytest.mark.parametrize(
    ("left", "lifetime", "found"),
    [
        (14 * DAY, 90 * DAY, True),
        (14 * DAY + MINUTE, 90 * DAY, False),
        (DAY, 14 * DAY, False),  # it was made for a short time
        (DAY, 15 * DAY, True),
        (-DAY, 90 * DAY, False),  # it has ended
    ],
)
def test_a_token_is_a_finding_in_its_last_14_days(
    bucket: Bucket, left: timedelta, lifetime: timedelta, *, found: bool
) -> None:
    token = bucket.token(left, of=lifetime)
    bucket.put("tokens/damaged.json", DAY, b"{")
    bucket.put("tokens/never.json", DAY, b"{}")

    assert [one.do for one in bucket.found()] == [f"holdfast token rotate {token.id} --team payments"] * found


def test_a_revoked_token_is_no_finding(bucket: Bucket) -> None:
    token = tokens.revoke(bucket.token(DAY), revoked_by="ada", now=NOW)
    bucket.put(token.key, DAY, token.to_json())

    assert bucket.found() == []


def test_the_end_of_the_probes_token_is_a_finding_with_the_command_that_renews_it(bucket: Bucket) -> None:
    bucket.probe(DAY)
    bucket.token(DAY, grants=[Grant(Role.WRITER, ("holdfast-doctor/*",))])

    assert [(one.kind, one.do.partition(" --team")[0]) for one in bucket.found()][:-1] == [
        (Kind.PROBE_ENDS, "holdfast watch enable")
    ]

    bucket.probe(80 * DAY, age=HOUR)  # renewed

    assert [one.kind for one in bucket.found()] == [Kind.TOKEN_ENDS]


@pytest.mark.parametrize(
    "grants",
    [
        [Grant(Role.WRITER, ("holdfast-doctor/*",))],
        [Grant(Role.WRITER, (f"holdfast-doctor/{'1' * 32}",))],
        [Grant(Role.READER, (f"holdfast-doctor/{'0' * 32}",))],
        [Grant(Role.WRITER, (f"holdfast-doctor/{'0' * 32}", "network/*"))],
        [Grant(Role.WRITER, (f"holdfast-doctor/{'0' * 32}",)), Grant(Role.READER, ("network/*",))],
    ],
)
def test_a_token_with_other_grants_is_not_the_probes(bucket: Bucket, grants: list[Grant]) -> None:
    assert not watching.is_probes(bucket.token(DAY, grants=grants))
    assert watching.is_probes(bucket.probe(DAY))


def test_credentials_of_the_probe_without_a_valid_token_are_a_finding_that_counts(bucket: Bucket) -> None:
    bucket.probe(80 * DAY, age=HOUR)
    assert bucket.found() == []

    token = bucket.probe(-DAY, age=MINUTE)  # it has expired, and the function uses the newest
    (ended,) = bucket.found()

    assert (ended.kind, ended.do) == (Kind.PROBE_ENDED, "holdfast watch enable --team payments")
    assert ended.is_due(NOW)
    assert watching.attention([ended]) == 1

    del bucket.objects[token.key]
    assert [one.kind for one in bucket.found()] == [Kind.PROBE_ENDED]


def test_locks_and_the_probe_do_not_count_in_attention(bucket: Bucket) -> None:
    bucket.lock("network/prod", DAY)
    bucket.put("states/network/dev.tfstate", DAY, size=LARGE)
    bucket.token(DAY)
    bucket.probe(DAY)

    found = bucket.found(failed="the API responded to PUT /locks with 500")

    assert [one.kind for one in found] == [
        *(Kind.PROBE_FAILED, Kind.PROBE_ENDS, Kind.TOKEN_ENDS),
        *(Kind.STATE_LARGE, Kind.LOCK_HELD),
    ]
    assert watching.attention(found) == 3


@pytest.mark.parametrize(
    ("age", "hour", "due"),
    [(HOUR + MINUTE, 12, True), (3 * HOUR, 12, False), (3 * HOUR, 6, True), (3 * HOUR, 7, False)],
)
def test_a_finding_is_sent_when_it_is_new_and_once_a_day(
    bucket: Bucket, age: timedelta, hour: int, *, due: bool
) -> None:
    bucket.lock("network/prod", age)
    bucket.put("states/network/dev.tfstate", DAY, size=LARGE)
    (large, held) = bucket.found()

    now = NOW.replace(hour=hour)
    # The lock's age is by S3's clock, which here is at noon.
    assert held.is_due(now if hour == 12 else now + DAY) is due
    assert large.is_due(now) is (hour == 6)


def test_a_failed_probe_is_sent_each_time(bucket: Bucket) -> None:
    (failed,) = bucket.found(failed="the API responded to PUT /locks with 403")

    assert failed.is_due(NOW)
    assert (
        failed.text
        == "The probe, the hourly test of the API, failed: the API responded to PUT /locks with 403."
    )


def test_a_look_lists_all_pages_and_reads_each_lock_and_token_once(bucket: Bucket) -> None:
    for number in range(5):
        bucket.put(f"states/a{number}.tfstate", DAY)
    bucket.lock("b", DAY)
    token = bucket.token(DAY)

    bucket.look()

    assert bucket.requests == ["list"] * 3 + ["states/b.tfstate.tflock", "list", token.key, "list"]


def test_the_probes_lock_is_in_no_list_of_locks(bucket: Bucket) -> None:
    bucket.lock(watching.new_probe().value, DAY)

    assert bucket.look().locks == []


def test_the_newest_credentials_of_the_probe_are_used(bucket: Bucket) -> None:
    assert watching.read_secret(cast("Store", bucket)) is None

    bucket.put("watch/b.json", 2 * DAY, watching.secret("b", "old", watching.new_probe()))
    state = watching.new_probe()
    bucket.put("watch/a.json", DAY, watching.secret("a", "new", state))
    found = watching.read_secret(cast("Store", bucket))

    assert found == watching.Probe(credentials.TokenCredentials("a", "new"), state)
    assert "new" not in repr(found)


@pytest.mark.parametrize("body", [b"{", b"{}", b'{"schema": 2, "id": "a", "secret": "b"}'])
def test_damaged_credentials_are_an_error(bucket: Bucket, body: bytes) -> None:
    bucket.put("watch/a.json", DAY, body)

    with pytest.raises(ValueError, match=r"credentials|JSON|version"):
        watching.read_secret(cast("Store", bucket))


def test_metrics_have_the_team_as_dimension() -> None:
    assert watching.metrics("payments", {watching.Metric.OLDEST_LOCK: 60, watching.Metric.ATTENTION: 2}) == {
        "Namespace": "Holdfast",
        "MetricData": [
            {
                "MetricName": name,
                "Dimensions": [{"Name": "Team", "Value": "payments"}],
                "Value": value,
                "Unit": unit,
            }
            for name, value, unit in (("OldestLockSeconds", 60, "Seconds"), ("Attention", 2, "Count"))
        ],
    }

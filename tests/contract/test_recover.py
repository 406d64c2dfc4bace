"""Recovery on a replica, to which S3 copied every version and no removal of a version."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from holdfast import names
from holdfast.access import Caller
from holdfast.errors import LockLost
from holdfast.state import acquiring, held, releasing
from holdfast.state.delete import delete
from holdfast.state.freezing import patterns, record, states
from holdfast.state.held import Freeze
from holdfast.state.write import write
from holdfast.work import Work
from holdfast_cli.bucket import recovering, refusal
from holdfast_cli.bucket.recovering import Late, NoReplicaError, ReplicaLock, Side
from holdfast_cli.errors import CommandError
from holdfast_cli.terminal.output import Progress
from tests.contract.conftest import ACCOUNT, KEY, LOCK_KEY, NAME, Bucket
from tests.support.documents import ADA, BOB, LINEAGE, OPERATOR, lock_info, only_id, state
from tests.support.work import work

pytestmark = pytest.mark.two_servers

ONE, TWO, LATER = (lock_info(name) for name in ("one", "two", "later"))
OTHER, FROZEN, FREE = (names.parse(name) for name in ("network/dev", "dns", "free"))


def with_path(info: bytes, path: object) -> bytes:
    """Return a lock info whose client sends this `Path`; None: it sends none."""
    return json.dumps({**json.loads(info), "Path": path}).encode()


def works(bucket: Bucket, caller: Caller = ADA, name: names.StateName = NAME, **decided: Any) -> Work:
    return work(bucket.direct_store(), name, caller, **decided)


def freeze(bucket: Bucket, name: names.StateName = NAME) -> None:
    wanted = Freeze(uuid4().hex, "audit", None)
    states.freeze(works(bucket, OPERATOR, name), wanted, now=datetime.now(UTC))


def unfreeze(bucket: Bucket, freeze_id: str) -> None:
    states.unfreeze(works(bucket, OPERATOR), freeze_id)


class Killed(BaseException):
    """The process is gone."""


@dataclass
class Sides:
    """A bucket with a replica that this class fills. `steps` counts the command's requests.

    As on AWS, the command sees each copy with the version ID of its original, and with the replication status
    `REPLICA`. The servers give a copy an ID of its own, and one of them gives no status.

    Attributes:
        copies: the version ID in the replica of each version that was copied.
        status: the replication status of copies; None if S3 gives none.
        own_status: the replication status of everything else.
    """

    old: Bucket
    new: Bucket
    copies: dict[str, str] = field(default_factory=dict)
    status: str | None = "REPLICA"
    own_status: str | None = None
    steps: int = 0
    dies_at: int | None = None

    def copy(self) -> None:
        """Copy what S3 has not copied yet, oldest first. Removals of versions are never copied."""
        listed = self.old.s3.list_object_versions(Bucket=self.old.name)
        versions: list[Any] = [*listed.get("Versions", []), *listed.get("DeleteMarkers", [])]
        for entry in sorted(versions, key=lambda each: each["LastModified"]):
            if entry["VersionId"] not in self.copies:
                self.sent(entry)()

    def sent(self, entry: Any) -> Callable[[], None]:
        """Let a version leave the old side; the result lets it arrive."""
        key, version = entry["Key"], entry["VersionId"]
        self.copies[version] = version  # until it arrives
        new, s3 = self.new.name, self.old.s3
        if "Size" not in entry:

            def mark() -> None:
                # moto creates no marker without an object.
                stored = s3.put_object(Bucket=new, Key=key)
                s3.delete_object(Bucket=new, Key=key)
                s3.delete_object(Bucket=new, Key=key, VersionId=stored["VersionId"])
                self.copies[version] = self.new.marker(key)

            return mark
        original = s3.get_object(Bucket=self.old.name, Key=key, VersionId=version)
        body = original["Body"].read()

        def put() -> None:
            stored = s3.put_object(Bucket=new, Key=key, Body=body, Metadata=original["Metadata"])
            self.copies[version] = stored["VersionId"]

        return put

    def held_back(self, key: str) -> Callable[[], None]:
        """Let the current version of a key leave the old side; the result lets it arrive."""
        listed = self.old.s3.list_object_versions(Bucket=self.old.name, Prefix=key)
        entries: list[Any] = [*listed.get("Versions", []), *listed.get("DeleteMarkers", [])]
        [current] = [entry for entry in entries if entry["Key"] == key and entry["IsLatest"]]
        return self.sent(current)

    def name_copies(self, params: dict[str, Any], **_: Any) -> None:
        """Translate the version ID of a request for the replica."""
        if params.get("Bucket") == self.new.name and "VersionId" in params:
            params["VersionId"] = self.copies.get(params["VersionId"], params["VersionId"])

    def show_copies(self, response_dict: dict[str, Any], **_: Any) -> None:
        """Translate the version IDs of a response, and add the replication status."""
        originals = {copy: original for original, copy in self.copies.items()}
        headers = response_dict["headers"]
        if version := headers.get("x-amz-version-id"):
            headers["x-amz-version-id"] = originals.get(version, version)
            if status := self.status if version in originals else self.own_status:
                headers["x-amz-replication-status"] = status
        if isinstance(response_dict["body"], bytes):
            for copy, original in originals.items():
                response_dict["body"] = response_dict["body"].replace(copy.encode(), original.encode())

    def locked(self, name: names.StateName = NAME, info: bytes = ONE) -> None:
        acquiring.acquire(works(self.old, name=name), info)
        self.copy()

    def unlocked(self, name: names.StateName = NAME, info: bytes = ONE) -> None:
        releasing.release(works(self.old, name=name), info)

    def written(self, body: bytes, info: bytes = ONE) -> None:
        write(works(self.old, require_lock=True), body, json.loads(info)["ID"])

    def frozen(self, name: names.StateName) -> None:
        freeze(self.old, name)
        self.copy()

    @property
    def sides(self) -> tuple[Side, Side]:
        return tuple(Side(each.server.proxied, each.name, ACCOUNT) for each in (self.old, self.new))  # type: ignore[return-value]

    def recover(self, *, is_gone: bool = False) -> tuple[list[ReplicaLock], list[Late]]:
        """Do what the command does, in its order."""
        old, new = self.sides
        if not is_gone:
            recovering.fence(old, new)
        there = None if is_gone else recovering.listing(old, Progress())
        here = recovering.listing(new, Progress())
        late = recovering.late(old, new, there, here) if there else []
        locks = recovering.locks_in(new, here, there, Progress())
        staying = recovering.remove(new, here, there, locks, Progress())
        assert {each.name: each.lock.info.id for each in staying}.get(NAME) == self.held()
        return locks, late

    def step(self, **_: Any) -> None:
        self.steps += 1
        if self.dies_at is not None and self.steps >= self.dies_at:
            raise Killed

    def held(self, name: names.StateName = NAME) -> str | None:
        lock = held.read(self.new.direct_store(), name)
        return lock.info.id if lock else None

    def refuses_writes(self) -> bool:
        policy = json.loads(refusal.policy(self.old.s3, self.old.name))
        return any(each["Sid"] == "HoldfastRecovered" for each in policy["Statement"])


@pytest.fixture
def sides(bucket: Bucket) -> Iterator[Sides]:
    new = replace(bucket, name=f"holdfast-{uuid4().hex}")
    bucket.s3.create_bucket(Bucket=new.name, ObjectLockEnabledForBucket=True)
    made = Sides(bucket, new)
    # The server copies nothing: its own rule has another prefix.
    bucket.s3.put_bucket_replication(
        Bucket=bucket.name,
        ReplicationConfiguration={
            "Role": f"arn:aws:iam::{ACCOUNT}:role/x",
            "Rules": [
                {
                    "ID": "nothing",
                    "Priority": 0,
                    "Status": "Disabled",
                    "Filter": {"Prefix": "none"},
                    "DeleteMarkerReplication": {"Status": "Disabled"},
                    "Destination": {"Bucket": f"arn:aws:s3:::{new.name}"},
                }
            ],
        },
    )
    events = bucket.server.proxied.meta.events
    hooks: dict[str, Callable[..., None]] = {
        "before-call.s3": made.step,
        "before-parameter-build.s3": made.name_copies,
        "before-parse.s3": made.show_copies,
    }
    for event, hook in hooks.items():
        events.register(event, hook)
    try:
        yield made
    finally:
        for event, hook in hooks.items():
            events.unregister(event, hook)


def test_released_locks_of_every_age_go_and_freezes_and_patterns_stay(sides: Sides) -> None:
    for info in (ONE, TWO):
        sides.locked(info=info)
        sides.unlocked(info=info)
    sides.frozen(NAME)  # and lifted again, which removes its version
    lifted = held.read(sides.old.direct_store(), NAME)
    assert lifted is not None
    assert lifted.freeze is not None
    unfreeze(sides.old, lifted.freeze.id)
    sides.locked(info=LATER)
    sides.locked(OTHER)
    sides.frozen(FROZEN)
    wanted = Freeze(uuid4().hex, "audit", None)
    patterns.freeze_pattern(sides.old.direct_store(), OPERATOR, "apps/*", wanted, now=datetime.now(UTC))
    sides.copy()
    assert len(sides.new.history(LOCK_KEY)) == 4

    locks, late = sides.recover()

    assert [(each.name.value, each.lock.info.id, each.is_stale) for each in locks if each.is_stale] == [
        (OTHER.value, "one", True),
        (NAME.value, "later", True),
    ]
    assert late == []
    assert (sides.held(), sides.held(OTHER), sides.new.history(LOCK_KEY)) == (None, None, [])
    kept = held.read(sides.new.direct_store(), FROZEN)
    assert kept is not None
    assert kept.freeze is not None
    assert len(record.entries(sides.new.direct_store().read(names.FROZEN_PATTERNS))) == 1
    assert sides.refuses_writes()


def test_a_recovery_that_is_killed_between_any_two_requests_is_finished_by_the_next(
    sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovering, "_AT_ONCE", 1)

    def again() -> None:
        sides.new.empty()
        sides.copies.clear()
        for info in (ONE, TWO):
            sides.locked(info=info)
            sides.unlocked(info=info)
        sides.locked(OTHER)
        sides.unlocked(OTHER)
        sides.steps = 0

    again()
    sides.recover()
    requests = sides.steps
    assert requests > 10
    for step in range(1, requests + 1):
        sides.old.s3.delete_bucket_policy(Bucket=sides.old.name)
        sides.dies_at = None
        again()
        sides.dies_at = step
        with pytest.raises(Killed):
            sides.recover()
        # Never unfenced and unlocked, and never an older lock on top.
        assert sides.refuses_writes() or sides.held() == "two", step
        assert sides.held() in ("two", None), step
        sides.dies_at = None

        sides.recover()

        assert (sides.held(), sides.held(OTHER), sides.new.history("states/")) == (None, None, []), step


@pytest.mark.parametrize("is_gone", [False, True])
@pytest.mark.parametrize("own_status", [None, "PENDING", "COMPLETED"])
def test_a_second_run_leaves_what_was_acquired_in_the_new_place_whatever_its_client_wrote(
    sides: Sides, own_status: str | None, is_gone: bool
) -> None:
    sides.locked()
    sides.recover(is_gone=is_gone)
    sides.own_status = own_status  # of a bucket without a replica, and with one
    acquiring.acquire(works(sides.new, BOB), with_path(LATER, f"{sides.old.name}/{KEY}"))

    for _ in range(2):
        [current], _ = sides.recover(is_gone=is_gone)
        assert (current.lock.info.id, current.is_stale, sides.held()) == ("later", False, "later")


@pytest.mark.parametrize(
    ("status", "is_gone"), [("REPLICA", False), ("REPLICA", True), (None, False)], ids=str
)
@pytest.mark.parametrize("path", ["{new}/x", "own-bucket/x", 5, None])
def test_a_lock_of_the_old_side_goes_whatever_its_client_wrote(
    sides: Sides, path: object, status: str | None, is_gone: bool
) -> None:
    sides.status = status
    where = path.format(new=sides.new.name) if isinstance(path, str) else path
    sides.locked(info=with_path(ONE, where))

    [current], _ = sides.recover(is_gone=is_gone)

    assert (current.is_stale, sides.held()) == (True, None)


def test_an_unreadable_lock_of_the_old_side_goes(sides: Sides) -> None:
    sides.old.s3.put_object(Bucket=sides.old.name, Key=LOCK_KEY, Body=b"")
    sides.copy()

    sides.recover()

    assert sides.held() is None


def test_without_a_status_and_without_the_old_side_each_lock_stays(sides: Sides) -> None:
    sides.status = None
    sides.locked()
    sides.unlocked()
    sides.locked(info=TWO)

    [current], _ = sides.recover(is_gone=True)

    assert (current.is_stale, sides.held(), len(sides.new.history(LOCK_KEY))) == (False, "two", 2)


def test_a_live_lock_below_a_copy_that_arrived_late_stays(sides: Sides) -> None:
    acquiring.acquire(works(sides.old), ONE)
    arrive = sides.held_back(LOCK_KEY)
    acquiring.acquire(works(sides.new, BOB), LATER)
    arrive()
    assert sides.held() == "one"

    sides.recover()

    assert sides.held() == "later"


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_freeze_stays_below_a_lock_that_was_released_before_and_arrived_later(
    sides: Sides, is_gone: bool
) -> None:
    acquiring.acquire(works(sides.old), ONE)
    arrive = sides.held_back(LOCK_KEY)
    sides.unlocked()
    sides.frozen(NAME)
    arrive()
    assert sides.held() == "one"

    sides.recover(is_gone=is_gone)

    lock = held.read(sides.new.direct_store(), NAME)
    assert lock is not None
    assert lock.freeze is not None


def test_a_freeze_below_a_lock_stays_if_nobody_can_see_that_it_was_lifted(sides: Sides) -> None:
    sides.frozen(NAME)
    lifted = held.read(sides.old.direct_store(), NAME)
    assert lifted is not None
    assert lifted.freeze is not None
    unfreeze(sides.old, lifted.freeze.id)
    sides.locked()

    sides.recover(is_gone=True)

    assert sides.held() == lifted.info.id
    unfreeze(sides.new, lifted.freeze.id)
    assert sides.held() is None


@pytest.mark.parametrize("is_frozen", [False, True])
def test_a_lock_that_somebody_takes_over_meanwhile_stays(sides: Sides, is_frozen: bool) -> None:
    sides.locked()

    def taken_over() -> None:
        releasing.release(works(sides.new, OPERATOR), only_id("one"))
        if is_frozen:
            freeze(sides.new)
        else:
            acquiring.acquire(works(sides.new, BOB), LATER)

    sides.new.proxy.before("GET", LOCK_KEY, lambda: None)  # the list
    sides.new.proxy.before("GET", LOCK_KEY, taken_over)

    sides.recover()

    lock = held.read(sides.new.direct_store(), NAME)
    assert lock is not None
    assert lock.freeze is not None if is_frozen else lock.info.id == "later"


def test_a_lock_that_its_holder_acquires_again_meanwhile_stays_although_its_bytes_are_the_same(
    sides: Sides,
) -> None:
    sides.new.retain_everything()  # so that no version is removed, and only an ETag identifies the lock
    info = with_path(ONE, "as-the-client-wrote-it")
    sides.locked(info=info)
    old, new = sides.sides
    there, here = recovering.listing(old, Progress()), recovering.listing(new, Progress())
    locks = recovering.locks_in(new, here, there, Progress())
    releasing.release(works(sides.new, OPERATOR), only_id("one"))
    acquiring.acquire(works(sides.new), info)

    (staying,) = recovering.remove(new, here, there, locks, Progress())

    assert (staying.lock.info.id, sides.held()) == ("one", "one")


def test_whoever_held_a_removed_lock_writes_on_neither_side(sides: Sides) -> None:
    sides.locked()
    sides.written(state(1))
    sides.copy()
    sides.recover()

    with pytest.raises(LockLost):
        write(works(sides.new, require_lock=True), state(2), "one")
    policy = json.loads(sides.old.s3.get_bucket_policy(Bucket=sides.old.name)["Policy"])
    [statement] = policy["Statement"]
    assert statement["Effect"] == "Deny"
    assert set(statement["Action"]) == {"s3:PutObject", "s3:DeleteObject"}
    assert statement["Resource"] == [f"arn:aws:s3:::{sides.old.name}/*"]


def test_each_state_and_record_that_was_not_copied_is_named(sides: Sides) -> None:
    sides.locked()
    sides.written(state(1))
    sides.copy()
    sides.written(state(2))
    sides.old.s3.put_object(Bucket=sides.old.name, Key="tokens/a.json", Body=b"revoked")
    sides.old.s3.put_object(Bucket=sides.old.name, Key="sessions/a.json", Body=b"passing")

    _, late = sides.recover()

    assert [(each.key, each.state, each.there, each.here) for each in late] == [
        (KEY, NAME.value, "serial 2", "serial 1"),
        ("tokens/a.json", "", late[1].there, "missing"),
    ]
    sides.copy()
    assert sides.recover()[1] == []


def test_a_deletion_that_was_not_copied_is_named_and_a_later_state_here_is_not(sides: Sides) -> None:
    sides.locked()
    sides.written(state(1))
    sides.unlocked()
    sides.copy()
    delete(works(sides.old, OPERATOR))
    [late] = sides.recover()[1]
    assert (late.there, late.here) == ("deleted", "serial 1")
    sides.old.s3.delete_bucket_policy(Bucket=sides.old.name)

    [marker] = sides.old.s3.list_object_versions(Bucket=sides.old.name, Prefix=KEY)["DeleteMarkers"]
    sides.old.s3.delete_object(Bucket=sides.old.name, Key=KEY, VersionId=marker["VersionId"])
    write(works(sides.new), state(2), None)
    assert sides.recover()[1] == []


def test_an_older_version_above_the_newest_is_named_until_the_newest_is_current(sides: Sides) -> None:
    sides.locked(info=json.dumps({**json.loads(ONE), "Operation": "state-push"}).encode())  # with -force
    sides.written(state(5))
    arrive = sides.held_back(KEY)
    sides.written(state(3))
    sides.copy()
    arrive()

    [late] = sides.recover()[1]

    newest = sides.old.s3.head_object(Bucket=sides.old.name, Key=KEY)["VersionId"]
    assert late == Late(KEY, NAME.value, "serial 3", "serial 5", newest)
    write(works(sides.new), state(6), None)
    assert sides.recover()[1] == []


@pytest.mark.parametrize(("serial", "is_named"), [("1", True), ("2", True), ("3", False)])
def test_a_version_that_was_written_here_above_a_copy_is_named_unless_it_follows_the_copy(
    sides: Sides, serial: str, is_named: bool
) -> None:
    sides.locked()
    for each in (1, 2):
        sides.written(state(each))
    sides.copy()
    metadata = {"serial": serial, "lineage": LINEAGE, "sha256": "another"}
    body = state(int(serial)) + b"\n"
    sides.new.s3.put_object(Bucket=sides.new.name, Key=KEY, Body=body, Metadata=metadata)

    late = sides.recover()[1]

    assert [(each.there, each.here) for each in late] == [("serial 2", f"serial {serial}")] * is_named


def test_a_state_above_its_deletion_is_named(sides: Sides) -> None:
    sides.locked()
    sides.written(state(1))
    sides.unlocked()
    arrive = sides.held_back(KEY)
    delete(works(sides.old, OPERATOR))
    sides.copy()
    arrive()

    [late] = sides.recover()[1]

    assert (late.there, late.here, bool(late.below)) == ("deleted", "serial 1", True)


def test_tokens_and_trust_records_of_the_last_hour_are_listed(sides: Sides) -> None:
    for key in ("tokens/a.json", "trust/records.json", "workspaces/a.json"):
        sides.new.s3.put_object(Bucket=sides.new.name, Key=key, Body=b"{}")
    here = recovering.listing(sides.sides[1], Progress())
    assert here.changed_lately() == ["tokens/a.json", "trust/records.json"]
    here.current["states/later.tfstate"] = {
        "LastModified": here.current["tokens/a.json"]["LastModified"] + recovering.LATELY * 2
    }
    assert here.changed_lately() == []


def test_a_bucket_with_another_replica_is_not_fenced(sides: Sides) -> None:
    old, new = sides.sides
    with pytest.raises(NoReplicaError, match="Nothing was changed"):
        recovering.fence(old, replace(new, bucket=f"{new.bucket}-other"))
    assert not sides.refuses_writes()


def test_a_bucket_that_is_gone_cannot_be_fenced(sides: Sides) -> None:
    old, new = sides.sides
    with pytest.raises(CommandError) as gone:
        recovering.fence(replace(old, bucket=f"{old.bucket}-gone"), new)
    assert not isinstance(gone.value, NoReplicaError)


def test_a_fence_keeps_the_other_statements(sides: Sides) -> None:
    other = {
        "Sid": "Other",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:PutObject",
        "Resource": f"arn:aws:s3:::{sides.old.name}/x",
    }
    document = json.dumps({"Version": "2012-10-17", "Statement": [other]})
    sides.old.s3.put_bucket_policy(Bucket=sides.old.name, Policy=document)

    for _ in range(2):
        recovering.fence(*sides.sides)
        policy = json.loads(sides.old.s3.get_bucket_policy(Bucket=sides.old.name)["Policy"])
        assert [each["Sid"] for each in policy["Statement"]] == ["Other", "HoldfastRecovered"]


def test_a_lock_under_retention_is_covered_by_a_marker(sides: Sides) -> None:
    sides.new.retain_everything()
    sides.locked()
    sides.unlocked()
    sides.locked(info=TWO)

    sides.recover()

    assert (sides.held(), sides.new.delete_markers(LOCK_KEY)) == (None, 1)

"""Locks and digests in a DynamoDB table (`dynamodb_lock`), against two servers."""

import hashlib
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import boto3
import pytest
from botocore.exceptions import ClientError

from holdfast import names
from holdfast.cloud.ids import WorkspaceId
from holdfast.errors import Locked, LockLost, LockNotMatched, NotAllowed, OutcomeUnknown, StorageRefused
from holdfast.s3.lock_table import LockTable, connect
from holdfast.s3.retry import ResponseCutShortError
from holdfast.s3.store import Store
from holdfast.state import locks
from holdfast.state.delete import delete
from holdfast.state.freeze import freeze, unfreeze
from holdfast.state.locks import HeldLock
from holdfast.state.restore import Restored, Wanted, restore
from holdfast.state.write import write
from holdfast_cli.doctor import lock_table
from holdfast_cli.doctor.findings import Level
from tests.contract.conftest import COMMAND, KEY, LOCK_KEY, NAME, ONE, Bucket, Server, started
from tests.support.documents import ADA, OPERATOR, lock_info, only_id, state
from tests.support.environment import SETTINGS, set_environment
from tests.support.events import Context, cloud_request, manage_request, request
from tests.support.lock_table import create_lock_table, item, put_item

if TYPE_CHECKING:
    from collections.abc import Callable

NATIVE = b'{"ID":"n","Operation":"OperationTypeApply","Who":"nat@ive","Created":"2026-11-20T10:00:00.5Z"}'


@dataclass(frozen=True)
class Table:
    """A table and a bucket, as the functions of a team with `dynamodb_lock` see them."""

    bucket: Bucket
    dynamodb: Any
    name: str

    @property
    def key(self) -> str:
        return f"{self.bucket.name}/{KEY}"

    def store(self, name: str = "") -> Store:
        store = self.bucket.store()
        store.table = LockTable(connect(), name or self.name, store)
        return store

    def put(self, key: str = "", **attributes: str) -> None:
        put_item(self.dynamodb, self.name, key or self.key, **attributes)

    def lock_item(self) -> str | None:
        return (item(self.dynamodb, self.name, self.key) or {}).get("Info")

    def digest(self) -> str | None:
        return (item(self.dynamodb, self.name, f"{self.key}-md5") or {}).get("Digest")

    def write(self, body: bytes, lock_id: str = "one") -> str:
        return write(self.store(), NAME, body, lock_id, ADA, require_lock=True).version_id

    def held(self) -> HeldLock | None:
        return locks.read(self.store(), NAME)

    def object(self) -> bytes | None:
        found = self.bucket.direct_store().read(LOCK_KEY)
        return found.body if found else None


@pytest.fixture
def table(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Table:
    endpoint = bucket.s3.meta.endpoint_url
    set_environment(monkeypatch, AWS_ENDPOINT_URL_DYNAMODB=endpoint)
    dynamodb = boto3.client("dynamodb", endpoint_url=endpoint)
    made = Table(bucket, dynamodb, f"locks-{uuid4().hex}")
    create_lock_table(dynamodb, made.name)
    return made


def md5(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest()


def test_of_clients_that_put_the_lock_item_at_once_one_succeeds(table: Table) -> None:
    for number in range(5):
        with ThreadPoolExecutor(8) as pool:
            put = [table.store().table for _ in range(8)]
            key = f"key-{number}"
            won = list(pool.map(lambda one: one and one.put_lock(key, str(id(one)), {}, "v"), put))  # noqa: B023
        assert won.count(True) == 1


def test_a_lock_is_an_object_and_an_item_with_the_same_bytes(table: Table) -> None:
    locks.acquire(table.store(), NAME, ONE, ADA)
    again = locks.acquire(table.store(), NAME, ONE, ADA)

    held = table.held()
    assert held is not None
    assert (held.identity, held.identity.is_whole) == (again, True)
    assert (table.object() or b"").decode() == table.lock_item()

    locks.release(table.store(), NAME, ONE, ADA)
    assert (table.object(), table.lock_item(), table.held()) == (None, None, None)


def test_who_finds_the_item_of_another_client_gets_its_lock_info_and_leaves_no_object(table: Table) -> None:
    table.put(Info=NATIVE.decode())

    with pytest.raises(Locked) as refused:
        locks.acquire(table.store(), NAME, ONE, ADA)
    with pytest.raises(Locked):
        write(table.store(), NAME, state(1), None, ADA, require_lock=False)

    assert (refused.value.holder["ID"], refused.value.holder["Who"]) == ("n", "nat@ive")
    assert (table.object(), table.lock_item()) == (None, NATIVE.decode())


def test_a_lock_that_is_an_item_alone_is_broken_by_its_version_and_by_nobody_who_means_another(
    table: Table,
) -> None:
    table.put(Info=NATIVE.decode())
    held = table.held()
    assert held is not None
    assert held.version.last_modified == datetime(2026, 11, 20, 10, 0, 0, 500_000, UTC)

    with pytest.raises(LockNotMatched):
        locks.break_exactly(table.store(), NAME, "n", f"{held.identity.version_id}0", OPERATOR)
    with pytest.raises(NotAllowed):
        locks.release(table.store(), NAME, NATIVE, ADA)  # who is refused learns these bytes
    assert table.lock_item() == NATIVE.decode()

    assert locks.break_exactly(table.store(), NAME, "n", held.identity.version_id, OPERATOR).info == held.info
    assert table.lock_item() is None


def test_a_break_of_a_client_with_both_kinds_of_lock_removes_both(table: Table) -> None:
    table.bucket.s3.put_object(Bucket=table.bucket.name, Key=LOCK_KEY, Body=NATIVE)
    table.put(Info=NATIVE.decode())
    held = table.held()
    assert held is not None

    locks.break_exactly(table.store(), NAME, "n", held.identity.version_id, OPERATOR)

    assert (table.object(), table.lock_item()) == (None, None)


def test_a_force_unlock_of_an_item_leaves_the_lock_object_of_another_client(table: Table) -> None:
    table.bucket.s3.put_object(Bucket=table.bucket.name, Key=LOCK_KEY, Body=lock_info("another"))
    table.put(Info=NATIVE.decode())

    with pytest.raises(LockNotMatched, match="another"):
        locks.release(table.store(), NAME, only_id("n"), OPERATOR)

    assert table.lock_item() is None
    assert table.object() == lock_info("another")


@pytest.mark.parametrize("body", [b"", only_id("another")], ids=["without-id", "with-id"])
def test_of_two_locks_a_force_unlock_removes_that_of_the_object_and_names_it(
    table: Table, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "FORCE_UNLOCK_MIN_AGE", timedelta(seconds=-2))
    table.bucket.s3.put_object(Bucket=table.bucket.name, Key=LOCK_KEY, Body=lock_info("another"))
    table.put(Info=NATIVE.decode())

    with pytest.raises(LockNotMatched, match=r"lock another is gone.*lock ID n;") as refused:
        locks.release(table.store(), NAME, body, OPERATOR)

    assert refused.value.logged["lock_id"] == "another"
    assert (table.object(), table.lock_item()) == (None, NATIVE.decode())


def test_an_acquire_takes_the_object_of_another_try_for_its_lock_only_with_its_item(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = locks.acquire(table.store(), NAME, ONE, ADA)
    table.dynamodb.delete_item(TableName=table.name, Key={"LockID": {"S": table.key}})

    with pytest.raises(OutcomeUnknown, match="Another try"):
        locks.acquire(table.store(), NAME, ONE, ADA)
    assert table.object() is not None  # the other try can still run

    monkeypatch.setattr(locks, "_LONGEST_TRY", timedelta(seconds=-2))
    acquired = locks.acquire(table.store(), NAME, ONE, ADA)

    held = table.held()
    assert held is not None
    assert (held.identity, held.identity.is_whole) == (acquired, True)
    assert acquired.version_id != first.version_id


def test_an_acquire_that_dynamodb_throttles_leaves_no_object(table: Table) -> None:
    store, client = table.store(), connect()
    store._deadline = time.monotonic() + 0.5  # noqa: SLF001 the test does not wait for the usual one
    store.table = LockTable(client, table.name, store)

    def throttle(**_: object) -> None:
        answer = {"Error": {"Code": "ThrottlingException"}, "ResponseMetadata": {"HTTPStatusCode": 400}}
        raise ClientError(answer, "PutItem")  # type: ignore[arg-type] # the metadata is shorter than AWS's

    client.put_item = throttle
    with pytest.raises(OutcomeUnknown, match="ThrottlingException"):
        locks.acquire(store, NAME, ONE, ADA)

    assert table.object() is None


def test_a_break_names_the_lock_that_it_removed(table: Table) -> None:
    put = table.bucket.s3.put_object(Bucket=table.bucket.name, Key=LOCK_KEY, Body=lock_info("another"))
    table.put(Info=NATIVE.decode())

    removed = locks.break_exactly(table.store(), NAME, "another", put["VersionId"], OPERATOR)

    assert removed.info is not None
    assert removed.info.id == "another"


@pytest.mark.parametrize("by_force", [False, True], ids=["break", "force-unlock"])
def test_an_item_without_lock_info_can_be_removed(table: Table, by_force: bool) -> None:
    table.put(Digest="no lock info")
    held = table.held()
    assert held is not None

    if by_force:
        locks.release(table.store(), NAME, b"", OPERATOR)
    else:
        locks.break_exactly(table.store(), NAME, held.info.id, held.identity.version_id, OPERATOR)

    assert table.held() is None


def test_a_freeze_without_its_object_is_refused_with_a_time_that_clients_can_parse(table: Table) -> None:
    freeze(table.store(), NAME, COMMAND, "an incident", None, OPERATOR, now=datetime.now(UTC))
    held = table.held()
    assert held is not None
    table.bucket.direct_store().remove_version(LOCK_KEY, held.identity.version_id)

    with pytest.raises(Locked) as refused:
        locks.acquire(table.store(), NAME, ONE, ADA)

    assert refused.value.holder["Created"] == "0001-01-01T00:00:00Z"


def test_a_lock_without_its_object_is_released_although_its_bucket_keeps_versions(table: Table) -> None:
    table.bucket.retain_everything()
    locks.acquire(table.store(), NAME, ONE, ADA)
    table.bucket.s3.delete_object(Bucket=table.bucket.name, Key=LOCK_KEY)
    store = table.store()

    locks.release(store, NAME, ONE, ADA)

    assert store.requests == ["GetItem", "GetObject", "DeleteObject", "DeleteItem"]
    assert table.held() is None


@pytest.mark.parametrize("body", [b"", only_id("n")], ids=["without-id", "with-id"])
def test_a_force_unlock_removes_a_lock_that_is_an_item_alone(table: Table, body: bytes) -> None:
    table.put(Info=NATIVE.decode())

    locks.release(table.store(), NAME, body, OPERATOR)

    assert table.lock_item() is None


def test_a_write_is_refused_once_a_client_with_a_table_has_removed_the_item(table: Table) -> None:
    locks.acquire(table.store(), NAME, ONE, ADA)
    table.dynamodb.delete_item(TableName=table.name, Key={"LockID": {"S": table.key}})

    with pytest.raises(LockLost):
        table.write(state(1))

    locks.release(table.store(), NAME, ONE, ADA)
    assert table.object() is None


def test_a_write_is_not_acknowledged_if_the_item_goes_while_it_is_sent(table: Table) -> None:
    locks.acquire(table.store(), NAME, ONE, ADA)
    table.bucket.proxy.before(
        "PUT", KEY, lambda: table.dynamodb.delete_item(TableName=table.name, Key={"LockID": {"S": table.key}})
    )

    with pytest.raises(LockLost):
        table.write(state(1))


@pytest.mark.parametrize("remove", ["release", "break", "unfreeze"])
def test_what_an_interrupted_removal_left_in_the_table_is_removed_by_its_retry(
    table: Table, remove: str
) -> None:
    if remove == "unfreeze":
        freeze(table.store(), NAME, COMMAND, "an incident", None, OPERATOR, now=datetime.now(UTC))
    else:
        locks.acquire(table.store(), NAME, ONE, ADA)
    held = table.held()
    assert held is not None
    version = held.identity.version_id
    table.bucket.direct_store().remove_version(LOCK_KEY, version)
    removals: dict[str, Callable[[], object]] = {
        "release": lambda: locks.release(table.store(), NAME, ONE, ADA),
        "break": lambda: locks.break_exactly(table.store(), NAME, "one", version, OPERATOR),
        "unfreeze": lambda: unfreeze(table.store(), NAME, COMMAND, OPERATOR),
    }

    removals[remove]()

    assert (table.lock_item(), table.held()) == (None, None)


def test_a_verb_takes_up_the_item_that_its_earlier_try_has_left(table: Table) -> None:
    locks.acquire(table.store(), NAME, ONE, ADA)
    version = table.write(state(1))
    table.write(state(2))
    locks.release(table.store(), NAME, ONE, ADA)
    wanted = Wanted(version, "a test", COMMAND)
    left: list[str | None] = []
    table.bucket.proxy.before("PUT", KEY, lambda: left.append(table.lock_item()))
    restore(table.store(), NAME, wanted, OPERATOR, limit=1000, retention=None)
    table.put(Info=left[0] or "", HoldfastVersion="gone")
    table.dynamodb.update_item(
        TableName=table.name,
        Key={"LockID": {"S": table.key}},
        UpdateExpression="SET HoldfastMetadata = :noted",
        ExpressionAttributeValues={":noted": {"M": {"locked-by": {"S": OPERATOR.principal}}}},
    )

    restore(table.store(), NAME, wanted, OPERATOR, limit=1000, retention=None)

    assert (table.lock_item(), table.object()) == (None, None)


def test_the_digest_of_another_client_follows_each_write_and_goes_with_the_state(table: Table) -> None:
    locks.acquire(table.store(), NAME, ONE, ADA)
    table.write(state(1))
    assert table.digest() is None  # nobody compares it

    table.put(f"{table.key}-md5", Digest=md5(state(1)))
    table.write(state(2))
    assert table.digest() == md5(state(2))
    table.write(state(3))
    assert table.digest() == md5(state(3))

    locks.release(table.store(), NAME, ONE, ADA)
    delete(table.store(), NAME, OPERATOR)
    assert table.digest() is None


def test_a_late_digest_of_a_writer_whose_lock_was_broken_does_not_land(table: Table) -> None:
    table.put(f"{table.key}-md5", Digest=md5(b"before"))
    late, next_writer = table.store().table, table.store().table
    assert late is not None
    assert next_writer is not None
    dropped = late.drop_digest(table.key)
    after = next_writer.drop_digest(table.key)
    assert dropped is not None
    assert after is not None
    next_writer.keep_digest(table.key, after, b"next")

    late.keep_digest(table.key, dropped, b"late")

    assert table.digest() in (None, md5(b"next"))


def test_a_digest_is_kept_although_the_response_is_lost(table: Table) -> None:
    table.put(f"{table.key}-md5", Digest=md5(b"before"))
    store, client = table.store(), connect()
    store.table = LockTable(client, table.name, store)
    dropped = store.table.drop_digest(table.key)
    assert dropped is not None
    lost: list[None] = []

    def lose(response_dict: dict[str, Any], **_: object) -> None:
        if not lost:
            lost.append(response_dict.update(body=b""))

    client.meta.events.register_first("before-parse.dynamodb.PutItem", lose)
    store.table.keep_digest(table.key, dropped, b"after")

    assert table.digest() == md5(b"after")


def test_a_restore_of_the_current_version_repairs_a_wrong_digest(table: Table) -> None:
    locks.acquire(table.store(), NAME, ONE, ADA)
    version = table.write(state(1))
    locks.release(table.store(), NAME, ONE, ADA)
    table.put(f"{table.key}-md5", Digest=md5(b"another"))

    restored = restore(
        table.store(), NAME, Wanted(version, "a test", COMMAND), OPERATOR, limit=1000, retention=None
    )

    assert isinstance(restored, Restored)
    assert (restored.version_id, restored.changed, table.digest()) == (version, False, None)


def test_a_table_that_is_not_there_is_a_fault_and_leaves_no_lock(table: Table) -> None:
    with pytest.raises(StorageRefused, match=r"'locks-gone': ResourceNotFoundException"):
        locks.acquire(table.store("locks-gone"), NAME, ONE, ADA)

    assert table.object() is None


def test_an_answer_that_is_cut_short_is_no_missing_item(table: Table) -> None:
    locks.acquire(table.store(), NAME, ONE, ADA)
    store = table.store()
    store._deadline = time.monotonic() + 0.3  # noqa: SLF001 the test does not wait for the usual one
    client = connect()

    def cut(response_dict: dict[str, Any], **_: object) -> None:
        response_dict["body"] = response_dict["body"][:-1]

    client.meta.events.register_first("before-parse.dynamodb", cut)
    store.table = LockTable(client, table.name, store)
    with pytest.raises(OutcomeUnknown, match=f"DynamoDB did not decide.*{ResponseCutShortError.__name__}"):
        locks.read(store, NAME)


def test_each_function_that_changes_locks_uses_the_table(moto: Server) -> None:
    name, staging = (f"holdfast-{uuid4().hex}" for _ in range(2))
    moto.direct.create_bucket(Bucket=staging)
    endpoint = moto.direct.meta.endpoint_url
    dynamodb = boto3.client(
        "dynamodb", "us-east-1", endpoint_url=endpoint, aws_access_key_id="test", aws_secret_access_key="test"
    )
    create_lock_table(dynamodb, name)
    settings = {
        "HOLDFAST_BUCKET": name,
        "HOLDFAST_STAGING_BUCKET": staging,
        "HOLDFAST_DYNAMODB_LOCK": name,
        "AWS_ENDPOINT_URL_DYNAMODB": endpoint,
    }
    with started(moto, "terraform_http", "management", "cloud", **settings) as handlers:
        lock = request("PUT", "/locks/{name+}", "a", caller=ADA) | {"body": lock_info("one").decode()}
        workspace = WorkspaceId.mint(names.parse("b/c"))
        frozen = json.dumps({"reason": "a test", "id": COMMAND})
        for function, event in (
            ("terraform_http", lock),
            ("cloud", cloud_request("POST", f"workspaces/{workspace}/actions/lock", caller=ADA)),
            ("management", manage_request("PUT", "freeze/d", caller=OPERATOR, body=frozen)),
        ):
            answer = handlers[function](event, Context())
            assert answer["statusCode"] == 200, answer

    for state_name in ("a", "b/c", "d"):
        assert item(dynamodb, name, f"{name}/states/{state_name}.tfstate") is not None


def test_doctor_says_who_uses_the_table_and_which_digest_is_wrong(table: Table) -> None:
    locks.acquire(table.store(), NAME, ONE, ADA)
    table.put(f"{table.key}-md5", Digest=md5(state(1)))
    table.write(state(1))

    def findings() -> list[tuple[str, Level, str]]:
        found = lock_table.check(table.dynamodb, table.bucket.s3, table.bucket.name, table.name)
        return [(one.check, one.level, one.text) for one in found]

    assert [(check, level) for check, level, _ in findings()] == [
        ("lock_table.used", Level.NOTE),
        ("lock_table.digests", Level.OK),
    ]

    table.put(f"{table.key}-md5", Digest=md5(state(2)))
    table.put(f"{table.bucket.name}/states/gone.tfstate-md5", Digest=md5(state(2)))
    table.put("another-bucket/states/x.tfstate", Info="{}")

    used, digests = findings()
    assert used[:2] == ("lock_table.used", Level.OK)
    assert used[2].endswith("last for: gone, network/prod.")
    assert digests[:2] == ("lock_table.digests", Level.PROBLEM)
    assert digests[2].endswith("another version: gone, network/prod.")


def test_without_the_setting_the_module_is_not_imported() -> None:
    code = "import sys, terraform_http.handler; print('holdfast.s3.lock_table' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**SETTINGS, "PYTHONPATH": "functions"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "False"

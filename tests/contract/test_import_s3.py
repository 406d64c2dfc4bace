"""The source `s3` of an import: listing, versions, and locks that exclude the clients of `backend "s3"`."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.retries import standard
from botocore.stub import Stubber

from holdfast.state import lock_info as lock_infos
from holdfast_cli.bucket.refusal import LARGEST_POLICY
from holdfast_cli.errors import CommandError, UnavailableError
from holdfast_cli.importing.s3 import CLOSED, S3Source, open_s3
from holdfast_cli.importing.source import LockedThereError, OldLock, Settings
from tests.contract.conftest import Bucket, Server
from tests.support.documents import lock_info
from tests.support.s3_fault_proxy import Fault

KEY = "team/net.tfstate"
LOCK = f"{KEY}.tflock"
OURS = OldLock(lock_infos.parse(lock_info("ours")))
SESSION = boto3.Session("test", "test", region_name="us-east-1")
"""Describes the services once for all tests, which takes longer than a test."""
THEIRS = lock_info("theirs", who="bob@desk")


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (
        ("ACCESS_KEY_ID", "test"),
        ("SECRET_ACCESS_KEY", "test"),
        ("DEFAULT_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(f"AWS_{name}", value)


@pytest.fixture
def opened(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Callable[..., S3Source]:
    monkeypatch.setenv("AWS_ENDPOINT_URL", bucket.proxy.endpoint)

    return lambda prefix="", **options: from_session(f"s3://{bucket.name}{prefix}", **options)


def from_session(address: str, **options: str) -> S3Source:
    return open_s3(Settings((address,), options), session=SESSION)


@dataclass(frozen=True)
class Clients:
    """Other clients that lock in both ways, and a source with their table."""

    bucket: Bucket
    table: str
    dynamodb: Any

    @property
    def source(self) -> S3Source:
        return from_session(f"s3://{self.bucket.name}", dynamodb_table=self.table)

    @property
    def item_key(self) -> dict[str, Any]:
        return {"LockID": {"S": f"{self.bucket.name}/{KEY}"}}

    def put_object(self, info: bytes = THEIRS) -> None:
        self.bucket.s3.put_object(Bucket=self.bucket.name, Key=LOCK, Body=info, IfNoneMatch="*")

    def put_item(self, info: bytes = THEIRS) -> None:
        self.dynamodb.put_item(
            TableName=self.table,
            Item={**self.item_key, "Info": {"S": info.decode()}},
            ConditionExpression="attribute_not_exists(LockID)",
        )

    def object(self) -> bytes | None:
        return current(self.bucket, LOCK)

    def item(self) -> bytes | None:
        found = self.dynamodb.get_item(TableName=self.table, Key=self.item_key).get("Item")
        return str(found["Info"]["S"]).encode() if found else None


@pytest.fixture
def clients(ministack: Server, monkeypatch: pytest.MonkeyPatch) -> Clients:
    monkeypatch.setenv("AWS_ENDPOINT_URL", ministack.proxy.endpoint)
    name = f"old-{uuid4().hex}"
    ministack.direct.create_bucket(Bucket=name)
    dynamodb = SESSION.client("dynamodb", endpoint_url=ministack.direct.meta.endpoint_url)
    dynamodb.create_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": "LockID", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "LockID", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return Clients(Bucket(name, ministack), name, dynamodb)


def current(bucket: Bucket, key: str) -> bytes | None:
    try:
        body: bytes = bucket.s3.get_object(Bucket=bucket.name, Key=key)["Body"].read()
    except ClientError:
        return None
    return body


def put(bucket: Bucket, *keys: str, body: bytes = b"{}") -> None:
    for key in keys:
        bucket.s3.put_object(Bucket=bucket.name, Key=key, Body=body)


# --- reading -----------------------------------------------------------------------------------------


def test_the_states_of_all_workspaces_are_listed_without_locks_folders_and_neighbours(
    bucket: Bucket, opened: Callable[..., S3Source]
) -> None:
    put(bucket, "team/a.tfstate", "team/z/b.tfstate", LOCK, "team/", "team2/c.tfstate", "env:/prod/c.tfstate")
    put(bucket, "team/env:/prod/a.tfstate")  # the path of another state
    put(bucket, "env:/prod/team/a.tfstate", "env:/prod/team/a.tfstate.tflock", "envs/prod/team/a.tfstate")

    of_z = ("team/z/b.tfstate", "z/b")
    assert named(opened("/team/")) == {
        "env:/prod/team/a.tfstate": "a/prod",
        "team/a.tfstate": "a/main",
        "team/env:/prod/a.tfstate": "env:/prod/a",
        **dict([of_z]),
    }
    assert named(opened("/team", workspace_key_prefix="envs")) == {
        "envs/prod/team/a.tfstate": "a/prod",
        "team/a.tfstate": "a/main",
        "team/env:/prod/a.tfstate": "env:/prod/a",
        **dict([of_z]),
    }
    assert len(named(opened())) == 7


def named(source: S3Source) -> dict[str, str]:
    """Return the names of the states, by key."""
    return {state.id: state.name for state in source.states()}


@pytest.mark.parametrize(
    ("key", "prefix", "name"),
    [
        ("p/a/b", "p/a/b", "b"),
        ("env:/x/p/a/b", "p/a/b", "b/x"),
        ("env:/x/p/b", "env:", "x/p/b"),
        ("p2/a", "p", None),
        ("env:/p", "p", None),
    ],
)
def test_a_prefix_is_a_folder_or_a_whole_key(
    bucket: Bucket, opened: Callable[..., S3Source], key: str, prefix: str, name: str | None
) -> None:
    put(bucket, key)
    source = opened(f"/{prefix}")

    assert named(source) == ({key: name} if name else {})
    assert source.covers(key) == (name is not None)


def test_workspaces_of_a_configuration_have_a_name_of_one_segment_and_a_tag_in_common(
    bucket: Bucket, opened: Callable[..., S3Source]
) -> None:
    put(bucket, "team/net.tfstate", "env:/prod/team/net.tfstate", "env:/main/team/net.tfstate")
    put(bucket, "env:/prod/team-net/terraform.tfstate", "team/app.tfstate")

    states = list(opened().states())

    assert {state.id: (state.name, state.tags, state.workspace) for state in states} == {
        "team/net.tfstate": ("team-net-2/main-2", {"team-net-2": ""}, "default"),
        "env:/main/team/net.tfstate": ("team-net-2/main", {"team-net-2": ""}, "main"),
        "env:/prod/team/net.tfstate": ("team-net-2/prod", {"team-net-2": ""}, "prod"),
        "env:/prod/team-net/terraform.tfstate": ("team-net/prod", {"team-net": ""}, "prod"),
        "team/app.tfstate": ("team/app", {}, ""),
    }


@pytest.mark.parametrize(
    ("option", "keys"),
    [
        (
            "x",
            {
                "app": "app/main",
                "x/dev/app": "app/dev",
                "x/dev/team/net": "team-net/dev",
                "dev/app": "dev/app",
            },
        ),
        ("x/", {"app": "app/main", "x/dev/app": "app/dev", "x/dev/team/net": "team-net/dev"}),
        (
            "",
            {
                "app": "app/main",
                "dev/app": "app/dev",
                "a/team/net": "team-net/a",
                "b/team/net": "team-net/b",
                "team/db": "team/db",
            },
        ),
    ],
)
def test_the_prefix_of_workspaces_means_what_it_means_to_terraform(
    bucket: Bucket, opened: Callable[..., S3Source], option: str, keys: dict[str, str]
) -> None:
    put(bucket, *keys)
    source = opened(workspace_key_prefix=option)

    assert named(source) == keys
    assert all(source.covers(key) for key in keys)


def test_a_folder_from_a_disk_has_workspaces_and_files_that_are_no_states_of_their_own(
    bucket: Bucket, opened: Callable[..., S3Source]
) -> None:
    put(
        bucket, "app/terraform.tfstate", "app/terraform.tfstate.d/prod/terraform.tfstate", "terraform.tfstate"
    )
    put(bucket, "terraform.tfstate.d/dev/terraform.tfstate", "err/terraform.tfstate", "my-errored.tfstate")
    copies = (
        "err/errored.tfstate",
        "app/terraform.tfstate.backup",
        "app/terraform.tfstate.1700000000.backup",
    )
    put(bucket, "errored.tfstate", *copies)

    states = list(opened().states())

    assert {state.id: state.name for state in states if not state.left_out} == {
        "app/terraform.tfstate": "app/main",
        "app/terraform.tfstate.d/prod/terraform.tfstate": "app/prod",
        "terraform.tfstate": "terraform/main",
        "terraform.tfstate.d/dev/terraform.tfstate": "terraform/dev",
        "err/terraform.tfstate": "err",
        "my-errored.tfstate": "my-errored",
    }
    assert [state.tags for state in states if state.name == "app/prod"] == [{"app": ""}]
    assert {state.id for state in states if state.left_out} == {"errored.tfstate", *copies}
    # An address that names the key means it.
    assert [state.left_out for state in opened("/err/errored.tfstate").states()] == [""]


@pytest.mark.parametrize(
    "state", ["other/net.tfstate", "env:/prod/other/a", "team/net.tfstate.tflock", "team/"]
)
def test_what_is_not_listed_is_not_covered(opened: Callable[..., S3Source], state: str) -> None:
    source = opened("/team")

    assert not source.covers(state)
    assert source.covers("team/net.tfstate")
    assert source.covers("env:/prod/team/net.tfstate")


def test_a_state_is_read_byte_for_byte_and_an_empty_one_is_not_an_absent_one(
    bucket: Bucket, opened: Callable[..., S3Source]
) -> None:
    put(bucket, KEY, body=b'{"serial": 1}\n')
    put(bucket, "empty", body=b"")
    source = opened()

    assert [source.read(key) for key in (KEY, "empty", "absent")] == [b'{"serial": 1}\n', b"", None]


def test_a_key_is_certain_to_be_a_state_if_it_ends_as_one_or_is_the_address(
    bucket: Bucket, opened: Callable[..., S3Source]
) -> None:
    put(bucket, "team/net", "team/net/run.sh", "team/net/a.tfstate", "env:/prod/team/net", "env:/prod/x")

    def certain(source: S3Source) -> dict[str, bool]:
        return {state.id: state.is_certain for state in source.states()}

    assert certain(opened("/team/net")) == {
        "team/net": True,
        "team/net/run.sh": False,
        "team/net/a.tfstate": True,
        "env:/prod/team/net": True,
    }
    assert certain(opened())["team/net"] is False
    assert certain(opened())["env:/prod/x"] is False


@pytest.mark.parametrize(
    ("digest", "body", "problem"),
    [
        (
            "0" * 32,
            b"{}",
            "is 0{32}, but the object has the MD5 99914b932bd37a50b983c5e7c90ae93b, so `backend",
        ),
        ("0" * 32, b"", "but the object has no content, so"),
        ("0" * 32, None, "but the object has no content, so"),
        ("99914B932BD37A50B983C5E7C90AE93B", b"{}", ""),
        ("", b"{}", ""),  # clients log a digest that is not an MD5, and accept the state
        (None, b"{}", ""),
    ],
)
def test_a_state_whose_digest_in_the_table_is_anothers_is_refused_as_its_clients_refuse_it(
    clients: Clients, digest: str | None, body: bytes | None, problem: str
) -> None:
    if body is not None:
        put(clients.bucket, KEY, body=body)
    if digest is not None:
        key = {"S": f"{clients.bucket.name}/{KEY}-md5"}
        clients.dynamodb.put_item(TableName=clients.table, Item={"LockID": key, "Digest": {"S": digest}})

    if not problem:
        assert clients.source.read(KEY) == body
        return
    with pytest.raises(CommandError, match=problem) as refused:
        clients.source.read(KEY)
    assert str(refused.value).startswith(f"s3://{clients.bucket.name}/{KEY}: its digest in the table")
    # Without the table there is no digest.
    assert from_session(f"s3://{clients.bucket.name}").read(KEY) == body


# --- locks -------------------------------------------------------------------------------------------


def test_a_lock_is_that_of_both_kinds_of_clients_and_excludes_them(clients: Clients) -> None:
    clients.source.lock(KEY, OURS)

    for stored in (clients.object(), clients.item()):
        document = json.loads(stored or b"")
        assert (document["ID"], document["Path"]) == ("ours", f"{clients.bucket.name}/{KEY}")
    stored_as = clients.bucket.s3.head_object(Bucket=clients.bucket.name, Key=LOCK)["ContentType"]
    assert stored_as == "application/json"
    for acquire in (clients.put_object, clients.put_item):
        with pytest.raises(ClientError, match=r"PreconditionFailed|ConditionalCheckFailed"):
            acquire()


def test_acquiring_and_releasing_the_same_lock_again_changes_nothing(clients: Clients) -> None:
    for _ in range(2):  # each time in a new process
        clients.source.lock(KEY, OURS)
    for _ in range(2):
        clients.source.unlock(KEY, OURS)
    assert (clients.object(), clients.item()) == (None, None)


def test_a_lock_that_comes_and_goes_is_somebody_elses_lock(
    bucket: Bucket, opened: Callable[..., S3Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(bucket, LOCK, body=THEIRS)
    monkeypatch.setattr("holdfast_cli.importing.s3._LockObjects.holder", lambda *_: None)

    with pytest.raises(
        LockedThereError,
        match=f"{KEY}: other clients acquired and released the lock of this state at the same time",
    ):
        opened().lock(KEY, OURS)
    assert current(bucket, LOCK) == THEIRS


@pytest.mark.parametrize("held", ["object", "item"])
def test_a_lock_of_either_kind_is_named_and_leaves_no_half_of_ours(clients: Clients, held: str) -> None:
    clients.source.lock(KEY, OURS)  # by an earlier attempt, of which force-unlock removed a half
    if held == "object":
        clients.bucket.s3.delete_object(Bucket=clients.bucket.name, Key=LOCK)
        clients.put_object()
    else:
        clients.dynamodb.delete_item(TableName=clients.table, Key=clients.item_key)
        clients.put_item()

    with pytest.raises(
        LockedThereError, match=r"net\.tfstate: bob@desk holds .* OperationTypeApply; since 2026-11"
    ):
        clients.source.lock(KEY, OURS)

    assert [clients.object(), clients.item()] == ([THEIRS, None] if held == "object" else [None, THEIRS])


def test_releasing_leaves_the_locks_of_others(clients: Clients) -> None:
    clients.put_object()
    clients.put_item()
    clients.source.unlock(KEY, OURS)
    assert (clients.object(), clients.item()) == (THEIRS, THEIRS)


def test_a_lock_that_changes_while_it_is_released_stays(
    bucket: Bucket, opened: Callable[..., S3Source]
) -> None:
    opened().lock(KEY, OURS)
    bucket.proxy.before("DELETE", LOCK, lambda: put(bucket, LOCK, body=THEIRS))
    opened().unlock(KEY, OURS)
    assert current(bucket, LOCK) == THEIRS


def test_a_lock_that_is_gone_before_it_is_removed_is_released(
    bucket: Bucket, opened: Callable[..., S3Source]
) -> None:
    opened().lock(KEY, OURS)
    bucket.proxy.before("DELETE", LOCK, lambda: bucket.s3.delete_object(Bucket=bucket.name, Key=LOCK))
    opened().unlock(KEY, OURS)
    assert current(bucket, LOCK) is None


def test_a_lock_that_is_released_before_its_holder_is_read_is_acquired(
    bucket: Bucket, opened: Callable[..., S3Source]
) -> None:
    put(bucket, LOCK, body=THEIRS)
    bucket.proxy.before("GET", LOCK, lambda: bucket.s3.delete_object(Bucket=bucket.name, Key=LOCK))
    opened().lock(KEY, OURS)
    assert b'"ours"' in (current(bucket, LOCK) or b"")


def test_a_lock_object_that_is_not_a_lock_info_is_a_lock(
    bucket: Bucket, opened: Callable[..., S3Source]
) -> None:
    put(bucket, LOCK, body=b"\xff")
    with pytest.raises(
        LockedThereError, match=r"an unknown client holds the state's lock \(lock ID unreadable-"
    ):
        opened().lock(KEY, OURS)
    opened().unlock(KEY, OURS)
    assert current(bucket, LOCK) == b"\xff"


def test_what_a_lock_stops_depends_on_the_table(clients: Clients) -> None:
    stopped, not_stopped = clients.source.stopped_by_lock()
    assert clients.table in stopped
    assert "clients that do not lock" in not_stopped

    stopped, not_stopped = open_s3(Settings(("s3://old",))).stopped_by_lock()
    assert stopped == "clients with `use_lockfile`"
    assert "dynamodb_table" in not_stopped


# --- faults ------------------------------------------------------------------------------------------


@pytest.fixture
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standard.ExponentialBackoff, "delay_amount", lambda *_: 0)


@pytest.mark.usefixtures("_without_pauses")
def test_requests_of_every_kind_survive_throttling(clients: Clients) -> None:
    put(clients.bucket, KEY)
    for method, path in (("PUT", LOCK), ("POST", "/"), ("GET", KEY)):
        clients.bucket.proxy.fail(method, path, Fault.SLOW_DOWN, times=9)

    clients.source.lock(KEY, OURS)
    assert clients.source.read(KEY) == b"{}"

    assert clients.object() == clients.item() is not None
    assert clients.bucket.proxy.end_rules() == 0


@pytest.mark.usefixtures("_without_pauses")
def test_a_source_that_throttles_for_ever_is_unavailable(
    bucket: Bucket, opened: Callable[..., S3Source]
) -> None:
    bucket.proxy.fail("GET", KEY, Fault.SLOW_DOWN, times=10)
    with pytest.raises(UnavailableError, match=f"s3://{bucket.name}/{KEY}: "):
        opened().read(KEY)


@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.SERVER_ERROR_AFTERWARDS, Fault.CONFLICT])
@pytest.mark.usefixtures("_without_pauses")
def test_a_lock_is_acquired_although_the_response_was_lost(
    bucket: Bucket, opened: Callable[..., S3Source], fault: Fault
) -> None:
    bucket.proxy.fail("PUT", LOCK, fault)
    opened().lock(KEY, OURS)
    assert b'"ours"' in (current(bucket, LOCK) or b"")


def test_a_content_that_ends_too_early_is_read_again(bucket: Bucket, opened: Callable[..., S3Source]) -> None:
    put(bucket, KEY, body=b"x" * 1000)
    bucket.proxy.fail("GET", KEY, Fault.HALF_AN_ANSWER, times=2)
    assert opened().read(KEY) == b"x" * 1000

    bucket.proxy.fail("GET", KEY, Fault.HALF_AN_ANSWER, times=3)
    with pytest.raises(UnavailableError, match=r"net\.tfstate: its content did not arrive completely"):
        opened().read(KEY)


@pytest.mark.parametrize(
    ("method", "suffix", "call", "action"),
    [
        ("GET", "", lambda source: list(source.states()), "s3:ListBucket"),
        ("GET", f"/{KEY}", lambda source: source.read(KEY), "s3:GetObject"),
        ("PUT", f"/{LOCK}", lambda source: source.lock(KEY, OURS), "s3:PutObject"),
        ("GET", "", lambda source: source.refuse_writes([KEY], []), "s3:GetBucketPolicy"),
    ],
)
def test_a_denied_request_names_the_missing_permission(
    bucket: Bucket,
    opened: Callable[..., S3Source],
    method: str,
    suffix: str,
    call: Callable[[S3Source], object],
    action: str,
) -> None:
    bucket.proxy.fail(method, f"{bucket.name}{suffix}", Fault.DENIED)
    with pytest.raises(CommandError, match=rf"^s3://{bucket.name}.*: AWS does not allow {action}: "):
        call(opened())


def test_a_bucket_or_a_table_that_does_not_exist_is_said(clients: Clients) -> None:
    missing = open_s3(Settings((f"s3://{uuid4().hex}/p",)))
    with pytest.raises(CommandError, match=r"/p: the bucket does not exist. Check the address"):
        list(missing.states())

    options = {"dynamodb_table": "missing"}
    with pytest.raises(CommandError, match=r"the table does not exist. Check --dynamodb-table"):
        open_s3(Settings((f"s3://{clients.bucket.name}",), options)).lock(KEY, OURS)


@pytest.mark.parametrize(
    ("code", "message", "said"),
    [
        ("AccessDenied", "x may not perform: kms:Decrypt on resource: k", "AWS does not allow kms:Decrypt: "),
        (
            "InvalidRequest",
            "The object was stored using",
            "a key of your own .`sse_customer_key`., store the object without this key",
        ),
        ("InvalidObjectState", "", "the object is archived"),
        ("PermanentRedirect", "", "Set --region to the region"),
        ("ExpiredToken", "", "sign in again"),
    ],
)
def test_a_state_that_cannot_be_read_is_one_line_that_says_what_to_do(
    code: str, message: str, said: str
) -> None:
    source = from_session("s3://old")
    with Stubber(source.s3) as stub:
        stub.add_client_error("get_object", code, message, 403)
        with pytest.raises(CommandError, match=rf"^s3://old/{KEY}: .*{said}"):
            source.read(KEY)


def test_the_table_is_in_the_region_of_the_environment_or_of_the_options(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(CommandError, match="No AWS region is set"):
        open_s3(Settings(("s3://old",), {"dynamodb_table": "locks"}))
    open_s3(Settings(("s3://old",), {"dynamodb_table": "locks", "region": "eu-west-1"}))
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    open_s3(Settings(("s3://old",), {"dynamodb_table": "locks"}))


@pytest.mark.parametrize("address", ["s3://", "bucket/p", "s3:///p"])
def test_an_address_that_names_no_bucket_is_refused(address: str) -> None:
    with pytest.raises(CommandError, match="write s3://BUCKET"):
        open_s3(Settings((address,)))


# --- the bucket policy -------------------------------------------------------------------------------

OTHER = b'{"Sid":"Tls", "Effect":"Deny","Principal":"*","Action":"s3:*","Resource":"arn:aws:s3:::b/*"}'


@pytest.mark.parametrize(("opening", "end"), [(b"[ ", b" ]"), (b"", b"")])
def test_the_statement_is_added_replaced_and_removed_and_others_stay_byte_for_byte(
    opening: bytes, end: bytes
) -> None:
    policy = b'{ "Version": "2012-10-17", "Statement": ' + opening + OTHER + end + b', "Id": "x"}'
    first = CLOSED.changed(policy, ["arn:aws:s3:::b/1"], []) or b""
    as_text = first.replace(b'["arn:aws:s3:::b/1"]', b'"arn:aws:s3:::b/1"')  # as S3 returns it
    second = CLOSED.changed(as_text, ["arn:aws:s3:::b/2"], []) or b""

    for closed, resources in ((first, 1), (second, 2)):
        assert OTHER in closed
        kept, ours = json.loads(closed)["Statement"]
        assert kept == json.loads(OTHER)
        assert (ours["Sid"], ours["Effect"], ours["Principal"]) == ("HoldfastImportClosed", "Deny", "*")
        assert (ours["Action"], len(ours["Resource"])) == ("s3:PutObject", resources)
    assert json.loads(CLOSED.changed(second, [], ["arn:aws:s3:::b/2"]) or b"") == json.loads(first)
    both = ["arn:aws:s3:::b/1", "arn:aws:s3:::b/2"]
    assert CLOSED.changed(second, [], both) == policy.replace(opening + OTHER + end, b"[" + OTHER + b"]")
    assert CLOSED.changed(policy, [], both) == policy


def test_the_policy_of_the_bucket_refuses_writes_until_no_state_is_closed(
    bucket: Bucket, opened: Callable[..., S3Source]
) -> None:
    def policy() -> Any:
        return json.loads(bucket.s3.get_bucket_policy(Bucket=bucket.name)["Policy"])

    opened().refuse_writes([], ["a"])  # nothing to remove
    opened().refuse_writes(["b"], [])
    opened().refuse_writes(["a"], ["c"])
    [statement] = policy()["Statement"]
    assert statement["Resource"] == [f"arn:aws:s3:::{bucket.name}/a", f"arn:aws:s3:::{bucket.name}/b"]

    opened().refuse_writes([], ["a", "b"])
    with pytest.raises(ClientError, match="NoSuchBucketPolicy"):
        policy()


def test_a_policy_that_would_be_too_large_is_not_written(
    bucket: Bucket, opened: Callable[..., S3Source]
) -> None:
    with pytest.raises(
        CommandError, match=f"the bucket policy would have .* accepts at most {LARGEST_POLICY}. Close without"
    ):
        opened().refuse_writes([f"{number}.tfstate" for number in range(400)], [])
    with pytest.raises(ClientError, match="NoSuchBucketPolicy"):
        bucket.s3.get_bucket_policy(Bucket=bucket.name)

"""Who may remove whose lock, by every request that removes one, and by each value of `own_locks`."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any, Final

import pytest

from holdfast.access import Caller, Grant, OwnLocks, Role
from holdfast.cloud import locking
from holdfast.cloud.ids import WorkspaceId
from holdfast.state import acquiring, held, lock_info, removing
from holdfast.state.freezing.states import freeze
from holdfast.state.held import Freeze, HeldLock
from holdfast.state.lock_info import Verb
from tests.contract.conftest import COMMAND, LOCK_KEY, NAME, READER, Bucket, Server, started
from tests.contract.test_locks import wait_until_older_than_the_minimum
from tests.support import documents
from tests.support.documents import ADA, BOB, OPERATOR
from tests.support.events import Context, cloud_request, manage_request, request
from tests.support.work import work

BUCKET, STAGING = "holdfast-own-locks", "holdfast-own-locks-staging"

_STATUSES: Final = """
            break  id  cloud  nothing  other-break  other-id  other-cloud
own           200 200    200      403          409       409          409
own-cloud     200 200    200      403          409       409          409
own-delete    403 403    403      403          409       409          409
own-undelete  403 403    403      403          409       409          409
own-restore   403 403    403      403          409       409          409
own-freeze    423 423    423      403          423       423          423
another's     403 403    403      403          409       409          409
nobody's      403 403    403      403          409       409          409
none          200 200    200      403          200       200          200
"""
"""The statuses of a writer with `own_locks = "named"`: a row for each lock, a column for each request."""
HEAD, *ROWS = (line.split() for line in _STATUSES.splitlines() if line)
TABLE: Final = {lock: dict(zip(HEAD, map(int, statuses), strict=True)) for lock, *statuses in ROWS}


def of_writer(own_locks: OwnLocks, whose: str, how: str) -> int:
    row = TABLE[whose]
    if own_locks is OwnLocks.NONE:
        # A release begins in the same way, so it reads the lock.
        reads = how == "other-id" or (how == "id" and whose in ("own-freeze", "none"))
        return row[how] if reads else 403
    return row["break"] if own_locks is OwnLocks.ANY and how == "nothing" else row[how]


def of_maintainer(whose: str, how: str) -> int:
    if whose == "own-freeze":
        return 423
    return 409 if how.startswith("other") and whose != "none" else 200


@dataclass(frozen=True)
class Functions:
    """The functions that remove locks, and their bucket."""

    bucket: Bucket
    handlers: Mapping[str, Any]

    def take(self, whose: str, caller: Caller) -> HeldLock | None:
        """Lock the state; `whose` is a row of the tables."""
        store = self.bucket.direct_store()
        match whose.split("-"):
            case ["own"]:
                acquiring.acquire(work(store, NAME, caller), documents.lock_info("one"))
            case ["own", "cloud"]:
                locking.lock(work(store, NAME, caller), WorkspaceId.mint(NAME))
            case ["own", "freeze"]:
                operator = Caller(caller.principal, OPERATOR.grants)
                wanted = Freeze(COMMAND, "an incident", None)
                freeze(work(store, NAME, operator), wanted, now=datetime.now(UTC))
            case ["own", verb]:
                info = lock_info.of_verb("v", caller, operation=Verb(verb), info="")
                acquiring.acquire_own(work(store, NAME, caller), info)
            case ["another's"]:
                acquiring.acquire(work(store, NAME, BOB), documents.lock_info("one"))
            case ["nobody's"]:  # as `backend "s3"` locks
                self.bucket.s3.put_object(
                    Bucket=self.bucket.name, Key=LOCK_KEY, Body=documents.lock_info("one")
                )
            case _:
                pass
        return self.held()

    def held(self) -> HeldLock | None:
        return held.read(self.bucket.direct_store(), NAME)

    def removal(self, how: str, lock: HeldLock | None, caller: Caller) -> Callable[[], dict[str, Any]]:
        """Return a request that removes a lock, which is named unless `how` begins with "other"."""
        named = lock is not None and not how.startswith("other")
        lock_id = lock.info.id if lock and named else "gone"
        version = lock.identity.version_id if lock and named else "gone"
        match how.removeprefix("other-"):
            case "break":
                function, query = "management", {"id": lock_id, "version": version}
                event = manage_request("DELETE", f"locks/{NAME}", caller=caller, query=query)
            case "cloud":
                function, path = "cloud", f"workspaces/{WorkspaceId.mint(NAME, version)}/actions/force-unlock"
                event = cloud_request("POST", path, caller=caller)
            case _:
                function, body = "terraform_http", documents.only_id(lock_id).decode()
                event = request("POST", "/unlocks/{name+}", NAME.value, caller=caller)
                if how != "nothing":
                    event["body"] = body
        return lambda: self.handlers[function](event, Context())

    def permissions(self, caller: Caller) -> dict[str, bool]:
        event = cloud_request("GET", "organizations/network/workspaces/prod", caller=caller)
        answer = self.handlers["cloud"](event, Context())
        permissions: dict[str, bool] = json.loads(answer["body"])["data"]["attributes"]["permissions"]
        return permissions


@contextmanager
def functions(moto: Server, own_locks: OwnLocks) -> Iterator[Functions]:
    bucket, staging = (f"{name}-{own_locks}" for name in (BUCKET, STAGING))
    moto.direct.create_bucket(Bucket=staging)
    settings = {
        "HOLDFAST_BUCKET": bucket,
        "HOLDFAST_STAGING_BUCKET": staging,
        "HOLDFAST_OWN_LOCKS": own_locks,
    }
    with started(moto, "terraform_http", "management", "cloud", **settings) as handlers:
        made = Functions(Bucket(bucket, moto), handlers)
        yield made
        made.bucket.empty()
    for name in (bucket, staging):
        moto.direct.delete_bucket(Bucket=name)


@pytest.mark.parametrize("own_locks", OwnLocks)
def test_who_removes_whose_lock_by_which_request(
    moto: Server, own_locks: OwnLocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removing, "FORCE_UNLOCK_MIN_AGE", timedelta(seconds=-1))
    with functions(moto, own_locks) as team:
        for (whose, row), role in product(TABLE.items(), (Role.READER, Role.WRITER, Role.MAINTAINER)):
            caller = Caller("token:ada", (Grant(role, ("*",)),))
            for how in row:
                lock = team.take(whose, ADA)
                answer = team.removal(how, lock, caller)()
                wanted = {
                    Role.READER: 403,
                    Role.WRITER: of_writer(own_locks, whose, how),
                    Role.MAINTAINER: of_maintainer(whose, how),
                }[role]
                assert answer["statusCode"] == wanted, (whose, how, role, answer)
                kept = lock.identity if lock and wanted != 200 else None
                assert held.identity(team.held()) == kept, (whose, how, role)
                team.bucket.empty()


def test_a_force_unlock_without_an_id_names_the_command_that_removes_an_own_lock(moto: Server) -> None:
    for own_locks in OwnLocks:
        with functions(moto, own_locks) as team:
            lock = team.take("own", ADA)
            message = json.loads(team.removal("nothing", lock, ADA)()["body"])["message"]
            assert ("'holdfast lock break network/prod'" in message) is (own_locks is OwnLocks.NAMED)
            assert team.held()


def test_who_is_refused_anothers_lock_is_told_whose_it_is(moto: Server) -> None:
    with functions(moto, OwnLocks.NAMED) as team:
        for how in ("break", "id"):
            message = json.loads(team.removal(how, team.take("another's", ADA), ADA)()["body"])["message"]
            assert (
                "Use credentials with the role 'maintainer'. The lock one is held by the token bob" in message
            )
            team.bucket.empty()


@pytest.mark.parametrize("own_locks", OwnLocks)
def test_clients_of_workspaces_ask_for_a_force_unlock_where_it_can_succeed(
    moto: Server, own_locks: OwnLocks
) -> None:
    with functions(moto, own_locks) as team:
        moto.direct.put_object(Bucket=team.bucket.name, Key=NAME.state_key, Body=documents.state(1))
        for caller, may in ((READER, False), (ADA, own_locks is not OwnLocks.NONE), (OPERATOR, True)):
            assert team.permissions(caller)["can-force-unlock"] is may


def test_a_repeated_force_unlock_leaves_the_lock_of_the_next_run_with_the_same_token(moto: Server) -> None:
    with functions(moto, OwnLocks.NAMED) as team:
        first = team.take("own", ADA)
        repeats = {how: team.removal(how, first, ADA) for how in ("break", "id", "cloud", "nothing")}
        assert repeats["id"]()["statusCode"] == 200  # the client does not get this answer
        acquiring.acquire(work(team.bucket.direct_store(), NAME, ADA), documents.lock_info("two"))
        wait_until_older_than_the_minimum(team.bucket, NAME)

        for how, repeat in repeats.items():
            assert repeat()["statusCode"] == (403 if how == "nothing" else 409), how
            lock = team.held()
            assert lock
            assert lock.info.id == "two", how


def test_an_own_lock_is_removed_without_an_id_only_if_it_is_old_enough(moto: Server) -> None:
    with functions(moto, OwnLocks.ANY) as team:
        lock = team.take("own", ADA)
        for how in ("nothing", "cloud"):
            refused = team.removal(how, lock, ADA)()
            assert (refused["statusCode"], team.held() is not None) == (409, True)
        wait_until_older_than_the_minimum(team.bucket, NAME)
        assert team.removal("nothing", lock, ADA)()["statusCode"] == 200
        assert team.held() is None

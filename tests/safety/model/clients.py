"""Clients: the requests of Terraform, its user and an operator, depending on the responses.

A client is a generator of requests. It is sent each response, or None if it gave up waiting for one.
"""

import json
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from tests.safety.model.production import HttpRequest, Reply, time_of

STATE: Final = "network/prod"
STATE_KEY: Final = f"states/{STATE}.tfstate"
LOCK_KEY: Final = f"{STATE_KEY}.tflock"
RECORD_KEY: Final = f"workspaces/{STATE}.json"
PATTERNS_KEY: Final = "freezes/patterns.json"
LINEAGE: Final = "lineage-1"
FREEZE_ENDS: Final = 10
"""The end of a freeze that has one, in seconds of S3's clock."""
_AT_ONCE: Final = b"with its create"
"""In place of an uploaded document: the create sends the document."""

Session = Generator[HttpRequest, Reply | None, None]


@dataclass(frozen=True, slots=True)
class Client:
    """A client that sends requests.

    `name` is one letter, which is also in its lock's ID and in the states that it writes. `principal` is
    needed only for a role, or for a principal that clients share.
    """

    name: str
    session: Callable[["Client"], Session]
    principal: str = ""

    @property
    def caller(self) -> str:
        return self.principal or f"token:{self.name}"


def lock_document(
    name: str, operation: str = "OperationTypeApply", command: str = "", *, of: str = ""
) -> bytes:
    """Return the lock info of a client.

    A client with several commands numbers them in `command`. `of` is the client whose lock ID it uses; by
    default its own.
    """
    document = {
        "ID": f"lock-{of or name}{command}",
        "Operation": operation,
        "Info": "",
        "Who": name,
        "Version": "1.15.5",
        "Created": "2026-11-20T10:00:00Z",
        "Path": "",
    }
    return json.dumps(document).encode()


def state_document(author: str, serial: int, *, lineage: str = LINEAGE, save: int = 1) -> bytes:
    """Return a state document. Different arguments give different bytes."""
    document = {
        "version": 4,
        "terraform_version": "1.15.5",
        "serial": serial,
        "lineage": lineage,
        "outputs": {"author": {"value": author, "type": "string"}, "save": {"value": save, "type": "number"}},
    }
    return json.dumps(document).encode()


def blank_document(author: str) -> bytes:
    """Return what `terraform state push` sends for a file that is no state: no lineage and no content."""
    document = {
        "version": 4,
        "terraform_version": "1.15.5",
        "serial": 1,
        "lineage": "",
        "outputs": {},
        "resources": [],
        "check_results": [{"config_addr": author}],
    }
    return json.dumps(document).encode()


def apply(me: Client) -> Session:
    """`terraform apply`: lock, read, write, unlock. After a refusal it writes the next serial."""
    yield from _locked_work(me, "OperationTypeApply", saves=1)


def declared_apply(me: Client) -> Session:
    """An apply in a team whose names must be declared."""
    session, reply = apply(me), None
    with suppress(StopIteration):
        while True:
            reply = yield session.send(reply)._replace(declared_only=True)


def namesake(me: Client) -> Session:
    """Applies with the lock ID of A, and another document: a script whose lock ID never changes."""
    document = lock_document(me.name, of="A")
    reply = yield HttpRequest("lock", STATE, me.caller, document)
    if reply is not None and reply.status == 200:
        yield from _work(me, "lock-A", saves=1)
        yield HttpRequest("unlock", STATE, me.caller, document)


def apply_with_two_saves(me: Client) -> Session:
    """A long apply: Terraform saves the state in between."""
    yield from _locked_work(me, "OperationTypeApply", saves=2)


def apply_with_a_gap(me: Client) -> Session:
    """An apply that raises the serial twice before its first save."""
    yield from _locked_work(me, "OperationTypeApply", saves=1, step=2)


def push_back(me: Client) -> Session:
    """`terraform state push -force` of an old document."""
    yield from _locked_work(me, "state-push", saves=1, forced=state_document(me.name, 1))


def push_of_no_state(me: Client) -> Session:
    """`terraform state push` of `.terraform/terraform.tfstate`, which is no state."""
    yield from _locked_work(me, "state-push", saves=1, forced=blank_document(me.name))


def impatient_push_of_no_state(me: Client) -> Session:
    """Breaks the lock that it finds, and pushes a file that is no state."""
    yield from _impatient(me, names_the_lock=True, forced=blank_document(me.name), operation="state-push")


def push_of_the_first(me: Client) -> Session:
    """`terraform state push -force` of the first document, byte for byte."""
    yield from _locked_work(me, "state-push", saves=1, forced=state_document("Z", 1))


def there_and_back(me: Client) -> Session:
    """Writes a document, another document, and the first again, byte for byte, all under one lock."""
    document = lock_document(me.name, "state-push")
    yield HttpRequest("lock", STATE, me.caller, document)
    yield HttpRequest("read", STATE, me.caller)
    for serial in (5, 6, 5):
        yield HttpRequest("write", STATE, me.caller, state_document(me.name, serial), f"lock-{me.name}")
    yield HttpRequest("unlock", STATE, me.caller, document)


def impatient_push_of_the_first(me: Client) -> Session:
    """Breaks the lock that it finds, and pushes the first document, byte for byte."""
    yield from _impatient(me, names_the_lock=True, forced=state_document("Z", 1), operation="state-push")


def reader(me: Client) -> Session:
    """`terraform plan -lock=false`."""
    yield HttpRequest("read", STATE, me.caller)


def impatient(me: Client) -> Session:
    """Finds the state locked, force-unlocks that lock by its ID, and applies (OpenTofu)."""
    yield from _impatient(me, names_the_lock=True)


def impatient_by_query(me: Client) -> Session:
    """Finds the state locked, releases that lock by its ID in the query (GitLab's form), and applies."""
    yield from _impatient(me, names_the_lock=True, in_query=True)


def releaser(me: Client) -> Session:
    """A script that knows the ID of A's lock, and releases it by that ID in the query (GitLab's form)."""
    yield HttpRequest("unlock", STATE, me.caller, lock_id="lock-A")


def impatient_without_id(me: Client) -> Session:
    """Finds the state locked, force-unlocks without naming a lock (Terraform), and applies."""
    yield from _impatient(me, names_the_lock=False)


def operator(me: Client) -> Session:
    """Force-unlocks a colleague's lock without its ID, and does nothing else."""
    yield HttpRequest("unlock", STATE, me.caller)


def without_lock(me: Client) -> Session:
    """`terraform apply -lock=false`."""
    yield from _work(me, None, saves=1)


def borrower(me: Client) -> Session:
    """Learns the ID of another's lock from a refusal, and writes under that ID."""
    reply = yield HttpRequest("lock", STATE, me.caller, lock_document(me.name))
    if reply is not None and reply.status == 423:
        body = state_document(me.name, 3)
        yield HttpRequest("write", STATE, me.caller, body, json.loads(reply.body)["ID"])


def _as_acquired(refusal: str) -> dict[str, str]:
    """Return the lock info with which the holder acquired the lock, from the response to a refused client.

    The response has the holder's own `Info` in quotes, after the principal.
    """
    told: dict[str, str] = json.loads(refusal)
    _, _, quoted = told["Info"].partition("; info ")
    return {**told, "Info": json.loads(quoted) if quoted else ""}


def copier(me: Client) -> Session:
    """Learns the lock info of another's lock from a refusal, and sends it as its own."""
    reply = yield HttpRequest("lock", STATE, me.caller, lock_document(me.name))
    if reply is not None and reply.status == 423:
        yield HttpRequest("lock", STATE, me.caller, json.dumps(_as_acquired(reply.body)).encode())


def wrong_address(me: Client) -> Session:
    """Pushes the state of another configuration with a higher serial, under the lock info of an apply."""
    document = state_document(me.name, 9, lineage="lineage-2")
    yield from _locked_work(me, "OperationTypeApply", saves=1, forced=document)


def same_serial(me: Client) -> Session:
    """Pushes another document with the current serial, under the lock info of an apply."""
    yield from _locked_work(me, "OperationTypeApply", saves=1, forced=state_document(me.name, 1))


def impatient_at_wrong_address(me: Client) -> Session:
    """Breaks the lock that it finds, and pushes another configuration's state, as an apply does."""
    yield from _impatient(me, names_the_lock=True, forced=state_document(me.name, 9, lineage="lineage-2"))


def delete(me: Client) -> Session:
    """Deletes the state."""
    yield HttpRequest("delete", STATE, me.caller)


def undelete(me: Client) -> Session:
    """`holdfast state undelete`: reads the newest delete marker, and undoes that deletion."""
    reply = yield HttpRequest("see-marker", STATE, me.caller)
    found = json.loads(reply.body) if reply is not None and reply.status == 200 else None
    if found and found["delete_marker"]:
        body = json.dumps({"marker": found["version"]}).encode()
        yield HttpRequest("undelete", STATE, me.caller, body)


# --- commands of an operator ----------------------------------------------------------------------


def undeclare(me: Client) -> Session:
    """`holdfast state undeclare`: reads the record, and deletes that record."""
    reply = yield HttpRequest("see-record", STATE, me.caller)
    found = json.loads(reply.body) if reply is not None and reply.status == 200 else None
    if found:
        body = json.dumps({"record": found["version"]}).encode()
        yield HttpRequest("undeclare", STATE, me.caller, body)


def restore(me: Client) -> Session:
    """`holdfast state restore`: reads the current version, and restores the first version."""
    seen = yield from _looked(me)
    if seen:
        yield from _restore(me, seen)


def restore_blindly(me: Client) -> Session:
    """Restores the first version without a look at the current version."""
    yield from _restore(me, "")


def restore_as_another(me: Client) -> Session:
    """The same command as `restore` by another client, with the same reason."""
    seen = yield from _looked(me)
    if seen:
        yield from _restore(me, seen, reason="R")


def restore_after_a_break(me: Client) -> Session:
    """Reads the current version; later breaks the lock, and restores the first version."""
    seen = yield from _looked(me)
    if seen and (yield from _broken(me)):
        yield from _restore(me, seen)


def restore_blindly_after_a_break(me: Client) -> Session:
    """Breaks the lock, and restores the first version without a look at the current version."""
    if (yield from _broken(me)):
        yield from _restore(me, "")


def restore_under_own_freeze(me: Client) -> Session:
    """`holdfast state freeze`, then `holdfast state restore --frozen` with the ID of that freeze."""
    yield from _freeze(me, None)
    seen = yield from _looked(me)
    if seen:
        yield from _restore(me, seen, frozen=me.name)


def restore_under_the_freeze(me: Client) -> Session:
    """`holdfast state restore --frozen` of the first version, under the freeze that it finds."""
    seen = yield from _looked(me)
    if seen:
        yield from _restore(me, seen, frozen="Z")


def restore_the_second_under_the_freeze(me: Client) -> Session:
    """The same for the second version."""
    seen = yield from _looked(me)
    if seen:
        yield from _restore(me, seen, frozen="Z", version="v2")


def restore_under_the_freeze_without_a_look(me: Client) -> Session:
    """The same for the second version, without naming the current version, of which it has seen none."""
    yield from _restore(me, "", frozen="Z", version="v2")


def breaker(me: Client) -> Session:
    """`holdfast lock break`: reads the lock; later breaks that lock."""
    yield from _broken(me)


def freeze(me: Client) -> Session:
    """`holdfast state freeze`, without an end."""
    yield from _freeze(me, None)


def freeze_until(me: Client) -> Session:
    """`holdfast state freeze --until`."""
    yield from _freeze(me, FREEZE_ENDS)


def freeze_for_long(me: Client) -> Session:
    """The same, with an end that never comes."""
    yield from _freeze(me, 100_000)


def unfreeze(me: Client) -> Session:
    """`holdfast state unfreeze`: reads the freeze, and removes that freeze."""
    reply = yield HttpRequest("see-lock", STATE, me.caller)
    lock = json.loads(reply.body) if reply is not None and reply.status == 200 else None
    if lock and lock["freeze"]:
        yield HttpRequest("unfreeze", STATE, me.caller, id=lock["freeze"]["id"])


def unfreeze_another(me: Client) -> Session:
    """Removes its own freeze, which is long gone."""
    yield HttpRequest("unfreeze", STATE, me.caller, id=command_id(me.name))


def freeze_pattern(me: Client) -> Session:
    """`holdfast state freeze 'network/*' --wait`: the pattern, then the names that it left."""
    yield from _freeze_pattern(me, None)


def freeze_pattern_until(me: Client) -> Session:
    """The same with an end."""
    yield from _freeze_pattern(me, FREEZE_ENDS)


def unfreeze_pattern(me: Client) -> Session:
    """`holdfast state unfreeze 'network/*'`: unfreezes F's pattern."""
    yield HttpRequest("unfreeze-pattern", STATE, me.caller, id=command_id("F"))


def apply_that_reads_first(me: Client) -> Session:
    """`terraform apply` of a client that reads the state before it locks it, and not again."""
    reply = yield HttpRequest("read", STATE, me.caller)
    if reply is None or reply.status not in (200, 204):
        return
    serial = json.loads(reply.body)["serial"] if reply.status == 200 else 0
    document = lock_document(me.name)
    reply = yield HttpRequest("lock", STATE, me.caller, document)
    if reply is not None and reply.status == 200:
        body = state_document(me.name, serial + 1)
        yield HttpRequest("write", STATE, me.caller, body, f"lock-{me.name}")
        yield HttpRequest("unlock", STATE, me.caller, document)


def lock_says_freeze(me: Client) -> Session:
    """Sends a lock info with the operation "freeze", and applies if it gets the lock."""
    yield from _locked_work(me, "freeze", saves=1)


def freeze_copier(me: Client) -> Session:
    """Learns the lock info of a freeze from a refusal, and sends it as its own: to lock, write and unlock.

    The refusal has the lock object's time as `Created`. The stored lock info of a freeze has no time.
    """
    reply = yield HttpRequest("lock", STATE, me.caller, lock_document(me.name))
    if reply is None or reply.status != 423:
        return
    stored = {**_as_acquired(reply.body), "Created": "0001-01-01T00:00:00Z"}
    told = json.dumps(stored, separators=(",", ":")).encode()
    yield HttpRequest("read", STATE, me.caller)
    yield HttpRequest("lock", STATE, me.caller, told)
    body = state_document(me.name, 3)
    yield HttpRequest("write", STATE, me.caller, body, json.loads(told)["ID"])
    yield HttpRequest("unlock", STATE, me.caller, told)


def manage_delete(me: Client) -> Session:
    """`holdfast state delete`: reads the current version, and deletes that version."""
    seen = yield from _looked(me)
    if seen:
        yield HttpRequest("manage-delete", STATE, me.caller, json.dumps({"version": seen}).encode())


def command_id(name: str) -> str:
    return name.encode().hex().ljust(32, "0")


def _looked(me: Client) -> Generator[HttpRequest, Reply | None, str]:
    """Read the current version and return its ID; empty if there is no state, or no response came."""
    reply = yield HttpRequest("see-state", STATE, me.caller)
    found = json.loads(reply.body) if reply is not None and reply.status == 200 else None
    return found["version"] if found else ""


def _broken(me: Client) -> Generator[HttpRequest, Reply | None, bool]:
    """Read the lock and break it; return whether the break succeeded."""
    reply = yield HttpRequest("see-lock", STATE, me.caller)
    lock = json.loads(reply.body) if reply is not None and reply.status == 200 else None
    if not lock:
        return False
    reply = yield HttpRequest("break", STATE, me.caller, lock_id=lock["id"], id=lock["version"])
    return reply is not None and reply.status == 200


def _restore(
    me: Client,
    seen: str,
    *,
    reason: str = "",
    frozen: str = "",
    version: str = "v1",
) -> Session:
    """Restore a version, under a lock of its own or under the freeze of the client `frozen`."""
    document = {"version": version, "reason": reason or me.name, "id": command_id(me.name)}
    if frozen:
        document["frozen"] = command_id(frozen)
    if seen:
        document["current"] = seen
    yield HttpRequest("restore", STATE, me.caller, json.dumps(document).encode())


def _freeze(me: Client, ends: int | None) -> Session:
    yield from _frozen(me, ends)


def _frozen(me: Client, ends: int | None) -> Generator[HttpRequest, Reply | None, Reply | None]:
    document = {"reason": me.name, "id": command_id(me.name)}
    if ends is not None:
        document["until"] = time_of(ends)
    return (yield HttpRequest("freeze", STATE, me.caller, json.dumps(document).encode()))


def _freeze_pattern(me: Client, ends: int | None) -> Session:
    document = {"pattern": "network/*", "reason": me.name, "id": command_id(me.name)}
    if ends is not None:
        document["until"] = time_of(ends)
    names: list[str] = []
    while "cursor" not in document or document["cursor"]:
        reply = yield HttpRequest("freeze-pattern", STATE, me.caller, json.dumps(document).encode())
        if reply is None or reply.status != 200:
            return
        found = json.loads(reply.body)
        names += found["names"]
        document["cursor"] = found["next"]
    if not names:
        return
    for _ in range(3):  # then it gives up, and says that the freeze does not hold
        reply = yield from _frozen(me, ends)
        if reply is None or reply.status != 423:
            return


def _impatient(
    me: Client,
    *,
    names_the_lock: bool,
    in_query: bool = False,
    forced: bytes | None = None,
    operation: str = "OperationTypeApply",
) -> Session:
    document = lock_document(me.name, operation)
    reply = yield HttpRequest("lock", STATE, me.caller, document)
    if reply is None or reply.status not in (200, 423):
        return
    if reply.status == 423:
        held = json.loads(reply.body)["ID"]
        body = json.dumps({"ID": held}).encode() if names_the_lock and not in_query else b""
        reply = yield HttpRequest("unlock", STATE, me.caller, body, held if in_query else None)
        if reply is None or reply.status != 200:
            return
        yield from _locked_work(me, operation, saves=1, forced=forced, command="2")
    else:
        yield from _work(me, f"lock-{me.name}", saves=1, forced=forced)
        yield HttpRequest("unlock", STATE, me.caller, document)


def _locked_work(
    me: Client, operation: str, *, saves: int, forced: bytes | None = None, step: int = 1, command: str = ""
) -> Session:
    document = lock_document(me.name, operation, command)
    reply = yield HttpRequest("lock", STATE, me.caller, document)
    if reply is None or reply.status != 200:
        return
    yield from _work(me, f"lock-{me.name}{command}", saves=saves, forced=forced, step=step)
    yield HttpRequest("unlock", STATE, me.caller, document)


def _work(
    me: Client, lock_id: str | None, *, saves: int, forced: bytes | None = None, step: int = 1
) -> Session:
    reply = yield HttpRequest("read", STATE, me.caller)
    if reply is None or reply.status >= 400:
        return
    serial = json.loads(reply.body)["serial"] if reply.body else 0
    if forced is not None:
        yield HttpRequest("write", STATE, me.caller, forced, lock_id)
        return
    for save in range(1, saves + 1):
        serial += step
        body = state_document(me.name, serial, save=save)
        reply = yield HttpRequest("write", STATE, me.caller, body, lock_id)
    if reply is not None and 400 <= reply.status < 500:
        serial += 1
        yield HttpRequest("write", STATE, me.caller, state_document(me.name, serial, save=saves + 1), lock_id)


# --- clients that try more than their role allows -------------------------------------------------


def lock_says_delete(me: Client) -> Session:
    """Applies with a lock info of the operation "delete"."""
    yield from _locked_work(me, "delete", saves=1)


def what_a_maintainer_may(me: Client) -> Session:
    """Tries, as a writer, the requests that need the role maintainer, and to remove A's lock."""
    seen = yield from _looked(me)
    reply = yield HttpRequest("see-lock", STATE, me.caller)
    lock = json.loads(reply.body) if reply is not None and reply.status == 200 else None
    if lock:
        yield HttpRequest("break", STATE, me.caller, lock_id=lock["id"], id=lock["version"])
        for body in (b"", json.dumps({"ID": lock["id"]}).encode(), lock_document("A")):
            yield HttpRequest("unlock", STATE, me.caller, body)
        yield HttpRequest("unlock", STATE, me.caller, lock_id=lock["id"])
        workspace = yield from _workspace(me)
        yield _of_cloud(me, "cloud-force-unlock", workspace)
    if seen:
        yield from _restore(me, seen)
        yield HttpRequest("manage-delete", STATE, me.caller, json.dumps({"version": seen}).encode())
    yield HttpRequest("delete", STATE, me.caller)
    yield from _freeze(me, None)


def what_a_writer_may(me: Client) -> Session:
    """Tries, as a reader, to lock, to create the workspace, and to unlock with A's lock info."""
    yield HttpRequest("lock", STATE, me.caller, lock_document(me.name))
    workspace = yield from _workspace(me)
    yield _of_cloud(me, "cloud-lock", workspace)
    yield HttpRequest("workspace-create", STATE, me.caller)
    yield HttpRequest("unlock", STATE, me.caller, lock_document("A"))


# --- clients of `cloud {}` ------------------------------------------------------------------------


def cloud_apply(me: Client) -> Session:
    """`terraform apply` over `cloud {}`: workspace by name, lock, read, create, upload, commit, unlock."""
    yield from _cloud(me)


def cloud_apply_with_two_saves(me: Client) -> Session:
    """A long apply over `cloud {}`: Terraform saves the state in between."""
    yield from _cloud(me, saves=2)


def cloud_apply_with_a_gap(me: Client) -> Session:
    """An apply over `cloud {}` that raises the serial twice before its save."""
    yield from _cloud(me, step=2)


def cloud_apply_at_once(me: Client) -> Session:
    """An apply of a Terraform before 1.6, which sends the document with the create."""
    yield from _cloud(me, uploaded=_AT_ONCE)


def cloud_push_back(me: Client) -> Session:
    """`terraform state push -force` of an old document over `backend "remote"`."""
    yield from _cloud(me, forced=state_document(me.name, 1))


def cloud_wrong_address(me: Client) -> Session:
    """Saves the state of another configuration, with a higher serial, over `cloud {}`."""
    yield from _cloud(me, step=9, lineage="lineage-2")


def cloud_impatient(me: Client) -> Session:
    """Finds the state locked, force-unlocks it, and applies, in three separate commands."""
    yield from _cloud_impatient(me)


def cloud_impatient_with_a_gap(me: Client) -> Session:
    """The same, and raises the serial twice before its save."""
    yield from _cloud_impatient(me, step=2)


def cloud_impatient_push_back(me: Client) -> Session:
    """Finds the state locked, force-unlocks it, and pushes an old document with -force."""
    yield from _cloud_impatient(me, forced=state_document(me.name, 1))


def cloud_after_a_break(me: Client) -> Session:
    """Breaks B's lock by its ID, and applies over `cloud {}`."""
    reply = yield HttpRequest("unlock", STATE, me.caller, b'{"ID": "lock-B"}')
    if reply is not None and reply.status == 200:
        yield from _cloud(me)


def _cloud_impatient(me: Client, *, step: int = 1, forced: bytes | None = None) -> Session:
    workspace = yield from _workspace(me)
    reply = yield _of_cloud(me, "cloud-lock", workspace)
    if reply is not None and reply.status in (409, 423):
        workspace = yield from _workspace(me, "2")
        reply = yield _of_cloud(me, "cloud-force-unlock", workspace)
        if reply is None or reply.status != 200:
            return
        workspace = yield from _workspace(me, "3")
        reply = yield _of_cloud(me, "cloud-lock", workspace)
    if reply is not None and reply.status == 200:
        yield from _cloud_work(me, workspace, step=step, forced=forced)


def cloud_operator(me: Client) -> Session:
    """Force-unlocks the state over `cloud {}`, and does nothing else."""
    workspace = yield from _workspace(me)
    yield _of_cloud(me, "cloud-force-unlock", workspace)


def cloud_unlocker(me: Client) -> Session:
    """Knows the ID of A's workspace, and unlocks with it."""
    workspace = yield from _workspace(replace(me, name="A"))
    yield _of_cloud(me, "cloud-unlock", workspace)


def cloud_borrower(me: Client) -> Session:
    """Knows the ID of A's workspace, and saves under A's lock."""
    workspace = yield from _workspace(replace(me, name="A"))
    yield from _save(me, workspace, state_document(me.name, 3), 1)


def cloud_mixed_up(me: Client) -> Session:
    """Uploads another document than it announced, with the same revision."""
    yield from _cloud(me, uploaded=state_document(me.name, 2, save=9))


def cloud_forgetful(me: Client) -> Session:
    """Commits without an upload."""
    yield from _cloud(me, uploaded=b"")


def cloud_interrupted(me: Client) -> Session:
    """An interrupted first apply over `cloud {}`: saves, reads the document back, and saves it once more."""
    workspace = yield from _workspace(me)
    reply = yield _of_cloud(me, "cloud-lock", workspace)
    if reply is None or reply.status != 200:
        return
    reply = yield _of_cloud(me, "current", workspace)
    if reply is None or reply.status != 404:
        return
    body = state_document(me.name, 1)
    status = yield from _save(me, workspace, body, 1)
    if status == 200:
        reply = yield _of_cloud(me, "current", workspace)
        if reply is not None and reply.status == 200:
            yield _of_cloud(me, "download", reply.body)
        status = yield from _save(me, workspace, body, 2)
    if status == 200:
        yield _of_cloud(me, "cloud-unlock", workspace)


def cloud_same_serial(me: Client) -> Session:
    """Saves another document with the current serial: first over another's state, then over its own."""
    workspace = yield from _workspace(me)
    reply = yield _of_cloud(me, "cloud-lock", workspace)
    if reply is None or reply.status != 200:
        return
    reply = yield _of_cloud(me, "current", workspace)
    if reply is None or reply.status != 200:
        return
    yield _of_cloud(me, "download", reply.body)
    for save, serial in enumerate((1, 2, 2), 1):
        yield from _save(me, workspace, state_document(me.name, serial, save=save), save)
    yield _of_cloud(me, "cloud-unlock", workspace)


def workspace_creator(me: Client) -> Session:
    """`terraform workspace new`: the request that reaches the API."""
    yield HttpRequest("workspace-create", STATE, me.caller)


def workspace_delete(me: Client) -> Session:
    """`terraform workspace delete -force`: its delete, by name."""
    yield HttpRequest("workspace-delete", STATE, me.caller)


def workspace_safe_delete(me: Client) -> Session:
    """Reads the workspace by name, and deletes it by its ID if its state tracks no resources."""
    workspace = yield from _workspace(me)
    if workspace:
        yield _of_cloud(me, "workspace-safe-delete", workspace)


# --- clients of `backend "s3"` --------------------------------------------------------------------


def native_apply(me: Client) -> Session:
    """`terraform apply` with `backend "s3"` and its lock file: the same objects, past the API."""
    document = lock_document(me.name)
    reply = yield HttpRequest("native-lock", STATE, me.caller, document, id=LOCK_KEY)
    if reply is None or reply.status != 200:
        return
    reply = yield HttpRequest("native-read", STATE, me.caller, id=STATE_KEY)
    if reply is None or reply.status not in (200, 404):
        return
    serial = json.loads(reply.body)["serial"] if reply.status == 200 else 0
    body = state_document(me.name, serial + 1)
    yield HttpRequest("native-write", STATE, me.caller, body, id=STATE_KEY)
    yield HttpRequest("native-unlock", STATE, me.caller, document, id=LOCK_KEY)


def _cloud(
    me: Client,
    *,
    saves: int = 1,
    step: int = 1,
    lineage: str = LINEAGE,
    forced: bytes | None = None,
    uploaded: bytes | None = None,
) -> Session:
    workspace = yield from _workspace(me)
    reply = yield _of_cloud(me, "cloud-lock", workspace)
    if reply is not None and reply.status == 200:
        yield from _cloud_work(
            me, workspace, saves=saves, step=step, lineage=lineage, forced=forced, uploaded=uploaded
        )


def _workspace(me: Client, command: str = "1") -> Generator[HttpRequest, Reply | None, str]:
    """Read the workspace by name and return its ID; empty without a successful response."""
    reply = yield HttpRequest("workspace", STATE, me.caller, client=me.name + command)
    return reply.body if reply is not None and reply.status == 200 else ""


def _cloud_work(
    me: Client,
    workspace: str,
    *,
    saves: int = 1,
    step: int = 1,
    lineage: str = LINEAGE,
    forced: bytes | None = None,
    uploaded: bytes | None = None,
) -> Session:
    reply = yield _of_cloud(me, "current", workspace)
    if reply is not None and reply.status == 200:
        reply = yield _of_cloud(me, "download", reply.body)
        if reply is None or reply.status != 200:
            return
        serial = json.loads(reply.body)["serial"]
    elif reply is not None and reply.status == 404:
        serial = 0
    else:
        return
    if forced is not None:
        yield from _save(me, workspace, forced, 1, force=True)
        return
    status = 0
    for save in range(1, saves + 1):
        serial += step
        body = state_document(me.name, serial, lineage=lineage, save=save)
        status = yield from _save(me, workspace, body, save, uploaded=uploaded)
    if 400 <= status < 500:
        body = state_document(me.name, serial + 1, lineage=lineage, save=saves + 1)
        at_once = _AT_ONCE if uploaded is _AT_ONCE else None
        status = yield from _save(me, workspace, body, saves + 1, uploaded=at_once)
    if status == 200:  # else the client keeps the lock, so that its user can push the unsaved state
        yield _of_cloud(me, "cloud-unlock", workspace)


def _save(
    me: Client, workspace: str, body: bytes, save: int, *, force: bool = False, uploaded: bytes | None = None
) -> Generator[HttpRequest, Reply | None, int]:
    """Create, upload, commit; return the last status, or 0 if no response came."""
    create = _of_cloud(me, "write-at-once" if uploaded is _AT_ONCE else "create", workspace, body)
    reply = yield create._replace(force=force, client=f"{me.name}{save}")
    if reply is None or reply.status != 201:
        return reply.status if reply is not None else 0
    upload = json.loads(reply.body)
    if uploaded != b"":
        body_sent = uploaded if uploaded is not None else body
        reply = yield HttpRequest("upload", STATE, me.caller, body_sent, id=upload["key"])
        if reply is None or reply.status != 200:
            return reply.status if reply is not None else 0
    reply = yield _of_cloud(me, "commit", upload["id"], body)._replace(force=force)
    return reply.status if reply is not None else 0


def _of_cloud(me: Client, verb: str, named: str, body: bytes = b"") -> HttpRequest:
    return HttpRequest(verb, STATE, me.caller, body, id=named)


class Sessions:
    """The sessions of some clients as functions: from the replies so far to the next request."""

    def __init__(self, clients: tuple[Client, ...]) -> None:
        self.clients = clients
        self._replies: list[tuple[int, tuple[Reply | None, ...]]] = []
        self._requests: list[HttpRequest | None] = []
        self._numbers: dict[tuple[int, tuple[Reply | None, ...]], int] = {}

    def start(self, client: int) -> int:
        """Return the number of the start of a client's session."""
        return self._number(client, ())

    def request(self, number: int) -> HttpRequest | None:
        """Return the request at this step; None at the end of the session."""
        return self._requests[number]

    def after(self, number: int, reply: Reply | None) -> int:
        """Return the number of the session's step after a response."""
        client, replies = self._replies[number]
        return self._number(client, (*replies, reply))

    def _number(self, client: int, replies: tuple[Reply | None, ...]) -> int:
        known = self._numbers.get((client, replies))
        if known is None:
            known = self._numbers[client, replies] = len(self._replies)
            self._replies.append((client, replies))
            self._requests.append(self._run(client, replies))
        return known

    def _run(self, client: int, replies: tuple[Reply | None, ...]) -> HttpRequest | None:
        who = self.clients[client]
        session = who.session(who)
        try:
            request = next(session)
            for reply in replies:
                request = session.send(reply)
        except StopIteration:
            return None
        return request

"""Clients: what Terraform, its user and an operator send, given what they were answered.

A client is a generator of requests; it is sent each reply, or None where it gave up on getting one.
"""

import json
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Final

from tests.safety.model.production import HttpRequest, Reply

STATE: Final = "network/prod"
STATE_KEY: Final = f"states/{STATE}.tfstate"
LOCK_KEY: Final = f"{STATE_KEY}.tflock"
LINEAGE: Final = "lineage-1"

Session = Generator[HttpRequest, Reply | None, None]


@dataclass(frozen=True, slots=True)
class Client:
    """Who sends requests.

    Attributes:
        name: one letter, also in its lock's ID and in the states that it writes.
        session: what it does.
        principal: whom the authorizer takes it for; by default it is of its own.
    """

    name: str
    session: Callable[["Client"], Session]
    principal: str = ""

    @property
    def caller(self) -> str:
        """The principal."""
        return self.principal or f"token:{self.name}"


def lock_document(name: str, operation: str = "OperationTypeApply", command: str = "") -> bytes:
    """The lock info of a client; of another command of its, if `command` says so."""
    document = {
        "ID": f"lock-{name}{command}",
        "Operation": operation,
        "Info": "",
        "Who": name,
        "Version": "1.15.5",
        "Created": "2026-11-20T10:00:00Z",
        "Path": "",
    }
    return json.dumps(document).encode()


def state_document(author: str, serial: int, *, lineage: str = LINEAGE, save: int = 1) -> bytes:
    """A state document; no two writes of the model have the same bytes."""
    document = {
        "version": 4,
        "terraform_version": "1.15.5",
        "serial": serial,
        "lineage": lineage,
        "outputs": {"author": {"value": author, "type": "string"}, "save": {"value": save, "type": "number"}},
    }
    return json.dumps(document).encode()


def apply(me: Client) -> Session:
    """`terraform apply`: lock, read, write, after a refusal write the next serial, unlock."""
    yield from _locked_work(me, "OperationTypeApply", saves=1)


def apply_with_two_saves(me: Client) -> Session:
    """An apply so long that Terraform saves in between."""
    yield from _locked_work(me, "OperationTypeApply", saves=2)


def apply_with_a_gap(me: Client) -> Session:
    """An apply that raises the serial twice before its first save."""
    yield from _locked_work(me, "OperationTypeApply", saves=1, step=2)


def push_back(me: Client) -> Session:
    """`terraform state push -force` of an old document."""
    yield from _locked_work(me, "state-push", saves=1, forced=state_document(me.name, 1))


def push_of_the_first(me: Client) -> Session:
    """`terraform state push -force` of the document that everybody found, byte for byte."""
    yield from _locked_work(me, "state-push", saves=1, forced=state_document("Z", 1))


def there_and_back(me: Client) -> Session:
    """Under one lock writes a document, another one, and the first one again, byte for byte."""
    document = lock_document(me.name, "state-push")
    yield HttpRequest("lock", STATE, me.caller, document)
    yield HttpRequest("read", STATE, me.caller)
    for serial in (5, 6, 5):
        yield HttpRequest("write", STATE, me.caller, state_document(me.name, serial), f"lock-{me.name}")
    yield HttpRequest("unlock", STATE, me.caller, document)


def impatient_push_of_the_first(me: Client) -> Session:
    """Breaks the lock that it finds, and pushes the document that everybody found, byte for byte."""
    yield from _impatient(me, names_the_lock=True, forced=state_document("Z", 1), operation="state-push")


def reader(me: Client) -> Session:
    """`terraform plan -lock=false`."""
    yield HttpRequest("read", STATE, me.caller)


def impatient(me: Client) -> Session:
    """Finds the state locked, force-unlocks the lock that it is told of, and applies (OpenTofu)."""
    yield from _impatient(me, names_the_lock=True)


def impatient_without_id(me: Client) -> Session:
    """Finds the state locked, force-unlocks without naming a lock (Terraform), and applies."""
    yield from _impatient(me, names_the_lock=False)


def operator(me: Client) -> Session:
    """Force-unlocks what a colleague asked for, without naming it, and does nothing else."""
    yield HttpRequest("unlock", STATE, me.caller)


def without_lock(me: Client) -> Session:
    """`terraform apply -lock=false`."""
    yield from _work(me, None, saves=1)


def borrower(me: Client) -> Session:
    """Is told who holds the lock, and writes under that lock's ID."""
    reply = yield HttpRequest("lock", STATE, me.caller, lock_document(me.name))
    if reply is not None and reply.status == 423:
        body = state_document(me.name, 3)
        yield HttpRequest("write", STATE, me.caller, body, json.loads(reply.body)["ID"])


def copier(me: Client) -> Session:
    """Is told who holds the lock, and sends that very lock info as its own."""
    reply = yield HttpRequest("lock", STATE, me.caller, lock_document(me.name))
    if reply is not None and reply.status == 423:
        yield HttpRequest("lock", STATE, me.caller, reply.body.encode())


def wrong_address(me: Client) -> Session:
    """Pushes the state of another configuration here, with a higher serial, and says it is an apply."""
    document = state_document(me.name, 9, lineage="lineage-2")
    yield from _locked_work(me, "OperationTypeApply", saves=1, forced=document)


def same_serial(me: Client) -> Session:
    """Pushes another document of the serial that is there, and says it is an apply."""
    yield from _locked_work(me, "OperationTypeApply", saves=1, forced=state_document(me.name, 1))


def impatient_at_wrong_address(me: Client) -> Session:
    """Breaks the lock that it finds, and pushes another configuration's state as an apply."""
    yield from _impatient(me, names_the_lock=True, forced=state_document(me.name, 9, lineage="lineage-2"))


def delete(me: Client) -> Session:
    """Deletes the state."""
    yield HttpRequest("delete", STATE, me.caller)


def undelete(me: Client) -> Session:
    """`holdfast state undelete`."""
    yield HttpRequest("undelete", STATE, me.caller)


def _impatient(
    me: Client,
    *,
    names_the_lock: bool,
    forced: bytes | None = None,
    operation: str = "OperationTypeApply",
) -> Session:
    document = lock_document(me.name, operation)
    reply = yield HttpRequest("lock", STATE, me.caller, document)
    if reply is None or reply.status not in (200, 423):
        return
    if reply.status == 423:
        body = json.dumps({"ID": json.loads(reply.body)["ID"]}).encode() if names_the_lock else b""
        reply = yield HttpRequest("unlock", STATE, me.caller, body)
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


class Sessions:
    """The sessions of some clients as functions: from the replies so far to the next request."""

    def __init__(self, clients: tuple[Client, ...]) -> None:
        self.clients = clients
        self._replies: list[tuple[int, tuple[Reply | None, ...]]] = []
        self._requests: list[HttpRequest | None] = []
        self._numbers: dict[tuple[int, tuple[Reply | None, ...]], int] = {}

    def start(self, client: int) -> int:
        """The number of the beginning of a client's session."""
        return self._number(client, ())

    def request(self, number: int) -> HttpRequest | None:
        """What is sent there; None at the end of the session."""
        return self._requests[number]

    def after(self, number: int, reply: Reply | None) -> int:
        """Where the session is after a reply."""
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

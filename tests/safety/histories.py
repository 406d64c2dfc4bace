"""Long random histories of many clients on a few states, with every fault at any moment.

The production code runs on the model of S3, one request to S3 at a time. What clients do, which invocation
goes on, what goes wrong and when time passes is drawn by hypothesis. `history` judges it, and a history in
which something did not hold is shortened as far as it goes.

Assumed, because docs/design.md says so in "What is not covered": once a force-unlock has removed a lock, no
late acquire of that very lock lands any more. What a repeated force-unlock without an ID or a repeated DELETE
meets is not judged by what its user meant, but by what that very attempt has read.

Not judged either is what a late write replaces under its own lock that an equally late acquire took once
more after its release.
Where an ETag is a digest of the bytes, If-Match takes a state that came back byte for byte for the one that
was read: what a write replaces then, whose lock was broken meanwhile, is not judged, nor what a delete does.

An undelete is repeated here as if a client repeated it by itself.
"""

import json
import sys
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from hypothesis import Phase, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.safety.figures import Figures
from tests.safety.history import Attempt, Call, Change, History, Session, problems, state_key
from tests.safety.model.production import FUNCTION_TIMEOUT, FUNCTIONS, HttpRequest, Point, Production, Reply
from tests.safety.model.s3 import LOST, Answer, Bucket, Request, carry_out

STATES: Final = ("a", "a/b")
PRINCIPALS: Final = ("token:1", "token:1", "token:2", "token:3", "token:4")
"""Of each client; two share a token."""
TRIES: Final = 3
"""How often a client sends a request: once, and two repeats."""

_Script = Generator[HttpRequest, Reply | None, None]


class BrokenPromiseError(AssertionError):
    """Something did not hold in a history."""


class _TimeIsUp(BaseException):
    """The run has had its time. No `except Exception` of hypothesis's takes it for a failure."""


# What clients do


@dataclass(frozen=True, slots=True)
class _Command:
    """Makes the requests of one command of a client."""

    name: str
    state: str
    principal: str

    def once_more(self) -> "_Command":
        return replace(self, name=f"{self.name}-again")

    def lock(self, operation: str = "OperationTypeApply") -> HttpRequest:
        return self._request("lock", self._lock_info(operation))

    def unlock(self, operation: str = "OperationTypeApply") -> HttpRequest:
        return self._request("unlock", self._lock_info(operation))

    def force_unlock(self, body: bytes) -> HttpRequest:
        return self._request("unlock", body)

    def read(self) -> HttpRequest:
        return self._request("read")

    def write(self, serial: int, lineage: str, save: int = 1) -> HttpRequest:
        document = {
            "version": 4,
            "serial": serial,
            "lineage": lineage,
            "outputs": {"author": {"value": self.name}, "save": {"value": save}},
        }
        return self.write_bytes(json.dumps(document).encode())

    def write_bytes(self, body: bytes) -> HttpRequest:
        return self._request("write", body, f"lock-{self.name}")

    def other(self, verb: str) -> HttpRequest:
        return self._request(verb)

    def _request(self, verb: str, body: bytes = b"", lock_id: str | None = None) -> HttpRequest:
        return HttpRequest(verb, self.state, self.principal, body, lock_id)

    def _lock_info(self, operation: str) -> bytes:
        return json.dumps({"ID": f"lock-{self.name}", "Operation": operation, "Who": self.principal}).encode()


def _apply(command: _Command) -> _Script:
    """Lock, read, write the next serial, after a refusal the one after that, unlock."""
    reply = yield command.lock()
    if _succeeded(reply):
        yield from _save(command, saves=1)
        yield command.unlock()


def _long_apply(command: _Command) -> _Script:
    """An apply that saves in between."""
    reply = yield command.lock()
    if _succeeded(reply):
        yield from _save(command, saves=2)
        yield command.unlock()


def _save(command: _Command, saves: int) -> _Script:
    read = yield command.read()
    if read is None or not _succeeded(read):
        return
    document: dict[str, Any] = {"serial": 0, "lineage": f"of-{command.name}"}
    document |= json.loads(read.body or "{}")
    serial, reply = document["serial"], None
    for save in range(1, saves + 1):
        serial += 1
        reply = yield command.write(serial, document["lineage"], save)
    if not _succeeded(reply):
        yield command.write(serial + 1, document["lineage"], saves + 1)


def _impatient(command: _Command) -> _Script:
    """Finds the state locked, force-unlocks the lock that one is told of (OpenTofu), and applies."""
    reply = yield command.lock()
    if reply is not None and reply.status == 423:
        yield command.force_unlock(json.dumps({"ID": json.loads(reply.body)["ID"]}).encode())
        yield from _apply(command.once_more())
    elif _succeeded(reply):
        yield from _save(command, saves=1)
        yield command.unlock()


def _force_unlock(command: _Command) -> _Script:
    """Force-unlock whatever is locked (Terraform)."""
    yield command.force_unlock(b"")


def _push_older(command: _Command) -> _Script:
    """Push a document with a serial of long ago."""
    reply = yield command.lock("state-push")
    if _succeeded(reply):
        read = yield command.read()
        if _succeeded(read):
            yield command.write(1, f"of-{command.name}")
        yield command.unlock("state-push")


def _push_back(command: _Command) -> _Script:
    """Push the bytes of before over one's own change."""
    reply = yield command.lock("state-push")
    if not _succeeded(reply):
        return
    read = yield command.read()
    if read is not None and read.status == 200:
        document = json.loads(read.body)
        reply = yield command.write(document["serial"] + 1, document["lineage"])
        if _succeeded(reply):
            yield command.write_bytes(read.body.encode())
    yield command.unlock("state-push")


def _borrow(command: _Command) -> _Script:
    """Is told that somebody else holds the lock, and writes under that lock's ID."""
    reply = yield command.lock()
    if _succeeded(reply):
        yield command.unlock()
    elif reply is not None and reply.status == 423:
        holder = json.loads(reply.body)
        if holder["Who"] != command.principal:  # else it is a lock of one's own that was left
            request = command.write(99, f"of-{command.name}")
            yield request._replace(lock_id=holder["ID"])


def _delete(command: _Command) -> _Script:
    yield command.other("delete")


def _undelete(command: _Command) -> _Script:
    yield command.other("undelete")


def _read(command: _Command) -> _Script:
    yield command.read()


_SCRIPTS: Final[dict[str, Callable[[_Command], _Script]]] = {
    "apply": _apply,
    "long apply": _long_apply,
    "impatient apply": _impatient,
    "force-unlock": _force_unlock,
    "push an older state": _push_older,
    "push back": _push_back,
    "borrow a lock": _borrow,
    "delete": _delete,
    "undelete": _undelete,
    "read": _read,
}


def _succeeded(reply: Reply | None) -> bool:
    return reply is not None and reply.status in (200, 204)


# The world


@dataclass(eq=False, slots=True)
class Client:
    """A client: idle, or in the middle of a command."""

    number: int
    principal: str
    session: Session | None = None
    script: _Script | None = None
    call: Call | None = None


@dataclass(eq=False, slots=True)
class Running:
    """An attempt that has not ended.

    Attributes:
        attempt: what the history knows of it.
        point: where the code stands.
        client: who waits for it, None if nobody does any more.
        started: in seconds of the clock; None while the request still is on its way.
    """

    attempt: Attempt
    point: Point
    client: Client | None
    started: int | None = None


@dataclass(slots=True)
class World:
    """Clients, invocations, requests that are late, and the bucket."""

    production: Production
    bucket: Bucket
    history: History = field(default_factory=History)
    now: int = 0
    clients: list[Client] = field(
        default_factory=lambda: [Client(number, of) for number, of in enumerate(PRINCIPALS)]
    )
    running: list[Running] = field(default_factory=list)
    late: list[tuple[Attempt, Request]] = field(default_factory=list)
    sessions: int = 0
    attempts: int = 0
    _broken: dict[bytes, int] = field(default_factory=dict)
    """When a force-unlock last removed a lock document."""

    def begin(self, client: Client, state: str, script: str) -> None:
        """A client that is idle begins a command."""
        self.sessions += 1
        client.session = Session(f"s{self.sessions}", state)
        client.script = _SCRIPTS[script](_Command(client.session.name, state, client.principal))
        self.history.tell(f"client {client.number} begins {client.session.name}: {script} of {state}")
        self._send(client, next(client.script))

    def repeat(self, client: Client, why: str) -> None:
        """The client sends its request once more or gives up; the earlier attempt goes on by itself."""
        for running in self.running:
            if running.client is client:
                running.client = None
        if client.call is None:
            raise ValueError("the client waits for nothing")
        if len(client.call.attempts) < TRIES:
            self._arrive(client, client.call, why)
        else:
            self.history.tell(f"client {client.number} gives up: {why}")
            self._reply(client, None)

    def quit(self, client: Client) -> None:
        """The client is killed. What it has sent goes on by itself."""
        self.history.tell(f"client {client.number} is killed")
        for running in self.running:
            if running.client is client:
                running.client = None
        client.session = client.script = client.call = None

    def go_on(self, running: Running, fault: str = "") -> None:
        """Let an invocation's next request to S3 happen, or go wrong."""
        attempt, request = running.attempt, running.point.pending
        if request is None:
            raise ValueError("the invocation has ended")
        self.history.moment += 1
        if running.started is None:
            running.started, attempt.began = self.now, self.history.moment
        seconds = self.now - running.started
        if seconds > FUNCTION_TIMEOUT and attempt.call.request.verb != "undelete":
            self._dies(running, "is out of time")
            return
        if fault == "crash":
            self._dies(running, "crashes")
            return
        answer = self._answer(running, request, fault)
        self._tell(running, request, answer, fault)
        if fault == "crash after":
            self._dies(running, "crashes")
            return
        running.point = self.production.after(running.point, answer, seconds)
        if running.point.reply is not None:
            self._ends(running, running.point.reply)

    def wait(self, seconds: int) -> None:
        """Time passes."""
        self.now += seconds
        self.history.tell(f"{seconds} s pass")

    def finish(self) -> list[str]:
        """Let everybody go, then see whether each state can still be worked on, after a force-unlock.

        Returns:
            What could not be done.
        """
        self.running.clear()
        self.late.clear()
        self.wait(60)
        found = []
        for state in STATES:
            for client in self.clients:
                client.session = client.script = client.call = None
            if not self._works(self.clients[-1], state):
                found.append(f"liveness: nobody can work on {state} any more")
        return found

    def _works(self, client: Client, state: str) -> bool:
        ends: list[int] = []
        for script in ("force-unlock", "apply"):
            self.begin(client, state, script)
            session = client.session
            while self.running:
                self.go_on(self.running[0])
            calls = [call for call in self.history.calls if call.session is session]
            ends += [reply.status for call in calls for reply in [call.attempts[-1].reply] if reply]
        return ends in ([200, 200, 200, 200, 200], [200, 200, 204, 200, 200])

    def land(self, index: int) -> None:
        """A request that its function has given up reaches S3 after all."""
        attempt, request = self.late.pop(index)
        self.history.moment += 1
        answer = self._carry_out(attempt, request, late=True)
        self.history.tell(f"late {attempt.number}: {_words(request)} -> {answer.status}")

    def _answer(self, running: Running, request: Request, fault: str) -> Answer:
        match fault:
            case "never arrives":
                return Answer(LOST)
            case "late":
                if request.operation in ("PutObject", "DeleteObject"):
                    self.late.append((running.attempt, request))
                return Answer(LOST)
            case "slow down":
                return Answer(503, "SlowDown")
            case "conflict":
                return Answer(409, "ConditionalRequestConflict")
            case "internal error":
                return Answer(500, "InternalError")
        answer = self._carry_out(running.attempt, request, late=False)
        match fault:
            case "answer lost":
                return Answer(LOST)
            case "internal error after":
                return Answer(500, "InternalError")
        if request.operation == "GetObject":
            if request.key == state_key(running.attempt.call.request.state):
                running.attempt.seen = self.bucket.key(request.key).taken
            if answer.entry is not None:
                running.attempt.read.add((request.key, answer.entry.version))
        return answer

    def _carry_out(self, attempt: Attempt, request: Request, *, late: bool) -> Answer:
        if request.operation == "PutObject" and self._broken.get(request.body, -1) > attempt.call.sent:
            return Answer(LOST)  # assumed: see the module's text
        self.bucket, answer, effect = carry_out(self.bucket, request, self.now)
        if effect is not None:
            current = self.bucket.current(effect.key)
            change = Change(self.history.moment, self.now, effect, current, attempt, late)
            self.history.changes.append(change)
            if effect.removed and effect.removed.body and _is_force_unlock(attempt.call.request):
                self._broken[effect.removed.body] = self.history.moment
        return answer

    def _send(self, client: Client, request: HttpRequest) -> None:
        if client.session is None:
            raise ValueError("the client is idle")
        client.call = Call(client.session, client.number, request, self.history.moment, client.session.seen)
        self.history.calls.append(client.call)
        self._arrive(client, client.call, "")

    def _arrive(self, client: Client, call: Call, why: str) -> None:
        self.history.moment += 1
        self.attempts += 1
        attempt = Attempt(self.attempts, call)
        call.attempts.append(attempt)
        said = f"sends {call.request.verb} {call.request.state}"
        said += f" {call.request.body.decode()}" if call.request.body else ""
        said += f" once more: {why}" if why else ""
        self.history.tell(f"client {client.number} {said} (attempt {attempt.number})")
        running = Running(attempt, self.production.start(call.request), client)
        self.running.append(running)
        if running.point.reply is not None:
            raise ValueError("every request of these clients asks S3")

    def _dies(self, running: Running, why: str) -> None:
        self.history.tell(f"attempt {running.attempt.number} {why}")
        self.running.remove(running)
        if running.client is not None:
            self.repeat(running.client, "502")

    def _ends(self, running: Running, reply: Reply) -> None:
        attempt = running.attempt
        attempt.reply, attempt.ended = reply, self.history.moment
        self.running.remove(running)
        self.history.tell(f"attempt {attempt.number} answers {reply.status} {reply.body}")
        client = running.client
        if client is None:
            return
        if reply.status >= 500:
            self.repeat(client, str(reply.status))
            return
        if client.session is not None and _succeeded(reply) and attempt.call.request.verb == "read":
            client.session.seen = max(client.session.seen, attempt.seen)
        self._reply(client, reply)

    def _reply(self, client: Client, reply: Reply | None) -> None:
        client.call = None
        if client.script is None:
            raise ValueError("the client is idle")
        try:
            self._send(client, client.script.send(reply))
        except StopIteration:
            client.session = client.script = None

    def _tell(self, running: Running, request: Request, answer: Answer, fault: str) -> None:
        said = f"attempt {running.attempt.number}: {_words(request)} -> {answer.status or 'no answer'}"
        said += f" {answer.entry.version_id}" if answer.entry else ""
        said += f" ({fault})" if fault else ""
        self.history.tell(said)


def _is_force_unlock(request: HttpRequest) -> bool:
    return request.verb == "unlock" and (not request.body or json.loads(request.body).keys() == {"ID"})


def _words(request: Request) -> str:
    said = f"{request.operation} {request.key}"
    said += f" {request.version_id}" if request.version_id else ""
    said += f" If-Match {request.if_match}" if request.if_match else ""
    said += " If-None-Match *" if request.if_none_match else ""
    return said


# What is drawn

_FAULTS: Final = (
    "answer lost",
    "never arrives",
    "late",
    "slow down",
    "conflict",
    "internal error",
    "internal error after",
    "crash",
    "crash after",
)


class Move(NamedTuple):
    """What makes a history go on. It does nothing where there is nobody whom it could be about.

    Attributes:
        kind: `begin`, `work`, `turn`, `land`, `disconnect`, `kill` or `wait`.
        client: whose it is, or the next client's that it can be about.
        older: of a client's invocations the newest, or an older one; likewise of late requests.
        what: of `begin` the script, of `turn` the fault.
        state: of `begin`.
        seconds: of `wait`.
    """

    kind: str
    client: int = 0
    older: int = 0
    what: str = ""
    state: str = ""
    seconds: int = 0


def play(world: World, move: Move) -> None:
    """Make a move."""
    idle = [client for client in world.clients if client.session is None]
    busy = [client for client in world.clients if client.session is not None]
    match move.kind:
        case "begin" if idle:
            world.begin(_next(idle, move), move.state, move.what)
        case "work" if busy:
            client = _next(busy, move)
            world.go_on(next(running for running in world.running if running.client is client))
        case "turn" if world.running:
            with_any = {running.attempt.call.client for running in world.running}
            client = _next([client for client in world.clients if client.number in with_any], move)
            its = [running for running in world.running if running.attempt.call.client == client.number]
            world.go_on(its[-1 - move.older % len(its)], move.what)
        case "land" if world.late:
            world.land(-1 - move.older % len(world.late))
        case "disconnect" if busy:
            world.repeat(_next(busy, move), "connection lost")
        case "kill" if busy:
            world.quit(_next(busy, move))
        case "wait":
            world.wait(move.seconds)


def _next(clients: Sequence[Client], move: Move) -> Client:
    return next((client for client in clients if client.number >= move.client), clients[0])


def judge(world: World) -> list[str]:
    """What did not hold in a history, which ends with that."""
    found = problems(world.history, digests=world.bucket.digests)
    return found or [*world.finish(), *problems(world.history, digests=world.bucket.digests)]


def shortest(production: Production, digests: bool, moves: Sequence[Move]) -> tuple[World, list[str]]:
    """Leave moves out as long as something still does not hold.

    hypothesis can shrink a history too, but knows nothing of it: it takes minutes where this takes seconds.
    """

    def played(moves: Sequence[Move]) -> tuple[World, list[str]]:
        world = World(production, Bucket(digests=digests))
        for move in moves:
            play(world, move)
        return world, judge(world)

    left, best = list(moves), played(moves)
    size = len(left)
    while size:
        before = len(left)
        for begin in range(len(left) - size, -1, -size):
            fewer = [*left[:begin], *left[begin + size :]]
            tried = played(fewer)
            if tried[1]:
                left, best = fewer, tried
        if size > 1 or len(left) == before:
            size //= 2
    return best


_CLIENT: Final = st.integers(0, len(PRINCIPALS) - 1)
_OLDER: Final = st.integers(0, 2)
# Most of it happens to one state, so that much meets there, and most commands take the lock.
_STATE: Final = st.sampled_from((STATES[0], STATES[0], STATES[0], *STATES))
_SCRIPT: Final = st.sampled_from(("apply", "impatient apply", "impatient apply", *sorted(_SCRIPTS)))
_TROUBLE: Final = st.sampled_from(
    (
        *(Move("turn", what=fault) for fault in _FAULTS),
        *(Move(kind) for kind in ("disconnect", "disconnect", "disconnect", "kill")),
        *(Move("wait", seconds=seconds) for seconds in (1, 11, 11, 30)),
    )
)


@dataclass(slots=True)
class _Progress:
    """What a run has done so far.

    Attributes:
        until: when it ends, in `time.monotonic()` seconds.
        say: takes a line of progress.
        histories: that were judged.
        events: requests to S3 and arrivals at the function in them.
        broken: the history in which something did not hold.
    """

    until: float
    say: Callable[[str], None]
    histories: int = 0
    events: int = 0
    broken: "Histories | None" = None
    _told: float = field(default_factory=time.monotonic)

    def judged(self, world: World) -> None:
        """Note a history that is over."""
        self.histories += 1
        self.events += world.history.moment
        if time.monotonic() > self._told + 10:
            self._told = time.monotonic()
            self.say(f"histories: {self.histories} with {self.events} events so far")


class Histories(RuleBasedStateMachine):
    """Draws a history. `progress` and `functions` are set by `run`."""

    progress: ClassVar[_Progress]
    functions: ClassVar[Path]

    @initialize(digests=st.booleans())
    def open(self, digests: bool) -> None:
        """Begin with an empty bucket."""
        self.production = Production(self.functions)
        self.world = World(self.production, Bucket(digests=digests))
        self.moves: list[Move] = []

    def _play(self, *moves: Move) -> None:
        for move in moves:
            self.moves.append(move)
            play(self.world, move)

    @rule(client=_CLIENT, state=_STATE, script=_SCRIPT)
    def begin(self, client: int, state: str, script: str) -> None:
        """A client begins a command."""
        self._play(Move("begin", client, state=state, what=script))

    @precondition(lambda self: self.world.running)
    @rule(client=_CLIENT, steps=st.integers(1, 16))
    def work(self, client: int, steps: int) -> None:
        """A client's requests go on for a while without a fault."""
        self._play(*[Move("work", client)] * steps)

    @precondition(lambda self: self.world.running)
    @rule(turns=st.lists(st.tuples(_CLIENT, st.integers(1, 4)), min_size=2, max_size=8))
    def take_turns(self, turns: list[tuple[int, int]]) -> None:
        """Clients take turns, each for some requests."""
        for client, steps in turns:
            self._play(*[Move("turn", client)] * steps)

    @precondition(lambda self: self.world.running or self.world.late)
    @rule(client=_CLIENT, older=_OLDER, steps=st.integers(1, 6))
    def catch_up(self, client: int, older: int, steps: int) -> None:
        """What nobody waits for any more goes on: an invocation, or a request that was given up."""
        self._play(Move("land", older=older), *[Move("turn", client, older)] * steps)

    @precondition(lambda self: self.world.running)
    @rule(client=_CLIENT, older=_OLDER, trouble=_TROUBLE)
    def trouble(self, client: int, older: int, trouble: Move) -> None:
        """Something goes wrong, or takes time."""
        self._play(trouble._replace(client=client, older=older))

    def teardown(self) -> None:
        """The history is over."""
        if sys.exc_info()[0] is not None or not hasattr(self, "world"):
            return  # hypothesis has broken it off
        found = judge(self.world)
        self.progress.judged(self.world)
        if found:
            self.progress.broken = self
            raise BrokenPromiseError(found[0])
        if self.progress.broken is None and time.monotonic() > self.progress.until:
            raise _TimeIsUp


def run(
    *,
    examples: int,
    steps: int,
    seconds: float,
    seed: int,
    say: Callable[[str], None],
    functions: Path = FUNCTIONS,
) -> Figures:
    """Draw histories and judge them.

    Args:
        examples: how many histories at most.
        steps: how many rules of one at most; some stand for several requests.
        seconds: when no further history is begun.
        seed: of everything that is drawn.
        say: takes a line of progress.
        functions: the production code.
    """
    progress = _Progress(time.monotonic() + seconds, say)
    machine = type("Machine", (Histories,), {"progress": progress, "functions": functions})
    bounds = settings(
        max_examples=examples,
        stateful_step_count=steps,
        database=None,
        deadline=None,
        phases=[Phase.generate],  # `shortest` shrinks
        report_multiple_bugs=False,
        print_blob=False,
    )
    try:
        run_state_machine_as_test(seeded(seed)(machine), settings=bounds)
    except _TimeIsUp:
        pass
    except BrokenPromiseError:
        if progress.broken is None:
            raise
        failed = progress.broken
        world, found = shortest(failed.production, failed.world.bucket.digests, failed.moves)
        etags = "digests" if world.bucket.digests else "unique"
        say(f"histories: something did not hold (seed {seed}); the history without what it does not take:")
        for event in world.history.told:
            say(f"  {event}")
        say(f"  ETags are {etags}")
        for problem in found:
            say(f"  invariant {problem}")
        return Figures(violations=1)
    say(f"histories: {progress.histories} with {progress.events} events: everything held")
    return Figures()

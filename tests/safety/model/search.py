"""The search of every order of events that a scenario can take, up to its bounds.

A world is the situation that an interleaving leads to: the bucket, the clock, the progress of every client
and every invocation, the requests that have not arrived, the caches of processes, and the history that the
invariants need. Two interleavings that lead to the same world have the same future. So the search follows an
interleaving until it ends or reaches a known world, and counts it once either way. This misses nothing,
because a world contains everything that an invariant looks at.

Any number of processes may run, and a request may reach any of them: a cold process, or a warm process with
the cache that any earlier invocation left, however long ago. A function that dies or is stopped leaves no
process. The event that begins an invocation in a warm process names its cache: `A+2` is `A` with the second
of all possible caches. An invocation with two threads has two requests under way, in any order: `A/` is the
request of A's second thread.

The search goes breadth first: the first interleaving that violates an invariant is one of the shortest.
"""

import math
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Final

from tests.safety.model import invariants
from tests.safety.model.clients import LOCK_KEY, RECORD_KEY, STATE, STATE_KEY, Sessions
from tests.safety.model.invariants import Party, Violation
from tests.safety.model.production import (
    BESIDE,
    FUNCTION_TIMEOUT,
    MAIN,
    NATIVE,
    NOTHING,
    HttpRequest,
    Point,
    Production,
    Reply,
)
from tests.safety.model.s3 import LOST, Answer, Bucket, Effect, Request, carry_out
from tests.safety.model.world import Change, Late, Numbered, Outcome, Scenario, Standing, Stray, World

_OVERTIME: Final = 16
"""Seconds after which a function sends no new requests."""
_LIFETIME: Final = FUNCTION_TIMEOUT
_TRIES: Final = 3

_BESIDE: Final = "/"
_CHANGES: Final = frozenset({"PutObject", "DeleteObject"})


class Search:
    """The interleavings of one scenario, run by the production code."""

    def __init__(self, production: Production, scenario: Scenario) -> None:
        self.scenario = scenario
        self._production = production
        self._sessions = Sessions(scenario.clients)
        self._buckets: Numbered[Bucket] = Numbered()
        self._standings: Numbered[Standing] = Numbered()
        self._strays: Numbered[tuple[Stray, ...]] = Numbered()
        self._late: Numbered[tuple[Late, ...]] = Numbered()
        self._documents: Numbered[frozenset[bytes]] = Numbered()
        self._known: Numbered[tuple[int, ...]] = Numbered()
        self._begun: dict[tuple[int, int], list[tuple[str, Point]]] = {}
        self._named: dict[tuple[str, int, int, bool], list[str]] = {}
        self._carried_out: dict[tuple[int, Request, int], tuple[int, Answer, Effect | None]] = {}
        self._answers: dict[tuple[int, HttpRequest, int], tuple[Reply, int]] = {}
        self._no_documents = self._documents.number(frozenset())

    # --- searching -----------------------------------------------------------------------------------

    def first(self) -> World:
        standings = [self._sent(self._sessions.start(client)) for client in range(len(self.scenario.clients))]
        bucket = self.scenario.before()
        return World(
            self._buckets.number(bucket),
            0,
            tuple(map(self._standings.number, standings)),
            self._strays.number(()),
            self._late.number(()),
            self._documents.number(_found(bucket)),
            self._known.number(self._learned(bucket)),
            self.scenario.faults,
            self.scenario.repeats,
            self.scenario.ticks,
        )

    def _learned(self, bucket: Bucket) -> tuple[int, ...]:
        """Return the caches that processes can have at the start, one for each version in the bucket."""
        known: tuple[int, ...] = ()
        for earlier in bucket.earlier(STATE_KEY):
            read = self._alone(earlier, HttpRequest("read", STATE, "Z"), 0)[0]
            known = self._with(known, read)
        return known

    def run(
        self,
        *,
        at_most: int,
        seconds: float = math.inf,
        progress: Callable[[Outcome], None] = lambda _: None,
    ) -> Outcome:
        """Follow every interleaving until one violates an invariant.

        The search ends incomplete after `at_most` worlds or after `seconds`. `progress` is called now and
        then with the result so far.
        """
        ends = time.monotonic() + seconds
        outcome = Outcome(worlds=1)
        waiting = deque([self.first()])
        known = set(waiting)
        came_from, by_event = array("Q", [0]), [""]
        place = -1
        while waiting:
            if outcome.worlds >= at_most or time.monotonic() > ends:
                return outcome
            place += 1
            world = waiting.popleft()
            ended = True
            for event in self.events(world):
                ended = False
                after, violations = self.after(world, event)
                if violations:
                    outcome.violation = violations[0]
                    outcome.interleaving = (*_path(came_from, by_event, place), event)
                    outcome.interleavings += 1
                    return outcome
                if after in known:
                    outcome.interleavings += 1
                    continue
                outcome.worlds += 1
                known.add(after)
                waiting.append(after)
                came_from.append(place)
                by_event.append(event)
            outcome.interleavings += ended
            if place % 20_000 == 0:
                progress(outcome)
        outcome.complete = True
        return outcome

    def bucket(self, world: World) -> Bucket:
        return self._buckets[world.bucket]

    def events(self, world: World) -> Iterator[str]:
        """Yield the names of the events that can happen now."""
        for place, number in enumerate(world.clients):
            standing = self._standings[number]
            if standing.point < 0:
                continue
            name = self.scenario.clients[place].name
            alive = standing.started < 0 or world.clock - standing.started <= _LIFETIME
            if alive:
                yield from self._steps(world, name, standing.point)
            if world.repeats:
                yield f"{name}.crash"
                if alive:
                    yield f"{name}.again"
        for place, stray in enumerate(self._strays[world.strays], 1):
            yield from self._steps(world, f"stray{place}", stray.point)
        for place in range(len(self._late[world.late])):
            yield f"late{place + 1}"
        if world.ticks:
            yield "tick"

    def _steps(self, world: World, who: str, number: int) -> list[str]:
        """Return the names of the events of an invocation's next request, for each process it can run in."""
        key = (who, world.known, number, world.faults > 0)
        if key not in self._named:
            names = self._named[key] = []
            for memory, point in self._beginnings(world.known, number):
                if not point.pending:
                    names.append(who + memory)  # it ends without a request to S3
                for thread, pending in point.pending.items():
                    name = who + memory + (_BESIDE if thread == BESIDE else "")
                    names.append(name)
                    if world.faults:
                        names.extend(f"{name}.{fault}" for fault in self._faults(pending))
        return self._named[key]

    def _beginnings(self, known: int, number: int) -> list[tuple[str, Point]]:
        """Return an invocation's points, each with the part of the event's name that names the cache.

        Before its first request to S3 an invocation has a point for each cache that its process can have. A
        cache that it does not use makes no difference and is left out.
        """
        if (known, number) not in self._begun:
            point = self._production.point(number)
            begun = self._begun[known, number] = [("", point)]
            if not point.answers:
                for place, memory in enumerate(self._known[known], 1):
                    in_it = self._production.start(point.request, memory)
                    if in_it is not point:
                        begun.append((f"+{place}", in_it))
        return self._begun[known, number]

    def _in_process(self, known: int, number: int, memory: str) -> Point:
        """Return an invocation's point in the process that an event names; ValueError if it cannot exist."""
        for said, point in self._beginnings(known, number):
            if said == memory:
                return point
        raise ValueError(f"there is no process {memory}")

    def story(self, interleaving: Sequence[str]) -> Iterator[str]:
        """Yield a line for each event of an interleaving, and at the end the violated invariant, if any.

        ValueError: an event cannot happen there, as in `after`.
        """
        world = self.first()._replace(
            faults=len(interleaving), repeats=len(interleaving), ticks=len(interleaving)
        )
        for number, event in enumerate(interleaving, 1):
            if event not in set(self.events(world)):
                raise ValueError(f"event {number}, {event!r}, cannot happen there")
            point = self._concerned(world, event)
            after, violations = self.after(world, event)
            yield f"{number:4}  {event:14} {self._told(point, world, after, event)}"
            if violations:
                yield f"BROKEN: {violations[0].invariant.value}: {violations[0].what}"
                return
            world = after

    def _concerned(self, world: World, event: str) -> Point | None:
        if event == "tick":
            return None
        who, memory, _, _ = _parts(event)
        if who.startswith("stray"):
            number = self._strays[world.strays][_number(who, "stray")].point
        elif who.startswith("late"):
            number = self._late[world.late][_number(who, "late")].point
        else:
            number = self._standings[world.clients[self._place(who)]].point
        return self._in_process(world.known, number, memory)

    def _told(self, point: Point | None, before: World, after: World, event: str) -> str:
        if point is None:
            return f"the clock says {after.clock} s"
        request = point.request
        what = request.verb
        if request.lock_id:
            what += f" under {request.lock_id}"
        if event.endswith((".crash", ".again")):
            return f"{what}: {'its function dies' if event.endswith('.crash') else 'it is repeated'}"
        if not point.pending:
            return f"{what}: it asks S3 for nothing"
        who, _, thread, _ = _parts(event)
        if who.startswith("late"):
            thread = self._late[before.late][_number(who, "late")].thread
        pending = point.pending[thread]
        object_ = "lock" if pending.key == LOCK_KEY else "state" if pending.key == STATE_KEY else pending.key
        sent = f"{pending.operation} {object_}"
        condition = " if nothing is there" if pending.if_none_match else ""
        if pending.if_match:
            condition = " if it has not changed"
        if pending.version_id:
            condition = f" version {pending.version_id}"
        changed = "; the bucket changes" if before.bucket != after.bucket else ""
        remembered = "" if point.memory == NOTHING or point.answers else ", in a warm process"
        return f"{what}{remembered}: {sent}{condition}{changed}"

    def _faults(self, pending: Request) -> Iterator[str]:
        yield "never"
        yield "over"
        if pending.operation in _CHANGES:
            yield "lost"
            yield "lost-over"
            yield "500"
            if self.scenario.late:
                yield "late"
                yield "late-over"
            if pending.conditional:
                yield "409"
        yield "503"

    def after(self, world: World, event: str) -> tuple[World, list[Violation]]:
        """Return the world after an event, and the violations; ValueError if the event cannot happen now."""
        change = Change(
            world,
            world.bucket,
            world.clock,
            [self._standings[number] for number in world.clients],
            self._strays[world.strays],
            self._late[world.late],
            self._documents[world.acknowledged],
            self._known[world.known],
            world.faults,
            world.repeats,
            world.ticks,
        )
        who, memory, thread, fault = _parts(event)
        if who == "tick":
            change.clock += self.scenario.tick
            change.ticks -= 1
            change.clients = [standing._replace(origin=-1) for standing in change.clients]
        elif who.startswith("stray"):
            self._stray_goes_on(change, _number(who, "stray"), memory, thread, fault)
        elif who.startswith("late"):
            self._late_arrives(change, _number(who, "late"))
        else:
            self._client_goes_on(change, self._place(who), memory, thread, fault)
        return self._world(change), change.violations

    def _place(self, name: str) -> int:
        for place, client in enumerate(self.scenario.clients):
            if client.name == name:
                return place
        raise ValueError(f"the scenario {self.scenario.name} has no client {name}")

    def _world(self, change: Change) -> World:
        # A part that the event did not change is still the same object, which has a number.
        before, standings = change.world, self._standings
        clients = [
            number if standings[number] is standing else standings.number(standing)
            for number, standing in zip(before.clients, change.clients, strict=True)
        ]
        strays, late, acknowledged = before.strays, before.late, before.acknowledged
        if change.strays is not self._strays[strays]:
            strays = self._strays.number(tuple(sorted(change.strays)))
        if change.late is not self._late[late]:
            late = self._late.number(tuple(sorted(change.late)))
        if change.acknowledged is not self._documents[acknowledged]:
            acknowledged = self._documents.number(change.acknowledged)
        known = before.known
        if change.known is not self._known[known]:
            known = self._known.number(change.known)
        return World(
            change.bucket,
            change.clock,
            tuple(clients),
            strays,
            late,
            acknowledged,
            known,
            change.faults,
            change.repeats,
            change.ticks,
        )

    # --- events --------------------------------------------------------------------------------------

    def _client_goes_on(self, change: Change, place: int, memory: str, thread: int, fault: str) -> None:
        standing = change.clients[place]
        if standing.point < 0:
            raise ValueError("the client has ended")
        if fault in ("crash", "again"):
            if fault == "again":
                begun = self._begun_at(change, standing)
                stray = Stray(place, begun.point, begun.started, begun.overtime, begun.lock, begun.deleted)
                change.strays = (*change.strays, stray)
            change.repeats -= 1
            self._begin(change, place)
            verb = self._production.point(standing.point).request.verb
            if fault == "again" and verb in invariants.OWN_LOCK:
                # Two tries at the same time share a lock. The slower may find it released: `fencing.md`.
                change.clients[place] = change.clients[place]._replace(origin=-1)
            self._no_reply(change, place)
            return
        self._begin(change, place)
        standing = change.clients[place]
        point = self._in_process(change.world.known, standing.point, memory)
        overtime = standing.overtime or fault.endswith("over")
        if point.pending:  # else it sends nothing to S3
            answer = self._send(change, place, point, thread, fault, standing)
            seconds = change.clock - standing.started + (_OVERTIME if overtime else 0)
            point = self._goes_on(change, point, answer, seconds, thread)
        change.clients[place] = change.clients[place]._replace(point=point.number, overtime=overtime)
        if overtime and point.request.verb == "unlock" and invariants.named_lock(point.request) is None:
            # If the outcome at S3 is unknown, the client gets a status that it does not retry.
            change.clients[place] = change.clients[place]._replace(origin=-1)
        if point.reply is not None:
            self._judge_server(change, place, point, point.reply, standing.lock)
            if point.reply.status >= 500:
                self._no_reply(change, place)
            else:
                self._heard(change, place, point, point.reply)

    def _begin(self, change: Change, place: int) -> None:
        """Begin an invocation: it begins with its first request to S3."""
        change.clients[place] = self._begun_at(change, change.clients[place])

    def _begun_at(self, change: Change, standing: Standing) -> Standing:
        if standing.started >= 0:
            return standing
        origin = change.bucket if standing.tries == 1 else standing.origin
        request = self._production.point(standing.point).request
        lock = invariants.lock_to_unlock(request, self._buckets[change.bucket])
        return standing._replace(started=change.clock, origin=origin, lock=lock)

    def _send(
        self, change: Change, place: int, point: Point, thread: int, fault: str, sender: Standing | Stray
    ) -> Answer:
        """Send the pending request of a thread, and return the answer that the thread gets."""
        pending = point.pending[thread]
        if fault:
            change.faults -= 1
        match fault:
            case "409":
                return Answer(409, "ConditionalRequestConflict")
            case "503":
                return Answer(503, "SlowDown")
            case "never" | "over":
                return Answer(LOST)
            case "late" | "late-over":
                change.late = (*change.late, Late(place, point.number, thread, sender.lock, sender.deleted))
                return Answer(LOST)
            case _:  # S3 carries it out; the fault is in the answer
                pass
        answer = self._carry_out(change, place, point, pending, sender)
        if fault == "500":
            return Answer(500, "InternalError")
        return Answer(LOST) if fault else answer

    def _carry_out(
        self, change: Change, place: int, point: Point, request: Request, sender: Standing | Stray | Late
    ) -> Answer:
        known = (change.bucket, request, change.clock)
        if known not in self._carried_out:
            bucket, answer, effect = self._s3(self._buckets[change.bucket], request, change.clock)
            self._carried_out[known] = (self._buckets.number(bucket), answer, effect)
        change.bucket, answer, effect = self._carried_out[known]
        if effect is not None:
            self._judge_effect(change, place, point, effect, sender)
            # The last check, because a mutant is listed under the first invariant that it violates.
            change.violations.extend(invariants.of_role(point.request, effect))
        return answer

    def _goes_on(self, change: Change, point: Point, answer: Answer, seconds: int, thread: int) -> Point:
        """Return an invocation's point after an answer to a thread.

        A removal from the staging bucket is part of the same event: a commit removes its upload when
        everything else is done.
        """
        point = self._production.after(point, answer, seconds, thread)
        while (pending := point.pending.get(MAIN)) and pending.staged and pending.operation == "DeleteObject":
            bucket, answer, _ = carry_out(self._buckets[change.bucket], pending, change.clock)
            change.bucket = self._buckets.number(bucket)
            point = self._production.after(point, answer, seconds)
        return point

    def _stray_goes_on(self, change: Change, number: int, memory: str, thread: int, fault: str) -> None:
        stray = change.strays[number]
        point = self._in_process(change.world.known, stray.point, memory)
        others = change.strays[:number] + change.strays[number + 1 :]
        change.strays = others
        if change.clock - stray.started > _LIFETIME:
            return
        overtime = stray.overtime or fault.endswith("over")
        if point.pending:
            answer = self._send(change, stray.client, point, thread, fault, stray)
            seconds = change.clock - stray.started + (_OVERTIME if overtime else 0)
            point = self._goes_on(change, point, answer, seconds, thread)
        if point.reply is not None:
            self._judge_server(change, stray.client, point, point.reply, stray.lock)
        else:
            change.strays = (*change.strays, stray._replace(point=point.number, overtime=overtime))

    def _late_arrives(self, change: Change, number: int) -> None:
        late = change.late[number]
        change.late = change.late[:number] + change.late[number + 1 :]
        point = self._production.point(late.point)
        before = change.bucket
        pending = point.pending[late.thread]
        self._carry_out(change, late.client, point, pending, late)
        if change.bucket != before and pending.key == LOCK_KEY:
            # A lock that was released before is there again, and nobody holds it: `fencing.md`.
            standing = change.clients[late.client]
            change.clients[late.client] = standing._replace(origin=-1)

    # --- what follows from an event ------------------------------------------------------------------

    def _sent(self, session: int, *, seen: int | None = None, holds: bool = False) -> Standing:
        """Return the progress of a client that has just sent its session's next request."""
        request = self._sessions.request(session)
        point = self._production.start(request).number if request else -1
        if request is not None and request.verb in invariants.UNLOCKS:
            holds = False
        return Standing(session, point, holds=holds, seen=self._no_documents if seen is None else seen)

    def _no_reply(self, change: Change, place: int) -> None:
        """Let the client send the request again, or give up after its third try."""
        standing = change.clients[place]
        request = self._production.point(standing.point).request
        if standing.tries < _TRIES:
            again = self._production.start(request.again()).number
            change.clients[place] = standing._replace(
                point=again, started=-1, overtime=False, tries=standing.tries + 1
            )
        else:
            self._goes_on_after(change, place, None)

    def _goes_on_after(self, change: Change, place: int, reply: Reply | None) -> None:
        standing = change.clients[place]
        session = self._sessions.after(standing.session, reply)
        change.clients[place] = self._sent(session, seen=standing.seen, holds=standing.holds)

    def _heard(self, change: Change, place: int, point: Point, reply: Reply) -> None:
        """Give the client its response, and judge it."""
        request = point.request
        standing = change.clients[place]
        party = self._party(change, place)
        if request.verb in invariants.LOCKS and reply.status == 200:
            standing = standing._replace(holds=True)
        elif request.verb in invariants.READS and reply.status == 200:
            seen = self._documents[standing.seen] | {invariants.document_in(request, reply)}
            standing = standing._replace(seen=self._documents.number(seen))
        elif request.verb == "create" and reply.status == 201:
            base = invariants.unread_base(reply, self._buckets[change.bucket])
            standing = standing._replace(seen=self._documents.number(self._documents[standing.seen] | base))
        elif request.verb in invariants.REFUSABLE and 400 <= reply.status < 500:
            bucket = self._buckets[change.bucket]
            change.violations.extend(
                invariants.of_refused_write(request, reply.status, party, bucket, change.acknowledged)
            )
        elif request.verb in invariants.WRITES and reply.status == 200:
            change.violations.extend(invariants.of_heard_write(request, party, self._buckets[change.bucket]))
        if standing.origin >= 0 and request.verb not in NATIVE:
            self._judge_repeat(change, place, point, reply)
        change.clients[place] = standing
        self._goes_on_after(change, place, reply)

    def _judge_server(self, change: Change, place: int, point: Point, reply: Reply, lock: int) -> None:
        """Judge a response of the API, whether or not its client still waits for it."""
        request, verb, bucket = point.request, point.request.verb, self._buckets[change.bucket]
        judge = change.violations.extend
        change.known = self._with(change.known, point)
        # With declared names a read that finds no state takes two requests, and is true of the first.
        if verb == "read" and reply.status in (200, 204) and not request.declared_only:
            judge(invariants.of_read(point, reply.body.encode(), bucket))
        elif verb == "download" and reply.status == 200:
            judge(invariants.of_download(request, reply.body.encode(), bucket))
        elif verb == "create" and reply.status == 201:
            judge(invariants.of_announced(point, change.acknowledged))
        if invariants.says_released(request, reply):
            judge(invariants.of_released(point, lock, bucket))
        if reply.status != 200:
            return
        parties = self._parties(change)
        party, any_push_counts = parties[place], self.scenario.any_push_counts
        judge(invariants.of_answered_role(request))
        if verb == "workspace-create":
            judge(invariants.of_created(request, bucket))
        if verb == "freeze-pattern" and not self._is_unfreezing(change):
            change.acknowledged |= invariants.holding(reply, bucket)
        elif verb in invariants.WRITES or verb == "undelete":
            told = change.acknowledged | {request.body}
            judge(invariants.of_pattern(verb, party, bucket, told, change.clock))
        if verb in {*invariants.DELETES, "undeclare"}:
            late = map(self._production.point, invariants.sent_by_late_deletes(change.acknowledged))
            judge(invariants.of_deleted(point, bucket, late))
            if verb in invariants.DELETES and invariants.has_deleted(point, bucket):
                self._note_delete(change, place)
        elif verb in invariants.LOCKS:
            judge(invariants.of_acquired(party, parties))
        elif verb == "native-write":
            change.acknowledged |= {request.body}
        elif verb in invariants.WRITES:
            change.acknowledged |= {
                request.body,
                *([invariants.forced(request.body)] if request.force else ()),
            }
            told = change.acknowledged
            judge(
                invariants.of_acknowledged(
                    request, party, parties, bucket, told, any_push_counts=any_push_counts
                )
            )
        elif verb == "restore":
            change.acknowledged |= invariants.restored(reply, bucket)
            told = change.acknowledged
            judge(
                invariants.of_restored(
                    point,
                    reply,
                    party,
                    parties,
                    bucket,
                    told,
                    change.clock,
                    any_push_counts=any_push_counts,
                )
            )
        elif verb == "undelete":
            judge(invariants.of_undeleted(request, reply, bucket))
            current = bucket.current(STATE_KEY)
            if current is not None and current.body is not None:
                change.acknowledged |= {invariants.brought_back(current.body)}

    def _is_unfreezing(self, change: Change) -> bool:
        """Return whether an unfreeze of a pattern is under way, which may have lifted a freeze already."""
        pending: list[Standing | Stray] = [*change.clients, *change.strays]
        points = [self._production.point(each.point) for each in pending if each.point >= 0]
        return any(point.request.verb == "unfreeze-pattern" for point in points)

    def _with(self, known: tuple[int, ...], point: Point) -> tuple[int, ...]:
        """Add the cache that an invocation leaves to the known caches, in the order of their texts."""
        if set(point.leaves) <= set(known):
            return known
        return tuple(sorted({*known, *point.leaves}, key=self._production.remembered))

    def _note_delete(self, change: Change, deleter: int) -> None:
        """Note that a delete is acknowledged: a request that others sent before must not undo it.

        A client that holds the lock acquired it after the delete, whose own release may be answered late.
        """
        for other, standing in enumerate(change.clients):
            if other != deleter and standing.point >= 0 and not standing.holds:
                change.clients[other] = standing._replace(deleted=standing.point)
        change.strays = tuple(
            stray if change.clients[stray.client].holds else stray._replace(deleted=stray.point)
            for stray in change.strays
        )
        change.late = tuple(late._replace(deleted=late.point) for late in change.late)

    def _judge_effect(
        self, change: Change, place: int, point: Point, effect: Effect, sender: Standing | Stray | Late
    ) -> None:
        request, bucket, excused = point.request, self._buckets[change.bucket], self.scenario.excused
        judge = change.violations.extend
        for other, standing in enumerate(change.clients):
            mine = other == place and standing.point >= 0
            if not (mine and self._production.point(standing.point).request.first == request.first):
                change.clients[other] = standing._replace(origin=-1)
        is_native = request.verb in NATIVE  # the API does not answer for changes past it
        parties = self._parties(change)
        party = parties[place]
        if effect.key == STATE_KEY and not is_native:
            judge(invariants.of_state_effect(effect, point, party, parties, change.acknowledged, excused))
            if sender.deleted >= 0:
                then = self._production.point(sender.deleted)
                judge(invariants.of_undone_delete(effect, point, then, bucket, excused))
        if effect.key in (STATE_KEY, RECORD_KEY):
            if not is_native:
                change.acknowledged |= invariants.late_delete(effect, point, parties)
            judge(invariants.of_workspace_effect(effect, request, party.name, change.acknowledged))
            change.acknowledged |= invariants.since_deleted(effect, request, party.name, change.acknowledged)
        if request.verb == "unfreeze-pattern":
            change.acknowledged = invariants.without_holding(change.acknowledged)
        if effect.key != LOCK_KEY:
            return
        if not is_native:
            judge(invariants.of_lock_effect(effect, request, change.clock, sender.lock))
        if request.verb in {"restore", *invariants.DELETES}:
            working = [
                (other, self._production.point(standing.point))
                for other, standing in enumerate(change.clients)
                if standing.point >= 0
            ]
            judge(invariants.of_shared_lock(effect, place, point, bucket, working))
        gone = effect.removed or (effect.before if effect.added else None)
        if gone is not None and gone.body is not None:
            owner = invariants.client_of_lock(gone)
            for other, client in enumerate(self.scenario.clients):
                if owner == client.name:
                    change.clients[other] = change.clients[other]._replace(holds=False)
        if effect.added is not None and effect.added.body is not None and not self.scenario.late_acquires:
            self._drop_acquires(change, place)

    def _drop_acquires(self, change: Change, taker: int) -> None:
        """Apply an assumption of `safety.md` after a client has acquired the lock.

        S3 carries out no pending acquire any more whose client has gone on to another request.
        """
        change.late = tuple(late for late in change.late if not self._is_over(change, taker, late))
        change.strays = tuple(stray for stray in change.strays if not self._is_over(change, taker, stray))

    def _is_over(self, change: Change, taker: int, pending: Late | Stray) -> bool:
        request = self._production.point(pending.point).request
        if pending.client == taker or request.verb not in invariants.LOCKS:
            return False
        now = change.clients[pending.client].point
        return now < 0 or self._production.point(now).request.first != request.first

    def _judge_repeat(self, change: Change, place: int, point: Point, reply: Reply) -> None:
        """Judge a request that was alone since it was first sent: its retries must change nothing."""
        standing = change.clients[place]
        expected, bucket = self._answered_alone(standing.origin, point.request, change.clock)
        name = self.scenario.clients[place].name
        if invariants.may_be_anew(point.request, reply, self._buckets[change.bucket]):
            return
        before, bucket_now = (self._buckets[number] for number in (standing.origin, change.bucket))
        is_released = invariants.finds_released(point, reply, before, bucket_now)
        if not is_released and invariants.in_essence(reply) != invariants.in_essence(expected):
            what = f"{name}'s {point.request.verb} was answered {reply.status}, undisturbed {expected.status}"
            change.violations.append(Violation(invariants.Invariant.REPEATED, what))
        on_their_way = [*(stray.point for stray in change.strays), *(late.point for late in change.late)]
        still_comes = any(
            self._production.point(number).request.first == point.request.first for number in on_their_way
        )
        is_same = change.bucket == bucket or _kept(self._buckets[change.bucket], reply) == _kept(
            self._buckets[bucket], reply
        )
        if not still_comes and not is_same:
            what = f"{name}'s {point.request.verb} has left something else than it would have undisturbed"
            change.violations.append(Violation(invariants.Invariant.REPEATED, what))

    def _answered_alone(self, bucket: int, request: HttpRequest, now: int) -> tuple[Reply, int]:
        """Return the response to a request and the number of the bucket afterwards, without any fault.

        The request runs in a cold process. In a warm process the result must be the same.
        """
        known = (bucket, request, now)
        if known not in self._answers:
            point, found = self._alone(self._buckets[bucket], request, now)
            assert point.reply is not None
            self._answers[known] = (point.reply, self._buckets.number(found))
        return self._answers[known]

    def _alone(self, bucket: Bucket, request: HttpRequest, now: int) -> tuple[Point, Bucket]:
        """Return a request's last point and the bucket afterwards, without any fault."""
        point = self._production.start(request)
        while point.reply is None:
            thread, pending = next(iter(point.pending.items()))
            bucket, answer, _ = self._s3(bucket, pending, now)
            point = self._production.after(point, answer, 0, thread)
        return point, bucket

    def _s3(self, bucket: Bucket, request: Request, now: int) -> tuple[Bucket, Answer, Effect | None]:
        if self.scenario.protected and request.operation == "DeleteObject" and request.version_id:
            return bucket, Answer(403, "AccessDenied"), None
        return carry_out(bucket, request, now)

    def _party(self, change: Change, place: int) -> Party:
        standing = change.clients[place]
        return Party(self.scenario.clients[place].name, standing.holds, self._documents[standing.seen])

    def _parties(self, change: Change) -> list[Party]:
        return [self._party(change, place) for place in range(len(change.clients))]


@cache
def _parts(event: str) -> tuple[str, str, int, str]:
    """Split an event's name into the invocation, the cache of its process, the thread and the fault."""
    name, _, fault = event.partition(".")
    thread = BESIDE if name.endswith(_BESIDE) else MAIN
    who, plus, memory = name.removesuffix(_BESIDE).partition("+")
    return who, plus + memory, thread, fault


def _number(who: str, kind: str) -> int:
    return int(who.removeprefix(kind)) - 1


def _kept(bucket: Bucket, reply: Reply) -> Bucket:
    """Return a bucket without the parts that may differ from try to try.

    These are the key of an upload in the metadata, staged uploads (a commit removes them if it can), the
    history of a lock that is not held, and the lock of a verb whose response says that it may be left.
    """
    keys = [
        key._replace(
            entries=tuple(
                entry._replace(metadata=tuple(pair for pair in entry.metadata if pair[0] != "upload"))
                for entry in key.entries
            )
        )
        for key in bucket.keys
        if key.name != LOCK_KEY or (bucket.current(LOCK_KEY) and not invariants.has_left_lock(reply))
    ]
    return bucket._replace(keys=tuple(keys), staged=())


def _found(bucket: Bucket) -> frozenset[bytes]:
    """Return the state documents in a bucket before a scenario begins. All of them count as acknowledged."""
    return frozenset(entry.body for entry in bucket.key(STATE_KEY).entries if entry.body is not None)


def _path(came_from: Sequence[int], by_event: Sequence[str], place: int) -> tuple[str, ...]:
    events = []
    while place > 0:
        events.append(by_event[place])
        place = came_from[place]
    return tuple(reversed(events))

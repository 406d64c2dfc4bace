"""Load with witnesses: clients count; operators restore, freeze and break locks; with faults and kills."""

import http.client
import json
import random
import shutil
import subprocess
import sys
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

from tests.safety.figures import Figures
from tests.safety.wire import witness
from tests.safety.wire.proxy import Fault, FaultProxy, Plan, Side, api_faults, s3_faults
from tests.safety.wire.stack import Stack
from tests.safety.wire.verdict import EMPTY_BODY_AGE, Findings, Operation, operations, verify
from tests.safety.wire.witness import Content, Settings, content

if TYPE_CHECKING:
    from tests.support.http_client import Credentials

Say = Callable[[str], None]

CLIENTS: Final = 6
SLOTS: Final = 8
GENERATION: Final = 30.0
"""Seconds after which clients go on to other states: the local AWS gets slower with each version of a key."""

_PATIENCE = 2.0
_TICK = 0.1
_SLOW = (0.05, 1.0)  # seconds
_LOOK = 0.5  # seconds from one look at the locks to the next
_REPORT = 5.0
_TOKENS = 3
_OPERATORS: Final = ("restore", "freeze")
"""The kinds of operators that work beside the clients, over the management API."""
_SENTENCES = 20
_TIME_TO_END = witness.TIME_LIMIT * 3
_EVIDENCE: Final = Path(__file__).resolve().parents[3] / ".build" / "safety"
"""The folder that keeps the journals of a run with findings. The local AWS and its data are removed."""


@dataclass(frozen=True, slots=True)
class Rates:
    """The average number of acknowledged writes between two events of each kind; 0 = never.

    The rates count writes instead of seconds, so that a slow machine makes progress. A kill is a SIGKILL;
    another client replaces a killed client. `broken_lock` is a force-unlock while the holder is at work.
    """

    client_kill: float = 25
    worker_kill: float = 25
    broken_lock: float = 8


QUIET: Final = Rates(0, 0, 0)

# S3 may carry out a request after the connection is gone. An acquire that arrives after its client has
# released the lock acquires it again, for nobody: see "What is not covered" in `fencing.md`.
_NEVER: Final = ((Fault.LATE, "PUT", ".tflock"), (Fault.HANG, "PUT", ".tflock"))


@dataclass(frozen=True, slots=True)
class Wire:
    """The chances of faults on the wire, per request.

    `to_s3` is the chance between the functions and S3, `to_api` between clients and the API. `storm` replaces
    both in a storm. `slow` is the chance of a delay towards S3 that is long enough for other requests to
    come first. `hang` is the chance, on both sides, of a delay that is longer than anybody waits. `calm` is
    the average number of seconds between two storms, `storm_seconds` the length of a storm.
    """

    to_s3: float = 0.05
    to_api: float = 0.05
    slow: float = 0.02
    storm: float = 0.4
    hang: float = 0.0
    calm: float = 12.0
    storm_seconds: float = 1.5

    def plans(self, *, storm: bool) -> tuple[Plan, Plan]:
        """Return the plans towards S3 and towards the API."""
        s3 = s3_faults(self.storm if storm else self.to_s3)
        api = api_faults(self.storm if storm else self.to_api)
        slow = {Fault.LATENCY: self.slow, Fault.HANG: self.hang}
        return (
            replace(s3, chances={**s3.chances, **slow}, latency=_SLOW, never=_NEVER),
            replace(api, chances={**api.chances, Fault.HANG: self.hang}),
        )


CLEAR: Final = Wire(0, 0, 0, 0)


class _Process:
    """A running witness, and the facts from its journal so far."""

    def __init__(self, settings: Settings, *arguments: str) -> None:
        self.name = settings.name
        self.journal = Path(settings.journal)
        self.journal.touch(mode=0o600)
        self.lock: str | None = None
        self.acknowledged = 0
        self._lines = self.journal.open()
        self._rest = ""
        self._verb = ""
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", witness.__file__, *arguments], stdin=subprocess.PIPE, text=True
        )
        self.say(settings.to_json())

    def say(self, line: str) -> None:
        """Send a line to its standard input."""
        assert self.process.stdin
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def follow(self) -> None:
        """Read the new lines of its journal."""
        *whole, self._rest = (self._rest + self._lines.read()).split("\n")
        for line in whole:
            entry = json.loads(line)
            self._verb = entry.get("verb", self._verb)
            if "verb" in entry:
                self.lock = entry["lock"]
            elif self._verb == "write" and entry.get("status") == 200:
                self.acknowledged += 1

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def dismiss(self) -> None:
        """Let it finish its round, without a wait."""
        assert self.process.stdin
        self.process.stdin.close()

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
        if self.process.stdin:
            self.process.stdin.close()
        self._lines.close()


@dataclass
class Crowd:
    """The clients that work now, and those that worked before."""

    stack: Stack
    address: str
    folder: str
    journals: Path
    slots: int
    generation: float
    seeds: random.Random
    uploads: str = ""
    began: float = field(default_factory=time.monotonic)
    working: list[_Process] = field(default_factory=list)
    gone: list[_Process] = field(default_factory=list)
    operators: list[_Process] = field(default_factory=list)
    killed: set[str] = field(default_factory=set)
    _tokens: "list[Credentials]" = field(default_factory=list)

    def __post_init__(self) -> None:
        self._tokens = [self.stack.token("writer", f"{self.folder}/*", f"by/{n}") for n in range(_TOKENS)]

    def settings(self, name: str, credentials: "Credentials", address: str) -> Settings:
        return Settings(
            name=name,
            address=address,
            username=credentials.username,
            password=credentials.password,
            journal=str(self.journals / f"{name}.jsonl"),
            seed=self.seeds.getrandbits(32),
            folder=self.folder,
            slots=self.slots,
            began=self.began,
            generation=self.generation,
            patience=_PATIENCE,
        )

    def sign_in(self) -> None:
        """Use each token once, so that the gateway has cached it before all clients begin."""
        address = urlsplit(self.stack.address)
        with closing(http.client.HTTPConnection(address.netloc, timeout=witness.TIME_LIMIT)) as connection:
            for token in self._tokens:
                headers = {"Authorization": token.header}
                connection.request("GET", f"{address.path}/states/{self.folder}/none", headers=headers)
                status = connection.getresponse()
                status.read()
                if status.status != http.HTTPStatus.NO_CONTENT:
                    raise RuntimeError(f"a token was answered {status.status}")

    def add(self) -> None:
        number = len(self.working) + len(self.gone) + 1
        token = self._tokens[number % len(self._tokens)]
        settings = self.settings(f"client-{number}", token, self.address)
        if number % 2:  # half of them, if there is a way for uploads
            settings = replace(settings, uploads=self.uploads)
        self.working.append(_Process(settings))

    def add_operators(self) -> None:
        """Start one operator of each kind."""
        for does in _OPERATORS:
            token = self.stack.token("maintainer", f"{self.folder}/*", f"by/{does}")
            self.operators.append(_Process(self.settings(does, token, self.address), does))

    @property
    def at_work(self) -> set[str | None]:
        """The locks under which clients and operators work."""
        return {process.lock for process in (*self.working, *self.operators)}

    def kill(self, process: _Process) -> None:
        """Kill a client, and start another in its place."""
        process.kill()
        self.killed.add(process.name)
        self.working.remove(process)
        self.gone.append(process)
        self.add()

    def follow(self) -> int:
        """Read all journals; return the number of acknowledged writes."""
        for process in (*self.working, *self.operators):
            if process.process.poll() is not None:
                raise RuntimeError(f"{process.name} ended by itself with {process.process.returncode}")
            process.follow()
        return self.acknowledged

    @property
    def acknowledged(self) -> int:
        return sum(process.acknowledged for process in (*self.working, *self.gone))

    def everybody(self) -> list[_Process]:
        return [*self.gone, *self.working, *self.operators]

    def close(self) -> None:
        for process in self.everybody():
            process.close()

    def end(self) -> None:
        """Let all finish their round, and wait for them."""
        ending = (*self.working, *self.operators)
        for process in ending:
            process.dismiss()
        deadline = time.monotonic() + _TIME_TO_END
        for process in ending:
            if process.process.wait(max(1.0, deadline - time.monotonic())) != 0:
                raise RuntimeError(f"{process.name} ended with {process.process.returncode}")
        for process in self.everybody():
            process.follow()


def run(
    *,
    acknowledged: int,
    seconds: float,
    seed: int,
    say: Say,
    stack: Stack,
    clients: int = CLIENTS,
    slots: int = SLOTS,
    generation: float = GENERATION,
    rates: Rates = Rates(),
    wire: Wire = Wire(),
    folder: Path | None = None,
) -> Figures:
    """Let clients count until so many writes are acknowledged, then compare their journals with the bucket.

    After `seconds` the run ends in any case. `clients` and `slots` are how many clients and states there are
    at a time. `generation` is as `GENERATION`. `folder` is for the journals, by default in the local AWS's.
    """
    name = f"load-{uuid.uuid4().hex[:8]}"
    journals = (folder or stack.data_dir / "journals") / name
    journals.mkdir(parents=True)
    choices = random.Random(seed)  # noqa: S311 reproducible, not secret
    with ExitStack() as ended:
        unused = frozenset(stack.workers())
        before_s3, before_api = wire.plans(storm=False)
        to_s3 = ended.enter_context(FaultProxy(stack.aws.endpoint, before_s3, choices.getrandbits(32)))
        to_api = ended.enter_context(
            FaultProxy(stack.address, before_api, choices.getrandbits(32), side=Side.API)
        )
        ended.callback(stack.route_functions_through, None)
        stack.route_functions_through(to_s3.endpoint)
        address = to_api.endpoint + urlsplit(stack.address).path
        crowd = Crowd(stack, address, name, journals, slots, generation, choices, to_s3.endpoint)
        ended.callback(crowd.close)
        maintainer = crowd.settings("operator", stack.token("maintainer"), address)
        operator = ended.enter_context(closing(_Process(maintainer, "operate")))
        crowd.sign_in()
        for _ in range(clients):
            crowd.add()
        crowd.add_operators()
        disturber = _Disturber(stack, crowd, operator, choices, rates, wire, (to_s3, to_api), unused)
        reached = _work(crowd, disturber, acknowledged, seconds, say)
        crowd.end()
        operator.dismiss()
        operator.process.wait(_TIME_TO_END)
        to_api.settle()
        to_s3.settle()
        faults = to_s3.faults + to_api.faults
    done = [one for process in (*crowd.everybody(), operator) for one in told(process)]
    took = time.monotonic()
    history, locks = history_of(stack, name), locks_of(stack, name)
    findings = verify(done, history, locks, crowd.killed)
    say(f"load: compared with the bucket in {time.monotonic() - took:.1f} s")
    if findings.lost or findings.violations:
        kept = keep(journals, history, locks, crowd.killed)
        say(f"load: what clients were told and what was in the bucket is kept in {kept}")
    return _figures(findings, disturber, faults, reached, seed, say)


def _work(crowd: Crowd, disturber: "_Disturber", acknowledged: int, seconds: float, say: Say) -> float:
    """Go on until enough writes are acknowledged or the time is over; return the seconds that it took."""
    began = reported = time.monotonic()
    while True:
        time.sleep(_TICK)
        now = time.monotonic()
        count = crowd.follow()
        if now - reported >= _REPORT or count >= acknowledged or now - began >= seconds:
            reported = now
            say(
                f"load: {count} of {acknowledged} writes acknowledged in {now - began:.0f} s, "
                f"{count / (now - began):.1f} a second, {disturber}"
            )
        if count >= acknowledged or now - began >= seconds:
            return now - began
        disturber.act(now, count)


def told(process: _Process) -> Iterator[Operation]:
    with process.journal.open() as lines:
        yield from operations(process.name, lines)


class _Disturber:
    """Kills clients and workers, and makes the operator remove locks."""

    def __init__(
        self,
        stack: Stack,
        crowd: Crowd,
        operator: _Process,
        choices: random.Random,
        rates: Rates,
        wire: Wire,
        proxies: tuple[FaultProxy, FaultProxy],
        unused: frozenset[int],
    ) -> None:
        self.client_kills = self.worker_kills = self.removals = 0
        self._stack = stack
        self._crowd = crowd
        self._operator = operator
        self._choices = choices
        self._wire = wire
        self._proxies = proxies
        self._unused = unused
        self._storm = True  # the first change is to calm
        self._first_seen: dict[str, float] = {}
        self._asked: set[str] = set()
        self._every: Mapping[Callable[[], None], float] = {
            act: every
            for act, every in (
                (self._kill_client, rates.client_kill),
                (self._kill_worker, rates.worker_kill),
                (self._break_lock, rates.broken_lock),
            )
            if every
        }
        self._due = {act: choices.expovariate(1 / every) for act, every in self._every.items()}
        self._next_look = self._next_weather = time.monotonic()

    def __str__(self) -> str:
        faults = sum(proxy.faults for proxy in self._proxies)
        return (
            f"{faults} faults, {self.client_kills} clients and {self.worker_kills} workers killed, "
            f"{self.removals} locks removed"
        )

    def act(self, now: float, acknowledged: int) -> None:
        """Do everything that is due after so many acknowledged writes."""
        for act, every in self._every.items():
            if acknowledged >= self._due[act]:
                self._due[act] = acknowledged + self._choices.expovariate(1 / every)
                act()
        if now >= self._next_look:
            self._next_look = now + _LOOK
            self._remove_orphans()
        if now >= self._next_weather:
            self._change_weather(now)

    def _kill_client(self) -> None:
        self._crowd.kill(self._choices.choice(self._crowd.working))
        self.client_kills += 1

    def _kill_worker(self) -> None:
        workers = [pid for pid in self._stack.workers() if pid not in self._unused]
        if workers and self._stack.kill_worker(self._choices.choice(workers)):
            self.worker_kills += 1

    def _change_weather(self, now: float) -> None:
        self._storm = not self._storm
        for proxy, plan in zip(self._proxies, self._wire.plans(storm=self._storm), strict=True):
            proxy.plan = plan
        seconds = self._wire.storm_seconds if self._storm else self._wire.calm
        self._next_weather = now + seconds * self._choices.uniform(0.5, 1.5)

    def _break_lock(self) -> None:
        """Remove the lock that has been held longest: its holder probably has requests in flight."""
        at_work = self._crowd.at_work
        held = self._held_now()
        found = [
            (state, lock)
            for state, lock in held.items()
            if lock in at_work and lock in self._first_seen and not lock.startswith("freeze-")
        ]
        if found:
            self._remove(*min(found, key=lambda each: self._first_seen[each[1]]))

    def _remove_orphans(self) -> None:
        """Remove locks under which nobody works: by their ID, or without it once they are old enough."""
        now = time.monotonic()
        held = self._held_now()
        self._first_seen = {lock: self._first_seen.get(lock, now) for lock in held.values()}
        at_work = self._crowd.at_work
        for state, lock in held.items():
            # A freeze ends by itself.
            if lock in at_work or lock in self._asked or lock.startswith("freeze-"):
                continue
            by_id = lock.startswith("restore-") or int(lock[:2], 16) % 2
            if by_id:
                self._remove(state, lock)
                self._asked.add(lock)
            elif now - self._first_seen[lock] > EMPTY_BODY_AGE + 2:
                self._remove(state, None)
                self._asked.add(lock)

    def _held_now(self) -> Mapping[str, str]:
        return locks_of(self._stack, self._crowd.folder)

    def _remove(self, state: str, lock: str | None) -> None:
        self._operator.say(json.dumps({"state": state, "lock": lock}))
        self.removals += 1


def keep(
    journals: Path,
    history: Mapping[str, Sequence[Content]],
    locks: Mapping[str, str],
    killed: set[str],
    folder: Path = _EVIDENCE,
) -> Path:
    """Save everything that the verdict was based on.

    Return the folder, which has the journals, and the bucket in `bucket.json`.
    """
    kept = Path(shutil.copytree(journals, folder / journals.name))
    bucket = {
        "history": {state: [asdict(version) for version in versions] for state, versions in history.items()},
        "locks": dict(locks),
        "killed": sorted(killed),
    }
    (kept / "bucket.json").write_text(json.dumps(bucket))
    return kept


# --- the bucket ----------------------------------------------------------------------------------------


def locks_of(stack: Stack, folder: str) -> dict[str, str]:
    """Return the locks in the bucket by state, with their names in the journals."""
    found = {}
    pages = stack.s3.get_paginator("list_objects_v2").paginate(
        Bucket=stack.bucket, Prefix=f"states/{folder}/"
    )
    for key in [item["Key"] for page in pages for item in page.get("Contents", [])]:
        if not key.endswith(".tflock"):
            continue
        try:
            body = stack.s3.get_object(Bucket=stack.bucket, Key=key)["Body"].read()
        except stack.s3.exceptions.NoSuchKey:
            continue
        found[key.removeprefix("states/").removesuffix(".tfstate.tflock")] = witness.journalled(
            json.loads(body)
        )
    return found


def history_of(stack: Stack, folder: str) -> Mapping[str, Sequence[Content]]:
    """The versions of every state, oldest first."""
    history: dict[str, list[Content]] = defaultdict(list)
    endpoint = urlsplit(stack.aws.endpoint)
    pages = stack.s3.get_paginator("list_object_versions").paginate(
        Bucket=stack.bucket, Prefix=f"states/{folder}/"
    )
    with closing(http.client.HTTPConnection(endpoint.netloc, timeout=60)) as connection:
        for page in pages:
            for marker in page.get("DeleteMarkers", []):
                raise RuntimeError(f"{marker['Key']} was deleted, which nobody has asked for")
            for version in page.get("Versions", []):
                # The SDK would take several times as long. The local AWS demands no signature.
                key = quote(version["Key"])
                connection.request("GET", f"/{stack.bucket}/{key}?versionId={version['VersionId']}")
                answer = connection.getresponse()
                body = answer.read()
                if answer.status != http.HTTPStatus.OK:
                    raise RuntimeError(f"{version['Key']} {version['VersionId']}: {answer.status}")
                if version["Key"].endswith(".tfstate"):
                    state = version["Key"].removeprefix("states/").removesuffix(".tfstate")
                    history[state].append(content(body))
    return {state: versions[::-1] for state, versions in history.items()}


def _figures(
    findings: Findings, disturber: _Disturber, faults: int, took: float, seed: int, say: Say
) -> Figures:
    for sentence in (*findings.lost, *findings.violations)[:_SENTENCES]:
        say(f"load: VIOLATION: {sentence}")
    if findings.lost or findings.violations:
        say(f"load: {len(findings.lost)} lost and {len(findings.violations)} violations with seed {seed}")
    say(
        f"load: {findings.acknowledged} acknowledged writes in {took:.0f} s, all in the bucket but "
        f"{len(findings.lost)}; {findings.restored} restores and {findings.frozen} freezes; "
        f"{findings.unacknowledged} versions without an acknowledgement, "
        f"{findings.locks_left} locks left by the killed"
    )
    return Figures(
        operations=findings.requests,
        acknowledged=findings.acknowledged,
        faults=faults,
        kills=disturber.client_kills + disturber.worker_kills,
        lost=len(findings.lost),
        violations=len(findings.violations),
    )

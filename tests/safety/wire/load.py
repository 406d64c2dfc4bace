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
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

from tests.safety.figures import Figures
from tests.safety.wire import witness
from tests.safety.wire.proxy import API_FAULTS, NONE, S3_FAULTS, FaultProxy, Plan, gateway_refusal
from tests.safety.wire.stack import Stack
from tests.safety.wire.verdict import operations, verify
from tests.safety.wire.witness import Content, Settings, content
from tests.support.fault_relay import Fault, Request
from tests.support.http_client import Credentials

Say = Callable[[str], None]

CLIENTS: Final = 6
SLOTS: Final = 8
GENERATION: Final = 30.0
"""Seconds after which clients go on to other states: the local AWS gets slower with each version of a key."""

_PATIENCE = 2.0
_TICK = 0.1
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
    """The average number of acknowledged writes between two events of each kind.

    The rates count writes instead of seconds, so that a slow machine makes progress. A kill is a SIGKILL;
    another client replaces a killed client. `broken_lock` is a force-unlock while the holder is at work.
    """

    client_kill: float = 25
    worker_kill: float = 25
    broken_lock: float = 8


_FAULTS: Final = 0.05
"""The chance of a fault per request, between the functions and S3, and between clients and the API."""
_STORM: Final = 0.4
"""The same in a storm."""
_SLOW: Final = 0.02
"""The chance of a delay towards S3 that is long enough for other requests to come first."""
_CALM_SECONDS: Final = 12.0
_STORM_SECONDS: Final = 1.5


def _no_late_acquire(fault: Fault, request: Request) -> bool:
    """S3 may carry out a request after the connection is gone.

    An acquire that arrives after its client has released the lock acquires it again, for nobody: see "What is
    not covered" in `fencing.md`.
    """
    return fault is not Fault.LATE or request.method != "PUT" or not request.path.endswith(".tflock")


def _plans(*, storm: bool) -> tuple[Plan, Plan]:
    """Return the plans towards S3 and towards the API."""
    chance = _STORM if storm else _FAULTS
    s3 = Plan.evenly(chance, *S3_FAULTS, only=_no_late_acquire)
    return (
        replace(s3, chances={**s3.chances, Fault.LATENCY: _SLOW}, latency=(0.05, 1.0)),
        Plan.evenly(chance, *API_FAULTS),
    )


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
    """The clients that work now, and those that worked before.

    `address` is the API's base URL for the clients, `uploads` that of S3 for the uploads of half of them; if
    it is empty, all work over `backend "http"`. `figures` is the result, after their end.
    """

    stack: Stack
    folder: str
    address: str
    uploads: str
    slots: int
    generation: float
    seeds: random.Random
    began: float = field(default_factory=time.monotonic)
    working: list[_Process] = field(default_factory=list)
    gone: list[_Process] = field(default_factory=list)
    operators: list[_Process] = field(default_factory=list)
    killed: set[str] = field(default_factory=set)
    figures: Figures = field(default_factory=Figures)
    _tokens: list[Credentials] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.journals = self.stack.aws.data_dir / "journals" / self.folder
        self.journals.mkdir(parents=True)
        self._tokens = [self.stack.token("writer", f"{self.folder}/*", f"by/{n}") for n in range(_TOKENS)]

    def settings(self, name: str, credentials: Credentials) -> Settings:
        return Settings(
            name=name,
            address=self.address,
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
        for token in self._tokens:
            response = self.stack.client_with(token).read(f"{self.folder}/none")
            if response.status != http.HTTPStatus.NO_CONTENT:
                raise RuntimeError(f"a token was answered {response.status} {response.body.decode()}")

    def add(self) -> None:
        number = len(self.working) + len(self.gone) + 1
        token = self._tokens[number % len(self._tokens)]
        settings = self.settings(f"client-{number}", token)
        if number % 2:  # half of them, if there is a way for uploads
            settings = replace(settings, uploads=self.uploads)
        self.working.append(_Process(settings))

    def add_operator(self, does: str) -> _Process:
        """Start an operator of a kind, which is an argument of `witness`."""
        token = self.stack.token("maintainer", f"{self.folder}/*", f"by/{does}")
        self.operators.append(_Process(self.settings(does, token), does))
        return self.operators[-1]

    @property
    def at_work(self) -> set[str | None]:
        """The locks under which clients and operators work."""
        return {process.lock for process in (*self.working, *self.operators) if process.name != "operate"}

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


@contextmanager
def counting(
    part: str,
    stack: Stack,
    seed: int,
    say: Say,
    *,
    clients: int,
    slots: int,
    generation: float,
    proxies: tuple[FaultProxy, FaultProxy] | tuple[()] = (),
) -> Iterator[Crowd]:
    """Let clients count within the context, then compare their journals with the bucket.

    `proxies` are those towards S3 and towards the API, through which the clients send their requests.
    """
    address, uploads = stack.direct_address, ""
    if proxies:
        to_s3, to_api = proxies
        address, uploads = to_api.endpoint + urlsplit(address).path, to_s3.endpoint
    choices = random.Random(seed)  # noqa: S311 reproducible, not secret
    crowd = Crowd(stack, f"{part}-{uuid.uuid4().hex[:8]}", address, uploads, slots, generation, choices)
    try:
        crowd.sign_in()
        for _ in range(clients):
            crowd.add()
        yield crowd
        crowd.end()
    finally:
        crowd.close()
    for proxy in proxies:
        proxy.settle()
    crowd.figures = _judge(part, crowd, seed, say)


def _judge(part: str, crowd: Crowd, seed: int, say: Say) -> Figures:
    done = [
        one
        for process in crowd.everybody()
        for one in operations(process.name, process.journal.read_text().splitlines(keepends=True))
    ]
    history, locks = history_of(crowd.stack, crowd.folder), locks_of(crowd.stack, crowd.folder)
    findings = verify(done, history, locks, crowd.killed)
    for sentence in (*findings.lost, *findings.violations)[:_SENTENCES]:
        say(f"{part}: VIOLATION: {sentence}")
    if findings.lost or findings.violations:
        kept = keep(crowd.journals, history, locks, crowd.killed)
        say(
            f"{part}: {len(findings.lost)} lost and {len(findings.violations)} violations with seed {seed}; "
            f"what clients were told and what was in the bucket is kept in {kept}"
        )
    say(
        f"{part}: {findings.acknowledged} acknowledged writes, all in the bucket but {len(findings.lost)}; "
        f"{findings.restored} restores and {findings.frozen} freezes; "
        f"{findings.unacknowledged} versions without an acknowledgement, "
        f"{findings.locks_left} locks left by the killed"
    )
    return Figures(
        operations=findings.requests,
        acknowledged=findings.acknowledged,
        lost=len(findings.lost),
        violations=len(findings.violations),
    )


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
) -> Figures:
    """Let clients count until so many writes are acknowledged, then compare their journals with the bucket.

    After `seconds` the run ends in any case. `clients` and `slots` are how many clients and states there are
    at a time. `generation` is as `GENERATION`.
    """
    with (
        stack.faults_in_s3(seed) as to_s3,
        FaultProxy(stack.direct_address, NONE, seed + 1, refusal=gateway_refusal) as to_api,
    ):
        proxies = (to_s3, to_api)
        unused = frozenset(stack.workers())
        with counting(
            *("load", stack, seed, say),
            clients=clients,
            slots=slots,
            generation=generation,
            proxies=proxies,
        ) as crowd:
            disturber = _Disturber(crowd, rates, proxies, unused)
            _work(crowd, disturber, acknowledged, seconds, say)
        kills = disturber.client_kills + disturber.worker_kills
        return crowd.figures + Figures(faults=to_s3.faults + to_api.faults, kills=kills)


def _work(crowd: Crowd, disturber: "_Disturber", acknowledged: int, seconds: float, say: Say) -> None:
    """Go on until enough writes are acknowledged or the time is over."""
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
            return
        disturber.act(now, count)


class _Disturber:
    """Kills clients and workers, changes the weather, and makes the operator remove locks."""

    def __init__(
        self, crowd: Crowd, rates: Rates, proxies: tuple[FaultProxy, FaultProxy], unused: frozenset[int]
    ) -> None:
        self.client_kills = self.worker_kills = self.removals = 0
        self._stack = crowd.stack
        self._crowd = crowd
        for does in _OPERATORS:
            crowd.add_operator(does)
        self._operator = crowd.add_operator("operate")
        self._choices = crowd.seeds
        self._proxies = proxies
        self._unused = unused
        self._storm = True  # the first change is to calm
        self._first_seen: dict[str, float] = {}
        self._asked: set[str] = set()
        self._every: Mapping[Callable[[], None], float] = {
            self._kill_client: rates.client_kill,
            self._kill_worker: rates.worker_kill,
            self._break_lock: rates.broken_lock,
        }
        self._due = {act: self._choices.expovariate(1 / every) for act, every in self._every.items()}
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
        for proxy, plan in zip(self._proxies, _plans(storm=self._storm), strict=True):
            proxy.plan = plan
        seconds = _STORM_SECONDS if self._storm else _CALM_SECONDS
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
        """Remove locks under which nobody works."""
        now = time.monotonic()
        held = self._held_now()
        self._first_seen = {lock: self._first_seen.get(lock, now) for lock in held.values()}
        at_work = self._crowd.at_work
        for state, lock in held.items():
            # A freeze ends by itself.
            if lock not in at_work and lock not in self._asked and not lock.startswith("freeze-"):
                self._remove(state, lock)
                self._asked.add(lock)

    def _held_now(self) -> Mapping[str, str]:
        return locks_of(self._stack, self._crowd.folder)

    def _remove(self, state: str, lock: str) -> None:
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

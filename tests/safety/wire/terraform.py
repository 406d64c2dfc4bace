"""A real Terraform, round after round, with faults on both sides of the functions, or with an S3 that hangs.

After every command the bucket is read directly and compared with the responses that Terraform got. The proxy
in front of the API records every state that Terraform sent, and the responses that reached it.
"""

import itertools
import json
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlsplit

from holdfast import names
from holdfast_cli.config.backend_config import to_hcl
from local_aws.terraform import Terraform, terraforms
from tests.safety.figures import Figures
from tests.safety.wire.proxy import API_FAULTS, NONE, S3_FAULTS, FaultProxy, Plan, gateway_refusal
from tests.safety.wire.stack import Stack
from tests.support import documents
from tests.support.fault_relay import Exchange, Fault, Request
from tests.support.project import Done, Project, Run, own_environment

Say = Callable[[str], None]

_RESOURCES: Final = """
variable "input" { type = string }
resource "terraform_data" "first" { input = var.input }
resource "terraform_data" "second" { input = "${terraform_data.first.output}, again" }
resource "terraform_data" "replaced" { triggers_replace = var.input }
output "input" { value = terraform_data.first.output }
"""

_TO_S3: Final = Plan.evenly(0.1, *S3_FAULTS)
_TO_THE_API: Final = Plan.evenly(0.2, *API_FAULTS)
_TRIES: Final = 10
_OLD_ENOUGH: Final = 12.0
"""Seconds after which a force-unlock without an ID removes a lock."""
_SETTLED: Final = 150.0
"""Seconds after which every request that hung has arrived, also those of other commands."""
_NOT_RETRIED: Final = range(400, 500)


class StoppedError(Exception):
    """The run was stopped, or the rounds of another Terraform failed."""


class Trouble(Enum):
    """The fault between Terraform and the API in a round. S3 fails, too."""

    NOISE = "faults at random"
    SAVED_AND_NOT_TOLD = "no answer to a write"
    NOT_SAVED = "no write arrives"
    LOCK_LEFT = "no unlock arrives"
    UNLOCKED_AND_NOT_TOLD = "no answer to an unlock"

    def plan(self) -> Plan:
        """Return the plan for the proxy in front of the API."""
        match self:
            case Trouble.SAVED_AND_NOT_TOLD:
                return Plan({Fault.ANSWER_LOST: 1.0}, _of_write)
            case Trouble.NOT_SAVED:
                return Plan({Fault.NEVER_ARRIVES: 1.0}, _of_write)
            case Trouble.LOCK_LEFT:
                return Plan({Fault.NEVER_ARRIVES: 1.0}, _of_unlock)
            case Trouble.UNLOCKED_AND_NOT_TOLD:
                return Plan({Fault.ANSWER_LOST: 1.0}, _of_unlock)
            case _:
                return _TO_THE_API


def _is_write(method: str, path: str) -> bool:
    return method == "POST" and "/states/" in path


def _is_unlock(method: str, path: str) -> bool:
    return method == "POST" and "/unlocks/" in path


def _of_write(fault: Fault, request: Request) -> bool:  # noqa: ARG001 the filter's signature
    return _is_write(request.method, request.path)


def _of_unlock(fault: Fault, request: Request) -> bool:  # noqa: ARG001 the filter's signature
    return _is_unlock(request.method, request.path)


# --- the judgement -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Told:
    """The result of a command, and the responses to its writes.

    `succeeded`: the command succeeded. `writes` are the requests that contained a state, in order.
    """

    succeeded: bool
    writes: Sequence[Exchange]

    @property
    def saved(self) -> bytes | None:
        """The last state whose write the command knows to be acknowledged."""
        return next((write.body for write in reversed(self.writes) if write.told == 200), None)

    def allowed(self, before: bytes | None) -> list[bytes | None]:
        """Return the states that the bucket may contain: the last acknowledged state, or a later state."""
        last = max((number for number, write in enumerate(self.writes) if write.told == 200), default=-1)
        later = [write.body for write in self.writes[last + 1 :] if write.answered is not None]
        return [self.writes[last].body if last >= 0 else before, *later]


def judge(before: bytes | None, told: Told, now: bytes | None) -> list[str]:
    """Return the faults of the state in the bucket after a command; `now` is that state."""
    wrong = []
    if now not in told.allowed(before):
        wrong.append(
            f"the bucket holds {_show(now)}, not one of "
            f"{', '.join(_show(each) for each in told.allowed(before))}"
        )
    if told.succeeded and told.writes and told.writes[-1].told != 200:
        wrong.append(f"it ended well, but its last write was answered {told.writes[-1].told}")
    if before is not None:
        if now is None:
            wrong.append(f"the state is gone; it was {_show(before)}")
        else:
            former, current = json.loads(before), json.loads(now)
            if current["lineage"] != former["lineage"]:
                wrong.append(f"the lineage went from {former['lineage']} to {current['lineage']}")
            if current["serial"] < former["serial"]:
                wrong.append(f"the serial went back from {former['serial']} to {current['serial']}")
    return wrong


def lost(acknowledged: Sequence[bytes], history: Sequence[bytes]) -> list[str]:
    """Return the acknowledged states that are not in the history, or not in their order."""
    missing, place = [], -1
    for saved in acknowledged:
        if saved in history[place + 1 :]:
            place = history.index(saved, place + 1)
        else:
            missing.append(_show(saved))
    return missing


def _show(state: bytes | None) -> str:
    if state is None:
        return "no state"
    document = json.loads(state)
    outputs = {name: output["value"] for name, output in document["outputs"].items()}
    return f"serial {document['serial']} with {outputs}"


def holds(state: bytes | None, value: str) -> bool:
    """Return whether a state has this input in every resource of the configuration."""
    document = json.loads(state or b"{}")
    applied = {
        resource["name"]: resource["instances"][0]["attributes"] for resource in document.get("resources", [])
    }
    try:
        return bool(
            document["outputs"]["input"]["value"] == value
            and applied["first"]["output"]["value"] == value
            and applied["second"]["output"]["value"] == f"{value}, again"
            and applied["replaced"]["triggers_replace"]["value"] == value
        )
    except (KeyError, TypeError):
        return False


# --- one Terraform, one state ------------------------------------------------------------------------


@dataclass(eq=False)
class Checkout:
    """A configuration, the Terraform that applies it, and the requests and responses between it and the API.

    If `patient`, it sometimes waits until Terraform's own force-unlock may remove a left lock.
    """

    stack: Stack
    terraform: Terraform
    folder: Path
    s3: FaultProxy
    seed: int
    say: Say
    patient: bool = True
    violations: int = 0
    lost: int = 0
    acknowledged: list[bytes] = field(default_factory=list)
    _heard: list[Exchange] = field(default_factory=list)
    _commands: int = 0
    _running: Run | None = None
    _stopped: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.name = names.parse(f"wire/{self.folder.name}-{self.seed}")
        self._random = random.Random(f"{self.seed} {self.folder.name}")  # noqa: S311
        self.api = FaultProxy(
            self.stack.direct_address, NONE, self.seed, refusal=gateway_refusal, heard=self._heard.append
        )
        token = self.stack.token("maintainer")
        self._environment = {
            **own_environment(self.folder),
            "TF_HTTP_USERNAME": token.username,
            "TF_HTTP_PASSWORD": token.password,
            "TF_HTTP_RETRY_WAIT_MIN": "0",
            "TF_HTTP_RETRY_WAIT_MAX": "1",
        }

    def __enter__(self) -> Self:
        self.api.__enter__()
        self._project = self._configure("work", self.api.endpoint + urlsplit(self.stack.direct_address).path)
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()
        self.api.__exit__(None, None, None)

    def stop(self) -> None:
        """End the running command, and start no other command."""
        self._stopped.set()
        if self._running and self._running.process.poll() is None:
            self._running.kill()

    @property
    def figures(self) -> Figures:
        return Figures(
            operations=len(self._heard),
            acknowledged=len(self.acknowledged),
            faults=self.api.faults,
            lost=self.lost,
            violations=self.violations,
        )

    # --- rounds ------------------------------------------------------------------------------------

    def round(self, number: int, trouble: Trouble) -> None:
        """Apply a new input while faults happen, and check that nothing was lost."""
        value = f"round {number}"
        self.api.plan = _TO_THE_API
        if number > 1 and self._random.random() < 0.3:
            self._push(f"pushed before {value}")
        tries = self.carry_through(value, trouble.plan(), _TO_THE_API)
        self.say(f"{self.folder.name}, round {number}, {trouble.value}: applied at try {tries}")
        if self._random.random() < 0.3:
            self._plan(value)

    def carry_through(self, value: str, first: Plan, then: Plan) -> int:
        """Apply an input, and go on as a user does until it is applied; return the number of tries.

        `first` is the plan of the proxy in front of the API during the first apply, `then` its plan after
        that.
        """
        self.api.plan = first
        done = self._apply(value)
        self.api.plan = then
        tries = 1
        while done.code != 0 and tries < _TRIES:
            done = self._go_on(value)
            tries += 1
        if done.code != 0:
            self._violation(f"could not go on after {tries} tries", done)
        return tries

    def last_look(self, value: str) -> None:
        """Check after the last round that the history is complete and another checkout sees the state."""
        self.api.plan = NONE
        history = [version.body for version in self.stack.versions(str(self.name))]
        for missing in lost(self.acknowledged, history):
            self.lost += 1
            self.say(f"LOST {self._where()}: {missing} was acknowledged and is not in the history")
        serials = [json.loads(saved)["serial"] for saved in self.acknowledged]
        if serials != sorted(set(serials)):
            self._violation(f"the acknowledged serials do not rise: {serials}")
        other = self._configure("other", self.stack.direct_address)
        seen = json.loads(other.ok("output", "-json").out)
        document = json.loads(self.current() or b"")
        if seen["input"] != {"sensitive": False, **document["outputs"]["input"]}:
            self._violation(f"another checkout sees the outputs {seen}")
        if json.loads(other.ok("state", "pull").out) != document:
            self._violation("another checkout pulls another state than the bucket holds")
        plan = other.run("plan", "-detailed-exitcode", "-lock=false", f"-var=input={value}")
        if plan.code != 0:
            self._violation("another checkout would change what was applied", plan)

    # --- commands ----------------------------------------------------------------------------------

    def _apply(self, value: str) -> Done:
        done = self._command("apply", "-auto-approve", f"-var=input={value}")
        if done.code == 0 and not holds(self.current(), value):
            self._violation(f"the apply ended well, and the bucket holds {_show(self.current())}", done)
        return done

    def _plan(self, value: str) -> None:
        before = self.current()
        done = self._command("plan", "-detailed-exitcode", f"-var=input={value}")
        if done.code == 2:
            self._violation("a plan finds changes after an apply that ended well", done)
        if self.current() != before:
            self._violation("a plan changed the state", done)

    def _push(self, value: str) -> None:
        """Push the current state with another output, as a user who edits a state by hand does."""
        document = json.loads(self.current() or b"")
        document["serial"] += 1
        document["outputs"]["pushed"] = {"value": value, "type": "string"}
        file = self._project.folder / "pushed.json"
        file.write_text(json.dumps(document, indent=2))
        done = self._command("state", "push", file.name)
        now = json.loads(self.current() or b"")
        if done.code == 0 and now["outputs"] != document["outputs"]:
            self._violation("a push ended well, and the bucket holds something else", done)

    def _go_on(self, value: str) -> Done:
        """Go on as a user after a failure: remove the lock, push `errored.tfstate`, apply again."""
        self._free()
        left = self._project.folder / "errored.tfstate"
        if not left.exists():
            return self._apply(value)
        pushed = self._command("state", "push", left.name)
        saved, now = json.loads(left.read_bytes()), json.loads(self.current() or b"{}")
        is_there = all(saved[part] == now.get(part) for part in ("outputs", "resources"))
        # A push that took effect without a response raised the serial, so Terraform itself refuses the next
        # push. Its user sees that the state is complete.
        if pushed.code != 0 and not is_there:
            return pushed
        if not is_there:
            self._violation("errored.tfstate was pushed, and the bucket holds something else", pushed)
        left.unlink()
        self._free()
        return self._apply(value)

    def _free(self) -> None:
        """Remove a lock that a failed command left: with Terraform if that is possible, else by its ID."""
        lock = self.stack.lock(str(self.name))
        if lock is None:
            return
        key = self.name.lock_key
        taken = self.stack.s3.head_object(Bucket=self.stack.bucket, Key=key)["LastModified"]
        left = _OLD_ENOUGH - (datetime.now(UTC) - taken).total_seconds()
        if left < 0 or (self.patient and self._random.random() < 0.3):
            self._stopped.wait(max(0.0, left))
            self._command("force-unlock", "-force", lock["ID"])
            return
        body = documents.only_id(lock["ID"])
        status = self.stack.client("maintainer").request("POST", f"/unlocks/{self.name}", body).status
        if status in _NOT_RETRIED:  # S3 fails here, too: after a 5xx the next try does this again
            self._violation(f"a force-unlock that names the lock that is held got {status}")

    def _command(self, *arguments: str) -> Done:
        """Run a command, then compare the bucket with the responses that it got."""
        if self._stopped.is_set():
            raise StoppedError
        before, begun = self.current(), len(self._heard)
        self._commands += 1
        self._running = self._project.start(*arguments)
        try:
            done = self._running.wait()
        finally:
            if self._running.process.poll() is None:
                self._running.kill()
            self._running = None
        self.api.settle()
        self.s3.settle(_SETTLED)
        heard = self._heard[begun:]
        told = Told(done.code in (0, 2), [each for each in heard if _is_write(each.method, each.target)])
        for each in told.writes:
            if each.told == 200 and each.body not in self.acknowledged[-1:]:
                self.acknowledged.append(each.body)
        for wrong in judge(before, told, self.current()):
            self._violation(wrong, done)
        for each in heard:
            if self._is_final(each, arguments[0]):
                said = f"{each.method} {each.target} was answered {each.answered}"
                self._violation(f"{said}, which nobody repeats, though nobody else works on it", done)
        if "errored.tfstate" in done.text and not (self._project.folder / "errored.tfstate").exists():
            self._violation("Terraform mentions errored.tfstate, and the file does not exist", done)
        return done

    def _is_final(self, each: Exchange, command: str) -> bool:
        """Return whether the response was a refusal without a reason that the client does not retry."""
        if each.answered not in _NOT_RETRIED:
            return False
        if each.method == "PUT" and each.answered == 423:
            return False  # the lock of an earlier command, or of a late try of its request
        if _is_unlock(each.method, each.target) and each.answered == 409:
            return command != "force-unlock"  # a force-unlock without an ID whose outcome is unknown
        return True

    # --- what is there -----------------------------------------------------------------------------

    def current(self) -> bytes | None:
        return self.stack.object(self.name.state_key)

    def _configure(self, folder: str, address: str) -> Project:
        project = Project(self.terraform, self.folder / folder, self._environment)
        project.folder.mkdir(parents=True)
        project.write(main=_RESOURCES, backend=to_hcl(address, self.name, read_only=False))
        project.ok("init")
        return project

    def _violation(self, what: str, done: Done | None = None) -> None:
        self.violations += 1
        self.say(f"VIOLATION {self._where()}: {what}")
        if done:
            self.say(f"    exit code {done.code}: {done.text}")

    def _where(self) -> str:
        return f"{self.terraform.name}, seed {self.seed}, state {self.name}, command {self._commands}"


# --- the part ----------------------------------------------------------------------------------------


def run(*, rounds: int, seed: int, say: Say, stack: Stack, folder: Path, patient: bool = True) -> Figures:
    """Apply round after round with every installed Terraform, each on its own state.

    `rounds` is the number for each Terraform. With 5 or more every trouble happens at least once. `patient`:
    sometimes wait 12 s, see `Checkout`.
    """
    with stack.faults_in_s3(seed) as s3, ExitStack() as open_:
        checkouts = [
            open_.enter_context(Checkout(stack, each, folder / each.name, s3, seed, say, patient))
            for each in terraforms()
        ]
        s3.plan = _TO_S3
        _together(checkouts, lambda each: _rounds(each, rounds))
        s3.plan = NONE
        for each in checkouts:
            each.last_look(f"round {rounds}")
        return sum((each.figures for each in checkouts), Figures(faults=s3.faults))


def _rounds(checkout: Checkout, rounds: int) -> None:
    troubles = list(Trouble)
    for number in range(1, rounds + 1):
        checkout.round(number, troubles[number % len(troubles)])


def _together(checkouts: Sequence[Checkout], work: Callable[[Checkout], None]) -> None:
    """Let all checkouts work at the same time. If one fails, stop the others."""
    with ThreadPoolExecutor(len(checkouts)) as together:
        try:
            for done in [together.submit(work, each) for each in checkouts]:
                done.result()
        except BaseException:
            for each in checkouts:
                each.stop()
            raise


# --- the part with timeouts --------------------------------------------------------------------------

_HANGING: Final = (*(range(number, number + 1) for number in range(1, 8)), range(4, 8))
"""Which requests of an apply to its state and its lock hang: each alone, and the write with its retries."""


def timeouts(*, seed: int, say: Say, stack: Stack, folder: Path) -> Figures:
    """Apply while S3 hangs longer than the function's timeout, at each request of an apply in turn.

    The function gives up a request that hangs after 5 s and retries it. The first request still arrives much
    later. The function waits for a response that trickles until Lambda kills it.
    """
    total = Figures()
    with stack.faults_in_s3(seed) as s3:
        for fault in (Fault.HANG, Fault.TRICKLE):
            total += _hang(fault, s3, seed, say, stack, folder)
        return total + Figures(faults=s3.faults)


def _hang(fault: Fault, s3: FaultProxy, seed: int, say: Say, stack: Stack, folder: Path) -> Figures:
    with ExitStack() as open_:
        hanging = {
            open_.enter_context(
                Checkout(stack, terraforms()[0], folder / f"{fault.value}-{at[0]}-{at[-1]}", s3, seed, say)
            ): at
            for at in _HANGING
        }
        # Counts the requests of each checkout since it has begun to hang.
        numbers: dict[str, Iterator[int]] = {}

        def hangs(_: Fault, request: Request) -> bool:
            for checkout, at in hanging.items():
                key = checkout.name.state_key
                if key in request.path and key in numbers:
                    return next(numbers[key]) in at
            return False

        def apply_twice(checkout: Checkout) -> None:
            checkout.carry_through("before", NONE, NONE)
            numbers[checkout.name.state_key] = itertools.count(1)
            tries = checkout.carry_through("while it hangs", NONE, NONE)
            say(f"{fault.value} at {hanging[checkout]}: applied at try {tries}")

        before = s3.faults
        s3.plan = Plan({fault: 1.0}, hangs)
        _together(list(hanging), apply_twice)
        s3.settle()
        s3.plan = NONE
        if s3.faults - before < len(hanging):
            raise RuntimeError(f"only {s3.faults - before} requests did hang")
        for each in hanging:
            each.last_look("while it hangs")
        return sum((each.figures for each in hanging), Figures())

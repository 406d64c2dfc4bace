"""The local AWS is killed and started again, and a new version is deployed, while clients count.

The local AWS writes every object to its disk at once, but APIs, functions and roles only when it stops
gracefully. Such a stop is the checkpoint from which it starts again after a SIGKILL. On AWS this would look
like a region that is unavailable for a while.

Nobody removes a lock here. A lock whose release got no response may stay, so the clients soon go on to other
states.
"""

import random
import time
import tomllib
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Thread
from typing import Final

from local_aws.deploy import deploy
from tests.safety.figures import Figures
from tests.safety.wire.load import Crowd, history_of, locks_of, told
from tests.safety.wire.stack import AUTHORIZER, BACKEND, TEAM, TEAMS_FILE, Stack
from tests.safety.wire.verdict import Findings, verify
from tests.support.deployed import HANDLERS

Say = Callable[[str], None]

CLIENTS: Final = 4
_SLOTS: Final = 12
_GENERATION: Final = 5.0
_TICK: Final = 0.1
_PATIENCE: Final = 90.0  # seconds for a few writes, also on a slow machine
_SENTENCES: Final = 20


def restart(*, rounds: int, seed: int, say: Say, stack: Stack) -> Figures:
    """Kill the local AWS under load and start it again from its checkpoint, `rounds` times.

    It runs afterwards, too.
    """
    choices = random.Random(seed)  # noqa: S311 reproducible, not secret
    stack.aws.stop()
    stack.aws.start()
    with _counting("restart", stack, choices, seed, say) as count:
        for number in range(1, rounds + 1):
            count.go_on(choices.randint(5, 20))
            time.sleep(choices.uniform(0, 0.1))  # so that the kill does not always follow a response
            stack.aws.kill()
            time.sleep(choices.uniform(0, 1))
            stack.aws.start()
            say(f"restart: killed {number} of {rounds} times, {count.acknowledged} writes acknowledged")
        count.go_on(10)
    return count.figures + Figures(kills=rounds)


def redeploy(*, seed: int, say: Say, stack: Stack) -> Figures:
    """Deploy new versions of both functions under load. The new versions have some more memory."""
    choices = random.Random(seed)  # noqa: S311 reproducible, not secret
    before = _live(stack)
    with _counting("redeploy", stack, choices, seed, say) as count:
        count.go_on(10)
        began = time.monotonic()
        written = count.acknowledged
        _while_counting(count, lambda: _deploy_anew(stack))
        meanwhile = count.acknowledged - written
        took = time.monotonic() - began
        count.go_on(10)
    after = _live(stack)
    if any(before[name] == after[name] for name in before):
        raise RuntimeError(f"no new version went live: {before} -> {after}")
    say(f"redeploy: {meanwhile} acknowledged writes in the {took:.1f} s of the deployment")
    return count.figures


def _deploy_anew(stack: Stack) -> None:
    """Deploy a changed setting. This creates new versions and moves the aliases to them."""
    memory = {
        name: stack.client("lambda").get_function_configuration(FunctionName=function)["MemorySize"]
        for name, function in _functions(stack).items()
    }
    settings = tomllib.loads(TEAMS_FILE.read_text())["teams"]
    if settings != {TEAM: {}}:
        raise RuntimeError(f"{TEAMS_FILE.name} has settings that a new one would not keep")
    wanted = ", ".join(f"{name} = {megabytes + 64}" for name, megabytes in memory.items())
    changed = stack.data_dir / "changed-teams.toml"
    changed.write_text(f"[teams.{TEAM}]\nmemory = {{ {wanted} }}\n")
    deploy(stack.aws, [TEAM], teams_file=changed)


def _functions(stack: Stack) -> dict[str, str]:
    """Return the names of the deployed functions. There is only one team, so each handler exists once."""
    found = stack.client("lambda").list_functions()["Functions"]
    names = {function["Handler"]: function["FunctionName"] for function in found}
    return {name: names[f"{HANDLERS[name]}.handler.handle"] for name in (BACKEND, AUTHORIZER)}


def _live(stack: Stack) -> dict[str, str]:
    """Return the versions that the API calls."""
    client = stack.client("lambda")
    return {
        name: client.get_alias(FunctionName=function, Name="live")["FunctionVersion"]
        for name, function in _functions(stack).items()
    }


# --- the clients ---------------------------------------------------------------------------------


@dataclass
class _Count:
    """Clients that count. After their end, `figures` has the result."""

    crowd: Crowd
    figures: Figures = field(default_factory=Figures)

    @property
    def acknowledged(self) -> int:
        return self.crowd.follow()

    def go_on(self, writes: int) -> None:
        """Wait until `writes` more writes are acknowledged; RuntimeError if they are not in time."""
        wanted = self.acknowledged + writes
        deadline = time.monotonic() + _PATIENCE
        while self.acknowledged < wanted:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{wanted - self.acknowledged} of {writes} writes have not come")
            time.sleep(_TICK)


def _while_counting(count: _Count, act: Callable[[], None]) -> None:
    """Call a function, and fail if a client ends meanwhile."""
    failures: list[Exception] = []

    def run() -> None:
        try:
            act()
        except Exception as error:  # noqa: BLE001 raised below, in the main thread
            failures.append(error)

    acting = Thread(target=run)
    acting.start()
    try:
        while acting.is_alive():
            acting.join(_TICK)
            count.crowd.follow()
    finally:
        acting.join()
    for failure in failures:
        raise failure


@contextmanager
def _counting(part: str, stack: Stack, choices: random.Random, seed: int, say: Say) -> Iterator[_Count]:
    """Let clients count within the context, then compare their journals with the bucket."""
    name = f"{part}-{uuid.uuid4().hex[:8]}"
    journals = stack.data_dir / "journals" / name
    journals.mkdir(parents=True)
    crowd = Crowd(stack, stack.address, name, journals, _SLOTS, _GENERATION, choices)
    count = _Count(crowd)
    try:
        crowd.sign_in()
        for _ in range(CLIENTS):
            crowd.add()
        yield count
        crowd.end()
    finally:
        crowd.close()
    done = [one for process in crowd.everybody() for one in told(process)]
    findings = verify(done, history_of(stack, name), locks_of(stack, name))
    refused = sum(attempt.undecided for one in done for attempt in one.attempts)
    for sentence in (*findings.lost, *findings.violations)[:_SENTENCES]:
        say(f"{part}: VIOLATION: {sentence}")
    if findings.lost or findings.violations:
        say(f"{part}: {len(findings.lost)} lost and {len(findings.violations)} violations with seed {seed}")
    say(
        f"{part}: {findings.acknowledged} acknowledged writes, all in the bucket but {len(findings.lost)}; "
        f"{refused} of {findings.requests} requests were to be repeated"
    )
    count.figures = _figures(findings)


def _figures(findings: Findings) -> Figures:
    return Figures(
        operations=findings.requests,
        acknowledged=findings.acknowledged,
        lost=len(findings.lost),
        violations=len(findings.violations),
    )

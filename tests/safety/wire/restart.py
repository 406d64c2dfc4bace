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
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from local_aws.deploy import deploy
from tests.safety.figures import Figures
from tests.safety.wire.load import Crowd, Say, counting
from tests.safety.wire.stack import AUTHORIZER, BACKEND, TEAM, TEAMS_FILE, Stack
from tests.support.deployed import client

_CROWD: Final[Any] = {"clients": 4, "slots": 12, "generation": 5.0}
_TICK: Final = 0.1
_PATIENCE: Final = 90.0  # seconds for a few writes, also on a slow machine
_DEPLOYED_ANEW: Final = (BACKEND, AUTHORIZER)


def restart(*, rounds: int, seed: int, say: Say, stack: Stack) -> Figures:
    """Kill the local AWS under load and start it again from its checkpoint, `rounds` times.

    It runs afterwards, too.
    """
    choices = random.Random(seed)  # noqa: S311 reproducible, not secret
    stack.aws.stop()
    stack.aws.start()
    with counting("restart", stack, seed, say, **_CROWD) as crowd:
        for number in range(1, rounds + 1):
            _go_on(crowd, choices.randint(5, 20))
            time.sleep(choices.uniform(0, 0.1))  # so that the kill does not always follow a response
            stack.aws.kill()
            time.sleep(choices.uniform(0, 1))
            stack.aws.start()
            say(f"restart: killed {number} of {rounds} times, {crowd.acknowledged} writes acknowledged")
        _go_on(crowd, 10)
    return crowd.figures + Figures(kills=rounds)


def redeploy(*, seed: int, say: Say, stack: Stack) -> Figures:
    """Deploy new versions of both functions under load. The new versions have some more memory."""
    before = _live(stack)
    with counting("redeploy", stack, seed, say, **_CROWD) as crowd:
        _go_on(crowd, 10)
        began, written = time.monotonic(), crowd.acknowledged
        with ThreadPoolExecutor(1) as beside:
            deployed = beside.submit(_deploy_anew, stack)
            while not deployed.done():
                time.sleep(_TICK)
                crowd.follow()
            deployed.result()
        meanwhile, took = crowd.acknowledged - written, time.monotonic() - began
        _go_on(crowd, 10)
    after = _live(stack)
    if any(before[name] == after[name] for name in before):
        raise RuntimeError(f"no new version went live: {before} -> {after}")
    say(f"redeploy: {meanwhile} acknowledged writes in the {took:.1f} s of the deployment")
    return crowd.figures


def _go_on(crowd: Crowd, writes: int) -> None:
    """Wait until `writes` more writes are acknowledged; RuntimeError if they are not in time."""
    wanted = crowd.follow() + writes
    deadline = time.monotonic() + _PATIENCE
    while crowd.follow() < wanted:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{wanted - crowd.acknowledged} of {writes} writes have not come")
        time.sleep(_TICK)


def _deploy_anew(stack: Stack) -> None:
    """Deploy a changed setting. This creates new versions and moves the aliases to them."""
    lambda_ = client(stack.aws, "lambda")
    memory = {
        name: lambda_.get_function_configuration(FunctionName=stack.function(name))["MemorySize"]
        for name in _DEPLOYED_ANEW
    }
    settings = tomllib.loads(TEAMS_FILE.read_text())["teams"]
    if settings != {TEAM: {}}:
        raise RuntimeError(f"{TEAMS_FILE.name} has settings that a new one would not keep")
    wanted = ", ".join(f"{name} = {megabytes + 64}" for name, megabytes in memory.items())
    changed = stack.aws.data_dir / "changed-teams.toml"
    changed.write_text(f"[teams.{TEAM}]\nmemory = {{ {wanted} }}\n")
    deploy(stack.aws, [TEAM], teams_file=changed)


def _live(stack: Stack) -> dict[str, str]:
    """Return the versions that the API calls."""
    lambda_ = client(stack.aws, "lambda")
    return {
        name: lambda_.get_alias(FunctionName=stack.function(name), Name="live")["FunctionVersion"]
        for name in _DEPLOYED_ANEW
    }

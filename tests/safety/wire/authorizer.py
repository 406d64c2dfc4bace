"""Faults in the authorizer: S3 fails only for the requests to tokens.

A fault must not become a denial: Terraform does not retry a denial, and the gateway would cache it. A token
that cannot be read must not let anybody in.
"""

import http.client
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from holdfast.access import Grant, Role
from holdfast.identity import tokens
from tests.safety.figures import Figures
from tests.safety.wire.proxy import NONE, Fault, FaultProxy, Plan
from tests.safety.wire.stack import AUTHORIZER, Stack
from tests.support.http_client import Credentials

Say = Callable[[str], None]

_FAULTS: Final = (
    Fault.NEVER_ARRIVES,
    Fault.ANSWER_LOST,
    Fault.HALF_AN_ANSWER,
    Fault.HALF_THE_HEADERS,
    Fault.SERVER_ERROR,
    Fault.SERVER_ERROR_AFTERWARDS,
    Fault.SLOW_DOWN,
)
_REFUSED: Final = (401, 403)


@dataclass(frozen=True, slots=True)
class Phase:
    """The way in which S3 fails for requests to tokens."""

    name: str
    plan: Plan


def _is_token(method: str, path: str) -> bool:  # noqa: ARG001 the filter's signature
    return "/tokens/" in path


def _phases(*, hanging: bool) -> list[Phase]:
    def mixed(chance: float) -> Plan:
        return Plan(dict.fromkeys(_FAULTS, chance / len(_FAULTS)), _is_token)

    phases = [Phase("every second request", mixed(0.5)), Phase("every request", mixed(1.0))]
    if hanging:
        phases.append(Phase("every request hangs", Plan({Fault.HANG: 1.0}, _is_token)))
        phases.append(Phase("every answer trickles", Plan({Fault.TRICKLE: 1.0}, _is_token)))
    return phases


def run(
    *, tokens: int, seed: int, say: Say, stack: Stack, folder: Path | None = None, hanging: bool = False
) -> Figures:
    """Authenticate with new tokens while S3 fails, and again as soon as it works.

    Each phase has so many new `tokens`, because the gateway caches the result for a token. `folder` is not
    used. `hanging`: also with requests that last longer than the authorizer's timeout.
    """
    del folder
    total = Figures()
    with ExitStack() as open_:
        proxy = open_.enter_context(FaultProxy(stack.aws.endpoint, NONE, seed))
        open_.callback(stack.route_functions_through, None, functions=[AUTHORIZER])
        stack.route_functions_through(proxy.endpoint, functions=[AUTHORIZER])
        together = open_.enter_context(ThreadPoolExecutor(2 * tokens))
        for phase in _phases(hanging=hanging):
            made = [_new_token(stack) for _ in range(2 * tokens)]
            good = made[:tokens]
            bad = [
                Credentials(each.username, other.password)
                for each, other in zip(made[tokens:], good, strict=True)
            ]
            before = proxy.faults
            proxy.plan = phase.plan
            during = list(together.map(lambda each: _sign_in(stack, each), good + bad))
            proxy.plan = NONE
            # At once, while late answers may still arrive: the gateway must have cached nothing.
            after = list(together.map(lambda each: _sign_in(stack, each), good + bad))
            proxy.settle()
            faults = proxy.faults - before
            violations = _judge(phase, seed, good + bad, tokens, during, after, say)
            if not faults:
                raise RuntimeError("no fault happened: the authorizer does not use the proxy")
            say(
                f"authorizer, {phase.name}: {faults} faults, good tokens {sorted(during[:tokens])}, "
                f"wrong secrets {sorted(during[tokens:])}; then {sorted(set(after[:tokens]))} and "
                f"{sorted(set(after[tokens:]))}"
            )
            total += Figures(operations=len(during + after), violations=violations)
        return total + Figures(faults=proxy.faults)


def _judge(
    phase: Phase,
    seed: int,
    asked: list[Credentials],
    tokens: int,
    during: list[int],
    after: list[int],
    say: Say,
) -> int:
    violations = 0
    for number, (credentials, first, second) in enumerate(zip(asked, during, after, strict=True)):
        wrong = wrong_with(first, second, is_good=number < tokens)
        violations += len(wrong)
        for each in wrong:
            say(f"VIOLATION authorizer, {phase.name}, seed {seed}, token {credentials.username}: {each}")
    return violations


def wrong_with(during: int, after: int, *, is_good: bool) -> list[str]:
    """Return the faults in the responses to one caller.

    `during` is the status while S3 failed, `after` the status as soon as it worked. `is_good`: the secret is
    right.
    """
    wrong = []
    if is_good:
        if during in _REFUSED:
            wrong.append(f"a good token was refused with {during} because S3 failed")
        elif during >= 300 and during < 500:
            wrong.append(f"a good token got {during}, which nobody repeats")
        if after >= 300:
            wrong.append(f"a good token got {after} although S3 worked again")
    else:
        if during < 500 and during not in _REFUSED:
            wrong.append(f"a wrong secret was answered {during} while S3 failed")
        if after not in _REFUSED:
            wrong.append(f"a wrong secret was answered {after}")
    return wrong


def _new_token(stack: Stack) -> Credentials:
    """Create a token that nobody has used, as the command does."""
    token, secret = tokens.create(
        [Grant(Role.READER, ("*",))],
        description="",
        created_by="the safety run",
        now=datetime.now(UTC),
        expires=None,
    )
    stack.s3.put_object(Bucket=stack.bucket, Key=token.key, Body=token.to_json())
    return Credentials(token.id, secret)


def _sign_in(stack: Stack, credentials: Credentials) -> int:
    api = urlsplit(stack.address)
    with closing(http.client.HTTPConnection(api.netloc, timeout=60)) as client:
        client.request(
            "GET", f"{api.path}/states/wire/nothing", headers={"Authorization": credentials.header}
        )
        answer = client.getresponse()
        answer.read()
        return answer.status

"""Faults in the authorizer: S3 fails only for the requests to tokens.

A fault must not become a denial: Terraform does not retry a denial, and the gateway would cache it. A token
that cannot be read must not let anybody in.
"""

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Final

from holdfast.access import Grant, Role
from holdfast.identity import tokens
from tests.safety.figures import Figures
from tests.safety.wire.proxy import NONE, Plan
from tests.safety.wire.stack import AUTHORIZER, Stack
from tests.support.fault_relay import Fault, Request
from tests.support.http_client import Credentials

Say = Callable[[str], None]

_ACCEPTED: Final = frozenset({204})
_DENIED: Final = frozenset({401, 403})


def _of_token(fault: Fault, request: Request) -> bool:  # noqa: ARG001 the filter's signature
    return "/tokens/" in request.path


_FAULTS: Final = (
    Fault.NEVER_ARRIVES,
    Fault.ANSWER_LOST,
    Fault.HALF_AN_ANSWER,
    Fault.HALF_THE_HEADERS,
    Fault.SERVER_ERROR,
    Fault.SERVER_ERROR_AFTERWARDS,
    Fault.SLOW_DOWN,
)
_SHORT: Final = {
    "every second request": Plan.evenly(0.5, *_FAULTS, only=_of_token),
    "every request": Plan.evenly(1.0, *_FAULTS, only=_of_token),
}
_HANGING: Final = {
    "every request hangs": Plan({Fault.HANG: 1.0}, _of_token),
    "every answer trickles": Plan({Fault.TRICKLE: 1.0}, _of_token),
}
"""Phases with requests that last longer than the authorizer's timeout."""


def run(*, tokens: int, seed: int, say: Say, stack: Stack, hanging: bool = False) -> Figures:
    """Authenticate with new tokens while S3 fails, and again as soon as it works.

    Each phase has so many new `tokens`, because the gateway caches the result for a token. `hanging`: also
    with the phases of `_HANGING`.
    """
    total = Figures()
    with (
        stack.faults_in_s3(seed, functions=[AUTHORIZER]) as proxy,
        ThreadPoolExecutor(2 * tokens) as together,
    ):
        # On a busy machine, the functions' cold starts can take longer than the gateway waits, and then no
        # request reaches S3 in the first phase.
        list(together.map(lambda each: _sign_in(stack, each), [_new_token(stack) for _ in range(2 * tokens)]))
        for phase, plan in (_SHORT | (_HANGING if hanging else {})).items():
            good = [_new_token(stack) for _ in range(tokens)]
            bad = [Credentials(_new_token(stack).username, each.password) for each in good]
            before = proxy.faults
            proxy.plan = plan
            during = list(together.map(lambda each: _sign_in(stack, each), good + bad))
            proxy.plan = NONE
            # At once, while late answers may still arrive: the gateway must have cached nothing.
            after = list(together.map(lambda each: _sign_in(stack, each), good + bad))
            proxy.settle()
            if proxy.faults == before:
                raise RuntimeError(f"no fault happened in {phase}: {during}, then {after}")
            wrong = [
                *_wrong(phase, "good token", _ACCEPTED, during[:tokens], after[:tokens]),
                *_wrong(phase, "wrong secret", _DENIED, during[tokens:], after[tokens:]),
            ]
            for each in wrong:
                say(f"VIOLATION authorizer: {each} (seed {seed})")
            say(f"authorizer, {phase}: {proxy.faults - before} faults; {during}, then {after}")
            total += Figures(operations=len(during + after), violations=len(wrong))
        return total + Figures(faults=proxy.faults)


def _wrong(
    phase: str, credentials: str, expected: Collection[int], during: list[int], after: list[int]
) -> list[str]:
    """Return the faults in the responses: while S3 fails, a response is as expected or one to retry."""
    return [
        *(
            f"{phase}: a {credentials} got {status} while S3 failed"
            for status in during
            if status not in expected and status < 500
        ),
        *(
            f"{phase}: a {credentials} got {status} although S3 worked again"
            for status in after
            if status not in expected
        ),
    ]


def _new_token(stack: Stack) -> Credentials:
    """Create a token that nobody has used, as the command does."""
    token, secret = tokens.create(
        [Grant(Role.READER, ("*",))],
        description="",
        created_by="the safety run",
        now=datetime.now(UTC),
        expires=None,
    )
    stack.put(token.key, token.to_json())
    return Credentials(token.id, secret)


def _sign_in(stack: Stack, credentials: Credentials) -> int:
    return stack.client_with(credentials).read("wire/nothing").status

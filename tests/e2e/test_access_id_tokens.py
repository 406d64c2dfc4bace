"""Authentication with ID tokens at the deployed authorizer, also while the issuer fails.

The issuers run on loopback, and the deployed authorizer reaches them over HTTP. `tests/unit/test_oidc.py`
tests which tokens are valid, test_access_tokens.py the forged ones. These tests add the bundle, and the
gateway's cache and limits.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from local_aws.issuer import ALGORITHMS
from tests.support.access_records import add_oidc_trust, new_token, with_header
from tests.support.audit_trail import wait_for_events
from tests.support.oidc import (
    NETWORK,
    Fault,
    Issuer,
    basic,
    bearer,
)
from tests.support.team import Team
from tests.support.waiting import wait_until

FAULT_REMEMBERED = 5.0
"""Seconds for which the authorizer sends no request to an issuer that it could not reach."""


def unreached(team: Team, count: int) -> int:
    """Count the authentications that failed because of their issuer; wait until there are `count`."""
    return len(wait_for_events(team, count, event="sign_in.failed", error="IssuerUnreachable"))


def status(team: Team, authorization: str, state: str = "ci/none") -> int:
    """Return the status of a read of a state that does not exist: 204 for a caller who may read it."""
    return with_header(team, authorization, f"/states/{state}").status


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("form", [basic, bearer], ids=["user name oidc", "bearer"])
def test_an_id_token_of_the_trusted_repository_gets_the_role_and_scope_of_its_record(
    strict: Team, issuer: Issuer, algorithm: str, form: Callable[[str], str]
) -> None:
    authorization = form(issuer.token(algorithm=algorithm))

    assert status(strict, authorization) == 204
    assert with_header(strict, authorization, "/states/elsewhere/none").error == (403, "not_allowed")
    assert with_header(strict, authorization, "/states/ci/none", "DELETE").error == (403, "not_allowed")


# --- large tokens -----------------------------------------------------------------------------------


def padded(size: int) -> dict[str, str]:
    """Return claims of this size in bytes of JSON, with the claims of the trusted repository."""
    return {**NETWORK, "padding": "x" * size}


def test_a_token_as_large_as_the_gateway_takes_signs_in_and_a_larger_one_is_431(
    strict: Team, issuer: Issuer
) -> None:
    token = issuer.token(padded(6500))
    assert 9000 < len(bearer(token)) < 9800

    assert status(strict, bearer(token)) == 204
    assert status(strict, bearer(issuer.token({**padded(6500), "repository": "mallory/network"}))) == 403
    assert status(strict, bearer(issuer.token(padded(9 * 1024)))) == 431


# --- issuers that fail ------------------------------------------------------------------------------


def test_an_issuer_that_fails_is_an_error_that_is_not_remembered_and_takes_nobody_else_along(
    strict: Team,
) -> None:
    _, token = new_token(strict)
    with ExitStack() as open_, ThreadPoolExecutor(len(Fault) + 1) as together:
        failing: dict[str, Issuer] = {each.name: open_.enter_context(Issuer()) for each in Fault}
        failing["UNREACHABLE"] = open_.enter_context(Issuer())
        faults = open_.enter_context(ExitStack())
        for name, issuer in failing.items():
            add_oidc_trust(strict, issuer, "ci/*")
            faults.enter_context(
                issuer.unreachable() if name == "UNREACHABLE" else issuer.having(Fault[name])
            )
        headers = {name: bearer(issuer.token()) for name, issuer in failing.items()}

        before = unreached(strict, 0)
        during = dict(
            zip(headers, together.map(lambda each: status(strict, each), headers.values()), strict=True)
        )
        assert strict.client_with(token).read("ci/none").status == 204
        faults.close()
        repaired = time.monotonic()

        # A key set without the key is not a fault: the token may never have been this issuer's.
        assert {name: got for name, got in during.items() if got != 500} == {"NO_KEYS": 403}
        told = before + len(headers) - 1
        # Lambda stops an authorizer that waits longer than its timeout. Then it logs nothing.
        assert unreached(strict, told) >= told
        for name in set(headers) - {"NO_KEYS"}:
            wait_until(
                lambda name=name: status(strict, headers[name]) == 204,  # type: ignore[misc]
                f"{name}: the same token works once the issuer does",
                seconds=FAULT_REMEMBERED + 3,
            )
        print(f"all work {time.monotonic() - repaired:.1f} s after their issuers did")

"""Revoked credentials are refused within a minute, with the production TTL of the authorizer's cache.

This is a single test, so that all cases wait at the same time.
"""

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from holdfast.access import Role
from holdfast.identity.trust import OidcTrust
from holdfast.team import CREDENTIALS_CACHED
from tests.support import access_commands, documents, oidc
from tests.support.access_records import (
    CACHE,
    add_oidc_trust,
    exchange,
    new_token,
    remove_trust,
    session_of,
    with_header,
)
from tests.support.oidc import Issuer
from tests.support.project import NewProject
from tests.support.team import Team

PATIENCE = 2.0
"""Seconds that the last requests may take."""
LEEWAY = timedelta(seconds=30)
"""The tolerance for clocks when an ID token expires."""


@dataclass
class Watched:
    """Credentials that are valid until the test ends them.

    `path` is the path that they read. `ended` is the time of their revocation in seconds of `time.monotonic`,
    `refused` the time of the first refusal, or None. `accepted` counts how often they were accepted after the
    revocation.
    """

    header: str
    path: str = "/states/ci/none"
    ended: float = float("inf")
    refused: float | None = None
    accepted: int = 0


def test_the_gateway_caches_for_the_time_that_is_measured() -> None:
    assert CREDENTIALS_CACHED.seconds == CACHE


def test_what_was_revoked_is_refused_within_sixty_seconds(
    strict: Team, issuer: Issuer, one_project: NewProject
) -> None:
    started, now = time.monotonic(), datetime.now(UTC)

    def trust(environment: str) -> OidcTrust:
        return add_oidc_trust(strict, issuer, "ci/*", claims={"environment": environment})

    def session(record: OidcTrust) -> str:
        return session_of(exchange(strict, oidc.bearer(issuer.token(record.claims)))).header

    def status(header: str, path: str = "/states/ci/none") -> int:
        return with_header(strict, header, path).status

    def may_write(header: str) -> bool:
        answer = with_header(strict, header, "/states/ci/none", "POST", body=documents.state())
        assert answer.status in (403, 428), answer  # nobody holds the lock, so a writer gets 428
        return answer.status == 428

    removed, renewed, lasting = trust("removed"), trust("renewed"), trust("lasting")
    narrowed = trust("narrowed")
    of_narrowed = session(narrowed)
    revoked, rotated, kept = (strict.new_token("writer", "ci/*") for _ in range(3))
    _, expiring = new_token(strict, Role.WRITER, "ci/*", expires=now + timedelta(seconds=12))
    ends = int((now + timedelta(seconds=12) - LEEWAY).timestamp())
    expiring_id_token = issuer.token({**lasting.claims, "iat": ends - 60, "nbf": ends - 60, "exp": ends})
    watched = {
        "a revoked token": Watched(revoked.header),
        "the old secret of a rotated token": Watched(rotated.header),
        "an expired token": Watched(expiring.header, ended=started + 12),
        "an expired ID token": Watched(oidc.bearer(expiring_id_token), ended=started + 12),
        "an ID token whose record was removed": Watched(oidc.bearer(issuer.token(removed.claims))),
        "a session whose record was removed": Watched(session(removed)),
        "a session whose record was re-created": Watched(session(renewed)),
        "a session of a narrowed record": Watched(of_narrowed, "/states/ci/other"),
    }
    good = {
        "another token": kept.header,
        "a session of another record": session(lasting),
        "a session of a narrowed record": of_narrowed,
    }
    mine = 'resource "terraform_data" "mine" {}\n'
    project = one_project.applied(strict, "ci/revoked", revoked, main=mine)
    for name, one in watched.items():
        assert status(one.header, one.path) == 204, name
    for name, header in good.items():
        assert status(header) == 204, name
    assert may_write(of_narrowed)

    def revoke(*names: str) -> None:
        for name in names:
            watched[name].ended = time.monotonic()

    access_commands.holdfast(strict, "token", "revoke", revoked.username)
    revoke("a revoked token")
    access_commands.holdfast(strict, "token", "rotate", rotated.username, "--keep", "0s")
    revoke("the old secret of a rotated token")
    access_commands.holdfast(strict, "trust", "remove", removed.name)
    revoke("an ID token whose record was removed", "a session whose record was removed")
    remove_trust(strict, renewed.name)
    add_oidc_trust(strict, issuer, "ci/*", claims=renewed.claims, name=renewed.name)
    revoke("a session whose record was re-created")

    narrower = ("--role", "reader", "--scope", "ci/none")
    access_commands.holdfast(strict, "trust", "update", narrowed.name, *narrower)
    revoke("a session of a narrowed record")

    last = max(one.ended for one in watched.values()) + CACHE + PATIENCE
    while time.monotonic() < last and any(one.refused is None for one in watched.values()):
        for name, one in watched.items():
            got = status(one.header, one.path)
            assert got == 403 or (got == 204 and one.refused is None), f"{name}: {got}"
            if got == 403 and one.refused is None:
                one.refused = time.monotonic()
            elif got == 204 and time.monotonic() > one.ended:
                one.accepted += 1
        time.sleep(0.5)

    for name, one in watched.items():
        assert one.refused is not None, f"{name} is still accepted"
        print(f"{name}: refused after {one.refused - one.ended:.1f} s")
    for name, one in watched.items():
        assert one.refused is not None
        assert 0 <= one.refused - one.ended <= CACHE + PATIENCE, name
        assert one.accepted > 0, f"{name}: the gateway had not cached it, so nothing was measured"
    assert "invalid auth" in project.refused("plan")
    assert {name: status(header) for name, header in good.items()} == dict.fromkeys(good, 204)
    assert not may_write(of_narrowed)
    assert status(oidc.bearer(issuer.token(renewed.claims))) == 204, "the new record of that name counts"

"""A table, written by hand, of what requests need, and get inside and outside of the scope of every role.

Each cell has its own state, prepared so that the request succeeds for a caller who may send it.
"""

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import pytest

from gateway.router import Anyone, Route
from holdfast.access import Action, Role, allowed
from tests.support import access_calls, documents
from tests.support.access_calls import CALLS, SCOPE
from tests.support.http_client import Client, Credentials, Response
from tests.support.routes import routes
from tests.support.team import HOLDFAST, Team

TABLE: Final = """
request                   prepared       needs         status

GET    /states            nothing        read          204
GET    /states            encrypted      read          200
GET    /states            zero bytes     read          409
POST   /states            its lock       write         200
POST   /states            a state        write         428
DELETE /states            a state        delete        200
DELETE /states            nothing        delete        200

GET    /outputs           nothing        read_outputs  204
GET    /outputs           encrypted      read_outputs  403
GET    /outputs           zero bytes     read_outputs  409

PUT    /locks             a state        lock          200
DELETE /locks             its lock       unlock        200
DELETE /locks             another's lock force_unlock  200
DELETE /locks, no body    another's lock force_unlock  409

POST   /unlocks           its lock       unlock        200
POST   /unlocks           another's lock force_unlock  200
POST   /unlocks, no body  another's lock force_unlock  409

GET    /stats             a state        nothing       400
"""
"""The requests whose status depends on the bucket. The table of every route is in `access_calls`.

A caller without credentials gets 401. A role gets the status if it allows the action that the request needs,
or else 403, as everywhere outside its scope; `test_access.py` says which role allows what.

An unlock without a body gets 409 from a caller who may send it, because the lock is younger than 10 seconds.
`/stats` is an example of a path without a route.
"""

_NUMBERS = count(1)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table. `route` does not contain the state's name.

    `bodiless`: the request has no body although the verb could have one. `prepared` names the objects in the
    bucket before. `needs` is the action without which a role gets 403; None if every role gets the status.
    """

    method: str
    route: str
    bodiless: bool
    prepared: str
    needs: Action | None
    status: int

    @property
    def inside(self) -> Mapping[Role | None, int]:
        """The status that each role gets within its scope; the role None is a caller without credentials."""
        statuses: dict[Role | None, int] = {None: 401}
        return statuses | {role: self.status if self._is_enough(role) else 403 for role in Role}

    @property
    def outside(self) -> int:
        """The status that each role gets for a state outside its scope."""
        return 403 if self.needs else self.status

    def _is_enough(self, role: Role) -> bool:
        return self.needs is None or self.needs in allowed(role)

    def __str__(self) -> str:
        return f"{self.method} {self.route}{', no body' if self.bodiless else ''}: {self.prepared}"


def rows() -> Iterator[Row]:
    head, *lines = (line for line in TABLE.splitlines() if line)
    prepared_at, needs_at = head.index("prepared"), head.index("needs")
    for line in lines:
        method, route, *no_body = line[:prepared_at].replace(",", "").split()
        prepared = line[prepared_at:needs_at].strip()
        needs, status = line[needs_at:].split()
        action = None if needs == "nothing" else Action(needs)
        yield Row(method, route, bool(no_body), prepared, action, int(status))


ROWS: Final = tuple(rows())


Cell = tuple[str, Callable[[], Response], int]
"""A description of role and place; a function that sends the request; the expected status."""


def clients(team: Team) -> dict[Role | None, Client]:
    """Return a client of each role, and one without credentials, past the gateway, which passes no LOCK."""
    tokens = {role: team.token(role, SCOPE) for role in Role}
    return {role: Client(team.direct_address, team.tls, tokens.get(role)) for role in (None, *Role)}


def cell(team: Team, row: Row, role: Role | None, expected: int, *, inside: bool) -> Cell:
    """Prepare the bucket and the request of one cell."""
    where = "inside" if inside else "outside"
    state = f"roles/{where}/{next(_NUMBERS)}"
    client, holder, info = clients(team)[role], team.direct_client("maintainer"), documents.lock_info()
    lock_id = documents.lock_id(info)
    if row.prepared == "encrypted":
        team.put(f"states/{state}.tfstate", documents.encrypted_state(1, "c2VjcmV0"))
    elif row.prepared == "zero bytes":
        team.put(f"states/{state}.tfstate", b"")
    elif row.prepared != "nothing":
        team.put(f"states/{state}.tfstate", documents.state(1))
    if row.prepared == "its lock":
        # A role that may not lock has no lock of its own. The document is right, but another caller locked.
        may_lock = inside and role is not None and Action.LOCK in allowed(role)
        assert (client if may_lock else holder).lock(state, info).status == 200
    elif row.prepared == "another's lock":
        assert holder.lock(state, info).status == 200

    path = f"{row.route}/{state}"
    sent: bytes | None = None
    if row.route in ("/locks", "/unlocks") and not row.bodiless:
        sent = info
    elif row.method == "POST" and row.route == "/states":
        path += f"?ID={lock_id}" if row.prepared == "its lock" else ""
        sent = documents.state(2)
    return (f"{role or 'nobody'} {where} its scope", lambda: client.request(row.method, path, sent), expected)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_role_gets_what_the_table_says(strict: Team, row: Row) -> None:
    cells = [cell(strict, row, role, expected, inside=True) for role, expected in row.inside.items()]
    cells += [cell(strict, row, role, row.outside, inside=False) for role in Role]
    with strict.unchanged():
        answers = {name: (send(), status) for name, send, status in cells if status not in (200, 204)}
    answers |= {name: (send(), status) for name, send, status in cells if status in (200, 204)}

    wrong = {
        name: f"{got.status} instead of {expected}: {got.body[:200]!r}"
        for name, (got, expected) in answers.items()
        if got.status != expected
    }
    assert wrong == {}
    for name, (got, expected) in answers.items():
        if expected == 403:
            assert got.error == (403, "not_allowed"), name
        if expected == 400:
            assert got.error == (400, "unknown_route"), name


def test_a_token_of_one_command_writes_its_own_states_and_reads_anothers_outputs(strict: Team) -> None:
    for state in ("two-network/prod", "two-apps/prod"):
        strict.put(f"states/{state}.tfstate", documents.state(1))
    grants = ("--grant", "writer:two-apps/*", "--grant", "outputs:two-network/*")
    created = subprocess.run(
        [HOLDFAST, "token", "create", "--team", strict.name, "--json", *grants],
        env=dict(strict.environment),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    token = json.loads(created.stdout)
    client = strict.client_with(Credentials(token["id"], token["secret"]))
    info = documents.lock_info()
    lock_id = documents.lock_id(info)

    assert client.lock("two-apps/prod", info).status == 200
    written = client.request("POST", f"/states/two-apps/prod?ID={lock_id}", documents.state(2))
    assert written.status == 200
    assert client.unlock("two-apps/prod", info).status == 200
    assert client.request("GET", "/outputs/two-network/prod").status == 200
    with strict.unchanged():
        refused = [
            client.read("two-network/prod"),
            client.lock("two-network/prod", info),
            client.request("DELETE", "/states/two-apps/prod"),
            client.request("GET", "/outputs/dns/prod"),
        ]
    assert [answer.error for answer in refused] == [(403, "not_allowed")] * 4
    assert [grant["role"] for grant in client.request("GET", "/manage/v1/whoami").json()["grants"]] == [
        "writer",
        "outputs",
    ]


def test_every_route_gives_a_role_what_its_table_says_and_every_other_verb_405(strict: Team) -> None:
    prepared, asking = access_calls.prepare(strict.s3, strict.bucket), clients(strict)

    def send(role: Role | None, method: str, address: str, body: bytes | None) -> tuple[int, str]:
        answer = asking[role].request(method, address, body)
        return answer.status, answer.body.decode()

    def from_gateway(route: Route[Any]) -> int:
        return 405 if route.needs is Anyone.PUBLIC else 403 if route.needs is Anyone.AWS_IDENTITY else 401

    with strict.unchanged():
        calls = (*CALLS, *access_calls.other_verbs(routes(), from_gateway))
        wrong = [fault for call in calls for fault in access_calls.faults(call, prepared, send)]

    assert wrong == []

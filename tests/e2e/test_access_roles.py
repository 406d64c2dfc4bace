"""The role, scope and grants of a caller, as the gateway passes them on from the authorizer to the functions.

`tests/contract/test_access_calls.py` decides what each role may do; these tests send the same table.
"""

from typing import Any

from gateway.router import Anyone, Route
from holdfast.access import Grant, Role
from tests.support import access_calls, documents
from tests.support.access_calls import CALLS, SCOPE
from tests.support.access_records import new_token
from tests.support.http_client import Client
from tests.support.routes import routes
from tests.support.team import Team


def clients(team: Team) -> dict[Role | None, Client]:
    """Return a client of each role, and one without credentials, past the gateway, which passes no LOCK."""
    tokens = {role: team.token(role, SCOPE) for role in Role}
    return {role: Client(team.direct_address, team.tls, tokens.get(role)) for role in (None, *Role)}


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
        no_route = asking[Role.READER].request("GET", f"/stats/{access_calls.INSIDE}")

    assert wrong == []
    assert no_route.error == (400, "unknown_route")


def test_a_token_with_two_grants_writes_its_own_states_and_reads_anothers_outputs(strict: Team) -> None:
    for state in ("two-network/prod", "two-apps/prod"):
        strict.put(f"states/{state}.tfstate", documents.state(1))
    grants = [Grant(Role.WRITER, ("two-apps/*",)), Grant(Role.OUTPUTS, ("two-network/*",))]
    client, info = strict.client_with(new_token(strict, grants=grants)[1]), documents.lock_info()

    assert client.lock("two-apps/prod", info).status == 200
    assert client.write("two-apps/prod", documents.state(2), documents.lock_id(info)).status == 200
    assert client.unlock("two-apps/prod", info).status == 200
    assert client.outputs("two-network/prod").status == 200
    with strict.unchanged():
        refused = [
            client.read("two-network/prod"),
            client.lock("two-network/prod", info),
            client.delete("two-apps/prod"),
            client.outputs("dns/prod"),
        ]
    assert [answer.error for answer in refused] == [(403, "not_allowed")] * 4

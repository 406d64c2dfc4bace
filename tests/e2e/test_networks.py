"""`networks` and `--from` on the deployed stack, whose local AWS knows no address but 127.0.0.1."""

import json

from tests.support import access_commands, audit_trail
from tests.support.http_client import Client, Credentials
from tests.support.team import Team


def token_from(team: Team, network: str) -> Credentials:
    create = ("token", "create", "--role", "reader", "--scope", "*", "--from", network, "--json")
    made = json.loads(access_commands.holdfast(team, *create))
    assert made["from"] == [network]
    return Credentials(made["id"], made["secret"])


def test_a_token_is_accepted_from_its_networks_and_refused_and_audited_from_others(whole: Team) -> None:
    here, elsewhere = (token_from(whole, network) for network in ("127.0.0.0/8", "203.0.113.0/24"))
    assert whole.client_with(here).request("GET", "/manage/v1/whoami").status == 200

    forged = {"X-Forwarded-For": "203.0.113.5", "Forwarded": "for=203.0.113.5"}
    refused = whole.client_with(elsewhere).request("GET", "/manage/v1/whoami", headers=forged)

    assert (refused.status, refused.json()) == (403, {"message": "Forbidden"})
    [event] = audit_trail.wait_for_events(whole, 1, token=elsewhere.username, event="sign_in.refused")
    assert (event["reason"], event["source_ip"]) == ("wrong_network", "127.0.0.1")
    assert Client(whole.gateway.address, whole.tls, None).request("GET", "/health").status == 200


def test_a_token_with_networks_is_not_made_for_a_team_without(strict: Team) -> None:
    create = ("token", "create", "--role", "reader", "--scope", "*", "--from", "127.0.0.0/8")
    done = access_commands.run(strict, *create)
    assert (done.returncode, done.stdout) == (1, "")
    assert "The deployed stack of the team strict has no setting `networks`" in done.stderr

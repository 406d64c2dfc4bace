"""`--from` of tokens and trust records, against moto's server over HTTP."""

import json

import pytest

from holdfast.access import Grant, Role
from holdfast.identity import trust
from holdfast.identity.tokens import Token
from tests.support.cli_account import Aws
from tests.unit.test_cli_token import CREATE, TRUSTED

FROM = ("--from", "203.0.113.0/24", "--from", "2001:db8::/32")
NETWORKS = ("203.0.113.0/24", "2001:db8::/32")
UPDATE = ("trust", "update", "network-main")
ADD = ("trust", "create", "a", "--aws-role", "A", "--role", "reader", "--scope", "*")


@pytest.fixture
def aws(account: Aws) -> Aws:
    """An account with a team that has networks and a trust record."""
    outputs = {"ApiAddress": "https://a.example.com", "BucketName": {"Ref": "Bucket"}}
    account.deploy("payments", **outputs, Networks="0.0.0.0/0,::/0")
    account.put_record("payments", trust.KEY, trust.Records((TRUSTED,)).to_json())
    return account


def trusted(aws: Aws, name: str) -> trust.Trust:
    (found,) = (one for one in trust.parse(aws.records("payments")[trust.KEY]) if one.name == name)
    return found


def test_a_token_with_networks_is_created_and_shown(aws: Aws) -> None:
    created = json.loads(aws.output(*CREATE, *FROM, "--json"))

    token = Token.from_json(aws.records("payments")[f"tokens/{created['id']}.json"])
    assert token.networks == NETWORKS
    assert created["from"] == list(NETWORKS)
    assert "  from         203.0.113.0/24, 2001:db8::/32\n" in aws.output("token", "show", token.id)
    heading, line = aws.output("token", "list").splitlines()
    assert heading.split()[-2:] == ["FROM", "DESCRIPTION"]
    assert line.split()[-2:] == ["203.0.113.0/24,2001:db8::/32", "-"]
    aws.output("token", "rotate", token.id, "--json")
    assert json.loads(aws.output("token", "show", token.id, "--json"))["from"] == list(NETWORKS)
    plain = json.loads(aws.output(*CREATE, "--json"))
    assert plain["from"] == []
    assert "  from         anywhere\n" in aws.output("token", "show", plain["id"])


def test_a_trust_record_gets_other_networks_and_none(aws: Aws) -> None:
    aws.output(*ADD, *FROM)
    assert trusted(aws, "a").networks == NETWORKS
    assert "203.0.113.0/24,2001:db8::/32  AWS role A" in aws.output("trust", "list")
    text = aws.output(*UPDATE, "--from", "203.0.113.0/24")
    assert "  from  anywhere -> 203.0.113.0/24\n" in text
    assert trusted(aws, "network-main").networks == ("203.0.113.0/24",)
    aws.output(*UPDATE, "--role", "reader")
    assert trusted(aws, "network-main").networks == ("203.0.113.0/24",)
    assert trusted(aws, "network-main").grants == (Grant(Role.READER, ("*",)),)
    assert "  from  203.0.113.0/24 -> anywhere\n" in aws.output(*UPDATE, "--from", "anywhere")
    assert trusted(aws, "network-main").networks == ()


@pytest.mark.parametrize("command", [(*CREATE, *FROM), (*ADD, *FROM), (*UPDATE, *FROM)])
def test_networks_are_refused_where_the_deployed_stack_does_not_decide_by_address(
    account: Aws, command: tuple[str, ...]
) -> None:
    account.deploy("payments")
    account.put_record("payments", trust.KEY, trust.Records((TRUSTED,)).to_json())
    before = account.records("payments")
    line = account.failure(*command)
    assert "The deployed stack of the team payments has no setting `networks`" in line
    assert 'In [teams.payments] of teams.toml, write networks = ["0.0.0.0/0"], which allows every ' in line
    assert "`npx cdk deploy Holdfast-payments -c address=<your public IPv4 address>`" in line
    assert account.records("payments") == before

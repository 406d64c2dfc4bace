"""Networks: what is one, which addresses it has, and what earlier releases make of a record with networks."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.access import Grant, Role
from holdfast.identity import records, tokens, trust
from holdfast.identity.tokens import Token
from holdfast.networks import MAX_OF_A_RECORD, check, check_new, covers
from tests.support import release_0_2, release_0_3
from tests.support.id_tokens import aws_record, claims, record

FROM = ("203.0.113.0/24", "2001:db8::/32")
NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
ONE = (Grant(Role.WRITER, ("apps/*",)),)
SEVERAL = (*ONE, Grant(Role.OUTPUTS, ("network/*",)))


@pytest.mark.parametrize(
    ("networks", "told"),
    [
        ([], "at least one network is required; 0.0.0.0/0 contains every IPv4 address"),
        (["acme"], "'acme' is not a network; write a network such as 203.0.113.0/24"),
        (["203.0.113.0/33"], "is not a network"),
        (["fe80::%eth0/64"], "is not a network"),
        (["010.0.0.0/8"], "is not a network"),
        (["203.0.113.5/24"], "is not in the standard form of a network; write 203.0.113.0/24"),
        (["203.0.113.5"], "write 203.0.113.5/32"),
        (["2001:DB8::/32"], "write 2001:db8::/32"),
        (["203.0.113.0/255.255.255.0"], "write 203.0.113.0/24"),
        (["::ffff:203.0.113.0/120"], "is an IPv4 network in IPv6 notation; write 203.0.113.0/24"),
        (
            ["10.0.0.0/8", "10.1.0.0/16"],
            "the network 10.0.0.0/8 includes the network 10.1.0.0/16; remove 10.1.0.0/16",
        ),
        (["10.1.0.0/16", "10.0.0.0/8"], "remove 10.1.0.0/16"),
        (["::/0", "10.0.0.0/8", "2001:db8::/32"], "remove 2001:db8::/32"),
    ],
)
def test_what_is_no_network_or_overlaps_is_refused_with_what_to_write(networks: list[str], told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        check(networks)


@pytest.mark.parametrize("networks", [["::/0"], ["2001:db8::/32", "2001:db9::/32"]])
def test_new_networks_have_one_of_ipv4(networks: list[str]) -> None:
    with pytest.raises(
        ValueError, match=rf"^{networks[0]}.* would refuse every caller, .*; add an IPv4 network"
    ):
        check_new(networks)
    assert check_new([*networks, "203.0.113.0/24"]) == (*networks, "203.0.113.0/24")
    with pytest.raises(ValueError, match="'acme' is not a network"):
        check_new([*networks, "acme"])


def test_an_address_is_in_a_network_of_its_own_version_also_as_ipv4_in_ipv6() -> None:
    assert check(["0.0.0.0/0", "::/0"]) == ("0.0.0.0/0", "::/0")
    for address in ("203.0.113.0", "203.0.113.255", "::ffff:203.0.113.5", "2001:db8:ffff::"):
        assert covers(FROM, address)
    for address in (
        "203.0.112.255",
        "::ffff:203.0.114.0",
        "2001:db9::",
        "::203.0.113.5",
        "",
        "x",
        "1.2.3.4/0",
    ):
        assert not covers(FROM, address)
    assert not covers(["::/0"], "203.0.113.5")


# --- records -----------------------------------------------------------------------------------------


def a_token(grants: tuple[Grant, ...], networks: tuple[str, ...] = FROM) -> Token:
    created: dict[str, Any] = {"description": "", "created_by": "x", "now": NOW, "expires": None}
    return tokens.create(grants, networks=networks, **created)[0]


@pytest.mark.parametrize("grants", [ONE, SEVERAL])
def test_networks_come_back_as_they_were_stored_and_no_earlier_release_reads_the_record(
    grants: tuple[Grant, ...],
) -> None:
    token = a_token(grants)
    stored = trust.Records((aws_record(), replace(record(), grants=grants, networks=FROM)))
    for body, read_again in (
        (token.to_json(), Token.from_json(token.to_json())),
        (stored.to_json(), trust.parse(stored.to_json())),
    ):
        assert read_again in (token, stored)
        assert read_again.newer == {}
        assert json.loads(body)["schema"] == records.SCHEMA == 3
    assert json.loads(token.to_json())["from"] == list(FROM)
    with pytest.raises(KeyError):
        release_0_2.token(token.to_json())
    with pytest.raises(KeyError):
        release_0_2.trust(stored.to_json())
    with pytest.raises(KeyError):
        release_0_3.grants(json.loads(token.to_json()))
    assert release_0_3.trust(stored.to_json(), claims()) == ("network", None)
    plain = json.loads(a_token(grants, ()).to_json())
    assert release_0_3.grants(plain) == [(grant.role.value, grant.scope) for grant in grants]


def test_the_last_release_takes_no_wider_record_in_place_of_one_with_networks() -> None:
    loose = record("a-loose", role=Role.MAINTAINER, scope=["*"])
    strict = record("strict", claims={"repository": "acme/network", "ref": "main"})
    sent = claims(ref="main")
    for networks, grants in (((), [("writer", ("network/*",))]), (FROM, None)):
        body = trust.Records((loose, replace(strict, networks=networks))).to_json()
        assert release_0_3.trust(body, sent) == ("strict", grants)
        assert release_0_3.trust(body, claims()) == ("a-loose", [("maintainer", ("*",))])


@pytest.mark.parametrize(
    "changed",
    [
        {"from": None},
        {"from": []},
        {"from": "203.0.113.0/24"},
        {"from": ["203.0.113.5/24"]},
        {"from": [7]},
        {"from": [f"10.{number}.0.0/16" for number in range(MAX_OF_A_RECORD + 1)]},
        {"grants_within": None},
        {"grants_within": []},
        {"role": "writer", "scope": ["*"]},
        {"role": "writer"},
        {"grants": [{"role": "writer", "scope": ["*"]}]},
    ],
)
def test_a_record_is_never_read_without_a_part_of_its_restriction(changed: dict[str, Any]) -> None:
    for members in (changed, *({name: ...} for name in changed if name in ("from", "grants_within"))):
        whole = json.loads(a_token(ONE).to_json()) | members
        document = {name: value for name, value in whole.items() if value is not ...}
        with pytest.raises(ValueError, match="not a valid token record"):
            Token.from_json(json.dumps(document).encode())
        for part in ("from", "grants_within"):
            alone = json.loads(a_token(ONE, ()).to_json()) | {part: whole[part]}
            with pytest.raises(ValueError, match="not a valid token record"):
                Token.from_json(json.dumps(alone, default=str).encode())


V6 = ("2001:db8::/32",)


def test_a_new_record_is_refused_with_ipv6_alone_and_a_stored_one_is_read_and_changed() -> None:
    arguments: dict[str, Any] = {
        "grants": ONE,
        "networks": V6,
        "description": "",
        "created_by": "x",
        "now": NOW,
    }
    with pytest.raises(ValueError, match="add an IPv4 network"):
        a_token(ONE, V6)
    with pytest.raises(ValueError, match="add an IPv4 network"):
        trust.new_aws("a", aws_role="A", **arguments)
    with pytest.raises(ValueError, match="add an IPv4 network"):
        trust.new_oidc("a", issuer="https://a.example", audience="b", claims={"sub": "c"}, **arguments)
    with pytest.raises(ValueError, match="add an IPv4 network"):
        trust.update(record(), change=trust.Change(), description=None, networks=V6, updated_by="x", now=NOW)

    token = replace(a_token(ONE), networks=V6)
    assert Token.from_json(token.to_json()) == token
    rotated, _ = tokens.rotate(token, rotated_by="x", now=NOW, keep=NOW - NOW, expires=None)
    assert rotated.networks == V6
    of_earlier = replace(record(), networks=V6)
    stored = trust.Records((aws_record(), of_earlier))
    assert trust.parse(stored.to_json()) == stored
    updated = trust.update(of_earlier, change=trust.Change(), description="new", updated_by="x", now=NOW)
    assert (updated.description, updated.networks) == ("new", V6)


def test_a_rotation_keeps_networks_and_an_update_replaces_or_removes_them() -> None:
    token = a_token(ONE)
    rotated, _ = tokens.rotate(token, rotated_by="x", now=NOW, keep=NOW - NOW, expires=None)
    assert rotated.networks == FROM
    restricted = record(networks=FROM)
    arguments: dict[str, Any] = {"description": "new", "updated_by": "x", "now": NOW}
    for networks, wanted in ((None, FROM), (["10.0.0.0/8"], ("10.0.0.0/8",)), ([], ())):
        updated = trust.update(restricted, change=trust.Change(), networks=networks, **arguments)
        assert updated.networks == wanted
    arguments["networks"] = ["10.0.0.0/8", "10.1.0.0/16"]
    with pytest.raises(ValueError, match=r"remove 10\.1\.0\.0/16"):
        trust.update(restricted, change=trust.Change(), **arguments)

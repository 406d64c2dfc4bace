"""Session exchange: who gets a session, decided without S3."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import NoReturn

import pytest

from holdfast.access import Caller, Grant, Role
from holdfast.errors import NotAllowed
from holdfast.identity.authentication import Authenticated, AuthMethod
from holdfast.identity.session_exchange import for_aws_role, for_id_token
from holdfast.identity.trust import Records, parse
from tests.support.events import ANYWHERE
from tests.support.id_tokens import aws_record

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
ACCOUNT = "123456789012"
ARN = f"arn:aws:sts::{ACCOUNT}:assumed-role/Deployer/ada"
DEPLOYERS = aws_record("deployers", aws_role="Deployer", role=Role.READER, scope=["dns"])
BEARER = Authenticated(
    Caller("oidc:https://issuer.example#repo", (Grant(Role.WRITER, ("network/*",)),)),
    AuthMethod.OIDC,
    trust="network",
    trust_id="t" * 20,
    subject="https://issuer.example#repo",
    ends=int(NOW.timestamp()),
)


def never_read() -> NoReturn:
    raise AssertionError("the trust records were read")


def test_the_bearer_of_an_id_token_gets_a_session_as_who_they_are_until_the_token_ends() -> None:
    assert for_id_token(BEARER, now=NOW - timedelta(seconds=1)) == BEARER
    for now in (NOW, NOW + timedelta(seconds=1)):
        with pytest.raises(NotAllowed, match="ID token has expired"):
            for_id_token(BEARER, now=now)


@pytest.mark.parametrize("method", [method for method in AuthMethod if method is not AuthMethod.OIDC])
def test_whoever_authenticated_in_another_way_gets_no_session(method: AuthMethod) -> None:
    with pytest.raises(NotAllowed, match=f"authenticated with a {method};"):
        for_id_token(replace(BEARER, method=method), now=NOW - timedelta(days=1))


@pytest.mark.parametrize("partition", ["aws", "aws-cn", "aws-us-gov"])
def test_a_role_that_a_trust_record_names_gets_what_the_record_grants(partition: str) -> None:
    arn = ARN.replace("aws", partition, 1)
    assert for_aws_role(arn, ACCOUNT, lambda: Records((DEPLOYERS,)), ANYWHERE) == Authenticated(
        Caller(arn, (Grant(Role.READER, ("dns",)),)),
        AuthMethod.AWS,
        trust="deployers",
        trust_id=DEPLOYERS.id,
        subject=arn,
    )


@pytest.mark.parametrize(
    "arn",
    [
        "",
        "Deployer",
        f"arn:aws:iam::{ACCOUNT}:role/Deployer",
        f"arn:aws:sts::{ACCOUNT}:federated-user/Deployer",
        ARN.replace(ACCOUNT, "210987654321"),
        ARN.replace(ACCOUNT, ACCOUNT[:-1]),
        ARN.replace(ACCOUNT, ""),
        f"{ARN}/more",
        f"{ARN}\n",
    ],
)
def test_an_arn_that_is_not_a_role_of_the_account_gets_no_session_and_reads_nothing(arn: str) -> None:
    with pytest.raises(NotAllowed, match="is not a session of an IAM role in the account"):
        for_aws_role(arn, ACCOUNT, never_read, ANYWHERE)


@pytest.mark.parametrize("records", [Records(), Records((replace(DEPLOYERS, aws_role="deployer"),))])
def test_a_role_that_no_trust_record_names_gets_no_session(records: Records) -> None:
    with pytest.raises(NotAllowed, match="No trust record names the IAM role Deployer"):
        for_aws_role(ARN, ACCOUNT, lambda: records, ANYWHERE)


@pytest.mark.parametrize("decides_alone", [False, True])
def test_a_record_with_networks_counts_only_where_each_address_is_decided_alone(decides_alone: bool) -> None:
    records = Records((replace(DEPLOYERS, networks=("127.0.0.0/8",)),))
    origin = replace(ANYWHERE, decides_alone=decides_alone)
    if decides_alone:
        assert for_aws_role(ARN, ACCOUNT, lambda: records, origin).networks == ("127.0.0.0/8",)
    else:
        with pytest.raises(NotAllowed, match=r"accepts no request from the address 127\.0\.0\.1"):
            for_aws_role(ARN, ACCOUNT, lambda: records, origin)


def test_a_role_whose_trust_record_is_not_understood_gets_no_session_and_the_record_is_named() -> None:
    records = parse(Records((DEPLOYERS,)).to_json().replace(b'"reader"', b'"king"'))
    with pytest.raises(NotAllowed, match="does not understand the trust record 'deployers'"):
        for_aws_role(ARN, ACCOUNT, lambda: records, ANYWHERE)

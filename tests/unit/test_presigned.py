"""Addresses that are signed in advance, and the role whose credentials sign them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from holdfast.cloud.staging import UPLOAD_SECONDS
from holdfast.errors import OutcomeUnknown
from holdfast.s3 import presigned
from holdfast.s3.presigned import ENOUGH_LIFE, Presigned, Signer
from local_aws import loopback
from tests.support.environment import SETTINGS, set_environment

ROLE = SETTINGS["HOLDFAST_TRANSFERS_ROLE"]


@dataclass
class Sts:
    """AWS STS on this machine, and the clock.

    `asked` has the parameters of each request. `now` is the time of STS and of the function; the credentials
    that STS returns are valid for as long as the request wants. Unless `status` is 200, STS refuses.
    """

    asked: list[dict[str, str]] = field(default_factory=list)
    now: datetime = datetime(2026, 11, 23, 12, tzinfo=UTC)
    status: int = 200

    def response(self, body: bytes) -> bytes:
        self.asked.append({name: value for name, (value,) in parse_qs(body.decode()).items()})
        if self.status != 200:
            return b"<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>"
        expires = self.now + timedelta(seconds=int(self.asked[-1]["DurationSeconds"]))
        return (
            "<AssumeRoleResponse><AssumeRoleResult><Credentials>"
            f"<AccessKeyId>ASIA{len(self.asked)}</AccessKeyId><SecretAccessKey>secret</SecretAccessKey>"
            f"<SessionToken>token{len(self.asked)}</SessionToken><Expiration>{expires.isoformat()}</Expiration>"
            "</Credentials></AssumeRoleResult></AssumeRoleResponse>"
        ).encode()


@pytest.fixture
def sts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sts]:
    service = Sts()

    class Handler(loopback.Handler):
        def respond(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.answer(service.status, service.response(body))

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return service.now.astimezone(tz)

    with loopback.serving(Handler) as address:
        set_environment(
            monkeypatch,
            AWS_ENDPOINT_URL_STS=address,
            AWS_LAMBDA_FUNCTION_NAME="Holdfast-network-Cloud",
            AWS_DEFAULT_REGION="eu-central-1",
        )
        monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
        monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
        monkeypatch.setattr(presigned, "datetime", Clock)
        yield service


def signed_by(signer: Signer) -> tuple[str, str]:
    """Return the access key and the session token of an address."""
    address = Presigned(signer.client(), "holdfast-bucket").put("uploads/a", UPLOAD_SECONDS)
    query = parse_qs(urlsplit(address).query)
    return query["X-Amz-Credential"][0].partition("/")[0], query["X-Amz-Security-Token"][0]


def test_the_role_is_assumed_for_the_first_address_and_not_for_the_next(sts: Sts) -> None:
    signer = Signer(ROLE)
    assert sts.asked == [], "the role is assumed in a request, and not at the start"

    assert [signed_by(signer), signed_by(signer)] == [("ASIA1", "token1")] * 2

    [asked] = sts.asked
    assert asked["RoleArn"] == ROLE
    assert asked["RoleSessionName"] == "Holdfast-network-Cloud"
    assert asked["DurationSeconds"] == "3600"
    assert "Policy" not in asked


@pytest.mark.parametrize(("minutes", "key"), [(39, "ASIA1"), (41, "ASIA2"), (59, "ASIA2"), (61, "ASIA2")])
def test_no_address_outlives_the_credentials_that_signed_it(sts: Sts, minutes: int, key: str) -> None:
    signer = Signer(ROLE)
    signed_by(signer)
    sts.now += timedelta(minutes=minutes)

    assert signed_by(signer)[0] == key

    assert timedelta(seconds=UPLOAD_SECONDS) < ENOUGH_LIFE


@pytest.mark.usefixtures("sts")
def test_copies_of_a_process_assume_the_role_each_for_itself() -> None:
    one, another = Signer(ROLE), Signer(ROLE)

    assert [signed_by(signer)[0] for signer in (one, another, one)] == ["ASIA1", "ASIA2", "ASIA1"]


def test_without_credentials_a_request_is_repeated_and_no_address_is_made(sts: Sts) -> None:
    signer = Signer(ROLE)
    signed_by(signer)
    sts.now += timedelta(minutes=61)
    sts.status = 403

    with pytest.raises(OutcomeUnknown, match=r"AccessDenied.*retry is safe") as refused:
        signer.client()

    assert refused.value.status == 503
    assert refused.value.logged == {"reason": "AccessDenied"}
    sts.status = 200
    assert signed_by(signer)[0] == "ASIA3"


def test_a_lost_answer_of_sts_is_no_address_either(sts: Sts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:1")

    with pytest.raises(OutcomeUnknown, match="EndpointConnectionError"):
        Signer(ROLE).client()

    assert sts.asked == []


@pytest.mark.parametrize(
    ("endpoint", "address"),
    [
        (None, "https://holdfast-bucket.s3.eu-central-1.amazonaws.com/states/a.tfstate"),
        ("http://127.0.0.1:4566", "http://127.0.0.1:4566/holdfast-bucket/states/a.tfstate"),
    ],
)
@pytest.mark.usefixtures("sts")
def test_an_address_is_at_the_buckets_own_name_in_its_region_unless_an_endpoint_is_set(
    endpoint: str | None, address: str
) -> None:
    signer = Signer(ROLE, endpoint_url=endpoint)
    signed = urlsplit(Presigned(signer.client(), "holdfast-bucket").get("states/a.tfstate", "v1", 60))
    assert f"{signed.scheme}://{signed.netloc}{signed.path}" == address
    query = parse_qs(signed.query)
    assert (query["versionId"], query["X-Amz-Expires"]) == (["v1"], ["60"])
    assert query["X-Amz-Algorithm"] == ["AWS4-HMAC-SHA256"]

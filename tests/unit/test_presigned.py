"""Addresses that are signed in advance, and the credentials that sign them."""

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from botocore.credentials import Credentials, RefreshableCredentials
from botocore.session import Session

from holdfast.s3.presigned import Presigned, Signer

Kind = int | None
"""Minutes until credentials end, or None for those that do not say."""


def give(monkeypatch: pytest.MonkeyPatch, *kinds: Kind) -> None:
    """Have each session of the SDK find the next credentials; there are no more sessions than these."""
    given = (credentials(number, kind) for number, kind in enumerate(kinds, start=1))
    found: dict[Session, Credentials] = {}

    def get_credentials(session: Session) -> Credentials:
        if session not in found:
            found[session] = next(given)
        return found[session]

    monkeypatch.setattr(Session, "get_credentials", get_credentials)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)


def credentials(number: int, minutes: Kind) -> Credentials:
    key = f"KEY{number}"
    if minutes is None:
        return Credentials(key, "secret", "token")
    ends = (datetime.now(UTC) + timedelta(minutes=minutes)).isoformat()
    found = {"access_key": key, "secret_key": "secret", "token": "token", "expiry_time": ends}
    made: Credentials = RefreshableCredentials.create_from_metadata(
        found, refresh_using=lambda: found, method="test"
    )
    return made


def signed_by(signer: Signer) -> str:
    """The access key of an address."""
    address = Presigned(signer.client(), "holdfast-bucket").put("uploads/a", 900)
    return parse_qs(urlsplit(address).query)["X-Amz-Credential"][0].partition("/")[0]


@pytest.mark.parametrize(
    ("kinds", "key"),
    [
        ((60,), "KEY1"),
        ((None,), "KEY1"),
        ((19, 60), "KEY2"),
        ((19, 18, 17), "KEY1"),  # the endpoint has no better ones
    ],
)
def test_credentials_that_end_soon_are_renewed_before_they_sign(
    monkeypatch: pytest.MonkeyPatch, kinds: tuple[Kind, ...], key: str
) -> None:
    give(monkeypatch, *kinds)
    signer = Signer()
    assert [signed_by(signer), signed_by(signer)] == [key, key]


@pytest.mark.parametrize(
    ("endpoint", "address"),
    [
        (None, "https://holdfast-bucket.s3.eu-central-1.amazonaws.com/states/a.tfstate"),
        ("http://127.0.0.1:4566", "http://127.0.0.1:4566/holdfast-bucket/states/a.tfstate"),
    ],
)
def test_an_address_is_at_the_buckets_own_name_in_its_region_unless_an_endpoint_is_set(
    monkeypatch: pytest.MonkeyPatch, endpoint: str | None, address: str
) -> None:
    give(monkeypatch, None)
    presigned = Presigned(Signer(endpoint_url=endpoint).client(), "holdfast-bucket")
    signed = urlsplit(presigned.get("states/a.tfstate", "v1", 60))
    assert f"{signed.scheme}://{signed.netloc}{signed.path}" == address
    query = parse_qs(signed.query)
    assert (query["versionId"], query["X-Amz-Expires"]) == (["v1"], ["60"])
    assert query["X-Amz-Algorithm"] == ["AWS4-HMAC-SHA256"]

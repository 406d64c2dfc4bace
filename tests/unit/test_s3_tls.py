"""The certificate authorities of the S3 client: read once, and verified as before."""

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
import trustme
from botocore.exceptions import SSLError

from holdfast.s3.sdk import connect
from local_aws.server import Certificates
from tests.support import api_stub
from tests.support.api_stub import ApiStub, Reply
from tests.support.certificates import create_certificates


@pytest.fixture
def s3(certificates: Certificates) -> Iterator[ApiStub]:
    """A server with TLS that closes every connection after its response."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificates.cert, certificates.key)
    with api_stub.running(tls) as stub:
        stub.reply(Reply(204))
        yield stub


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files of certificate authorities in the order in which they are read."""
    files: list[str] = []
    load = ssl.SSLContext.load_verify_locations

    def recorded(context: ssl.SSLContext, cafile: Any = None, *rest: Any) -> None:
        files.append(str(cafile))
        load(context, cafile, *rest)

    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", recorded)
    return files


def client(address: str, authorities: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(authorities))
    session = boto3.Session("AKIAEXAMPLE", "x", region_name="eu-central-1")
    return connect(session, endpoint_url=address)


def test_a_client_reads_its_authorities_once_for_all_connections(
    s3: ApiStub, certificates: Certificates, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = client(s3.address, certificates.ca, monkeypatch)
    for _ in range(3):
        first.delete_object(Bucket="b", Key="k")
    assert read == [str(certificates.ca)]

    client(s3.address, certificates.ca, monkeypatch).delete_object(Bucket="b", Key="k")
    assert read == [str(certificates.ca)] * 2


def test_where_botocore_has_another_way_it_is_left_alone(
    s3: ApiStub, certificates: Certificates, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = client(s3.address, certificates.ca, monkeypatch)
    del one._endpoint.http_session._setup_ssl_cert  # noqa: SLF001 as if this version had set nothing
    for _ in range(2):
        one.delete_object(Bucket="b", Key="k")
    assert read == [str(certificates.ca)] * 2


def test_a_foreign_authority_a_wrong_host_name_and_a_missing_file_still_fail(
    s3: ApiStub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = create_certificates(tmp_path / "foreign").ca
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("example.com").configure_cert(tls)
    with api_stub.running(tls) as elsewhere:
        for address, authorities in (
            (s3.address, foreign),
            (elsewhere.address, tmp_path / "ca.pem"),
            (s3.address, tmp_path / "absent.pem"),
        ):
            one = client(address, authorities, monkeypatch)
            for _ in range(2):
                with pytest.raises(SSLError):
                    one.delete_object(Bucket="b", Key="k")
        assert elsewhere.asked == s3.asked == []

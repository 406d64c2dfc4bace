"""The end-to-end tests mean something only if IAM, TLS and AWS's limits are really in the way."""

import http.client
import json
import ssl
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.exceptions import ClientError

from local_aws.server import Certificates, LocalAws
from tests.support import documents
from tests.support.team import Team


def test_iam_refuses_who_has_no_permission(aws: LocalAws, strict: Team, certificates: Certificates) -> None:
    def client(service: Any, key: str, secret: str) -> Any:
        return boto3.client(
            service,
            endpoint_url=aws.endpoint,
            region_name="us-east-1",
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            verify=str(certificates.ca),
        )

    iam = client("iam", "test", "test")
    iam.create_user(UserName="nobody")
    key = iam.create_access_key(UserName="nobody")["AccessKey"]
    nobody = client("s3", key["AccessKeyId"], key["SecretAccessKey"])
    strict.put("states/guarded.tfstate", documents.state())

    with pytest.raises(ClientError) as reading:
        nobody.get_object(Bucket=strict.bucket, Key="states/guarded.tfstate")
    with pytest.raises(ClientError) as writing:
        nobody.put_object(Bucket=strict.bucket, Key="states/guarded.tfstate", Body=b"{}")

    assert reading.value.response["Error"]["Code"] == "AccessDenied"
    assert writing.value.response["Error"]["Code"] == "AccessDenied"
    assert strict.current("guarded") == documents.state()


def test_neither_the_gateway_nor_the_api_speaks_without_tls_or_to_who_does_not_trust_it(strict: Team) -> None:
    for address in (strict.gateway.address, strict.direct_address):
        url = urlsplit(address)
        assert url.scheme == "https"
        host, port = url.hostname or "", url.port

        distrusting = http.client.HTTPSConnection(
            host, port, timeout=20, context=ssl.create_default_context()
        )
        with pytest.raises(ssl.SSLCertVerificationError):
            distrusting.request("GET", "/health")
        plain = http.client.HTTPConnection(host, port, timeout=20)
        plain.request("GET", f"{url.path}/health")
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            plain.getresponse()
        plain.close()


def test_clients_meet_the_limits_and_the_other_names_of_headers(strict: Team, state: str) -> None:
    client = strict.client("writer")

    with strict.unchanged():
        large = client.lock(state, b" " * 10_000_001)
        long = client.request("GET", f"/states/{state}", headers={"X-Long": "x" * 10_240})
        lock = client.request("LOCK", f"/states/{state}", documents.lock_info())
        read = client.read(state)

    assert (large.status, json.loads(large.body)) == (413, {"message": "Request Entity Too Large"})
    assert (long.status, lock.status) == (431, 400)
    assert "x-amzn-remapped-date" in read.headers

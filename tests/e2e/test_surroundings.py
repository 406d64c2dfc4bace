"""The end-to-end tests run with IAM, TLS and AWS's limits."""

import http.client
import json
import ssl
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError

from local_aws.server import LocalAws
from tests.support import documents
from tests.support.deployed import client, new_user
from tests.support.team import Team


def test_iam_refuses_who_has_no_permission(aws: LocalAws, strict: Team) -> None:
    nobody = client(aws, "s3", new_user(client(aws, "iam"), "nobody"))
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

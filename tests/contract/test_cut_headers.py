"""An answer that ends within its headers is no answer, wherever it ends."""

import time
from typing import Final

import boto3
import pytest

from holdfast import names
from holdfast.store import IfAbsent, Store, connect
from tests.contract.conftest import Bucket
from tests.fault_relay import Fault, Injected, Relay, Request

KEY: Final = names.parse("cut").state_key
METADATA: Final = {"sha256": "0" * 64, "serial": "123", "lineage": "a-lineage", "over-serial": "122"}


@pytest.mark.parametrize("tenth", range(10))
def test_a_head_that_is_cut_in_its_headers_is_asked_for_again(bucket: Bucket, tenth: int) -> None:
    whole = bucket.direct_store()
    whole.write(KEY, b"{}", IfAbsent(), metadata=METADATA)
    cuts: list[float] = []

    def decide(request: Request) -> Injected | None:
        return Injected(Fault.HALF_THE_HEADERS, at=cuts.pop()) if request.method != "PUT" and cuts else None

    with Relay(str(bucket.s3.meta.endpoint_url), decide) as relay:
        session = boto3.Session("test", "test", region_name="us-east-1")
        client = connect(session, endpoint_url=relay.endpoint)
        for part in range(20):
            cuts.append(tenth / 10 + part / 200)
            assert Store(client, bucket.name, deadline=time.monotonic() + 5).head(KEY) == whole.head(KEY), (
                cuts
            )
            assert not cuts

"""Measure a request on a new TLS connection to S3, with the functions' client and with the SDK's own."""

import time
from collections import defaultdict
from pathlib import Path
from typing import Any, Final
from unittest import mock

import botocore

from benchmarks.figures import Figure, Section
from benchmarks.run import Run
from benchmarks.tiny_s3 import BUCKET, tiny_s3
from holdfast.s3.sdk import connect, sdk_session
from tests.support.certificates import create_certificates
from tests.support.environment import CREDENTIALS, SETTINGS

_NOTES: Final = (
    "A request on a new connection, to an S3 that answers at once; as many authorities as on AWS.",
    "The SDK reads the authorities for each new connection, the functions' client for its first one alone.",
)


def measure(run: Run) -> Section:
    """Send a request on a new connection with each client in turn."""
    folder = run.folder / "connections"
    certificates = create_certificates(folder)
    authorities = folder / "authorities.pem"
    known = Path(botocore.__file__).with_name("cacert.pem").read_bytes()
    authorities.write_bytes(known + b"\n" + certificates.ca.read_bytes())
    environment = {**SETTINGS, **CREDENTIALS, "AWS_CA_BUNDLE": str(authorities)}
    took = defaultdict[str, list[float]](list)
    with mock.patch.dict("os.environ", environment), tiny_s3({"key": b"{}"}, certificates) as address:
        of_the_sdk: Any = sdk_session().create_client("s3", endpoint_url=address)
        clients = {"functions' client": connect(endpoint_url=address), "SDK's own": of_the_sdk}
        for number in range(run.rounds + 1):
            for name, client in clients.items():
                client.close()
                began = time.monotonic()
                client.get_object(Bucket=BUCKET, Key="key")["Body"].read()
                if number:  # the first round loads what later requests share
                    took[name].append(1000 * (time.monotonic() - began))
    return Section(
        "A new connection to S3",
        [
            *(Figure.of(name, "ms", milliseconds) for name, milliseconds in took.items()),
            Figure.ratio("ratio", took["functions' client"], took["SDK's own"]),
        ],
        _NOTES,
    )

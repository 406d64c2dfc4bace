"""The AWS account, the API and the certificates that unit tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from local_aws.server import Certificates
from tests.support import api_stub, cli_account
from tests.support.api_stub import ApiStub
from tests.support.certificates import create_certificates
from tests.support.cli_account import Aws


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return create_certificates(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    """The address of a server that acts as AWS."""
    with cli_account.running() as endpoint:
        yield endpoint


@pytest.fixture
def account(moto: str, tmp_path: Path) -> Aws:
    """An account with nothing in it."""
    return cli_account.empty(moto, tmp_path)


@pytest.fixture
def aws(account: Aws) -> Aws:
    """An account with the stack of one team."""
    account.deploy("payments")
    return account


@pytest.fixture
def stub() -> Iterator[ApiStub]:
    """A server that acts as the team's API; the test sets its responses."""
    with api_stub.running() as running:
        yield running

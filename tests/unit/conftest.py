"""The AWS account and the API that tests of the command share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import api_stub, cli_account
from tests.support.api_stub import ApiStub
from tests.support.cli_account import Aws


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

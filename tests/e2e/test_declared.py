"""A team whose names must be declared: a typing error ends in the terminal, and makes nothing."""

import http.client
from functools import partial
from pathlib import Path

import pytest

from local_aws import up
from local_aws.home import Connection
from local_aws.server import LocalAws
from local_aws.terraform import Product
from tests.e2e.test_terraform_traps import addresses
from tests.support.cloud_client import place
from tests.support.project import NewProject, backend, cloud
from tests.support.team import Team

SUBNET = 'resource "terraform_data" "subnet" {}\n'


@pytest.fixture
def state(state: str) -> str:
    organization, _, rest = state.partition("/")
    return f"{organization}/{rest.replace('/', '-')}"


def test_make_up_tries_its_token_where_names_must_be_declared(
    named: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = named.token("maintainer")
    # The local AWS of `make up` is without TLS.
    monkeypatch.setattr(
        http.client, "HTTPConnection", partial(http.client.HTTPSConnection, context=named.tls)
    )

    with named.unchanged():
        for password, taken in ((token.password, True), ("wrong", False)):
            connection = Connection(named.gateway.address, token.username, password)
            assert up._is_taken(connection, LocalAws(1, tmp_path)) is taken  # noqa: SLF001 the check of `up`


def test_a_typing_error_in_an_address_plans_nothing_and_makes_nothing(
    named: Team, state: str, new_project: NewProject
) -> None:
    named.declare(state)
    project = new_project(named, None, named.token("writer"))
    project.write(main=SUBNET, backend=backend(named, state))
    project.ok("init")
    project.ok("apply", "-auto-approve")
    wrong = f"{state}x"
    project.write(backend='terraform {\n  backend "http" {}\n}\n')

    with named.unchanged():
        # Of a read, clients show the status alone; those that acquire the lock before they read, the ID.
        assert "Unexpected HTTP response code 423" in project.refused(
            "init", "-reconfigure", **addresses(named, wrong)
        )
        said = " ".join(project.refused("plan", **addresses(named, wrong)).split())
        client = project.terraform.client
        if client.product is Product.TERRAFORM and client.version >= (1, 15, 0):  # it reads first
            assert said == "Error: Unexpected HTTP response code 423"
        else:
            assert f"no such state: {wrong} (nearest: {state}" in said
            assert f"'holdfast state create {wrong}'" in said
        assert "423" in project.refused("plan", "-lock=false", **addresses(named, wrong))

    project.ok("init", "-reconfigure", **addresses(named, state))
    assert project.run("plan", "-detailed-exitcode", **addresses(named, state)).code == 0


def test_a_typing_error_in_a_workspaces_name_is_told_in_full_and_makes_none(
    named: Team, state: str, new_project: NewProject
) -> None:
    named.declare(state)
    organization, workspace = place(state)
    right, typo = (new_project(named, None, named.token("writer")) for _ in range(2))
    right.write(main=SUBNET, backend=cloud(named, organization, f'name = "{workspace}"'))
    right.ok("init")
    right.ok("apply", "-auto-approve")

    with named.unchanged():
        typo.write(main=SUBNET, backend=cloud(named, organization, f'name = "{workspace}x"'))
        said = " ".join(typo.refused("init").split())
        assert f"There is no state '{state}x'" in said
        assert state in said.partition("The nearest names are: ")[2]
        assert f"'holdfast state create {state}x'" in said

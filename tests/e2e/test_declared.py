"""A team whose names must be declared: a typing error is shown in the terminal, and creates nothing."""

import http.client
from functools import partial
from pathlib import Path

import pytest

from local_aws import up
from local_aws.home import Connection
from local_aws.server import LocalAws
from local_aws.terraform import Product
from tests.e2e.test_terraform_traps import addresses
from tests.support.project import NewProject, cloud
from tests.support.team import Team

SUBNET = 'resource "terraform_data" "subnet" {}\n'


def test_make_up_tries_its_token_where_names_must_be_declared(
    whole: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = whole.token("maintainer")
    # The local AWS of `make up` is without TLS.
    monkeypatch.setattr(
        http.client, "HTTPConnection", partial(http.client.HTTPSConnection, context=whole.tls)
    )

    with whole.unchanged():
        for password, taken in ((token.password, True), ("wrong", False)):
            connection = Connection(whole.gateway.address, token.username, password)
            assert up._is_taken(connection, LocalAws(1, tmp_path)) is taken  # noqa: SLF001 the check of `up`


def test_a_typing_error_in_an_address_plans_nothing_and_makes_nothing(
    whole: Team, state: str, new_project: NewProject
) -> None:
    whole.declare(state)
    project = new_project.applied(whole, state, whole.token("writer"), main=SUBNET)
    wrong = f"{state}x"
    project.write(backend='terraform {\n  backend "http" {}\n}\n')

    with whole.unchanged():
        # After a refused read, clients show only the status. Clients that acquire the lock first show the ID.
        assert "Unexpected HTTP response code 423" in project.refused(
            "init", "-reconfigure", **addresses(whole, wrong)
        )
        said = " ".join(project.refused("plan", **addresses(whole, wrong)).split())
        client = project.terraform.client
        if client.product is Product.TERRAFORM and client.version >= (1, 15, 0):  # it reads first
            assert said == "Error: Unexpected HTTP response code 423"
        else:
            assert f"no such state: {wrong} (nearest: {state}" in said
            assert f"'holdfast state declare {wrong}'" in said
        assert "423" in project.refused("plan", "-lock=false", **addresses(whole, wrong))

    project.ok("init", "-reconfigure", **addresses(whole, state))
    assert project.run("plan", "-detailed-exitcode", **addresses(whole, state)).code == 0


def test_a_typing_error_in_a_workspaces_name_is_told_in_full_and_makes_none(
    whole: Team, state: str, new_project: NewProject
) -> None:
    whole.declare(state)
    token = whole.token("writer")
    new_project.applied(whole, None, token, main=SUBNET, backend=cloud(whole, state))
    typo = new_project(whole, None, token, main=SUBNET, backend=cloud(whole, f"{state}x"))

    with whole.unchanged():
        said = " ".join(typo.refused("init").split())
        assert f"There is no state '{state}x'" in said
        assert state in said.partition("The nearest names are: ")[2]
        assert f"'holdfast state declare {state}x'" in said

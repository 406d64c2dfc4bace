"""Terraform that signs in by itself: the credentials helper for `cloud {}`, and `holdfast run` for `http`."""

import json
import ssl
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from unittest import mock
from urllib.parse import unquote

import pytest

from holdfast.identity import principals
from local_aws.server import REGION, Certificates
from local_aws.terraform import Terraform
from tests.support import api_stub, aws_caller
from tests.support.access_records import add_aws_trust, add_oidc_trust
from tests.support.api_stub import Reply
from tests.support.aws_caller import AwsCaller
from tests.support.http_client import Credentials
from tests.support.oidc import Issuer
from tests.support.project import NewProject, Project, backend, cloud
from tests.support.team import HOLDFAST, Team
from tests.support.waiting import HANGS

MAIN = 'resource "terraform_data" "subnet" { input = "10.0.1.0/24" }\n'


@pytest.fixture
def person(strict: Team) -> AwsCaller:
    """A person with an IAM role that may write below `people/`."""
    caller = aws_caller.assume(strict, "helped", session="ada@example.com")
    add_aws_trust(strict, caller.role_name, "people/*")
    return caller


@pytest.fixture
def project(strict: Team, new_project: NewProject) -> Project:
    """A project whose environment has no credentials, and a profile with the API's address."""
    made = new_project(strict, None, Credentials("", ""), main=MAIN)
    for name in list(made.environment):
        if name.startswith("TF_TOKEN_") or name in ("TF_HTTP_USERNAME", "TF_HTTP_PASSWORD"):
            del made.environment[name]
    made.environment["AWS_CA_BUNDLE"] = strict.environment["AWS_CA_BUNDLE"]
    configure(made, "--address", strict.gateway.address)
    return made


def configure(project: Project, *arguments: str) -> None:
    subprocess.run([HOLDFAST, "configure", *arguments], env=project.environment, check=True, timeout=HANGS)


def add_aws_profile(project: Project, caller: AwsCaller) -> None:
    """Write the AWS profile `platform`, as `aws configure` does."""
    folder = Path(project.environment["HOME"], ".aws")
    folder.mkdir()
    keys = {name.lower(): value for name, value in caller.environment.items()}
    lines = [f"{name} = {value}" for name, value in {**keys, "region": REGION}.items()]
    (folder / "config").write_text("\n".join(["[profile platform]", *lines, ""]))


def writers(team: Team, state: str) -> set[str]:
    return {unquote(version.metadata["written-by"]) for version in team.versions(state)}


def test_a_ci_job_works_with_cloud_and_its_id_token_and_leaves_no_session(
    strict: Team, state: str, project: Project, issuer: Issuer
) -> None:
    name = state.replace("/", "-")
    add_oidc_trust(strict, issuer, f"ci/{name}", claims={"environment": name})
    project.write(backend=cloud(strict, f"ci/{name}"))
    configure(project, "helper", "--oidc")
    token = issuer.token({"environment": name}, subject="job")

    with strict.gateway.recording() as exchanges:
        for command in (["init"], ["plan"], ["apply", "-auto-approve"], ["output"], ["state", "list"]):
            project.ok(*command, HOLDFAST_ID_TOKEN=token)

    assert [each.target for each in exchanges].count("/sessions") == 5  # one for each process
    assert not Path(project.environment["HOME"], ".cache", "holdfast").exists()
    assert writers(strict, f"ci/{name}") == {principals.principal(f"oidc:{issuer.address}#job")}


def test_a_person_works_with_cloud_and_an_aws_profile(
    strict: Team, state: str, project: Project, person: AwsCaller
) -> None:
    name = f"people/{state.replace('/', '-')}"
    add_aws_profile(project, person)
    project.write(backend=cloud(strict, name))
    configure(project, "helper", "--aws-profile", "platform")
    forward = strict.gateway.forward

    def signed_again(
        method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        """Pass on the request. The local AWS accepts signatures for its own address alone."""
        if target != aws_caller.PATH:
            return forward(method, target, headers, body)
        assert f"Credential={person.credentials.access_key}/" in headers["authorization"]
        answer = person.ask_for_session(strict, body)
        return answer.status, {}, answer.body

    signed_in = mock.patch.object(strict.gateway, "forward", signed_again)
    with signed_in, strict.gateway.recording() as exchanges:
        for command in (["init"], ["apply", "-auto-approve"], ["state", "list"]):
            project.ok(*command)
        assert [each.target for each in exchanges].count(aws_caller.PATH) == 1
        project.ok("logout", strict.host)
        project.ok("destroy", "-auto-approve")

    assert [each.target for each in exchanges].count(aws_caller.PATH) == 2
    assert writers(strict, name) == {principals.principal(person.arn)}


def test_run_gives_the_http_backend_a_session_of_an_aws_profile(
    strict: Team, state: str, project: Project, person: AwsCaller
) -> None:
    name = f"people/{state}"
    add_aws_profile(project, person)
    project.write(backend=backend(strict, name))
    # The local AWS checks a signature for its own address, so this request cannot go through the proxy.
    sign_in = ("--address", strict.direct_address, "--aws-profile", "platform", "--duration", "1h")
    run = Terraform("run", (str(HOLDFAST), "run", *sign_in, "--", *project.terraform.argv))
    signed_in = replace(project, terraform=run)

    signed_in.ok("init")
    assert signed_in.run("plan", "-detailed-exitcode").code == 2
    signed_in.ok("apply", "-auto-approve")

    assert signed_in.run("plan", "-detailed-exitcode").code == 0
    assert json.loads(signed_in.ok("state", "pull").out)["resources"]
    assert "auth" in project.refused("plan")
    assert writers(strict, name) == {principals.principal(person.arn)}


def test_terraform_logs_why_the_helper_could_not_sign_in_and_other_hosts_get_nothing(
    strict: Team, state: str, project: Project, issuer: Issuer, certificates: Certificates
) -> None:
    project.write(backend=cloud(strict, f"ci/{state.replace('/', '-')}"))
    configure(project, "helper", "--oidc")

    stranger = issuer.token({"repository": "mallory/network"})
    assert "Required token could not be found" in project.refused("init", HOLDFAST_ID_TOKEN=stranger)
    logged = project.refused("init", HOLDFAST_ID_TOKEN=stranger, TF_LOG="warn")
    assert "holdfast: The API does not accept the ID token" in logged

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificates.cert, certificates.key)
    with api_stub.running(tls) as registry, strict.gateway.recording() as exchanges:
        registry.reply(
            Reply(200, b'{"modules.v1": "/modules/"}', {"Content-Type": "application/json"}), Reply(404)
        )
        host = registry.address.removeprefix("https://")
        project.write(backend="", other=f'module "other" {{\n  source = "{host}/a/b/c"\n}}\n')
        project.refused("init", HOLDFAST_ID_TOKEN=issuer.token())

    assert "/modules/a/b/c/versions" in [asked.path for asked in registry.asked]
    assert not any("authorization" in asked.headers for asked in registry.asked)
    assert exchanges == []

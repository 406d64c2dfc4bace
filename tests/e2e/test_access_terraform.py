"""Two credentials at work with every installed Terraform."""

import json
from urllib.parse import unquote

from holdfast.identity import principals
from tests.support import access_commands
from tests.support.access_records import add_oidc_trust
from tests.support.http_client import Credentials
from tests.support.oidc import Issuer
from tests.support.project import NewProject, cloud, reads_output
from tests.support.team import Team

NETWORK = """
resource "terraform_data" "subnet" {
  input = "10.0.1.0/24 and a secret of the resource"
}

output "subnet_id" {
  value = "subnet-1"
}
"""

SUBJECT = "repo:acme/network:ref:refs/heads/main"


def test_a_configuration_with_cloud_reads_outputs_that_its_own_token_does_not(
    strict: Team, state: str, new_project: NewProject
) -> None:
    other, own = f"network/{state}", f"app/{state.replace('/', '-')}"
    new_project.applied(strict, other, strict.token("writer"), main=NETWORK)
    reader = strict.new_token("outputs", other)
    writer = strict.new_token("writer", own)
    project = new_project(strict, None, writer)
    project.environment.update(TF_HTTP_USERNAME=reader.username, TF_HTTP_PASSWORD=reader.password)
    project.write(backend=cloud(strict, own), main=reads_output(strict, other, "subnet_id"))

    project.ok("init")
    project.ok("apply", "-auto-approve")

    assert json.loads(project.ok("output", "-json").out)["subnet_id"]["value"] == "subnet-1"
    assert reader.password.encode() not in (strict.current(own) or reader.password.encode())
    assert strict.client_with(writer).outputs(other).error == (403, "not_allowed")


def test_a_ci_job_applies_with_its_id_token_and_with_a_session_and_both_are_the_same_caller(
    strict: Team, state: str, new_project: NewProject, issuer: Issuer
) -> None:
    environment = {"environment": state}
    add_oidc_trust(strict, issuer, f"network/{state}/*", claims=environment)
    token = issuer.token(environment, subject=SUBJECT)

    new_project.applied(strict, f"network/{state}/one", Credentials("oidc", token), main=NETWORK)
    session = access_commands.login(strict, "--oidc", environment={"HOLDFAST_ID_TOKEN": token})
    new_project.applied(strict, f"network/{state}/two", session, main=NETWORK)

    principal = principals.principal(f"oidc:{issuer.address}#{SUBJECT}")
    for name in ("one", "two"):
        [version] = strict.versions(f"network/{state}/{name}")
        assert unquote(version.metadata["written-by"]) == principal
    assert session.username.startswith("session-")

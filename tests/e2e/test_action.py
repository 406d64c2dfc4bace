"""The GitHub Action against a deployed API: a real Terraform works with what it exports, and nothing else."""

from pathlib import Path
from urllib.parse import unquote

import pytest

from holdfast.identity import principals
from tests.support import access_commands
from tests.support.action import Job, github, masked, variables
from tests.support.oidc import NETWORK, Issuer
from tests.support.project import NewProject, Project, backend, clean_environment
from tests.support.team import Team

MAIN = """
resource "terraform_data" "subnet" { input = "10.0.1.0/24" }
"""


def test_a_job_applies_with_http_and_with_cloud_and_its_log_has_no_secret(
    strict: Team, issuer: Issuer, state: str, one_project: NewProject, tmp_path: Path
) -> None:
    claims = [argument for claim in NETWORK.items() for argument in ("--claim", "=".join(claim))]
    access_commands.holdfast(
        *(strict, "trust", "create", "of-the-action", "--role", "writer", "--scope", f"{state}-*"),
        *("--issuer", issuer.address, "--audience", strict.gateway.address, *claims),
    )
    authority = {"SSL_CERT_FILE": str(one_project.ca)}
    with github(issuer) as environment:
        job = Job(tmp_path, {**environment, **authority})
        done = job.run(address=strict.gateway.address)
    assert done.returncode == 0, done.stdout

    exported = variables(job.exports.read_text())
    host = backend(strict, f"{state}-cloud", "--cloud").partition("# host ")[2]
    (tmp_path / "cloud.tfrc").write_text("host " + host.replace("\n# ", "\n"))
    for kind, options in (("http", ()), ("cloud", ("--cloud",))):
        folder = tmp_path / kind
        folder.mkdir()
        project = Project(
            one_project.terraform, folder, clean_environment(tmp_path, one_project.ca, exported)
        )
        project.environment["TF_CLI_CONFIG_FILE"] = str(tmp_path / "cloud.tfrc")
        project.write(main=MAIN, backend=backend(strict, f"{state}-{kind}", *options))
        project.ok("init")
        project.ok("apply", "-auto-approve")

    subject = f"oidc:{issuer.address}#repo:acme/network:ref:refs/heads/main"
    for kind in ("http", "cloud"):
        [version] = strict.versions(f"{state}-{kind}")
        assert unquote(version.metadata["written-by"]) == principals.principal(subject)
    secret = exported["TF_HTTP_PASSWORD"]
    assert masked(done.stdout)[1:] == [secret]
    shown = [line for line in done.stdout.splitlines() if not line.startswith("::add-mask::")]
    assert shown == [line for line in shown if line.startswith(f"Signed in at {strict.gateway.address} as ")]
    assert not [line for line in shown for each in masked(done.stdout) if each in line]


@pytest.mark.parametrize("audience", ["", "elsewhere"])
def test_a_job_that_no_trust_record_is_for_is_refused_with_what_its_token_says(
    strict: Team, one_project: NewProject, tmp_path: Path, audience: str
) -> None:
    with Issuer() as stranger, github(stranger) as environment:
        job = Job(tmp_path, {**environment, "SSL_CERT_FILE": str(one_project.ca)})
        done = job.run(address=strict.gateway.address, audience=audience)

    assert done.returncode == 1
    [line] = [line for line in done.stdout.splitlines() if not line.startswith("::add-mask::")]
    assert line.startswith("::error::The API refuses the ID token: ")
    assert f"issuer {stranger.address}, audience {audience or strict.gateway.address}, subject repo:" in line
    assert not job.exports.exists()

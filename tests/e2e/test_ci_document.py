"""docs/use/ci.md against a deployed API: each pipeline of the page runs as it is, with a real Terraform."""

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from shlex import join

import pytest

from holdfast.access import Role
from local_aws.server import Certificates
from local_aws.terraform import terraforms
from tests.support import access_commands, aws_caller
from tests.support.access_records import add_aws_trust
from tests.support.action import github, masked
from tests.support.ci_document import (
    GITLAB_MAIN,
    MERGE_REQUEST,
    PULL_REQUEST,
    PUSH,
    TARGET,
    Machine,
    blocks,
    pipeline,
    trust_commands,
)
from tests.support.oidc import Issuer
from tests.support.project import backend, clean_environment, cloud
from tests.support.team import HOLDFAST, Team

MAIN = """
resource "terraform_data" "subnet" { input = "10.0.1.0/24" }
"""
APPLIED = "Apply complete! Resources: 1 added, 0 changed, 0 destroyed."
PLANNED = "Plan: 1 to add, 0 to change, 0 to destroy."
Use = Callable[[Machine, Team, str], None]
STATES = "ci-page"
"""In place of `network`, which other tests use."""


@pytest.fixture(scope="module")
def ci(strict: Team) -> Iterator[Issuer]:
    """An issuer in place of GitHub and GitLab, which the trust records of the page name."""
    with Issuer() as issuer:
        for command in trust_commands():
            words = [word.replace("network/", f"{STATES}/") for word in command]
            words[words.index("--issuer") + 1] = issuer.address
            access_commands.holdfast(strict, *words, "--audience", strict.gateway.address)
        yield issuer


@pytest.fixture
def machine(strict: Team, certificates: Certificates, tmp_path: Path) -> Machine:
    """A machine with Terraform, curl and jq, and a configuration without a backend block."""
    ca = certificates.ca
    environment = clean_environment(tmp_path, ca, {"CURL_CA_BUNDLE": str(ca), "AWS_CA_BUNDLE": str(ca)})
    machine = Machine(tmp_path, strict.gateway.address, environment)
    machine.install("terraform", f'exec {join(terraforms()[0].argv)} "$@"')
    (tmp_path / "main.tf").write_text(MAIN)
    return machine


@pytest.fixture
def name(state: str) -> str:
    """The name of a state within the scope of the trust records."""
    return f"{STATES}/{state.rpartition('/')[2]}"


def uses_http(machine: Machine, team: Team, name: str) -> None:
    (machine.folder / "backend.tf").write_text(backend(team, name))


def uses_cloud(machine: Machine, team: Team, name: str) -> None:
    """Write a `cloud` block, with the name of the host for an API that is not at a root or has a port."""
    block = backend(team, name, "--cloud")
    (machine.folder / "backend.tf").write_text(block)
    host = block.partition("# host ")[2]
    (machine.folder / "cloud.tfrc").write_text("host " + host.replace("\n# ", "\n"))
    machine.environment["TF_CLI_CONFIG_FILE"] = str(machine.folder / "cloud.tfrc")


def uses_cloud_by_host(machine: Machine, team: Team, name: str) -> None:
    """Write a `cloud` block with the API's own host, as on AWS."""
    (machine.folder / "backend.tf").write_text(cloud(team, name))


def assert_applied(done: subprocess.CompletedProcess[str], team: Team, name: str) -> None:
    assert done.returncode == 0, done.stdout
    assert APPLIED in done.stdout
    assert b"10.0.1.0/24" in (team.current(name) or b"")
    assert team.lock(name) is None


def assert_planned(done: subprocess.CompletedProcess[str], team: Team, name: str) -> None:
    assert done.returncode == 0, done.stdout
    assert PLANNED in done.stdout
    assert team.versions_and_markers(f"states/{name}.tfstate.tflock") == (0, 0)


@pytest.mark.parametrize(
    ("heading", "use"),
    [
        ("### Apply on a push", uses_http),
        ("### Apply on a push", uses_cloud),
        ("### Without the action", uses_http),
        ("### Without the action", uses_cloud_by_host),
        ("### With the command", uses_http),
        ("### With the command", uses_cloud),
    ],
)
def test_a_push_applies(
    strict: Team, ci: Issuer, machine: Machine, name: str, heading: str, use: Use
) -> None:
    use(machine, strict, name)
    machine.install_pip()

    with github(ci, PUSH) as variables:
        done = machine.run_github(pipeline(heading), variables)

    assert_applied(done, strict, name)
    shown = [line for line in done.stdout.splitlines() if not line.startswith("::add-mask::")]
    assert not [line for line in shown for secret in masked(done.stdout) if secret in line]


def test_a_job_of_another_event_on_main_does_not_sign_in(ci: Issuer, machine: Machine) -> None:
    with github(ci, TARGET) as variables:
        done = machine.run_github(pipeline("### Apply on a push"), variables)

    assert done.returncode == 1
    assert "The API refuses the ID token" in done.stdout


@pytest.mark.parametrize("use", [uses_http, uses_cloud], ids=["http", "cloud"])
def test_a_pull_request_plans_without_a_lock_and_cannot_apply(
    strict: Team, ci: Issuer, machine: Machine, name: str, use: Use
) -> None:
    if use is uses_cloud:  # a workspace exists before a pull request reads it
        assert strict.cloud_client("writer").create(name).status == 201
    use(machine, strict, name)

    with github(ci, PULL_REQUEST) as variables:
        done = machine.run_github(pipeline("### Plan a pull request"), variables)
        refused = machine.run_github(pipeline("### Apply on a push"), variables)

    assert_planned(done, strict, name)
    assert refused.returncode == 1
    assert strict.current(name) is None


def test_each_environment_applies_to_its_own_state_alone(strict: Team, ci: Issuer, machine: Machine) -> None:
    (machine.folder / "backend.tf").write_text('terraform {\n  backend "http" {}\n}\n')
    for environment in ("dev", "prod"):
        printed = backend(strict, f"{STATES}/{environment}", "--tfbackend")
        (machine.folder / f"{environment}.tfbackend").write_text(printed)
    workflow = pipeline("### One job per environment")
    [job] = workflow["jobs"].values()
    assert job["environment"] == "${{ matrix.environment }}"

    for environment in job["strategy"]["matrix"]["environment"]:
        with github(ci, {**PUSH, "environment": environment}) as variables:
            done = machine.run_github(workflow, variables, environment=environment)
        assert_applied(done, strict, f"{STATES}/{environment}")
        machine.type("rm -r .terraform")
    with github(ci, {**PUSH, "environment": "dev"}) as variables:
        refused = machine.run_github(workflow, variables, environment="prod")

    assert refused.returncode == 1
    assert "Apply complete" not in refused.stdout


def test_gitlab_plans_a_merge_request_and_applies_on_main(
    strict: Team, ci: Issuer, machine: Machine, name: str
) -> None:
    uses_http(machine, strict, name)
    audience = {"aud": strict.gateway.address}
    merge_request = ci.token({**MERGE_REQUEST, **audience})

    assert_planned(machine.run_gitlab("plan", merge_request), strict, name)
    assert machine.run_gitlab("apply", merge_request).returncode == 1
    assert strict.current(name) is None
    assert_applied(machine.run_gitlab("apply", ci.token({**GITLAB_MAIN, **audience})), strict, name)


@pytest.mark.parametrize("number", [0, 1], ids=["curl", "command"])
def test_a_job_of_any_issuer_applies(
    strict: Team, ci: Issuer, machine: Machine, name: str, number: int
) -> None:
    script = blocks("## Any other OIDC issuer", "sh")[number]
    uses_http(machine, strict, name)
    machine.install("holdfast", f'exec {HOLDFAST} "$@"')
    id_token = ci.token({**PUSH, "aud": strict.gateway.address})

    done = machine.type(script, ID_TOKEN=id_token, HOLDFAST_ADDRESS=strict.gateway.address)

    assert_applied(done, strict, name)


def test_atlantis_signs_in_with_the_role_of_its_server(strict: Team, machine: Machine, name: str) -> None:
    server = aws_caller.assume(strict, "atlantis")
    add_aws_trust(strict, server.role_name, f"{STATES}/*", role=Role.WRITER)
    uses_http(machine, strict, name)
    machine.install("holdfast", f'exec {HOLDFAST} "$@"')
    machine.environment |= {**server.environment, "HOLDFAST_ADDRESS": strict.direct_address}
    document = pipeline("## Atlantis", "sign-in.md")
    assert {repository["workflow"] for repository in document["repos"]} == document["workflows"].keys()
    commands = {
        "init": "terraform init -input=false",
        "plan": "terraform plan -input=false -out plan",
        "apply": "terraform apply plan",
    }

    log = ""
    for stage in document["workflows"]["holdfast"].values():
        variables: dict[str, str] = {}
        for step in stage["steps"]:
            script = commands[step] if isinstance(step, str) else step["multienv"]
            done = machine.type(script, "sh", **variables)
            assert done.returncode == 0, done.stdout
            if isinstance(step, str):
                log += done.stdout
            else:
                assert re.fullmatch(r"\w+=[^,\s]+,\w+=[^,\s]+\n", done.stdout)
                variables = dict(pair.split("=", 1) for pair in done.stdout.strip().split(","))

    assert_applied(subprocess.CompletedProcess([], 0, log), strict, name)

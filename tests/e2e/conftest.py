"""A local AWS with IAM and TLS, the deployed teams of teams.toml, and a proxy with AWS's limits.

Every worker of pytest-xdist has its own.
"""

import itertools
import os
import re
import ssl
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from holdfast.access import Role
from holdfast_cdk.config import load_teams
from holdfast_cdk.functions import ROLES
from local_aws.clients import s3_client
from local_aws.deploy import bootstrap, deploy
from local_aws.home import DeployedTeam
from local_aws.server import Certificates, LocalAws
from local_aws.terraform import Terraform, terraforms
from tests.support.access_records import add_oidc_trust
from tests.support.aws_gateway import AwsGateway
from tests.support.certificates import create_certificates
from tests.support.deployed import DeployedRole, client, stack
from tests.support.free_port import free_port
from tests.support.oidc import Issuer
from tests.support.operators import NewOperator, Operator
from tests.support.permissions_judged import Roles, judge
from tests.support.project import NewProject
from tests.support.team import Team

TEAMS_FILE = Path(__file__).with_name("teams.toml")
TEAMS = tuple(tomllib.loads(TEAMS_FILE.read_text())["teams"])
TEAMS_AND_ROLES = tuple(
    (team.name, spec.name) for team in load_teams(TEAMS_FILE) for spec in ROLES if team.has(spec)
)
"""Each team's name with the name of each of its roles."""


LONGEST_FIRST = (
    *("test_upgrade", "test_local_aws_front_door", "test_cloud_commands", "test_cloud_moving"),
    *("test_cloud_locking", "test_recorded"),
    *("test_benchmarks", "test_operate", "test_access_revocation", "test_speed_and_size"),
    "test_terraform_locking",
    *("test_terraform_commands", "test_doctor", "test_isolation"),
    "test_documented_blocks",
)
"""The files with which the two workers begin. The others take some seconds each, and fill the rest."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first."""
    ranks = {name: rank for rank, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: ranks.get(item.path.stem, len(ranks)))


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return create_certificates(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="session")
def aws(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[LocalAws]:
    folder = tmp_path_factory.mktemp("aws")
    calls = folder / "calls.jsonl"
    with LocalAws(free_port(), folder / "data", iam=True, tls=certificates, calls=calls) as running:
        bootstrap(running)
        yield running


@pytest.fixture(scope="session")
def deployed(aws: LocalAws) -> tuple[DeployedTeam, ...]:
    for topic in {team.notify.topic for team in load_teams(TEAMS_FILE) if team.notify}:
        client(aws, "sns").create_topic(Name=topic.rpartition(":")[2])
    # The local AWS chooses the ID of a key.
    [given] = {team.key for team in load_teams(TEAMS_FILE) if team.key.startswith("arn:")}
    made = client(aws, "kms").create_key()["KeyMetadata"]["Arn"]
    teams_file = aws.data_dir / "teams.toml"
    teams_file.write_text(TEAMS_FILE.read_text().replace(given, made))
    return deploy(aws, list(TEAMS), teams_file=teams_file)


@pytest.fixture(scope="session")
def roles(aws: LocalAws, deployed: tuple[DeployedTeam, ...]) -> Roles:
    stacks = {team.name: stack(aws, team.name) for team in deployed}
    return {
        (team, name): DeployedRole(aws, stacks[team], name)
        for team, name in TEAMS_AND_ROLES
        if team in stacks
    }


@pytest.fixture(scope="session")
def teams(
    aws: LocalAws, certificates: Certificates, deployed: tuple[DeployedTeam, ...], roles: Roles
) -> Iterator[dict[str, Team]]:
    """The deployed teams of teams.toml, by name. The team `strict` has a token of every role.

    At the end it is checked that the functions' roles allow every call that the tests caused.
    """
    s3 = s3_client(aws)
    found = {}
    for outputs in deployed:
        found[outputs.name] = Team(
            name=outputs.name,
            gateway=AwsGateway(
                outputs.api_address, cert=(certificates.cert, certificates.key), ca=certificates.ca
            ),
            direct_address=outputs.api_address,
            bucket=outputs.bucket_name,
            staging_bucket=stack(aws, outputs.name).physical_ids["StagingBucket"],
            s3=s3,
            tls=ssl.create_default_context(cafile=str(certificates.ca)),
            environment={"PATH": os.environ["PATH"], **aws.environment()},
        )
    with ExitStack() as gateways:
        for team in found.values():
            gateways.enter_context(team.gateway)
        for role in Role:
            found["strict"].token(role)
        yield found
    judge(aws, roles)


@pytest.fixture(scope="session")
def strict(teams: dict[str, Team]) -> Team:
    """The team with the defaults: a write needs the lock."""
    return teams["strict"]


@pytest.fixture(scope="session")
def issuer(strict: Team) -> Iterator[Issuer]:
    """An issuer. An ID token of the repository `NETWORK` gives a writer of `ci/*` in `strict`."""
    with Issuer() as running:
        add_oidc_trust(strict, running, "ci/*")
        yield running


@pytest.fixture(scope="session")
def loose(teams: dict[str, Team]) -> Team:
    """The team that accepts writes without a lock."""
    return teams["loose"]


@pytest.fixture(scope="session")
def kept(teams: dict[str, Team]) -> Team:
    """The team with retention of every state version."""
    return teams["kept"]


@pytest.fixture(scope="session")
def whole(teams: dict[str, Team]) -> Team:
    """The team whose bucket puts every object under retention, and whose names must be declared."""
    return teams["whole"]


@pytest.fixture(scope="session")
def watched(teams: dict[str, Team]) -> Team:
    """The team whose operators are notified, with a KMS key of its own and an archive of the audit trail."""
    return teams["watched"]


_NUMBERS = itertools.count(1)


@pytest.fixture
def state(request: pytest.FixtureRequest) -> str:
    """A state name that nobody has used."""
    words = re.sub("[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower()).strip("-")
    return f"e2e/{next(_NUMBERS)}-{words[:60].strip('-')}"


@pytest.fixture(params=terraforms(), ids=lambda terraform: terraform.name)
def terraform(request: pytest.FixtureRequest) -> Terraform:
    """Every installed Terraform and OpenTofu, one after another."""
    found: Terraform = request.param
    return found


@pytest.fixture
def new_project(terraform: Terraform, certificates: Certificates, tmp_path: Path) -> NewProject:
    return NewProject(terraform, tmp_path, certificates.ca)


@pytest.fixture
def one_project(certificates: Certificates, tmp_path: Path) -> NewProject:
    """Makes projects of only one Terraform, for tests that do not depend on its version."""
    return NewProject(terraforms()[0], tmp_path, certificates.ca)


@pytest.fixture
def operator(certificates: Certificates, tmp_path: Path) -> NewOperator:
    def make(team: Team, role: str, *scope: str) -> Operator:
        token = team.token(role, *scope)
        return Operator(
            f"token:{token.username}",
            {
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path),
                "AWS_CA_BUNDLE": str(certificates.ca),  # the certificate of this local AWS is its own
                "HOLDFAST_ADDRESS": team.gateway.address,
                "TF_HTTP_USERNAME": token.username,
                "TF_HTTP_PASSWORD": token.password,
            },
        )

    return make

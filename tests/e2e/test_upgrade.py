"""A team upgrades from the release before, and goes back, while its clients write.

The stack, the functions and the command of the release before are made from its sources. Everything runs on
the local AWS. What the tests do is what docs/operate/upgrading.md says.
"""

import json
import os
import ssl
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Final

import pytest

from local_aws.clients import s3_client
from local_aws.deploy import bootstrap, deploy, modules_of
from local_aws.server import ROOT, Certificates, LocalAws
from local_aws.terraform import terraforms
from tests.support import documents, oidc, recorded, release_before
from tests.support.access_records import exchange, session_of
from tests.support.aws_gateway import AwsGateway
from tests.support.cloud_client import CloudClient
from tests.support.deployed import Stack, stack
from tests.support.every_verb import MAIN, REASON, Verbs, new_token, use_verbs, write
from tests.support.free_port import free_port
from tests.support.http_client import Credentials, Response
from tests.support.id_tokens import AUDIENCE
from tests.support.oidc import Issuer
from tests.support.operators import Operator
from tests.support.project import NewProject, Project, backend, cloud
from tests.support.team import HOLDFAST, Team
from tests.support.waiting import HANGS, wait_until

NAME: Final = "upgraded"
SETTINGS: Final = f'[teams.{NAME}]\nkey = "kms"\nhistory = {{ days = 365, keep_versions = 100 }}\n'
COMMANDS: Final = "commands.json"
NEED_THE_STACK: Final[dict[str, str]] = {}
"""Commands of this version that need its stack, and how the line begins that says so."""
LACKS: Final[dict[str, str]] = {}
"""The beginning of what the command of the release before says of commands that it lacks."""
BROKEN: Final[dict[str, list[str]]] = {}
"""Members that the JSON of a command no longer has; CHANGELOG.md says so."""
WITH_DATA: Final = ("AWS::S3::Bucket", "AWS::ApiGatewayV2::Api")
"""Types of resources without which a team loses data or its address, also where a stack deletes them."""
REPLACES: Final = ("replace", "replaced", "replacement", "destroy", "orphan")
"""The last word of a line of `cdk diff` about a resource that does not stay."""
RETRIES: Final = 2
"""How often Terraform's `backend "http"` sends a request again."""
PACE: Final = 0.3
"""Seconds between the writes of a client, which leave the processor to the deployment."""

APPLE: Final = 'resource "terraform_data" "apple" { input = "red" }\n'
PEAR: Final = 'resource "terraform_data" "pear" { input = "green" }\n'


@dataclass(frozen=True)
class Release:
    """A release: its sources, how its command is started, and other names that its command has."""

    version: str
    sources: Path
    command: Sequence[str]
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Site:
    """The team and what it has installed. `home` is the home of its people."""

    aws: LocalAws
    team: Team
    issuer: Issuer
    home: Path

    def operator(self, release: Release, credentials: Credentials) -> Operator:
        """Return a person with the command of a release, who signs in to the API."""
        signs_in = {
            "HOLDFAST_ADDRESS": self.team.gateway.address,
            "TF_HTTP_USERNAME": credentials.username,
            "TF_HTTP_PASSWORD": credentials.password,
        }
        return self._person(release, f"token:{credentials.username}", signs_in)

    def admin(self, release: Release) -> Operator:
        """Return a person with the command of a release, and with AWS credentials."""
        return self._person(release, "", {**self.team.environment, "HOLDFAST_TEAM": NAME})

    def _person(self, release: Release, principal: str, environment: Mapping[str, str]) -> Operator:
        own = {"PATH": os.environ["PATH"], "HOME": str(self.home), **modules_of(release.sources)}
        trusts = {"AWS_CA_BUNDLE": self.team.environment["AWS_CA_BUNDLE"]}
        return Operator(principal, {**own, **trusts, **environment}, release.command, release.names)


# --- what a team has ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class InPlace:
    """Things that a team has put in place with the command of a release, below a name.

    `to_come` are the versions of the deployments after that. Each has a held lock and a frozen pattern.
    """

    name: str
    maintainer: Credentials
    session: Credentials
    body: bytes
    locks: Mapping[str, bytes]

    @property
    def state(self) -> str:
        return f"{self.name}/app"

    def held(self, version: str) -> str:
        return f"{self.name}/held-{version}"

    def frozen(self, version: str) -> str:
        return f"{self.name}/frozen-{version}"

    @property
    def claims(self) -> Mapping[str, str]:
        return {"repository": f"acme/{self.name}"}


def put_in_place(site: Site, release: Release, name: str, to_come: Sequence[str]) -> InPlace:
    """Make a token, a trust record, a session, states, locks and freezes with a release's command and API."""
    everything = ("--scope", f"{name}/*", "--json")
    admin = site.admin(release)
    made = json.loads(admin.ok("token", "create", "--role", "maintainer", "--owner", "Béa", *everything))
    credentials = Credentials(made["id"], made["secret"])
    claims = {"repository": f"acme/{name}"}
    condition = ("--issuer", site.issuer.address, "--audience", AUDIENCE, "--claim", *_claims(claims))
    admin.ok("trust", "create", name, "--role", "writer", *everything, *condition)
    session = session_of(exchange(site.team, oidc.bearer(site.issuer.token(claims))))
    placed = InPlace(
        name,
        credentials,
        session,
        documents.state(2, content=name),
        {version: documents.lock_info() for version in to_come},
    )
    client = site.team.client_with(session)
    write(client, placed.state, documents.state(1), placed.body)
    maintainer = site.operator(release, credentials)
    for version, info in placed.locks.items():
        assert client.lock(placed.held(version), info).status == 200
        write(client, f"{placed.frozen(version)}/app", documents.state())
        maintainer.ok("state", "freeze", f"{placed.frozen(version)}/*", "--reason", REASON)
    maintainer.ok("state", "declare", f"{name}/declared")
    return placed


def _claims(claims: Mapping[str, str]) -> Iterator[str]:
    return (f"{name}={value}" for name, value in claims.items())


def check_in_place(site: Site, placed: InPlace, release: Release) -> None:
    """Check that everything works which was put in place, after a deployment of any release."""
    team, version = site.team, release.version
    token, session = team.client_with(placed.maintainer), team.client_with(placed.session)
    signed_in = team.client_with(session_of(exchange(team, oidc.bearer(site.issuer.token(placed.claims)))))
    for client in (token, session, signed_in):
        assert client.read(placed.state).body == placed.body
        assert client.read("others/app").status == 403

    held, info = placed.held(version), placed.locks[version]
    other = documents.lock_info(who="bob@desk")
    refused = signed_in.lock(held, other)
    assert (refused.status, refused.json()["ID"]) == (423, documents.lock_id(info)), refused
    assert signed_in.write(held, documents.state(), documents.lock_id(other)).status == 423
    assert session.write(held, documents.state(), documents.lock_id(info)).status == 200
    assert session.unlock(held, info).status == 200
    write(signed_in, held, documents.state(2))

    frozen = placed.frozen(version)
    refused = session.lock(f"{frozen}/app", other)
    assert refused.status == 423, refused
    assert REASON in refused.body.decode(), refused
    assert session.write(f"{frozen}/app", documents.state(2), documents.lock_id(other)).status == 423
    new = f"{frozen}/new"
    assert session.lock(new, other).status == 200
    assert session.write(new, documents.state(), documents.lock_id(other)).status == 423
    assert session.unlock(new, other).status == 200
    site.operator(release, placed.maintainer).ok("state", "unfreeze", f"{frozen}/*")
    write(signed_in, f"{frozen}/app", documents.state(2))


# --- clients that write meanwhile ---------------------------------------------------------------------


@dataclass
class Writer:
    """A client that writes one state. `acknowledged` are the documents, `refused` the other responses."""

    state: str
    write: Callable[[bytes], tuple[int, ...]]
    acknowledged: list[bytes] = field(default_factory=list)
    refused: list[tuple[int, ...]] = field(default_factory=list)

    @property
    def sent(self) -> int:
        return len(self.acknowledged) + len(self.refused)

    def run(self, ends: Event) -> None:
        """Write versions until the event, with statuses below 300."""
        while not ends.wait(PACE):
            body = documents.state(len(self.acknowledged) + 1)
            statuses = self.write(body)
            if max(statuses) < 300:
                self.acknowledged.append(body)
            else:
                self.refused.append(statuses)


def patiently(send: Callable[[], Response]) -> Response:
    """Send a request, and again after a 503, as Terraform does; the gateway sends one after 30 seconds."""
    answer = send()
    for _ in range(RETRIES):
        if answer.status != 503:
            break
        answer = send()
    return answer


def writers(team: Team, credentials: Credentials, states: str) -> list[Writer]:
    """Return clients that lock each time, that keep their lock, and that speak the protocol of `cloud {}`."""
    client, api = team.client_with(credentials), CloudClient(team.gateway.address, credentials, team.tls)
    kept = documents.lock_info()

    def locking(body: bytes) -> tuple[int, ...]:
        info, state = documents.lock_info(), f"{states}/locking"
        return (
            patiently(lambda: client.lock(state, info)).status,
            patiently(lambda: client.write(state, body, documents.lock_id(info))).status,
            patiently(lambda: client.unlock(state, info)).status,
        )

    def keeping(body: bytes) -> tuple[int, ...]:
        return (patiently(lambda: client.write(f"{states}/keeping", body, documents.lock_id(kept))).status,)

    def uploading(body: bytes) -> tuple[int, ...]:
        workspace = patiently(lambda: api.read(f"{states}/cloud")).json()["data"]["id"]
        return (
            patiently(lambda: api.lock(workspace)).status,
            patiently(lambda: api.write(workspace, body)).status,
            patiently(lambda: api.unlock(workspace)).status,
        )

    assert client.lock(f"{states}/keeping", kept).status == 200
    assert api.create(f"{states}/cloud").status == 201
    return [
        Writer(f"{states}/locking", locking),
        Writer(f"{states}/keeping", keeping),
        Writer(f"{states}/cloud", uploading),
    ]


@dataclass(frozen=True)
class Change:
    """A deployment over the stack of the other release, beside which clients wrote."""

    to: Release
    other: Release
    placed: Sequence[InPlace]
    projects: Sequence[Project]
    writers: Sequence[Writer]
    before: Stack
    after: Stack


# --- the deployments ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def before() -> Release:
    return Release(
        release_before.VERSION, release_before.sources(), release_before.COMMAND, release_before.NAMES
    )


@pytest.fixture(scope="module")
def now() -> Release:
    return Release("now", ROOT, (str(HOLDFAST),))


@pytest.fixture(scope="module")
def teams_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("upgraded") / "teams.toml"
    path.write_text(SETTINGS)
    return path


@pytest.fixture(scope="module")
def site(
    before: Release, teams_file: Path, certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """A team with the stack of the release before, on a local AWS of its own."""
    folder = tmp_path_factory.mktemp("upgrade")
    with ExitStack() as stays:
        aws = stays.enter_context(LocalAws(free_port(), folder / "data", iam=True, tls=certificates))
        bootstrap(aws)
        [deployed] = deploy(aws, [NAME], teams_file=teams_file, sources=before.sources)
        gateway = stays.enter_context(
            AwsGateway(deployed.api_address, cert=(certificates.cert, certificates.key), ca=certificates.ca)
        )
        team = Team(
            name=NAME,
            gateway=gateway,
            direct_address=deployed.api_address,
            bucket=deployed.bucket_name,
            staging_bucket=stack(aws, NAME).physical_ids["StagingBucket"],
            s3=s3_client(aws),
            tls=ssl.create_default_context(cafile=str(certificates.ca)),
            environment={"PATH": os.environ["PATH"], **aws.environment()},
        )
        yield Site(aws, team, stays.enter_context(Issuer()), folder)


@pytest.fixture(scope="module")
def of_before(site: Site, before: Release, now: Release) -> InPlace:
    """Put in place what the team has when the upgrade begins."""
    return put_in_place(site, before, "before", [now.version, before.version])


@pytest.fixture(scope="module")
def projects(site: Site, of_before: InPlace, certificates: Certificates) -> list[Project]:
    """Configurations that were applied before the upgrade, with `http` and `cloud {}`."""
    new = NewProject(terraforms()[0], site.home, certificates.ca)
    blocks = (backend(site.team, "before/http"), cloud(site.team, "before/hcp"))
    return [new.applied(site.team, None, of_before.maintainer, main=APPLE, backend=block) for block in blocks]


@pytest.fixture(scope="module", params=["upgrade", "way back"])
def change(
    request: pytest.FixtureRequest,
    site: Site,
    of_before: InPlace,
    projects: list[Project],
    before: Release,
    now: Release,
    teams_file: Path,
) -> Change:
    """Deploy this version over the release before, then the release before over this version."""
    if request.param == "upgrade":
        return deployed_beside_writers(site, teams_file, now, before, [of_before], projects)
    of_now = put_in_place(site, now, "after", [before.version])
    return deployed_beside_writers(site, teams_file, before, now, [of_before, of_now], projects)


def deployed_beside_writers(
    site: Site,
    teams_file: Path,
    to: Release,
    other: Release,
    placed: Sequence[InPlace],
    projects: Sequence[Project],
) -> Change:
    """Deploy the stack of a release, while clients write from before its beginning until after its end."""
    before = stack(site.aws, NAME)
    made = writers(site.team, placed[0].maintainer, f"{placed[0].name}/beside-{len(placed)}")
    ends = Event()
    with ThreadPoolExecutor(len(made)) as pool:
        running = [pool.submit(writer.run, ends) for writer in made]
        try:
            wait_for_writes(made, running)
            deploy(site.aws, [NAME], teams_file=teams_file, sources=to.sources)
            wait_for_writes(made, running)
        finally:
            ends.set()
    for one in running:
        one.result()
    return Change(to, other, placed, projects, made, before, stack(site.aws, NAME))


def wait_for_writes(made: Sequence[Writer], running: Sequence[Future[None]]) -> None:
    """Return when each writer has sent two more writes: the second one began after this was called."""
    counts = [writer.sent for writer in made]

    def are_sent() -> bool:
        assert not any(one.done() for one in running), [one.exception() for one in running if one.done()]
        return all(writer.sent >= count + 2 for writer, count in zip(made, counts, strict=True))

    wait_until(are_sent, "every client has written")


# --- what holds after each deployment ---------------------------------------------------------------


def test_every_write_beside_a_deployment_is_acknowledged_and_none_is_lost(site: Site, change: Change) -> None:
    assert {writer.state: writer.refused for writer in change.writers} == {
        writer.state: [] for writer in change.writers
    }
    stored = {
        writer.state: [one.body for one in site.team.versions(writer.state)] for writer in change.writers
    }
    assert stored == {writer.state: writer.acknowledged for writer in change.writers}


def test_locks_credentials_and_freezes_hold_after_a_deployment(site: Site, change: Change) -> None:
    for placed in change.placed:
        check_in_place(site, placed, change.to)


def test_configurations_go_on_after_a_deployment(change: Change) -> None:
    for project in change.projects:
        assert project.run("plan", "-detailed-exitcode").code == 0
        project.write(**{f"pear{len(change.placed)}": PEAR.replace("pear", f"pear{len(change.placed)}")})
        project.ok("apply", "-auto-approve")


def test_the_stack_keeps_its_address_its_buckets_and_its_key(change: Change) -> None:
    """The deployed resources are the same, but for the versions of functions and what a release adds."""
    before, after = change.before.physical_ids, change.after.physical_ids
    of_both = change.before.template["Resources"].keys() & change.after.template["Resources"].keys()
    of_data = {
        name
        for name, resource in change.before.template["Resources"].items()
        if resource.get("DeletionPolicy", "Delete") != "Delete" or resource["Type"] in WITH_DATA
    }

    assert of_data <= of_both
    assert {name: before[name] for name in of_both} == {name: after[name] for name in of_both}


@pytest.mark.parametrize("change", ["upgrade"], indirect=True)
def test_cloudformation_would_replace_no_resource(site: Site, change: Change, tmp_path: Path) -> None:
    """CDK knows which changes of a property replace a resource on AWS. The local AWS replaces nothing."""
    (tmp_path / "before.json").write_text(json.dumps(change.before.template))
    arguments = ("diff", "--no-color", "--app", site.aws.data_dir / "cdk.out")
    done = subprocess.run(
        [ROOT / "node_modules" / ".bin" / "cdk", *arguments, "--template", tmp_path / "before.json"],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "CDK_DISABLE_CLI_TELEMETRY": "true"},
        capture_output=True,
        text=True,
        check=True,
        timeout=HANGS,
    )
    told = [line for line in done.stderr.splitlines() + done.stdout.splitlines() if line.startswith("[")]
    permissions = [line for line in told if "AWS::Lambda::Permission" in line]
    changed = [line for line in told if "AWS::Lambda::Version" not in line and line not in permissions]

    assert any("AWS::Lambda::Function" in line for line in changed), done.stderr
    # CloudFormation adds permissions before it removes others, and the new ones allow the same.
    assert [line[:3] for line in permissions].count("[-]") <= [line[:3] for line in permissions].count("[+]")
    assert [line for line in changed if line.split()[-1] in REPLACES] == []


def test_the_command_of_the_other_release_works_and_prints_what_this_one_prints(
    site: Site, change: Change, now: Release
) -> None:
    """People upgrade their command later than the stack, or earlier."""
    name = f"{change.placed[0].name}/by-{len(change.placed)}"
    admin = site.admin(change.other)
    made, credentials = new_token(admin, name)
    lock = documents.lock_id(documents.lock_info())
    verbs = Verbs(name, lock, credentials.username, site.issuer.address, site.home)
    client = site.team.client_with(credentials)

    maintainer, only = site.operator(change.other, credentials), MAIN if change.other is now else ()
    said = [made, *use_verbs(maintainer, admin, client, verbs, only)]

    failed = {one.command: one.error.removeprefix("holdfast: ") for one in said if one.error}
    expected = NEED_THE_STACK if change.other is now else LACKS
    assert failed.keys() == expected.keys(), failed
    assert all(failed[command].startswith(line) for command, line in expected.items()), failed
    if change.other is not now:
        printed = recorded.by_kind((one.command, one.document) for one in said if not one.error)
        assert recorded.broken(printed, recorded.read(COMMANDS)) == BROKEN

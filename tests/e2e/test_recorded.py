"""Each answer, stored document and kept file has the members that were recorded; see `recorded`.

What must be recorded comes from the routes, the permissions of the roles, the events and the commands.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.router import Route
from holdfast import watching
from holdfast.access import Grant, Role
from holdfast.audit import Event
from holdfast.identity import tokens
from tests.conftest import GeneratedFile
from tests.support import audit_trail, aws_caller, documents, oidc, recorded
from tests.support.access_records import add_aws_trust, exchange
from tests.support.aws_gateway import METHODS, Exchange
from tests.support.aws_permissions import OBJECTS, STAGED
from tests.support.cloud_client import CloudClient, attributes, place
from tests.support.every_verb import FRUIT, Said, Verbs, new_token, use_verbs
from tests.support.http_client import Client, Credentials
from tests.support.id_tokens import AUDIENCE
from tests.support.oidc import Issuer
from tests.support.operators import Operator
from tests.support.routes import routes
from tests.support.team import Team
from tests.support.waiting import wait_until
from tests.unit.test_commands import COMMANDS

pytestmark = pytest.mark.generated

NAME: Final = "recorded"
EVENTS: Final = "events.json"
STATES: Final = ("/states/{name+}", "/outputs/{name+}", "/content/{name+}", "/download")
"""The ends of the routes that answer a GET with what a client wrote."""
OF_THE_TEAM: Final = ("audit", "token list", "trust list")
"""Commands that also print what other tests have made."""
UNRECORDED_COMMANDS: Final = {"recover": "it needs a replica; test_recovery.py reads its members"}
UNRECORDED_KINDS: Final = {"probes/*": "a state, which is removed at once"}
UNRECORDED_EVENTS: Final = frozenset(
    {
        *(Event.REPLICA_FAILED, Event.REQUEST_FAILED, Event.SIGN_IN_FAILED),  # they need a fault
        *(Event.SIGN_IN_ACCEPTED, Event.SIGN_IN_REFUSED),  # the gateway's cache decides on their number
    }
)


@dataclass
class Recording:
    """The answers that people of one team got, and the documents that they stored and kept."""

    said: list[Said] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    stored: list[tuple[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    files: list[tuple[str, Any]] = field(default_factory=list)


@pytest.fixture(scope="module")
def recording(watched: Team, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Use every protocol, command and kind of credentials, below a name that nobody else uses."""
    made, home = Recording(), tmp_path_factory.mktemp("recorded")
    environment = {**watched.environment, "HOME": str(home), "HOLDFAST_TEAM": watched.name}
    admin = Operator("", environment)
    before = versions(watched, watched.bucket)
    created, credentials = new_token(admin, NAME)
    maintainer = Operator("", {**environment, **signed_in(watched, credentials)})
    client = watched.client_with(credentials)
    with watched.gateway.recording() as made.exchanges, Issuer() as issuer:
        use_cloud(CloudClient(watched.gateway.address, credentials, watched.tls))
        use_http(client, Client(watched.gateway.address, watched.tls, None))
        made.said += [created, *use_sign_ins(watched, admin, issuer)]
        made.said += use_import(maintainer, watched, home)
        watched.put(
            watching.secret_key(credentials.username),
            watching.secret(credentials.username, credentials.password, watching.new_probe()),
        )
        made.said += [*use(admin, ("watch", "status")), *use(admin, ("doctor",), words=1)]
        lock = documents.lock_id(documents.lock_info())
        verbs = Verbs(NAME, lock, credentials.username, issuer.address, home)
        made.said += use_verbs(maintainer, admin, client, verbs)
    ours = (NAME, credentials.username)
    made.said = [own(said, ours) if said.command in OF_THE_TEAM else said for said in made.said]
    made.stored = [
        *stored(watched, watched.bucket, OBJECTS, before),
        *stored(watched, watched.staging_bucket, STAGED, frozenset()),
    ]
    signed = aws_caller.assume(watched, NAME).ask_for_session(watched)  # not through the gateway
    made.exchanges.append(Exchange("POST", aws_caller.PATH, {}, b"", signed.status, signed.body))
    watched.s3.delete_object(Bucket=watched.bucket, Key=watching.secret_key(credentials.username))
    made.events = list(events(watched, ours))
    made.files = list(files(home))
    # Other tests of this team count its locks.
    left = watched.s3.list_objects_v2(Bucket=watched.bucket, Prefix=f"states/{NAME}/")["Contents"]
    for key in [one["Key"] for one in left if one["Key"].endswith(".tflock")]:
        watched.s3.delete_object(Bucket=watched.bucket, Key=key)
    return made


def signed_in(team: Team, credentials: Credentials) -> dict[str, str]:
    pair = {"TF_HTTP_USERNAME": credentials.username, "TF_HTTP_PASSWORD": credentials.password}
    return {"HOLDFAST_ADDRESS": team.gateway.address, **pair}


def use(person: Operator, *commands: Sequence[str], words: int = 2) -> Iterator[Said]:
    """Use commands with `--json`; what they find may be a problem."""
    for command in commands:
        _, out, err = person.run(*command, "--json")
        assert out, (command, err)
        yield Said(" ".join(command[:words]), json.loads(out), "")


def own(said: Said, ours: Sequence[str]) -> Said:
    """Return what a command printed, without the items that name none of ours."""
    items = [item for item in said.document if any(one in json.dumps(item) for one in ours)]
    return Said(said.command, items, said.error)


def use_cloud(api: CloudClient) -> None:
    """Send every request of `cloud {}`."""
    state = f"{NAME}/cloud"
    organization, name = place(state)
    base = f"organizations/{organization}"
    binding = {"type": "tag-bindings", "attributes": {"key": "env", "value": "prod"}}
    data = {
        "type": "workspaces",
        "attributes": {"name": name},
        "relationships": {"tag-bindings": {"data": [binding]}},
    }
    api.call("POST", f"{base}/workspaces", {"data": data})
    for path in (
        "ping",
        "account/details",
        f"{base}/entitlement-set",
        f"{base}/projects",
        f"{base}/workspaces",
    ):
        api.call("GET", path)
    api.call("POST", f"{base}/projects", {"data": {"type": "projects", "attributes": {"name": "x"}}})
    workspace = api.open(state)
    path = f"workspaces/{workspace}"
    api.call("GET", path)
    api.call("PATCH", path, {"data": {"type": "workspaces", "attributes": {"terraform-version": "1.9.0"}}})
    api.call("GET", f"{path}/tag-bindings")
    api.call("PATCH", f"{path}/tag-bindings", {"data": [binding]})
    for method in ("POST", "DELETE"):
        tag = {"type": "tags", "attributes": {"name": "fruit"}}
        api.call(method, f"{path}/relationships/tags", {"data": [tag]})
    api.lock(workspace)
    api.lock(workspace)
    body = json.dumps(json.loads(documents.state(1)) | {"resources": [FRUIT]}).encode()
    assert api.write(workspace, body).status == 200
    current = api.current(workspace)
    api.download(current)
    [output] = api.outputs(workspace).json()["data"]
    api.call("GET", f"state-version-outputs/{output['id']}")
    filters = f"filter[organization][name]={organization}&filter[workspace][name]={name}"
    api.call("GET", f"state-versions?{filters}")
    api.upload(api.announce(workspace, documents.state(2)), documents.state(2), b"{}")
    api.unlock(workspace)
    workspace = api.open(state)
    api.lock(workspace)
    api.force_unlock(api.open(state))  # refused, because the lock is new
    api.unlock(api.open(state))
    api.read(f"{NAME}/none")
    api.create(f"{NAME}/empty")
    api.call("POST", f"workspaces/{api.open(f'{NAME}/empty')}/actions/safe-delete")
    api.call("POST", f"workspaces/{api.open(state)}/actions/safe-delete")
    api.call("POST", f"{base}/workspaces/{name}/actions/safe-delete")
    api.delete(state)
    assert attributes(current)["serial"] == 1


def use_http(client: Client, anybody: Client) -> None:
    """Send every request of `backend "http"`, and those without credentials."""
    state, info = f"{NAME}/http", documents.lock_info()
    for path in ("/health", "/.well-known/terraform.json", "/app/settings/tokens", "/console", "/console/"):
        anybody.request("GET", path)
    anybody.request("GET", "/console/app.js")
    anybody.read(state)
    client.read(state)
    client.lock(state, info)
    client.lock(state, documents.lock_info())
    client.write(state, documents.state(1), documents.lock_id(info))
    client.write(state, documents.state(1), documents.lock_id(info))
    client.read(state)
    client.outputs(state)
    fruit = json.loads(documents.state(2)) | {"resources": [FRUIT]}
    client.write(state, json.dumps(fruit).encode(), documents.lock_id(info))
    client.request("GET", f"/manage/v1/attributes/{state}?address=terraform_data.apple&values=true")
    client.unlock(state, info)
    client.lock(state, info)
    client.request("POST", f"/unlocks/{state}", info)
    client.lock(state, info)
    client.unlock(state, None)
    client.delete(state)
    client.lock(f"{NAME}/locked", documents.lock_info())
    client.request("GET", f"/states/others-{state}")
    client.request("GET", f"/manage/v1/names?pattern={NAME}/*")


def use_sign_ins(team: Team, admin: Operator, issuer: Issuer) -> Iterator[Said]:
    """Sign in with an ID token and with AWS credentials, and keep a session."""
    claims = {"repository": f"acme/{NAME}-signs-in"}
    condition = (
        "--issuer",
        issuer.address,
        "--audience",
        AUDIENCE,
        "--claim",
        f"repository={claims['repository']}",
    )
    scope = ("--role", "writer", "--scope", f"{NAME}/*")
    admin.ok("trust", "create", f"{NAME}-signs-in", *scope, *condition)
    # The team has no networks, so the command would refuse to restrict a token.
    restricted, _ = tokens.create(
        [Grant(Role.WRITER, (f"{NAME}/*",))],
        description="",
        created_by="a test",
        now=datetime.now(UTC),
        expires=None,
        networks=("192.0.2.0/24",),
    )
    team.put(restricted.key, restricted.to_json())
    several = ("--grant", f"reader:{NAME}/*", "--grant", f"writer:{NAME}/a/*")
    admin.ok("token", "create", *several)
    admin.ok(
        "trust", "create", f"{NAME}-several", *several, *condition[:-1], f"repository=acme/{NAME}-several"
    )
    assert exchange(team, oidc.bearer(issuer.token(claims))).status == 200
    caller = aws_caller.assume(team, NAME)
    add_aws_trust(team, caller.role_name, f"{NAME}/*", role=Role.WRITER)
    person = Operator("", {**admin.environment, **caller.environment})
    address = ("--address", team.direct_address)  # the signature covers the host
    person.ok("configure", *address)
    person.ok("run", *address, "true")
    yield from use(person, ("login", *address), words=1)
    yield from use(person, ("configure", "list"))


def use_import(maintainer: Operator, team: Team, home: Path) -> Iterator[Said]:
    """Move a state in from a bucket, close the bucket's state, and open it again."""
    bucket, plan = f"old-{NAME}", home / "move.toml"
    team.s3.create_bucket(Bucket=bucket)
    team.s3.put_object(Bucket=bucket, Key="a.tfstate", Body=documents.state(1))
    plan.write_text(
        maintainer.ok("import", "plan", f"s3://{bucket}", "--map", f"{{key}}.tfstate={NAME}/{{key}}")
    )
    for step in ("run", "check", "close", "reopen"):
        yield from use(maintainer, ("import", step, str(plan)))


# --- what is found --------------------------------------------------------------------------------------


def versions(team: Team, bucket: str) -> frozenset[tuple[str, str]]:
    pages = team.s3.get_paginator("list_object_versions").paginate(Bucket=bucket)
    return frozenset((item["Key"], item["VersionId"]) for page in pages for item in page.get("Versions", []))


def stored(
    team: Team, bucket: str, kinds: Sequence[str], before: frozenset[tuple[str, str]]
) -> Iterator[tuple[str, Any]]:
    """Yield the kind of each new object, and the object, with its metadata and tags."""
    pages = team.s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    current = {item["Key"] for page in pages for item in page.get("Contents", [])}
    for key, version in sorted(versions(team, bucket) - before):
        [kind] = [one for one in kinds if fnmatchcase(key, one)]
        got = team.s3.get_object(Bucket=bucket, Key=key, VersionId=version)
        # The local AWS has no tags of a version whose object is deleted.
        tags = team.s3.get_object_tagging(Bucket=bucket, Key=key)["TagSet"] if key in current else []
        body = got["Body"].read()
        is_ours = kind.endswith((".json", ".tflock")) and bucket == team.bucket
        yield (
            kind,
            {
                "metadata": got["Metadata"],
                "tags": {tag["Key"]: tag["Value"] for tag in tags},
                **({"body": mine(json.loads(body))} if is_ours else {}),
            },
        )


def mine(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document without the trust records and freezes that other tests made."""
    return {
        name: [one for one in value if NAME in json.dumps(one)] if name in ("records", "freezes") else value
        for name, value in document.items()
    }


def events(team: Team, ours: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the events about us, once the last one has arrived, at most a minute later."""
    found: list[dict[str, Any]] = []

    def are_there() -> bool:
        found[:] = [
            event
            for event in audit_trail.events(team)
            if event["event"] not in UNRECORDED_EVENTS
            and (event["event"] == Event.TRUST_CHANGED or any(one in json.dumps(event) for one in ours))
        ]
        kinds = recorded.by_kind((event["event"], event) for event in found)
        return not {*Event} - UNRECORDED_EVENTS - kinds.keys() and not recorded.broken(
            recorded.read(EVENTS), kinds
        )

    with suppress(AssertionError):  # the test says which are missing
        wait_until(are_there, "the events", seconds=60)
    yield from found


def files(home: Path) -> Iterator[tuple[str, Any]]:
    """Yield a name and the content of each file that the command keeps; names without digests."""
    for path in sorted(home.rglob("*")):
        if not path.is_file() or path.suffix in (".lock", ".tfstate"):
            continue
        name = re.sub("[0-9a-f]{32}", "*", str(path.relative_to(home)))
        text = path.read_text()
        match path.suffix:
            case ".toml":
                yield name, tomllib.loads(text)
            case ".journal":
                for line in text.splitlines():
                    event = json.loads(line)
                    yield f"{name}, {event['event']}", event
            case _:
                yield name, json.loads(text)


def route_of(exchange: Exchange) -> Route[Any]:
    """Return the route of a request: the one with the fewest parameters, of those that match."""
    path = exchange.target.partition("?")[0]
    matching = [
        route
        for route in routes()
        if exchange.method in route.verbs.split()
        and re.fullmatch(re.sub(r"{\w+}", "[^/]+", re.sub(r"{\w+\+}", ".+", route.path)), path)
    ]
    return min(matching, key=lambda route: route.path.count("{"))


def answer(exchange: Exchange, route: Route[Any]) -> Any:
    if route.path.endswith(STATES) and exchange.method == "GET":
        return "a client's"
    try:
        return json.loads(exchange.answer) if exchange.answer else None
    except ValueError:
        return "no JSON"


def answers(exchanges: Sequence[Exchange]) -> Iterator[tuple[str, Any]]:
    for sent in exchanges:
        route = route_of(sent)
        protocol = "/" + route.path.split("/")[1]
        if sent.status >= 400:
            yield f"{protocol}, {sent.status}", answer(sent, route)
        else:
            yield f"{route.verbs} {route.path}", answer(sent, route)


# --- the tests ------------------------------------------------------------------------------------------


def compare(name: str, found: Sequence[tuple[str, Any]], generated_file: GeneratedFile) -> None:
    before, now = recorded.read(name), recorded.by_kind(found)
    assert recorded.broken(before, now) == {}, recorded.SAYS
    generated_file(recorded.FOLDER / name, recorded.text(recorded.renewed(before, now)))


def test_the_answers_of_every_route_are_as_recorded(
    recording: Recording, generated_file: GeneratedFile
) -> None:
    reachable = {route for route in routes() if METHODS & {*route.verbs.split()}}
    assert reachable == {route_of(one) for one in recording.exchanges}, "use the route in this test"

    compare("answers.json", [*answers(recording.exchanges)], generated_file)


def test_the_json_of_every_command_is_as_recorded(
    recording: Recording, generated_file: GeneratedFile
) -> None:
    with_json = {
        command.prog.removeprefix("holdfast ")
        for command in COMMANDS
        if "--json" in command._option_string_actions  # noqa: SLF001 they have no other name
    }
    assert with_json == {one.command for one in recording.said} | UNRECORDED_COMMANDS.keys()

    compare("commands.json", [(one.command, one.document) for one in recording.said], generated_file)


def test_every_stored_document_is_as_recorded(recording: Recording, generated_file: GeneratedFile) -> None:
    assert {*OBJECTS, *STAGED} == {kind for kind, _ in recording.stored} | UNRECORDED_KINDS.keys()

    compare("stored.json", recording.stored, generated_file)


def test_every_event_is_as_recorded(recording: Recording, generated_file: GeneratedFile) -> None:
    found = [(str(event["event"]), event) for event in recording.events]
    assert {name for name, _ in found} == {*Event} - UNRECORDED_EVENTS

    compare(EVENTS, found, generated_file)


def test_every_file_that_the_command_keeps_is_as_recorded(
    recording: Recording, generated_file: GeneratedFile
) -> None:
    compare("files.json", recording.files, generated_file)

"""The sources `hcp` and `http` of an import, with the functions of another Holdfast as their server."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit
from uuid import uuid4

import pytest

from holdfast.identity import credentials
from holdfast.state import lock_info
from holdfast_cli.errors import CommandError
from holdfast_cli.importing.hcp import Hcp, open_hcp
from holdfast_cli.importing.http_source import HttpBackend, open_http
from holdfast_cli.importing.source import LockedThereError, OldLock, Settings
from local_aws import loopback
from tests.contract.cloud_api import ask, binding, created, locked, tag, unlock, write
from tests.contract.conftest import Answer, Handle, Server, started
from tests.support import documents
from tests.support.documents import ADA, BOB, state
from tests.support.events import DOMAIN, Context, cloud_request, request

STAGE = "/_aws/execute-api/abc123/$default"
"""The path of the API on the local AWS."""
CALLERS = {"Bearer of-ada": ADA, "Bearer of-bob": BOB, credentials.basic("ada", "made-up"): ADA}
BUCKET = "holdfast-import"


@dataclass(frozen=True)
class Api:
    """The functions as an HTTP server, behind a path. `anonymous` has requests that came without a token."""

    address: str
    anonymous: list[str]

    def hcp(self, who: str = "ada") -> Hcp:
        address = f"hcp://{self.address.removeprefix('http://')}/network"
        return open_hcp(Settings((address,)), {"TF_TOKEN_holdfast_local": f"of-{who}"})

    def http(self, name: str) -> HttpBackend:
        options = {"lock_address": "{base}/locks/{name}", "unlock_address": "{base}/unlocks/{name}"}
        methods = {"lock_method": "PUT", "unlock_method": "POST"}
        variables = {"IMPORT_HTTP_USERNAME": "ada", "IMPORT_HTTP_PASSWORD": "made-up"}
        return open_http(Settings((f"{self.address}/states/{name}",), options | methods), variables)


@pytest.fixture(scope="module")
def terraform_http(moto: Server) -> Iterator[Handle]:
    with started(moto, "terraform_http", HOLDFAST_BUCKET=BUCKET) as handlers:
        yield handlers["terraform_http"]


@pytest.fixture
def api(cloud: Handle, terraform_http: Handle) -> Iterator[Api]:
    anonymous: list[str] = []

    def answer_of(method: str, path: str, query: str, authorization: str, body: bytes) -> Answer:
        if path == "/.well-known/terraform.json":
            return {"statusCode": 200, "body": '{"tfe.v2": "/api/v2/"}', "headers": {}}
        if (caller := CALLERS.get(authorization)) is None:
            anonymous.append(path)
            return {"statusCode": 401, "headers": {}}
        text = body.decode() or None
        if path.startswith("/api/v2/"):
            name, asked = path.removeprefix("/api/v2/"), dict(parse_qsl(query))
            return cloud(cloud_request(method, name, caller=caller, body=text, query=asked), Context())
        _, route, name = path.split("/", 2)
        event = request(method, f"/{route}/{{name+}}", name, caller=caller, body=text)
        return terraform_http(event, Context())

    class Handler(loopback.Handler):
        def respond(self) -> None:
            body, parts = self.read_body(), urlsplit(self.path)
            stage, path = unquote(parts.path)[: len(STAGE)], unquote(parts.path)[len(STAGE) :]
            assert stage == STAGE
            answer = answer_of(self.command, path, parts.query, self.headers.get("Authorization", ""), body)
            text = answer.get("body") or ""
            sent = base64.b64decode(text) if answer.get("isBase64Encoded") else text.encode()
            here = f"http://{self.headers['Host']}{STAGE}".encode()
            sent = sent.replace(f"https://{DOMAIN}".encode(), here)
            self.answer(answer["statusCode"], sent, answer["headers"])

    with loopback.serving(Handler) as address:
        yield Api(f"{address}{STAGE}", anonymous)


def lock(source: Hcp, workspace: str = "prod") -> OldLock:
    """Return a new lock of a workspace, as the journal has it."""
    info = lock_info.parse(documents.lock_info(str(uuid4()), operation="import"))
    return OldLock(info, source.prepare_lock(workspace))


def test_the_workspaces_of_an_organization_are_states_with_tags(cloud: Handle, api: Api) -> None:
    created(cloud, name="eu:prod")
    workspace = created(cloud)
    tagged = ask(cloud, "POST", f"workspaces/{workspace}/relationships/tags", data=[tag("old")])
    assert tagged["statusCode"] == 204
    path = f"workspaces/{workspace}/tag-bindings"
    assert ask(cloud, "PATCH", path, data=[binding("env", "prod")])["statusCode"] == 200
    source = api.hcp()
    assert [(each.id, each.name, each.tags) for each in source.states()] == [
        ("eu:prod", "network/eu/prod", {}),
        ("prod", "network/prod", {"env": "prod", "old": ""}),
    ]
    assert source.read("prod") == b""


def test_all_pages_of_workspaces_are_listed(cloud: Handle, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast_cli.importing.hcp._PAGE_SIZE", 2)
    for number in range(5):
        created(cloud, name=f"w{number}")
    assert [each.id for each in api.hcp().states()] == ["w0", "w1", "w2", "w3", "w4"]


def test_a_state_is_read_byte_for_byte_also_through_a_redirect_and_without_versions(
    cloud: Handle, api: Api
) -> None:
    workspace = locked(cloud)
    source = api.hcp()
    assert source.read("prod") == b""
    write(cloud, workspace, state(1))
    write(cloud, workspace, state(2), 2)
    assert source.read("prod") == state(2)
    large = state(3, content="x" * 6_000_000)
    write(cloud, workspace, large, 3)
    assert api.hcp().read("prod") == large
    assert not api.anonymous


def test_a_lock_is_acquired_once_and_released_by_its_handle(cloud: Handle, api: Api) -> None:
    created(cloud)
    source = api.hcp()
    own = lock(source)
    source.lock("prod", own)
    source.lock("prod", own)
    again = lock(api.hcp())
    with pytest.raises(LockedThereError, match="prod is locked in the source by token:ada"):
        api.hcp().lock("prod", again)
    api.hcp().unlock("prod", again)
    with pytest.raises(LockedThereError):
        api.hcp("bob").lock("prod", lock(api.hcp("bob")))
    # Another process with the journal releases it.
    api.hcp().unlock("prod", own)
    source.unlock("prod", own)
    source.lock("prod", again)


def test_a_lock_of_a_client_is_not_acquired(cloud: Handle, api: Api) -> None:
    workspace = locked(cloud)
    source = api.hcp("bob")
    with pytest.raises(LockedThereError, match="prod is locked in the source by token:ada"):
        source.lock("prod", lock(source))
    assert unlock(cloud, workspace)["statusCode"] == 200
    source.lock("prod", lock(source))


def test_a_workspace_that_is_gone_is_named(api: Api) -> None:
    with pytest.raises(CommandError, match=r"gone: 127.* responds with 404 to GET"):
        api.hcp().read("gone")
    with pytest.raises(CommandError, match=r"network: 127.* responds with 401. Check that the token"):
        list(api.hcp("another").states())


def test_a_state_of_another_holdfast_is_read_and_locked_at_its_address(
    api: Api, terraform_http: Handle
) -> None:
    source = api.http("net/prod")
    (found,) = source.states()
    own = OldLock(lock_info.parse(documents.lock_info("one")))
    theirs = OldLock(lock_info.parse(documents.lock_info("theirs", who="bob@ci")))
    source.lock(found.id, own)
    source.lock(found.id, own)
    assert source.read(found.id) == b""
    write_it = request(
        "POST", "/states/{name+}", "net/prod", caller=ADA, lock_id="one", body=state(1).decode()
    )
    assert terraform_http(write_it, Context())["statusCode"] == 200
    assert source.read(found.id) == state(1)
    with pytest.raises(LockedThereError, match=r"net/prod is locked .* by ada@laptop \(.*; lock ID one\)"):
        source.lock(found.id, theirs)
    source.unlock(found.id, theirs)
    source.lock(found.id, own)
    source.unlock(found.id, own)
    source.unlock(found.id, own)
    source.lock(found.id, theirs)

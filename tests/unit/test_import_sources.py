"""The sources of an import that are not S3: other `http` backends, GitLab and HCP Terraform."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from holdfast.identity import credentials
from holdfast.state import lock_info
from holdfast_cli.api import http
from holdfast_cli.api.response import Response
from holdfast_cli.errors import CommandError, UnavailableError, UsageError
from holdfast_cli.importing.gitlab import GitLab, open_gitlab
from holdfast_cli.importing.hcp import Hcp, open_hcp
from holdfast_cli.importing.http_source import HttpBackend, open_http
from holdfast_cli.importing.source import LockedThereError, OldLock, PlainSource, Settings
from local_aws import loopback
from tests.support import documents, gitlab_server
from tests.support.api_stub import ApiStub, Reply
from tests.support.documents import state
from tests.support.gitlab_server import State

NOBODY: dict[str, str] = {}
"""An environment without credentials."""


def lock(lock_id: str = "one", *, handle: str = "") -> OldLock:
    info = json.loads(documents.lock_info(lock_id, operation="import", who="eve@desk"))
    return OldLock(lock_info.parse(json.dumps({**info, "Info": "is moving"}).encode()), handle)


def written(folder: Path, path: str, body: bytes = b"{}") -> Path:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(body)
    return file


# Another `http` backend.


@dataclass
class Backend:
    """A server for `backend "http"`, which locks at `<address>/lock`."""

    address: str = ""
    states: dict[str, bytes] = field(default_factory=dict)
    locks: dict[str, bytes] = field(default_factory=dict)
    credentials: str | None = credentials.basic("ada", "made-up")

    def answer(self, method: str, path: str, authorization: str | None, body: bytes) -> tuple[int, bytes]:
        if authorization != self.credentials:
            return 401, b""
        if method == "GET":
            return (200, self.states[path]) if path in self.states else (404, b"not found")
        if not path.endswith("/lock"):
            return 405, b""
        held = self.locks.get(path)
        if method == "LOCK" and held is None:
            self.locks[path] = body
        elif held is None or method == "LOCK" or held != body:
            return (423 if held else 409), held or b""
        else:
            del self.locks[path]
        return 200, b""


@pytest.fixture
def backend() -> Iterator[Backend]:
    running = Backend()

    class Handler(loopback.Handler):
        def respond(self) -> None:
            headers = self.headers
            self.answer(*running.answer(self.command, self.path, headers["Authorization"], self.read_body()))

        do_LOCK = do_UNLOCK = respond  # noqa: N815 the base class looks for these names

    with loopback.serving(Handler) as running.address:
        yield running


def http_source(*addresses: str, user: str = "ada", **options: str) -> HttpBackend:
    variables = {"IMPORT_HTTP_USERNAME": user, "IMPORT_HTTP_PASSWORD": "made-up"}
    return open_http(Settings(addresses, options), variables)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("states/network/prod", "network/prod"),
        ("$default/states/network/prod", "network/prod"),
        ("_aws/execute-api/abc123/$default/states/network/prod", "network/prod"),
        ("api/v4/projects/7/terraform/state/prod", "7/prod"),
        ("team/app/prod.tfstate", "team/app/prod"),
        ("team/app/prod", "team/app/prod"),
    ],
)
def test_the_name_of_a_state_is_what_its_server_calls_it(path: str, name: str) -> None:
    source = http_source(f"https://states.example.com/{path}")
    (found,) = source.states()
    assert found.id == f"https://states.example.com/{path}"
    assert found.name == name


def test_states_at_addresses_are_read_byte_for_byte(backend: Backend) -> None:
    backend.states = {"/b": state(3), "/empty": b""}
    addresses = [f"{backend.address}/{path}" for path in ("b", "empty", "a")]
    source = http_source(*addresses)
    assert [each.name for each in source.states()] == ["a", "b", "empty"]
    assert [source.read(address) for address in addresses] == [state(3), b"", None]
    assert source.address == f"{addresses[0]} and 2 more"


def test_a_lock_at_an_address_is_held_and_released_by_its_own_document(backend: Backend) -> None:
    address = f"{backend.address}/prod"
    source = http_source(address, lock_address="{address}/lock")
    source.lock(address, lock())
    source.lock(address, lock())
    assert backend.locks == {"/prod/lock": lock().info.to_json()}
    with pytest.raises(LockedThereError, match=r"prod is locked in the source by eve@desk \(is moving;"):
        source.lock(address, lock("two"))
    source.unlock(address, lock("two"))
    assert backend.locks
    source.unlock(address, lock())
    assert not backend.locks
    source.unlock(address, lock())
    backend.locks = {"/prod/lock": b"nobody knows"}
    with pytest.raises(LockedThereError, match="an unknown client"):
        source.lock(address, lock())


def test_without_a_lock_address_nothing_is_locked(backend: Backend) -> None:
    source = http_source(f"{backend.address}/prod")
    source.lock(f"{backend.address}/prod", lock())
    source.unlock(f"{backend.address}/prod", lock())
    assert not backend.locks
    assert source.stopped_by_lock()[0] == ""


def test_locks_are_sent_to_the_addresses_and_with_the_methods_of_the_options(stub: ApiStub) -> None:
    state_at = f"{stub.address}/v1/states/network/prod"
    options = {"lock_address": "{base}/locks/{name}", "unlock_address": "{base}/unlocks/{name}"}
    source = http_source(state_at, **options, lock_method="PUT", unlock_method="POST")
    stub.reply(Reply(200))
    source.lock(state_at, lock())
    source.unlock(state_at, lock())
    asked = [(each.method, each.path, each.body) for each in stub.asked]
    body = lock().info.to_json()
    assert asked == [("PUT", "/v1/locks/network/prod", body), ("POST", "/v1/unlocks/network/prod", body)]
    with pytest.raises(
        UsageError, match=r"--lock-address has a placeholder that is not known for https://a.example/prod"
    ):
        http_source("https://a.example/prod", **options)


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        (
            "https://ada:made-up@a.example/x",
            "credentials. Remove them.* IMPORT_HTTP_USERNAME and IMPORT_HTTP_P",
        ),
        ("http://a.example/x", "over https:// only"),
        ("a.example/x", "is not a valid address; write it as in https://HOST/PATH"),
        ("https://a.example:port/x", "not a valid URL"),
    ],
)
def test_an_address_that_is_not_safe_is_refused_without_its_secret(address: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem) as refused:
        http_source(address)
    assert "made-up" not in str(refused.value)


def test_a_refusal_names_the_state_and_what_to_set(backend: Backend) -> None:
    address = f"{backend.address}/prod"
    with pytest.raises(
        CommandError, match=r"/prod: 127.* responds with 401. Check that IMPORT_HTTP_USERNAME and"
    ):
        http_source(address, user="bob").read(address)
    with pytest.raises(CommandError, match=r"responds with 405 to LOCK. Check the address"):
        http_source(address, lock_address="{address}").lock(address, lock())
    with pytest.raises(UsageError, match="IMPORT_HTTP_USERNAME is not set, but IMPORT_HTTP_PASSWORD is"):
        http_source(address, user="")


def test_a_long_throttle_is_survived_and_an_endless_one_ends(
    stub: ApiStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    address = f"{stub.address}/prod"
    stub.reply(*[Reply(429, headers={"Retry-After": "40"})] * 9, Reply(200, state(3)))
    assert http_source(address).read(address) == state(3)
    assert pauses.count(40.0) == 1
    pauses.clear()
    stub.reply(Reply(429))
    with pytest.raises(UnavailableError, match="still responds with 429"):
        http_source(address).read(address)
    assert 300 <= sum(pauses) < 600
    stub.reply(Reply(503))
    with pytest.raises(UnavailableError, match=r"/prod: 127.* responds with 503"):
        http_source(address).read(address)
    stub.reply(Reply(lost=True))
    with pytest.raises(UnavailableError, match=r"/prod: The connection to 127.* ended before"):
        http_source(address).read(address)


# GitLab.


@pytest.fixture
def gitlab() -> Iterator[gitlab_server.GitLab]:
    with gitlab_server.running() as running:
        yield running


def gitlab_source(server: gitlab_server.GitLab, path: str, token: str = gitlab_server.TOKEN) -> GitLab:
    address = f"gitlab://{urlsplit(server.address).netloc}/{path}"
    return open_gitlab(Settings((address,)), {"GITLAB_TOKEN": token})


def test_the_states_of_a_group_and_of_a_project_are_found_on_all_pages(gitlab: gitlab_server.GitLab) -> None:
    some = {name: State({0: b"{}"}) for name in ("a", "b", "c.d")}
    gitlab.projects = {"platform/net/eu": some, "platform/app": {"prod": State()}, "platform/none": {}}
    gitlab.projects["other/app"] = some
    group = gitlab_source(gitlab, "platform")
    assert [(each.id, each.name) for each in group.states()] == [
        ("platform/app#prod", "app/prod"),
        ("platform/net/eu#a", "net/eu/a"),
        ("platform/net/eu#b", "net/eu/b"),
        ("platform/net/eu#c.d", "net/eu/c.d"),
    ]
    assert [each.name for each in gitlab_source(gitlab, "platform/net/eu").states()] == ["a", "b", "c.d"]
    assert all(each.is_certain for each in group.states())
    with pytest.raises(
        CommandError, match="nothing: the group or project does not exist, or GITLAB_TOKEN may not"
    ):
        list(gitlab_source(gitlab, "nothing").states())


@pytest.mark.parametrize("path", ["platform", "platform/net"])
def test_a_list_of_gitlab_that_ends_before_its_last_page_is_said(
    gitlab: gitlab_server.GitLab, path: str
) -> None:
    gitlab.projects = {"platform/net": {name: State() for name in ("a", "b", "c")}}
    gitlab.projects |= {f"platform/{number}": {} for number in range(3)}
    gitlab.is_cut = True

    with pytest.raises(CommandError, match=f"The list of the .* of {path} ends before its last page; run"):
        list(gitlab_source(gitlab, path).states())


def test_a_state_of_gitlab_is_read_and_one_without_a_version_or_that_is_not_there_is_none(
    gitlab: gitlab_server.GitLab,
) -> None:
    gitlab.projects = {"app": {"prod": State({7: state(7), 8: state(8)}), "new": State()}}
    source = gitlab_source(gitlab, "app")
    assert source.read("app#prod") == state(8)
    assert source.read("app#new") == b""
    assert source.read("app#gone") is None


def test_a_lock_in_gitlab_is_held_and_released_by_its_own_id(gitlab: gitlab_server.GitLab) -> None:
    prod = State({1: state(1)})
    gitlab.projects = {"app": {"prod": prod}}
    source = gitlab_source(gitlab, "app")
    source.lock("app#prod", lock())
    source.lock("app#prod", lock())
    assert prod.lock_id == "one"
    source.unlock("app#prod", lock("two"))
    assert prod.lock_id == "one"
    source.unlock("app#prod", lock())
    source.unlock("app#prod", lock())
    assert prod.lock_id is None
    prod.lock_id, prod.locked_by = "theirs", "bob"
    with pytest.raises(LockedThereError, match=r"app#prod is locked in the source by bob \(lock ID theirs\)"):
        source.lock("app#prod", lock())


def test_a_lock_in_gitlab_stops_clients_without_locks_too(gitlab: gitlab_server.GitLab) -> None:
    assert gitlab_source(gitlab, "app").stopped_by_lock() == ("every client", "force-unlock")


def test_gitlab_may_throttle_for_a_minute(
    gitlab: gitlab_server.GitLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    gitlab.projects = {"app": {"prod": State({1: state(1)})}}
    gitlab.throttled = 8
    source = gitlab_source(gitlab, "app")
    assert [source.read(each.id) for each in source.states()] == [state(1)]
    assert 60.0 in pauses


def test_a_token_of_gitlab_is_required_and_named_if_it_is_wrong(gitlab: gitlab_server.GitLab) -> None:
    with pytest.raises(CommandError, match=r"app#prod: 127.* responds with 401. Check that GITLAB_TOKEN has"):
        gitlab_source(gitlab, "app", "another").read("app#prod")
    with pytest.raises(UsageError, match="GITLAB_TOKEN is not set"):
        gitlab_source(gitlab, "app", "")
    for address, problem in {
        "gitlab://eve:made-up@gitlab.example.com/app": "credentials. Remove them.* set GITLAB_TOKEN",
        "gitlab://gitlab.example.com": "is not a valid address; write it as in gitlab://HOST/GROUP",
        "http://127.0.0.1/app": "is not a valid address",
    }.items():
        with pytest.raises(UsageError, match=problem):
            open_gitlab(Settings((address,)), NOBODY)


# HCP Terraform, as far as `tests/contract/test_import_from_holdfast.py` has no server for it.

DISCOVERED = Reply(200, b'{"tfe.v2": "/api/v2"}')


def hcp_source(stub: ApiStub, *replies: Reply) -> Hcp:
    stub.reply(DISCOVERED, *replies)
    host = urlsplit(stub.address).netloc
    return open_hcp(Settings((f"hcp://{host}/acme",)), {"TF_TOKEN_holdfast_local": "made-up"})


def resource(id_: str, related: dict[str, str] | None = None, **attributes: object) -> dict[str, Any]:
    relationships = {name: {"data": {"id": value}} for name, value in (related or {}).items()}
    named = {name.replace("_", "-"): value for name, value in attributes.items()}
    return {"id": id_, "attributes": named, "relationships": relationships}


def found(data: object, next_page: int | None = None, status: int = 200) -> Reply:
    document = {"data": data, "meta": {"pagination": {"next-page": next_page}}}
    return Reply(status, json.dumps(document).encode())


REFUSED = Reply(409, b'{"errors": [{"status": "409"}]}')

ANSWERS: Final = [
    {
        "data": [{"id": "ws-1", "attributes": {"name": "prod", "tag-names": ["a"]}}],
        "meta": {"pagination": {"next-page": None, "total-count": 1}},
    },
    {"data": [{"attributes": {"key": "env", "value": "prod"}}]},
    {"data": {"attributes": {"hosted-state-download-url": "https://127.0.0.1:1/x"}}},
    {"data": {"attributes": {"permissions": {"can-read-state-versions": True}}}},
    {
        "data": {
            "id": "ws-1",
            "attributes": {"locked-reason": "upgrade", "locked": True},
            "relationships": {"locked-by": {"data": {"id": "user-7"}}},
        }
    },
    {"data": {"project": None, "group": {"projects": {"nodes": [{"fullPath": "app"}]}}}},
    {"data": {"project": {"fullPath": "app", "terraformStates": {"nodes": [{"name": "prod"}]}}}},
    {"data": {"project": {"terraformStates": {"pageInfo": {"hasNextPage": True, "endCursor": "c"}}}}},
    {"errors": [{"message": "no"}]},
]
"""Responses of HCP Terraform and GitLab to some request or other."""
ODD: Final[Sequence[Any]] = (None, True, 7, 0.5, "", "\ud800", "http://[", [], {}, [[]], [None], {"a": None})


def bent(document: Any) -> Iterator[Any]:
    """Yield a document with an odd value in each of its places, and without each of its members."""
    yield from ODD
    if isinstance(document, dict):
        for name, value in document.items():
            yield {each: document[each] for each in document if each != name}
            yield from ({**document, name: other} for other in bent(value))
    if isinstance(document, list):
        for place, value in enumerate(document):
            yield from ([*document[:place], other, *document[place + 1 :]] for other in bent(value))


@pytest.mark.parametrize("status", [200, 409])
def test_no_answer_of_a_source_ends_in_anything_but_an_error_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    answers = [b""]

    def respond(_: str, url: str, **__: object) -> Response:
        return Response(200, DISCOVERED.body) if "terraform.json" in url else Response(status, answers[-1])

    monkeypatch.setattr(http, "send", respond)
    sources: list[PlainSource] = [
        open_hcp(Settings(("hcp://127.0.0.1/acme",)), {"TF_TOKEN_holdfast_local": "made-up"}),
        open_gitlab(Settings(("gitlab://127.0.0.1/app",)), {"GITLAB_TOKEN": "made-up"}),
    ]
    held = lock(handle="ws-1")
    told = set()
    for answer in (b"", b"{", *(json.dumps(each).encode() for whole in ANSWERS for each in bent(whole))):
        answers.append(answer)
        for source in sources:
            for use in (
                lambda source=source: list(source.states()),
                lambda source=source: source.read("app#prod"),
                lambda source=source: source.prepare_lock("app#prod"),
                lambda source=source: source.lock("app#prod", held),
                lambda source=source: source.unlock("app#prod", held),
            ):
                try:
                    use()
                except CommandError as error:
                    told.add(str(error))
    assert all(text.isprintable() for text in told)
    said = "because 'data[0].attributes.name' is not a string" if status == 200 else "Check the address"
    assert any(said in text for text in told)


def test_a_lock_in_hcp_has_a_reason_by_which_it_is_known_again(stub: ApiStub) -> None:
    own = lock(handle="ws-1")
    mine = found(resource("ws-1", locked_reason="is moving [one]"))
    source = hcp_source(stub, found(resource("ws-1")), REFUSED, mine)
    source.lock("prod", own)
    source.lock("prod", own)
    assert json.loads(stub.asked[1].body) == {"reason": "is moving [one]"}
    assert stub.asked[1].path == "/api/v2/workspaces/ws-1/actions/lock"
    assert stub.asked[1].headers["content-type"] == "application/vnd.api+json"
    theirs = found(resource("ws-1", {"locked-by": "user-7"}, locked_reason="upgrade"))
    with pytest.raises(LockedThereError, match=r"prod is locked in the source by user-7 \(upgrade\)"):
        hcp_source(stub, REFUSED, theirs).lock("prod", own)


def test_an_address_with_a_query_or_outside_the_plans_source_is_refused() -> None:
    with pytest.raises(UsageError, match="has a query"):
        open_http(Settings(("https://old.example.com/a?token=x",)), {})
    source = open_http(Settings(("https://old.example.com/a",)), {})
    assert source.covers("https://old.example.com/a")
    assert not source.covers("https://elsewhere.example.com/a")


def test_a_state_of_another_place_is_not_covered(stub: ApiStub) -> None:
    gitlab = open_gitlab(Settings(("gitlab://git.example.com/infra/net",)), {"GITLAB_TOKEN": "made-up"})
    covered = ("infra/net#prod", "infra/net/eu#prod")
    others = ("infra/network#prod", "infra#prod", "else#prod", "infra/net#", "infra/net", "infra/net#..")

    assert [gitlab.covers(id_) for id_ in (*covered, *others)] == [True, True] + [False] * len(others)
    assert [hcp_source(stub).covers(id_) for id_ in ("prod", "..", ".")] == [True, False, False]


def test_a_lock_in_hcp_with_another_reason_is_not_released(stub: ApiStub) -> None:
    source = hcp_source(stub, found(resource("ws-1", locked_reason="upgrade")))
    source.unlock("prod", lock(handle="ws-1"))
    source = hcp_source(stub, found(resource("ws-1", locked_reason=None)))
    source.unlock("prod", lock(handle="ws-1"))
    source = hcp_source(stub, Reply(404))
    source.unlock("prod", lock(handle="ws-1"))
    source = hcp_source(stub, found(resource("ws-1", locked=True)))
    with pytest.raises(CommandError, match="does not say who holds the workspace's lock"):
        source.unlock("prod", lock(handle="ws-1"))
    assert {asked.method for asked in stub.asked} == {"GET"}
    # HCP may refuse a moment later, because the lock is gone.
    hcp_source(stub, found(resource("ws-1", locked_reason="[one]")), REFUSED).unlock(
        "prod", lock(handle="ws-1")
    )
    assert stub.asked[-1].path == "/api/v2/workspaces/ws-1/actions/unlock"


@pytest.mark.parametrize(
    ("pagination", "is_whole"),
    [
        ({"next-page": None, "total-count": 2}, True),
        ({"next-page": None, "total-count": 3}, False),
        ({}, False),
    ],
)
def test_a_list_of_hcp_that_ends_before_its_last_page_is_said(
    stub: ApiStub, monkeypatch: pytest.MonkeyPatch, pagination: dict[str, object], is_whole: bool
) -> None:
    monkeypatch.setattr("holdfast_cli.importing.hcp._PAGE_SIZE", 2)
    workspaces = [resource(f"ws-{name}", name=name) for name in ("a", "b")]
    page = Reply(200, json.dumps({"data": workspaces, "meta": {"pagination": pagination}}).encode())
    source = hcp_source(stub, page, found([]))

    if is_whole:
        assert [each.id for each in source.states()] == ["a", "b"]
    else:
        with pytest.raises(
            CommandError, match=r"acme: the list of workspaces ends before its last page. Run the"
        ):
            list(source.states())


def test_a_state_that_the_token_may_not_read_is_not_taken_for_no_state(stub: ApiStub) -> None:
    absent = Reply(404, b'{"errors": [{"status": "404"}]}')
    for rights, problem in ({"can-read-state-versions": False}, "prod: the token may not read"), (None, None):
        workspace = found(resource("ws-1", permissions=rights))
        source = hcp_source(stub, workspace, absent, workspace)
        if problem:
            with pytest.raises(CommandError, match=problem):
                source.read("prod")
        else:
            assert source.read("prod") == b""
    with pytest.raises(
        CommandError, match=r"does not respond as HCP Terraform does. Check the address hcp://127"
    ):
        hcp_source(stub, Reply(200, b"<html>Sign in</html>")).read("prod")


def test_the_token_of_hcp_is_not_sent_to_where_a_download_is_redirected(stub: ApiStub) -> None:
    version = resource("sv", hosted_state_download_url=f"{stub.address}/hosted_state")
    moved = Reply(307, headers={"Location": f"{stub.address}/signed"})
    source = hcp_source(stub, found(resource("ws-1")), found(version), moved, Reply(200, state(1)))
    assert source.read("prod") == state(1)
    sent = [(asked.path, "authorization" in asked.headers) for asked in stub.asked[-2:]]
    assert sent == [("/hosted_state", True), ("/signed", False)]


def test_the_token_of_hcp_is_terraforms_own(stub: ApiStub, tmp_path: Path) -> None:
    host = urlsplit(stub.address).netloc
    stored = {"credentials": {host: {"token": "made-up"}}}
    written(tmp_path, ".terraform.d/credentials.tfrc.json", json.dumps(stored).encode())
    stub.reply(DISCOVERED, found([]))
    assert list(open_hcp(Settings((f"hcp://{host}/acme",)), {"HOME": str(tmp_path)}).states()) == []
    assert "authorization" not in stub.asked[0].headers
    assert stub.asked[1].headers["authorization"] == "Bearer made-up"
    with pytest.raises(
        UsageError, match=r"run `terraform login app\.terraform\.io`, or set TF_TOKEN_app_terraform_io\."
    ):
        open_hcp(Settings(("hcp://app.terraform.io/acme",)), NOBODY)


@pytest.mark.parametrize("service", ["", "http://api.example.com/v2/"])
def test_a_host_without_a_safe_api_of_workspaces_is_refused(stub: ApiStub, service: str) -> None:
    stub.reply(Reply(200, json.dumps({"tfe.v2": service}).encode()), found([]))
    host = urlsplit(stub.address).netloc
    with pytest.raises(
        CommandError,
        match=r"does not name the service|the address of api.example.com does not begin with https://",
    ):
        list(open_hcp(Settings((f"hcp://{host}/acme",)), {"TF_TOKEN_holdfast_local": "made-up"}).states())
    assert len(stub.asked) == 1


def test_only_a_bucket_has_a_rule_that_refuses_writes(stub: ApiStub) -> None:
    gitlab = open_gitlab(Settings(("gitlab://a.example/x",)), {"GITLAB_TOKEN": "x"})
    for source in (http_source("https://a.example/x"), gitlab, hcp_source(stub)):
        with pytest.raises(
            CommandError, match="has no policy that could refuse writes; only an s3:// source has a"
        ):
            source.refuse_writes(["a"], [])

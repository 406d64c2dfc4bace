"""`holdfast import` leaves no state out in silence, whatever a source of any kind has instead of a state."""

import gzip
import json
import tomllib
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import boto3
import pytest

from holdfast_cli.api import http
from holdfast_cli.main import main
from local_aws import loopback
from tests.contract.conftest import Bucket, Handle, Server, started
from tests.support import gitlab_server
from tests.support.documents import OPERATOR, state
from tests.support.gitlab_server import State
from tests.support.in_process_api import ADDRESS, InProcessApi

BUCKET: Final = "holdfast-import-plan"
FINE: Final = state(3)
BROKEN: Final[Mapping[str, tuple[bytes, str]]] = {
    "bom": (b"\xef\xbb\xbf" + FINE, "begins with a byte order mark"),
    "empty": (b"", "is empty in the source"),
    "gzip": (gzip.compress(FINE), "is compressed with gzip"),
    "html": (b"<html><body>sign in</body></html>", "is HTML or XML, such as a sign-in page"),
    "pointer": (b'{"serial": 3}', "no integer 'version', so it is not a state document"),
    "serial-float": (state(3.0), "is a number with a fraction or an exponent, such as 3.0"),
    "trailing": (FINE + b"\n<!-- proxied -->", "has more text after its JSON"),
    "truncated": (FINE[:60], "ends in the middle of its JSON"),
    "utf16": (FINE.decode().encode("utf-16"), "is UTF-16"),
}
"""Contents that are no states by name, and what is said about each."""
CONTENTS: Final = {"fine": FINE} | {name: body for name, (body, _) in BROKEN.items()}
COUNT: Final = len(CONTENTS)


@pytest.fixture(scope="module")
def handlers(moto: Server) -> Iterator[dict[str, Handle]]:
    with started(moto, "terraform_http", "management", HOLDFAST_BUCKET=BUCKET) as started_handlers:
        yield started_handlers


@dataclass
class Command:
    """`holdfast import` of a person who may do everything. The plan is in `plan`."""

    plan: Path
    output: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        self.output.readouterr()
        code = main(["import", *arguments, "--address", ADDRESS])
        return code, *self.output.readouterr()

    def make_plan(self, *arguments: str) -> tuple[int, str]:
        code, out, err = self("plan", *arguments)
        self.plan.write_text(out)
        return code, err

    def step(self, name: str) -> tuple[int, str]:
        code, out, err = self(name, str(self.plan))
        return code, out + err

    def names(self) -> dict[str, str]:
        """Return the new names by the last part of the old ones."""
        states = tomllib.loads(self.plan.read_text()).get("states", [])
        return {each["from"].replace("#", "/").rpartition("/")[2]: each["name"] for each in states}


@pytest.fixture
def command(
    handlers: dict[str, Handle],
    moto: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Command]:
    monkeypatch.setattr(http, "send", InProcessApi(handlers, OPERATOR).send)
    for name, value in {
        "TF_HTTP_USERNAME": "operator",
        "TF_HTTP_PASSWORD": "made-up",
        "GITLAB_TOKEN": gitlab_server.TOKEN,
        "TF_TOKEN_holdfast_local": "made-up",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": str(moto.direct.meta.endpoint_url),
    }.items():
        monkeypatch.setenv(name, value)
    yield Command(tmp_path / "move.toml", capsys)
    Bucket(BUCKET, moto).empty()


@dataclass
class Backend:
    """A server for `backend "http"`: status, body and headers by path."""

    replies: dict[str, tuple[int, bytes, dict[str, str]]] = field(default_factory=dict)
    address: str = ""

    def reply(self, path: str, host: str, body: bytes) -> tuple[int, bytes, dict[str, str]]:  # noqa: ARG002 as all
        return self.replies.get(path, (404, b"not found", {}))


@dataclass
class Hcp(Backend):
    """A server of workspaces, each with a state version, by HCP Terraform's API. `reasons` are its locks."""

    contents: Mapping[str, bytes] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def reply(self, path: str, host: str, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        match path.strip("/").split("/"):
            case [".well-known", "terraform.json"]:
                document: dict[str, Any] = {"tfe.v2": "/api/v2/"}
            case [*_, "organizations", "acme", "workspaces"]:
                workspaces = [{"id": name, "attributes": {"name": name}} for name in self.contents]
                pages = {"next-page": None, "total-count": len(workspaces)}
                document = {"data": workspaces, "meta": {"pagination": pages}}
            case [*_, "tag-bindings"]:
                document = {"data": []}
            case [*_, "workspaces", name, "current-state-version"]:
                url = f"http://{host}/hosted/{name}"
                document = {"data": {"attributes": {"hosted-state-download-url": url}}}
            case [*_, "workspaces", name, "actions", "lock"]:
                self.reasons[name] = json.loads(body)["reason"]
                document = {"data": {"id": name}}
            case [*_, "workspaces", name, "actions", "unlock"]:
                del self.reasons[name]
                document = {"data": {"id": name}}
            case [*_, "workspaces", name]:
                attributes = {"name": name, "locked-reason": self.reasons.get(name, "")}
                document = {"data": {"id": name, "attributes": attributes}}
            case ["hosted", name]:
                return 200, self.contents[name], {}
            case _:
                return 404, b"", {}
        return 200, json.dumps(document).encode(), {}


@contextmanager
def served(server: Backend) -> Iterator[str]:
    class Handler(loopback.Handler):
        def respond(self) -> None:
            path, body = unquote(urlsplit(self.path).path), self.read_body()
            self.answer(*server.reply(path, self.headers["Host"], body))

    with loopback.serving(Handler) as address:
        yield address


@contextmanager
def gitlab() -> Iterator[list[str]]:
    with gitlab_server.running() as server:
        server.projects = {"infra/app": {name: State({3: body}) for name, body in CONTENTS.items()}}
        yield [f"gitlab://{urlsplit(server.address).netloc}/infra/app"]


@contextmanager
def https() -> Iterator[list[str]]:
    replies: dict[str, tuple[int, bytes, dict[str, str]]] = {
        f"/{name}": (200, body, {}) for name, body in CONTENTS.items()
    }
    with served(Backend(replies)) as address:
        yield [f"{address}/{name}" for name in CONTENTS]


@contextmanager
def hcp() -> Iterator[list[str]]:
    with served(Hcp(contents=CONTENTS)) as address:
        yield [f"hcp://{urlsplit(address).netloc}/acme"]


@pytest.mark.parametrize(
    ("source", "rule"),
    [(gitlab, "infra/{app}#fine=net/fine"), (https, "http://{host}/fine=net/fine"), (hcp, "fine=net/fine")],
)
def test_what_cannot_be_parsed_stays_in_the_plan_of_a_source_that_has_states_alone(
    command: Command, source: Callable[[], Any], rule: str
) -> None:
    """A rule matches what the plan prints behind `from`."""
    with source() as addresses:
        code, err = command.make_plan(*addresses, "--map", rule)

        assert code == 1
        assert f"States without a name: {COUNT - 1} of {COUNT}." in err
        assert command.names() == {"fine": "net/fine"} | dict.fromkeys(BROKEN, "")
        lines = command.plan.read_text().splitlines()
        for name, (_, why) in BROKEN.items():
            [at] = [
                number
                for number, line in enumerate(lines)
                if line.endswith((f'/{name}"', f'"{name}"', f'#{name}"'))
            ]
            assert why in lines[at + 1]
            assert why in err
        ran, said = command.step("run")
        assert (ran, f"{COUNT} states: {COUNT - 1} left out, 1 imported." in said) == (1, True)
        checked, said = command.step("check")
        assert (checked, f"{COUNT} states: {COUNT - 1} left out, 1 the same." in said) == (1, True)


def test_a_project_is_closed_only_when_the_rows_of_what_cannot_be_parsed_are_removed(
    command: Command,
) -> None:
    with gitlab_server.running() as server:
        fine, broken = State({3: FINE}), State({3: BROKEN["truncated"][0]})
        server.projects = {"infra/app": {"broken": broken, "fine": fine}}
        assert command.make_plan(f"gitlab://{urlsplit(server.address).netloc}/infra/app")[0] == 1
        assert command.step("run")[0] == 1

        code, said = command.step("close")

        assert code == 1
        assert "infra/app#broken: the state has no name: write a name in the plan, or remove" in said
        assert "2 states: 1 left out, 1 imported. This run left no new lock in the source." in said
        assert (fine.lock_id, broken.lock_id) == (None, None)
        head, _, rows = command.plan.read_text().partition("[[states]]")
        command.plan.write_text(f"{head}[[states]]{rows.partition('[[states]]')[2]}")
        code, said = command.step("close")
        assert (code, "1 state: 1 closed. The locks stop" in said) == (0, True)
        assert (bool(fine.lock_id), broken.lock_id) == (True, None)


def test_an_address_without_a_state_stays_in_the_plan_with_its_reason(command: Command) -> None:
    backend = Backend(
        {
            "/unauthorized": (401, b"", {}),
            "/forbidden": (403, b"", {}),
            "/moved": (302, b"", {"Location": "/login"}),
            "/no-content": (204, b"", {}),
            "/packed": (200, gzip.compress(FINE), {"Content-Encoding": "gzip"}),
            "/deflated": (200, zlib.compress(FINE), {"Content-Encoding": "deflate"}),
        }
    )
    reasons = {
        "unauthorized": "responds with 401. Check that IMPORT_HTTP_USERNAME",
        "forbidden": "responds with 403. Check that IMPORT_HTTP_USERNAME",
        "moved": "responds with 302 to GET",
        "no-content": "is empty in the source",
        "deflated": "an encoding that the command did not request",
        "absent": "does not exist in the source: check the source's address",
    }
    with served(backend) as address:
        code, err = command.make_plan(*(f"{address}/{name}" for name in ("packed", *reasons)))

    assert code == 1
    assert command.names() == {"packed": "packed"} | dict.fromkeys(reasons, "")
    for name, why in reasons.items():
        assert any(f"/{name}" in line and why in line for line in err.splitlines()), (name, err)


# S3.


@pytest.fixture
def bucket(moto: Server) -> Bucket:
    old = Bucket(f"old-{uuid4().hex}", moto)
    moto.direct.create_bucket(Bucket=old.name)
    return old


def put(bucket: Bucket, contents: Mapping[str, bytes]) -> None:
    for key, body in contents.items():
        bucket.s3.put_object(Bucket=bucket.name, Key=key, Body=body)


def test_an_object_of_a_bucket_that_need_not_be_a_state_is_left_out_counted_and_named(
    command: Command, bucket: Bucket
) -> None:
    put(bucket, CONTENTS)

    code, err = command.make_plan(f"s3://{bucket.name}")

    assert code == 0
    first = "bom, empty, gzip and 6 more"
    assert (
        f"The plan does not include {COUNT - 1} objects: {first}. "
        "The end of the plan says why each is not a state." in err
    )
    assert command.names() == {"fine": "fine"}
    comments = [line for line in command.plan.read_text().splitlines() if line.startswith("# ")][
        -len(BROKEN) :
    ]
    for name, (_, why) in BROKEN.items():
        assert any(
            line.startswith(f"# {name}: ") and why.removesuffix(" in the source") in line for line in comments
        )
    assert command.step("run")[0] == 0
    bucket.s3.delete_object(Bucket=bucket.name, Key="fine")
    code, err = command.make_plan(f"s3://{bucket.name}")
    assert code == 1
    assert f"There is no state in s3://{bucket.name}. Check the address. " in err
    assert f"The source has {COUNT - 1} objects that are not states. The first is " in err


def test_an_object_of_a_bucket_whose_key_ends_as_a_state_stays_in_the_plan(
    command: Command, bucket: Bucket
) -> None:
    put(bucket, {f"{name}.tfstate": body for name, body in CONTENTS.items()} | {"run.sh": b"echo"})

    code, err = command.make_plan(f"s3://{bucket.name}")

    assert code == 1
    assert command.names() == {"fine.tfstate": "fine"} | {f"{name}.tfstate": "" for name in BROKEN}
    assert "The plan does not include 1 object: run.sh. The end" in err
    for name, (_, why) in BROKEN.items():
        assert any(f"{name}.tfstate" in line and why in line for line in err.splitlines())


def test_the_plan_of_a_bucket_says_what_a_reader_must_not_overlook(command: Command, bucket: Bucket) -> None:
    def one(lineage: str) -> bytes:
        return state(3, lineage=lineage)

    contents = {
        "app/terraform.tfstate": one("app"),
        "app/terraform.tfstate.d/prod/terraform.tfstate": one("prod"),
        "app/terraform.tfstate.backup": one("app"),
        "err/errored.tfstate": one("err"),
        "err/terraform.tfstate": one("err"),
        "old copy.tfstate": one("err"),
    }
    put(bucket, contents)

    code, out, err = command("plan", f"s3://{bucket.name}")

    assert code == 0
    assert err.splitlines() == [
        "holdfast: The plan does not include 2 objects: app/terraform.tfstate.backup, err/errored.tfstate. "
        "The end of the plan says why each is not a state.",
        "holdfast: old copy.tfstate was renamed to old-copy, because the name 'old copy' is not valid: "
        "segment 1 must start with a letter or a digit, and have only letters, digits, '.', '_' and '-' "
        "(ASCII).",
        "holdfast: err/terraform.tfstate, old copy.tfstate have the same lineage, so they may be copies. "
        "Remove the tables of the copies from the plan.",
        "holdfast: After the import, terraform.workspace will have a different value in 1 state: "
        "app/terraform.tfstate. The plan shows the new values.",
        "holdfast: 4 states can be imported.",
    ]
    tables = {each["from"]: each for each in tomllib.loads(out)["states"]}
    assert {key: (each["name"], each.get("tags", {})) for key, each in tables.items()} == {
        "app/terraform.tfstate": ("app/main", {"app": ""}),
        "app/terraform.tfstate.d/prod/terraform.tfstate": ("app/prod", {"app": ""}),
        "err/terraform.tfstate": ("err", {}),
        "old copy.tfstate": ("old-copy", {}),
    }
    assert "; terraform.workspace changes from 'default' to 'main'\n" in out
    assert "# err/errored.tfstate: a state that Terraform could not store" in out


@pytest.mark.parametrize(
    ("option", "names"),
    [("x/", {"x/dev/app": "app/dev"}), ("", {"x/y/app": "x/y/app", "dev/app": "app/dev"})],
)
def test_the_prefix_of_workspaces_may_be_empty_and_end_with_a_slash(
    command: Command, bucket: Bucket, option: str, names: dict[str, str]
) -> None:
    put(bucket, {key: state(3, lineage=key) for key in ("app", *names)})

    code, out, _ = command("plan", f"s3://{bucket.name}", "--workspace-key-prefix", option)

    assert code == 0
    assert {each["from"]: each["name"] for each in tomllib.loads(out)["states"]} == {
        "app": "app/main",
        **names,
    }


def test_a_rule_that_names_a_workspace_default_gives_it_another_name(
    command: Command, bucket: Bucket
) -> None:
    put(bucket, {key: state(3, lineage=key) for key in ("app", "env:/dev/app", "env:/main/app")})

    code, out, err = command("plan", f"s3://{bucket.name}", "--map", "app=app/default")

    assert code == 0
    assert {each["from"]: each["name"] for each in tomllib.loads(out)["states"]} == {
        "app": "app/main-2",
        "env:/dev/app": "app/dev",
        "env:/main/app": "app/main",
    }
    assert (
        "holdfast: app was renamed to app/main-2, because `cloud` refuses a workspace named 'default'." in err
    )


def test_a_state_whose_digest_is_anothers_is_named_by_plan_run_check_and_close(
    command: Command, bucket: Bucket, moto: Server
) -> None:
    put(bucket, {"net/prod": FINE})
    dynamodb = boto3.client("dynamodb", endpoint_url=moto.direct.meta.endpoint_url, region_name="us-east-1")
    dynamodb.create_table(
        TableName=bucket.name,
        AttributeDefinitions=[{"AttributeName": "LockID", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "LockID", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    source = (f"s3://{bucket.name}", "--dynamodb-table", bucket.name)
    code, err = command.make_plan(*source)
    assert (code, command.names(), "1 state can be imported" in err) == (0, {"prod": "net/prod"}, True)
    named = command.plan.read_text()
    item = {"LockID": {"S": f"{bucket.name}/net/prod-md5"}, "Digest": {"S": "0" * 32}}
    dynamodb.put_item(TableName=bucket.name, Item=item)
    why = f"s3://{bucket.name}/net/prod: its digest in the table {bucket.name} is {'0' * 32}, but"

    code, err = command.make_plan(*source)

    assert (code, command.names(), why in err) == (1, {"prod": ""}, True)
    command.plan.write_text(named)
    for step, summary in (("run", "1 failed"), ("check", "1 failed"), ("close", "1 left open")):
        code, said = command.step(step)
        assert (code, f"1 state: {summary}" in said) == (1, True), said
        assert (why in said) == (step != "close"), said
    dynamodb.delete_item(TableName=bucket.name, Key={"LockID": item["LockID"]})
    assert command.step("run")[0] == 0
    dynamodb.put_item(TableName=bucket.name, Item=item)
    for step in ("run", "check", "close"):
        code, said = command.step(step)
        assert (code, why in said) == (1, True), said
    assert bucket.s3.list_objects_v2(Bucket=bucket.name)["KeyCount"] == 1

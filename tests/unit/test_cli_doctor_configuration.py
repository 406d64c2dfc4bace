"""`holdfast doctor STATE`: folders with a deliberate fault, and a server that acts as the API."""

import json
import os
from base64 import b64encode
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from holdfast import __version__
from holdfast.names import parse
from holdfast_cli.api import http
from holdfast_cli.config import backend_config, cloud_config
from holdfast_cli.doctor import state_access
from holdfast_cli.doctor.findings import ok
from holdfast_cli.errors import CommandError
from holdfast_cli.main import main
from tests.support import forked_command
from tests.support.api_stub import ApiStub, Reply, made, refused

STATE = "network/prod"
SECRET = "holdfast_not-to-be-shown"
CREDENTIALS = {"TF_HTTP_USERNAME": "k2v9x0q7m3c1d8f5a6b4", "TF_HTTP_PASSWORD": SECRET}
HEALTH = Reply(200, b'{"status": "ok", "version": "%b"}' % __version__.encode())
READ = Reply(200, b'{"version": 4}')
MAY_LOCK = refused(400, "invalid_lock_info", "The lock info has no ID.")
READER = refused(403, "not_allowed", "The role 'reader' of the token x does not allow to lock.")
OUTPUTS = refused(403, "not_allowed", "The role 'outputs' of the token x does not allow to read.")
FORBIDDEN = Reply(403, b'{"message": "Forbidden"}')
DISCOVERY = Reply(200, json.dumps(dict.fromkeys(cloud_config.SERVICES, "/api/v2/")).encode())
BEARER = f"k2v9x0q7m3c1d8f5a6b4.{SECRET}"
TOKEN = {"TF_TOKEN_holdfast_local": BEARER}


@dataclass(frozen=True)
class Done:
    """The result of the command."""

    code: int
    findings: list[dict[str, str]]

    def problems(self) -> list[str]:
        return [finding["check"] for finding in self.findings if finding["level"] == "problem"]

    def text(self, check: str) -> str:
        return " ".join(f"{one['text']} {one['do']}" for one in self.findings if one["check"] == check)


@pytest.fixture
def stub(stub: ApiStub) -> ApiStub:
    stub.reply(HEALTH, READ, MAY_LOCK)
    return stub


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def arguments(stub: ApiStub, **changed: str | None) -> dict[str, str]:
    """The arguments that `backend-config` prints, some of them changed, or left out if they are None."""
    printed = backend_config.settings(stub.address, parse(STATE), read_only=False) | changed
    return {name: value for name, value in printed.items() if value is not None}


def hcl(values: Mapping[str, str]) -> str:
    lines = "\n".join(f"    {name} = {backend_config.quote_hcl(value)}" for name, value in values.items())
    return f'terraform {{\n  backend "http" {{\n{lines}\n  }}\n}}'


def note_init(values: Mapping[str, str], kind: str = "http") -> None:
    """Write the file in which `terraform init` notes the backend."""
    Path(".terraform").mkdir(exist_ok=True)
    every = dict.fromkeys(("address", "username", "password", "retry_max")) | dict(values)
    noted = {"version": 3, "backend": {"type": kind, "config": every, "hash": 1}}
    Path(".terraform/terraform.tfstate").write_text(json.dumps(noted))


def select_workspace(name: str) -> None:
    Path(".terraform").mkdir()
    Path(".terraform/environment").write_text(name)


def doctor(*options: str, state: str = STATE, **environment: str) -> Done:
    own = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "AWS_EC2_METADATA_DISABLED": "true"}
    with (
        mock.patch.dict(os.environ, own | CREDENTIALS | environment, clear=True),
        redirect_stdout(StringIO()) as output,
        redirect_stderr(StringIO()) as errors,
    ):
        code = main(["doctor", state, "--json", *options])
    assert SECRET not in output.getvalue() + errors.getvalue()
    printed = json.loads(output.getvalue())
    result = Done(code, printed["findings"])
    levels = [finding["level"] for finding in result.findings]
    assert printed["summary"] == {level: levels.count(level) for level in ("ok", "note", "problem")}
    assert (code, len(errors.getvalue().splitlines())) == ((1, 1) if result.problems() else (0, 0))
    return result


def test_a_right_folder_has_no_problem_and_its_check_changes_nothing(stub: ApiStub) -> None:
    Path("main.tf").write_text(hcl(arguments(stub)))
    note_init(arguments(stub))

    done = doctor()

    assert {finding["level"] for finding in done.findings} == {"ok"}
    assert [(asked.method, asked.path, asked.body) for asked in stub.asked] == [
        ("GET", "/health", b""),
        ("GET", "/states/network/prod", b""),
        ("PUT", "/locks/network/prod", b"{}"),
    ]
    assert [bool(asked.headers.get("authorization")) for asked in stub.asked] == [False, True, True]


MIXED_UP = {"lock_method": "DELETE", "unlock_method": "PUT"}
FAULTS: Mapping[str, tuple[Mapping[str, str | None], str, str]] = {
    "a wrong path": ({"address": "{api}/stats/network/prod"}, "backend.address", "/states/network/prod"),
    "another state": ({"address": "{api}/states/network/dev"}, "backend.address", "network/dev"),
    "the outputs": ({"address": "{api}/outputs/network/prod"}, "backend.address", "terraform_remote_state"),
    "no URL": ({"address": "api.example.com/states/x"}, "backend.address", "not an address"),
    "another lock": ({"lock_address": "{api}/locks/network/dev"}, "backend.lock_address", "network/dev"),
    "a lock at the state": (
        {"lock_address": "{api}/states/network/prod", "lock_method": "LOCK"},
        "backend.lock_address backend.lock_method",
        "/locks/",
    ),
    **{
        f"an unlock by {method} at the state": (
            {"unlock_address": "{api}/states/network/prod", "unlock_method": method},
            "backend.unlock_address backend.unlock_method",
            "/unlocks/network/prod",
        )
        for method in ("DELETE", "POST", "UNLOCK", "X")
    },
    "another unlock": ({"unlock_address": "{api}/unlocks/a"}, "backend.unlock_address", "which is the state"),
    "no unlock": (
        {"unlock_address": None, "unlock_method": None},
        "backend.unlock_address",
        "never releases it",
    ),
    "no lock": ({"lock_address": None, "lock_method": None}, "backend.lock_address", "428"),
    "the default lock method": ({"lock_method": None}, "backend.lock_method", '"PUT"'),
    "the default unlock method": ({"unlock_method": None}, "backend.unlock_method", '"POST"'),
    "a lock by DELETE": ({"lock_method": "DELETE"}, "backend.lock_method", '"PUT"'),
    "an unlock by PUT": ({"unlock_method": "PUT"}, "backend.unlock_method", '"POST"'),
    "an unlock by POST at the lock": (
        {"unlock_address": "{api}/locks/network/prod"},
        "backend.unlock_method",
        '"DELETE"',
    ),
    "a write by PATCH": ({"update_method": "PATCH"}, "backend.update_method", '"POST"'),
    "a password": ({"password": SECRET}, "credentials.plain_text", "main.tf"),
    "a password in the address": (
        {"address": "http://me:" + SECRET + "@{host}/states/network/prod"},
        "credentials.plain_text",
        "main.tf",
    ),
    "mixed up methods": (MIXED_UP, "backend.lock_method backend.unlock_method", '"PUT"'),
    "a stale address": (
        {"TF_HTTP_ADDRESS": "https://api.example.com/states/dev"},
        "environment",
        "TF_HTTP_ADDRESS contradicts address in main.tf",
    ),
    "a stale method": ({"TF_HTTP_LOCK_METHOD": "LOCK"}, "environment", "Unset TF_HTTP_LOCK_METHOD"),
    "a workspace": ({"TF_WORKSPACE": "dev"}, "workspace", "workspaces not supported"),
    "no lock by option": (
        {"TF_CLI_ARGS_apply": "-no-color -lock=false"},
        "environment",
        "Unset TF_CLI_ARGS_apply, or remove -lock=false from it",
    ),
    "no credentials": ({"TF_HTTP_USERNAME": "", "TF_HTTP_PASSWORD": ""}, "credentials", "TF_HTTP_USERNAME"),
}
"""Arguments of the block and variables, the checks that find the fault, and words of the first finding."""


@pytest.mark.parametrize(("changed", "checks", "says"), FAULTS.values(), ids=FAULTS)
def test_a_fault_of_the_block_or_the_environment_is_found_with_what_to_do(
    stub: ApiStub, changed: Mapping[str, str | None], checks: str, says: str
) -> None:
    host = stub.address.removeprefix("http://")
    made = {name: value and value.format(api=stub.address, host=host) for name, value in changed.items()}
    Path("main.tf").write_text(hcl(arguments(stub, **{name: made[name] for name in made if name[0] != "T"})))

    done = doctor("--address", stub.address, **{name: str(made[name]) for name in made if name[0] == "T"})

    assert done.problems() == checks.split()
    assert says in done.text(checks.split()[0])


@pytest.mark.parametrize(
    ("argument", "method", "does", "right"),
    [
        ("lock", "PUT", "writes the state", "PUT"),
        ("lock", "POST", "writes the state", "PUT"),
        ("lock", "DELETE", "deletes the state", "PUT"),
        ("lock", "GET", "reads the state", "PUT"),
        ("unlock", "DELETE", "deletes the state", "POST"),
        ("unlock", "POST", "writes the state", "POST"),
    ],
)
def test_what_a_method_does_at_the_address_of_the_state_is_said_with_what_to_write(
    stub: ApiStub, argument: str, method: str, does: str, right: str
) -> None:
    changed = {f"{argument}_address": f"{stub.address}/states/{STATE}", f"{argument}_method": method}
    Path("main.tf").write_text(hcl(arguments(stub, **changed)))

    done = doctor()

    assert done.problems() == [f"backend.{argument}_address", f"backend.{argument}_method"]
    assert (
        f"is {method} (main.tf), but {argument}_address is the address of the state itself. There, "
        f"{method} {does}, so the API refuses"
    ) in done.text(f"backend.{argument}_method")
    assert f'In the block, write {argument}_method = "{right}"' in done.text(f"backend.{argument}_method")


LOCK = {
    "id": "an-id",
    "version": "a-version",
    "who": "ada@laptop",
    "principal": "token:k2v9x0q7m3c1d8f5a6b4",
    "owner": None,
    "operation": "OperationTypeApply",
    "info": "",
    "since": "2026-11-28T12:00:00Z",
    "freeze": None,
}


@pytest.mark.parametrize(
    ("locked", "problems"),
    [(LOCK, ["backend.lock_address", "api.lock"]), (None, ["backend.lock_address"])],
)
def test_a_lock_that_a_wrong_lock_address_left_is_shown_with_how_to_remove_it(
    stub: ApiStub, locked: Mapping[str, object] | None, problems: list[str]
) -> None:
    Path("main.tf").write_text(hcl(arguments(stub, lock_address=f"{stub.address}/locks/network/dev")))
    stub.reply(HEALTH, READ, MAY_LOCK, made({"name": "network/dev", "lock": locked}))

    done = doctor()

    assert done.problems() == problems
    assert stub.asked[-1].path == "/manage/v1/locks/network/dev"
    if locked:
        assert 'locked by "ada@laptop" for' in done.text("api.lock")
        assert f"holdfast lock break network/dev --address {stub.address}" in done.text("api.lock")


@pytest.mark.parametrize("path", ["locks/holdfast-doctor/a", "lock/network/dev", "locks/network/prod"])
def test_no_lock_is_asked_for_but_that_of_another_state(stub: ApiStub, path: str) -> None:
    Path("main.tf").write_text(hcl(arguments(stub, lock_address=f"{stub.address}/{path}")))

    doctor()

    assert not [asked.path for asked in stub.asked if "/manage/" in asked.path]


def test_another_api_than_the_one_that_is_named_is_found(stub: ApiStub) -> None:
    Path("main.tf").write_text(hcl(arguments(stub)).replace("http://127.0.0.1", "https://old.example.com"))

    done = doctor("--address", stub.address)

    assert done.problems() == ["backend.address", "backend.lock_address", "backend.unlock_address"]
    assert f"the API is at {stub.address}" in done.text("backend.address")


def test_addresses_that_lead_to_the_same_server_are_the_same() -> None:
    with mock.patch.object(http, "send", side_effect=CommandError("no network here")):
        for written in ("https://API.example.com:443", "https://api.example.com"):
            printed = backend_config.settings(written, parse(STATE), read_only=False)
            Path("main.tf").write_text(hcl(printed))
            for named in ("https://api.EXAMPLE.com", "https://api.example.com:443"):
                assert doctor("--address", named).problems() == ["api"]


INSECURE: Mapping[str, tuple[str, str, str, list[str]]] = {
    "without TLS": ("http://api.example.com", "", "begins with http://", ["backend.encryption"] * 3),
    "an address of a network": ("http://10.0.0.1", "", "begins with http://", ["backend.encryption"] * 3),
    "without a look at the certificate": (
        "https://api.example.com",
        "skip_cert_verification = true",
        "skip_cert_verification is true in main.tf",
        ["backend.encryption", "api"],
    ),
}


@pytest.mark.parametrize(("address", "line", "says", "problems"), INSECURE.values(), ids=INSECURE)
def test_a_connection_that_others_can_read_is_found_and_gets_no_credentials(
    address: str, line: str, says: str, problems: list[str]
) -> None:
    printed = backend_config.settings(address, parse(STATE), read_only=False)
    Path("main.tf").write_text(hcl(printed).replace("\n  }\n}", f"\n    {line}\n  }}\n}}"))

    with mock.patch.object(http, "send", side_effect=CommandError("no network here")) as sent:
        done = doctor()

    assert done.problems() == problems
    assert says in done.text("backend.encryption")
    assert all(not call.kwargs["headers"] for call in sent.call_args_list)


def test_without_the_address_of_an_api_it_says_that_it_was_not_asked(stub: ApiStub) -> None:
    Path("main.tf").write_text(hcl({"address": f"{stub.address}/stats/{STATE}"}))

    done = doctor()

    assert "the API's address is not known" in done.text("api")
    assert stub.asked == []
    Path("main.tf").write_text(hcl({"address": f"https://me@api.example.com/states/{STATE}"}))
    assert "The API's address is not valid: the address must not contain credentials" in doctor().text("api")


def test_the_lock_by_delete_stays_valid(stub: ApiStub) -> None:
    lock = f"{stub.address}/locks/{STATE}"
    Path("main.tf").write_text(hcl(arguments(stub, unlock_address=lock, unlock_method="DELETE")))

    done = doctor()

    assert done.problems() == []
    assert "POST to /unlocks/" in done.text("backend.unlock_address")


def test_a_variable_that_changes_nothing_or_may_be_right_is_no_problem(stub: ApiStub) -> None:
    Path("main.tf").write_text(hcl(arguments(stub)))
    select_workspace("dev")
    environments = {
        "TF_HTTP_ADDRESS": "",
        "TF_CLI_ARGS_plan": "-lock=false",
        "TF_CLI_ARGS_init": f"-backend-config=password={SECRET}",
        "TF_WORKSPACE": "default",
    }

    done = doctor(**environments)

    assert done.problems() == []
    assert "TF_CLI_ARGS_init has -backend-config" in done.text("environment")


def test_a_password_that_is_no_utf_8_is_sent_as_it_is(stub: ApiStub) -> None:
    Path("main.tf").write_text(hcl(arguments(stub)))

    doctor(TF_HTTP_USERNAME="me", TF_HTTP_PASSWORD=os.fsdecode(b"\xff"))

    assert stub.asked[-1].headers["authorization"] == "Basic " + b64encode(b"me:\xff").decode()


def test_a_block_that_leaves_all_to_the_environment_gets_it_from_there(stub: ApiStub) -> None:
    Path("main.tf").write_text(hcl({}))
    exported = {f"TF_HTTP_{name.upper()}": value for name, value in arguments(stub).items()}

    right = doctor(**exported)
    stub.reply(HEALTH, READ, MAY_LOCK)
    wrong = doctor(state="network/dev", **exported)

    assert right.problems() == []
    assert "another state without a warning" in right.text("environment")
    assert wrong.problems() == ["backend.address", "backend.lock_address", "backend.unlock_address"]
    assert f"Export TF_HTTP_ADDRESS={stub.address}/states/network/dev" in wrong.text("backend.address")


def test_a_block_without_an_address_is_found(stub: ApiStub) -> None:
    Path("main.tf").write_text(hcl({}))

    assert doctor("--address", stub.address).problems() == ["backend.address", "backend.lock_address"]
    assert doctor().problems() == ["backend.address"]


@pytest.mark.parametrize(
    ("kind", "changed", "problems", "says"),
    [
        ("s3", {"password": SECRET}, ["backend.init"], ["'s3'", "-migrate-state"]),
        ("cloud", {}, ["backend.init"], ["'cloud'", "docs/start/moving.md", "remove .terraform, and run"]),
        (
            "http",
            {"address": "http://127.0.0.1:9/states/network/dev"},
            ["backend.init", "backend.address"],
            ["`init` had -backend-config", "terraform.tfstate is ", "-reconfigure -backend-config=address="],
        ),
    ],
    ids=["another backend", "cloud", "another state"],
)
def test_a_folder_that_was_initialized_for_something_else_is_found(
    stub: ApiStub, kind: str, changed: dict[str, str], problems: list[str], says: list[str]
) -> None:
    Path("main.tf").write_text(hcl(arguments(stub)))
    note_init(arguments(stub, **changed), kind=kind)

    done = doctor("--address", stub.address)

    assert done.problems() == problems
    said = " ".join(done.text(check) for check in problems)
    assert [words for words in says if words not in said] == []
    assert ("-reconfigure" in said) is (kind == "http")


NO_BLOCK: Mapping[str, tuple[Mapping[str, str], str]] = {
    "none": ({}, ""),
    "another kind": ({"main.tf": 'terraform {\n  backend "s3" {}\n}\n'}, ""),
    "two": (dict.fromkeys(("main.tf", "more.tf"), hcl({})), "this folder has 2, in main.tf, more.tf."),
    "no end": ({"main.tf": "terraform { backend"}, "main.tf"),
    "no end of JSON": ({"main.tf.json": '{"terraform": ["backend"'}, "main.tf.json"),
    "no UTF-8": ({"main.tf": "terraform { backend = \xff"}, "main.tf"),
}


@pytest.mark.parametrize(("files", "says"), NO_BLOCK.values(), ids=NO_BLOCK)
def test_a_folder_without_just_one_block_that_can_be_read_is_found(
    stub: ApiStub, files: Mapping[str, str], says: str
) -> None:
    for name, text in files.items():
        Path(name).write_bytes(text.encode("latin-1"))

    done = doctor("--address", stub.address)

    assert done.problems()[0] == "backend"
    assert says in done.text("backend")


def test_a_note_of_init_without_a_block_is_no_block(stub: ApiStub) -> None:
    note_init(arguments(stub))

    assert "backend" in doctor().problems()


def test_a_block_is_read_in_every_form_that_terraform_has(stub: ApiStub) -> None:
    others = 'resource "terraform_data" "x" {\n  input = "${jsonencode({ "}" = "{" })}" # backend\n}\n'
    values = arguments(stub)
    forms: list[Mapping[str, str]] = [
        {"main.tf": hcl(values), "other.tf": others},
        {"main.tf.json": json.dumps({"terraform": {"backend": {"http": values}}})},
        {"main.tf.json": json.dumps({"terraform": [{"backend": [{"http": [values]}]}]})},
        {"main.tofu": hcl(values) + "\n"},
        {"main.tf": hcl(values | {"lock_method": "LOCK"}), "main.tofu": hcl(values)},
        {"main.tf": hcl(values), "main.tofu": others},
        {"a.tf": hcl(values | {"lock_method": "LOCK"}), "a_override.tf": hcl(values)},
        {"main.tf": "/* a */\n" + hcl(values).replace("terraform {", 'terraform { # "\n  // {\n')},
    ]
    for files in forms:
        for name, text in files.items():
            Path(name).write_text(text)
        stub.reply(HEALTH, READ, MAY_LOCK)

        assert doctor().problems() == [], files

        for name in files:
            Path(name).unlink()


def test_a_value_with_an_expression_is_left_to_what_init_noted(stub: ApiStub) -> None:
    note_init(arguments(stub))
    block = hcl(arguments(stub, address="x")).replace('"x"', '"https://${var.host}/states/a"')
    Path("main.tf").write_text(block)

    assert doctor().problems() == []


ANSWERS: Mapping[str, tuple[list[Reply], str, str]] = {
    "no Holdfast": ([Reply(404, b"{}")], "api", "ApiAddress"),
    "a page": ([Reply(200, b"<html>")], "api", "ApiAddress"),
    "wrong or expired credentials": ([HEALTH, FORBIDDEN], "api.credentials", "60 seconds"),
    "no credentials in the end": ([HEALTH, Reply(401, b"{}")], "api.credentials", "revoked or expired"),
    "a token for outputs": ([HEALTH, OUTPUTS], "api.credentials", "'outputs'"),
    "a reader": ([HEALTH, READ, READER], "api.role", "'reader'"),
    "a frozen pattern": ([HEALTH, Reply(423, b'{"ID": "frozen: x"}')], "api.credentials", ": frozen: x"),
    "a fault": ([HEALTH, refused(400, "invalid_state_name", "reserved")], "api.credentials", "reserved"),
    "a lock that is acquired": ([HEALTH, READ, Reply(200)], "api.role", "200"),
}


@pytest.mark.parametrize(("replies", "check", "says"), ANSWERS.values(), ids=ANSWERS)
def test_what_the_api_responds_is_said(stub: ApiStub, replies: list[Reply], check: str, says: str) -> None:
    Path("main.tf").write_text(hcl(arguments(stub)))
    stub.reply(*replies)

    done = doctor()

    assert done.problems() == [check]
    assert says in done.text(check)
    sent = [asked.path for asked in stub.asked if "authorization" in asked.headers]
    assert bool(sent) is (check != "api")


ABSENT = Reply(204)
DELETED: Mapping[str, object] = {
    "versions": [
        {"version": "marker", "delete_marker": True, "time": "2026-11-20T12:00:00Z"},
        {"version": "v-14", "delete_marker": False, "time": "2026-11-20T11:00:00Z"},
    ]
}
EVENTS: Mapping[str, object] = {
    "events": [
        {"event": "state.deleted", "principal": "token:of-nothing"},
        {"event": "state.deleted", "principal": "token:ada", "version_id": "v-14"},
    ]
}

NOBODY = {"events": [{"event": "state.deleted", "principal": None, "version_id": "v-14"}]}


def said(document: object) -> Reply:
    return Reply(200, json.dumps(document).encode())


MISSING: Mapping[str, tuple[list[Reply], str, str]] = {
    "deleted": (
        [said(DELETED), said(EVENTS)],
        "problem",
        "at 2026-11-20 12:00:00 UTC by token:ada, so a plan",
    ),
    "by another program": ([said(DELETED), said({"events": []})], "problem", "does not say who deleted it"),
    "by nobody that is told": (
        [said(DELETED), said(NOBODY)],
        "problem",
        "12:00:00 UTC by an unknown user, so a plan",
    ),
    "for a writer": (
        [said(DELETED), READER],
        "problem",
        "with the role maintainer, this check also shows who deleted it",
    ),
    "never there": ([refused(404, "no_state", "There is no state.")], "ok", "does not exist yet"),
    "an older stack": ([Reply(404, b"{}")], "note", "404"),
    "nonsense": ([said({"versions": [7]})], "note", "cannot tell whether"),
}


@pytest.mark.parametrize(("replies", "level", "says"), MISSING.values(), ids=MISSING)
def test_a_state_that_is_not_there_is_told_from_one_that_was_deleted(
    stub: ApiStub, replies: list[Reply], level: str, says: str
) -> None:
    Path("main.tf").write_text(hcl(arguments(stub)))
    note_init(arguments(stub))
    stub.reply(HEALTH, ABSENT, *replies, MAY_LOCK)

    done = doctor()

    assert [found["level"] for found in done.findings if found["check"] == "api.state"] == [level]
    assert says in done.text("api.state")
    assert (f"`holdfast state undelete {STATE} --address " in done.text("api.state")) is (level == "problem")
    assert done.problems() == (["api.state"] if level == "problem" else [])
    asked = [one.path.partition("?")[0] for one in stub.asked[2:-1]]
    assert asked == [f"/manage/v1/versions/{STATE}", "/manage/v1/activity"][: len(replies)]


@pytest.mark.parametrize("kind", ["noted", "variables"])
@pytest.mark.parametrize("fault", ["the outputs", "another unlock", "no unlock"])
def test_a_wrong_address_is_found_where_the_block_has_none(stub: ApiStub, kind: str, fault: str) -> None:
    changed, check, _ = FAULTS[fault]
    made = {name: value and value.format(api=stub.address) for name, value in changed.items()}
    values = arguments(stub, **made)
    Path("main.tf").write_text(hcl({}))
    if kind == "noted":
        note_init(values)
    environment = {f"TF_HTTP_{name.upper()}": value for name, value in values.items()}

    done = doctor(**(environment if kind == "variables" else {}))

    assert done.problems() == [check]


def test_the_api_is_the_one_of_a_named_profile_or_else_that_of_the_block(stub: ApiStub) -> None:
    Path("main.tf").write_text(hcl(arguments(stub)))
    other = "https://other.example.com"
    Path("profiles.toml").write_text(
        f'[profiles.default]\naddress = "{other}"\n[profiles.same]\naddress = "{stub.address}"\n'
    )
    profiles = {"HOLDFAST_CONFIG_FILE": "profiles.toml", "HOLDFAST_TEAM": "payments"}

    for options, environment, api_address in (
        ([], {}, stub.address),  # a user with a default profile may have configurations of other teams
        (["--profile", "default"], {}, other),
        ([], {"HOLDFAST_PROFILE": "default"}, other),
        (["--profile", "default", "--address", stub.address], {}, stub.address),
        (["--profile", "same"], {}, stub.address),
    ):
        with mock.patch.object(state_access, "check", lambda base, *_, **__: iter([ok("api", base)])):
            assert doctor(*options, **profiles, **environment).text("api") == f"{api_address} "


def test_a_block_without_locks_is_right_for_who_only_reads(stub: ApiStub) -> None:
    nothing = dict.fromkeys(("lock_address", "lock_method", "unlock_address", "unlock_method"))
    Path("main.tf").write_text(hcl(arguments(stub, **nothing)))

    stub.reply(HEALTH, READ, READER)
    assert doctor().problems() == []
    stub.reply(HEALTH, READ, MAY_LOCK)
    assert doctor().problems() == ["backend.lock_address"]


def test_an_address_that_does_not_respond_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_PAUSES", ())
    Path("main.tf").write_text(hcl({"address": "http://127.0.0.1:1/states/network/prod"}))

    done = doctor()

    assert done.problems() == ["api"]
    assert "does not respond" in done.text("api")


def test_the_printed_lines_name_level_check_and_what_to_do_and_are_counted(stub: ApiStub) -> None:
    Path("main.tf").write_text(hcl(arguments(stub, lock_method="LOCK")))
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **CREDENTIALS}

    done = forked_command.run(["doctor", STATE], environment, timeout=60)

    assert done.returncode == 1
    findings = done.stdout.splitlines()
    assert "problem  backend.lock_method: lock_method is LOCK (main.tf). " in done.stdout
    counts = f"{len(findings) - 2} ok, 1 note, 1 problem."
    assert done.stderr == f"holdfast: {counts} Each problem says what to do.\n"


# --- cloud and remote -------------------------------------------------------------------------------


def cloud(kind: str = "cloud", workspaces: str = 'name = "prod"', **changed: str | None) -> None:
    """Write a block that is right for the stub, with some arguments changed, or left out if they are None."""
    values = {"hostname": "holdfast.local", "organization": "network"} | changed
    lines = [f"{name} = {backend_config.quote_hcl(value)}" for name, value in values.items() if value]
    lines += [f"workspaces {{\n{workspaces}\n}}"] if workspaces else []
    block = "\n".join(lines)
    Path("main.tf").write_text(f"terraform {{\n{kind} {{\n{block}\n}}\n}}\n")


@pytest.fixture
def cloud_stub(stub: ApiStub) -> ApiStub:
    stub.reply(HEALTH, DISCOVERY, READ, MAY_LOCK)
    return stub


@pytest.mark.parametrize("kind", ["cloud", 'backend "remote"'])
def test_a_right_cloud_block_has_no_problem_and_its_token_is_sent_as_the_client_sends_it(
    cloud_stub: ApiStub, kind: str
) -> None:
    cloud(kind)
    kept = {"hostname": "holdfast.local", "organization": "network", "workspaces": [{"name": "prod"}]}
    note_init({}, kind=kind.split('"')[1] if '"' in kind else kind)
    noted = json.loads(Path(".terraform/terraform.tfstate").read_text())
    noted["backend"]["config"] = kept
    Path(".terraform/terraform.tfstate").write_text(json.dumps(noted))

    done = doctor("--address", cloud_stub.address, **TOKEN)

    assert {finding["level"] for finding in done.findings} == {"ok"}
    assert [(asked.method, asked.path, asked.headers.get("authorization")) for asked in cloud_stub.asked] == [
        ("GET", "/health", None),
        ("GET", "/.well-known/terraform.json", None),
        ("GET", "/states/network/prod", f"Bearer {BEARER}"),
        ("PUT", "/locks/network/prod", f"Bearer {BEARER}"),
    ]


def test_the_printed_cloud_block_is_right(cloud_stub: ApiStub) -> None:
    for tags, remote in (((), False), (("a", "b"), False), ((), True)):
        text = cloud_config.to_hcl(cloud_stub.address, parse(STATE), tags=tags, remote=remote)
        Path("main.tf").write_text(text)
        cloud_stub.reply(HEALTH, DISCOVERY, READ, MAY_LOCK)
        assert doctor("--address", cloud_stub.address, **TOKEN).problems() == []


TAGS: dict[str, str | None] = {"workspaces": 'tags = ["a"]'}
CLOUD_FAULTS: Mapping[str, tuple[dict[str, str | None], dict[str, str], str, str]] = {
    "no host name": ({"hostname": None}, {}, "backend.hostname", 'hostname = "holdfast.local"'),
    "another host": ({"hostname": "app.terraform.io"}, {}, "backend.hostname", "the API is at"),
    "no organization": ({"organization": None}, {}, "backend.workspace", 'organization = "network"'),
    "another organization": ({"organization": "dns"}, {}, "backend.workspace", "the state dns/prod, not"),
    "another workspace": ({"workspaces": 'name = "eu:prod"'}, {}, "backend.workspace", "eu/prod, not"),
    "no valid workspace": ({"workspaces": 'name = "eu/prod"'}, {}, "backend.workspace", "cannot be a state"),
    "a variable against the name": ({}, {"TF_WORKSPACE": "dev"}, "backend.workspace", "Unset TF_WORKSPACE"),
    "a variable that selects another": (TAGS, {"TF_WORKSPACE": "dev"}, "backend.workspace", "network/dev"),
    "a token in the block": ({"token": BEARER}, {}, "credentials.plain_text", "main.tf has a token"),
    "no lock": ({}, {"TF_CLI_ARGS": "-lock=false"}, "environment", "the client acquires no lock"),
}


@pytest.mark.parametrize(("changed", "environment", "check", "says"), CLOUD_FAULTS.values(), ids=CLOUD_FAULTS)
def test_a_fault_of_a_cloud_block_is_found_with_what_to_do(
    cloud_stub: ApiStub, changed: dict[str, Any], environment: dict[str, str], check: str, says: str
) -> None:
    cloud(**changed)

    done = doctor("--address", cloud_stub.address, **TOKEN, **environment)

    assert done.problems() == [check]
    assert says in done.text(check)


SELECTED: Mapping[str, tuple[dict[str, Any], dict[str, str], str]] = {
    "a selected one of a tag": (TAGS, {}, "prod"),
    "a selected one of tags as a map": ({"workspaces": 'tags = {\na = "b"\n}'}, {}, "prod"),
    "a variable for a tag": (TAGS, {"TF_WORKSPACE": "prod"}, "dev"),
    "a variable without a block": ({"workspaces": ""}, {"TF_WORKSPACE": "prod"}, ""),
    "a prefix": ({"kind": 'backend "remote"', "workspaces": 'prefix = "pr"'}, {}, "od"),
    "variables of cloud": (
        {"organization": None, "hostname": None},
        {"TF_CLOUD_ORGANIZATION": "network", "TF_CLOUD_HOSTNAME": "holdfast.local"},
        "",
    ),
}


@pytest.mark.parametrize(("block", "environment", "selected"), SELECTED.values(), ids=SELECTED)
def test_what_selects_the_workspace_is_seen(
    cloud_stub: ApiStub, block: dict[str, Any], environment: dict[str, str], selected: str
) -> None:
    cloud(**block)
    select_workspace(selected)

    done = doctor("--address", cloud_stub.address, **TOKEN, **environment)

    assert done.problems() == []
    assert "prod of network is the state network/prod" in done.text("backend.workspace")


@pytest.mark.parametrize(
    ("kind", "workspaces", "says"),
    [
        ("cloud", 'tags = ["a"]', "`terraform workspace select -or-create prod`"),
        ('backend "remote"', 'prefix = "pr"', "`terraform workspace select -or-create od`"),
        ('backend "remote"', 'prefix = "dev-"', "so no workspace of the block is the state network/prod"),
    ],
)
def test_a_block_without_a_selected_workspace_is_told_how_to_select_it(
    cloud_stub: ApiStub, kind: str, workspaces: str, says: str
) -> None:
    cloud(kind, workspaces)

    done = doctor("--address", cloud_stub.address, **TOKEN)

    assert done.problems() == []
    assert says in done.text("backend.workspace")


@pytest.mark.parametrize(
    ("kind", "command"),
    [("cloud", "`terraform init`"), ('backend "remote"', "`terraform init -reconfigure`")],
)
def test_a_cloud_block_that_changed_after_init_is_told_the_command(
    cloud_stub: ApiStub, kind: str, command: str
) -> None:
    cloud(kind)
    note_init({"hostname": "other.local"}, kind=kind.split('"')[1] if '"' in kind else kind)

    done = doctor("--address", cloud_stub.address, **TOKEN)

    assert done.problems() == ["backend.init"]
    assert command in done.text("backend.init")


def test_a_cloud_block_for_a_state_of_one_segment_is_told_that_there_is_none(stub: ApiStub) -> None:
    cloud()

    done = doctor("--address", stub.address, state="prod", **TOKEN)

    assert done.problems() == ["backend.workspace"]
    assert "GROUP/prod" in done.text("backend.workspace")
    assert stub.asked == []


def test_without_a_token_it_says_what_was_not_looked_at(cloud_stub: ApiStub) -> None:
    cloud()

    done = doctor("--address", cloud_stub.address)

    assert done.problems() == []
    assert "TF_TOKEN_holdfast_local is not set" in done.text("credentials")
    assert [asked.path for asked in cloud_stub.asked] == ["/health", "/.well-known/terraform.json"]


def test_the_api_of_a_cloud_block_is_that_of_its_host_name(cloud_stub: ApiStub) -> None:
    cloud(hostname="api.example.com")
    with mock.patch.object(state_access, "check", lambda base, *_, **__: iter([ok("api", base)])):
        done = doctor(TF_TOKEN_api_example_com=BEARER)
    cloud()
    unknown = doctor(**TOKEN)

    assert done.problems() == []
    assert done.text("api") == "https://api.example.com "
    assert "the API's address is not known" in unknown.text("api")
    assert cloud_stub.asked == []


def test_a_folder_that_cloud_was_not_initialized_in_is_found(cloud_stub: ApiStub) -> None:
    cloud()
    note_init({"address": "x"})

    done = doctor("--address", cloud_stub.address, **TOKEN)

    assert done.problems() == ["backend.init"]
    assert "-migrate-state" not in done.text("backend.init")  # Terraform 1.11.4 refuses it for cloud
    assert "copy it as docs/start/moving.md says" in done.text("backend.init")


@pytest.mark.parametrize("reply", [Reply(404), Reply(200, b'{"tfe.v2": "/api/v2/"}'), Reply(200, b"<html>")])
def test_an_api_that_cloud_does_not_find_is_a_problem(cloud_stub: ApiStub, reply: Reply) -> None:
    cloud()
    cloud_stub.reply(HEALTH, reply, READ, MAY_LOCK)

    assert doctor("--address", cloud_stub.address, **TOKEN).problems() == ["api.discovery"]

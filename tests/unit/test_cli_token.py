"""`holdfast token create` and what all commands have in common, against moto's server over HTTP."""

import json
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast.access import Grant, Role
from holdfast.identity import tokens, trust
from holdfast.identity.authentication import Authenticated
from holdfast.identity.credentials import TokenCredentials
from holdfast.identity.tokens import Token, authenticate
from holdfast_cli.commands.token import _table
from tests.support import terminal
from tests.support.api_stub import ApiStub, Reply
from tests.support.cli_account import HOLDFAST, REGION, Aws, bucket, unread
from tests.support.free_port import free_port
from tests.support.s3_fault_proxy import Fault

CREATE = ("token", "create", "--role", "writer", "--scope", "network/*")
SEVERAL = ("--grant", "writer:apps/*", "--grant", "outputs:network/*")
NOW = datetime.now(UTC)
EXAMPLE: dict[str, Any] = {
    "grants": [Grant(Role.WRITER, ("network/*",))],
    "description": "",
    "created_by": "ada",
    "now": NOW,
    "expires": None,
}
ENDLESS = ("  holdfast audit --writes --follow --limit 10",)
"""Examples of the help that go on until Ctrl-C; tests/unit/test_cli_audit.py has them."""
TRUSTED = trust.new_aws(
    "network-main",
    aws_role="Deployer",
    grants=[Grant(Role.WRITER, ("*",))],
    description="",
    created_by="ada",
    now=datetime.now(UTC),
)


def for_a_client(token_id: str, secret: str, **more: object) -> dict[str, object]:
    """Return the JSON of a token that was made or rotated, but for its ID, its secret and its end."""
    variable = "TF_TOKEN_payments_example_com"
    cloud = {"hostname": "payments.example.com", "variable": variable, "token": f"{token_id}.{secret}"}
    own = {
        "role": "writer",
        "grants": [{"role": "writer", "scope": more["scope"]}],
        "team": "payments",
        "owner": "",
        "from": [],
        "address": "https://payments.example.com",
    }
    return {**own, "cloud": cloud, **more}


def lets_in(token: Token, secret: str) -> bool:
    bearer = authenticate(TokenCredentials(token.id, secret), token, now=datetime.now(UTC))
    return isinstance(bearer, Authenticated) and bearer.caller.grants == token.grants


def deployed(account: Aws, stub: ApiStub, version: str = "0.3.0+1a2b3c") -> Aws:
    """Deploy the team's stack, whose API says that it has this version."""
    account.deploy(
        "payments", ApiAddress=stub.address, BucketName={"Ref": "Bucket"}, Networks="0.0.0.0/0,::/0"
    )
    stub.reply(Reply(200, json.dumps({"status": "ok", "version": version}).encode()))
    return account


@pytest.mark.parametrize(
    ("changed", "columns"),
    [
        ({}, []),
        ({"owner": "ada", "description": "ada"}, ["OWNER"]),
        ({"owner": "ada", "description": "nightly"}, ["OWNER", "DESCRIPTION"]),
        ({"networks": ("192.0.2.0/24",)}, ["FROM"]),
        ({"expires": NOW}, ["STATUS"]),
    ],
)
def test_a_brief_list_has_no_column_that_says_nothing(changed: dict[str, Any], columns: list[str]) -> None:
    one = Token("k2v9x0q7m3c1d8f5a6b4", "", EXAMPLE["grants"], "", NOW, "x")
    shown = [replace(one, **changed)]

    brief, long = (_table(shown, NOW, brief=is_brief).splitlines()[0].split() for is_brief in (True, False))

    every = ["ID", "ROLE", "SCOPE", "EXPIRES", "STATUS", "OWNER", "FROM", "DESCRIPTION"]
    first = ["ID", "OWNER", "GRANTS"]
    behind = [name for name in every if name not in ("ID", "OWNER", "ROLE", "SCOPE")]
    assert brief == [name for name in (*first, *behind) if name in ("ID", "GRANTS", "EXPIRES", *columns)]
    assert long == [name for name in every if name != "FROM" or "FROM" in columns]


def test_a_token_with_several_grants_leaves_the_columns_of_the_others_in_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stdout", terminal.Terminal())
    one = Token("k2v9x0q7m3c1d8f5a6b4", "", EXAMPLE["grants"], "", NOW, "x", owner="bea@example.com")
    several = (Grant(Role.WRITER, ("apps/*", "shared")), Grant(Role.OUTPUTS, ("network/*",)))

    alone = _table([one], NOW, brief=True).splitlines()
    heading, row, *_ = _table([one, replace(one, grants=several)], NOW, brief=True).splitlines()

    assert heading.split() == alone[0].split() == ["ID", "OWNER", "GRANTS", "EXPIRES"]
    assert row.split() == alone[1].split()


def test_a_token_with_several_grants_is_created_and_shown(account: Aws, stub: ApiStub) -> None:
    aws = deployed(account, stub)

    created = aws.run("token", "create", *SEVERAL, "--grant", "writer:shared")

    told = " ".join(created.stderr.split())
    assert " of the team payments: writer of apps/*, shared; outputs of network/*. It expires " in told
    assert [(asked.method, asked.path) for asked in stub.asked] == [("GET", "/health")]
    [body] = aws.records("payments").values()
    token = Token.from_json(body)
    assert token.grants == (Grant(Role.WRITER, ("apps/*", "shared")), Grant(Role.OUTPUTS, ("network/*",)))
    [_, line] = aws.output("token", "list").splitlines()
    assert line.split()[:3] == [token.id, "writer,outputs", "writer:apps/*,writer:shared,outputs:network/*"]
    assert aws.output("token", "list", "--long") == aws.output("token", "list")
    on_terminal = [
        " ".join(terminal.run([HOLDFAST, "token", "list", *long], aws.environment, columns=300).split())
        for long in ((), ("--long",))
    ]
    times = r"\d{4}-\d\d-\d\dT"
    assert [bool(re.search(times, text)) for text in on_terminal] == [False, True]
    assert re.search(
        r"^ID GRANTS EXPIRES \w+ writer:apps/\*, writer:shared, outputs:network/\* in \d+ d$", on_terminal[0]
    )
    assert " STATUS OWNER DESCRIPTION " in on_terminal[1]
    shown = aws.output("token", "show", token.id)
    assert "  role         writer, outputs\n" in shown
    assert "  scope        writer:apps/*, writer:shared, outputs:network/*\n" in shown
    [listed] = json.loads(aws.output("token", "list", "--json"))
    assert (listed["role"], listed["scope"]) == (None, None)
    assert [grant["role"] for grant in listed["grants"]] == ["writer", "outputs"]
    assert "writer of apps/*, shared; outputs of network/*" in " ".join(
        aws.run("token", "rotate", token.id).stderr.split()
    )
    assert len(stub.asked) == 1, "only a record with new grants asks for the version"


@pytest.mark.parametrize("version", ["0.2.0", "0.2.9+1a2b3c", "", "next"])
@pytest.mark.parametrize(
    "command",
    [
        ("token", "create", *SEVERAL),
        ("trust", "create", "a", "--aws-role", "A", *SEVERAL),
        ("trust", "update", "network-main", *SEVERAL),
        ("token", "create", "--role", "auditor", "--scope", "*"),
        ("trust", "update", "network-main", "--role", "auditor"),
    ],
)
def test_what_the_deployed_code_cannot_read_is_refused(
    account: Aws, stub: ApiStub, version: str, command: tuple[str, ...]
) -> None:
    aws = deployed(account, stub, version)
    aws.put_record("payments", trust.KEY, trust.Records((TRUSTED,)).to_json())
    before = aws.records("payments")

    line = aws.failure(*command)

    if version:
        assert f"functions of the team payments are from the release {version}. They cannot" in line
        assert "First deploy the release 0.3.0 or later with `npx cdk deploy Holdfast-payments`" in line
    else:
        assert "The API of the team payments does not say its release: /health responds with 200." in line
    assert aws.records("payments") == before


def test_the_json_has_all_that_a_client_needs_and_the_record_lets_its_secret_in(aws: Aws) -> None:
    before = datetime.now(UTC).replace(microsecond=0)

    made = json.loads(
        aws.output(*CREATE, "--scope", "shared", "--description", "Ada's", "--team", "payments", "--json")
    )

    [(key, body)] = aws.records("payments").items()
    token_id, secret = made.pop("id"), made.pop("secret")
    assert key == f"tokens/{token_id}.json"
    token = Token.from_json(body)
    assert token.grants == (Grant(Role.WRITER, ("network/*", "shared")),)
    assert token.description == "Ada's"
    assert before <= token.created <= datetime.now(UTC)
    assert token.created_by.startswith("arn:aws:sts::")
    assert lets_in(token, secret)
    assert secret.encode() not in body
    assert secret.startswith("holdfast_")
    assert re.fullmatch("[a-z0-9]{20}", token_id)
    left = datetime.fromisoformat(made.pop("expires")) - datetime.now(UTC)
    assert timedelta(days=89, hours=23) < left <= timedelta(days=90)
    more = {"scope": ["network/*", "shared"], "description": "Ada's", "owner": "Ada's"}
    assert made == for_a_client(token_id, secret, **more)


def test_a_token_is_for_somebody_and_for_nobody_whose_name_deceives(aws: Aws) -> None:
    made = json.loads(aws.output(*CREATE, "--owner", "Zoë Müller", "--json"))

    assert made["owner"] == "Zoë Müller"
    assert "  owner        Zoë Müller\n" in aws.output("token", "show", made["id"])
    assert "  active  Zoë Müller  -\n" in aws.output("token", "list")
    before = aws.records("payments")
    for name in ("bea\nadmin", "\x1b[31mbea", "\u202ebea", "<b>", "x" * 201, "holdfast_" + "0" * 49):
        done = aws.run(*CREATE, "--owner", name, AWS_ENDPOINT_URL="http://127.0.0.1:1")
        assert (done.returncode, done.stdout) == (2, "")
        assert "argument --owner: " in done.stderr
        assert "\x1b" not in done.stderr
    assert aws.records("payments") == before


@pytest.mark.parametrize(
    ("typed", "owner"),
    [
        (["--description", "network pipeline"], "network pipeline"),
        (["--description", "network pipeline", "--owner", "bea"], "bea"),
        (["--description", "network pipeline", "--owner", ""], ""),
        (["--description", "for <b> alone"], ""),
        (["--description", "x" * 500], ""),
        ([], ""),
    ],
)
def test_without_an_owner_the_description_is_the_owner_if_it_can_be_shown(
    aws: Aws, typed: list[str], owner: str
) -> None:
    made = json.loads(aws.output(*CREATE, *typed, "--json"))

    assert made["owner"] == owner
    assert json.loads(aws.output("token", "show", made["id"], "--json"))["owner"] == owner


def test_what_create_and_rotate_print_can_be_evaluated_by_a_shell(aws: Aws) -> None:
    """README.md and docs/start/deploying.md do so. What people read is on standard error."""
    created = aws.run(*CREATE)
    [body] = aws.records("payments").values()
    token = Token.from_json(body)
    rotated = aws.run("token", "rotate", token.id)
    [body] = aws.records("payments").values()

    for record, done, said in ((token, created, "Created"), (Token.from_json(body), rotated, "Rotated")):
        assert done.returncode == 0, done.stderr
        exported = evaluated(done.stdout)
        assert exported["TF_HTTP_USERNAME"] == token.id
        secret = exported["TF_HTTP_PASSWORD"]
        assert lets_in(record, secret)
        assert exported["HOLDFAST_ADDRESS"] == "https://payments.example.com"
        assert exported["TF_TOKEN_payments_example_com"] == f"{token.id}.{secret}"
        assert secret not in done.stderr
        told = " ".join(done.stderr.split())
        assert told.startswith(f"{said} the token {token.id} of the team payments: writer of")
        assert "shown only now" in told
    assert "`holdfast backend-config STATE --team payments`" in " ".join(created.stderr.split())
    assert "The old secret works until" in " ".join(rotated.stderr.split())


def evaluated(printed: str) -> dict[str, str]:
    """Return the variables of a shell that has evaluated what a command printed and nothing else."""
    shell = ("bash", "-euc", 'eval "$1"; env', "bash", printed)
    done = subprocess.run(shell, env={}, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return dict(line.split("=", 1) for line in done.stdout.splitlines())


def test_a_lost_answer_of_the_bucket_still_leaves_one_token_that_works(aws: Aws) -> None:
    with aws.faults(".json", Fault.ANSWER_LOST) as s3:
        made = json.loads(aws.output(*CREATE, "--json", **s3))

    [body] = aws.records("payments").values()
    assert lets_in(Token.from_json(body), made["secret"])


def test_team_and_region_come_from_a_profile(aws: Aws, tmp_path: Path) -> None:
    aws.deploy("platform")
    (tmp_path / "profiles.toml").write_text(f'[profiles.ours]\nteam = "payments"\nregion = "{REGION}"\n')
    profiles = {"HOLDFAST_CONFIG_FILE": str(tmp_path / "profiles.toml"), "AWS_REGION": None}

    made = json.loads(aws.output(*CREATE, "--json", "--profile", "ours", **profiles))

    assert made["team"] == "payments"
    assert "--region" in aws.failure_with(2, *CREATE, "--team", "payments", **profiles)


def test_the_only_stack_needs_no_naming_among_stacks_of_others(aws: Aws) -> None:
    aws.client("cloudformation").create_stack(
        StackName="Other", TemplateBody=json.dumps({"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}})
    )

    assert json.loads(aws.output(*CREATE, "--json", HOLDFAST_TEAM=""))["team"] == "payments"


def test_backend_config_reads_the_address_from_the_stack(aws: Aws) -> None:
    assert '"https://payments.example.com/states/x"' in aws.output("backend-config", "x")


NOBODY = f"http://127.0.0.1:{free_port()}"
NO_KEYS: dict[str, str | None] = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}
PROFILES = f"""\
[profile sso]
sso_session = corp
sso_account_id = 123456789012
sso_role_name = Operator
region = {REGION}

[sso-session corp]
sso_start_url = https://corp.awsapps.com/start
sso_region = {REGION}

[profile broken]
credential_process = /nonexistent/sign-in
"""
Failure = tuple[int, tuple[str, ...], tuple[str, ...], Mapping[str, str | None], tuple[str, ...]]
"""The exit code, teams that have a stack, the command, its variables, and words of its line."""
FAILURES: dict[str, Failure] = {
    "several teams": (2, ("platform", "payments"), CREATE, {}, ("payments, platform", "--team")),
    "a team without a stack": (
        *(1, ("platform",), (*CREATE, "--team", "payments"), {}),
        ("Holdfast-payments", REGION, "npx cdk deploy"),
    ),
    "no stack": (1, (), ("backend-config", "x"), {}, ("npx cdk deploy",)),
    "no credentials": (2, (), CREATE, NO_KEYS, ("No AWS credentials", ".local/aws.env")),
    "no region": (2, (), CREATE, {"AWS_REGION": None}, ("AWS_REGION",)),
    "an unknown profile": (
        2,
        (),
        CREATE,
        {"AWS_PROFILE": "nobody"},
        ("nobody", "aws configure list-profiles"),
    ),
    "no session of SSO": (1, (), CREATE, {"AWS_PROFILE": "sso", **NO_KEYS}, ("has ended", "sign in again")),
    "no credential process": (2, (), CREATE, {"AWS_PROFILE": "broken", **NO_KEYS}, ("/nonexistent/sign-in",)),
    "nobody at the endpoint": (1, (), CREATE, {"AWS_ENDPOINT_URL": NOBODY}, ("does not respond", NOBODY)),
    "nobody at the bucket": (
        *(1, ("payments",), CREATE, {"AWS_ENDPOINT_URL_S3": NOBODY}),
        (bucket("payments"), "does not respond"),
    ),
    **{
        f"the endpoint {url}": (2, (), CREATE, {"AWS_ENDPOINT_URL": url}, ("AWS_ENDPOINT_URL",))
        for url in ("foo", "http://[::1", "http://127.0.0.1:port")
    },
}


@pytest.mark.parametrize(
    ("code", "teams", "arguments", "environment", "says"), FAILURES.values(), ids=FAILURES
)
def test_what_keeps_from_the_stack_is_one_line_that_says_what_to_do(
    account: Aws,
    tmp_path: Path,
    code: int,
    teams: tuple[str, ...],
    arguments: tuple[str, ...],
    environment: dict[str, str | None],
    says: tuple[str, ...],
) -> None:
    (tmp_path / "config").write_text(PROFILES)
    for team in teams:
        account.deploy(team)

    line = account.failure_with(code, *arguments, AWS_CONFIG_FILE=str(tmp_path / "config"), **environment)

    assert [words for words in says if words not in line] == []
    assert [account.records(team) for team in teams] == [{} for _ in teams]


@pytest.mark.parametrize(
    ("allowed", "says"),
    [
        (None, "does not accept these credentials"),
        ("iam:GetUser", "does not allow DescribeStacks"),
        (
            "cloudformation:*",
            f"to the bucket {bucket('payments')}, perhaps because the bucket is no longer in the account",
        ),
        ("cloudformation:*", "does not allow PutObject"),
    ],
)
def test_an_identity_that_may_not_do_it_is_one_line_that_names_the_call(
    aws: Aws, allowed: str | None, says: str
) -> None:
    assert says in aws.failure_of(allowed, *CREATE)
    assert aws.records("payments") == {}


def test_a_stack_without_its_outputs_and_a_bucket_that_is_gone_are_one_line_each(aws: Aws) -> None:
    aws.client("s3").delete_bucket(Bucket=bucket("payments"))
    aws.deploy("platform", ApiAddress="https://platform.example.com")

    gone, older = (aws.failure(*CREATE, "--team", team) for team in ("payments", "platform"))

    assert bucket("payments") in gone
    assert "NoSuchBucket" in gone
    assert "BucketName" in older
    assert "npx cdk deploy Holdfast-platform" in older


def test_ctrl_c_while_aws_does_not_answer_ends_with_130_and_says_nothing(aws: Aws) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with subprocess.Popen(
            [HOLDFAST, *CREATE],
            env={**aws.environment, "AWS_ENDPOINT_URL": endpoint},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as command:
            try:
                connection, _ = silent.accept()
                with connection:
                    command.send_signal(signal.SIGINT)
                    assert command.communicate(timeout=15) == (b"", b"")
            finally:
                command.kill()
    assert command.returncode == 130


def test_a_token_whose_secret_could_not_be_shown_is_named_with_how_to_end_it(aws: Aws) -> None:
    code, [line] = unread(aws.environment, *CREATE)

    assert code == 1
    [key] = aws.records("payments")
    token_id = key.removeprefix("tokens/").removesuffix(".json")
    assert f"holdfast token revoke {token_id} --team payments" in line
    assert "holdfast_" not in line


def test_nothing_is_made_when_the_output_is_closed(aws: Aws) -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" "$@" >&-', HOLDFAST, *CREATE],
        env=aws.environment,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
    )

    assert (done.returncode, done.stderr) == (1, "holdfast: Standard output is closed.\n")
    assert aws.records("payments") == {}


@pytest.mark.parametrize("expires", ["0d", "2020-01-01"])
def test_an_end_that_has_passed_by_the_clock_of_aws_is_wrong_usage(aws: Aws, expires: str) -> None:
    done = aws.run(*CREATE, "--expires", expires)

    assert (done.returncode, done.stdout) == (2, "")
    assert "has passed already" in done.stderr.splitlines()[-1]
    assert aws.records("payments") == {}


@pytest.mark.parametrize(
    "command",
    [
        ["backend-config"],
        *(["token"], ["token", "create"], ["token", "list"], ["token", "show"]),
        *(["token", "update"], ["token", "rotate"], ["token", "revoke"]),
        *(["trust"], ["trust", "create"], ["trust", "list"]),
        *(["trust", "show"], ["trust", "update"], ["trust", "remove"]),
        ["audit"],
    ],
)
def test_every_example_of_the_help_works_as_it_stands(
    account: Aws, stub: ApiStub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    aws = deployed(account, stub)
    aws.make_audit_log("payments")
    text = aws.output(*command, "--help").partition("examples:\n")[2]
    examples = [line for line in text.replace("\\\n", "").splitlines() if line not in ENDLESS]
    assert examples

    for example in examples:
        match example.split()[:3]:
            case ["holdfast", "token", "show" | "update" | "rotate" | "revoke"]:
                token = replace(tokens.create(**EXAMPLE)[0], id="k2v9x0q7m3c1d8f5a6b4")
                aws.put_record("payments", token.key, token.to_json())
            case ["holdfast", "trust", "show" | "update" | "remove"]:
                aws.put_record("payments", trust.KEY, trust.Records((TRUSTED,)).to_json())
            case _:
                pass  # it needs nothing in the bucket
        if re.search(r"[|&;<>$`]", example):
            done = subprocess.run(
                ["sh", "-euc", example], env=aws.environment, capture_output=True, text=True, check=False
            )
        else:  # a shell would do no more than split it
            program, *arguments = shlex.split(example)
            assert program == "holdfast"
            done = aws.run(*arguments)
        shows_secret = re.search(r"holdfast token (create|rotate)(?!.* --(json|help))", example) is not None
        tells = "--env" in example or shows_secret
        assert (done.returncode, done.stderr != "") == (0, tells), (example, done.stderr)

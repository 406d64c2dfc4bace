"""`holdfast watch`, against moto's server over HTTP."""

import json
from typing import Any

import pytest

from holdfast import watching
from holdfast.identity.tokens import Token, token_key
from holdfast_cli.bucket import records, stack, tokens, watch
from holdfast_cli.errors import CommandError
from tests.support.cli_account import REGION, Aws, bucket


@pytest.fixture
def watched(aws: Aws) -> Aws:
    aws.deploy(
        "other",
        ApiAddress="https://other.example.com",
        BucketName={"Ref": "Bucket"},
        Watched="172800",
    )
    return aws


def secrets(aws: Aws) -> list[str]:
    listed = aws.client("s3").list_objects_v2(Bucket=bucket("other"), Prefix=watching.SECRETS)
    return [one["Key"] for one in listed.get("Contents", [])]


def body(aws: Aws, key: str) -> bytes:
    found: bytes = aws.client("s3").get_object(Bucket=bucket("other"), Key=key)["Body"].read()
    return found


def test_enable_stores_a_token_that_may_do_nothing_but_the_probe_and_revokes_the_one_before(
    watched: Aws,
) -> None:
    states = set()
    for _ in range(2):
        printed = watched.output("watch", "enable", "--team", "other")
        (key,) = secrets(watched)
        stored = json.loads(body(watched, key))
        token = Token.from_json(body(watched, token_key(stored["id"])))
        # Its own state: the lock that the token before left does not stop it.
        (grant,) = token.grants
        assert grant.scope == (stored["state"],)
        assert watching.is_probes(token)
        assert stored["state"] not in states
        states.add(stored["state"])
        assert token.id in printed
        assert stored["secret"] not in printed

    tokens = json.loads(watched.output("token", "list", "--all", "--json", "--team", "other"))
    assert sorted(one["status"] for one in tokens) == ["active", "revoked"]

    watched.output("watch", "disable", "--team", "other")
    assert secrets(watched) == []


def test_the_status_names_credentials_without_a_valid_token_as_a_problem(watched: Aws) -> None:
    watched.output("watch", "enable", "--team", "other")
    (key,) = secrets(watched)
    assert "The hourly test of the API is enabled. Its token expires on" in watched.output(
        "watch", "status", "--team", "other"
    )

    watched.output("token", "revoke", key.removeprefix("watch/").removesuffix(".json"), "--team", "other")

    done = watched.run("watch", "status", "--team", "other")
    assert done.returncode == 1
    assert "problem watch.probe_ended" in " ".join(done.stdout.split())
    assert "`holdfast watch enable --team other`" in " ".join(done.stdout.split())


@pytest.mark.parametrize("lost", ["token", "secret"])
def test_a_run_whose_token_another_one_replaced_says_so_and_that_it_did_not_enable_the_probe(
    watched: Aws, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    for name, value in watched.environment.items():
        monkeypatch.setenv(name, value)
    session = stack.Session(REGION)
    found = stack.find(session, "other")
    create = records.create

    def meanwhile(store: Any, key: str, body: bytes) -> bool:
        created = create(store, key, body)
        if key.startswith(watching.SECRETS) and lost == "token":
            tokens.revoke(session, found, json.loads(body)["id"])
        elif key.startswith(watching.SECRETS):
            watched.client("s3").delete_object(Bucket=bucket("other"), Key=key)
        return created

    monkeypatch.setattr(records, "create", meanwhile)
    with pytest.raises(CommandError, match="Another run of `holdfast watch`"):
        watch.enable(session, found, None)


def test_a_team_without_the_function_gets_no_token(aws: Aws) -> None:
    done = aws.run("watch", "enable", "--team", "payments")

    assert done.returncode == 1
    assert "write `watch = true` in its settings" in done.stderr


def test_status_has_a_line_for_each_check_and_says_how_to_enable_the_probe(watched: Aws) -> None:
    lines = watched.output("watch", "status", "--team", "other").splitlines()

    assert [line.split()[:2] for line in lines if line[:1] != " "][:4] == [
        ["ok", "watch.lock_held:"],
        ["ok", "watch.state_large:"],
        ["ok", "watch.token_ends:"],
        ["note", "watch.probe:"],
    ]
    assert "`holdfast watch enable --team other`" in " ".join(lines)
    assert "No lock is older than 2d." in lines[0]

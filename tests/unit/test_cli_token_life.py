"""`holdfast token list | show | rotate | revoke`, against moto's server over HTTP."""

import json
import re
import signal
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from holdfast.access import Grant, Role
from holdfast.identity import tokens
from holdfast.identity.authentication import Authenticated
from holdfast.identity.credentials import TokenCredentials
from holdfast.identity.tokens import Token
from tests.support import terminal
from tests.support.cli_account import HOLDFAST, Aws, bucket, unread
from tests.support.fault_relay import Fault
from tests.unit.test_cli_token import for_a_client

ADA = "arn:aws:iam::123456789012:user/ada"
MOTOS_ARN = "arn:aws:sts::123456789012:user/moto"
UNKNOWN = "a" * 20
KEY = f"tokens/{UNKNOWN}.json"
NEWER = json.dumps({"id": UNKNOWN, "schema": 7, "role": "king"}).encode()


def make(
    aws: Aws,
    *,
    days: float | None = 90,
    age: timedelta = timedelta(0),
    description: str = "pipeline",
    scope: tuple[str, ...] = ("network/*",),
) -> tuple[Token, str]:
    """Put a token of this age and lifetime into the team's bucket."""
    made = datetime.now(UTC) - age
    expires = None if days is None else made + timedelta(days=days)
    token, secret = tokens.create(
        [Grant(Role.WRITER, scope)], description=description, created_by=ADA, now=made, expires=expires
    )
    put(aws, token)
    return token, secret


def put(aws: Aws, token: Token) -> None:
    aws.put_record("payments", token.key, token.to_json())


def rotated_by_bob(aws: Aws, token: Token) -> tuple[Token, str]:
    """Rotate a token as another operator does, with an hour for the old secret."""
    now, hour = datetime.now(UTC), timedelta(hours=1)
    made = tokens.rotate(token, rotated_by="bob", now=now, keep=hour, expires=None)
    put(aws, made[0])
    return made


def stored(aws: Aws, token: Token) -> Token:
    return Token.from_json(aws.records("payments")[token.key])


def takes(token: Token, secret: str, *, after: timedelta = timedelta(0)) -> bool:
    """Return whether a token lets the bearer of a secret in."""
    credentials = TokenCredentials(token.id, secret)
    outcome = tokens.authenticate(credentials, token, now=datetime.now(UTC) + after)
    return isinstance(outcome, Authenticated)


def revoked(token: Token, by: str = "arn:aws:iam::123456789012:user/bob") -> Token:
    return tokens.revoke(token, revoked_by=by, now=datetime.now(UTC))


# --- list and show -------------------------------------------------------------------------------


def test_a_list_shows_valid_tokens_by_their_id_and_no_secret(aws: Aws) -> None:
    made = make(aws)[0], make(aws, days=None, description="")[0]
    first, second = sorted(made, key=lambda token: token.id)
    make(aws, days=1, age=timedelta(days=2))
    put(aws, revoked(make(aws)[0]))

    text = aws.output("token", "list")

    head, *lines = text.splitlines()
    assert head.split() == ["ID", "ROLE", "SCOPE", "EXPIRES", "STATUS", "OWNER", "DESCRIPTION"]
    assert [line.split() for line in lines] == [
        [
            token.id,
            "writer",
            "network/*",
            *([f"{token.expires:%Y-%m-%dT%H:%M:%SZ}", "(in", "89", "d)"] if token.expires else ["never"]),
            "active",
            "-",
            token.description or "-",
        ]
        for token in (first, second)
    ]
    assert first.secret_sha256 not in text


def test_a_list_of_all_has_expired_and_revoked_ones_too(aws: Aws) -> None:
    expired = make(aws, days=1, age=timedelta(days=2))[0]
    ended = revoked(make(aws)[0])
    put(aws, ended)

    listed = json.loads(aws.output("token", "list", "--all", "--json"))

    assert {token["id"]: token["status"] for token in listed} == {expired.id: "expired", ended.id: "revoked"}
    assert json.loads(aws.output("token", "list", "--json")) == []
    assert "no valid tokens. Expired or revoked tokens: 2. --all shows all tokens." in aws.output(
        "token", "list"
    )


def test_a_list_without_tokens_says_so(aws: Aws) -> None:
    aws.put_state("payments", "network/prod", b"{}")
    aws.put_record("payments", "tokens/README.md", b"x")

    assert aws.output("token", "list") == (
        "The team payments has no valid tokens. `holdfast token create --help` shows how to create one.\n"
    )
    assert aws.output("token", "list", "--json") == "[]\n"


def test_more_tokens_than_one_page_of_the_bucket_has_are_listed_once_each(aws: Aws) -> None:
    s3 = aws.client("s3")
    template = make(aws)[0]
    wanted = {template.id} | {f"{number:020}" for number in range(1005)}
    for token_id in wanted - {template.id}:
        token = replace(template, id=token_id)
        s3.put_object(Bucket=bucket("payments"), Key=token.key, Body=token.to_json())

    listed = [token["id"] for token in json.loads(aws.output("token", "list", "--json"))]

    assert listed == sorted(wanted)


def test_an_object_that_is_no_token_is_named_and_does_not_hide_the_others(aws: Aws) -> None:
    token = make(aws)[0]
    aws.put_record("payments", KEY, b"{}")
    aws.put_record("payments", f"tokens/{'b' * 20}.json", token.to_json())

    done = aws.run("token", "list", "--json")

    assert done.returncode == 1
    assert [listed["id"] for listed in json.loads(done.stdout)] == [token.id]
    [line] = done.stderr.splitlines()
    assert f"{KEY} is damaged" in line
    assert "Further records that cannot be read: 1." in line

    aws.put_record("payments", KEY, NEWER)
    assert f"{KEY} was written by a newer version of holdfast" in aws.run("token", "list").stderr


def test_control_characters_of_a_description_do_not_reach_the_terminal(aws: Aws) -> None:
    token = make(aws, description="für\x1b]0;own\x07\nfake line\u202e")[0]

    for arguments in (["list"], ["show", token.id]):
        text = aws.output("token", *arguments)
        assert "für?]0;own??fake line?" in text
        assert not set(text) & set("\x1b\x07\u202e")
    assert len(aws.output("token", "list").splitlines()) == 2


def test_a_table_fits_the_terminal_and_goes_whole_into_a_pipe(aws: Aws) -> None:
    token, _ = make(aws, description="[red]for " + "ever " * 40, scope=("network/*", "shared"))

    narrow = terminal.run([HOLDFAST, "token", "list"], {**aws.environment, "TERM": "xterm"}, columns=40)
    whole = aws.output("token", "list")

    heading, row, *below = narrow.splitlines()
    assert (heading.split(), row.split()) == (["\x1b[1mID", "GRANTS\x1b[0m"], [token.id, "writer:network/*,"])
    assert "[red]for ever" in narrow
    assert below[0].split() == ["writer:shared"]
    assert max(map(len, below)) <= 40
    assert whole.splitlines()[1].endswith(f"  active  -      {token.description.rstrip()}")


def test_showing_a_token_tells_all_but_its_secret(aws: Aws) -> None:
    token, _ = make(aws, scope=("network/*", "shared"))
    rotated, secret = rotated_by_bob(aws, token)

    text = aws.output("token", "show", token.id)
    shown = json.loads(aws.output("token", "show", token.id, "--json"))

    fields = {name.strip(): value for name, value in re.findall(r"^  (.{12}) (.*)$", text, re.MULTILINE)}
    assert fields["status"] == "active"
    assert fields["scope"] == "network/*, shared"
    assert fields["expires"] == "never"
    assert re.search(r" UTC \([0-9]+ s ago\) by bob$", fields["rotated"])
    assert fields["old secret"].startswith("works until")
    assert "revoked" not in fields
    assert rotated.previous is not None
    assert rotated.rotated is not None
    assert shown == {
        "id": token.id,
        "status": "active",
        "role": "writer",
        "scope": ["network/*", "shared"],
        "grants": [{"role": "writer", "scope": ["network/*", "shared"]}],
        "expires": None,
        "description": "pipeline",
        "owner": "",
        "from": [],
        "created": token.created.isoformat(),
        "created_by": ADA,
        "rotated": rotated.rotated.isoformat(),
        "rotated_by": "bob",
        "old_secret_until": rotated.previous.until.isoformat(),
        "revoked": None,
        "revoked_by": "",
    }
    for hidden in (secret, rotated.secret_sha256, rotated.previous.secret_sha256):
        assert hidden not in text
        assert hidden not in json.dumps(shown)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (None, (UNKNOWN, bucket("payments"), "token list --all")),
        (NEWER, ("Upgrade the command",)),
        (b"nonsense", (f"s3://{bucket('payments')}/{KEY} is damaged",)),
    ],
    ids=["unknown", "of a newer command", "nonsense"],
)
def test_what_cannot_be_read_as_a_token_is_one_line_that_says_why_and_stays(
    aws: Aws, body: bytes | None, says: tuple[str, ...]
) -> None:
    before = {} if body is None else {KEY: body}
    for key, record in before.items():
        aws.put_record("payments", key, record)

    for command in ("show", "rotate", "revoke"):
        line = aws.failure("token", command, UNKNOWN)
        assert [words for words in says if words not in line] == []
    assert aws.records("payments") == before


@pytest.mark.parametrize("command", ["show", "rotate", "revoke"])
@pytest.mark.parametrize("token_id", ["", "short", "../../states/network/prod", "A" * 20, "a" * 20 + "\n"])
def test_what_is_no_token_id_is_wrong_usage_and_not_repeated(aws: Aws, command: str, token_id: str) -> None:
    done = aws.run("token", command, token_id)

    assert (done.returncode, done.stdout) == (2, "")
    assert "not a valid token ID" in done.stderr
    assert not token_id or token_id not in done.stderr


# --- rotate --------------------------------------------------------------------------------------


def rotate(aws: Aws, token: Token, *arguments: str, **environment: str) -> dict[str, Any]:
    printed = aws.output("token", "rotate", token.id, "--json", *arguments, **environment)
    return cast("dict[str, Any]", json.loads(printed))


def test_the_json_of_a_rotation_is_that_of_a_new_token_with_the_end_of_the_old_secret(aws: Aws) -> None:
    token, old = make(aws, days=30, age=timedelta(days=20))

    made = rotate(aws, token)

    secret, now = made.pop("secret"), stored(aws, token)
    assert takes(now, old)
    assert takes(now, secret, after=timedelta(days=2))
    assert now.rotated_by == MOTOS_ARN
    for name, left in (("expires", timedelta(days=30)), ("old_secret_until", timedelta(hours=24))):
        at = datetime.fromisoformat(made.pop(name))
        assert abs(at - datetime.now(UTC) - left) < timedelta(minutes=1)
    more = {"id": token.id, "scope": ["network/*"], "description": "pipeline"}
    assert made == for_a_client(token.id, secret, **more)


def test_a_rotation_for_people_shows_the_secret_and_until_when_the_old_one_works(aws: Aws) -> None:
    token, old = make(aws)

    done = aws.run("token", "rotate", token.id, "--keep", "2h", "--expires", "2099-01-31")

    assert done.returncode == 0, done.stderr
    told = " ".join(done.stderr.split())
    secret = dict(re.findall(r"export (\w+)=(\S+)", done.stdout))["TF_HTTP_PASSWORD"]
    assert takes(stored(aws, token), secret)
    previous = stored(aws, token).previous
    assert previous is not None
    assert f"The old secret works until {previous.until:%Y-%m-%d %H:%M:%S} UTC." in told
    assert "It expires 2099-01-31 00:00:00 UTC." in told
    assert takes(stored(aws, token), old, after=timedelta(hours=1, minutes=59))
    assert not takes(stored(aws, token), old, after=timedelta(hours=2, seconds=1))


def test_a_rotation_whose_answer_is_lost_prints_the_secret_that_works(aws: Aws) -> None:
    token, old = make(aws, days=None)

    with aws.faults(".json", Fault.ANSWER_LOST) as s3:
        made = rotate(aws, token, **s3)

    now = stored(aws, token)
    assert takes(now, made["secret"])
    assert takes(now, old)
    assert made["expires"] is None


def test_a_revocation_wins_over_a_rotation_that_is_under_way(aws: Aws) -> None:
    token, _ = make(aws)

    with aws.faults(".json", before=lambda: put(aws, revoked(token))) as s3:
        line = aws.failure("token", "rotate", token.id, **s3)

    assert "The secret cannot be rotated: " in line
    assert "is revoked" in line
    assert stored(aws, token).status(datetime.now(UTC)) == "revoked"


def test_of_two_rotations_at_once_both_print_a_secret_that_works(aws: Aws) -> None:
    token, _ = make(aws)
    other: list[str] = []

    with aws.faults(".json", before=lambda: other.append(rotated_by_bob(aws, token)[1])) as s3:
        made = rotate(aws, token, **s3)

    assert takes(stored(aws, token), made["secret"])
    assert takes(stored(aws, token), other[0])


def test_a_rotation_that_the_bucket_does_not_decide_says_how_to_find_out(aws: Aws) -> None:
    token, _ = make(aws)

    with aws.faults(".json", Fault.SERVER_ERROR, times=1000) as s3:
        line = aws.failure("token", "rotate", token.id, **s3)

    assert "may have taken effect" in line
    assert f"holdfast token show {token.id}" in line
    assert "holdfast_" not in line


# --- update --------------------------------------------------------------------------------------


def test_an_update_changes_only_what_was_named_and_shows_what_was_and_is(aws: Aws) -> None:
    token, secret = make(aws)

    text = aws.output("token", "update", token.id, "--owner", "Zoë")

    assert text == f"Updated the token {token.id} of the team payments.\n\n  owner  - -> Zoë\n"
    assert stored(aws, token) == replace(token, owner="Zoë")
    assert takes(stored(aws, token), secret)
    shown = json.loads(
        aws.output("token", "update", token.id, "--owner", "", "--description", "CI", "--json")
    )
    assert (shown["owner"], shown["description"]) == ("", "CI")
    assert stored(aws, token) == replace(token, description="CI")


def test_an_update_without_a_change_writes_nothing(aws: Aws) -> None:
    token, _ = make(aws)

    with aws.faults(".json", Fault.SERVER_ERROR, times=1000) as s3:  # of writes
        text = aws.output("token", "update", token.id, "--description", "pipeline", **s3)

    assert (
        text == f"Nothing was changed: the token {token.id} of the team payments already had these values.\n"
    )


def test_an_update_keeps_a_revocation_and_a_rotation_that_were_faster(aws: Aws) -> None:
    token, old = make(aws)

    with aws.faults(".json", before=lambda: rotated_by_bob(aws, token)) as s3:
        aws.output("token", "update", token.id, "--owner", "ada", **s3)
    rotated = stored(aws, token)
    assert (rotated.owner, rotated.rotated_by, takes(rotated, old)) == ("ada", "bob", True)

    with aws.faults(".json", before=lambda: put(aws, revoked(rotated))) as s3:
        aws.output("token", "update", token.id, "--owner", "bea", **s3)
    assert (stored(aws, token).owner, takes(stored(aws, token), old)) == ("bea", False)


@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.SERVER_ERROR_AFTERWARDS, Fault.NEVER_ARRIVES])
def test_an_update_whose_answer_is_lost_is_recorded_all_the_same(aws: Aws, fault: Fault) -> None:
    token, _ = make(aws)

    with aws.faults(".json", fault) as s3:
        aws.output("token", "update", token.id, "--owner", "ada", **s3)

    assert stored(aws, token).owner == "ada"


# --- revoke --------------------------------------------------------------------------------------


@pytest.mark.parametrize("days", [90, 1], ids=["active", "expired"])
def test_a_revoked_token_is_refused_and_its_record_says_who_and_when(aws: Aws, days: int) -> None:
    token, secret = make(aws, days=days, age=timedelta(days=2))

    text = aws.output("token", "revoke", token.id)

    assert text == (
        f"Revoked the token {token.id} of the team payments: it is refused everywhere within 60 seconds.\n"
    )
    now = stored(aws, token)
    assert not takes(now, secret)
    assert now.revoked is not None
    assert timedelta(0) <= datetime.now(UTC) - now.revoked < timedelta(minutes=1)
    assert now.revoked_by == MOTOS_ARN
    assert replace(now, revoked=None, revoked_by="") == token


def test_revoking_again_succeeds_and_changes_nothing(aws: Aws) -> None:
    token = revoked(make(aws)[0])
    put(aws, token)

    shown = json.loads(aws.output("token", "revoke", token.id, "--json"))

    assert (shown["status"], shown["revoked_by"]) == ("revoked", token.revoked_by)
    assert stored(aws, token) == token


def test_a_revocation_is_repeated_over_a_rotation_that_was_faster(aws: Aws) -> None:
    token, old = make(aws)
    secrets = [old]

    with aws.faults(".json", before=lambda: secrets.append(rotated_by_bob(aws, token)[1])) as s3:
        aws.output("token", "revoke", token.id, **s3)

    assert len(secrets) == 2
    assert not any(takes(stored(aws, token), secret) for secret in secrets)


@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.SERVER_ERROR_AFTERWARDS, Fault.NEVER_ARRIVES])
def test_a_revocation_whose_answer_is_lost_is_recorded_all_the_same(aws: Aws, fault: Fault) -> None:
    token, secret = make(aws)

    with aws.faults(".json", fault) as s3:
        aws.output("token", "revoke", token.id, **s3)

    assert not takes(stored(aws, token), secret)


def test_a_revocation_that_the_bucket_does_not_decide_fails_and_says_to_repeat_it(aws: Aws) -> None:
    token, _ = make(aws)

    with aws.faults(".json", Fault.SERVER_ERROR, times=1000) as s3:
        line = aws.failure("token", "revoke", token.id, **s3)

    assert "Run the command again until" in line


def test_an_interrupted_revocation_says_to_repeat_it(aws: Aws) -> None:
    token, _ = make(aws)

    process: list[subprocess.Popen[bytes]] = []
    with aws.faults(".json", before=lambda: process[0].send_signal(signal.SIGINT)) as s3:
        line = [str(HOLDFAST), "token", "revoke", token.id]
        with subprocess.Popen(line, env={**aws.environment, **s3}, stderr=subprocess.PIPE) as command:
            process.append(command)
            _, told = command.communicate(timeout=30)

    assert command.returncode == 130
    assert told.startswith(b"holdfast: Interrupted. Run the command again until")


# --- output that does not get out ----------------------------------------------------------------


def test_a_rotated_secret_that_could_not_be_shown_is_said_to_be_lost(aws: Aws) -> None:
    token, old = make(aws)

    code, [line] = unread(aws.environment, "token", "rotate", token.id)

    assert code == 1
    assert f"The token {token.id} was rotated, but its new secret is lost" in line
    assert "The old secret works until" in line
    assert "holdfast_" not in line
    assert takes(stored(aws, token), old)


def test_a_revocation_that_could_not_be_told_is_told_in_the_error(aws: Aws) -> None:
    token, _ = make(aws)

    code, [line] = unread(aws.environment, "token", "revoke", token.id)

    assert code == 1
    assert f"Revoked the token {token.id}" in line
    assert stored(aws, token).revoked is not None

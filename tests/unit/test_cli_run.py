"""`holdfast run`: the session in the environment of a program that replaces the command."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import forked_command
from tests.support.api_stub import ApiStub, made, refused, session
from tests.support.cli_account import HOLDFAST
from tests.unit.test_cli_login import AWS, jwt

SHOW = 'printf "%s\\n" "$TF_HTTP_USERNAME" "$TF_HTTP_PASSWORD" "$TF_TOKEN_holdfast_local" "$HOLDFAST_ADDRESS"'


def run(stub: ApiStub, home: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "HOLDFAST_ADDRESS": stub.address, **AWS}
    return forked_command.run(["run", *arguments], environment | more, timeout=60)


def test_the_program_has_a_session_that_is_used_again_and_nothing_is_printed(
    stub: ApiStub, tmp_path: Path
) -> None:
    got = session(seconds=43_200)
    stub.reply(made(got), made(session()))

    for _ in range(2):
        done = run(stub, tmp_path, "--", "sh", "-c", SHOW, TF_HTTP_PASSWORD="old", TF_HTTP_USERNAME="old")
        said = [got["id"], got["secret"], f"{got['id']}.{got['secret']}", stub.address]
        assert (done.returncode, done.stdout.splitlines(), done.stderr) == (0, said, "")

    [asked, _] = stub.asked
    assert asked.body == b'{"seconds": 43200}'


def test_a_ci_job_runs_with_its_id_token_and_the_asked_duration(stub: ApiStub, tmp_path: Path) -> None:
    stub.reply(made(session()))

    done = run(stub, tmp_path, "--oidc", "--duration=30m", "--", "true", HOLDFAST_ID_TOKEN=jwt())

    assert done.returncode == 0
    [asked] = stub.asked
    assert (asked.path, asked.body) == ("/sessions", b'{"seconds": 1800}')
    assert asked.headers["authorization"] == f"Bearer {jwt()}"


@pytest.mark.parametrize(
    ("script", "code", "printed"),
    [
        ("exit 7", 7, ""),
        ('echo "$0 $*"', 0, "-a --help -- --json\n"),
        # Python ignores this signal, and a pipe of the program would never end.
        ("kill -PIPE $$; echo survived", -signal.SIGPIPE, ""),
        ("kill -INT $$; echo survived", -signal.SIGINT, ""),
    ],
)
def test_arguments_signals_and_exit_code_are_the_programs_own(
    stub: ApiStub, tmp_path: Path, script: str, code: int, printed: str
) -> None:
    stub.reply(made(session()))

    done = run(stub, tmp_path, "--", "sh", "-c", script, "-a", "--help", "--", "--json")

    assert (done.returncode, done.stdout, done.stderr) == (code, printed, "")


def test_the_program_replaces_the_command_and_gets_its_signals_and_its_input(
    stub: ApiStub, tmp_path: Path
) -> None:
    stub.reply(made(session()))
    script = "trap 'echo cleaned up; exit 3' TERM; read line; echo $line $$; while :; do sleep 0.1; done"
    environment = {**os.environ, "HOME": str(tmp_path), "HOLDFAST_ADDRESS": stub.address, **AWS}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    with subprocess.Popen(
        [HOLDFAST, "run", "--", "sh", "-c", script],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("typed\n")
        process.stdin.flush()
        assert process.stdout.readline() == f"typed {process.pid}\n"
        process.terminate()
        output, _ = process.communicate(timeout=60)

    assert (process.returncode, output) == (3, "cleaned up\n")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--", "no-program-of-this-name"], 127, "no-program-of-this-name cannot be started: No "),
        (["--", "/dev/null/x"], 127, "/dev/null/x cannot be started: Not a directory"),
        (["--", ""], 127, "The program's name is empty. Write a program after --."),
        (["--", "/dev/null"], 126, "/dev/null cannot be started: Permission denied"),
        (["terraform", "apply", "-auto-approve"], 2, "program, type -- before the program."),
        ([], 2, "the following arguments are required: COMMAND"),
        (["--oidc", "--aws-profile", "x", "--", "true"], 2, "cannot be used together"),
        (["--audience", "x", "--", "true"], 2, "need --oidc"),
        (["--address", "http://192.0.2.1", "--", "true"], 2, "https:// only"),
    ],
)
def test_a_program_that_cannot_be_run_is_one_line_without_the_secret(
    stub: ApiStub, tmp_path: Path, arguments: list[str], code: int, says: str
) -> None:
    got = session()
    stub.reply(made(got))

    done = run(stub, tmp_path, *arguments)

    assert (done.returncode, done.stdout) == (code, "")
    assert says in done.stderr.splitlines()[-1]
    assert got["secret"] not in done.stderr


def test_without_a_session_the_program_is_not_run(stub: ApiStub, tmp_path: Path) -> None:
    stub.reply(refused(403, "not_allowed", "No trust record names the role."))

    done = run(stub, tmp_path, "--", "touch", str(tmp_path / "ran"))

    assert done.returncode == 1
    assert "No trust record names the role." in done.stderr
    assert not (tmp_path / "ran").exists()

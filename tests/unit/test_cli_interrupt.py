"""Ctrl-C ends the command with 130 and without a traceback: while it loads, runs and ends."""

import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from holdfast import __version__
from holdfast.access import Grant, Role
from holdfast.identity.tokens import create
from holdfast_cli.bucket import stack, tokens
from holdfast_cli.commands import token as token_command
from holdfast_cli.main import main

ROOT: Final = Path(__file__).parents[2]

_MOMENTS: Final = {
    "holdfast_cli.main": "importing('holdfast_cli.main')",
    "argparse": "importing('argparse')",
    "a module of a command": "importing('holdfast_cli.commands.token')",
    "the AWS SDK": "importing('botocore.session')",
    "a callback that Python cannot pass it on from": "importing('argparse', in_finalizer)",
    "the name of a class's attribute, where Python 3.11 wraps it": "importing('argparse', in_set_name)",
    "a read that takes long, which is not waited for": "reading()",
    "the end, before output is flushed": "atexit.register(interrupt)",
    "the end, while output is flushed": "sys.stdout.flush = flush",
}
"""Moments at which the command is interrupted, and how a process of its own arranges for each."""

_SCRIPT: Final = """
import atexit, os, signal, sys, threading

def interrupt():
    signal.raise_signal(signal.SIGINT)

class Finalized:
    def __del__(self):
        interrupt()

class Named:
    def __set_name__(self, owner, name):
        interrupt()

def in_finalizer():
    Finalized()

def in_set_name():
    type("Owner", (), {"attribute": Named()})

class Finder:
    def __init__(self, module, how):
        self.module, self.how = module, how
    def find_spec(self, name, path, target=None):
        if name == self.module:
            self.how()

def importing(module, how=interrupt):
    sys.meta_path.insert(0, Finder(module, how))

def reading():
    from holdfast_cli.bucket import stack, tokens
    stack.open_team = lambda _: (None, stack.Stack("a", "", "", ""))
    tokens.connect = lambda _: None
    tokens._keys = lambda *_: [""]
    tokens.Store.read = lambda *_: threading.Event().wait(120)
    tokens.as_completed = lambda _: interrupt()

flushed = []

def flush():
    flushed.append(type(sys.stdout).flush(sys.stdout))
    if len(flushed) == 2:  # the command flushes first, and then Python at its end
        interrupt()

for moment in sys.argv[1:]:
    sys.stderr.flush()
    if (pid := os.fork()) == 0:
        os.dup2(1, 2)
        lists = any(word in moment for word in ("botocore", "commands.token", "reading"))
        sys.argv = ["holdfast", *("token list --team a".split() if lists else ["--version"])]
        exec(moment)
        from holdfast_cli.__main__ import main
        sys.exit(main())
    print("=>", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


def test_an_interrupt_at_any_time_ends_with_130_and_no_traceback(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, *_MOMENTS.values()],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'functions'}", "AWS_REGION": "eu-central-1"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=60,
    )

    printed = done.stdout.replace(f"holdfast {__version__}\n", "")
    assert printed.splitlines() == ["=> 130"] * len(_MOMENTS)


def test_an_interrupt_between_a_change_and_its_output_says_what_was_changed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    token, secret = create(
        [Grant(Role.WRITER, ("x",))], description="", created_by="ada", now=datetime.now(UTC), expires=None
    )
    found = stack.Stack("payments", "https://a.example", "bucket", "123456789012")
    monkeypatch.setenv("HOLDFAST_CONFIG_FILE", "/dev/null")
    monkeypatch.setattr(stack, "open_team", lambda _: (None, found))
    monkeypatch.setattr(tokens, "create", lambda *_: (token, secret))
    monkeypatch.setattr(token_command, "_exports", lambda *_: signal.raise_signal(signal.SIGINT))

    assert main(["token", "create", "--role", "writer", "--scope", "x"]) == 130
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        f"holdfast: Interrupted. The token {token.id} was created, but its secret is lost: revoke the token "
        f"with `holdfast token revoke {token.id} --team payments`.\n"
    )

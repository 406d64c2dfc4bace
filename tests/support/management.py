"""Run commands against a stub of the management API on this machine."""

import json
import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from holdfast.api import form, v1
from holdfast.identity.credentials import new_id, new_secret
from tests.support import forked_command
from tests.support.api_stub import ApiStub, Reply
from tests.support.waiting import HANGS

NAME: Final = "network/prod"
ID, SECRET = new_id(), new_secret()
CREDENTIALS: Final = {"TF_HTTP_USERNAME": ID, "TF_HTTP_PASSWORD": SECRET}


def environment(stub: ApiStub | None, **changed: str | None) -> dict[str, str]:
    """Return the variables of a user who has signed in to a stub. A variable of None is not set."""
    variables: dict[str, str | None] = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        **CREDENTIALS,
        "HOLDFAST_ADDRESS": stub.address if stub else None,
        **changed,
    }
    return {name: value for name, value in variables.items() if value is not None}


def run(stub: ApiStub | None, *arguments: str, **changed: str | None) -> subprocess.CompletedProcess[str]:
    return forked_command.run(arguments, environment(stub, **changed), timeout=HANGS)


def output(stub: ApiStub, *arguments: str, **changed: str | None) -> str:
    """Run the command, which must succeed and print nothing on standard error; return what it prints."""
    done = run(stub, *arguments, **changed)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def failure(stub: ApiStub | None, *arguments: str, code: int = 1, **changed: str | None) -> str:
    """Run the command, which must fail and print nothing but one line; return that line."""
    done = run(stub, *arguments, **changed)
    assert (done.returncode, done.stdout) == (code, ""), done
    [line] = done.stderr.splitlines()
    return line


def answer(document: object, status: int = 200) -> Reply:
    """Return a response with a JSON document."""
    return Reply(status, json.dumps(document).encode(), {"Content-Type": "application/json"})


def refusal(status: int, code: str, message: str, lock: Mapping[str, Any] | None = None) -> Reply:
    document: dict[str, Any] = {"error": code, "message": message}
    return answer(document | ({"lock": lock} if lock else {}), status)


def ago(**span: float) -> str:
    """Return a time in the past, as the API writes it. `span` is how long ago it is."""
    return f"{datetime.now(UTC) - timedelta(**span):%Y-%m-%dT%H:%M:%SZ}"


def lock(**changed: object) -> dict[str, Any]:
    return {
        "id": "4fe1c2a0",
        "version": "lock-version",
        "who": "bob@desk",
        "principal": "token:k2v9x0q7m3c1d8f5a6b4",
        "owner": None,
        "operation": "OperationTypeApply",
        "info": "",
        "since": ago(days=9, hours=1),
        "freeze": None,
    } | changed


def of_lock(held_lock: object) -> Reply:
    """Return the answer about the lock of `NAME`."""
    return answer({"name": NAME, "lock": held_lock})


def freeze(**changed: object) -> dict[str, Any]:
    frozen = {
        "id": 32 * "a",
        "reason": "incident 4711",
        "by": "token:ada",
        "since": ago(days=9, hours=1),
        "until": None,
        "ended": False,
    } | changed
    return lock(
        id=f"frozen: incident 4711 [{32 * 'a'}]",
        who="token:ada",
        principal="token:ada",
        operation="freeze",
        freeze=frozen,
    )


def held(lock_id: str = "4fe1c2a0", who: str = "bob@desk") -> dict[str, str]:
    """Return a lock info of Terraform."""
    return {
        "ID": lock_id,
        "Who": who,
        "Operation": "OperationTypeApply",
        "Info": "",
        "Version": "1.11.4",
        "Created": ago(days=9, hours=1),
        "Path": "",
    }


def version(version_id: str, serial: int | None, time: str, **changed: object) -> dict[str, Any]:
    """Return a version of a history. A member without an example is null."""
    return (
        dict.fromkeys(form.names(v1.Version))
        | {
            "version": version_id,
            "time": time,
            "size": 4_200_000,
            "current": False,
            "delete_marker": False,
            "serial": serial,
            "lineage": "2f1c8f3e",
            "terraform_version": "1.11.4",
            "principal": "token:k2v9x0q7m3c1d8f5a6b4",
            "who": "bob@desk",
            "operation": "OperationTypeApply",
            "lock_id": "4fe1c2a0",
            "sha256": f"of {version_id}",
            "status": "acknowledged",
        }
        | changed
    )


def deleted(version_id: str, time: str) -> dict[str, Any]:
    """Return a delete marker of a history."""
    empty = dict.fromkeys(version("", 0, ""))
    return empty | {"version": version_id, "time": time, "current": False, "delete_marker": True}


def resolved(
    version_id: str,
    serial: int | None = 12,
    time: str = "2026-11-20T12:00:00Z",
    status: str | None = "acknowledged",
    next_: str | None = None,
    *,
    current: bool = True,
) -> Reply:
    """Return a response that resolves a reference; v-14 is current. `next_`: the search must go on there."""
    found = {"version": version_id, "serial": serial, "time": time, "status": status}
    newest = {"version": "v-14", "serial": 14, "time": "2026-11-20T14:00:00Z", "status": "acknowledged"}
    return answer(
        {
            "name": NAME,
            "reference": "@",
            "found": None if next_ else found,
            "current": newest if current else None,
            "next": next_,
        }
    )


def page(member: str, *items: object, next_: str | None = None, **more: object) -> Reply:
    return answer({member: list(items), "next": next_, **more})


def state(**changed: object) -> dict[str, Any]:
    return {
        "name": NAME,
        "version": "v-14",
        "size": 4_200_000,
        "modified": ago(days=9, hours=1),
        "serial": 14,
        "lineage": "2f1c8f3e",
        "terraform_version": "1.11.4",
        "principal": "token:k2v9x0q7m3c1d8f5a6b4",
        "owner": None,
        "who": "bob@desk",
        "operation": "OperationTypeApply",
        "status": "acknowledged",
        "encrypted": False,
        "resources": {"managed": 12, "data": 3, "outputs": 2},
        "lock": None,
        "record": False,
        "record_version": None,
    } | changed

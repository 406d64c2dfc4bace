"""A witness: a client that counts in states over `backend "http"` or `cloud {}`, and keeps a journal.

As a program it acquires a lock, reads a number, writes the next number and releases the lock, again and
again. It retries requests as Terraform's HTTP client does, with shorter waits. It writes each request to its
journal before it sends it, and each response at once, so that the journal is complete after a SIGKILL. With
the argument `operate` it is an operator that removes locks. With `restore` it restores earlier versions, with
`freeze` it freezes and unfreezes, both over the management API.

It imports only the standard library, because it is started again after every kill.
"""

import base64
import hashlib
import http.client
import json
import os
import random
import re
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

TIME_LIMIT: Final = 40.0
"""Seconds that a client waits for a response: longer than the gateway's 30 s."""

_ATTEMPTS = 3  # Terraform's retry_max is 2
_FIRST_WAIT = 0.1
_UNREADABLE = -1
_CLOUD = "/api/v2/"
_MANAGE = "/manage/v1/"
_SERIAL = re.compile(rb'"serial": \d+')
_COMMAND = re.compile(r"(?:restore|freeze)-[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a client, which it reads when it starts.

    Attributes:
        name: the client's name, and its journal's.
        username: the ID of its token.
        password: the secret of its token.
        folder: the first part of the states' names, such as `load`.
        slots: the number of states at a time. Clients choose the first far more often than the others.
        began: `time.monotonic()` when the run began, the same for all clients.
        generation: seconds after which clients go on to other states, so that no history grows long.
        patience: seconds that the client waits for a lock.
        uploads: the base URL for uploads to S3 by a client of `cloud {}`; empty for `backend "http"`.
    """

    name: str
    address: str
    username: str
    password: str
    journal: str
    seed: int
    folder: str
    slots: int
    began: float
    generation: float
    patience: float
    uploads: str = ""

    def to_json(self) -> str:
        """Return the line for the program's standard input."""
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class Content:
    """The facts about a state document that journals and the verdict use.

    `sha256` is in hexadecimal. `counter` is the number in the document. `bare` is the SHA-256 of the document
    with serial 0: a restore changes only the serial.
    """

    sha256: str
    serial: int
    counter: int
    bare: str = ""


def content(body: bytes) -> Content:
    """Return the facts about a state document; ValueError if no witness wrote it."""
    try:
        document = json.loads(body)
        counter = document["outputs"]["counter"]["value"]
        bare = hashlib.sha256(with_serial(body, 0)).hexdigest()
        return Content(hashlib.sha256(body).hexdigest(), int(document["serial"]), int(counter), bare)
    except (KeyError, TypeError) as error:
        raise ValueError(f"no state of a witness: {error!r}") from error


def with_serial(body: bytes, serial: int) -> bytes:
    """Return a witness's state document with another serial."""
    return _SERIAL.sub(b'"serial": %d' % serial, body, count=1)


def journalled(lock: Mapping[str, Any]) -> str:
    """Return the name of a lock in the journals: its ID, or the command that restores or freezes."""
    command = _COMMAND.search(str(lock.get("Info", "")))
    return command[0] if command else str(lock.get("ID", ""))


@dataclass(slots=True)
class _Journal:
    """An append-only file. A line is written with one system call, so that a SIGKILL cannot lose it."""

    path: Path
    _file: int = field(init=False)
    _number: int = 0

    def __post_init__(self) -> None:
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def note(self, **entry: object) -> None:
        line = json.dumps({"at": time.monotonic(), **entry}, separators=(",", ":")) + "\n"
        os.write(self._file, line.encode())


@dataclass(frozen=True, slots=True)
class _Answer:
    """The response that decides an operation. The status is None if no response did."""

    status: int | None
    body: bytes = b""


_Answered = Callable[[bytes], dict[str, Any]]
"""Returns the journal's entry for the body of a success."""


class _Http:
    """Works as Terraform's HTTP client: it keeps its connection, and retries while the outcome is unknown."""

    def __init__(self, settings: Settings, journal: _Journal) -> None:
        address = urlsplit(settings.address)
        self._netloc, self._base = address.netloc, address.path
        self._uploads = urlsplit(settings.uploads).netloc
        self._connection: http.client.HTTPConnection | None = None
        credentials = base64.b64encode(f"{settings.username}:{settings.password}".encode()).decode()
        self._headers = {"Authorization": f"Basic {credentials}"}
        self._cloud_headers = {"Authorization": f"Bearer {settings.username}.{settings.password}"}
        self._journal = journal

    def ask(
        self,
        verb: str,
        state: str,
        lock: str | None,
        method: str,
        path: str,
        body: bytes | None = None,
        answered: _Answered | None = None,
        **said: object,
    ) -> _Answer:
        """Send a request, and retry it as long as its outcome is unknown and attempts are left."""
        number = self._journal.next_number()
        wait = _FIRST_WAIT
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(wait)
                wait *= 2
            ask = {"number": number, "attempt": attempt, "verb": verb, "state": state, "lock": lock}
            self._journal.note(**ask, **said)
            try:
                status, content = self._send(method, path, body)
            except (OSError, http.client.HTTPException) as error:
                self._close()
                self._journal.note(number=number, attempt=attempt, error=type(error).__name__)
                continue
            told = {"number": number, "attempt": attempt, "status": status}
            noted = answered(content) if answered and status == 200 else _said(verb, status, content)
            self._journal.note(**told, **noted)
            if status != 429 and status < 500:
                return _Answer(status, content)
        return _Answer(None)

    def _send(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        if path.startswith("http://"):
            return self._upload(method, path, body)
        if self._connection is None:
            self._connection = http.client.HTTPConnection(self._netloc, timeout=TIME_LIMIT)
        is_cloud = path.startswith(_CLOUD)
        headers = dict(self._cloud_headers if is_cloud else self._headers)
        if is_cloud:
            headers["Content-Type"] = "application/vnd.api+json"
        elif body:
            headers["Content-Type"] = "application/json"
            digest = hashlib.md5(body, usedforsecurity=False).digest()
            headers["Content-MD5"] = base64.b64encode(digest).decode()
        self._connection.request(method, self._base + path, body, headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.will_close:
            self._close()
        return answer.status, content

    def _upload(self, method: str, address: str, body: bytes | None) -> tuple[int, bytes]:
        """Send a request to a presigned address. The signature covers the host, not the connection."""
        url = urlsplit(address)
        headers = {"Host": url.netloc, "Content-Type": "application/octet-stream"}
        with closing(http.client.HTTPConnection(self._uploads, timeout=TIME_LIMIT)) as connection:
            connection.request(method, f"{url.path}?{url.query}", body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _said(verb: str, status: int, body: bytes) -> dict[str, Any]:
    """Return the journal's entry for the body of a response."""
    if verb == "read" and status == 200:
        try:
            return {"read": asdict(content(body))}
        except ValueError:
            return {"read": asdict(Content(hashlib.sha256(body).hexdigest(), _UNREADABLE, _UNREADABLE))}
    try:
        document = json.loads(body)
    except ValueError:
        return {}
    if not isinstance(document, dict):
        return {}
    if status == 423 and "errors" not in document:
        return {"holder": journalled(document.get("lock", document))}
    if "errors" in document:
        return {"error": document["errors"][0].get("code", "")}
    return {"error": document["error"]} if "error" in document else {}


@dataclass(frozen=True, slots=True)
class _State:
    """The state in a client's memory. As in Terraform, a raised serial stays raised after a failure."""

    lineage: str
    serial: int
    counter: int

    def next(self) -> "_State":
        return _State(self.lineage, self.serial + 1, self.counter)

    def to_json(self, who: str) -> bytes:
        document = {
            "version": 4,
            "terraform_version": "1.15.5",
            "serial": self.serial,
            "lineage": self.lineage,
            "outputs": {
                "counter": {"value": self.counter, "type": "number"},
                "written_by": {"value": who, "type": "string"},
            },
            "resources": [],
            "check_results": None,
        }
        return json.dumps(document, indent=2).encode() + b"\n"


def lock_info(lock: str, who: str) -> bytes:
    """Return the body of a lock request, as Terraform sends it."""
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return json.dumps(
        {
            "ID": lock,
            "Operation": "OperationTypeApply",
            "Info": "",
            "Who": who,
            "Version": "1.15.5",
            "Created": created,
            "Path": "",
        }
    ).encode()


class _Client:
    """Counts, one round after another."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._random = random.Random(settings.seed)  # noqa: S311 reproducible, not secret
        self._http = _Http(settings, _Journal(Path(settings.journal)))

    def round(self) -> None:
        """Lock, read, write the next number, unlock, on one state."""
        state = self._choose()
        lock = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        info = lock_info(lock, self._settings.name)
        if not self._acquire(state, lock, info):
            return
        read = self._http.ask("read", state, lock, "GET", f"/states/{state}")
        if read.status in (200, 204):
            self._count(state, lock, read)
        self._http.ask("unlock", state, lock, "DELETE", f"/locks/{state}", info)

    def _choose(self) -> str:
        settings = self._settings
        slot = 0 if self._random.random() < 0.2 else self._random.randrange(settings.slots)
        generation = int((time.monotonic() - settings.began) / settings.generation)
        return f"{settings.folder}/{generation:04}/{slot}"

    def _acquire(self, state: str, lock: str, info: bytes) -> bool:
        until = time.monotonic() + self._settings.patience
        while True:
            answer = self._http.ask("lock", state, lock, "PUT", f"/locks/{state}", info)
            if answer.status != 423 or time.monotonic() > until:
                return answer.status == 200
            time.sleep(self._random.uniform(0.05, 0.2))

    def _count(self, state: str, lock: str, read: _Answer) -> None:
        if read.status == 200:
            document = json.loads(read.body)
            counter = document["outputs"]["counter"]["value"] + 1
            new = _State(document["lineage"], document["serial"] + 1, counter)
            over = hashlib.sha256(read.body).hexdigest()
        else:
            lineage = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
            new, over = _State(lineage, 1, 1), None
        if self._write(state, lock, new, over) != 200:
            # The final save after a failed save raises the serial once more.
            self._write(state, lock, new.next(), over)

    def _write(self, state: str, lock: str, new: _State, over: str | None) -> int | None:
        body = new.to_json(lock)
        written = asdict(content(body))
        path = f"/states/{state}?ID={lock}"
        return self._http.ask("write", state, lock, "POST", path, body, written=written, over=over).status


class _CloudClient(_Client):
    """Counts over `cloud {}`. In its journal a download is a read, and a commit is a write."""

    def round(self) -> None:
        """Open a workspace, lock, read, create, upload and commit the next number, unlock, on one state."""
        state = self._choose()
        workspace = _opened(self._http, state)
        if workspace is None:
            return
        self._workspace = workspace
        lock = lock_of(workspace)
        if not self._acquire_workspace(state, lock):
            return
        read = self._read(state, lock)
        if read is not None:
            self._count(state, lock, read)
        self._ask("unlock", state, lock, "POST", "actions/unlock")

    def _ask(
        self,
        verb: str,
        state: str,
        lock: str,
        method: str,
        path: str,
        document: object = None,
        **said: object,
    ) -> _Answer:
        body = None if document is None else json.dumps(document).encode()
        address = f"{_CLOUD}workspaces/{self._workspace}/{path}"
        return self._http.ask(verb, state, lock, method, address, body, None, cloud=True, **said)

    def _acquire_workspace(self, state: str, lock: str) -> bool:
        until = time.monotonic() + self._settings.patience
        while True:
            reason = {"reason": "Locked by Terraform"}
            answer = self._ask("lock", state, lock, "POST", "actions/lock", reason)
            if answer.status != 409 or time.monotonic() > until:
                return answer.status == 200
            time.sleep(self._random.uniform(0.05, 0.2))

    def _read(self, state: str, lock: str) -> _Answer | None:
        """Return the state, or an empty response if there is no state; None if the outcome is unknown."""
        since = time.monotonic()
        current = self._ask("current", state, lock, "GET", "current-state-version")
        if current.status == 404:
            return _Answer(204)
        if current.status != 200:
            return None
        where = json.loads(current.body)["data"]["attributes"]["hosted-state-download-url"]
        # The downloaded version was current when the request for the current version was sent.
        path = _CLOUD + where.partition(_CLOUD)[2]
        read = self._http.ask("read", state, lock, "GET", path, cloud=True, since=since)
        return read if read.status == 200 else None

    def _write(self, state: str, lock: str, new: _State, over: str | None) -> int | None:
        body = new.to_json(lock)
        announced = {
            "serial": new.serial,
            "lineage": new.lineage,
            "md5": hashlib.md5(body, usedforsecurity=False).hexdigest(),
        }
        document = {"data": {"type": "state-versions", "attributes": announced}}
        created = self._ask("create", state, lock, "POST", "state-versions", document)
        if created.status != 201:
            return created.status
        upload = json.loads(created.body)["data"]
        address = upload["attributes"]["hosted-state-upload-url"]
        uploaded = self._http.ask("upload", state, lock, "PUT", address, body, cloud=True)
        if uploaded.status != 200:
            return uploaded.status
        path, written = f"{_CLOUD}state-versions/{upload['id']}", asdict(content(body))
        return self._http.ask(
            "write", state, lock, "GET", path, cloud=True, written=written, over=over
        ).status


class _Restorer(_Client):
    """Restores earlier versions over the management API."""

    def round(self) -> None:
        """Read the history of a state, and restore one of its versions."""
        time.sleep(self._random.uniform(0.2, 1.0))
        state = self._choose()
        listed = self._http.ask("history", state, None, "GET", f"{_MANAGE}versions/{state}")
        if listed.status != 200:
            return
        versions = json.loads(listed.body)["versions"]
        base = next((found["version"] for found in versions if found["current"]), None)
        older = [found["version"] for found in versions if not found["current"]]
        if base is None or not older:
            return
        version = self._random.choice(older[:4])
        current, source = (self._fetch(state, one) for one in (base, version))
        if current is None or source is None:
            return
        command = self._random.getrandbits(128).to_bytes(16).hex()
        key = f"restore-{command}"
        asked = {"version": version, "current": base, "reason": key, "id": command}

        def answered(body: bytes) -> dict[str, Any]:
            document = json.loads(body)
            if not document["changed"]:
                return {}
            return {"written": asdict(content(with_serial(source, document["serial"])))}

        self._http.ask(
            *("restore", state, key, "POST", f"{_MANAGE}restore/{state}", json.dumps(asked).encode()),
            answered,
            over=hashlib.sha256(current).hexdigest(),
            source=content(source).bare,
        )

    def _fetch(self, state: str, version: str) -> bytes | None:
        path = f"{_MANAGE}content/{state}?version={version}"
        found = self._http.ask("fetch", state, None, "GET", path)
        return found.body if found.status == 200 else None


class _Freezer(_Client):
    """Freezes states over the management API. It unfreezes them, or lets the freeze end."""

    def round(self) -> None:
        """Freeze one state for a moment."""
        time.sleep(self._random.uniform(0.5, 2.0))
        state = self._choose()
        command = self._random.getrandbits(128).to_bytes(16).hex()
        key = f"freeze-{command}"
        until = int(time.time() + self._random.uniform(3.0, 5.0))
        ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(until))
        asked = json.dumps({"reason": key, "until": ends, "id": command}).encode()
        left = time.monotonic() + until - time.time()
        path = f"{_MANAGE}freeze/{state}"
        if self._http.ask("freeze", state, key, "PUT", path, asked, until=left).status != 200:
            return
        time.sleep(self._random.uniform(0.1, 0.6))
        choice = self._random.random()
        if choice < 0.4:
            _force_unlock(self._http, state, key, f"frozen: {key} until {ends} [{command}]")
        if choice < 0.75:
            self._http.ask("unfreeze", state, key, "DELETE", f"{path}?id={command}")


def lock_of(workspace: str) -> str:
    """Return the ID of the lock that a client acquires with this workspace ID."""
    coded = workspace.partition("-")[2]
    return str(json.loads(base64.urlsafe_b64decode(coded + "=" * (-len(coded) % 4)))[1])


def _opened(api: _Http, state: str) -> str | None:
    """Read the workspace of a state by name, and create it if it does not exist; return its ID."""
    organization, _, rest = state.partition("/")
    workspaces, name = f"{_CLOUD}organizations/{organization}/workspaces", rest.replace("/", ":")
    found = api.ask("open", state, None, "GET", f"{workspaces}/{name}", cloud=True)
    if found.status == 404:
        document = {"data": {"type": "workspaces", "attributes": {"name": name}}}
        body = json.dumps(document).encode()
        found = api.ask("make", state, None, "POST", workspaces, body, cloud=True)
    if found.status not in (200, 201):
        return None  # another client may have created it
    return str(json.loads(found.body)["data"]["id"])


def _force_unlock(api: _Http, state: str, lock: str, lock_id: str) -> None:
    """Remove the lock with an ID, as `tofu force-unlock` does. Its name in the journal is `lock`."""
    zero = {"Operation": "", "Info": "", "Who": "", "Version": "", "Created": "0001-01-01T00:00:00Z"}
    body = json.dumps({"ID": lock_id, **zero, "Path": ""}).encode()
    api.ask("force", state, lock, "DELETE", f"/locks/{state}", body)


class _Operator:
    """Removes the locks named on standard input, as force-unlock and `holdfast lock break` do."""

    def __init__(self, settings: Settings) -> None:
        self._http = _Http(settings, _Journal(Path(settings.journal)))
        self._breaks = False

    def remove(self, state: str, lock: str) -> None:
        """Remove the lock with this ID, in turn by the ID alone and by ID and version."""
        self._breaks = not self._breaks
        if self._breaks or lock.startswith("restore-"):
            self._break(state, lock)
        else:
            _force_unlock(self._http, state, lock, lock)

    def _break(self, state: str, lock: str) -> None:
        """Remove the current lock by ID and version, if its name in the journals is `lock`."""
        shown = self._http.ask("holder", state, None, "GET", f"{_MANAGE}locks/{state}")
        held = json.loads(shown.body)["lock"] if shown.status == 200 else None
        if held is None or journalled({"ID": held["id"], "Info": held["info"]}) != lock:
            return
        query = urlencode({"id": held["id"], "version": held["version"]})
        self._http.ask("force", state, lock, "DELETE", f"{_MANAGE}locks/{state}?{query}")


def main() -> None:
    """Read the settings from standard input, then work until it ends, with the process that started this."""
    settings = Settings(**json.loads(sys.stdin.readline()))
    if sys.argv[1:] == ["operate"]:
        operator = _Operator(settings)
        for line in sys.stdin:
            operator.remove(**json.loads(line))
        return
    ended = threading.Event()

    def watch() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=watch, daemon=True).start()
    ways = {"restore": _Restorer, "freeze": _Freezer}
    client = ways.get(sys.argv[1] if sys.argv[1:] else "", _CloudClient if settings.uploads else _Client)(
        settings
    )
    while not ended.is_set():
        client.round()
    os._exit(0)  # the thread may hold standard input, and the interpreter would wait for that


if __name__ == "__main__":
    main()

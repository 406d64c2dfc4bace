"""The new place of imported states: the API of a team's stack, used as Terraform uses it.

An import adds no way to write: it acquires the state's lock, writes and releases, by the protocol of
`backend "http"`, and for a large state by that of `cloud {}`.
"""

import hashlib
import json
import random
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from holdfast.cloud.names import organization_and_workspace
from holdfast.names import StateName
from holdfast.state.document import Revision
from holdfast.state.lock_info import FREEZE, LockInfo
from holdfast_cli.api import http, state_versions
from holdfast_cli.api.management import Api, ApiError, ApiUnavailableError
from holdfast_cli.api.response import Response
from holdfast_cli.api.state_texts import lock_words
from holdfast_cli.errors import CommandError, UnavailableError
from holdfast_cli.terminal.output import plain

if TYPE_CHECKING:
    from holdfast.api import v1

OPERATION: Final = "holdfast-import"
"""The operation of an import's locks, and so of the versions that it writes to `backend "http"`."""

_LARGE: Final = 4_000_000
"""Bytes above which a state goes the way of `cloud {}`: quoted, it could exceed a request to a function."""
_JSON_API: Final = "application/vnd.api+json"
_CONFLICTS: Final = (HTTPStatus.CONFLICT, HTTPStatus.LOCKED)
_PATIENCE: Final = 120.0
"""Seconds for which a throttled request is sent again."""

_T = TypeVar("_T")


class LockedHereError(CommandError):
    """Somebody else holds the state's lock in the new place, or it is frozen."""


@dataclass(frozen=True, slots=True)
class NewPlace:
    """The API into which states are imported. Several threads may use it."""

    api: Api

    def describe(self, name: StateName) -> "v1.StateDescription | None":
        """Return a state; None if the name has no current version."""
        from holdfast.api import v1

        try:
            found = _patiently(lambda: self.api.get(v1.StateDescription, "states", name))
        except ApiError as error:
            if error.code == "no_state":
                return None
            raise
        return found if found.version else None

    def read(self, name: StateName) -> tuple[str, str]:
        """Return the version ID of the current version, and the SHA-256 of its content."""
        content, version = _patiently(lambda: self.api.content(name, None))
        return version, hashlib.sha256(content).hexdigest()

    def has_version(self, name: StateName, version: str) -> bool:
        """Return whether the history of a state has a version."""
        return state_versions.with_id(self.api, name, version).time is not None

    def version_with(self, name: StateName, sha256: str) -> str:
        """Return the newest version in the history of a state with this content, or ''."""
        from holdfast.api import v1

        with closing(self.api.pages(v1.Version, "versions", "versions", name)) as history:
            return next((each.version for each in history if each.sha256 == sha256), "")

    def workspace(self, name: StateName, size: int) -> str:
        """Return the ID of a workspace for a state that is too large for `backend "http"`, else ''.

        The workspace is created if it does not exist.
        """
        by_name = _workspace_path(name)
        if size <= _LARGE or by_name is None:
            return ""
        return self._opened(by_name, {})

    def tag(self, name: StateName, tags: Mapping[str, str]) -> bool:
        """Add tags to the state's workspace. Return False if the name has one segment, so no workspace."""
        by_name = _workspace_path(name)
        if by_name is None:
            return False
        workspace = self._opened(by_name, tags)
        self._cloud("PATCH", f"/workspaces/{workspace}/tag-bindings", {"data": _bindings(tags)})
        return True

    def _opened(self, by_name: tuple[str, str], tags: Mapping[str, str]) -> str:
        folder, workspace = by_name
        response = self._send("GET", f"{folder}/{quote(workspace)}", media=_JSON_API)
        if response.status == HTTPStatus.NOT_FOUND:
            relationships = {"tag-bindings": {"data": _bindings(tags)}} if tags else {}
            data = {"type": "workspaces", "attributes": {"name": workspace}, "relationships": relationships}
            response = self._send("POST", folder, {"data": data}, media=_JSON_API)
        return str(self._checked(response)["data"]["id"])

    def lock(self, name: StateName, info: LockInfo, workspace: str) -> None:
        """Acquire the lock; do nothing if this very lock is already held.

        Raises `LockedHereError`. After any other error the lock may be held.
        """
        if workspace:
            response = self._send("POST", f"/api/v2/workspaces/{workspace}/actions/lock", {}, media=_JSON_API)
        else:
            response = self._send("PUT", f"/locks/{quote(name.value)}", info.document)
        if response.status in _CONFLICTS:
            raise self._locked(name, response)
        self._checked(response)

    def unlock(self, name: StateName, info: LockInfo, workspace: str) -> None:
        """Release exactly this lock. Do nothing if it is not held any more; another's lock stays."""
        if workspace:
            response = self._send(
                "POST", f"/api/v2/workspaces/{workspace}/actions/unlock", {}, media=_JSON_API
            )
            if response.status == HTTPStatus.CONFLICT:
                return
        else:
            response = self._send("POST", f"/unlocks/{quote(name.value)}", info.document)
        self._checked(response)

    def write(self, name: StateName, body: bytes, revision: Revision, info: LockInfo, workspace: str) -> None:
        """Write the state under the lock that was acquired with the same lock info and workspace."""
        if not workspace:
            path = f"/states/{quote(name.value)}?{urlencode({'ID': info.id})}"
            written = self._send("POST", path, body)
            if written.status in _CONFLICTS and written.text("Operation") != FREEZE:
                # The API's words are for Terraform, which keeps a file.
                raise CommandError(
                    f"{name}: the import's lock was removed or the state changed meanwhile, so the write "
                    "was not accepted. Run the command again."
                )
            self._checked(written)
            return
        attributes = {
            "serial": revision.serial,
            "lineage": revision.lineage,
            "md5": hashlib.md5(body, usedforsecurity=False).hexdigest(),
        }
        data = {"type": "state-versions", "attributes": attributes}
        announced = self._cloud("POST", f"/workspaces/{workspace}/state-versions", {"data": data})["data"]
        address = str(announced["attributes"]["hosted-state-upload-url"])
        uploaded = http.send("PUT", address, headers={"Content-Type": "application/octet-stream"}, body=body)
        if uploaded.status != HTTPStatus.OK:
            raise UnavailableError(
                f"{urlsplit(address).netloc} responds with {uploaded.status} to the upload. Run the "
                "command again. If S3 still responds with 403, check that the team's setting `networks` "
                "includes this machine."
            )
        self._cloud("GET", f"/state-versions/{announced['id']}")

    def _cloud(self, method: str, path: str, document: object = None) -> Any:
        return self._checked(self._send(method, f"/api/v2{path}", document, media=_JSON_API))

    def _send(
        self, method: str, path: str, content: object = None, media: str = "application/json"
    ) -> Response:
        """Send bytes, or a document as JSON."""
        body = (
            content
            if isinstance(content, bytes)
            else b""
            if content is None
            else json.dumps(content).encode()
        )
        headers = {"Authorization": self.api.authorization, "Accept": media, "Content-Type": media}

        def send() -> Response:
            response = http.send(method, f"{self.api.address}{path}", headers=headers, body=body)
            if response.status == HTTPStatus.TOO_MANY_REQUESTS:
                raise ApiUnavailableError(self._said(response), response)
            return response

        return _patiently(send)

    def _locked(self, name: StateName, response: Response) -> CommandError:
        """Return the error for a lock that was refused; the management API tells who holds it since when."""
        from holdfast.api import v1

        lock = self.api.get(v1.LockOfState, "locks", name).lock
        if lock is None and _is_of_lock(response):
            return LockedHereError(
                f"{name} was locked in Holdfast, but the lock was just released. Run the command again."
            )
        if lock is None:  # the name must be declared, or the pattern is frozen
            return CommandError(self._said(response))
        said = f"In Holdfast, {name} is {lock_words(lock).rstrip('.')}."
        return LockedHereError(
            f"{said} Run the command again when the freeze has ended."
            if lock.freeze
            else f"{said} The lock ID is {lock.id}. Run the command again when the lock is released."
        )

    def _checked(self, response: Response) -> Any:
        """Return the JSON document of a success; raise `CommandError` for any other response."""
        if response.status < HTTPStatus.MULTIPLE_CHOICES:
            return response.json()
        said = self._said(response)
        if response.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise UnavailableError(said)
        raise CommandError(said)

    def _said(self, response: Response) -> str:
        document = response.json()
        errors = document.get("errors")
        texts = errors[0] if isinstance(errors, list) and errors and isinstance(errors[0], dict) else document
        words = " ".join(
            str(texts[member]) for member in ("title", "detail", "message", "Info") if texts.get(member)
        )
        said = f": {plain(words)}" if words else ", without a message."
        return f"{self.api.host} responds with {response.status}{said}"


def _is_of_lock(response: Response) -> bool:
    """Return whether a refusal is that of a lock, and not of a freeze or a name that is not declared."""
    match response.json().get("errors"):  # of `cloud {}`
        case [{"code": code}, *_]:
            return bool(code == "locked")
        case _:
            return response.text("Operation") not in ("", FREEZE)


def _patiently(request: Callable[[], _T]) -> _T:
    """Send a request again while the API throttles it, for `_PATIENCE` seconds.

    The management API takes a quarter of the team's rate, and an import asks for more.
    """
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            return request()
        except ApiUnavailableError as error:
            if error.status != HTTPStatus.TOO_MANY_REQUESTS or time.monotonic() > until:
                raise
        time.sleep(random.uniform(0.5, 1.5))  # noqa: S311 no secret


def _workspace_path(name: StateName) -> tuple[str, str] | None:
    """Return the path of an organization's workspaces, and the workspace's name; None for one segment."""
    found = organization_and_workspace(name)
    return found and (f"/api/v2/organizations/{quote(found[0])}/workspaces", found[1])


def _bindings(tags: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"type": "tag-bindings", "attributes": {"key": key, "value": tags[key]}} for key in tags]

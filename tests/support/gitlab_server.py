"""A server on loopback that responds as GitLab's API. It is not GitLab.

It follows https://docs.gitlab.com/api/graphql/reference/ and, for states and locks, `lib/api/terraform/`
and `app/services/terraform/remote_state_handler.rb` in GitLab's sources. It knows the two queries that the
import sends by their fields, and looks at no rights but the token.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from local_aws import loopback

TOKEN: Final = "made-up-token"
USER: Final = "eve"
_REQUIRED: Final = ("ID", "Operation", "Info", "Who", "Version", "Created", "Path")
_PAGE_SIZE: Final = 2


@dataclass
class State:
    """A state: its content by serial, and the holder of its lock."""

    versions: dict[int, bytes] = field(default_factory=dict)
    lock_id: str | None = None
    locked_by: str = ""


@dataclass
class GitLab:
    """The projects by full path, each with its states by name.

    Attributes:
        throttled: how many of the next requests get a 429.
        is_cut: whether the pages after the first of a list are null.
    """

    projects: dict[str, dict[str, State]] = field(default_factory=dict)
    throttled: int = 0
    is_cut: bool = False
    address: str = ""
    _alone: Lock = field(default_factory=Lock)

    def respond(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, bytes, dict[str, str]]:
        with self._alone:
            if self.throttled:
                self.throttled -= 1
                return 429, b"Retry later", {"Retry-After": "60"}
            if headers.get("PRIVATE-TOKEN") != TOKEN:
                return 401, b'{"message":"401 Unauthorized"}', {}
            document = json.loads(body) if body and headers.get("Content-Type") == "application/json" else {}
            parts = urlsplit(target)
            if parts.path == "/api/graphql":
                return 200, json.dumps(self._graphql(document)).encode(), {}
            # A proxy may drop the body of a DELETE.
            sent = dict(parse_qsl(parts.query)) | ({} if method == "DELETE" else document)
            return *self._rest(method, parts.path, sent), {}

    def _rest(self, method: str, path: str, sent: Mapping[str, Any]) -> tuple[int, bytes]:
        match [unquote(segment) for segment in path.removeprefix("/api/v4/projects/").split("/")]:
            case [project, "terraform", "state", name, *rest] if project in self.projects:
                states = self.projects[project]
            case _:
                return 404, b'{"message":"404 Project Not Found"}'
        match method, rest:
            case "GET", []:
                if name not in states:
                    return 404, b""
                versions = states[name].versions
                return (200, versions[max(versions)]) if versions else (204, b"")
            case "POST", ["lock"]:
                return self._lock(states.setdefault(name, State()), sent)
            case "DELETE", ["lock"]:
                state = states.setdefault(name, State())
                if "ID" in sent and sent["ID"] != state.lock_id:
                    return 409, b""
                state.lock_id = None
                return 200, b"200"
            case _:
                return 405, b""

    def _lock(self, state: State, sent: Mapping[str, Any]) -> tuple[int, bytes]:
        if any(not isinstance(sent.get(name), str) for name in _REQUIRED):
            return 400, b'{"error":"Operation is missing"}'
        status = 409 if state.lock_id else 200
        if state.lock_id is None:
            state.lock_id, state.locked_by = sent["ID"], USER
        # As in GitLab, the other fields of a response are always those of the request.
        return status, json.dumps({**sent, "ID": state.lock_id, "Who": state.locked_by}).encode()

    def _graphql(self, document: Mapping[str, Any]) -> dict[str, Any]:
        query, variables = document["query"], document["variables"]
        path, after = variables["path"], variables.get("after")
        states = self.projects.get(path)
        if after and self.is_cut:
            return {"data": {"project": None, "group": None}}
        if "terraformStates" in query:
            names = [{"name": name} for name in sorted(states or ())]
            project = {"terraformStates": _page(names, after)} if states is not None else None
            return {"data": {"project": project}}
        if "projects(includeSubgroups: true" in query:
            below = [{"fullPath": each} for each in sorted(self.projects) if each.startswith(f"{path}/")]
            group = {"projects": _page(below, after)} if below else None
            return {"data": {"project": {"fullPath": path} if states is not None else None, "group": group}}
        return {"errors": [{"message": "Field doesn't exist"}]}


def _page(nodes: list[dict[str, str]], after: str | None) -> dict[str, Any]:
    first = int(after or 0)
    end = first + _PAGE_SIZE
    return {
        "nodes": nodes[first:end],
        "pageInfo": {"endCursor": str(end), "hasNextPage": end < len(nodes)},
    }


@contextmanager
def running() -> Iterator[GitLab]:
    """Run a server for as long as the context lasts."""
    server = GitLab()

    class Handler(loopback.Handler):
        def respond(self) -> None:
            headers = dict(self.headers.items())
            self.answer(*server.respond(self.command, self.path, headers, self.read_body()))

    with loopback.serving(Handler) as server.address:
        yield server

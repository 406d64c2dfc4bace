"""Requests of `cloud {}` and of the management API that nobody should send, made up by hypothesis alone.

No description has what `cloud {}` sends, nor the versions that a request to the management API names.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote, urlencode

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.safety.fuzz_requests import (
    NASTY,
    Ground,
    Request,
    any_json,
    any_text,
    broken,
    drawn,
    dumped,
    odd_names,
    percent,
    with_changes,
)
from tests.support import documents


def from_cloud(ground: Ground, count: int, number: int) -> list[Request]:
    """Requests of `cloud {}` with IDs, names and documents that are cut, made up or of other states."""
    return drawn(_of_cloud(ground), count, number)


def from_management(ground: Ground, count: int, number: int) -> list[Request]:
    """Requests of the management API: versions, reasons, times, cursors and documents that break rules.

    A version that only the bucket knows is a placeholder, see `aimed`.
    """
    return drawn(_of_management(ground), count, number)


# --- of cloud {} ---------------------------------------------------------------------------------

CLOUD: Final = "/api/v2/"
_LIST: Final = "organizations/{organization}/workspaces"
_NAMED: Final = _LIST + "/{workspace}"
_CLOUD_CALLS: Final = (
    *[("POST", "workspaces/{id}/state-versions")] * 4,
    *[("GET", "state-versions/{id}")] * 4,
    *[("POST", f"workspaces/{{id}}/actions/{verb}") for verb in ("lock", "unlock", "force-unlock")] * 2,
    *[("PATCH", "workspaces/{id}/tag-bindings"), ("POST", _LIST), ("GET", _LIST), ("GET", _NAMED)] * 2,
    *(("GET", "state-versions/{id}/download"), ("GET", "state-version-outputs/{id}")),
    *(("GET", "workspaces/{id}"), ("PATCH", "workspaces/{id}"), ("GET", "workspaces/{id}/tag-bindings")),
    *((verb, "workspaces/{id}/relationships/tags") for verb in ("POST", "DELETE")),
    *(("POST", "workspaces/{id}/actions/safe-delete"), ("DELETE", _NAMED)),
    *(("GET", f"workspaces/{{id}}/current-state-version{what}") for what in ("", "-outputs")),
    *(("POST", _NAMED + "/actions/safe-delete"), ("GET", "organizations/{organization}/entitlement-set")),
    *((verb, "organizations/{organization}/projects") for verb in ("GET", "POST")),
    *(("GET", "ping"), ("GET", "account/details"), ("GET", "runs/{id}"), ("PUT", "workspaces/{id}")),
)
_CLOUD_QUERIES: Final = (
    *("", "?page[number]=0", "?page[number]=x&page[size]=-1", "?page%5Bsize%5D=99999999999999999999"),
    *("?search[tags]=a,,%00", "?search[name]=%F0%9F%92%A9", "?filter[tagged][0][key]=a&filter[tagged][x]=b"),
    *("?filter[tagged][99999999999][value]=a", "?filter[project][id]=prj-x", "?page[number]=%D9%A3"),
    *(
        "?search[wildcard-name]=%5B*%3F**%F0%9F%92%A9",
        "?search[exclude-tags]=a,%00",
        "?sort=-x",
        "?filter[x]=%00",
    ),
)
_HEX: Final = st.text("0123456789abcdef", min_size=32, max_size=32)


def _cloud_ids(ground: Ground) -> SearchStrategy[str]:
    """IDs as the API makes them, of states of the ground and of others, and what is left of such."""
    names = st.sampled_from(
        [ground.locked, ground.locked, ground.free, f"{ground.prefix}/new", "foreign/state", "one-segment"]
    )
    version = st.one_of(st.just(""), st.just("null"), st.text("abcXYZ019._-", max_size=32), any_text)
    base: SearchStrategy[object] = st.one_of(st.just([]), st.tuples(version, any_text).map(list))
    size = st.integers(0, 2**63 - 1)
    serial = st.integers(0, 2**64 - 1)
    fields = st.one_of(
        st.tuples(st.just("ws-"), names, _HEX, st.integers(0, 253_402_300_799), version),
        st.tuples(st.just("sv-"), names, version, size),
        st.tuples(st.just("wsout-"), names, version, size, any_text),
        st.tuples(
            *(st.just("upload-"), names, _HEX, version, base, serial),
            *(any_text, _HEX, st.booleans(), _HEX),
        ),
    )
    whole = fields.map(lambda found: _cloud_id(found[0], list(found[1:])))

    def with_odd_field(found: tuple[Any, ...], place: int, odd: object) -> str:
        prefix, *kept = found
        kept[place % len(kept)] = odd
        return _cloud_id(prefix, kept)

    def cut(found: str, place: int) -> str:
        return found[: place % (len(found) + 1)]

    def altered(found: str, place: int, by: str) -> str:
        return found[: place % len(found)] + by + found[place % len(found) + 1 :]

    places = st.integers(0, 200)
    prefixes = st.sampled_from(["ws-", "sv-", "upload-", "wsout-", "run-", ""])
    return st.one_of(
        whole,
        whole,
        st.builds(with_odd_field, fields, places, any_json),
        st.builds(cut, whole, places),
        st.builds(altered, whole, places, st.sampled_from("AZaz09-_=+%.~")),
        st.builds(_cloud_id, prefixes, st.lists(any_json, max_size=10)),
        whole.map(lambda found: found + "="),
        whole.map(lambda found: "sv-" + found.partition("-")[2]),
        st.sampled_from(["ws-", "sv-" + "A" * 5000, "upload-W10", "ws-bnVsbA", "wsout-e30", "latest"]),
    )


def bearer(token: str) -> str:
    """Return a token's value of `Authorization` over `cloud {}`, from the one of `backend "http"`."""
    return "Bearer " + base64.b64decode(token.removeprefix("Basic ")).decode().replace(":", ".", 1)


def _cloud_id(prefix: str, fields: list[Any]) -> str:
    document = json.dumps(fields, separators=(",", ":")).encode()
    return prefix + base64.urlsafe_b64encode(document).decode().rstrip("=")


def _cloud_documents(ground: Ground) -> SearchStrategy[bytes]:
    """Documents as clients send them, with members of other types, and such as are none."""
    state = documents.state(6)
    version = {
        "serial": 6,
        "lineage": documents.LINEAGE,
        "md5": hashlib.md5(state, usedforsecurity=False).hexdigest(),
        "force": False,
        "state": base64.b64encode(state).decode(),
    }
    organization, _, rest = ground.locked.partition("/")
    known = [
        {"data": {"type": "state-versions", "attributes": version}},
        {"data": {"type": "workspaces", "attributes": {"name": rest.replace("/", ":")}}},
        {"data": {"type": "workspaces", "attributes": {"name": organization, "tag-names": ["a"]}}},
        {"data": [{"type": "tag-bindings", "attributes": {"key": "a", "value": "b"}}]},
        {"data": [{"type": "tags", "attributes": {"name": "a"}}]},
        {"reason": "Locked by Terraform"},
    ]

    def replaced(document: object, place: int, by: object) -> object:
        """The document with the value at a place, counted through all of it, replaced."""
        paths = list(_paths(document))
        changed = json.loads(json.dumps(document))
        *way, last = paths[place % len(paths)]
        inner = changed
        for step in way:
            inner = inner[step]
        inner[last] = by
        return changed

    whole = st.sampled_from(known)
    return st.one_of(
        whole.map(dumped),
        st.builds(replaced, whole, st.integers(0, 30), any_json).map(dumped),
        st.builds(replaced, whole, st.integers(0, 30), any_json).map(dumped),
        whole.map(dumped).flatmap(broken),
        any_json.map(dumped),
    )


def _paths(document: object) -> Iterator[tuple[Any, ...]]:
    inner: Iterable[tuple[Any, object]] = ()
    if isinstance(document, dict):
        inner = document.items()
    elif isinstance(document, list):
        inner = enumerate(document)
    for name, value in inner:
        yield (name,)
        yield from ((name, *rest) for rest in _paths(value))


@st.composite
def _of_cloud(draw: st.DrawFn, ground: Ground) -> Request:
    method, path = draw(st.sampled_from(_CLOUD_CALLS))
    name = draw(st.sampled_from([ground.locked, ground.locked, ground.free, f"{ground.prefix}/new"]))
    organization, _, rest = name.partition("/")
    workspace = percent(rest.replace("/", ":"))
    if draw(st.integers(0, 3)) == 0:
        workspace = draw(st.sampled_from([odd for odd in NASTY if odd]))
    if draw(st.integers(0, 7)) == 0:
        organization = draw(st.sampled_from([odd for odd in NASTY if odd]))
    filled = path.format(organization=organization, workspace=workspace, id=draw(_cloud_ids(ground)))
    query = draw(st.sampled_from(_CLOUD_QUERIES)) if path == _LIST else ""
    body = draw(_cloud_documents(ground)) if method not in ("GET", "DELETE") else b""
    token = ground.tokens[draw(st.sampled_from(["writer", "writer", "maintainer", "reader"]))]
    headers = (
        ("Authorization", bearer(token)),
        ("Content-Type", "application/vnd.api+json"),
        ("Content-Length", str(len(body))),
    )
    return Request(method, CLOUD + filled + query, headers, body)


# --- of the management API -----------------------------------------------------------------------

MANAGEMENT: Final = "/manage/v1/"
CURRENT: Final = "CURRENT-VERSION"
OLDER: Final = "OLDER-VERSION"
LOCK_VERSION: Final = "LOCK-VERSION"

_MANAGEMENT_CALLS: Final = (
    *[("POST", "restore/{name}")] * 5,
    *[("PUT", "freeze/{name}"), ("DELETE", "locks/{name}")] * 3,
    *[("POST", "delete/{name}"), ("POST", "undelete/{name}"), ("DELETE", "freeze/{name}")] * 2,
    *[("GET", "states"), ("GET", "content/{name}"), ("GET", "diff/{name}"), ("GET", "activity")] * 2,
    *(("POST", "create/{name}"), ("GET", "locks"), ("GET", "whoami"), ("GET", "locks/{name}")),
    *(("GET", "states/{name}"), ("GET", "versions/{name}"), ("GET", ""), ("GET", "restore/{name}")),
    *(("PATCH", "states"), ("HEAD", "content/{name}"), ("POST", "versions/{name}"), ("POST", "restore")),
    *(("DELETE", "states/{name}"), ("PUT", "restore/{name}"), ("GET", "stats/{name}")),
)
_COMMANDS: Final = ("0" * 32, "0123456789abcdef" * 2)
_VERSIONS: Final = (*[CURRENT, OLDER, LOCK_VERSION] * 3, "null", "x", "", "x" * 300, "%00", "\u2028")
_QUERIES: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "DELETE locks": {"id": ("held-@", "held-@", "x", ""), "version": (LOCK_VERSION, *_VERSIONS)},
    "DELETE freeze": {"id": (*_COMMANDS, "x")},
    "GET locks": {"prefix": ("@", "/", ""), "cursor": ()},
    "GET states": {"prefix": ("@", "@/l", "..", ""), "cursor": (), "deleted": ("true", "false", "x", "")},
    "GET versions": {"cursor": ()},
    "GET content": {"version": _VERSIONS},
    "GET diff": {"from": _VERSIONS, "to": _VERSIONS, "values": ("true", "1", "")},
    "GET activity": {
        "state": ("@/locked", "..", ""),
        "cursor": (),
        "since": ("2026-11-20T14:00:00Z", "9999-12-31T23:59:59-01:00", "tomorrow"),
        "until": ("0001-01-01T00:00:00+01:00", "2026-11-20", ""),
    },
}
_DOCUMENTS: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "restore": {
        "version": _VERSIONS,
        "reason": ("back to Tuesday", "", "a\nb"),
        "id": _COMMANDS,
        "current": _VERSIONS,
    },
    "delete": {"version": _VERSIONS},
    "undelete": {"marker": _VERSIONS},
    "freeze": {
        "reason": ("an incident", "\U0001f4a9" * 200, "x" * 10_000, "\x1b[31m"),
        "id": _COMMANDS,
        "until": ("2999-01-01T00:00:00Z", "2020-01-01T00:00:00Z", "9999-12-31T23:59:59-01:00", "tomorrow"),
    },
}


def aimed(request: Request, versions: Mapping[str, str]) -> Request:
    """Return a request with version IDs in place of their placeholders, the keys of `versions`."""
    target, body = request.target, request.body
    for placeholder, version in versions.items():
        target = target.replace(placeholder, quote(version))
        body = body.replace(placeholder.encode(), version.encode())
    lengths = {"Content-Length": str(len(body))} if body != request.body else {}
    headers = tuple((name, lengths.get(name, value)) for name, value in request.headers)
    return replace(request, target=target, headers=headers, body=body)


def _cursors() -> SearchStrategy[str]:
    """What may look like a cursor, and is made up."""
    whole = st.one_of(any_json, st.lists(any_json, max_size=4)).map(
        lambda found: base64.urlsafe_b64encode(dumped(found)).decode().rstrip("=")
    )
    return st.one_of(whole, any_text, st.sampled_from(["", "null", "A" * 5000, "e30", "W10", "%"]))


def _with_members(known: Mapping[str, Sequence[str]], prefix: str) -> SearchStrategy[dict[str, str]]:
    """The members that are known, some of them."""
    members = {
        name: st.sampled_from([value.replace("@", prefix) for value in values]) if values else _cursors()
        for name, values in known.items()
    }
    return st.one_of(
        st.fixed_dictionaries(members),
        st.fixed_dictionaries({}, optional=members),
    )


@st.composite
def _of_management(draw: st.DrawFn, ground: Ground) -> Request:
    method, path = draw(st.sampled_from(_MANAGEMENT_CALLS))
    route = path.partition("/")[0]
    name = draw(st.sampled_from([*[ground.free] * 3, ground.locked, f"{ground.prefix}/new"]))
    if draw(st.integers(0, 7)) == 0:
        name = draw(odd_names(ground))
    query: dict[str, str] = {}
    if method in ("GET", "HEAD", "DELETE"):
        query = draw(_with_members(_QUERIES.get(f"{method} {route}", {}), ground.prefix))
    if draw(st.integers(0, 7)) == 0:
        query[draw(any_text)] = draw(any_text)
    body = b""
    if method in ("POST", "PUT"):
        known = dumped(draw(_with_members(_DOCUMENTS.get(route, {}), ground.prefix)))
        odd = draw(st.integers(0, 3))
        fields = tuple(_DOCUMENTS.get(route, ("version",)))
        body = draw(with_changes(known, fields)) if odd == 0 else draw(broken(known)) if odd == 1 else known
    elif draw(st.integers(0, 15)) == 0:
        body = draw(any_json.map(dumped))
    target = MANAGEMENT + path.format(name=name)
    if query:
        target += "?" + urlencode(query, errors="surrogatepass")
    roles = ["maintainer"] * 5 + ["writer", "reader", "outputs"]
    authorization = ground.tokens[draw(st.sampled_from(roles))]
    headers = (
        ("Authorization", draw(st.sampled_from([authorization, bearer(authorization)]))),
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(body))),
    )
    return Request(method, target, headers, body)

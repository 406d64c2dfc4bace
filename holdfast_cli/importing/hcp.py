"""The states of an organization of HCP Terraform, Terraform Enterprise, or a server of the same protocol.

See https://developer.hashicorp.com/terraform/cloud-docs/api-docs
"""

import json
import os
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

from holdfast.cloud.ids import WorkspaceId
from holdfast.errors import InvalidId
from holdfast.state.lock_info import LockInfo
from holdfast_cli.config import cloud_config
from holdfast_cli.errors import CommandError, UsageError
from holdfast_cli.importing.part import Part
from holdfast_cli.importing.remote import NO_SEGMENTS, Remote, host_and_segments
from holdfast_cli.importing.source import AT_ONCE, OldLock, OldState, PlainSource, Settings, refusal

_FORM: Final = "hcp://HOST/ORGANIZATION"
_PAGE_SIZE: Final = 100
_MOVED: Final = (301, 302, 303, 307, 308)


class Hcp(PlainSource):
    """The source of `import` for `hcp://`. The ID of a state is the name of its workspace."""

    def __init__(self, address: str, host: str, organization: str, remote: Remote) -> None:
        self.address = address
        self._organization = organization
        self._remote = remote
        self._api = self._discover(host)
        self._workspaces: dict[str, str] = {}

    def states(self) -> Iterator[OldState]:
        """Yield the states. A name keeps its organization, so that a block needs only another hostname."""
        url = f"organizations/{_quoted(self._organization)}/workspaces"
        listed = list(self._pages(url, f"The organization {self._organization}"))
        with ThreadPoolExecutor(AT_ONCE) as threads:
            found = list(threads.map(self._state, listed))
        yield from sorted(found, key=lambda state: state.name)

    def covers(self, state: str) -> bool:
        return state not in NO_SEGMENTS

    def _state(self, workspace: Part) -> OldState:
        name, id_ = workspace["attributes"]["name"].name(), workspace["id"].name()
        tags = [tag.text() for tag in workspace["attributes"]["tag-names"].parts()]
        self._workspaces[name] = id_
        expects = (HTTPStatus.OK, HTTPStatus.NOT_FOUND)  # servers before tags with values
        bound = self._json("GET", f"workspaces/{_quoted(id_)}/tag-bindings", name, expects)["data"].parts()
        bindings = [binding["attributes"] for binding in bound]
        values = {binding["key"].name(): binding["value"].text() for binding in bindings}
        new = f"{self._organization}/{name.replace(':', '/')}"
        return OldState(name, new, {**dict.fromkeys(tags, ""), **values})

    def read(self, state: str) -> bytes | None:
        workspace = self._workspaces.get(state) or self._look_up(state)
        expects = (HTTPStatus.OK, HTTPStatus.NOT_FOUND)
        found = self._json("GET", f"workspaces/{_quoted(workspace)}/current-state-version", state, expects)
        if found["data"].members():
            return self._download(state, found["data"])
        shown = self._json("GET", f"workspaces/{_quoted(workspace)}", state, (HTTPStatus.OK,))["data"]
        if shown["attributes"]["permissions"]["can-read-state-versions"].value is False:
            raise CommandError(
                f"{state}: the token may not read the state of this workspace. Give the token permission to "
                "read state versions."
            )
        return b""

    def _download(self, state: str, version: Part) -> bytes:
        url = version["attributes"]["hosted-state-download-url"].text()
        if not url:
            raise CommandError(
                f"{state}: {self.address} does not return the address from which to download the state. "
                "Check whether the token may read state versions."
            )
        # Addresses on other hosts, and those of redirects, have a signature of their own.
        is_foreign = not _is_below(url, self._api)
        response = self._remote.ask("GET", url, state, (HTTPStatus.OK, *_MOVED), anonymous=is_foreign)
        if response.status in _MOVED:
            location = response.headers.get("location", "")
            response = self._remote.ask("GET", location, state, (HTTPStatus.OK,), anonymous=True)
        return response.body

    def prepare_lock(self, state: str) -> str:
        """Return an ID of the workspace. Holdfast creates one a look-up, and identifies locks by it."""
        return self._look_up(state)

    def lock(self, state: str, lock: OldLock) -> None:
        reason = {"reason": f"{lock.info.text} [{lock.info.id}]"}
        expects = (HTTPStatus.OK, HTTPStatus.CONFLICT, HTTPStatus.LOCKED)
        path = f"workspaces/{_quoted(lock.handle)}"
        if self._json("POST", f"{path}/actions/lock", state, expects, reason)["data"].members():
            return
        workspace = self._json("GET", path, state, (HTTPStatus.OK,))["data"]
        text = workspace["attributes"]["locked-reason"].text()
        if lock.info.id not in text:
            holder = workspace["relationships"]["locked-by"]["data"]["id"].text()
            known = {"ID": "", "Info": text, "Who": holder}
            raise refusal(state, LockInfo(known))

    def unlock(self, state: str, lock: OldLock) -> None:
        path = f"workspaces/{_quoted(lock.handle)}"
        found = self._json("GET", path, state, (HTTPStatus.OK, HTTPStatus.NOT_FOUND))["data"]
        if not found.members():
            return
        # HCP would release a later lock of the same user. Holdfast tells no reason, and compares the handle.
        attributes = found["attributes"]
        is_told = "locked-reason" in attributes.members()
        if not is_told and attributes["locked"].value and not _is_of_holdfast(lock.handle):
            raise CommandError(
                f"{state}: {self.address} does not say who holds the workspace's lock. If no run uses the "
                "workspace, unlock it there."
            )
        if not is_told or lock.info.id in attributes["locked-reason"].text():
            self._json("POST", f"{path}/actions/unlock", state, (HTTPStatus.OK, HTTPStatus.CONFLICT))

    def stopped_by_lock(self) -> tuple[str, str]:
        return "every client and every run", "force-unlock by an administrator"

    def _look_up(self, state: str) -> str:
        url = f"organizations/{_quoted(self._organization)}/workspaces/{_quoted(state)}"
        found = self._json("GET", url, state, (HTTPStatus.OK,))["data"]["id"].name()
        self._workspaces[state] = found
        return found

    def _discover(self, host: str) -> str:
        """Return the base URL of the API."""
        url = f"{host}/.well-known/terraform.json"
        path = self._remote.ask("GET", url, self.address, (HTTPStatus.OK,), anonymous=True).text("tfe.v2")
        if not path:
            raise CommandError(f"{url} does not name the service 'tfe.v2': check the address {self.address}.")
        # A host has no path, except the local AWS, behind whose path everything lies.
        found = f"{host}{path}" if path.startswith("/") else path
        return found if found.endswith("/") else f"{found}/"

    def _pages(self, url: str, what: str) -> Iterator[Part]:
        page: int | None = 1
        count = 0
        while page:
            numbered = {"page[number]": str(page), "page[size]": str(_PAGE_SIZE)}
            found = self._json("GET", f"{url}?{urlencode(numbered)}", what, (HTTPStatus.OK,))
            listed = found["data"].parts()
            yield from listed
            count += len(listed)
            pagination = found["meta"]["pagination"]
            before, page = page, pagination["next-page"].number()
            total = pagination["total-count"].number()
            if page and page <= before:
                raise CommandError(
                    f"{what}: after page {before} of the list of workspaces, the server names the page "
                    f"{page}, so the list cannot be read to its end. Report this to the operator of the "
                    "server."
                )
            # Without a total, a full page may not be the last.
            is_cut = len(listed) == _PAGE_SIZE if total is None else count < total
            if not page and is_cut:
                raise CommandError(
                    f"{what}: the list of workspaces ends before its last page. Run the command again."
                )

    def _json(self, method: str, url: str, what: str, expects: Collection[int], body: object = None) -> Part:
        sent = json.dumps(body).encode() if body else b""
        response = self._remote.ask(method, f"{self._api}{url}", what, expects, body=sent)
        document = Part(response.json(), f"{what}: {self._api}")
        if response.status == HTTPStatus.OK and "data" not in document.members():
            raise CommandError(
                f"{what}: {self._api} does not respond as HCP Terraform does. Check the address "
                f"{self.address}."
            )
        return document


def open_hcp(settings: Settings, environment: Mapping[str, str] = os.environ) -> Hcp:
    """Return the source of an organization, with Terraform's own token for its host."""
    address = settings.addresses[0]
    host, [*path, organization] = host_and_segments(address, _FORM, "TF_TOKEN_… of the host")
    base = "/".join([host, *(quote(segment, "$") for segment in path)])
    name = cloud_config.hostname(base)
    variable = cloud_config.token_variable(name)
    token = environment.get(variable) or _token_of_login(environment, urlsplit(host).netloc)
    if not token:
        raise UsageError(f"There is no token for {address}: run `terraform login {name}`, or set {variable}.")
    kind = "application/vnd.api+json"
    headers = {"Authorization": f"Bearer {token}", "Accept": kind, "Content-Type": kind}
    needs = f"the token from {variable} or `terraform login` may read and lock the workspaces"
    return Hcp(address, base, organization, Remote(headers, needs))


def _quoted(segment: str) -> str:
    return quote(segment, "")


def _is_below(url: str, api: str) -> bool:
    """Return whether a URL has scheme and host of the API."""
    with suppress(ValueError):
        return urlsplit(url)[:2] == urlsplit(api)[:2]
    return False


def _is_of_holdfast(workspace: str) -> bool:
    try:
        WorkspaceId.parse(workspace)
    except InvalidId:
        return False
    return True


def _token_of_login(environment: Mapping[str, str], host: str) -> str:
    """Return the token that `terraform login` stored for a host; empty if there is no token."""
    file = Path(environment.get("HOME", ""), ".terraform.d", "credentials.tfrc.json")
    with suppress(OSError, ValueError, LookupError, TypeError):
        return str(json.loads(file.read_text(encoding="utf-8"))["credentials"][host]["token"])
    return ""

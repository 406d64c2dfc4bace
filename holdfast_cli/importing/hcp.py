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
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from holdfast.cloud.ids import WorkspaceId
from holdfast.errors import InvalidId
from holdfast.state.lock_info import LockInfo
from holdfast_cli.config import cloud_config
from holdfast_cli.errors import CommandError, UsageError
from holdfast_cli.importing.remote import Remote, host_and_segments
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

    @property
    def default_rules(self) -> tuple[str, ...]:
        """A name keeps its organization, so that a `cloud` block needs only another hostname."""
        return (f"{{ws}}={self._organization}/{{ws}}",)

    def states(self) -> Iterator[OldState]:
        url = f"organizations/{quote(self._organization, '')}/workspaces"
        listed = list(self._pages(url, f"The organization {self._organization}"))
        with ThreadPoolExecutor(AT_ONCE) as threads:
            found = list(threads.map(self._state, listed))
        yield from sorted(found, key=lambda state: state.path)

    def _state(self, workspace: Mapping[str, Any]) -> OldState:
        name, tags = workspace["attributes"]["name"], workspace["attributes"].get("tag-names") or ()
        self._workspaces[name] = workspace["id"]
        expects = (HTTPStatus.OK, HTTPStatus.NOT_FOUND)  # servers before tags with values
        bound = (
            self._json("GET", f"workspaces/{workspace['id']}/tag-bindings", name, expects).get("data") or ()
        )
        bindings = (binding["attributes"] for binding in bound)
        values = {binding["key"]: binding.get("value") or "" for binding in bindings}
        return OldState(name, name.replace(":", "/"), {**dict.fromkeys(tags, ""), **values})

    def read(self, state: str) -> bytes | None:
        workspace = self._workspaces.get(state) or self._look_up(state)
        expects = (HTTPStatus.OK, HTTPStatus.NOT_FOUND)
        found = self._json("GET", f"workspaces/{workspace}/current-state-version", state, expects)
        if found.get("data"):
            return self._download(state, found["data"])
        shown = self._json("GET", f"workspaces/{workspace}", state, (HTTPStatus.OK,))["data"]["attributes"]
        if (shown.get("permissions") or {}).get("can-read-state-versions") is False:
            raise CommandError(
                f"{state}: the token may not read its state; allow the token to read state versions."
            )
        return b""

    def _download(self, state: str, version: Mapping[str, Any]) -> bytes:
        url = version["attributes"].get("hosted-state-download-url")
        if not url:
            raise CommandError(
                f"{state}: {self.address} does not tell where its content is; check the rights."
            )
        # Addresses on other hosts, and those of redirects, have a signature of their own.
        is_foreign = urlsplit(url)[:2] != urlsplit(self._api)[:2]
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
        path = f"workspaces/{lock.handle}"
        if self._json("POST", f"{path}/actions/lock", state, expects, reason).get("data"):
            return
        workspace = self._json("GET", path, state, (HTTPStatus.OK,))["data"]
        text = workspace["attributes"].get("locked-reason") or ""
        if lock.info.id not in text:
            known = {"ID": "", "Info": text, "Who": _related(workspace, "locked-by").get("id") or ""}
            raise refusal(state, LockInfo(known))

    def unlock(self, state: str, lock: OldLock) -> None:
        path = f"workspaces/{lock.handle}"
        found = self._json("GET", path, state, (HTTPStatus.OK, HTTPStatus.NOT_FOUND)).get("data")
        if not found:
            return
        # HCP would release a later lock of the same user. Holdfast tells no reason, and compares the handle.
        attributes = found["attributes"]
        is_told = "locked-reason" in attributes
        if not is_told and attributes.get("locked") and not _is_of_holdfast(lock.handle):
            raise CommandError(f"{state}: {self.address} does not tell whose lock it is; unlock it there.")
        if not is_told or lock.info.id in (attributes["locked-reason"] or ""):
            self._json("POST", f"{path}/actions/unlock", state, (HTTPStatus.OK, HTTPStatus.CONFLICT))

    def stopped_by_lock(self) -> tuple[str, str]:
        return "every client and every run: the server itself refuses", "force-unlock by an administrator"

    def _look_up(self, state: str) -> str:
        url = f"organizations/{quote(self._organization, '')}/workspaces/{quote(state, '')}"
        found = self._json("GET", url, state, (HTTPStatus.OK,))["data"]["id"]
        self._workspaces[state] = found
        return str(found)

    def _discover(self, host: str) -> str:
        """Return the base URL of the API."""
        url = f"{host}/.well-known/terraform.json"
        path = self._remote.ask("GET", url, self.address, (HTTPStatus.OK,), anonymous=True).text("tfe.v2")
        if not path:
            raise CommandError(f"{url} does not name the service 'tfe.v2': check the address {self.address}.")
        # A host has no path, except the local AWS, behind whose path everything lies.
        found = f"{host}{path}" if path.startswith("/") else path
        return found if found.endswith("/") else f"{found}/"

    def _pages(self, url: str, what: str) -> Iterator[Mapping[str, Any]]:
        page: int | None = 1
        count = 0
        while page:
            numbered = {"page[number]": str(page), "page[size]": str(_PAGE_SIZE)}
            found = self._json("GET", f"{url}?{urlencode(numbered)}", what, (HTTPStatus.OK,))
            listed = found.get("data") or ()
            yield from listed
            count += len(listed)
            pagination = (found.get("meta") or {}).get("pagination") or {}
            page, total = pagination.get("next-page"), pagination.get("total-count")
            # Without a total, a full page may not be the last.
            is_cut = count < total if isinstance(total, int) else len(listed) == _PAGE_SIZE
            if not page and is_cut:
                raise CommandError(f"{what}: its list ends before its last page; run the command again.")

    def _json(
        self, method: str, url: str, what: str, expects: Collection[int], body: object = None
    ) -> Mapping[str, Any]:
        sent = json.dumps(body).encode() if body else b""
        response = self._remote.ask(method, f"{self._api}{url}", what, expects, body=sent)
        document = response.json()
        if response.status == HTTPStatus.OK and "data" not in document:
            raise CommandError(f"{what}: {self._api} does not speak the protocol; check {self.address}.")
        return document


def open_hcp(settings: Settings, environment: Mapping[str, str] = os.environ) -> Hcp:
    """Return the source of an organization, with Terraform's own token for its host."""
    address = settings.addresses[0]
    host, [*path, organization] = host_and_segments(address, _FORM, "TF_TOKEN_HOST")
    base = "/".join([host, *(quote(segment, "$") for segment in path)])
    name = cloud_config.hostname(base)
    variable = cloud_config.token_variable(name)
    token = environment.get(variable) or _token_of_login(environment, urlsplit(host).netloc)
    if not token:
        raise UsageError(f"There is no token for {address}: run `terraform login`, or set {variable}.")
    kind = "application/vnd.api+json"
    headers = {"Authorization": f"Bearer {token}", "Accept": kind, "Content-Type": kind}
    needs = f"the token, of {variable} or `terraform login`, may read and lock the workspaces"
    return Hcp(address, base, organization, Remote(headers, needs))


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


def _related(resource: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = resource.get("relationships", {}).get(name, {}).get("data") or {}
    return found

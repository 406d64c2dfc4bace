"""The states of another server for `backend "http"`, each with its own address."""

import os
import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote, urlsplit

from holdfast.identity.credentials import basic
from holdfast_cli.errors import CommandError, UsageError
from holdfast_cli.importing.remote import Remote, split
from holdfast_cli.importing.source import OldLock, OldState, PlainSource, Settings, holder_of, refusal

_FORM: Final = "https://HOST/PATH"
_USERNAME, _PASSWORD = "IMPORT_HTTP_USERNAME", "IMPORT_HTTP_PASSWORD"
_VARIABLES: Final = f"{_USERNAME} and {_PASSWORD}"
_STATES: Final = "/states/"
_OF_HOLDFAST: Final = re.compile(r"(?:(?:_aws/execute-api/[^/]+/)?[^/]+/)?states/(?P<name>.+)", re.DOTALL)
"""The path of a state's address, also behind the stage of an API, and on the local AWS."""
_OF_GITLAB: Final = re.compile(r"api/v4/projects/([^/]+)/terraform/state/(.+)", re.DOTALL)
_OF_OTHERS: Final = (HTTPStatus.CONFLICT, HTTPStatus.LOCKED)


class HttpBackend(PlainSource):
    """The source of `import` for a list of addresses.

    The options have the names and the meaning of the arguments of Terraform's block: `lock_address`,
    `unlock_address`, which is `lock_address` by default, `lock_method` and `unlock_method`. In the addresses
    `{address}` is the address of the state. `{base}` and `{name}` are the parts of that address before and
    after `/states/`, as in `{base}/locks/{name}` of Holdfast.
    """

    def __init__(self, settings: Settings, remote: Remote) -> None:
        self._addresses = settings.addresses
        more = len(self._addresses) - 1
        self.address = self._addresses[0] + (f" and {more} more" if more else "")
        self._options = settings.options
        self._remote = remote
        for address in self._addresses:
            if split(address, _FORM, _VARIABLES).query:
                raise UsageError(
                    f"{address.partition('?')[0]} has a query, which may contain a secret. Remove the query, "
                    "because a plan must not have a secret."
                )
            if self._lock_address(address):
                split(self._lock_address(address), _FORM, _VARIABLES)
                split(self._unlock_address(address), _FORM, _VARIABLES)

    def states(self) -> Iterator[OldState]:
        found = ((_name(unquote(urlsplit(address).path).strip("/")), address) for address in self._addresses)
        for name, address in sorted(found):
            yield OldState(address, name)

    def covers(self, state: str) -> bool:
        return state in self._addresses

    def read(self, state: str) -> bytes | None:
        expects = (HTTPStatus.OK, HTTPStatus.NO_CONTENT, HTTPStatus.NOT_FOUND)
        response = self._remote.ask("GET", state, state, expects)
        return None if response.status == HTTPStatus.NOT_FOUND else response.body

    def lock(self, state: str, lock: OldLock) -> None:
        if not (address := self._lock_address(state)):
            return
        method, info = self._options.get("lock_method", "LOCK"), lock.info
        response = self._remote.ask(method, address, state, (HTTPStatus.OK, *_OF_OTHERS), body=info.to_json())
        if response.status in _OF_OTHERS:
            found = holder_of(response.body)
            if found is None or found.id != info.id:
                raise refusal(state, found)

    def unlock(self, state: str, lock: OldLock) -> None:
        if not (address := self._unlock_address(state)):
            return
        method, expects = self._options.get("unlock_method", "UNLOCK"), (HTTPStatus.OK, *_OF_OTHERS)
        response = self._remote.ask(method, address, state, expects, body=lock.info.to_json())
        found = holder_of(response.body)
        # Some servers answer 409 without a holder if nothing is locked.
        is_unclear = found is None and response.status == HTTPStatus.LOCKED
        if is_unclear or (response.status in _OF_OTHERS and found and found.id == lock.info.id):
            raise CommandError(
                f"{state}: {urlsplit(address).netloc} did not confirm that the lock {lock.info.id} is "
                "released. Look at the lock there, and release it if it is still held."
            )

    def stopped_by_lock(self) -> tuple[str, str]:
        if not self._options.get("lock_address"):
            return "", "any client, because the option --lock-address is missing"
        return (
            "clients with the same lock_address",
            "clients without lock_address, clients with -lock=false, or force-unlock",
        )

    def _lock_address(self, state: str) -> str:
        return self._filled("lock_address", state)

    def _unlock_address(self, state: str) -> str:
        return self._filled("unlock_address", state) or self._lock_address(state)

    def _filled(self, option: str, state: str) -> str:
        """Return the address that an option tells for a state; empty without the option."""
        base, found, name = state.partition(_STATES)
        filled = self._options.get(option, "").replace("{address}", state)
        if found:
            filled = filled.replace("{base}", base).replace("{name}", name)
        if "{" in filled:
            raise UsageError(
                f"--{option.replace('_', '-')} has a placeholder that is not known for {state}. The option "
                f"may contain {{address}} and, if '{_STATES}' is in the state's address, {{base}} and "
                f"{{name}}."
            )
        return filled


def _name(path: str) -> str:
    """Return what the server calls the state at a path.

    >>> _name("$default/states/network/prod"), _name("api/v4/projects/7/terraform/state/prod")
    ('network/prod', '7/prod')
    """
    if at := _OF_HOLDFAST.fullmatch(path):
        return at["name"]
    if at := _OF_GITLAB.fullmatch(path):
        return f"{at[1]}/{at[2]}"
    return path.removesuffix(".tfstate")


def open_http(settings: Settings, environment: Mapping[str, str] = os.environ) -> HttpBackend:
    """Return the source of a list of addresses, with the credentials of the environment, if there are any."""
    username, password = environment.get(_USERNAME, ""), environment.get(_PASSWORD, "")
    if bool(username) != bool(password):
        missing, other = (_PASSWORD, _USERNAME) if username else (_USERNAME, _PASSWORD)
        raise UsageError(f"{missing} is not set, but {other} is; set both, or neither.")
    headers = {"Authorization": basic(username, password)} if username else {}
    return HttpBackend(
        settings, Remote(headers, f"{_VARIABLES} are set, and that their user may read and lock the state")
    )

"""A client of the management API. It uses the credentials of Terraform and OpenTofu in the environment."""

import json
import shlex
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Final, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from holdfast.api import form
from holdfast.api.form import Document
from holdfast.networks import LOOPBACK
from holdfast_cli.api import http
from holdfast_cli.api.response import Response
from holdfast_cli.api.state_texts import in_sentence
from holdfast_cli.clock import Clock
from holdfast_cli.errors import CommandError, UnavailableError
from holdfast_cli.terminal.output import Progress, moment, plain

_D = TypeVar("_D", bound=Document)

_ROOT: Final = "/manage/v1"
WHO_AM_I: Final = f"{_ROOT}/whoami"
"""The path of the request that every caller may send."""
MOST_PAGES: Final = 100_000
"""The largest number of pages that are read of a list: a faulty server may send pages without end."""


class NotLetInError(CommandError):
    """The API did not look at a request: it did not accept the credentials, or lacks the route."""


class ApiError(CommandError):
    """The API refused a request; `code` is the error code of its response."""

    def __init__(self, line: str, response: Response) -> None:
        super().__init__(line)
        self.status = response.status
        self.code = response.text("error")


class ApiUnavailableError(ApiError, UnavailableError):
    """The API throttled a request, or had a fault."""


@dataclass(frozen=True, slots=True)
class Api:
    """The management API of a team; `source` names where the credentials come from, for messages."""

    address: str
    authorization: str = field(repr=False)
    source: str
    _clock: Clock = field(default_factory=Clock, init=False, repr=False, compare=False)

    @property
    def host(self) -> str:
        return urlsplit(self.address).netloc

    def now(self) -> datetime:
        """Return the time by the API's clock. If the API has not responded yet, `/health` is requested."""
        if not self._clock.is_heard:
            self._clock.hear(http.send("GET", f"{self.address}/health", headers={}).headers.get("date", ""))
        return self._clock.now()

    def get(self, kind: type[_D], route: str, name: object = None, **query: str | None) -> _D:
        """Request a document; `name` is the name of the state that the document is about.

        A route is relative to the root of the management API; empty parameters and None are left out. Raises
        `ApiError` if the API refuses the request. Raises `CommandError` also if another API responds.
        """
        return self._document(kind, self._send("GET", _path(route, name, query)), name)

    def change(
        self,
        kind: type[_D],
        method: str,
        route: str,
        name: object,
        document: Document | None = None,
        **query: str | None,
    ) -> _D:
        """Request a change. If there is no response, the same request is sent again.

        `query` and errors are as for `get`. After a `CommandError` or a `KeyboardInterrupt` the change may
        have been made; the error's message or the interrupt's note says so.
        """
        body = b"" if document is None else json.dumps(form.write(document)).encode()
        look = f"`holdfast state show {name}` shows whether it did." if name else "Run the command again."
        try:
            return self._document(kind, self._send(method, _path(route, name, query), body), name)
        except (ApiError, NotLetInError):
            raise
        except CommandError as failure:
            raise CommandError(f"{failure} The request may have taken effect. {look}") from failure
        except KeyboardInterrupt as interrupt:
            interrupt.add_note(f"The request may have taken effect. {look}")
            raise

    def content(self, name: object, version: str | None) -> tuple[bytes, str]:
        """Return the bytes and the ID of a state's version; if `version` is None, of the current version.

        A redirect to an https address or to this machine is followed without the credentials. Any other
        redirect raises `CommandError`.
        """
        from holdfast.identity.trust import is_web_address

        found = self._send("GET", _path("content", name, {"version": version}), redirects=True)
        version_id = plain(found.headers.get("holdfast-version", ""))
        if not HTTPStatus.MULTIPLE_CHOICES <= found.status < HTTPStatus.BAD_REQUEST:
            if found.status != HTTPStatus.OK:
                raise self._refusal(found, name)
            return found.body, version_id
        location = found.headers.get("location", "")
        if not is_web_address(location):
            raise CommandError(
                f"{self.host} redirects to an address that is not https://, which this command does not "
                "follow. Check the address of the API."
            )
        stored = http.send("GET", location, headers={})
        if stored.status != HTTPStatus.OK:
            raise CommandError(
                f"The download of this version failed: {urlsplit(location).netloc} responds with "
                f"{stored.status}. The address of a download is valid for one minute. Run the command again."
            )
        return stored.body, version_id

    def pages(
        self, kind: type[_D], route: str, items: str, name: object = None, **query: str | None
    ) -> Generator[_D, None, None]:
        """Yield the items of a list, and request the list's pages one after another.

        Each page has the items in the member `items`. The other arguments and the errors are as for `get`.
        Raises `CommandError` also if the pages do not end.
        """
        count = 0
        with Progress() as progress:
            for page in self.follow(lambda cursor: self.get(Document, route, name, cursor=cursor, **query)):
                listed = page.raw.get(items)
                if not isinstance(listed, list):
                    raise CommandError(self._not_understood())
                for item in listed:
                    count += 1
                    yield form.read(kind, item)
                progress.show(f"{items.capitalize()} read: {count}")

    def follow(
        self, fetch: Callable[[str | None], _D], endless: str | None = None
    ) -> Generator[_D, None, None]:
        """Yield the pages of a list: `fetch` requests a page, given the cursor in the page before, or None.

        Raises `CommandError`, with the message `endless`, if the pages do not end.
        """
        cursor, seen = None, set[str]()
        for _ in range(MOST_PAGES):
            page = fetch(cursor)
            yield page
            cursor = page.raw.get("next")
            if cursor in (None, ""):
                return
            if not isinstance(cursor, str) or cursor in seen:
                break
            seen.add(cursor)
        raise CommandError(endless or self._not_understood())

    def search(self, kind: type[_D], route: str, document: Document) -> _D:
        """Request a document by a body, which is in no log of addresses; errors are as for `get`."""
        body = json.dumps(form.write(document)).encode()
        return self._document(kind, self._send("POST", _path(route, None, {}), body), None)

    def _send(self, method: str, path: str, body: bytes = b"", *, redirects: bool = False) -> Response:
        headers = {"Authorization": self.authorization, "Accept-Encoding": "gzip"}
        if body:
            headers["Content-Type"] = "application/json"
        url = f"{self.address}{path}"
        response = http.send(method, url, headers=headers, body=body, redirects=redirects)
        self._clock.hear(response.headers.get("date", ""))
        return response

    def _document(self, kind: type[_D], response: Response, name: object) -> _D:
        if response.status != HTTPStatus.OK:
            raise self._refusal(response, name)
        document = form.read(kind, response.json())
        if not document.raw:
            raise CommandError(self._not_understood())
        return document

    def _not_understood(self) -> str:
        return (
            f"{self.host} did not respond as the management API does: check the address, and that this "
            f"command has the version of the deployed stack.{http.version_skew(self.address)}"
        )

    def _refusal(self, response: Response, name: object) -> CommandError:
        status, code = response.status, response.text("error")
        match status:
            case _ if code == "unknown_route" or (
                not code and status in (HTTPStatus.NOT_FOUND, HTTPStatus.NOT_IMPLEMENTED)
            ):
                return NotLetInError(
                    f"{self.host} does not have this route of the management API. Check the address, and "
                    "deploy the team's stack again if the stack is older than this command."
                    f"{http.version_skew(self.address)}"
                )
            case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN if not code:
                return NotLetInError(
                    f"{self.host} does not accept the credentials in {self.source}: they are wrong, "
                    "revoked, expired or of another team, or the API does not accept them from your "
                    f"network. {how_to_sign_in(self.address)}. If you use `holdfast run`, start it again: it "
                    f"then replaces the session.{http.version_skew(self.address)}"
                )
            case HTTPStatus.LOCKED:
                return ApiError(f"{response.message} {self._holder(response, name)}".strip(), response)
            case HTTPStatus.TOO_MANY_REQUESTS:
                return ApiUnavailableError(
                    f"{self.host} still responds with {status} after several attempts: the management API "
                    "receives too many requests. Run the command again in a moment.",
                    response,
                )
            case _ if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                # With a message, a 500 is a fault that stays or a change that is done.
                has_advice = status == HTTPStatus.INTERNAL_SERVER_ERROR and response.message
                again = "" if has_advice else " Run the command again later."
                line = f"{self.host} still responds with {status} after several attempts.{again}"
                return ApiUnavailableError(f"{line} {response.message}".rstrip(), response)
            case _ if response.message:
                return ApiError(response.message, response)
            case _:
                return CommandError(f"{self.host} responds with {status}. {self._not_understood()}")

    def _holder(self, response: Response, name: object) -> str:
        """Return sentences on how long the conflicting lock has been held, and on what to do."""
        from holdfast.api import v1

        info = form.read(v1.LockedError, response.json()).lock
        operation, lock_id = form.text(info.get("Operation")), plain(form.text(info.get("ID")))
        lock = None
        with suppress(CommandError):  # then only the response describes the lock
            lock = self.get(v1.LockOfState, "locks", name).lock
        since = f" since {moment(lock.since, self.now())}" if lock and lock.since else ""
        if response.text("error") == "frozen":
            return f"The state has been frozen{since}." if since else ""
        for_what = f" for {in_sentence(operation)}" if operation else ""
        holding = f"The lock has been held{for_what}{since}. " if since else ""
        if operation and not since:
            holding = f"The lock is held{for_what}. "
        return (
            f"{holding}Wait until it is released. If the lock's holder is gone, `holdfast lock break {name} "
            f"{shlex.quote(lock_id)}` removes the lock."
        )


def how_to_sign_in(address: str) -> str:
    """Return how a user gets credentials for exactly this API, without a full stop at the end."""
    local = (
        ". For the local AWS, run `. .local/terraform.env`" if urlsplit(address).hostname in LOOPBACK else ""
    )
    return (
        f'Sign in with `eval "$(holdfast login --address {shlex.quote(address)})"`, or export '
        f"TF_HTTP_USERNAME and TF_HTTP_PASSWORD, which `holdfast token create` prints{local}"
    )


def _path(route: str, name: object, query: Mapping[str, str | None]) -> str:
    path = f"{_ROOT}/{route}" if name is None else f"{_ROOT}/{route}/{quote(str(name))}"
    given = {key: value for key, value in query.items() if value}
    return f"{path}?{urlencode(given)}" if given else path

"""Tests a deployed API with Terraform's requests, on a reserved state: lock, write, read and release."""

import json
import secrets
import time
from base64 import b64encode
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import md5
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from holdfast import __version__, names
from holdfast.audit import function_log_group
from holdfast.identity.credentials import OIDC_USER, basic, bearer, new_secret
from holdfast_cli.api import http
from holdfast_cli.api.response import Response
from holdfast_cli.bucket.stack import Stack
from holdfast_cli.doctor import clock, state_access
from holdfast_cli.doctor.checks import attempt
from holdfast_cli.doctor.cleaning import cleaned
from holdfast_cli.doctor.findings import Finding, note, ok, problem
from holdfast_cli.errors import CommandError
from holdfast_cli.terminal import versions

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_LETTERS: Final = "ä € 𝄞 \u2028 <&> \\u003c"
"""Characters that a gateway or a proxy may alter in a body."""
_PADDING: Final = 20_000
"""The number of spaces that make a body large enough for compression."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The user name and password that Terraform sends, such as a token's ID and its secret."""

    username: str
    password: str = field(repr=False)

    @property
    def authorization(self) -> str:
        """Return the Authorization header of the http backend."""
        return basic(self.username, self.password)

    @property
    def of_cloud(self) -> str:
        """Return the Authorization header that clients of `cloud` send."""
        is_id_token = self.username == OIDC_USER
        return f"Bearer {self.password if is_id_token else bearer(self.username, self.password)}"


@dataclass(frozen=True, slots=True)
class Bucket:
    """The bucket of the probe's state. The probe removes its state from the bucket at the end.

    `keeps_everything` says whether a default retention prevents the removal of every object.
    """

    client: "S3Client"
    name: str
    owner: str
    keeps_everything: bool


def check(stack: Stack, credentials: Credentials | None, bucket: Bucket) -> Iterator[Finding]:
    """Test the API of a stack, and remove everything that the requests stored.

    The credentials need write access to the reserved names. Without credentials, only some checks run.
    """
    state = names.parse(f"{names.RESERVED}/{secrets.token_hex(16)}")
    probe = _Probe(stack, credentials, state)
    is_holdfast = yield from probe.without_credentials()
    if not is_holdfast:
        return  # credentials are sent to Holdfast alone
    if credentials is None:
        yield note(
            "api.credentials",
            (
                "The API was not tested with credentials, because TF_HTTP_USERNAME and TF_HTTP_PASSWORD are "
                "not both set."
            ),
            probe.make_token,
        )
        return
    may_write = yield from probe.reading()
    if not may_write:
        return
    if bucket.keeps_everything:
        yield note(
            "api.write",
            "Locking and writing were not tested. The bucket puts every object under retention, so the "
            "objects of the test could not be removed.",
        )
        return

    def write() -> Iterator[Finding]:
        return attempt("api", probe.writing)

    yield from cleaned(bucket.client, bucket.name, bucket.owner, state.state_key, write, check="api.removed")


@dataclass(frozen=True, slots=True)
class _Reply(Response):
    """A response, together with the verb and the path of its request."""

    request: str = ""


class _Probe:
    def __init__(self, stack: Stack, credentials: Credentials | None, state: names.StateName) -> None:
        self._address = stack.api_address
        self._credentials = credentials
        self._state = state
        self._states, self._locks, self._unlocks = (
            f"/{route}/{state}" for route in ("states", "locks", "unlocks")
        )
        self._lineage = str(uuid4())
        self.make_token = (
            f"Create a token with `holdfast token create --team {stack.team} --role writer --scope "
            f"'{names.RESERVED}/*' --expires 1h`, and export its ID as TF_HTTP_USERNAME and its secret as "
            "TF_HTTP_PASSWORD."
        )
        """The advice for credentials that may not lock and write the probe's state."""
        self._look = (
            f"Look in the team's log groups, whose names begin with {function_log_group(stack.team, '')}, "
            f"and check the proxies between this machine and {self._address}."
        )

    # --- without credentials -------------------------------------------------------------------------

    def without_credentials(self) -> Generator[Finding, None, bool]:
        """Yield the findings that need no credentials, and return whether Holdfast responded."""
        sent = time.time()
        health = self._send("GET", "/health", authorization=None)
        received = time.time()
        version = health.text("version")
        if health.status != 200 or not version:
            yield self._wrong("api.health", health, "200 and its version")
            return False
        compared = versions.compare(version)
        if compared is None:
            yield ok("api.health", f"The API responds, with the release of this command: {version}.")
        else:
            yield note("api.health", *compared)
        off = clock.seconds_off(health.headers.get("date", ""), sent, received)
        wrong = [] if off is None else list(clock.deviation(off, "the API"))
        if wrong:
            yield problem("api.clock", wrong[0], clock.DO)
        elif off is not None:
            yield ok("api.clock", "The clocks of the API and of this machine agree.")
        else:
            yield note("api.clock", "Not checked: the API sends no Date header.")
        yield self._expect(
            "api.anonymous",
            401,
            "The API responds with 401 to a request without credentials.",
            "GET",
            self._states,
            authorization=None,
        )
        yield state_access.discovery(self._address)
        return True

    # --- read-only requests --------------------------------------------------------------------------

    def reading(self) -> Generator[Finding, None, bool]:
        """Yield the findings of read requests, and return whether the probe may go on to write its state."""
        assert self._credentials is not None  # noqa: S101 the caller has looked
        wrong = Credentials(self._credentials.username, new_secret())
        yield self._expect(
            "api.wrong_secret",
            403,
            "The API responds with 403 to a wrong secret.",
            "GET",
            self._states,
            authorization=wrong.authorization,
        )
        read = self._send("GET", self._states)
        if read.status in (401, 403):
            yield problem(
                "api.credentials",
                f"The API does not accept TF_HTTP_USERNAME and TF_HTTP_PASSWORD for {self._state}: "
                f"{_said(read)}.",
                f"{self.make_token} If the team has the setting `networks`, run this command from one of "
                "these networks.",
            )
            return False
        yield self._judge("api.absent", read, 204, "A read of a state that does not exist returns 204.")
        yield self._cloud()
        yield self._expect(
            "api.unknown_path",
            400,
            "The API responds with 400 to a wrong path. Terraform does not mistake a 400 for an empty state.",
            "GET",
            f"/stats/{self._state}",
        )
        # Older functions do not know the reserved names: they would keep the probe's versions for good.
        reserved = self._send("GET", f"/states/{names.RESERVED}/not-a-probe")
        if reserved.status == 400:
            yield ok("api.reserved_name", "The deployed functions reserve the state names holdfast-doctor/*.")
            return True
        yield problem(
            "api.reserved_name",
            "Locking and writing were not tested, because the API did not confirm that it reserves the state "
            f"names {names.RESERVED}/* for this test. It responded with {_said(reserved)}, not 400, to "
            f"{reserved.request}.",
            "If the deployed functions are from an older release, deploy the stack again. Then run this "
            "command again.",
        )
        return False

    def _cloud(self) -> Finding:
        """Return the finding on whether the API accepts the credentials as clients of `cloud` send them."""
        assert self._credentials is not None  # noqa: S101 the caller has looked
        ping = self._send("GET", "/api/v2/ping", authorization=self._credentials.of_cloud)
        if ping.status in (200, 204) and ping.headers.get("tfp-api-version"):
            return ok("api.cloud", "The API responds to clients of `cloud` and `remote`.")
        return self._wrong("api.cloud", ping, "204 and the header TFP-API-Version")

    # --- a run of Terraform --------------------------------------------------------------------------

    def writing(self) -> Iterator[Finding]:
        holder, other = _lock_info(), _lock_info()
        without_lock = self._send("POST", self._states, self._document(1))
        if without_lock.status == 403:
            yield problem(
                "api.credentials",
                f"TF_HTTP_USERNAME and TF_HTTP_PASSWORD may not write {self._state}: {_said(without_lock)}.",
                self.make_token,
            )
            return
        if without_lock.status == 200:
            yield note("api.lock_required", "The team accepts writes without a lock (require_lock = false).")
        else:
            yield self._judge(
                "api.lock_required", without_lock, 428, "The API responds with 428 to a write without a lock."
            )
        acquired = self._send("PUT", self._locks, holder)
        yield self._judge("api.acquire", acquired, 200, "The lock is acquired.")
        if acquired.status != 200:
            return
        held = self._send("PUT", self._locks, other)
        if held.json().get("ID") == json.loads(holder)["ID"]:
            yield self._judge(
                "api.held",
                held,
                423,
                (
                    "The API responds with 423 and the holder's lock info to a second client that requests "
                    "the lock."
                ),
            )
        else:
            yield self._wrong("api.held", held, "423 and the holder's lock info")
        yield from self._writes(holder, other)
        yield from self._reads()
        yield from self._releases(holder, other)

    def _writes(self, holder: bytes, other: bytes) -> Iterator[Finding]:
        damaged = self._send(
            "POST",
            self._under(holder),
            self._document(2),
            headers={"Content-MD5": content_md5(b"another body")},
        )
        if damaged.status == 200:
            # AWS documents that API Gateway may rename the header, and nothing relies on it.
            yield note(
                "api.content_md5",
                "The API accepted a write whose body does not match its Content-MD5. The header may not "
                "reach the API, which then cannot detect a body that was corrupted in transit.",
                f"If a proxy is in front of {self._address}, configure it to forward the header Content-MD5.",
            )
        else:
            yield self._judge(
                "api.content_md5", damaged, 400, "The API rejects a body that was corrupted in transit (400)."
            )
        yield self._expect(
            "api.other_lock",
            423,
            "The API responds with 423 to a write with another lock.",
            "POST",
            self._under(other),
            self._document(3),
        )
        yield self._expect(
            "api.write",
            200,
            "The API accepts a write with the lock.",
            "POST",
            self._under(holder),
            self._document(4),
        )

    def _reads(self) -> Iterator[Finding]:
        plain = self._send("GET", self._states, headers={"Accept-Encoding": "identity"})
        compressed = self._send("GET", self._states, headers={"Accept-Encoding": "gzip"})
        for check, read, how in (
            ("api.read", plain, "An uncompressed"),
            ("api.read_gzip", compressed, "A compressed"),
        ):
            if read.status == 200 and read.body != self._document(4):
                yield problem(check, f"{how} read did not return the state as it was written.", self._look)
            else:
                yield self._judge(check, read, 200, f"{how} read returns the state byte for byte.")
        cache, kind = (plain.headers.get(name, "") for name in ("cache-control", "content-type"))
        if cache == "no-store" and kind.startswith("application/json"):
            yield ok("api.headers", "The API returns a state as JSON that no cache may store.")
        else:
            yield problem(
                "api.headers",
                f"The API responded to a read with the Content-Type {kind!r} and the Cache-Control "
                f"{cache!r}, not with JSON and no-store. A cache between the client and the API could return "
                "an old state.",
                self._look,
            )
        outputs = self._send("GET", f"/outputs/{self._state}")
        if outputs.status == 200 and (outputs.json().get("outputs") != {} or "resources" in outputs.json()):
            yield problem("api.outputs", "/outputs/ returned more than the outputs.", self._look)
        else:
            yield self._judge("api.outputs", outputs, 200, "/outputs/ returns only the outputs.")

    def _releases(self, holder: bytes, other: bytes) -> Iterator[Finding]:
        # Without its body this DELETE would be a force-unlock.
        not_ours = self._send("DELETE", self._locks, other)
        again = self._send("PUT", self._locks, other)
        arrives = (not_ours.status, again.status) == (200, 423)
        if arrives:
            yield ok("api.delete_body", "The body of a DELETE reaches the API.")
        else:
            yield problem(
                "api.delete_body",
                "The body of a DELETE request may not reach the API. While one client held the lock, a "
                "second client sent a DELETE request with its own lock info, and then requested the lock. "
                f"The API responded with {_said(not_ours)} and {_said(again)}, not with 200 and 423.",
                "Use the unlock_address and the unlock_method that `holdfast backend-config STATE` prints. "
                "They release the lock with a POST request.",
            )
        yield self._expect(
            "api.release", 200, "The lock is released by POST /unlocks.", "POST", self._unlocks, holder
        )
        yield self._expect(
            "api.release_again",
            200,
            "A second release of the same lock succeeds, too.",
            "POST",
            self._unlocks,
            holder,
        )
        yield self._expect(
            "api.free", 200, "The next run acquires the released lock.", "PUT", self._locks, other
        )
        if arrives:
            released = self._send("DELETE", self._locks, other)
            yield self._judge("api.release_delete", released, 200, "DELETE /locks also releases a lock.")
        # Last, because a request that is lost takes long to time out and may leave the lock held.
        verbs = (("LOCK", self._locks), ("UNLOCK", self._unlocks))
        passed = [verb for verb, path in verbs if self._passes(verb, path, other)]
        yield note(
            "api.verbs",
            f"Of the HTTP methods LOCK and UNLOCK, the API accepts {' and '.join(passed) or 'none'}. The "
            "block that `holdfast backend-config STATE` prints uses other methods.",
        )

    def _passes(self, verb: str, path: str, lock: bytes) -> bool:
        try:
            return self._send(verb, path, lock).status == 200
        except CommandError:  # a proxy may drop the request, or redirect it
            return False

    # --- shared by the steps -------------------------------------------------------------------------

    def _under(self, lock: bytes) -> str:
        return f"{self._states}?ID={json.loads(lock)['ID']}"

    def _document(self, serial: int) -> bytes:
        # A probe must have no resources: the letters are in the version, and white space is the padding.
        document = {
            "version": 4,
            "terraform_version": f"1.0.0 {_LETTERS}",
            "serial": serial,
            "lineage": self._lineage,
            "outputs": {},
            "resources": [],
            "check_results": None,
        }
        return f"{json.dumps(document, ensure_ascii=False, indent=2)}{' ' * _PADDING}\n".encode()

    def _send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        headers: Mapping[str, str] | None = None,
        authorization: str | None = "",
    ) -> _Reply:
        """Send a request as Terraform does, to a path below the API's address.

        `headers` override Terraform's. An empty `authorization` means the credentials', None no header.
        """
        if authorization == "" and self._credentials:
            authorization = self._credentials.authorization
        sent = {
            **({"Authorization": authorization} if authorization else {}),
            **({"Content-Type": "application/json", "Content-MD5": content_md5(body)} if body else {}),
            **(headers or {}),
        }
        response = http.send(method, f"{self._address}{path}", headers=sent, body=body)
        return _Reply(response.status, response.body, response.headers, f"{method} {path.partition('?')[0]}")

    def _expect(
        self, check: str, status: int, good: str, method: str, path: str, *more: Any, **how: Any
    ) -> Finding:
        return self._judge(check, self._send(method, path, *more, **how), status, good)

    def _judge(self, check: str, reply: _Reply, status: int, good: str) -> Finding:
        return ok(check, good) if reply.status == status else self._wrong(check, reply, str(status))

    def _wrong(self, check: str, reply: _Reply, wanted: str) -> Finding:
        return problem(
            check, f"The API responded with {_said(reply)}, not {wanted}, to {reply.request}.", self._look
        )


def _said(reply: _Reply) -> str:
    return f"{reply.status} {reply.text('error')}".strip()


def _lock_info() -> bytes:
    document = {
        "ID": str(uuid4()),
        "Operation": "OperationTypeApply",
        "Info": "",
        "Who": "holdfast doctor",
        "Version": __version__,
        "Created": datetime.now(UTC).isoformat(),
        "Path": "",
    }
    return json.dumps(document).encode()


def content_md5(body: bytes) -> str:
    """Return the value of the Content-MD5 header that Terraform sends with a body."""
    return b64encode(md5(body, usedforsecurity=False).digest()).decode()

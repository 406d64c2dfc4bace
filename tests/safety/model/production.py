"""The production code as a function: from a request and S3's answers so far to the next request to S3.

Between two requests to S3 the code depends only on S3's answers, its clock and the cache of its process. So
each step runs an invocation from its start, with its cache and the answers so far, until it sends the next
request to S3 or ends. Each result is kept: the code never runs twice with the same answers.
"""

import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from email.utils import format_datetime
from hashlib import md5
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Final, NamedTuple, Self

from botocore.exceptions import ClientError, ReadTimeoutError

from tests.safety.model.s3 import LOST, Answer, Entry, Request
from tests.support.environment import CREDENTIALS, SETTINGS

BUCKET: Final = "holdfast-model"
STAGING_BUCKET: Final = "holdfast-model-staging"
ACCOUNT: Final = "123456789012"
FUNCTIONS: Final = Path(__file__).resolve().parents[3] / "functions"
FUNCTION_TIMEOUT: Final = 25
"""Seconds until Lambda ends a function."""
NOTHING: Final = 0
"""The number of the empty cache, of a process that has answered nothing yet."""
MAIN: Final = 0
BESIDE: Final = 1
"""The threads of an invocation that send requests."""
_EPOCH: Final = 1_790_000_000  # the start of the model's clock, in Unix seconds


class HttpRequest(NamedTuple):
    """A request to the API.

    Attributes:
        verb: `read`, `write`, `delete`, `lock`, `unlock`; or a verb of `CLOUD`, `MANAGED` or `DIRECT`.
        body: the body. For `create` and `commit`, the document that the client wants to write.
        lock_id: the client's `ID` parameter, of a write or an unlock, or the `id` parameter of `break`.
        id: the ID in the address of a request of `cloud {}`; the version that `break` names; the freeze that
            `unfreeze` or `unfreeze-pattern` names; the key of a request to S3 itself.
        force: whether an upload is forced.
        client: the client from whose name the random part of a new ID is made.
        attempt: the number of the try, for a request whose response differs from try to try.
        declared_only: whether the function refuses names that are not declared; for the verbs of `http`.
    """

    verb: str
    state: str
    principal: str
    body: bytes = b""
    lock_id: str | None = None
    id: str = ""
    force: bool = False
    client: str = ""
    attempt: int = 0
    declared_only: bool = False

    def again(self) -> "HttpRequest":
        """Return the same request as the next try."""
        return self._replace(attempt=self.attempt + 1)

    @property
    def first(self) -> "HttpRequest":
        """The request as it was first sent."""
        return self._replace(attempt=0) if self.attempt else self


class Reply(NamedTuple):
    status: int
    body: str


CLOUD: Final = frozenset(
    {
        *("workspace", "cloud-lock", "current", "download", "create", "commit", "write-at-once"),
        *("cloud-unlock", "cloud-force-unlock"),
        *("workspace-create", "workspace-delete", "workspace-safe-delete"),
    }
)
"""The verbs of `cloud {}`."""
READERS: Final = "reader:"
WRITERS: Final = "writer:"
"""Prefixes of the principals with the role `reader` or `writer`. All others are maintainers."""
NATIVE: Final = frozenset({"native-lock", "native-read", "native-write", "native-unlock"})
"""Requests of `backend "s3"`, past the API."""
DIRECT: Final = NATIVE | {"upload"}
"""Requests that a client sends to S3 itself. An upload goes to a presigned address."""
MANAGED: Final[Mapping[str, tuple[str, str]]] = {
    "see-state": ("GET", "states"),
    "see-lock": ("GET", "locks"),
    "see-marker": ("GET", "versions"),
    "see-record": ("GET", "states"),
    "restore": ("POST", "restore"),
    "manage-delete": ("POST", "delete"),
    "undelete": ("POST", "undelete"),
    "undeclare": ("POST", "undeclare"),
    "break": ("DELETE", "locks"),
    "freeze": ("PUT", "freeze"),
    "unfreeze": ("DELETE", "freeze"),
    "freeze-pattern": ("PUT", "freezes"),
    "unfreeze-pattern": ("DELETE", "freezes"),
}
"""The verbs of an operator's commands. The verbs `see-*` read one object with the library's code."""
_DRAWS: Final = frozenset({"workspace", "create", "write-at-once"})
"""The verbs that create an ID."""
_ROUTES: Final = {
    "read": ("GET", "/states/{name+}"),
    "write": ("POST", "/states/{name+}"),
    "delete": ("DELETE", "/states/{name+}"),
    "lock": ("PUT", "/locks/{name+}"),
    "unlock": ("DELETE", "/locks/{name+}"),
}


class Told(NamedTuple):
    """An answer of S3, the seconds since the invocation began, and the thread that got it."""

    answer: Answer
    seconds: int
    thread: int


@dataclass(slots=True, eq=False)
class Point:
    """The progress of an invocation: it waits for answers of S3, or it has ended.

    `pending` has the request for whose answer each thread waits; it is empty if the invocation has ended, and
    `reply` is None if it has not. `memory` is the number of its process's cache at the beginning. `leaves`
    are the caches at its end, of one thing each.
    """

    number: int
    request: HttpRequest
    answers: tuple[Told, ...]
    pending: Mapping[int, Request]
    reply: Reply | None
    memory: int
    leaves: tuple[int, ...]
    _next: dict[Told, "Point"] = field(default_factory=dict)


class AsksForMore(BaseException):
    """The answers are used up. No `except Exception` in the code catches it."""


class RemembersLate(BaseException):
    """The code first reads its cache after an answer of S3. The search does not cover that."""


class TakesTwice(BaseException):
    """The code uses two things of its cache. The search does not cover that."""


class Production:
    """The production code, imported once, from the repository or from a copy with a deliberate fault."""

    def __init__(self, functions: Path = FUNCTIONS) -> None:
        os.environ.update(
            {
                **SETTINGS,
                **CREDENTIALS,
                "HOLDFAST_BUCKET": BUCKET,
                "HOLDFAST_ACCOUNT": ACCOUNT,
                "POWERTOOLS_LOG_LEVEL": "CRITICAL",
            }
        )
        os.environ.pop("HOLDFAST_RETENTION", None)
        sys.path[:] = [str(functions), *(path for path in sys.path if Path(path).resolve() != FUNCTIONS)]
        self._handler: Any = import_module("terraform_http.handler")
        found = Path(str(self._handler.__file__)).resolve().parent.parent
        if found != functions.resolve():
            raise RuntimeError(f"the production code was imported from {found}, not from {functions}")
        self._function: Any = vars(self._handler)["_function"]
        self._management: Any = import_module("management.handler")
        self._held: Any = import_module("holdfast.state.held")
        vars(self._held).update(datetime=LambdasClock, ThreadPoolExecutor=self._thread)
        # It lists keys, which the model does not, and only for the text of a refusal.
        vars(import_module("holdfast.state.declared"))["nearest"] = lambda *_: []
        vars(import_module("management.changing"))["datetime"] = SlowClock
        vars(import_module("holdfast.cloud.records"))["datetime"] = SlowClock
        lock_document, write = (
            import_module("management.documents").lock,
            import_module("holdfast.api.form").write,
        )
        self._lock_document: Any = lambda held: write(lock_document(held))
        self._access: Any = import_module("holdfast.access")
        self._authentication: Any = import_module("holdfast.identity.authentication")
        self._authorizer_context: Any = import_module("gateway.authorizer_context")
        self._errors: Any = import_module("holdfast.errors")
        self._names: Any = import_module("holdfast.names")
        self._store: Any = import_module("holdfast.s3.store")
        self._cloud: Any = SimpleNamespace(
            **{
                name: import_module(f"holdfast.cloud.{name}")
                for name in ("ids", "locking", "names", "staging", "uploads", "versions", "workspaces")
            }
        )
        self._work: Any = import_module("holdfast.work").Work
        self._policy: Any = import_module("holdfast.policy").Policy.from_environment(
            "largest_state", "declared_only", "own_locks", "retention"
        )
        self._revision: Any = import_module("holdfast.state.document").Revision
        self._drawing = Drawing()
        for drawn in (self._cloud.ids, self._cloud.locking):
            vars(drawn).update(datetime=self._drawing, secrets=self._drawing)
        self._clock = Clock()
        self._budget: Any = import_module("holdfast.s3.budget")
        for timed in (self._budget, import_module("holdfast.s3.retry")):
            vars(timed)["time"] = self._clock
        self._memory: Any = _noting(import_module("holdfast.memory").Memory, self._took)
        self._memories: list[dict[str, Any]] = [vars(self._memory())]
        self._as_text = [""]
        self._consulted = self._took_something = False
        self._points: list[Point] = []
        self._starts: dict[tuple[HttpRequest, int], Point] = {}

    def start(self, request: HttpRequest, memory: int = NOTHING) -> Point:
        """Return the first point of an invocation, in a process with the cache of this number.

        If the code does not use the cache, the point is the same as in a cold process. If the code makes
        nothing that differs from try to try, the point is the same as for the first try.
        """
        if (request, memory) not in self._starts:
            point = self._run(request, (), memory)
            if request.attempt and request.verb not in _DRAWS and not self._drawing.has_drawn:
                self._starts[request, memory] = self.start(request.first, memory)
                return self._starts[request, memory]
            took = memory == NOTHING or self._took_something
            self._starts[request, memory] = point if took else self.start(request)
        return self._starts[request, memory]

    def remembered(self, memory: int) -> str:
        """Return a cache as text. Equal texts are equal caches."""
        return self._as_text[memory]

    def point(self, number: int) -> Point:
        return self._points[number]

    def after(self, point: Point, answer: Answer, seconds: int, thread: int = MAIN) -> Point:
        """Go on with an answer that a thread gets this many seconds after the invocation began."""
        key = Told(answer, seconds, thread)
        if key not in point._next:  # noqa: SLF001 one component
            point._next[key] = self._run(  # noqa: SLF001 one component
                point.request, (*point.answers, key), point.memory
            )
        return point._next[key]  # noqa: SLF001 one component

    def _thread(self, _: int) -> "Beside":
        return Beside(self._s3, self._clock)

    def _run(self, request: HttpRequest, answers: tuple[Told, ...], memory: int) -> Point:
        self._clock.seconds = 0
        self._s3 = s3 = Replay(answers, self._clock)
        self._consulted = self._took_something = False
        process = self._function.memory = self._memory()
        # The code changes a copy, so that the stored cache stays the same.
        vars(process).update({name: copy(value) for name, value in self._memories[memory].items()})
        self._drawing.begin(request)
        reply: Reply | None
        try:
            reply = self._answer(request, s3)
        except AsksForMore:
            reply = None
        if s3.asked:
            reply = None  # a `finally` in the code may have swallowed `AsksForMore`
        leaves = () if reply is None else tuple(map(self._number, _caches(vars(process))))
        point = Point(len(self._points), request, answers, s3.asked, reply, memory, leaves)
        self._points.append(point)
        return point

    def _number(self, remembered: dict[str, Any]) -> int:
        if remembered not in self._memories:
            self._memories.append(remembered)
            self._as_text.append(repr(remembered))
        return self._memories.index(remembered)

    def _took(self, taken: object) -> None:
        if self._s3.has_answered and not self._consulted:
            raise RemembersLate
        if taken is not None and self._took_something:
            raise TakesTwice
        self._consulted = True
        self._took_something |= taken is not None

    def _answer(self, request: HttpRequest, s3: "Replay") -> Reply:
        if request.verb.startswith("see-"):
            return self._look(request, s3)
        if request.verb in MANAGED:
            return self._manage(request, s3)
        if request.verb in CLOUD:
            return self._of_cloud(request, s3)
        if request.verb in DIRECT:
            return _directly(request, s3)
        return self._handle(request, s3)

    def _handle(self, request: HttpRequest, s3: "Replay") -> Reply:
        method, route = _ROUTES[request.verb]
        # It is frozen, so the code under test cannot change it.
        object.__setattr__(self._function.policy, "declared_only", request.declared_only)
        event = self._event(request, method, route, {"name": request.state})
        if request.lock_id:
            event["queryStringParameters"] = {"ID": request.lock_id}
        return _handled(self._handler, event, s3)

    def _manage(self, request: HttpRequest, s3: "Replay") -> Reply:
        method, route = MANAGED[request.verb]
        path = {"path": route if route == "freezes" else f"{route}/{request.state}"}
        event = self._event(request, method, "/manage/v1/{path+}", path)
        if request.verb == "break":
            event["queryStringParameters"] = {"id": request.lock_id or "", "version": request.id}
        elif request.id:
            event["queryStringParameters"] = {"id": request.id}
        return _handled(self._management, event, s3)

    def _event(
        self, request: HttpRequest, method: str, route: str, parameters: Mapping[str, str]
    ) -> dict[str, Any]:
        caller = self._authentication.Authenticated(
            self._caller(request),
            self._authentication.AuthMethod.TOKEN,
        )
        context = {
            "http": {"method": method},
            "requestId": "request",
            "authorizer": {"lambda": self._authorizer_context.encode(caller)},
        }
        return {
            "routeKey": f"ANY {route}",
            "headers": {},
            "requestContext": context,
            "pathParameters": parameters,
            "body": request.body.decode(),
        }

    def _caller(self, request: HttpRequest) -> Any:
        roles = self._access.Role
        of_kind = {WRITERS: roles.WRITER, READERS: roles.READER}
        kind = request.principal.partition(":")[0] + ":"
        return self._access.Caller(
            request.principal, (self._access.Grant(of_kind.get(kind, roles.MAINTAINER), ("*",)),)
        )

    def _look(self, request: HttpRequest, s3: "Replay") -> Reply:
        """Read the current version with its document, the lock, the newest delete marker, or the record."""
        store = self._store.Store(s3, BUCKET, ACCOUNT, self._budget.Budget.seconds(15))
        name = self._names.parse(request.state)
        try:
            if request.verb == "see-state":
                found = store.read(name.state_key)
                told = found and {"version": found.version.version_id, "document": found.body.decode()}
            elif request.verb == "see-marker":
                newest = next(store.versions(name.state_key), None)
                told = newest and {"version": newest.id, "delete_marker": newest.is_delete_marker}
            elif request.verb == "see-record":
                record = store.read_version(name.record_key)
                told = record and {"version": record.version_id}
            else:
                held = self._held.read(store, name)
                told = held and self._lock_document(held)
        except self._errors.HoldfastError as error:
            return Reply(error.status, "")
        return Reply(200, json.dumps(told))

    def _of_cloud(self, request: HttpRequest, s3: "Replay") -> Reply:
        budget = self._budget.Budget.seconds(15)
        store, staged = (
            self._store.Store(s3, bucket, ACCOUNT, budget) for bucket in (BUCKET, STAGING_BUCKET)
        )
        name = self._names.parse(request.state)
        work = self._work(store, name, self._caller(request), self._policy)
        cloud = self._cloud
        try:
            match request.verb:
                case "workspace":
                    return Reply(200, str(cloud.workspaces.read(work).id))
                case "current":
                    return Reply(200, str(cloud.versions.current(work).id))
                case "download":
                    version = cloud.ids.VersionId.parse(request.id)
                    return Reply(200, cloud.versions.read(work, version.version_id).decode())
                case "create":
                    upload = self._created(work, request)
                    key = cloud.staging.state_key(request.state, request.principal, upload.key)
                    return Reply(201, json.dumps({"id": str(upload), "key": key}))
                case "write-at-once":
                    cloud.uploads.write_at_once(work, self._created(work, request), request.body)
                case "commit":
                    upload = cloud.ids.UploadId.parse(request.id)
                    cloud.uploads.commit(work, staged, upload)
                case "workspace-create":
                    cloud.workspaces.create(work, {})
                case "workspace-delete":
                    cloud.workspaces.delete(work)
                case verb:
                    workspace = cloud.ids.WorkspaceId.parse(request.id)
                    changes = {
                        "cloud-lock": cloud.locking.lock,
                        "cloud-unlock": cloud.locking.unlock,
                        "cloud-force-unlock": cloud.locking.force_unlock,
                        "workspace-safe-delete": cloud.workspaces.safe_delete,
                    }
                    changes[verb](work, workspace)
        except self._errors.HoldfastError as error:
            is_locked = isinstance(error, self._errors.Locked) and not isinstance(error, self._errors.Frozen)
            return Reply(409 if is_locked else error.status, json.dumps(error.body()))
        return Reply(200, "")

    def _created(self, work: Any, request: HttpRequest) -> Any:
        document = json.loads(request.body)
        return self._cloud.uploads.create(
            work,
            self._cloud.ids.WorkspaceId.parse(request.id).lock_id,
            self._revision(document["serial"], document["lineage"]),
            md5(request.body, usedforsecurity=False).hexdigest(),
            force=request.force,
            body=request.body if request.verb == "write-at-once" else None,
        )


def _handled(handler: Any, event: Mapping[str, Any], s3: "Replay") -> Reply:
    vars(handler)["_function"].s3 = s3
    lambda_context = SimpleNamespace(get_remaining_time_in_millis=lambda: FUNCTION_TIMEOUT * 1000)
    answer = handler.handle(event, lambda_context)
    return Reply(answer["statusCode"], answer["body"])


def _noting(kind: Any, note: Callable[[object], None]) -> Any:
    """Return a subclass of `Memory` that reports what is taken from it."""

    def noted(take: Any) -> Any:
        def taking(memory: Any, *arguments: Any) -> Any:
            taken = take(memory, *arguments)
            note(taken)
            return taken

        return taking

    takes = {name: noted(take) for name, take in vars(kind).items() if name.startswith("take")}
    return type(kind.__name__, (kind,), takes)


def _caches(process: Mapping[str, dict[Any, Any]]) -> Iterator[dict[str, Any]]:
    """Yield what a process has cached, one by one: an invocation uses one thing of its cache at most.

    So the search need not combine what is cached, and it covers every combination.
    """
    for name, cache in process.items():
        for key, value in cache.items():
            yield {name: {key: value}}


def _directly(request: HttpRequest, s3: "Replay") -> Reply:
    """Send a client's request to S3 itself. The unlock of `backend "s3"` reads the lock, then deletes it."""
    where = {"Bucket": STAGING_BUCKET if request.verb == "upload" else BUCKET, "Key": request.id}
    try:
        match request.verb:
            case "upload" | "native-write":
                s3.put_object(**where, Body=request.body, Metadata={})
            case "native-lock":
                s3.put_object(**where, Body=request.body, Metadata={}, IfNoneMatch="*")
            case "native-read":
                return Reply(200, s3.get_object(**where)["Body"].read().decode())
            case _:
                lock = json.loads(s3.get_object(**where)["Body"].read())
                if lock["ID"] != json.loads(request.body)["ID"]:
                    return Reply(409, "")
                s3.delete_object(**where)
    except ClientError as error:
        return Reply(error.response["ResponseMetadata"]["HTTPStatusCode"], "")
    except ReadTimeoutError:
        return Reply(504, "")
    return Reply(200, "")


class Drawing:
    """Replaces the modules `secrets` and `datetime`: its values are a function of the request."""

    def __init__(self) -> None:
        self.has_drawn = False
        self.fromtimestamp = datetime.fromtimestamp
        self._request = HttpRequest("", "", "")

    def begin(self, request: HttpRequest) -> None:
        """Begin a request, from which the next values are made."""
        self.has_drawn = False
        self._request = request

    def token_hex(self, count: int) -> str:
        """Return "random" bytes that begin with the client's name."""
        self.has_drawn = True
        return f"{self._request.client}-{self._request.attempt}".encode().hex().ljust(2 * count, "0")

    def now(self, zone: tzinfo) -> datetime:
        """Return another second for each try."""
        self.has_drawn = True
        return datetime.fromtimestamp(_EPOCH + self._request.attempt, zone)


class Clock:
    """Replaces the module `time` in the store: time passes only when S3 answers."""

    def __init__(self) -> None:
        self.seconds = 0

    def monotonic(self) -> float:
        return float(self.seconds)

    def sleep(self, seconds: float) -> None:
        """Return at once: a pause takes no time in the model."""


class LambdasClock(datetime):
    """Replaces `datetime` where the code may use S3's clock only: this clock is an hour ahead."""

    seconds_of_s3: ClassVar[int] = 0

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return cls.fromtimestamp(_EPOCH + cls.seconds_of_s3 + 3600, tz)


class SlowClock(datetime):
    """Replaces `datetime` where the code refuses a time in the past: this clock is an hour behind."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return cls.fromtimestamp(_EPOCH - 3600, tz)


class Replay:
    """Replaces the SDK's client: returns a thread's answers so far, then notes in `asked` what it sends."""

    def __init__(self, answers: tuple[Told, ...], clock: Clock) -> None:
        self._answers = {
            thread: iter([told for told in answers if told.thread == thread]) for thread in (MAIN, BESIDE)
        }
        self._clock = clock
        self.asked: dict[int, Request] = {}
        self.thread = MAIN
        self.has_answered = False

    def get_object(
        self,
        *,
        Key: str,  # noqa: N803 the SDK's names
        Bucket: str = BUCKET,  # noqa: N803 the SDK's names
        VersionId: str | None = None,  # noqa: N803 the SDK's names
        Range: str | None = None,  # noqa: N803 the SDK's names
        **_: Any,
    ) -> dict[str, Any]:
        if Range not in (None, "bytes=0-0"):
            raise ValueError("the model knows no other range than the first byte")
        request = Request(
            "GetObject",
            Key,
            version_id=VersionId,
            first_byte=Range is not None,
            staged=Bucket == STAGING_BUCKET,
        )
        answer = self._answer(request)
        entry = _of(answer)
        whole = entry.body or b""
        body = whole[:1] if request.first_byte else whole
        described: dict[str, Any] = {
            "ETag": entry.etag,
            "ContentLength": len(body),
            "LastModified": _time(entry.modified),
            "Metadata": dict(entry.metadata),
            "Body": io.BytesIO(body),
            "ServerSideEncryption": _encryption(entry),
            "ResponseMetadata": _whole(answer, len(body)),
        }
        described |= _version_of(entry)
        return described | ({"ContentRange": f"bytes 0-0/{len(whole)}"} if request.first_byte else {})

    def put_object(
        self,
        *,
        Key: str,  # noqa: N803 the SDK's names
        Body: bytes,  # noqa: N803 the SDK's names
        Bucket: str = BUCKET,  # noqa: N803 the SDK's names
        **sent: Any,
    ) -> dict[str, Any]:
        if sent.get("IfNoneMatch", "*") != "*":
            raise ValueError("S3 takes only * in If-None-Match of a PutObject")
        request = Request(
            "PutObject",
            Key,
            if_match=sent.get("IfMatch"),
            if_none_match="IfNoneMatch" in sent,
            body=Body,
            metadata=tuple(sorted(sent["Metadata"].items())),
            staged=Bucket == STAGING_BUCKET,
        )
        answer = self._answer(request)
        entry = _of(answer)
        return {
            "ETag": entry.etag,
            "ServerSideEncryption": _encryption(entry),
            "ResponseMetadata": _whole(answer, 0),
        } | _version_of(entry)

    def delete_object(
        self,
        *,
        Key: str,  # noqa: N803 the SDK's names
        Bucket: str = BUCKET,  # noqa: N803 the SDK's names
        VersionId: str | None = None,  # noqa: N803 the SDK's names
        IfMatch: str | None = None,  # noqa: N803 the SDK's names
        **_: Any,
    ) -> Mapping[str, Any]:
        is_staged = Bucket == STAGING_BUCKET
        self._answer(Request("DeleteObject", Key, version_id=VersionId, if_match=IfMatch, staged=is_staged))
        return {}

    def list_object_versions(self, *, Prefix: str, **_: Any) -> dict[str, Any]:  # noqa: N803 the SDK's names
        answer = self._answer(Request("ListObjectVersions", Prefix))
        versions: list[dict[str, Any]] = []
        markers: list[dict[str, Any]] = []
        for key in answer.history:
            for entry in reversed(key.entries):
                (markers if entry.body is None else versions).append(
                    {
                        "Key": key.name,
                        "VersionId": entry.version_id,
                        "LastModified": _time(entry.modified),
                        "IsLatest": entry is key.entries[-1],
                    }
                )
        return {"Versions": versions, "DeleteMarkers": markers, "IsTruncated": False}

    def list_objects_v2(self, *, Prefix: str, **_: Any) -> dict[str, Any]:  # noqa: N803 the SDK's names
        answer = self._answer(Request("ListObjectsV2", Prefix))
        listed = [
            {"Key": key.name, "Size": len(entry.body or b""), "LastModified": _time(entry.modified)}
            for key in answer.history
            for entry in key.entries[-1:]
        ]
        return {"Contents": listed, "IsTruncated": False}

    def _answer(self, request: Request) -> Answer:
        if self.thread in self.asked:
            raise AsksForMore
        given = next(self._answers[self.thread], None)
        if given is None:
            self.asked[self.thread] = request
            raise AsksForMore
        self.has_answered = True
        answer, self._clock.seconds, _ = given
        LambdasClock.seconds_of_s3 = answer.date
        if answer.status == LOST:
            raise ReadTimeoutError(endpoint_url="model")
        if answer.status >= 300:
            raise _refusal(answer, request.operation)
        return answer


class Beside:
    """Replaces a pool of one thread: runs the call of the thread first, as far as its answers reach."""

    def __init__(self, s3: Replay, clock: Clock) -> None:
        self._s3 = s3
        self._clock = clock
        self._ended = clock.seconds
        self._call: Future[Any] = Future()

    def __enter__(self) -> Self:
        return self

    def submit(self, call: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Run the thread's call. The time of the main thread stays."""
        began, self._s3.thread = self._clock.seconds, BESIDE
        try:
            self._call.set_result(call(*arguments))
        except AsksForMore:
            pass
        except Exception as error:  # noqa: BLE001 the main thread gets it
            self._call.set_exception(error)
        finally:
            self._ended, self._clock.seconds, self._s3.thread = self._clock.seconds, began, MAIN
        return self._call

    def __exit__(self, *_: object) -> None:
        """Wait for the thread."""
        if not self._call.done():
            raise AsksForMore
        self._clock.seconds = max(self._clock.seconds, self._ended)


def _refusal(answer: Answer, operation: str) -> Exception:
    told: Any = {
        "Error": {"Code": answer.code, "Message": ""},
        "ResponseMetadata": {"HTTPStatusCode": answer.status},
    }
    return ClientError(told, operation)


def _of(answer: Answer) -> Entry:
    if answer.entry is None:
        raise ValueError("the model has answered without an object")
    return answer.entry


def _whole(answer: Answer, length: int) -> dict[str, Any]:
    """Return the headers by which the production code checks that an answer is complete."""
    date = format_datetime(_time(answer.date), usegmt=True)
    return {"HTTPHeaders": {"date": date, "etag": _of(answer).etag, "content-length": str(length)}}


def _version_of(entry: Entry) -> dict[str, str]:
    return {"VersionId": entry.version_id} if entry.version_id else {}


def _encryption(entry: Entry) -> str:
    return "aws:kms" if entry.has_own_etag else "AES256"


def time_of(seconds: int) -> str:
    """Return a time of S3's clock in RFC 3339 format."""
    return f"{_time(seconds):%Y-%m-%dT%H:%M:%SZ}"


def seconds_of(time: str) -> int:
    """Parse the result of `time_of`."""
    return int(datetime.fromisoformat(time).timestamp()) - _EPOCH


def _time(seconds: int) -> datetime:
    return datetime.fromtimestamp(_EPOCH + seconds, UTC)

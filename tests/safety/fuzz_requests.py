"""Requests from docs/openapi.yaml for the states of a batch, most of them broken.

schemathesis generates them, half of them against the description. The description cannot express everything
that may arrive. So two of three requests are then broken here: in their body, path, query, credentials,
headers or verb.
"""

import base64
import gzip
import hashlib
import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from schemathesis import Case, GenerationMode
from schemathesis.core import SCHEMATHESIS_TEST_CASE_HEADER
from schemathesis.core.result import Ok

from tests.support import documents
from tests.support.aws_gateway import METHODS

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "openapi.yaml"
CLOUD: Final = "/api/v2/"
MANAGEMENT: Final = "/manage/v1/"

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it is sent.

    `target` is path and query. `headers` keep their order, and a header may come twice. `body` follows them,
    whatever length they announce. A request that is not `whole` announces more than it sends, so it may get
    no response. `operation` is its path and verb in docs/openapi.yaml; empty if its path or verb is broken.
    """

    method: str
    target: str
    headers: Headers = ()
    body: bytes = b""
    whole: bool = True
    operation: tuple[str, str] | tuple[()] = ()

    @property
    def for_gateway(self) -> bool:
        """Return whether AWS would accept the verb.

        API Gateway passes seven verbs. LOCK, UNLOCK and others can reach the function only through another
        gateway. So they go to the API directly, and only with headers that any gateway passes: malformed
        headers would test the local AWS, not the function.
        """
        return self.method in METHODS


@dataclass(frozen=True)
class Ground:
    """The states that the requests of a batch could destroy.

    `prefix` is the prefix of all names that the tokens cover. `tokens` are values of `Authorization` by role.
    """

    prefix: str
    tokens: Mapping[str, str]

    @property
    def locked(self) -> str:
        """A state of serial 5 whose lock is held."""
        return f"{self.prefix}/locked"

    @property
    def free(self) -> str:
        """A state of serial 5 that nobody has locked."""
        return f"{self.prefix}/free"

    @property
    def held(self) -> bytes:
        """The lock info with which the writer holds the lock of `locked`."""
        return documents.lock_info(f"held-{self.prefix}")

    def name(self) -> SearchStrategy[str]:
        return st.sampled_from([self.locked, self.locked, self.free, f"{self.prefix}/new"])


def generated(ground: Ground, count: int, number: int) -> list[Request]:
    """Return `count` different requests; `number` determines them."""
    found: dict[Request, None] = {}

    def draw(request: Request) -> None:
        found[request] = None

    bounded = settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    attempts = itertools.count(number * 1000)
    while len(found) < count:
        seed(next(attempts))(bounded(given(_requests(ground))(draw)))()
    return list(found)[:count]


@st.composite
def _requests(draw: st.DrawFn, ground: Ground) -> Request:
    request = draw(_aimed(ground))
    for breaks in draw(st.sampled_from(_BREAKS)):
        request = draw(breaks(ground, request))
    if not any(name == "Content-Length" for name, _ in request.headers):
        request = replace(request, headers=(*request.headers, ("Content-Length", str(len(request.body)))))
    if not request.for_gateway:
        # No gateway passes on a longer target, or a fragment.
        request = replace(request, target=request.target.partition("#")[0][:8000])
    return request


# --- by the description --------------------------------------------------------------------------

CURRENT: Final = "CURRENT-VERSION"
OLDER: Final = "OLDER-VERSION"
LOCK_VERSION: Final = "LOCK-VERSION"
"""Placeholders for version IDs, which only the bucket knows; see `with_versions`."""
_VERSIONS: Final = st.sampled_from([*[CURRENT, OLDER, LOCK_VERSION] * 3, "null", "x" * 300, "\u2028", ""])
_OF_VERSIONS: Final = frozenset({"version", "current", "marker", "from", "to"})
"""The parameters and members that are version IDs."""


@cache
def _cases() -> SearchStrategy[Case[Any]]:
    schema = schemathesis.openapi.from_path(DOCUMENT)
    cases = [
        found.ok().as_strategy(generation_mode=mode)
        for found in schema.get_all_operations()
        if isinstance(found, Ok)
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
        # Those of `backend "http"`, which write without another request before, come more often.
        for _ in range(5 if re.match("/(states|locks|unlocks)/", found.ok().path) else 1)
    ]
    # Not `one_of`: hypothesis warns of a strategy whose text names so many others.
    return st.integers(0, len(cases) - 1).flatmap(lambda number: cases[number])


@st.composite
def _aimed(draw: st.DrawFn, ground: Ground) -> Request:
    """A case of schemathesis, which knows no state, lock, token or version, with those of the ground."""
    case = draw(_cases())
    name = draw(ground.name())
    organization, _, rest = name.partition("/")
    parameters = {"name": name, "organization": organization, "workspace": rest.replace("/", ":")}
    for parameter in re.findall(r"{(\w+)}", case.path):
        if parameter in parameters:
            case.path_parameters[parameter] = parameters[parameter]
        elif parameter in _ID_PREFIXES:
            case.path_parameters[parameter] = draw(_cloud_ids(ground, _ID_PREFIXES[parameter]))
    sent = case.as_transport_kwargs(base_url="http://door")
    query = dict(sent["params"] or {})
    query |= {parameter: draw(_VERSIONS) for parameter in sorted(query.keys() & _OF_VERSIONS)}
    lock_id = documents.lock_id(ground.held)
    if case.path == "/states/{name}" and case.method in ("POST", "PUT") and draw(_mostly):
        query["ID"] = lock_id
    body = sent.get("data") or b""
    if isinstance(document := sent.get("json"), dict):
        document |= {member: draw(_VERSIONS) for member in sorted(document.keys() & _OF_VERSIONS)}
    if "json" in sent:
        body = json.dumps(sent["json"]).encode()
    known = _bodies(ground, case.path.rpartition("/")[2] if case.path.startswith(CLOUD) else case.path)
    if known and case.method in ("POST", "PUT", "DELETE") and draw(_mostly):
        body = draw(st.sampled_from(known))
    # The number of the case would make the same request another one each time.
    headers = {
        name: str(value) for name, value in sent["headers"].items() if name != SCHEMATHESIS_TEST_CASE_HEADER
    }
    role = draw(st.sampled_from([*["writer", "maintainer"] * 4, *ground.tokens]))
    token = ground.tokens[role]
    headers["Authorization"] = bearer(token) if case.path.startswith(CLOUD) or draw(_rarely) else token
    headers.pop("Content-Length", None)
    target = sent["url"].removeprefix("http://door")
    if query:
        target += "?" + urlencode(query, doseq=True, errors="surrogatepass")
    operation = (case.path, case.method.lower())
    return Request(case.method, target, tuple(headers.items()), body, operation=operation)


_mostly = st.sampled_from([True, True, True, False])
_rarely = st.sampled_from([False, False, False, True])


def with_versions(request: Request, versions: Mapping[str, str]) -> Request:
    """Return a request with version IDs in place of their placeholders, the keys of `versions`."""
    target, body = request.target, request.body
    for placeholder, version in versions.items():
        target = target.replace(placeholder, quote(version))
        body = body.replace(placeholder.encode(), version.encode())
    lengths = {"Content-Length": str(len(body))} if body != request.body else {}
    headers = tuple((name, lengths.get(name, value)) for name, value in request.headers)
    return replace(request, target=target, headers=headers, body=body)


def bearer(token: str) -> str:
    """Return a token's `Authorization` for `cloud {}`, from its `Authorization` for `backend "http"`."""
    return "Bearer " + base64.b64decode(token.removeprefix("Basic ")).decode().replace(":", ".", 1)


def _bodies(ground: Ground, path: str) -> Sequence[bytes]:
    """Return bodies as clients send them to a path, or to the last part of a path of `cloud {}`.

    Some of them are refused for their content.
    """
    held_id = documents.lock_id(ground.held)
    only_ids = (documents.only_id(held_id), json.dumps({"ID": held_id}).encode(), b"")
    locks = (ground.held, documents.lock_info("another"), *only_ids)
    serials = ((6, documents.LINEAGE), (5, documents.LINEAGE), (4, documents.LINEAGE), (7, "other"), (8, ""))
    states = [documents.state(serial, lineage=lineage) for serial, lineage in serials]
    version = {
        "serial": 6,
        "lineage": documents.LINEAGE,
        "md5": hashlib.md5(states[0], usedforsecurity=False).hexdigest(),
        "state": base64.b64encode(states[0]).decode(),
    }
    known = {
        "/states/{name}": (*states, documents.encrypted_state(9, "x")),
        "/locks/{name}": locks,
        "/unlocks/{name}": locks,
        "state-versions": (json.dumps({"data": {"type": "state-versions", "attributes": version}}).encode(),),
    }
    return known.get(path, ())


_ID_PREFIXES: Final = {"workspace_id": "ws-", "version_id": "", "output_id": "wsout-"}
_HEX: Final = st.text("0123456789abcdef", min_size=32, max_size=32)


@st.composite
def _cloud_ids(draw: st.DrawFn, ground: Ground, wanted: str) -> str:
    """An ID as the API makes it, for a state of the ground or another: whole, with odd fields, or cut."""
    prefix = wanted or draw(st.sampled_from(["sv-", "upload-"]))
    name = draw(st.one_of(ground.name(), st.sampled_from(["foreign/state", "one-segment"])))
    version = draw(st.one_of(st.sampled_from(["", "null"]), st.text("abcXYZ019._-", max_size=32), any_text))
    base = draw(st.sampled_from([[], [version, "etag"]]))
    key, serial, size = draw(_HEX), draw(st.integers(0, 2**64 - 1)), draw(st.integers(0, 2**63 - 1))
    fields: list[Any] = {
        "ws-": [name, key, draw(st.integers(0, 253_402_300_799)), version],
        "sv-": [name, version, size],
        "wsout-": [name, version, size, draw(any_text)],
        "upload-": [name, key, version, base, serial, draw(any_text), key, draw(st.booleans()), draw(_HEX)],
    }[prefix]
    if draw(_rarely):
        fields[draw(st.integers(0, len(fields) - 1))] = draw(any_json)
    coded = base64.urlsafe_b64encode(json.dumps(fields, separators=(",", ":")).encode()).decode().rstrip("=")
    place = draw(st.integers(0, len(coded) - 1))
    odd = [
        coded[:place],
        coded[:place] + draw(st.sampled_from("AZ-_=+%.~")) + coded[place + 1 :],
        coded + "=",
    ]
    coded = draw(st.sampled_from([*[coded] * 6, *odd, "A" * 5000, "W10"]))
    return draw(st.sampled_from([*[prefix] * 9, "sv-", "upload-", "run-", ""])) + coded


# --- broken further ------------------------------------------------------------------------------

_NAMES: Final = (
    *("..", ".", "%2E%2E", "..%2F..%2Ftokens%2Fx", "%00", "a%00b", "%0A", "%0d%0aX-Y:%20z", "%09", "%20"),
    *("%7F", "b%C3%BCro", "%D9%A3", "%EF%BC%8F", "%E2%80%AE", "%F0%9F%92%A9", "%C0%AF", "%FF%FE"),
    *("%ED%A0%80", "a%252Fb", "%25", "%", "%zz", "%u0041", "a%3Fb", "a%23b", "a+b", "a;b", "a=b", "*"),
    *("{name}", "$default", "", "/", "//", "a//b", "/a", "a/", "-a", "_a", ".hidden", "a.tfstate"),
    *("a.tfstate.tflock", "a%5Cb", "x" * 201, "x" * 300, "y" * 9000, "/".join("abcdefghi"), "a/" * 100),
    "%2F" * 50,
)
_PATHS: Final = (
    *("/sessions/", "/sessions/aws/x", "/states", "/locks", "/stats/", "/prod/states/", "/", "//states/"),
    *("/STATES/", "/health/", "/console/x", "/tokens/", "/states/../locks/", "/manage/v1/stats/x"),
    "/api/v2/runs/x",
)
# Without OPTIONS and lower-case verbs. The local AWS answers OPTIONS itself with 403, and accepts `get` as
# `GET`. AWS passes OPTIONS on and refuses `get`.
_VERBS: Final = (
    *("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "LOCK", "LOCK", "UNLOCK", "UNLOCK"),
    *("PROPFIND", "TRACE", "LOCKS", "X-1"),
)

# These say where the request ends or how the connection goes on; where they are wanted they are made below. A
# gateway answers `Upgrade` itself and passes it to nobody.
_NEVER_BY_CHANCE: Final = frozenset(
    {"content-length", "transfer-encoding", "connection", "upgrade", "expect", "host"}
)

any_text = st.text(max_size=30)
_header_text = st.text(
    st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f"), max_size=40
)
_header_name = st.text("abcdefghijklmnopqrstuvwxyzABC-0123456789!#'*.^_|~", min_size=1, max_size=20).filter(
    lambda name: name.lower() not in _NEVER_BY_CHANCE
)
_odd_scalars = st.sampled_from(
    [
        *(2**63, 2**64, 2**64 - 1, -1, 10**400, 5.0, 1e308, float("nan"), float("inf"), True, None),
        *("", "\x00", "\U0001f4a9", "x" * 300, "\u2028", "2026-13-40T99:99:99Z"),
    ]
)
_no_unicode = st.text(st.characters(categories=["Cs"]), min_size=1, max_size=2)
_scalars = st.one_of(
    _odd_scalars, _odd_scalars, _no_unicode, st.none(), st.booleans(), st.integers(), st.floats(), any_text
)
any_json = st.recursive(
    _scalars,
    lambda children: st.one_of(
        st.lists(children, max_size=3), st.dictionaries(any_text, children, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def _body(draw: st.DrawFn, _: Ground, request: Request) -> Request:
    """Replace a value or add a member anywhere in the document, break its text, or send another document."""
    try:
        document = json.loads(request.body)
    except ValueError:
        document = {}
    changed, bent = draw(_with_change(document)), draw(_broken(request.body))
    return replace(request, body=draw(st.sampled_from([changed, changed, bent, bent])))


@st.composite
def _with_change(draw: st.DrawFn, document: Any) -> bytes:
    value = draw(any_json)
    places = [(inner, key) for inner in _containers(document) for key in _keys(inner)]
    if not places:
        document = value
    elif draw(_mostly):
        inner, key = draw(st.sampled_from(places))
        inner[key] = value
    else:
        inner, key = draw(st.sampled_from(places))
        del inner[key]
    # Numbers of hundreds of digits, NaN and lone surrogates: as ASCII escapes all of it has a text.
    return json.dumps(document).encode()


def _containers(document: Any) -> list[Any]:
    inner = list(document.values()) if isinstance(document, dict) else document
    if not isinstance(inner, list):
        return []
    return [document, *(found for each in inner for found in _containers(each))]


def _keys(container: Any) -> list[Any]:
    return list(container) if isinstance(container, dict) else list(range(len(container)))


def _broken(body: bytes) -> SearchStrategy[bytes]:
    """A body with a broken document, or a document that is valid by a hair."""
    text = body.decode(errors="replace")
    doubled = b'{"ID": "twice", "serial": 9, "ID": "again", "serial": "x", '
    whole = [
        *(body + b"}", body + b"\x00", body + body, b"\x00" + body, b" \r\n\t" + body + b"\n\n"),
        *(body.replace(b'"', b"'"), body.replace(b"{", doubled, 1), b"[" + body + b"]"),
        *(text.encode(encoding) for encoding in ("utf-8-sig", "utf-16", "utf-16-be", "utf-32", "utf-7")),
        *(json.dumps(text).encode(), gzip.compress(body, mtime=0), base64.b64encode(body)),
    ]
    numbers = [b"NaN", b"-Infinity", b"1e999", b"9" * 5000, b"05", b"5.0", b"-5", b"0x5", b"5" * 30]
    texts = [b'"\\ud800"', b'"\\udfff\\ud800"', b'"\xed\xa0\x80"', b'"\xff"', b'"\x00"', b'"\\u0000"']
    nested = [b"[" * 3000, b"[" * 3000 + b"]" * 3000, b'{"a":' * 50 + b"1" + b"}" * 50, b'{"a":' * 5000]
    nothing = [b"", b" ", b"null", b"0", b'""', b"{}", b"[]", b"\xff", b"\x00", b"{", b"ID=held&x=y"]
    return st.one_of(
        st.integers(0, max(0, len(body) - 1)).map(lambda length: body[:length]),
        st.sampled_from(whole),
        st.sampled_from([body.replace(b"5", number) for number in numbers]),
        st.sampled_from([body.replace(b'""', text) for text in [*texts, *nested]]),
        st.sampled_from([*nothing, b"[" * 50_000, b'{"ID":' * 10_000, b"[" * 1_000_000]),
        st.binary(max_size=100),
    )


@st.composite
def _path(draw: st.DrawFn, ground: Ground, request: Request) -> Request:
    path, mark, query = request.target.partition("?")
    route, named, _ = path.partition(ground.prefix.partition("/")[0])
    odd = draw(st.one_of(st.sampled_from(_NAMES), any_text.map(_percent), st.binary(max_size=20).map(quote)))
    encoded = [ground.locked.replace("/", "%2F"), ground.locked.replace("l", "%6C")]
    names = [f"{ground.prefix}/{odd}", f"{ground.prefix}/{odd}", f"{ground.locked}{odd}", odd, *encoded]
    path = route + draw(st.sampled_from(names)) if named else path + odd
    if draw(_rarely):
        path = draw(st.sampled_from(_PATHS))
    return replace(request, target=path + mark + query, operation=())


def _percent(text: str) -> str:
    return quote(text.encode(errors="surrogatepass"), safe="")


@st.composite
def _query(draw: st.DrawFn, ground: Ground, request: Request) -> Request:
    held = documents.lock_id(ground.held)
    odd = [
        *(f"ID={held}&ID={held}", f"ID=other&ID={held}", f"ID={held}&ID=", f"ID={held};x=1", f"id={held}"),
        *(f"ID[]={held}", f"%49%44={held}", f"ID=%20{held}", f"ID={held}%00", f"ID={held}#fragment"),
        *("ID", "ID=", "ID=%ff", "ID=%zz", "&&&===", "ID=%F0%9F%92%A9", "ID=" + "z" * 5000, "a=1&" * 900),
        *("page[number]=0", "page[number]=x&page[size]=-1", "page%5Bsize%5D=99999999999999999999", "sort=-x"),
        *("search[tags]=a,,%00", "search[wildcard-name]=%5B*%3F**%F0%9F%92%A9", "page[number]=%D9%A3"),
        *("filter[tagged][0][key]=a&filter[tagged][x]=b", "filter[tagged][99999999999][value]=a"),
        *("cursor=e30", "cursor=" + "A" * 5000, "cursor=W10", "since=9999-12-31T23:59:59-01:00"),
    ]
    pairs = st.lists(st.tuples(any_text.map(_percent), any_text.map(_percent)).map("=".join), max_size=5)
    path = request.target.partition("?")[0]
    return replace(request, target=f"{path}?{draw(st.one_of(st.sampled_from(odd), pairs.map('&'.join)))}")


@st.composite
def _credentials(draw: st.DrawFn, ground: Ground, request: Request) -> Request:
    token = draw(st.sampled_from(sorted(ground.tokens.values())))
    odd = st.one_of(
        st.sampled_from(_odd_authorizations(token)),
        _header_text.map(lambda value: [value]),
        st.binary(max_size=60).map(lambda value: [_basic(value)]),
    )
    kept = tuple(header for header in request.headers if header[0] != "Authorization")
    return replace(request, headers=(*kept, *(("Authorization", value) for value in draw(odd))))


def _part(document: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(document).encode()).decode().rstrip("=")


# An ID token that nobody has signed, and a signature by nobody whom AWS knows.
_UNSIGNED: Final = (
    f"{_part({'alg': 'none'})}.{_part({'iss': 'https://issuer.example', 'sub': 'x', 'aud': 'y'})}."
)
_SIGNED_BY_NOBODY: Final = (
    "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20260101/us-east-1/execute-api/aws4_request, "
    f"SignedHeaders=host;x-amz-date, Signature={'0' * 64}"
)


def _odd_authorizations(token: str) -> list[list[str]]:
    """Return values of `Authorization`. A request has one of them, two, or none."""
    credentials = base64.b64decode(token.removeprefix("Basic "))
    values = [
        *(token[: len(token) // 2], token[:-1], token + "=", token + "AAAA", f"{token}, {token}"),
        *(token.replace("Basic", "basic"), token.replace("Basic ", "Basic   "), f"\t{token} "),
        *(token.replace("Basic ", "Bearer "), token.removeprefix("Basic "), ""),
        *(_basic(credentials + b"\x00"), _basic(credentials + b":x"), _basic(credentials * 30)),
        *(_basic(credentials.replace(b":", b"")), _basic(b"\xff\xfe:\xff")),
        *(_basic(b"../states/x:" + b"y" * 55), _basic(b"session-" + credentials)),
        *(f"Bearer {_UNSIGNED}", _basic(f"oidc:{_UNSIGNED}".encode()), _basic(b"oidc:" + b"x" * 5000)),
        _SIGNED_BY_NOBODY,
    ]
    foreign = _basic(b"foo:bar")
    return [*([value] for value in values), [token, token], [token, foreign], [foreign, token], []]


def _basic(credentials: bytes) -> str:
    return "Basic " + base64.b64encode(credentials).decode()


_MORE_HEADERS: Final = (
    *(("Content-Type", kind) for kind in ("text/plain", "application/octet-stream", "", "a/b/c;;=")),
    *(("Content-Type", kind) for kind in ("application/json; charset=utf-16", "multipart/form-data")),
    *(("Accept-Encoding", each) for each in ("gzip", "gzip;q=0", "gzip;q=x", ";;,,;q=", "*", "br, ,gzip")),
    # Not `aws-chunked`: the local AWS decodes such a body for every service, as S3 does and no gateway.
    *(("Content-Encoding", each) for each in ("gzip", "identity", "deflate, gzip", "x")),
    *(("X-HTTP-Method-Override", "DELETE"), ("X-HTTP-Method", "PUT"), ("X-Original-URL", "/locks/x")),
    *(("If-Match", "*"), ("If-None-Match", "*"), ("Range", "bytes=0-1"), ("Cookie", "a=b; a=c; ;=")),
    *(("X-Amzn-Remapped-Content-MD5", "AAAA"), ("Content-MD5", "AAAA"), ("Content-MD5", "")),
    *(("X-Forwarded-For", "' OR 1=1"), ("X-Forwarded-Proto", "http"), ("X-Amz-Date", "20260101T000000Z")),
    *(("Accept", "text/html"), ("X-Long", "x" * 8000)),
)


@st.composite
def _headers(draw: st.DrawFn, _: Ground, request: Request) -> Request:
    """Add headers, some of which describe the body, and perhaps a wrong length."""
    any_header = st.one_of(st.sampled_from(_MORE_HEADERS), st.tuples(_header_name, _header_text))
    md5 = base64.b64encode(hashlib.md5(request.body, usedforsecurity=False).digest()).decode()
    right, wrong = ("Content-MD5", md5), ("Content-MD5", md5[::-1])
    checksums: list[Headers] = [(), (), (right,), (wrong,), (right, right)]
    more = (*draw(st.sampled_from(checksums)), *draw(st.lists(any_header, max_size=4)))
    length, whole = draw(st.sampled_from(_lengths(request.body)))
    return replace(request, headers=(*request.headers, *more, *length), whole=whole)


def _lengths(body: bytes) -> list[tuple[Headers, bool]]:
    """Return headers with the length of the body, and whether the request is whole with them."""

    def of(*values: object) -> Headers:
        return tuple(("Content-Length", str(value)) for value in values)

    size = len(body)
    chunked = ("Transfer-Encoding", "chunked")
    lies: list[tuple[Headers, bool]] = [
        *((of(length), False) for length in (size + 7, 10_000_001)),
        *((of(length), True) for length in ("x", "-1", "", f"+{size}", f"{size}, {size}")),
        (of(size, size), True),
        # What follows is not in chunks, so their end never comes.
        *(((*of(size), chunked), False), ((*of(), chunked), False)),
    ]
    if body:
        # The rest stands where the next request would begin.
        lies += [(of(0), True), (of(size - 1), True)]
    return [*[(of(size), True)] * len(lies), *lies]


@st.composite
def _verb(draw: st.DrawFn, _: Ground, request: Request) -> Request:
    return replace(request, method=draw(st.sampled_from(_VERBS)), operation=())


_Breaks = Callable[[Ground, Request], SearchStrategy[Request]]
# A request with one broken part gets furthest. Several broken parts find combinations. The headers come last,
# because they describe the body.
_BREAKS: Final[Sequence[Sequence[_Breaks]]] = (
    *[()] * 7,
    *[(_body,)] * 5,
    *((_path,), (_query,), (_credentials,), (_headers,), (_verb,), (_verb,)),
    *((_body, _headers), (_path, _query), (_body, _path, _query, _credentials, _headers)),
)

"""Requests that nobody should send, made up by hypothesis and by schemathesis from docs/openapi.yaml."""

import base64
import gzip
import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
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

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it goes on the wire.

    `target` is path and query. `headers` keep their order, and one may come twice. `body` follows them,
    whatever they say of its length. One that is not `whole` never sends the rest of what it announced, so it
    has no claim to an answer.
    """

    method: str
    target: str
    headers: Headers = ()
    body: bytes = b""
    whole: bool = True

    @property
    def for_gateway(self) -> bool:
        """Whether AWS would take it.

        AWS passes seven verbs. LOCK, UNLOCK and others can reach the function only through another
        gateway, so they go to the API directly, and only with headers that any gateway passes: what the
        local AWS makes of malformed ones, AWS never sees.
        """
        return self.method in METHODS


@dataclass(frozen=True)
class Ground:
    """What there is to destroy.

    `prefix` begins all names that the tokens cover. `tokens` are values of `Authorization`, by role.
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
        """The lock info that `locked` is held with, by the writer."""
        return documents.lock_info(f"held-{self.prefix}")


def from_schemathesis(ground: Ground, count: int, number: int) -> list[Request]:
    """Requests by the API's description, half of them against it, on the states of the ground."""
    return drawn(st.builds(_request, _cases(), _aims(ground)), count, number)


def from_hypothesis(ground: Ground, count: int, number: int) -> list[Request]:
    """Requests that break rules of HTTP, of JSON, of names, of lock info and of states."""
    return drawn(_raw(ground), count, number)


def drawn(strategy: SearchStrategy[Request], count: int, number: int) -> list[Request]:
    """So many different examples of a strategy."""
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
        seed(next(attempts))(bounded(given(strategy)(draw)))()
    return list(found)[:count]


# --- by the description --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Aim:
    """Where a case of schemathesis goes, which knows no state, no lock and no token of ours.

    None leaves what the case has: its name behind `within`, its token, its lock ID.
    """

    name: str | None
    within: str
    token: str | None
    lock_id: str | None


@cache
def _cases() -> SearchStrategy[Case[Any]]:
    schema = schemathesis.openapi.from_path(DOCUMENT)
    return st.one_of(
        [
            found.ok().as_strategy(generation_mode=mode)
            for found in schema.get_all_operations()
            if isinstance(found, Ok)
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
        ]
    )


def _aims(ground: Ground) -> SearchStrategy[_Aim]:
    lock_id = documents.lock_id(ground.held)
    names = st.sampled_from([*[ground.locked] * 4, ground.free, f"{ground.prefix}/new", None])
    strong = [ground.tokens["writer"], ground.tokens["maintainer"], ground.tokens["writer"]]
    tokens = st.sampled_from([*strong * 3, *ground.tokens.values(), None])
    within = st.sampled_from([f"{ground.prefix}/"] * 4 + [""])
    return st.builds(_Aim, names, within, tokens, st.sampled_from([lock_id, lock_id, None]))


def _request(case: Case[Any], aim: _Aim) -> Request:
    if "name" in case.path_parameters:
        case.path_parameters["name"] = aim.name or f"{aim.within}{case.path_parameters['name']}"
    sent = case.as_transport_kwargs(base_url="http://door")
    query = dict(sent["params"] or {})
    if aim.lock_id is not None and case.method in ("POST", "PUT"):
        query["ID"] = aim.lock_id
    # The number of the case would make the same request another one each time.
    headers = {
        name: str(value) for name, value in sent["headers"].items() if name != SCHEMATHESIS_TEST_CASE_HEADER
    }
    if aim.token is not None:
        headers["Authorization"] = aim.token
    body = sent.get("data") or b""
    if "json" in sent:
        body = json.dumps(sent["json"]).encode()
    if body:
        headers["Content-Length"] = str(len(body))
    target = sent["url"].removeprefix("http://door")
    if query:
        target += "?" + urlencode(query, doseq=True, errors="replace")
    return Request(case.method, target, tuple(headers.items()), body)


# --- raw -----------------------------------------------------------------------------------------

NASTY: Final = (
    *(
        "..",
        ".",
        "%2E%2E",
        "..%2F..%2Ftokens%2Fx",
        "%00",
        "a%00b",
        "%0A",
        "%0d%0aX-Y:%20z",
        "%09",
        "%20",
        "%7F",
    ),
    *("b%C3%BCro", "%D9%A3", "%EF%BC%8F", "%E2%80%AE", "%F0%9F%92%A9", "%C0%AF", "%FF%FE", "%ED%A0%80"),
    *(
        "a%252Fb",
        "%25",
        "%",
        "%zz",
        "%u0041",
        "a%3Fb",
        "a%23b",
        "a+b",
        "a;b",
        "a=b",
        "{name}",
        "$default",
        "*",
    ),
    *("", "/", "//", "a//b", "/a", "a/", "-a", "_a", ".hidden", "a.tfstate", "a.tfstate.tflock", "a%5Cb"),
    *("x" * 201, "x" * 300, "/".join("abcdefghi"), "a/" * 100, "%2F" * 50),
)
_STATES: Final = "/states/"
_OUTPUTS: Final = "/outputs/"
_LOCKS: Final = "/locks/"
_UNLOCKS: Final = "/unlocks/"
_ROUTES: Final = (_STATES, _OUTPUTS, _LOCKS, _UNLOCKS)
_SESSIONS: Final = ("/sessions", "/sessions/aws")
_ODD_ROUTES: Final = (
    *_SESSIONS,
    "/sessions/",
    "/sessions/aws/x",
    "/states",
    "/locks",
    "/stats/",
    "/prod/states/",
    "/",
    "//states/",
    "/STATES/",
    "/health",
    "/health/",
    "/tokens/",
    "/states/../locks/",
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


def percent(text: str) -> str:
    return quote(text.encode(errors="surrogatepass"), safe="")


def odd_names(ground: Ground) -> SearchStrategy[str]:
    encoded = [ground.locked.replace("/", "%2F"), ground.locked.replace("l", "%6C")]
    any_bytes = st.binary(max_size=20).map(lambda found: quote(found))
    nasty = st.one_of(st.sampled_from(NASTY), any_text.map(percent), any_bytes)
    return st.one_of(
        st.sampled_from(encoded),
        nasty.map(lambda name: f"{ground.prefix}/{name}"),
        nasty.map(lambda name: f"{ground.locked}{name}"),
        st.sampled_from(NASTY),
        st.integers(150, 9000).map(lambda length: f"{ground.prefix}/" + "y" * length),
    )


def _odd_queries(ground: Ground) -> SearchStrategy[str]:
    held = documents.lock_id(ground.held)
    pair = st.tuples(any_text.map(percent), any_text.map(percent)).map("=".join)
    doubled = [f"ID={held}&ID={held}", f"ID=other&ID={held}", f"ID={held}&ID=", f"ID={held};x=1"]
    misnamed = [f"id={held}", f"ID[]={held}", f"%49%44={held}", f"ID=%20{held}", f"ID={held}%00"]
    malformed = ["", "ID", "ID=", "ID=%ff", "ID=%zz", "&&&===", "ID=%F0%9F%92%A9", f"ID={held}#fragment"]
    long = ["ID=" + "z" * 5000, "a=1&" * 900]
    return st.one_of(
        st.sampled_from(["", *("?" + query for query in (*doubled, *misnamed, *malformed, *long))]),
        st.lists(pair, max_size=5).map(lambda pairs: "?" + "&".join(pairs)),
    )


def _odd_credentials(ground: Ground) -> SearchStrategy[Headers]:
    valid = st.sampled_from(sorted(ground.tokens.values()))
    return st.one_of(
        valid.map(_authorization),
        valid.flatmap(lambda token: st.sampled_from(_odd_authorizations(token))),
        valid.flatmap(lambda token: st.sampled_from(_odd_authorizations(token))),
        _header_text.map(_authorization),
        st.binary(max_size=60).map(lambda value: _authorization(_basic(value))),
    )


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


def _odd_authorizations(token: str) -> list[Headers]:
    credentials = base64.b64decode(token.removeprefix("Basic "))
    values = [
        token[: len(token) // 2],
        token[:-1],
        token + "=",
        token + "AAAA",
        f"{token}, {token}",
        token.replace("Basic", "basic"),
        token.replace("Basic ", "Basic   "),
        token.replace("Basic ", "Bearer "),
        token.removeprefix("Basic "),
        f"\t{token} ",
        _basic(credentials + b"\x00"),
        _basic(credentials.replace(b":", b"")),
        _basic(credentials + b":x"),
        _basic(b"\xff\xfe:\xff"),
        _basic(b"../states/x:" + b"y" * 55),
        _basic(credentials * 30),
        _basic(b"session-" + credentials),
        f"Bearer {_UNSIGNED}",
        _basic(f"oidc:{_UNSIGNED}".encode()),
        _basic(b"oidc:" + b"x" * 5000),
        _SIGNED_BY_NOBODY,
        "",
    ]
    (valid,), (foreign,) = _authorization(token), _authorization(_basic(b"foo:bar"))
    return [*map(_authorization, values), (valid, valid), (valid, foreign), (foreign, valid), ()]


def _authorization(value: str) -> Headers:
    return (("Authorization", value),)


def _basic(credentials: bytes) -> str:
    return "Basic " + base64.b64encode(credentials).decode()


_MORE_HEADERS: Final = (
    *(
        ("Content-Type", value)
        for value in ("application/json", "text/plain", "application/octet-stream", "")
    ),
    *(
        ("Content-Type", value)
        for value in ("application/json; charset=utf-16", "multipart/form-data", "a/b/c;;=")
    ),
    *(
        ("Accept-Encoding", value)
        for value in ("gzip", "gzip;q=0", "gzip;q=", "gzip;q=x", ";;,,;q=", "*", "br, ,gzip")
    ),
    # Not `aws-chunked`: the local AWS decodes such a body for every service, as S3 does and no gateway.
    *(("Content-Encoding", value) for value in ("gzip", "identity", "deflate, gzip", "x")),
    *(("X-HTTP-Method-Override", "DELETE"), ("X-HTTP-Method", "PUT"), ("X-Original-URL", "/locks/x")),
    *(("If-Match", "*"), ("If-None-Match", "*"), ("Range", "bytes=0-1"), ("Cookie", "a=b; a=c; ;=")),
    *(
        ("X-Amzn-Remapped-Content-MD5", "AAAA"),
        ("Content-MD5", "AAAA"),
        ("Content-MD5", ""),
        ("Accept", "text/html"),
    ),
    *(("X-Forwarded-For", "' OR 1=1"), ("X-Forwarded-Proto", "http"), ("X-Amz-Date", "20260101T000000Z")),
    ("X-Long", "x" * 8000),
)


def _more_headers() -> SearchStrategy[Headers]:
    any_header = st.one_of(st.sampled_from(_MORE_HEADERS), st.tuples(_header_name, _header_text))
    return st.lists(any_header, max_size=4).map(tuple)


def _lengths(body: bytes) -> SearchStrategy[tuple[Headers, bool]]:
    """Content-Length, and whether the request is whole with it."""

    def header(value: object) -> Headers:
        return (("Content-Length", str(value)),)

    true = (header(len(body)), True)
    lies: list[tuple[Headers, bool]] = [
        (header(len(body) + 7), False),
        (header(10_000_001), False),
        (header("x"), True),
        (header("-1"), True),
        (header(""), True),
        (header(f"+{len(body)}"), True),
        (header(f"{len(body)}, {len(body)}"), True),
        ((*header(len(body)), *header(len(body))), True),
        # What follows is not in chunks, so their end never comes.
        ((*header(len(body)), ("Transfer-Encoding", "chunked")), False),
        ((("Transfer-Encoding", "chunked"),), False),
    ]
    if body:
        # The rest stands where the next request would begin.
        lies += [(header(0), True), (header(len(body) - 1), True), ((), True)]
    return st.one_of(st.just(true), st.sampled_from(lies))


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


def with_changes(document: bytes, fields: tuple[str, ...]) -> SearchStrategy[bytes]:
    """A document with a few fields added, replaced or taken away; a value may be of any kind."""
    parsed = json.loads(document)

    def change(changes: list[tuple[str, Any]], removed: list[str]) -> bytes:
        kept = {name: value for name, value in {**parsed, **dict(changes)}.items() if name not in removed}
        return dumped(kept)

    names = st.one_of(st.sampled_from(fields), st.sampled_from(fields), any_text)
    none: list[str] = []
    removed = st.one_of(st.just(none), st.lists(st.sampled_from(fields), max_size=1))
    return st.builds(change, st.lists(st.tuples(names, any_json), min_size=1, max_size=2), removed)


def dumped(document: object) -> bytes:
    # Numbers of hundreds of digits, NaN and lone surrogates: as ASCII escapes all of it has a text.
    return json.dumps(document).encode()


def broken(body: bytes) -> SearchStrategy[bytes]:
    """A body that has lost what made it a document, or nearly."""
    text = body.decode()

    def with_text(found: bytes) -> bytes:
        return body.replace(b'""', found)

    def with_number(found: bytes) -> bytes:
        return body.replace(b"5", found)

    doubled = b'{"ID": "twice", "serial": 9, "ID": "again", "serial": "x", '
    punctuation = [
        *(body + b"}", body + b"\x00", body + body, b"\x00" + body, b" \r\n\t" + body + b"\n\n"),
        *(
            body.replace(b'"', b"'"),
            body.replace(b"{", doubled, 1),
            b"[" + body + b"]",
            json.dumps(text).encode(),
        ),
    ]
    encodings = [
        *(text.encode(encoding) for encoding in ("utf-8-sig", "utf-16", "utf-16-be", "utf-32", "utf-7")),
        *(gzip.compress(body, mtime=0), base64.b64encode(body)),
    ]
    numbers = [b"NaN", b"-Infinity", b"1e999", b"9" * 5000, b"05", b"5.0", b"-5", b"0x5", b"5" * 30]
    unicode = [b'"\\ud800"', b'"\\udfff\\ud800"', b'"\xed\xa0\x80"', b'"\xff"', b'"\x00"', b'"\\u0000"']
    nesting = [b"[" * 3000, b"[" * 3000 + b"]" * 3000, b'{"a":' * 50 + b"1" + b"}" * 50, b'{"a":' * 5000]
    nothing = [b"", b" ", b"null", b"0", b'""', b"{}", b"[]", b"\xff", b"\x00", b"{", b"ID=held&x=y"]
    return st.one_of(
        st.integers(0, max(0, len(body) - 1)).map(lambda length: body[:length]),
        st.sampled_from([*punctuation, *encodings]),
        st.sampled_from(numbers).map(with_number),
        st.sampled_from(unicode).map(with_text),
        st.sampled_from(nesting).map(with_text),
        st.sampled_from([*nothing, b"[" * 50_000, b'{"ID":' * 10_000, b"[" * 1_000_000]),
        st.binary(max_size=100),
    )


_STATE_FIELDS: Final = ("version", "serial", "lineage", "terraform_version", "outputs", "encrypted_data")
_LOCK_FIELDS: Final = ("ID", "Operation", "Info", "Who", "Version", "Created", "Path")


def _plain_bodies(ground: Ground, route: str) -> list[bytes]:
    """Bodies as clients send them, some of which are refused for what they say."""
    if route in _SESSIONS:
        return [b"", b"{}", b'{"seconds": 3600}', b'{"seconds": 299}', b'{"seconds": "3600"}']
    held_id = documents.lock_id(ground.held)
    if route == _STATES:
        positions = (
            (6, documents.LINEAGE),
            (5, documents.LINEAGE),
            (4, documents.LINEAGE),
            (7, "other"),
            (8, ""),
        )
        states = [documents.state(serial, lineage=lineage) for serial, lineage in positions]
        return [*states, documents.encrypted_state(9, "x")]
    another = documents.lock_info("another")
    only_ids = [
        documents.only_id(held_id),
        documents.only_id("another"),
        json.dumps({"ID": held_id}).encode(),
    ]
    return [ground.held, another, *only_ids, b""]


def _odd_bodies(ground: Ground, route: str) -> SearchStrategy[bytes]:
    if route in _SESSIONS:
        changed = with_changes(b'{"seconds": 3600}', ("seconds",))
    elif route == _STATES:
        changed = with_changes(documents.state(6), _STATE_FIELDS)
    else:
        changed = with_changes(ground.held, _LOCK_FIELDS)
    whole = [body for body in _plain_bodies(ground, route) if body]
    return st.one_of(changed, changed, st.sampled_from(whole).flatmap(broken), any_json.map(dumped))


def _checksums(body: bytes) -> list[Headers]:
    md5 = base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
    return [
        (),
        (("Content-MD5", md5),),
        (("Content-MD5", md5[::-1]),),
        (("Content-MD5", md5), ("Content-MD5", md5)),
        (("X-Amzn-Remapped-Content-MD5", md5),),
    ]


# What clients send, the more dangerous the more often.
_PLAIN: Final = (
    *[("POST", "/states/"), ("PUT", "/locks/"), ("DELETE", "/locks/"), ("POST", "/unlocks/")] * 3,
    *(("LOCK", "/states/"), ("LOCK", "/locks/"), ("UNLOCK", "/states/"), ("UNLOCK", "/locks/")),
    *(("PUT", "/states/"), ("POST", "/locks/"), ("DELETE", "/states/"), ("GET", "/states/")),
    *(("UNLOCK", "/unlocks/"), ("GET", "/outputs/")),
    *(("POST", route) for route in _SESSIONS),
)
# Without OPTIONS and small letters: the local AWS answers the one itself, with 403, and takes `get` for
# `GET`, while AWS passes the one on and refuses the other.
_VERBS: Final = (
    *("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD"),
    *("LOCK", "UNLOCK", "PROPFIND", "TRACE", "LOCKS", "X-1"),
)


class _Part(Enum):
    """What of a request is odd."""

    BODY = "body"
    PATH = "path"
    QUERY = "query"
    CREDENTIALS = "credentials"
    HEADERS = "headers"
    VERB = "verb"


# One odd part alone gets furthest; all together meet in ways that nobody has thought of.
_ODD: Final[Sequence[frozenset[_Part]]] = (
    *[frozenset({_Part.BODY})] * 7,
    *[frozenset({part}) for part in _Part if part is not _Part.BODY] * 2,
    frozenset({_Part.BODY, _Part.HEADERS}),
    frozenset({_Part.PATH, _Part.QUERY}),
    *[frozenset(_Part)] * 2,
)


@st.composite
def _raw(draw: st.DrawFn, ground: Ground) -> Request:
    odd = draw(st.sampled_from(_ODD))
    method, route = draw(st.sampled_from(_PLAIN))
    if _Part.VERB in odd:
        method, route = draw(st.sampled_from(_VERBS)), draw(st.sampled_from(_ROUTES * 3 + _ODD_ROUTES))
    locks = route in (_LOCKS, _UNLOCKS) or method in ("LOCK", "UNLOCK")
    asked = route if route in _SESSIONS else _LOCKS if locks else _STATES
    known = [ground.locked, ground.locked, ground.free, f"{ground.prefix}/new"]
    name = draw(odd_names(ground) if _Part.PATH in odd else st.sampled_from(known))
    query = f"?ID={quote(documents.lock_id(ground.held))}" if asked == _STATES else ""
    if _Part.QUERY in odd:
        query = draw(_odd_queries(ground))
    target = (route + name if route.endswith("/") else route) + query
    body = draw(
        _odd_bodies(ground, asked) if _Part.BODY in odd else st.sampled_from(_plain_bodies(ground, asked))
    )
    request = Request(method, target, body=body)
    role = draw(st.sampled_from(["writer", "writer", "maintainer"]))
    credentials = _authorization(ground.tokens[role])
    if _Part.CREDENTIALS in odd and request.for_gateway:
        credentials = draw(_odd_credentials(ground))
    length: Headers = (("Content-Length", str(len(body))),)
    whole = True
    more: Headers = draw(st.sampled_from([(), (("Content-Type", "application/json"),)]))
    if not request.for_gateway:
        # No gateway passes on what is longer, or has a fragment.
        return replace(
            request, target=target.partition("#")[0][:8000], headers=(*credentials, *length, *more)
        )
    if _Part.HEADERS in odd:
        length, whole = draw(_lengths(body))
        more = (*more, *draw(st.sampled_from(_checksums(body))), *draw(_more_headers()))
    return replace(request, headers=(*credentials, *length, *more), whole=whole)

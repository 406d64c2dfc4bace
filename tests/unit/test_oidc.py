"""ID tokens: their signatures and forms, and their issuers' keys. Another JWT library than ours signs them.

`tests/support/sign_ins.py` has the claims and headers that are denied.
"""

import base64
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Self

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from joserfc.jwk import ECKey, OKPKey, RSAKey

from gateway import authorizer_context
from holdfast.access import Caller, Role
from holdfast.identity.authentication import Authenticated, AuthMethod, DenialReason, Denied
from holdfast.identity.oidc.fetch import IssuerUnreachable
from holdfast.identity.oidc.keys import Issuers
from holdfast.identity.oidc.verify import LEEWAY, verify
from holdfast.identity.trust import Records
from local_aws import loopback
from local_aws.server import Certificates
from tests.support.free_port import free_port
from tests.support.id_tokens import (
    DISCOVERY,
    FOREIGN,
    ISSUER,
    RSA,
    SUBJECT,
    Key,
    Published,
    claims,
    forged,
    hmac_over,
    raw,
    record,
    signed,
)

OTHER_ISSUER = "https://login.example.com/realms/ci"
RECORDS = Records((record(),))


class Issuer(Published):
    """Issuers and their keys, and the verification of tokens against them."""

    def verify(self, jwt: str, records: Records = RECORDS) -> Authenticated | Denied:
        """Verify a token as the authorizer does."""
        return verify(jwt, records, self.issuers)


@pytest.fixture
def published() -> Issuer:
    return Issuer(RSA)


def is_verified(outcome: Authenticated | Denied) -> bool:
    return isinstance(outcome, Authenticated)


# --- what is accepted --------------------------------------------------------------------------------


def test_a_genuine_token_gets_what_its_trust_record_says(published: Issuer) -> None:
    ends = int(time.time()) + 300
    verified = published.verify(signed(RSA, claims(exp=ends)))
    (trusted,) = RECORDS
    assert verified == Authenticated(
        Caller(f"oidc:{ISSUER}#{SUBJECT}", trusted.grants),
        AuthMethod.OIDC,
        trust=trusted.name,
        trust_id=trusted.id,
        subject=f"{ISSUER}#{SUBJECT}",
        ends=ends + LEEWAY,
        expires=ends,
    )
    assert published.asked == [f"{ISSUER}{DISCOVERY}", f"{ISSUER}/keys"]


@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")  # about the name EdDSA
@pytest.mark.parametrize(
    ("alg", "make"),
    [
        *((f"{scheme}{bits}", lambda: RSA) for scheme in ("RS", "PS") for bits in (256, 384, 512)),
        ("ES256", lambda: ECKey.generate_key("P-256", {"kid": "one"})),
        ("ES384", lambda: ECKey.generate_key("P-384", {"kid": "one"})),
        ("ES512", lambda: ECKey.generate_key("P-521", {"kid": "one"})),
        ("EdDSA", lambda: OKPKey.generate_key("Ed25519", {"kid": "one"})),
    ],
)
def test_every_signature_that_only_the_issuer_can_make_is_accepted(alg: str, make: Callable[[], Key]) -> None:
    key = make()
    published = Issuer(key)
    jwt = signed(key, claims(), alg=alg)
    assert is_verified(published.verify(jwt))
    for changed in (tampered(jwt, 1), tampered(jwt, 2)):
        assert not is_verified(published.verify(changed))


def tampered(jwt: str, part: int) -> str:
    """The token with one bit of one part changed."""
    parts = jwt.split(".")
    content = bytearray(base64.urlsafe_b64decode(parts[part] + "=="))
    content[len(content) // 2] ^= 1
    parts[part] = base64.urlsafe_b64encode(content).decode().rstrip("=")
    return ".".join(parts)


def test_a_long_subject_is_a_short_principal(published: Issuer) -> None:
    verified = published.verify(signed(RSA, claims(sub=SUBJECT + "x" * 300)))
    assert isinstance(verified, Authenticated)
    assert verified.subject == f"{ISSUER}#{SUBJECT}{'x' * 300}"
    assert verified.caller.principal.startswith("oidc-sha256:")


# --- the signature --------------------------------------------------------------------------------


def test_a_published_secret_is_no_key() -> None:
    secret = base64.urlsafe_b64encode(b"s" * 32).decode().rstrip("=")
    published = Issuer()
    published.publish_jwks([{"kty": "oct", "k": secret, "kid": "one"}])
    jwt = forged({"alg": "HS256", "kid": "one"}, claims(), hmac_over(b"s" * 32))
    assert published.verify(jwt) == Denied(DenialReason.WRONG_ALGORITHM)


def test_a_foreign_issuer_with_the_same_key_id_signs_for_itself_alone() -> None:
    published = Issuer(RSA)
    published.publish(FOREIGN, issuer=OTHER_ISSUER)
    other = record("other", issuer=OTHER_ISSUER, claims={"sub": SUBJECT}, role=Role.READER)
    records = Records((record(), other))
    theirs = published.verify(signed(FOREIGN, claims(iss=OTHER_ISSUER)), records)
    assert isinstance(theirs, Authenticated)
    assert theirs.trust_id == other.id
    assert published.verify(signed(FOREIGN, claims()), records) == Denied(DenialReason.WRONG_SIGNATURE)
    assert published.verify(signed(RSA, claims(iss=OTHER_ISSUER)), records) == Denied(
        DenialReason.WRONG_SIGNATURE
    )


def test_the_algorithm_must_be_that_of_the_key() -> None:
    jwk = RSA.as_dict(private=False)
    published = Issuer()
    published.publish_jwks([{**jwk, "alg": "RS256"}])
    assert is_verified(published.verify(signed(RSA, claims(), alg="RS256")))
    assert published.verify(signed(RSA, claims(), alg="RS512")) == Denied(DenialReason.UNKNOWN_KEY)
    assert published.verify(signed(RSA, claims(), alg="PS256")) == Denied(DenialReason.UNKNOWN_KEY)
    elliptic = ECKey.generate_key("P-256", {"kid": "one"})
    assert published.verify(signed(elliptic, claims(), alg="ES256")) == Denied(DenialReason.UNKNOWN_KEY)


def test_a_key_that_is_too_short_verifies_nothing() -> None:
    modulus = base64.urlsafe_b64encode(((1 << 1023) + 1).to_bytes(128, "big")).decode().rstrip("=")
    published = Issuer()
    published.publish_jwks([{"kty": "RSA", "kid": "one", "e": "AQAB", "n": modulus}])
    jwt = raw({"alg": "RS256", "kid": "one"}, claims(), b"x" * 128)
    assert published.verify(jwt) == Denied(DenialReason.UNKNOWN_KEY)


OTHER_USES: list[dict[str, Any]] = [{"use": "enc"}, {"key_ops": ["encrypt"]}, {"key_ops": []}, {"kty": "EC"}]


@pytest.mark.parametrize(
    "damaged",
    [
        7,
        None,
        "key",
        [],
        {},
        {"kty": "RSA", "kid": "one"},
        {"kty": "RSA", "kid": "one", "n": "!", "e": "AQAB"},
        {"kty": "RSA", "kid": "one", "n": 7, "e": "AQAB"},
        {"kty": ["RSA"], "kid": "one"},
        {"kty": "RSA", "kid": {}},
        {"kty": "RSA", "kid": "one", "key_ops": 7},
        {"kty": "RSA", "kid": "one", "alg": 7},
        *({**RSA.as_dict(private=False), **member} for member in OTHER_USES),
    ],
)
def test_a_damaged_key_or_one_for_something_else_verifies_nothing_and_harms_no_other(damaged: object) -> None:
    published = Issuer()
    two = RSAKey.generate_key(2048, {"kid": "two"})
    published.publish_jwks([damaged, two.as_dict(private=False)])
    assert published.verify(signed(RSA, claims())) == Denied(DenialReason.UNKNOWN_KEY)
    assert is_verified(published.verify(signed(two, claims())))


def test_a_private_key_that_was_published_verifies_as_its_public_half() -> None:
    published = Issuer()
    published.publish_jwks([RSA.as_dict(private=True)])
    assert is_verified(published.verify(signed(RSA, claims())))


def test_without_a_key_id_there_must_be_one_key_that_matches() -> None:
    two = RSAKey.generate_key(2048, {"kid": "two"})
    elliptic = ECKey.generate_key("P-256", {"kid": "three"})
    jwt = signed(RSA, claims(), kid=None)
    assert is_verified(Issuer(RSA).verify(jwt))
    assert is_verified(Issuer(RSA, elliptic).verify(jwt))
    other_curve = ECKey.generate_key("P-384", {"kid": "four"})
    by_curve = signed(elliptic, claims(), alg="ES256", kid=None)
    assert is_verified(Issuer(RSA, elliptic, other_curve).verify(by_curve))
    assert Issuer(RSA, two).verify(jwt) == Denied(DenialReason.UNKNOWN_KEY)
    assert Issuer(elliptic).verify(jwt) == Denied(DenialReason.UNKNOWN_KEY)
    assert Issuer().verify(jwt) == Denied(DenialReason.UNKNOWN_KEY)


def test_a_key_id_must_name_one_key() -> None:
    two = RSAKey.import_key({**RSA.as_dict(private=True), "kid": "two"})
    for keys in ((RSA, FOREIGN), (two,)):
        assert Issuer(*keys).verify(signed(RSA, claims())) == Denied(DenialReason.UNKNOWN_KEY)


# --- the claims -----------------------------------------------------------------------------------


def test_no_issuer_is_asked_about_a_token_that_no_trust_record_matches(published: Issuer) -> None:
    for changed in ({"iss": "https://attacker.example.com"}, {"aud": "x"}, {"repository": "x"}, {"sub": ""}):
        published.verify(signed(RSA, claims(**changed)))
    published.verify(raw({"alg": "none", "kid": "one"}, claims()))
    published.verify(signed(RSA, claims()), Records())
    assert published.asked == []


def test_a_claim_that_stands_twice_is_denied(published: Issuer) -> None:
    for twice in ('"repository": "acme/dns"', '"iss": "https://attacker.example.com"', '"exp": 9999999999'):
        for body in (f"{{{twice}, {json.dumps(claims())[1:]}", f"{json.dumps(claims())[:-1]}, {twice}}}"):
            assert published.verify(signed(RSA, body)) == Denied(DenialReason.MALFORMED)
    assert published.verify(signed(RSA, json.dumps(claims())[:-1] + ', "a": {"b": 1, "b": 2}}')) == Denied(
        DenialReason.MALFORMED
    )


@pytest.mark.parametrize(
    "jwt",
    [
        "",
        "a",
        "a.b",
        "a.b.c",
        "..",
        raw([], {}),
        raw({}, []),
        raw({}, b"null"),
        raw({}, b"\xff"),
        raw({"alg": "RS256"}, json.dumps(claims()).encode("utf-16")),
        raw({"alg": "RS256"}, b"[" * 100_000),
        raw({"alg": "RS256"}, b'{"exp": ' + b"9" * 5000 + b"}"),
        raw({"alg": ["RS256"], "kid": "one"}, claims()),
        raw({"alg": None, "kid": "one"}, claims()),
        raw({"kid": "one"}, claims()),
        raw({"alg": "RS256", "kid": 7}, claims()),
        raw({"alg": "RS256", "kid": ["one"]}, claims()),
        "é.é.é",
    ],
)
def test_what_is_no_token_is_denied_without_asking_anybody(published: Issuer, jwt: str) -> None:
    assert published.verify(jwt) == Denied(DenialReason.MALFORMED)
    assert published.asked == []


@pytest.mark.parametrize(
    "moment",
    [-1, 253_402_300_800, 2**63, 10**4299, "9" * 4300, 1e308, float("inf"), "soon", [1], {}, None],
    ids=lambda moment: str(moment)[:20],
)
def test_a_signed_time_that_is_none_ends_in_a_denial_and_no_fault(published: Issuer, moment: object) -> None:
    private_key = RSA.private_key
    assert private_key is not None

    def verified(name: str) -> Authenticated | Denied:
        body = json.dumps({**claims(), name: moment}).replace("Infinity", "1e999")
        header = {"alg": "RS256", "kid": "one"}
        return published.verify(
            forged(header, body.encode(), lambda data: private_key.sign(data, PKCS1v15(), SHA256()))
        )

    expected = DenialReason.EXPIRED if moment == -1 else DenialReason.MALFORMED
    assert verified("exp") == Denied(expected)
    for name in ("nbf", "iat"):
        outcome = verified(name)
        assert authorizer_context.bounded(outcome) == outcome


# --- the issuer's keys ----------------------------------------------------------------------------


def test_keys_are_cached_for_an_hour(published: Issuer) -> None:
    for _ in range(3):
        assert is_verified(published.verify(signed(RSA, claims())))
    published.now += 3599
    published.verify(signed(RSA, claims()))
    assert published.fetches() == 1
    published.now += 1
    assert is_verified(published.verify(signed(RSA, claims())))
    assert published.fetches() == 2


def test_a_new_key_is_found_at_once_and_a_removed_one_ends(published: Issuer) -> None:
    two = RSAKey.generate_key(2048, {"kid": "two"})
    published.verify(signed(RSA, claims()))
    published.now += 10
    published.publish(two)
    assert is_verified(published.verify(signed(two, claims())))
    assert published.verify(signed(RSA, claims())) == Denied(DenialReason.UNKNOWN_KEY)


def with_key_id(key_id: str) -> str:
    """A token whose header names this key."""
    return raw({"alg": "RS256", "kid": key_id}, claims())


def test_unknown_key_ids_make_one_request_in_10_seconds(published: Issuer) -> None:
    published.verify(signed(RSA, claims()))
    for fetches in (1, 2):
        for number in range(100):
            published.now += 0.09 if fetches == 1 else 0
            assert published.verify(with_key_id(f"x{number}")) == Denied(DenialReason.UNKNOWN_KEY)
        assert published.fetches() == fetches
        published.now += 1.1


def test_known_keys_serve_for_a_day_while_the_issuer_is_down(published: Issuer) -> None:
    published.verify(signed(RSA, claims()))
    kept = dict(published.documents)
    published.documents.clear()
    published.now += 23 * 3600
    assert is_verified(published.verify(signed(RSA, claims())))
    with pytest.raises(IssuerUnreachable):
        published.verify(with_key_id("two"))
    published.now += 3600
    with pytest.raises(IssuerUnreachable):
        published.verify(signed(RSA, claims()))
    published.documents.update(kept)
    published.now += 5
    assert is_verified(published.verify(signed(RSA, claims())))


def test_an_issuer_that_was_not_reached_is_left_alone_for_5_seconds() -> None:
    published = Issuer(RSA)
    published.documents.clear()
    for _ in range(5):
        with pytest.raises(IssuerUnreachable, match="did not respond"):
            published.verify(signed(RSA, claims()))
    assert len(published.asked) == 1
    published.publish(RSA)
    published.now += 4.9
    with pytest.raises(IssuerUnreachable):
        published.verify(signed(RSA, claims()))
    published.now += 0.2
    assert is_verified(published.verify(signed(RSA, claims())))


def test_an_unknown_key_id_at_an_issuer_that_is_down_is_not_a_denial(published: Issuer) -> None:
    two = RSAKey.generate_key(2048, {"kid": "two"})
    published.verify(signed(RSA, claims()))
    published.documents.clear()
    published.now += 10
    for _ in range(2):
        with pytest.raises(IssuerUnreachable):
            published.verify(signed(two, claims()))
        assert is_verified(published.verify(signed(RSA, claims())))
    published.publish(two)
    published.now += 5
    assert is_verified(published.verify(signed(two, claims())))


def test_a_token_without_a_key_id_is_content_with_the_cached_keys(published: Issuer) -> None:
    jwt = signed(RSA, claims(), kid=None)
    for _ in range(2):
        assert is_verified(published.verify(jwt))
        published.now += 1800
    assert published.fetches() == 1
    published.documents.clear()
    assert is_verified(published.verify(jwt))


def test_unknown_key_ids_are_bounded_again_once_the_issuer_is_back(published: Issuer) -> None:
    published.documents.clear()
    with pytest.raises(IssuerUnreachable):
        published.verify(with_key_id("two"))
    published.publish(RSA)
    published.now += 5
    for _ in range(10):
        assert published.verify(with_key_id("two")) == Denied(DenialReason.UNKNOWN_KEY)
        published.now += 0.9
    assert published.fetches() == 1


def test_a_clock_that_goes_back_caches_no_keys_for_ever(published: Issuer) -> None:
    published.verify(signed(RSA, claims()))
    published.now -= 100_000
    published.verify(signed(RSA, claims()))
    assert published.fetches() == 2


@pytest.mark.parametrize(
    "configuration",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        {"jwks_uri": f"{ISSUER}/keys"},
        {"issuer": ISSUER},
        {"issuer": ISSUER + "/", "jwks_uri": f"{ISSUER}/keys"},
        {"issuer": OTHER_ISSUER, "jwks_uri": f"{ISSUER}/keys"},
        {"issuer": [ISSUER], "jwks_uri": f"{ISSUER}/keys"},
        {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/keys".replace("https", "http")},
        {"issuer": ISSUER, "jwks_uri": "http://127.0.0.1/keys"},
        {"issuer": ISSUER, "jwks_uri": "http://169.254.169.254/keys"},
        {"issuer": ISSUER, "jwks_uri": "file:///etc/passwd"},
        {"issuer": ISSUER, "jwks_uri": "https://user@example.com/keys"},
        {"issuer": ISSUER, "jwks_uri": "/keys"},
        {"issuer": ISSUER, "jwks_uri": None},
        {"issuer": ISSUER, "jwks_uri": [f"{ISSUER}/keys"]},
        f'{{"issuer": "x", "issuer": "{ISSUER}", "jwks_uri": "{ISSUER}/keys"}}'.encode(),
    ],
)
def test_a_configuration_that_cannot_be_the_issuers_is_an_issuer_that_was_not_reached(
    published: Issuer, configuration: object
) -> None:
    published.documents[f"{ISSUER}{DISCOVERY}"] = configuration
    with pytest.raises(IssuerUnreachable):
        published.verify(signed(RSA, claims()))
    assert published.asked == [f"{ISSUER}{DISCOVERY}"]


def test_keys_that_cannot_be_read_are_an_issuer_that_was_not_reached(published: Issuer) -> None:
    for keys in (b"", b"{}", b"[]", b'{"keys": {}}', b'{"keys": [], "keys": []}', b'{"keys": ['):
        published.documents[f"{ISSUER}/keys"] = keys
        published.now += 5  # the pause after an issuer was not reached
        asked = len(published.asked)
        with pytest.raises(IssuerUnreachable):
            published.verify(signed(RSA, claims()))
        assert published.asked[asked:] == [f"{ISSUER}{DISCOVERY}", f"{ISSUER}/keys"]


def test_the_configuration_of_an_issuer_with_a_path_lies_below_it() -> None:
    issuer = OTHER_ISSUER + "/"
    published = Issuer()
    published.documents[f"{OTHER_ISSUER}{DISCOVERY}"] = {
        "issuer": issuer,
        "jwks_uri": "https://keys.example.com/a?b=c",
    }
    published.documents["https://keys.example.com/a?b=c"] = {"keys": [RSA.as_dict(private=False)]}
    records = Records((record(issuer=issuer, claims={"sub": SUBJECT}),))
    assert is_verified(published.verify(signed(RSA, claims(iss=issuer)), records))


# --- over a real connection -----------------------------------------------------------------------

Serve = Callable[[loopback.Handler], None]


class Server:
    """An issuer on this machine; `answers` has the handler of each path."""

    def __init__(self) -> None:
        self.address = ""
        self.answers: dict[str, Serve] = {}
        self.paths: list[str] = []

    @contextmanager
    def running(self, tls: ssl.SSLContext | None = None) -> Iterator[Self]:
        paths, answers = self.paths, self.answers

        class Handler(loopback.Handler):
            protocol_version = "HTTP/1.0"

            def respond(self) -> None:
                paths.append(self.path)
                answers[self.path](self)

        with loopback.serving(Handler, tls=tls) as self.address:
            answers[DISCOVERY] = document({"issuer": self.address, "jwks_uri": f"{self.address}/keys"})
            answers["/keys"] = document({"keys": [RSA.as_dict(private=False)]})
            yield self


@pytest.fixture
def server() -> Iterator[Server]:
    with Server().running() as running:
        yield running


def document(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Serve:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return lambda handler: handler.answer(status, body, headers)


def verify_at(server: Server) -> Authenticated | Denied:
    records = Records((record(issuer=server.address),))
    return verify(signed(RSA, claims(iss=server.address)), records, Issuers())


@pytest.mark.parametrize("path", [DISCOVERY, "/keys"])
@pytest.mark.parametrize("status", [201, 204, 301, 302, 303, 307, 308, 404, 429, 500, 503])
def test_a_redirect_or_an_error_is_an_issuer_that_was_not_reached(
    server: Server, path: str, status: int
) -> None:
    server.answers["/elsewhere"] = server.answers[path]
    server.answers[path] = document(b"", status, {"Location": f"{server.address}/elsewhere"})
    with pytest.raises(IssuerUnreachable, match=f"responded with {status}"):
        verify_at(server)
    assert "/elsewhere" not in server.paths


def endless(handler: loopback.Handler) -> None:
    """Send a document that does not end."""
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(b" " * 65_536)


def cut(handler: loopback.Handler) -> None:
    """Send half of a document."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"keys": [')


def hang_up(handler: loopback.Handler) -> None:
    """Answer nothing."""
    handler.close_connection = True


def packed(handler: loopback.Handler) -> None:
    """Send a document in a content coding that was not requested."""
    document(b"\x1f\x8b\x08", headers={"Content-Encoding": "gzip"})(handler)


@pytest.mark.parametrize("path", [DISCOVERY, "/keys"])
@pytest.mark.parametrize("answer", [endless, cut, hang_up, packed, document(b" " * 262_145 + b"{}")])
def test_an_unusable_response_means_that_the_issuer_was_not_reached(
    server: Server, path: str, answer: Serve
) -> None:
    server.answers[path] = answer
    started = time.monotonic()
    with pytest.raises(IssuerUnreachable):
        verify_at(server)
    assert time.monotonic() - started < 2


def test_a_document_of_256_kib_is_read_and_a_larger_one_is_not(server: Server) -> None:
    body = json.dumps({"keys": [RSA.as_dict(private=False)]}).encode()
    server.answers["/keys"] = document(body + b" " * (262_144 - len(body)))
    assert is_verified(verify_at(server))
    assert server.paths == [DISCOVERY, "/keys"]
    server.answers["/keys"] = document(body + b" " * (262_145 - len(body)))
    with pytest.raises(IssuerUnreachable, match="more than 262144 bytes"):
        verify_at(server)


def test_an_issuer_that_keeps_silent_or_trickles_costs_no_more_than_5_seconds(server: Server) -> None:
    ended, hung_up = threading.Event(), threading.Event()

    def trickle(handler: loopback.Handler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        with suppress(ConnectionError):
            while not ended.wait(0.2):
                handler.wfile.write(b"x")
        hung_up.set()

    def keep_silent(_: loopback.Handler) -> None:
        ended.wait()

    try:
        for answer, least in ((trickle, 4.9), (keep_silent, 2.9)):
            server.answers[DISCOVERY] = answer
            started = time.monotonic()
            with pytest.raises(IssuerUnreachable):
                verify_at(server)
            assert least < time.monotonic() - started < 6
        assert hung_up.wait(2), "the request goes on although its caller has given up"
    finally:
        ended.set()


@pytest.mark.parametrize("is_trusted", [True, False])
def test_an_issuer_proves_with_a_certificate_that_it_is_who_it_is(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch, is_trusted: bool
) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificates.cert, certificates.key)
    with Server().running(tls) as server:
        if is_trusted:
            monkeypatch.setenv("SSL_CERT_FILE", str(certificates.ca))
            assert Issuers().keys(server.address, None) == (RSA.as_dict(private=False),)
        else:
            with pytest.raises(IssuerUnreachable, match="SSLCertVerificationError"):
                Issuers().keys(server.address, None)
            assert server.paths == []


def test_nobody_at_the_address_is_an_issuer_that_was_not_reached() -> None:
    with pytest.raises(IssuerUnreachable, match="did not respond: ConnectionRefusedError"):
        Issuers().keys(f"http://127.0.0.1:{free_port()}", None)

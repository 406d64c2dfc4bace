"""The forms of the `Authorization` header, and secrets."""

import base64
import string

import pytest

from holdfast.identity import credentials
from holdfast.identity.credentials import IdToken, SessionCredentials, TokenCredentials, parse

TOKEN_ID = "a1" * 10
SESSION_ID = f"session-{TOKEN_ID}"
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJ4In0.c2ln"


def basic(text: str | bytes) -> str:
    return "Basic " + base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()


@pytest.mark.parametrize(
    ("header", "found"),
    [
        (basic(f"{TOKEN_ID}:secret"), TokenCredentials(TOKEN_ID, "secret")),
        (basic(f"{TOKEN_ID}:b:c"), TokenCredentials(TOKEN_ID, "b:c")),
        (basic(f"{TOKEN_ID}:"), TokenCredentials(TOKEN_ID, "")),
        (basic(f"{SESSION_ID}:secret"), SessionCredentials(SESSION_ID, "secret")),
        (basic(f"oidc:{JWT}"), IdToken(JWT)),
        (f"Bearer {TOKEN_ID}.secret", TokenCredentials(TOKEN_ID, "secret")),
        (f"Bearer {TOKEN_ID}.b:c", TokenCredentials(TOKEN_ID, "b:c")),
        (f"Bearer {TOKEN_ID}.", TokenCredentials(TOKEN_ID, "")),
        (f"bEARER  {SESSION_ID}.secret ", SessionCredentials(SESSION_ID, "secret")),
        (f"Bearer {TOKEN_ID}.b.c", IdToken(f"{TOKEN_ID}.b.c")),  # three parts, so no secret
        (f"Bearer {JWT}", IdToken(JWT)),
        (f"bEARER {JWT}", IdToken(JWT)),
        (basic(f"{TOKEN_ID}:secret").replace("Basic ", "bASIC  "), TokenCredentials(TOKEN_ID, "secret")),
        (basic(f"oidc:{'a' * 10_000}.b.c"), IdToken(f"{'a' * 10_000}.b.c")),
    ],
)
def test_the_header_alone_says_what_the_credentials_are(header: str, found: object) -> None:
    assert parse(header) == found


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Basic",
        "Basic ",
        "Basic !!!!",
        "Basic =",
        "Bearer",
        "Bearer ",
        "Bearer abc",
        "Bearer a.b",
        "Bearer a.b.",  # without a signature, as `alg: none` has it
        "Bearer ..",
        "Bearer a.b.c.d",
        "Bearer a.b.c=",
        "Bearer a.b+.c",
        f"Bearer {JWT} {JWT}",
        f"Bearer {JWT}, Bearer {JWT}",
        f"Bearer {JWT}\n",
        f"Bearer {'a' * 10_240}.b.c",
        f"Bearer\t{JWT}",
        f"Bearer {TOKEN_ID}:secret",
        f"Bearer {TOKEN_ID}",
        f"Bearer .{TOKEN_ID}",
        f"Bearer {TOKEN_ID}.b..c",
        f"Bearer {TOKEN_ID}.secret.",
        f"Bearer {TOKEN_ID}.sec ret",
        f"Bearer {TOKEN_ID}.secrét",
        f"Bearer {TOKEN_ID.upper()}.secret",
        f"Bearer {TOKEN_ID[1:]}.secret",
        f"Bearer {TOKEN_ID}1.secret",
        f"Bearer {TOKEN_ID[:-1]}/.secret",
        f"Bearer ../tokens/{TOKEN_ID}.secret",
        f"Bearer session-{TOKEN_ID[1:]}.secret",
        f"Bearer Session-{TOKEN_ID}.secret",
        "Bearer session-.secret",
        "Bearer oidc.secret",
        f"Bearer {TOKEN_ID}.secret, Bearer {TOKEN_ID}.secret",
        f"Digest {JWT}",
        f" Bearer {JWT}",
        basic("no colon"),
        basic(TOKEN_ID),
        basic(":secret"),
        basic("../tokens/x:secret"),
        basic(TOKEN_ID.upper() + ":secret"),
        basic("a" * 19 + ":secret"),
        basic("a" * 21 + ":secret"),
        basic("a" * 19 + "\0:secret"),
        basic("a" * 20 + "\n:secret"),
        basic("a" * 20 + "/:secret"),
        basic("a" * 19 + "é:secret"),
        basic("a" * 19 + "²:secret"),
        basic("a" * 19 + "\u0661:secret"),
        basic(f"session-{'a' * 19}:secret"),
        basic(f"session-{'a' * 21}:secret"),
        basic(f"session-{'a' * 19}/:secret"),
        basic(f"Session-{'a' * 20}:secret"),
        basic(f"session-{'a' * 20}\0:secret"),
        basic(f"session-../../tokens/{'a' * 20}:secret"),
        basic("session-:secret"),
        basic("oidc:"),
        basic("oidc:secret"),
        basic("oidc:a.b."),
        basic(f"oidc:{JWT}\n"),
        basic(f"oidc: {JWT}"),
        basic(f"OIDC:{JWT}"),
        basic(f"oidc:{'a' * 10_240}.b.c"),
        basic(b"\xff\xfe:x"),
        basic(TOKEN_ID.encode() + b":\xff"),
        basic(f"{TOKEN_ID}:secret") + ", " + basic("b" * 20 + ":secret"),
        basic(f"{TOKEN_ID}:secret") + "," + basic("b" * 20 + ":secret"),
        basic(f"{TOKEN_ID}:secret")[:-3],
        basic(f"{TOKEN_ID}:secret").replace("Basic ", "Basic !!!!"),
        basic(f"{TOKEN_ID}:secret").replace("Basic ", "Basic\u00a0"),
        basic(f"{TOKEN_ID}:secret") + "\u2003",
    ],
)
def test_a_header_that_can_be_no_credentials_holds_none(header: str) -> None:
    assert parse(header) is None


def test_every_id_and_secret_that_is_made_can_be_sent_as_bearer() -> None:
    secret = credentials.new_secret()
    token_id, session_id = credentials.new_id(), credentials.new_session_id()
    sent = [parse(f"Bearer {credentials.bearer(each, secret)}") for each in (token_id, session_id)]
    assert sent == [TokenCredentials(token_id, secret), SessionCredentials(session_id, secret)]


def test_credentials_do_not_show_their_secret() -> None:
    shown = [
        repr(TokenCredentials(TOKEN_ID, "confidential")),
        repr(SessionCredentials(SESSION_ID, "confidential")),
        repr(IdToken("confidential")),
    ]
    assert not any("confidential" in text for text in shown)
    assert TOKEN_ID in shown[0]
    assert SESSION_ID in shown[1]


def test_secrets_differ_and_have_a_form_that_a_scanner_finds() -> None:
    secrets = {credentials.new_secret() for _ in range(50)}
    assert len(secrets) == 50
    for secret in secrets:
        assert secret.startswith("holdfast_")
        assert len(secret) == 58
        assert credentials.is_secret(secret)


def test_a_scanner_tells_a_secret_from_what_only_looks_like_one() -> None:
    assert credentials.is_secret(
        "holdfast_K30DADOt6inEz0kfFtlAS0dtR4pUuIo4ejITyuSojmv2MkhBk"
    )  # its form does not change
    secret = credentials.new_secret()
    swapped = secret[:20] + ("a" if secret[20] != "a" else "b") + secret[21:]
    for other in ("", swapped, secret[:-1], secret + "0", secret.upper(), f" {secret}", f"{secret}\n"):
        assert not credentials.is_secret(other)


def test_only_the_hash_of_a_secret_is_stored() -> None:
    assert credentials.secret_sha256("abc") == (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )


def test_ids_differ_and_are_of_their_form() -> None:
    made = {credentials.new_id() for _ in range(50)}
    assert len(made) == 50
    assert all(
        credentials.is_token_id(each) and credentials.is_session_id(f"session-{each}") for each in made
    )
    assert set("".join(made)) <= set(string.ascii_lowercase + string.digits)
    assert not credentials.is_token_id("session-" + "a" * 20)
    assert not credentials.is_session_id("a" * 20)

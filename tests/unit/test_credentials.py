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

"""An OpenID Connect issuer on 127.0.0.1: it signs ID tokens as a CI service does, and publishes its keys.

It makes keys and signatures with another library than the library with which Holdfast verifies.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from threading import Event
from typing import Any, Final, Self
from uuid import uuid4

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey

from local_aws import loopback
from local_aws.failure import LocalAwsError
from local_aws.files import read_port, write_port, write_private
from local_aws.home import Home
from local_aws.server import HOST, answers

DEFAULT_PORT: Final = 4570
DISCOVERY: Final = "/.well-known/openid-configuration"
KEYS: Final = "/keys"

_CHECK_TIME_LIMIT = 2.0
_LIFETIME = timedelta(minutes=10)


class Algorithm(StrEnum):
    RS256 = "RS256"
    ES256 = "ES256"


@dataclass(frozen=True, slots=True)
class SigningKeys:
    """The issuer's keys: `current` has a signing key for each algorithm."""

    current: Mapping[Algorithm, RSAKey | ECKey] = field(repr=False)

    @classmethod
    def new(cls) -> Self:
        """Make a key for each algorithm; each key's ID is the key's thumbprint (RFC 7638)."""
        return cls(
            {
                Algorithm.RS256: RSAKey.generate_key(2048, {"use": "sig", "alg": "RS256"}, auto_kid=True),
                Algorithm.ES256: ECKey.generate_key("P-256", {"use": "sig", "alg": "ES256"}, auto_kid=True),
            }
        )

    def published(self) -> dict[str, Any]:
        """Return the public keys, as a JWK set (RFC 7517 section 5)."""
        return dict(KeySet([*self.current.values()]).as_dict(private=False))

    def to_json(self) -> str:
        """Return the public and private keys as JSON for the file."""
        return json.dumps({"current": [key.as_dict(private=True) for key in self.current.values()]}, indent=2)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse the file's JSON; `ValueError` if it has no valid keys."""
        try:
            keys = [_key(each) for each in json.loads(text)["current"]]
            return cls({Algorithm(str(key.alg)): key for key in keys})
        except (KeyError, TypeError) as error:
            raise ValueError(f"no keys of an issuer: {error!r}") from error


def _key(document: Any) -> RSAKey | ECKey:
    return RSAKey.import_key(document) if document["kty"] == "RSA" else ECKey.import_key(document)


def id_token(
    keys: SigningKeys,
    issuer: str,
    *,
    subject: str,
    audience: str,
    claims: Mapping[str, Any],
    lifetime: timedelta,
    now: datetime,
    algorithm: Algorithm = Algorithm.RS256,
) -> str:
    """Sign an ID token (OpenID Connect Core 1.0 section 2). Each token has a `jti` of its own.

    `claims` are added to the standard claims such as `iss`, or replace them. `now` becomes `iat` and `nbf`; a
    token with a negative lifetime has expired already.
    """
    key = keys.current[algorithm]
    body = {
        "iss": issuer,
        "sub": subject,
        "aud": audience,
        "iat": int(now.timestamp()),
        "nbf": int(now.timestamp()),
        "exp": int((now + lifetime).timestamp()),
        "jti": str(uuid4()),
        **claims,
    }
    return jwt.encode({"alg": algorithm.value, "kid": key.kid}, body, key, algorithms=[algorithm.value])


# --- over HTTP -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    """A JSON response; `headers` are added to Content-Length and Content-Type."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


def answer(issuer: str, keys: SigningKeys, path: str) -> Answer:
    """Return an issuer's response to a request for a path (OpenID Connect Discovery 1.0 section 4)."""
    if path == DISCOVERY:
        return as_json(
            {
                "issuer": issuer,
                "jwks_uri": f"{issuer}{KEYS}",
                "response_types_supported": ["id_token"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": [each.value for each in keys.current],
            }
        )
    if path == KEYS:
        return as_json(keys.published())
    return as_json({"error": "not_found"}, status=404)


def as_json(document: Any, *, status: int = 200) -> Answer:
    return Answer(status, json.dumps(document).encode())


def serving(answering: Callable[[str], Answer], *, port: int = 0) -> AbstractContextManager[str]:
    """Serve an issuer on 127.0.0.1 while the context lasts; the context's value is the issuer's URL."""

    class Handler(loopback.Handler):
        def respond(self) -> None:
            answered = answering(self.path)
            headers = {"Content-Type": "application/json", **answered.headers}
            self.answer(answered.status, answered.body, headers)

    return loopback.serving(Handler, port=port)


# --- the commands --------------------------------------------------------------------------------


def _load(home: Home) -> SigningKeys:
    try:
        return SigningKeys.from_json(home.issuer_keys.read_text())
    except FileNotFoundError:
        raise LocalAwsError("There is no issuer yet: run `make issuer` in another shell.") from None
    except ValueError as error:
        raise LocalAwsError(f"{home.issuer_keys}: {error}; remove the file to have new keys made.") from error


def _address(home: Home, port: int | None = None) -> tuple[str, int]:
    """Return the issuer's URL, which is the claim `iss` of tokens, and its port: `port`, or the last port."""
    port = port or read_port(home.issuer_port) or DEFAULT_PORT
    return f"http://{HOST}:{port}", port


def serve(home: Home, port: int | None) -> None:
    """Run the issuer until it is interrupted. A port of None is the port used last, or else 4570.

    Keys and port are stored in `home`, because trust records and tokens depend on them.
    """
    address, wanted = _address(home, port)
    with ExitStack() as open_:
        with home.alone():
            if not home.issuer_keys.exists():
                home.issuer_keys.parent.mkdir(mode=0o700, exist_ok=True)
                write_private(home.issuer_keys, SigningKeys.new().to_json() + "\n")
            keys = _load(home)
            try:
                open_.enter_context(serving(lambda path: answer(address, keys, path), port=wanted))
            except OSError as error:
                raise LocalAwsError(
                    f"Port {wanted} on {HOST} cannot be used ({error.strerror}); "
                    f"pick another one: make issuer PORT={wanted + 1}"
                ) from error
            write_port(home.issuer_port, wanted)
        print(_next(address), flush=True)
        Event().wait()


def _next(issuer: str) -> str:
    return f"""\
The issuer is {issuer}

Leave it running. In another shell, trust what it says about a repository, once:

    set -a; . .local/aws.env; set +a
    .venv/bin/holdfast trust add local-ci --role writer --scope 'network/*' \\
      --issuer {issuer} --audience holdfast --claim repository=acme/network

and sign in with an ID token, as a CI job does:

    export TF_HTTP_USERNAME=oidc
    export TF_HTTP_PASSWORD="$(.venv/bin/python -m local_aws id-token --claim repository=acme/network)"

Ctrl-C stops it. Its keys and its port stay in .local/issuer."""


def print_id_token(home: Home, claims: Mapping[str, str]) -> str | None:
    """Print only an ID token for Holdfast, as for a job on this machine; `claims` are added or replaced.

    Return a warning if the issuer does not run, else None.
    """
    address, port = _address(home)
    print(
        id_token(
            _load(home),
            address,
            subject="local-job",
            audience="holdfast",
            claims=claims,
            lifetime=_LIFETIME,
            now=datetime.now(UTC),
        )
    )
    if answers(port, DISCOVERY, timeout=_CHECK_TIME_LIMIT):
        return None
    return f"Nothing answers at {address}: run `make issuer` in another shell before you use the token."

"""An OpenID Connect issuer on 127.0.0.1: it signs ID tokens as a CI service does, and publishes its keys.

It makes keys and signatures with another library than the library with which Holdfast verifies.
"""

import json
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from http import HTTPStatus
from threading import Event
from typing import Any, Final
from uuid import uuid4

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, JWKRegistry, Key, RSAKey

from local_aws import loopback
from local_aws.failure import LocalAwsError
from local_aws.files import read_port, write_port, write_private
from local_aws.home import Home
from local_aws.server import HOST, answers

DEFAULT_PORT: Final = 4570
DISCOVERY: Final = "/.well-known/openid-configuration"
KEYS: Final = "/keys"
ALGORITHMS: Final = ("RS256", "ES256")

_CHECK_TIME_LIMIT = 2.0
_LIFETIME = 600

Keys = Mapping[str, Key]
"""An issuer's keys: a signing key for each algorithm."""


def new_keys() -> Keys:
    """Make a key for each algorithm; each key's ID is the key's thumbprint (RFC 7638)."""
    return {
        "RS256": RSAKey.generate_key(2048, {"use": "sig", "alg": "RS256"}, auto_kid=True),
        "ES256": ECKey.generate_key("P-256", {"use": "sig", "alg": "ES256"}, auto_kid=True),
    }


def to_json(keys: Keys) -> str:
    """Return the public and private keys as JSON for the file."""
    return json.dumps({"current": [key.as_dict(private=True) for key in keys.values()]}, indent=2)


def from_json(text: str) -> Keys:
    """Parse the file's JSON; `ValueError` if it has no valid keys."""
    try:
        keys = {key["alg"]: JWKRegistry.import_key(key) for key in json.loads(text)["current"]}
    except (KeyError, TypeError, JoseError) as error:
        raise ValueError(f"it has no keys of an issuer ({error!r})") from error
    if keys.keys() != {*ALGORITHMS}:
        raise ValueError("it has no keys of an issuer")
    return keys


def claims(issuer: str, changed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the claims of an ID token for Holdfast (OpenID Connect Core 1.0 section 2).

    `changed` are added to the standard claims such as `iss`, or replace them. Each token has a `jti` of its
    own.
    """
    now = int(time.time())
    return {
        "iss": issuer,
        "sub": "local-job",
        "aud": "holdfast",
        "iat": now,
        "nbf": now,
        "exp": now + _LIFETIME,
        "jti": str(uuid4()),
        **changed,
    }


def signed(key: Key, body: Mapping[str, Any] | str, *, alg: str = "RS256", **header: Any) -> str:
    """Sign a token. `header` adds fields to the header or replaces them; a field of None is left out."""
    fields = {"typ": "JWT", "alg": alg, "kid": key.kid, **header}
    protected = {name: value for name, value in fields.items() if value is not None}
    payload = body if isinstance(body, str) else json.dumps(body)
    registry = jws.JWSRegistry(algorithms=[alg], strict_check_header=False)
    return jws.serialize_compact(protected, payload, key, registry=registry)


def documents(issuer: str, keys: Iterable[Key]) -> dict[str, Any]:
    """Return what an issuer publishes, by path (OpenID Connect Discovery 1.0 section 4)."""
    return {
        DISCOVERY: {
            "issuer": issuer,
            "jwks_uri": f"{issuer}{KEYS}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": list(ALGORITHMS),
        },
        KEYS: {"keys": [key.as_dict(private=False) for key in keys]},
    }


# --- the commands --------------------------------------------------------------------------------


def _load(home: Home) -> Keys:
    try:
        return from_json(home.issuer_keys.read_text())
    except FileNotFoundError:
        raise LocalAwsError("No issuer runs yet: run `make issuer` in another shell.") from None
    except ValueError as error:
        raise LocalAwsError(
            f"{home.issuer_keys} is not valid: {error}. Remove the file, and run `make issuer`, which "
            "creates new keys."
        ) from error


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
                write_private(home.issuer_keys, to_json(new_keys()) + "\n")
            published = documents(address, _load(home).values())

            class Handler(loopback.Handler):
                def respond(self) -> None:
                    document = published.get(self.path)
                    status = HTTPStatus.OK if document else HTTPStatus.NOT_FOUND
                    body = json.dumps(document or {"error": "not_found"}).encode()
                    self.answer(status, body, {"Content-Type": "application/json"})

            try:
                open_.enter_context(loopback.serving(Handler, port=wanted))
            except OSError as error:
                raise LocalAwsError(
                    f"Port {wanted} on {HOST} cannot be used ({error.strerror}); choose another port: make "
                    f"issuer PORT={wanted + 1}"
                ) from error
            write_port(home.issuer_port, wanted)
        print(_next(address), flush=True)
        Event().wait()


def _next(issuer: str) -> str:
    return f"""\
The issuer is {issuer}

Leave the issuer running. In another shell, create a trust record, once:

    set -a; . .local/aws.env; set +a
    .venv/bin/holdfast trust create local-ci --role writer --scope 'network/*' \\
      --issuer {issuer} --audience holdfast --claim repository=acme/network

Then sign in with an ID token, as a CI job does:

    export TF_HTTP_USERNAME=oidc
    export TF_HTTP_PASSWORD="$(.venv/bin/python -m local_aws id-token --claim repository=acme/network)"

Ctrl-C stops the issuer. Its keys and its port stay in .local/issuer."""


def print_id_token(home: Home, changed: Mapping[str, str]) -> str | None:
    """Print only an ID token for Holdfast, as for a job on this machine. `changed` are claims.

    Return a warning if the issuer does not run, else None.
    """
    address, port = _address(home)
    print(signed(_load(home)["RS256"], claims(address, changed)))
    if answers(port, DISCOVERY, timeout=_CHECK_TIME_LIMIT):
        return None
    return f"The issuer at {address} does not respond: run `make issuer` before you use the token."

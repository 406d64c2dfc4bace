"""The table of credentials and outcomes: unit, contract and end-to-end tests try every row.

A row makes its credentials in a `World`: an S3 bucket or a dictionary, and an issuer with or without a
network. So every layer gets the same credentials, and must come to the same outcome.
"""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any, Final

from joserfc.jwk import RSAKey

from holdfast.access import Caller, Grant, Role
from holdfast.identity import sessions, tokens, trust
from holdfast.identity.authentication import Authenticated, AuthMethod
from holdfast.identity.credentials import new_id, new_session_id, secret_sha256
from holdfast.identity.sessions import Session
from holdfast.identity.tokens import Token
from tests.support.id_tokens import FOREIGN, claims, forged, hmac_over, raw, signed

ARN: Final = "arn:aws:sts::123456789012:assumed-role/Deployer/ada@corp.com"
SCOPE: Final = "ci/*"
"""The scope of every credential of the table."""
_DAY: Final = timedelta(days=1)
_HOUR: Final = timedelta(hours=1)
_ELSEWHERE: Final = "http://127.0.0.1:1/keys"


@dataclass(frozen=True)
class World:
    """Where credentials are made and tried.

    `put` stores an object. `network` and `deployers` are trust records that are stored already. `key` is the
    key of RS256 of the issuer that `network` trusts.
    """

    put: Callable[[str, bytes], None]
    network: trust.OidcTrust
    deployers: trust.AwsTrust
    key: RSAKey

    def token(
        self,
        *,
        age: timedelta = timedelta(0),
        lifetime: timedelta | None = None,
        revoked: bool = False,
        **changed: Any,
    ) -> tuple[Token, str]:
        made = datetime.now(UTC) - age
        settings = {"grants": [Grant(Role.WRITER, (SCOPE,))], "description": "", "created_by": "test"}
        expires = made + lifetime if lifetime else None
        token, secret = tokens.create(**{**settings, "now": made, "expires": expires, **changed})
        if revoked:
            token = tokens.revoke(token, revoked_by="test", now=made)
        self.put(token.key, token.to_json())
        return token, secret

    def rotated(
        self, keep: timedelta, *, age: timedelta = timedelta(0), old: bool = True
    ) -> tuple[Token, str]:
        """Return a token, and the secret that a rotation replaced, or the new one."""
        token, replaced = self.token(age=age)
        now = datetime.now(UTC) - age
        token, new = tokens.rotate(token, rotated_by="test", now=now, keep=keep, expires=None)
        self.put(token.key, token.to_json())
        return token, replaced if old else new

    def session(
        self, granted_by: trust.Trust | None = None, *, age: timedelta = timedelta(0)
    ) -> tuple[Session, str]:
        record = granted_by or self.deployers
        bearer = Authenticated(
            Caller(ARN, record.grants), AuthMethod.AWS, trust=record.name, trust_id=record.id, subject=ARN
        )
        session, secret = sessions.create(bearer, now=datetime.now(UTC) - age, seconds=300)
        self.put(session.key, session.to_json())
        return session, secret

    def claims(self, **changed: Any) -> dict[str, Any]:
        """Return the claims of a valid ID token. A claim of None is left out."""
        return claims(**{"iss": self.network.issuer, **self.network.claims, **changed})

    def jwt(self, **changed: Any) -> str:
        return signed(self.key, self.claims(**changed))


def basic(user: str | bytes, password: str | bytes = b"") -> str:
    """Return the header of HTTP Basic, also for a user and a password that are not valid."""
    pair = b":".join(each.encode() if isinstance(each, str) else each for each in (user, password))
    return "Basic " + base64.b64encode(pair).decode()


def bearer(first: str, secret: str | None = None) -> str:
    """Return a bearer: a JWT, or an ID with its secret as clients of `cloud {}` send them."""
    return f"Bearer {first}" if secret is None else f"Bearer {first}.{secret}"


Sent = Callable[[World], str]
"""Makes credentials in a world, and returns their `Authorization` header."""


@dataclass(frozen=True)
class Attempt:
    """A row: credentials, the reason of their denial (empty if they are accepted), and the requests to S3."""

    sent: Sent
    reason: str
    requests: int


def of_token(
    change: Callable[[str], str] = str, *, form: Callable[[str, str], str] = basic, **how: Any
) -> Sent:
    """Send a token's ID and its secret, changed."""
    return _sent(lambda world: world.token(**how), change, form)


def of_rotation(keep: timedelta, **how: Any) -> Sent:
    return _sent(lambda world: world.rotated(keep, **how))


def of_session(
    change: Callable[[str], str] = str,
    granted_by: Callable[[World], trust.Trust] = lambda world: world.deployers,
    *,
    age: timedelta = timedelta(0),
    form: Callable[[str, str], str] = basic,
) -> Sent:
    """Send a session's ID and its secret, changed."""
    return _sent(lambda world: world.session(granted_by(world), age=age), change, form)


def _sent(
    make: Callable[[World], tuple[Token | Session, str]],
    change: Callable[[str], str] = str,
    form: Callable[[str, str], str] = basic,
) -> Sent:
    def header(world: World) -> str:
        record, secret = make(world)
        return form(record.id, change(secret))

    return header


def as_another(make: Callable[[World], tuple[Token | Session, str]], other: str) -> Sent:
    """Send an ID under which the record of another lies."""

    def header(world: World) -> str:
        record, secret = make(world)
        world.put(record.key.replace(record.id, other), record.to_json())
        return basic(other, secret)

    return header


def _too_large(world: World) -> str:
    token, secret = world.token()
    world.put(token.key, replace(token, grants=(Grant(Role.READER, ("x" * 200,) * 21),)).to_json())
    return basic(token.id, secret)


def of_claims(**changed: Any) -> Sent:
    return lambda world: bearer(world.jwt(**changed))


def at(name: str, seconds: int) -> Sent:
    """Send an ID token with a time that is some seconds from now."""
    return lambda world: bearer(world.jwt(**{name: int(datetime.now(UTC).timestamp()) + seconds}))


def of_header(key: RSAKey | None = None, **changed: Any) -> Sent:
    """Send an ID token with another header, signed with its issuer's key or another one."""
    return lambda world: bearer(signed(key or world.key, world.claims(), **{"kid": world.key.kid, **changed}))


def unsigned(**changed: Any) -> Sent:
    """Send an ID token with another header and a signature of nobody."""
    return lambda world: bearer(raw({"alg": "RS256", "kid": world.key.kid, **changed}, world.claims()))


def of_hmac(algorithm: str) -> Sent:
    """Send an ID token whose signature is an HMAC over the issuer's public key."""
    return lambda world: bearer(
        forged(
            {"alg": algorithm, "kid": world.key.kid},
            world.claims(),
            hmac_over(world.key.as_pem(private=False)),
        )
    )


def _swapped(world: World) -> str:
    """Send the claims of a valid token under the signature of another."""
    head, _, signature = world.jwt(repository="mallory/network").split(".")
    return bearer(f"{head}.{world.jwt().split('.')[1]}.{signature}")


def _twice(world: World) -> str:
    body = json.dumps(world.claims())
    return bearer(signed(world.key, f'{body[:-1]}, "repository": "acme/network"}}'))


def _new(record: trust.AwsTrust) -> trust.AwsTrust:
    """Return a record of the same name, made anew."""
    return replace(record, id=new_id())


_PAST: Final[Mapping[str, Any]] = {"age": 2 * _DAY, "lifetime": _DAY}
_TOKENS: Final[Mapping[str, Mapping[str, Sent]]] = {
    "": {
        "a token": of_token(),
        "a token as a bearer": of_token(form=bearer),
        "a token, with the scheme in other letters": lambda world: of_token()(world).replace(
            "Basic ", "bASIC  "
        ),
        "the new secret of a rotation": of_rotation(_HOUR, old=False),
        "the old secret of a rotation": of_rotation(_HOUR),
    },
    "unknown_or_wrong": {
        "the old secret when its time is over": of_rotation(_HOUR, age=_DAY),
        "the old secret of a rotation that keeps none": of_rotation(timedelta(0)),
        "the secret of another token": lambda world: basic(world.token()[0].id, world.token()[1]),
        "the same as a bearer": lambda world: bearer(world.token()[0].id, world.token()[1]),
        "a secret without its last letter": of_token(lambda secret: secret[:-1]),
        "a secret with a line end": of_token(lambda secret: f"{secret}\n"),
        "no secret": of_token(lambda _: ""),
        "no secret, as a bearer": of_token(lambda _: "", form=bearer),
        "a secret that could be a path": of_token(lambda _: "/../../x"),
        "the hash of the secret": of_token(secret_sha256),
        "an unknown token": lambda world: basic(new_id(), world.token()[1]),
        "an unknown token without a secret": lambda _: basic(new_id(), ""),
        "a token under the ID of another": as_another(World.token, new_id()),
        "a wrong secret of an expired token": of_token(str.upper, **_PAST),
    },
    "expired": {"an expired token": of_token(**_PAST)},
    "revoked": {
        "a revoked token": of_token(revoked=True),
        "a revoked token that has expired": of_token(revoked=True, **_PAST),
    },
    "too_large": {"a token whose context would be too large": _too_large},
    "wrong_network": {"a token with networks in a team without": of_token(networks=["127.0.0.0/8"])},
}
_SESSIONS: Final[Mapping[str, Mapping[str, Sent]]] = {
    "": {
        "a session": of_session(),
        "a session as a bearer": of_session(form=bearer),
        "a session of an ID token's record": of_session(granted_by=lambda world: world.network),
    },
    "unknown_or_wrong": {
        "a wrong secret of a session": of_session(lambda secret: f"{secret}x"),
        "a session's secret without its last letter": of_session(lambda secret: secret[:-1]),
        "no secret of a session": of_session(lambda _: ""),
        "the secret of a token for a session": lambda world: basic(world.session()[0].id, world.token()[1]),
        "an unknown session": lambda world: basic(new_session_id(), world.session()[1]),
        "an unknown session without a secret": lambda _: basic(new_session_id(), ""),
        "a session under the ID of another": as_another(World.session, new_session_id()),
        "a wrong secret of an expired session": of_session(str.upper, age=_HOUR),
    },
    "expired": {
        "an expired session": of_session(age=_HOUR),
        "an expired session without its record": of_session(
            granted_by=lambda world: _new(world.deployers), age=_HOUR
        ),
    },
    "trust_removed": {
        "a session whose record is new": of_session(granted_by=lambda world: _new(world.deployers)),
        "a session whose record was removed": of_session(
            granted_by=lambda world: replace(world.deployers, name="removed")
        ),
    },
}
_NO_TIMES: Final[tuple[object, ...]] = ("soon", [], {}, inf)
_EXTENSIONS: Final[tuple[Mapping[str, Any], ...]] = (
    {"crit": ["exp"], "exp": 1},
    {"crit": ["b64"], "b64": False},
    {"crit": []},
)
_ID_TOKENS: Final[Mapping[str, Mapping[str, Sent]]] = {
    "": {
        "an ID token": of_claims(),
        "an ID token as the password of oidc": lambda world: basic("oidc", world.jwt()),
        "an ID token for others too": lambda world: bearer(world.jwt(aud=["x", world.network.audience])),
        "an ID token without a beginning": of_claims(nbf=None, iat=None),
        "an ID token of a long subject": of_claims(sub="x" * 1000),
        "an ID token that has just expired": at("exp", -20),
        "an ID token that begins soon": at("nbf", 20),
        "an ID token that is made soon": at("iat", 20),
    },
    "expired": {
        "an ID token that expired": at("exp", -40),
        **{f"an ID token with exp {exp}": of_claims(exp=exp) for exp in (1, True)},
    },
    "not_yet_valid": {f"an ID token with {name} in 40 s": at(name, 40) for name in ("nbf", "iat")},
    "wrong_audience": {
        f"an ID token with aud {aud}": of_claims(aud=aud)
        for aud in ("x", ["x", "y"], [], "", None, {"holdfast": "holdfast"}, "holdfast2")
    },
    "unknown_issuer": {
        **{
            f"an ID token with iss {iss}": of_claims(iss=iss)
            for iss in (None, "https://attacker.example.com", ["https://attacker.example.com"])
        },
        "the issuer with a slash": lambda world: bearer(world.jwt(iss=f"{world.network.issuer}/")),
        "the issuer in capitals": lambda world: bearer(world.jwt(iss=world.network.issuer.upper())),
        "a list with the issuer": lambda world: bearer(world.jwt(iss=[world.network.issuer])),
    },
    "not_trusted": {
        f"an ID token with repository {other}": of_claims(repository=other)
        for other in (None, "acme/dns", ["acme/network"], "evil/acme/network", "Acme/Network")
    },
    "malformed": {
        **{
            f"an ID token with sub {str(sub)[:9]!a}": of_claims(sub=sub)
            for sub in (None, "", 7, "a\nb", "a\0b", "\ud800", "x" * 1001)
        },
        **{
            f"an ID token with {name} {value}": of_claims(**{name: value})
            for name, value in (("jti", 7), ("aud", ["holdfast", 7]), ("exp", None))
        },
        **{
            f"an ID token with {name} {value}": of_claims(**{name: value})
            for name in ("exp", "nbf", "iat")
            for value in _NO_TIMES
        },
        "claims that stand twice": _twice,
        "a header without an algorithm": unsigned(alg=None),
    },
    "wrong_algorithm": {
        **{f"an unsigned ID token, alg {alg}": unsigned(alg=alg) for alg in ("none", "None", "nOnE", "")},
        **{f"an HMAC over the public key, alg {alg}": of_hmac(alg) for alg in ("HS256", "HS384", "HS512")},
        **{f"a header that must be understood, {header}": unsigned(**header) for header in _EXTENSIONS},
    },
    "unknown_key": {
        "an ID token under nobody's key": of_header(kid="x"),
        "a key ID that is an address": of_header(FOREIGN, kid=_ELSEWHERE),
    },
    "wrong_signature": {
        "an HMAC that names the key's algorithm": of_hmac("RS256"),
        "an ID token under a foreign key": of_header(FOREIGN),
        "a foreign key that the token points to": of_header(FOREIGN, jku=_ELSEWHERE),
        "a foreign key whose certificate the token points to": of_header(FOREIGN, x5u=_ELSEWHERE),
        "a foreign key whose certificate the token brings": of_header(FOREIGN, x5c=["MIIB"]),
        "a foreign key that the token brings": of_header(FOREIGN, jwk=FOREIGN.as_dict(private=False)),
        "other claims under a signature": _swapped,
    },
}
ATTEMPTS: Final = {
    name: Attempt(sent, reason, requests)
    for requests, outcomes in ((1, _TOKENS), (2, _SESSIONS), (1, _ID_TOKENS))
    for reason, rows in outcomes.items()
    for name, sent in rows.items()
}
"""The rows, by what they send."""


def malformed(world: World) -> list[str]:
    """Return headers that hold no credentials, made of valid ones: who reads one leniently accepts it."""
    token, secret = world.token()
    session, of_session = world.session()
    user, jwt, good = token.id, world.jwt(), basic(token.id, secret)
    encoded = good.removeprefix("Basic ")
    head, body, _ = jwt.split(".")
    return [
        *("", "Basic", "Basic ", "Basic !!!!", "Basic =", "Bearer", "Bearer ", "Bearer abc", "Bearer a.b"),
        *("Bearer ..", "Bearer a.b.c.d", "Bearer a.b.c=", "Bearer a.b+.c", "garbage", encoded),
        bearer(f"{head}.{body}."),  # without a signature, as `alg: none` has it
        *(f"Bearer {jwt} {jwt}", f"Bearer {jwt}, Bearer {jwt}", f"Bearer {jwt}\n", f"Bearer\t{jwt}"),
        *(f"Digest {jwt}", f" Bearer {jwt}", f"Bearer {'a' * 10_240}.b.c", f"Digest {encoded}"),
        *(f"Bearer {user}:{secret}", f"Bearer {user}", f"Bearer .{user}", f"Bearer {secret}"),
        *(bearer(user, end) for end in ("b..c", f"{secret}.", f"{secret[:9]} {secret[9:]}", f"{secret}é")),
        *(bearer(f"../tokens/{user}", secret), bearer(f"{user[:-1]}/", secret)),
        *(bearer(other, secret) for other in (user.upper(), user[1:], f"{user}1", "oidc")),
        *(bearer(other, of_session) for other in (session.id[:-1], session.id.capitalize(), "session-")),
        *(f"{good}, {good}", f"{good},{good}", good[:-3], good[: len(good) // 2], f"Basic {good}"),
        *(good.replace("Basic ", "Basic !!!!"), good.replace("Basic ", "Basic\u00a0"), f"{good}\u2003"),
        *(f"Basic {user}:{secret}", f"Basic {encoded[:10]} {encoded[10:]}", f"Basic {encoded}=AAAA"),
        f"Basic {base64.b64encode(f'{user}{secret}'.encode()).decode()}",
        *(basic(b"\xff\xfe", secret), basic(user, b"\xff"), basic("", secret)),
        *(basic("oidc", each) for each in ("", secret, f"{head}.{body}.", f"{jwt}\n", f" {jwt}")),
        *(basic("OIDC", jwt), basic("oidc", f"{'a' * 10_240}.b.c")),
        *(basic(other, secret) for other in _other_users(user)),
        *(
            basic(other, of_session)
            for other in (
                *(session.id[:-1], f"{session.id}0", f"{session.id[:-1]}/", session.id.capitalize()),
                *(f"{session.id}\0", f"session-../../tokens/{user}", "session-", f"session-{session.id}"),
                f"session-{'0' * 20}/../../tokens/{user}",
            )
        ),
    ]


def _other_users(user: str) -> list[str | bytes]:
    """Return user names that could become another key, or another spelling of a token's key."""
    return [
        *(user.upper(), user[:-1], f"{user}0", f" {user}", f"{user} ", f"{user}\n", f"{user}\0", f"{user}/"),
        *(user[:-1] + odd for odd in ("\0", "é", "²", "\u0661", "\uff11")),
        user[:-1].encode() + b"\xc0\xae",  # an overlong dot
        *(f"{user}.json", f"{user}?versionId=null", f"{user}\r\nx-amz-acl: public-read", "*", "a" * 4000),
        *(f"/tokens/{user}", f"../tokens/{user}", f"x/../{user}", "../trust/records", "../tokens/x"),
        *("../states/access/bait", "../states/access/bait.tfstate", "%2e%2e%2fstates%2faccess%2fbait"),
    ]

"""Trust records: who gets which role and scope without a stored secret.

All of a team's lie in one object, so that one request finds the one that fits, whatever it depends on.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

from holdfast import json_object
from holdfast.access import Role
from holdfast.identity import records as record_fields
from holdfast.identity.credentials import new_id
from holdfast.identity.records import whole_seconds, written

KEY: Final = "trust/records.json"
"""The S3 key of the object that holds all records."""

MAX_RECORDS: Final = 500
MAX_BYTES: Final = 256 * 1024

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}", re.ASCII)
_ID = re.compile(r"[a-z0-9]{20}", re.ASCII)
_AWS_ROLE = re.compile(r"[A-Za-z0-9_+=,.@-]{1,64}", re.ASCII)
_URL = re.compile(r"[!-~]+", re.ASCII)

LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
"""Hosts to which plain HTTP is as good as TLS."""

_OWN_CHECKS = frozenset({"iss", "aud", "exp", "nbf", "iat", "jti"})

# Issuers that sign for everybody in the world: without one of these claims a record would let everybody in.
# `job_workflow_ref` and `ci_config_ref_uri` are not among them: others may run what an owner has published.
_OWNER_CLAIMS: Final[Mapping[str, frozenset[str]]] = {
    "https://token.actions.githubusercontent.com": frozenset(
        {
            "sub",
            "repository",
            "repository_id",
            "repository_owner",
            "repository_owner_id",
            "workflow_ref",
            "enterprise_id",
        }
    ),
    "https://accounts.google.com": frozenset({"sub", "email", "hd"}),
    "https://agent.buildkite.com": frozenset({"sub", "organization_slug", "organization_id", "pipeline_id"}),
    "https://app.terraform.io": frozenset(
        {
            "sub",
            "terraform_organization_id",
            "terraform_organization_name",
            "terraform_project_id",
            "terraform_workspace_id",
        }
    ),
    "https://gitlab.com": frozenset({"sub", "project_path", "project_id", "namespace_path", "namespace_id"}),
}


@dataclass(frozen=True, slots=True)
class OidcTrust:
    """What the ID tokens of an issuer get that have certain claims.

    Attributes:
        name: what it is called.
        id: random, and another one if a record of that name is made anew.
        issuer: exactly as in the tokens' `iss`.
        audience: must be among the tokens' `aud`.
        claims: every one of these must be in the token with this value.
        role: what the bearer may do.
        scope: to which states.
        description: the operator's note.
        created: when.
        created_by: the AWS identity that made it.
    """

    name: str
    id: str
    issuer: str
    audience: str
    claims: Mapping[str, str]
    role: Role
    scope: tuple[str, ...]
    description: str
    created: datetime
    created_by: str

    def fits(self, claims: Mapping[str, Any]) -> bool:
        """Whether a verified token's claims are what this record asks for."""
        return (
            claims.get("iss") == self.issuer
            and self.audience in audiences(claims)
            and all(name in claims and _same(claims[name], value) for name, value in self.claims.items())
        )


@dataclass(frozen=True, slots=True)
class AwsTrust:
    """What callers with an IAM role of the team's AWS account get.

    Attributes:
        name: what it is called.
        id: random, and another one if a record of that name is made anew.
        aws_role: the IAM role's name, without a path.
        role: what they may do.
        scope: to which states.
        description: the operator's note.
        created: when.
        created_by: the AWS identity that made it.
    """

    name: str
    id: str
    aws_role: str
    role: Role
    scope: tuple[str, ...]
    description: str
    created: datetime
    created_by: str


Trust = OidcTrust | AwsTrust


@dataclass(frozen=True, slots=True)
class Records:
    """All trust records of a team, in the order in which they were added."""

    records: tuple[Trust, ...] = ()

    def __iter__(self) -> Iterator[Trust]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)

    def named(self, name: str) -> Trust | None:
        """The record of that name."""
        return next((record for record in self if record.name == name), None)

    def oidc(self, issuer: str) -> tuple[OidcTrust, ...]:
        """The records for an issuer."""
        return tuple(record for record in self if isinstance(record, OidcTrust) and record.issuer == issuer)

    def for_claims(self, claims: Mapping[str, Any]) -> OidcTrust | None:
        """The record that fits a verified token: of several that with most claims, then the first by name."""
        fitting = [record for record in self if isinstance(record, OidcTrust) and record.fits(claims)]
        return min(fitting, key=lambda record: (-len(record.claims), record.name), default=None)

    def for_aws_role(self, aws_role: str) -> AwsTrust | None:
        """The record for an IAM role, by its exact name."""
        return next(
            (record for record in self if isinstance(record, AwsTrust) and record.aws_role == aws_role), None
        )

    def added(self, record: Trust) -> "Records":
        """These records and one more.

        Raises:
            ValueError: its name, or its IAM role, has a record already, or there is no room for it.
        """
        if self.named(record.name):
            raise ValueError(f"there is a trust record {record.name!r} already; remove it first")
        if isinstance(record, AwsTrust) and (other := self.for_aws_role(record.aws_role)):
            raise ValueError(f"the IAM role {record.aws_role!r} has the trust record {other.name!r} already")
        more = Records((*self.records, record))
        if len(more) > MAX_RECORDS or len(more.to_json()) > MAX_BYTES:
            raise ValueError(
                f"there is no room for it: at most {MAX_RECORDS} trust records and {MAX_BYTES} bytes in all"
            )
        return more

    def without(self, name: str) -> "Records":
        """These records but for the one of that name."""
        return Records(tuple(record for record in self if record.name != name))

    def to_json(self) -> bytes:
        """The records as they are stored."""
        return json.dumps({"records": [_document(record) for record in self]}, indent=2).encode()


def parse(body: bytes) -> Records:
    """Read the stored records.

    Raises:
        ValueError: one of them is damaged; then none counts.
    """
    try:
        records = Records(tuple(_record(document) for document in json_object.parse(body)["records"]))
        _require_unique([record.name for record in records])
        _require_unique([record.aws_role for record in records if isinstance(record, AwsTrust)])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"no trust records: {error!r}") from error
    return records


def new_oidc(
    name: str,
    *,
    issuer: str,
    audience: str,
    claims: Mapping[str, str],
    role: Role,
    scope: Sequence[str],
    description: str,
    created_by: str,
    now: datetime,
) -> OidcTrust:
    """Make a trust record for the ID tokens of an issuer.

    Raises:
        ValueError: with the rule that it would break.
    """
    return _checked_oidc(
        OidcTrust(
            name=name,
            id=new_id(),
            issuer=issuer,
            audience=audience,
            claims=dict(claims),
            role=role,
            scope=tuple(scope),
            description=description,
            created=whole_seconds(now),
            created_by=created_by,
        )
    )


def new_aws(
    name: str,
    *,
    aws_role: str,
    role: Role,
    scope: Sequence[str],
    description: str,
    created_by: str,
    now: datetime,
) -> AwsTrust:
    """Make a trust record for an IAM role of the team's account.

    Raises:
        ValueError: with the rule that it would break.
    """
    return _checked_aws(
        AwsTrust(
            name=name,
            id=new_id(),
            aws_role=aws_role,
            role=role,
            scope=tuple(scope),
            description=description,
            created=whole_seconds(now),
            created_by=created_by,
        )
    )


def audiences(claims: Mapping[str, Any]) -> tuple[str, ...]:
    """The audiences of a token: `aud` is a text or a list of texts (RFC 7519 section 4.1.3)."""
    value = claims.get("aud")
    listed = value if isinstance(value, list) else [value]
    return tuple(each for each in listed if isinstance(each, str))


def is_web_address(url: str) -> bool:
    """Whether something may be fetched from there: `https`, and `http` on this machine only."""
    if not _URL.fullmatch(url):
        return False
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    if not parts.hostname or parts.username is not None or parts.password is not None or port == 0:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)


def _same(value: object, wanted: str) -> bool:
    """Whether a claim has a value; a list or an object never has."""
    if isinstance(value, str):
        return value == wanted
    if isinstance(value, bool | int | float):
        return json.dumps(value) == wanted
    return False


def _require_unique(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise ValueError("two records are for the same")


def _checked_oidc(record: OidcTrust) -> OidcTrust:
    _check(record)
    if not is_web_address(record.issuer) or "?" in record.issuer or "#" in record.issuer:
        raise ValueError(
            f"the issuer {record.issuer!r} is no https:// address without user, query and fragment, as in "
            "'https://token.actions.githubusercontent.com'"
        )
    if not record.audience:
        raise ValueError("an audience is needed: what the tokens' 'aud' must hold")
    if not record.claims:
        raise ValueError("at least one claim is needed: without, every token of the issuer would do")
    for name, value in record.claims.items():
        if not name or not value:
            raise ValueError(f"the claim '{name}={value}' needs a name and a value")
        if name in _OWN_CHECKS:
            raise ValueError(f"the claim {name!r} is checked by itself and cannot be asked for")
    owners = _OWNER_CLAIMS.get(record.issuer.rstrip("/"))
    if owners is not None and owners.isdisjoint(record.claims):
        raise ValueError(
            f"{record.issuer} signs for everybody: one of the claims {', '.join(sorted(owners))} is needed"
        )
    return record


def _checked_aws(record: AwsTrust) -> AwsTrust:
    _check(record)
    if not _AWS_ROLE.fullmatch(record.aws_role):
        raise ValueError(
            f"{record.aws_role!r} is no name of an IAM role: up to 64 letters, digits and '_+=,.@-', no path"
        )
    return record


def _check(record: Trust) -> None:
    if not _NAME.fullmatch(record.name):
        raise ValueError(
            f"{record.name!r} is no name of a trust record: lower-case letters, digits and '-', 63 at most, "
            "a letter or digit first"
        )
    if not record.scope:
        raise ValueError("a trust record needs at least one scope pattern; '*' is every state")
    record_fields.scope(record.scope)


def _document(record: Trust) -> dict[str, Any]:
    match record:
        case OidcTrust():
            kind: dict[str, Any] = {
                "kind": "oidc",
                "issuer": record.issuer,
                "audience": record.audience,
                "claims": dict(record.claims),
            }
        case AwsTrust():
            kind = {"kind": "aws", "aws_role": record.aws_role}
    return {
        "name": record.name,
        "id": record.id,
        **kind,
        "role": record.role,
        "scope": record.scope,
        "description": record.description,
        "created": written(record.created),
        "created_by": record.created_by,
    }


def _record(document: Mapping[str, Any]) -> Trust:
    common: dict[str, Any] = {
        "name": record_fields.text(document["name"]),
        "id": record_fields.matching(document["id"], _ID),
        "role": Role(document["role"]),
        "scope": record_fields.scope(document["scope"]),
        "description": record_fields.text(document["description"]),
        "created": record_fields.time(document["created"]),
        "created_by": record_fields.text(document["created_by"]),
    }
    match document["kind"]:
        case "oidc":
            claims = {name: record_fields.text(value) for name, value in document["claims"].items()}
            issuer, audience = (record_fields.text(document[name]) for name in ("issuer", "audience"))
            return _checked_oidc(OidcTrust(issuer=issuer, audience=audience, claims=claims, **common))
        case "aws":
            return _checked_aws(AwsTrust(aws_role=record_fields.text(document["aws_role"]), **common))
        case other:
            raise ValueError(f"a trust record of the kind {other!r}")

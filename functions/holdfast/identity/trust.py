"""Trust records: grant roles for states to identities of OIDC issuers and of AWS, without a stored secret.

All records of a team are stored in one object, so that one request finds the matching record. A record that
this release does not understand is `Unreadable`: it is kept, and grants nothing. It still competes by its
condition, because a wider record must not apply in its place.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from math import inf
from typing import TYPE_CHECKING, Any, Final, NotRequired, TypedDict, Unpack
from urllib.parse import urlsplit

from holdfast import json_object
from holdfast.access import Grant, Role, check_grants
from holdfast.identity import records
from holdfast.identity.credentials import is_record_id, new_id
from holdfast.identity.records import whole_seconds, written
from holdfast.networks import LOOPBACK

if TYPE_CHECKING:
    from holdfast.s3.store import Store

KEY: Final = "trust/records.json"
"""The S3 key of all records."""

MAX_RECORDS: Final = 500
MAX_BYTES: Final = 256 * 1024
UPDATE_RESERVE: Final = 64 * 1024
"""Bytes beyond MAX_BYTES for updates alone: scopes can still be narrowed when no record can be added.

The first update of a record adds a time and an ARN, about 200 bytes. Readers have no size limit.
"""

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}", re.ASCII)
_AWS_ROLE = re.compile(r"[A-Za-z0-9_+=,.@-]{1,64}", re.ASCII)
_URL = re.compile(r"[!-~]+", re.ASCII)

_OWN_CHECKS = frozenset({"iss", "aud", "exp", "nbf", "iat", "jti"})

# Shared issuers sign for all their customers: a record must require one of these claims about the owner.
# `job_workflow_ref` and `ci_config_ref_uri` are not among them: anybody may run another owner's workflow.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trust:
    """The common fields of trust records. The name is unique within the team.

    The record's creator names the owner, who is responsible for its callers; empty if nobody. Callers may
    use their credentials from its networks; none are everywhere.
    """

    name: str
    id: str
    grants: tuple[Grant, ...]
    description: str
    created: datetime
    created_by: str
    updated: datetime | None = None
    updated_by: str = ""
    owner: str = ""
    networks: tuple[str, ...] = ()
    newer: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcTrust(_Trust):
    """Grants for ID tokens of an issuer with certain claims.

    Attributes:
        issuer: must equal the token's `iss`.
        audience: must be in the token's `aud`.
        claims: the token must have each of these claims with this value.
    """

    issuer: str
    audience: str
    claims: Mapping[str, str]

    def matches(self, claims: Mapping[str, Any]) -> bool:
        """Return whether the claims of a verified token satisfy this record."""
        return (
            claims.get("iss") == self.issuer
            and self.audience in audiences(claims)
            and _has_all(claims, self.claims)
        )

    @property
    def precedence(self) -> tuple[float, str]:
        """The rank among several matching records; the lowest applies."""
        return -len(self.claims), self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsTrust(_Trust):
    """Grants for callers with an IAM role of the team's AWS account, which `aws_role` names."""

    aws_role: str


Trust = OidcTrust | AwsTrust


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A stored record that a newer release wrote, or that is damaged. `stored` is its JSON value.

    Each newer release stores name, ID and condition as this release does (see `records`). If a damaged record
    has an issuer but no valid audience or claims, it matches every token of the issuer, before other records.
    """

    stored: Any

    @property
    def name(self) -> str:
        """The name; empty if it is not a text."""
        return self._text("name") or ""

    @property
    def id(self) -> str:
        return self._text("id") or ""

    @property
    def issuer(self) -> str | None:
        return self._text("issuer")

    @property
    def audience(self) -> str | None:
        return self._text("audience")

    @property
    def aws_role(self) -> str | None:
        return self._text("aws_role")

    def matches(self, claims: Mapping[str, Any]) -> bool:
        """Return whether the record may be for the claims of a verified token."""
        return (
            self.issuer is not None
            and claims.get("iss") == self.issuer
            and (self.audience is None or self.audience in audiences(claims))
            and _has_all(claims, self._claims or {})
        )

    @property
    def precedence(self) -> tuple[float, str]:
        return -inf if self._claims is None else -len(self._claims), self.name

    @property
    def _claims(self) -> Mapping[str, str] | None:
        claims = self._member("claims")
        is_valid = isinstance(claims, dict) and all(isinstance(value, str) for value in claims.values())
        return claims if is_valid else None

    def _text(self, name: str) -> str | None:
        value = self._member(name)
        return value if isinstance(value, str) else None

    def _member(self, name: str) -> Any:
        return self.stored.get(name) if isinstance(self.stored, dict) else None


@dataclass(frozen=True, slots=True)
class Records:
    """All trust records of a team, oldest first; an iteration returns those that are readable.

    `newer` contains unknown members of the stored object.
    """

    records: tuple[Trust | Unreadable, ...] = ()
    newer: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def __iter__(self) -> Iterator[Trust]:
        return (record for record in self.records if not isinstance(record, Unreadable))

    @property
    def unreadable(self) -> tuple[Unreadable, ...]:
        return tuple(record for record in self.records if isinstance(record, Unreadable))

    def named(self, name: str) -> Trust | Unreadable | None:
        return next((record for record in self.records if record.name == name), None)

    def oidc(self, issuer: str) -> tuple[OidcTrust | Unreadable, ...]:
        return tuple(
            record for record in self.records if not isinstance(record, AwsTrust) and record.issuer == issuer
        )

    def for_claims(self, claims: Mapping[str, Any]) -> OidcTrust | Unreadable | None:
        """Return the record that matches the claims of a verified token; None if no record matches.

        Of several matching records, return the record with the most claims; among equals, the first by name.
        """
        matching = [
            record for record in self.records if not isinstance(record, AwsTrust) and record.matches(claims)
        ]
        return min(matching, key=lambda record: record.precedence, default=None)

    def for_aws_role(self, aws_role: str) -> AwsTrust | Unreadable | None:
        """Return the record for an IAM role, by its exact name; None if no record names the role."""
        return next(
            (
                record
                for record in self.records
                if not isinstance(record, OidcTrust) and record.aws_role == aws_role
            ),
            None,
        )

    def added(self, record: Trust) -> "Records":
        """Return these records and a new record.

        Raise `ValueError` if the name or the IAM role already has a record, or a limit is exceeded.
        """
        if self.named(record.name):
            raise ValueError(
                f"the trust record {record.name!r} already exists; update it, or remove it first"
            )
        if isinstance(record, AwsTrust) and (other := self.for_aws_role(record.aws_role)):
            raise ValueError(
                f"the IAM role {record.aws_role!r} already has the trust record {other.name!r}; update that "
                "record, or remove it first"
            )
        more = replace(self, records=(*self.records, record))
        if len(more.records) > MAX_RECORDS or len(more.to_json()) > MAX_BYTES:
            raise ValueError(
                f"a team can have at most {MAX_RECORDS} trust records with {MAX_BYTES} bytes in total, and "
                "this record would exceed a limit; remove a trust record first"
            )
        return more

    def updated(self, record: Trust) -> "Records":
        """Return these records; the given record replaces the record with the same ID.

        Raise `ValueError` if `UPDATE_RESERVE` is used up.
        """
        changed = replace(self, records=tuple(record if old.id == record.id else old for old in self.records))
        most = MAX_BYTES + UPDATE_RESERVE
        if len(changed.to_json()) > most:
            raise ValueError(
                f"the trust records of a team can have at most {most} bytes in total, and this change would "
                "exceed the limit; remove a trust record first"
            )
        return changed

    def without(self, name: str) -> "Records":
        return replace(self, records=tuple(record for record in self.records if record.name != name))

    def to_json(self) -> bytes:
        documents = [
            record.stored if isinstance(record, Unreadable) else {**_document(record), **record.newer}
            for record in self.records
        ]
        schemas = (records.schema(record.grants, record.networks) for record in self)
        schema = max(schemas, default=records.FIRST_SCHEMA)
        return json.dumps({"schema": schema, "records": documents, **self.newer}, indent=2).encode()


def parse(body: bytes) -> Records:
    """Parse stored records, of a newer schema too (see `records`).

    Raise `ValueError` if the object is damaged. A record that cannot be read by itself becomes `Unreadable`,
    as do several records of one name or IAM role, because it is unclear which of them counts.
    """
    try:
        document = json_object.parse(body)
        records.check_schema(document)
        stored = [Unreadable(record) for record in records.items(document["records"])]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"not valid trust records: {error!r}") from error
    unique = Counter((member, getattr(record, member)) for record in stored for member in _UNIQUE)
    repeated = {(member, value) for (member, value), times in unique.items() if times > 1 and value}

    def read_record(record: Unreadable) -> Trust | Unreadable:
        if repeated.isdisjoint((member, getattr(record, member)) for member in _UNIQUE):
            with suppress(AttributeError, KeyError, TypeError, ValueError):
                return _record(record.stored)
        return record

    return Records(tuple(map(read_record, stored)), records.newer(document, ("schema", "records")))


def read(store: "Store") -> Records:
    """Read a team's records, with one request to S3. They are empty if the object does not exist."""
    stored = store.read(KEY)
    return parse(stored.body) if stored else Records()


class Granted(TypedDict):
    """The arguments that trust records of both kinds have in common."""

    grants: Sequence[Grant]
    description: str
    created_by: str
    owner: NotRequired[str]
    networks: NotRequired[tuple[str, ...]]
    now: datetime


def new_oidc(
    name: str, *, issuer: str, audience: str, claims: Mapping[str, str], **granted: Unpack[Granted]
) -> OidcTrust:
    common = _new(name, granted)
    return _checked_oidc(OidcTrust(issuer=issuer, audience=audience, claims=dict(claims), **common))


def new_aws(name: str, *, aws_role: str, **granted: Unpack[Granted]) -> AwsTrust:
    return _checked_aws(AwsTrust(aws_role=aws_role, **_new(name, granted)))


def _new(name: str, granted: Granted) -> dict[str, Any]:
    members = {member: value for member, value in granted.items() if member != "now"}
    created = whole_seconds(granted["now"])
    grants = check_grants(granted["grants"])
    if networks := granted.get("networks"):
        records.check_new_networks(networks)
    return {**members, "name": name, "id": new_id(), "grants": grants, "created": created}


@dataclass(frozen=True, slots=True)
class Change:
    """A change of grants: new `grants`, or another role or scope of a single grant; None is no change."""

    grants: Sequence[Grant] | None = None
    role: Role | None = None
    scope: Sequence[str] | None = None

    @property
    def new(self) -> Sequence[Grant]:
        """The grants that the change names as far as it does; a role without its scope has an empty scope."""
        if self.grants is not None:
            return self.grants
        return () if self.role is None else (Grant(self.role, ()),)

    def of(self, grants: tuple[Grant, ...]) -> tuple[Grant, ...]:
        """Return the changed grants; `ValueError` if they are invalid, or if one of several would change."""
        if self.grants is not None:
            return check_grants(self.grants)
        if self.role is None and self.scope is None:
            return grants
        if len(grants) > 1:
            raise ValueError(
                "the trust record has several grants, which --role and --scope cannot change; write all its "
                "grants, each with --grant"
            )
        role = self.role or grants[0].role
        if self.scope is None:
            return (Grant(role, grants[0].scope),)
        return check_grants([Grant(role, tuple(self.scope))])


def update(
    record: Trust,
    *,
    change: Change,
    description: str | None,
    owner: str | None = None,
    networks: Sequence[str] | None = None,
    updated_by: str,
    now: datetime,
) -> Trust:
    """Return a trust record with other values, or the same record if nothing changes.

    The record keeps its ID, so existing sessions get the change. The trusted identity cannot be changed:
    sessions would outlive the condition under which they were granted.

    Args:
        description: the new description; None means no change.
        owner: the new owner; None means no change.
        networks: the new networks; None means no change, an empty list every address.
    """
    changed = replace(
        record,
        grants=change.of(record.grants),
        description=record.description if description is None else description,
        owner=record.owner if owner is None else owner,
        networks=record.networks if networks is None else tuple(networks),
    )
    if changed == record:
        return record
    if networks:
        records.check_new_networks(networks)
    _check(changed)
    return replace(changed, updated=whole_seconds(now), updated_by=updated_by)


def audiences(claims: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the audiences of a token: `aud` is a text or a list of texts (RFC 7519 section 4.1.3)."""
    value = claims.get("aud")
    listed = value if isinstance(value, list) else [value]
    return tuple(each for each in listed if isinstance(each, str))


def is_web_address(url: str) -> bool:
    """Return whether a URL may be fetched: `https`, or `http` on this machine."""
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


def is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def _same(value: object, wanted: str) -> bool:
    """Return whether a claim equals a text; a number or boolean is compared as JSON, a list never matches."""
    if isinstance(value, str):
        return value == wanted
    if isinstance(value, bool | int | float):
        return json.dumps(value) == wanted
    return False


def _has_all(claims: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    return all(name in claims and _same(claims[name], value) for name, value in wanted.items())


def _checked_oidc(record: OidcTrust) -> OidcTrust:
    _check(record)
    if not is_web_address(record.issuer) or "?" in record.issuer or "#" in record.issuer:
        raise ValueError(
            f"the issuer {record.issuer!r} is not valid; write an https:// address without user, query and "
            "fragment, as in 'https://token.actions.githubusercontent.com'"
        )
    if not record.audience:
        raise ValueError(
            "an audience is required: a value that the claim 'aud' of each ID token must contain"
        )
    if not record.claims:
        raise ValueError(
            "at least one claim is required: without a claim, every ID token of the issuer "
            "would match the record"
        )
    for name, value in record.claims.items():
        if not name or not value:
            raise ValueError(f"the claim '{name}={value}' needs a name and a value")
        if name in _OWN_CHECKS:
            raise ValueError(
                f"the claim {name!r} must not be in a trust record, because Holdfast checks it "
                "for every ID token"
            )
    owners = _OWNER_CLAIMS.get(record.issuer.rstrip("/"))
    if owners is not None and owners.isdisjoint(record.claims):
        raise ValueError(
            f"many organizations share the issuer {record.issuer}, so the trust record needs one of the "
            f"claims {', '.join(sorted(owners))}"
        )
    return record


def _checked_aws(record: AwsTrust) -> AwsTrust:
    _check(record)
    if not _AWS_ROLE.fullmatch(record.aws_role):
        raise ValueError(
            f"{record.aws_role!r} is not a valid name of an IAM role; write at most 64 letters, digits and "
            "characters of '_+=,.@-', without the path"
        )
    return record


def _check(record: Trust) -> None:
    records.owner(record.owner)
    if not is_name(record.name):
        raise ValueError(
            f"{record.name!r} is not a valid name of a trust record; write at most 63 lower-case letters, "
            "digits and '-', with a letter or a digit first"
        )


def _condition(record: Trust) -> dict[str, Any]:
    match record:
        case OidcTrust():
            return {
                "kind": "oidc",
                "issuer": record.issuer,
                "audience": record.audience,
                "claims": dict(record.claims),
            }
        case AwsTrust():
            return {"kind": "aws", "aws_role": record.aws_role}


def _document(record: Trust) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": record.name,
        "id": record.id,
        **_condition(record),
        **records.of_grants(record.grants, record.networks),
        "description": record.description,
        "created": written(record.created),
        "created_by": record.created_by,
    }
    if record.updated is not None:
        document |= {"updated": written(record.updated), "updated_by": record.updated_by}
    if record.owner:
        document["owner"] = record.owner
    return document


def _id(value: object) -> str:
    if not is_record_id(records.text(value)):
        raise ValueError("expected the ID of a trust record")
    return records.text(value)


_UNIQUE: Final = ("name", "aws_role")
"""The members that no two records may share."""

_FIELDS: Final = {each.name for each in (*fields(OidcTrust), *fields(AwsTrust))} - {"newer", "networks"}
_MEMBERS: Final = {"kind", *records.MEMBERS, *_FIELDS}
"""The names of the members that `_document` may return."""


def _record(document: Mapping[str, Any]) -> Trust:
    common: dict[str, Any] = {
        "name": records.text(document["name"]),
        "id": _id(document["id"]),
        "grants": records.grants(document),
        "description": records.text(document["description"]),
        "created": records.time(document["created"]),
        "created_by": records.text(document["created_by"]),
        # Not in a record that was never updated.
        "updated": records.optional_time(document.get("updated")),
        "updated_by": records.text(document.get("updated_by", "")),
        # Not in the records of earlier versions. They ignore it.
        "owner": records.text(document.get("owner", "")),
        "networks": records.networks(document),
        "newer": records.newer(document, _MEMBERS),
    }
    match document["kind"]:
        case "oidc":
            claims = {name: records.text(value) for name, value in document["claims"].items()}
            issuer, audience = (records.text(document[name]) for name in ("issuer", "audience"))
            return _checked_oidc(OidcTrust(issuer=issuer, audience=audience, claims=claims, **common))
        case "aws":
            return _checked_aws(AwsTrust(aws_role=records.text(document["aws_role"]), **common))
        case other:
            raise ValueError(f"a trust record of the kind {other!r}")

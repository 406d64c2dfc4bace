"""Trust records: their rules, and the record that matches a token."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.access import Grant, Role
from holdfast.identity import trust
from holdfast.identity.trust import Records
from tests.support.id_tokens import AUDIENCE
from tests.support.id_tokens import aws_record as aws
from tests.support.id_tokens import record as oidc

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
GITHUB = "https://token.actions.githubusercontent.com"
GITLAB = "https://gitlab.com"
ISSUER = "https://login.example.com/realms/ci"


def token(**changed: Any) -> Mapping[str, Any]:
    return {"iss": GITHUB, "aud": AUDIENCE, "repository": "acme/network", "ref": "refs/heads/main", **changed}


SEVERAL = (Grant(Role.WRITER, ("apps/*",)), Grant(Role.OUTPUTS, ("network/*", "dns")))


def update(record: trust.Trust, *, description: str | None = None, **change: Any) -> trust.Trust:
    return trust.update(
        record, change=trust.Change(**change), description=description, updated_by="bob", now=NOW
    )


def test_records_come_back_as_they_were_stored() -> None:
    records = Records().added(oidc()).added(aws())
    assert trust.parse(records.to_json()) == records
    assert trust.parse(Records().to_json()) == Records()
    assert [record.name for record in records] == ["network", "people"]


def test_records_without_a_schema_version_and_those_of_a_newer_command_are_still_read() -> None:
    records = Records().added(oidc()).added(aws())
    document = json.loads(records.to_json())
    assert document.pop("schema") == 1
    assert trust.parse(json.dumps(document).encode()) == records
    newer = {
        "schema": 7,
        "records": [{**record, "note": ["new"]} for record in document["records"]],
        "owner": "network",
    }
    assert trust.parse(json.dumps(newer).encode()) == records


def test_a_change_keeps_what_a_newer_command_stored() -> None:
    document = json.loads(Records().added(oidc()).added(aws()).to_json())
    of_newer = {"schema": 7, "owner": {"team": "network"}}
    records = trust.parse(
        json.dumps(
            {"records": [{**one, "note": ["new"]} for one in document["records"]], **of_newer}
        ).encode()
    )
    network, people = records
    narrowed = update(network, role=Role.READER)

    changed = json.loads(records.updated(narrowed).without(people.name).added(aws("more")).to_json())

    assert {name: changed[name] for name in of_newer} == of_newer
    assert [(one["name"], one["role"], one.get("note")) for one in changed["records"]] == [
        ("network", "reader", ["new"]),
        ("more", "writer", None),
    ]


def test_only_a_record_that_was_updated_stores_when_and_by_whom() -> None:
    records = Records((oidc(), replace(aws(), updated=NOW, updated_by="bob")))
    never, once = json.loads(records.to_json())["records"]
    assert "updated" not in never
    assert "updated_by" not in never
    assert (once["updated"], once["updated_by"]) == ("2026-11-20T10:00:00+00:00", "bob")


def test_what_this_release_stores_is_not_taken_for_a_newer_ones() -> None:
    first = replace(oidc(), updated=NOW, updated_by="bob")
    records = trust.parse(Records().added(first).added(aws()).to_json())
    assert [records.newer, *(record.newer for record in records)] == [{}, {}, {}]


def test_records_with_an_impossible_schema_version_are_damaged() -> None:
    for version in (0, -1, None, True, 1.0, "1"):
        with pytest.raises(ValueError, match="not valid trust records"):
            trust.parse(json.dumps({"schema": version, "records": []}).encode())


@pytest.mark.parametrize(
    ("asked", "changed"),
    [
        ({"role": Role.READER}, {"grants": (Grant(Role.READER, ("network/*",)),)}),
        ({"scope": ["a", "b/*"]}, {"grants": (Grant(Role.WRITER, ("a", "b/*")),)}),
        ({"description": ""}, {"description": ""}),
        ({"role": Role.WRITER, "scope": ["a", "dns"]}, {"grants": (Grant(Role.WRITER, ("a", "dns")),)}),
        ({"grants": SEVERAL}, {"grants": SEVERAL}),
        ({"grants": [Grant(Role.WRITER, ("network/*",))]}, None),
        ({"role": Role.WRITER, "scope": ["network/*"], "description": "the pipeline"}, None),
        ({}, None),
    ],
)
def test_an_update_changes_what_is_named_and_notes_who_did(
    asked: dict[str, Any], changed: dict[str, Any] | None
) -> None:
    for record in (oidc(description="the pipeline"), aws(description="the pipeline")):
        updated = update(record, **asked)

        if changed is None:
            assert updated is record
        else:
            assert updated == replace(record, **changed, updated=NOW, updated_by="bob")
            assert tuple(trust.parse(Records((record,)).updated(updated).to_json())) == (updated,)


def test_an_update_obeys_the_rules_of_new_records_and_changes_no_other() -> None:
    record, other = oidc(), aws()
    records = Records((record, other))

    narrowed = records.updated(update(record, role=Role.READER))
    assert [one.name for one in narrowed] == ["network", "people"]
    assert narrowed.named("people") is other
    for wrong, rule in (
        ({"scope": []}, "scope pattern"),
        ({"scope": ["a b"]}, "scope pattern"),
        ({"description": "x" * 327_680}, "327680 bytes"),
    ):
        with pytest.raises(ValueError, match=rule):
            records.updated(update(record, **wrong))


def test_a_record_of_the_same_name_that_is_re_created_has_another_id() -> None:
    assert oidc().id != oidc().id
    assert aws().id != aws().id


@pytest.mark.parametrize(
    ("claims", "value", "matches"),
    [
        ({"repository": "acme/network"}, {}, True),
        ({"repository": "acme/network", "ref": "refs/heads/main"}, {}, True),
        ({"repository": "acme/network", "ref": "refs/heads/main"}, {"ref": "refs/heads/next"}, False),
        ({"repository": "acme/network"}, {"repository": "acme/network2"}, False),
        ({"repository": "acme/network"}, {"repository": "Acme/Network"}, False),
        ({"repository": "acme/network"}, {"repository": ["acme/network"]}, False),
        ({"repository": "acme/network"}, {"repository": {"acme/network": True}}, False),
        ({"repository": "acme/network"}, {"repository": None}, False),
        ({"repository": "acme/*"}, {}, False),
        ({"repository_id": "74"}, {"repository_id": "74"}, True),
        ({"repository_id": "74"}, {"repository_id": 74}, True),
        ({"repository_id": "74"}, {"repository_id": 74.0}, False),
        ({"repository_id": "74"}, {"repository_id": 740}, False),
        ({"repository_id": "1"}, {"repository_id": True}, False),
        ({"repository": "acme/network", "protected": "true"}, {"protected": True}, True),
        ({"repository": "acme/network", "protected": "true"}, {"protected": "true"}, True),
        ({"repository": "acme/network", "protected": "true"}, {"protected": False}, False),
        ({"repository": "acme/network", "protected": "true"}, {"protected": 1}, False),
        ({"repository": "acme/network", "absent": "None"}, {}, False),
        ({"repository": "acme/network", "absent": "null"}, {"absent": None}, False),
        ({"repository": "acme/network"}, {"iss": GITLAB}, False),
        ({"repository": "acme/network"}, {"iss": GITHUB + "/"}, False),
        ({"repository": "acme/network"}, {"iss": [GITHUB]}, False),
        ({"repository": "acme/network"}, {"aud": "holdfast2"}, False),
        ({"repository": "acme/network"}, {"aud": ["another", AUDIENCE]}, True),
        ({"repository": "acme/network"}, {"aud": ["another"]}, False),
        ({"repository": "acme/network"}, {"aud": []}, False),
        ({"repository": "acme/network"}, {"aud": [[AUDIENCE]]}, False),
        ({"repository": "acme/network"}, {"aud": {AUDIENCE: 1}}, False),
        ({"repository": "acme/network"}, {"aud": None}, False),
    ],
)
def test_a_record_matches_a_token_with_its_issuer_its_audience_and_each_of_its_claims(
    claims: Mapping[str, str], value: Mapping[str, Any], matches: bool
) -> None:
    record = oidc(claims=claims)
    found = Records().added(record).for_claims(token(**value))
    assert found == (record if matches else None)


def test_of_several_that_match_the_one_with_most_claims_wins_and_then_the_first_by_name() -> None:
    loose = oidc("a-loose")
    strict_z = oidc("z", claims={"repository": "acme/network", "ref": "refs/heads/main"})
    strict_b = oidc("b", claims={"ref": "refs/heads/main", "repository": "acme/network"})
    assert Records((loose, strict_z, strict_b)).for_claims(token()) == strict_b
    assert Records((strict_z, loose)).for_claims(token()) == strict_z
    assert Records((strict_z, loose)).for_claims(token(ref="refs/heads/next")) == loose


def test_an_iam_role_is_found_by_its_exact_name_and_has_one_record_as_has_a_name() -> None:
    records = Records().added(aws("deployers", aws_role="Deployer")).added(oidc())
    found = records.for_aws_role("Deployer")
    assert found is not None
    assert found.name == "deployers"
    for other in ("deployer", "Deployer2", "Deploye", "", "*"):
        assert records.for_aws_role(other) is None
    with pytest.raises(ValueError, match="already has the trust record 'deployers'"):
        records.added(aws("others", aws_role="Deployer"))
    with pytest.raises(ValueError, match="the trust record 'network' already exists"):
        records.added(aws("network"))


def test_records_are_found_by_name_and_by_issuer_and_go_by_name() -> None:
    one, two, three = oidc("one"), oidc("two", issuer=ISSUER), aws("three")
    records = Records((one, two, three))
    assert records.named("three") == three
    assert records.named("four") is None
    assert records.oidc(GITHUB) == (one,)
    assert records.oidc(ISSUER + "/") == ()
    assert records.without("one") == Records((two, three))
    assert records.without("four") == records


def test_there_is_room_for_500_records_and_256_kib() -> None:
    full = Records(tuple(oidc(f"n{number}", description="") for number in range(500)))
    with pytest.raises(ValueError, match="at most 500"):
        full.added(oidc("one-more"))
    with pytest.raises(ValueError, match="262144 bytes"):
        Records().added(oidc(description="x" * 262_144))
    assert len(trust.parse(full.to_json()).records) == 500


def test_a_record_can_be_narrowed_where_there_is_no_room_for_another() -> None:
    record = oidc(description="x")
    spare = 262_144 - len(Records((record,)).to_json())
    full = Records().added(replace(record, description="x" * (spare + 1)))
    assert len(full.to_json()) == 262_144
    with pytest.raises(ValueError, match="262144 bytes"):
        full.added(aws())

    [there] = full
    narrowed = update(there, role=Role.READER, scope=["a"])
    assert tuple(trust.parse(full.updated(narrowed).to_json())) == (narrowed,)


@pytest.mark.parametrize("name", ["", "A", "a b", "a_b", "-a", "a/b", "../a", "a" * 64, "ä", "a\n"])
def test_a_name_that_breaks_the_rule_is_refused(name: str) -> None:
    for make in (oidc, aws):
        with pytest.raises(ValueError, match="not a valid name of a trust record"):
            make(name)


@pytest.mark.parametrize(
    "issuer",
    [
        "",
        "token.actions.githubusercontent.com",
        "http://token.actions.githubusercontent.com",
        "http://127.0.0.1.example.com",
        "http://10.0.0.1:8080",
        "ftp://example.com",
        "https://",
        "https:///path",
        *(f"https://{user}@example.com" for user in ("user", "user:secret", "")),
        *(f"https://example.com{rest}" for rest in ("?x=1", "?", "#x", "#", ":port", ":99999", "\n")),
        "https://exa mple.com",
        "https://exämple.com",
        "https://[::1",
        "javascript:alert(1)",
        "file:///etc/passwd",
    ],
)
def test_an_issuer_that_is_not_a_plain_https_address_is_refused(issuer: str) -> None:
    with pytest.raises(ValueError, match="the issuer"):
        oidc(issuer=issuer, claims={"sub": "x"})


@pytest.mark.parametrize(
    "issuer",
    [
        *(ISSUER, ISSUER + "/", "https://a:8443"),
        *("http://127.0.0.1:8080", "http://localhost:1/x", "http://[::1]:9"),
    ],
)
def test_an_issuer_is_accepted_as_it_is_written(issuer: str) -> None:
    assert oidc(issuer=issuer, claims={"sub": "x"}).issuer == issuer


@pytest.mark.parametrize(
    ("issuer", "claims", "rule"),
    [
        (ISSUER, {}, "at least one claim"),
        (ISSUER, {"": "x"}, "needs a name and a value"),
        (ISSUER, {"sub": ""}, "needs a name and a value"),
        *(
            (ISSUER, {"sub": "x", own: "1"}, "checks it for every ID token")
            for own in ("iss", "aud", "exp", "nbf", "iat", "jti")
        ),
        (GITHUB, {"ref": "refs/heads/main"}, "many organizations share the issuer"),
        (GITHUB, {"environment": "production", "actor": "ada"}, "many organizations share the issuer"),
        (
            GITHUB,
            {"job_workflow_ref": "acme/ci/.github/workflows/a.yml@main"},
            "many organizations share the issuer",
        ),
        (GITHUB + "/", {"ref": "refs/heads/main"}, "many organizations share the issuer"),
        (GITLAB, {"ref": "main"}, "many organizations share the issuer"),
        ("https://accounts.google.com", {"email_verified": "true"}, "many organizations share the issuer"),
        ("https://agent.buildkite.com", {"build_branch": "main"}, "many organizations share the issuer"),
        ("https://app.terraform.io", {"terraform_run_phase": "apply"}, "many organizations share the issuer"),
        (GITLAB, {"repository": "acme/network"}, "many organizations share the issuer"),
    ],
)
def test_claims_that_would_let_everybody_in_are_refused(
    issuer: str, claims: Mapping[str, str], rule: str
) -> None:
    with pytest.raises(ValueError, match=rule):
        oidc(issuer=issuer, claims=claims)


@pytest.mark.parametrize(
    ("issuer", "claim"),
    [
        *(
            (GITHUB, claim)
            for claim in ("sub", "repository", "repository_id", "repository_owner", "repository_owner_id")
        ),
        *(
            (GITLAB, claim)
            for claim in ("sub", "project_path", "project_id", "namespace_path", "namespace_id")
        ),
        (ISSUER, "anything"),
    ],
)
def test_a_claim_that_names_an_owner_is_enough(issuer: str, claim: str) -> None:
    assert oidc(issuer=issuer, claims={claim: "x"}).claims == {claim: "x"}


@pytest.mark.parametrize(
    ("make", "changed", "rule"),
    [
        *(
            (aws, {"aws_role": name}, "not a valid name of an IAM role")
            for name in ("", "a/b", "*", "Deployer*", "a" * 65, "a b", "é", "arn:aws:iam::1:role/x", "a\n")
        ),
        (oidc, {"audience": ""}, "audience"),
        *((make, {"scope": scope}, "scope pattern") for make in (oidc, aws) for scope in ([], ["a b"])),
    ],
)
def test_a_record_without_a_valid_role_audience_or_scope_is_refused(
    make: Callable[..., trust.Trust], changed: Mapping[str, Any], rule: str
) -> None:
    with pytest.raises(ValueError, match=rule):
        make(**changed)


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{}", b"[]", b"null", b"no json"),
        *(b'{"records": 7}', b'{"records": "a"}', b'{"records": {"a": 1}}'),
    ],
)
def test_what_are_not_valid_records_is_an_error_and_not_a_denial(body: bytes) -> None:
    with pytest.raises(ValueError, match="not valid trust records"):
        trust.parse(body)


DAMAGE: Mapping[str, list[object]] = {
    "kind": ["saml", None],
    "name": ["A"],
    "id": ["", 7],
    "role": ["king"],
    "scope": [[], "*"],
    "claims": [{}, [], {"repository": 7}, {"ref": "refs/heads/main"}],
    "issuer": ["http://example.com", None],
    "audience": ["", ["holdfast"]],
    "created": ["yesterday"],
    "created_by": [None],
    "updated": ["yesterday"],
    "updated_by": [None],
}


def with_stored(*stored: object, **members: object) -> Records:
    return trust.parse(json.dumps({"records": stored, **members}).encode())


def as_stored(record: trust.Trust, **changed: object) -> dict[str, Any]:
    (document,) = json.loads(Records((record,)).to_json())["records"]
    return {**document, **changed}


def without(document: Mapping[str, Any], *members: str) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in members}


@pytest.mark.parametrize(("member", "value"), [(name, each) for name in DAMAGE for each in DAMAGE[name]])
def test_a_damaged_record_opens_nothing_stays_as_it_is_and_harms_no_other(member: str, value: object) -> None:
    damaged, other, people = as_stored(oidc(), **{member: value}), oidc("other", issuer=ISSUER), aws()
    records = with_stored(damaged, as_stored(other), as_stored(people))

    assert tuple(records) == (other, people)
    assert [one.stored for one in records.unreadable] == [damaged]
    assert not isinstance(records.for_claims(token()), trust.OidcTrust)
    assert records.for_claims(token(iss=ISSUER)) == other
    assert records.for_aws_role(people.aws_role) == people
    changed = records.without("other").added(aws("more", aws_role="More"))
    assert json.loads(changed.to_json())["records"][0] == damaged


@pytest.mark.parametrize("stored", [7, None, "a", [], {}, ["name"], {"name": 7, "id": []}])
def test_what_is_no_record_at_all_is_kept_and_is_for_nobody(stored: object) -> None:
    records = with_stored(stored, as_stored(oidc()))
    assert [one.name for one in records] == ["network"]
    assert records.for_claims(token()) == records.named("network")
    assert json.loads(records.to_json())["records"][0] == stored


def test_two_records_for_the_same_open_nothing_and_harm_no_other() -> None:
    people = aws("people", aws_role="People")
    for two in ((oidc(), oidc()), (aws("a"), aws("b")), (oidc("a"), aws("a"))):
        records = trust.parse(Records((*two, people)).to_json())
        assert tuple(records) == (people,)
        assert not isinstance(records.for_claims(token()), trust.OidcTrust)
        assert not isinstance(records.for_aws_role(aws().aws_role), trust.AwsTrust)
        assert records.for_aws_role("People") == people


STRICT = {"repository": "acme/network", "ref": "refs/heads/main"}
NOT_UNDERSTOOD: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "several grants instead of role and scope": lambda one: {**without(one, "role", "scope"), "grants": []},
    "an unknown role": lambda one: {**one, "role": "king"},
    "no scope": lambda one: without(one, "scope"),
    "unreadable claims": lambda one: {**one, "claims": {"repository": 7}},
    "no claims": lambda one: without(one, "claims"),
    "an unreadable audience and claims": lambda one: {**one, "audience": ["a"], "claims": None},
}


@pytest.mark.parametrize("change", NOT_UNDERSTOOD.values(), ids=NOT_UNDERSTOOD)
def test_no_wider_record_applies_in_place_of_one_that_is_not_understood(
    change: Callable[[Mapping[str, Any]], dict[str, Any]],
) -> None:
    loose, strict = oidc("a-loose", role=Role.MAINTAINER, scope=["*"]), change(as_stored(oidc(claims=STRICT)))
    records = with_stored(as_stored(loose), strict)

    found = records.for_claims(token())
    assert isinstance(found, trust.Unreadable)
    assert found.stored == strict
    assert wider_record_applies(trust.parse(Records(tuple(records)).to_json())), "no test of the place"
    if isinstance(strict.get("claims"), dict) and strict["claims"] == STRICT:
        assert records.for_claims(token(ref="refs/heads/next")) == loose


def wider_record_applies(records: Records) -> bool:
    """Return whether it does if records that are not understood are dropped before the match is chosen."""
    found = records.for_claims(token())
    return isinstance(found, trust.OidcTrust) and found.grants[0].role is Role.MAINTAINER


def test_a_record_that_is_not_understood_applies_to_nobody_else() -> None:
    strict = as_stored(oidc("strict", claims=STRICT, audience="other"), role="king")
    loose = oidc("loose")
    records = with_stored(strict, as_stored(loose), as_stored(aws(), role="king"))
    assert records.for_claims(token()) == loose
    assert records.for_claims(token(repository="acme/dns")) is None
    assert isinstance(records.for_aws_role(aws().aws_role), trust.Unreadable)
    assert records.for_aws_role("Developer") is None

"""Owners: which names a record may have, how far they travel, and that they decide nothing."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.authorizer_context import decode, encode
from holdfast.access import Caller, Grant, Role, named
from holdfast.identity import sessions, tokens, trust
from holdfast.identity.authentication import Authenticated, AuthMethod, Denied
from holdfast.identity.credentials import SessionCredentials, TokenCredentials
from holdfast.identity.oidc import verify
from holdfast.identity.session_exchange import for_aws_role
from holdfast.identity.tokens import Token
from holdfast.s3 import object_metadata
from tests.support import management as sent
from tests.support import release_0_2
from tests.support.api_stub import ApiStub, Reply
from tests.support.events import ANYWHERE
from tests.support.id_tokens import RSA, Published, aws_record, claims, record, signed
from tests.support.management import ID, NAME, output
from tests.unit.test_documents import S3_METADATA_LIMIT, S3_METADATA_PREFIX

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
BEA = "bea@example.com"
GRANTS = (Grant(Role.WRITER, ("network/*",)),)
OWNERS = ("", BEA, "Zoë Müller", "王小明", 'the "platform" team & co (CI)', "x" * 200)
REFUSED = (
    *("\x1b[31mbea", "bea\nadmin", "bea\r", "bea\tx", "bea\x00", "bea\x7f", "bea\x85", "bea\u2028admin"),
    *("\u202ebea", "bea\u200f", "\u2066bea\u2069", "bea\u061c", "\ufeffbea", "bea\xa0x", "\ud800"),
    *("<b>bea", "bea>", " bea", "bea ", "x" * 201, "ü" * 34),
)
BAD_FORMS = (None, 7, ["bea"], {"name": "bea"})


def a_token(owner: str = BEA) -> tuple[Token, str]:
    return tokens.create(GRANTS, description="", created_by="x", now=NOW, expires=None, owner=owner)


# --- which names ------------------------------------------------------------------------------------


@pytest.mark.parametrize("owner", REFUSED)
@pytest.mark.parametrize(
    "create",
    [
        a_token,
        lambda owner: record(owner=owner),
        lambda owner: aws_record(owner=owner),
        lambda owner: trust.update(
            record(), change=trust.Change(), description=None, owner=owner, updated_by="x", now=NOW
        ),
    ],
    ids=["token", "OIDC", "AWS", "update"],
)
def test_a_name_that_would_deceive_a_reader_is_refused_at_creation(
    owner: str, create: Callable[[str], object]
) -> None:
    with pytest.raises(ValueError, match="an owner"):
        create(owner)


@pytest.mark.parametrize("owner", [*REFUSED, *BAD_FORMS])
def test_a_record_that_was_edited_by_hand_to_such_a_name_lets_nobody_in(owner: object) -> None:
    edited = {**json.loads(a_token()[0].to_json()), "owner": owner}
    with pytest.raises(ValueError, match="not a valid token record"):
        Token.from_json(json.dumps(edited).encode())

    stored = json.loads(trust.Records((record(), aws_record())).to_json())
    stored["records"][0]["owner"] = owner
    found = trust.parse(json.dumps(stored).encode())
    assert [one.name for one in found.unreadable] == ["network"]
    assert [one.name for one in found] == ["people"]


@pytest.mark.parametrize("owner", OWNERS)
def test_a_name_comes_back_as_it_was_stored_and_is_shown_before_the_principal(owner: str) -> None:
    token, _ = a_token(owner)
    assert Token.from_json(token.to_json()) == token
    assert (token.newer, token.caller.owner) == ({}, owner)
    stored = trust.Records((record(owner=owner), aws_record(owner=owner)))
    assert trust.parse(stored.to_json()) == stored
    assert named("token:x", owner) == (f"{owner} (token:x)" if owner else "token:x")


# --- who decides ------------------------------------------------------------------------------------


def test_a_caller_is_the_same_whoever_the_owner_is() -> None:
    assert (
        Caller("token:x", GRANTS, BEA) == Caller("token:x", GRANTS, "somebody") == Caller("token:x", GRANTS)
    )


def owner_of(outcome: Authenticated | Denied) -> str:
    assert isinstance(outcome, Authenticated)
    assert outcome.log_fields()["owner"] == outcome.caller.owner
    travelled = decode(encode(outcome))
    assert travelled == outcome
    assert travelled.caller.owner == outcome.caller.owner
    return outcome.caller.owner


def test_each_way_to_sign_in_takes_the_owner_from_the_record_as_it_is_now() -> None:
    token, secret = a_token()
    assert owner_of(tokens.authenticate(TokenCredentials(token.id, secret), token, now=NOW)) == BEA

    granted_by = record(owner=BEA)
    published = Published(RSA)
    bearer = verify.verify(signed(RSA, claims()), trust.Records((granted_by,)), published.issuers)
    assert owner_of(bearer) == BEA
    people = aws_record(owner="all developers")
    arn = f"arn:aws:sts::123456789012:assumed-role/{people.aws_role}/ada"
    signed_in = for_aws_role(arn, "123456789012", lambda: trust.Records((people,)), ANYWHERE)
    assert owner_of(signed_in) == "all developers"

    assert isinstance(bearer, Authenticated)
    session, secret = sessions.create(bearer, now=NOW, seconds=300)
    assert BEA.encode() not in session.to_json()
    renamed = trust.Records((replace(granted_by, owner="the network team"),))
    credentials = SessionCredentials(session.id, secret)
    assert owner_of(sessions.authenticate(credentials, session, renamed, now=NOW)) == "the network team"


# --- with functions of 0.2.0 ---------------------------------------------------------------------------


def test_functions_of_0_2_read_what_an_owner_is_added_to_as_if_it_had_none() -> None:
    token, _ = a_token()
    assert release_0_2.token(token.to_json()) == release_0_2.token(replace(token, owner="").to_json())
    owned, plain = (trust.Records((replace(record(), id="i" * 20, owner=owner),)) for owner in (BEA, ""))
    assert release_0_2.trust(owned.to_json()) == release_0_2.trust(plain.to_json())
    context = encode(Authenticated(Caller("token:x", GRANTS, BEA), AuthMethod.TOKEN))
    assert release_0_2.decode(context) == release_0_2.Caller("token:x", "writer", ("network/*",))


def test_records_and_contexts_of_0_2_have_no_owner() -> None:
    document = json.loads(a_token()[0].to_json())
    del document["owner"]
    assert Token.from_json(json.dumps(document).encode()).owner == ""
    older = decode(release_0_2.encode(release_0_2.Caller("token:x", "writer", ("network/*",))))
    assert older is not None
    assert older.caller.owner == ""
    assert encode(older) == encode(Authenticated(Caller("token:x", GRANTS), AuthMethod.TOKEN))


# --- the sum of the metadata --------------------------------------------------------------------------


@given(st.integers(1500, 2048), st.sampled_from(OWNERS))
def test_metadata_has_a_whole_owner_or_none_and_never_more_than_s3_accepts(others: int, owner: str) -> None:
    metadata = {f"name-{number}": "x" * (others // 10 - 17) for number in range(10)}

    stored = object_metadata.with_owner(metadata, owner)

    def size(metadata: dict[str, str]) -> int:
        return sum(
            len(S3_METADATA_PREFIX) + len(name) + len(value)
            for name, value in object_metadata.encode_all(metadata).items()
        )

    assert stored == (metadata | {"owner": owner} if "owner" in stored else metadata)
    assert ("owner" in stored) is (owner != "" and size(metadata | {"owner": owner}) <= S3_METADATA_LIMIT)
    assert object_metadata.fits(owner)


# --- what people see ------------------------------------------------------------------------------------

PRINCIPAL = f"token:{ID}"
SHOWN = f"{BEA} ({PRINCIPAL})"
LOCK = sent.lock(owner=BEA, principal=PRINCIPAL)
FROZEN = {**sent.freeze(by=PRINCIPAL), "owner": BEA}
VERSION = sent.version("v", 1, "2026-11-20T12:00:00Z", owner=BEA, principal=PRINCIPAL)
EVENT = {"time": "2026-11-20T12:00:00Z", "event": "state.written", "principal": PRINCIPAL, "owner": BEA}


@pytest.mark.parametrize(
    ("command", "reply", "text"),
    [
        ("lock list", sent.page("locks", {"name": NAME, **LOCK}), f"  {SHOWN}  bob@desk  "),
        (
            "lock show",
            sent.answer({"name": NAME, "lock": LOCK}),
            f"locked by    {SHOWN}\n  client says  bob@desk\n",
        ),
        ("lock show", sent.answer({"name": NAME, "lock": FROZEN}), f"frozen by  {SHOWN}\n"),
        (
            "state list",
            sent.page("states", {"name": NAME, "lock": LOCK}),
            f'locked by {SHOWN} (client says "bob@desk") for',
        ),
        (
            "state show",
            sent.answer(sent.state(owner=BEA, principal=PRINCIPAL)),
            f'  {SHOWN} (client says "bob@desk")\n',
        ),
        ("state history", sent.page("versions", VERSION), f'  {SHOWN} (client says "bob@desk")  '),
        ("state history", sent.page("versions", {**VERSION, "who": PRINCIPAL}), f"  {SHOWN}  "),
        ("activity", sent.page("events", EVENT), f"  {SHOWN}  "),
        ("whoami", sent.answer({"principal": PRINCIPAL, "owner": BEA}), f"  {SHOWN}\n"),
        (
            "lock list",
            sent.page("locks", {"name": NAME, **LOCK, "owner": "\x1b[2Jbea\u202e"}),
            f"  ?[2Jbea? ({PRINCIPAL})",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and PRINCIPAL not in value else "",
)
def test_the_command_shows_the_owner_with_the_principal(
    stub: ApiStub, command: str, reply: Reply, text: str
) -> None:
    stub.reply(reply)
    of_one = command in ("lock show", "state show", "state history")
    assert text in output(stub, *command.split(), *([NAME] if of_one else []))

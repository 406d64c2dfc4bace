"""Requests that a role, a token or an AWS user of a team must not make, each beside a request that works."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError

from holdfast.identity import trust
from local_aws.server import LocalAws
from tests.support import documents
from tests.support.access_records import trust_role
from tests.support.deployed import client, new_user
from tests.support.http_client import Client, Response
from tests.support.permissions_judged import Roles
from tests.support.team import Team

STATE, LOCK, TOKEN = "states/{}.tfstate", "states/{}.tfstate.tflock", "tokens/{}.json"
SESSION, TRUST, WORKSPACE = "sessions/{}.json", trust.KEY, "workspaces/{}.json"


@dataclass(frozen=True, slots=True)
class S3Call:
    """A request to S3.

    `operation` is the name of the client's method. `key` has `{}` for a name; it is empty for a request to
    the bucket. `of_version`: it names the object's current version.
    """

    operation: str
    key: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    of_version: bool = False

    def __str__(self) -> str:
        return f"{self.operation}-{self.key.format('x')}{'-version' if self.of_version else ''}".strip("-")

    def send(self, s3: Any, team: Team, name: str) -> str:
        """Send it to a team's bucket; return `allowed`, or the code of S3's refusal."""
        arguments = {"Bucket": team.bucket, **self.arguments}
        if self.key:
            key = arguments["Key"] = self.key.format(name)
            if self.of_version:
                arguments["VersionId"] = team.s3.head_object(Bucket=team.bucket, Key=key)["VersionId"]
        try:
            getattr(s3, self.operation)(**arguments)
        except ClientError as error:
            # The response to a HEAD has no body, so it has only the status.
            return {"403": "AccessDenied"}.get(code := error.response["Error"]["Code"], code)
        return "allowed"


def get(key: str, *, of_version: bool = False) -> S3Call:
    return S3Call("get_object", key, of_version=of_version)


def put(key: str, **arguments: Any) -> S3Call:
    return S3Call("put_object", key, {"Body": b"{}", **arguments})


def delete(key: str, *, of_version: bool = False, **arguments: Any) -> S3Call:
    return S3Call("delete_object", key, arguments, of_version)


HEAD: Final = S3Call("head_object", STATE)
LIST: Final = S3Call("list_objects_v2")
LIST_VERSIONS: Final = S3Call("list_object_versions")
POLICY: Final = S3Call("get_bucket_policy")
RETAIN: Final = S3Call(
    "put_object_retention",
    STATE,
    {"Retention": {"Mode": "GOVERNANCE", "RetainUntilDate": datetime.now(UTC) + timedelta(hours=1)}},
    of_version=True,
)


def fill(team: Team, name: str, call: S3Call) -> None:
    """Put the object that a request names, or a state if the request names the bucket."""
    team.put((call.key or STATE).format(name), documents.state())


@pytest.fixture(autouse=True)
def trust_kept(teams: dict[str, Team]) -> Iterator[None]:
    """Restore the trust records, which are all in one object, after each test."""
    before = {name: teams[name].object(TRUST) for name in ("strict", "loose")}
    yield
    for name, records in before.items():
        if records is None:
            teams[name].s3.delete_object(Bucket=teams[name].bucket, Key=TRUST)
        else:
            teams[name].put(TRUST, records)


# --- the functions' own roles -----------------------------------------------------------------------

_LOCKS: Final = (get(LOCK), put(LOCK), delete(LOCK), delete(LOCK, of_version=True))
_STATES: Final = (get(STATE), HEAD, put(STATE), delete(STATE), *_LOCKS, LIST)

MAY: Final[Mapping[str, tuple[S3Call, ...]]] = {
    "backend": _STATES,
    "cloud": (
        *(*_STATES, get(STATE, of_version=True), LIST_VERSIONS),
        *(get(WORKSPACE), put(WORKSPACE), delete(WORKSPACE)),
    ),
    "management": (
        *(*_STATES, get(STATE, of_version=True), LIST_VERSIONS),
        *(get(WORKSPACE), put(WORKSPACE), delete(WORKSPACE)),
    ),
    "authorizer": (get(TOKEN), get(SESSION), get(TRUST), LIST),
    "sessions": (get(TRUST), put(SESSION), LIST),
    "audit_trail": (),
}
EVERY: Final = (
    *(call(key) for key in (STATE, LOCK, TOKEN, SESSION, TRUST, WORKSPACE) for call in (get, put, delete)),
    *(get(key, of_version=True) for key in (STATE, LOCK, TOKEN, SESSION, TRUST, WORKSPACE)),
    *(delete(key, of_version=True) for key in (STATE, LOCK, TOKEN, SESSION, TRUST, WORKSPACE)),
    *(HEAD, LIST, LIST_VERSIONS, POLICY, RETAIN),
    delete(STATE, of_version=True, BypassGovernanceRetention=True),
)


@pytest.mark.parametrize("function", MAY)
def test_a_function_reaches_what_is_its_own_and_nothing_else_of_its_team_or_of_another(
    teams: dict[str, Team], roles: Roles, state: str, function: str
) -> None:
    own, other = teams["strict"], teams["loose"]
    refused = [call for call in EVERY if call not in MAY[function]]
    assert len(refused) == len(EVERY) - len(MAY[function])

    for team, calls in ((own, refused), (other, MAY[function])):
        for call in calls:
            fill(team, state, call)
        with team.unchanged():
            answers = [(str(call), call.send(roles["strict", function].s3, team, state)) for call in calls]
        assert answers == [(str(call), "AccessDenied") for call in calls]

    allowed = [(own, own.s3, refused)]
    allowed += [(team, roles[team.name, function].s3, [*MAY[function]]) for team in (own, other)]
    for team, s3, calls in allowed:
        for call in calls:
            fill(team, state, call)
            assert call.send(s3, team, state) == "allowed", call


# --- two teams side by side --------------------------------------------------------------------------

both_ways = pytest.mark.parametrize(("own", "other"), [("strict", "loose"), ("loose", "strict")])


@pytest.fixture(scope="module")
def users(aws: LocalAws, teams: dict[str, Team]) -> Mapping[str, Any]:
    """For each team, the S3 client of an AWS user with all permissions on that team's bucket."""
    iam = client(aws, "iam")
    found = {}
    for name in ("strict", "loose"):
        bucket = f"arn:aws:s3:::{teams[name].bucket}"
        everything = {"Effect": "Allow", "Action": "s3:*", "Resource": [bucket, f"{bucket}/*"]}
        found[name] = client(aws, "s3", new_user(iam, f"of-{name}", everything))
    return found


OF_ANOTHER_TEAM: Final = (
    *(get(STATE), get(STATE, of_version=True), HEAD, delete(STATE)),
    *(get(LOCK), delete(LOCK), delete(LOCK, of_version=True)),
    *(call(key) for key in (TOKEN, SESSION, TRUST) for call in (get, put, delete)),
    *(LIST, LIST_VERSIONS, POLICY),
)
OF_NOBODY: Final = (put(STATE, IfNoneMatch="*"), put(LOCK, IfNoneMatch="*"))
"""Requests for objects that do not exist."""


@both_ways
def test_an_aws_user_of_one_team_gets_nothing_of_the_other(
    teams: dict[str, Team], users: Mapping[str, Any], state: str, own: str, other: str
) -> None:
    def refusals(calls: tuple[S3Call, ...], name: str) -> dict[str, str]:
        with teams[other].unchanged():
            return {str(call): call.send(users[own], teams[other], name) for call in calls}

    absent = f"{state}-absent"
    for call in OF_ANOTHER_TEAM:
        fill(teams[other], state, call)

    refused = refusals(OF_ANOTHER_TEAM, state) | refusals(OF_NOBODY, absent)
    assert refused == dict.fromkeys(refused, "AccessDenied")
    for call in OF_ANOTHER_TEAM:
        fill(teams[other], state, call)
        assert call.send(users[other], teams[other], state) == "allowed", call
    for call in OF_NOBODY:
        assert call.send(users[other], teams[other], absent) == "allowed", call


INFO: Final = documents.lock_info("8c6b1a3e-53d6-4f0d-9a55-0d2f3d0a7c11")

REQUESTS: Final[Mapping[str, Callable[[Client, str], Response]]] = {
    "read": lambda client, state: client.read(state),
    "lock": lambda client, state: client.lock(f"{state}-free", INFO),
    "write": lambda client, state: client.write(state, documents.state(2), documents.lock_id(INFO)),
    "unlock": lambda client, state: client.unlock(state, INFO),
    "force-unlock": lambda client, state: client.unlock(state, documents.only_id(documents.lock_id(INFO))),
    "delete": lambda client, state: client.delete(f"{state}-unlocked"),
}


@both_ways
@pytest.mark.parametrize("kind", ["token", "session"])
def test_credentials_of_one_team_do_nothing_at_the_others_api(
    teams: dict[str, Team], state: str, own: str, other: str, kind: str
) -> None:
    if kind == "token":
        rightful = teams[other].client("maintainer")
        foreign = teams[other].client_with(teams[own].token("maintainer"))
    else:
        rightful = teams[other].client_with(trust_role(teams[other], f"of-{other}").session(teams[other]))
        foreign = teams[other].client_with(trust_role(teams[own], f"of-{own}").session(teams[own]))
    for verb, request in REQUESTS.items():
        name = f"{state}-{verb}"
        assert rightful.lock(name, INFO).status == 200
        assert rightful.write(name, documents.state(), documents.lock_id(INFO)).status == 200
        teams[other].put(STATE.format(f"{name}-unlocked"), documents.state())

        with teams[other].unchanged():
            refusal = request(foreign, name)

        assert (refusal.status, refusal.json()) == (403, {"message": "Forbidden"}), verb
        assert request(rightful, name).status == 200, verb


@both_ways
def test_an_iam_role_that_one_team_trusts_gets_no_session_of_the_other(
    teams: dict[str, Team], own: str, other: str
) -> None:
    caller = trust_role(teams[own], f"of-{own}-alone")

    with teams[other].unchanged():
        refusal = caller.ask_for_session(teams[other])

    assert refusal.error == (403, "not_allowed")
    assert caller.ask_for_session(teams[own]).status == 200

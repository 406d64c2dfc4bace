"""Makes a team's functions send every kind of call to AWS that they can send."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import uuid4

from holdfast.access import Role
from holdfast.identity import trust
from holdfast.names import RESERVED
from tests.support import documents
from tests.support.access_records import new_token, trust_role
from tests.support.aws_caller import assume
from tests.support.cloud_client import CloudClient, place
from tests.support.http_client import Client, Credentials, Response
from tests.support.team import Team


def new_client(team: Team, role: Role = Role.MAINTAINER) -> Client:
    """Return a client with a new token, so that the gateway must call the authorizer."""
    return team.client_with(new_token(team, role)[1])


def retain_lock(team: Team, state: str) -> None:
    """Put the current lock under retention, as a bucket's default retention would."""
    key = f"states/{state}.tfstate.tflock"
    team.s3.put_object_retention(
        Bucket=team.bucket,
        Key=key,
        VersionId=team.s3.head_object(Bucket=team.bucket, Key=key)["VersionId"],
        Retention={"Mode": "GOVERNANCE", "RetainUntilDate": datetime.now(UTC) + timedelta(hours=1)},
    )


def drive(team: Team, name: str, *, require_lock: bool, locks_retained: bool, declared: bool) -> None:
    """Send every verb, as every role, and reach every branch that sends another call to AWS.

    The names of the states begin with `name`, which must be new. `locks_retained`: the team's bucket puts
    every lock under retention. `declared`: names must be declared.
    """
    if declared:
        undeclared(team, f"{name}/undeclared")
        for state in ("none", "states", "locks"):
            _expect(manage(new_client(team), "POST", f"create/{name}/{state}", {}), 200)
    sign_in(team, name)
    sessions(team, name)
    states(team, f"{name}/states")
    locks(team, f"{name}/locks")
    workspace(team, f"{name}/workspace", declared=declared)
    management(team, f"{name}/managed")
    download(team, f"{name}/large")
    probe(team)
    _expect(team.client(None).request("GET", "/health"), 200)
    # A team can leave the console out.
    assert team.client(None).request("GET", "/console/").status in (200, 400)
    if not locks_retained:
        retained_lock(team, f"{name}/retained")
        retained_freeze(team, f"{name}/frozen")
    if not require_lock:
        writer = new_client(team, Role.WRITER)
        _expect(writer.write(f"{name}/unlocked", documents.state(1)), 200)
        _expect(writer.write(f"{name}/unlocked", documents.state(2)), 200)


def _expect(answer: Response, status: int) -> None:
    assert answer.status == status, answer


def sign_in(team: Team, name: str) -> None:
    """Authenticate as every role, and with unknown and invalid credentials."""
    for role in Role:
        reading = new_client(team, role)
        # A lock that does not exist, on a route that every role may read.
        _expect(manage(reading, "GET", f"locks/{name}/none"), 200)
    unknown = team.client_with(Credentials("0" * 20, "holdfast_unknown"))
    _expect(unknown.read(f"{name}/none"), 403)
    _expect(team.client_with(Credentials("x", "no token")).read(f"{name}/none"), 403)


def sessions(team: Team, name: str) -> None:
    caller = assume(team, "permissions")
    with without_trust(team):
        _expect(caller.ask_for_session(team), 403)
    trust_role(team, "permissions")
    session = caller.session(team)
    _expect(team.client_with(session).read(f"{name}/none"), 204)
    with without_trust(team):
        # Another header, so that the gateway calls the authorizer again for the same session.
        again = Credentials(session.username, f"{session.password}x")
        _expect(team.client_with(again).read(f"{name}/none"), 403)
    unknown = Credentials(f"session-{'0' * 20}", "holdfast_unknown")
    _expect(team.client_with(unknown).read(f"{name}/none"), 403)


@contextmanager
def without_trust(team: Team) -> Iterator[None]:
    """Remove all trust records within the context."""
    records = team.object(trust.KEY)
    team.s3.delete_object(Bucket=team.bucket, Key=trust.KEY)
    try:
        yield
    finally:
        if records is not None:
            team.put(trust.KEY, records)


def states(team: Team, state: str) -> None:
    maintainer, info = new_client(team), documents.lock_info()
    lock_id = documents.lock_id(info)
    _expect(maintainer.lock(state, info), 200)
    for serial in (1, 2, 2):  # a new state, a successor, and the same bytes
        _expect(maintainer.write(state, documents.state(serial), lock_id), 200)
    _expect(maintainer.unlock(state, info), 200)
    _expect(maintainer.write(state, documents.state(3), lock_id), 409)
    _expect(maintainer.read(state), 200)
    _expect(new_client(team, Role.OUTPUTS).outputs(state), 200)

    # A write must read the content of a state that another program wrote.
    team.put(f"states/{state}.tfstate", documents.state(5))
    _expect(maintainer.lock(state, info), 200)
    _expect(maintainer.write(state, documents.state(6), lock_id), 200)
    _expect(maintainer.unlock(state, info), 200)

    _expect(maintainer.delete(state), 200)
    _expect(maintainer.delete(state), 200)


def locks(team: Team, state: str) -> None:
    """Acquire and release a lock in every way."""
    maintainer, info, other = new_client(team), documents.lock_info(), documents.lock_info(who="bob@laptop")
    _expect(maintainer.lock(state, info), 200)
    _expect(maintainer.lock(state, info), 200)
    _expect(maintainer.lock(state, other), 423)
    _expect(maintainer.unlock(state, info), 200)
    _expect(maintainer.unlock(state, info), 200)

    _expect(maintainer.lock(state, info), 200)
    _expect(maintainer.unlock(state, documents.only_id(documents.lock_id(info))), 200)
    _expect(maintainer.unlock(state, None), 200)


def workspace(team: Team, state: str, *, declared: bool) -> None:
    client = CloudClient(team.gateway.address, new_client(team).credentials, team.tls)
    if declared:
        _expect(client.read(state), 404)
        _expect(client.create(state), 423)
        _expect(manage(new_client(team), "POST", f"create/{state}", {}), 200)
    else:
        _expect(client.read(state), 404)
        _expect(client.create(state), 201)
    workspace, (organization, _) = client.open(state), place(state)
    for value in ("42", "43"):
        tag = {"type": "tag-bindings", "attributes": {"key": "cost-center", "value": value}}
        _expect(client.call("PATCH", f"workspaces/{workspace}/tag-bindings", {"data": [tag]}), 200)
    for query in ("", "?search%5Btags%5D=cost-center"):
        _expect(client.call("GET", f"organizations/{organization}/workspaces{query}"), 200)

    _expect(client.lock(workspace), 200)
    for serial in (1, 2):
        body = documents.state(serial)
        announced = client.announce(workspace, body)
        statuses = client.upload(announced, body, b"{}")
        assert statuses == [200, 200], statuses
        for _ in ("the commit", "when nothing is left of the upload"):
            _expect(client.commit(announced), 200)
    _expect(client.unlock(workspace), 200)
    current = client.current(workspace)
    _expect(client.download(current), 200)
    outputs = client.outputs(workspace)
    _expect(outputs, 200)
    _expect(client.call("GET", f"state-version-outputs/{outputs.json()['data'][0]['id']}"), 200)
    _expect(client.delete(state), 204)


def manage(client: Client, method: str, path: str, document: Mapping[str, object] | None = None) -> Response:
    body = json.dumps(document).encode() if document is not None else None
    return client.request(method, f"/manage/v1/{path}", body)


def undeclared(team: Team, state: str) -> None:
    """Send requests for a name that nobody has declared."""
    client = new_client(team)
    _expect(client.read(state), 423)
    _expect(client.lock(state, documents.lock_info()), 423)


def management(team: Team, state: str) -> None:
    client, info = new_client(team), documents.lock_info()

    def ask(method: str, path: str, document: Mapping[str, object] | None = None) -> Any:
        answer = manage(client, method, path, document)
        _expect(answer, 200)
        return answer.json()

    ask("POST", f"create/{state}", {})
    _expect(client.lock(state, info), 200)
    for serial in (1, 2):
        _expect(client.write(state, documents.state(serial), documents.lock_id(info)), 200)
    other = f"{state}/never"
    ask("POST", f"create/{other}", {})
    ask("POST", f"undeclare/{other}", {"record": ask("GET", f"states/{other}")["record_version"]})
    held = ask("GET", f"locks/{state}")["lock"]
    ask("GET", "locks")
    ask("DELETE", f"locks/{state}?id={quote(held['id'])}&version={quote(held['version'])}")

    for listing in (
        "states",
        "states?deleted=true",
        "states?declared=true",
        "activity",
        "whoami",
        f"states/{state}",
        f"resources/{state}",
    ):
        ask("GET", listing)
    ask("POST", "find", {"type": "terraform_data", "prefix": state})
    _expect(manage(client, "GET", f"states/{state}/none"), 404)
    current, first = (version["version"] for version in ask("GET", f"versions/{state}")["versions"])
    ask("GET", f"diff/{state}?from={first}&to={current}")
    for version in ("", f"?version={first}"):
        ask("GET", f"content/{state}{version}")

    pattern = {"pattern": f"{state}/later/*", "reason": "a test", "id": "f" * 32}
    ask("PUT", "freezes", pattern)
    ask("GET", "freezes")
    ask("DELETE", f"freezes?id={'f' * 32}")
    ask("PUT", f"freeze/{state}", {"reason": "a test", "id": "f" * 32})
    ask("DELETE", f"freeze/{state}?id={'f' * 32}")
    restored = ask("POST", f"restore/{state}", {"version": first, "reason": "a test", "id": "0" * 32})
    ask("POST", f"delete/{state}", {"version": restored["version"]})
    [newest, *_] = ask("GET", f"versions/{state}")["versions"]
    ask("POST", f"undelete/{state}", {"marker": newest["version"]})


def download(team: Team, state: str) -> None:
    """Read a state that is too large for a response, from where its address leads."""
    team.put(f"states/{state}.tfstate", documents.state(1, content="x" * 8_000_000))
    answer = manage(new_client(team), "GET", f"content/{state}")
    _expect(answer, 307)
    url = urlsplit(answer.headers["location"])
    _expect(
        Client(f"{url.scheme}://{url.netloc}", team.tls, None).request("GET", f"{url.path}?{url.query}"), 200
    )


def retained_freeze(team: Team, state: str) -> None:
    """Freeze a state, and unfreeze it while its lock is under retention."""
    client = new_client(team)
    _expect(manage(client, "PUT", f"freeze/{state}", {"reason": "a test", "id": "f" * 32}), 200)
    retain_lock(team, state)
    _expect(manage(client, "DELETE", f"freeze/{state}?id={'f' * 32}"), 200)


def probe(team: Team) -> None:
    """Write and delete a probe, which has a reserved name."""
    state = f"{RESERVED}/{uuid4().hex}"
    maintainer, info = new_client(team), documents.lock_info()
    _expect(maintainer.lock(state, info), 200)
    for serial in (1, 2):
        _expect(maintainer.write(state, documents.probe_state(serial), documents.lock_id(info)), 200)
    _expect(maintainer.unlock(state, info), 200)
    _expect(maintainer.read(state), 200)
    _expect(maintainer.delete(state), 200)


def retained_lock(team: Team, state: str) -> None:
    """Release a lock that is under retention."""
    maintainer, info = new_client(team), documents.lock_info()
    _expect(maintainer.lock(state, info), 200)
    retain_lock(team, state)
    _expect(maintainer.unlock(state, info), 200)

"""The requests to S3 of each request of `cloud {}`, counted at the function's S3 client."""

import base64
from collections.abc import Sequence
from importlib import import_module

import pytest

from tests.contract.cloud_api import (
    BY_NAME,
    ORGANIZATION,
    WORKSPACE,
    announced,
    ask,
    commit,
    create,
    data,
    unlock,
    uploaded,
)
from tests.contract.conftest import CLOUD_BUCKET, Answer, Handle, Server, noted
from tests.support.documents import ADA, state
from tests.support.request_budget import ACQUIRE, FIRST_WRITE, LOOK, READ, RELEASE, WRITE

RECORD_KEY = "workspaces/network/prod.json"
BEGIN = ("GET", "GET")
"""The state, then the lock."""
STAGED = ("GET",)
DISCARD = ("DELETE", "DELETE")


class Client:
    """A client, with the IDs of its workspace, of the version that it read, and of its last upload."""

    def __init__(self, cloud: Handle, moto: Server) -> None:
        self._cloud = cloud
        self._moto = moto
        self._workspace = self._version = self._upload = ""
        self._serial = 0

    def run(self, requests: str) -> tuple[str, ...]:
        """Send requests to the API; return the methods of those that they cause to S3."""
        with noted(vars(import_module("cloud.handler"))["_function"].s3, "host") as sent:
            for request in requests.split():
                getattr(self, request)()
        return tuple(method for method, _ in sent)

    def create(self) -> None:
        answer = ask(self._cloud, "POST", f"{ORGANIZATION}/workspaces", ADA, WORKSPACE)
        self._workspace = data(answer, 201)["id"]

    def open(self) -> None:
        answer = ask(self._cloud, "GET", BY_NAME)
        if answer["statusCode"] != 404:
            self._workspace = data(answer)["id"]

    def describe(self) -> None:
        data(ask(self._cloud, "GET", f"workspaces/{self._workspace}"))

    def tags(self) -> None:
        data(self._get("tag-bindings"))

    def lock(self) -> None:
        data(ask(self._cloud, "POST", f"workspaces/{self._workspace}/actions/lock"))

    def current(self) -> None:
        answer = self._get("current-state-version")
        if answer["statusCode"] != 404:
            self._version = data(answer)["id"]

    def download(self) -> None:
        path = f"state-versions/{self._version}/download"
        assert ask(self._cloud, "GET", path)["statusCode"] == 200

    def outputs(self) -> None:
        data(self._get("current-state-version-outputs"))

    def begin(self) -> None:
        """Create an upload, to which nothing is uploaded."""
        data(create(self._cloud, self._workspace, announced(b"", self._serial + 1)), 201)

    def stage(self) -> None:
        self._serial += 1
        self._upload = uploaded(self._cloud, self._workspace, state(self._serial), self._serial)

    def commit(self) -> None:
        data(commit(self._cloud, self._upload))

    def write_at_once(self) -> None:
        """Send the state with the creation of its version, as clients before Terraform 1.6 do."""
        body = state(self._serial + 1)
        whole = announced(body, self._serial + 1, state=base64.b64encode(body).decode())
        data(create(self._cloud, self._workspace, whole), 201)

    def unlock(self) -> None:
        data(unlock(self._cloud, self._workspace))

    def lose_record(self) -> None:
        """Leave the state alone, as if another protocol had created it."""
        self._moto.direct.delete_object(Bucket=CLOUD_BUCKET, Key=RECORD_KEY)

    def _get(self, path: str) -> Answer:
        return ask(self._cloud, "GET", f"workspaces/{self._workspace}/{path}")


NEW = "create lock"
WRITTEN = "create lock stage commit"


@pytest.mark.parametrize(
    ("before", "verb", "requests"),
    [
        ("", "open", ("GET", "GET")),
        ("", "create", (*LOOK, "PUT", "GET")),
        ("create", "open", ("GET", "GET")),
        (f"{WRITTEN} lose_record", "open", ("GET", "GET", "GET")),
        ("create", "describe", ("GET", "GET")),
        ("create", "tags", ("GET",)),
        (f"{WRITTEN} lose_record", "tags", ("GET",)),
        ("create", "lock", ACQUIRE),
        (NEW, "current", (*READ, *LOOK)),
        (WRITTEN, "current", READ),
        (f"{WRITTEN} current", "download", READ),
        (WRITTEN, "outputs", READ),
        (NEW, "begin", (*BEGIN, *LOOK)),
        (WRITTEN, "begin", BEGIN),
        (f"{NEW} stage", "commit", (*STAGED, *FIRST_WRITE, *DISCARD)),
        (f"{WRITTEN} stage", "commit", (*STAGED, *WRITE, *DISCARD)),
        (WRITTEN, "commit", (*STAGED, *BEGIN)),
        (WRITTEN, "write_at_once", (*BEGIN, *WRITE)),
        (WRITTEN, "unlock", RELEASE),
    ],
)
def test_a_request_sends_no_more_requests_than_promised(
    cloud: Handle, moto: Server, before: str, verb: str, requests: Sequence[str]
) -> None:
    client = Client(cloud, moto)
    client.run(before)
    assert client.run(verb) == requests


@pytest.mark.parametrize(
    ("command", "requests"),
    [
        ("open open lock current download unlock", 9),
        ("open open lock current download stage commit unlock", 18),
        ("open outputs", 3),
    ],
    ids=["plan", "apply", "output"],
)
def test_a_command_sends_what_the_page_about_speed_says(
    cloud: Handle, moto: Server, command: str, requests: int
) -> None:
    """The page also counts the sign-in."""
    client = Client(cloud, moto)
    client.run(f"{WRITTEN} unlock")
    assert len(client.run(command)) == requests

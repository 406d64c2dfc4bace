"""Requests of `cloud {}` and `backend "remote"` whose addresses and retries Terraform does not show."""

import json
from urllib.parse import parse_qs, urlsplit
from urllib.request import Request, urlopen

import pytest

from tests.support import documents
from tests.support.cloud_client import CloudClient, attributes, refusal
from tests.support.team import Team


@pytest.fixture
def writer(strict: Team) -> CloudClient:
    return strict.cloud_client("writer")


def test_an_upload_is_written_once_by_whom_it_was_made_for_and_leaves_nothing_behind(
    strict: Team, state: str, writer: CloudClient
) -> None:
    body = documents.state(1, content="first")
    assert writer.create(state).status == 201
    workspace, another = writer.open(state), writer.open(state)
    assert writer.lock(workspace).status == 200
    assert writer.lock(workspace).status == 200

    # Another process of the same person, which has another ID.
    assert refusal(writer.lock(another)).status == 409
    assert refusal(writer.announce(another, body)).status == 409
    assert refusal(writer.unlock(another)).status == 409
    announced = writer.announce(workspace, body)
    assert announced.status == 201
    assert refusal(writer.commit(announced)).status == 409  # nothing was uploaded
    assert strict.versions(state) == []
    for name in ("hosted-state-upload-url", "hosted-json-state-upload-url"):
        address = urlsplit(attributes(announced)[name])
        assert parse_qs(address.query)["X-Amz-Expires"] == ["900"]
        assert address.hostname != urlsplit(strict.gateway.address).hostname
    assert writer.upload(announced, body, b"{}") == [200, 200]
    assert len(strict.staged(state)) == 2
    assert refusal(strict.cloud_client("maintainer").commit(announced)).status == 409
    assert strict.versions(state) == []
    assert [writer.commit(announced).status for _ in range(3)] == [200] * 3

    [version] = strict.versions(state)
    assert version.body == body
    assert strict.staged(state) == []
    assert version.metadata["lock-id"] == (strict.lock(state) or {})["ID"]
    assert [writer.unlock(workspace).status for _ in range(2)] == [200, 409]
    assert strict.lock(state) is None
    assert refusal(writer.write(workspace, documents.next_serial(body))).status == 409  # its lock is gone
    assert writer.download(writer.current(another)).body == body


def test_a_program_that_is_no_terraform_reads_a_state_where_it_is_told(
    strict: Team, state: str, writer: CloudClient
) -> None:
    body = documents.state(1)
    writer.create(state)
    workspace = writer.open(state)
    writer.lock(workspace)
    assert writer.write(workspace, body).status == 200
    headers = {
        "Authorization": strict.token("reader").bearer,
        "X-Forwarded-Host": "elsewhere.example",
        "Forwarded": "host=elsewhere.example",
    }

    def get(address: str) -> bytes:
        request = Request(address, headers=headers)  # noqa: S310 https, to the deployed API
        with urlopen(request, context=strict.tls) as answer:  # noqa: S310
            return bytes(answer.read())

    for api in (strict.gateway.address, strict.direct_address):
        current = json.loads(get(f"{api}/api/v2/workspaces/{workspace}/current-state-version"))
        address = current["data"]["attributes"]["hosted-state-download-url"]
        assert address.startswith(f"{api}/api/v2/")
        assert get(address) == body


def test_a_forced_unlock_removes_no_lock_but_the_one_that_its_process_saw(
    strict: Team, state: str, writer: CloudClient
) -> None:
    maintainer = strict.cloud_client("maintainer")
    writer.create(state)
    before = maintainer.open(state)
    info = strict.locked(state, "maintainer")
    saw_first = maintainer.open(state)
    assert refusal(writer.force_unlock(saw_first)).status == 403
    assert refusal(maintainer.force_unlock(before)).status == 409  # it saw none
    assert strict.client("maintainer").unlock(state, info).status == 200
    assert maintainer.force_unlock(saw_first).status == 200  # as if the answer had been lost
    assert writer.lock(writer.open(state)).status == 200
    held = strict.lock(state)

    assert refusal(maintainer.force_unlock(saw_first)).status == 409
    young = refusal(maintainer.force_unlock(maintainer.open(state)))

    assert young.status == 409
    assert held is not None
    assert strict.lock(state) == held

"""When the probe of the watch fails."""

from collections.abc import Iterator

import pytest

from holdfast import watching
from holdfast.identity.credentials import TokenCredentials, new_id, new_secret, parse
from tests.support.api_stub import ApiStub, Reply, running
from watch import probe

STATE = watching.new_probe()
PROBE = watching.Probe(TokenCredentials(new_id(), new_secret()), STATE)


@pytest.fixture
def api() -> Iterator[ApiStub]:
    with running() as stub:
        yield stub


@pytest.mark.parametrize(
    ("replies", "outside", "failed", "sent"),
    [
        ([200], False, "", ["PUT", "POST"]),
        ([403], False, "the API responded to PUT /locks with 403", ["PUT"]),
        # A function has no fixed address, so networks refuse it. An invalid token gets the same.
        ([403], True, probe.OUTSIDE, ["PUT"]),
        ([500, 200], False, "", ["PUT", "PUT", "POST"]),
        ([500], True, "the API responded to PUT /locks with 500", ["PUT", "PUT"]),
        ([200, 503], True, "the API responded to POST /unlocks with 503", ["PUT", "POST"]),
        ([423], True, "the API responded to PUT /locks with 423", ["PUT"]),
    ],
)
def test_the_probe_fails_if_the_api_does_not_lock_and_unlock(
    api: ApiStub, replies: list[int], outside: bool, failed: str, sent: list[str]
) -> None:
    api.reply(*map(Reply, replies))
    assert probe.run(api.address, PROBE, outside=outside) == failed
    assert [asked.method for asked in api.asked] == sent
    assert all(asked.path.endswith(f"/{STATE}") for asked in api.asked)
    assert {parse(asked.headers["authorization"]) for asked in api.asked} == {PROBE.credentials}

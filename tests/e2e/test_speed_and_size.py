"""Many requests at once, and the largest states, through AWS's limits."""

import gzip
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from tests.support import documents
from tests.support.aws_gateway import MAX_INVOCATION, Exchange, event_size
from tests.support.http_client import Client, Response
from tests.support.project import NewProject
from tests.support.team import Team

ROUNDS = 50
CROWD = 32
GROWING = (4, 8, 16)
"""Smaller crowds before that, so that no request waits for 32 cold starts on a busy machine."""


def test_of_32_simultaneous_acquires_exactly_one_wins_in_each_of_50_rounds(strict: Team, state: str) -> None:
    client = strict.client("writer")

    def acquire(round_state: str, number: int, barrier: Barrier) -> tuple[str, Response]:
        info = documents.lock_info(who=f"{number}@laptop")
        barrier.wait(60)
        return documents.lock_id(info), client.lock(round_state, info)

    with ThreadPoolExecutor(CROWD) as crowd:
        for number, size in enumerate([*GROWING, *[CROWD] * ROUNDS]):
            name, barrier = f"{state}/{number}", Barrier(size)
            attempts = list(crowd.map(acquire, [name] * size, range(size), [barrier] * size))

            of_status = {
                status: {lock_id for lock_id, answer in attempts if answer.status == status}
                for status in (200, 423, 503)
            }
            # The gateway's answer after 30 s, on a busy machine; Holdfast's own 503 has an error code.
            unknown = of_status[503]
            assert not any("error" in answer.json() for _, answer in attempts if answer.status == 503)
            assert sum(map(len, of_status.values())) == size
            held = (strict.lock(name) or {})["ID"]
            assert of_status[200] == {held} or (not of_status[200] and held in unknown)
            assert {answer.json()["ID"] for _, answer in attempts if answer.status == 423} <= {held}


def test_of_16_simultaneous_unlocked_writes_of_one_serial_exactly_one_counts(loose: Team, state: str) -> None:
    client = loose.client("writer")
    assert client.write(state, documents.state(1)).status == 200
    barrier = Barrier(16)

    def write(number: int) -> Response:
        barrier.wait(60)
        return client.write(state, documents.state(2, content=f"writer {number}"))

    with ThreadPoolExecutor(16) as crowd:
        answers = list(crowd.map(write, range(16)))

    [winner] = [number for number, answer in enumerate(answers) if answer.status == 200]
    assert {answer.status for answer in answers} == {200, 409}
    assert [version.body for version in loose.versions(state)] == [
        documents.state(1),
        documents.state(2, content=f"writer {winner}"),
    ]


def locked_client(team: Team, state: str) -> tuple[Client, str]:
    """A writer that holds the state's lock, and the lock's ID."""
    return team.client("writer"), documents.lock_id(team.locked(state))


def sent_size(exchange: Exchange) -> int:
    """Return the size in bytes of the event for a request."""
    return event_size(exchange.method, exchange.target, exchange.headers, exchange.body)


def read_both_ways(client: Client, state: str) -> set[bytes]:
    """Return the state as read by a client that accepts gzip, and by a client that does not."""
    packed = client.request("GET", f"/states/{state}", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    plain = client.read(state)
    assert plain.status == 200
    return {gzip.decompress(packed.body), plain.body}


def test_the_biggest_state_that_the_platform_takes_can_be_read_and_one_byte_more_is_413(
    strict: Team, state: str
) -> None:
    client, lock_id = locked_client(strict, state)
    # The padding's length has seven digits, so that the Content-Length of both requests has one width.
    first = documents.state(1, content="x" * 5_000_000)
    with strict.gateway.recording() as exchanges:
        assert client.write(state, first, lock_id).status == 200
    biggest = documents.state(2, content="x" * (5_000_000 + MAX_INVOCATION - sent_size(exchanges[0])))

    with strict.gateway.recording() as exchanges:
        assert client.write(state, biggest, lock_id).status == 200
    assert sent_size(exchanges[0]) == MAX_INVOCATION
    assert strict.current(state) == biggest
    assert read_both_ways(client, state) == {biggest}

    with strict.unchanged():
        refused = client.write(state, biggest.replace(b'"serial": 2', b'"serial": 30'), lock_id)
    assert refused.status == 413
    assert "message" in refused.json()
    assert read_both_ways(client, state) == {biggest}


def test_a_state_that_could_not_be_given_back_is_413_from_its_first_byte_on(strict: Team, state: str) -> None:
    client, lock_id = locked_client(strict, state)

    def text(size: int, serial: int) -> bytes:
        """Return a state of this many bytes, nearly all of them beyond ASCII."""
        empty = len(documents.state(serial))
        return documents.state(serial, content="é" * ((size - empty) // 2) + "x" * ((size - empty) % 2))

    # Quoted it would be three times as long, so it is sent as base64: three quarters of the limit.
    accepted, refused = first_refused(
        lambda size: client.write(state, text(size, size), lock_id), 4_600_000, 4_800_000
    )

    assert refused.error == (413, "too_large")
    assert 4_700_000 < accepted <= MAX_INVOCATION * 3 // 4
    assert strict.current(state) == text(accepted, accepted)
    assert read_both_ways(client, state) == {text(accepted, accepted)}


def first_refused(write: Callable[[int], Response], fits: int, too_big: int) -> tuple[int, Response]:
    """Return the largest accepted size, and the response to one byte more."""
    assert write(fits).status == 200
    refused = write(too_big)
    while too_big - fits > 1:
        middle = (fits + too_big) // 2
        answer = write(middle)
        if answer.status == 200:
            fits = middle
        else:
            too_big, refused = middle, answer
    return fits, refused


BIG = 'resource "terraform_data" "big" {\n  input = file("big.txt")\n}\n'
"""Input and output are both in the state."""


def test_terraform_applies_and_plans_a_state_of_5_mb(
    strict: Team, state: str, new_project: NewProject
) -> None:
    project = new_project.ready(strict, state, strict.token("writer"), main=BIG)
    (project.folder / "big.txt").write_text("x" * 2_600_000)

    project.ok("apply", "-auto-approve")

    current = strict.current(state) or b""
    assert len(current) > 5_200_000
    assert project.run("plan", "-detailed-exitcode").code == 0
    assert project.pull() == json.loads(current)


def test_a_state_of_terraform_that_is_too_large_is_413_and_stays_on_the_disk(
    strict: Team, state: str, new_project: NewProject
) -> None:
    project = new_project.ready(strict, state, strict.token("writer"), main=BIG)
    (project.folder / "big.txt").write_text("x" * 3_200_000)

    refusal = project.refused("apply", "-auto-approve")

    assert "413" in refusal
    assert (project.folder / "errored.tfstate").stat().st_size > 6_400_000
    assert strict.current(state) is None
    assert strict.lock(state) is None

"""How a version of a state is named: by its ID, its serial or a time."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from tests.support import api_stub
from tests.support.api_stub import ApiStub
from tests.support.management import NAME, answer, deleted, failure, page, run, version

DIFF = {"name": NAME, "resources": []}
HISTORY = (
    version("v-15", 15, "2026-11-20T15:00:00Z", current=True),
    version("v-14b", 14, "2026-11-20T14:30:00Z", status="never_acknowledged"),
    version("v-14", 14, "2026-11-20T14:00:00Z"),
    version("v-13", 13, "2026-11-20T13:00:00Z", status="other_program"),
    deleted("marker", "2026-11-20T12:00:00Z"),
    version("v-12", 12, "2026-11-20T11:00:00Z"),
    version("v-11", 11, "2026-11-20T10:00:00Z", status="never_acknowledged"),
)
"""Newest first; it comes in two pages."""
SAME = {one: version(one, 7, "2026-11-20T09:00:00Z", sha256="same") for one in "ab"}


@pytest.fixture
def stub() -> Iterator[ApiStub]:
    with api_stub.running() as running:
        running.reply(
            page("versions", *HISTORY[:4], next_="older", name=NAME),
            page("versions", *HISTORY[4:], name=NAME),
            answer(DIFF),
        )
        yield running


def found(stub: ApiStub, named: str, **environment: str) -> tuple[str, str]:
    """The version that a diff from a named version asks for, and what is said of it."""
    if "T15:" in named or "T14:" in named or "T13:" in named:  # the first page has it
        stub.reply(page("versions", *HISTORY[:4], next_="older", name=NAME), answer(DIFF))
    done = run(stub, "state", "diff", NAME, named, "--json", **environment)
    assert done.returncode == 0, done.stderr
    path = stub.asked[-1].path
    assert path.startswith(f"/manage/v1/diff/{NAME}?from=")
    return path.partition("from=")[2], done.stderr


def test_an_id_is_used_as_it_is_and_nothing_is_searched(stub: ApiStub) -> None:
    stub.reply(answer(DIFF))

    assert found(stub, "any-ID_1.2") == ("any-ID_1.2", "")
    assert len(stub.asked) == 1


def test_a_serial_is_looked_for_in_the_whole_history(stub: ApiStub) -> None:
    asked, said = found(stub, "@13")

    assert asked == "v-13"
    assert said == (
        "holdfast: @13 is version v-13, serial 13, of 2026-11-20 13:00:00 UTC, written by another program.\n"
    )
    assert [one.path.partition("versions/")[2] for one in stub.asked[:2]] == [NAME, f"{NAME}?cursor=older"]


@pytest.mark.parametrize(
    ("versions", "version_id"),
    [
        ((SAME["b"], SAME["a"]), "b"),
        ((SAME["b"] | {"status": "never_acknowledged"}, SAME["a"]), "a"),
        ((SAME["b"] | {"status": "never_acknowledged"},) * 2, "b"),
    ],
    ids=["undeleted", "of which one was refused", "refused"],
)
def test_of_versions_with_one_content_a_serial_means_the_newest_that_counts(
    stub: ApiStub, versions: tuple[dict[str, object], ...], version_id: str
) -> None:
    stub.reply(page("versions", *versions), answer(DIFF))

    assert found(stub, "@7")[0] == version_id


@pytest.mark.parametrize("sha256", ["another", None])
def test_versions_of_which_nothing_says_that_they_are_the_same_are_ambiguous(
    stub: ApiStub, sha256: str | None
) -> None:
    stub.reply(page("versions", SAME["b"] | {"sha256": sha256}, SAME["a"] | {"sha256": sha256 and "one"}))

    assert "2 versions with the serial 7 and not one content" in failure(stub, "state", "diff", NAME, "@7")


def test_a_serial_whose_only_version_was_never_acknowledged_is_said_to_be_so(stub: ApiStub) -> None:
    asked, said = found(stub, "@11")

    assert asked == "v-11"
    assert "never acknowledged" in said


@pytest.mark.parametrize(
    ("named", "version_id"),
    [
        ("@2026-11-20T15:00:00Z", "v-15"),
        ("@2026-11-20T14:59:59Z", "v-14"),
        ("@2026-11-20t14:45z", "v-14"),
        ("@2026-11-20T15:30+01:00", "v-14"),
        ("@2026-11-20T13:30-0000", "v-13"),
        ("@2026-11-20 11:30:00.5Z", "v-12"),
    ],
)
def test_a_time_takes_the_newest_version_before_it_whose_writer_was_not_refused(
    stub: ApiStub, named: str, version_id: str
) -> None:
    asked, said = found(stub, named)

    assert asked == version_id
    assert f"{named} is version {version_id}, serial" in said


def test_a_time_without_an_offset_is_local_and_a_date_is_its_midnight(stub: ApiStub) -> None:
    asked, said = found(stub, "@2026-11-20T13:30", TZ="America/New_York")
    assert (asked, "15:00:00 UTC" in said) == ("v-15", True)

    # The 21st begins in Kiritimati when it is 10:00 in London.
    stub.reply(
        page("versions", *HISTORY[:4], next_="older"),
        page("versions", version("v-9", 9, "2026-11-20T09:00:00Z")),
        answer(DIFF),
    )
    asked, _ = found(stub, "@2026-11-21", TZ="Pacific/Kiritimati")
    assert asked == "v-9"


def test_two_versions_are_found_in_one_search(stub: ApiStub) -> None:
    done = run(stub, "state", "diff", NAME, "@12", "@15", "--json")

    assert done.returncode == 0
    assert stub.asked[-1].path == f"/manage/v1/diff/{NAME}?from=v-12&to=v-15"
    assert len(stub.asked) == 3


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("@14", ("2 versions with the serial 14", "v-14b", "v-14,", "never acknowledged", "by its ID")),
        ("@99", ("no version with the serial 99", "its serials are 11 to 15")),
        ("@2026-11-20T12:30Z", ("was deleted at @2026-11-20T12:30Z, since 2026-11-20 12:00:00 UTC",)),
        (
            "@2026-11-20T10:30Z",
            ("no version at @2026-11-20T10:30Z", "the oldest that there is is version v-12"),
        ),
        ("@2001-01-01", ("no version at @2001-01-01", "version v-12, serial 12")),
    ],
)
def test_what_is_not_there_is_refused_with_what_there_is(
    stub: ApiStub, named: str, said: tuple[str, ...]
) -> None:
    line = failure(stub, "state", "diff", NAME, named)

    assert [part for part in said if part not in line] == []


@pytest.mark.parametrize(
    ("history", "said"),
    [
        ([], "no version that was acknowledged"),
        ([version("v", None, "2026-11-20T10:00:00Z")], "no version of it has a serial"),
    ],
)
def test_a_history_without_what_is_looked_for_is_refused(
    stub: ApiStub, history: list[object], said: str
) -> None:
    stub.reply(page("versions", *history))

    assert said in failure(stub, "state", "diff", NAME, "@1" if history else "@2026-11-20")


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("@2999-01-01", "is in the future"),
        ("@2026-13-01", "is not a valid time"),
        ("@2026-11-20T25:00", "is not a valid time"),
        ("@2026-W47", "is neither a serial, as @12, nor a time"),
        ("@", "is neither a serial, as @12, nor a time"),
        ("@-1", "is neither a serial, as @12, nor a time"),
        ("@٣", "is neither a serial, as @12, nor a time"),
        ("12", "a serial is written with an @: @12"),
        ("", "not a valid version"),
        ("a b", "not a valid version"),
        ("a\x1bb", "not a valid version"),
        ("x" * 1025, "not a valid version"),
    ],
)
def test_what_names_no_version_is_wrong_usage(stub: ApiStub, named: str, said: str) -> None:
    done = run(stub, "state", "diff", NAME, named)

    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr.splitlines()[-1]
    assert stub.asked == []


def test_a_moment_ago_is_not_in_the_future(stub: ApiStub) -> None:
    now = f"@{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"

    assert found(stub, now)[0] == "v-15"

"""A reference means one version of a history of two pages, searched at once or one page a request."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

import pytest

from holdfast import names
from holdfast.errors import HoldfastError, InvalidRequest, NoState, NoSuchVersion, NoVersions
from holdfast.s3.objects import HistoryEntry, ObjectVersion
from holdfast.state import cursor as cursors
from holdfast.state import history, resolve
from holdfast.state.current_state import parse_metadata
from holdfast.state.cursor import Page
from holdfast.state.history import Status, Version
from holdfast.state.resolve import Resolution
from tests.support.documents import ADA
from tests.support.work import work

if TYPE_CHECKING:
    from holdfast.s3.store import Store

NAME = names.parse("network/prod")
WORK = work(cast("Store", None), NAME, ADA)  # nothing sends a request by it
ACKNOWLEDGED, REFUSED, OTHER = Status


def version(id_: str, serial: int | None, time: str, status: Status = ACKNOWLEDGED, **more: str) -> Version:
    """Return a version. Without a serial, another program wrote it."""
    at = datetime.fromisoformat(f"2026-11-20T{time}Z")
    metadata = {"sha256": f"of {id_}", "serial": str(serial), **more} if serial is not None else {}
    stored = ObjectVersion("etag", id_, 1, at, metadata, has_own_etag=True)
    entry = HistoryEntry(id_, at, is_current=False, is_delete_marker=False, size=1)
    return Version(entry, metadata, parse_metadata(stored), status)


def deleted(id_: str, time: str) -> Version:
    at = datetime.fromisoformat(f"2026-11-20T{time}Z")
    return Version(HistoryEntry(id_, at, is_current=False, is_delete_marker=True), {}, None, None)


PAGES = (
    [
        version("v-15", 15, "15:00:00"),
        version("v-14b", 14, "14:30:00", REFUSED),
        version("v-14", 14, "14:00:00"),
        version("v-13", 13, "13:00:00", OTHER),
    ],
    [
        deleted("marker", "12:00:00"),
        version("v-12", 12, "11:00:00"),
        version("v-11", 11, "10:00:00", REFUSED),
    ],
)
"""Newest first."""


@pytest.fixture(params=[resolve.SECONDS, 0.0], ids=["at once", "a page a request"])
def find(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Resolution]:
    """Return a function that searches the given pages of a history to the end."""
    monkeypatch.setattr(resolve, "SECONDS", request.param)

    def search(reference: str, *pages: list[Version]) -> Resolution:
        def page(_: object, cursor: str | None, **__: object) -> Page[Version]:
            number = int(cursor or 0)
            return Page(pages[number], str(number + 1) if number + 1 < len(pages) else None)

        monkeypatch.setattr(history, "page", page)
        resolution, requests = Resolution(None, None, None), 0
        while requests == 0 or resolution.next is not None:
            resolution = resolve.resolve(WORK, resolve.parse(reference), resolution.next)
            requests += 1
            current = next((versions[0] for versions in pages if versions), None)
            is_current = current is not None and not current.entry.is_delete_marker
            assert (resolution.current is not None) is is_current
            assert resolution.current is None or (current and resolution.current.id == current.entry.id)
        return resolution

    return search


def meant(find: Callable[..., Resolution], reference: str, *pages: list[Version]) -> str:
    version = find(reference, *pages).version
    assert version is not None
    return version.id


def refused(find: Callable[..., Resolution], reference: str, *pages: list[Version]) -> HoldfastError:
    with pytest.raises(HoldfastError) as raised:
        find(reference, *pages)
    return raised.value


@pytest.mark.parametrize(
    ("reference", "version_id"),
    [
        ("@13", "v-13"),
        ("@12", "v-12"),
        ("@11", "v-11"),  # its status tells that its writer was refused
        ("@previous", "v-14"),
        ("@2026-11-20T15:00:00Z", "v-15"),
        ("@2026-11-20T14:59:59Z", "v-14"),
        ("@2026-11-20T15:30+01:00", "v-14"),
        ("@2026-11-20T13:30-0000", "v-13"),
        ("@2026-11-20 11:30:00.5Z", "v-12"),
    ],
)
def test_a_reference_means_one_version(
    find: Callable[..., Resolution], reference: str, version_id: str
) -> None:
    assert meant(find, reference, *PAGES) == version_id


@pytest.mark.parametrize("pages", [lambda a, b: ([a, b],), lambda a, b: ([a], [b])], ids=["one page", "two"])
@pytest.mark.parametrize(
    ("newer", "older", "version_id"),
    [(ACKNOWLEDGED, ACKNOWLEDGED, "b"), (REFUSED, ACKNOWLEDGED, "a"), (REFUSED, REFUSED, "b")],
    ids=["undeleted", "of which one was refused", "refused"],
)
def test_of_versions_with_one_content_a_serial_means_the_newest_that_counts(
    find: Callable[..., Resolution],
    pages: Callable[..., Any],
    newer: Status,
    older: Status,
    version_id: str,
) -> None:
    same = (
        version("b", 7, "09:00:00", newer, sha256="same"),
        version("a", 7, "08:00:00", older, sha256="same"),
    )

    assert meant(find, "@7", *pages(*same)) == version_id


@pytest.mark.parametrize(
    ("reference", "kind", "said"),
    [
        ("@14", InvalidRequest, (
            "versions with the serial 14 and different contents",
            "version v-14b, serial 14, of 2026-11-20 14:30:00 UTC, never acknowledged; version v-14, "
            "serial 14, of 2026-11-20 14:00:00 UTC. Use the ID",
        )),
        ("@99", NoSuchVersion, ("no version with the serial 99", "versions are from 11 to 15")),
        ("@2026-11-20T12:30Z", NoSuchVersion, ("deleted at 2026-11-20 12:00:00", "no version at @")),
        ("@2026-11-20T10:30Z", NoSuchVersion, ("was deleted at",)),
        ("@2001-01-01T00:00Z", NoSuchVersion, ("acknowledged version of @2001", "version v-12, serial 12")),
        ("@deleted", NoSuchVersion, ("is not deleted: its version v-15 is current",)),
    ],
)  # fmt: skip
def test_what_is_not_there_is_refused_with_what_there_is(
    find: Callable[..., Resolution], reference: str, kind: type[HoldfastError], said: tuple[str, ...]
) -> None:
    pages = PAGES if "T10:30" not in reference else ([deleted("marker", "10:00:00")], PAGES[1])
    error = refused(find, reference, *pages)

    assert (type(error), [part for part in said if part not in error.message]) == (kind, [])


def test_the_newest_marker_is_undone_or_the_one_beneath_an_undelete(find: Callable[..., Resolution]) -> None:
    undeleted = version("v", 3, "16:00:00", operation="undelete")

    for pages in ([deleted("m", "15:30:00")], PAGES[0]), ([undeleted], [deleted("m", "15:30:00")], PAGES[0]):
        assert meant(find, "@deleted", *pages) == "m"
    assert isinstance(refused(find, "@deleted", [undeleted], PAGES[0]), NoVersions)


def test_a_page_whose_versions_s3_has_removed_meanwhile_does_not_end_a_search(
    find: Callable[..., Resolution],
) -> None:
    assert meant(find, "@previous", [], [], *PAGES) == "v-14"
    assert "is not deleted" in refused(find, "@deleted", [], *PAGES).message
    assert isinstance(refused(find, "@1", [], []), NoState)


def test_nothing_is_before_the_only_version_or_a_delete(find: Callable[..., Resolution]) -> None:
    only = version("v", 3, "16:00:00")

    assert "before the current one" in refused(find, "@previous", [only]).message
    assert "is deleted" in refused(find, "@previous", [deleted("m", "17:00:00"), only]).message
    assert isinstance(refused(find, "@1", []), NoState)
    assert (
        "no version of this state has a serial"
        in refused(find, "@1", [version("v", None, "16:00:00", OTHER)]).message
    )
    others = version("v", None, "16:00:00", OTHER)
    message = refused(find, "@2026-11-20T11:00Z", [others]).message
    assert message.endswith("of 2026-11-20 16:00:00 UTC, written by another program.")
    unseen = version("v", 1, "10:00:00", REFUSED)
    assert "no acknowledged version" in refused(find, "@2026-11-20T11:00Z", [unseen]).message


@pytest.mark.parametrize(
    "text",
    ["", "@", "12", "v-15", "@-1", "@٣", "@current", "@2026-11-20", "@2026-11-20T14:00", "@2026-13-01T00:00Z",
     "@0001-01-01T00:00+14:00", "@previous@1", "2026-11-20T14:00Z", "@" + "9" * 19],
)  # fmt: skip
def test_what_names_no_version_is_refused_with_the_rule(text: str) -> None:
    with pytest.raises(InvalidRequest, match="must be a serial"):
        resolve.parse(text)


def test_a_cursor_is_of_one_state_and_one_reference(
    monkeypatch: pytest.MonkeyPatch, find: Callable[..., Resolution]
) -> None:
    find("@12", *PAGES)  # which sets the pages
    monkeypatch.setattr(resolve, "SECONDS", 0.0)
    cursor = resolve.resolve(WORK, resolve.parse("@12"), None).next

    for name, reference in (("network/dev", "@12"), (NAME.value, "@13")):
        with pytest.raises(InvalidRequest, match="cursor"):
            resolve.resolve(replace(WORK, name=names.parse(name)), resolve.parse(reference), cursor)
    for written in (10**30, -(10**30), 10**15):
        match = ["v", written, 1, "", ""]
        forged = cursors.encode("resolve", [NAME.value, "@12", "1", 1, 1, *match, *match])
        with pytest.raises(InvalidRequest, match="cursor"):
            resolve.resolve(WORK, resolve.parse("@12"), forged)

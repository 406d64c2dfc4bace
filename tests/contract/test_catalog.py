"""Lists of states and locks on real S3 servers: the items of all pages, and the number of requests."""

from collections.abc import Callable, Iterable

import pytest

from holdfast import names
from holdfast.access import Action, Caller, Grant, Role, matches
from holdfast.errors import InvalidRequest, StorageRefused
from holdfast.state import acquiring, catalog, walk
from holdfast.state.catalog import Listed
from holdfast.state.cursor import Page
from tests.contract.conftest import Bucket, coded, decoded, never_asked
from tests.support.documents import ADA, lock_info, state
from tests.support.s3_fault_proxy import Fault
from tests.support.work import work

pytestmark = pytest.mark.two_servers

NETWORK = Caller("token:network", (Grant(Role.OUTPUTS, ("network/*",)),))

UNLOCKED = ("a-x", "a.tfstate-x", "a.tfstate.a", "b")
LOCKED = ("a", "a.tfstate.b", "a.tfstate", "ab")
WITHOUT_A_STATE = ("a.tfstat", "a.tfstate.tfl", "c")
"""Names whose keys sort between the key of `a` and the key of its lock, and among the keys of locks."""

Pages = Callable[..., Page[Listed]]


def put(bucket: Bucket, *states: str) -> None:
    for name in states:
        bucket.s3.put_object(Bucket=bucket.name, Key=names.parse(name).state_key, Body=state(1))


def lock(bucket: Bucket, *states: str) -> None:
    for name in states:
        acquiring.acquire(work(bucket.direct_store(), names.parse(name), ADA), lock_info(f"of {name}"))


def delete(bucket: Bucket, *states: str) -> None:
    for name in states:
        bucket.s3.delete_object(Bucket=bucket.name, Key=names.parse(name).state_key)


def entangled(bucket: Bucket) -> None:
    put(bucket, *UNLOCKED, *LOCKED)
    lock(bucket, *LOCKED, *WITHOUT_A_STATE)
    for key in ("states/.tfstate", "states/é.tfstate", "states/notes.txt", "states/a.tfstate.tflock.bak"):
        bucket.s3.put_object(Bucket=bucket.name, Key=key, Body=b"another program's")


def every_page(
    bucket: Bucket, pages: Pages, page_size: int, prefix: str = "", caller: Caller = ADA
) -> list[Listed]:
    items: list[Listed] = []
    cursor = None
    while True:
        page = pages(bucket.store(), prefix, cursor, caller, page_size=page_size)
        items += page.items
        cursor = page.next
        if cursor is None:
            return items


def shown(items: Iterable[Listed]) -> list[tuple[str, bool, str | None]]:
    """Return the name of each item, whether it has a state, and the ID of its lock."""
    return sorted(
        (one.name.value, one.size is not None, one.lock.info.id if one.lock else None) for one in items
    )


@pytest.mark.parametrize("page_size", [1, 2, 3, 4, 5, 1000])
def test_wherever_a_page_ends_each_state_is_shown_once_with_its_lock(bucket: Bucket, page_size: int) -> None:
    entangled(bucket)
    assert shown(every_page(bucket, catalog.page_of_states, page_size)) == sorted(
        [
            *((name, True, None) for name in UNLOCKED),
            *((name, True, f"of {name}") for name in LOCKED),
            *((name, False, f"of {name}") for name in WITHOUT_A_STATE),
        ]
    )


@pytest.mark.parametrize("page_size", [1, 2, 3, 1000])
def test_a_prefix_lists_what_begins_so_and_no_lock_of_another_name(bucket: Bucket, page_size: int) -> None:
    entangled(bucket)
    names_shown = [
        one.name.value for one in every_page(bucket, catalog.page_of_states, page_size, "a.tfstate.")
    ]
    assert sorted(names_shown) == ["a.tfstate.a", "a.tfstate.b", "a.tfstate.tfl"]
    # The key of the lock of 'a' has this prefix, too.
    locked = every_page(bucket, catalog.page_of_locks, page_size, "a.tfstate.tf")
    assert [one.name.value for one in locked] == ["a.tfstate.tfl"]


@pytest.mark.parametrize("page_size", [1, 3, 1000])
def test_a_pattern_is_resolved_to_each_name_of_the_list_of_states_once(
    bucket: Bucket, page_size: int
) -> None:
    entangled(bucket)
    for caller in (ADA, Caller("token:a", (Grant(Role.OUTPUTS, ("a*", "c")),))):
        listed = {one.name for one in every_page(bucket, catalog.page_of_states, 1000, caller=caller)}
        for pattern in ("*", "a.*", "a*", "a.tfstate", "*b", "z*"):
            resolved: list[names.StateName] = []
            cursor = None
            while True:
                page = catalog.page_of_names(bucket.store(), pattern, cursor, caller, page_size=page_size)
                resolved += page.items
                cursor = page.next
                if cursor is None:
                    break
            assert sorted(map(str, resolved)) == sorted(
                name.value for name in listed if matches(pattern, name)
            )


@pytest.mark.parametrize("pattern", ["a//*", "/", "ü*", "-*"])
def test_a_pattern_that_no_name_can_match_is_refused(bucket: Bucket, pattern: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^The pattern '.+' cannot match a state name.+[^.]\.$"):
        catalog.page_of_names(bucket.store(), pattern, None, ADA)


def test_a_state_has_the_size_and_the_time_of_its_current_version_on_every_page(bucket: Bucket) -> None:
    put(bucket, "a", "b")
    lock(bucket, "a")
    for page_size in (1, 1000):
        for one in every_page(bucket, catalog.page_of_states, page_size):
            version = bucket.store().read_version(one.name.state_key)
            assert version is not None
            assert one.modified is not None
            assert (one.size, one.modified.replace(microsecond=0)) == (version.size, version.last_modified)


@pytest.mark.parametrize("page_size", [1, 2, 3, 5, 1000])
def test_a_deleted_state_is_listed_until_it_has_a_version_again(bucket: Bucket, page_size: int) -> None:
    put(bucket, *UNLOCKED, *LOCKED)
    delete(bucket, "a", "a.tfstate", "b", "a-x")
    put(bucket, "a-x")
    delete(bucket, "ab")
    delete(bucket, "ab")  # again, which makes another marker
    lock(bucket, *LOCKED, "c")
    # The delete marker of a protected lock is not a state.
    bucket.s3.put_object(Bucket=bucket.name, Key="states/b.tfstate.tflock", Body=b"{}")
    bucket.s3.delete_object(Bucket=bucket.name, Key="states/b.tfstate.tflock")
    found = every_page(bucket, catalog.page_of_deleted, page_size)
    assert shown(found) == [
        ("a", False, "of a"),
        ("a.tfstate", False, "of a.tfstate"),
        ("ab", False, "of ab"),
        ("b", False, None),
    ]
    assert all(one.deleted and one.modified for one in found)
    # The list of states shows their locks.
    assert ("a", False, "of a") in shown(every_page(bucket, catalog.page_of_states, page_size))


def test_a_prefix_that_is_a_key_lists_what_follows_the_many_versions_of_that_key(bucket: Bucket) -> None:
    for _ in range(5):
        put(bucket, "a")
    put(bucket, "a.tfstate-x")
    delete(bucket, "a.tfstate-x")
    store = bucket.store()
    page = catalog.page_of_deleted(store, "a.tfstate", None, ADA, page_size=2)
    assert ([one.name.value for one in page.items], page.next) == (["a.tfstate-x"], None)
    assert len(store.budget.requests) == 1


@pytest.mark.parametrize("page_size", [1, 2, 1000])
def test_the_locks_are_all_there_and_the_oldest_comes_first(bucket: Bucket, page_size: int) -> None:
    entangled(bucket)
    found = every_page(bucket, catalog.page_of_locks, page_size)
    assert sorted(one.name.value for one in found) == sorted([*LOCKED, *WITHOUT_A_STATE])
    if page_size == 1000:
        times = [one.lock.version.last_modified for one in found if one.lock]
        assert times == sorted(times)


def test_a_list_shows_only_what_the_callers_scope_covers_and_reads_no_other_lock(bucket: Bucket) -> None:
    put(bucket, "network/prod", "billing/prod", "network")
    lock(bucket, "network/prod", "billing/prod", "billing/new")
    for pages in (catalog.page_of_states, catalog.page_of_locks):
        store = bucket.store()
        page = pages(store, "", None, NETWORK)
        assert [one.name.value for one in page.items] == ["network/prod"]
        assert store.budget.requests == ["ListObjectsV2", "GetObject"]
    delete(bucket, "network/prod", "billing/prod")
    assert [one.name.value for one in every_page(bucket, catalog.page_of_deleted, 1, caller=NETWORK)] == [
        "network/prod"
    ]


PAGES = {
    "states": catalog.page_of_states,
    "locks": catalog.page_of_locks,
    "deleted": catalog.page_of_deleted,
    "declared": catalog.page_of_declared,
}
FOLDERS = dict.fromkeys(PAGES, "states/") | {"declared": "workspaces/"}


def fill(bucket: Bucket, pages: Pages, *states: str) -> None:
    """Create states or records that a list of this kind shows."""
    if pages is catalog.page_of_declared:
        for name in map(names.parse, states):
            bucket.s3.put_object(Bucket=bucket.name, Key=name.record_key, Body=b"{}")
        return
    put(bucket, *states)
    if pages is catalog.page_of_deleted:
        delete(bucket, *states)
    elif pages is catalog.page_of_locks:
        lock(bucket, *states)


def every_cursor(bucket: Bucket, pages: Pages, caller: Caller, page_size: int) -> list[tuple[list[str], str]]:
    """Return the names on each page, and the place in its cursor; empty for the last page."""
    found: list[tuple[list[str], str]] = []
    cursor = None
    while cursor or not found:
        page = pages(bucket.direct_store(), "", cursor, caller, page_size=page_size)
        cursor = page.next
        place = decoded(cursor)[1] if cursor else ""
        found.append(([one.name.value for one in page.items], place))
    return found


SCOPES = [("*/b",), ("d/*", "a/b"), ("b*", "c/b", "b/c"), ("*/*/x", "a/*"), ("a/*b*",)]


@pytest.mark.parametrize("page_size", [1, 2, 3])
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("kind", PAGES)
def test_pages_are_those_of_a_bucket_without_foreign_states(
    bucket: Bucket, kind: str, scope: tuple[str, ...], page_size: int
) -> None:
    caller = Caller("token:some", (Grant(Role.OUTPUTS, scope),))
    pages = PAGES[kind]
    every = [*"abcd", *(f"{a}/{b}" for a in "abcd" for b in "abc"), "a/ab/x", "a/b/x", "b/b/b", "c/b-x", "bb"]
    own = [name for name in every if caller.may(Action.READ_OUTPUTS, names.parse(name))]
    fill(bucket, pages, *own)
    alone = every_cursor(bucket, pages, caller, page_size)
    fill(bucket, pages, *(name for name in every if name not in own))
    assert every_cursor(bucket, pages, caller, page_size) == alone
    assert sorted({name for names_shown, _ in alone for name in names_shown}) == sorted(own)
    for _, place in alone[:-1]:
        name = place.removeprefix(FOLDERS[kind]).removesuffix(".json")
        name = name.removesuffix(".tflock").removesuffix(".tfstate")
        assert caller.may(Action.READ_OUTPUTS, names.parse(name))


@pytest.mark.parametrize("kind", PAGES)
def test_who_chooses_the_cursor_learns_nothing_of_a_foreign_name(bucket: Bucket, kind: str) -> None:
    caller = Caller("token:some", (Grant(Role.OUTPUTS, ("aa/*", "zz/*")),))
    pages = PAGES[kind]
    fill(bucket, pages, "aa/1", "mm/secret", "zz/1", "zz/2")

    def answers() -> list[tuple[list[str], bool]]:
        ending = ".json" if kind == "declared" else ".tfstate"
        places = (f"aa/1{ending}", f"aa/x{ending}", "zz/", f"zz/1{ending}")
        found = []
        for place in places:
            page = pages(bucket.direct_store(), "", coded(kind, FOLDERS[kind] + place), caller, page_size=2)
            found.append(([one.name.value for one in page.items], page.next is None))
        return found

    before = answers()
    fill(bucket, pages, *(f"mm/{number}" for number in range(5)))
    assert answers() == before


@pytest.mark.parametrize("kind", PAGES)
@pytest.mark.parametrize("place", ["mm/x.tfstate", "m", "aa0", "zz.tfstate", "aa/../x.tfstate", "zz/-"])
def test_a_cursor_outside_of_the_scope_is_refused(kind: str, place: str) -> None:
    caller = Caller("token:some", (Grant(Role.OUTPUTS, ("aa/*", "zz/*")),))
    with pytest.raises(InvalidRequest, match="cursor"):
        PAGES[kind](never_asked(), "", coded(kind, f"{FOLDERS[kind]}{place}"), caller)


@pytest.mark.parametrize("kind", PAGES)
def test_s3_is_asked_only_below_the_beginnings_and_skips_what_no_pattern_covers(
    bucket: Bucket, kind: str
) -> None:
    pages = PAGES[kind]
    fill(bucket, pages, *(f"m/{number:02}" for number in range(30)), "a/prod", "z/prod")
    for scope, requests in (("a/*", "z/*"), 2), (("*/prod",), 4 if kind in ("states", "declared") else 6):
        store = bucket.direct_store()
        page = pages(store, "", None, Caller("token:some", (Grant(Role.OUTPUTS, scope),)), page_size=4)
        assert [one.name.value for one in page.items] == ["a/prod", "z/prod"]
        assert len([each for each in store.budget.requests if each.startswith("List")]) <= requests
    for number in range(3 if kind == "deleted" else 0):
        for _ in range(10):
            put(bucket, f"m/{number:02}")
    caller = Caller("token:some", (Grant(Role.OUTPUTS, ("*/prod",)),))
    store = bucket.direct_store()
    names_shown = [one.name.value for one in pages(store, "", None, caller, page_size=4).items]
    assert names_shown == ["a/prod", "z/prod"]
    assert len([each for each in store.budget.requests if each.startswith("List")]) <= 6


@pytest.mark.parametrize("kind", PAGES)
def test_a_walk_through_foreign_keys_that_takes_long_goes_on_with_the_next_page(
    bucket: Bucket, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk, "SECONDS", 0.0)
    pages = PAGES[kind]
    fill(
        bucket,
        pages,
        *(f"{first}-{second}/dev" for first in "amy" for second in range(4)),
        "k/prod",
        "z/prod",
    )
    bucket.s3.put_object(Bucket=bucket.name, Key=f"{FOLDERS[kind]}é/x", Body=b"another program's")
    caller = Caller("token:some", (Grant(Role.OUTPUTS, ("*/prod",)),))
    found = every_cursor(bucket, pages, caller, 1)
    assert [name for names_shown, _ in found for name in names_shown] == ["k/prod", "z/prod"]
    places = [place.removeprefix(FOLDERS[kind]) for _, place in found[:-1]]
    assert places == sorted(set(places))
    assert "m" in places
    assert not [place for place in places if "dev" in place]


def test_a_list_costs_one_request_and_one_for_each_lock(bucket: Bucket) -> None:
    put(bucket, *(f"network/{number}" for number in range(12)))
    lock(bucket, *(f"network/{number}" for number in range(0, 12, 3)))
    for pages in (catalog.page_of_states, catalog.page_of_locks):
        store = bucket.store()
        pages(store, "", None, ADA)
        assert store.budget.requests == ["ListObjectsV2", *["GetObject"] * 4]
    delete(bucket, "network/1", "network/3")
    store = bucket.store()
    catalog.page_of_deleted(store, "", None, ADA)
    assert store.budget.requests == ["ListObjectVersions", "GetObject"]


def test_a_lock_that_was_released_since_it_was_listed_is_not_shown(bucket: Bucket) -> None:
    put(bucket, "a")
    lock(bucket, "a", "b")

    def release() -> None:
        for name in ("a", "b"):
            bucket.s3.delete_object(Bucket=bucket.name, Key=names.parse(name).lock_key)

    bucket.proxy.before("GET", "a.tfstate.tflock", release)
    page = catalog.page_of_states(bucket.store(), "", None, ADA)
    bucket.proxy.end_rules()
    assert ("a", True, None) in shown(page.items)


@pytest.mark.parametrize("fault", [Fault.SERVER_ERROR, Fault.NEVER_ARRIVES, Fault.HALF_AN_ANSWER])
def test_a_list_and_its_locks_survive_lost_answers(bucket: Bucket, fault: Fault) -> None:
    entangled(bucket)
    wanted = shown(every_page(bucket, catalog.page_of_states, 1000))
    bucket.proxy.fail("GET", bucket.name, fault)
    bucket.proxy.fail("GET", ".tflock", fault, times=3)
    assert shown(every_page(bucket, catalog.page_of_states, 1000)) == wanted


def test_a_lock_that_cannot_be_read_fails_the_list_and_is_never_shown_as_none(bucket: Bucket) -> None:
    put(bucket, "a")
    lock(bucket, "a")
    bucket.proxy.fail("GET", ".tflock", Fault.DENIED)
    with pytest.raises(StorageRefused):
        catalog.page_of_states(bucket.store(), "", None, ADA)


@pytest.mark.parametrize(
    "prefix", ["/", "a//b", "-a", "a/-", "é", "a b", "x" * 201, "/".join("abcdefghi"), "a\n"]
)
@pytest.mark.parametrize("pages", PAGES.values())
def test_a_prefix_with_which_no_name_begins_is_refused(pages: Pages, prefix: str) -> None:
    with pytest.raises(InvalidRequest, match="prefix"):
        pages(never_asked(), prefix, None, ADA)


def test_every_beginning_of_a_name_is_a_prefix(bucket: Bucket) -> None:
    longest = "/".join(["n" * 24] * 8)
    put(bucket, longest)
    for length in range(len(longest) + 1):
        page = catalog.page_of_states(bucket.store(), longest[:length], None, ADA)
        assert [one.name.value for one in page.items] == [longest]


@pytest.mark.parametrize(
    "cursor",
    [
        *("", "1", "not a cursor", "é", "x" * 10_000, "[" * 5000),
        *(coded(), coded("states"), coded("states", 1), coded("states", "states/a", 1)),
        *(coded("locks", "states/a"), coded("states", "tokens/a"), coded("states", "states/" + "a" * 2000)),
        *(coded("states", f"states/{odd}") for odd in ("\ud800", "a\x00", "a\n.tfstate", "é")),
        *(coded("states", "states/a.tfstate")[:-1], coded("states", "states/a.tfstate") + "="),
    ],
)
def test_a_cursor_that_no_page_gave_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidRequest, match="cursor"):
        catalog.page_of_states(never_asked(), "", cursor, ADA)


def test_the_cursor_of_another_prefix_is_refused(bucket: Bucket) -> None:
    put(bucket, "a/1", "a/2", "b/1")
    cursor = catalog.page_of_states(bucket.store(), "a/", None, ADA, page_size=1).next
    assert cursor
    with pytest.raises(InvalidRequest, match="cursor"):
        catalog.page_of_states(bucket.store(), "b/", cursor, ADA)

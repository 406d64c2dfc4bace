"""Names of people, states and resources on the pages: none is cut, broken inside a word, or an ID."""

import json
import re
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, expect

from holdfast.access import Grant, Role
from tests.browser.conftest import Console, NewConsole, freeze, new_token
from tests.browser.test_stories import delete
from tests.support import documents, ledger
from tests.support.http_client import Credentials
from tests.support.team import Team

LONG = "container-cluster-for-the-analytics-department/regions/eu-central-1/with_a_rather_long_last_segment"
MODULE = 'module.access.module.policies_for_the_auditors["eu-central-1"]'
KEY = "au|dit of-the/policies_that{nobody}reads"
SCREENS = (1280, 1024, 768, 390)

BROKEN = r"""() => {
  const broken = [];
  for (const name of document.querySelectorAll("main :is(th, td, li) a, .name-of")) {
    const texts = document.createTreeWalker(name, NodeFilter.SHOW_TEXT);
    let before;
    for (let text = texts.nextNode(); text; text = texts.nextNode()) {
      for (let at = 0; at < text.length; at += 1) {
        const range = document.createRange();
        range.setStart(text, at);
        range.setEnd(text, at + 1);
        const [box] = range.getClientRects();
        const sign = text.data[at];
        const isFree = text.parentElement.closest(".long, .unseen") || !box;
        const isNext = before && !isFree && box.top >= before.bottom - 2;
        if (isNext && !/[\s/\-_.\]]/.test(before.sign) && sign !== "[")
          broken.push(`${name.textContent}: ${before.sign} and ${sign}`);
        before = isFree ? undefined : { sign, bottom: box.bottom };
      }
    }
  }
  return broken;
}"""
"""The names on the page that go on in the next line where none of their parts ends."""


@pytest.fixture
def state(state: str) -> str:
    """A name behind those of the other tests, which look at the first rows of the list of states."""
    return f"written/{state.removeprefix('e2e/')}"


@pytest.fixture
def long_name(strict: Team, state: str) -> str:
    """A locked state with a long name, and a resource with a long address."""
    name = f"{state}/{LONG}"
    resource = ledger.resource("aws_iam_policy", "read", {"name": "read"}, key=KEY, module=MODULE)
    strict.write(name, ledger.state(1, resource, outputs={}), ledger.state(2, resource, outputs={"a": "1"}))
    strict.locked(name)
    frozen = f"{name}/archive_of_the_application"
    strict.write(frozen, documents.state())
    freeze(
        strict,
        frozen,
        "Frozen until the move to the new account is over: ask the people of the data platform first",
    )
    return name


def nameless(team: Team, role: Role = Role.WRITER) -> Credentials:
    return new_token(team, Grant(role, ("*",)))


def in_words(token: Credentials) -> str:
    return f"token {token.username[:8]}…"


# --- names of people ------------------------------------------------------------------------------


def row(console: Console, event: str) -> Locator:
    return console.page.get_by_role("row").filter(has=console.page.get_by_text(event, exact=True)).first


def test_the_activity_names_the_machine_of_a_token_only_where_its_lock_tells_it(
    strict: Team, state: str, new_console: NewConsole
) -> None:
    token, ops = nameless(strict), nameless(strict, Role.MAINTAINER)
    writer = strict.client_with(token)
    info = documents.lock_info(who="bea@laptop")
    assert writer.lock(state, info).status == 200
    assert writer.write(state, documents.state(), documents.lock_id(info)).status == 200
    assert writer.write(state, documents.state(2), None).status == 423
    operator = strict.client_with(ops)
    held = json.loads(operator.request("GET", f"/manage/v1/locks/{state}").body)["lock"]
    which = f"id={held['id']}&version={held['version']}"
    assert operator.request("DELETE", f"/manage/v1/locks/{state}?{which}").status == 200
    console = new_console("auditor", f"#/activity?state={state}")
    for event, who in (
        ("Lock acquired", '"bea@laptop"'),
        ("State written", '"bea@laptop"'),
        ("Request refused", in_words(token)),
        ("Lock broken", in_words(ops)),
    ):
        expect(row(console, event).get_by_role("cell").nth(1)).to_have_text(who)
    broken = row(console, "Lock broken")
    expect(broken.locator("summary")).to_have_text('apply, held by "bea@laptop"')
    expect(broken.get_by_text(in_words(ops)).locator("xpath=..")).to_have_attribute(
        "title", f"token:{ops.username}"
    )
    assert token.username not in console.page.get_by_role("table").inner_text()
    broken.locator("summary").click()
    expect(broken).to_contain_text("lock.force_unlocked")
    expect(broken).to_contain_text(f"token:{ops.username}")

    console.page.get_by_label("Who").fill(in_words(ops))
    console.page.keyboard.press("Enter")
    expect(console.page.locator("tbody tr")).to_have_count(1)


def test_a_write_that_was_denied_is_in_the_activity_by_default(
    strict: Team, state: str, new_console: NewConsole
) -> None:
    reader = strict.client_with(nameless(strict, Role.READER))
    assert reader.write(state, documents.state(), None).status == 403
    assert reader.request("GET", f"/manage/v1/states/{state}").status == 404
    console = new_console("auditor", f"#/states/{state}/-/activity")
    expect(row(console, "Request refused")).to_contain_text("the role or scope does not allow it")
    console.shows("1 event")


def test_the_list_and_the_bar_call_a_token_without_an_owner_by_its_first_letters(
    strict: Team, state: str, new_console: NewConsole
) -> None:
    token = nameless(strict)
    body, info = documents.state(), documents.lock_info(who="")
    writer = strict.client_with(token)
    assert writer.lock(state, info).status == 200
    assert writer.write(state, body, documents.lock_id(info)).status == 200
    console = new_console(token, f"#/?q={state}", viewport={"width": 1440, "height": 800})
    expect(console.page.locator("td.by")).to_have_text(in_words(token))
    expect(console.page.locator("td.lock")).to_contain_text(in_words(token))
    expect(console.page.locator("header .who")).to_contain_text(in_words(token))
    expect(console.page.locator("header .who span").first).to_have_attribute(
        "title", re.compile(token.username)
    )
    for cell in console.page.locator("td.by, td.lock .badge").all():
        assert cell.evaluate("cell => cell.scrollWidth <= cell.clientWidth")


def test_the_name_of_a_person_stays_on_one_line_of_a_table(
    strict: Team, state: str, new_console: NewConsole
) -> None:
    owner = "the deployment of the payments platform in Frankfurt"
    for name, token in (
        (f"{state}/{LONG}", new_token(strict, Grant(Role.WRITER, ("*",)), owner="bea@example.com")),
        (f"{state}/other", new_token(strict, Grant(Role.WRITER, ("*",)), owner=owner)),
        (state, nameless(strict)),
    ):
        info = documents.lock_info(who="root@ip-10-0-3-117")
        client = strict.client_with(token)
        assert client.lock(name, info).status == 200
        assert client.write(name, documents.state(), documents.lock_id(info)).status == 200
    console = new_console("maintainer")
    tall = {}
    for place in ("#/locks", "#/activity?hours=1", f"#/?q={state}"):
        for width in (768, 1024, 1280):
            console.page.set_viewport_size({"width": width, "height": 900})
            console.visit(place, [], "bea@")
            people = console.page.locator("tbody .person")
            expect(people.filter(has_text="bea@").first).to_have_attribute("title", re.compile("bea@example"))
            heights = [box["height"] for one in people.all() if (box := one.bounding_box())]
            tall[f"{place} {width}"] = [height for height in heights if height > 24]
    assert {where: found for where, found in tall.items() if found} == {}


# --- names of states and resources ----------------------------------------------------------------


def test_a_name_goes_on_in_the_next_line_only_where_a_part_of_it_ends(
    long_name: str, new_console: NewConsole
) -> None:
    console = new_console("maintainer")
    address = f'{MODULE}.aws_iam_policy.read["{KEY}"]'
    broken = {}
    for place, actions in (
        ("#/locks", []),
        ("#/locks", [f"Break {long_name}"]),
        ("#/activity?hours=1", []),
        (f"#/states/{long_name}", []),
        (f"#/states/{long_name}/-/history", ["Restore serial 1"]),
        (f"#/states/{long_name}/-/resource/{quote(address, safe='')}", []),
    ):
        for width in SCREENS:
            console.page.set_viewport_size({"width": width, "height": 900})
            console.visit(place, actions, "last_segment")
            console.page.wait_for_load_state("networkidle")
            found = console.page.evaluate(BROKEN)
            if console.page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                found.append("wider than the screen")
            broken[f"{place} {actions} {width}"] = found
            console.page.keyboard.press("Escape")
    assert {where: found for where, found in broken.items() if found} == {}


ALONE = r"""() => [...document.querySelectorAll("main p, dialog p, dialog dd")].flatMap(text => {
  const texts = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
  const alone = [];
  for (let part = texts.nextNode(); part; part = texts.nextNode()) {
    if (!/^[.,:;?)]/.test(part.data)) continue;
    const range = document.createRange();
    range.setStart(part, 0);
    range.setEnd(part, 1);
    const [box] = range.getClientRects();
    if (box && box.left < text.getBoundingClientRect().left + 4) alone.push(text.textContent);
  }
  return alone;
})"""
"""The paragraphs with a line that begins with a full stop or the like."""


@pytest.mark.parametrize(
    ("place", "action"), [("#/states/network/test", "Break the lock"), ("#/states/shop/cart", "Unfreeze")]
)
def test_no_line_of_a_dialog_begins_with_a_full_stop(
    new_console: NewConsole, place: str, action: str
) -> None:
    console = new_console("maintainer")
    console.visit(place, [action], "ago")
    expect(console.dialog).to_be_visible()
    alone = {}
    for width in range(320, 600, 4):
        console.page.set_viewport_size({"width": width, "height": 900})
        alone[width] = console.page.evaluate(ALONE)
    assert {width: found for width, found in alone.items() if found} == {}


BEHIND = """() => {
  const range = document.createRange();
  range.selectNodeContents(document.querySelector("h1"));
  const name = [...range.getClientRects()].filter(({ width }) => width > 1).at(-1);
  const icon = document.querySelector(".title .copy").getBoundingClientRect();
  return Math.abs(icon.top + icon.bottom - name.top - name.bottom) < 20 && icon.left - name.right < 12;
}"""
"""Returns true if what copies the name stands behind its last letter."""


def test_what_copies_a_name_stands_behind_it_on_every_screen(long_name: str, new_console: NewConsole) -> None:
    console = new_console("reader", f"#/states/{long_name}")
    expect(console.page.get_by_role("heading", name=long_name)).to_be_visible()
    widths = range(320, 1500, 12)
    behind = {}
    for width in widths:
        console.page.set_viewport_size({"width": width, "height": 900})
        behind[width] = console.page.evaluate(BEHIND)
    assert behind == dict.fromkeys(widths, True)


CUT = """() => [...document.querySelectorAll(".bar *, .bar")].filter(part => {
  if (part.closest("svg") || part.closest(".brand span")) return false;
  const { left, right, width } = part.getBoundingClientRect();
  const isCut = getComputedStyle(part).overflow !== "visible" && part.scrollWidth > part.clientWidth;
  const isLost = part.textContent && part.matches("span, a") && width < 8;
  return isCut || isLost || left < 0 || right > innerWidth;
}).map(part => part.textContent)"""
"""The texts of the bar that are not whole."""


def test_nothing_in_the_bar_is_cut_on_a_telephone(strict: Team, new_console: NewConsole) -> None:
    owners = ("Ada", "the deployment of the payments platform in Frankfurt")
    for owner in owners:
        grants = (Grant(Role.MAINTAINER, ("network/*",)), Grant(Role.AUDITOR, ("*",)))
        console = new_console(new_token(strict, *grants, owner=owner))
        bar = console.page.get_by_role("banner")
        expect(bar).to_contain_text("maintainer, auditor")
        for width in range(320, 431, 10):
            console.page.set_viewport_size({"width": width, "height": 800})
            assert console.page.evaluate(CUT) == [], width


def test_a_narrow_list_shows_its_order_and_who_holds_a_lock(new_console: NewConsole) -> None:
    console = new_console("reader", "#/?by=modified", viewport={"width": 390, "height": 800})
    head = console.page.get_by_role("columnheader", name="Last write")
    expect(head).to_be_visible()
    expect(head).to_have_attribute("aria-sort", "descending")
    console.button("Size").click()
    expect(console.page.get_by_role("columnheader", name="Size")).to_have_attribute("aria-sort", "descending")
    console.page.get_by_role("searchbox").fill("network/test")
    badge = console.page.locator("td.name .badge")
    expect(badge).to_have_text(re.compile("^locked .+ · Bob$"))
    expect(badge).to_be_visible()
    assert badge.evaluate("badge => badge.scrollWidth <= badge.clientWidth")


def test_a_narrow_list_says_who_wrote_and_its_buttons_are_large_enough_for_a_finger(
    new_console: NewConsole,
) -> None:
    console = new_console("reader", "#/?q=network/prod", viewport={"width": 768, "height": 800})
    row = console.page.get_by_role("row").nth(1)
    expect(row.locator(".by")).to_have_text("Ada")
    expect(row.locator(".by")).to_be_visible()
    console.page.set_viewport_size({"width": 390, "height": 800})
    expect(row.locator(".by-writer")).to_have_text("· Ada")
    expect(row.locator(".by-writer")).to_be_visible()
    buttons = console.page.locator("thead button, td.name .age").filter(visible=True)
    expect(buttons).to_have_count(5)
    assert [
        box["height"] for one in buttons.all() if (box := one.bounding_box()) and box["height"] < 24
    ] == []


BOTTOMS = """row => [...row.querySelectorAll("th a, th > span, button.age time, td button")].map(part => {
  const range = document.createRange();
  range.selectNodeContents(part);
  return Math.round(range.getClientRects()[0].bottom);
})"""
"""Where the first lines of the texts of a row end."""


def test_the_text_of_a_button_is_in_line_with_its_row(new_console: NewConsole) -> None:
    console = new_console("maintainer", "#/locks")
    row = console.page.get_by_role("row").filter(has=console.button("Break network/test"))
    expect(row).to_be_visible()
    bottoms = row.evaluate(BOTTOMS)
    assert len(bottoms) >= 3
    assert max(bottoms) - min(bottoms) <= 1


def test_the_fields_of_a_form_are_in_line_on_a_telephone(new_console: NewConsole) -> None:
    for place in ("#/activity", "#/find"):
        console = new_console("auditor" if "activity" in place else "reader", place)
        console.page.set_viewport_size({"width": 390, "height": 800})
        fields = console.page.locator("form :is(input, select)")
        expect(fields.first).to_be_visible()
        columns = {round(box["x"]) for one in fields.all() if (box := one.bounding_box())}
        assert len(columns) <= 2, place
        texts = "select => select.scrollWidth <= select.clientWidth"
        assert all(one.evaluate(texts) for one in console.page.locator("form select").all())


# --- pages of a state -----------------------------------------------------------------------------


def test_the_activity_of_a_state_is_one_of_its_pages(new_console: NewConsole) -> None:
    console = new_console("auditor", "#/states/network/prod")
    console.page.get_by_role("navigation", name="Pages of the state").get_by_role(
        "link", name="Activity"
    ).click()
    console.page.wait_for_url("**/#/states/network/prod/-/activity")
    expect(console.page).to_have_title("network/prod · strict")
    expect(console.page.get_by_role("heading", name="network/prod")).to_be_visible()
    tab = console.page.get_by_role("navigation", name="Pages of the state").get_by_role(
        "link", name="Activity"
    )
    expect(tab).to_have_attribute("aria-current", "page")
    expect(console.page.get_by_label("State", exact=True)).to_have_count(0)
    expect(row(console, "State written")).to_contain_text("Ada")
    console.page.get_by_label("Events").select_option("writes")
    console.page.wait_for_url("**/-/activity?*kind=writes*")
    expect(row(console, "Lock acquired")).to_have_count(0)
    console.link("History").click()
    console.shows("current")


def test_the_history_of_a_deleted_state_says_who_deleted_it_and_undeletes_it(
    strict: Team, state: str, new_console: NewConsole
) -> None:
    strict.write(state, documents.state())
    delete(strict, state)
    reader = new_console("reader", f"#/states/{state}/-/history")
    reader.shows("This state is deleted", "needs the role maintainer")
    deletion = reader.page.get_by_role("row").filter(has_text="deleted")
    expect(deletion).to_contain_text("Who deleted it needs the role auditor")
    expect(reader.button("Undelete …")).to_have_count(0)
    olga = new_token(strict, Grant(Role.MAINTAINER, ("*",)), owner="Olga")
    assert strict.client_with(olga).request("GET", "/manage/v1/whoami").status == 200
    console = new_console(olga, f"#/states/{state}/-/history")
    told = console.page.locator(".empty")
    expect(told).to_contain_text(re.compile(r"^This state is deleted.*Deleted .+ ago by .+: moved elsewhere"))
    deletion = console.page.get_by_role("row").filter(has_text="deleted")
    expect(deletion).to_contain_text(re.compile("token .+moved elsewhere"))
    console.button("Undelete …").click()
    console.dialog.get_by_role("button", name="Undelete").click()
    expect(console.dialog).to_contain_text(f"{state} is back")
    console.dialog.get_by_role("button", name="Close").click()
    expect(console.page.locator("tbody tr")).to_have_count(3)
    expect(told).to_have_count(0)


def test_who_deleted_a_state_is_looked_for_when_it_was_deleted(
    strict: Team, state: str, new_console: NewConsole
) -> None:
    strict.write(state, documents.state())
    delete(strict, state)
    console = new_console("maintainer")
    with console.page.expect_request("**/manage/v1/activity?**") as asked:
        console.open(f"#/states/{state}")
    assert "since=" in asked.value.url
    assert "until=" in asked.value.url


def test_coming_back_to_a_history_shows_what_was_read_and_a_change_or_a_tab_reads_it_again(
    strict: Team, state: str, new_console: NewConsole
) -> None:
    strict.write(state, ledger.VERSIONS[0], ledger.VERSIONS[1])
    console = new_console("maintainer", f"#/states/{state}/-/history")
    console.link("What changed in serial 4").click()
    console.page.wait_for_url("**/-/diff/**")
    console.page.wait_for_load_state("networkidle")
    read: list[str] = []
    note = "/manage/v1/versions/"
    console.page.on("request", lambda request: read.append(request.url) if note in request.url else None)
    console.page.go_back()
    expect(console.button("Restore serial 1")).to_be_visible()
    console.page.wait_for_load_state("networkidle")
    assert read == []

    console.button("Restore serial 1").click()
    console.dialog.get_by_label("Reason").fill("wrong subnets")
    console.dialog.get_by_role("button", name="Restore").click()
    expect(console.dialog).to_contain_text("Run terraform plan")
    console.dialog.get_by_role("button", name="Close").click()
    expect(console.page.locator("tbody tr")).to_have_count(3)
    assert len(read) == 1

    console.link("Now").click()
    console.shows("Lineage")
    expect(console.page.get_by_text("Client says")).to_have_count(0)  # a restore has no client
    strict.write(state, ledger.VERSIONS[3])
    console.link("History").click()
    expect(console.page.locator("tbody tr")).to_have_count(4)


def test_a_restore_lists_who_wrote_the_two_versions(
    strict: Team, state: str, new_console: NewConsole
) -> None:
    ada, nobody = (new_token(strict, Grant(Role.WRITER, ("*",)), owner=owner) for owner in ("Ada", ""))
    for number, token in enumerate((ada, nobody), 1):
        info = documents.lock_info(who="bea@laptop")
        client = strict.client_with(token)
        assert client.lock(state, info).status == 200
        assert client.write(state, documents.state(number), documents.lock_id(info)).status == 200
        assert client.unlock(state, info).status == 200
    console = new_console("maintainer", f"#/states/{state}/-/history")
    console.button("Restore serial 1").click()
    terms = console.dialog.locator("dl > div")
    expect(terms.nth(0)).to_contain_text(
        f'The earlier oneAda (token:{ada.username}) (client says "bea@laptop")'
    )
    expect(terms.nth(1)).to_contain_text(f'The current onetoken:{nobody.username} (client says "bea@laptop")')
    expect(terms).to_have_count(2)
    assert json.dumps(console.dialog.locator("p").all_inner_texts()).count("token:") == 0

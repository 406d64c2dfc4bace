"""The rows of lists: how each shows an event, a lock, a freeze or a deleted state, on every screen."""

import json
import re
from uuid import uuid4

import pytest
from playwright.sync_api import Route, ViewportSize, expect

from holdfast.access import Grant, Role
from tests.browser.conftest import NewConsole, freeze, new_token
from tests.browser.test_names import LONG, SCREENS
from tests.support import documents
from tests.support.http_client import Client, Credentials
from tests.support.team import Team

TELEPHONE: ViewportSize = {"width": 390, "height": 800}


@pytest.fixture
def state(state: str) -> str:
    """A name behind those of the other tests, which look at the first rows of the list of states."""
    return f"written/{state.removeprefix('e2e/')}"


@pytest.fixture
def olga(strict: Team) -> Credentials:
    return new_token(strict, Grant(Role.MAINTAINER, ("*",)), owner="Olga")


def done(client: Client, verb: str, path: str, document: object) -> None:
    answer = client.request(verb, f"/manage/v1/{path}", json.dumps(document).encode())
    assert answer.status == 200, answer


def delete_because(team: Team, who: Credentials, state: str, reason: str) -> None:
    team.write(state, documents.state())
    seen = {"version": team.versions(state)[-1].id, "reason": reason}
    done(team.client_with(who), "POST", f"delete/{state}", seen)


# --- events ---------------------------------------------------------------------------------------


def test_the_freeze_of_a_pattern_is_one_row_and_its_repetition_says_who_froze_it(
    strict: Team, state: str, olga: Credentials, new_console: NewConsole
) -> None:
    for name in ("a", "b"):
        strict.write(f"{state}/{name}", documents.state())
    for _ in range(2):
        wanted = {"pattern": f"{state}/*", "id": uuid4().hex, "reason": "release 8", "until": None}
        done(strict.client_with(olga), "PUT", "freezes", wanted)
    console = new_console("auditor", "#/activity?hours=1")
    of_state = console.page.get_by_role("row").filter(has_text=state)
    frozen = of_state.filter(has_text="State frozen")
    expect(frozen).to_have_count(1)
    expect(frozen.locator("summary")).to_have_text("2 states: release 8")
    frozen.locator("summary").click()
    for name in ("a", "b"):
        expect(frozen.get_by_role("link", name=f"{state}/{name}")).to_be_visible()
    terms = frozen.locator("dt").all_inner_texts()
    assert terms.index("Reason") < terms.index("Owner") < terms.index("Freeze ID")
    assert [term for term in terms if "_" in term] == []
    repeated = of_state.filter(has_text="Nothing changed")
    expect(repeated.locator("summary")).to_have_text("frozen already by Olga")
    released = of_state.filter(has_text="Lock released").first.locator("summary")
    expect(released.get_by_text("details")).to_be_visible()
    box = released.get_by_text("details").bounding_box()
    assert box
    assert box["width"] > 20


def test_a_usual_event_has_two_lines_on_a_telephone(new_console: NewConsole) -> None:
    everywhere = "#/activity?hours=1&principal=Ada"  # all events may be too many for one page
    console = new_console("auditor", everywhere, viewport=TELEPHONE)
    for place, name in ((everywhere, "network/prod"), ("#/states/network/prod/-/activity", "")):
        console.visit(place, [], "State written")
        written = console.page.get_by_role("row").filter(has_text=re.compile(f"State written.*{name}")).first
        expect(written.locator("summary")).to_contain_text("serial")
        box = written.bounding_box()
        assert box
        assert box["height"] < 75, place
        written.locator("summary").click()
        expect(written.locator("dl")).to_contain_text("state.written")
        assert console.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), place


# --- states ---------------------------------------------------------------------------------------

END = """link => {
  const texts = document.createTreeWalker(link, NodeFilter.SHOW_TEXT);
  let last;
  for (let text = texts.nextNode(); text; text = texts.nextNode()) if (text.length) last = text;
  const range = document.createRange();
  range.setStart(last, last.length - 1);
  range.setEnd(last, last.length);
  const { left, right, top, bottom } = range.getBoundingClientRect();
  const found = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  return right > left && link.contains(found);
}"""
"""Returns true if the last letter of a name can be seen."""


def test_the_end_of_a_long_name_is_seen_on_every_screen(
    strict: Team, state: str, new_console: NewConsole
) -> None:
    names = sorted(f"{state}/{end}" for end in (f"{LONG}-blue", f"{LONG}-green", "n" * 100, "short"))
    for name in names:
        strict.write(name, documents.state())
    console = new_console("reader", f"#/?q={state}")
    expect(console.names).to_have_text(names)
    for width in SCREENS:
        console.page.set_viewport_size({"width": width, "height": 900})
        for link in console.names.all():
            assert link.evaluate(END), f"{link.text_content()} at {width}"


def test_rows_stand_below_each_other_whatever_sorts_them(new_console: NewConsole) -> None:
    console = new_console("reader", "#/", viewport=TELEPHONE)
    expect(console.names.first).to_be_visible()
    begins = "links => [...new Set(links.map(link => link.getBoundingClientRect().left))]"
    for head, places in (("Size", 1), ("State", 2)):
        console.button(head).click()
        expect(console.page.get_by_role("columnheader", name=head)).to_have_attribute(
            "aria-sort", re.compile(".")
        )
        assert len(console.names.evaluate_all(begins)) <= places, head
    grouped = (
        "rows => rows.every(row => row.querySelector('.unseen') == null || row.classList.contains('inside'))"
    )
    assert console.page.locator("td.name:has(a)").evaluate_all(grouped)


def test_a_locked_row_on_a_telephone_has_its_size_and_names_its_owner_once(new_console: NewConsole) -> None:
    console = new_console("reader", "#/?q=network/test", viewport=TELEPHONE)
    line = console.page.locator("small.narrow")
    expect(line).to_contain_text("Bob")
    expect(line.get_by_text("KB")).to_be_visible()
    assert line.inner_text().count("Bob") == 1


def test_the_list_of_deleted_states_says_who_deleted_them_and_why(
    strict: Team, state: str, olga: Credentials, new_console: NewConsole
) -> None:
    delete_because(strict, olga, state, "moved elsewhere")
    console = new_console(olga, f"#/?only=deleted&q={state}")
    expect(console.page.locator("td.by")).to_have_text("Olga: moved elsewhere")
    expect(console.page.locator("td.by")).to_be_visible()
    console.page.set_viewport_size(TELEPHONE)
    expect(console.page.locator(".by-writer")).to_have_text("· Olga: moved elsewhere")
    expect(console.page.locator(".by-writer")).to_be_visible()
    reader = new_console("reader", f"#/?only=deleted&q={state}")
    expect(reader.names).to_have_text([state])
    expect(reader.page.get_by_role("columnheader", name="By")).to_have_count(0)


@pytest.mark.parametrize("width", [1440, 390])
def test_the_page_of_a_deleted_state_does_not_move_when_it_says_who_deleted_it(
    strict: Team, state: str, olga: Credentials, new_console: NewConsole, width: int
) -> None:
    delete_because(strict, olga, state, "moved to the account of the platform team")
    console = new_console(olga, viewport={"width": width, "height": 900})
    held: list[Route] = []
    waiting = re.compile("/manage/v1/(activity|versions)")
    console.page.route(waiting, lambda route: held.append(route))
    console.open(f"#/states/{state}")
    button = console.button("Undelete …")
    expect(button).to_be_disabled()
    before = console.page.locator(".empty").bounding_box(), button.bounding_box()
    for route in held:
        route.continue_()
    expect(button).to_be_enabled()
    expect(console.page.locator(".empty")).to_contain_text("by Olga: moved to the account")
    assert (console.page.locator(".empty").bounding_box(), button.bounding_box()) == before


# --- locks ----------------------------------------------------------------------------------------


def test_what_all_freezes_share_is_said_once(strict: Team, state: str, new_console: NewConsole) -> None:
    strict.write(state, documents.state())
    freeze(strict, state, "audit")
    console = new_console("maintainer", "#/locks")
    expect(console.button(f"Unfreeze {state}")).to_be_visible()
    expect(console.page.get_by_role("cell", name="no end", exact=True).first).to_be_visible()
    expect(console.page.get_by_text("Unfreezing needs")).to_have_count(0)
    reader = new_console("reader", "#/locks")
    expect(reader.page.get_by_text("Unfreezing needs the role maintainer")).to_have_count(1)
    expect(reader.page.get_by_role("button", name="Unfreeze")).to_have_count(0)

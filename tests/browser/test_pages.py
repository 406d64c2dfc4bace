"""Every page of the console: text is never markup, axe finds no fault, and a long list stays usable."""

import json
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
from playwright.sync_api import Route, expect

from tests.browser.conftest import NewConsole, freeze
from tests.support import documents
from tests.support.project import NewProject
from tests.support.team import Team

MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>"
HOSTILE = f"""
resource "terraform_data" "one" {{
  for_each = toset(["{MARKUP}"])
  input    = each.key
}}

output "hostile" {{
  value = "{MARKUP}"
}}
"""
ADDRESS = f'terraform_data.one["{MARKUP}"]'
RAN = "document.querySelector('img') !== null || document.querySelectorAll('script').length > 1"


def test_text_of_others_is_never_markup(
    strict: Team, state: str, new_console: NewConsole, new_project: NewProject
) -> None:
    project = new_project.applied(strict, state, strict.token("writer"), main=HOSTILE)
    project.write(main=HOSTILE.replace('value = "', 'value = "2'))
    project.ok("apply", "-auto-approve")
    frozen = f"{state}-frozen"
    strict.write(frozen, documents.state())
    freeze(strict, frozen, MARKUP)
    info = documents.lock_info(who=MARKUP, operation=MARKUP)
    assert strict.client("writer").lock(state, info).status == 200
    console = new_console("maintainer")
    gone = f"{state}-gone"
    strict.write(gone, documents.state())
    seen = {"version": strict.versions(gone)[-1].id, "reason": MARKUP}
    told = json.dumps(seen).encode()
    assert strict.client("maintainer").request("POST", f"/manage/v1/delete/{gone}", told).status == 200
    for place, actions, shown in (
        ("#/", [], state),
        (f"#/?q={MARKUP}", [], f"No state matches “{MARKUP}”"),
        ("#/locks", [f"Break {state}"], f'by "{MARKUP}" for "{MARKUP}"'),
        (f"#/states/{state}", [], ADDRESS),
        (f"#/states/{state}", ["Show values"], f'"2{MARKUP}'),
        (f"#/states/{state}", [], f'for "{MARKUP}"'),
        (f"#/states/{frozen}", ["Unfreeze"], f": {MARKUP}"),
        (f"#/states/{gone}", [], f": {MARKUP}"),
        (f"#/states/{state}/-/configuration", [], 'backend "http"'),
        (f"#/states/{state}/-/history", ["Compare others", "Compare the", "Show values"], f'"2{MARKUP}"'),
        (f"#/states/{state}/-/resource/{quote(ADDRESS, safe='')}", ["Show values"], f'"{MARKUP}"'),
        (f"#/activity?state={frozen}", [], MARKUP),
        (f"#/{MARKUP}", [], "Look at all states"),
    ):
        console.visit(place, actions, shown)
        assert not console.page.evaluate(RAN), place
        console.page.keyboard.press("Escape")


@pytest.mark.parametrize(("width", "colors"), [(360, "dark"), (1440, "light")])
def test_axe_finds_no_serious_fault_and_no_page_is_wider_than_the_screen(
    strict: Team, state: str, new_console: NewConsole, width: int, colors: str
) -> None:
    gone = f"{state}-gone"
    strict.write(gone, documents.state())
    told = json.dumps({"version": strict.versions(gone)[-1].id}).encode()
    assert strict.client("maintainer").request("POST", f"/manage/v1/delete/{gone}", told).status == 200
    earlier, later = (version.id for version in strict.versions("network/prod"))
    screen = {"width": width, "height": 900}
    console = new_console(None, "sign-in.html", viewport=screen, color_scheme=colors)
    console.shows("Run holdfast console in a terminal.")
    faults = {"sign-in.html": console.faults()}
    console.open()
    console.shows("Token")
    faults["sign-in"] = console.faults()
    console.sign_in(strict.token("maintainer"))
    for place, actions, shown in (
        ("#/", [], "network/prod"),
        ("#/states/network/prod", [], 'terraform_data.subnet["c"]'),
        ("#/states/network/prod", ["Freeze"], "It ends"),
        ("#/states/network/prod/-/configuration", [], 'backend "http"'),
        ("#/states/network/test", ["Break the lock"], "Reason (optional)"),
        (f"#/states/{gone}", ["Undelete"], "Its history is kept"),
        ("#/?only=deleted", [], gone),
        ("#/?by=modified&only=frozen", [], "shop/cart"),
        ("#/?q=nothing-like-this", [], "Find resources named"),
        ("#/locks", ["Freeze a pattern"], "It ends"),
        ("#/states/network/prod/-/history", [], "current"),
        (f"#/states/network/prod/-/diff/{earlier}/{later}", [], 'terraform_data.subnet["c"]'),
        ("#/locks", ["Break network/test"], "bob@laptop"),
        ("#/activity", [], "State written"),
        ("#/states/network/prod/-/activity", [], "State written"),
        ("#/find", [], "Only in states"),
        ("#/nothing", [], "Look at all states"),
    ):
        console.visit(place, actions, shown)
        faults[f"{place} {actions}"] = console.faults()
        assert console.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), place
        console.page.keyboard.press("Escape")
    assert {place: found for place, found in faults.items() if found} == {}


COVERED = """() => {
  const box = ({ left, right, top, bottom }) => ({ left, right, top, bottom });
  const parts = [...document.querySelectorAll(".bar .brand, .bar nav a, .bar .who > *")];
  const boxes = parts.map(part => ({ words: part.textContent, ...box(part.getBoundingClientRect()) }));
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  return boxes.flatMap((a, at) => [
    ...(a.right - a.left < 24 ? [`${a.words} is hidden`] : []),
    ...boxes.slice(at + 1).filter(b => meet(a, b)).map(b => `${a.words} and ${b.words}`),
  ]);
}"""
"""The parts of the bar that cover each other, or are too narrow to be read."""


def test_no_part_of_the_bar_covers_another_on_any_screen(new_console: NewConsole) -> None:
    console = new_console("maintainer")
    expect(console.link("network/prod")).to_be_visible()
    covered = {}
    for width in (320, 360, 375, 390, 412, 430, 460, 640, 768, 830, 1024, 1440):
        console.page.set_viewport_size({"width": width, "height": 800})
        covered[width] = console.page.evaluate(COVERED)
    assert {width: parts for width, parts in covered.items() if parts} == {}


MANY = [f"team-{number % 50:02}/service-{number:04}" for number in range(5_000)]


def page_of_many(route: Route) -> None:
    """Answer with a page of 1,000 states, or that a state does not exist."""
    asked = urlsplit(route.request.url)
    query = dict(parse_qsl(asked.query))
    if "deleted" in query:
        route.fulfill(json={"states": [], "next": None})
        return
    if not asked.path.endswith("/manage/v1/states"):
        route.fulfill(status=404, body='{"error": "no_state", "message": "The state does not exist."}')
        return
    begin, at = int(query.get("cursor", 0)), "2026-11-20T10:00:00Z"
    lock: dict[str, Any] = dict.fromkeys(("id", "operation", "info", "principal", "owner", "freeze"))
    lock |= {"who": "ada@laptop", "since": at, "version": "v"}
    written = {"size": 900, "modified": at, "deleted": False}
    names = sorted(MANY)[begin : begin + 1_000]
    states = [{"name": name, **written, "lock": lock if name.endswith("77") else None} for name in names]
    route.fulfill(json={"states": states, "next": str(begin + 1_000) if begin < 4_000 else None})


TYPED = """async typed => {
  const box = document.querySelector("input[type=search]");
  const begun = performance.now();
  box.value = typed;
  box.dispatchEvent(new InputEvent("input", {bubbles: true}));
  await new Promise(painted => requestAnimationFrame(() => setTimeout(painted)));
  return performance.now() - begun;
}"""
"""Milliseconds from a keystroke to the screen."""


def test_a_list_of_five_thousand_states_stays_usable(new_console: NewConsole) -> None:
    console = new_console(None)
    # They are made up: to write 5,000 objects takes a minute, and each list of the stack would be slower.
    console.page.route("**/manage/v1/states**", page_of_many)
    console.sign_in(console.team.token("reader"))
    console.shows("5,000 states")

    assert console.page.locator("tbody tr").count() < 200
    console.page.get_by_role("button", name="team-07/").click()
    expect(console.names.first).to_have_text("team-07/service-0007")
    for typed, first in (("team-07", "team-07/service-0007"), ("4999", "team-49/service-4999")):
        assert console.page.evaluate(TYPED, typed) < 1_000
        expect(console.names.first).to_have_text(first)
    console.page.get_by_role("searchbox").fill("")
    console.button("Lock").click()
    expect(console.names.first).to_have_text("team-27/service-0077")
    console.page.keyboard.press("End")
    expect(console.names.last).to_have_text("team-49/service-4999")

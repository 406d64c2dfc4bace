"""The stories of the console: each with a real Terraform, a real API and a real browser."""

import json
import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from playwright.sync_api import Request, Route, expect

from holdfast import names, timestamp
from holdfast.access import Grant, Role
from holdfast_cli.config import backend_config
from tests.browser.conftest import LATER, MAIN, Console, NewConsole, new_token
from tests.support import documents
from tests.support.project import NewProject
from tests.support.team import Team


def test_a_state_is_found_by_a_few_letters_and_the_heads_sort(new_console: NewConsole) -> None:
    console = new_console("reader")
    console.page.get_by_role("searchbox").fill("net")
    expect(console.names).to_have_text(["network/dev", "network/prod", "network/test"])
    expect(console.page.get_by_role("row").nth(2)).to_contain_text("Ada")
    console.button("Lock").click()
    expect(console.names).to_have_text(["network/test", "network/dev", "network/prod"])
    expect(console.page.get_by_role("row").nth(1)).to_contain_text("locked")
    expect(console.page.get_by_role("columnheader", name="Lock")).to_have_attribute("aria-sort", "ascending")
    console.button("Size").click()
    expect(console.names.last).to_have_text("network/dev")
    console.button("Size").click()
    expect(console.names.first).to_have_text("network/dev")
    assert "by=-size" in wait_for_address(console, "**/#/?*by=-size*")


def wait_for_address(console: Console, pattern: str) -> str:
    """Return the address of the page once it matches a pattern."""
    console.page.wait_for_url(pattern)
    return console.page.url


def test_a_list_that_was_refused_counts_nothing(new_console: NewConsole) -> None:
    console = new_console(None)
    console.page.route("**/manage/v1/states?**", lambda route: route.fulfill(status=429))
    console.page.route("**/manage/v1/states", lambda route: route.fulfill(status=429))
    console.sign_in(console.team.token("reader"))
    expect(console.page.get_by_role("alert")).to_contain_text("Too many requests")
    expect(console.page.locator("search").get_by_role("status")).to_have_text("")


def test_groups_fold_and_what_needs_somebody_is_shown_alone(
    strict: Team, state: str, new_console: NewConsole
) -> None:
    strict.write(state, documents.state())
    delete(strict, state)
    console = new_console("reader")
    group = console.page.get_by_role("button", name="network/")
    expect(group).to_have_attribute("aria-expanded", "true")
    group.click()
    expect(console.link("network/prod")).to_have_count(0)
    expect(console.link("shop/cart")).to_be_visible()
    console.page.get_by_role("searchbox").fill("prod")
    expect(console.link("network/prod")).to_be_visible()
    console.page.get_by_role("searchbox").fill("")
    group.click()
    expect(console.link("network/prod")).to_be_visible()

    expect(console.link("network/prod").locator(".unseen")).to_have_text("network/")
    console.page.get_by_role("button", name="frozen").click()
    expect(console.link("network/prod")).to_have_count(0)
    expect(console.link("shop/cart")).to_be_visible()
    console.page.get_by_role("button", name="deleted").click()
    expect(console.link(state)).to_be_visible()
    expect(console.link("shop/cart")).to_have_count(0)
    expect(console.button("Deleted")).to_be_visible()
    console.shows(re.compile(r"^\d+ deleted states?$"))
    expect(console.button("Last write")).to_have_count(0)
    heads = console.page.get_by_role("columnheader").filter(visible=True)
    expect(heads).to_have_text(["State", "Deleted"])
    console.page.get_by_role("button", name="deleted").first.click()
    expect(console.link("shop/cart")).to_be_visible()


def delete(team: Team, state: str) -> None:
    seen = json.dumps({"version": team.versions(state)[-1].id, "reason": "moved elsewhere"}).encode()
    deleted = team.client("maintainer").request("POST", f"/manage/v1/delete/{state}", seen)
    assert deleted.status == 200, deleted


def test_a_maintainer_brings_a_deleted_state_back(strict: Team, state: str, new_console: NewConsole) -> None:
    strict.write(state, documents.state())
    before = strict.current(state)
    delete(strict, state)
    reader = new_console("reader", f"#/states/{state}")
    reader.shows("This state is deleted", "needs the role maintainer")
    expect(reader.button("Undelete …")).to_have_count(0)
    expect(reader.page.get_by_role("alert")).to_have_count(0)

    console = new_console("maintainer", f"#/states/{state}")
    console.shows("This state is deleted")
    console.button("Undelete …").click()
    console.dialog.get_by_label("Reason").fill("still needed")
    with console.page.expect_request("**/undelete/**") as sent:
        console.dialog.get_by_role("button", name="Undelete").click()
    assert json.loads(sent.value.post_data or "")["reason"] == "still needed"

    expect(console.dialog).to_contain_text(f"{state} is back")
    assert strict.current(state) == before
    console.dialog.get_by_role("button", name="Close").click()
    console.shows("Lineage")


def test_the_block_is_copied_that_the_command_prints(strict: Team, new_console: NewConsole) -> None:
    rights = ["clipboard-read", "clipboard-write"]
    console = new_console("reader", "#/states/network/prod", permissions=rights)
    console.button("Copy backend block").click()
    expect(console.page.get_by_text("Copied backend block.")).to_be_attached()

    copied = console.page.evaluate("navigator.clipboard.readText()")

    name = names.parse("network/prod")
    assert copied == backend_config.to_hcl(strict.direct_address, name, read_only=False)
    console.link("Configuration").click()
    console.shows('backend "http"', 'data "terraform_remote_state" "network_prod"')


def test_where_the_browser_forbids_to_copy_the_text_is_shown(new_console: NewConsole) -> None:
    console = new_console("reader", "#/states/network/prod")
    console.page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error()) }")
    console.button("Copy backend block").click()
    expect(console.dialog).to_contain_text('backend "http"')


def test_a_reader_downloads_the_whole_state(strict: Team, new_console: NewConsole) -> None:
    console = new_console("reader", "#/states/network/prod")
    with console.page.expect_download() as started:
        console.button("Download").click()
    assert started.value.suggested_filename == "network_prod.tfstate"
    assert started.value.path().read_bytes() == strict.current("network/prod")


def test_a_reader_gets_the_command_for_a_state_that_the_api_does_not_send_whole(
    new_console: NewConsole,
) -> None:
    console = new_console("reader", permissions=["clipboard-read", "clipboard-write"])
    console.page.route(
        "**/manage/v1/states/network/prod",
        lambda route: route.fulfill(json=route.fetch().json() | {"size": 6_291_457}),
    )
    console.open("#/states/network/prod")
    console.button("Copy download command").click()
    expect(console.page.get_by_text("Copied download command.")).to_be_attached()
    assert console.page.evaluate("navigator.clipboard.readText()") == "holdfast state get network/prod"
    expect(console.button("Download")).to_have_count(0)
    console.page.unroute_all(behavior="wait")  # the page goes on asking


def test_the_name_leads_to_the_states_beside_it_and_a_slash_to_the_filter(new_console: NewConsole) -> None:
    console = new_console("reader", "#/states/network/prod")
    expect(console.page).to_have_title("network/prod · strict")
    console.link("network/").click()
    expect(console.names).to_have_text(["network/dev", "network/prod", "network/test"])
    console.link("network/prod").click()
    console.shows("Lineage")
    console.page.keyboard.press("/")
    expect(console.page.get_by_role("searchbox")).to_be_focused()
    console.page.keyboard.type("shop/")
    expect(console.names).to_have_text(["shop/cart"])


def test_a_long_name_does_not_make_the_page_of_a_phone_scroll_sideways(
    strict: Team, new_console: NewConsole
) -> None:
    role = (
        "arn:aws:sts::123456789012:assumed-role/AWSReservedSSO_PlatformEngineersProduction_1a2b3c4d5e6f7a8b"
    )
    me = {"principal": f"{role}/ada.lovelace.of.platform@example.com", "owner": None}
    console = new_console(None, viewport={"width": 390, "height": 800})
    console.page.route("**/manage/v1/whoami", lambda route: route.fulfill(json=route.fetch().json() | me))
    console.sign_in(new_token(strict, Grant(Role.READER, ("*",))))
    console.shows("PlatformEngineersProduction/ada.lovelace.of.platform@example.com")
    assert console.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    console.page.unroute_all(behavior="wait")  # the page goes on asking


def test_an_age_becomes_the_exact_time_on_a_tap(new_console: NewConsole) -> None:
    console = new_console("reader", "#/states/network/prod", timezone_id="UTC")
    age = console.page.get_by_role("main").get_by_role("button", name="ago,").first
    exact = age.get_attribute("title")
    assert exact
    assert exact.endswith("UTC)")
    age.press("Enter")
    expect(age).to_have_text(exact)
    age.click()
    expect(age).to_have_text(re.compile("ago$"))


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("America/New_York", "28 Nov 2026, 18:30:56 GMT-5\n(2026-11-28 23:30:56 UTC)"),
        ("Asia/Tokyo", "29 Nov 2026, 08:30:56 GMT+9\n(2026-11-28 23:30:56 UTC)"),
    ],
)
def test_an_exact_time_is_also_the_one_that_the_command_prints(
    new_console: NewConsole, zone: str, shown: str
) -> None:
    console = new_console("reader", timezone_id=zone)
    console.page.route(
        "**/manage/v1/states/network/prod",
        lambda route: route.fulfill(json=route.fetch().json() | {"modified": "2026-11-28T23:30:56Z"}),
    )
    console.open("#/states/network/prod")
    age = console.page.locator(".summary").get_by_role("button", name="ago,")
    expect(age).to_have_attribute("title", shown)
    console.page.set_viewport_size({"width": 360, "height": 800})
    age.click()
    expect(age).to_have_text(shown)
    assert console.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    console.page.unroute_all(behavior="wait")  # the page goes on asking


def test_a_maintainer_freezes_a_pattern_and_lifts_it(
    strict: Team, state: str, new_console: NewConsole
) -> None:
    strict.write(f"{state}/a", documents.state())
    strict.write(f"{state}/b", documents.state())
    held = strict.locked(f"{state}/b")
    console = new_console("maintainer", "#/locks")
    console.button("Freeze a pattern …").click()
    console.dialog.get_by_label("Pattern").fill(f"{state}/*")
    console.dialog.get_by_label("Reason").fill("release 8")
    console.dialog.get_by_role("button", name="Freeze").click()

    expect(console.dialog).to_contain_text(f"{state}/* is frozen, with 1 state. Still locked: {state}/b.")
    assert "release 8" in json.dumps(strict.lock(f"{state}/a"))
    assert strict.client("writer").unlock(f"{state}/b", held).status == 200
    console.dialog.get_by_role("button", name="Close").click()
    other = new_console(new_token(strict, Grant(Role.READER, ("*",))), "#/locks")
    other.shows("Unfreezing needs the role maintainer for the state or pattern.")
    expect(other.button(f"Unfreeze {state}/*")).to_have_count(0)

    rows = console.page.get_by_role("row").filter(has_text=f"{state}/")
    expect(rows.filter(has_text="release 8").first).to_contain_text(f"{state}/*")
    other.open(f"#/states/{state}/a")
    other.shows(f"The pattern {state}/* froze this state.")
    console.button(f"Unfreeze {state}/a").click()
    expect(console.dialog).to_contain_text(f"The pattern {state}/* stays frozen")
    console.dialog.get_by_role("button", name="Cancel").click()
    console.button(f"Unfreeze {state}/*").click()
    console.dialog.get_by_role("button", name="Unfreeze").click()

    expect(console.dialog).to_contain_text(f"{state}/* is not frozen any more, with 1 state.")
    assert strict.lock(f"{state}/a") is None
    strict.write(f"{state}/c", documents.state())


def test_an_apply_in_another_window_appears_within_ten_seconds(
    strict: Team, state: str, new_console: NewConsole, new_project: NewProject
) -> None:
    console = new_console("reader")
    expect(console.page.get_by_role("searchbox")).to_be_visible()

    new_project.applied(strict, state, strict.token("writer"), main=MAIN)

    # Ten seconds until the next reading, and what a busy machine needs for it.
    expect(console.link(state)).to_be_visible(timeout=15_000)


def test_a_state_shows_what_it_holds_and_no_sensitive_value(new_console: NewConsole) -> None:
    console = new_console("reader")
    console.link("network/prod").click()
    console.shows('terraform_data.subnet["a"]', "cidr", "Ada", "token:")
    expect(console.page.locator(".summary")).not_to_contain_text("token:")
    console.shows("2 versions of")
    assert "10.1.0.0/16" not in console.page.content()

    console.page.get_by_label("Show values").check()

    console.shows("10.1.0.0/16", "(sensitive)")
    value, name = (
        console.page.get_by_role("row", name="cidr").locator(cell) for cell in ("td >> nth=1", "th")
    )
    boxes = [box for one in (name, value) if (box := one.bounding_box())]
    assert boxes[1]["x"] - boxes[0]["x"] < 300, "a value is beside its name"
    assert "never-on-a-page" not in console.page.content()


LOOK = "bar => ['fill', 'strokeDasharray'].map(part => getComputedStyle(bar)[part]).join()"


def test_a_plot_of_sizes_has_three_versions_or_more(
    strict: Team, state: str, new_console: NewConsole
) -> None:
    strict.write(state, documents.state(1))
    console = new_console("reader", f"#/states/{state}")
    console.shows("1 version of")
    expect(console.page.locator(".plot")).to_have_count(0)
    strict.write(state, documents.state(2), documents.state(3))
    console.link("History").click()
    console.link("Now").click()
    console.shows(re.compile(r"^3 versions of [^u]*\sB$"))
    expect(console.page.locator(".plot a")).to_have_count(3)


def test_the_plot_shows_when_versions_were_written_and_leads_to_what_each_changed(
    strict: Team, state: str, new_console: NewConsole
) -> None:
    strict.write(state, *(documents.state(serial, content="x" * 400 * serial) for serial in range(1, 6)))
    hours = {1: 100, 2: 99, 3: 98, 4: 50, 5: 0}

    def aged(route: Route) -> None:
        page = route.fetch().json()
        for version in page["versions"]:
            version["time"] = timestamp.write(datetime.now(UTC) - timedelta(hours=hours[version["serial"]]))
        page["versions"][1]["restored_from"] = page["versions"][3]["version"]
        page["versions"][2]["status"] = "never_acknowledged"
        route.fulfill(json=page)

    console = new_console("reader", viewport={"width": 390, "height": 800})
    console.page.route("**/manage/v1/versions/**", aged)
    console.open(f"#/states/{state}")
    plot = console.page.locator(".plot")
    part = console.page.locator("section", has=plot)
    expect(part).to_contain_text(
        re.compile(r"5 versions of up to [\d.]+\sKB · hollow: restored · dashed: refused")
    )
    expect(part).to_contain_text(re.compile(r"4 d ago.*current: \d+ s ago$"))
    bars = plot.locator("a path:first-of-type")
    boxes = [box for bar in bars.all() if (box := bar.bounding_box())]
    left = [box["x"] for box in boxes]
    assert len(left) == 5
    assert all(one["x"] + one["width"] <= other["x"] for one, other in pairwise(boxes)), "each is seen"
    assert 0.4 < (left[3] - left[0]) / (left[4] - left[0]) < 0.6, "half of the time is half of the way"
    heights = [box["height"] for box in boxes]
    assert heights == sorted(heights)
    assert heights[0] < heights[4] / 2, "the heights begin at zero"
    looks = [bar.evaluate(LOOK) for bar in bars.all()]
    assert looks[0] == looks[1] == looks[4]
    assert len({*looks}) == 3, "a restored and a refused version have looks of their own"
    link = plot.get_by_role("link", name="serial 4")
    expect(link).to_have_accessible_name(
        re.compile(r"^serial 4, [\d.]+\sKB, 2 d ago, restored from serial 2, by .+$")
    )
    link.click()
    console.page.wait_for_url("**/-/diff/**")
    expect(console.page.locator(".sides")).to_contain_text(re.compile("serial 3.*serial 4"))
    console.page.unroute_all(behavior="wait")


def test_the_ids_of_a_state_are_folded(new_console: NewConsole) -> None:
    console = new_console("reader", "#/states/network/prod")
    lineage, version = console.button("Copy the lineage"), console.button("Copy the version ID")
    folded = console.page.locator("summary", has_text="Lineage and version")
    expect(folded).to_be_visible()
    expect(lineage).to_be_hidden()
    folded.click()
    expect(lineage).to_be_visible()
    expect(version).to_be_visible()


def test_resources_that_are_not_shown_yet_count(new_console: NewConsole) -> None:
    console = new_console("reader")

    def first_page(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, json=response.json() | {"next": "2"})

    console.page.route("**/manage/v1/resources/**", first_page)
    console.page.route(
        "**/manage/v1/states/network/prod",
        lambda route: route.fulfill(
            json=route.fetch().json() | {"resources": {"managed": 1_690, "data": 10, "outputs": 2}}
        ),
    )
    console.open("#/states/network/prod")
    console.shows("3 of 1,700")


def test_a_name_that_does_not_exist_leads_to_the_nearest_and_to_the_list(new_console: NewConsole) -> None:
    console = new_console("reader", "#/states/network/prodd")
    console.shows("There is no state 'network/prodd'.", "Did you mean one of these?")
    expect(console.page.get_by_role("alert")).to_have_count(0)
    expect(console.link("Configuration")).to_have_count(0)
    expect(console.link("Look at all states")).to_be_visible()
    console.link("network/prod").click()
    console.shows("Lineage")
    expect(console.link("Configuration")).to_be_visible()


def test_the_activity_tells_what_happened_lately(new_console: NewConsole) -> None:
    console = new_console("auditor", "#/activity?state=network/prod&kind=writes")
    row = console.page.get_by_role("row").filter(has_text="State written").first
    expect(row).to_contain_text("Ada")
    expect(row.locator("summary")).to_have_text(re.compile(r"^apply, serial \d+ → \d+$"))
    expect(console.page.get_by_role("columnheader", name="State")).to_have_count(0)


def test_a_maintainer_breaks_the_lock_that_the_page_shows_and_the_second_one_is_told(
    strict: Team, state: str, new_console: NewConsole
) -> None:
    strict.write(state, documents.state())
    strict.locked(state)
    first, second = new_console("maintainer", "#/locks"), new_console("maintainer", f"#/states/{state}")
    second.button("Break the lock …").click()
    first.button(f"Break {state}").click()
    expect(first.dialog).to_contain_text(re.compile(r'It was acquired \d+ \w+ ago by "ada@laptop" for'))
    expect(first.dialog.locator("p:not(:has(small))").filter(has_text="token:")).to_have_count(0)
    assert strict.lock(state)

    first.dialog.get_by_label("Reason").fill("killed runner")
    with first.page.expect_request("**/manage/v1/locks/**") as sent:
        first.dialog.get_by_role("button", name="Break the lock").click()
    assert "&reason=killed+runner" in sent.value.url
    expect(first.dialog).to_contain_text(f"The lock of {state} was removed.")
    expect(first.dialog.locator("code")).to_have_text("terraform plan")
    assert strict.lock(state) is None
    second.dialog.get_by_role("button", name="Break the lock").click()
    expect(second.dialog).to_contain_text(f"The lock of {state} was already gone: ")


def test_a_maintainer_freezes_and_unfreezes_and_terraform_prints_the_reason(
    strict: Team, state: str, new_console: NewConsole, new_project: NewProject
) -> None:
    project = new_project.applied(strict, state, strict.token("writer"), main=MAIN)
    console = new_console("maintainer", f"#/states/{state}")
    console.button("Freeze …").click()
    console.dialog.get_by_role("button", name="Freeze").click()
    wrong = console.dialog.get_by_role("alert")
    expect(wrong).to_contain_text("Give a reason")
    fields = console.dialog.locator("input, select, [role='alert']")
    assert [field.get_attribute("name") for field in fields.all()][-2:] == ["reason", None], "it is below"
    assert strict.lock(state) is None

    console.dialog.get_by_label("Reason").fill("the auditors look")
    console.dialog.get_by_role("button", name="Freeze").click()

    expect(console.dialog).to_contain_text("is frozen until")
    project.write(main=LATER)
    assert "the auditors look" in project.refused("apply", "-auto-approve")
    console.dialog.get_by_role("button", name="Close").last.click()
    console.button("Unfreeze …").click()
    console.dialog.get_by_role("button", name="Unfreeze").click()
    expect(console.dialog).to_contain_text("is not frozen any more")
    project.ok("apply", "-auto-approve")


def test_a_maintainer_restores_an_earlier_version(
    strict: Team, state: str, new_console: NewConsole, new_project: NewProject
) -> None:
    project = new_project.applied(strict, state, strict.token("writer"), main=MAIN)
    before = project.pull()
    project.write(main=LATER)
    project.ok("apply", "-auto-approve")
    console = new_console("maintainer", f"#/states/{state}/-/history")

    console.button(f"Restore serial {before['serial']}").click()
    console.dialog.get_by_label("Reason").fill("wrong subnets")
    console.dialog.get_by_role("button", name="Restore").click()

    expect(console.dialog).to_contain_text("Run terraform plan")
    assert project.pull()["resources"] == before["resources"]
    console.dialog.get_by_role("button", name="Close").last.click()
    expect(console.page.get_by_role("row").nth(1)).to_contain_text("wrong subnets")


def test_a_resource_is_looked_for_in_all_states(new_console: NewConsole) -> None:
    console = new_console("reader", "#/find")
    console.page.get_by_label("A part of its address").fill('subnet["c"]')
    console.button("Find").click()

    console.shows('terraform_data.subnet["c"]')
    assert "subnet" not in console.page.url
    expect(console.page.get_by_text(re.compile(r"\d+ resources? in \d+ state"))).to_be_visible()
    # A search that is left before its end goes on when somebody comes back.
    expect(console.page.get_by_role("progressbar")).to_have_count(0)
    console.link("network/prod").click()
    expect(console.page.get_by_role("heading", name="network/prod")).to_be_visible()
    sent_since: list[Request] = []
    console.page.on("request", lambda sent: sent_since.append(sent))
    console.page.go_back()
    console.shows('terraform_data.subnet["c"]')
    expect(console.page.get_by_label("A part of its address")).to_have_value('subnet["c"]')
    assert [sent.url for sent in sent_since if sent.url.endswith("/find")] == []


def test_states_that_were_not_searched_do_not_count_as_searched(new_console: NewConsole) -> None:
    console = new_console("reader", "#/find")
    skipped = [{"name": "network/dev", "why": "encrypted", "size": 9}]
    page = {"states": [], "skipped": skipped, "searched": 3, "left": 0, "next": None}
    console.page.route("**/manage/v1/find", lambda route: route.fulfill(json=page))
    console.page.get_by_label("A part of its address").fill("vpc")
    console.button("Find").click()
    console.shows("2 of 3 states searched", "1 state not searched")


def test_the_end_of_a_freeze_has_its_zone_and_the_button_is_at_the_edge(new_console: NewConsole) -> None:
    console = new_console("maintainer", timezone_id="UTC")
    freeze: dict[str, object] = {"pattern": "a/*", "id": "f", "reason": "audit"}
    freeze |= {
        "until": "2126-12-01T12:00:00Z",
        "by": "token:c",
        "owner": "cleo",
        "since": None,
        "liftable": True,
    }
    page = {"freezes": [freeze], "next": None}
    console.page.route("**/manage/v1/freezes**", lambda route: route.fulfill(json=page))
    console.link("Locks").click()
    until = console.page.get_by_role("row").filter(has_text="a/*").get_by_role("button", name="in ")
    expect(until).to_have_text(re.compile(r"^in \d+ d$"))
    until.click()
    expect(until).to_contain_text("12:00:00 UTC")
    cell = console.page.locator("td.act", has=console.button("Unfreeze a/*"))
    expect(cell).to_have_css("text-align", "right")
    freeze |= {"owner": "christopher.alexander@example.com", "pattern": "data/warehouse/*"}
    freeze |= {"reason": "year-end closing, ask the team of finance before anything else"}
    console.page.reload()
    expect(console.button("Unfreeze data/warehouse/*")).to_be_visible()
    for width in (390, 640, 687, 688, 720, 768, 860, 1280):
        console.page.set_viewport_size({"width": width, "height": 800})
        fits = "[...document.querySelectorAll('.wide')].every(box => box.scrollWidth <= box.clientWidth)"
        assert console.page.evaluate(fits), width


def test_the_pages_below_a_tab_mark_it(strict: Team, new_console: NewConsole) -> None:
    earlier, later = (version.id for version in strict.versions("network/prod"))
    console = new_console("maintainer", f"#/states/network/prod/-/diff/{earlier}/{later}")
    expect(console.link("History")).to_have_attribute("aria-current", "true")
    console.open("#/states/network/prod/-/resource/terraform_data.vpc")
    expect(console.link("Now")).to_have_attribute("aria-current", "true")
    console.link("Now").click()
    expect(console.link("Now")).to_have_attribute("aria-current", "page")
    expect(console.page.get_by_text(re.compile("· 3 resources ·"))).to_be_visible()


def test_an_address_that_changes_while_the_first_page_is_drawn_is_followed(
    strict: Team, new_console: NewConsole
) -> None:
    console = new_console(None)
    console.page.evaluate(
        """() => new MutationObserver((_, observer) => {
            if (!document.querySelector("nav")) return;
            observer.disconnect();
            location.hash = "#/locks";
        }).observe(document.body, { childList: true, subtree: true })"""
    )
    console.sign_in(strict.token("reader"))

    expect(console.page.get_by_role("heading", name="Locks")).to_be_visible()
    assert console.page.url == f"{console.address}#/locks"


def test_a_screen_without_a_keyboard_is_told_of_no_key(new_console: NewConsole) -> None:
    for options, told in (({}, "press /"), ({"has_touch": True, "is_mobile": True}, "name")):
        box = new_console("reader", **options).page.get_by_role("searchbox")
        expect(box).to_have_attribute("placeholder", re.compile(f"{told}$"))


def test_the_list_that_finds_no_state_looks_for_a_resource(new_console: NewConsole) -> None:
    console = new_console("reader")
    console.page.get_by_role("searchbox").fill("terraform_data")
    console.button("Find resources named “terraform_data”").click()

    console.shows("terraform_data.vpc")
    assert "terraform_data" not in console.page.url


def test_all_this_goes_without_a_mouse(strict: Team, new_console: NewConsole) -> None:
    console = new_console(None)
    keys, main = console.page.keyboard, console.page.get_by_role("main")
    tab_to(console, "input#token")
    keys.type(strict.token("maintainer").cloud_token)
    keys.press("Enter")
    tab_to(console, "input[type=search]")
    keys.type("net prod")
    expect(console.names).to_have_count(1)
    keys.press("ArrowDown")
    keys.press("Enter")
    expect(main).to_be_focused()
    tab_to(console, "nav a[href$=history]")
    keys.press("Enter")
    expect(main).to_be_focused()
    tab_to(console, "main a[href*='/-/diff/']")
    keys.press("Enter")
    console.page.wait_for_url("**/-/diff/**")
    console.shows('terraform_data.subnet["c"]')
    console.page.go_back()
    expect(console.page.locator("main a[href*='/-/diff/']").first).to_be_visible()
    tab_to(console, "button[aria-label^=Restore]")
    keys.press("Enter")
    expect(console.dialog.get_by_label("Reason")).to_be_focused()
    keys.press("Escape")
    expect(console.page.get_by_role("button", name="Restore")).to_be_focused()
    tab_to(console, "header nav a[href='#/locks']", key="Shift+Tab")
    keys.press("Enter")
    expect(main).to_be_focused()
    tab_to(console, "[aria-label^=Break]")
    keys.press("Enter")
    tab_to(console, "dialog button[type=submit]")
    keys.press("Escape")
    expect(console.dialog).to_have_count(0)


def tab_to(console: Console, selector: str, key: str = "Tab") -> None:
    """Press the tabulator until an element has the focus, which must be visible there."""
    console.page.locator(selector).first.wait_for()
    look = """selector => document.activeElement.matches(selector)
        && getComputedStyle(document.activeElement).outlineStyle"""
    for _ in range(60):
        if outline := console.page.evaluate(look, selector):
            assert outline != "none", selector
            return
        console.page.keyboard.press(key)
    raise AssertionError(f"no tabulator reaches {selector}")

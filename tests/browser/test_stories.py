"""The stories of the console: each with a real Terraform, a real API and a real browser."""

import re

from playwright.sync_api import Request, expect

from tests.browser.conftest import LATER, MAIN, Console, NewConsole
from tests.support import documents
from tests.support.project import NewProject
from tests.support.team import Team


def test_a_state_is_found_by_a_few_letters_and_locked_ones_come_first(new_console: NewConsole) -> None:
    console = new_console("reader")
    console.page.get_by_role("searchbox").fill("net")
    expect(console.names).to_have_text(["network/dev", "network/prod", "network/test"])
    expect(console.page.get_by_role("row").nth(2)).to_contain_text("Ada")
    console.page.get_by_label("Locked first").check()
    expect(console.names).to_have_text(["network/test", "network/dev", "network/prod"])
    expect(console.page.get_by_role("row").nth(1)).to_contain_text("locked")


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
    console.shows('terraform_data.subnet["a"]', "cidr", "Ada")
    expect(console.page.get_by_role("img", name=re.compile("version"))).to_be_visible()
    assert "10.1.0.0/16" not in console.page.content()

    console.page.get_by_label("Show values").check()

    console.shows("10.1.0.0/16", "(sensitive)")
    assert "never-on-a-page" not in console.page.content()


def test_two_versions_of_the_history_are_compared(new_console: NewConsole) -> None:
    console = new_console("reader", "#/states/network/prod")
    console.link("History").click()
    console.button("Compare the two versions").click()
    console.page.wait_for_url("**/-/diff/**")

    console.shows('terraform_data.subnet["b"]')
    told = " ".join(console.page.get_by_role("main").inner_text().split())
    for change in ('added terraform_data.subnet["c"]', 'removed terraform_data.subnet["b"]'):
        assert change in told
    assert "changed terraform_data.vpc" in told
    assert "10.1.0.0/16" not in told
    console.page.get_by_label("Show values").check()
    console.shows('"10.0.0.0/16" → "10.1.0.0/16"')
    assert "never-on-a-page" not in console.page.content()
    console.page.go_back()
    expect(console.button("Compare the two versions")).to_be_visible()


def test_the_activity_tells_what_happened_lately(new_console: NewConsole) -> None:
    console = new_console("auditor", "#/activity?state=network/prod&kind=writes")
    expect(console.page.get_by_role("row").filter(has_text="state.written").first).to_contain_text("Ada")


def test_a_maintainer_breaks_the_lock_that_the_page_shows_and_the_second_one_is_told(
    strict: Team, state: str, new_console: NewConsole
) -> None:
    strict.write(state, documents.state())
    strict.locked(state)
    first, second = new_console("maintainer", "#/locks"), new_console("maintainer", f"#/states/{state}")
    second.button("Break the lock …").click()
    first.button(f"Break {state}").click()
    expect(first.dialog).to_contain_text("ada@laptop")
    assert strict.lock(state)

    first.dialog.get_by_role("button", name="Break the lock").click()
    expect(first.dialog).to_contain_text(f"The lock of {state} is removed.")
    assert strict.lock(state) is None
    second.dialog.get_by_role("button", name="Break the lock").click()
    expect(second.dialog).to_contain_text("It was gone already")


def test_a_maintainer_freezes_and_unfreezes_and_terraform_prints_the_reason(
    strict: Team, state: str, new_console: NewConsole, new_project: NewProject
) -> None:
    project = new_project.applied(strict, state, strict.token("writer"), main=MAIN)
    console = new_console("maintainer", f"#/states/{state}")
    console.button("Freeze …").click()
    console.dialog.get_by_role("button", name="Freeze").click()
    expect(console.dialog.get_by_role("alert")).to_contain_text("Give a reason")
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
    console.link("network/prod").click()
    expect(console.page.get_by_role("heading", name="network/prod")).to_be_visible()
    sent_since: list[Request] = []
    console.page.on("request", lambda sent: sent_since.append(sent))
    console.page.go_back()
    console.shows('terraform_data.subnet["c"]')
    expect(console.page.get_by_label("A part of its address")).to_have_value('subnet["c"]')
    assert [sent.url for sent in sent_since if sent.url.endswith("/find")] == []


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
    tab_to(console, "main button[type=submit]")
    keys.press("Enter")
    console.page.wait_for_url("**/-/diff/**")
    console.shows('terraform_data.subnet["c"]')
    console.page.go_back()
    expect(main).to_be_focused()
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

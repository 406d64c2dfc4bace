"""Who is signed in: how a session begins and ends, what it may see, and an API that does not answer."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest
from playwright.sync_api import BrowserType, expect

from holdfast.access import Action, Grant, Role, allowed, roles_with
from tests.browser.conftest import OTHERS, NewConsole, new_token
from tests.support import documents
from tests.support.project import sign_in
from tests.support.team import HOLDFAST, Team
from tests.support.waiting import wait_until


def test_a_pasted_token_signs_in_and_signing_out_leaves_nothing(
    strict: Team, new_console: NewConsole
) -> None:
    token = strict.token("reader")
    console = new_console(None, "#/states/network/prod")
    console.page.get_by_label("Token").fill(f"{token.username}.wrong")
    console.button("Sign in").click()
    console.shows("This API does not accept the token.")

    console.sign_in(token)

    expect(console.page.get_by_role("heading", name="network/prod")).to_be_visible()
    assert token.password not in console.page.url
    console.page.reload()
    console.button("Sign out").click()
    expect(console.page.get_by_label("Token")).to_be_visible()
    assert console.stored() == [{}, {}, ""]
    assert token.password not in console.page.content()


def test_a_session_that_ends_says_so_and_keeps_the_place(strict: Team, new_console: NewConsole) -> None:
    in_an_hour = datetime.now(UTC) + timedelta(hours=1)
    ending = new_token(strict, Grant(Role.READER, ("*",)), expires=in_an_hour)
    console = new_console(ending, "#/states/network/prod/-/history", clock=True)
    console.shows("current")

    console.page.clock.fast_forward("01:00:01")

    console.shows("Your session ended.")
    assert console.stored() == [{}, {}, ""]
    console.sign_in(strict.token("reader"))
    expect(console.button("Compare others")).to_be_visible()


@contextmanager
def console_command(team: Team, folder: Path) -> Iterator[str]:
    """Run `holdfast console` with a token; yield the address that it opens."""
    asked, program = folder / "asked", folder / "browser"
    program.write_text(f"#!/bin/sh\nprintf %s \"$1\" > '{asked}.new' && mv '{asked}.new' '{asked}'\n")
    program.chmod(0o700)
    environment = {**team.environment, "BROWSER": f"{program} %s", **sign_in(team, team.token("reader"))}
    command = (HOLDFAST, "console", "network/prod", "--address", team.direct_address)
    process = subprocess.Popen(command, env=environment)
    try:
        wait_until(asked.exists, "the browser is started")
        yield asked.read_text()
    finally:
        process.terminate()
        process.wait()


def test_holdfast_console_hands_a_session_over_that_is_in_no_address_and_no_history(
    strict: Team, chromium: tuple[BrowserType, str], tmp_path: Path
) -> None:
    token = strict.token("reader")
    driver, path = chromium
    profile = tmp_path / "profile"
    with (
        console_command(strict, tmp_path) as local,
        driver.launch_persistent_context(profile, executable_path=path, ignore_https_errors=True) as context,
    ):
        # As a program opens it: the tab has no page before it, so that it may close itself.
        with context.expect_page() as started:
            context.new_cdp_session(context.pages[0]).send("Target.createTarget", {"url": local})
        page = started.value
        expect(page.locator("#warning")).to_contain_text("The browser will receive the token")
        with page.expect_popup() as opened, page.expect_event("close"):
            page.get_by_role("button", name="Open the console").click()
        tab = opened.value
        expect(tab.get_by_role("main")).to_contain_text(f"Sign in as token {token.username[:8]}…?")
        tab.get_by_role("button", name="Sign in").click()
        expect(tab.get_by_role("heading", name="network/prod")).to_be_visible()
        expect(tab.get_by_role("button", name="Sign out")).to_be_visible()
        assert token.password not in tab.url
    assert not Path(url2pathname(urlsplit(local).path)).exists()
    visits = b"".join(file.read_bytes() for file in (profile / "Default").glob("History*"))
    assert b"/console/" in visits
    assert token.password.encode() not in visits


_FROM_A_FRAME = """message => {
  const frame = document.body.appendChild(document.createElement("iframe"));
  frame.contentWindow.Function("tab", "message", "tab.postMessage(message, '*')")(tab, message);
}"""


def test_the_console_takes_one_message_of_the_page_that_opened_it_and_checks_whose_session_it_is(
    strict: Team, new_console: NewConsole
) -> None:
    console = new_console(None)
    opener = console.page
    opener.goto("about:blank")
    with opener.expect_popup() as opened:
        opener.evaluate("address => { tab = open(address) }", f"{console.address}sign-in.html")
    tab = opened.value
    shown = tab.get_by_role("main")
    expect(shown).to_contain_text("Waiting for the page")

    token, post = strict.token("reader").cloud_token, "message => tab.postMessage(message, '*')"
    for sender, script, principal in (
        (opener, _FROM_A_FRAME, "token:of-a-frame"),
        (tab, "message => postMessage(message, '*')", "token:of-itself"),
        (opener, post, 7),
        (opener, post, "token:firstofall"),
        (opener, post, "token:second"),
    ):
        sender.evaluate(script, {"holdfast": "session", "token": token, "principal": principal})

    expect(shown).to_contain_text("This session is not of token firstofa… but of token ")
    expect(tab.get_by_role("button", name="Sign in")).to_have_count(0)
    assert tab.evaluate("sessionStorage.length") == 0


PAGES = {
    "States": Action.READ_METADATA,
    "Locks": Action.READ_METADATA,
    "Activity": Action.READ_ACTIVITY,
    "Find": Action.READ,
}
TABS = {"History": Action.READ_HISTORY, "Activity": Action.READ_ACTIVITY}
"""The pages of a state that need an action; the others are offered to each role."""
PARTS = (Action.READ_HISTORY, Action.READ_OUTPUTS, Action.READ)
"""The actions that parts of a state's page need: its sizes, outputs and resources."""
CHANGES = {
    "Break network/test": Action.FORCE_UNLOCK,
    "Unfreeze shop/cart": Action.FREEZE,
    "Freeze …": Action.FREEZE,
    "Freeze a pattern …": Action.FREEZE,
    "Download": Action.READ,
    "Restore serial 1": Action.RESTORE,
}


@pytest.mark.parametrize("role", Role)
def test_a_role_is_offered_what_it_may_do_and_nothing_else(
    strict: Team, new_console: NewConsole, role: Role
) -> None:
    may = allowed(role)
    console = new_console(new_token(strict, Grant(role, ("network/*", *OTHERS))))
    refused: list[str] = []
    console.page.on("response", lambda one: refused.append(one.url) if one.status == 403 else None)
    links = console.page.get_by_role("navigation", name="Pages").get_by_role("link")
    expect(links).to_have_text([page for page, action in PAGES.items() if action in may])
    offered: set[str] = set()
    for place, shown in {
        "#/locks": "shop/cart",
        "#/states/network/prod": "Lineage",
        "#/states/network/prod/-/history": "current"
        if Action.READ_HISTORY in may
        else f"needs the role {roles_with(Action.READ_HISTORY)[0]}",
    }.items():
        console.visit(place, [], shown)
        if shown == "Lineage":
            withheld = sum(action not in may for action in PARTS)
            expect(console.page.get_by_text("needs the role")).to_have_count(withheld)
            tabs = console.page.get_by_role("navigation", name="Pages of the state").get_by_role("link")
            wanted = [tab for tab in ("Now", *TABS, "Configuration") if TABS.get(tab) in {None, *may}]
            expect(tabs).to_have_text(wanted)
        buttons = console.page.get_by_role("main").locator("button:not(.age, [aria-label^=Copy])").all()
        offered |= {one.get_attribute("aria-label") or one.inner_text() for one in buttons}
    changes = {change for change, action in CHANGES.items() if action in may}
    assert offered - {"Compare others"} == changes
    assert refused == []


def test_a_token_with_several_grants_sees_of_each_state_what_it_may(
    strict: Team, new_console: NewConsole
) -> None:
    mixed = new_token(strict, Grant(Role.READER, ("network/*",)), Grant(Role.OUTPUTS, ("shop/cart",)))
    console = new_console(mixed)
    expect(console.names).to_have_text(["network/dev", "network/prod", "network/test", "shop/cart"])
    console.link("shop/cart").click()
    expect(console.page.get_by_text("This needs the role")).to_have_count(2)
    expect(console.page.get_by_text("Removing it needs the role maintainer")).to_have_count(1)
    console.open("#/states/network/prod")
    console.shows('terraform_data.subnet["c"]')
    console.open("#/states/shop/checkout")
    console.shows("Your token does not allow this")


ANSWERS = {
    503: ('{"error": "undecided", "message": "S3 did not confirm."}', "The service did not respond in time"),
    429: ('{"message": "Too Many Requests"}', "Too many requests"),
}
"""Status -> a response with it, the second one as API Gateway makes it, and what the page says."""


@pytest.mark.parametrize("status", ANSWERS)
def test_a_temporary_failure_says_what_to_do_and_the_page_keeps_what_it_has(
    new_console: NewConsole, status: int
) -> None:
    body, told = ANSWERS[status]
    console = new_console("reader", clock=True)
    expect(console.link("network/prod")).to_be_visible()
    # The local AWS does not fail like this when it is asked to.
    answer = {"status": status, "body": body, "headers": {"Retry-After": "7"}}
    console.page.route("**/manage/v1/**", lambda route: route.fulfill(**answer))
    console.page.clock.fast_forward(11_000)
    console.shows(told, "Try again in 7 s.", "The data below may be out of date.")
    expect(console.link("network/prod")).to_be_visible()
    console.open("#/states/network/prod")
    console.shows(told)

    console.page.unroute("**/manage/v1/**")
    console.button("Try again").first.click()

    console.shows("Lineage")
    expect(console.page.get_by_role("alert")).to_have_count(0)


def test_a_state_that_is_deleted_while_one_looks_says_so(
    strict: Team, state: str, new_console: NewConsole
) -> None:
    strict.write(state, documents.state())
    console = new_console("reader", f"#/states/{state}", clock=True)
    console.shows("Lineage")
    seen = json.dumps({"version": strict.versions(state)[-1].id}).encode()
    deleted = strict.client("maintainer").request("POST", f"/manage/v1/delete/{state}", seen)
    assert deleted.status == 200, deleted

    console.page.clock.fast_forward(11_000)

    console.shows("This state is deleted")
    expect(console.page.get_by_role("main")).not_to_contain_text("Lineage")
    expect(console.page.get_by_role("alert")).to_have_count(0)

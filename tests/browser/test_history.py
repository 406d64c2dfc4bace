"""The history of a state, what differs between two versions, and the attributes of a resource."""

import json
import time
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Request, expect

from tests.browser.conftest import Console, NewConsole
from tests.support import documents, ledger
from tests.support.ledger import DATABASE, POLICY, SECRET
from tests.support.team import Team

MINUS = "\N{MINUS SIGN}"
CHANGED = "Resources: 3 added, 1 removed, 1 moved, 1 replaced, 6 changed. Outputs: 3 changed."
"""The changes of the newest version of the ledger, in words."""


@pytest.fixture
def state(state: str) -> str:
    """A name behind those of the other tests, which look at the first rows of the list of states."""
    return f"written/{state.removeprefix('e2e/')}"


@pytest.fixture
def written(strict: Team, state: str) -> str:
    """A state with the versions of the ledger."""
    strict.write(state, *ledger.VERSIONS)
    return state


def summaries(console: Console) -> Locator:
    return console.page.get_by_role("img", name="Resources:")


def asked(console: Console, path: str) -> list[str]:
    """Collect the addresses of requests whose path has a part, from now on."""
    found: list[str] = []
    console.page.on("request", lambda request: found.append(request.url) if path in request.url else None)
    return found


def difference(console: Console, state: str, serial: int = 9) -> None:
    """Open what a version changed, from the history."""
    console.open(f"#/states/{state}/-/history")
    console.link(f"What changed in serial {serial}").click()
    console.page.wait_for_url("**/-/diff/**")
    expect(console.page.locator("main .plan").first).to_be_visible()


# --- the history ----------------------------------------------------------------------------------


def test_the_history_says_what_each_version_changed_and_shows_it_at_once_again(
    written: str, new_console: NewConsole
) -> None:
    console = new_console("reader", f"#/states/{written}/-/history")
    rows = console.page.locator("tbody tr")
    expect(rows.nth(0).get_by_role("img")).to_have_attribute("aria-label", CHANGED)
    expect(rows.nth(0)).to_contain_text(f"+3→1±1~6{MINUS}13 outputs")
    expect(rows.nth(1)).to_contain_text("+8")
    expect(rows.nth(0)).to_contain_text("apply")
    expect(rows.nth(3)).to_contain_text("the first version")
    expect(summaries(console)).to_have_count(3)

    again = asked(console, "/diff/")
    console.link("What changed in serial 5").click()
    console.page.wait_for_url("**/-/diff/**")
    console.shows("serial 4")
    del again[:]
    console.page.go_back()
    expect(summaries(console)).to_have_count(3)
    assert again == []


def test_a_deleted_and_a_restored_version_stand_in_the_history(
    strict: Team, written: str, new_console: NewConsole
) -> None:
    earlier, current = strict.versions(written)[1::2]
    wanted = {"version": earlier.id, "current": current.id, "reason": "wrong subnets", "id": "a" * 32}
    answer = strict.client("maintainer").request(
        "POST", f"/manage/v1/restore/{written}", json.dumps(wanted).encode()
    )
    assert answer.status == 200, answer
    strict.s3.delete_object(Bucket=strict.bucket, Key=f"states/{written}.tfstate")
    console = new_console("maintainer", f"#/states/{written}/-/history")
    rows = console.page.locator("tbody tr")
    expect(rows.nth(0)).to_contain_text("deleted")
    expect(rows.nth(0)).to_contain_text("not in the audit trail")
    expect(rows.nth(0).get_by_role("link")).to_have_count(0)
    expect(rows.nth(1)).to_contain_text("restored from serial 4: wrong subnets")
    expect(rows.nth(1).get_by_role("img")).to_be_visible()


def test_a_version_that_cannot_be_compared_says_why_in_a_word(
    strict: Team, state: str, new_console: NewConsole
) -> None:
    strict.write(state, documents.state(1), documents.encrypted_state(2, "YQ=="))
    strict.put(f"states/{state}.tfstate", b"no state")
    console = new_console("reader", f"#/states/{state}/-/history")
    console.shows("not compared: not a state", "not compared: encrypted", "the first version")
    large = '{"error": "too_large", "message": "The versions are too large."}'
    console.page.route("**/diff/**", lambda route: route.fulfill(status=413, body=large))
    console.page.reload()
    console.shows("not compared: too large")
    console.page.unroute("**/diff/**")
    console.page.route("**/diff/**", lambda route: route.abort())
    console.page.reload()
    console.shows("not compared: no answer")
    expect(console.page.get_by_role("alert")).to_have_count(0)


def test_only_rows_in_view_are_compared_and_two_at_a_time(
    strict: Team, state: str, new_console: NewConsole
) -> None:
    strict.write(state, *(documents.state(serial, content=str(serial)) for serial in range(1, 21)))
    console = new_console("reader", viewport={"width": 1280, "height": 420})
    running: set[Request] = set()
    most = [0]

    def begin(request: Request) -> None:
        if "/diff/" in request.url:
            running.add(request)
            most.append(len(running))

    console.page.on("request", begin)
    console.page.on("requestfinished", lambda request: running.discard(request))
    console.open(f"#/states/{state}/-/history")
    console.page.reload(wait_until="networkidle")
    expect(summaries(console).first).to_be_visible()
    assert summaries(console).count() < 15
    console.page.set_viewport_size({"width": 1280, "height": 1400})
    begun = time.monotonic()
    expect(summaries(console)).to_have_count(19)
    print(f"the other rows took {time.monotonic() - begun:.1f} s")
    assert max(most) == 2


def test_two_others_are_compared_if_that_is_asked_for(written: str, new_console: NewConsole) -> None:
    console = new_console("reader", f"#/states/{written}")
    console.link("History").click()
    expect(console.link("What changed in serial 9")).to_be_visible()
    expect(console.page.get_by_role("radio")).to_have_count(0)
    console.button("Compare others").click()
    console.page.get_by_label("From serial 1").check()
    console.button("Compare the two versions").click()
    console.page.wait_for_url("**/-/diff/**")
    expect(console.page.locator(".sides")).to_contain_text("serial 1")


def test_an_auditor_sees_the_history_and_is_told_which_role_compares(
    strict: Team, written: str, new_console: NewConsole
) -> None:
    console = new_console("auditor", f"#/states/{written}/-/history")
    requests = asked(console, "/diff/")
    console.shows("serial 9", "apply", "A comparison needs the role reader")
    expect(console.page.get_by_text("What changed")).to_have_count(0)
    expect(console.button("Compare others")).to_have_count(0)
    earlier, later = (version.id for version in strict.versions(written)[-2:])
    console.open(f"#/states/{written}/-/diff/{earlier}/{later}")
    console.shows("What differs needs the role reader")
    console.open(f"#/states/{written}/-/resource/{DATABASE}")
    console.shows("The list of attributes needs the role reader")
    assert requests == []


# --- what differs ---------------------------------------------------------------------------------

MASKED = """main => [...main.querySelectorAll("*")]
  .filter(part => !part.children.length && /^\\((masked|sensitive)/.test(part.textContent))
  .map(part => ["fontFamily", "fontSize", "color"].map(look => getComputedStyle(part)[look]).join())"""
"""How the words look that a value has while it is not shown."""
UNDERLINED = """main => [...main.querySelectorAll(":is(table, ul, nav) a")]
  .filter(link => getComputedStyle(link).textDecorationLine !== "none").map(link => link.textContent)"""
"""The links of tables, lists and navigation that are underlined."""


def test_a_difference_reads_like_a_plan(written: str, new_console: NewConsole) -> None:
    console = new_console("reader")
    difference(console, written)
    told = " ".join(console.page.get_by_role("main").inner_text().split())
    for line in (
        "+ added aws_subnet.private[6] … [8] 3 alike",
        "→ moved aws_s3_bucket.documents moved from aws_s3_bucket.old_documents",
        "± replaced aws_instance.bastion replaced ami, id",
        "~ changed module.database.aws_db_instance.ledger now tainted: the next apply replaces it",
        "engine_version, instance_class, password (sensitive)",
        '~ changed aws_cloudwatch_metric_alarm.queue["audit"] … ["refunds"] 4 alike threshold',
        f"{MINUS} removed aws_route53_record.legacy",
        "+ added zone (masked)",
    ):
        assert line in told, line
    assert "db.r6g.large" not in console.page.content()

    subnet = console.link("aws_subnet.private[7]")
    expect(subnet).to_be_hidden()
    console.page.get_by_text("3 alike").click()
    expect(subnet).to_be_visible()


def test_values_are_shown_when_asked_for_and_json_as_json(written: str, new_console: NewConsole) -> None:
    console = new_console("reader")
    difference(console, written)
    console.page.get_by_label("Show values").check()
    expect(console.page.locator("del", has_text="db.r6g.large")).to_be_visible()
    expect(console.page.locator("ins", has_text="db.r6g.xlarge")).to_be_visible()
    policy = console.page.get_by_role("listitem").filter(has_text=POLICY)
    expect(policy.locator("ins")).to_have_text(['+          "s3:GetObjectVersion",'])
    expect(policy.locator("del")).to_have_count(0)
    console.shows("(sensitive, changed)")
    assert SECRET not in console.page.content()


def test_what_is_masked_and_what_is_sensitive_looks_the_same_on_every_page(
    written: str, new_console: NewConsole
) -> None:
    console = new_console("reader", f"#/states/{written}")
    console.shows("(masked)", "(sensitive)")
    looks = {*console.page.locator("main").evaluate(MASKED)}
    console.open(f"#/states/{written}/-/resource/{DATABASE}")
    console.shows("(masked)", "(sensitive)")
    looks |= {*console.page.locator("main").evaluate(MASKED)}
    difference(console, written)
    console.shows("(masked)", "(sensitive)")
    looks |= {*console.page.locator("main").evaluate(MASKED)}
    assert len(looks) == 1, looks


def test_only_a_link_in_a_text_is_underlined(written: str, new_console: NewConsole) -> None:
    console = new_console("reader")
    underlined = {}
    for place, shown in (
        (f"#/states/{written}", "aws_instance.bastion"),
        (f"#/states/{written}/-/history", "What changed"),
    ):
        console.visit(place, [], shown)
        underlined[place] = console.page.locator("main").evaluate(UNDERLINED)
    difference(console, written, serial=5)
    underlined["diff"] = console.page.locator("main").evaluate(UNDERLINED)
    assert {place: links for place, links in underlined.items() if links} == {}


def test_chips_filter_by_kind(written: str, new_console: NewConsole) -> None:
    console = new_console("reader")
    difference(console, written)
    entries = console.page.locator(".plan > li")
    everything = entries.count()
    moved, outputs = (console.page.get_by_role("button", name=name) for name in ("1 moved", "3 outputs"))
    expect(moved).to_have_attribute("aria-pressed", "false")
    moved.click()
    expect(moved).to_have_attribute("aria-pressed", "true")
    console.shows("Shown: moved")
    expect(entries).to_have_count(1)
    expect(entries).to_contain_text("aws_s3_bucket.documents")
    outputs.click()
    expect(entries).to_have_count(4)
    moved.click()
    outputs.click()
    expect(entries).to_have_count(everything)


def test_a_difference_leads_to_those_before_and_after_it(written: str, new_console: NewConsole) -> None:
    console = new_console("reader")
    difference(console, written, serial=5)
    sides = console.page.locator(".sides")
    around = console.page.get_by_role("navigation", name="Differences").get_by_role("link")
    console.page.set_viewport_size({"width": 1440, "height": 900})
    expect(around).to_have_count(2)
    boxes = [box for link in around.all() if (box := link.bounding_box())]
    assert boxes[1]["x"] - boxes[0]["x"] - boxes[0]["width"] < 50, "they are beside each other"
    around.filter(has_text="Next: serial 5 → serial 9").click()
    expect(sides).to_contain_text("serial 9 current")
    expect(around).to_have_count(1)
    around.filter(has_text="Previous: serial 4 → serial 5").click()
    around.filter(has_text="Previous: serial 1 → serial 4").click()
    expect(sides).to_contain_text("serial 1")
    expect(around).to_have_count(1)
    expect(around).to_contain_text("Next: serial 4 → serial 5")


# --- the attributes of a resource -----------------------------------------------------------------


def test_a_resource_is_reached_from_the_tree_and_its_values_are_masked(
    written: str, new_console: NewConsole
) -> None:
    console = new_console("reader", f"#/states/{written}")
    console.page.get_by_text("module.database").first.click()
    console.link(DATABASE).click()
    console.shows("instance_class", 'tags["env"]', "Tainted", "the next apply replaces it", "serial 9")
    expect(console.page.get_by_text("tainted: the")).to_have_count(0)
    console.shows("A state may lack marks")
    assert "db.r6g" not in console.page.content()

    console.page.get_by_label("Show values").check()

    console.shows('"db.r6g.xlarge"', "(sensitive)")
    assert SECRET not in console.page.content()
    console.page.get_by_role("searchbox").fill("TAGS")
    expect(console.page.locator("main dl.attributes dt")).to_have_text(['tags["env"]', 'tags["team"]'])
    console.page.go_back()
    expect(console.page.get_by_role("heading", name=written)).to_be_visible()


def test_a_resource_of_an_earlier_version_is_reached_from_a_difference(
    written: str, new_console: NewConsole
) -> None:
    console = new_console("reader")
    difference(console, written, serial=5)
    console.page.get_by_text("4 alike").click()
    console.link('aws_cloudwatch_metric_alarm.queue["orders"]').click()
    console.shows("serial 5")
    console.page.get_by_label("Show values").check()
    console.shows("100")
    console.link("Show it as it is now").click()
    console.shows("serial 9")
    console.page.get_by_label("Show values").check()
    console.shows("250")
    console.open(f"#/states/{written}/-/resource/aws_route53_record.legacy")
    console.shows("There is nothing with this name")


def test_a_removed_resource_is_shown_as_it_was(written: str, new_console: NewConsole) -> None:
    console = new_console("reader")
    difference(console, written)
    console.link("aws_route53_record.legacy").click()
    console.shows("fqdn", "serial 5")


def test_a_resource_is_reached_from_find_and_its_policy_is_shown_in_lines(
    written: str, new_console: NewConsole
) -> None:
    console = new_console("reader", "#/find")
    console.page.get_by_label("A part of its address").fill(POLICY)
    console.page.get_by_label("Only in states").fill(written)
    console.button("Find").click()
    console.link(POLICY).click()
    console.page.wait_for_url(f"**/-/resource/{quote(POLICY)}")
    console.page.get_by_label("Show values").check()
    expect(console.page.locator("main dd", has_text="Statement")).to_contain_text(
        '\n        "s3:GetObject",\n'
    )


def test_a_resource_says_which_versions_changed_it_also_before_it_was_moved(
    strict: Team, written: str, new_console: NewConsole
) -> None:
    console = new_console("reader", f"#/states/{written}/-/resource/aws_s3_bucket.documents")
    entries = console.page.locator(".plan > li")
    console.button("Which versions changed it?").click()
    console.shows("2 of 3 versions changed it.")
    expect(entries.nth(0)).to_contain_text("moved serial 9")
    expect(entries.nth(1)).to_contain_text("changed serial 5")
    expect(entries.nth(1)).to_contain_text("lifecycle")

    earlier = strict.versions(written)[-2].id
    console.open(f"#/states/{written}/-/resource/{DATABASE}/{earlier}")
    console.button("Which versions changed it?").click()
    console.shows("1 of 2 versions changed it.")
    expect(entries).to_contain_text("added serial 4")
    entries.get_by_role("link").click()
    console.page.wait_for_url("**/-/diff/**")


# --- every page -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "colors"), [(360, "dark"), (1440, "light")])
def test_axe_finds_no_serious_fault_and_no_page_is_wider_than_the_screen(
    strict: Team, written: str, new_console: NewConsole, width: int, colors: str
) -> None:
    screen = {"width": width, "height": 900}
    console = new_console("maintainer", viewport=screen, color_scheme=colors)
    earlier, later = (version.id for version in strict.versions(written)[-2:])
    faults = {}
    for place, actions, shown in (
        (f"#/states/{written}/-/history", ["Compare others"], "What changed"),
        (f"#/states/{written}/-/diff/{earlier}/{later}", ["Show values"], "s3:GetObjectVersion"),
        (f"#/states/{written}/-/resource/{quote(POLICY)}", ["Show values"], "s3:GetObjectVersion"),
        (f"#/states/{written}/-/diff/{earlier}/{later}", ["1 moved"], "moved from"),
    ):
        console.visit(place, actions, shown)
        faults[f"{place} {actions}"] = console.faults()
        assert console.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), place
    assert {place: found for place, found in faults.items() if found} == {}


def test_a_large_difference_is_drawn_in_parts(strict: Team, state: str, new_console: NewConsole) -> None:
    many = [
        ledger.resource("aws_route53_record", f"n{number}", {"fqdn": str(number)}) for number in range(450)
    ]
    strict.write(state, ledger.state(1, outputs={}), ledger.state(2, *many, outputs={}))
    console = new_console("reader")
    difference(console, state, serial=2)
    entries = console.page.locator(".plan > li")
    for shown in (200, 400):
        expect(entries).to_have_count(shown)
        console.button("Show more resources").click()
    expect(entries).to_have_count(450)
    expect(console.button("Show more resources")).to_have_count(0)

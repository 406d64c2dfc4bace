"""Chromium, and one deployed stack for all tests of the console: the team `strict` of the end-to-end tests.

Without Chromium the tests are skipped: they count as not run.
"""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

import pytest
from playwright.sync_api import (
    Browser,
    BrowserType,
    ConsoleMessage,
    Locator,
    Page,
    expect,
    sync_playwright,
)

from holdfast.access import Grant, Role
from holdfast.identity import tokens
from local_aws.deploy import deploy
from local_aws.home import DeployedTeam
from local_aws.server import Certificates, LocalAws
from local_aws.terraform import terraforms
from tests.e2e import conftest as stack
from tests.support import documents
from tests.support.http_client import Credentials
from tests.support.pages import ROOT
from tests.support.project import NewProject
from tests.support.team import Team

aws = stack.aws
certificates = stack.certificates
new_project = stack.one_project
roles = stack.roles
state = stack.state
strict = stack.strict
teams = stack.teams

_CHROMIUM: Final = (
    os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or ""
)
_AXE: Final = ROOT / "node_modules" / "axe-core" / "axe.min.js"
_SERIOUS: Final = ("serious", "critical")
_PATIENCE: Final = 20_000
"""Milliseconds for which something may take on a busy machine."""

expect.set_options(timeout=_PATIENCE)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say once why the tests were skipped."""
    if not _CHROMIUM:
        get = "apt-get install --no-install-recommends chromium"
        terminalreporter.line(f"The tests of the console did not run. They need Chromium: {get}")


@pytest.fixture(scope="session", autouse=True)
def chromium() -> Iterator[tuple[BrowserType, str]]:
    """The driver, and the path of the browser. It is the first fixture: without it nothing is deployed."""
    if not _CHROMIUM:
        pytest.skip("no Chromium")
    with sync_playwright() as playwright:
        yield playwright.chromium, _CHROMIUM


@pytest.fixture(scope="session")
def browser(chromium: tuple[BrowserType, str]) -> Iterator[Browser]:
    driver, path = chromium
    with driver.launch(executable_path=path) as started:
        yield started


@pytest.fixture(scope="session")
def deployed(aws: LocalAws) -> tuple[DeployedTeam, ...]:
    return deploy(aws, ["strict"], teams_file=stack.TEAMS_FILE)


# --- what the console shows -----------------------------------------------------------------------

MAIN: Final = """
resource "terraform_data" "vpc" {
  input = "10.0.0.0/16"
}

resource "terraform_data" "subnet" {
  for_each = toset(["a", "b"])
  input    = each.key
}

output "cidr" {
  value = terraform_data.vpc.output
}

output "password" {
  value     = "never-on-a-page"
  sensitive = true
}
"""
LATER: Final = MAIN.replace("10.0", "10.1").replace('"a", "b"', '"a", "c"')
"""Later a subnet is added, one is removed, and the network and its output are changed."""


def new_token(team: Team, *grants: Grant, owner: str = "", expires: datetime | None = None) -> Credentials:
    """Store a token with any grants."""
    told = {"description": "", "created_by": "a test", "owner": owner}
    token, secret = tokens.create(grants, now=datetime.now(UTC), expires=expires, **told)
    team.put(token.key, token.to_json())
    return Credentials(token.id, secret)


def freeze(team: Team, state: str, reason: str, *, by: Credentials | None = None) -> None:
    body = json.dumps({"reason": reason, "until": None, "id": uuid4().hex})
    client = team.client_with(by) if by else team.client("maintainer")
    answer = client.request("PUT", f"/manage/v1/freeze/{state}", body.encode())
    assert answer.status == 200, answer


OTHERS: Final = {"billing/ledger": 900, "network/dev": 0, "network/test": 4_000, "shop/cart": 52_000}
"""The states beside `network/prod`, with the length of their content."""


@pytest.fixture(scope="session")
def states(strict: Team, certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The state `network/prod`, to which a real Terraform applied `MAIN` and then `LATER`, beside `OTHERS`.

    `network/test` is locked, `shop/cart` is frozen.
    """
    make = NewProject(terraforms()[0], tmp_path_factory.mktemp("network"), certificates.ca)
    everywhere = Grant(Role.WRITER, ("*",))
    project = make.applied(strict, "network/prod", new_token(strict, everywhere, owner="Ada"), main=MAIN)
    project.write(main=LATER)
    project.ok("apply", "-auto-approve")
    bob = strict.client_with(new_token(strict, everywhere, owner="Bob"))
    for name, size in OTHERS.items():
        info = documents.lock_info(who="bob@laptop")
        assert bob.lock(name, info).status == 200
        body = documents.state(content="x" * size)
        assert bob.write(name, body, documents.lock_id(info)).status == 200
        if name != "network/test":
            assert bob.unlock(name, info).status == 200
    freeze(strict, "shop/cart", "Frozen until the audit is over")


# --- the console ----------------------------------------------------------------------------------


@dataclass
class Console:
    """A tab with the console of a team, and what the browser complains about."""

    page: Page
    team: Team
    complaints: list[str] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"{self.team.direct_address}/console/"

    def open(self, place: str = "#/") -> None:
        """Open a page of the console, by its address."""
        self.page.goto(self.address + place)

    def sign_in(self, token: Credentials) -> None:
        """Paste a token into the page that asks for one."""
        self.page.get_by_label("Token").fill(token.cloud_token)
        self.button("Sign in").click()
        expect(self.button("Sign out")).to_be_visible()

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def link(self, name: str) -> Locator:
        return self.page.get_by_role("link", name=name, exact=True)

    @property
    def dialog(self) -> Locator:
        return self.page.get_by_role("dialog")

    @property
    def names(self) -> Locator:
        """The names in the list of states."""
        return self.page.locator("tbody").get_by_role("link")

    def shows(self, *texts: str | re.Pattern[str]) -> None:
        """Wait until the page shows some texts."""
        for text in texts:
            expect(self.page.get_by_text(text).filter(visible=True).first).to_be_visible()

    def visit(self, place: str, actions: Sequence[str], shown: str) -> None:
        """Open a page, click on what has the names, or parts of them, and wait for a text."""
        self.open(place)
        for name in actions:
            button, box, link = (
                self.page.get_by_role(role, name=name) for role in ("button", "checkbox", "link")
            )
            button.or_(box).or_(link).first.click()
        self.shows(shown)

    def stored(self) -> Any:
        """Return what the browser keeps for the page."""
        return self.page.evaluate("[{...sessionStorage}, {...localStorage}, document.cookie]")

    def complaint_of(self, message: ConsoleMessage) -> None:
        """Note an error that the browser tells, except the status of a response, which the page shows."""
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            self.complaints.append(message.text)

    def faults(self) -> list[str]:
        """Return what axe finds that is serious."""
        self.page.evaluate(_AXE.read_text(encoding="utf-8"))
        found: dict[str, Any] = self.page.evaluate("axe.run()")
        serious = [one for one in found["violations"] if one["impact"] in _SERIOUS]
        return [f"{one['id']}: {node['html']}" for one in serious for node in one["nodes"]]


NewConsole = Callable[..., Console]


@pytest.fixture
def new_console(browser: Browser, strict: Team, states: None) -> Iterator[NewConsole]:  # noqa: ARG001 they are shown
    """Opens the console in a browser of its own, signed in with a token or the token of a role, or not.

    With `clock` a test can turn the page's clock forward. `options` are those of Playwright's context. At the
    end no page may have complained, for example about a violation of the content security policy.
    """
    consoles: list[Console] = []

    def make(
        who: str | Credentials | None, place: str = "#/", clock: bool = False, **options: Any
    ) -> Console:
        context = browser.new_context(ignore_https_errors=True, locale="en-GB", **options)
        context.set_default_timeout(_PATIENCE)
        if clock:
            context.clock.install()
        console = Console(context.new_page(), strict)
        consoles.append(console)
        console.page.on("console", console.complaint_of)
        console.page.on("pageerror", lambda error: console.complaints.append(str(error)))
        console.open(place)
        if who:
            console.sign_in(strict.token(who) if isinstance(who, str) else who)
        return console

    yield make
    for console in consoles:
        console.page.context.close()
    assert [complaint for console in consoles for complaint in console.complaints] == []

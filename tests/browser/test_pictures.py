"""The pictures of the documents, made of the deployed stack in both colour schemes.

`--update-generated` makes them anew. They are not compared, because IDs differ each time.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Route, expect

from holdfast import timestamp
from holdfast.access import Grant, Role
from holdfast_cli.terminal import ages
from tests.browser.conftest import Console, NewConsole, freeze, new_token
from tests.support import documents, ledger, terminal, terminal_picture
from tests.support.http_client import Credentials
from tests.support.pages import ROOT
from tests.support.team import HOLDFAST, Team

LEDGER: Final = "payments/ledger/prod"
AGES: Final = {
    "payments/ledger/staging": 190,
    "payments/fraud/prod": 3 * 1440,
    "edge/dns/zones": 5,
    "edge/vpc/eu": 27 * 60,
    "edge/vpc/us": 34 * 1440,
    "platform/cluster/prod": 48,
    "platform/cluster/staging": 6 * 60,
    "platform/registry": 70 * 1440,
    LEDGER: 2,
}
"""Each state of the pictures, with the age of its current version in minutes."""
LEDGER_AGES: Final = {1: 40 * 1440, 4: 9 * 1440, 5: 26 * 60, 9: 2}
"""Each serial of `LEDGER`, with the age of its version in minutes."""
LOCKED: Final = ("edge/dns/zones", "platform/cluster/staging")
LOCK_AGES: Final = {"edge/dns/zones": 4, "platform/cluster/staging": 51 * 60, "platform/registry": 20 * 60}
WRITERS: Final = ("Ada", "Bob", "deploy of payments")
HISTORY: Final = f"#/states/{LEDGER}/-/history"
SCOPE: Final = ("payments/*", "edge/*", "platform/*")
COLUMNS: Final = 88


def filled(number: int) -> bytes:
    """Return a state of a size of its own."""
    subnet = partial(ledger.resource, "aws_subnet", "private")
    subnets = [subnet({"cidr_block": f"10.0.{key}.0/24"}, key=key) for key in range(3 + 7 * number)]
    return ledger.state(1, *subnets, outputs={})


@pytest.fixture(scope="module")
def pictured(strict: Team) -> Iterator[Credentials]:
    """The states of the pictures; yield the token of a maintainer who sees no others."""
    writers = [
        strict.client_with(new_token(strict, Grant(Role.WRITER, SCOPE), owner=owner)) for owner in WRITERS
    ]
    for number, name in enumerate(AGES):
        for turn, body in enumerate(ledger.VERSIONS if name == LEDGER else [filled(number)]):
            writer = writers[(number + turn) % len(writers)]
            info = documents.lock_info(who="runner@ci-17")
            assert writer.lock(name, info).status == 200
            assert writer.write(name, body, documents.lock_id(info)).status == 200
            if name not in LOCKED:
                assert writer.unlock(name, info).status == 200
    ada = new_token(strict, Grant(Role.MAINTAINER, SCOPE), owner="Ada")
    freeze(strict, "platform/registry", "Frozen until the move is over", by=ada)
    yield ada
    for group in {name.partition("/")[0] for name in AGES}:
        listed = strict.s3.list_object_versions(Bucket=strict.bucket, Prefix=f"states/{group}/")
        for each in (*listed.get("Versions", ()), *listed.get("DeleteMarkers", ())):
            if any(each["Key"].startswith(f"states/{name}.tfstate") for name in AGES):
                strict.s3.delete_object(
                    Bucket=strict.bucket,
                    Key=each["Key"],
                    VersionId=each["VersionId"],
                    BypassGovernanceRetention=True,
                )


# --- times ----------------------------------------------------------------------------------------


def ago(minutes: float) -> str:
    return timestamp.write(datetime.now(UTC) - timedelta(minutes=minutes))


def aged(document: Any) -> None:
    """Give a response the ages of `AGES`: S3 does not let the time of an object be chosen."""
    name = document.get("name") if isinstance(document, dict) else None
    for state in document.get("states", [document]):
        if state.get("name") in AGES and "modified" in state:
            state["modified"] = ago(AGES[state["name"]])
        if state.get("lock"):
            since = ago(LOCK_AGES[state["name"]])
            state["lock"] |= {"since": since}
            if state["lock"].get("freeze"):
                state["lock"]["freeze"]["since"] = since
    for version in (
        *document.get("versions", ()),
        *(document[side] for side in ("from", "to") if side in document),
    ):
        if name == LEDGER:
            version["time"] = ago(LEDGER_AGES[version["serial"]])


def aged_text(printed: str) -> str:
    """Give the versions of `LEDGER` in a printed text the ages of `LEDGER_AGES`."""

    def age(found: re.Match[str]) -> str:
        now = datetime.now(UTC)
        return f"{found[1]}{ages.ago(now - timedelta(minutes=LEDGER_AGES[int(found[2])]), now)}"

    return re.sub(r"(\bserial (\d+) \()\d+ \w+ ago", age, printed)


def answer_aged(route: Route) -> None:
    response = route.fetch()
    document = response.json()
    if response.ok and isinstance(document, dict):
        aged(document)
        route.fulfill(response=response, json=document)
    else:
        route.fulfill(response=response)


# --- pictures of the console ----------------------------------------------------------------------

PICTURES: Final[Mapping[str, tuple[str, Sequence[str], str, int]]] = {
    "console-states": ("#/", (), "registry", 600),
    "console-history": (HISTORY, (), "serial 1", 400),
    "console-diff": (
        f"#/states/{LEDGER}/-/history",
        ("What changed in serial 9", "Show values"),
        "db.r6g.xlarge",
        947,
    ),
    "console-break": (
        "#/states/platform/cluster/staging",
        ("Break the lock",),
        "Break",
        560,
    ),
    "console-restore": (HISTORY, ("Restore serial 5",), "Restore", 560),
}
"""The name of each picture; the page, the clicks on it, a text that shows that it is ready, its height."""
ALONE: Final = "it => { document.body.style.visibility = 'hidden'; it.style.visibility = 'visible' }"
MOST_BYTES: Final = 400_000


def places(root: Path) -> set[str]:
    """Return the names of the pictures that the documents show."""
    shown = re.compile(r"console-[a-z-]+?(?:-dark)?\.png")
    pages = (*root.glob("*.md"), *root.glob("docs/**/*.md"))
    return {name for page in pages for name in shown.findall(page.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pictures_of_the_documents_are_made(
    pictured: Credentials,
    new_console: NewConsole,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    scheme: str,
) -> None:
    shown = places(ROOT)
    assert shown == {f"{name}{dark}.png" for name in PICTURES for dark in ("", "-dark")}
    folder = ROOT / "docs" / "operate" if request.config.getoption("--update-generated") else tmp_path
    ending = "-dark.png" if scheme == "dark" else ".png"
    for name, (place, actions, text, height) in PICTURES.items():
        console = new_console(
            None, color_scheme=scheme, viewport={"width": 1080, "height": height}, device_scale_factor=2
        )
        console.page.route("**/manage/v1/**", answer_aged)
        console.sign_in(pictured)
        console.visit(place, actions, text)
        settled(console)
        dialogs = console.dialog.all()
        for dialog in dialogs:
            dialog.evaluate(ALONE)  # its corners are round
        pictured_part = dialogs[0] if dialogs else console.page
        pictured_part.screenshot(path=folder / f"{name}{ending}")
        assert (folder / f"{name}{ending}").stat().st_size < MOST_BYTES
        console.page.unroute_all(behavior="wait")  # the page goes on asking


def settled(console: Console) -> None:
    """Wait until nothing is loading, with the pointer where it marks nothing."""
    console.page.mouse.move(0, 0)
    console.page.wait_for_load_state("networkidle")
    expect(console.page.get_by_text("Loading")).to_have_count(0)
    names_to_come = console.page.get_by_role("cell").get_by_text("…", exact=True)
    expect(names_to_come).to_have_count(0)


# --- the picture of a command ---------------------------------------------------------------------


def test_the_picture_of_a_difference_on_a_terminal_is_made(
    strict: Team, pictured: Credentials, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    environment = {
        **strict.environment,
        "HOLDFAST_ADDRESS": strict.gateway.address,
        "TF_HTTP_USERNAME": pictured.username,
        "TF_HTTP_PASSWORD": pictured.password,
        "TERM": "xterm-256color",
    }
    environment.pop("NO_COLOR", None)
    words = ("state", "diff", LEDGER, "--show-values")

    printed = aged_text(terminal.run((HOLDFAST, *words), environment, columns=COLUMNS))

    assert "db.r6g.xlarge" in printed
    assert all(age in printed for age in ("serial 5 (1 d ago", "serial 9 (2 min ago"))
    picture = terminal_picture.picture(f"holdfast {' '.join(words)}", printed, columns=COLUMNS)
    folder = ROOT / "docs" / "use" if request.config.getoption("--update-generated") else tmp_path
    (folder / "state-diff.svg").write_text(picture, encoding="utf-8")
    shown = any("state-diff.svg" in page.read_text(encoding="utf-8") for page in ROOT.glob("*.md"))
    assert shown, "a picture that no page shows is not needed"

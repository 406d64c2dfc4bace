"""Measure the console: its weight, its list of states in a browser, and a search beside applies."""

import json
import os
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks import cold_start
from benchmarks.figures import Figure, Section
from benchmarks.run import MANY, SMALL, Run, tell
from benchmarks.stack import Client
from benchmarks.state import state
from local_aws.server import ROOT
from tests.support import events

_APPLIED: Final = "benchmark/console"
_LOCK: Final = json.dumps({"ID": "console", "Operation": "benchmark", "Who": "us"}).encode()
_KEYSTROKE: Final = Path(__file__).with_name("keystroke.js").read_text(encoding="utf-8")

_NOTES: Final = (
    "Page: its files as they are sent, compressed. Cold: a process with the function's bundle, elapsed time.",
    "List: from the request for the page until it says how many states there are, signed in, nothing cached.",
    "Its requests are those for the page and the list, without those for who wrote the rows in view.",
    "Search: of 10 KB a state, without a match, page by page, each right after the one before.",
    "Apply: one lock, write and unlock, through the deployed API, on the same machine as the search.",
)
_NO_BROWSER: Final = (
    "The lists were not measured: no Chromium (apt-get install --no-install-recommends chromium).",
)


def measure(run: Run) -> Section:
    """Measure the page, the lists of two numbers of states, and the search of the larger number."""
    figures = [*_page(run)]
    numbers = run.some(MANY)
    path = chromium()
    if path:
        with sync_playwright() as playwright, playwright.chromium.launch(executable_path=path) as browser:
            figures += [figure for number in numbers for figure in _lists(run, browser, number)]
    notes = _NOTES if path else _NOTES + _NO_BROWSER
    return Section("The console", [*figures, *_search(run, numbers[-1])], notes)


def chromium() -> str | None:
    """Return the path of Chromium, or None if this machine has none."""
    return os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


def _page(run: Run) -> Iterator[Figure]:
    """Measure the weight of the page's files, and the time until its first bytes are there."""
    client = run.stack.client()
    page = client.ask("GET", "/console/")
    linked = re.findall(r'(?:src|href)="\./([^"]+)"', page.content().decode())
    files = [page, *(client.ask("GET", f"/console/{name}") for name in linked)]
    yield Figure.count("page: files", [len(files)], "files")
    yield Figure.of("page: together", "KB", [sum(len(file.body) for file in files) / 1024])
    bundle = cold_start.bundles(ROOT, {"console"})["console"]
    given = json.dumps(["console", events.console_request("GET", "/console/"), None])
    cold = [cold_start.start({}, bundle, "first_request", given)["wall"] for _ in range(run.rounds + 1)]
    yield Figure.of("index.html: cold", "ms", cold[1:])  # the first round fills the file cache


# --- in a browser ---------------------------------------------------------------------------------


def _lists(run: Run, browser: Browser, number: int) -> Iterator[Figure]:
    token = run.stack.new_token(f"{run.states(number)}*")["TF_TOKEN_holdfast_local"]
    tell(f"the list of {number:,} states in a browser")
    took = defaultdict[str, list[float]](list)
    for _ in range(run.rounds + 1):
        with browser.new_context() as context:
            _list(context.new_page(), run.stack.address, token, number, took)
    for values in took.values():
        del values[0]  # the first round may have started the functions
    name = f"list of {number:,} states"
    yield Figure.count(f"{name}: requests until it is shown", took["requests"])
    yield Figure.of(f"{name}: until it is shown", "s", took["shown"])
    yield Figure.of(f"{name}: from a keystroke to the screen", "ms", took["typed"])


def _list(page: Page, address: str, token: str, number: int, took: Mapping[str, list[float]]) -> None:
    """Open the console as somebody who is signed in, and type into the filter."""
    session = {"token": token, "principal": "token:benchmark", "until": None, "owner": None}
    key = f"holdfast:{urlsplit(address).path}/"
    page.add_init_script(f"sessionStorage.setItem({json.dumps(key)}, {json.dumps(json.dumps(session))})")
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(f"{address}/console/")
    page.get_by_text(f"{number:,} states", exact=True).wait_for()
    took["shown"].append(page.evaluate("performance.now()") / 1000)
    took["requests"].append(sum("/manage/v1/states/" not in address for address in requests))
    took["typed"] += [page.evaluate(_KEYSTROKE, typed) for typed in ("team-00", "service-00", "9")]


# --- a search -------------------------------------------------------------------------------------


def _search(run: Run, number: int) -> Iterator[Figure]:
    folder = run.states(number)
    tell(f"a search of {number:,} states, beside applies")
    writer = run.stack.api()
    _apply(writer, 1)
    alone = [_apply(writer, serial) for serial in range(2, 2 + 3 * run.rounds)]
    pages = _pages(run.stack.api(), folder, number)
    with ThreadPoolExecutor(1) as pool:
        searching = pool.submit(_pages, run.stack.api(), folder, number)
        beside = [*_applies_during(writer, searching)]
    for what, found in (("alone", pages), ("beside applies", searching.result())):
        yield Figure.count(f"search, {what}: requests", [len(found)])
        yield Figure.of(f"search, {what}: 100 states", "ms", [100 * ms / states for ms, states in found])
    yield Figure.of("apply: alone", "ms", alone)
    yield Figure.of("apply: beside a search", "ms", beside)


def _pages(client: Client, prefix: str, expected: int) -> Sequence[tuple[float, int]]:
    """Search for a type that no state has; return the milliseconds and the number of states of each page."""
    found, cursor = [], None
    while True:
        wanted: dict[str, Any] = {"type": "none", "prefix": prefix, "cursor": cursor}
        response = client.ask("POST", "/manage/v1/find", json.dumps(wanted).encode())
        page = response.json()
        found.append((response.ms, page["searched"]))
        cursor = page["next"]
        if cursor is None:
            break
    searched = sum(states for _, states in found)
    if searched != expected:
        raise RuntimeError(f"{searched} states were searched instead of {expected}")
    return found


def _applies_during(client: Client, searching: Future[Any]) -> Iterator[float]:
    serial = 100
    while not searching.done():
        serial += 1
        yield _apply(client, serial)


def _apply(client: Client, serial: int) -> float:
    """Lock a state, write it and unlock it; return the milliseconds of all three."""
    document = state(serial, SMALL)
    return sum(
        response.ms
        for response in (
            client.ask("PUT", f"/locks/{_APPLIED}", _LOCK),
            client.ask("POST", f"/states/{_APPLIED}?ID=console", document),
            client.ask("DELETE", f"/locks/{_APPLIED}", _LOCK),
        )
    )

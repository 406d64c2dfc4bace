"""Measure the console: its weight, its list of states in a browser, and a search beside applies."""

import gzip
import json
import os
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks import cold_start
from benchmarks.figures import Figure, Section
from benchmarks.run import Run, tell
from benchmarks.stack import Client, Stack
from benchmarks.state import state
from local_aws.server import ROOT
from tests.support import events

_FOLDER: Final = "benchmark/console/"
_FEW, _MANY = 1000, 5000
_SIZE: Final = 10_000
_LOCK: Final = json.dumps({"ID": "console", "Operation": "benchmark", "Who": "us"}).encode()

_WEIGHT: Final = 40.0  # KB
_SHOWN: Final = 1.5  # seconds
_PAINTED: Final = 50.0  # ms

_TYPED: Final = """async typed => {
  const box = document.querySelector("input[type=search]");
  const begun = performance.now();
  box.value = typed;
  box.dispatchEvent(new InputEvent("input", {bubbles: true}));
  await new Promise(painted => requestAnimationFrame(() => setTimeout(painted)));
  return performance.now() - begun;
}"""

_NOTES: Final = (
    "Page: each file as it is sent, compressed. Cold: a process with the function's bundle, elapsed time.",
    "List: from the request for the page until it says how many states there are, signed in, nothing cached.",
    "Its requests are those for the page and the list, without those for who wrote the rows in view.",
    "Search: of 5,000 states of 10 KB without a match, page by page, each right after the one before.",
    "Apply: one lock, write and unlock, through the deployed API, on the same machine as the search.",
)
_NO_BROWSER: Final = (
    "The lists were not measured: no Chromium (apt-get install --no-install-recommends chromium).",
)


def measure(run: Run) -> Section:
    """Measure the page, the lists of two numbers of states, and the search of the larger number."""
    figures = [*_page(run)]
    for number in (_FEW, _MANY):
        _write_states(run.stack, number)
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if path:
        with sync_playwright() as playwright, playwright.chromium.launch(executable_path=path) as browser:
            figures += _lists(run, browser)
    return Section("The console", [*figures, *_search(run)], _NOTES if path else _NOTES + _NO_BROWSER)


def _page(run: Run) -> Iterator[Figure]:
    """Measure the weight of the page's files, and the time until its first bytes are there."""
    client = Client(run.stack.address, {"Accept-Encoding": "gzip"})
    page = client.ask("GET", "/console/").body
    sent = {"index.html": page}
    for name in re.findall(r'(?:src|href)="\./([^"]+)"', gzip.decompress(page).decode()):
        sent[re.sub(r"-\w+[.]", ".", name)] = client.ask("GET", f"/console/{name}").body
    for name, body in sent.items():
        yield Figure.of(f"page: {name}", "KB", [len(body) / 1024])
    yield Figure.of("page: together", "KB", [sum(map(len, sent.values())) / 1024], limit=_WEIGHT)
    bundle = cold_start.bundles(ROOT, {"console"})["console"]
    given = json.dumps(["console", events.console_request("GET", "/console/"), {}, None])
    cold = [cold_start.start({}, bundle, cold_start.RUN, given)["wall"] for _ in range(run.rounds + 1)]
    yield Figure.of("index.html: cold", "ms", cold[1:])  # the first round fills the file cache
    warm = [client.ask("GET", "/console/").ms for _ in range(run.rounds)]
    yield Figure.of("index.html: warm, at the client", "ms", warm)


def _write_states(stack: Stack, number: int) -> None:
    tell(f"{number:,} states")
    s3, body = stack.s3(), state(1, _SIZE)
    for each in range(number):
        name = f"{_FOLDER}{number}/team-{each // 50:03}/service-{each:04}"
        s3.ask("PUT", f"/states/{name}.tfstate", body)


# --- in a browser ---------------------------------------------------------------------------------


def _lists(run: Run, browser: Browser) -> Iterator[Figure]:
    for number in (_FEW, _MANY):
        tell(f"the list of {number:,} states in a browser")
        token = run.stack.new_token(f"{_FOLDER}{number}/*")["TF_TOKEN_holdfast_local"]
        took = defaultdict[str, list[float]](list)
        for _ in range(run.rounds + 1):
            with browser.new_context() as context:
                _list(context.new_page(), run.stack.address, token, number, took)
        for values in took.values():
            del values[0]  # the first round may have started the functions
        name = f"list of {number:,} states"
        limits = (_SHOWN, None) if number == _FEW else (None, _PAINTED)
        yield Figure.count(f"{name}: requests until it is shown", took["requests"])
        yield Figure.of(f"{name}: until it is shown", "s", took["shown"], limit=limits[0])
        yield Figure.of(f"{name}: from a keystroke to the screen", "ms", took["typed"], limit=limits[1])


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
    took["typed"] += [page.evaluate(_TYPED, typed) for typed in ("team-00", "service-00", "9")]


# --- a search -------------------------------------------------------------------------------------


def _search(run: Run) -> Iterator[Figure]:
    tell(f"a search of {_MANY:,} states, beside applies")
    writer = run.stack.api()
    _apply(writer, 1)
    alone = [_apply(writer, serial) for serial in range(2, 22)]
    pages = _pages(run.stack.api())
    with ThreadPoolExecutor(1) as pool:
        searching = pool.submit(_pages, run.stack.api())
        beside = [*_applies_during(writer, searching)]
    for what, found in (("alone", pages), ("beside applies", searching.result())):
        yield Figure.count(f"search, {what}: requests", [len(found)])
        yield Figure.of(f"search, {what}: a page", "s", [ms / 1000 for ms, _ in found])
        yield Figure.of(f"search, {what}: 100 states", "ms", [100 * ms / states for ms, states in found])
    yield Figure.of("apply: alone", "ms", alone)
    yield Figure.of("apply: beside a search", "ms", beside)


def _pages(client: Client) -> Sequence[tuple[float, int]]:
    """Search for a type that no state has; return the milliseconds and the number of states of each page."""
    found, cursor = [], None
    while True:
        wanted: dict[str, Any] = {"type": "none", "prefix": f"{_FOLDER}{_MANY}/", "cursor": cursor}
        response = client.ask("POST", "/manage/v1/find", json.dumps(wanted).encode())
        packed = response.body.startswith(b"\x1f\x8b")
        page = json.loads(gzip.decompress(response.body) if packed else response.body)
        found.append((response.ms, page["searched"]))
        cursor = page["next"]
        if cursor is None:
            break
    if sum(states for _, states in found) != _MANY:
        raise RuntimeError(f"{sum(states for _, states in found)} states were searched instead of {_MANY}")
    return found


def _applies_during(client: Client, searching: Future[Any]) -> Iterator[float]:
    serial = 100
    while not searching.done():
        serial += 1
        yield _apply(client, serial)


def _apply(client: Client, serial: int) -> float:
    """Lock a state, write it and unlock it; return the milliseconds of all three."""
    name, document = f"{_FOLDER}applied", state(serial, _SIZE)
    return sum(
        response.ms
        for response in (
            client.ask("PUT", f"/locks/{name}", _LOCK),
            client.ask("POST", f"/states/{name}?ID=console", document),
            client.ask("DELETE", f"/locks/{name}", _LOCK),
        )
    )

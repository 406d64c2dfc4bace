"""`holdfast console`: the page that hands credentials over, and what the command gives it."""

import base64
import hashlib
import json
import re
import shutil
import signal
import stat
import subprocess
import time
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from holdfast_cli.api import hand_over
from holdfast_cli.api.hand_over import Given
from holdfast_cli.bucket import stack
from holdfast_cli.commands import console
from holdfast_cli.main import main
from tests.support import terminal
from tests.support.api_stub import ApiStub, Reply, made, session
from tests.support.cli_account import HOLDFAST
from tests.support.management import ID, SECRET, answer, environment, failure, run

GIVEN: Final = Given(
    "session-x.holdfast_y",
    "oidc:x#</script><b>\u2028",
    datetime(2027, 2, 19, 12, tzinfo=UTC),
    (("text", "It ends <b> "), ("time", "2027-02-19T12:00:00Z"), ("code", "holdfast console")),
)
API: Final = "https://api.example"
PAGE: Final = Reply(200, b"<!doctype html>")
BROWSER: Final = """\
#!/bin/sh
folder=$(dirname "${1#file://}")
{ stat -c %a "$folder" "${1#file://}"; printf '%s\\n' "$@"; } > @OUT@.new
cp "${1#file://}" @OUT@.html
mv @OUT@.new @OUT@
"""


def whoami(**changed: object) -> Reply:
    caller = {
        "principal": "token:ada",
        "owner": None,
        "role": "reader",
        "scope": ["*"],
        "grants": [{"role": "reader", "scope": ["*"]}],
        "method": "token",
        "trust": None,
        "expires": None,
    }
    return answer(caller | changed)


def ends(**span: float) -> str:
    return f"{datetime.now(UTC) + timedelta(**span):%Y-%m-%dT%H:%M:%SZ}"


# --- the page ------------------------------------------------------------------------------------

_PLAY: Final = """
const [script] = process.argv.slice(1);
const elements = {}, listeners = [], opened = [], posts = [], timers = [];
let closed = 0;
const element = (tag) => ({
  tag, textContent: "", parts: [],
  addEventListener(_, act) { this.click = act; },
  append(...parts) { this.parts.push(...parts); },
});
const document = {
  currentScript: {remove() { document.removed = true; }},
  createElement: element,
  getElementById: (id) => elements[id] ??= element(),
};
const other = {postMessage: (...sent) => posts.push(["other", ...sent])};
const tab = {postMessage: (...sent) => posts.push(["tab", ...sent])};
const window = {
  open: (...asked) => { opened.push(asked); return tab; },
  addEventListener: (_, listener) => listeners.push(listener),
  close: () => { closed += 1; },
};
new Function("document", "window", "setTimeout", script)(document, window, (act) => timers.push(act));
const origin = "https://api.example", ready = {holdfast: "ready"};
const send = (event) => listeners.forEach((listener) => listener(event));
send({source: tab, origin, data: ready});
send({source: null, origin, data: ready});
elements.open.click();
send({source: other, origin, data: ready});
send({source: tab, origin: "https://api.example.org", data: ready});
send({source: tab, origin: "null", data: ready});
for (const data of [null, "ready", {}, {holdfast: "session"}]) send({source: tab, origin, data});
send({source: tab, origin, data: {holdfast: "taken"}});
const before = posts.length + closed;
if (process.argv[2]) timers.forEach((act) => act());
send({source: tab, origin, data: ready});
send({source: tab, origin, data: ready});
const taken = {holdfast: "taken"};
send({source: other, origin, data: taken});
const early = closed;
send({source: tab, origin, data: taken});
console.log(JSON.stringify({opened, before, posts, who: elements.who.textContent,
                            removed: document.removed, early, closed,
                            warning: elements.warning.parts.map((part) => [part.tag, part.textContent]),
                            said: elements.said.textContent}));
"""


def script_of(page: str) -> str:
    [script] = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    return str(script)


def played(script: str, *, late: bool = False) -> Any:
    """Return what a page's script does with messages, most of which are not those of the console."""
    node = shutil.which("node")
    assert node
    line = [node, "-e", _PLAY, script, *(["late"] if late else [])]
    return json.loads(subprocess.check_output(line, text=True, timeout=60))


POSTED: Final = [
    [
        "tab",
        {
            "holdfast": "session",
            "token": GIVEN.token,
            "principal": GIVEN.principal,
            "until": "2027-02-19T12:00:00Z",
        },
        "https://api.example",
    ]
]


def test_the_page_hands_over_once_to_the_tab_that_it_opened_and_to_the_origin_of_the_api() -> None:
    done = played(script_of(hand_over.text("https://API.example:443/team", GIVEN)))

    assert done["opened"] == [["https://api.example/team/console/sign-in.html", "_blank"]]
    assert (done["before"], done["posts"]) == (0, POSTED)
    assert (done["who"], done["removed"]) == (GIVEN.principal, True)
    assert (done["early"], done["closed"]) == (0, 1)
    assert done["warning"][::2] == [["span", "It ends <b> "], ["code", "holdfast console"]]
    tag, time_shown = done["warning"][1]
    assert tag == "span"
    assert "2027" in time_shown
    assert "T12" not in time_shown
    assert "close this page" in done["said"]


@pytest.mark.parametrize(
    ("code", "mutant"),
    [
        ("given.message, page.origin)", 'given.message, "*")'),
        ("given = null;", ""),
        ("event.source !== opened || ", ""),
        ("event.origin !== page.origin || ", ""),
        (" || !isReady", ""),
    ],
)
def test_a_page_that_is_less_careful_is_noticed(code: str, mutant: str) -> None:
    script = script_of(hand_over.text(API, GIVEN))
    assert script.count(code) == 1

    done = played(script.replace(code, mutant))

    assert (done["before"], done["posts"]) != (0, POSTED)


def test_the_page_names_the_person_and_hands_over_the_principal() -> None:
    done = played(script_of(hand_over.text(API, replace(GIVEN, owner="Ada"))))

    assert (done["who"], done["posts"]) == ("Ada", POSTED)


def test_a_page_that_was_left_open_hands_nothing_over() -> None:
    done = played(script_of(hand_over.text(API, GIVEN)), late=True)

    assert (done["posts"], "expired" in done["said"]) == ([], True)


def test_the_page_runs_nothing_but_its_own_script_and_shows_no_text_as_markup() -> None:
    page = hand_over.text(API, GIVEN)

    def hash_of(tag: str) -> str:
        [content] = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()

    [policy] = re.findall(r'"Content-Security-Policy" content="([^"]+)"', page)
    assert policy.split("; ") == [
        "default-src 'none'",
        f"script-src '{hash_of('script')}'",
        f"style-src '{hash_of('style')}'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert "<b>" not in page
    assert "\u2028" not in page
    assert page.count(GIVEN.token) == 1
    assert "http" not in page.replace("https://api.example/console/sign-in.html", "").replace(
        "http-equiv", ""
    )
    assert GIVEN.token not in repr(GIVEN)


def test_the_page_is_in_a_folder_of_its_user_alone_and_removed_whatever_happens(tmp_path: Path) -> None:
    own, shared = tmp_path / "own", tmp_path / "shared"
    own.mkdir(mode=0o700)
    shared.mkdir()
    shared.chmod(0o755)
    for runtime, is_used in ((own, True), (shared, False), (tmp_path / "none", False), (Path("own"), False)):
        with (
            suppress(KeyboardInterrupt),
            hand_over.page(API, GIVEN, environment={"XDG_RUNTIME_DIR": str(runtime)}) as file,
        ):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
            assert (file.parent.parent == runtime) == is_used
            raise KeyboardInterrupt
        assert not file.parent.exists()


def test_the_page_is_in_the_home_folder_where_snaps_are_because_their_browsers_read_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hand_over, "_SNAP", tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))

    with hand_over.page(API, GIVEN, environment={"XDG_RUNTIME_DIR": "/run/user/1000"}) as file:
        assert file.parent.parent == tmp_path
        assert not file.parent.name.startswith(".")
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


# --- the command ---------------------------------------------------------------------------------


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The pages that a browser was given, which reads each at once."""
    pages: list[str] = []

    def open_(address: str) -> bool:
        pages.append(Path(address.removeprefix("file://")).read_text(encoding="utf-8"))
        return True

    monkeypatch.setattr(webbrowser, "get", lambda: None)
    monkeypatch.setattr(webbrowser, "open", open_)
    monkeypatch.setattr(console, "_wait", lambda _: wait_for(lambda: bool(pages)))
    return pages


def wait_for(is_so: Callable[[], bool]) -> None:
    limit = time.monotonic() + 30
    while not is_so() and time.monotonic() < limit:
        time.sleep(0.01)
    assert is_so()


def console_as(monkeypatch: pytest.MonkeyPatch, stub: ApiStub, *arguments: str, **changed: str | None) -> int:
    """Run the command in this process, with the variables of a user who has signed in."""
    for name in ("TF_HTTP_USERNAME", "TF_HTTP_PASSWORD", "HOLDFAST_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment(stub, **changed).items():
        monkeypatch.setenv(name, value)
    return main(["console", *arguments])


def given_in(page: str) -> dict[str, Any]:
    [found] = re.findall(r"let given = (.+?);\n", script_of(page))
    document: dict[str, Any] = json.loads(found)
    return document


SESSION: Final = {"TF_HTTP_USERNAME": f"session-{ID}"}
AWS: Final = {
    "AWS_REGION": "eu-central-1",
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "TF_HTTP_USERNAME": None,
}


def test_a_session_of_an_hour_is_handed_over_as_it_is(
    monkeypatch: pytest.MonkeyPatch, stub: ApiStub, opened: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    until = ends(minutes=59)
    stub.reply(PAGE, whoami(principal="arn:ada", owner="Ada", method="aws", expires=until))

    assert console_as(monkeypatch, stub, **SESSION) == 0

    [page] = opened
    assert given_in(page) == {
        "page": f"{stub.address}/console/sign-in.html",
        "message": {
            "holdfast": "session",
            "token": f"session-{ID}.{SECRET}",
            "principal": "arn:ada",
            "until": until,
        },
        "warning": [],
        "who": "Ada",
    }
    assert [asked.path for asked in stub.asked] == ["/console/sign-in.html", "/manage/v1/whoami"]
    assert "authorization" not in stub.asked[0].headers
    printed = "".join(capsys.readouterr())
    assert SECRET not in printed
    assert "removed in 30 seconds" in printed


@pytest.mark.parametrize("how", [[], ["--duration", "30m"]])
def test_without_credentials_or_when_asked_to_a_new_session_of_at_most_an_hour_is_created(
    monkeypatch: pytest.MonkeyPatch, stub: ApiStub, opened: list[str], how: list[str]
) -> None:
    got = session()
    stub.reply(PAGE, made(got))
    environment_ = AWS | ({"TF_HTTP_USERNAME": ID} if how else {})

    assert console_as(monkeypatch, stub, *how, **environment_) == 0

    message = given_in(opened[0])["message"]
    assert (message["token"], message["principal"]) == (f"{got['id']}.{got['secret']}", got["principal"])
    assert message["until"] == "2099-11-21T16:44:05Z"
    asked = stub.asked[-1]
    assert (asked.path, json.loads(asked.body)) == ("/sessions/aws", {"seconds": 1800 if how else 3600})


@pytest.mark.parametrize(
    ("variables", "expires", "said"),
    [
        ({}, None, "the token in TF_HTTP_USERNAME and TF_HTTP_PASSWORD. The token never expires"),
        ({}, 1, "the token in"),
        (SESSION, 61, "the session in TF_HTTP_USERNAME and TF_HTTP_PASSWORD. The session lasts until"),
    ],
)
def test_the_page_says_that_the_browser_gets_a_token_or_a_long_session_itself(
    monkeypatch: pytest.MonkeyPatch,
    stub: ApiStub,
    opened: list[str],
    variables: dict[str, str],
    expires: int | None,
    said: str,
) -> None:
    stub.reply(PAGE, whoami(expires=expires and ends(minutes=expires)))

    assert console_as(monkeypatch, stub, **variables) == 0

    parts = given_in(opened[0])["warning"]
    warning = "".join(text for _, text in parts)
    assert said in warning
    assert "holdfast console --duration 1h gives the browser a new session instead" in warning
    assert ["code", "holdfast console --duration 1h"] in parts
    assert [kind for kind, _ in parts].count("time") == (expires is not None)
    assert SECRET not in warning


def test_the_option_of_the_question_that_is_gone_says_so(stub: ApiStub) -> None:
    done = run(stub, "console", "--yes")

    assert done.returncode == 2
    assert "this command no longer asks for confirmation: remove this option" in done.stderr
    assert stub.asked == []


def test_the_page_has_the_colours_of_the_console() -> None:
    console_style = (Path(__file__).parents[2] / "console" / "style.css").read_text()
    page = hand_over.text(API, GIVEN)
    colours = re.findall(r"--[a-z-]+: light-dark\(.+?\);", page)

    assert len(colours) >= 7
    assert [colour for colour in colours if colour not in console_style] == []
    assert "font: 0.9375rem / 1.45 system-ui, sans-serif;" in console_style
    assert "font: 0.9375rem / 1.45 system-ui, sans-serif;" in page


def test_enter_ends_the_wait(stub: ApiStub) -> None:
    stub.reply(PAGE, whoami())
    began = time.monotonic()

    shown = terminal.run([HOLDFAST, "console"], environment(stub, BROWSER="true %s"), columns=80, typed="\n")

    assert time.monotonic() - began < 25
    [file] = re.findall(r"open (\S+) in the browser", " ".join(shown.split()))
    assert not Path(file).exists()


def test_an_id_token_is_handed_over_as_it_is(
    monkeypatch: pytest.MonkeyPatch, stub: ApiStub, opened: list[str]
) -> None:
    stub.reply(PAGE, whoami(method="oidc", expires=ends(minutes=10)))
    jwt = {"TF_HTTP_USERNAME": "oidc", "TF_HTTP_PASSWORD": "aa.bb.cc"}

    assert console_as(monkeypatch, stub, **jwt) == 0

    assert given_in(opened[0])["message"]["token"] == "aa.bb.cc"


def test_the_credentials_of_the_environment_are_not_sent_to_the_stack_of_a_team(
    monkeypatch: pytest.MonkeyPatch, stub: ApiStub, opened: list[str]
) -> None:
    got = session()
    stub.reply(PAGE, made(got))
    monkeypatch.setattr(stack, "api_address", lambda _: stub.address)

    assert console_as(monkeypatch, stub, "--team", "payments", **AWS | {"TF_HTTP_USERNAME": ID}) == 0

    assert given_in(opened[0])["message"]["token"] == f"{got['id']}.{got['secret']}"
    assert SECRET not in "".join(str(asked.headers) for asked in stub.asked)


def test_terraforms_variables_tell_the_api(
    monkeypatch: pytest.MonkeyPatch, stub: ApiStub, opened: list[str]
) -> None:
    stub.reply(PAGE, whoami(expires=ends(minutes=10)))
    variables = {"HOLDFAST_ADDRESS": None, "TF_HTTP_ADDRESS": f"{stub.address}/states/network/prod"}

    assert console_as(monkeypatch, stub, **SESSION | variables) == 0

    assert given_in(opened[0])["page"] == f"{stub.address}/console/sign-in.html"


def test_an_api_without_a_console_gets_no_session(stub: ApiStub) -> None:
    stub.reply(Reply(400, b"{}"))

    said = failure(stub, "console", BROWSER="true %s")

    assert "responds with 400 instead of the console" in said
    assert {asked.path for asked in stub.asked} == {"/console/sign-in.html", "/health"}


def test_print_shows_the_address_alone(stub: ApiStub) -> None:
    done = run(stub, "console", "--print")

    assert (done.returncode, done.stdout, done.stderr) == (0, f"{stub.address}/console/\n", "")
    assert stub.asked == []


def test_a_state_has_its_page_opened(
    monkeypatch: pytest.MonkeyPatch, stub: ApiStub, opened: list[str]
) -> None:
    stub.reply(PAGE, whoami(expires=ends(minutes=59)))

    assert console_as(monkeypatch, stub, "network/prod", **SESSION) == 0

    [page] = opened
    assert given_in(page)["page"] == f"{stub.address}/console/sign-in.html#/states/network/prod"
    printed = run(stub, "console", "network/prod", "--print").stdout
    assert printed == f"{stub.address}/console/#/states/network/prod\n"


def test_a_machine_without_a_browser_is_told_the_address(
    monkeypatch: pytest.MonkeyPatch, stub: ApiStub, capsys: pytest.CaptureFixture[str]
) -> None:
    def get() -> None:
        raise webbrowser.Error

    stub.reply(PAGE)
    monkeypatch.setattr(webbrowser, "get", get)

    assert console_as(monkeypatch, stub) == 1

    assert f"Open {stub.address}/console/ in a browser" in capsys.readouterr().err


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_the_browser_is_given_a_path_alone_and_the_page_is_removed_when_the_command_ends(
    stub: ApiStub, tmp_path: Path, ending: signal.Signals
) -> None:
    stub.reply(PAGE, whoami(expires=ends(minutes=30)))
    seen, browser = tmp_path / "seen", tmp_path / "browser"
    browser.write_text(BROWSER.replace("@OUT@", str(seen)))
    browser.chmod(0o700)
    variables = environment(stub, BROWSER=f"{browser} %s", XDG_RUNTIME_DIR=str(tmp_path), **SESSION)
    tmp_path.chmod(0o700)

    command = subprocess.Popen(
        [HOLDFAST, "console"], env=variables, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    wait_for(seen.exists)
    arguments = Path(f"/proc/{command.pid}/cmdline").read_bytes().decode()
    command.send_signal(ending)
    _, said = command.communicate(timeout=30)

    of_folder, of_file, *addresses = seen.read_text().splitlines()
    assert (of_folder, of_file) == ("700", "600")
    [address] = addresses
    assert re.fullmatch(rf"file://{tmp_path}/holdfast-\w+/sign-in\.html", address)
    assert SECRET in Path(f"{seen}.html").read_text()
    assert not Path(address.removeprefix("file://")).parent.exists()
    assert SECRET not in arguments + said
    assert command.returncode == (130 if ending is signal.SIGINT else 128 + ending)

"""The function that serves the console, event in and response out, and the files that are built for it."""

import base64
import gzip
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.headers import PROTECTED
from holdfast.access import Role
from holdfast_cdk import console, places
from tests.support.access_calls import VERBS
from tests.support.cost_document import LARGEST_FILE_KB
from tests.support.events import Context, console_request

OF_PAGE: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
FOR_EVER: Final = "public, max-age=31536000, immutable"
LISTED: Final = {
    "index.html": {"type": "text/html; charset=utf-8", "cache": "no-store", "opener": False},
    "sign-in.html": {"type": "text/html; charset=utf-8", "cache": "no-store", "opener": True},
    "app-1f.js": {"type": "text/javascript; charset=utf-8", "cache": FOR_EVER, "opener": False},
}
NOT_LISTED: Final = (
    *("x", "files.json", "index.html.gz", "app-2e.js", "index.html/", "/index.html", "INDEX.HTML", "index"),
    *("../handler.py", "..", ".", "files/index.html", "%2e%2e/handler.py", "a\r\nb: c", "states/a"),
)

Answer = dict[str, Any]
Ask = Callable[..., Answer]


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ask]:
    """Sends a request for a path below `/console`, to the function with three files."""
    (tmp_path / "files.json").write_text(json.dumps(LISTED))
    for name in LISTED:
        (tmp_path / name).write_text(f"<p>{name} of größe</p>")
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress((tmp_path / name).read_bytes(), mtime=0))
    handler = import_module("console.handler")
    monkeypatch.setattr(handler, "_FILES", tmp_path)

    def ask(path: str, method: str = "GET", **headers: str) -> Answer:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        event = console_request(method, f"/console{path}", **sent)
        answer: Answer = handler.handle(event, Context())
        return answer

    yield ask
    for cached in (vars(handler)["_listed"], vars(handler)["_content"]):
        cached.cache_clear()


def body(answer: Answer) -> str:
    content = base64.b64decode(answer["body"]) if answer["isBase64Encoded"] else answer["body"].encode()
    return (gzip.decompress(content) if "Content-Encoding" in answer["headers"] else content).decode()


@pytest.mark.parametrize("encoding", ["gzip", "br", "gzip;q=0", ""])
@pytest.mark.parametrize("name", LISTED)
def test_a_listed_file_is_served_as_it_was_built(ask: Ask, name: str, encoding: str) -> None:
    answer = ask(f"/{name}", accept_encoding=encoding)

    assert (answer["statusCode"], body(answer)) == (200, f"<p>{name} of größe</p>")
    opener = {} if LISTED[name]["opener"] else {"Cross-Origin-Opener-Policy": "same-origin"}
    packed = {"Content-Encoding": "gzip"} if encoding == "gzip" else {}
    assert answer["headers"] == {
        "Content-Type": LISTED[name]["type"],
        "Cache-Control": LISTED[name]["cache"],
        "Content-Security-Policy": OF_PAGE,
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Vary": "Accept-Encoding",
        **opener,
        **packed,
    }
    head = ask(f"/{name}", "HEAD", accept_encoding=encoding)
    assert (head["statusCode"], head["headers"], head["body"]) == (200, answer["headers"], "")


@pytest.mark.parametrize("parameters", [{"path": ""}, {}, None])
def test_the_address_with_a_slash_is_the_page_and_without_it_leads_there(
    ask: Ask, parameters: dict[str, str] | None
) -> None:
    event = console_request("GET", "/console/") | {"pathParameters": parameters}
    page = import_module("console.handler").handle(event, Context())
    assert page == ask("/index.html")

    for method in ("GET", "HEAD"):
        moved = ask("", method)
        # Relative, because only the client knows where the API lies.
        assert (moved["statusCode"], moved["headers"]["Location"]) == (308, "console/")
        assert moved["headers"].items() >= {**PROTECTED, "Cache-Control": "no-store"}.items()


@pytest.mark.parametrize("method", sorted({*VERBS, "OPTIONS", "TRACE"}))
@pytest.mark.parametrize("path", ["", "/", *(f"/{name}" for name in (*LISTED, *NOT_LISTED))])
def test_no_path_reads_as_a_state_that_is_missing_or_a_lock_that_is_acquired(
    ask: Ask, path: str, method: str
) -> None:
    answer = ask(path, method)

    assert (
        answer["headers"].items()
        >= {
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }.items()
    )
    if method not in ("GET", "HEAD"):
        expected, allowed = 405, "GET, HEAD"
    else:
        expected = 308 if not path else 200 if path[1:] in ("", *LISTED) else 400
        allowed = None
    assert (answer["statusCode"], answer["headers"].get("Allow")) == (expected, allowed)
    if expected >= 400:
        assert answer["headers"].items() >= PROTECTED.items()
        assert set(json.loads(answer["body"])) == {"error", "message"}


def test_it_logs_nothing(ask: Ask, capfd: pytest.CaptureFixture[str]) -> None:
    ask("/index.html")
    ask("/nothing")
    assert capfd.readouterr() == ("", "")


# --- the build ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("console") / "files"
    console.build(folder)
    return folder


def test_a_second_build_has_the_same_bytes(built: Path, tmp_path: Path) -> None:
    console.build(tmp_path / "again")

    one, other = (
        {path.name: path.read_bytes() for path in folder.iterdir()} for folder in (built, tmp_path / "again")
    )
    assert one == other


def test_each_listed_file_is_there_and_compressed_and_no_other_and_all_are_small(built: Path) -> None:
    listed = json.loads((built / "files.json").read_text())

    assert {path.name for path in built.iterdir()} == {
        "files.json",
        *listed,
        *(f"{name}.gz" for name in listed),
    }
    for name, file in listed.items():
        assert gzip.decompress((built / f"{name}.gz").read_bytes()) == (built / name).read_bytes()
        is_page = name.endswith(".html")
        assert file["cache"] == ("no-store" if is_page else FOR_EVER)
        assert is_page or re.search(r"-[0-9a-f]{8,}\.", name), "it may change, and is cached for ever"
    assert [name for name, file in listed.items() if file["opener"]] == ["sign-in.html"]
    assert sum((built / f"{name}.gz").stat().st_size for name in listed) <= 40 * 1024
    assert max((built / name).stat().st_size for name in listed) <= LARGEST_FILE_KB * 1024


def test_a_page_asks_for_its_own_files_alone_and_has_nothing_that_the_policy_refuses(built: Path) -> None:
    for page in built.glob("*.html"):
        text = page.read_text()
        for address in re.findall(r"""(?:src|href|action)\s*=\s*["']([^"']*)""", text):
            is_icon = address.startswith("data:image/svg+xml,")
            assert is_icon or (built / address.removeprefix("./")).is_file(), address
        assert re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\bsrc=)|type=.module", text) is None
    for file in (*built.glob("*.js"), *built.glob("*.css")):
        known = re.sub(r"http://www\.w3\.org/[\w/.]+", "", file.read_text())  # names of XML, never requested
        assert re.findall(r"https?://[\w.]+", known) == [], file.name


def test_the_functions_of_the_page_do_what_their_own_tests_say() -> None:
    command = [shutil.which("node") or "node", str(console.SOURCES / "build.mjs"), "--test"]
    done = subprocess.run(command, cwd=places.CLONE, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def sources() -> list[str]:
    return [path.read_text() for path in (console.SOURCES / "src").iterdir()]


def test_the_page_takes_roles_from_the_api_and_knows_none_by_name() -> None:
    quoted = {text for source in sources() for text in re.findall(r'(?<!what=)"(\w+)"', source)}

    assert quoted & set(Role) == set()
    assert "read_outputs" in quoted


def test_what_the_page_imports_is_its_own_or_pinned_as_a_dependency() -> None:
    pinned = json.loads((places.CLONE / "package.json").read_text())["dependencies"]
    imported = {name for source in sources() for name in re.findall(r'from "([^"]+)"', source)}

    assert {name.partition("/")[0] for name in imported if not name.startswith(".")} == set(pinned)

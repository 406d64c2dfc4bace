"""Writes the page that hands credentials over to the console in a browser, for its user alone.

The page opens the console on a click. It posts the credentials to exactly the API's origin, once. So they are
in no address, no argument of a process and no history. A page that is opened as a file has no origin of its
own, which anybody could have; so the console asks its user whether to sign in.
"""

import base64
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from holdfast import timestamp
from holdfast_cli import private_file
from holdfast_cli.errors import CommandError

_SNAP: Final = Path("/snap/bin")
"""The folder with the programs of snaps. A browser of them reads neither `/tmp` nor the runtime folder."""

_SCRIPT: Final = """
document.currentScript.remove();
const page = new URL(given.page);
const button = document.getElementById("open");
const said = document.getElementById("said");
let opened = null;
document.getElementById("who").textContent = given.message.principal;
document.getElementById("where").textContent = page.host;
button.disabled = false;
button.addEventListener("click", () => {
  opened = window.open(page.href, "_blank");
  said.textContent = opened
    ? "Waiting for the console. It asks whether to sign in."
    : "The browser blocked the window. Allow it, then press the button again.";
});
window.addEventListener("message", (event) => {
  const isReady = event.data && event.data.holdfast === "ready";
  if (!given || !opened || event.source !== opened || event.origin !== page.origin || !isReady) return;
  opened.postMessage(given.message, page.origin);
  forget("The console has your credentials. You can close this page.");
});
setTimeout(() => given && forget("This page has expired. Run holdfast console again."), 120000);
function forget(text) {
  given = null;
  button.disabled = true;
  said.textContent = text;
}
"""

_STYLE: Final = """
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
body { max-width: 34rem; margin: 4rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
button { font: inherit; padding: 0.5rem 1rem; }
"""

_PAGE: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width">
<title>Sign in to the console of Holdfast</title>
<style>{style}</style>
</head>
<body>
<h1>Open the console</h1>
<p>It will be opened at <strong id="where"></strong> for <strong id="who"></strong>.</p>
<p><button id="open" type="button" disabled autofocus>Open the console</button></p>
<p id="said" role="status"></p>
<noscript>This page needs JavaScript.</noscript>
<script>{script}</script>
</body>
</html>
"""


@dataclass(frozen=True, slots=True)
class Given:
    """The credentials for the console, as it sends them after `Bearer`; `until` is None without an end."""

    token: str = field(repr=False)
    principal: str
    until: datetime | None


@contextmanager
def page(
    address: str, given: Given, fragment: str = "", environment: Mapping[str, str] = os.environ
) -> Iterator[Path]:
    """Write the page to a new folder of this user, and remove both at the end of the context.

    The arguments are as for `text`.
    """
    folder: Path | None = None
    try:
        try:
            folder = Path(tempfile.mkdtemp(prefix="holdfast-", dir=_folder(environment)))  # mode 0700
            file = folder / "sign-in.html"
            private_file.create(file, text(address, given, fragment).encode())
        except OSError as error:
            raise CommandError(f"The page that signs in cannot be written: {error.strerror}.") from error
        yield file
    finally:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def text(address: str, given: Given, fragment: str = "") -> str:
    """Return the page.

    Args:
        address: the API's.
        fragment: what the console's address has behind it, as `#/states/network/prod`.
    """
    message = {
        "holdfast": "session",
        "token": given.token,
        "principal": given.principal,
        "until": timestamp.write(given.until) if given.until else None,
    }
    document = {"page": f"{address}/console/sign-in.html{fragment}", "message": message}
    script = f"'use strict'; let given = {_in_script(document)};{_SCRIPT}"
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(_STYLE)}'; base-uri 'none'; "
        "form-action 'none'"
    )
    return _PAGE.format(policy=policy, style=_STYLE, script=script)


def _in_script(document: object) -> str:
    """Return JSON that cannot end a script, nor begin a comment of HTML in it."""
    return json.dumps(document).replace("<", "\\u003c")


def _hash(content: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


def _folder(environment: Mapping[str, str]) -> Path | None:
    """Return the user's runtime folder, if only this user can enter it; where snaps are, the home folder."""
    if _SNAP.is_dir():
        return Path.home()
    folder = Path(environment.get("XDG_RUNTIME_DIR", ""))
    if not folder.is_absolute():
        return None
    try:
        status = folder.stat()
    except OSError:
        return None
    return folder if status.st_uid == os.getuid() and not status.st_mode & 0o077 else None

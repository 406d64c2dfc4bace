"""Writes the page that hands credentials over to the console in a browser, for its user alone.

The page opens the console on a click. It posts the credentials to exactly the API's origin, once, and closes
itself. So they are in no address, no argument of a process and no history. A page that is opened as a file
has no origin of its own, which anybody could have; so the console asks its user whether to sign in.
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
from typing import Final, Literal

from holdfast import timestamp
from holdfast_cli import private_file
from holdfast_cli.errors import CommandError

_SNAP: Final = Path("/snap/bin")
"""The folder with the programs of snaps. A browser of them reads neither `/tmp` nor the runtime folder."""

Warned = tuple[tuple[Literal["text", "time", "code"], str], ...]
"""A warning of the page, in parts: a time is in ISO 8601, and shown in the zone of the browser."""

_SCRIPT: Final = """
document.currentScript.remove();
const page = new URL(given.page);
const button = document.getElementById("open");
const said = document.getElementById("said");
let opened = null;
document.getElementById("who").textContent = given.who;
document.getElementById("where").textContent = page.host;
const warned = given.warning.map(([kind, text]) => {
  const part = document.createElement(kind === "code" ? "code" : "span");
  const long = { dateStyle: "medium", timeStyle: "long" };
  part.textContent = kind === "time" ? new Date(text).toLocaleString(undefined, long) : text;
  return part;
});
document.getElementById("warning").append(...warned);
button.disabled = false;
button.addEventListener("click", () => {
  opened = window.open(page.href, "_blank");
  said.textContent = opened
    ? "Waiting for the console. It asks whether to sign in."
    : "The browser blocked the window. Allow this page to open windows, then press the button again.";
});
window.addEventListener("message", (event) => {
  const isReady = event.data && event.data.holdfast === "ready";
  if (!given || !opened || event.source !== opened || event.origin !== page.origin || !isReady) return;
  opened.postMessage(given.message, page.origin);
  forget("The console has your credentials. You can close this page.");
});
window.addEventListener("message", (event) => {
  const isTaken = event.data && event.data.holdfast === "taken";
  // Some browsers let only a person close a page that a program opened.
  if (!given && opened && event.source === opened && isTaken) window.close();
});
setTimeout(() => given && forget("This page has expired. Run holdfast console again."), 120000);
function forget(text) {
  given = null;
  button.disabled = true;
  said.textContent = text;
}
"""

_STYLE: Final = """
:root {
  color-scheme: light dark;
  --page: light-dark(#ffffff, #14181b);
  --text: light-dark(#1a2123, #e4e9ea);
  --faint: light-dark(#566265, #9fadb1);
  --accent: light-dark(#0a6767, #62cdc4);
  --on-accent: light-dark(#ffffff, #0a1f1e);
  --warn: light-dark(#704700, #f3c878);
  --warn-tint: light-dark(#fdf1d8, #3b2d12);
  font: 0.9375rem / 1.45 system-ui, sans-serif;
  background: var(--page);
  color: var(--text);
}
* { box-sizing: border-box; }
body { max-width: 36rem; margin: auto; padding: 12vh 1rem 0; overflow-wrap: anywhere; }
h1 { margin: 0 0 0.75rem; font-size: 1.375rem; font-weight: 620; }
p { margin: 0.5rem 0; }
code { font: 0.875em ui-monospace, monospace; white-space: nowrap; }
.faint { color: var(--faint); }
.notice {
  margin: 1rem 0; padding: 0.75rem 1rem;
  border-left: 3px solid var(--warn); border-radius: 0 0.375rem 0.375rem 0; background: var(--warn-tint);
}
.notice:empty { display: none; }
button {
  min-height: 2.125rem; padding: 0.25rem 0.625rem; margin: 0.5rem 0;
  border: 1px solid var(--accent); border-radius: 0.375rem;
  background: var(--accent); color: var(--on-accent); font: inherit; font-weight: 600; cursor: pointer;
}
button:disabled { opacity: 0.6; cursor: default; }
button:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
"""
"""The colours and sizes of the console, whose files this page cannot load."""

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
<h1>Sign in to Holdfast</h1>
<p>You will be signed in as <strong id="who"></strong>.</p>
<p class="faint">The console is at <span id="where"></span>.</p>
<p id="warning" class="notice"></p>
<p><button id="open" type="button" disabled autofocus>Open the console</button></p>
<p id="said" role="status"></p>
<noscript>This page needs JavaScript.</noscript>
<script>{script}</script>
</body>
</html>
"""


@dataclass(frozen=True, slots=True)
class Given:
    """The credentials for the console.

    Attributes:
        token: what the console sends after `Bearer`.
        until: when the credentials end; None without an end.
        warning: what the user should know before the browser gets the credentials; may be empty.
        owner: the person whom the credentials' creator named; empty if they named nobody.
    """

    token: str = field(repr=False)
    principal: str
    until: datetime | None
    warning: Warned = ()
    owner: str = ""


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
            raise CommandError(
                f"The page that hands the credentials to the browser cannot be written in "
                f"{_folder(environment) or tempfile.gettempdir()}: {error.strerror}. Make this folder "
                "writable. You can also open the address that `holdfast console --print` prints, and paste a "
                "token there."
            ) from error
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
    document = {
        "page": f"{address}/console/sign-in.html{fragment}",
        "message": message,
        "warning": given.warning,
        "who": given.owner or given.principal,
    }
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

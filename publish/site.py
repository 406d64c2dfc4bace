"""`make docs`: build a site of the documents, with search and dark mode; it loads nothing from elsewhere."""

import base64
import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from holdfast import __version__
from publish.api_reference import api_reference

ROOT: Final = Path(__file__).resolve().parents[1]
BUILD: Final = ROOT / ".build"
SETTINGS: Final = ROOT / "publish" / "zensical.toml"
STYLE: Final = ROOT / "publish" / "site.css"
THEME: Final = ROOT / "publish" / "theme"
"""The templates that replace those of the theme."""
OPENAPI: Final = "docs/openapi.yaml"
API_REFERENCE: Final = str(Path(OPENAPI).with_suffix(".md"))
"""The page of the site to which the documents' links to `OPENAPI` lead."""
PACKAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "mermaid": ("dist/mermaid.min.js", "dist/mermaid.min.js.map", "LICENSE"),
    "iframe-worker": ("shim/index.js", "LICENSE"),
}
"""npm package that pages need -> the package's files that are used, first the one that pages load.

`publish/<name>.json` has the package's version and hash, as `npm view` prints them; `make upgrade` writes it.
"""
UNSEARCHED: Final = (API_REFERENCE, "THIRD-PARTY.md")
"""Pages that the search does not find: routes and licenses would hide the answers to questions."""
_NOT_SEARCHED: Final = "---\nsearch:\n  exclude: true\n---\n\n"
_SHIM: Final = "https://unpkg.com/iframe-worker/shim"
"""The address from which the theme would load a script; with the script the search works without a server."""

_LINK: Final = re.compile(r"""(?:\]\(|\b(?:src|srcset)=")(?!https?:|#)([^)#\s"]+)""")
_TO_OPENAPI: Final = re.compile(r"(\]\([^)\s]*\bopenapi)\.yaml\)")
_ROW: Final = re.compile(r"^\|.*\|$", re.MULTILINE)
_CODE: Final = re.compile(r"`[^`]*`")
_LISTED: Final = re.compile(r"\[([^\]]+)\]\(([^)#]+\.md)\)")
_FETCHED: Final = re.compile(
    r"""<(?:script|link|img|source|iframe)\b[^>]*\b(?:src|srcset|href)=["']?(?:https?:)?//[^>]*>"""
)
_HREF: Final = re.compile(r"""<(?:a|img|source)\b[^>]*\b(?:href|src|srcset)=["']?(?!\w+:|//)([^"'\s>]+)""")
_COLORS: Final = re.compile(r"\x1b\[[0-9;]*m")
_NAVIGATION: Final = ("canonical", "prev", "next")


class SiteError(Exception):
    """The site cannot be built; the message says why."""


def pin(name: str) -> Any:
    """Return the version and the hash of a package of npm that pages need."""
    return json.loads((ROOT / "publish" / f"{name}.json").read_text(encoding="utf-8"))


def package(name: str) -> Path:
    """Return a folder with the files of a package that `PACKAGES` names; they are downloaded once."""
    wanted = pin(name)
    kept = BUILD / f"{name}-{wanted['version']}"
    if not kept.is_dir():
        BUILD.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=BUILD) as folder:
            command = ("npm", "pack", f"{name}@{wanted['version']}", "--silent", "--pack-destination", folder)
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            [packed] = Path(folder).iterdir()
            digest = base64.b64encode(hashlib.sha512(packed.read_bytes()).digest()).decode()
            if f"sha512-{digest}" != wanted["dist.integrity"]:
                raise SiteError(
                    f"The package {name} {wanted['version']} does not have the hash in {name}.json."
                )
            shutil.unpack_archive(packed, folder, filter="data")
            used = Path(folder) / "used"
            used.mkdir()
            for file in PACKAGES[name]:
                shutil.copyfile(Path(folder) / "package" / file, used / Path(file).name)
            used.rename(kept)
    return kept


def script(name: str) -> Path:
    """Return the path of a script that pages load."""
    return package(name) / Path(PACKAGES[name][0]).name


def pages(root: Path) -> list[Path]:
    """Return the paths of a repository's documents."""
    return [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md"))]


def stage(root: Path, folder: Path) -> None:
    """Copy the documents and the files that they link to, and add the API reference.

    Every link works unchanged, but a link to `OPENAPI` leads to the API reference.
    """
    for page in pages(root):
        targets = (page.parent / link for link in _LINK.findall(page.read_text(encoding="utf-8")))
        for path in {page, *(Path(os.path.normpath(target)) for target in targets)}:
            copy = folder / path.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            if path.is_file():
                shutil.copyfile(path, copy)
    for copy in pages(folder):
        text = _ROW.sub(_without_escapes, copy.read_text(encoding="utf-8"))
        text = _TO_OPENAPI.sub(r"\1.md)", text)
        copy.write_text(text, encoding="utf-8")
    if (folder / OPENAPI).is_file():
        openapi = (folder / OPENAPI).read_text(encoding="utf-8")
        (folder / API_REFERENCE).write_text(api_reference(openapi), encoding="utf-8")
    for name in UNSEARCHED:
        if (copy := folder / name).is_file():
            copy.write_text(_NOT_SEARCHED + copy.read_text(encoding="utf-8"), encoding="utf-8")


def _without_escapes(row: re.Match[str]) -> str:
    """Return a row of a table with `|` in code as the generator reads it. GitHub reads `\\|`."""
    return _CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0])


def navigation(index: str) -> str:
    """Return the navigation of the site, in TOML, from the sections and links of `docs/index.md`."""
    shown = [_table("Holdfast", '"README.md"'), _table("All documents", '"docs/index.md"')]
    for section in index.split("\n## ")[1:]:
        # Without `..`, which the generator would leave in its links.
        links = [
            _table(title, json.dumps(os.path.normpath(f"docs/{path}")))
            for title, path in _LISTED.findall(section)
        ]
        shown.append(_table(section.partition("\n")[0], f"[{', '.join(links)}]"))
    return f"nav = [{', '.join(shown)}]"


def release(version: str) -> str:
    """Return what the head of the site says of a version.

    >>> release("0.4.0")
    'Version 0.4.0'
    >>> release("0.4.0.dev0")
    'Version 0.4.0, unreleased'
    """
    number, _, is_unreleased = version.partition(".dev")
    return f"Version {number}{', unreleased' if is_unreleased else ''}"


def _table(name: str, value: str) -> str:
    return f"{{{json.dumps(name)} = {value}}}"


def fetched(site: Path) -> Iterator[str]:
    """Yield each tag of a page that makes a browser fetch from another host."""
    for page in sorted(site.rglob("*.html")):
        for tag in _FETCHED.findall(page.read_text(encoding="utf-8")):
            if not any(f'rel="{relation}"' in tag for relation in _NAVIGATION):
                yield f"{page.relative_to(site)}: {tag}"


def dead(site: Path) -> Iterator[str]:
    """Yield each link of a page to a file that the site lacks. The generator does not check its own links."""
    for page in sorted(site.rglob("*.html")):
        for link in sorted(set(_HREF.findall(page.read_text(encoding="utf-8")))):
            path = unquote(urlsplit(html.unescape(link)).path)
            target = site / path.removeprefix("/") if path.startswith("/") else page.parent / path
            if path and not (target / "index.html" if target.is_dir() else target).is_file():
                yield f"{page.relative_to(site)}: {link}"


def build(root: Path, folder: Path) -> Path:
    """Build the site of a repository's documents below a folder, and return its path.

    Raises:
        SiteError: a link or an anchor has no target, or a page would load something from another host.
    """
    source, site = folder / "site-source", folder / "site"
    for old in (source, site):
        shutil.rmtree(old, ignore_errors=True)
    stage(root, source)
    for name in PACKAGES:
        shutil.copyfile(script(name), source / f"{name}.js")
    shutil.copyfile(STYLE, source / STYLE.name)
    settings, index = (path.read_text(encoding="utf-8") for path in (SETTINGS, source / "docs" / "index.md"))
    for empty, filled in (
        ("nav = []", navigation(index)),
        ('custom_dir = ""', f"custom_dir = {json.dumps(str(THEME))}"),
        ('release = ""', f"release = {json.dumps(release(__version__))}"),
    ):
        settings = settings.replace(empty, filled)
    config = folder / "zensical.toml"
    config.write_text(settings, encoding="utf-8")
    command = (
        Path(sys.executable).parent / "zensical",
        "build",
        "--strict",
        "--clean",
        "--config-file",
        config,
    )
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise SiteError(_COLORS.sub("", done.stdout.partition("Traceback")[0]))
    for page in site.rglob("*.html"):
        own = "../" * (len(page.relative_to(site).parts) - 1) + "iframe-worker.js"
        page.write_text(page.read_text(encoding="utf-8").replace(_SHIM, own), encoding="utf-8")
    if links := list(dead(site)):
        raise SiteError("\n".join(("These links lead nowhere:", *links)))
    if tags := list(fetched(site)):
        raise SiteError("\n".join(("These tags fetch files from another host:", *tags)))
    return site


def main() -> int:
    """Build the site in `.build/site`, and print the path of its first page."""
    BUILD.mkdir(exist_ok=True)
    try:
        site = build(ROOT, BUILD)
    except SiteError as error:
        print(error, file=sys.stderr)
        return 1
    print(site / "index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())

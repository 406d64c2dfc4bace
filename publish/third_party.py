"""`make notices`: writes `THIRD-PARTY.md`, the notices for what a release and the site contain.

It downloads the packages that mermaid contains, for the texts of their licenses.
"""

import json
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Final, NamedTuple

from publish import site

ROOT: Final = site.ROOT
NOTICES: Final = ROOT / "THIRD-PARTY.md"
CONSOLE: Final = "the console, which the wheel and each deployment contain"
SITE: Final = "the site of the documents"
THEME: Final = "zensical"
"""The package that builds the site: its pages have the package's theme."""
ICONS: Final = "lucide"
"""The icons of the theme that pages contain."""

_IN_MAP: Final = re.compile(r"/node_modules/\.pnpm/((?:@[^/+]+\+)?[^/@]+)@([^/_(]+)[^/]*/node_modules/")
_IN_THEME: Final = re.compile(r"Package: (\S+)@(\S+)\nLicense: (.+)\n")
_LICENSE: Final = re.compile(r"package/(?:licen[cs]e|copying)(?:\.(?:md|txt))?", re.IGNORECASE)


class Contained(NamedTuple):
    """A package that a release or the site contains; `within` is the place where it is."""

    name: str
    version: str
    within: str


def contained() -> list[Contained]:
    """Return every package of others whose code a release or the site contains, in the order of the page."""
    locked = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    console = [
        Contained(name, locked[f"node_modules/{name}"]["version"], CONSOLE)
        for name in locked[""].get("dependencies", ())
    ]
    version = metadata.version(THEME)
    pages = [
        Contained(THEME, version, SITE),
        Contained(ICONS, f"of {THEME} {version}", f"the theme {THEME}"),
        *(Contained(name, number, f"the theme {THEME}") for name, number, _ in _IN_THEME.findall(_scripts())),
        *(Contained(name, site.pin(name)["version"], SITE) for name in site.PACKAGES),
    ]
    return [*console, *pages, *(Contained(name, number, "mermaid") for name, number in in_mermaid())]


def in_mermaid() -> list[tuple[str, str]]:
    """Return name and version of each package that mermaid's script contains, as its source map says."""
    sources = json.loads((site.package("mermaid") / "mermaid.min.js.map").read_text(encoding="utf-8"))[
        "sources"
    ]
    found = {_IN_MAP.search(source) for source in sources}
    return sorted({(each[1].replace("+", "/"), each[2]) for each in found if each})


def _theme() -> Path:
    """Return the folder of the theme's templates."""
    return Path(str(metadata.distribution(THEME).locate_file(f"{THEME}/templates")))


def _scripts() -> str:
    """Return what the theme says of the packages that its scripts contain."""
    return (_theme() / "assets" / "javascripts" / "LICENSE").read_text(encoding="utf-8")


def notices() -> str:
    """Return the page: a table of all packages, then each text of a license with the packages under it."""
    rows, texts = [], dict[str, list[str]]()
    for package, (license_, text) in zip(contained(), _licenses(), strict=True):
        rows.append(f"| {package.name} | {package.version} | {license_} | {package.within} |")
        texts.setdefault(text, []).append(f"{package.name} {package.version}")
    return "\n".join(_lines(rows, texts)) + "\n"


def _lines(rows: list[str], texts: dict[str, list[str]]) -> Iterator[str]:
    yield "# Third-party software"
    yield "\nFor those who distribute Holdfast: the third-party software in a release and in the built site."
    yield "Holdfast itself has [its own license](LICENSE)."
    yield "A release does not contain the packages that a deployment gets from PyPI: its SBOM lists them."
    yield "\n| Package | Version | License | Contained in |\n| --- | --- | --- | --- |"
    yield from rows
    yield "\n## Texts"
    for text, packages in texts.items():
        yield f"\n### {', '.join(packages)}\n\n~~~text\n{text}\n~~~"


def _licenses() -> Iterator[tuple[str, str]]:
    """Yield name and text of the license of each of `contained`."""
    with tempfile.TemporaryDirectory() as folder:
        packed = [(name, version) for name, version in in_mermaid()]
        command = ("npm", "pack", "--silent", "--pack-destination", folder)
        subprocess.run(
            [*command, *(f"{name}@{version}" for name, version in packed)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        said = {(name, number): license_ for name, number, license_ in _IN_THEME.findall(_scripts())}
        for name, version, within in contained():
            if within == CONSOLE:
                installed = ROOT / "node_modules" / name
                yield (
                    json.loads((installed / "package.json").read_text())["license"],
                    _text(installed / "LICENSE"),
                )
            elif name == THEME:
                files = metadata.files(THEME) or ()
                [text] = (file for file in files if file.match("*.dist-info/licenses/LICENSE.md"))
                yield metadata.metadata(THEME)["License-Expression"], _text(Path(str(text.locate())))
            elif name == ICONS:
                yield "ISC and MIT", _text(_theme() / ".icons" / ICONS / "LICENSE")
            elif (name, version) in said:
                yield said[name, version], _scripts().strip()
            elif name in site.PACKAGES:
                yield "MIT", _text(site.package(name) / "LICENSE")
            else:
                archive = f"{name.replace('@', '').replace('/', '-')}-{version}.tgz"
                yield _from_archive(Path(folder) / archive)


def _from_archive(archive: Path) -> tuple[str, str]:
    """Return name and text of the license of a package of npm; a package may lack one of them."""
    with tarfile.open(archive) as files:
        contents = {
            member.name: file.read().decode(errors="replace")
            for member in files
            if (file := files.extractfile(member)) and member.name.count("/") == 1
        }
    name = json.loads(contents["package/package.json"]).get("license")
    texts = [_clean(text) for path, text in contents.items() if _LICENSE.fullmatch(path)]
    text = "\n\n".join(texts) or f"The package {name} does not contain the text of its license."
    return name or text.partition("\n")[0], text


def _text(path: Path) -> str:
    return _clean(path.read_text(encoding="utf-8"))


def _clean(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


if __name__ == "__main__":
    NOTICES.write_text(notices(), encoding="utf-8")
    sys.exit(0)

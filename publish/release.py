"""`make release VERSION=`: builds the files of a release, with the same bytes each time on one machine.

The files are a wheel and a source distribution, an SBOM of all pinned packages, and checksums. They are built
from the files of the commit, and with the packages that it pins. Nothing is published. `stage` puts into the
package what deploys.
"""

import argparse
import base64
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from holdfast import __version__
from holdfast_cdk import console

ROOT: Final = Path(__file__).resolve().parents[1]
BIN: Final = Path(sys.executable).parent
SUMS: Final = "SHA256SUMS"
DATA: Final = Path("infra", "holdfast_cdk", "data")
"""The folder of what the package has beside its code; see `holdfast_cdk.places`."""
NODE_MODULES: Final = ROOT / "node_modules"
_COMPILER: Final = "pyodide"
"""The package of npm that compiles the functions; a deployment without a clone installs it."""


def git(root: Path, *arguments: str) -> str:
    """Return the output of a git command, without the last line break."""
    command = ("git", "-C", str(root), *arguments)
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return str(done.stdout).rstrip("\n")


def obstacles(root: Path, version: str) -> Iterator[str]:
    """Yield the reasons why a version cannot be released, and what to do."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        yield f"{version!r} is not the version of a release: write three numbers, as in VERSION={_next()}."
    elif version != __version__:
        yield (
            f'The version in the code is {__version__}: write __version__ = "{version}" in '
            "functions/holdfast/__init__.py, run `make generated`, and commit both."
        )
    newest = re.search(r"^## (.+)$", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    if newest is None or not re.fullmatch(rf"{re.escape(version)} - \d{{4}}-\d\d-\d\d", newest[1]):
        yield (
            f"The newest section of CHANGELOG.md is `## {newest[1] if newest else ''}`. Change the heading "
            f"to `## {version} - YYYY-MM-DD`, with the date of the release."
        )
    if changed := git(root, "status", "--porcelain"):
        yield f"These files are not committed:\n{changed}"
    # The tag of the newest commit is that of this release, which is built from the tag again.
    tag, newest_commit = f"v{version}", git(root, "rev-parse", "HEAD")
    if git(root, "tag", "--list", tag) and git(root, "rev-list", "-1", tag) != newest_commit:
        yield f"The tag {tag} already exists and points to another commit: give the release a new version."


def _next() -> str:
    """Return the version that the code is on the way to."""
    return __version__.partition(".dev")[0]


def export(root: Path, folder: Path) -> int:
    """Write the files of the newest commit into a folder, and return the commit's time (Unix seconds)."""
    command = ("git", "-C", root, "archive", "--format=tar", "HEAD")
    archive = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return int(git(root, "log", "-1", "--format=%ct"))


def stage(source: Path) -> None:
    """Fill the package's folder `data` in the source of a release.

    It gets the folder `functions`, the built files of the console, `package.json`, which has the version of
    the CDK's command, and the pins of `_COMPILER` for npm.

    Args:
        source: the files of a commit, without anything that was built.
    """
    data = source / DATA
    shutil.copytree(source / "functions", data / "functions")
    packages = source / "node_modules"
    packages.symlink_to(NODE_MODULES)
    try:
        console.build(data / "console", source / "console")
    finally:
        packages.unlink()
    shutil.copyfile(source / "package.json", data / "package.json")
    (data / "npm").mkdir()
    locked = json.loads((source / "package-lock.json").read_text(encoding="utf-8"))
    for name, document in _npm_pins(locked).items():
        (data / "npm" / name).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _npm_pins(locked: dict[str, Any]) -> dict[str, Any]:
    """Return file name -> content of what `npm ci` needs to install the compiler and nothing else."""
    packages, waiting = {}, [_COMPILER]
    while waiting:
        place = f"node_modules/{waiting.pop()}"
        if place not in packages:
            packages[place] = {key: value for key, value in locked["packages"][place].items() if key != "dev"}
            waiting += packages[place].get("dependencies", ())
    needed = {"dependencies": {_COMPILER: packages[f"node_modules/{_COMPILER}"]["version"]}}
    lock = {
        "lockfileVersion": locked["lockfileVersion"],
        "packages": {"": needed, **dict(sorted(packages.items()))},
    }
    return {"package.json": {"private": True, **needed}, "package-lock.json": lock}


def distribute(source: Path, time: int, out: Path) -> None:
    """Build the source distribution, and from it the wheel.

    Args:
        source: the files of a commit, after `stage`.
        time: the time of every file in them (Unix seconds).
        out: the folder for both.
    """
    command = (sys.executable, "-m", "build", "--no-isolation", "--outdir", out, source)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(time), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    [distribution] = out.glob("*.tar.gz")
    normalize(distribution, time)


def normalize(path: Path, time: int) -> None:
    """Write a source distribution again: files sorted, with standard modes and the same time and owner."""
    packed = io.BytesIO()
    with tarfile.open(path) as old, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member in sorted(old.getmembers(), key=lambda each: each.name):
            content = old.extractfile(member)
            member.mtime, member.mode = time, 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.pax_headers = {}
            new.addfile(member, content)
    with path.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=time) as compressed:
        compressed.write(packed.getvalue())


def sbom(source: Path, version: str) -> str:
    """Return the SBOM in CycloneDX JSON: each pinned package once, without the registry's address."""
    components: dict[str, Any] = {}
    document: dict[str, Any] = {}
    for pins in [source / "requirements.txt", *sorted((source / "functions").rglob("requirements.txt"))]:
        command = (BIN / "cyclonedx-py", "requirements", "--output-reproducible", "--of", "JSON", pins)
        document = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        for component in document.get("components", ()):
            components[component["purl"]] = _component(component)
    components |= {component["purl"]: component for component in _npm_components(source)}
    document["metadata"]["tools"] = {"components": [{"type": "application", "name": "cyclonedx-bom"}]}
    document["metadata"]["component"] = {
        "type": "application",
        "bom-ref": "holdfast",
        "name": "holdfast",
        "version": version,
        "licenses": [{"license": {"id": "MIT"}}],
    }
    document["components"] = [components[purl] for purl in sorted(components)]
    document["dependencies"] = [
        {"ref": "holdfast", "dependsOn": sorted(components)},
        *({"ref": purl} for purl in sorted(components)),
    ]
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def _npm_components(source: Path) -> Iterator[dict[str, Any]]:
    """Yield the packages that the console contains, and those with which a deployment compiles the functions.

    The other `devDependencies` only build them.
    """
    locked = json.loads((source / "package-lock.json").read_text(encoding="utf-8"))
    pinned = {f"node_modules/{name}" for name in locked["packages"][""].get("dependencies", ())}
    pinned |= _npm_pins(locked)["package-lock.json"]["packages"].keys() - {""}
    for place in sorted(pinned):
        package = locked["packages"][place]
        name = place.removeprefix("node_modules/")
        purl = f"pkg:npm/{name.replace('@', '%40')}@{package['version']}"
        algorithm, _, digest = package["integrity"].partition("-")
        hashes = [
            {"alg": algorithm.upper().replace("SHA", "SHA-"), "content": base64.b64decode(digest).hex()}
        ]
        yield {
            "type": "library",
            "name": name,
            "version": package["version"],
            "purl": purl,
            "bom-ref": purl,
            "externalReferences": [{"type": "distribution", "url": purl, "hashes": hashes}],
        }


def _component(component: dict[str, Any]) -> dict[str, Any]:
    """Return a package with the hashes of its files, and without the index's address."""
    purl = component["purl"]
    hashes = [
        {"type": "distribution", "url": purl, "hashes": file["hashes"]}
        for file in component["externalReferences"]
        if file["type"] == "distribution"
    ]
    kept = {name: component[name] for name in ("type", "name", "version", "purl")}
    return {**kept, "bom-ref": purl, "externalReferences": hashes}


def build(root: Path, version: str, out: Path) -> list[Path]:
    """Build a release of the newest commit into a folder, and return its files, the checksums last."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder)
        os.umask(0o022)
        time = export(root, source)
        stage(source)
        distribute(source, time, out)
        (out / f"holdfast-{version}.cdx.json").write_text(sbom(source, version), encoding="utf-8")
    files = sorted(out.iterdir())
    sums = (f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)
    (out / SUMS).write_text("".join(sums), encoding="utf-8")
    return [*files, out / SUMS]


def main() -> int:
    """Build a release and return 0, or print why it cannot be built and return 1."""
    parser = argparse.ArgumentParser(prog="make release VERSION=...", description="Build a release.")
    parser.add_argument("version", help=f"the version to release, as in {_next()}")
    version = parser.parse_args().version
    if reasons := list(obstacles(ROOT, version)):
        print("\n".join(reasons), file=sys.stderr)
        return 1
    for file in build(ROOT, version, ROOT / ".build" / f"release-{version}"):
        print(file.relative_to(ROOT))
    major, minor, _ = version.split(".")
    print(
        "Nothing is published. To publish the tag: "
        f"git tag -a v{version} -m 'Holdfast {version}' && git push origin v{version}\n"
        f'Then begin the next release: __version__ = "{major}.{int(minor) + 1}.0.dev0" in '
        "functions/holdfast/__init__.py, and a section `## Unreleased` on top of CHANGELOG.md; then run "
        "`make generated`."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Packages are installed by uv or pip, from the index in pip's settings, and only with their hashes."""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pip
import pytest

from local_aws import loopback
from local_aws.failure import LocalAwsError
from local_aws.installer import Installer, pip_settings, uv_environment

WHEEL = "thing-1.0-py3-none-any.whl"
UV = Path(sys.prefix, "bin", "uv")


class Index:
    """A package index with one package, whose SHA-256 is `digest`; it notes the paths that are asked for."""

    def __init__(self, folder: Path) -> None:
        wheel = folder / WHEEL
        with zipfile.ZipFile(wheel, "w") as archive:
            for name, content in (
                ("thing.py", ""),
                ("thing-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n"),
                (
                    "thing-1.0.dist-info/WHEEL",
                    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
                ),
                ("thing-1.0.dist-info/RECORD", "thing.py,,\n"),
            ):
                archive.writestr(name, content)
        self.digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        pages = {
            "/simple/thing/": f'<a href="/{WHEEL}#sha256={self.digest}">{WHEEL}</a>'.encode(),
            f"/{WHEEL}": wheel.read_bytes(),
        }
        paths = self.paths = list[str]()

        class Handler(loopback.Handler):
            def respond(self) -> None:
                paths.append(self.path)
                page = pages.get(self.path)
                status = HTTPStatus.OK if page is not None else HTTPStatus.NOT_FOUND
                self.answer(status, page or b"", {"Content-Type": "text/html"})

        self.handler = Handler
        self.url = ""


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    for name in os.environ:
        if name.startswith(("PIP_", "UV_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    index = Index(tmp_path)
    with loopback.serving(index.handler) as address:
        index.url = f"{address}/simple"
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        yield index


@pytest.fixture
def installer(tmp_path: Path) -> Installer:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    shutil.copytree(Path(pip.__file__).parent, site_packages(venv) / "pip")
    return Installer(venv)


def site_packages(venv: Path) -> Path:
    return venv / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"


def with_uv(installer: Installer) -> Installer:
    if UV.exists():  # otherwise this machine has no uv
        (installer.venv / "bin" / "uv").symlink_to(UV)
    return installer


def fake_uv(installer: Installer, script: str) -> None:
    uv = installer.venv / "bin" / "uv"
    uv.write_text(f"#!/bin/sh\n{script}")
    uv.chmod(0o700)


def requirements(folder: Path, digest: str) -> tuple[str | Path, ...]:
    file = folder / "requirements.txt"
    file.write_text(f"thing==1.0 --hash=sha256:{digest}\n")
    return "--require-hashes", "--requirement", file


def installed_by(venv: Path) -> str:
    return (site_packages(venv) / "thing-1.0.dist-info" / "INSTALLER").read_text().strip()


@pytest.mark.parametrize("told_by", ["environment", "file"])
def test_uv_installs_from_the_index_that_pip_is_told_of(
    index: Index, installer: Installer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told_by: str
) -> None:
    if told_by == "file":
        monkeypatch.delenv("PIP_INDEX_URL")
        (tmp_path / "pip.conf").write_text(f"[global]\nindex-url = {index.url}\n")
        monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    other = tmp_path / "other"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", other], check=True)

    assert with_uv(installer).install(*requirements(tmp_path, index.digest), into=other) == []
    assert installed_by(other) == ("uv" if UV.exists() else "pip")
    assert f"/{WHEEL}" in index.paths
    assert list(installer.venv.glob(".uv-*")) == []


@pytest.mark.usefixtures("index")
@pytest.mark.parametrize("uv", [True, False])
def test_another_content_than_the_pinned_one_is_not_installed(
    installer: Installer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uv: bool
) -> None:
    monkeypatch.setenv("UV_NO_VERIFY_HASHES", "1")
    if uv:
        with_uv(installer)

    with pytest.raises(LocalAwsError, match=r"(?is)hash.*failed; see above"):
        installer.install(*requirements(tmp_path, "0" * 64))
    assert not (site_packages(installer.venv) / "thing.py").exists()


def test_pip_installs_where_the_index_has_no_uv_and_the_user_is_told(
    index: Index, installer: Installer, tmp_path: Path
) -> None:
    [warning] = installer.get_uv()
    assert "uv cannot be installed: ERROR: No matching distribution" in warning
    assert "/simple/uv/" in index.paths
    assert installer.install(*requirements(tmp_path, index.digest)) == []
    assert installed_by(installer.venv) == "pip"


def test_pip_installs_where_uv_fails_and_the_user_is_told(
    index: Index, installer: Installer, tmp_path: Path
) -> None:
    fake_uv(installer, "echo the disk is full\nexit 1\n")

    assert installer.install(*requirements(tmp_path, index.digest)) == [
        "pip installs the packages, which takes longer than with uv. uv failed: the disk is full"
    ]
    assert installed_by(installer.venv) == "pip"


def test_nothing_is_installed_by_settings_that_cannot_be_read(
    index: Index, installer: Installer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pip.conf").write_text("index-url without a section")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    fake_uv(installer, "")

    with pytest.raises(LocalAwsError, match=r"(?i)configuration file"):
        installer.install(*requirements(tmp_path, index.digest))
    assert index.paths == []


def test_the_settings_are_those_that_pip_goes_by(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("""\
#!/bin/sh
cat << 'end'
:env:.cert='/env.pem'
global.cert='/global.pem'
global.extra-index-url='\\nhttps://a.example/simple\\nhttps://b.example/simple'
global.index-url='https://global.example/simple'
install.index-url='https://install.example/simple'
list.format='columns'
end
""")
    python.chmod(0o700)
    assert pip_settings(python) == {
        "cert": "/env.pem",
        "extra-index-url": "\nhttps://a.example/simple\nhttps://b.example/simple",
        "index-url": "https://install.example/simple",
    }


def test_uv_is_told_the_same() -> None:
    settings = {
        "index-url": "https://i.example/simple",
        "extra-index-url": "\nhttps://a.example/simple\nhttps://b.example/simple",
        "find-links": "/wheels /more",
        "trusted-host": "i.example a.example",
        "cert": "/with space/ca.pem",
        "client-cert": "/client.pem",
        "default-timeout": "180",
        "no-input": "1",
    }
    told = uv_environment(settings, {"SSL_CERT_FILE": "/other.pem"})
    assert told == {
        "UV_DEFAULT_INDEX": "https://i.example/simple",
        "UV_INDEX": "https://a.example/simple https://b.example/simple",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_FIND_LINKS": "/wheels,/more",
        "UV_INSECURE_HOST": "i.example a.example",
        "UV_SYSTEM_CERTS": "true",
        "SSL_CERT_FILE": "/with space/ca.pem",
        "SSL_CLIENT_CERT": "/client.pem",
        "UV_HTTP_TIMEOUT": "180",
    }


@pytest.mark.parametrize("name", ["UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_FIND_LINKS"])
def test_the_index_that_the_user_named_for_uv_stays(name: str) -> None:
    settings = {"index-url": "https://i.example/simple", "extra-index-url": "https://a.example/simple"}
    assert uv_environment(settings, {name: "mine"}) == {"UV_SYSTEM_CERTS": "true"}

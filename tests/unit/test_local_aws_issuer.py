"""The issuer for trying sign-in: what it publishes, and how its commands are used."""

import json
import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from local_aws.issuer import (
    ALGORITHMS,
    DISCOVERY,
    KEYS,
    Keys,
    claims,
    documents,
    from_json,
    new_keys,
    signed,
    to_json,
)
from local_aws.server import ROOT
from tests.support.free_port import free_port
from tests.support.front_door import FrontDoor


@pytest.fixture(scope="module")
def keys() -> Keys:
    return new_keys()


def verified(token: str, published: Any) -> jwt.Token:
    return jwt.decode(token, KeySet.import_key_set(published), algorithms=[*ALGORITHMS])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_token_says_what_it_was_asked_to_and_fits_the_published_keys(keys: Keys, algorithm: str) -> None:
    body = claims("http://127.0.0.1:1", {"sub": "somebody", "repository": "acme/network"})
    published = documents("http://127.0.0.1:1", keys.values())[KEYS]
    token = verified(signed(keys[algorithm], body, alg=algorithm), published)

    assert (token.header["alg"], token.header["typ"]) == (algorithm, "JWT")
    assert token.claims["exp"] - token.claims["iat"] == 600
    assert {name: token.claims[name] for name in ("iss", "sub", "aud", "repository")} == {
        "iss": "http://127.0.0.1:1",
        "sub": "somebody",
        "aud": "holdfast",
        "repository": "acme/network",
    }


def test_nothing_private_is_published(keys: Keys) -> None:
    for key in documents("http://127.0.0.1:1", keys.values())[KEYS]["keys"]:
        assert not key.keys() & {"d", "p", "q", "dp", "dq", "qi"}
        assert key.keys() >= {"kid", "use", "alg", "kty"}


def test_kept_keys_are_the_same_and_no_two_tokens_are(keys: Keys) -> None:
    assert to_json(from_json(to_json(keys))) == to_json(keys)
    assert claims("http://127.0.0.1:1", {}) != claims("http://127.0.0.1:1", {})


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"current": []}', '{"current": [{}], "retired": []}'])
def test_what_is_no_keys_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_json(text)


# --- the commands --------------------------------------------------------------------------------


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The issuer, until Ctrl-C."""
    with subprocess.Popen(
        [*FrontDoor(folder).argv, "issuer", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)


def said(process: subprocess.Popen[str]) -> str:
    """The first line that it printed."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def got(address: str, path: str) -> Any:
    with urlopen(f"{address}{path}", timeout=10) as response:  # noqa: S310 http, to the issuer
        return json.load(response)


def test_it_runs_until_ctrl_c_and_its_tokens_fit_its_keys(tmp_path: Path) -> None:
    folder = tmp_path / "local"
    with running(folder, "--port", str(free_port())) as process:
        address = said(process).removeprefix("The issuer is ")
        old = FrontDoor(folder).run("id-token", "--claim", "repository=acme/network")
        new = FrontDoor(folder).run("id-token", "--claim", "sub=me", "--claim", "aud=other")
        configuration = got(address, DISCOVERY)
        published = got(configuration["jwks_uri"], "")
    assert configuration["issuer"] == address

    assert (old.returncode, old.stderr, new.returncode) == (0, "", 0)
    first, second = verified(old.stdout.strip(), published), verified(new.stdout.strip(), published)
    assert (first.claims["iss"], first.claims["repository"]) == (address, "acme/network")
    assert first.claims["exp"] - first.claims["iat"] == 600
    assert (second.claims["sub"], second.claims["aud"]) == ("me", "other")
    assert process.returncode == 0
    kept = [path for path in (folder / "issuer").iterdir() if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600}

    # The next run has the same address, as trust records name it, and the same keys.
    with running(folder) as again:
        assert said(again) == f"The issuer is {address}"
        assert got(configuration["jwks_uri"], "") == published


def test_a_token_that_nobody_could_verify_now_comes_with_a_warning(tmp_path: Path) -> None:
    with running(tmp_path / "local", "--port", str(free_port())) as process:
        said(process)
    done = FrontDoor(tmp_path / "local").run("id-token")

    assert (done.returncode, done.stdout.count(".")) == (0, 2)
    assert "run `make issuer`" in done.stderr


def test_without_an_issuer_there_is_no_token(tmp_path: Path) -> None:
    done = FrontDoor(tmp_path / "local").run("id-token")
    assert (done.returncode, done.stdout) == (1, "")
    assert "make issuer" in done.stderr


@pytest.mark.parametrize("claim", ["repository", "=x"])
def test_a_claim_without_a_name_or_a_value_is_refused(tmp_path: Path, claim: str) -> None:
    done = FrontDoor(tmp_path / "local").run("id-token", "--claim", claim)

    assert done.returncode == 2
    assert claim in done.stderr

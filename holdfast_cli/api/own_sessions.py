"""Signs in with the options of `arguments.sign_in`, and keeps sessions for the user's next processes."""

import hashlib
import json
import os
import shutil
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final

from holdfast import json_object
from holdfast.access import described
from holdfast.identity.credentials import basic
from holdfast.identity.sessions import MAX_SECONDS
from holdfast.identity.trust import is_web_address
from holdfast_cli import private_file
from holdfast_cli.api import http, id_tokens
from holdfast_cli.api.management import WHO_AM_I
from holdfast_cli.config import cloud_config, profiles, settings
from holdfast_cli.config.profiles import Settings
from holdfast_cli.errors import UsageError
from holdfast_cli.terminal import output

if TYPE_CHECKING:
    from holdfast_cli.api.sessions import Session

_KEPT_SINCE: Final = "kept_since"
_AWS_FILES: Final = {"AWS_CONFIG_FILE": "~/.aws/config", "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials"}
_SSO_TOKENS: Final = "~/.aws/sso/cache"
_ROTATING: Final = ("_TOKEN", "_SECRET_ACCESS_KEY")
"""The endings of variables that do not say who signs in: AWS_ACCESS_KEY_ID does."""


def check(args: Namespace) -> None:
    """Raise UsageError if the options of `arguments.sign_in` contradict each other."""
    if not args.oidc and (args.id_token_file is not None or args.audience is not None):
        raise UsageError("--id-token-file and --audience need --oidc.")
    if args.oidc and args.aws_profile is not None:
        raise UsageError("--aws-profile and --oidc cannot be used together.")


def resolve(args: Namespace) -> tuple[Settings, str]:
    """Return the settings and the API's address; UsageError for options that do not go together."""
    from holdfast_cli.bucket import stack

    check(args)
    chosen = settings.resolve(args)
    address = stack.api_address(chosen)
    if not is_web_address(address):
        raise UsageError(
            f"A session can be created over https:// only, and {address} does not begin with https://."
        )
    return chosen, address


def create(args: Namespace, chosen: Settings, address: str, seconds: int | None) -> "Session":
    """Create a session; `seconds` is as in `sessions`."""
    from holdfast_cli.api import sessions
    from holdfast_cli.bucket import stack

    if args.oidc:
        token = id_tokens.find(args.id_token_file, args.audience or address)
        return sessions.for_id_token(token, address, seconds)
    return sessions.for_aws(stack.sign_in(chosen), address, seconds)


def reuse(args: Namespace, chosen: Settings, address: str) -> "Session":
    """Return a session of which at least half is left: a kept one of the same AWS settings, else a new one.

    A refused session is replaced. Processes that ask at the same time share one new session. A
    CI job's session is not kept: the runner's next job could read the file.
    """
    seconds = args.duration or MAX_SECONDS  # Terraform asks for a token once, so it must outlive an apply
    folder = None if args.oidc else _folder(address)
    if folder is None:
        return create(args, chosen, address, seconds)
    file = folder / f"{_digest(seconds, args.aws_profile, _aws_settings())}.json"
    kept = _read(file)
    if kept is not None and not _is_refused(kept, address):
        return kept
    with _alone(folder):
        session = _read(file)  # another process may have replaced it meanwhile
        if session is None or session == kept:
            session = create(args, chosen, address, seconds)
            with suppress(OSError):
                _keep(session, file)
    return session


def _is_refused(session: "Session", address: str) -> bool:
    """Ask the API that created a session, to which it is sent anyhow. Without an answer it is not refused."""
    headers = {"Authorization": basic(session.id, session.secret)}
    return http.try_once(f"{address}{WHO_AM_I}", headers) in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


def forget(address: str) -> None:
    """Remove the kept sessions of an API. They stay valid until they expire."""
    if folder := _folder(address):
        shutil.rmtree(folder, ignore_errors=True)


def environment(session: "Session", address: str) -> dict[str, str]:
    """Return the variables by which Terraform, OpenTofu and `holdfast` use a session."""
    cloud = cloud_config.credentials_document(address, session.id, session.secret)
    return {
        "TF_HTTP_USERNAME": session.id,
        "TF_HTTP_PASSWORD": session.secret,
        "HOLDFAST_ADDRESS": address,
        cloud["variable"]: cloud["token"],
    }


def to_json(session: "Session", **more: object) -> str:
    """Return a session as JSON, which `sessions.parse` reads."""
    written = {"expires": session.expires.isoformat(timespec="seconds")}
    document = asdict(session) | described(session.grants) | written | more
    return output.as_json(document)


# --- files ---------------------------------------------------------------------------------------


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode(errors="surrogateescape")).hexdigest()[:32]


def _folder(address: str) -> Path | None:
    cache = profiles.own_folder(os.environ, "XDG_CACHE_HOME", ".cache")
    return cache / "sessions" / _digest(address) if cache else None


def _aws_settings() -> list[object]:
    """Return what decides which AWS credentials sign in, without any secret and without a request."""
    own = [
        (name, value)
        for name, value in sorted(os.environ.items())
        if name.startswith("AWS_") and not name.endswith(_ROTATING)
    ]
    changed: list[object] = []
    for variable, usual in _AWS_FILES.items():
        with suppress(OSError, RuntimeError):  # there is no file, or no home
            file = Path(os.environ.get(variable) or usual).expanduser()
            changed.append(file.stat().st_mtime_ns)
    with suppress(OSError, RuntimeError):  # `aws sso login` changes who signs in
        of_sso = Path(_SSO_TOKENS).expanduser().glob("*.json")
        changed.append(sorted((file.name, file.stat().st_mtime_ns) for file in of_sso))
    return [own, changed]


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other process is in this context for the same folder; create the folder."""
    import fcntl  # not on Windows, where `holdfast login` needs this module

    with ExitStack() as until_end:
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            number = os.open(folder, os.O_RDONLY)
            until_end.callback(os.close, number)
            fcntl.flock(number, fcntl.LOCK_EX)
        yield


def _read(file: Path) -> "Session | None":
    """Return a kept session; None if less than half of it is left, or if others may have read or written it.

    Its age counts by this machine's clock alone, which may differ from the API's.
    """
    from holdfast_cli.api import sessions

    try:
        with file.open("rb") as stream:
            status, body = os.fstat(stream.fileno()), stream.read()
        since, session = json_object.parse(body)[_KEPT_SINCE], sessions.parse(body)
        is_fresh = 0 <= time.time() - since < session.seconds / 2
    except (OSError, KeyError, TypeError, ValueError):
        return None
    is_own = status.st_uid == os.geteuid() and not status.st_mode & 0o077
    return session if is_fresh and is_own else None


def _keep(session: "Session", file: Path) -> None:
    """Write a session for its user alone, and remove the files of sessions that have expired."""
    for old in file.parent.iterdir():
        if time.time() - old.stat().st_mtime > MAX_SECONDS:
            old.unlink()
    private_file.replace(file, to_json(session, **{_KEPT_SINCE: int(time.time())}).encode())

"""Finds out what a configuration's credentials may do with a state. No request changes anything."""

import ipaddress
import shlex
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlencode, urlsplit

from holdfast.access import named
from holdfast.api import form, v1
from holdfast.audit import Event
from holdfast.names import StateName
from holdfast_cli.api import http
from holdfast_cli.api.state_texts import lock_sentence
from holdfast_cli.clock import Clock
from holdfast_cli.config import cloud_config
from holdfast_cli.doctor.findings import Finding, note, ok, problem
from holdfast_cli.terminal import output

_PORTS: Final = {"https": 443, "http": 80}
_AROUND: Final = timedelta(minutes=1)
"""The largest difference that is expected between the clocks of S3 and of the audit trail."""
_DOCUMENT: Final = "/.well-known/terraform.json"


def shown(address: str) -> str:
    """Return an address in normal form, without parts that may be secret; empty if the text is no address.

    >>> shown("https://me:secret@API.example.com:443/states/a?b=c")
    'https://api.example.com/states/a'
    """
    try:
        parts = urlsplit(address)
        port = "" if parts.port in (None, _PORTS.get(parts.scheme)) else f":{parts.port}"
    except ValueError:
        return ""
    if parts.scheme not in _PORTS or not parts.hostname:
        return ""
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{port}{parts.path}"


def is_unencrypted(address: str) -> bool:
    """Return whether requests to an address are sent unencrypted over a network.

    >>> [is_unencrypted(f"{host}/a") for host in ("http://api.example.com", "http://127.0.0.1:8080")]
    [True, False]
    """
    parts = urlsplit(shown(address))
    if parts.scheme != "http" or parts.hostname in (None, "localhost"):
        return False
    try:
        return not ipaddress.ip_address(str(parts.hostname)).is_loopback
    except ValueError:
        return True


def check(
    base: str, state: StateName, authorization: str | None, *, locks: StateName | None, discovers: bool
) -> Iterator[Finding]:
    """Yield the findings about the credentials, and about what they may do with a state.

    Args:
        authorization: the header that the backend sends; None if it has no credentials.
        locks: the state whose lock the backend acquires; None if it does not lock.
        discovers: whether the backend finds the API by the hostname.
    """
    if is_unencrypted(base):
        yield note(
            "api",
            (
                f"Not checked: {base} begins with http://, and this command sends credentials over https:// "
                "only."
            ),
            "Name the API with an address that begins with https://.",
        )
        return
    health = http.send("GET", f"{base}/health", headers={})
    version = health.text("version")
    if health.status != 200 or not version:
        yield problem(
            "api",
            f"{base} does not respond as Holdfast does: /health returned the status {health.status}"
            f"{' without a version' if health.status == 200 else ''}.",
            "Compare the address with the output ApiAddress of the team's stack. If the address is right, "
            "run the command again.",
        )
        return  # credentials are sent to Holdfast alone
    yield ok("api", f"Holdfast {version} responds at {base}.")
    if discovers:
        yield discovery(base)
    if authorization is None:
        return
    headers = {"Authorization": authorization}
    read = http.send("GET", f"{base}/states/{state}", headers=headers)
    message = read.text("message") or read.text("ID")  # a 423 holds lock info
    match read.status:
        case 200:
            yield ok("api.credentials", f"The API accepts the credentials, which may read the state {state}.")
        case 204:
            yield ok("api.credentials", f"The API accepts the credentials. There is no state {state} now.")
            yield _absent(base, state, headers)
        case 403 if read.text("error"):
            yield problem(
                "api.credentials",
                f"The API accepts the credentials, but they are not allowed to read {state}: {message}",
                "Use credentials whose role and scope allow it.",
            )
            return
        case 401 | 403:
            yield problem(
                "api.credentials",
                "The API does not accept the credentials: they are wrong, revoked or expired, or the API "
                "does not accept them from your network.",
                "Get new credentials, or use an allowed network (docs/operate/networks.md). Wait 60 seconds, "
                "because a refusal is cached for that time.",
            )
            return
        case status:
            yield problem(
                "api.credentials",
                f"The API responds with {status} to a read of {state}"
                f"{f': {output.plain(message)}' if message else '.'}",
                "See docs/use/errors.md for this status code.",
            )
            return
    yield _may_lock(base, state, headers, locks=locks is not None)
    if locks not in (None, state):
        yield from _left_lock(base, locks, headers)


def _absent(base: str, state: StateName, headers: Mapping[str, str]) -> Finding:
    """Return whether an absent state was deleted or never existed. A plan treats both as an empty state."""
    response = http.send("GET", f"{base}/manage/v1/versions/{state}", headers=headers)
    if response.text("error") == "no_state":
        return ok("api.state", f"The state {state} does not exist yet: the first apply creates it.")
    versions = form.read(v1.VersionPage, response.json()).versions
    if not versions or not versions[0].delete_marker:
        return note(
            "api.state",
            f"The state {state} has no current version. The check cannot tell whether the state was deleted, "
            f"because the API responds with {response.status} to a request for the versions.",
        )
    at = versions[0].time
    version = next((each.version for each in versions if not each.delete_marker), "")
    when = f" at {output.moment(at)}{_deleted_by(base, state, headers, at, version)}" if at else ""
    return problem(
        "api.state",
        f"The state {state} was deleted{when}, so a plan would create every resource again.",
        f"`holdfast state undelete {state} --address {shlex.quote(base)}` brings the state back. The command "
        "needs the role maintainer.",
    )


def _deleted_by(base: str, state: StateName, headers: Mapping[str, str], at: datetime, version: str) -> str:
    """Return who deleted a version according to the audit trail, as the end of a sentence."""
    around = {"since": output.word(at - _AROUND), "until": output.word(at + _AROUND), "state": state.value}
    response = http.send("GET", f"{base}/manage/v1/activity?{urlencode(around)}", headers=headers)
    if response.status == 403:
        return " (with the role maintainer, this check also shows who deleted it)"
    if response.status != 200:
        return f" (who deleted it is not known: the API responds with {response.status})"
    for event in form.read(v1.Activity, response.json()).events:
        if version and event.get("version_id") == version and event.get("event") == Event.STATE_DELETED:
            principal, owner = (form.text(event.get(member)) for member in ("principal", "owner"))
            return f" by {output.plain(named(principal or 'an unknown user', owner))}"
    return " (the audit trail does not say who deleted it)"


def _may_lock(base: str, state: StateName, headers: Mapping[str, str], *, locks: bool) -> Finding:
    """Return whether the credentials may lock. If so, invalid lock info gets a 400, otherwise a 403."""
    response = http.send(
        "PUT", f"{base}/locks/{state}", headers={**headers, "Content-Type": "application/json"}, body=b"{}"
    )
    match response.status:
        case 400 if locks:
            return ok("api.role", f"The credentials may lock and write {state}.")
        case 400:
            return problem(
                "backend.lock_address",
                f"The credentials may write {state}, but this configuration does not lock. By default, a "
                "team requires locks. The API then refuses the write with 428, after Terraform has created "
                "the resources.",
                f"Replace the block with the output of `holdfast backend-config {state}`.",
            )
        case 403 if locks:
            return problem(
                "api.role",
                f"The credentials can read {state} but not lock it: {response.text('message')}",
                "Use other credentials to apply. To plan, use -lock=false or, with the http backend, "
                f"the block that `holdfast backend-config {state} --read-only` prints.",
            )
        case 403:
            return ok(
                "api.role",
                f"The credentials can read {state} but not lock it. This configuration does not "
                "lock, so that is enough to plan.",
            )
        case status:
            return problem(
                "api.role",
                f"The check cannot tell whether the credentials may lock {state}. The API responded with "
                f"{status}, not with 400 or 403, to lock info without an ID.",
                "See docs/use/errors.md for this status code.",
            )


def _left_lock(base: str, state: StateName, headers: Mapping[str, str]) -> Iterator[Finding]:
    """Yield the lock of another state that the backend locks by mistake, and may never have unlocked."""
    response = http.send("GET", f"{base}/manage/v1/locks/{state}", headers=headers)
    lock = form.read(v1.LockOfState, response.json()).lock if response.status == 200 else None
    if lock and not lock.freeze:
        clock = Clock()
        clock.hear(response.headers.get("date", ""))
        yield problem(
            "api.lock",
            (
                f"This backend locks another state by mistake: {state}. That state is "
                f"{lock_sentence(lock, clock.now())}."
            ),
            f"If a run of this folder left the lock, remove it: "
            f"`holdfast lock break {state} --address {shlex.quote(base)}`.",
        )


def discovery(base: str) -> Finding:
    """Return the finding on whether `cloud` and `remote` can find the API by its discovery document."""
    response = http.send("GET", f"{base}{_DOCUMENT}", headers={})
    missing = [service for service in cloud_config.SERVICES if not response.text(service)]
    if response.status == 200 and not missing:
        return ok("api.discovery", f"`cloud` and `remote` find the API: {_DOCUMENT} has its services.")
    found = (
        f"lacks {', '.join(missing)}" if response.status == 200 else f"returned {response.status}, not 200"
    )
    do = (
        "Deploy the stack again with the release of this command."
        if response.status == 200
        else "Run the command again. If this problem remains, check the proxies between this machine and the "
        "API."
    )
    return problem("api.discovery", f"`cloud` and `remote` do not find the API: {_DOCUMENT} {found}.", do)

"""Looks at a team's bucket as the function `watch` does, and creates the credentials of its probe."""

from typing import TYPE_CHECKING, Final

from holdfast import watching
from holdfast.identity.tokens import Token
from holdfast.s3.budget import Budget
from holdfast.s3.sdk import connect
from holdfast.s3.store import Store
from holdfast_cli.bucket import records, tokens
from holdfast_cli.bucket.records import as_lines, open_bucket
from holdfast_cli.errors import CommandError
from holdfast_cli.terminal.output import Progress

if TYPE_CHECKING:
    from holdfast_cli.bucket.stack import Session, Stack
    from holdfast_cli.config.rules import When

_SECONDS: Final = 120.0
"""How long a look may take."""


def look(session: "Session", stack: "Stack") -> watching.Seen:
    """Look at a bucket."""
    with as_lines(stack, outcome_unknown="Run the command again."):
        store = Store(connect(session), stack.bucket, stack.account, Budget.seconds(_SECONDS))
        return watching.look(store, session.clock.now())


def enable(session: "Session", stack: "Stack", expiry: "When | None") -> Token:
    """Create the probe's token, store its credentials for the function, and revoke the tokens before it."""
    if not stack.watched:
        raise CommandError(
            f"The team {stack.team} has no watch function: write `watch = true` in its settings, and deploy "
            "its stack."
        )
    state = watching.new_probe()
    token, secret = tokens.create(
        session, stack, watching.probe_grants(state), "the probe of holdfast watch", expiry, "", ()
    )
    again = "Run the command again. The next run revokes the token that this run created."
    with as_lines(stack, outcome_unknown=again, interrupted=again):
        body = watching.secret(token.id, secret, state)
        records.create(open_bucket(session, stack), watching.secret_key(token.id), body)
    _remove(session, stack, but=token.id)
    with as_lines(stack, outcome_unknown=again, interrupted=again):
        stands = watching.secret_key(token.id) in open_bucket(session, stack).list_keys(watching.SECRETS)
    # Two runs at once may have removed each other's: then the later of the two sees it here.
    if not stands or tokens.read(session, stack, token.id).revoked:
        raise CommandError(
            f"Another run of `holdfast watch` replaced or removed the token {token.id} at the same time. "
            "Wait until the other run has ended, then run the command again."
        )
    return token


def disable(session: "Session", stack: "Stack") -> int:
    """Revoke the probe's tokens and remove their credentials; return the number of tokens."""
    return _remove(session, stack)


def _remove(session: "Session", stack: "Stack", *, but: str = "") -> int:
    """Remove the credentials first: without them the function makes no probe, which would fail."""
    again = "Run the command again."
    with as_lines(stack, outcome_unknown=again, interrupted=again):
        store = open_bucket(session, stack)
        for key in list(store.list_keys(watching.SECRETS)):
            if key != watching.secret_key(but):
                store.discard(key)
    listing = tokens.read_all(session, stack, Progress())
    now = session.clock.now()
    probes = [
        token
        for token in listing.tokens
        if watching.is_probes(token) and token.id != but and token.status(now) == "active"
    ]
    for token in probes:
        tokens.revoke(session, stack, token.id)
    return len(probes)

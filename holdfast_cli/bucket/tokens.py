"""Creates, reads, rotates and revokes the access tokens in a team's bucket."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from holdfast.identity import tokens
from holdfast.identity.credentials import is_token_id
from holdfast.identity.records import is_newer
from holdfast.identity.tokens import Token, token_key
from holdfast.s3.budget import Budget
from holdfast.s3.sdk import connect
from holdfast.s3.store import Store
from holdfast_cli.bucket import records
from holdfast_cli.bucket.records import PATIENCE, as_lines, caller_arn, change, open_bucket
from holdfast_cli.errors import CommandError
from holdfast_cli.terminal import versions

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

    from holdfast.access import Grant
    from holdfast_cli.bucket.stack import Session, Stack
    from holdfast_cli.config.rules import When
    from holdfast_cli.terminal.output import Progress

_PREFIX: Final = token_key("").removesuffix(".json")
"""The prefix of the keys of all token records."""
_AT_ONCE: Final = 8
"""Records that are read in parallel; the SDK keeps ten connections."""
_READ: Final = "Run the command again."


@dataclass(frozen=True, slots=True)
class Listing:
    """A team's tokens, sorted by ID, and a line about each object without a valid record, sorted by key."""

    tokens: Sequence[Token]
    unreadable: Sequence[str]


def create(
    session: "Session",
    stack: "Stack",
    grants: "Sequence[Grant]",
    description: str,
    expiry: "When | None",
    owner: str,
    networks: Sequence[str],
) -> tuple[Token, str]:
    """Create a token in a team's bucket. Return its record and its secret, which is not stored."""
    unknown = (
        "Run the command again. The request may have created a token whose secret nobody has. If `holdfast "
        "token list` shows such a token, revoke it."
    )
    interrupted = (
        "`holdfast token list` shows whether a token was created. If so, its secret is lost: revoke the "
        "token."
    )
    with as_lines(stack, outcome_unknown=unknown, interrupted=interrupted):
        identity = caller_arn(session)
        now = session.clock.now()
        try:
            token, secret = tokens.create(
                grants,
                description=description,
                created_by=identity,
                now=now,
                expires=expiry.after(now) if expiry else now + tokens.DEFAULT_LIFETIME,
                owner=owner,
                networks=networks,
            )
        except ValueError as error:
            raise CommandError(f"The token cannot be created: {error}.") from error
        if not records.create(open_bucket(session, stack), token.key, token.to_json()):
            raise CommandError(f"The token ID {token.id} is already in use: run the command again.")
    return token, secret


def read(session: "Session", stack: "Stack", token_id: str) -> Token:
    """Return a token's record."""
    with as_lines(stack, outcome_unknown=_READ):
        stored = open_bucket(session, stack).read(token_key(token_id))
        return _parse(stored.body if stored else None, stack.bucket, token_id)


def read_all(session: "Session", stack: "Stack", progress: "Progress") -> Listing:
    """Return the records of all tokens."""
    with as_lines(stack, outcome_unknown=_READ), progress:
        valid, others = _read_all(connect(session), stack, progress)
    lines = [unreadable(stack.bucket, key, body) for key, body in sorted(others.items())]
    return Listing(sorted(valid, key=lambda token: token.id), lines)


def ids(session: "Session", stack: "Stack") -> list[str]:
    """Return the IDs of all tokens, also of those that expired or were revoked, in one request for many."""
    from holdfast_cli.terminal.output import Progress

    with as_lines(stack, outcome_unknown=_READ), Progress() as progress:
        keys = _keys(open_bucket(session, stack), progress)
    return [key.removeprefix(_PREFIX).removesuffix(".json") for key in keys]


def _read_all(
    client: "S3Client", stack: "Stack", progress: "Progress"
) -> tuple[list[Token], dict[str, bytes]]:
    """Return the tokens, and key -> body of each object without a valid record."""

    def store() -> Store:
        return Store(client, stack.bucket, stack.account, Budget.seconds(PATIENCE))

    keys = _keys(store(), progress)
    valid: list[Token] = []
    others = {}

    def read_body(key: str) -> bytes | None:
        stored = store().read(key)
        return stored.body if stored else None

    pool = ThreadPoolExecutor(_AT_ONCE)
    try:
        reads = {pool.submit(read_body, key): key for key in keys}
        for count, done in enumerate(as_completed(reads), start=1):
            progress.count(count, len(keys), "tokens read")
            body = done.result()
            if body is None:
                continue  # removed after it was listed
            try:
                valid.append(_matching(body, reads[done]))
            except ValueError:
                others[reads[done]] = body
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # after Ctrl-C, do not wait for the reads
    return valid, others


def rotate(
    session: "Session", stack: "Stack", token_id: str, keep: timedelta, expiry: "When | None"
) -> tuple[Token, str]:
    """Replace a token's secret, unless the token is revoked or expired.

    Args:
        keep: how long the old secret stays valid.
        expiry: the token's new expiry; None gives the token its original lifetime again, from now on.

    Returns:
        The record and the new secret, which is not stored.
    """
    look = (
        f"`holdfast token show {token_id}` shows when the token was last rotated. If this command rotated "
        "it, the new secret is lost, and the old secret expires: create another token. Otherwise run the "
        "command again."
    )
    unknown = f"The rotation may have taken effect. {look}"
    with as_lines(stack, outcome_unknown=unknown, interrupted=look):
        identity = caller_arn(session)
        made: list[tuple[Token, str]] = []

        def decide(current: bytes | None) -> bytes:
            token = _parse(current, stack.bucket, token_id)
            now = session.clock.now()
            if expiry is not None:
                expires = expiry.after(now)
            else:
                span = tokens.lifetime(token)
                expires = None if span is None else now + span
            try:
                made.append(tokens.rotate(token, rotated_by=identity, now=now, keep=keep, expires=expires))
            except ValueError as error:
                raise CommandError(f"The secret cannot be rotated: {error}.") from error
            return made[-1][0].to_json()

        change(open_bucket(session, stack), token_key(token_id), decide)
    return made[-1]


def update(
    session: "Session", stack: "Stack", token_id: str, *, description: str | None, owner: str | None
) -> tuple[Token, Token]:
    """Change a token's description or owner; None is no change. Return the record before and after.

    Neither decides on access. So a retry after a concurrent change keeps what that change made.
    """
    look = (
        "Before you run the command again, check the token's description and owner with `holdfast token "
        f"show {token_id}`."
    )
    with as_lines(stack, outcome_unknown=look, interrupted=look):
        made: list[tuple[Token, Token]] = []

        def decide(current: bytes | None) -> bytes | None:
            token = _parse(current, stack.bucket, token_id)
            after = tokens.update(token, description=description, owner=owner)
            made.append((token, after))
            return None if after == token else after.to_json()

        change(open_bucket(session, stack), token_key(token_id), decide)
    return made[-1]


def revoke(session: "Session", stack: "Stack", token_id: str) -> Token:
    """Revoke a token for good, and return its record. The record of a revoked token is not changed again."""
    again = "Run the command again until it says that the token is revoked."
    with as_lines(stack, outcome_unknown=again, interrupted=again):
        identity = caller_arn(session)
        revoked: list[Token] = []

        def decide(current: bytes | None) -> bytes | None:
            token = _parse(current, stack.bucket, token_id)
            revoked.append(tokens.revoke(token, revoked_by=identity, now=session.clock.now()))
            return None if token.revoked is not None else revoked[-1].to_json()

        change(open_bucket(session, stack), token_key(token_id), decide)
    return revoked[-1]


def _keys(store: Store, progress: "Progress") -> list[str]:
    """Return the keys of all token records."""
    keys: list[str] = []
    for key in store.list_keys(_PREFIX):
        store.budget.prolong(PATIENCE)  # a new deadline for each page: many tokens take long to list
        token_id = key.removeprefix(_PREFIX).removesuffix(".json")
        if is_token_id(token_id) and key == token_key(token_id):
            keys.append(key)
            progress.show(f"Listing tokens: {len(keys)} so far")
    return keys


def _matching(body: bytes, key: str) -> Token:
    token = Token.from_json(body)
    if token.key != key:
        raise ValueError("the record belongs to another token")
    return token


def _parse(body: bytes | None, bucket: str, token_id: str) -> Token:
    if body is None:
        raise CommandError(
            f"There is no token {token_id} in the bucket {bucket}. `holdfast token list --all` shows all "
            "tokens of the team. For another team, use --team."
        )
    try:
        return _matching(body, token_key(token_id))
    except ValueError as error:
        raise CommandError(unreadable(bucket, token_key(token_id), body)) from error


def unreadable(bucket: str, key: str, body: bytes) -> str:
    """Return the line about an object without a valid token record."""
    if is_newer(body):
        return versions.newer_record(f"s3://{bucket}/{key}")
    return (
        f"The object s3://{bucket}/{key} is damaged, so nobody can sign in with the token. Look at the "
        f"object with `aws s3 cp s3://{bucket}/{key} -`. Create another token, and remove this object with "
        f"`aws s3 rm s3://{bucket}/{key}`."
    )

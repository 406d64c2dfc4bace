"""Making access tokens in a team's bucket."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from cli.aws_errors import as_command_errors, explain
from cli.errors import CommandError
from holdfast import tokens
from holdfast.access import Role
from holdfast.errors import StorageRefused, Undecided
from holdfast.store import IfAbsent, NotStored, Store, connect
from holdfast.tokens import Token

if TYPE_CHECKING:
    import boto3

_PATIENCE = 8.0
"""Seconds in which S3 has to decide."""


def create(
    session: "boto3.Session", bucket: str, role: Role, scope: Sequence[str], description: str
) -> tuple[Token, str]:
    """Make an access token and store its record in a team's bucket.

    Returns:
        The record, and the secret, which is nowhere else.

    Raises:
        CommandError: AWS does not allow it or does not answer.
    """
    with as_command_errors():
        identity = session.client("sts").get_caller_identity()["Arn"]
        token, secret = tokens.create(
            role, scope, description=description, created_by=identity, now=datetime.now(UTC), expires=None
        )
        store = Store(connect(session), bucket, deadline=time.monotonic() + _PATIENCE)
        _store(store, token)
    return token, secret


def _store(store: Store, token: Token) -> None:
    body = token.to_json()
    try:
        stored = store.write(token.key, body, IfAbsent(), metadata={})
        if isinstance(stored, NotStored):
            # A repeated request meets the record that its own first attempt left.
            found = store.read(token.key)
            if found is None or found.body != body:
                raise CommandError(f"The token ID {token.id} is taken already: run the command again.")
    except StorageRefused as error:
        refused = error.__cause__
        reason = explain(refused) if isinstance(refused, ClientError) else error.message
        raise CommandError(f"The bucket {store.bucket} does not take the token. {reason}") from error
    except Undecided as error:
        raise CommandError(
            f"The bucket {store.bucket} does not answer: run the command again. A record that was "
            "stored all the same is of no use without its secret."
        ) from error

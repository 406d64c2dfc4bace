"""Reads and changes records in a team's bucket, with conditional writes that are retried after a race.

A write raises `OutcomeUnknown` if S3 did not respond in time and the write may have taken effect, and
`StorageRefused` if S3 denies the caller access.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError

from holdfast.errors import OutcomeUnknown, StorageRefused
from holdfast.s3.budget import Budget
from holdfast.s3.objects import IfAbsent, IfMatch, PreconditionFailed, Stored
from holdfast.s3.sdk import connect
from holdfast.s3.store import Store
from holdfast_cli.bucket.aws_errors import as_command_errors, explain
from holdfast_cli.errors import CommandError

if TYPE_CHECKING:
    import boto3

    from holdfast_cli.bucket.stack import Stack

PATIENCE: Final = 8.0
"""The seconds in which a store must complete its requests to S3."""


def open_bucket(session: "boto3.Session", stack: "Stack") -> Store:
    """Return the store of a team's bucket; its requests fail after `PATIENCE` seconds."""
    return Store(connect(session), stack.bucket, stack.account, Budget.seconds(PATIENCE))


def caller_arn(session: "boto3.Session") -> str:
    """Return the ARN of the AWS identity that runs the command, to store in records."""
    return str(session.client("sts").get_caller_identity()["Arn"])


def refused(stack: "Stack") -> str:
    """Return a sentence that says that S3 denied a request to a team's bucket."""
    # S3 responds with the same 403 if it denies access or if another account has the bucket.
    return (
        f"S3 refuses the request to the bucket {stack.bucket}, perhaps because the bucket is no longer in "
        f"the account {stack.account}."
    )


@contextmanager
def as_lines(stack: "Stack", *, outcome_unknown: str, interrupted: str = "") -> Iterator[None]:
    """Raise errors of the store and the SDK as `CommandError` with one line that says what to do.

    Args:
        outcome_unknown: sentences on what to do if S3 did not respond to a write, which may have happened.
        interrupted: what to check after Ctrl-C; added to the KeyboardInterrupt as a note.
    """
    with as_command_errors():
        try:
            yield
        except StorageRefused as error:
            cause = error.__cause__
            reason = explain(cause) if isinstance(cause, ClientError) else error.message
            raise CommandError(f"{refused(stack)} {reason}") from error
        except OutcomeUnknown as error:
            raise CommandError(f"The bucket {stack.bucket} does not respond. {outcome_unknown}") from error
        except KeyboardInterrupt as interrupt:
            if interrupted:
                interrupt.add_note(interrupted)
            raise


def create(store: Store, key: str, body: bytes) -> bool:
    """Create a record. Return whether it is stored; False if the key has another record."""
    match store.write(key, body, IfAbsent(), metadata={}):
        case Stored():
            return True
        case PreconditionFailed():
            # The request's own first attempt may have stored the record.
            stored = store.read(key)
            return stored is not None and stored.body == body


def change(store: Store, key: str, decide: Callable[[bytes | None], bytes | None]) -> None:
    """Replace a record, on condition that it has not changed since it was read.

    `decide` gets the current record, or None if it is absent, and returns the new record, or None to change
    nothing. After a concurrent change `decide` is called again.
    """
    sent = None
    while True:
        stored = store.read(key)
        current = stored.body if stored else None
        if sent is not None and current == sent:
            return  # as in `create`
        sent = decide(current)
        if sent is None:
            return
        condition = IfMatch(stored.version.etag) if stored else IfAbsent()
        match store.write(key, sent, condition, metadata={}):
            case Stored():
                return
            case PreconditionFailed():
                continue

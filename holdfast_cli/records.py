"""Records in a team's bucket: read, and changed by conditional writes that are repeated after a race."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError

from holdfast.errors import OutcomeUnknown, StorageRefused
from holdfast.s3.store import IfAbsent, IfMatch, Store, Stored, connect
from holdfast_cli.aws_errors import as_command_errors, explain
from holdfast_cli.errors import CommandError

if TYPE_CHECKING:
    import boto3

PATIENCE: Final = 8.0
"""Seconds in which S3 has to decide."""


def open_bucket(session: "boto3.Session", bucket: str) -> Store:
    """The bucket, for the time of one command."""
    return Store(connect(session), bucket, deadline=time.monotonic() + PATIENCE)


def caller_arn(session: "boto3.Session") -> str:
    """The AWS identity that runs the command, to be noted in a record."""
    return str(session.client("sts").get_caller_identity()["Arn"])


@contextmanager
def as_lines(bucket: str, *, undecided: str, interrupted: str = "") -> Iterator[None]:
    """Turn what goes wrong between here and a team's bucket into one helpful line.

    Args:
        bucket: the bucket's name.
        undecided: what to do where the bucket did not answer; a write may have taken effect then.
        interrupted: what to look at after Ctrl-C, where that matters.

    Raises:
        CommandError: instead of the errors of the store and the SDK.
        KeyboardInterrupt: with the note.
    """
    with as_command_errors():
        try:
            yield
        except StorageRefused as error:
            refused = error.__cause__
            reason = explain(refused) if isinstance(refused, ClientError) else error.message
            raise CommandError(f"The bucket {bucket} refuses it. {reason}") from error
        except OutcomeUnknown as error:
            raise CommandError(f"The bucket {bucket} does not answer: {undecided}") from error
        except KeyboardInterrupt as interrupt:
            if interrupted:
                interrupt.add_note(interrupted)
            raise


def create(store: Store, key: str, body: bytes) -> bool:
    """Store a record where there is none.

    Returns:
        Whether it is there now; False if there is another one.

    Raises:
        OutcomeUnknown: S3 did not decide in time; the write may have taken effect.
        StorageRefused: S3 refuses the caller.
    """
    if isinstance(store.write(key, body, IfAbsent(), metadata={}), Stored):
        return True
    # A repeated request meets the record that its own first attempt left.
    found = store.read(key)
    return found is not None and found.body == body


def change(store: Store, key: str, decide: Callable[[bytes | None], bytes | None]) -> None:
    """Put a record in the place of exactly the one that it was made from.

    Somebody else may change the record at the same time: then it is made anew, from theirs.

    Args:
        store: the bucket.
        key: where the record lies.
        decide: makes the new record of the current one, which is None where there is none. Returns None where
            the current one is to stay.

    Raises:
        OutcomeUnknown: S3 did not decide in time; the write may have taken effect.
        StorageRefused: S3 refuses the caller.
    """
    sent = None
    while True:
        found = store.read(key)
        current = found.body if found else None
        if sent is not None and current == sent:
            return  # as in `create`
        sent = decide(current)
        if sent is None:
            return
        condition = IfMatch(found.version.etag) if found else IfAbsent()
        if isinstance(store.write(key, sent, condition, metadata={}), Stored):
            return

"""Bringing deleted states back, straight from a team's bucket."""

import hashlib
import shlex
import time
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from cli.aws_errors import as_command_errors, explain
from cli.errors import CommandError
from holdfast import states
from holdfast.access import Caller, Role
from holdfast.errors import HoldfastError, Locked, StorageRefused, Undecided
from holdfast.names import StateName
from holdfast.states import Undeleted
from holdfast.store import METADATA_VALUE_LIMIT, Store, connect, encode_metadata

if TYPE_CHECKING:
    import boto3

    from cli.stack import Stack

_PATIENCE = 30.0
"""Seconds in which S3 has to decide; a state may be large and the line slow."""


def undelete(session: "boto3.Session", stack: "Stack", name: StateName) -> Undeleted:
    """Write the newest version of a deleted state anew.

    Raises:
        CommandError: it is not deleted, is locked, has no version to bring back, AWS does not allow it or
            does not answer, or the lock stayed.
    """
    with as_command_errors():
        identity = session.client("sts").get_caller_identity()["Arn"]
        store = Store(connect(session), stack.bucket, deadline=time.monotonic() + _PATIENCE)
        undeleted = _undelete(store, stack, name, Caller(principal(identity), Role.MAINTAINER, ("*",)))
    if undeleted.lock_left is not None:
        raise CommandError(
            f"The state {name} is back as version {undeleted.version_id}, but its lock could not be "
            f"released: free it with `terraform force-unlock {undeleted.lock_left}`."
        )
    return undeleted


def _undelete(store: Store, stack: "Stack", name: StateName, caller: Caller) -> Undeleted:
    try:
        return states.undelete(store, name, caller, stack.retention)
    except Locked as error:
        # Whoever locks can write anything there.
        who, operation, lock_id = (_plain(error.holder[field]) for field in ("Who", "Operation", "ID"))
        raise CommandError(
            f"The state {name} is locked by {who or 'somebody'} ({operation or 'no operation'}), lock ID "
            f"{lock_id}: wait until they are done, or, if nobody is at work any more, free it with "
            f"`terraform force-unlock {shlex.quote(lock_id)}`; then run the command again."
        ) from error
    except StorageRefused as error:
        refused = error.__cause__
        reason = explain(refused) if isinstance(refused, ClientError) else error.message
        raise CommandError(f"The bucket {store.bucket} does not give the state back. {reason}") from error
    except Undecided as error:
        raise CommandError(
            f"The bucket {store.bucket} does not answer: run the command again, that is safe. {error.message}"
        ) from error
    except HoldfastError as error:
        raise CommandError(error.message) from error


def _plain(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)


def principal(arn: str) -> str:
    """The principal that stands for an AWS identity: its ARN.

    An ARN that S3's metadata would cut is no name any more by which a lock could be told to be one's own:
    then its digest, and as much of its end as fits.
    """
    if len(encode_metadata(arn, limit=None)) <= METADATA_VALUE_LIMIT:
        return arn
    end = arn[-40:]  # percent-encoded at most 120 bytes
    return f"arn-sha256:{hashlib.sha256(arn.encode()).hexdigest()[:32]}:{end}"

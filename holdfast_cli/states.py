"""Restores deleted states directly in a team's bucket."""

import shlex
import time
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from holdfast.access import Caller, Role
from holdfast.errors import HoldfastError, Locked, OutcomeUnknown, StorageRefused
from holdfast.identity.principals import principal
from holdfast.names import StateName
from holdfast.s3.store import Store, connect
from holdfast.state import undelete as undeleting
from holdfast.state.undelete import Undeleted
from holdfast_cli.aws_errors import as_command_errors, explain
from holdfast_cli.errors import CommandError, with_notes
from holdfast_cli.output import plain
from holdfast_cli.records import refused

if TYPE_CHECKING:
    import boto3

    from holdfast_cli.stack import Stack

_PATIENCE = 30.0
"""Seconds after which the command gives up on S3; a state may be large and the line slow."""


def undelete(session: "boto3.Session", stack: "Stack", name: StateName) -> Undeleted:
    """Write the newest version of a deleted state again.

    Raises:
        CommandError: the state is not deleted, is locked or has no version to restore; AWS does not allow it
            or does not respond; or the lock could not be released.
        KeyboardInterrupt: with a note that says what to check.
    """
    with as_command_errors():
        identity = session.client("sts").get_caller_identity()["Arn"]
        store = Store(connect(session), stack.bucket, stack.account, deadline=time.monotonic() + _PATIENCE)
        caller = Caller(principal(identity), Role.MAINTAINER, ("*",))
        try:
            return undeleting.undelete(store, name, caller, stack.retention)
        except HoldfastError as error:
            raise CommandError(with_notes(_line(error, stack, name), error)) from error
        except KeyboardInterrupt as interrupt:
            # A write that was on its way may still take effect.
            interrupt.add_note(
                f"Check whether the state {name} is back, and whether it is locked, before you go on."
            )
            raise


def _line(error: HoldfastError, stack: "Stack", name: StateName) -> str:
    match error:
        case Locked():
            # A client can write anything into its lock.
            who, operation, lock_id = (plain(error.holder[field]) for field in ("Who", "Operation", "ID"))
            return (
                f"The state {name} is locked by {who or 'somebody'} ({operation or 'no operation'}), lock ID "
                f"{lock_id}: wait until it is released, or, if nobody uses it any more, release it with "
                f"`terraform force-unlock {shlex.quote(lock_id)}`; then run the command again."
            )
        case StorageRefused(__cause__=ClientError() as cause):
            return f"{refused(stack)} {explain(cause)}"
        case OutcomeUnknown():
            return (
                f"The bucket {stack.bucket} does not respond: run the command again, that is safe. "
                f"{error.message}"
            )
        case _:
            return error.message

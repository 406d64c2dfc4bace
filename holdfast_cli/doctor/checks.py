"""Runs checks so that one failure does not stop the others."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from holdfast.template import UnresolvedError
from holdfast_cli.bucket.aws_errors import code_of, explain
from holdfast_cli.doctor.findings import Finding, Outcome, note, problem
from holdfast_cli.errors import CommandError

_NO_SUCH_CALL: Final = frozenset({"InvalidAction", "UnknownOperation", "UnknownOperationException"})
"""The error codes by which an AWS emulator refuses a call that it does not have. Status 501 does the same."""
RUN_AGAIN: Final = "Fix the cause, and run the command again."
"""Advice for a check that failed."""


def attempt(check: str, look: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    """Yield the findings of `look`. If `look` fails, the last finding is the reason, with the name `check`.

    The finding is a note if AWS denies the call or an emulator of AWS lacks it. Any other failure is a
    problem.
    """
    try:
        yield from look()
    except ClientError as error:
        if is_denied(error):
            yield note(check, _not_checked(explain(error)))
        elif _is_no_call(error):
            yield note(
                check, f"Not checked: this AWS endpoint does not support the call {error.operation_name}."
            )
        else:
            yield problem(check, _not_checked(explain(error)), RUN_AGAIN)
    except BotoCoreError as error:
        yield problem(check, _not_checked(explain(error)), RUN_AGAIN)
    except CommandError as error:
        yield problem(check, _not_checked(str(error)), RUN_AGAIN)
    except UnresolvedError as error:
        do = "Use the release of `holdfast` that deployed the stack, or deploy the stack again."
        yield problem(check, _not_checked(str(error)), do)
    except Exception as error:  # noqa: BLE001 the other checks are still made
        # Without the exception's text: it could hold a secret.
        yield problem(
            check,
            f"Not checked: the command failed with {type(error).__name__}.",
            "Report this as an issue, with the command that you typed.",
        )


def judge(check: str, look: Callable[[], Iterable[Outcome]]) -> Iterator[Finding]:
    """Yield each outcome of `look` as a finding with the name `check`, as `attempt` does."""
    return attempt(check, lambda: (Finding(check, *outcome) for outcome in look()))


def existing(call: Callable[..., Any], *absent: str, **parameters: str) -> Any:
    """Return AWS's response to a call; None if AWS responds with one of the error codes `absent`."""
    try:
        return call(**parameters)
    except ClientError as error:
        if code_of(error) not in absent:
            raise
        return None


def _not_checked(why: str) -> str:
    return f"Not checked. {why.rstrip('.')}."


def is_denied(error: ClientError) -> bool:
    """Return whether AWS knows the credentials and denies the call."""
    code = code_of(error)
    return code.startswith(("AccessDenied", "UnauthorizedOperation")) or (code == "403")


def _is_no_call(error: ClientError) -> bool:
    # A 404 alone proves nothing: AWS sends it if a bucket, a role or a trail is missing.
    code = code_of(error)
    return code in _NO_SUCH_CALL or error.response["ResponseMetadata"].get("HTTPStatusCode") == 501

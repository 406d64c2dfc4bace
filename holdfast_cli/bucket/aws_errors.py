"""Turn errors of AWS and its SDK into one line with advice."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from botocore import exceptions, parsers
from botocore.exceptions import BotoCoreError, ClientError

from holdfast_cli.errors import CommandError, UnavailableError, UsageError, with_notes

# https://docs.aws.amazon.com/STS/latest/APIReference/CommonErrors.html, and S3's names of the same errors.
_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"})
_NOT_VALID = frozenset(
    {
        "AuthFailure",
        "IncompleteSignature",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidToken",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
_THROTTLED = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
NOT_OF_AWS: Final = (
    "The response does not come from AWS. Check AWS_ENDPOINT_URL, and check whether a proxy responded."
)
"""The message about a response of a proxy or a portal."""

_SETTINGS: Final = (
    exceptions.NoCredentialsError,
    exceptions.PartialCredentialsError,
    exceptions.ProfileNotFound,
    exceptions.NoRegionError,
)
"""The errors about a setting that is missing or not valid."""
_LOCAL = "For the local AWS, run `set -a; . .local/aws.env; set +a`"
SIGN_IN: Final = "sign in again (`aws sso login`, or however you get credentials) and run the command again"
"""Advice for credentials that AWS does not accept."""


def explain(error: BotoCoreError | ClientError) -> str:
    """Return one line on what went wrong and what to do."""
    match error:
        case ClientError():
            return _explain_response(error)
        case exceptions.NoCredentialsError() | exceptions.PartialCredentialsError():
            return f"No AWS credentials were found. Sign in, or set AWS_PROFILE. {_LOCAL}."
        case exceptions.ProfileNotFound():
            return f"{_one_line(error)}: name a profile that `aws configure list-profiles` prints."
        case exceptions.NoRegionError():
            return (
                "No AWS region is set. Name the region of the team's stack with --region, AWS_REGION or a "
                f"profile (`holdfast configure`). {_LOCAL}."
            )
        case exceptions.SSOError() | exceptions.TokenRetrievalError() | exceptions.LoginError():
            return f"The AWS session has ended: {SIGN_IN}."
        case exceptions.SSLError():
            return f"The certificate of AWS was not accepted: {_reason(error)}. Check AWS_CA_BUNDLE."
        case exceptions.ConnectionError() | exceptions.HTTPClientError():
            return (
                f"AWS does not respond: {_reason(error)}. Check the network, AWS_REGION and "
                "AWS_ENDPOINT_URL, or start the local AWS with `make up`."
            )
        case _:
            return f"The AWS SDK failed: {_reason(error)}. Check the AWS settings."


def code_of(error: ClientError) -> str:
    """Return the code of an error response; empty if the response is not from AWS."""
    return error.response.get("Error", {}).get("Code", "")


def _is_page(error: ClientError) -> bool:
    """Return whether the response is a proxy's web page; False for status 5xx, which AWS may have sent."""
    if "Error" not in error.response:
        return True
    # The SDK returns a body that is not JSON as the message.
    message = error.response["Error"].get("Message") or ""
    return message.lstrip().lower().startswith(("<html", "<!doctype")) and not _may_work_soon(error)


def _explain_response(error: ClientError) -> str:
    if _is_page(error):
        return NOT_OF_AWS
    code = code_of(error)
    call = error.operation_name
    if code in _EXPIRED:
        return f"The AWS session has expired: {SIGN_IN}."
    if code in _NOT_VALID:
        return (
            f"AWS does not accept these credentials ({code} for {call}): {SIGN_IN}. If the error remains, "
            "check this machine's clock."
        )
    if code == "RequestTimeTooSkewed":
        return "This machine's clock and the clock of AWS differ too much. Correct this machine's clock."
    if error.response["ResponseMetadata"].get("HTTPStatusCode") == 403:
        return f"AWS does not allow {call}: {_reason(error)}. Use an identity that is allowed to do it."
    return f"AWS refused {call}: {_reason(error)}."


def _kind(error: BotoCoreError | ClientError) -> type[CommandError]:
    if isinstance(error, _SETTINGS):
        return UsageError
    return UnavailableError if _may_work_soon(error) else CommandError


def _may_work_soon(error: BotoCoreError | ClientError) -> bool:
    if isinstance(error, ClientError):
        status = error.response["ResponseMetadata"].get("HTTPStatusCode", 0)
        return status >= 500 or code_of(error) in _THROTTLED
    return isinstance(error, exceptions.ConnectionError | exceptions.HTTPClientError) and not isinstance(
        error, exceptions.SSLError
    )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _reason(error: Exception) -> str:
    return _one_line(error).rstrip(".")


@contextmanager
def as_command_errors() -> Iterator[None]:
    """Raise errors of AWS and its SDK as `CommandError`.

    A setting that is missing or not valid is a `UsageError`, a transient error an `UnavailableError`.
    """
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise _kind(error)(with_notes(explain(error), error)) from error
    except Exception as error:
        if _of_parser(error):  # the error's text may contain the whole response
            raise CommandError(NOT_OF_AWS) from error
        if not isinstance(error, OSError | ValueError):
            raise
        # The SDK has no own error for an endpoint that is not a URL, or for a missing credential_process.
        raise UsageError(
            f"The AWS settings are not valid: {_reason(error)}. Check AWS_ENDPOINT_URL and the profile."
        ) from error


def _of_parser(error: Exception) -> bool:
    """Return whether the SDK's parser raised an error: most unreadable responses have no error class."""
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_globals.get("__name__") == parsers.__name__ for frame, _ in frames)

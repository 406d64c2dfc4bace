"""The API's authorizer. It only translates events for the library, and the library's results to responses.

It is a REQUEST authorizer with payload format 2.0 and simple responses. API Gateway caches a response for
60 seconds. When the function raises, API Gateway responds with 500 and caches nothing.
"""

from typing import TYPE_CHECKING, Any, Final

from gateway import authorizer_context, function
from gateway.log import log
from holdfast import audit
from holdfast.audit import Event
from holdfast.identity import credentials
from holdfast.identity.authentication import Authenticated, Denied, refused
from holdfast.identity.sign_in import sign_in
from holdfast.identity.time_limit import TimeLimit, init_began
from holdfast.networks import Origin
from holdfast.policy import Policy
from holdfast.s3.budget import Budget
from holdfast.s3.store import Store
from holdfast.team import WARM_UP

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

_READ_TIMEOUT: Final = 2.0
"""Seconds after which a lost response of S3 still leaves time for another request, as S3's guide advises:
https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance-design-patterns.html
"""

_function = function.start(read_timeout=_READ_TIMEOUT)
_networks = Policy.from_environment("networks").networks
_time_limit = TimeLimit(init_began())  # last, because it ends the init


def handle(event: dict[str, Any], context: "LambdaContext") -> dict[str, Any]:
    """Authenticate the caller of a request, and return API Gateway's simple response.

    Raises:
        HoldfastError: S3 did not respond in time, or refuses the function.
        IssuerUnreachable: the keys of an ID token's issuer could not be fetched.
        ValueError: the caller's stored record is damaged.
    """
    ends = _time_limit.ends(context.get_remaining_time_in_millis() / 1000)
    if event == WARM_UP:
        return {"isAuthorized": False}
    # The identity sources are the key of API Gateway's cache, so the response may depend on them alone: with
    # the address among them, also on that. During a deployment the API may still lack it.
    authorization, *others = event["identitySource"]
    address = event["requestContext"]["http"].get("sourceIp") or ""
    origin = Origin(address, _networks, decides_alone=bool(_networks) and others == [address])
    sent = credentials.parse(authorization)
    store = _function.store(Budget(ends))
    try:
        outcome = authorizer_context.bounded(sign_in(sent, store, origin, ends))
    except Exception as error:
        # Lambda logs the error with its text.
        log.error(
            Event.SIGN_IN_FAILED.value,
            extra={**_log_fields(event, sent, store), "error": audit.failure(error)},
        )
        raise
    match outcome:
        case Denied(reason):
            denial, why = refused(reason)
            log.warning(denial.value, extra={**_log_fields(event, sent, store), **why})
            return {"isAuthorized": False}
        case Authenticated():
            log.info(
                Event.SIGN_IN_ACCEPTED.value,
                extra={**_log_fields(event, sent, store), **outcome.log_fields()},
            )
            return {"isAuthorized": True, "context": authorizer_context.encode(outcome)}


def _log_fields(event: dict[str, Any], sent: credentials.Credentials | None, store: Store) -> dict[str, Any]:
    context = event["requestContext"]
    return {
        audit.MARK_FIELD: audit.MARK,
        **(sent.log_fields() if sent else {}),
        "source_ip": context["http"].get("sourceIp"),
        "request_id": context["requestId"],
        "s3_requests": len(store.budget.requests),
    }

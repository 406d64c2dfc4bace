"""The events of the audit trail."""

from gateway.responses import Response
from management.requests import Request


def read(request: Request) -> Response:
    """Respond with events of the audit trail within the caller's scope."""
    raise NotImplementedError

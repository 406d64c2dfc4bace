"""What the management API reads: states, history, content, differences, locks, the caller."""

from gateway.responses import Response
from management import differences
from management.requests import Request


def states(request: Request) -> Response:
    """Respond with a page of the states."""
    raise NotImplementedError


def state(request: Request) -> Response:
    """Respond with one state."""
    raise NotImplementedError


def versions(request: Request) -> Response:
    """Respond with a page of the history of a state."""
    raise NotImplementedError


def content(request: Request) -> Response:
    """Respond with the bytes of a version."""
    raise NotImplementedError


def diff(request: Request) -> Response:
    """Respond with the differences between two versions."""
    return differences.respond(request)


def locks(request: Request) -> Response:
    """Respond with the locks that are held."""
    raise NotImplementedError


def lock(request: Request) -> Response:
    """Respond with the lock of one state."""
    raise NotImplementedError


def whoami(request: Request) -> Response:
    """Respond with who the caller is."""
    raise NotImplementedError

"""Routes: who may send what, and which handler responds. Each function has one list of them."""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from holdfast.errors import HoldfastError, MethodNotAllowed, UnknownRoute

if TYPE_CHECKING:
    from holdfast.access import Action, Caller
    from holdfast.audit import Event
    from holdfast.names import StateName


class Anyone(Enum):
    """What a route asks of its caller if that is no action."""

    PUBLIC = auto()
    AWS_IDENTITY = auto()
    ANY_CALLER = auto()


PUBLIC: Final = Anyone.PUBLIC
"""No credentials."""
AWS_IDENTITY: Final = Anyone.AWS_IDENTITY
"""A signature with AWS credentials, which the library judges."""
ANY_CALLER: Final = Anyone.ANY_CALLER
"""Credentials that the authorizer accepted, whatever the role."""

_R = TypeVar("_R")


# No dataclass: the import of `dataclasses` is a sixth of the health function's start.
class Route(NamedTuple, Generic[_R]):
    """A path with verbs, what they need, and what responds.

    Attributes:
        path: a template. `{name}` takes one segment of the path, `{name+}` the rest of it.
        verbs: with spaces between them.
        handler: gets the request, and what the path names beside a state.
        event: of the audit trail, unless the handler names another; None where nothing is logged.
        needs: the least that a request needs, checked before the handler runs. The library decides again.
        query: the parameters that the query may have, with spaces between them.
    """

    path: str
    verbs: str
    handler: Callable[..., _R]
    event: "Event | None"
    needs: "Action | Anyone"
    query: str = ""

    def check(self, caller: "Caller", name: "StateName | None") -> None:
        """Check that a caller has the least that this route needs; the role alone if no state is named."""
        if isinstance(self.needs, Anyone):
            return
        if name is None:
            caller.require_role(self.needs)
        else:
            caller.require(self.needs, name)


class Target(NamedTuple):
    """What the path of a request names.

    Attributes:
        name: None if the path names no state.
        arguments: what the handler gets beside the request.
    """

    name: "StateName | None" = None
    arguments: tuple[object, ...] = ()


Verbs = Mapping[str, Route[_R]]
"""The routes of a path, by verb."""


def pick(verbs: Verbs[_R], method: str) -> Route[_R]:
    """Return the route of a verb."""
    if method not in verbs:
        raise MethodNotAllowed(method, tuple(verbs))
    return verbs[method]


def _name_nothing(_: Mapping[str, str]) -> Target:
    return Target()


def _refuse(path: str) -> HoldfastError:
    return UnknownRoute(f"There is no route {path}.")


class Router(Generic[_R]):
    """Finds the route of a request.

    Args:
        decode: makes of a path's parameters what they name; the only place that does.
        refuse: makes of an unknown path the error that its client gets.
        prefix: the beginning of the paths of all routes.
        slash: whether a path without parameters may end with a slash.
    """

    def __init__(
        self,
        routes: Sequence[Route[_R]],
        decode: Callable[[Mapping[str, str]], Target] = _name_nothing,
        refuse: Callable[[str], HoldfastError] = _refuse,
        *,
        prefix: str = "",
        slash: bool = False,
    ) -> None:
        self.routes = [route._replace(path=prefix + route.path) for route in routes]
        self._decode = decode
        self._refuse = refuse
        verbs: dict[str, dict[str, Route[_R]]] = {}
        for route in self.routes:
            verbs.setdefault(route.path, {}).update(dict.fromkeys(route.verbs.split(), route))
        slashes = {f"{path}/": of_path for path, of_path in verbs.items() if slash and "{" not in path}
        self._templates = [(path.split("/"), of_path) for path, of_path in {**verbs, **slashes}.items()]

    def match(self, event: Mapping[str, Any]) -> tuple[Verbs[_R], Target | HoldfastError]:
        """Return the routes of a request's path, and what it names, or why that cannot be decoded.

        Raises:
            HoldfastError: no route has this path.
        """
        beginning, greedy, _ = event["routeKey"].partition(" ")[2].partition("{")
        if not beginning:
            raise self._refuse(event["rawPath"])
        (rest,) = event["pathParameters"].values() if greedy else ("",)
        path = beginning + rest
        segments = path.split("/")
        for template, routes in self._templates:
            parameters = _parameters(template, segments)
            if parameters is not None:
                try:
                    return routes, self._decode(parameters)
                except HoldfastError as error:
                    return routes, error
        raise self._refuse(path)


def _parameters(template: Sequence[str], path: Sequence[str]) -> dict[str, str] | None:
    """Return the parameters of a path, by their names; None if the template does not fit."""
    rest = template[-1].endswith("+}")
    if len(path) != len(template) and not (rest and len(path) > len(template)):
        return None
    parameters = {}
    for position, (wanted, segment) in enumerate(zip(template, path, strict=False)):
        if wanted.endswith("+}"):
            parameters[wanted[1:-2]] = "/".join(path[position:])
            if path[position:] == [""]:
                return None
        elif wanted.startswith("{"):
            parameters[wanted[1:-1]] = segment
        elif wanted != segment:
            return None
    return parameters

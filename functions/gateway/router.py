"""Routes: their paths, handlers, and required permissions. Each function has one list of routes."""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeVar

from holdfast.errors import HoldfastError, MethodNotAllowed, UnknownRoute

if TYPE_CHECKING:
    from holdfast.access import Action, Caller
    from holdfast.audit import Event
    from holdfast.names import StateName

    class _OfState(Protocol):
        """Something of a state."""

        @property
        def name(self) -> StateName: ...


class Anyone(Enum):
    """The needs of routes that do not require an action."""

    PUBLIC = auto()
    AWS_IDENTITY = auto()
    ANY_CALLER = auto()


PUBLIC: Final = Anyone.PUBLIC
"""No credentials."""
AWS_IDENTITY: Final = Anyone.AWS_IDENTITY
"""A signature with AWS credentials; the library checks the caller."""
ANY_CALLER: Final = Anyone.ANY_CALLER
"""Credentials that the authorizer accepted, with any role."""

_R = TypeVar("_R")


# Not a dataclass, because importing `dataclasses` takes a sixth of the health function's start.
class Route(NamedTuple, Generic[_R]):
    """A path and its verbs, with their handler.

    Attributes:
        path: a template. `{name}` matches one segment of the path, `{name+}` the rest of it.
        verbs: separated by spaces.
        handler: called with the request and the target's arguments.
        event: the audit event, unless the handler returns another; None if the function logs no event.
        needs: the least permission for a request, checked before the handler runs; the library checks again.
        query: the allowed parameters of the query, separated by spaces.
        wanted: what a refusal names instead of `needs`, if the handler does more for callers who may do more.
    """

    path: str
    verbs: str
    handler: Callable[..., _R]
    event: "Event | None"
    needs: "Action | Anyone"
    query: str = ""
    wanted: "Action | None" = None

    def check(self, caller: "Caller", name: "StateName | None") -> None:
        """Raise `NotAllowed` unless a grant covers the route's needs; without a name, for some state."""
        if isinstance(self.needs, Anyone):
            return
        if name is None:
            caller.require_somewhere(self.needs)
        elif not caller.may(self.needs, name):
            if self.wanted:
                caller.require(self.wanted, name)  # only names the refusal: `needs` decides
            caller.require(self.needs, name)


class Target(NamedTuple):
    """The decoded parameters of a path.

    Attributes:
        name: the state's name; None if the path has no name.
        arguments: further arguments for the handler, after the request.
    """

    name: "StateName | None" = None
    arguments: tuple[object, ...] = ()


Kind = Callable[..., Target]
"""A decoder of a path's parameters, called with their texts in the order of the path.

It raises `HoldfastError` for invalid texts.
"""


def by_name(parse: Callable[..., "StateName"]) -> Kind:
    """Return the kind of parameters that name a state. Handlers read the name from the request."""
    return lambda *texts: Target(parse(*texts))


def by_id(parse: Callable[[str], "_OfState"]) -> Kind:
    """Return the kind of a parameter that is an ID of something of a state. Handlers get the parsed ID."""

    def decode(given: str) -> Target:
        of_state = parse(given)
        return Target(of_state.name, (of_state,))

    return decode


def text(given: str) -> Target:
    """Decode a parameter that is any text. Handlers get it."""
    return Target(arguments=(given,))


Verbs = Mapping[str, Route[_R]]
"""The routes of a path, by verb."""


def pick(verbs: Verbs[_R], method: str) -> Route[_R]:
    """Return the route of a verb; raise `MethodNotAllowed` if the path does not have it."""
    if method not in verbs:
        raise MethodNotAllowed(method, tuple(verbs))
    return verbs[method]


def _refuse(path: str) -> HoldfastError:
    return UnknownRoute(f"There is no route {path}.")


_NO_KINDS: Final[Mapping[str, Kind]] = {}


class Router(Generic[_R]):
    """Find the route of a request.

    Args:
        kinds: what the parameters of a path are, by their names in the order of the path, separated by
            spaces; no other code decodes them. A path without parameters needs none.
        refuse: returns the error for an unknown path.
        prefix: the beginning of the paths of all routes.
        slash: whether a path without parameters may end with a slash.
    """

    def __init__(
        self,
        routes: Sequence[Route[_R]],
        kinds: Mapping[str, Kind] = _NO_KINDS,
        refuse: Callable[[str], HoldfastError] = _refuse,
        *,
        prefix: str = "",
        slash: bool = False,
    ) -> None:
        self.routes = [route._replace(path=prefix + route.path) for route in routes]
        self._refuse = refuse
        verbs: dict[str, dict[str, Route[_R]]] = {}
        for route in self.routes:
            verbs.setdefault(route.path, {}).update(dict.fromkeys(route.verbs.split(), route))
        slashes = {f"{path}/": of_path for path, of_path in verbs.items() if slash and "{" not in path}
        self._templates = [
            (path.split("/"), _kind(path, kinds), of_path) for path, of_path in {**verbs, **slashes}.items()
        ]

    def match(self, event: Mapping[str, Any]) -> tuple[Verbs[_R], Target | HoldfastError]:
        """Return the routes of a request's path, and its decoded target or the error of decoding it.

        Raises:
            HoldfastError: no route has this path.
        """
        beginning, greedy, _ = event["routeKey"].partition(" ")[2].partition("{")
        if not beginning:
            raise self._refuse(event["rawPath"])
        # A greedy parameter can be empty: AWS does not document whether the event then has it.
        (rest,) = (event.get("pathParameters") or {"": ""}).values() if greedy else ("",)
        path = beginning + rest
        segments = path.split("/")
        for template, kind, routes in self._templates:
            parameters = _parameters(template, segments)
            if parameters is not None:
                try:
                    return routes, kind(*parameters)
                except HoldfastError as error:
                    return routes, error
        raise self._refuse(path)


def _kind(path: str, kinds: Mapping[str, Kind]) -> Kind:
    names = [segment.strip("{+}") for segment in path.split("/") if segment.startswith("{")]
    return kinds[" ".join(names)] if names else Target


def _parameters(template: Sequence[str], path: Sequence[str]) -> list[str] | None:
    """Return the parameters of a path in its order; None if it does not match the template."""
    rest = template[-1].endswith("+}")
    if len(path) != len(template) and not (rest and len(path) > len(template)):
        return None
    parameters = []
    for position, (wanted, segment) in enumerate(zip(template, path, strict=False)):
        if wanted.endswith("+}"):
            parameters.append("/".join(path[position:]))
            if path[position:] == [""]:
                return None
        elif wanted.startswith("{"):
            parameters.append(segment)
        elif wanted != segment:
            return None
    return parameters

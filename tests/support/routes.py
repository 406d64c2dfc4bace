"""The routes of the functions behind the API, as their handlers list them."""

import re
import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.router import Route
from tests.support.environment import set_environment

FUNCTIONS: Final = Path(__file__).parents[2] / "functions"


@cache
def routes() -> Sequence[Route[Any]]:
    found: list[Route[Any]] = []
    with pytest.MonkeyPatch.context() as patch:
        set_environment(patch)
        for handler in sorted(FUNCTIONS.glob("*/handler.py")):
            folder = handler.parent.name
            imported = {name: module for name, module in sys.modules.items() if name.startswith(f"{folder}.")}
            for name in imported:
                del sys.modules[name]
            router = vars(import_module(f"{folder}.handler")).get("_ROUTER")
            found += router.routes if router else ()
            # The module has made-up settings, so it is not kept for others.
            for name in [name for name in sys.modules if name.startswith(f"{folder}.")]:
                del sys.modules[name]
            sys.modules.update(imported)
    return found


def as_described(path: str) -> str:
    """Return a path as OpenAPI writes it. OpenAPI has no pattern for "the rest of the path"."""
    return path.replace("+}", "}")


def names_a_state(route: Route[Any]) -> bool:
    """Return whether a path names a state, by its name or in an ID."""
    return not set(re.findall(r"{(\w+)", route.path)) <= {"organization", "path"}

"""Loads modules on first use: loading the AWS SDK takes longer than printing a help."""

import sys
from importlib.util import LazyLoader, find_spec, module_from_spec
from pkgutil import iter_modules
from types import ModuleType
from typing import Final

_WAITING: Final[list[ModuleType]] = []


def load_now() -> None:
    """Load the modules that wait for their first use; call it before threads use them.

    Python before 3.12 lets a second thread see a module that the first one is loading.
    """
    while _WAITING:
        _WAITING.pop().__doc__  # noqa: B018 any member loads a module


def load_when_used(package: str) -> None:
    """Make the modules of a package load when one of their members is first used.

    `from package import module` does not load the module, `from package.module import name` does.
    """
    parent = sys.modules[package]
    for found in iter_modules(parent.__path__):
        name = f"{package}.{found.name}"
        spec = find_spec(name)
        if spec is None or spec.loader is None:
            continue
        spec.loader = LazyLoader(spec.loader)
        sys.modules[name] = module = module_from_spec(spec)
        spec.loader.exec_module(module)
        setattr(parent, found.name, module)
        _WAITING.append(module)

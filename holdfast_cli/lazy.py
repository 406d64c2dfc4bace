"""Loads modules when they are first used: the AWS SDK takes longer to load than a help to print."""

import sys
from importlib.util import LazyLoader, find_spec, module_from_spec
from pkgutil import iter_modules


def load_when_used(package: str) -> None:
    """Ensure that a package's modules are loaded when a member of theirs is first used.

    `from package import module` uses none yet, `from package.module import name` does.
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

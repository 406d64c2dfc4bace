"""Load modules on first use: loading the AWS SDK takes longer than printing a help text."""

import sys
from importlib.util import LazyLoader, find_spec, module_from_spec
from pkgutil import iter_modules


def load_when_used(package: str) -> None:
    """Make a package load each of its modules when a member of the module is first used.

    `from package import module` does not load it; `from package.module import name` does.
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

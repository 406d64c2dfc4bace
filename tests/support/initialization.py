"""Initialises one function in a process of its own, and tells in JSON what that did.

    python -m tests.support.initialization draws FUNCTION
    python -m tests.support.initialization serve FUNCTION EVENT

`draws` tells what the import of the handler draws from sources of random numbers, and what it loads. `serve`
imports the handler, does what Lambda does between a snapshot and a request if the handler has asked for it,
and has it serve an event.
"""

import gc
import importlib
import json
import os
import ssl
import sys
import traceback
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

SLOW: Final = (
    "aws_lambda_powertools",
    "boto3",
    "s3transfer",
    "multiprocessing",
    "jwt",
)
"""Packages that take long to load, and that no function needs for its first request that people wait for."""

RESTORED_AFTER: Final = timedelta(days=1)
"""How long after the snapshot a copy is restored."""


def draws(function: str) -> dict[str, Any]:
    """Import a handler and return its random draws with their callers, generators, and slow packages.

    Numbers that C code draws for itself do not pass here. So the generators that have a seed are told, and
    the TLS contexts, for each of which OpenSSL draws keys.
    """
    drawn: list[tuple[str, str]] = []

    def noted(source: str, draw: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*given: Any, **more: Any) -> Any:
            callers = [frame.filename for frame in traceback.extract_stack()[:-1]]
            drawn.append((source, "/".join(Path(callers[-1]).parts[-2:])))
            return draw(*given, **more)

        return wrapped

    os.urandom = noted("os.urandom", os.urandom)
    # After that: they keep what they import from `os`.
    import random
    import uuid

    shared = vars(random)["_inst"]
    for module, names in (
        (random, [name for name, of in vars(random).items() if getattr(of, "__self__", None) is shared]),
        (uuid, ["uuid1", "uuid4", "getnode"]),
        (ssl, ["RAND_bytes", "RAND_add"]),
    ):
        for name in names:
            setattr(module, name, noted(f"{module.__name__}.{name}", getattr(module, name)))
    ssl.SSLContext.__new__ = noted("ssl.SSLContext", ssl.SSLContext.__new__)  # type: ignore[method-assign]

    importlib.import_module(f"{function}.handler")
    gc.unfreeze()  # what is frozen is not told
    found = [each for each in gc.get_objects() if isinstance(each, random.Random)]
    seeded = [each for each in found if not isinstance(each, random.SystemRandom)]
    return {
        "drawn": sorted(set(drawn)),
        "seeded": ["random" if each is shared else "?" for each in seeded],
        "loaded": [name for name in SLOW if name in sys.modules],
    }


def serve(function: str, event: str) -> dict[str, Any]:
    """Import a handler, restore it if it asked for that, serve an event, and return what that did."""
    import random

    from tests.support.events import Context

    added: list[int] = []
    add = ssl.RAND_add

    def noted(data: Any, entropy: float, /) -> None:
        added.append(len(data))
        add(data, entropy)

    ssl.RAND_add = noted
    handler = importlib.import_module(f"{function}.handler")
    numbers = []
    if hooks := sys.modules.get("snapshot_restore_py"):
        state = random.getstate()
        for _ in ("one copy", "another"):
            random.setstate(state)
            for restored in hooks.after_restore:
                restored()
            numbers.append(random.random())  # noqa: S311 what a library would draw
        # The clock by which the SDK decides whether to renew the credentials.
        signer = vars(vars(handler)["_function"].s3)["_request_signer"]
        vars(vars(signer)["_credentials"])["_time_fetcher"] = lambda: datetime.now(UTC) + RESTORED_AFTER
    loaded = set(sys.modules)
    response = handler.handle(json.loads(event), Context())
    return {
        "response": response,
        "numbers": numbers,
        "entropy": added,
        "jwt_loaded": "jwt" in loaded,
        "loaded_later": sorted(set(sys.modules) - loaded),
    }


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    print(json.dumps(draws(*rest) if what == "draws" else serve(*rest)))

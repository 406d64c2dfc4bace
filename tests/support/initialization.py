"""Initialises one function in a separate process, and prints the observed effects as JSON.

    python -m tests.support.initialization draws FUNCTION
    python -m tests.support.initialization serve FUNCTION EVENT

`draws` lists the random numbers that the import of the handler draws, and the packages that it loads. `serve`
imports the handler, calls its restore hooks if it has any, as Lambda does after a snapshot, and lets it serve
an event.
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
"""Packages that load slowly. No function needs them for a first request that people wait for."""

RESTORED_AFTER: Final = timedelta(days=1)
"""The time between the snapshot and the restore."""


def draws(function: str) -> dict[str, Any]:
    """Import a handler and return its random draws with their callers, generators, and slow packages.

    Numbers that C code draws itself are not seen here. So the result also lists the generators with a seed,
    and the TLS contexts, because OpenSSL draws keys for each of them.
    """
    drawn: list[tuple[str, str]] = []

    def noted(source: str, draw: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*given: Any, **more: Any) -> Any:
            callers = [frame.filename for frame in traceback.extract_stack()[:-1]]
            drawn.append((source, "/".join(Path(callers[-1]).parts[-2:])))
            return draw(*given, **more)

        return wrapped

    os.urandom = noted("os.urandom", os.urandom)
    # Imported after the replacement, because they keep the functions that they import from `os`.
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
    gc.unfreeze()  # `gc.get_objects` does not list frozen objects
    found = [each for each in gc.get_objects() if isinstance(each, random.Random)]
    seeded = [each for each in found if not isinstance(each, random.SystemRandom)]
    return {
        "drawn": sorted(set(drawn)),
        "seeded": ["random" if each is shared else "?" for each in seeded],
        "loaded": [name for name in SLOW if name in sys.modules],
    }


def serve(function: str, event: str) -> dict[str, Any]:
    """Import a handler, call its restore hooks if it has any, serve an event, and return the effects."""
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
        # With this clock the SDK decides whether to renew the credentials.
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

"""Initialises one function in a separate process, and prints the observed effects as JSON.

    python -m tests.support.initialization load FUNCTION
    python -m tests.support.initialization serve FUNCTION EVENT

`load` lists the slow packages that the import of the handler loads. `serve` imports the handler, and lets it
serve an event.
"""

import importlib
import json
import sys
from typing import Any, Final

SLOW: Final = (
    "aws_lambda_powertools",
    "boto3",
    "s3transfer",
    "multiprocessing",
    "jwt",
)
"""Packages that load slowly. No function needs them for a first request that people wait for."""


def load(function: str) -> dict[str, Any]:
    """Import a handler and return the slow packages that are loaded then."""
    importlib.import_module(f"{function}.handler")
    return {"loaded": [name for name in SLOW if name in sys.modules]}


def serve(function: str, event: str) -> dict[str, Any]:
    """Import a handler, serve an event, and return the response and whether the JWT library came before."""
    from tests.support.events import Context

    handler = importlib.import_module(f"{function}.handler")
    jwt_loaded = "jwt" in sys.modules
    return {"response": handler.handle(json.loads(event), Context()), "jwt_loaded": jwt_loaded}


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    print(json.dumps(load(*rest) if what == "load" else serve(*rest)))

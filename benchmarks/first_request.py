"""Be a cold function: load its handler, answer its first request, and print when it was ready and responded.

A program of its own, whose only packages are those of a bundle. It reads the function, the event and the
warm-up event before it, or null, from standard input.
"""

import importlib
import json
import sys
import time
import types


def main() -> None:
    """Print two times of the machine's monotonic clock, then the processor time until the response."""
    function, event, warm_up = json.load(sys.stdin)
    handler = importlib.import_module(f"{function}.handler")
    context = types.SimpleNamespace(get_remaining_time_in_millis=lambda: 25000)
    if warm_up:
        handler.handle(warm_up, context)
    ready = time.monotonic()
    answer = handler.handle(event, context)
    print(json.dumps([ready, time.monotonic(), time.process_time()]))
    if not (answer.get("isAuthorized") or answer.get("statusCode") == 200):
        sys.exit(f"the function's response is {answer}")


if __name__ == "__main__":
    main()

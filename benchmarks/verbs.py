"""S3 requests and milliseconds of each verb, through the deployed API."""

import json
from collections import defaultdict
from typing import Any, Final

from benchmarks.figures import Figure, Section
from benchmarks.run import Run
from benchmarks.stack import Client, Response

_NAME: Final = "benchmark/verbs"
_LOGGED: Final = {
    ("request.refused", 405): "nothing (405)",
    ("lock.acquired", 200): "acquire, free",
    ("request.refused", 423): "acquire, held",
    ("state.read", 200): "read",
    ("state.written", 200): "write",
    ("lock.released", 200): "release",
}
"""Event and status of a line of the log, to the verb."""


def measure(run: Run) -> Section:
    """Go through lock, write, read and unlock again and again."""
    client = Client(run.stack)
    _round(client, 0)  # starts the functions and fills the gateway's authorizer cache
    seen = len(run.stack.log(_NAME))
    rounds = run.rounds * 5
    seconds = defaultdict[str, list[float]](list)
    for number in range(1, rounds + 1):
        for verb, response in _round(client, number).items():
            seconds[verb].append(response.seconds)
    lines = defaultdict[str, list[dict[str, Any]]](list)
    for line in run.stack.log(_NAME)[seen:]:
        lines[_LOGGED[line["message"], line["status"]]].append(line)
    figures = [
        figure
        for verb in _LOGGED.values()
        for figure in (
            Figure.count(f"{verb}: S3", [line["s3_requests"] for line in lines[verb]]),
            Figure.of(f"{verb}: at the client", "ms", [1000 * took for took in seconds[verb]]),
            Figure.of(f"{verb}: in the function", "ms", [line["milliseconds"] for line in lines[verb]]),
        )
    ]
    return Section(
        "One request, through the deployed API",
        figures,
        ["The request for nothing is what the emulator adds to each; a plan sends 3 or 4, an apply 1 more."],
    )


def _round(client: Client, number: int) -> dict[str, Response]:
    lock = json.dumps({"ID": f"ours-{number}", "Operation": "benchmark", "Who": "us"}).encode()
    other = json.dumps({"ID": f"theirs-{number}", "Operation": "benchmark", "Who": "them"}).encode()
    state = json.dumps({"version": 4, "serial": number, "lineage": "benchmark", "outputs": {}}).encode()
    return {
        "nothing (405)": client.ask("GET", f"/locks/{_NAME}", expect=405),
        "acquire, free": client.ask("PUT", f"/locks/{_NAME}", lock),
        "acquire, held": client.ask("PUT", f"/locks/{_NAME}", other, expect=423),
        "write": client.ask("POST", f"/states/{_NAME}?ID=ours-{number}", state),
        "read": client.ask("GET", f"/states/{_NAME}"),
        "release": client.ask("DELETE", f"/locks/{_NAME}", lock),
    }

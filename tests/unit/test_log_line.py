"""The functions' own log line, compared with that of Powertools' `Logger`."""

import io
import itertools
import json
import logging
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from aws_lambda_powertools import Logger

from gateway import log as log_module
from gateway.log import JsonLine, log, numbered
from holdfast import audit

EXTRAS: dict[str, dict[str, Any]] = {
    "none": {},
    "those of a request": {
        audit.MARK_FIELD: audit.MARK,
        "principal": None,
        "marker_left": False,
        "bytes": 0,
        "reason": "",
        "scope": ("a/*", "b"),
        "stack": ["File 1", "File 2"],
    },
    "text of all kinds": {"who": 'ada@"laptop"\\\n\t\x00\x7f é 雪 😀 \u2028', "operation": "\udcff\ud83d"},
    "what JSON lacks": {"error": ValueError("no"), "held_by": {"role": audit.Event.STATE_READ}, "who": b"x"},
}


@pytest.fixture(autouse=True)
def service(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service of the test's own: Powertools' loggers share their settings by its name."""
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", uuid4().hex)


def powertools() -> Logger:
    """Powertools' logger, whose every line ours must equal."""
    return Logger(stream=io.StringIO(), json_serializer=partial(json.dumps, default=str))


@pytest.mark.parametrize(
    ("level", "created", "trace"),
    [
        (logging.INFO, 1.0, ""),
        (logging.WARNING, 1_767_225_599.9996, "Root=1-5759e988-bd862e3fe1be46a994272793"),
        (logging.ERROR, 1_782_864_000.0625, "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53;Sampled=1"),
    ],
)
@pytest.mark.parametrize("extra", EXTRAS.values(), ids=EXTRAS)
def test_a_line_is_that_of_powertools(
    monkeypatch: pytest.MonkeyPatch, level: int, created: float, trace: str, extra: dict[str, Any]
) -> None:
    monkeypatch.setenv("_X_AMZN_TRACE_ID", trace)
    record = log.makeRecord(log.name, level, "responses.py", 7, "state.read", (), None, "respond", extra)
    record.created, record.msecs = created, created % 1 * 1000

    assert JsonLine().format(record) == powertools().registered_formatter.format(record)


@pytest.mark.parametrize("level", ["info", "warning", "error"])
def test_a_line_is_written_once_with_the_place_of_the_call_as_powertools_does(
    monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    written, by_the_runtime = io.StringIO(), io.StringIO()
    monkeypatch.setattr(log.handlers[0], "stream", written)
    monkeypatch.setattr(logging.root, "handlers", [logging.StreamHandler(by_the_runtime)])
    theirs = powertools()

    for logger in (log, theirs):
        getattr(logger, level)("request.refused", extra={"status": 403})

    expected = theirs.handlers[0].stream.getvalue()  # type: ignore[attr-defined]
    told, wanted = json.loads(written.getvalue()), json.loads(expected)
    assert told | {"timestamp": ""} == wanted | {"timestamp": ""}
    assert by_the_runtime.getvalue() == ""


def test_audited_lines_are_numbered_from_1_if_the_team_has_an_archive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_module, "_numbers", itertools.count(1))
    lines = io.StringIO()
    logger = Logger(stream=lines)
    numbered(logger)
    logger.info("not numbered", extra=EXTRAS["those of a request"])
    monkeypatch.setenv("HOLDFAST_NUMBERED", "true")
    numbered(logger)
    for extra in (
        {},
        {audit.MARK_FIELD: audit.MARK},
        {audit.MARK_FIELD: None},
        {audit.MARK_FIELD: audit.MARK},
    ):
        logger.info("state.read", extra=extra)

    found = [json.loads(line).get("number") for line in lines.getvalue().splitlines()]
    assert found == [None, None, 1, None, 2]

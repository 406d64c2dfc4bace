"""A logger that writes the lines of Powertools' `Logger` without importing it, for a fast cold start."""

import itertools
import json
import logging
import os
import sys
import time
from typing import Any, Final

from holdfast import audit
from holdfast.policy import Policy

_OF_EVERY_RECORD: Final = frozenset(vars(logging.makeLogRecord({})))


class JsonLine(logging.Formatter):
    """Format a log record as a line of Powertools.

    A line has no field for an exception, because its text could contain a state's content.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the fields of Powertools and of `extra` as JSON, without those that are None."""
        when = time.localtime(record.created)
        # Lambda sets it for each request: `Root=1-…;Parent=…;Sampled=0`.
        trace = os.environ.get("_X_AMZN_TRACE_ID", "").partition(";")[0]
        line = {
            "level": record.levelname,
            "location": f"{record.funcName}:{record.lineno}",
            "message": record.getMessage(),
            "timestamp": time.strftime(f"%Y-%m-%d %H:%M:%S,{int(record.msecs):03}%z", when),
            "service": os.environ.get("POWERTOOLS_SERVICE_NAME"),
            **{name: value for name, value in vars(record).items() if name not in _OF_EVERY_RECORD},
            "xray_trace_id": trace.removeprefix("Root=") or None,
        }
        # In ASCII, because a lone surrogate cannot be written as UTF-8.
        return json.dumps({name: value for name, value in line.items() if value is not None}, default=str)


_numbers = itertools.count(1)


def number(record: logging.LogRecord) -> bool:
    """Number an audited line, so that a line that is missing in the audit trail is noticed.

    The numbers begin with 1 in each process.
    """
    if getattr(record, audit.MARK_FIELD, None) == audit.MARK:
        record.number = next(_numbers)
    return True


def numbered(logger: Any) -> None:
    """Number the audited lines of a logger, if the team has an archive."""
    if Policy.from_environment("numbered").numbered:
        logger.addFilter(number)


def _log() -> logging.Logger:
    made = logging.getLogger(__name__)
    made.setLevel((os.environ.get("POWERTOOLS_LOG_LEVEL") or "INFO").upper())
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonLine())
    made.addHandler(handler)
    numbered(made)
    # The root logger has a handler of Lambda's runtime, which would write each line again.
    made.propagate = False
    return made


log: Final = _log()
"""The function's log. `POWERTOOLS_LOG_LEVEL` sets the lowest level that is written."""

"""The ways to name a version on the command line: its ID, its serial or a time."""

import re
from argparse import ArgumentTypeError
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from holdfast import timestamp
from holdfast_cli.config import rules
from holdfast_cli.terminal import output

HELP: Final = """\
VERSION is the ID of a version, as `holdfast state history --long` shows it; or its
serial, such as @12; or a time, such as @2026-11-20T14:00, which means the version that
was current then; or @previous, the newest version before the current one, except
versions that were never acknowledged. A time without an offset is local. A date without
a time means 00:00."""

_SERIAL: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
_ID: Final = re.compile(r"[!-~]{1,1024}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to a version, as the user typed it and as it is sent to the API, where a time is in UTC."""

    typed: str
    sent: str

    @property
    def is_id(self) -> bool:
        """Return whether the reference is an exact ID, which need not be resolved."""
        return not self.sent.startswith("@")

    def __str__(self) -> str:
        return self.typed


def reference(value: str) -> Reference:
    """Parse a reference to a version. `ArgumentTypeError` if it is not an ID, a serial or a past time."""
    named = value.removeprefix("@")
    if value == named:
        if _SERIAL.fullmatch(value):
            raise ArgumentTypeError(f"write a serial with an @, as in @{value}")
        if not _ID.fullmatch(value):
            raise ArgumentTypeError(
                "the value is not a valid version: write an ID, a serial such as @12, or a time such as "
                "@2026-11-20"
            )
        return Reference(value, value)
    if value == "@previous" or _SERIAL.fullmatch(named):
        return Reference(value, value)
    if not rules.is_time(named):
        raise ArgumentTypeError(
            f"{value!r} is not a valid version: write a serial such as @12, a time such as @2026-11-20, "
            "@2026-11-20T14:00 or @2026-11-20T14:00+01:00, or @previous"
        )
    at = rules.local_time(named)
    if at > datetime.now(UTC) + timedelta(days=1):  # this machine's clock may be wrong by hours
        raise ArgumentTypeError(f"{value!r} is in the future: it means {output.moment(at)}")
    return Reference(value, f"@{timestamp.write(at)}")

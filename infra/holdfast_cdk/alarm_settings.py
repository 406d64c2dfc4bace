"""The table `alarms` of a team's settings."""

import re
from dataclasses import dataclass
from typing import Final

from holdfast_cdk.settings import setting, text, whole_number

TOPIC: Final = re.compile(
    r"arn:(?P<partition>aws(-[a-z]+)*):sns:(?P<region>[a-z]+(-[a-z]+)+-[0-9]+):(?P<account>[0-9]{12}):"
    r"[A-Za-z0-9_-]{1,256}"
)
"""The ARN of a topic. The name of a FIFO topic, to which CloudWatch does not publish, has a dot."""

_SECONDS: Final = {"m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmSettings:
    """The topic of the alarms, and the limits of two of them."""

    topic: str = setting(
        text(
            "the ARN of an SNS topic that is not FIFO, as in "
            '"arn:aws:sns:eu-central-1:123456789012:operations"',
            TOPIC.fullmatch,
        ),
        "This SNS topic gets the messages of the alarms. It must be in the account and region of the team.",
    )
    oldest_lock: str = setting(
        text(
            'minutes, hours or days, as in "30m", "1h" or "2d"', re.compile("[1-9][0-9]{0,3}[mhd]").fullmatch
        ),
        "With the setting `watch`, an hourly check raises an alarm if a lock is older than this. From this "
        "age on, a lock is also a [finding of `watch`](watching.md#watch). A freeze does not count as a "
        "lock.",
        default="1h",
    )
    slow: int = setting(
        whole_number(100, 25000),
        'An alarm is raised if the p99 duration of the function for `backend "http"` exceeds this many '
        "milliseconds in an hour with at least 1,000 requests.",
        default=3000,
    )

    @property
    def oldest_lock_seconds(self) -> int:
        return int(self.oldest_lock[:-1]) * _SECONDS[self.oldest_lock[-1]]

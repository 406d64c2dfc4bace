"""The settings about who else gets the events of the audit trail: a topic, and an archive."""

import re
from dataclasses import dataclass
from typing import Literal

from holdfast.audit import NOTIFIABLE, NOTIFIED
from holdfast.s3.retention import MAX_DAYS
from infra.settings import Texts, setting, text, whole_number, word, word_of

# SNS's rules (API reference of CreateTopic). A FIFO topic has a dot in its name.
_TOPIC = re.compile(r"arn:aws[a-z-]*:sns:(?P<region>[a-z0-9-]+):(?P<account>[0-9]{12}):[A-Za-z0-9_-]{1,256}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Notify:
    """The topic that is notified of events of the audit trail."""

    topic: str = setting(
        text(
            'the ARN of a standard topic, as in "arn:aws:sns:eu-central-1:123456789012:holdfast"',
            _TOPIC.fullmatch,
        ),
        "The SNS topic, in the same account and region.",
    )
    events: tuple[str, ...] = setting(
        Texts(
            '["lock.force_unlocked"]',
            word_of('the name of an event, as in "state.written"', lambda: tuple(map(str, NOTIFIABLE))),
            len(NOTIFIABLE),
        ),
        "The [events](audit.md#events), but not `sign_in.refused` and `sign_in.failed`.",
        unset="[these](watching.md#notifications)",
        default=tuple(map(str, NOTIFIED)),
    )

    def misplaced(self, account: str | None, region: str | None) -> str | None:
        """Return what is wrong if the topic is in another known account or region than the team."""
        found = _TOPIC.fullmatch(self.topic)
        for name, own in (("account", account), ("region", region)):
            if found and own and own != found[name]:
                return (
                    f"notify.topic is in the {name} {found[name]}, and the team in {own}; write the ARN of a "
                    "topic in the team's account and region"
                )
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditArchive:
    """For how long S3 Object Lock protects the audit trail's archive."""

    days: int = setting(whole_number(1, MAX_DAYS), "Each event is kept for this many days.")
    mode: Literal["governance", "compliance"] = setting(
        word("governance", "compliance"),
        "With `compliance` nobody, not even root, can delete an event sooner.",
        default="compliance",
    )

"""The settings about who else gets the events of the audit trail: a topic, and an archive."""

from dataclasses import dataclass

from holdfast.audit import NOTIFIABLE, NOTIFIED
from holdfast.s3.retention import MAX_DAYS
from holdfast_cdk.alarm_settings import TOPIC
from holdfast_cdk.settings import Texts, setting, text, whole_number, word_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Notify:
    """The topic that is notified of events of the audit trail."""

    topic: str = setting(
        text(
            'the ARN of a standard topic, as in "arn:aws:sns:eu-central-1:123456789012:holdfast"',
            TOPIC.fullmatch,
        ),
        "This topic gets the messages. It must be in the account and region of the team.",
    )
    events: tuple[str, ...] = setting(
        Texts(
            '["lock.force_unlocked"]',
            word_of('the name of an event, as in "state.written"', lambda: tuple(map(str, NOTIFIABLE))),
            len(NOTIFIABLE),
        ),
        "Holdfast sends messages about these events. All [events](audit-events.md#events) are allowed, "
        "except `sign_in.refused` and `sign_in.failed`.",
        unset="[the default events](watching.md#notifications)",
        default=tuple(map(str, NOTIFIED)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditArchive:
    """How long S3 Object Lock protects each event in the archive."""

    days: int = setting(
        whole_number(1, MAX_DAYS),
        "Object Lock protects each event for this many days after Holdfast wrote it to the archive. Then S3 "
        "removes the event.",
    )

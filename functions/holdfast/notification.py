"""Build the messages that go to a team's SNS topic, and publish them.

Messages end in mails and chats. A subject has fixed words only. A body shows every text as JSON, shortened
and without characters that make a mention, a link or markup.
"""

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import botocore.session
from botocore.config import Config
from botocore.exceptions import ClientError

from holdfast import audit, names
from holdfast.errors import InvalidName

LONGEST: Final = 200
"""The most characters of a text that a message shows."""
SECONDS: Final = 2.0
"""How long a request may take, and for how long requests begin."""

_EVENT: Final = re.compile(r"[a-z_]{1,25}\.[a-z_]{1,25}", re.ASCII)
_ESCAPED: Final = re.compile(r"[<>&@`\[\]]")


@dataclass(frozen=True, slots=True)
class Message:
    """A message; subscribers can filter by `event`, which is also an attribute of the message."""

    event: str
    subject: str
    body: str


class SnsClient(Protocol):
    """The request to SNS that this module sends."""

    def publish(self, **request: Any) -> object: ...


def message(team: str, event: str, fields: Mapping[str, object], more: str) -> Message:
    """Return the message about an event.

    Args:
        event: a name such as `state.deleted`.
        fields: the event's fields; their names are fixed words, their values may be anybody's.
        more: the command that shows more; without anybody's text, because people paste it.
    """
    if not _EVENT.fullmatch(event):
        raise ValueError("the name of an event has letters, one '.' and '_'")
    subject = f"Holdfast: {event} in team {team}"
    lines = (f"{name}: {quoted(value)}" for name, value in fields.items())
    return Message(event, subject, "\n".join((subject, "", *lines, "", f"More: {more}")))


def quoted(value: object) -> str:
    r"""Return a value as JSON on one line of ASCII that mentions nobody, links nowhere and has no markup.

    >>> print(quoted("see https://example.com <!channel>"))
    "see https:/\/example.com \u003c!channel\u003e"
    """
    if not isinstance(value, int | float):
        text = str(value)
        value = f"{text[:LONGEST]}..." if len(text) > LONGEST else text
    escaped = _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value))
    return re.sub("(?<=/)/", r"\/", escaped)


def of_event(team: str, event: Mapping[str, object]) -> Message:
    """Return the message about an event of the audit trail, with all fields of the event."""
    name, fields = str(event["event"]), {field: value for field, value in event.items() if field != "event"}
    try:
        which = f"--state {names.parse(str(event.get('state', '')))}"
    except InvalidName:
        which = f"--event {name}"
    return message(team, name, fields, f"holdfast audit --team {team} {which}")


def connect() -> Any:
    """Return a client that gives up soon: nobody may wait for a notification."""
    config = Config(
        connect_timeout=SECONDS / 2,
        read_timeout=SECONDS / 2,
        retries={"mode": "standard", "total_max_attempts": 1},
    )
    client: Any = botocore.session.get_session().create_client("sns", config=config)
    return client


def publish(sns: SnsClient, topic: str, messages: Sequence[Message]) -> dict[str, Any]:
    """Publish messages, and never raise: what was written before must not be written again.

    Returns:
        The number of messages that SNS did not accept and a code, as fields of a log line; else nothing.
    """
    failed, code, ends = 0, "", time.monotonic() + SECONDS
    for number, one in enumerate(messages):
        if time.monotonic() > ends:
            failed, code = failed + len(messages) - number, code or "TooMany"
            break
        try:
            sns.publish(
                TopicArn=topic,
                Subject=one.subject,
                Message=one.body,
                MessageAttributes={"event": {"DataType": "String", "StringValue": one.event}},
            )
        except ClientError as error:
            failed, code = failed + 1, error.response["Error"]["Code"]
        except Exception as error:  # noqa: BLE001 SNS did not respond, and would not for the others
            failed, code = failed + len(messages) - number, audit.failure(error)
            break
    return {"messages": failed, "error": code} if failed else {}

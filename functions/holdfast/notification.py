"""Build the messages that go to a team's SNS topic, and publish them.

Messages end in mails and chats. A subject has fixed words only. A body shows every text as JSON, shortened
and without characters that make a mention, a link or markup. State names stay readable, and one such as
`example.com/x` may look like a link; so may the command that has it.
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
from holdfast.names import StateName

LONGEST: Final = 200
"""The most characters of a text that a message shows."""
SECONDS: Final = 2.0
"""How long a request may take."""
IN_ALL: Final = 30.0
"""For how long requests begin, if the function has so long: the next delivery must not wait for more."""
MOST: Final = 10
"""The most messages of a kind within an hour. Further ones are counted, and a message has the number."""
_RESERVE: Final = SECONDS + 1
"""Seconds of the function for the last request and the line of its log."""

_EVENT: Final = re.compile(r"[a-z_]{1,25}\.[a-z_]{1,25}", re.ASCII)
_ESCAPED: Final = re.compile(r"[<>&@`\[\]]")
_TYPED: Final = re.compile(r"[*_~]|(?<=\w)\.(?=\w)")
"""Characters that make markup, or a link of a bare domain, but are also in state names, times and IDs."""
_OURS: Final = frozenset({"id", "time", "function", "version_id", "source_ip"})
"""The fields whose values nobody types."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message; subscribers can filter by `event`, which is also an attribute of the message."""

    event: str
    subject: str
    body: str


class SnsClient(Protocol):
    """The request to SNS that this module sends."""

    def publish(self, **request: Any) -> object: ...


def message(team: str, event: str, fields: Mapping[str, object], more: str, note: str = "") -> Message:
    """Return the message about an event.

    Args:
        event: a name such as `state.deleted`.
        fields: the event's fields; their names are fixed words, their values may be anybody's.
        more: the command that shows more; without anybody's text, because people paste it.
        note: a sentence of ours about other messages, or empty.
    """
    if not _EVENT.fullmatch(event):
        raise ValueError("the name of an event must be lower-case words with one '.' between them")
    subject = f"Holdfast: {event} in team {team}"
    lines = (f"{name}: {quoted(value, typed=_is_typed(name, value))}" for name, value in fields.items())
    noted = (note, "") if note else ()
    return Message(event, subject, "\n".join((subject, "", *lines, "", *noted, f"More: {more}")))


def quoted(value: object, *, typed: bool = True) -> str:
    r"""Return a value as JSON on one line of ASCII that mentions nobody, links nowhere and has no markup.

    Args:
        typed: False for a value of a form that is known, which stays readable.

    >>> print(quoted("see https://example.com <!channel>. Bye."))
    "see https:/\/example\u002ecom \u003c!channel\u003e. Bye."
    """
    if isinstance(value, int | float):
        return json.dumps(value)
    text = str(value)
    shown = json.dumps(f"{text[:LONGEST]}..." if len(text) > LONGEST else text)
    for pattern in (_ESCAPED, _TYPED) if typed else (_ESCAPED,):
        shown = pattern.sub(lambda match: f"\\u{ord(match[0]):04x}", shown)
    return re.sub("(?<=/)/", r"\/", shown)


def _is_typed(field: str, value: object) -> bool:
    return field not in _OURS and not (field == "state" and _state(value))


def _state(value: object) -> StateName | None:
    try:
        return names.parse(str(value))
    except InvalidName:
        return None


def of_event(team: str, event: Mapping[str, object], *, others: int = 0, is_full: bool = False) -> Message:
    """Return the message about an event of the audit trail, with all fields of the event.

    Args:
        others: how many events of the same kind and principal got no message since the message before.
        is_full: whether most of further ones get no message in this hour.
    """
    name, fields = str(event["event"]), {field: value for field, value in event.items() if field != "event"}
    state = _state(event.get("state", ""))
    notes = []
    if others:
        notes.append(
            "Since the previous message, further events of this kind and principal got no message of their "
            f"own. Their number is {others}."
        )
    if is_full:
        notes.append(
            "In this hour, most further events of this kind get no message of their own. A later message "
            "says how many there were."
        )
    which = state if state and not notes else f"--event {name}"
    return message(team, name, fields, f"holdfast audit --team {team} {which}", " ".join(notes))


def connect() -> Any:
    """Return a client that gives up soon: nobody may wait for a notification."""
    config = Config(
        connect_timeout=SECONDS / 2,
        read_timeout=SECONDS / 2,
        retries={"mode": "standard", "total_max_attempts": 1},
    )
    client: Any = botocore.session.get_session().create_client("sns", config=config)
    return client


def publish(sns: SnsClient, topic: str, messages: Sequence[Message], milliseconds: int) -> dict[str, Any]:
    """Publish messages, and never raise: what was written before must not be written again.

    The first request without a response is the last, so an SNS that is down costs one request's time.

    Args:
        milliseconds: the time that the function has left.

    Returns:
        The number of messages that SNS did not accept and a code, as fields of a log line; else nothing.
    """
    failed, code = 0, ""
    ends = time.monotonic() + min(IN_ALL, milliseconds / 1000 - _RESERVE)
    for number, outgoing in enumerate(messages):
        if time.monotonic() > ends:
            failed, code = failed + len(messages) - number, code or "TooMany"
            break
        try:
            sns.publish(
                TopicArn=topic,
                Subject=outgoing.subject,
                Message=outgoing.body,
                MessageAttributes={"event": {"DataType": "String", "StringValue": outgoing.event}},
            )
        except ClientError as error:
            failed, code = failed + 1, error.response["Error"]["Code"]
        except Exception as error:  # noqa: BLE001 SNS did not respond, and would not for the others
            failed, code = failed + len(messages) - number, audit.failure(error)
            break
    return {"messages": failed, "error": code} if failed else {}

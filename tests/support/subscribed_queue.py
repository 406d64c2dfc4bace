"""A queue of the local AWS that subscribes to a topic."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from local_aws.server import LocalAws
from tests.support.deployed import client, policy


class SubscribedQueue:
    """A queue, with every message that it got so far."""

    def __init__(self, sqs: Any, url: str) -> None:
        self.messages: list[dict[str, Any]] = []
        self._sqs, self._url = sqs, url

    def receive(self, *, seconds: int = 0) -> list[dict[str, Any]]:
        """Return the new messages, and wait for the first one for up to this many seconds."""
        new: list[dict[str, Any]] = []
        wait = {"MaxNumberOfMessages": 10, "WaitTimeSeconds": seconds}
        while got := self._sqs.receive_message(QueueUrl=self._url, **wait).get("Messages"):
            for one in got:
                new.append(json.loads(one["Body"]))
                self._sqs.delete_message(QueueUrl=self._url, ReceiptHandle=one["ReceiptHandle"])
            wait["WaitTimeSeconds"] = 0
        self.messages += new
        return new


@contextmanager
def subscribed(aws: LocalAws, topic: str, name: str) -> Iterator[SubscribedQueue]:
    """Subscribe a new queue to a topic for as long as the context lasts."""
    sqs, sns = client(aws, "sqs"), client(aws, "sns")
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    may_send = {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": arn,
        "Condition": {"ArnEquals": {"aws:SourceArn": topic}},
    }
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy(may_send)})
    subscription = sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)["SubscriptionArn"]
    yield SubscribedQueue(sqs, url)
    sns.unsubscribe(SubscriptionArn=subscription)

"""The local AWS hands the lines of a log over to the function of its subscription, several at once."""

import base64
import gzip
import json
import time
from pathlib import Path
from typing import Any

from local_aws.server import ACCOUNT, LocalAws
from tests.support.deployed import client, zipped
from tests.support.free_port import free_port

CODE = "def handle(event, context):\n    print('got ' + event['awslogs']['data'])\n"


def delivered(logs: Any) -> list[list[str]]:
    """The lines of each delivery that the function has logged."""
    lines = [event["message"] for event in logs.filter_log_events(logGroupName="/function")["events"]]
    packed = [line.removeprefix("got ") for line in lines if line.startswith("got ")]
    documents = [json.loads(gzip.decompress(base64.b64decode(one))) for one in packed]
    assert {document["logGroup"] for document in documents} <= {"/source"}
    return [[event["message"] for event in document["logEvents"]] for document in documents]


def test_lines_of_the_same_moment_come_together_and_none_is_lost(tmp_path: Path) -> None:
    with LocalAws(free_port(), tmp_path / "aws") as aws:
        logs = client(aws, "logs")
        for group in ("/source", "/function"):
            logs.create_log_group(logGroupName=group)
        function = client(aws, "lambda").create_function(
            FunctionName="function",
            Runtime="python3.12",
            Role=f"arn:aws:iam::{ACCOUNT}:role/none",
            Handler="handler.handle",
            Code={"ZipFile": zipped("handler.py", CODE)},
            LoggingConfig={"LogGroup": "/function"},
        )
        logs.put_subscription_filter(
            logGroupName="/source",
            filterName="marked",
            filterPattern='"a.mark"',
            destinationArn=function["FunctionArn"],
        )
        for number in range(10):
            stream = f"stream-{number}"
            logs.create_log_stream(logGroupName="/source", logStreamName=stream)
            lines = [
                {"timestamp": int(time.time() * 1000), "message": f"{number} {mark}"}
                for mark in ("", "a.mark")
            ]
            logs.put_log_events(logGroupName="/source", logStreamName=stream, logEvents=lines)

        wanted = [f"{number} a.mark" for number in range(10)]
        ends = time.monotonic() + 30
        while len(found := [line for lines in delivered(logs) for line in lines]) < 10:
            assert time.monotonic() < ends, found
            time.sleep(0.1)

        assert sorted(found) == wanted
        assert len(delivered(logs)) < 10

"""Run MiniStack in this process, on one address only and as the only server of its folder.

MiniStack's own command serves, with its application changed: MiniStack would also respond to requests of web
pages in a browser on this machine, so a gate refuses them. This file runs on MiniStack's interpreter and
imports nothing but the standard library and, while it serves, MiniStack.

Arguments: the pid file; `tied` or `free`; the file that records the functions' requests, or `-`. Environment
variables have MiniStack's settings.
"""

import asyncio.constants
import contextlib
import fcntl
import importlib
import json
import os
import queue
import re
import signal
import sys
import threading
import time
import urllib.parse
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_App = Callable[[_Message, _Receive, _Send], Awaitable[None]]

_OWN_HOST = re.compile(rb"(127\.0\.0\.1|localhost)(:\d+)?", re.IGNORECASE)
_CONSOLE = re.compile(r"/_aws/execute-api/[^/]+/\$default/console(/([a-z-]+\.html)?)?")
_POLICY = b"content-security-policy"
_CONTROL = "/_ministack/"
_HEALTH = "/_ministack/health"

_SIGNED_FOR = re.compile(r"/([^/, ]+)/aws4_request")
# Prefixes of the headers whose presence can change the permissions that AWS requires …
_TELLING = ("if-", "x-amz-")
# … and headers with a value that a bucket policy can compare, or that names the operation. The values of
# others may be content or secrets.
_COMPARED = frozenset(
    {
        "if-none-match",
        "x-amz-object-lock-mode",
        "x-amz-object-lock-retain-until-date",
        "x-amz-server-side-encryption",
        "x-amz-server-side-encryption-aws-kms-key-id",
        "x-amz-target",
    }
)

_COLLECTING = 0.5  # seconds

_LOCK_ATTEMPTS = 40
_LOCK_PAUSE = 0.05
_TIME_TO_CLOSE = 0.5


def _hold(pid_file: str) -> None:
    """Lock the pid file for as long as this process lives, and write its pid there.

    After a crash another process may have the pid; the lock ends with the process that acquired it.
    """
    file = os.open(pid_file, os.O_RDWR | os.O_CREAT, 0o600)
    for _ in range(_LOCK_ATTEMPTS):  # `find_running` of another process locks it for a moment
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            time.sleep(_LOCK_PAUSE)
    else:
        sys.exit(f"another server has locked {pid_file}")
    os.ftruncate(file, 0)
    os.write(file, json.dumps({"pid": os.getpid(), "port": int(os.environ["GATEWAY_PORT"])}).encode())


def _end_with_parent() -> None:
    """Kill this server when its standard input ends, because the process that started it has ended."""

    def watch() -> None:
        while os.read(0, 1):
            pass
        os.killpg(0, signal.SIGKILL)  # with the workers of the functions

    threading.Thread(target=watch, daemon=True).start()


def _refusal(scope: _Message) -> str | None:
    """Return why a request is refused; None if the request is allowed."""
    path, sent = scope["path"], dict(scope["headers"])
    host = sent.get(b"host", b"")
    # Browsers send `origin`; no SDK, CLI or Terraform does. The console's own requests have its own origin.
    if sent.get(b"origin", own := scope["scheme"].encode() + b"://" + host) != own:
        return "other web pages may not use the local AWS"
    # For an image or a link browsers send only this one.
    of_site = sent.get(b"sec-fetch-site", b"none")
    if of_site not in (b"none", b"same-origin") and not _opens_console(scope["method"], path, sent):
        return "other web pages may not use the local AWS"
    # A page whose host name resolves to this address has the same origin, but sends its own host name.
    if not _OWN_HOST.fullmatch(host):
        return "the local AWS accepts only the host names 127.0.0.1 and localhost"
    if path.startswith(_CONTROL) and path != _HEALTH:
        return f"below {_CONTROL}, only {_HEALTH} may be requested"
    return None


def _opens_console(method: str, path: str, sent: Mapping[bytes, bytes]) -> bool:
    """Return whether a browser opens the console in a tab, as after a click on another page's link.

    The other page cannot read the response, and nobody can frame the console.
    """
    whole_tab = sent.get(b"sec-fetch-mode"), sent.get(b"sec-fetch-dest")
    return method == "GET" and whole_tab == (b"navigate", b"document") and bool(_CONSOLE.fullmatch(path))


def _gated(application: _App) -> _App:
    """Return the application behind a gate, which responds to HTTP requests of other web pages with 403.

    All APIs and buckets have one origin. So a page in a bucket gets an origin of its own (`sandbox`), with
    which it can neither read the console's credentials nor send a request.
    """

    async def gate(scope: _Message, receive: _Receive, send: _Send) -> None:
        async def send_sandboxed(message: _Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ()))
                if all(name.lower() != _POLICY for name, _ in headers):
                    message = {**message, "headers": [*headers, (_POLICY, b"sandbox")]}
            await send(message)

        why = _refusal(scope) if scope["type"] == "http" else None
        if why is None:
            await application(scope, receive, send_sandboxed)
            return
        body = f"Refused: {why}.\n".encode()
        headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 403, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return gate


def _function_call(scope: _Message) -> dict[str, Any] | None:
    """Return the record of a request that a function sends as its role; None for any other request."""
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    query = urllib.parse.parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    # MiniStack's own code finds the caller, so that no request of a function is left out.
    router = importlib.import_module("ministack.core.router")
    evaluator = importlib.import_module("ministack.core.iam_evaluator")
    key = router.extract_access_key_id(headers, query)
    principal = (evaluator.resolve_caller_identity(key) or {}).get("userArn", "")
    if ":assumed-role/" not in principal:
        return None
    # A presigned request has its credential in the query; with the old signature it names no service.
    signed_for = _SIGNED_FOR.search(headers.get("authorization", "") + query.get("X-Amz-Credential", [""])[0])
    return {
        "time": time.time(),
        "principal": principal,
        "service": signed_for[1] if signed_for else "s3",
        "method": scope["method"],
        "path": scope["path"],
        "query": sorted(query),
        "headers": {
            name: headers[name] if name in _COMPARED else None
            for name in sorted(headers)
            if name.startswith(_TELLING)
        },
    }


def _recorded(application: _App, calls: str) -> _App:
    """Return the application, which now writes a line of JSON to `calls` for every request of a function."""
    file = os.open(calls, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    async def record(scope: _Message, receive: _Receive, send: _Send) -> None:
        call = _function_call(scope) if scope["type"] == "http" else None

        async def note(message: _Message) -> None:
            if call is not None and message["type"] == "http.response.start":
                os.write(file, json.dumps({**call, "status": message["status"]}).encode() + b"\n")
            await send(message)

        await application(scope, receive, note)

    return record


def _name_log_groups_as_aws() -> None:
    """Make MiniStack match a log group in IAM policies as AWS does, with `:*` at the end of the ARN.

    MiniStack expects the ARN without `:*`. AWS expects an ARN without `:*` only for a log group's tags.
    """
    actions = importlib.import_module("ministack.core.iam_actions")
    found = actions.extract_resource_arn

    def extract_resource_arn(*arguments: Any, **named: Any) -> Any:
        arn = found(*arguments, **named)
        return f"{arn}:*" if re.fullmatch("arn:aws:logs:[^:]*:[^:]*:log-group:[^:]+", str(arn)) else arn

    vars(actions).update(extract_resource_arn=extract_resource_arn)


def _resolve_conditions_as_aws() -> None:
    """Make MiniStack compare `aws:PrincipalArn` with the ARN of the caller's role, as AWS does.

    MiniStack compares the ARN of the role's session. It does not know `cloudwatch:namespace`, which is in the
    body of a request: every request has the namespace of Holdfast here.
    """
    evaluator = importlib.import_module("ministack.core.iam_evaluator")
    resolve = vars(evaluator)["_resolve_condition_key"]

    def resolve_condition_key(key: str, context: Any) -> Any:
        if key.lower() == "cloudwatch:namespace":
            return "Holdfast"
        found = resolve(key, context)
        if key.lower() != "aws:principalarn":
            return found
        return re.sub(r":sts:(.*):assumed-role/(.+)/[^/]+$", r":iam:\1:role/\2", str(found))

    vars(evaluator).update(_resolve_condition_key=resolve_condition_key)


def _match_empty_rests_as_aws() -> None:
    """Make MiniStack take `/console/` for the route `/console/{path+}`, as people report of AWS."""
    gateway = importlib.import_module("ministack.services.apigateway")
    extract = vars(gateway)["_extract_path_params"]

    def extract_path_params(route_path: str, request_path: str) -> Any:
        beginning, _, parameter = route_path.partition("{")
        if request_path == beginning and parameter.endswith("+}"):
            return {parameter.removesuffix("+}"): ""}
        return extract(route_path, request_path)

    vars(gateway).update(_extract_path_params=extract_path_params)


def _hand_log_lines_over_together() -> None:
    """Collect log lines for half a second, and pass them to a subscription's function in one event.

    CloudWatch does so for each log stream. Here an event has the lines of all streams, under the name of the
    first. MiniStack runs the function for every single line, and starts a process for each run that overlaps
    another run: on a busy machine these processes slow down the other functions.
    """
    logs = importlib.import_module("ministack.services.cloudwatch_logs")
    hand_over = vars(logs)["_fanout_to_subscription_filters"]
    waiting: queue.SimpleQueue[tuple[str, str, list[Any]]] = queue.SimpleQueue()

    def collect() -> None:
        while True:
            found = [waiting.get()]
            time.sleep(_COLLECTING)
            with contextlib.suppress(queue.Empty):
                while True:
                    found.append(waiting.get_nowait())
            groups: dict[str, tuple[str, list[Any]]] = {}
            for group, stream, lines in found:
                groups.setdefault(group, (stream, []))[1].extend(lines)
            for group, (stream, lines) in groups.items():
                hand_over(group, stream, lines)

    def put(group: str, stream: str, lines: list[Any]) -> None:
        waiting.put((group, stream, lines))

    vars(logs).update(_fanout_to_subscription_filters=put)
    threading.Thread(target=collect, daemon=True).start()


def main() -> None:
    """Serve until SIGTERM."""
    pid_file, lifetime, calls = sys.argv[1:]
    _hold(pid_file)
    if lifetime == "tied":
        _end_with_parent()
    # Idle clients never answer the end of a TLS connection: with asyncio's 30 s no stop would be graceful.
    vars(asyncio.constants).update(SSL_SHUTDOWN_TIMEOUT=_TIME_TO_CLOSE)
    _name_log_groups_as_aws()
    _resolve_conditions_as_aws()
    _match_empty_rests_as_aws()
    _hand_log_lines_over_together()
    module = importlib.import_module("ministack.app")
    vars(module).update(
        app=_gated(module.app if calls == "-" else _recorded(module.app, calls)),
        _port_is_bindable=lambda *_: False,  # with TLS it would also listen on port 443
    )
    del sys.argv[1:]
    module.main()


if __name__ == "__main__":
    main()

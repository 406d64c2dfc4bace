"""Look at the team's bucket and API, and write metrics. It only translates; `holdfast.watching` decides.

If the bucket cannot be read, the function fails after the probe's metric is written. Lambda then invokes it
again, and its errors are a metric of AWS.
"""

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import botocore.session
from botocore.config import Config

from gateway import function
from gateway.log import log
from holdfast import notification, watching
from holdfast.errors import HoldfastError
from holdfast.policy import Deployment, Policy
from holdfast.s3.budget import Budget
from holdfast.s3.store import Store
from holdfast.watching import Metric
from watch import probe

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

_POLICY: Final = Policy.from_environment("has_networks", "old_lock")
_DEPLOYMENT: Final = Deployment.from_environment("team", "probed_api", "notify_topic")
_TEAM: Final = _DEPLOYMENT.team
_TOPIC: Final = _DEPLOYMENT.notify_topic
_OLD: Final = watching.OLD if _POLICY.old_lock is None else _POLICY.old_lock
_STATUS: Final = f"holdfast watch status --team {_TEAM}"
"""The command that shows every finding."""
_RESERVE: Final = 15.0
"""Seconds at the end for metrics and messages, and for the last request to S3."""

_function = function.start()


def _connect() -> Any:
    config = Config(connect_timeout=2, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 3})
    return botocore.session.get_session().create_client("cloudwatch", config=config)


_cloudwatch = _connect()
_sns = notification.connect() if _TOPIC else None


def handle(event: dict[str, Any], context: "LambdaContext") -> dict[str, Any]:  # noqa: ARG001 Lambda's signature
    """Look once, and return what the log says, for people who invoke the function.

    Raises:
        HoldfastError: the bucket cannot be read.
    """
    ends = time.monotonic() + context.get_remaining_time_in_millis() / 1000 - _RESERVE
    store = _function.store(Budget(ends))
    probed = _probe(store)
    failed = None if probed == probe.OUTSIDE else probed
    if failed is not None:
        _put({Metric.PROBE_FAILED: float(failed != "")})
    now = datetime.now(UTC)
    seen = watching.look(store, now)
    findings = watching.findings(seen, _TEAM, now, old=_OLD, failed=failed or "")
    attention = watching.attention(findings)
    _put({Metric.OLDEST_LOCK: seen.oldest_lock, Metric.ATTENTION: attention})
    due = [
        notification.message(_TEAM, finding.kind, finding.fields, finding.do)
        if not others
        else notification.message(
            _TEAM,
            finding.kind,
            finding.fields,
            _STATUS,
            f"Other problems of this kind got no message of their own. Their number is {others}.",
        )
        for finding, others in watching.due(findings, now)
    ]
    left = context.get_remaining_time_in_millis()
    unsent = notification.publish(_sns, _TOPIC, due, left) if _sns and _TOPIC else {}
    looked = {
        "oldest_lock": seen.oldest_lock,
        "attention": attention,
        "frozen": seen.frozen,
        "unread": seen.unread,
        "findings": [finding.kind for finding in findings],
        "probe": probed,
        "s3_requests": len(store.budget.requests),
    }
    log.info("watch.looked", extra=looked)
    if unsent:
        log.error("notify.failed", extra=unsent)
    return looked


def _probe(store: Store) -> str | None:
    """Return why the probe failed or was not made, empty if it passed, and None if none is enabled."""
    try:
        enabled = watching.read_secret(store)
    except (HoldfastError, ValueError) as error:
        return f"the probe's credentials cannot be read ({type(error).__name__})"
    return (
        None if enabled is None else probe.run(_DEPLOYMENT.probed_api, enabled, outside=_POLICY.has_networks)
    )


def _put(values: dict[Metric, float]) -> None:
    _cloudwatch.put_metric_data(**watching.metrics(_TEAM, values))

"""Names of the metrics that the watch function writes and that alarms read."""

from typing import Final

NAMESPACE: Final = "Holdfast"
DIMENSION: Final = "Team"

OLDEST_LOCK: Final = "OldestLockSeconds"
ATTENTION: Final = "Attention"
PROBE_FAILED: Final = "ProbeFailed"

"""What the function `watch` writes to CloudWatch, by name."""

from typing import Final

NAMESPACE: Final = "Holdfast"
DIMENSION: Final = "Team"
"""The dimension of each metric; its value is the team's name."""
OLDEST_LOCK: Final = "OldestLockSeconds"
ATTENTION: Final = "Attention"
PROBE_FAILED: Final = "ProbeFailed"

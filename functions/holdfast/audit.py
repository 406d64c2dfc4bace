"""What tells an event of the audit trail from the other lines of a function's log."""

from typing import Final

FIELD: Final = "trail"
"""The field of a log line that has the mark."""
MARK: Final = "holdfast.audit"
"""The mark. The subscription filters of the functions' logs look for it, as a phrase."""

"""The requests of each verb to S3, in order: a test counts them, and `cost.md` says what they cost."""

from typing import Final

ACQUIRE: Final = ("PUT",)
READ: Final = ("GET",)
WRITE: Final = ("GET", "GET", "PUT", "GET")
"""Of a process that remembers nothing of the state."""
WRITE_REMEMBERED: Final = ("GET", "PUT", "GET")
"""Of a process that remembers the current version."""
RELEASE: Final = ("GET", "DELETE")

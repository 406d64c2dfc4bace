"""The requests of each verb to S3, in order: a test counts them, and `cost.md` computes their price."""

from typing import Final

ACQUIRE: Final = ("PUT",)
READ: Final = ("GET",)
WRITE: Final = ("GET", "GET", "PUT", "GET")
"""From a process that has not cached the state."""
LOOK: Final = ("GET",)
"""For frozen patterns, only where there is no state."""
FIRST_WRITE: Final = (*WRITE[:2], *LOOK, "GET", *WRITE[2:])
WRITE_REMEMBERED: Final = ("GET", "PUT", "GET")
"""From a process that has cached the current version."""
RELEASE: Final = ("GET", "DELETE")

"""The function's environment variables, parsed."""

import os
from typing import Final

from gateway import function

BUCKET: Final = os.environ["HOLDFAST_BUCKET"]
LARGEST_STATE: Final = function.largest_state()
OWN_LOCKS: Final = function.own_locks()
AUDIT_GROUP: Final = os.environ["HOLDFAST_AUDIT_GROUP"]
"""The log group of the audit trail."""
RETENTION: Final = function.write_retention()

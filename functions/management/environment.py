"""What the deployment tells this function."""

import os
from typing import Final

from gateway import settings

BUCKET: Final = os.environ["HOLDFAST_BUCKET"]
ACCOUNT: Final = os.environ["HOLDFAST_ACCOUNT"]
LARGEST_STATE: Final = int(os.environ.get("HOLDFAST_MAX_STATE_MB", "100")) * 1_000_000
"""Bytes of the largest state that is written."""
AUDIT_GROUP: Final = os.environ.get("HOLDFAST_AUDIT_GROUP", "")
"""The log group of the audit trail."""
RETENTION: Final = settings.write_retention()
PRESIGN_ENDPOINT: Final = os.environ.get("HOLDFAST_PRESIGN_ENDPOINT")
"""Where clients find S3; None = at AWS."""

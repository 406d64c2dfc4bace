"""Commit an upload with the library alone, and print the processor time and the memory that it takes.

A program of its own: bucket, staging bucket, account, upload ID and principal are its arguments.
"""

import json
import resource
import sys
import time
from pathlib import Path

from holdfast.access import Caller, Grant, Role
from holdfast.cloud import uploads
from holdfast.cloud.ids import UploadId
from holdfast.policy import Policy
from holdfast.s3.budget import Budget
from holdfast.s3.sdk import connect
from holdfast.s3.store import Store
from holdfast.work import Work


def main(bucket: str, staging: str, account: str, text: str, principal: str) -> None:
    """Commit the upload, and print the figures as JSON."""
    s3, budget, upload = connect(), Budget.seconds(60), UploadId.parse(text)
    store, staged = (Store(s3, name, account, budget) for name in (bucket, staging))
    caller = Caller(principal, (Grant(Role.WRITER, ("*",)),))
    policy = Policy.from_environment("largest_state", "declared_only", "retention")
    store.read("nothing")  # opens the connection
    ran = time.process_time()
    uploads.commit(Work(store, upload.name, caller, policy), staged, upload)
    print(json.dumps({"processor": 1000 * (time.process_time() - ran), "memory": _peak()}))


def _peak() -> float:
    """Return the most memory that this process has had, in MB."""
    # The peak of getrusage includes the memory of the parent process at the fork.
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1000
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_000_000


if __name__ == "__main__":
    main(*sys.argv[1:])

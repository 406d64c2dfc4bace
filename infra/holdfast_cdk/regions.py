"""AWS's regions: the partition of each, and API Gateway's default quotas in it."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from botocore.loaders import create_loader

_DEFAULT_QUOTA: Final = (10000, 5000)
_SMALLER_QUOTA: Final = (2500, 1250)
_WITH_SMALLER_QUOTA: Final = frozenset(
    {
        *("af-south-1", "ap-south-2", "ap-southeast-3", "ap-southeast-4", "ap-southeast-5", "ap-southeast-7"),
        *("ca-west-1", "eu-central-2", "eu-south-1", "eu-south-2", "il-central-1", "me-central-1"),
        "mx-central-1",
    }
)


@cache
def partitions() -> Mapping[str, str]:
    """Return the partition of each AWS region that the installed botocore knows."""
    endpoints: Mapping[str, Any] = create_loader().load_data("endpoints")
    return {
        region: partition["partition"]
        for partition in endpoints["partitions"]
        for region in partition["regions"]
    }


def default_quota(region: str | None) -> tuple[int, int]:
    """Return a region's default quota of all APIs of an account: requests a second, and requests at once.

    AWS raises quotas on request.
    """
    return _SMALLER_QUOTA if region in _WITH_SMALLER_QUOTA else _DEFAULT_QUOTA

"""Which states there are."""

from collections.abc import Iterator

from holdfast import names
from holdfast.errors import InvalidName
from holdfast.names import StateName
from holdfast.s3.store import Store

_FOLDER, _, _SUFFIX = StateName("*").state_key.partition("*")


def states(store: Store, prefix: str) -> Iterator[StateName]:
    """List the names of the current states that begin with a prefix, in order of their keys.

    What another program put there under no state's name is left out.

    Args:
        store: the bucket.
        prefix: what the names begin with, such as `network/`.

    Raises:
        OutcomeUnknown: S3 did not respond in time.
        StorageRefused: S3 denies the function access.
    """
    for key in store.list_keys(_FOLDER + prefix):
        if key.endswith(_SUFFIX):
            try:
                name = names.parse(key[len(_FOLDER) : -len(_SUFFIX)])
            except InvalidName:
                continue
            yield name

"""Send conditional requests for the items of the DynamoDB table with which other clients lock states.

This module is imported only if the team has the setting `dynamodb_lock`. `backend "s3"` with `dynamodb_table`
keeps two items for a state. Their keys are `<bucket>/<key>` and the same with `-md5`:

- The lock item has the lock info in `Info`. It exists while the state is locked.
- The digest item has the hexadecimal MD5 of the state in `Digest`. A client that reads another state fails.
  Without the item, or without `Digest` in it, the client compares nothing.

Items of Holdfast have an attribute of their own, which other clients do not read and do not keep.

Before a state is written or deleted, its digest is dropped. Afterwards it is kept only if it is still dropped
by this very write. So a digest that is late, or whose function died, is never that of another version.
"""

import hashlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeVar

from botocore.exceptions import ClientError

from holdfast.errors import OutcomeUnknown, StorageRefused
from holdfast.s3 import tls
from holdfast.s3.retry import ResponseCutShortError
from holdfast.s3.store import READ_TIMEOUT, Store, client_config, sdk_session

_KEY: Final = "LockID"
_DIGEST_SUFFIX: Final = "-md5"
_OF_LOCK: Final = "HoldfastMetadata"
"""The attribute of a lock item of Holdfast: the metadata of the lock object."""
_OF_OBJECT: Final = "HoldfastVersion"
"""The attribute of a lock item of Holdfast: the version ID of the lock object."""
_OF_WRITE: Final = "HoldfastWrite"
"""The attribute of a digest item of Holdfast: random, and another for each write or delete."""
_ATTEMPTS: Final = 4

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class LockItem:
    """A lock item.

    Attributes:
        info: the lock info, byte for byte; None if the item has no text there.
        metadata: the metadata of the lock's object; empty if another client put the item.
        version_id: the version ID of the lock's object; None if another client put the item.
        read_at: the time of the response by DynamoDB's clock, in whole seconds.
    """

    info: str | None
    metadata: Mapping[str, str]
    version_id: str | None
    read_at: datetime


@dataclass(frozen=True, slots=True)
class Digest:
    """A digest item: the MD5 and the write that dropped or kept it; None for an attribute that is missing."""

    md5: str | None
    write: str | None


def connect(*, read_timeout: float = READ_TIMEOUT) -> Any:
    """Create a client for DynamoDB that leaves retries to `LockTable`."""
    client: Any = sdk_session().create_client("dynamodb", config=client_config(read_timeout))
    client.meta.events.register("before-parse.dynamodb", _require_whole)
    tls.read_authorities_once(client)
    return client


def _require_whole(response_dict: Mapping[str, Any], **_: Any) -> None:
    """Check that a response is complete. The SDK reads an incomplete one as that of a missing item."""
    headers, body = response_dict["headers"], response_dict["body"]
    if not body or headers.get("content-length") != str(len(body)):
        raise ResponseCutShortError


class LockTable:
    """Send requests for one table until the deadline of a store.

    `name` is the table's name; `key` is always `<bucket>/<key>` of a state.
    """

    def __init__(self, client: Any, name: str, store: Store) -> None:
        self._client = client
        self._name = name
        self._store = store

    def read_lock(self, key: str) -> LockItem | None:
        found, read_at = self._read(key)
        if found is None:
            return None
        metadata = found.get(_OF_LOCK, {}).get("M", {})
        noted = {name: value["S"] for name, value in metadata.items() if "S" in value}
        return LockItem(_text(found, "Info"), noted, _text(found, _OF_OBJECT), read_at)

    def put_lock(self, key: str, info: str, metadata: Mapping[str, str], version_id: str) -> bool:
        """Put a lock item. Return False if an item exists, perhaps of an earlier attempt."""
        noted = {name: {"S": value} for name, value in metadata.items()}
        item: dict[str, Any] = {name: {"S": text} for name, text in ((_KEY, key), ("Info", info))}
        item |= {_OF_LOCK: {"M": noted}, _OF_OBJECT: {"S": version_id}}
        return self._put(item, {_KEY: None})

    def remove_lock(self, key: str, info: str | None, version_id: str | None) -> None:
        """Remove the lock item with exactly this lock info, of this object; another item stays."""
        condition = _condition({"Info": info, _OF_OBJECT: version_id})

        def remove() -> None:
            self._client.delete_item(TableName=self._name, Key={_KEY: {"S": key}}, **condition)

        self._if_condition("DeleteItem", remove, otherwise=None)

    def drop_digest(self, key: str) -> Digest | None:
        """Drop the digest of a state, so that clients compare nothing. Return None if it never had one.

        Use it before a request that changes the state. A dropped digest is never wrong.
        """
        dropped = Digest(None, secrets.token_hex(16))
        for _ in range(_ATTEMPTS):
            seen = self._read_digest(key)
            if seen is None:
                return None
            if seen == dropped or self._replace_digest(key, seen, dropped):
                return dropped
        raise OutcomeUnknown("The digest of the state keeps changing in the DynamoDB table. A retry is safe.")

    def keep_digest(self, key: str, dropped: Digest, state: bytes) -> None:
        """Put the digest of a state that was written, unless somebody has changed the item since.

        Otherwise drop it: another client, whose lock was broken, may have put its digest late.
        """
        md5 = hashlib.md5(state, usedforsecurity=False).hexdigest()
        kept = Digest(md5, dropped.write)
        # The condition also fails if the response to our own first attempt was lost.
        if not self._replace_digest(key, dropped, kept) and self._read_digest(key) != kept:
            self.drop_digest(key)

    def _read_digest(self, key: str) -> Digest | None:
        found, _ = self._read(key + _DIGEST_SUFFIX)
        return Digest(_text(found, "Digest"), _text(found, _OF_WRITE)) if found else None

    def _replace_digest(self, key: str, seen: Digest, new: Digest) -> bool:
        """Replace the digest item that was read. Return False if it has changed since."""
        own = {_KEY: key + _DIGEST_SUFFIX}
        texts = {**own, "Digest": new.md5, _OF_WRITE: new.write}
        item = {name: {"S": text} for name, text in texts.items() if text is not None}
        return self._put(item, {**own, "Digest": seen.md5, _OF_WRITE: seen.write})

    def _read(self, key: str) -> tuple[Mapping[str, Any] | None, datetime]:
        def read() -> tuple[Mapping[str, Any] | None, datetime]:
            response = self._client.get_item(
                TableName=self._name, Key={_KEY: {"S": key}}, ConsistentRead=True
            )
            try:
                read_at = parsedate_to_datetime(response["ResponseMetadata"]["HTTPHeaders"]["date"])
            except (KeyError, ValueError) as error:
                raise ResponseCutShortError from error
            return response.get("Item"), read_at

        return self._decided("GetItem", read)

    def _put(self, item: Mapping[str, Any], wanted: Mapping[str, str | None]) -> bool:
        condition = _condition(wanted)

        def put() -> bool:
            self._client.put_item(TableName=self._name, Item=item, **condition)
            return True

        return self._if_condition("PutItem", put, otherwise=False)

    def _if_condition(self, operation: str, call: Callable[[], _T], *, otherwise: _T) -> _T:
        """Send a conditional request; return `otherwise` if its condition does not hold."""

        def call_or_otherwise() -> _T:
            try:
                return call()
            except ClientError as error:
                if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
                    return otherwise
                raise

        return self._decided(operation, call_or_otherwise)

    def _decided(self, operation: str, call: Callable[[], _T]) -> _T:
        try:
            return self._store.decided(operation, call, {}, service="DynamoDB")
        except StorageRefused as error:
            refused = error.__cause__
            reason = refused.response["Error"]["Code"] if isinstance(refused, ClientError) else "unknown"
            raise StorageRefused(
                f"DynamoDB refused a request for the table '{self._name}': {reason}. The team's setting "
                "'dynamodb_lock' names a table with the key 'LockID' in the account and region of the stack."
            ) from error


def _condition(wanted: Mapping[str, str | None]) -> Mapping[str, Any]:
    """Return the condition that an item has these texts; None for an attribute that it may not have."""
    texts = {name: value for name, value in wanted.items() if value is not None}
    terms = [f"{name} = :{name}" if name in texts else f"attribute_not_exists({name})" for name in wanted]
    values = {f":{name}": {"S": value} for name, value in texts.items()}
    condition: dict[str, Any] = {"ConditionExpression": " AND ".join(terms)}
    return {**condition, "ExpressionAttributeValues": values} if values else condition


def _text(item: Mapping[str, Any], attribute: str) -> str | None:
    """Return an attribute's text; None if it is missing, or not a text."""
    text: str | None = item.get(attribute, {}).get("S")
    return text

"""A DynamoDB table as `backend "s3"` with `dynamodb_table` needs it."""

from typing import Any


def create_lock_table(dynamodb: Any, name: str) -> None:
    dynamodb.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "LockID", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "LockID", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )


def put_item(dynamodb: Any, table: str, key: str, **attributes: str) -> None:
    """Put an item as another client does: without a condition, and with texts alone."""
    item = {name: {"S": text} for name, text in {"LockID": key, **attributes}.items()}
    dynamodb.put_item(TableName=table, Item=item)


def item(dynamodb: Any, table: str, key: str) -> dict[str, str] | None:
    """Return the texts of an item; None if there is no item."""
    found = dynamodb.get_item(TableName=table, Key={"LockID": {"S": key}}, ConsistentRead=True).get("Item")
    return found and {name: value["S"] for name, value in found.items() if "S" in value}

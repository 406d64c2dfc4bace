"""Versions of a state that differ in every way the console shows, as Terraform writes them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tests.support.documents import LINEAGE

SECRET: Final = "never-on-a-page"
"""The value of a sensitive attribute, and of a sensitive output."""
DATABASE: Final = "module.database.aws_db_instance.ledger"
POLICY: Final = 'module.access.aws_iam_policy.read["audit"]'
"""Addresses of two resources."""
_AWS: Final = 'provider["registry.terraform.io/hashicorp/aws"]'
_ARN: Final = "arn:aws:s3:::ledger-documents"


def policy(*actions: str) -> str:
    """Return a policy as `jsonencode` writes it: on one line, in a text."""
    statements = [
        {"Action": list(actions), "Effect": "Allow", "Resource": [_ARN, f"{_ARN}/*"], "Sid": "Read"},
        {
            "Action": "s3:*",
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
            "Effect": "Deny",
            "Resource": [_ARN, f"{_ARN}/*"],
            "Sid": "OnlyEncrypted",
        },
    ]
    return json.dumps({"Statement": statements, "Version": "2012-10-17"}, separators=(",", ":"))


def resource(
    kind: str,
    name: str,
    attributes: Mapping[str, Any],
    *,
    key: str | int | None = None,
    module: str = "",
    sensitive: Sequence[str] = (),
    tainted: bool = False,
) -> dict[str, Any]:
    """Return a resource with one instance."""
    instance: dict[str, Any] = {
        "schema_version": 1,
        "attributes": {"id": name if key is None else f"{name}-{key}", **attributes},
        "sensitive_attributes": [[{"type": "get_attr", "value": each}] for each in sensitive],
    }
    if key is not None:
        instance["index_key"] = key
    if tainted:
        instance["status"] = "tainted"
    head = {"mode": "managed", "type": kind, "name": name, "provider": _AWS}
    return {**({"module": module} if module else {}), **head, "instances": [instance]}


def state(serial: int, *resources: Mapping[str, Any], outputs: Mapping[str, Any]) -> bytes:
    """Return a state document. Outputs without a value are sensitive."""
    written = {
        name: {"value": f"{SECRET}-{serial}", "type": "string", "sensitive": True}
        if value is None
        else {"value": value, "type": "string"}
        for name, value in outputs.items()
    }
    document = {
        "version": 4,
        "terraform_version": "1.11.4",
        "serial": serial,
        "lineage": LINEAGE,
        "outputs": written,
        "resources": resources,
        "check_results": None,
    }
    return json.dumps(document, indent=2).encode() + b"\n"


def _subnets(count: int) -> list[dict[str, Any]]:
    return [
        resource(
            "aws_subnet",
            "private",
            {"cidr_block": f"10.20.{key}.0/24", "availability_zone": f"eu-central-1{'abc'[key % 3]}"},
            key=key,
        )
        for key in range(count)
    ]


def _policy(*actions: str) -> dict[str, Any]:
    attributes = {"name": "read-audit", "policy": policy(*actions)}
    return resource("aws_iam_policy", "read", attributes, key="audit", module="module.access")


def _database(size: str, engine: str, *, password: str, tainted: bool = False) -> dict[str, Any]:
    attributes = {
        "id": "ledger",
        "allocated_storage": 200,
        "engine_version": engine,
        "instance_class": size,
        "password": password,
        "tags": {"env": "prod", "team": "payments"},
    }
    hidden = ["password"]
    return resource(
        "aws_db_instance", "ledger", attributes, module="module.database", sensitive=hidden, tainted=tainted
    )


def _alarms(limit: int) -> list[dict[str, Any]]:
    return [
        resource("aws_cloudwatch_metric_alarm", "queue", {"threshold": limit}, key=key)
        for key in ("audit", "exports", "orders", "refunds")
    ]


def _bucket(name: str, lifecycle: str) -> dict[str, Any]:
    attributes = {"id": "ledger-documents", "bucket": "ledger-documents", "lifecycle": lifecycle}
    return resource("aws_s3_bucket", name, attributes)


_INSTANCE_A: Final = resource("aws_instance", "bastion", {"id": "i-1", "ami": "ami-0a1"})
_INSTANCE_B: Final = resource("aws_instance", "bastion", {"id": "i-2", "ami": "ami-0b2"})
_READ: Final = ("s3:GetObject", "s3:ListBucket")

VERSIONS: Final = (
    state(
        1,
        *_subnets(3),
        _bucket("old_documents", "30 days"),
        outputs={"bucket": "ledger-documents"},
    ),
    state(
        4,
        *_subnets(3),
        _bucket("old_documents", "30 days"),
        _database("db.r6g.large", "16.3", password=SECRET),
        _policy(*_READ),
        _INSTANCE_A,
        outputs={"bucket": "ledger-documents", "password": None},
    ),
    state(
        5,
        *_subnets(6),
        _bucket("old_documents", "90 days"),
        _database("db.r6g.large", "16.3", password=SECRET),
        _policy(*_READ),
        _INSTANCE_A,
        *_alarms(100),
        resource("aws_route53_record", "legacy", {"fqdn": "legacy.example.com"}),
        outputs={"bucket": "ledger-documents", "password": None, "size": "small"},
    ),
    state(
        9,
        *_subnets(9),
        _bucket("documents", "90 days"),
        _database("db.r6g.xlarge", "16.4", password=f"{SECRET}-2", tainted=True),
        _policy("s3:GetObject", "s3:GetObjectVersion", "s3:ListBucket"),
        _INSTANCE_B,
        *_alarms(250),
        outputs={"bucket": "ledger-documents", "password": None, "size": "large", "zone": "Z1"},
    ),
)
"""Oldest first. The last one adds 3 subnets, moves the bucket, replaces the instance, changes 6 and
removes 1; of the outputs it adds one, changes one, and changes the sensitive one."""

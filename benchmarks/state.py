"""A state document in Terraform's format, of any size."""

import json
import random


def state(serial: int, size: int) -> bytes:
    """Return a state document of about `size` bytes; equal arguments give equal documents.

    Identifiers and addresses are random, so that the document compresses like a real state.

    Args:
        serial: the document's serial.
        size: the approximate size in bytes; resources are added until the document has it.
    """
    drawn = random.Random(serial)  # noqa: S311 nothing is secret here
    resources: list[object] = []
    length = 0
    while length < size:
        resources.append(_resource(drawn, len(resources)))
        # Indentation adds the same number of bytes to each resource.
        length += len(json.dumps({"resources": [resources[-1]]}, indent=2)) - 20
    document = {
        "version": 4,
        "terraform_version": "1.11.4",
        "serial": serial,
        "lineage": "3f0c1d0e-6c4b-4b5e-9d7a-2f1e8c7b6a59",
        "outputs": {},
        "resources": resources,
        "check_results": None,
    }
    return json.dumps(document, indent=2).encode()


def _resource(drawn: random.Random, number: int) -> object:
    identifier = f"i-{drawn.getrandbits(68):017x}"
    network = f"subnet-{drawn.getrandbits(68):017x}"
    groups = [f"sg-{drawn.getrandbits(68):017x}" for _ in range(2)]
    address = f"10.{drawn.randrange(256)}.{drawn.randrange(256)}.{drawn.randrange(256)}"
    return {
        "mode": "managed",
        "type": "aws_instance",
        "name": f"worker_{number}",
        "provider": 'provider["terraform.io/builtin/terraform"]',
        "instances": [
            {
                "schema_version": 2,
                "attributes": {
                    "ami": f"ami-{drawn.getrandbits(68):017x}",
                    "arn": f"arn:aws:ec2:eu-central-1:123456789012:instance/{identifier}",
                    "availability_zone": f"eu-central-1{drawn.choice('abc')}",
                    "disable_api_termination": False,
                    "ebs_optimized": drawn.random() < 0.5,
                    "id": identifier,
                    "instance_type": drawn.choice(("t4g.small", "m7g.large", "c7g.xlarge")),
                    "ipv6_addresses": [],
                    "private_dns": f"ip-{address.replace('.', '-')}.eu-central-1.compute.internal",
                    "private_ip": address,
                    "subnet_id": network,
                    "tags": {"Name": f"worker-{number}", "Owner": drawn.choice(("network", "billing"))},
                    "timeouts": None,
                    "user_data": f"{drawn.getrandbits(160):040x}",
                    "vpc_security_group_ids": groups,
                },
                "sensitive_attributes": [],
                "private": drawn.randbytes(48).hex(),
                "dependencies": ["aws_security_group.workers", "aws_subnet.private"],
            }
        ],
    }

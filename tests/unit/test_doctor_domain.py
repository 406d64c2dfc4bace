"""The domain and the default endpoint of an API: as deployed, or not."""

from collections.abc import Mapping
from typing import Any

import pytest

from holdfast_cli.doctor import deployed
from holdfast_cli.doctor.template import DeployedTemplate

API = {"Type": "AWS::ApiGatewayV2::Api", "Properties": {"DisableExecuteApiEndpoint": True}}
DOMAIN = {"Type": "AWS::ApiGatewayV2::DomainName", "Properties": {"DomainName": "states.example.com"}}


class Gateway:
    """API Gateway with one API and one domain."""

    def __init__(self, *, off: bool, status: str) -> None:
        self.off, self.status = off, status

    def get_api(self, *, ApiId: str) -> Mapping[str, Any]:  # noqa: N803 as boto3 names it
        assert ApiId == "a1b2"
        return {"DisableExecuteApiEndpoint": self.off}

    def get_domain_name(self, *, DomainName: str) -> Mapping[str, Any]:  # noqa: N803 as boto3 names it
        assert DomainName == "states.example.com"
        target = {"DomainNameStatus": self.status, "ApiGatewayDomainName": "d-1.example.net"}
        return {"DomainNameConfigurations": [target]}


def found(gateway: Gateway, *resources: Mapping[str, Any]) -> list[tuple[str, str]]:
    document = {"Resources": {f"R{number}": one for number, one in enumerate(resources)}}
    template = DeployedTemplate(document, {"R0": "a1b2"}, "aws", "eu-central-1", "123456789012")
    return [(finding.check, finding.level) for finding in deployed.domain(gateway, template)]


@pytest.mark.parametrize(
    ("off", "status", "levels"),
    [
        (True, "AVAILABLE", ("ok", "ok")),
        (False, "AVAILABLE", ("ok", "problem")),
        (True, "PENDING_CERTIFICATE_REIMPORT", ("problem", "ok")),
    ],
)
def test_a_domain_is_ready_and_the_other_address_is_off_as_deployed(
    off: bool, status: str, levels: tuple[str, str]
) -> None:
    seen = found(Gateway(off=off, status=status), API, DOMAIN)

    assert seen == [*zip(("domain.status", "domain.default_endpoint"), levels, strict=True)]


def test_without_a_domain_nothing_is_asked() -> None:
    assert found(Gateway(off=False, status=""), API) == []

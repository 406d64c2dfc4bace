"""The domain of an API in the template. On the local AWS the API keeps its own address."""

from dataclasses import replace

from holdfast_cdk.config import AWS
from holdfast_cdk.domain_settings import DomainSettings
from holdfast_cdk.team_settings import Team
from tests.unit.infra.conftest import Synthesize, Synthesized

DOMAIN = DomainSettings(
    name="states.example.com",
    certificate="arn:aws:acm:eu-central-1:123456789012:certificate/1a2b3c4d-1111-4222-8333-444455556666",
)


def test_the_root_of_the_domain_leads_to_the_api_and_its_own_address_is_off(settled: Synthesized) -> None:
    [(domain, properties)] = settled.resources("AWS::ApiGatewayV2::DomainName").items()
    [api] = settled.resources("AWS::ApiGatewayV2::Api")
    mapping = settled.resolve(settled.only("AWS::ApiGatewayV2::ApiMapping")["Properties"])
    [configuration] = properties["Properties"]["DomainNameConfigurations"]

    assert properties["Properties"]["DomainName"] == DOMAIN.name
    assert configuration == {
        "CertificateArn": DOMAIN.certificate,
        "EndpointType": "REGIONAL",
        "SecurityPolicy": "TLS_1_2",
    }
    assert mapping == {"ApiId": f"<{api}>", "DomainName": f"<{domain}>", "Stage": "$default"}
    assert settled.template["Resources"][api]["Properties"]["DisableExecuteApiEndpoint"] is True
    outputs = {name: settled.resolve(output["Value"]) for name, output in settled.template["Outputs"].items()}
    assert outputs["ApiAddress"] == "https://states.example.com"
    assert outputs["DomainTarget"] == f"<{domain}.RegionalDomainName>"
    assert outputs["DomainTargetZone"] == f"<{domain}.RegionalHostedZoneId>"


def test_both_addresses_work_while_a_team_changes_from_one_to_the_other(synthesize: Synthesize) -> None:
    team = Team(name="plain", domain=replace(DOMAIN, keep_default_endpoint=True))
    [stack] = synthesize([team], AWS).values()

    assert stack.only("AWS::ApiGatewayV2::Api")["Properties"]["DisableExecuteApiEndpoint"] is False
    assert stack.template["Outputs"]["ApiAddress"]["Value"] == "https://states.example.com"

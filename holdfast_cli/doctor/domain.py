"""Compares the domain of the API, and whether AWS's own address is off, with the template."""

from collections.abc import Iterator
from typing import Any, Final

from holdfast_cli.doctor.findings import Finding, ok, problem
from holdfast_cli.doctor.template import DeployedTemplate

_OFF: Final = "DisableExecuteApiEndpoint"


def domains(template: DeployedTemplate) -> list[str]:
    """Return the domain of the deployed API, if it has one."""
    return [domain["DomainName"] for _, domain in template.resources("AWS::ApiGatewayV2::DomainName")]


def check(gateway: Any, template: DeployedTemplate) -> Iterator[Finding]:
    """Yield whether the domain is ready, and whether the address that AWS gave the API is as deployed."""
    for name in domains(template):
        yield from _domain(gateway, name)
        for logical_id, api in template.resources("AWS::ApiGatewayV2::Api"):
            is_off = bool(gateway.get_api(ApiId=template.physical_ids[logical_id]).get(_OFF))
            yield from _default_endpoint(is_off, bool(api.get(_OFF)))


def _domain(gateway: Any, name: str) -> Iterator[Finding]:
    [configuration] = gateway.get_domain_name(DomainName=name)["DomainNameConfigurations"]
    status = configuration.get("DomainNameStatus", "AVAILABLE")
    if status == "AVAILABLE":
        target = configuration["ApiGatewayDomainName"]
        yield ok("domain.status", f"The domain {name} is ready; its DNS record leads to {target}.")
    else:
        yield problem(
            "domain.status",
            f"The domain {name} is {status}.",
            "Look at its certificate in ACM, then run this command again.",
        )


def _default_endpoint(is_off: bool, is_off_in_template: bool) -> Iterator[Finding]:
    state = "off" if is_off else "on"
    if is_off == is_off_in_template:
        yield ok("domain.default_endpoint", f"The address that AWS gave the API is {state}, as deployed.")
    else:
        yield problem(
            "domain.default_endpoint",
            f"The address that AWS gave the API is {state}, but was deployed otherwise.",
            f"Set the API's {_OFF} to {'true' if is_off_in_template else 'false'} in API Gateway.",
        )

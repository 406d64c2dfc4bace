"""Which requests a real Terraform sends again after a 429, and which it does not."""

from collections.abc import Callable

from local_aws.terraform import Product
from tests.support.project import NewProject, cloud
from tests.support.team import Team
from tests.unit.infra.test_throttling import DISCOVERY, PING


def refusing_each_once(*admitted: str) -> Callable[[str], bool]:
    """Return what admits a path from its second request on; `admitted` from the first."""
    seen = set(admitted)

    def admits(target: str) -> bool:
        path = target.partition("?")[0]
        known = path in seen
        seen.add(path)
        return known

    return admits


def test_a_throttled_request_is_sent_again(strict: Team, state: str, new_project: NewProject) -> None:
    for name, backend in ((f"{state}/http", None), (f"{state}-cloud", cloud(strict, f"{state}-cloud"))):
        files = {"main": 'resource "terraform_data" "apple" {}', **({"backend": backend} if backend else {})}
        project = new_project(strict, None if backend else name, strict.token("maintainer"), **files)
        for command in (["init"], ["apply", "-auto-approve"]):
            with strict.gateway.throttling(refusing_each_once(DISCOVERY, PING)):
                project.ok(*command)

        assert [version.serial for version in strict.versions(name)] == [1]
        assert strict.lock(name) is None


def test_cloud_does_not_send_its_first_request_to_the_api_again(
    strict: Team, state: str, new_project: NewProject
) -> None:
    project = new_project(strict, None, strict.token("maintainer"), backend=cloud(strict, state))

    is_opentofu = project.terraform.client.product is Product.OPENTOFU
    service = "cloud backend" if is_opentofu else "Terraform Enterprise"
    with strict.gateway.throttling(refusing_each_once(DISCOVERY)):
        assert f"Unsupported {service} version" in project.refused("init")

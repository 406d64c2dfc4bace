"""Parse requests of the protocol of `cloud {}`, with the staging bucket and the address of the API."""

from collections.abc import Collection
from typing import Final

from cloud import documents
from gateway import bent, requests
from holdfast.policy import Deployment
from holdfast.s3.store import Store

_DEPLOYMENT: Final = Deployment.from_environment("staging_bucket", "api_address")


class Request(requests.Request):
    """A request of the protocol."""

    __slots__ = ()

    @property
    def staging(self) -> Store:
        """The staging bucket, within the budget of the invocation."""
        return self.function.store(self.budget, _DEPLOYMENT.staging_bucket)

    @property
    def api_address(self) -> str:
        """The API's base URL, without a trailing slash.

        The host name comes from API Gateway's context, because a client can send any host header.
        """
        context = self.event["requestContext"]
        address = _DEPLOYMENT.api_address or "https://{domain}"
        return address.replace("{api}", context["apiId"]).replace("{domain}", context["domainName"])

    def check_query(self, known: Collection[str]) -> None:
        """Raise `InvalidDocument` for an unknown parameter, `BentRequest` for a read that was a change."""
        documents.check_parameters(self.query, known)
        if self.method == "GET":
            bent.check_redirected(self.event["headers"])

"""The HTTP API: its routes with their authorizers, throttling and an access log."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, cast

from aws_cdk import Acknowledgment, ArnFormat, CfnResource, Duration, Stack, Validations
from aws_cdk import aws_apigatewayv2 as apigatewayv2
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_apigatewayv2_authorizers import (
    HttpIamAuthorizer,
    HttpLambdaAuthorizer,
    HttpLambdaResponseType,
)
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct

from holdfast import audit
from holdfast.team import CREDENTIALS_CACHED, LOGGED_PRINCIPAL
from holdfast_cdk.config import Target
from holdfast_cdk.domain_settings import DomainSettings
from holdfast_cdk.functions import FUNCTIONS
from holdfast_cdk.lambdas import Functions, audit_log
from holdfast_cdk.team_settings import FEW_BURST, FEW_RATE, FIND_BURST, FIND_RATE, Team, Throttling

BURST_OF_A_PAGE: Final = 3 * FEW_BURST
"""Requests at once for files of the console: a page, its script and its style."""
_SHARE = 4
"""The management API's limits are the team's limits divided by this number."""


def management_throttling(throttling: Throttling) -> Throttling:
    """Return the management API's limits: a quarter of the team's, so that lists leave requests for an apply.

    >>> management_throttling(Throttling(rate=100, burst=2))
    Throttling(rate=25, burst=1)
    """
    return Throttling(rate=max(1, throttling.rate // _SHARE), burst=max(1, throttling.burst // _SHARE))


def _find(throttling: Throttling) -> Throttling:
    """Return the limits of searches, at most the team's: an account may have few executions in all.

    >>> _find(Throttling(rate=100, burst=200))
    Throttling(rate=1, burst=2)
    """
    return Throttling(rate=min(FIND_RATE, throttling.rate), burst=min(FIND_BURST, throttling.burst))


def _as_many(throttling: Throttling) -> Throttling:
    """Return limits for the requests with which a job begins: as many again as the team's.

    API Gateway throttles before it asks who calls. With lower limits one laptop could keep everybody out.
    """
    return throttling


def _few(throttling: Throttling) -> Throttling:
    """Return the limits of routes that neither a sign-in nor an apply needs, at most the team's.

    >>> _few(Throttling(rate=100, burst=2))
    Throttling(rate=10, burst=2)
    """
    return Throttling(rate=min(FEW_RATE, throttling.rate), burst=min(FEW_BURST, throttling.burst))


def _of_a_page(throttling: Throttling) -> Throttling:
    """Return the limits of a page's files. A page without one of its files stays blank.

    The rate stays low, because a stranger's requests cause data out.
    """
    return Throttling(rate=_few(throttling).rate, burst=min(BURST_OF_A_PAGE, throttling.burst))


@dataclass(frozen=True, slots=True)
class ApiRoute:
    """A route of the API, with every verb: a function that gets a wrong one responds with the right ones.

    Attributes:
        path: `$default` is every path that no other route has.
        function: the name of the function behind the route.
        authorizer: who lets requests in; None for everybody.
        limits: returns the route's own limits for those of the team; None for the stage's.
        reason: why everybody may send requests.
    """

    path: str
    function: str
    authorizer: Literal["token", "iam"] | None
    limits: Callable[[Throttling], Throttling] | None = None
    reason: str = ""

    @property
    def key(self) -> apigatewayv2.HttpRouteKey:
        if self.path == "$default":
            return apigatewayv2.HttpRouteKey.DEFAULT
        return apigatewayv2.HttpRouteKey.with_(self.path, apigatewayv2.HttpMethod.ANY)


ROUTES: Final = (
    ApiRoute("/states/{name+}", "backend", "token"),
    ApiRoute("/outputs/{name+}", "backend", "token"),
    ApiRoute("/locks/{name+}", "backend", "token"),
    ApiRoute("/unlocks/{name+}", "backend", "token"),
    ApiRoute("/api/v2/{path+}", "cloud", "token"),
    # The first request of a command with `cloud {}` to the API, which no client sends again after a 429.
    ApiRoute("/api/v2/ping", "cloud", "token", _as_many),
    ApiRoute("/manage/v1/{path+}", "management", "token", management_throttling),
    ApiRoute("/manage/v1/find", "management", "token", _find),
    ApiRoute("/sessions", "sessions", "token", _as_many),
    # The authorizer accepts every identity of this AWS account; the function checks trust records.
    ApiRoute("/sessions/aws", "sessions", "iam", _as_many),
    # Terraform would take the gateway's own 404 for a missing state, and create every resource again.
    ApiRoute("$default", "backend", "token", _few),
    ApiRoute("/health", "health", None, _few, "The route returns only the version of the deployed code."),
    ApiRoute(
        "/.well-known/terraform.json",
        "health",
        None,
        _as_many,
        "Clients ask where the API is before they have a token.",
    ),
    ApiRoute("/app/settings/tokens", "health", None, _few, "The page tells people how to get a token."),
    ApiRoute("/console", "console", None, _few, "The route redirects to the console."),
    # It also has `/console/`: API Gateway refuses a route that ends with a slash.
    ApiRoute("/console/{path+}", "console", None, _of_a_page, "The console asks its user for credentials."),
)

# Without the query string, which contains lock IDs, and without headers. API Gateway escapes nothing, so the
# principal is percent-encoded.
ACCESS_LOG_LINE = {
    "requestId": "$context.requestId",
    "ip": "$context.identity.sourceIp",
    "time": "$context.requestTime",
    "method": "$context.httpMethod",
    "path": "$context.path",
    "status": "$context.status",
    "routeKey": "$context.routeKey",
    "protocol": "$context.protocol",
    "responseLength": "$context.responseLength",
    "latency": "$context.responseLatency",
    "principal": f"$context.authorizer.{LOGGED_PRINCIPAL}",
    # Where a 5xx comes from: API Gateway itself, the authorizer, or the function behind the route.
    "error": "$context.error.message",
    "authorizerError": "$context.authorizer.error",
    "integrationError": "$context.integrationErrorMessage",
    "integrationStatus": "$context.integration.status",
    "integrationLatency": "$context.integration.latency",
}


class Api(Construct):
    """The API of one team; `address` is its base URL, `api_id` its ID.

    `domain` is the domain of its own; None without one.
    """

    def __init__(
        self, scope: Construct, construct_id: str, team: Team, target: Target, functions: Functions
    ) -> None:
        super().__init__(scope, construct_id)
        api = apigatewayv2.HttpApi(
            self,
            "Api",
            api_name=f"holdfast-{team.name}",
            description=f"Holdfast: Terraform states of team {team.name}",
            create_default_stage=False,
            # Always written: API Gateway keeps a value that an update leaves out.
            disable_execute_api_endpoint=bool(team.domain and not team.domain.keep_default_endpoint),
        )
        access_log = audit_log(self, "AccessLog", audit.access_log_group(team.name), days=team.log_retention)
        stage = apigatewayv2.HttpStage(
            self,
            "Stage",
            http_api=api,
            stage_name="$default",
            auto_deploy=True,
            # For routes without limits of their own. A request above them gets 429, which Terraform retries.
            throttle=apigatewayv2.ThrottleSettings(
                rate_limit=team.throttling.rate, burst_limit=team.throttling.burst
            ),
        )
        stage_resource = cast("apigatewayv2.CfnStage", stage.node.default_child)
        # HttpStage accepts a format only as an object that implements a TypeScript interface.
        stage_resource.access_log_settings = apigatewayv2.CfnStage.AccessLogSettingsProperty(
            destination_arn=Stack.of(self).format_arn(
                service="logs",
                resource="log-group",
                resource_name=access_log.log_group_name,
                arn_format=ArnFormat.COLON_RESOURCE_NAME,
            ),
            format=json.dumps(ACCESS_LOG_LINE),
        )

        to = {
            spec.name: HttpLambdaIntegration(
                spec.construct_id,
                functions.live[spec.name],
                payload_format_version=apigatewayv2.PayloadFormatVersion.VERSION_2_0,
            )
            for spec in FUNCTIONS
            if spec.name in functions.live
        }
        authorizers: dict[str, apigatewayv2.IHttpRouteAuthorizer] = {
            "token": HttpLambdaAuthorizer(
                "Token",
                functions.live["authorizer"],
                response_types=[HttpLambdaResponseType.SIMPLE],
                # The key of the cache: what is decided for one address is not used for another.
                identity_source=[
                    "$request.header.Authorization",
                    *(["$context.identity.sourceIp"] if team.networks else []),
                ],
                results_cache_ttl=Duration.seconds(CREDENTIALS_CACHED.seconds),
            ),
            "iam": HttpIamAuthorizer(),
        }
        settings = {}
        for route in ROUTES:
            # The IDs must not change: CloudFormation would create a route anew while the old one has its key.
            is_default = route.path == "$default"
            resource = apigatewayv2.HttpRoute(
                self if is_default else api,
                "OtherPaths" if is_default else f"ANY{route.path}",
                http_api=api,
                route_key=route.key,
                # Without the console its routes stay, and lead nowhere. API Gateway keeps the limits of a
                # removed route, and then refuses every change of the stage.
                integration=to.get(route.function, to["health"]),
                authorizer=authorizers[route.authorizer] if route.authorizer else None,
            )
            # Requests get 500 while a new route of a running API lacks its permission.
            for permission in resource.node.find_all():
                if isinstance(permission, lambda_.CfnPermission):
                    cast("CfnResource", resource.node.default_child).add_resource_dependency(permission)
            if route.limits:
                limits = route.limits(team.throttling)
                settings[route.key.key] = {
                    "ThrottlingRateLimit": limits.rate,
                    "ThrottlingBurstLimit": limits.burst,
                }
                # API Gateway refuses settings of a missing route ("Unable to find Route by key").
                stage.node.add_dependency(resource)
            if route.reason:
                Validations.of(resource).acknowledge(
                    Acknowledgment(id="AwsSolutions::AwsSolutions-APIG4", reason=route.reason)
                )
        stage_resource.route_settings = settings
        for permission in api.node.children:
            if isinstance(permission, lambda_.CfnPermission):
                # The CDK's own ID has the names of the stages around the stack.
                permission.override_logical_id("AuthorizerPermission")

        self.api_id = api.api_id
        self.domain = self._domain(team.domain, api, stage) if team.domain else None
        own = f"https://{team.domain.name}" if team.domain else None
        self.address = (target.api_address or own or api.api_endpoint).replace("{api}", api.api_id)

    def _domain(
        self, domain: DomainSettings, api: apigatewayv2.HttpApi, stage: apigatewayv2.HttpStage
    ) -> apigatewayv2.DomainName:
        """Create the domain; its root leads to the API."""
        made = apigatewayv2.DomainName(
            self,
            "Domain",
            domain_name=domain.name,
            certificate=acm.Certificate.from_certificate_arn(self, "Certificate", domain.certificate),
            endpoint_type=apigatewayv2.EndpointType.REGIONAL,
            security_policy=apigatewayv2.SecurityPolicy.TLS_1_2,
        )
        apigatewayv2.ApiMapping(self, "Root", api=api, stage=stage, domain_name=made)
        return made

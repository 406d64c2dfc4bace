"""The HTTP API: its routes with their authorizers, throttling and an access log."""

import json
from typing import cast

from aws_cdk import Acknowledgment, ArnFormat, Duration, Stack, Validations
from aws_cdk import aws_apigatewayv2 as apigatewayv2
from aws_cdk.aws_apigatewayv2_authorizers import (
    HttpIamAuthorizer,
    HttpLambdaAuthorizer,
    HttpLambdaResponseType,
)
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct

from gateway import authorizer_context
from holdfast import audit
from holdfast.team import CREDENTIALS_CACHED
from infra.config import Target, TeamConfig, Throttling
from infra.functions import FUNCTIONS
from infra.lambdas import Functions, audit_log

MANAGEMENT = "/manage/v1/{path+}"
"""The route of the management API."""
_SHARE = 4
"""The management API's limits are the team's limits divided by this number."""

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
    "principal": authorizer_context.access_log_variable(),
    # Where a 5xx comes from: API Gateway itself, the authorizer, or the function behind the route.
    "error": "$context.error.message",
    "authorizerError": "$context.authorizer.error",
    "authorizerLatency": "$context.authorizer.latency",
    "integrationError": "$context.integrationErrorMessage",
    "integrationStatus": "$context.integration.status",
    "integrationLatency": "$context.integration.latency",
}


class Api(Construct):
    """The API of one team; `address` is its base URL."""

    def __init__(
        self, scope: Construct, construct_id: str, team: TeamConfig, target: Target, functions: Functions
    ) -> None:
        super().__init__(scope, construct_id)
        api = apigatewayv2.HttpApi(
            self,
            "Api",
            api_name=f"holdfast-{team.name}",
            description=f"Holdfast: Terraform states of team {team.name}",
            create_default_stage=False,
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
        token = HttpLambdaAuthorizer(
            "Token",
            functions.live["authorizer"],
            response_types=[HttpLambdaResponseType.SIMPLE],
            identity_source=["$request.header.Authorization"],
            results_cache_ttl=Duration.seconds(CREDENTIALS_CACHED.seconds),
        )
        # ANY, so that a wrong verb reaches the function, whose response lists the allowed verbs.
        for path, function, authorizer in (
            ("/states/{name+}", "backend", token),
            ("/outputs/{name+}", "backend", token),
            ("/locks/{name+}", "backend", token),
            ("/unlocks/{name+}", "backend", token),
            ("/api/v2/{path+}", "cloud", token),
            (MANAGEMENT, "management", token),
            ("/sessions", "sessions", token),
            # The authorizer accepts every identity of this AWS account; the function checks trust records.
            ("/sessions/aws", "sessions", HttpIamAuthorizer()),
        ):
            (route,) = api.add_routes(
                path=path,
                methods=[apigatewayv2.HttpMethod.ANY],
                integration=to[function],
                authorizer=authorizer,
            )
            if path == MANAGEMENT:
                limits = management_throttling(team.throttling)
                stage_resource.route_settings = {
                    f"ANY {path}": {"ThrottlingRateLimit": limits.rate, "ThrottlingBurstLimit": limits.burst}
                }
                # API Gateway refuses settings of a missing route ("Unable to find Route by key").
                stage.node.add_dependency(route)
        # The route for every other path. Terraform would take the gateway's own 404 for a missing state, and
        # create every resource again.
        apigatewayv2.HttpRoute(
            self,
            "OtherPaths",
            http_api=api,
            route_key=apigatewayv2.HttpRouteKey.DEFAULT,
            integration=to["backend"],
            authorizer=token,
        )
        for path, reason in (
            ("/health", "It tells the version of the code and nothing else, to anybody."),
            ("/.well-known/terraform.json", "Clients ask where the API is before they have a token."),
            ("/app/settings/tokens", "It tells people how to get a token."),
        ):
            (route,) = api.add_routes(
                path=path, methods=[apigatewayv2.HttpMethod.ANY], integration=to["health"]
            )
            Validations.of(route).acknowledge(
                Acknowledgment(id="AwsSolutions::AwsSolutions-APIG4", reason=reason)
            )

        self.address = (target.api_address or api.api_endpoint).replace("{api}", api.api_id)


def management_throttling(throttling: Throttling) -> Throttling:
    """Return the management API's limits: a quarter of the team's, so that lists leave requests for an apply.

    >>> management_throttling(Throttling(rate=100, burst=2))
    Throttling(rate=25, burst=1)
    """
    return Throttling(rate=max(1, throttling.rate // _SHARE), burst=max(1, throttling.burst // _SHARE))

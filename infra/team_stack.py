"""The stack of one team. Nothing in it is shared with another team's."""

from aws_cdk import CfnOutput, Environment, Stack
from constructs import Construct

from infra.api import Api
from infra.config import Target, TeamConfig
from infra.lambdas import Bundles, Functions
from infra.state_store import StateStore


class TeamStack(Stack):
    """Composes a team's state store, functions and API.

    Args:
        scope: the app.
        team: whose stack it is.
        target: where it is deployed.
        bundles: the code of the functions, bundled for that target.
    """

    def __init__(self, scope: Construct, team: TeamConfig, target: Target, bundles: Bundles) -> None:
        team = target.place(team)
        super().__init__(
            scope,
            f"Holdfast-{team.name}",
            description=f"Holdfast: Terraform state backend of team {team.name}",
            env=Environment(account=team.account, region=team.region),
            tags={"holdfast:team": team.name},
            termination_protection=target.termination_protection,
        )
        store = StateStore(self, "StateStore", team)
        functions = Functions(self, "Functions", team, store, bundles)
        api = Api(self, "Api", team, target, functions)

        CfnOutput(self, "ApiAddress", value=api.address, description="Base URL of the API")
        CfnOutput(self, "BucketName", value=store.bucket.bucket_name, description="Holds the states")

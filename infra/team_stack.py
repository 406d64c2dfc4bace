"""The stack of one team. Nothing in it is shared with another team's."""

from aws_cdk import CfnOutput, Environment, Stack, Validations
from constructs import Construct

from holdfast import team as names
from infra.api import Api
from infra.config import Target, TeamConfig
from infra.lambdas import Bundles, Functions, retention_of_each_write
from infra.state_store import StateStore
from infra.token_trail import TokenTrail


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
            names.stack_name(team.name),
            description=f"Holdfast: Terraform state backend of team {team.name}",
            env=Environment(account=team.account, region=team.region),
            tags={**team.tags, names.TAG: team.name},
            termination_protection=target.termination_protection,
        )
        store = StateStore(self, "StateStore", team)
        functions = Functions(self, "Functions", team, store, bundles)
        api = Api(self, "Api", team, target, functions)
        if team.token_trail:
            TokenTrail(self, "TokenTrail", team, store.bucket)

        CfnOutput(self, names.API_ADDRESS, value=api.address, description="Base URL of the API")
        CfnOutput(self, names.BUCKET_NAME, value=store.bucket.bucket_name, description="Holds the states")
        if retention := retention_of_each_write(team):
            CfnOutput(self, names.STATE_RETENTION, value=retention, description="Mode and days of each write")

        if what := what_stays_for_ever(team):
            Validations.of(self).add_warning("holdfast:history", what)


def what_stays_for_ever(team: TeamConfig) -> str | None:
    """Return what piles up in a team's bucket with these settings, and what to write; None if nothing does.

    Delete markers carry no tags, so that only `history` reaches those with versions above or beneath.
    """
    if team.history is not None:
        return None
    leaves = [
        *(
            ["each unlock of a native client leaves an old version and a delete marker of its lock"]
            if team.native_clients
            else []
        ),
        *(
            ["under a retention of the bucket's own each unlock leaves a delete marker of the lock"]
            if team.retention and team.retention.bucket_default
            else []
        ),
    ]
    if not leaves:
        return None
    days = max(365, team.retention.days if team.retention else 0)
    return (
        f"team '{team.name}': {', and '.join(leaves)}, and they stay for ever; "
        f"write history = {{ days = {days}, keep_versions = 100 }} to have S3 remove them"
    )

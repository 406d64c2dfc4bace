"""A company's own CDK app: the state backend of its platform team, and a stack that uses its outputs."""

from aws_cdk import App, Environment, Stack, Stage
from aws_cdk import aws_sns as sns
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from holdfast_cdk import Notify, Retention, Team, TeamStack

ACCOUNT, REGION = "123456789012", "eu-central-1"

PLATFORM = Team(
    name="platform",
    retention=Retention(mode="governance", days=30),
    notify=Notify(topic=f"arn:aws:sns:{REGION}:{ACCOUNT}:holdfast"),
    tags={"cost-center": "42"},
)


class Surroundings(Stack):
    """Tells the company's other programs where the backend is, and its people what happens there."""

    def __init__(self, scope: Construct, construct_id: str, backend: TeamStack) -> None:
        super().__init__(scope, construct_id)
        ssm.StringParameter(
            self, "Address", parameter_name="/terraform/address", string_value=backend.api_address
        )
        ssm.StringParameter(
            self, "Bucket", parameter_name="/terraform/bucket", string_value=backend.bucket.bucket_name
        )
        if backend.topic:
            sns.Subscription(
                self,
                "Mail",
                topic=backend.topic,
                protocol=sns.SubscriptionProtocol.EMAIL,
                endpoint="platform@example.com",
            )


app = App()
production = Stage(app, "Production", env=Environment(account=ACCOUNT, region=REGION))
Surroundings(production, "Surroundings", TeamStack(production, PLATFORM))
app.synth()

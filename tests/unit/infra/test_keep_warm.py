"""The schedule that keeps a process of each function behind `backend "http"` running."""

import json

from holdfast.team import WARM_UP
from holdfast_cdk.functions import FUNCTIONS
from tests.unit.infra.conftest import Synthesized


def test_every_five_minutes_the_aliases_that_the_api_invokes_get_the_constant_by_a_permission_of_this_rule(
    default: Synthesized,
) -> None:
    ((name, resource),) = default.resources("AWS::Events::Rule").items()
    rule = default.resolve(resource["Properties"])
    api = [default.resources(f"AWS::ApiGatewayV2::{kind}") for kind in ("Integration", "Authorizer")]
    permissions = [
        default.resolve(one["Properties"]) for one in default.resources("AWS::Lambda::Permission").values()
    ]

    assert rule["ScheduleExpression"] == "rate(5 minutes)"
    assert [target["Id"] for target in rule["Targets"]] == [
        spec.construct_id for spec in FUNCTIONS if spec.kept_warm
    ]
    for target in rule["Targets"]:
        alias = default.template["Resources"][target["Arn"].strip("<>")]
        assert (alias["Type"], alias["Properties"]["Name"]) == ("AWS::Lambda::Alias", "live")
        assert target["Arn"] in json.dumps(default.resolve(api))
        assert json.loads(target["Input"]) == WARM_UP
    assert [one for one in permissions if one["Principal"] == "events.amazonaws.com"] == [
        {
            "Action": "lambda:InvokeFunction",
            "FunctionName": target["Arn"],
            "Principal": "events.amazonaws.com",
            "SourceArn": f"<{name}.Arn>",
        }
        for target in rule["Targets"]
    ]


def test_without_the_setting_there_is_no_schedule(settled: Synthesized) -> None:
    assert "KeepWarm" not in json.dumps(settled.template)

"""The schedule of the function `watch`, and who may read its secret."""

from tests.support.iam_policy import ACCOUNT, REGION, Request, bucket_policy, evaluate
from tests.unit.infra.conftest import Synthesized


def test_the_function_runs_every_hour_by_a_permission_of_this_rule(settled: Synthesized) -> None:
    ((name, resource),) = settled.resources("AWS::Events::Rule").items()
    rule = settled.resolve(resource["Properties"])
    (target,) = rule["Targets"]
    permissions = [
        settled.resolve(one["Properties"]) for one in settled.resources("AWS::Lambda::Permission").values()
    ]

    # A rate begins when the stack was deployed, and drifts: 6 o'clock could have two looks, or none.
    assert rule["ScheduleExpression"] == "cron(30 * * * ? *)"
    assert settled.template["Resources"][target["Arn"].strip("<>")]["Type"] == "AWS::Lambda::Alias"
    assert [one["FunctionName"] for one in permissions if one.get("SourceArn") == f"<{name}.Arn>"] == [
        target["Arn"]
    ]


def test_the_stack_says_from_which_age_the_function_finds_a_lock(settled: Synthesized) -> None:
    (function,) = (
        one["Properties"]
        for one in settled.resources("AWS::Lambda::Function").values()
        if one["Properties"]["Handler"] == "watch.handler.handle"
    )
    assert (
        settled.template["Outputs"]["Watched"]["Value"]
        == function["Environment"]["Variables"]["HOLDFAST_OLD_LOCK"]
    )


def test_the_bucket_lets_one_role_alone_read_the_probes_secret(settled: Synthesized) -> None:
    policy = bucket_policy(settled.template)
    (role,) = (name for name in settled.resources("AWS::IAM::Role") if name.startswith("FunctionsWatch"))
    own = f"arn:aws:iam::{ACCOUNT}:role/{role.lower()}"
    bucket = f"arn:aws:s3:::holdfast-ops-{ACCOUNT}-{REGION}"
    tls = {"aws:SecureTransport": "true", "s3:TlsVersion": "1.3"}

    def effect(action: str, key: str, caller: str) -> str:
        return evaluate(
            policy, Request(action, f"{bucket}/{key}", caller, {**tls, "aws:PrincipalArn": caller})
        )

    for action in ("s3:GetObject", "s3:GetObjectVersion"):
        assert effect(action, "watch/a.json", own) == "nothing"
        assert effect(action, "watch/a.json", f"{own}-other") == "deny"
        assert effect(action, "tokens/a.json", f"{own}-other") == "nothing"


def test_without_the_setting_nothing_of_it_is_there(default: Synthesized) -> None:
    assert "atch" not in "".join(default.template["Resources"])
    assert "watch" not in str(default.template)

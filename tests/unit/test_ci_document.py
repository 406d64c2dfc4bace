"""docs/use/ci.md: its trust records are for its jobs, and its pipelines sign in."""

import re
import subprocess
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import pytest
import yaml

from holdfast.access import Grant, Role
from holdfast.identity import trust
from holdfast_cli.commands.table import parser
from tests.support import api_stub
from tests.support.action import ACTION
from tests.support.api_stub import Reply, made, session
from tests.support.ci_document import (
    ADDRESS,
    GITLAB_MAIN,
    MERGE_REQUEST,
    PULL_REQUEST,
    PUSH,
    REPOSITORY,
    SIGN_IN,
    TARGET,
    blocks,
    pipeline,
    trust_commands,
)
from tests.support.pages import page, text

GITHUB = "https://token.actions.githubusercontent.com"
GITLAB = "https://gitlab.com"
TEXT = text(page("ci.md"))


def records() -> Iterator[trust.OidcTrust]:
    """Yield the trust records that the page's commands create, by the command's own rules."""
    for command in trust_commands():
        typed = parser().parse_args(command)
        yield trust.new_oidc(
            typed.name,
            issuer=typed.issuer,
            audience=ADDRESS,
            claims=dict(claim.split("=", 1) if isinstance(claim, str) else claim for claim in typed.claim),
            grants=[Grant(Role(typed.role), tuple(typed.scope))],
            description="",
            created_by="a test",
            now=datetime.now(UTC),
        )


@pytest.mark.parametrize(
    ("issuer", "claims", "name"),
    [
        (GITHUB, PUSH, "network-main"),
        (GITHUB, PULL_REQUEST, "network-pull-requests"),
        (GITHUB, {**PULL_REQUEST, "environment": "dev"}, "network-pull-requests"),
        (GITHUB, {**PUSH, "environment": "dev"}, "network-dev"),
        (GITHUB, {**PUSH, "environment": "prod"}, "network-prod"),
        (GITHUB, {**PUSH, "environment": "test"}, "network-main"),
        (GITHUB, TARGET, None),
        (GITHUB, {**TARGET, "environment": "prod"}, None),
        (GITHUB, {**PUSH, "ref": "refs/heads/other"}, None),
        (GITHUB, {**PUSH, "repository": "mallory/network"}, None),
        (GITHUB, REPOSITORY, None),
        (GITLAB, GITLAB_MAIN, "network-gitlab-main"),
        (GITLAB, {**GITLAB_MAIN, "ref": "other"}, None),
        (GITLAB, {**GITLAB_MAIN, "ref_protected": "false"}, None),
        (GITLAB, MERGE_REQUEST, "network-gitlab-plan"),
        (GITLAB, {**MERGE_REQUEST, "project_path": "mallory/network"}, None),
    ],
)
def test_each_job_signs_in_by_the_record_that_the_page_has_for_it(
    issuer: str, claims: Mapping[str, str], name: str | None
) -> None:
    found = trust.Records(tuple(records())).for_claims({"iss": issuer, "aud": ADDRESS, **claims})

    assert (found and found.name) == name


def test_the_page_names_each_issuer_for_which_a_claim_about_the_owner_is_demanded() -> None:
    [sentence] = re.findall(
        r"customers\. (Among them are .*?\. For these five), `holdfast trust create` demands",
        TEXT.replace("\n", " "),
    )
    named = re.findall("`(https://[^`]+)`", sentence)

    assert set(named) == trust._OWNER_CLAIMS.keys()  # noqa: SLF001
    assert len(named) == 5


def test_the_records_of_jobs_that_plan_cannot_write() -> None:
    roles = {record.name: [grant.role for grant in record.grants] for record in records()}

    assert roles.pop("network-pull-requests") == roles.pop("network-gitlab-plan") == [Role.READER]
    assert {role for granted in roles.values() for role in granted} == {Role.WRITER}


def test_every_yaml_of_the_page_is_a_pipeline_that_signs_in() -> None:
    both = TEXT + text(page("sign-in.md"))
    documents = [
        yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```", both, re.MULTILINE | re.DOTALL)
    ]

    assert len(documents) == both.count("```yaml") == 7
    for document in documents:
        assert SIGN_IN.search(str(document)) or re.search(
            "/sessions|holdfast (run|login)|id_tokens", str(document)
        )


def test_a_job_that_cannot_write_the_state_keeps_errored_tfstate() -> None:
    jobs = [
        pipeline(heading)["jobs"]["apply"]
        for heading in ("### Apply on a push", "### One job per environment")
    ]

    for job in jobs:
        *_, applies, keeps = job["steps"]
        assert applies["run"].startswith("terraform apply ")
        assert keeps["if"] == "(failure() || cancelled()) && hashFiles('**/errored.tfstate') != ''"
        assert keeps["with"]["path"] == "**/errored.tfstate"
    of_a_matrix = jobs[1]["steps"][-1]["with"]["name"]
    assert all(f"matrix.{name}" in of_a_matrix for name in jobs[1]["strategy"]["matrix"])
    artifacts = pipeline("## GitLab CI")["apply"]["artifacts"]
    assert (artifacts["when"], artifacts["paths"]) == ("on_failure", ["**/errored.tfstate"])


@pytest.mark.parametrize("heading", ["### Plan a pull request", "## GitLab CI"])
def test_a_job_of_a_change_plans_without_a_lock_and_does_not_apply(heading: str) -> None:
    document = pipeline(heading)
    job = document.get("jobs", document)["plan"]
    lines = [step.get("run", "") for step in job["steps"]] if "steps" in job else job["script"]

    assert "terraform plan -input=false -lock=false" in lines
    assert not [line for line in lines if "apply" in line]


def test_the_page_has_each_input_of_the_action() -> None:
    _, _, rest = TEXT.partition("| Input | Write |\n| --- | --- |\n")
    assert re.findall(r"^\| `([a-z-]+)` \|", rest.partition("\n\n")[0], re.MULTILINE) == [*ACTION["inputs"]]


def without_the_action() -> str:
    [script] = [
        step["run"] for step in pipeline("### Without the action")["jobs"]["apply"]["steps"] if "name" in step
    ]
    return str(script)


@pytest.mark.parametrize("script", [without_the_action(), blocks("## Any other OIDC issuer", "sh")[0]])
def test_a_script_signs_in_after_a_429(script: str) -> None:
    (signs_in,) = (line for line in script.splitlines() if line.startswith("session="))
    with api_stub.running() as stub:
        stub.reply(Reply(429, b'{"message":"Too Many Requests"}'), made(session()))
        typed = f"HOLDFAST_ADDRESS={stub.address} id_token=x ID_TOKEN=x; {signs_in}; jq -er .id <<< $session"
        subprocess.run(["bash", "-euc", typed], check=True, capture_output=True, timeout=60)

    assert [asked.path for asked in stub.asked] == ["/sessions"] * 2


def test_the_variable_for_cloud_is_named_after_the_host() -> None:
    (line,) = (line for line in without_the_action().splitlines() if line.startswith("host="))
    done = subprocess.run(
        ["bash", "-euc", f"{line}; echo TF_TOKEN_$host"],
        env={"HOLDFAST_ADDRESS": ADDRESS, "PATH": "/usr/bin:/bin"},
        check=True,
        capture_output=True,
        text=True,
    )

    assert done.stdout == "TF_TOKEN_abc123_execute__api_eu__central__1_amazonaws_com\n"

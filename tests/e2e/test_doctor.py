"""`holdfast doctor --team` on deployed stacks, without a fault and with each deliberate fault."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from local_aws.server import LocalAws
from tests.support import forked_command
from tests.support.deployed import client, policy, stack
from tests.support.http_client import Credentials
from tests.support.permissions_judged import Roles
from tests.support.team import Team
from tests.support.waiting import HANGS

Problems = Mapping[str, list[str]]
"""The texts of the problems, by check."""


def doctor(team: Team, credentials: Credentials | None = None, *options: str, **environment: str) -> Any:
    """Run the command with a token of a team, or without, and return its findings."""
    variables = {**team.environment, **environment}
    if credentials:
        variables |= {"TF_HTTP_USERNAME": credentials.username, "TF_HTTP_PASSWORD": credentials.password}
    done = forked_command.run(["doctor", "--team", team.name, "--json", *options], variables, timeout=HANGS)
    found = json.loads(done.stdout)
    assert done.returncode == (1 if found["summary"]["problem"] else 0), done.stderr
    if credentials:
        assert credentials.password not in done.stdout + done.stderr
    return found["findings"]


def problems(findings: Any) -> Problems:
    """Return the problems among the findings. Each must say what to do."""
    found: dict[str, list[str]] = {}
    for finding in findings:
        if finding["level"] == "problem":
            assert finding["do"], finding
            found.setdefault(finding["check"], []).append(finding["text"])
    return found


def notes(findings: Any) -> set[str]:
    """The checks that have a note."""
    return {finding["check"] for finding in findings if finding["level"] == "note"}


def probe_token(team: Team) -> Credentials:
    """The token that the command asks for."""
    return team.token("writer", "holdfast-doctor/*")


@contextmanager
def faults(aws: LocalAws, team: Team, roles: Roles) -> Iterator[None]:
    """Change roles and bucket past CloudFormation within the context."""
    iam, s3 = client(aws, "iam"), team.s3
    backend, authorizer = roles[team.name, "backend"], roles[team.name, "authorizer"]
    staging = team.staging_bucket
    allowed = {"Sid": "ReadAll", "Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}
    whole = s3.get_bucket_policy(Bucket=team.bucket)["Policy"]
    fewer = [one for one in json.loads(whole)["Statement"] if one["Sid"] != "RefuseToDeleteRecordVersions"]
    access = s3.get_public_access_block(Bucket=team.bucket)["PublicAccessBlockConfiguration"]
    encryption = s3.get_bucket_encryption(Bucket=team.bucket)["ServerSideEncryptionConfiguration"]
    plain: Any = {"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]}
    rules: Any = s3.get_bucket_lifecycle_configuration(Bucket=staging)["Rules"]
    tls = s3.get_bucket_policy(Bucket=staging)["Policy"]
    managed = iam.create_policy(PolicyName=f"{team.name}-extra", PolicyDocument=policy(allowed))["Policy"]
    with ExitStack() as undo:
        undo.callback(iam.delete_policy, PolicyArn=managed["Arn"])
        undo.enter_context(backend.having([*backend.statements, allowed]))
        undo.enter_context(authorizer.having(authorizer.statements[1:]))
        session = roles[team.name, "sessions"].name
        iam.attach_role_policy(RoleName=session, PolicyArn=managed["Arn"])
        undo.callback(iam.detach_role_policy, RoleName=session, PolicyArn=managed["Arn"])
        s3.put_bucket_policy(Bucket=team.bucket, Policy=policy(*fewer))
        undo.callback(s3.put_bucket_policy, Bucket=team.bucket, Policy=whole)
        s3.put_public_access_block(
            Bucket=team.bucket, PublicAccessBlockConfiguration={**access, "BlockPublicPolicy": False}
        )
        undo.callback(s3.put_public_access_block, Bucket=team.bucket, PublicAccessBlockConfiguration=access)
        s3.put_bucket_encryption(Bucket=team.bucket, ServerSideEncryptionConfiguration=plain)
        undo.callback(
            s3.put_bucket_encryption, Bucket=team.bucket, ServerSideEncryptionConfiguration=encryption
        )
        s3.delete_bucket_lifecycle(Bucket=staging)
        undo.callback(
            s3.put_bucket_lifecycle_configuration, Bucket=staging, LifecycleConfiguration={"Rules": rules}
        )
        s3.delete_bucket_policy(Bucket=staging)
        undo.callback(s3.put_bucket_policy, Bucket=staging, Policy=tls)
        yield


# --- without a fault --------------------------------------------------------------------------------


def test_a_team_as_it_was_deployed_has_no_problem_and_nothing_is_left(strict: Team) -> None:
    token = probe_token(strict)
    with strict.unchanged():
        findings = doctor(strict, token)

    assert problems(findings) == {}
    # The local AWS has no termination protection for stacks.
    assert notes(findings) == {"stack.termination_protection", "api.verbs"}
    assert {"roles", "bucket.policy", "s3.delete", "api.delete_body", "api.release", "api.removed"} | {
        "staging_bucket.lifecycle",
        "staging_bucket.policy",
        "api.discovery",
        "api.cloud",
    } <= {finding["check"] for finding in findings}


def test_a_team_that_takes_writes_without_a_lock_is_told_so(loose: Team) -> None:
    token = probe_token(loose)
    with loose.unchanged():
        findings = doctor(loose, token)

    assert problems(findings) == {}
    assert "api.lock_required" in notes(findings)


def test_nothing_is_written_where_it_could_not_be_removed(whole: Team) -> None:
    token = probe_token(whole)
    with whole.unchanged():
        findings = doctor(whole, token)

    assert problems(findings) == {}
    assert {"s3", "api.write"} <= notes(findings)


def test_without_a_token_the_api_is_tried_without_and_the_way_to_one_is_told(kept: Team) -> None:
    with kept.unchanged():
        findings = doctor(kept)

    assert problems(findings) == {}
    [note] = [finding for finding in findings if finding["check"] == "api.credentials"]
    assert f"holdfast token create --team {kept.name} --role writer --scope 'holdfast-doctor/*'" in note["do"]


# --- with one ---------------------------------------------------------------------------------------


def test_what_was_changed_past_cloudformation_is_named(aws: LocalAws, strict: Team, roles: Roles) -> None:
    names = {function: roles["strict", function].name for function in ("backend", "authorizer", "sessions")}
    extra = "arn:aws:iam::000000000000:policy/strict-extra"
    with faults(aws, strict, roles):
        found = problems(doctor(strict))

    assert sorted(found["roles"]) == sorted(
        [
            f"In the role {names['backend']} the statement ReadAll is not in the template.",
            f"In the role {names['authorizer']} the statement ReadRecords is missing.",
            f"In the role {names['sessions']} the managed policy {extra} is attached, but it is not in the "
            "template.",
        ]
    )
    assert found["bucket.policy"] == [
        "In the policy of the bucket the statement RefuseToDeleteRecordVersions is missing."
    ]
    assert found.keys() == {
        *("roles", "bucket.policy", "bucket.public_access", "bucket.encryption"),
        *("staging_bucket.lifecycle", "staging_bucket.policy"),
    }


def test_a_bucket_whose_versioning_is_suspended_is_found(loose: Team) -> None:
    def version(status: Any) -> None:
        loose.s3.put_bucket_versioning(Bucket=loose.bucket, VersioningConfiguration={"Status": status})

    version("Suspended")
    try:
        found = problems(doctor(loose))
    finally:
        version("Enabled")

    assert found.keys() == {"bucket.versioning", "s3.versioning", "s3.remove_version"}


def test_an_api_that_loses_the_body_of_a_delete_is_found(strict: Team) -> None:
    token = probe_token(strict)
    with strict.gateway.dropping_delete_bodies(), strict.unchanged():
        found = problems(doctor(strict, token, "--address", strict.gateway.address))

    assert found.keys() == {"api.delete_body"}
    assert "The body of a DELETE request may not reach the API" in found["api.delete_body"][0]


def test_an_api_that_loses_content_md5_is_worth_a_note(strict: Team) -> None:
    token = probe_token(strict)
    with strict.gateway.dropping("POST", "content-md5"), strict.unchanged():
        findings = doctor(strict, token, "--address", strict.gateway.address)

    assert "api.content_md5" in notes(findings)
    assert problems(findings) == {}


def test_credentials_that_are_wrong_or_may_not_lock_are_found(strict: Team) -> None:
    wrong = replace(probe_token(strict), password="holdfast_" + "0" * 49)
    with strict.unchanged():
        for credentials, says in ((wrong, ""), (strict.token("reader"), "may not write")):
            found = problems(doctor(strict, credentials))
            assert found.keys() == {"api.credentials"}
            assert says in found["api.credentials"][0]


def test_a_team_without_a_stack_is_found(aws: LocalAws, strict: Team) -> None:
    assert stack(aws, "strict").bucket == strict.bucket
    nobody = replace(strict, name="nobody")

    assert problems(doctor(nobody)).keys() == {"stack"}

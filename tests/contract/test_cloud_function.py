"""The function behind `cloud {}`, from event to response, on a real S3 server."""

import base64
import gzip
import json
import re
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import urllib3

from holdfast.access import Caller, Grant, Role
from holdfast.cloud import workspaces
from holdfast.cloud.ids import OutputId, UploadId, VersionId, WorkspaceId
from holdfast.names import parse
from tests.contract.cloud_api import (
    BY_NAME,
    ORGANIZATION,
    STATE_KEY,
    WORKSPACE,
    WS,
    announced,
    ask,
    binding,
    commit,
    create,
    created,
    data,
    download,
    error,
    is_now,
    keys,
    locked,
    opened,
    put,
    tag,
    unlock,
    upload,
    uploaded,
    versions,
    write,
)
from tests.contract.conftest import CLOUD_BUCKET, CLOUD_STAGING, ONLY_OUTPUTS, READER, Handle, Server
from tests.support.access_calls import CALLS, CLOUD
from tests.support.documents import (
    ADA,
    BOB,
    LINEAGE,
    OPERATOR,
    blank_state,
    encrypted_state,
    old_state,
    state,
)


def test_the_life_of_a_state(cloud: Handle, moto: Server) -> None:
    assert error(ask(cloud, "GET", BY_NAME)) == (404, "no_workspace")
    workspace = created(cloud)
    assert error(ask(cloud, "GET", f"workspaces/{workspace}/current-state-version")) == (404, "no_state")
    assert data(ask(cloud, "GET", f"workspaces/{workspace}/current-state-version-outputs")) == []
    assert data(ask(cloud, "POST", f"workspaces/{workspace}/actions/lock"))["attributes"]["locked"]
    body = state(1)
    version = upload(cloud, workspace, body)
    put(version["attributes"]["hosted-state-upload-url"], body)
    put(version["attributes"]["hosted-json-state-upload-url"], b"{}")
    assert data(commit(cloud, version["id"]))["id"] == version["id"]
    assert keys(moto, CLOUD_STAGING) == []
    assert data(unlock(cloud, workspace))["attributes"]["locked"] is False
    current = data(ask(cloud, "GET", f"workspaces/{opened(cloud)}/current-state-version"))
    assert current["attributes"]["serial"] == 1
    assert is_now(current["attributes"]["created-at"])
    assert data(ask(cloud, "GET", f"state-versions/{current['id']}")) == current
    read = download(cloud, current)
    assert (read["statusCode"], read["body"].encode()) == (200, body)
    assert keys(moto) == ["states/network/prod.tfstate", "workspaces/network/prod.json"]


def test_the_service_describes_itself_to_clients_of_every_version(cloud: Handle) -> None:
    ping = ask(cloud, "GET", "ping")
    assert (ping["statusCode"], ping["body"]) == (204, "")
    assert ping["headers"]["TFP-API-Version"] == "2.5"
    assert ping["headers"]["TFP-AppName"] == "HCP Terraform"
    entitlements = data(ask(cloud, "GET", f"{ORGANIZATION}/entitlement-set"))
    assert (entitlements["type"], entitlements["attributes"]["operations"]) == ("entitlement-sets", False)
    assert data(ask(cloud, "GET", f"{ORGANIZATION}/projects")) == []
    assert data(ask(cloud, "GET", "account/details"))["attributes"] == {"username": "token:ada"}


def test_every_document_says_how_often_an_apply_saves_also_an_error(cloud: Handle) -> None:
    path = f"workspaces/{created(cloud)}"
    for answer in (ask(cloud, "GET", path), ask(cloud, "GET", f"{path}/current-state-version")):
        assert answer["headers"]["X-Terraform-Snapshot-Interval"] == "20"


@pytest.mark.parametrize("role", Role)
def test_a_workspace_says_what_its_reader_may_do(cloud: Handle, role: Role) -> None:
    created(cloud)
    found = data(ask(cloud, "GET", BY_NAME, Caller("token:x", (Grant(role, ("network/*",)),))))["attributes"]
    permissions = found.pop("permissions")
    assert is_now(found.pop("created-at"))
    assert found == {
        "name": "prod",
        "execution-mode": "local",
        "operations": False,
        "locked": False,
        "terraform-version": "latest",
        "tag-names": [],
    }
    may_write = role in (Role.WRITER, Role.MAINTAINER)
    writer = {"can-update", "can-lock", "can-unlock", "can-force-unlock"} if may_write else set()
    maintainer = {"can-destroy", "can-force-delete"} if role is Role.MAINTAINER else set()
    granted = {name for name, may in permissions.items() if may}
    assert granted == {"can-read-settings", *writer, *maintainer}
    assert isinstance(permissions["can-force-delete"], bool), "clients delete without looking"


def test_tags_come_as_list_and_as_map_and_filter_the_workspaces(cloud: Handle) -> None:
    for name, relations in {
        "prod": {"tag-bindings": {"data": [binding("env", "prod"), binding("app")]}},
        "eu:dev": {"tags": {"data": [tag("app")]}, "tag-bindings": None},
    }.items():
        document = {"type": "workspaces", "attributes": {"name": name}, "relationships": relations}
        data(ask(cloud, "POST", f"{ORGANIZATION}/workspaces", ADA, document), 201)
    workspace = opened(cloud)
    bindings, tags = f"workspaces/{workspace}/tag-bindings", f"workspaces/{workspace}/relationships/tags"
    assert ask(cloud, "POST", tags, ADA, [tag("env"), tag("x")])["statusCode"] == 204  # env keeps its value
    changed = data(ask(cloud, "PATCH", bindings, ADA, [binding("team", "a")]))
    assert changed == data(ask(cloud, "GET", bindings))
    assert {one["attributes"]["key"]: one["attributes"]["value"] for one in changed} == {
        "app": "",
        "env": "prod",
        "team": "a",
        "x": "",
    }
    assert ask(cloud, "DELETE", tags, ADA, [tag("x"), tag("team")])["statusCode"] == 204
    assert data(ask(cloud, "GET", BY_NAME))["attributes"]["tag-names"] == ["app", "env"]

    def listed(**query: str) -> list[str]:
        found = data(ask(cloud, "GET", f"{ORGANIZATION}/workspaces", query=query))
        return [one["attributes"]["name"] for one in found]

    assert listed() == ["eu:dev", "prod"]
    assert listed(**{"search[name]": "u:d"}) == ["eu:dev"]
    assert listed(**{"search[tags]": "app"}) == ["eu:dev", "prod"]
    assert listed(**{"search[tags]": "app,env"}) == ["prod"]
    assert listed(**{"filter[tagged][0][key]": "env", "filter[tagged][0][value]": "prod"}) == ["prod"]
    assert listed(**{"filter[tagged][0][key]": "env", "filter[tagged][0][value]": "dev"}) == []
    assert listed(**{"filter[project][id]": "prj-1"}) == []
    # Terraform sends a map of tags like this.
    by_map = {"filter[tagged][0][key]": "env", "filter[tagged][0][value]": "prod", "search[tags]": "env"}
    assert listed(TagBindings="{ env prod}", **by_map) == ["prod"]
    by_map["filter[tagged][0][value]"] = "dev"
    assert listed(TagBindings="{ env dev}", **by_map) == []
    assert listed(**{"filter[current-run][status]": "applied"}) == []
    assert listed(sort="-name", include="organization") == ["prod", "eu:dev"]
    page = {"page[number]": "2", "page[size]": "1"}
    answer = ask(cloud, "GET", f"{ORGANIZATION}/workspaces", query=page)
    assert [one["attributes"]["name"] for one in data(answer)] == ["prod"]
    assert json.loads(answer["body"])["meta"]["pagination"] == {
        "current-page": 2,
        "page-size": 1,
        "prev-page": 1,
        "next-page": None,
        "total-pages": 2,
        "total-count": 2,
    }


def test_a_list_leaves_out_whom_a_wildcard_or_an_excluded_tag_leaves_out(cloud: Handle, moto: Server) -> None:
    for name, tags in {"app-eu": ["app"], "app-us": ["app", "old"], "net-eu": ["old"], "new-eu": []}.items():
        relations = {"tags": {"data": [tag(one) for one in tags]}}
        document = {"type": "workspaces", "attributes": {"name": name}, "relationships": relations}
        data(ask(cloud, "POST", f"{ORGANIZATION}/workspaces", ADA, document), 201)
    # A workspace of another protocol has no tags; the tags of a damaged record cannot be read.
    moto.direct.put_object(Bucket=CLOUD_BUCKET, Key="states/network/state-eu.tfstate", Body=state(1))
    moto.direct.put_object(Bucket=CLOUD_BUCKET, Key="workspaces/network/damaged-eu.json", Body=b"{}")

    def listed(**query: str) -> list[str]:
        query = {f"search[{name.replace('_', '-')}]": value for name, value in query.items()}
        found = data(ask(cloud, "GET", f"{ORGANIZATION}/workspaces", query=query))
        return [one["attributes"]["name"] for one in found]

    everything = ["app-eu", "app-us", "damaged-eu", "net-eu", "new-eu", "state-eu"]
    assert listed(wildcard_name="*") == listed(wildcard_name="") == everything
    assert listed(wildcard_name="app-*") == ["app-eu", "app-us"]
    assert listed(wildcard_name="*-us") == ["app-us"]
    assert listed(wildcard_name="*p-*") == ["app-eu", "app-us"]
    assert listed(wildcard_name="n*-*u") == ["net-eu", "new-eu"]
    for none in ("app", "APP-*", "ne?-eu", "[n]*", "*" + "a*" * 2000):
        assert listed(wildcard_name=none) == [], none
    assert listed(exclude_tags="old") == ["app-eu", "new-eu", "state-eu"]
    assert listed(exclude_tags="app, old") == ["new-eu", "state-eu"]
    assert listed(exclude_tags="old", tags="app", wildcard_name="*-eu", name="app") == ["app-eu"]


def test_a_parameter_that_a_call_would_ignore_is_refused_by_its_name(cloud: Handle) -> None:
    calls = {(call.method, call.route.removeprefix(CLOUD)) for call in CALLS if call.route.startswith(CLOUD)}
    version = VersionId(parse("network/prod"), "v", 1)
    ids = {
        "workspace_id": WorkspaceId.mint(version.name),
        "version_id": version,
        "output_id": OutputId(version, "a"),
    }
    named = {"organization": "network", "workspace": "prod", **ids}
    for method, path in sorted((method, path.format(**named)) for method, path in calls):
        for name in ("filter[status]", "search[names]", "filter[tagged][0][kay]", "page", "x" * 300):
            refused = ask(cloud, method, path, OPERATOR, query={name: "a"})
            assert error(refused) == (400, "invalid_document"), (path, name)
            (found,) = json.loads(refused["body"])["errors"]
            assert found["source"] == {"parameter": name[:200]}
            assert name[:60] in found["detail"]
        for name in ("TagBindings", "TagBinding", "tagbindings", "TagBindings[0]"):
            answer = ask(cloud, method, path, OPERATOR, query={name: "{ env prod}"})
            if (method, path, name) != ("GET", f"{ORGANIZATION}/workspaces", "TagBindings"):
                assert error(answer) == (400, "invalid_document"), (path, name)
    query = {"filter[names]": "a", "page[number]": "1"}
    assert data(ask(cloud, "GET", f"{ORGANIZATION}/projects", query=query)) == []


def test_a_create_that_is_repeated_finds_its_own_workspace_and_nobody_elses(cloud: Handle) -> None:
    for _ in range(2):
        created(cloud)
    with_tags = {**WORKSPACE, "relationships": {"tags": {"data": [tag("app")]}}}
    for caller, document in ((BOB, WORKSPACE), (ADA, with_tags)):
        refused = ask(cloud, "POST", f"{ORGANIZATION}/workspaces", caller, document)
        assert error(refused) == (409, "workspace_exists")


def test_tags_make_no_workspace_of_an_id_whose_workspace_is_gone(cloud: Handle, moto: Server) -> None:
    for method, path in (("PATCH", "tag-bindings"), ("DELETE", "relationships/tags")):
        assert error(ask(cloud, method, f"workspaces/{WS}/{path}", ADA, []))[0] == 409
    assert keys(moto) == []


def test_a_change_of_a_workspace_that_would_not_be_kept_is_refused_by_its_name(cloud: Handle) -> None:
    path = f"workspaces/{created(cloud)}"
    # A client's attributes that are ignored, and values that the workspace already has.
    same = {"terraform-version": "1.15.5", "name": "prod", "execution-mode": "local", "vcs-repo": None}
    for kept in ({"attributes": same}, {"relationships": {"project": {"data": None}, "tags": {"data": []}}}):
        found = data(ask(cloud, "PATCH", path, ADA, {"type": "workspaces", **kept}))
        assert found["attributes"]["terraform-version"] == "latest"
    unchanged = data(ask(cloud, "GET", BY_NAME))
    whole = {name: unchanged[name] for name in ("type", "attributes", "relationships")}
    data(ask(cloud, "PATCH", path, ADA, whole))
    changes = {"name": "other", "execution-mode": "remote", "description": "", "locked": True}
    for name, value in changes.items():
        refused = ask(cloud, "PATCH", path, ADA, {"type": "workspaces", "attributes": {**same, name: value}})
        assert error(refused) == (400, "invalid_document")
        assert "renamed" in refused["body"] if name == "name" else f"'{name}'" in refused["body"]
    for relation in ({"tag-bindings": {"data": [binding("a")]}}, {"project": {"data": {"id": "prj-1"}}}):
        refused = ask(cloud, "PATCH", path, ADA, {"type": "workspaces", "relationships": relation})
        assert error(refused) == (400, "invalid_document")
        assert next(iter(relation)) in refused["body"]


def test_a_workspace_names_its_organization_and_who_holds_its_lock(cloud: Handle, moto: Server) -> None:
    organization = {"organization": {"data": {"id": "network", "type": "organizations"}}}
    mine = created(cloud)
    assert data(ask(cloud, "GET", BY_NAME))["relationships"] == organization
    locked_by = {**organization, "locked-by": {"data": {"id": "token:ada", "type": "users"}}}
    assert data(ask(cloud, "POST", f"workspaces/{mine}/actions/lock"))["relationships"] == locked_by
    for path in (BY_NAME, f"workspaces/{mine}"):
        assert data(ask(cloud, "GET", path, BOB))["relationships"] == locked_by
    assert data(unlock(cloud, mine))["relationships"] == organization
    # Another program made these: nobody knows since when the workspace is, or who holds its lock.
    moto.direct.put_object(Bucket=CLOUD_BUCKET, Key="states/network/other.tfstate", Body=b"{}")
    moto.direct.put_object(
        Bucket=CLOUD_BUCKET, Key="states/network/other.tfstate.tflock", Body=b'{"ID": "x"}'
    )
    other = data(ask(cloud, "GET", f"{ORGANIZATION}/workspaces/other"))
    assert (other["attributes"]["locked"], other["relationships"]) == (True, organization)
    assert "created-at" not in other["attributes"]


@pytest.mark.parametrize("written", ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00", "2026-01-01"])
def test_a_record_whose_time_is_none_is_refused_as_unreadable(
    cloud: Handle, moto: Server, written: str
) -> None:
    record = json.dumps({"tags": {}, "created_by": "x", "created": written})
    moto.direct.put_object(Bucket=CLOUD_BUCKET, Key="workspaces/network/prod.json", Body=record)
    assert error(ask(cloud, "GET", BY_NAME)) == (409, "unreadable_record")


def test_a_held_lock_is_409_names_its_holder_and_stays(cloud: Handle) -> None:
    mine = locked(cloud)
    assert data(ask(cloud, "POST", f"workspaces/{mine}/actions/lock"))["attributes"]["locked"], "a retry"
    for caller in (ADA, BOB):  # with the same token, too
        other = f"workspaces/{opened(cloud, caller)}"
        refused = ask(cloud, "POST", f"{other}/actions/lock", caller)
        assert error(refused) == (409, "locked")
        assert "the token ada" in json.loads(refused["body"])["errors"][0]["title"]
        unlocked = ask(cloud, "POST", f"{other}/actions/unlock", caller)
        assert error(unlocked) == (409, "lock_not_matched")
        # Texts on which clients act: they would try again, or say that another user's run holds it.
        assert not re.search("still pending|is locked by (Run|Team|User)", unlocked["body"])
        create = ask(cloud, "POST", f"{other}/state-versions", caller, announced(b"x"))
        assert error(create) == (409, "locked")
    assert data(ask(cloud, "GET", BY_NAME))["attributes"]["locked"]
    young = ask(cloud, "POST", f"workspaces/{opened(cloud)}/actions/force-unlock", OPERATOR)
    assert error(young) == (409, "lock_not_matched")
    assert unlock(cloud, mine)["statusCode"] == 200


def test_an_unlock_of_a_workspace_that_is_not_locked_is_409(cloud: Handle, moto: Server) -> None:
    mine = locked(cloud)
    assert unlock(cloud, mine)["statusCode"] == 200
    never = created(cloud, name="never-locked")
    for workspace in (mine, opened(cloud), never):
        refused = unlock(cloud, workspace)
        assert error(refused) == (409, "lock_not_matched")
        assert "is not locked" in json.loads(refused["body"])["errors"][0]["detail"]
        # Texts on which clients act: they would try again, or say that another user's run holds it.
        assert not re.search("still pending|is locked by (Run|Team|User)", refused["body"])
    removed = locked(cloud)
    moto.direct.delete_object(Bucket=CLOUD_BUCKET, Key=f"{STATE_KEY}.tflock")
    assert error(unlock(cloud, removed)) == (409, "lock_not_matched")
    # A force-unlock of a lock that is gone stays a success.
    seen = str(WorkspaceId(parse("network/prod"), "0" * 32, 1_700_000_000, "gone"))
    force = ask(cloud, "POST", f"workspaces/{seen}/actions/force-unlock", OPERATOR)
    assert force["statusCode"] == 200


def test_a_safe_delete_says_what_clients_look_for(cloud: Handle, moto: Server) -> None:
    by_name = f"{ORGANIZATION}/workspaces/safe"
    mine = created(cloud, name="safe")
    ask(cloud, "POST", f"workspaces/{mine}/actions/lock")
    document = {**json.loads(state(1)), "resources": [{"mode": "managed"}]}
    write(cloud, mine, json.dumps(document).encode())
    for path in (f"workspaces/{mine}", by_name):
        refused = ask(cloud, "POST", f"{path}/actions/safe-delete", OPERATOR)
        assert error(refused) == (409, "resources_tracked")
        assert not re.search("locked|being processed", refused["body"])
    write(cloud, mine, state(2), serial=2)
    refused = ask(cloud, "POST", f"{by_name}/actions/safe-delete", OPERATOR)
    assert error(refused) == (409, "locked")
    assert "locked" in json.loads(refused["body"])["errors"][0]["title"]
    unlock(cloud, mine)
    assert ask(cloud, "POST", f"{by_name}/actions/safe-delete", OPERATOR)["statusCode"] == 204
    assert error(ask(cloud, "GET", by_name)) == (404, "no_workspace")
    assert keys(moto) == []


def test_a_workspace_without_a_state_is_not_deleted_while_its_first_is_on_the_way(cloud: Handle) -> None:
    mine = locked(cloud)
    for method, path in (("DELETE", BY_NAME), ("POST", f"workspaces/{mine}/actions/safe-delete")):
        assert error(ask(cloud, method, path, OPERATOR)) == (409, "locked")
    assert ask(cloud, "GET", BY_NAME)["statusCode"] == 200


def save(cloud: Handle, workspace: str) -> None:
    """Write the first state, as an apply does."""
    ask(cloud, "POST", f"workspaces/{workspace}/actions/lock")
    write(cloud, workspace, state(1))
    unlock(cloud, workspace)


def deletes(name: str, workspace: str) -> dict[str, tuple[str, str]]:
    """The requests that delete a workspace."""
    by_name = f"{ORGANIZATION}/workspaces/{name}"
    return {
        "forced": ("DELETE", by_name),
        "safe": ("POST", f"{by_name}/actions/safe-delete"),
        "by-id": ("POST", f"workspaces/{workspace}/actions/safe-delete"),
    }


@pytest.mark.parametrize("how", ["forced", "safe", "by-id"])
@pytest.mark.parametrize("had", ["a record", "a state", "both"])
def test_a_workspace_that_was_made_anew_is_not_deleted_by_a_repeat(
    cloud: Handle, moto: Server, how: str, had: str
) -> None:
    name = f"{how}-{had[-5:].strip()}"
    state_key, record_key = f"states/network/{name}.tfstate", f"workspaces/network/{name}.json"
    mine = created(cloud, name=name)
    if had != "a record":
        save(cloud, mine)
    if had == "a state":
        version = moto.direct.head_object(Bucket=CLOUD_BUCKET, Key=record_key)["VersionId"]
        moto.direct.delete_object(Bucket=CLOUD_BUCKET, Key=record_key, VersionId=version)
    request = deletes(name, mine)[how]
    for _ in range(2):
        assert ask(cloud, *request, OPERATOR)["statusCode"] == 204
    assert keys(moto) == []
    anew = created(cloud, name=name)
    for there in ([record_key], [state_key, record_key]):
        refused = ask(cloud, *request, OPERATOR)
        assert error(refused) == (409, "just_deleted")
        # By these words the client of a safe-delete says to try again later; it looks for "locked" first.
        assert "being processed" in refused["body"]
        assert "locked" not in refused["body"]
        assert keys(moto) == there
        if there == [record_key]:
            save(cloud, anew)


@pytest.mark.parametrize("how", ["forced", "safe", "by-id"])
def test_a_repeat_deletes_the_record_that_a_delete_has_left(cloud: Handle, moto: Server, how: str) -> None:
    mine = created(cloud, name=f"left-{how}")
    save(cloud, mine)
    time.sleep(1.1)  # within a second, the record may have been created after the delete
    moto.direct.delete_object(Bucket=CLOUD_BUCKET, Key=f"states/network/left-{how}.tfstate")
    assert ask(cloud, *deletes(f"left-{how}", mine)[how], OPERATOR)["statusCode"] == 204
    assert keys(moto) == []


def test_a_retry_of_a_delete_is_recognized_for_longer_than_a_client_retries() -> None:
    """go-tfe waits 30 times; before retry `n` it waits at most `n` times 0.9 seconds."""
    assert timedelta(seconds=0.9 * sum(range(1, 31))) < workspaces.JUST_DELETED


def test_an_id_of_before_a_delete_does_not_delete_what_was_made_since(
    cloud: Handle, moto: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspaces, "JUST_DELETED", timedelta(0))
    before = created(cloud, name="dated")
    assert ask(cloud, "DELETE", f"{ORGANIZATION}/workspaces/dated", OPERATOR)["statusCode"] == 204
    time.sleep(1.1)  # times have whole seconds
    since = created(cloud, name="dated")
    for workspace, status in ((before, 409), (since, 204)):
        answer = ask(cloud, *deletes("dated", workspace)["by-id"], OPERATOR)
        assert answer["statusCode"] == status, answer
    assert keys(moto) == []


OUTPUTS = """{
  "plain": {"value": {"a": 12345678901234567890, "b": "\\u00e4"}, "type": ["object", {"a": "number"}]},
  "hidden": {"value": "secret", "type": "string", "sensitive": true},
  "flags": {"value": [true], "type": [ "tuple", ["bool"]]}, "flag": {"value": 1, "type": "odd"}
}"""


def test_outputs_come_from_the_state_sensitive_ones_one_by_one(cloud: Handle, log: list[str]) -> None:
    mine = locked(cloud)
    write(
        cloud, mine, f'{{"version": 4, "serial": 1, "lineage": "{LINEAGE}", "outputs": {OUTPUTS}}}'.encode()
    )
    for caller in (ONLY_OUTPUTS, READER):
        path = f"workspaces/{opened(cloud, caller)}/current-state-version-outputs"
        outputs = data(ask(cloud, "GET", path, caller))
        members = ("name", "sensitive", "value", "detailed-type", "type")
        plain = {"a": 12345678901234567890, "b": "\u00e4"}
        assert [output["attributes"] for output in outputs] == [
            dict(zip(members, values, strict=False))
            for values in (
                ("plain", False, plain, ["object", {"a": "number"}], "object"),
                ("hidden", True, None, "string", "string"),
                ("flags", False, [True], ["tuple", ["bool"]], "array"),
                ("flag", False, 1, "odd"),
            )
        ]
        hidden = data(ask(cloud, "GET", f"state-version-outputs/{outputs[1]['id']}", caller))
        assert hidden["attributes"]["value"] == "secret"
    whole = ask(cloud, "GET", f"workspaces/{mine}/current-state-version", ONLY_OUTPUTS)
    assert error(whole) == (403, "not_allowed")
    assert "secret" not in "".join(log)


def test_outputs_of_a_terraform_before_0_12_are_refused_with_what_to_do_and_are_not_empty(
    cloud: Handle, moto: Server
) -> None:
    moto.direct.put_object(Bucket=CLOUD_BUCKET, Key=STATE_KEY, Body=old_state())
    mine = opened(cloud, READER)
    for caller in (ONLY_OUTPUTS, READER):
        refused = ask(cloud, "GET", f"workspaces/{mine}/current-state-version-outputs", caller)
        assert error(refused) == (409, "unreadable_state")
        assert "Terraform 0.12 or later" in refused["body"]
    version = data(ask(cloud, "GET", f"workspaces/{mine}/current-state-version", READER))
    url = str(OutputId(VersionId.parse(version["id"]), "url"))
    assert error(ask(cloud, "GET", f"state-version-outputs/{url}", READER)) == (409, "unreadable_state")


def test_a_file_that_is_no_state_replaces_a_state_with_force_alone(cloud: Handle, moto: Server) -> None:
    mine = locked(cloud)
    write(cloud, mine, state(1))
    blank = blank_state(2)
    without_lineage = {"lineage": ""}
    refused = commit(cloud, uploaded(cloud, mine, blank, 2, **without_lineage))
    assert error(refused) == (409, "lineage_changed")
    assert "holdfast state delete" in refused["body"]
    at_once = {**without_lineage, "state": base64.b64encode(blank).decode()}
    assert error(create(cloud, mine, announced(blank, 2, **at_once))) == (409, "lineage_changed")
    assert versions(moto) == 1
    assert commit(cloud, uploaded(cloud, mine, blank, 2, force=True, **without_lineage))["statusCode"] == 200
    assert versions(moto) == 2


def test_of_an_encrypted_state_one_output_without_a_type_has_the_client_read_it(
    cloud: Handle, moto: Server
) -> None:
    mine = locked(cloud)
    body = encrypted_state(1, "c2VjcmV0")
    plain = b'{"hidden": "secret"}'
    more = {"lineage": json.loads(body)["lineage"], "json-state-outputs": base64.b64encode(plain).decode()}
    version = upload(cloud, mine, body, **more)
    put(version["attributes"]["hosted-state-upload-url"], body)
    put(version["attributes"]["hosted-json-state-upload-url"], plain)
    data(commit(cloud, version["id"]))
    (only,) = data(ask(cloud, "GET", f"workspaces/{mine}/current-state-version-outputs"))
    assert not {"detailed-type", "type"} & only["attributes"].keys()
    assert error(ask(cloud, "GET", f"state-version-outputs/{only['id']}")) == (409, "no_version")
    stored = [moto.direct.get_object(Bucket=CLOUD_BUCKET, Key=key)["Body"].read() for key in keys(moto)]
    assert body in stored
    assert not any(b"hidden" in one or b"aGlkZGVu" in one for one in stored)
    assert keys(moto, CLOUD_STAGING) == []


@pytest.mark.parametrize("is_large", [False, True])
def test_a_state_is_downloaded_compressed_or_by_a_redirect_to_that_very_version(
    cloud: Handle, log: list[str], is_large: bool
) -> None:
    mine = locked(cloud)
    body = state(1, content="x" * (6_500_000 if is_large else 5_000))
    write(cloud, mine, body)
    current = data(ask(cloud, "GET", f"workspaces/{mine}/current-state-version"))
    write(cloud, mine, state(2), serial=2)
    found = download(cloud, current, READER, headers={"accept-encoding": "gzip"})
    if is_large:
        assert (found["statusCode"], found["body"]) == (307, "")
        assert "X-Amz-Expires=60" in found["headers"]["Location"]
        assert urllib3.request("GET", found["headers"]["Location"]).data == body
    else:
        assert found["headers"]["Content-Encoding"] == "gzip"
        assert gzip.decompress(base64.b64decode(found["body"])) == body
    assert json.loads(log[-1])["message"] == "state.read"
    assert "X-Amz-" not in "".join(log)


def test_an_address_is_on_the_api_and_not_where_a_header_says_that_it_is(cloud: Handle) -> None:
    mine = locked(cloud)
    write(cloud, mine, state(1))
    other = dict.fromkeys(("host", "x-forwarded-host", "x-amzn-remapped-host"), "elsewhere.example")
    found = {**other, "forwarded": "host=elsewhere.example", "x-forwarded-proto": "http"}
    current = ask(cloud, "GET", f"workspaces/{mine}/current-state-version", headers=found)
    version = data(current)
    again = ask(cloud, "GET", f"state-versions/{version['id']}", headers=found)
    for answer in (current, again):
        assert "elsewhere" not in answer["body"]
        assert download(cloud, data(answer))["body"].encode() == state(1)


# Uploads that differ from their announcement. None is written.


def test_an_upload_that_never_comes_is_refused(cloud: Handle, moto: Server) -> None:
    version = upload(cloud, locked(cloud), state(1))
    refused = commit(cloud, version["id"])
    assert error(refused) == (409, "upload_missing")
    assert "terraform force-unlock network/prod" in refused["body"]
    assert versions(moto) == 0


@pytest.mark.parametrize(
    ("announcement", "sent", "refusal"),
    [
        pytest.param(announced(state(1)), state(1)[:-5], (409, "upload_altered"), id="shorter"),
        pytest.param(announced(state(1)), state(1) + b" ", (409, "upload_altered"), id="longer"),
        pytest.param(announced(state(1)), state(1, content="x"), (409, "upload_altered"), id="other"),
        pytest.param(announced(state(1)), b"", (409, "upload_altered"), id="empty"),
        pytest.param(announced(state(1)), b"x" * 7_000_001, (413, "too_large"), id="too large"),
        pytest.param(announced(state(1), serial=2), state(1), (409, "upload_altered"), id="serial"),
        pytest.param(announced(state(1), lineage="x"), state(1), (409, "upload_altered"), id="lineage"),
        pytest.param(announced(b"[]"), b"[]", (400, "invalid_state"), id="no state"),
    ],
)
def test_an_upload_that_is_not_what_was_announced_is_refused(
    cloud: Handle, moto: Server, announcement: dict[str, Any], sent: bytes, refusal: tuple[int, str]
) -> None:
    version = data(create(cloud, locked(cloud), announcement), 201)
    put(version["attributes"]["hosted-state-upload-url"], sent)
    assert error(commit(cloud, version["id"])) == refusal
    assert versions(moto) == 0


def test_a_repeated_commit_writes_once_with_and_without_the_upload(cloud: Handle, moto: Server) -> None:
    mine, body = locked(cloud), state(1)
    version = upload(cloud, mine, body)
    for _ in range(2):
        put(version["attributes"]["hosted-state-upload-url"], body)
        for _ in range(2):
            assert data(commit(cloud, version["id"]))["id"] == version["id"]
    assert versions(moto) == 1
    assert error(commit(cloud, version["id"], BOB)) == (409, "locked")
    unlock(cloud, mine)
    assert error(commit(cloud, version["id"])) == (409, "lock_lost")


def test_who_holds_the_lock_does_not_commit_what_another_principal_has_uploaded(
    cloud: Handle, moto: Server
) -> None:
    mine = locked(cloud)
    upload_id = uploaded(cloud, mine, state(1))
    unlock(cloud, mine)
    others = opened(cloud, BOB)
    ask(cloud, "POST", f"workspaces/{others}/actions/lock", BOB)
    path = f"workspaces/{others}/state-versions"
    own = UploadId.parse(data(ask(cloud, "POST", path, BOB, announced(state(1))), 201)["id"])
    with_its_key = replace(own, key=UploadId.parse(upload_id).key)
    assert error(commit(cloud, str(with_its_key), BOB)) == (409, "upload_missing")
    assert versions(moto) == 0


def test_a_commit_after_its_lock_was_lost_writes_nothing_even_under_the_same_id(
    cloud: Handle, moto: Server
) -> None:
    mine = locked(cloud)
    upload_id = uploaded(cloud, mine, state(1))
    for action in ("unlock", "lock"):  # the acquire arrives once more
        assert ask(cloud, "POST", f"workspaces/{mine}/actions/{action}")["statusCode"] == 200
        assert error(commit(cloud, upload_id)) == (409, "lock_lost")
    assert versions(moto) == 0


@pytest.mark.parametrize("force", [False, True])
def test_a_commit_on_another_base_is_refused_with_force_too(cloud: Handle, moto: Server, force: bool) -> None:
    mine = locked(cloud)
    upload_id = uploaded(cloud, mine, state(2), serial=2, force=force)
    moto.direct.put_object(Bucket=CLOUD_BUCKET, Key=STATE_KEY, Body=state(1))  # by another program
    assert error(commit(cloud, upload_id)) == (409, "base_changed")
    assert versions(moto) == 1


def test_of_two_uploads_of_a_holder_the_newer_serial_wins_unless_it_is_forced(
    cloud: Handle, moto: Server
) -> None:
    mine = locked(cloud)
    older, newer = (uploaded(cloud, mine, state(serial), serial=serial) for serial in (1, 2))
    forced = uploaded(cloud, mine, state(3), serial=3, force=True)
    data(commit(cloud, older))  # one of which the holder was told nothing, and which lands late
    data(commit(cloud, newer))
    assert error(commit(cloud, older)) == (409, "upload_missing")
    assert error(commit(cloud, forced)) == (409, "base_changed")
    late = uploaded(cloud, mine, state(4), serial=4)
    write(cloud, mine, state(5), serial=5)
    assert error(commit(cloud, late)) == (409, "serial_not_newer")
    assert versions(moto) == 3


def test_a_version_that_was_never_acknowledged_does_not_stop_the_holder(cloud: Handle, moto: Server) -> None:
    mine = locked(cloud)
    held = moto.direct.head_object(Bucket=CLOUD_BUCKET, Key=f"{STATE_KEY}.tflock")["LastModified"]
    upload_id = uploaded(cloud, mine, state(1))
    late = {"sha256": "0" * 64, "serial": "7", "lineage": LINEAGE, "lock-id": "broken"}
    written = held
    while written <= held:  # times have whole seconds
        moto.direct.put_object(Bucket=CLOUD_BUCKET, Key=STATE_KEY, Body=state(7), Metadata=late)
        written = moto.direct.head_object(Bucket=CLOUD_BUCKET, Key=STATE_KEY)["LastModified"]
    data(commit(cloud, upload_id))
    current = data(ask(cloud, "GET", f"workspaces/{mine}/current-state-version"))
    assert current["attributes"]["serial"] == 1


def test_serials_and_lineages_that_do_not_follow_are_refused_at_create_unless_forced(cloud: Handle) -> None:
    mine = locked(cloud)
    write(cloud, mine, state(2), serial=2)
    for announcement, code in (
        ({"serial": 1}, "serial_not_newer"),
        ({"serial": 2, "lineage": ""}, "serial_not_newer"),
        ({"serial": 3, "lineage": "other"}, "lineage_changed"),
    ):
        assert error(create(cloud, mine, announced(b"x", **announcement))) == (409, code)
        data(create(cloud, mine, announced(b"x", **announcement, force=True)), 201)


def test_what_was_saved_under_a_lock_may_be_announced_under_it_once_more(cloud: Handle, moto: Server) -> None:
    mine, body = locked(cloud), state(1)
    write(cloud, mine, body)
    write(cloud, mine, body)  # as an interrupted first apply does
    other = upload(cloud, mine, state(1, content="other"))
    put(other["attributes"]["hosted-state-upload-url"], state(1, content="other"))
    assert error(commit(cloud, other["id"])) == (409, "serial_not_newer")
    lineage = create(cloud, mine, announced(body, lineage="other"))
    assert error(lineage) == (409, "lineage_changed")
    unlock(cloud, mine)
    next_holder = opened(cloud)
    ask(cloud, "POST", f"workspaces/{next_holder}/actions/lock")
    assert error(create(cloud, next_holder, announced(body))) == (409, "serial_not_newer")
    assert versions(moto) == 1


def test_the_upload_in_one_step_of_older_clients_writes_the_same(cloud: Handle, moto: Server) -> None:
    mine, body = locked(cloud), state(1)
    whole = {"state": base64.b64encode(body).decode(), "json-state": "!", "json-state-outputs": "!"}
    for _ in range(2):  # a retry
        data(create(cloud, mine, announced(body, **whole)), 201)
    assert error(create(cloud, mine, announced(state(2), 2, **whole))) == (409, "upload_altered")
    large = base64.b64encode(b"x" * 7_000_001).decode()
    assert error(create(cloud, mine, announced(b"x", 2, state=large))) == (413, "too_large")
    for broken in ("!", "a", "\u00e4"):
        assert error(create(cloud, mine, announced(body, 2, state=broken))) == (400, "invalid_document")
    assert versions(moto) == 1


OF_PROD = {"filter[organization][name]": "network", "filter[workspace][name]": "prod"}


def test_a_dashboard_lists_the_versions_of_a_workspace_by_its_name_page_by_page(cloud: Handle) -> None:
    workspace = locked(cloud)
    for serial in (1, 2, 3):
        write(cloud, workspace, state(serial), serial)
    auditor = Caller("token:x", (Grant(Role.AUDITOR, ("network/*",)),))

    def listed(**page: str) -> Any:
        answer = ask(cloud, "GET", "state-versions", auditor, query={**OF_PROD, **page})
        return data(answer), json.loads(answer["body"])["meta"]["pagination"]

    every, pages = listed()
    first, of_first = listed(**{"page[size]": "2"})
    last, of_last = listed(**{"page[size]": "2", "page[number]": "2"})
    beyond, _ = listed(**{"page[number]": "999999999"})

    assert [each["attributes"]["serial"] for each in every] == [3, 2, 1]
    assert {each["attributes"]["status"] for each in every} == {"finalized"}
    current = data(ask(cloud, "GET", f"workspaces/{workspace}/current-state-version"))
    assert every[0] == current
    assert download(cloud, every[2])["body"].encode() == state(1)
    assert (pages["total-count"], pages["total-pages"], pages["next-page"]) == (3, 1, None)
    assert (first, last, beyond) == (every[:2], every[2:], [])
    assert (of_first["next-page"], of_last["prev-page"], of_last["next-page"]) == (2, 1, None)


def test_the_list_of_versions_marks_a_refused_write_on_every_page(cloud: Handle, moto: Server) -> None:
    workspace = locked(cloud)
    write(cloud, workspace, state(1))
    first = moto.direct.head_object(Bucket=CLOUD_BUCKET, Key=STATE_KEY)["Metadata"]
    # A writer that had lost the lock stored serial 2 and was refused. The next holder's version says so.
    over = {**first, "serial": "2", "over-serial": "1", "over-lineage": LINEAGE}
    for content in ("refused", "of the next holder"):
        body = state(2, content=content)
        moto.direct.put_object(Bucket=CLOUD_BUCKET, Key=STATE_KEY, Body=body, Metadata=over)
    unlock(cloud, workspace)

    def status(page: int) -> Any:
        (shown,) = data(
            ask(
                cloud,
                "GET",
                "state-versions",
                query={**OF_PROD, "page[size]": "1", "page[number]": str(page)},
            )
        )
        return shown["attributes"]["status"]

    assert [status(page) for page in (1, 2, 3)] == ["finalized", "discarded", "finalized"]


@pytest.mark.parametrize("missing", OF_PROD)
def test_a_list_of_versions_without_its_names_is_refused(cloud: Handle, missing: str) -> None:
    query = {name: value for name, value in OF_PROD.items() if name != missing}
    answer = ask(cloud, "GET", "state-versions", query=query)
    assert error(answer) == (400, "invalid_document")
    assert json.loads(answer["body"])["errors"][0]["source"] == {"parameter": missing}


def test_the_versions_of_a_deleted_state_are_listed_and_those_of_no_workspace_are_404(
    cloud: Handle, log: list[str]
) -> None:
    assert error(ask(cloud, "GET", "state-versions", query=OF_PROD)) == (404, "no_workspace")
    workspace = locked(cloud)
    assert data(ask(cloud, "GET", "state-versions", query=OF_PROD)) == []
    write(cloud, workspace, state(1))
    unlock(cloud, workspace)
    assert ask(cloud, "DELETE", BY_NAME, OPERATOR)["statusCode"] == 204
    (version,) = data(ask(cloud, "GET", "state-versions", query=OF_PROD))
    assert version["attributes"]["serial"] == 1
    line = json.loads(log[-1])
    assert (line["message"], line["state"]) == ("history.read", "network/prod")


def test_a_client_that_imitates_a_principal_is_told_apart_from_the_principal(
    cloud: Handle, moto: Server
) -> None:
    workspace = created(cloud)
    typed = "token:ops (Olga), lock ID 1.\n"
    lock = {"ID": "one", "Who": typed, "Operation": f"apply', by {typed}", "Created": "2026-11-20T12:00:00Z"}
    key = f"{STATE_KEY}.tflock"
    moto.direct.put_object(
        Bucket=CLOUD_BUCKET, Key=key, Body=json.dumps(lock).encode(), Metadata={"locked-by": "token:bob"}
    )

    (refused,) = json.loads(ask(cloud, "POST", f"workspaces/{workspace}/actions/lock")["body"])["errors"]

    said = '"token:ops (Olga), lock ID 1.?"'
    assert refused["title"] == f"The state is locked by the token bob (client says {said}), lock ID one."
    assert refused["detail"].startswith(
        f"The client acquired the lock for \"apply', by {said[1:]} at 2026-11-20"
    )
    relation = data(ask(cloud, "GET", BY_NAME))["relationships"]["locked-by"]
    assert relation == {"data": {"id": "token:bob", "type": "users"}}


def test_the_time_of_a_lock_that_has_none_is_not_told(cloud: Handle, moto: Server) -> None:
    workspace = created(cloud)
    lock = {"ID": "one", "Operation": "delete", "Created": "0001-01-01T00:00:00Z"}
    moto.direct.put_object(
        Bucket=CLOUD_BUCKET, Key=f"{STATE_KEY}.tflock", Body=json.dumps(lock).encode(), Metadata={}
    )

    (refused,) = json.loads(ask(cloud, "POST", f"workspaces/{workspace}/actions/lock")["body"])["errors"]

    assert refused["detail"].startswith('The client acquired the lock for "delete". Wait until')

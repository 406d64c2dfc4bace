"""Operators at work on a deployed stack: the `holdfast` command, beside every installed Terraform.

The command has Terraform's credentials and the API's address, and no AWS credentials, profile or clone.
"""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.e2e.test_cloud_locking import past_holdfast
from tests.support import documents
from tests.support.cloud_client import place
from tests.support.operators import NewOperator
from tests.support.project import WAITS, NewProject, backend, cloud
from tests.support.team import Team
from tests.support.waiting import wait_until

REASON = "wrong subnets, see INC-42"


SUBNET = 'resource "terraform_data" "subnet" { input = "10.0.1.0/24" }\n'
GATEWAY = 'resource "terraform_data" "gateway" { input = "in 10.0.1.0/24" }\n'
MAKES = 'resource "terraform_data" "x" {\n  provisioner "local-exec" {\n    command = ": > made"\n  }\n}\n'


def test_every_client_prints_why_a_state_is_frozen_and_only_unfreeze_lifts_it(
    loose: Team, state: str, new_project: NewProject, operator: NewOperator
) -> None:
    maintainer = operator(loose, "maintainer")
    http, remote = (
        new_project.ready(loose, None, loose.token("maintainer"), main=SUBNET, backend=block)
        for block in (backend(loose, state), cloud(loose, state))
    )
    s3 = past_holdfast(new_project, loose, state, SUBNET, locks=True)
    http.ok("apply", "-auto-approve")

    maintainer.ok("state", "freeze", state, "--reason", REASON)

    with loose.unchanged():
        for project in (http, remote, s3):
            said = project.refused("plan")
            assert f"frozen: {REASON}" in said or ("Frozen" in said and REASON in said), said
        [held] = maintainer.json("lock", "list", state)
        assert (held["freeze"]["reason"], held["freeze"]["by"]) == (REASON, maintainer.principal)
        http.refused("force-unlock", "-force", held["id"])
        remote.refused("force-unlock", "-force", "/".join(place(state)))
        assert "holdfast state unfreeze" in maintainer.refused("lock", "break", state, held["id"])
        assert REASON in maintainer.refused("state", "delete", state, "--yes")
        assert http.run("plan", "-lock=false", "-detailed-exitcode").code == 0

    maintainer.ok("state", "unfreeze", state)
    assert loose.lock(state) is None
    assert remote.run("plan", "-detailed-exitcode").code == 0


def test_a_state_goes_back_and_a_plan_shows_the_difference(
    strict: Team, state: str, one_project: NewProject, operator: NewOperator
) -> None:
    reader, maintainer = operator(strict, "reader"), operator(strict, "maintainer")
    project = one_project.applied(strict, state, strict.token("writer"), main=SUBNET)
    project.write(gateway=GATEWAY)
    project.ok("apply", "-auto-approve")
    first, second = strict.versions(state)

    history = reader.json("state", "history", state)
    assert [(version["version"], version["status"]) for version in history] == [
        (second.id, "acknowledged"),
        (first.id, "acknowledged"),
    ]
    assert "terraform_data.gateway" in reader.ok("state", "diff", state)
    assert "10.0.1.0" not in reader.ok("state", "diff", state)
    assert "in 10.0.1.0/24" in reader.ok("state", "diff", state, "--show-values")
    restored = maintainer.json("state", "restore", state, f"@{first.serial}", "--reason", REASON)

    assert restored["restored_from"] == first.id
    *_, newest = strict.versions(state)
    assert (newest.id, newest.serial) == (restored["version"], second.serial + 1)
    old, new = (f'"serial": {version.serial},'.encode() for version in (first, newest))
    assert newest.body == first.body.replace(old, new)
    assert reader.json("state", "history", state)[0]["reason"] == REASON
    assert project.run("plan", "-detailed-exitcode").code == 2
    with strict.unchanged():
        again = maintainer.json("state", "restore", state, first.id, "--reason", "once more")
    assert (again["changed"], again["version"]) == (False, newest.id)
    maintainer.ok("state", "restore", state, second.id, "--reason", "the other way")
    assert project.run("plan", "-detailed-exitcode").code == 0


def test_a_restore_under_ones_own_freeze_lets_nobody_write_before_meanwhile_or_afterwards(
    strict: Team, state: str, one_project: NewProject, operator: NewOperator
) -> None:
    maintainer, writer = operator(strict, "maintainer"), strict.client("writer")
    project = one_project.applied(strict, state, strict.token("writer"), main=SUBNET)
    project.write(gateway=GATEWAY)
    project.ok("apply", "-auto-approve")
    first, second = strict.versions(state)
    maintainer.ok("state", "freeze", state, "--reason", REASON)
    [held] = maintainer.json("lock", "list", state)
    freeze, info = held["freeze"]["id"], documents.lock_info()
    restore = ("state", "restore", state, first.id, "--reason", "undo")
    with strict.unchanged():
        assert REASON in project.refused("apply", "-auto-approve")
        assert REASON in maintainer.refused(*restore)
        assert REASON in maintainer.refused(*restore, "--frozen", "0" * 32)

    with ThreadPoolExecutor() as threads:
        restoring = threads.submit(maintainer.json, *restore, "--frozen", freeze)
        meanwhile = []
        while not restoring.done():
            meanwhile.append(writer.lock(state, info).status)

    assert set(meanwhile) == {423}
    *earlier, newest = strict.versions(state)
    assert earlier == [first, second]
    assert (newest.id, newest.serial) == (restoring.result()["version"], second.serial + 1)
    # The lock is the same version, so nobody removed or replaced it.
    assert maintainer.json("lock", "list", state) == [held]
    with strict.unchanged():
        assert REASON in project.refused("apply", "-auto-approve")
        assert writer.write(state, documents.next_serial(newest.body), quote(held["id"])).status == 423
    maintainer.ok("state", "unfreeze", state)
    assert project.run("plan", "-detailed-exitcode").code == 2


@pytest.mark.parametrize("block", [backend, cloud], ids=["http", "cloud"])
def test_a_wrong_migration_is_undone_by_a_push_that_fits_no_saved_plan(
    strict: Team, state: str, new_project: NewProject, operator: NewOperator, block: Callable[..., str]
) -> None:
    maintainer = operator(strict, "maintainer")
    project = new_project.applied(
        strict, None, strict.token("writer"), main=SUBNET, backend=block(strict, state)
    )
    project.write(gateway=GATEWAY)
    project.ok("plan", "-out=saved")
    (project.folder / "gateway.tf").unlink()
    [old] = strict.versions(state)
    wrong = new_project.applied(strict, None, strict.token("maintainer"), main=GATEWAY)
    wrong.write(backend=backend(strict, state))
    wrong.ok("init", "-migrate-state", "-force-copy")
    _, moved = strict.versions(state)
    assert project.run("plan", "-detailed-exitcode").code == 2  # it would destroy what the other state has

    get = ("state", "get", state, "--version", old.id, "--output")
    with strict.unchanged():
        said = " ".join(maintainer.refused("state", "restore", state, old.id, "--reason", REASON).split())
        assert (
            f"'holdfast {' '.join(get)} old.tfstate', then 'terraform state push -force old.tfstate'" in said
        )
        assert "--replace-lineage: a restore keeps the lineage" in maintainer.run(
            *("state", "restore", state, old.id, "--reason", REASON, "--replace-lineage", "--yes")
        )[2].replace("\n", " ")
    file = project.folder / "old.tfstate"
    maintainer.ok(*get, str(file))
    document = json.loads(file.read_bytes()) | {"serial": max(old.serial, moved.serial) + 1}
    if block is cloud:
        document["lineage"] = maintainer.json("state", "show", state)["lineage"]
    file.write_text(json.dumps(document))
    project.ok("state", "push", *(["-force"] if block is backend else []), file.name)

    *_, newest = strict.versions(state)
    pushed = json.loads(newest.body)
    assert (newest.serial >= document["serial"], pushed["lineage"]) == (True, document["lineage"])
    assert pushed["resources"] == json.loads(old.body)["resources"]
    assert strict.lock(state) is None
    assert project.run("plan", "-detailed-exitcode").code == 0
    with strict.unchanged():
        assert "Saved plan" in project.refused("apply", "saved")


NETS = 'resource "terraform_data" "net" {\n  for_each = toset(["a", "b"])\n  input    = each.key\n}\n'


def test_a_resource_is_found_by_those_who_may_read_its_state(
    strict: Team, state: str, one_project: NewProject, operator: NewOperator
) -> None:
    project = one_project.applied(strict, state, strict.token("writer"), main=NETS)
    project.ok("taint", 'terraform_data.net["a"]')
    strict.put(f"states/{state}/beside.tfstate", strict.current(state) or b"")
    [tracked] = project.pull()["resources"]
    addresses = [f'terraform_data.net["{key}"]' for key in ("a", "b")]
    reader = operator(strict, "reader", state)

    listed = reader.json("state", "resources", state)

    assert [(each["address"], each["tainted"]) for each in listed] == list(
        zip(addresses, [True, False], strict=True)
    )
    assert {each["provider"] for each in listed} == {"terraform.io/builtin/terraform"}
    one = reader.json("state", "resources", state, addresses[1], "--show-values")
    values = {each["path"]: each["value"] for each in one["attributes"]}
    assert (one["address"], one["tainted"], values["input"]) == (addresses[1], False, '"b"')
    assert '"b"' not in reader.ok("state", "resources", state, addresses[1]).replace(addresses[1], "")
    assert addresses[0] in reader.refused("state", "resources", state, "terraform_data.net")
    for search, found in (
        (["_data.NET"], addresses),
        (["--type", "terraform_data"], addresses),
        (["--id", tracked["instances"][1]["attributes"]["id"]], addresses[1:]),
        (["--id", tracked["instances"][1]["attributes"]["id"][:-1]], []),
    ):
        page = reader.json("state", "find", *search)
        assert [each["address"] for one in page["states"] for each in one["resources"]] == found
        assert ({one["name"] for one in page["states"]} <= {state}, page["searched"]) == (True, 1)
    both = operator(strict, "reader", state, f"{state}/*").ok("state", "find", "net", "--prefix", state)
    assert f"{state}/beside" in both
    assert "reader" in operator(strict, "outputs", state).refused("state", "find", "net")


def test_the_lock_of_a_killed_apply_is_found_and_broken_and_no_other(
    strict: Team, state: str, one_project: NewProject, operator: NewOperator
) -> None:
    reader, maintainer = operator(strict, "reader"), operator(strict, "maintainer")
    client = strict.client("writer")
    project = one_project.ready(strict, state, strict.token("writer"), main=WAITS)
    with project.applying() as apply:
        apply.kill()
    lock = strict.lock(state)
    assert lock is not None

    assert lock["ID"] in reader.ok("lock", "list")
    shown = reader.json("lock", "show", state)["lock"]
    assert (shown["id"], shown["who"], shown["operation"]) == (lock["ID"], lock["Who"], "OperationTypeApply")
    with strict.unchanged():
        assert lock["ID"] in maintainer.refused("lock", "break", state, "another")
    maintainer.ok("lock", "break", state, lock["ID"])

    assert strict.lock(state) is None
    assert client.write(state, documents.state(1), lock["ID"]).error == (409, "lock_lost")
    # The same document once more is another lock, which the version seen before does not name.
    again = json.dumps(lock).encode()
    assert client.lock(state, again).status == 200
    path = f"/manage/v1/locks/{state}?id={lock['ID']}&version={shown['version']}"
    with strict.unchanged():
        assert strict.client("maintainer").request("DELETE", path).error == (409, "lock_not_matched")
    assert client.unlock(state, again).status == 200


def test_a_deleted_state_is_listed_and_comes_back(
    kept: Team, state: str, one_project: NewProject, operator: NewOperator
) -> None:
    maintainer, other = operator(kept, "maintainer"), operator(kept, "maintainer", "*", "other/*")
    project = one_project.applied(kept, state, kept.token("writer"), main=SUBNET)
    before = kept.current(state)

    maintainer.ok("state", "delete", state, "--yes")

    assert state not in maintainer.ok("state", "list")
    assert state in maintainer.ok("state", "list", "--deleted")
    assert project.run("plan", "-detailed-exitcode").code == 2
    maintainer.ok("state", "undelete", state)
    assert kept.current(state) == before
    assert project.run("plan", "-detailed-exitcode").code == 0
    with kept.unchanged():  # a repeated command finds what it has done, and another operator's nothing to do
        assert kept.versions(state)[-1].id in maintainer.ok("state", "undelete", state)
        assert "is not deleted" in other.refused("state", "undelete", state)
    wait_until(
        lambda: (
            {"state.deleted", "state.undeleted"}
            <= {event["event"] for event in maintainer.json("activity", state)}
        ),
        "the activity has what happened to the state",
    )


def test_a_role_that_is_not_enough_is_refused_with_the_one_that_is(
    strict: Team, state: str, operator: NewOperator
) -> None:
    strict.write(state, documents.state(1))

    with strict.unchanged():
        outputs, writer = operator(strict, "outputs"), operator(strict, "writer")
        assert "role 'auditor'" in outputs.refused("state", "history", state)
        assert json.loads(outputs.ok("state", "get", state)).keys() >= {"outputs"}
        assert json.loads(outputs.ok("state", "get", state)).get("resources", []) == []
        assert "role 'writer'" in operator(strict, "reader").refused("state", "declare", state)
        assert "role 'maintainer'" in writer.refused("state", "delete", state, "--yes")
    for role in ("outputs", "reader", "writer", "maintainer"):
        assert operator(strict, role).json("whoami")["role"] == role


def test_a_large_state_is_fetched_from_where_it_is_stored(
    strict: Team, state: str, operator: NewOperator, tmp_path: Path
) -> None:
    body = documents.state(1, content="x" * 8_000_000)
    strict.put(f"states/{state}.tfstate", body)

    with strict.gateway.recording() as exchanges:
        operator(strict, "reader").ok("state", "get", state, "--output", str(tmp_path / "large.tfstate"))

    assert (tmp_path / "large.tfstate").read_bytes() == body
    assert [exchange.status for exchange in exchanges] == [307]


def test_of_two_operators_at_the_same_moment_one_is_told_of_the_other(
    strict: Team, state: str, operator: NewOperator
) -> None:
    strict.write(state, documents.state(1), documents.state(2))
    first, _ = strict.versions(state)
    operators = operator(strict, "maintainer"), operator(strict, "maintainer", "*", "other/*")

    def both(*arguments: str) -> list[tuple[int, str, str]]:
        with ThreadPoolExecutor() as threads:
            return list(threads.map(lambda one: one.run(*arguments), operators))

    restored = both("state", "restore", state, first.id, "--reason", REASON)
    assert len(strict.versions(state)) == 3
    assert 0 in [code for code, _, _ in restored]
    assert strict.lock(state) is None

    frozen = both("state", "freeze", state, "--reason", REASON)
    assert sorted(code for code, _, _ in frozen) == [0, 1]
    winner = operators[[code for code, _, _ in frozen].index(0)]
    [loser] = [err for code, _, err in frozen if code]
    assert f"frozen by the token {winner.principal.removeprefix('token:')}" in loser
    operators[0].ok("state", "unfreeze", state)
    assert strict.lock(state) is None


def test_a_pattern_freezes_what_there_is_and_reports_each(
    strict: Team, state: str, operator: NewOperator
) -> None:
    maintainer = operator(strict, "maintainer")
    names = [f"{state}/{number}" for number in range(3)]
    # A pattern that matched every state would need --yes.
    for name in (*names, f"{state}-beside"):
        strict.put(f"states/{name}.tfstate", documents.state(1))
    lock = strict.locked(names[1])

    code, out, err = maintainer.run("state", "freeze", f"{state}/*", "--reason", REASON)
    assert code == 1
    assert all(name in out + err for name in names)
    assert "ada@laptop" in out + err
    assert strict.client("writer").unlock(names[1], lock).status == 200
    said = maintainer.ok("state", "freeze", f"{state}/*", "--reason", REASON)
    assert "The freeze is complete. It includes states that are created later." in " ".join(said.split())

    *held, pattern = sorted(maintainer.json("lock", "list", f"{state}/"), key=lambda one: "pattern" in one)
    assert (pattern["pattern"], pattern["reason"], pattern["liftable"]) == (f"{state}/*", REASON, True)
    assert {(item["name"], item["freeze"]["reason"]) for item in held} == {(name, REASON) for name in names}
    # A state that is created later is frozen, too.
    writer, later = strict.client("writer"), f"{state}/later"
    assert writer.read(later).status == 423
    info = documents.lock_info("later")
    assert writer.lock(later, info).status == 200
    assert writer.write(later, documents.state(1), "later").status == 423
    assert writer.unlock(later, info).status == 200
    assert strict.versions(later) == []

    lifted = maintainer.json("state", "unfreeze", f"{state}/*")
    assert [one["result"] for one in lifted] == 4 * ["unfrozen"]
    assert [strict.lock(name) for name in names] == [None, None, None]
    assert writer.read(later).status == 204


@pytest.mark.parametrize("protocol", [backend, cloud])
def test_a_first_apply_below_a_frozen_pattern_creates_nothing_until_it_is_unfrozen(
    strict: Team,
    state: str,
    new_project: NewProject,
    operator: NewOperator,
    protocol: Callable[[Team, str], str],
) -> None:
    maintainer, name = operator(strict, "maintainer"), f"{state}-new"
    files = {"main": MAKES, "backend": protocol(strict, name)}
    project = new_project.ready(strict, None, strict.token("writer"), **files)

    maintainer.ok("state", "freeze", f"{state}-*", "--reason", REASON)

    with strict.gateway.recording() as exchanges:
        said = project.refused("apply", "-auto-approve")
    # The `http` backend shows only the status of a refused read.
    assert "response code 423" in said if protocol is backend else "Frozen" in said and REASON in said
    assert any(REASON.encode() in exchange.answer for exchange in exchanges)
    assert not any(exchange.is_write for exchange in exchanges)
    assert not (project.folder / "made").exists()
    assert (strict.current(name), strict.lock(name)) == (None, None)

    maintainer.ok("state", "unfreeze", f"{state}-*")
    project.ok("apply", "-auto-approve")
    assert (project.folder / "made").exists()
    assert len(strict.versions(name)) == 1

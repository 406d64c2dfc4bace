"""The variables of the functions: one reader, one writer, and no function that reads what it does not get."""

import ast
import re
import subprocess
import sys
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, Final

import pytest

from holdfast.policy import VARIABLES, Deployment, Policy
from holdfast_cdk import team_settings as settings
from holdfast_cdk.functions import FUNCTIONS, FunctionSpec
from holdfast_cdk.sources import SourceError, fields_read, sources_of
from holdfast_cdk.team_policy import policy_of
from tests.support.environment import SETTINGS
from tests.support.every_setting import DEFAULT, EVERY_SETTING

SOURCES: Final = Path(__file__).parents[2] / "functions"
READER: Final = Path("holdfast/policy.py")

SETTLED: Final = policy_of(replace(EVERY_SETTING, retention=settings.Retention(mode="compliance", days=30)))
PLAIN: Final = policy_of(DEFAULT)
PLACES: Final = {
    name: f"a {name}"
    for name in ("team", "bucket", "account", "staging_bucket", "transfers_role", "probed_api", "audit_group")
}
WHOLE: Final = Deployment(
    **PLACES,
    presign_endpoint="https://localhost:4566",
    api_address="https://localhost/{api}",
    audit_archive="archive",
    audit_archive_owner="123456789012",
    notify_topic="arn:aws:sns:us-east-1:123456789012:holdfast",
)
KINDS: Final = (Policy, Deployment)
FIELDS: Final = [(kind, each) for kind in KINDS for each in fields(kind)]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES.values():
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize(
    ("made", "variables"),
    [
        (
            SETTLED,
            {
                "HOLDFAST_REQUIRE_LOCK": "false",
                "HOLDFAST_NEW_STATES": "declared",
                "HOLDFAST_OWN_LOCKS": "none",
                "HOLDFAST_MAX_STATE_MB": "250",
                "HOLDFAST_RETENTION": "compliance 30",
                "HOLDFAST_NETWORKS": "203.0.113.0/24,2001:db8::/32",
                "HOLDFAST_HAS_NETWORKS": "true",
                "HOLDFAST_NUMBERED": "true",
                "HOLDFAST_NOTIFY_EVENTS": "state.written replica.failed",
                "HOLDFAST_OLD_LOCK": "172800",
            },
        ),
        (
            PLAIN,
            {
                "HOLDFAST_REQUIRE_LOCK": "true",
                "HOLDFAST_NEW_STATES": "any",
                "HOLDFAST_OWN_LOCKS": "named",
                "HOLDFAST_MAX_STATE_MB": "100",
            },
        ),
        (
            WHOLE,
            {
                "HOLDFAST_TEAM": "a team",
                "HOLDFAST_BUCKET": "a bucket",
                "HOLDFAST_ACCOUNT": "a account",
                "HOLDFAST_STAGING_BUCKET": "a staging_bucket",
                "HOLDFAST_TRANSFERS_ROLE": "a transfers_role",
                "HOLDFAST_PROBED_API": "a probed_api",
                "HOLDFAST_AUDIT_GROUP": "a audit_group",
                "HOLDFAST_PRESIGN_ENDPOINT": "https://localhost:4566",
                "HOLDFAST_API_ADDRESS": "https://localhost/{api}",
                "HOLDFAST_AUDIT_ARCHIVE": "archive",
                "HOLDFAST_AUDIT_ARCHIVE_OWNER": "123456789012",
                "HOLDFAST_NOTIFY_TOPIC": "arn:aws:sns:us-east-1:123456789012:holdfast",
            },
        ),
    ],
)
def test_what_is_written_is_read_again_under_the_same_names(
    monkeypatch: pytest.MonkeyPatch, made: Policy | Deployment, variables: dict[str, str]
) -> None:
    assert made.environment().items() >= variables.items()
    for name, value in made.environment().items():
        monkeypatch.setenv(name, value)
    for each in fields(made):
        read = type(made).from_environment(each.name)
        assert getattr(read, each.name) == getattr(made, each.name)


def test_the_examples_have_every_variable_and_each_is_of_one_field() -> None:
    assert SETTLED.environment().keys() | WHOLE.environment().keys() == set(VARIABLES.values())
    assert len(VARIABLES) == len(set(VARIABLES.values())) == len(FIELDS)


def test_the_environment_of_other_tests_is_that_of_a_team_without_settings() -> None:
    assert SETTINGS.items() >= PLAIN.environment().items()


@pytest.mark.parametrize(("kind", "each"), FIELDS, ids=VARIABLES)
def test_a_missing_variable_is_the_default_of_an_optional_field_and_stops_the_function_otherwise(
    kind: type[Policy | Deployment], each: Any
) -> None:
    default = each.metadata["default"]
    if default is MISSING:
        with pytest.raises(KeyError, match=f"^'{VARIABLES[each.name]}'$"):
            kind.from_environment(each.name)
    else:
        assert getattr(kind.from_environment(each.name), each.name) == default


@pytest.mark.parametrize("made", [SETTLED, WHOLE], ids=["policy", "deployment"])
def test_whoever_writes_the_variables_names_every_field(made: Policy | Deployment) -> None:
    values = {each.name: getattr(made, each.name) for each in fields(made)}
    for name in values:
        with pytest.raises(TypeError, match=name):
            type(made)(**{other: value for other, value in values.items() if other != name})


@pytest.mark.parametrize(("kind", "each"), FIELDS, ids=VARIABLES)
def test_a_field_that_was_not_read_is_never_silently_off(kind: type[Policy | Deployment], each: Any) -> None:
    nothing = kind.from_environment()
    with pytest.raises(KeyError, match=VARIABLES[each.name]):
        getattr(nothing, each.name)
    assert not hasattr(nothing, f"{each.name}_")
    with pytest.raises(KeyError, match=f"{each.name}_"):
        kind.from_environment(f"{each.name}_")


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("require_lock", "True", "HOLDFAST_REQUIRE_LOCK: 'True' is neither 'false' nor 'true'"),
        ("declared_only", "Declared", "HOLDFAST_NEW_STATES: 'Declared' is neither 'any' nor 'declared'"),
        ("own_locks", "", "HOLDFAST_OWN_LOCKS: '' is not a valid OwnLocks"),
        ("largest_state", "many", "HOLDFAST_MAX_STATE_MB: "),
        ("retention", "30", "HOLDFAST_RETENTION: '30' is not a valid retention"),
        ("networks", "203.0.113.0/24,", "HOLDFAST_NETWORKS: '' is not a network"),
        ("networks", "", "HOLDFAST_NETWORKS: '' is not a network"),
        ("has_networks", "", "HOLDFAST_HAS_NETWORKS: '' is neither"),
        ("numbered", "1", "HOLDFAST_NUMBERED: '1' is neither"),
        ("old_lock", "1h", "HOLDFAST_OLD_LOCK: "),
    ],
)
def test_a_function_does_not_start_with_a_variable_that_it_cannot_read(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str
) -> None:
    monkeypatch.setenv(VARIABLES[name], value)
    with pytest.raises(ValueError, match=f"^{re.escape(told)}"):
        Policy.from_environment(name)


def test_a_function_starts_with_the_ipv6_alone_of_an_earlier_deployment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOLDFAST_NETWORKS", "2001:db8::/32")
    assert Policy.from_environment("networks").networks == ("2001:db8::/32",)


# --- every function --------------------------------------------------------------------------------


OF_AWS: Final = re.compile(r"(AWS|POWERTOOLS)_\w+|_X_AMZN_TRACE_ID", re.ASCII)
OF_EVERY_FUNCTION: Final = {"HOLDFAST_VERSION"}
"""`health` reads it without an import. Each function has it."""


def reads_of_the_environment(code: str) -> set[str]:
    """Return the variables that code names, and as code any other use of the environment."""
    nodes = [*ast.walk(ast.parse(code))]
    uses = {"environ", "environb", "getenv", "getenvb"}
    names: set[str] = set()
    known: set[ast.AST] = set()
    for node in nodes:
        match node:
            case ast.Subscript(ast.Attribute(attr="environ") as of, ast.Constant(str(name))) | ast.Call(
                ast.Attribute(ast.Attribute(attr="environ") as of, "get"), [ast.Constant(str(name)), *_]
            ):
                known.add(of)
                names.add(name)
            case ast.ImportFrom(module="os", names=imported):
                names |= {f"from os import {each.name}" for each in imported if each.name in uses}
            case _:
                pass
    return names | {
        ast.unparse(node)
        for node in nodes
        if isinstance(node, ast.Attribute) and node.attr in uses and node not in known
    }


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("os.environ['HOLDFAST_A']", {"HOLDFAST_A"}),
        ("import os as o; o.environ.get('HOLDFAST_A', '')", {"HOLDFAST_A"}),
        ("'HOLDFAST_A' in os.environ", {"os.environ"}),
        ("os.environ[name]", {"os.environ"}),
        ("os.environ.get(name)", {"os.environ"}),
        ("{**os.environ}", {"os.environ"}),
        ("os.getenv('HOLDFAST_A')", {"os.getenv"}),
        ("from os import environ as e; e['HOLDFAST_A']", {"from os import environ"}),
        ("from os import path; os.path", set()),
    ],
)
def test_each_way_to_read_a_variable_is_noticed(code: str, names: set[str]) -> None:
    assert reads_of_the_environment(code) == names


def test_only_one_module_reads_variables_and_others_read_those_of_aws() -> None:
    read = {
        (str(path.relative_to(SOURCES)), name)
        for path in SOURCES.rglob("*.py")
        if path.relative_to(SOURCES) != READER
        for name in reads_of_the_environment(path.read_text(encoding="utf-8"))
    }
    assert [where for where in sorted(read) if not OF_AWS.fullmatch(where[1])] == [
        ("health/handler.py", name) for name in OF_EVERY_FUNCTION
    ]


@pytest.mark.parametrize("spec", FUNCTIONS, ids=lambda spec: spec.name)
def test_each_field_that_a_function_reads_exists(spec: FunctionSpec) -> None:
    assert fields_read(sources_of(SOURCES, spec.folder)) <= VARIABLES.keys()


@pytest.mark.parametrize(
    "code",
    [
        *("of = Policy.from_environment", "Policy.from_environment(*names)"),
        *("Policy.from_environment(name)", "Policy.from_environment(1)"),
    ],
)
def test_a_read_without_the_names_of_fields_is_not_deployed(code: str) -> None:
    with pytest.raises(SourceError, match=r"^f/handler.py reads settings without their names; "):
        fields_read({Path("f/handler.py"): code.encode()})


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("holdfast.policy", r"boto3|botocore|holdfast\.s3\..+|holdfast\.identity"),
        ("gateway.router", r"holdfast\.policy"),
        ("health.handler", r"holdfast\.policy"),
    ],
)
def test_the_policy_loads_no_sdk_and_what_answers_anybody_loads_no_policy(module: str, absent: str) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    variables = {"PYTHONPATH": str(SOURCES), "HOLDFAST_VERSION": "1.2.3"}
    loaded = subprocess.check_output([sys.executable, "-c", code], env=variables, text=True).split()
    assert module in loaded
    assert [name for name in loaded if re.fullmatch(absent, name)] == []

"""Bundles: their files, that they work, and when they are built again."""

import base64
import gzip
import hashlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Literal

import botocore.session
import pytest
from botocore.exceptions import BotoCoreError
from botocore.regions import EndpointResolver
from joserfc.jwk import ECKey
from joserfc.jwt import encode as sign

from holdfast.lambda_python import lambda_python
from holdfast.policy import VARIABLES
from holdfast_cdk import console, places
from holdfast_cdk.bundle import Bundle, BundleError, bundle
from holdfast_cdk.bytecode import Native, WebAssembly
from holdfast_cdk.pyodide import pyodide
from tests.support.environment import SETTINGS

MEGABYTE = 1_000_000
LIMITS = {"audit_trail": 15, "authorizer": 26, "console": 0.5, "health": 0.15, "management": 13}
"""Megabytes. The authorizer has a library for cryptography, `console` and `health` have no package."""
OPEN = ("console", "health")
"""The functions that anybody can call."""
FUNCTIONS = sorted(path.parent.name for path in places.FUNCTIONS.glob("*/handler.py"))
TARGETS: tuple[Literal["aws", "local"], ...] = ("aws", "local")

MODEL = '{"documentation": "prose", "shapes": {"documentation": {"a": [{"documentation": "prose"}]}}}'
"""A model of a service. One shape has the name under which botocore keeps its documentation."""


def contents(folder: Path) -> set[str]:
    """The files in a folder, without bytecode."""
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


# --- what is deployed -----------------------------------------------------------------------------


@pytest.fixture(scope="session", params=FUNCTIONS)
def function(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def for_aws(function: str) -> Path:
    """The bundle for Lambda."""
    return bundle(function, "aws").path


@pytest.fixture(scope="session")
def for_here(function: str) -> Path:
    """The bundle for the local AWS."""
    return bundle(function, "local").path


def size_of(folder: Path) -> int:
    """Bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_a_bundle_stays_under_its_limit_with_bytecode_and_without(
    for_aws: Path, for_here: Path, function: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # The bundle for AWS has bytecode only where Lambda's Python is installed; the local bundle always has.
    limit = LIMITS.get(function, 8)
    sizes = {"for AWS": size_of(for_aws), "with bytecode": size_of(for_here)}
    with capsys.disabled():
        told = ", ".join(f"{size / MEGABYTE:.1f} MB {which}" for which, size in sizes.items())
        print(f"\n{function}, unzipped: {told}; at most {limit} MB")
    assert max(sizes.values()) < limit * MEGABYTE


SHIPPED = {
    "audit_trail": {"audit_trail", "holdfast", "holdfast/s3"},
    "authorizer": {
        *("authorizer", "gateway", "holdfast", "holdfast/identity", "holdfast/identity/oidc"),
        "holdfast/s3",
    },
    "cloud": {
        *("cloud", "gateway", "holdfast", "holdfast/cloud", "holdfast/identity", "holdfast/s3"),
        *("holdfast/state", "holdfast/state/freezing"),
    },
    "console": {"console", "gateway", "holdfast"},
    "health": {"gateway", "health", "holdfast"},
    "management": {
        *("management", "gateway", "holdfast", "holdfast/identity", "holdfast/s3", "holdfast/state"),
        *("holdfast/api", "holdfast/cloud", "holdfast/state/freezing"),
    },
    "session_exchange": {"gateway", "holdfast", "holdfast/identity", "holdfast/s3", "session_exchange"},
    "terraform_http": {
        *("gateway", "holdfast", "holdfast/identity", "holdfast/s3", "holdfast/state"),
        *("holdfast/state/freezing", "terraform_http"),
    },
    "watch": {*("gateway", "holdfast", "holdfast/identity", "holdfast/s3", "holdfast/state"), "watch"},
}
"""Our own packages that each function ships: those that it imports."""


def test_a_bundle_holds_the_packages_that_the_function_imports_and_no_test(
    for_aws: Path, function: str
) -> None:
    files = contents(for_aws)
    functions = places.FUNCTIONS
    ours = {path.parent.relative_to(functions).as_posix() for path in functions.rglob("__init__.py")}
    assert {name.rpartition("/")[0] for name in files} & ours == SHIPPED[function]
    assert not any("requirements" in name for name in files)
    assert not any(
        re.search(r"(^|/)(tests?/|test_[^/]*$|conftest\.py$|[^/]*_test\.py$)", name) for name in files
    )


@pytest.mark.parametrize("function", OPEN)
def test_an_open_function_ships_its_own_files_and_the_routers_and_nothing_else(function: str) -> None:
    path = bundle(function, "aws").path
    listed = json.loads((path / "console/files/files.json").read_text()) if function == "console" else ()
    assert contents(path) == {
        *(f"{function}/{name}.py" for name in ("__init__", "handler")),
        *(
            {f"console/files/{name}" for one in listed for name in (one, f"{one}.gz", "files.json")}
            or {"health/tokens.html"}
        ),
        *(f"gateway/{name}.py" for name in ("__init__", "headers", "router")),
        *(f"holdfast/{name}.py" for name in ("__init__", "access", "audit", "errors", "names")),
    }


with_packages = pytest.mark.parametrize(
    "function", [name for name in FUNCTIONS if name not in OPEN], indirect=True
)


@with_packages
def test_a_bundle_runs_on_arm64(for_aws: Path) -> None:
    tags = {
        line.removeprefix("Tag: ")
        for wheel in for_aws.glob("*.dist-info/WHEEL")
        for line in wheel.read_text().splitlines()
        if line.startswith("Tag: ")
    }
    assert tags
    assert all(tag.endswith(("-any", "aarch64")) for tag in tags)
    # ELF: the machine is a number of two bytes at 18, and 183 is AArch64.
    assert {path.read_bytes()[18:20] for path in for_aws.rglob("*.so")} <= {b"\xb7\x00"}


CALL_S3 = """
from holdfast.errors import OutcomeUnknown
from holdfast.s3.budget import Budget
from holdfast.s3.sdk import connect
from holdfast.s3.store import Store
try:
    Store(connect(), "bucket", "123456789012", Budget.seconds(0.1)).read("states/a.tfstate")
except OutcomeUnknown:
    pass
"""
CALL_LOGS = """
import boto3
from botocore.config import Config
from botocore.exceptions import ProxyConnectionError
logs = boto3.client("logs", config=Config(retries={"mode": "standard", "total_max_attempts": 1}))
try:
    logs.create_log_stream(logGroupName="group", logStreamName="stream")
except ProxyConnectionError:
    pass
"""
READ_LOGS = """
from botocore.exceptions import ProxyConnectionError
from management import activity
try:
    activity.connect().filter_log_events(logGroupName="group")
except ProxyConnectionError:
    pass
"""
SIGN = """
from gateway import downloads
try:
    downloads.presigned("bucket")
except OutcomeUnknown:
    pass
"""
CALLS = {"audit_trail": CALL_LOGS, "cloud": CALL_S3 + SIGN, "management": CALL_S3 + READ_LOGS + SIGN}


OPTIONAL = {
    "notify_topic": "arn:aws:sns:us-east-1:123456789012:holdfast",
    "audit_archive": "archive",
    "team": "network",
    "probed_api": "https://api.example.com",
}
"""Fields that a function has if it declares them; some of them only with a setting of the team."""


def run_alone(code: str, path: Path, *arguments: str, **environment: str) -> str:
    """Run code with the packages of a bundle alone, and return its output."""
    ended = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"import sys; sys.path.insert(0, {str(path)!r})\n{code}",
            *arguments,
        ],
        env={
            **SETTINGS,
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "POWERTOOLS_LOG_LEVEL": "CRITICAL",
            **environment,
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stderr == ""
    return ended.stdout


def botocore_data(files: set[str]) -> set[str]:
    """The files with botocore's data."""
    return {name for name in files if name.startswith("botocore/data/")}


@with_packages
def test_a_bundle_has_of_botocores_data_what_the_function_reads_and_nothing_else(
    for_aws: Path, for_here: Path, function: str
) -> None:
    code = (
        "opened = set()\n"
        "sys.addaudithook(lambda event, args: event == 'open' and opened.add(str(args[0])))\n"
        "import importlib, time\n"
        f"importlib.import_module('{function}.handler')\n"
        f"{CALLS.get(function, CALL_S3)}"
        "print('\\n'.join(opened))\n"
    )
    # A function loads some models only if it has the variable, and the team the setting.
    read = bundle(function, "local").fields
    variables = {VARIABLES[name]: value for name, value in OPTIONAL.items() if name in read}
    printed = run_alone(
        code, for_here, HTTPS_PROXY="http://127.0.0.1:1", **variables
    )  # nothing leaves this machine
    opened = {
        Path(name).relative_to(for_here).as_posix()
        for name in printed.splitlines()
        if Path(name).is_relative_to(for_here)
    }
    assert botocore_data(contents(for_aws)) == botocore_data(opened)


@pytest.mark.parametrize(
    ("function", "service"),
    [("terraform_http", "s3"), ("audit_trail", "logs"), ("management", "logs"), ("cloud", "sts")],
)
def test_a_bundle_has_the_endpoints_that_botocore_has_for_every_region(function: str, service: str) -> None:
    shipped = bundle(function, "local").path / "botocore" / "data"
    every = Path(botocore.__file__).parent / "data"
    whole, cut = (json.loads((data / "endpoints.json").read_bytes()) for data in (every, shipped))
    regions = [region for partition in whole["partitions"] for region in (*partition["regions"], "nowhere-1")]
    asked = list(itertools.product(regions, [False, True], [False, True]))
    assert len(regions) > 40
    found, expected = ([resolved(data, service, *one) for one in asked] for data in (cut, whole))
    assert found == expected


def resolved(endpoints: dict[str, Any], service: str, region: str, *kind: bool) -> object:
    """The endpoint of a service in a region, for IPv6 or FIPS or neither; or botocore's error."""
    try:
        return EndpointResolver(endpoints).construct_endpoint(service, region, None, *kind)
    except BotoCoreError as error:
        return str(error)


def test_a_local_bundle_is_compiled_and_its_bytecode_is_taken_as_it_is(for_here: Path, function: str) -> None:
    compiled = for_here / function / "__pycache__" / f"handler.{sys.implementation.cache_tag}.pyc"
    # PEP 552: bit 0 = validated by hash instead of time, bit 1 = by checking the source each time.
    assert compiled.read_bytes()[4:8] == b"\x01\0\0\0"
    assert all((module.parent / "__pycache__").is_dir() for module in for_here.rglob("botocore/client.py"))


def test_the_authorizer_verifies_a_signature_with_nothing_but_what_is_in_its_bundle() -> None:
    key = ECKey.generate_key("P-256", {"kid": "1"})
    jwt = sign({"alg": "ES256", "kid": "1"}, {"sub": "x"}, key)
    code = """
import json
import jwt
import holdfast.identity.oidc.verify
print(jwt.decode(sys.argv[1], jwt.PyJWK(json.loads(sys.argv[2])), algorithms=["ES256"]))
"""
    public = json.dumps(key.as_dict(private=False))
    assert run_alone(code, bundle("authorizer", "local").path, jwt, public) == "{'sub': 'x'}\n"


@pytest.mark.parametrize(
    ("function", "route", "begins"),
    [
        ("health", "/health", '{"status": "ok", "version": "1.2.3+abc"}'),
        ("console", "/console/{path+}", base64.b64encode(b"<!doctype html>").decode()),
    ],
)
def test_an_open_function_answers_with_nothing_but_what_is_in_its_bundle_and_loads_little(
    function: str, route: str, begins: str
) -> None:
    code = f"""
import json, os  # which Lambda's own runtime has loaded
before = set(sys.modules)
from {function}.handler import handle
event = {{"routeKey": "ANY {route}", "headers": {{}}, "requestContext": {{"http": {{"method": "GET"}}}}}}
print(handle(event, None)["body"])
print(sorted({{name.partition(".")[0] for name in set(sys.modules) - before}} - sys.stdlib_module_names))
"""
    body, loaded = run_alone(code, bundle(function, "local").path).splitlines()
    assert (body[: len(begins)], loaded) == (begins, str(sorted((function, "gateway", "holdfast"))))


def test_a_console_that_cannot_be_built_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "SOURCES", tmp_path)
    (tmp_path / "build.mjs").write_text('import "esbuild";')

    with pytest.raises(
        BundleError, match=r"could not be built: .*Cannot find package 'esbuild'.*`npm ci`"
    ) as error:
        bundle("console", "local", build=tmp_path / "build")
    assert "\n" not in str(error.value)
    assert list((tmp_path / "build").glob("console*")) == []


def test_the_authorizer_loads_the_jwt_library_only_when_an_id_token_comes() -> None:
    code = """
import base64, types
import authorizer.handler as handler
from holdfast.identity import tokens, trust
from holdfast.access import Grant, Role
from datetime import UTC, datetime

def loaded():
    return [name for name in ("jwt", "cryptography", "holdfast.identity.oidc.verify") if name in sys.modules]

now = datetime.now(UTC)
grants = [Grant(Role.READER, ("*",))]
token, secret = tokens.create(grants, description="", created_by="", now=now, expires=None)
bodies = {token.key: token.to_json(), trust.KEY: trust.Records().to_json()}
handler.Store.read = lambda store, key: types.SimpleNamespace(body=bodies[key]) if key in bodies else None
context = types.SimpleNamespace(get_remaining_time_in_millis=lambda: 9000)

def sign_in(user, password):
    header = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
    event = {"identitySource": [header], "requestContext": {"http": {}, "requestId": "1"}}
    return handler.handle(event, context)["isAuthorized"]

print(loaded())
print(sign_in(token.id, secret), sign_in("session-" + "a" * 20, "x"), sign_in("oidc", "x"), loaded())
print(sign_in("oidc", "e30.e30.e30"), loaded())
"""
    assert run_alone(code, bundle("authorizer", "local").path).splitlines() == [
        "[]",
        "True False False []",
        "False ['jwt', 'cryptography', 'holdfast.identity.oidc.verify']",
    ]


# --- how it is made: a small function with a small package index ----------------------------------


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the function `greeter`, whose requirement pip finds on this machine."""
    functions = tmp_path / "functions"
    (functions / "greeter" / "tests").mkdir(parents=True)
    (functions / "greeter" / "handler.py").write_text(
        "import holdfast\ndef handle(event, context): return 'hello'\n"
    )
    (functions / "greeter" / "tests" / "test_handler.py").write_text("assert False\n")
    (functions / "greeter" / ".handler.py.swp").write_text("an editor's")
    (functions / "holdfast").mkdir()
    (functions / "holdfast" / "__init__.py").touch()
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    wheel = wheels / "botocore-1.0-py3-none-any.whl"
    files: dict[str, str | bytes] = {
        "botocore/__init__.py": "",
        "botocore/for_another_python.py": "def (",
        "botocore/tests/test_all.py": "",
        "botocore/data/_retry.json": "{}",
        "botocore/data/endpoints.json": '{"partitions": [{"services": {"ec2": {}, "s3": {}}}]}',
        "botocore/data/ec2/2016-11-15/service-2.json": "{}",
        "botocore/data/logs/2014-03-28/service-2.json": "{}",
        "botocore/data/s3/2006-03-01/service-2.json": "{}",
        "botocore/data/s3/2006-03-01/service-2.sdk-extras.json": "{}",
        "botocore/data/s3/2006-03-01/endpoint-rule-set-1.json.gz": gzip.compress(MODEL.encode()),
        "botocore/data/s3/2006-03-01/examples-1.json": "{}",
        "botocore/data/s3/1999-01-01/service-2.json": "{}",
        "botocore-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: botocore\nVersion: 1.0\n",
        "botocore-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    contained = {
        name: content.encode() if isinstance(content, str) else content for name, content in files.items()
    }
    record = "".join(
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip('=')},\n"
        for name, content in contained.items()
    )
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in (contained | {"botocore-1.0.dist-info/RECORD": record.encode()}).items():
            archive.writestr(name, content)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (functions / "requirements.txt").write_text(f"botocore==1.0 --hash=sha256:{digest}\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    return functions


@pytest.mark.parametrize("target", TARGETS)
def test_a_bundle_is_the_code_and_what_the_requirements_name(
    functions: Path, tmp_path: Path, target: Literal["aws", "local"]
) -> None:
    made = bundle("greeter", target, functions=functions, build=tmp_path / "build")
    assert made.path.parent == tmp_path / "build"
    assert made.path.name == f"greeter-{target}-{made.digest[:12]}"
    files = contents(made.path)
    assert {name for name in files if "dist-info" not in name} == {
        "greeter/handler.py",
        "holdfast/__init__.py",
        "botocore/__init__.py",
        "botocore/for_another_python.py",
        "botocore/data/endpoints.json",
        "botocore/data/s3/2006-03-01/service-2.json",
        "botocore/data/s3/2006-03-01/service-2.sdk-extras.json",
        "botocore/data/s3/2006-03-01/endpoint-rule-set-1.json",
    }
    model = made.path / "botocore" / "data" / "s3" / "2006-03-01" / "endpoint-rule-set-1.json"
    assert json.loads(model.read_bytes()) == json.loads(MODEL.replace("prose", ""))
    assert "botocore-1.0.dist-info/METADATA" in files


def test_a_bundle_is_the_same_wherever_and_whenever_it_is_made(functions: Path, tmp_path: Path) -> None:
    one = bundle("greeter", "aws", functions=functions, build=tmp_path / "build")
    (functions / "greeter" / "__pycache__").mkdir()
    (functions / "greeter" / "__pycache__" / "handler.pyc").touch()
    elsewhere = shutil.copytree(functions, tmp_path / "elsewhere", copy_function=shutil.copyfile)
    other = bundle("greeter", "aws", functions=elsewhere, build=tmp_path / "other build")
    assert one.digest == other.digest
    assert contents(one.path) == contents(other.path)


def test_everybody_may_read_a_bundle_that_was_made_in_private(functions: Path, tmp_path: Path) -> None:
    umask = os.umask(0o077)
    try:
        made = bundle("greeter", "local", functions=functions, build=tmp_path / "build").path
    finally:
        os.umask(umask)
    assert {path.stat().st_mode & 0o777 for path in made.rglob("*") if path.is_file()} == {0o644}
    assert {path.stat().st_mode & 0o777 for path in [made, *made.rglob("*")] if path.is_dir()} == {0o755}


def test_changed_code_is_bundled_anew_without_pip(
    functions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = bundle("greeter", "local", functions=functions, build=tmp_path / "build")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    (functions / "greeter" / "handler.py").write_text("def handle(event, context): return 'good evening'\n")
    after = bundle("greeter", "local", functions=functions, build=tmp_path / "build")
    assert after.digest != before.digest
    assert "good evening" in (after.path / "greeter" / "handler.py").read_text()
    assert "hello" in (before.path / "greeter" / "handler.py").read_text()


def test_what_is_bundled_already_is_not_made_again(functions: Path, tmp_path: Path) -> None:
    first = bundle("greeter", "aws", functions=functions, build=tmp_path / "build")
    mark = first.path / "mark"
    mark.touch()
    assert bundle("greeter", "aws", functions=functions, build=tmp_path / "build") == first
    assert mark.exists()


def test_each_target_and_each_requirement_makes_another_bundle(functions: Path, tmp_path: Path) -> None:
    def digest(target: Literal["aws", "local"]) -> str:
        return bundle("greeter", target, functions=functions, build=tmp_path / "build").digest

    digests = {digest("aws"), digest("local")}
    with (functions / "requirements.txt").open("a") as requirements:
        requirements.write("# another line\n")
    assert len(digests | {digest("aws"), digest("local")}) == 4


# --- bytecode for AWS, which a Python of Lambda's version makes ---------------------------------------

# It claims to be Lambda's Python, and compiles with the Python of the tests.
LAMBDAS_PYTHON = f"""\
#!/bin/sh
case "$3" in
    "import sys; print"*) echo cpython-314 final ;;
    *) exec {sys.executable} "$@" ;;
esac
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Set a PATH whose only program is this `python3.14`."""

    def install(program: str | None, machine: str = "machine") -> None:
        folder = tmp_path / machine
        folder.mkdir()
        if program is not None:
            (folder / "python3.14").write_text(program)
            (folder / "python3.14").chmod(0o755)
        monkeypatch.setenv("PATH", str(folder))

    return install


def test_the_digest_tells_whether_there_is_bytecode_and_not_which_machine_made_it(
    functions: Path, tmp_path: Path, install: Callable[..., None]
) -> None:
    node = Path(shutil.which("node") or "")
    made = []
    for machine, program in (("a", LAMBDAS_PYTHON), ("b", LAMBDAS_PYTHON), ("node", None), ("none", None)):
        install(program, machine)
        if machine == "node":
            (tmp_path / machine / "node").symlink_to(node)
        build = tmp_path / f"build on {machine}"
        made.append(bundle("greeter", "aws", functions=functions, build=build, bytecode=machine != "none"))

    compiled = [sorted(path.parent.parent.name for path in one.path.rglob("*.pyc")) for one in made]
    assert compiled == [["botocore", "greeter", "holdfast"]] * 3 + [[]]
    assert made[0].digest == made[1].digest == made[2].digest != made[3].digest


@pytest.mark.parametrize(
    "program",
    [
        "#!/bin/sh\necho 'pyenv: python3.14: command not found' >&2\nexit 127\n",
        "#!/bin/sh\necho cpython-314 candidate\n",
        "#!/bin/sh\necho cpython-313 final\n",
        "#!/nowhere/sh\n",
    ],
)
def test_a_python_that_is_not_lambdas_compiles_nothing(
    functions: Path, tmp_path: Path, install: Callable[..., None], program: str
) -> None:
    install(program)
    with pytest.raises(BundleError, match="To deploy without bytecode, write -c without_bytecode=true"):
        bundle("greeter", "aws", functions=functions, build=tmp_path / "build")
    assert lambda_python() is None


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("exit 1", "does not start: run `npm ci`"),
        (
            "echo cpython-313 final",
            "has the Python version 'cpython-313 final', which is not Lambda's version: run `npm ci`",
        ),
        ("echo cpython-314 final; read line", "ended while it compiled the functions"),
        ("""echo cpython-314 final; read line; echo '{"error": "no space left"}'""", ": no space left"),
    ],
)
def test_a_fault_of_pyodide_is_one_line_and_leaves_no_bundle(
    functions: Path, tmp_path: Path, install: Callable[..., None], program: str, why: str
) -> None:
    install(None)
    (tmp_path / "machine" / "node").write_text(f"#!/bin/sh\n{program}\n")
    (tmp_path / "machine" / "node").chmod(0o755)
    with pytest.raises(BundleError) as error:
        bundle("greeter", "aws", functions=functions, build=tmp_path / "build")
    assert str(error.value).endswith(why)
    assert list((tmp_path / "build").iterdir()) == []


SAME_CODE: Final = """
import marshal, pathlib, sys
paths = [pathlib.Path(path) for path in sys.argv[1:]]
for native, wasm in zip(paths[::2], paths[1::2]):
    one, other = native.read_bytes(), wasm.read_bytes()
    assert one[:16] == other[:16], native
    one, other = marshal.loads(one[16:]), marshal.loads(other[16:])
    assert one == other and list(one.co_positions()) == list(other.co_positions()), native
"""
"""Compares bytecode by pairs of files: header, code, names, constants and places in the source."""


@pytest.mark.skipif(lambda_python() is None, reason="needs Lambda's Python beside npm's pyodide")
def test_both_compilers_make_the_same_code(tmp_path: Path) -> None:
    python = str(lambda_python())
    for name, compiler in (("native", Native(python)), ("wasm", WebAssembly(*pyodide(tmp_path)))):
        shutil.copytree(places.FUNCTIONS, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        compiler.compile(tmp_path / name)
    native, wasm = (
        {path.relative_to(tmp_path / name): path for path in (tmp_path / name).rglob("*.pyc")}
        for name in ("native", "wasm")
    )
    assert native.keys() == wasm.keys() != set()
    code = subprocess.run(
        [
            python,
            "-I",
            "-c",
            SAME_CODE,
            *(
                str(path)
                for pair in zip(native.values(), (wasm[name] for name in native), strict=True)
                for path in pair
            ),
        ],
        check=False,
        capture_output=True,
        text=True,
    )
    assert (code.returncode, code.stderr) == (0, "")


def test_a_compiler_that_fails_half_way_leaves_no_bundle(
    functions: Path, tmp_path: Path, install: Callable[..., None]
) -> None:
    broken = LAMBDAS_PYTHON.replace(f"exec {sys.executable}", "echo 'no space left' >&2; exit 1;")
    install(broken)
    with pytest.raises(BundleError) as error:
        bundle("greeter", "aws", functions=functions, build=tmp_path / "build")
    assert str(error.value).endswith("python3.14 could not compile the functions: no space left")
    assert list((tmp_path / "build").iterdir()) == []


def test_builds_at_the_same_time_see_a_whole_bundle_or_none(functions: Path, tmp_path: Path) -> None:
    build = tmp_path / "build"
    modules = {f"greeter/module_{number}.py" for number in range(300)}
    for module in modules:
        (functions / module).touch()

    def make(_: int) -> tuple[Bundle, set[str]]:
        made = bundle("greeter", "local", functions=functions, build=build)
        return made, contents(made.path)

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(make, range(4)))
    assert len({made for made, _ in results}) == 1
    for _, seen in results:
        assert modules | {"greeter/handler.py", "botocore/__init__.py"} <= seen
    assert len(list(build.iterdir())) == 2, "dependencies and bundle, nothing unfinished"


@pytest.mark.parametrize(
    ("requirement", "reason"),
    [
        ("two words==1.0", "Invalid requirement: 'two words==1.0'"),
        (
            f"absent==1.0 --hash=sha256:{'0' * 64}",
            "Could not find a version that satisfies the requirement absent",
        ),
        (f"botocore==1.0 --hash=sha256:{'0' * 64}", "THESE PACKAGES DO NOT MATCH THE HASHES"),
    ],
)
def test_what_pip_refuses_is_said_in_one_line_and_leaves_nothing(
    functions: Path, tmp_path: Path, requirement: str, reason: str
) -> None:
    (functions / "requirements.txt").write_text(f"{requirement}\n")
    with pytest.raises(BundleError) as error:
        bundle("greeter", "aws", functions=functions, build=tmp_path / "build")
    message = str(error.value)
    assert message.startswith(f"pip could not install {functions / 'requirements.txt'} for aws: {reason}")
    assert "\n" not in message
    assert list((tmp_path / "build").iterdir()) == []


def test_a_python_without_pip_is_said_in_one_line_and_leaves_nothing(
    functions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (functions / "requirements.txt").write_text("requests==2.0\n")
    monkeypatch.setitem(sys.modules, "pip", None)

    with pytest.raises(BundleError) as error:
        bundle("greeter", "aws", functions=functions, build=tmp_path / "build")

    assert str(error.value) == (
        f"{sys.executable} has no pip, which installs the packages of the functions; type: "
        f"{sys.executable} -m ensurepip, or with uv: uv pip install pip"
    )
    assert list((tmp_path / "build").iterdir()) == []


@pytest.mark.parametrize("missing", ["greeter/handler.py", "requirements.txt"])
def test_a_missing_source_is_named(functions: Path, tmp_path: Path, missing: str) -> None:
    (functions / missing).unlink()
    with pytest.raises(BundleError) as error:
        bundle("greeter", "aws", functions=functions, build=tmp_path / "build")
    assert str(error.value) == (
        f"{functions / missing} is missing: the function 'greeter' cannot be bundled without it"
    )


def test_code_that_is_no_python_is_not_bundled(functions: Path, tmp_path: Path) -> None:
    broken = functions / "holdfast" / "locks.py"
    broken.write_text("def acquire(:\n")
    (functions / "greeter" / "handler.py").write_text("from holdfast import locks\n")
    with pytest.raises(BundleError) as error:
        bundle("greeter", "aws", functions=functions, build=tmp_path / "build")
    assert str(error.value).startswith(f"{broken} is not valid Python: ")
    assert "line 1" in str(error.value)

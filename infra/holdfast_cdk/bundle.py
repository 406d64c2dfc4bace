"""Builds the functions' bundles without Docker. A bundle is a folder with our code and its dependencies."""

import gzip
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal

from holdfast.team import LAMBDA_PYTHON
from holdfast_cdk import console, places
from holdfast_cdk.build_folder import built
from holdfast_cdk.bytecode import CompileError, Compiler, Native, lambda_compiler
from holdfast_cdk.functions import FUNCTIONS
from holdfast_cdk.sources import SourceError, fields_read, sources_of

_FOR_LAMBDA: Final = (
    *("--platform", "manylinux2014_aarch64", "--platform", "manylinux_2_28_aarch64"),
    *("--implementation", "cp", "--python-version", LAMBDA_PYTHON),
)

_CONSOLE: Final = "console"
"""The function that serves built files."""
_BOTOCORE_SERVICES: Final = {spec.folder: spec.services for spec in FUNCTIONS}
"""The services that each function calls; the models of all 400 services are nine tenths of botocore."""
_BOTOCORE_MODELS: Final = ("service-2", "endpoint-rule-set-1")
"""The models of a service that are kept; the functions use no paginators, waiters or examples."""
_BOTOCORE_COMMON: Final = ("endpoints.json", "partitions.json", "sdk-default-configuration.json")
"""The files that every service needs; `_retry.json` is only for the SDK's legacy retry mode."""


class BundleError(Exception):
    """The functions could not be bundled. The message is one line with the reason and advice."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """A function's code for deployment; `function` is the name of its folder below `functions/`.

    `fields` are the fields of `holdfast.policy` that the code reads.
    `digest` is the hexadecimal SHA-256 of the bundle's inputs, and of whether the bundle has bytecode. It has
    bytecode if the machine has a Python of the target's version. The digest depends on nothing else of the
    machine, so that an unchanged function is not deployed again.
    """

    function: str
    path: Path
    digest: str
    fields: frozenset[str]


WITHOUT_BYTECODE: Final = (
    "the functions have no bytecode, so Lambda compiles them at each cold start. With Python 3.11, the "
    "imports of the authorizer then took 525 ms instead of 198 ms"
)
"""The warning about a bundle for AWS without bytecode."""


def bundle(
    function: str,
    target: Literal["aws", "local"],
    *,
    functions: Path = places.FUNCTIONS,
    build: Path = places.BUILD,
    bytecode: bool = True,
) -> Bundle:
    """Bundle one function, or return the bundle that an earlier run built from the same sources.

    Several builds may run at the same time.

    Args:
        target: `aws` for Lambda's Python on arm64, `local` for the interpreter that runs this.
        functions: has the function's folder, the packages that functions share and `requirements.txt`. A
            `requirements.txt` in the function's folder replaces the shared file, even if it is empty.
        bytecode: whether to compile; without bytecode Lambda compiles at each cold start.
    """
    build = build.absolute()
    services = _BOTOCORE_SERVICES.get(function, ("s3",))
    requirements = functions / function / "requirements.txt"
    if not requirements.is_file():
        requirements = functions / "requirements.txt"
    for needed in (functions / function / "handler.py", requirements):
        if not needed.is_file():
            raise BundleError(f"{needed} is missing: the function '{function}' cannot be bundled without it")
    try:
        sources = sources_of(functions, function)
        fields = fields_read(sources)
    except SourceError as error:
        raise BundleError(str(error)) from None
    if function == _CONSOLE:
        sources |= _console_files(build)
    compiler = _compiler(target, build) if bytecode else None
    environment = _environment(target, compiler)
    inputs = {"requirements.txt": requirements.read_bytes(), "bundle.py": Path(__file__).read_bytes()}
    dependencies_digest = _digest(f"{environment} {' '.join(services)}", inputs)
    # Without compressed files: another release of Node.js may compress otherwise.
    inputs |= {path.as_posix(): source for path, source in sources.items() if path.suffix != ".gz"}
    digest = _digest(environment, inputs)

    def install(folder: Path) -> None:
        if not _names_a_package(requirements):
            return
        _install(requirements, target, folder)
        _trim(folder, services)
        _compile(folder, compiler)

    dependencies = built(build / f"deps-{target}-{dependencies_digest[:12]}", install)

    def assemble(folder: Path) -> None:
        shutil.copytree(dependencies, folder, dirs_exist_ok=True)
        for path, source in sources.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(source)
        _compile(folder, compiler)
        # Lambda reads the files as another user, so the umask here must not matter.
        for path in folder.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)

    return Bundle(function, built(build / f"{function}-{target}-{digest[:12]}", assemble), digest, fields)


@cache
def bundles(target: Literal["aws", "local"], *, bytecode: bool) -> Mapping[str, Bundle]:
    """Return function name -> its bundle, for every function; see `bundle`."""
    try:
        places.check()
    except places.PlaceError as error:
        raise BundleError(str(error)) from None
    return {spec.name: bundle(spec.folder, target, bytecode=bytecode) for spec in FUNCTIONS}


def _names_a_package(requirements: Path) -> bool:
    return any(line and not line.startswith("#") for line in requirements.read_text().splitlines())


def _console_files(build: Path) -> dict[Path, bytes]:
    """Return path -> content of the console's files, built once for each state of their sources."""
    if places.IS_INSTALLED:
        files = places.CONSOLE
    else:
        try:
            files = built(build / f"console-files-{console.digest()[:12]}", console.build)
        except console.ConsoleError as error:
            raise BundleError(str(error)) from error
    return {Path(_CONSOLE, "files", path.name): path.read_bytes() for path in sorted(files.iterdir())}


def _compiler(target: Literal["aws", "local"], build: Path) -> Compiler:
    if target == "local":
        return Native(sys.executable)
    try:
        return lambda_compiler(build)
    except CompileError as error:
        raise BundleError(str(error)) from error


def _environment(target: Literal["aws", "local"], compiler: Compiler | None) -> str:
    """Return the properties of the target and the compiler on which a bundle's content depends."""
    if target == "aws":
        return f"{' '.join(_FOR_LAMBDA)} {'with' if compiler else 'without'} bytecode"
    return f"local {sys.implementation.cache_tag}"


def _digest(environment: str, inputs: dict[str, bytes]) -> str:
    digest = hashlib.sha256(environment.encode())
    for name, content in sorted(inputs.items()):
        digest.update(f"\n{name} {hashlib.sha256(content).hexdigest()}".encode())
    return digest.hexdigest()


def _install(requirements: Path, target: Literal["aws", "local"], folder: Path) -> None:
    if find_spec("pip") is None:
        raise BundleError(
            f"{sys.executable} has no pip, which installs the packages of the functions; type: "
            f"{sys.executable} -m ensurepip, or with uv: uv pip install pip"
        )
    command = [
        *(sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"),
        *("--require-hashes", "--only-binary=:all:", "--no-compile", "--requirement", str(requirements)),
        *(_FOR_LAMBDA if target == "aws" else ()),
        *("--target", str(folder)),
    ]
    pip = subprocess.run(command, capture_output=True, text=True, check=False)
    if pip.returncode != 0:
        # pip's first error says what failed; the next ones repeat it at length.
        errors = [line for line in pip.stderr.splitlines() if line.startswith("ERROR: ")]
        reason = errors[0] if errors else (pip.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise BundleError(
            f"pip could not install {requirements} for {target}: {reason.removeprefix('ERROR: ')} "
            "(check the network, pip's configuration and the pinned hashes)"
        )


def _trim(folder: Path, services: Sequence[str]) -> None:
    """Remove files that the functions never load. The packages' metadata is kept for security scanners."""
    models = folder / "botocore" / "data"
    for entry in models.iterdir():
        if entry.name not in (*services, *_BOTOCORE_COMMON):
            _remove(entry)
    _cut_endpoints(models / "endpoints.json", services)
    for service in services:
        _trim_models(models / service)
    swagger = folder / "aws_lambda_powertools" / "event_handler" / "openapi" / "swagger_ui"
    for unused in (
        *(folder / "bin", folder / "boto3" / "data", folder / "boto3" / "examples"),
        *(folder / "cffi", folder / "pycparser"),  # cryptography contains its bindings already
        *(swagger / "swagger-ui-bundle.min.js", swagger / "swagger-ui.min.css"),
    ):
        _remove(unused)
    for unused in [path for name in ("tests", "__pycache__", "*.pyi") for path in folder.rglob(name)]:
        _remove(unused)


def _trim_models(folder: Path) -> None:
    *outdated, newest = sorted(folder.iterdir())
    for version in outdated:
        _remove(version)
    for model in newest.iterdir():
        if model.name.partition(".")[0] not in _BOTOCORE_MODELS:
            _remove(model)
        elif model.suffix == ".gz":
            _write_json(
                model.with_suffix(""), _without_texts(json.loads(gzip.decompress(model.read_bytes())))
            )
            _remove(model)


def _cut_endpoints(path: Path, kept: Sequence[str]) -> None:
    """Remove all services but `kept` from botocore's endpoints file, which each cold start reads."""
    document = json.loads(path.read_bytes())
    for partition in document["partitions"]:
        services = partition["services"]
        partition["services"] = {name: services[name] for name in services if name in kept}
    _write_json(path, document)


def _without_texts(model: Any) -> Any:
    """Return a service's model with empty documentation, because each cold start reads the model.

    The texts are emptied and not removed, because botocore reads some of them.
    """
    match model:
        case dict():
            return {
                name: "" if name == "documentation" and isinstance(value, str) else _without_texts(value)
                for name, value in model.items()
            }
        case list():
            return [_without_texts(value) for value in model]
        case _:
            return model


def _write_json(path: Path, document: Any) -> None:
    path.write_text(json.dumps(document, separators=(",", ":")))


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _compile(folder: Path, compiler: Compiler | None) -> None:
    if compiler is None:
        return
    try:
        compiler.compile(folder)
    except CompileError as error:
        raise BundleError(str(error)) from error

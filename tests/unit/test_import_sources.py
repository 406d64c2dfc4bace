"""The sources of an import that are not S3: files, other `http` backends, GitLab and HCP Terraform."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.state import lock_info
from holdfast_cli.errors import CommandError
from holdfast_cli.importing.files import Files, open_files
from holdfast_cli.importing.source import LockedThereError, OldLock, Settings
from tests.support import documents
from tests.support.documents import state
from tests.unit.test_cli_backend_config import PACKAGED, run_terraform

NOBODY: dict[str, str] = {}
"""An environment without credentials."""


def lock(lock_id: str = "one", *, handle: str = "") -> OldLock:
    info = json.loads(documents.lock_info(lock_id, operation="import", who="eve@desk"))
    return OldLock(lock_info.parse(json.dumps({**info, "Info": "is moving"}).encode()), handle)


def name_of(path: str, rules: tuple[str, ...]) -> str | None:
    """Return the name that rules give to a path; only the last placeholder of a pattern may hold a `/`."""
    for rule in rules:
        pattern, _, name = rule.partition("=")
        placeholders = re.findall(r"\{(\w+)\}", pattern)
        form = re.escape(pattern).replace(r"\{", "{").replace(r"\}", "}")
        for each in placeholders:
            form = form.replace(f"{{{each}}}", f"(?P<{each}>{'.+' if each == placeholders[-1] else '[^/]+'})")
        if found := re.fullmatch(form, path):
            return name.format(**found.groupdict())
    return None


# Files.


def files(folder: Path) -> Files:
    return open_files(Settings((str(folder),)), NOBODY)


def written(folder: Path, path: str, body: bytes = b"{}") -> Path:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(body)
    return file


@contextmanager
def another_process(file: Path) -> Iterator[None]:
    """Hold the lock of a file as Terraform does, and write its lock info beside."""
    code = (
        "import fcntl, sys; file = open(sys.argv[1], 'r+'); fcntl.lockf(file, fcntl.LOCK_EX); "
        "print('held', flush=True); sys.stdin.read()"
    )
    info = written(file.parent, f".{file.name}.lock.info", documents.lock_info("theirs", who="bob@ci"))
    command = [sys.executable, "-S", "-c", code, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield
        process.communicate("")
    info.unlink()


def is_free(file: Path) -> bool:
    """Return whether another process can acquire the lock of a file."""
    code = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    tried = subprocess.run(
        [sys.executable, "-S", "-c", code, str(file)], capture_output=True, text=True, check=False
    )
    assert tried.returncode == 0 or "BlockingIOError" in tried.stderr
    return tried.returncode == 0


def test_the_states_of_a_folder_are_found_and_named_with_their_workspaces(tmp_path: Path) -> None:
    for path in (
        "terraform.tfstate.d/dev/terraform.tfstate",
        "app/terraform.tfstate",
        "app/terraform.tfstate.d/prod/terraform.tfstate",
        "net/eu/terraform.tfstate.d/prod/terraform.tfstate",
        "old/dns.tfstate",
        # These are no states.
        "app/terraform.tfstate.backup",
        "app/.terraform/terraform.tfstate",
        "app/.terraform/modules/x/terraform.tfstate",
        "app/.terraform.tfstate.lock.info",
        "app/main.tf",
    ):
        written(tmp_path, path)
    source = files(tmp_path)
    found = [(each.id, name_of(each.path, source.default_rules)) for each in source.states()]
    assert found == [
        ("app/terraform.tfstate", "app"),
        ("app/terraform.tfstate.d/prod/terraform.tfstate", "app/prod"),
        ("net/eu/terraform.tfstate.d/prod/terraform.tfstate", "net/eu/prod"),
        ("old/dns.tfstate", "old/dns"),
        ("terraform.tfstate.d/dev/terraform.tfstate", "dev"),
    ]
    assert [each.path for each in files(tmp_path / "old" / "dns.tfstate").states()] == ["dns.tfstate"]
    with pytest.raises(CommandError, match="neither a file nor a folder"):
        list(files(tmp_path / "nothing").states())


def test_a_file_is_read_byte_for_byte_and_an_empty_or_missing_one_is_no_state(tmp_path: Path) -> None:
    written(tmp_path, "a.tfstate", state(3))
    written(tmp_path, "empty.tfstate", b"")
    written(tmp_path, "folder.tfstate/x")
    source = files(tmp_path)
    assert source.read("a.tfstate") == state(3)
    assert source.read("empty.tfstate") is None
    assert source.read("gone.tfstate") is None
    assert list(source.versions("a.tfstate")) == []
    with pytest.raises(CommandError, match=r"folder\.tfstate cannot be read: Is a directory"):
        source.read("folder.tfstate")


def test_a_locked_file_refuses_other_processes_until_it_is_unlocked(tmp_path: Path) -> None:
    file = written(tmp_path, "a.tfstate", state(3))
    source = files(tmp_path)
    source.lock("a.tfstate", lock())
    source.lock("a.tfstate", lock())
    # The end of a read closes no descriptor, which would release the lock.
    assert source.read("a.tfstate") == source.read("a.tfstate") == state(3)
    assert not is_free(file)
    noted = json.loads((tmp_path / ".a.tfstate.lock.info").read_text())
    assert (noted["ID"], noted["Info"], noted["Path"]) == ("one", "is moving", str(file))
    with pytest.raises(LockedThereError, match="locked by this import already"):
        source.lock("a.tfstate", lock("two"))
    source.unlock("a.tfstate", lock("two"))
    assert not is_free(file)
    source.unlock("a.tfstate", lock())
    source.unlock("a.tfstate", lock())
    assert is_free(file)
    assert [each.name for each in tmp_path.iterdir()] == ["a.tfstate"]


def test_the_holder_of_a_locked_file_is_named_and_keeps_lock_and_lock_info(tmp_path: Path) -> None:
    file = written(tmp_path, "a.tfstate", state(3))
    source = files(tmp_path)
    with another_process(file):
        with pytest.raises(LockedThereError, match=r"bob@ci \(OperationTypeApply; lock ID theirs\)"):
            source.lock("a.tfstate", lock())
        source.unlock("a.tfstate", lock())
        assert (tmp_path / ".a.tfstate.lock.info").exists()
        assert not is_free(file)
    source.lock("a.tfstate", lock())
    source.unlock("a.tfstate", lock())


def test_the_lock_info_of_a_process_that_was_killed_is_removed(tmp_path: Path) -> None:
    written(tmp_path, "a.tfstate", state(3))
    left = written(tmp_path, ".a.tfstate.lock.info", lock().info.to_json())
    files(tmp_path).unlock("a.tfstate", lock())
    assert not left.exists()
    with pytest.raises(CommandError, match=r"gone\.tfstate does not exist any more"):
        files(tmp_path).lock("gone.tfstate", lock())


def test_a_real_terraform_is_refused_while_a_file_is_locked(tmp_path: Path) -> None:
    (tmp_path / "main.tf").write_text('output "a" {\n  value = 1\n}\n')
    written(tmp_path, "terraform.tfstate", state(3))
    source = files(tmp_path)
    source.lock("terraform.tfstate", lock())
    refused = run_terraform(PACKAGED, tmp_path, "plan")
    assert refused.returncode != 0
    assert "eve@desk" in refused.stderr
    assert "is moving" in refused.stderr
    source.unlock("terraform.tfstate", lock())
    assert run_terraform(PACKAGED, tmp_path, "plan").returncode == 0

"""The late write of `make demo`: what it says if the run that waits does not go on."""

import signal
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from local_aws.failure import LocalAwsError
from local_aws.late_write import _late_write, _Place
from local_aws.terraform import Terraform

ENDS: Mapping[str, tuple[str, str | None]] = {
    # It waits as the configuration does, until it is let go on.
    "goes on": (": > working; read go < gate; echo 'Apply complete! Resources: 1 added'", None),
    "dies before it waits": (": > working; echo 'Killed: 9'; exit 137", "ended before it could go on"),
    "ends without a result": (": > working; read go < gate; echo 'Killed: 9'", "gone on to its end"),
}
"""How the run ends: what its program does, and what the demo says."""


@pytest.fixture(autouse=True)
def nothing_waits_for_ever() -> Iterator[None]:
    """End a test that hangs with an error: without it the run of all tests would hang."""

    def end(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def client(folder: Path, apply: str) -> Terraform:
    """A program whose apply is a line of shell in a checkout that has a gate, and else prints a lock's ID."""
    script = folder / "client.sh"
    script.write_text(
        f"""\
[ "$1" = state ] && echo terraform_data.bobs
[ "$1" = apply ] || exit 0
if [ -e gate ]; then {apply}
elif [ ! -e ../ada/working ] || [ -e once ]; then echo 'Apply complete! Resources: 1 added'
else : > once; echo 'ID: 1'; exit 1
fi
"""
    )
    return Terraform("terraform", ("sh", str(script)))


@pytest.mark.parametrize(("apply", "said"), ENDS.values(), ids=ENDS)
def test_a_run_that_does_not_go_on_is_told_with_what_it_printed(
    tmp_path: Path, apply: str, said: str | None
) -> None:
    place = _Place("", {"PATH": "/usr/bin:/bin"}, lambda *_: "lock break")
    terraform = client(tmp_path, apply)

    if said is None:
        assert _late_write(terraform, tmp_path / "runs", place) == ["terraform_data.bobs"]
    else:
        with pytest.raises(LocalAwsError, match=f"(?s){said}.*Killed: 9"):
            _late_write(terraform, tmp_path / "runs", place)

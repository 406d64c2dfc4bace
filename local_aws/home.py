"""The folder `.local/`: what `make up` keeps there and how it finds it again."""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from local_aws.failure import LocalAwsError
from local_aws.private_file import read_port, write_port, write_private
from local_aws.server import ACCOUNT, REGION, ROOT

DEFAULT_FOLDER = ROOT / ".local"

_MARKER = ".holdfast-local-aws"
_LOCK = "lock"
# Where the local AWS keeps our objects on disk; the last for keys that no path can hold.
_KEPT = frozenset({"states", "tokens", ".ministack-keys"})


@dataclass(frozen=True, slots=True)
class DeployedTeam:
    """A team's stack, as it was deployed; the bucket has states, locks and tokens."""

    name: str
    api_address: str
    bucket_name: str


@dataclass(frozen=True, slots=True)
class Deployment:
    """The last deployment that went through to the end, by what it and its `cdk bootstrap` were made from.

    `teams` are those whose stacks there are, at least one, in the order of teams.toml; the token is for the
    first.
    """

    digest: str
    bootstrap_digest: str
    teams: tuple[DeployedTeam, ...]


@dataclass(frozen=True, slots=True)
class Connection:
    """How Terraform gets in: the token's ID as the name, its secret as the password."""

    address: str
    username: str
    password: str = field(repr=False)

    def environment(self) -> dict[str, str]:
        """Variables with which Terraform and `holdfast` get in."""
        return {
            "TF_HTTP_USERNAME": self.username,
            "TF_HTTP_PASSWORD": self.password,
            "HOLDFAST_ADDRESS": self.address,
        }


class Home:
    """The folder and what lies in it. Nothing is made before it is written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.aws_data = self.folder / "aws"
        self.aws_env = self.folder / "aws.env"
        """`KEY=VALUE` lines for the AWS CLI, CDK and `holdfast`."""
        self.terraform_env = self.folder / "terraform.env"
        """Shell exports with which Terraform signs in."""
        self.cloud_config = self.folder / "cloud.tfrc"
        """A CLI configuration with which `cloud {}` and `backend "remote"` find the API and sign in."""
        self.issuer_keys = self.folder / "issuer" / "keys.json"
        self.issuer_port = self.folder / "issuer" / "port"
        self._connection = self.folder / "connection.json"
        self._deployment = self.folder / "deployment.json"
        self._port = self.folder / "port"

    @property
    def finished(self) -> bool:
        """Whether a `make up` ever came so far that there can be a state worth keeping.

        The data themselves are asked too: tidying up removes a record more easily than a folder.
        """
        return (
            self._deployment.exists()
            or self._connection.exists()
            or any(path.name in _KEPT for path in (self.aws_data / "s3").rglob("*"))
        )

    def port(self) -> int | None:
        """The port that was used last, or None."""
        return read_port(self._port)

    def remember_port(self, port: int) -> None:
        """Use this port again next time."""
        write_port(self._port, port)

    def deployment(self) -> Deployment | None:
        """The last deployment, or None; a record that cannot be read is as good as none: deploy again."""
        with suppress(FileNotFoundError, ValueError, TypeError, KeyError):
            record = json.loads(self._deployment.read_text())
            if teams := tuple(DeployedTeam(**team) for team in record.pop("teams")):
                return Deployment(**record, teams=teams)
        return None

    def deployed_teams(self) -> tuple[str, ...]:
        """The teams that are deployed: by the record, or without one by the buckets that are in use."""
        if not self.finished:
            return ()
        if deployment := self.deployment():
            return tuple(team.name for team in deployment.teams)
        prefix, suffix = "holdfast-", f"-{ACCOUNT}-{REGION}"
        buckets = (self.aws_data / "s3" / ACCOUNT).glob(f"{prefix}?*{suffix}")
        return tuple(sorted(bucket.name.removeprefix(prefix).removesuffix(suffix) for bucket in buckets))

    def remember_deployment(self, deployment: Deployment) -> None:
        write_private(self._deployment, json.dumps(asdict(deployment), indent=2) + "\n")

    def connection(self) -> Connection | None:
        """How Terraform gets in, or None if there is no token yet."""
        with suppress(FileNotFoundError, ValueError, TypeError):
            return Connection(**json.loads(self._connection.read_text()))
        return None

    def remember_connection(self, connection: Connection) -> None:
        write_private(self._connection, json.dumps(asdict(connection), indent=2) + "\n")

    def forget(self) -> None:
        """Forget the deployment and the token: the data that they belong to are gone."""
        self._deployment.unlink(missing_ok=True)
        self._connection.unlink(missing_ok=True)
        self.cloud_config.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the folder with everything in it; call it within `alone`."""
        last = (self.folder / _LOCK, self.folder / _MARKER)  # broken off before, it can be done again
        for path in (*({*self.folder.iterdir()} - {*last}), *last):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        self.folder.rmdir()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Make the folder unless it is somebody else's, and keep every other command out of it meanwhile."""
        file = self._lock()
        try:
            yield
        finally:
            os.close(file)

    def _lock(self) -> int:
        path = self.folder / _LOCK
        while True:
            self._claim()
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print(f"Another command works in {self.folder}; waiting for it …", flush=True)
                fcntl.flock(file, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file), path.stat()):
                    return file
            os.close(file)  # `clean` removed it meanwhile

    def _claim(self) -> None:
        """Make the folder ours, if it is not yet and nothing lies in it."""
        marker = self.folder / _MARKER
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not marker.exists() and any(self.folder.iterdir()):
            raise LocalAwsError(
                f"{self.folder} was not made by `make up` and is not empty: name another folder or empty it."
            )
        marker.touch(mode=0o600)
        self.folder.chmod(0o700)

"""The folder `.local/` with the files of `make up`, and the functions that read and write these files."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from local_aws.failure import LocalAwsError
from local_aws.files import remove, write_private
from local_aws.server import ACCOUNT, REGION, ROOT

DEFAULT_FOLDER = ROOT / ".local"

_MARKER = ".holdfast-local-aws"
_LOCK = "lock"
# Folders on disk with Holdfast's objects; the last one is for keys that are not valid paths.
_KEPT = frozenset({"states", "tokens", ".ministack-keys"})


@dataclass(frozen=True, slots=True)
class DeployedTeam:
    """The deployed stack of a team; its bucket has states, locks and tokens."""

    name: str
    api_address: str
    bucket_name: str


@dataclass(frozen=True, slots=True)
class Deployment:
    """The last complete deployment, with digests of its inputs and of the inputs of `cdk bootstrap`.

    `teams` are the deployed teams, at least one, in the order of teams.toml; the token is for the first.
    """

    digest: str
    bootstrap_digest: str
    teams: tuple[DeployedTeam, ...]


@dataclass(frozen=True, slots=True)
class Connection:
    """Terraform's credentials for the API: the token's ID is the user name, its secret the password."""

    address: str
    username: str
    password: str = field(repr=False)

    def environment(self) -> dict[str, str]:
        """Return the variables with which Terraform and `holdfast` use the API."""
        return {
            "TF_HTTP_USERNAME": self.username,
            "TF_HTTP_PASSWORD": self.password,
            "HOLDFAST_ADDRESS": self.address,
        }


class Home:
    """The folder `.local/` and its files. Each file is created when it is first written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.aws_data = self.folder / "aws"
        self.aws_env = self.folder / "aws.env"
        """`KEY=VALUE` lines for the AWS CLI, CDK and `holdfast`."""
        self.terraform_env = self.folder / "terraform.env"
        """Shell exports with which Terraform authenticates."""
        self.cloud_config = self.folder / "cloud.tfrc"
        """A CLI configuration with which `cloud {}` and `backend "remote"` find the API and authenticate."""
        self.port = self.folder / "port"
        self.issuer_keys = self.folder / "issuer" / "keys.json"
        self.issuer_port = self.folder / "issuer" / "port"
        self._connection = self.folder / "connection.json"
        self._deployment = self.folder / "deployment.json"

    @property
    def finished(self) -> bool:
        """Return whether an earlier `make up` got so far that there may be states, which must be kept.

        The states' data is checked too, because a user may remove the records and leave the data.
        """
        return (
            self._deployment.exists()
            or self._connection.exists()
            or any(path.name in _KEPT for path in (self.aws_data / "s3").rglob("*"))
        )

    def deployment(self) -> Deployment | None:
        """Return the last deployment; None if it has no valid record, so that `make up` deploys again."""
        with suppress(FileNotFoundError, ValueError, TypeError, KeyError):
            record = json.loads(self._deployment.read_text())
            if teams := tuple(DeployedTeam(**team) for team in record.pop("teams")):
                return Deployment(**record, teams=teams)
        return None

    def deployed_teams(self) -> tuple[str, ...]:
        """Return the deployed teams: from the record, or from the buckets if there is no record."""
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
        """Return Terraform's credentials, or None if there is no token yet."""
        with suppress(FileNotFoundError, ValueError, TypeError):
            return Connection(**json.loads(self._connection.read_text()))
        return None

    def remember_connection(self, connection: Connection) -> None:
        write_private(self._connection, json.dumps(asdict(connection), indent=2) + "\n")

    def forget(self) -> None:
        """Remove the deployment and the token, because their data are gone."""
        self._deployment.unlink(missing_ok=True)
        self._connection.unlink(missing_ok=True)
        self.cloud_config.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the folder with everything in it. The caller must be within `alone`."""
        last = (self.folder / _LOCK, self.folder / _MARKER)  # so that an interrupted removal can be repeated
        for path in (*({*self.folder.iterdir()} - {*last}), *last):
            remove(path)
        self.folder.rmdir()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Create and lock the folder. `LocalAwsError` if the folder has files but no mark of `make up`."""
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
            os.close(file)  # `clean` removed the file meanwhile

    def _claim(self) -> None:
        """Make the folder and mark it as ours. `LocalAwsError` if it has files but no mark."""
        marker = self.folder / _MARKER
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not marker.exists() and any(self.folder.iterdir()):
            raise LocalAwsError(
                f"{self.folder} is not empty, and `make up` did not create it: name another folder, or "
                "empty this one."
            )
        marker.touch(mode=0o600)
        self.folder.chmod(0o700)

"""The commands that use a deployed team, with what they need: each verb once."""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.support import documents
from tests.support.http_client import Client, Credentials
from tests.support.id_tokens import AUDIENCE
from tests.support.operators import Operator

MAIN: Final = frozenset(
    {
        *("whoami", "state list", "state history", "state diff", "state restore", "state freeze"),
        *("state unfreeze", "lock list", "lock break", "activity", "token list", "trust list"),
    }
)
"""The verbs that people use every day."""
REASON: Final = "wrong subnets, see INC-42"
FRUIT: Final = {
    "mode": "managed",
    "type": "terraform_data",
    "name": "apple",
    "provider": 'provider["terraform.io/builtin/terraform"]',
    "instances": [{"schema_version": 0, "attributes": {"id": "1", "input": "red"}}],
}


@dataclass(frozen=True)
class Said:
    """The JSON that a command printed, and the error if it failed."""

    command: str
    document: Any
    error: str


def write(client: Client, state: str, *bodies: bytes) -> None:
    """Write versions of a state under a lock, and release it."""
    info = documents.lock_info()
    assert client.lock(state, info).status == 200
    for body in bodies:
        answer = client.write(state, body, documents.lock_id(info))
        assert answer.status == 200, answer
    assert client.unlock(state, info).status == 200


@dataclass(frozen=True)
class Verbs:
    """The verbs of operators and of admins, about states below a name.

    `held` has a lock with the ID `held_id`, `app` two versions, `lost` one. `folder` gets a state's content.
    """

    name: str
    held_id: str
    token: str
    issuer: str
    folder: Path

    @property
    def of_operators(self) -> Sequence[Sequence[str]]:
        """Commands that use the API."""
        app, lost, held = (f"{self.name}/{state}" for state in ("app", "lost", "held"))
        return (
            ("whoami",),
            ("state", "list"),
            ("state", "show", app),
            ("state", "history", app),
            ("state", "diff", app),
            ("state", "get", app, "--output", str(self.folder / f"{self.name.replace('/', '-')}.tfstate")),
            ("state", "resources", app),
            ("state", "find", "terraform_data.apple"),
            ("state", "restore", app, "@1", "--reason", REASON),
            ("state", "delete", lost, "--yes"),
            ("state", "undelete", lost),
            ("state", "declare", f"{self.name}/declared"),
            ("state", "undeclare", f"{self.name}/declared"),
            ("lock", "list"),
            ("lock", "show", held),
            ("lock", "break", held, self.held_id),
            ("state", "freeze", app, "--reason", REASON, "--until", "2h"),
            ("state", "unfreeze", app),
            ("state", "freeze", f"{self.name}/*", "--reason", REASON, "--yes"),
            ("state", "unfreeze", f"{self.name}/*", "--yes"),
            ("activity", "--since", "1h"),
        )

    @property
    def of_admins(self) -> Sequence[Sequence[str]]:
        """Commands that use the team's stack and bucket, with AWS credentials."""
        record, scope = self.name.replace("/", "-"), ("--scope", f"{self.name}/*")
        condition = ("--issuer", self.issuer, "--audience", AUDIENCE, "--claim", f"repository=acme/{record}")
        return (
            ("token", "list"),
            ("token", "show", self.token),
            ("token", "update", self.token, "--owner", "Zoë"),
            ("trust", "create", record, "--role", "writer", *scope, *condition),
            ("trust", "show", record),
            ("trust", "update", record, "--role", "reader", *scope),
            ("trust", "list"),
            ("trust", "remove", record),
            ("audit", "--since", "1h"),
            ("token", "rotate", self.token),
            ("token", "revoke", self.token),
        )


def new_token(admin: Operator, name: str) -> tuple[Said, Credentials]:
    """Create a maintainer's token for what is below a name."""
    scope = ("--role", "maintainer", "--scope", f"{name}/*", "--owner", "Béa")
    made = admin.json("token", "create", *scope)
    return Said("token create", made, ""), Credentials(made["id"], made["secret"])


def use_verbs(
    maintainer: Operator, admin: Operator, client: Client, verbs: Verbs, only: Collection[str] = ()
) -> Iterator[Said]:
    """Use each verb once, with `--json`.

    All sign in with the token of `verbs`, and `admin` with AWS. `only`, if it is not empty, names the verbs.
    """
    fruit = json.loads(documents.state(2)) | {"resources": [FRUIT]}
    write(client, f"{verbs.name}/app", documents.state(1), json.dumps(fruit).encode())
    write(client, f"{verbs.name}/lost", documents.state())
    assert client.lock(f"{verbs.name}/held", documents.lock_info(verbs.held_id)).status == 200
    for person, commands in ((maintainer, verbs.of_operators), (admin, verbs.of_admins)):
        for command in commands:
            words = " ".join(command[:2] if command[1:] and command[1].isalpha() else command[:1])
            if only and words not in only:
                continue
            code, out, err = person.run(*command, "--json")
            yield Said(words, printed(words, out), err if code else "")


def printed(words: str, out: str) -> Any:
    """Return what a command printed as JSON: one document, or a list of one in each line."""
    if words == "audit":
        return [json.loads(line) for line in out.splitlines()]
    return json.loads(out) if out else None

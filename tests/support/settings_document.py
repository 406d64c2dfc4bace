"""docs/settings.md: all settings of a team, from their declarations in infra/config.py."""

from collections.abc import Iterator
from dataclasses import MISSING, Field, asdict
from pathlib import Path
from typing import Any

from holdfast import team
from infra.config import TeamConfig
from infra.settings import NamedTexts, Setting, Table, as_toml, settings_of

PATH = Path(__file__).resolve().parent.parent / "docs" / "settings.md"

_BEFORE = f"""\
# Settings of a team

<!-- Generated from infra/config.py by `make generated`: change it there. -->

The teams stand in `teams.toml`, each in a table of its own. A team with no setting at all has the safe ones:

```toml
[teams.platform]

[teams.payments]
account = "123456789012"
region = "eu-central-1"
retention = {{ mode = "governance", days = 30 }}
history = {{ days = 365, keep_versions = 100 }}
tags = {{ cost-center = "42" }}
```

A team's name is {team.NAME_RULE.replace("'", "`")}.
It is part of the names of stack, bucket and log groups.

Set both `account` and `region`. Without them the credentials of the first deployment decide where the store is; [teams.lock](#teamslock) keeps
it there.

A wrong setting stops every `cdk` command in one line that names file, team, setting and what to write instead. Nothing is deployed then.
`-c teams=<file>` reads another file.

## All settings

`retention.days` stands for `days` inside the table `retention`: `retention = {{ days = 30, … }}`.
The last column says what can be done with it once the team is deployed.
"""

_AFTER = """\

## What can be changed on a deployed team

Change `teams.toml`, look at `npx cdk diff Holdfast-<team>`, deploy. Everything is changed in place, with these exceptions:

- **The name, `account` and `region` cannot be changed**: the bucket's name contains them. A team with another name, account or region is
  another stack with an empty store; the old one goes on as it was. To move, deploy a second team and [migrate](migrating.md) its states.
  `account` and `region` can be added later, if they are those where the stack is.
- **`key` goes from `"s3"` to `"kms"` and not back**: without the key nobody can read what it encrypted. Each version keeps the encryption
  that it was written with.
- **`retention` holds from the next write on.** Every version keeps the retention that it was written with, also where the team has none any
  more. Versions that `backend "s3"` writes (`native_clients`) get one only with `bucket_default`.
- **Removing `retention.bucket_default`**: AWS does not say whether CloudFormation clears the bucket's default then. Look at the bucket:
  `aws s3api get-object-lock-configuration --bucket <bucket>`.
- **Deploy while nobody applies** when `key` goes to `"kms"`, or `retention` gets shorter or goes: the bucket changes some minutes before the
  functions do, and writes in between get `500` (Terraform keeps them as `errored.tfstate`). If such a change to `"kms"` fails and is rolled back,
  a state written meanwhile may need the key that stayed: fetch it with the AWS CLI and push it again.
- **`history` removes versions for good**, within two days of the deployment that shortens it. S3 removes none before its retention ends.

## teams.lock

`cdk synth`, `cdk diff` and `cdk deploy` for AWS record in `teams.lock`, beside `teams.toml`, where each team's store is: from `account` and
`region`, or from the credentials in use. Commit both files together. A team that is missing, renamed, or about to be deployed elsewhere (by
another `account` or `region`, or by the wrong credentials), or that gave up its KMS key, then stops every `cdk` command.
Otherwise the team would get a new, empty store, and the next `terraform apply` would create everything a second time. Another teams file has a lock of its own,
`<name>.lock`.

| What you want | What you do |
| --- | --- |
| a team is to go | [tear its stack down](deploying.md#tear-down), then remove it from `teams.toml` and `teams.lock` |
| a team is to have another name, account or region | add a team with a new name, [migrate](migrating.md) the states, then let the old one go |
| an account or region was wrong and nothing was deployed there | remove the team from `teams.lock` |
| the file is damaged or lost | restore it as it was committed |
"""


def settings_document() -> str:
    """Return the whole document."""
    return _BEFORE + "\n" + "\n".join(_table()) + "\n" + _AFTER


def _table() -> Iterator[str]:
    yield "| Setting | Write | Default | What it is | On a deployed team |"
    yield "| --- | --- | --- | --- | --- |"
    for name, one, field in _settings(TeamConfig):
        cells = [f"`{name}`", _written(one), _default(one, field), one.sentence, one.deployed]
        yield f"| {' | '.join(cells)} |"


def _settings(table: type, prefix: str = "") -> Iterator[tuple[str, Setting, Field[Any]]]:
    for name, (one, field) in settings_of(table).items():
        yield f"{prefix}{name}", one, field
        if isinstance(one.kind, Table):
            yield from _settings(one.kind.members, f"{prefix}{name}.")


def _written(one: Setting) -> str:
    match one.kind:
        case Table(example=example) | NamedTexts(example=example):
            return f"`{example}`"
        case _:
            return one.kind.written


def _default(one: Setting, field: Field[Any]) -> str:
    if one.default:
        return one.default
    if field.default is MISSING:
        return "must be given"
    if isinstance(one.kind, Table):
        return f"`{as_toml(asdict(field.default))}`"
    return f"`{as_toml(field.default)}`"

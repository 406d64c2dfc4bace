"""The CDK code of the deployment: one CloudFormation stack per team.

In all modules of this package:

- `scope` and `construct_id` place a construct in the CDK's tree. `logical_id` names its resource in the
  template and does not depend on that place.
- `team` is the settings of a team, `teams` the settings of all teams to deploy, and `path` their teams.toml.
- `target` is the target of the deployment, `bundles` the code of the functions, bundled for that target.
- `key` is the KMS key of new objects; None if S3 manages the keys. `key_arns` are all keys in use.
- `ConfigError` says what is wrong with a team's settings, `BundleError` why there is no bundle.
- Addresses have no slash at the end.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast_cdk.alarm_settings import AlarmSettings
    from holdfast_cdk.domain_settings import DomainSettings
    from holdfast_cdk.notify_settings import AuditArchive, Notify
    from holdfast_cdk.team_settings import AccessLogs, History, Memory, Replica, Retention, Team, Throttling
    from holdfast_cdk.team_stack import TeamStack

__all__ = [
    "AccessLogs",
    "AlarmSettings",
    "AuditArchive",
    "DomainSettings",
    "History",
    "Memory",
    "Notify",
    "Replica",
    "Retention",
    "Team",
    "TeamStack",
    "Throttling",
]

# Importing aws_cdk starts Node.js, which reads these variables. They silence warnings about Node.js's age and
# about deprecations. The warnings do not concern this app, and the CDK command prints them too.
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")
os.environ.setdefault("NODE_NO_WARNINGS", "1")

_MODULES = {
    "AlarmSettings": "alarm_settings",
    "AuditArchive": "notify_settings",
    "DomainSettings": "domain_settings",
    "Notify": "notify_settings",
    "TeamStack": "team_stack",
}
"""The modules of the public names that are not in `team_settings`."""


def __getattr__(name: str) -> object:
    """Import a public name when it is used: the settings are also read by programs without aws_cdk."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'team_settings')}"), name)

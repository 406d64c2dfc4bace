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
import sys
from pathlib import Path

# Importing aws_cdk starts Node.js, which reads these variables. They silence warnings about Node.js's age and
# about deprecations. The warnings do not concern this app, and the CDK command prints them too.
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")
os.environ.setdefault("NODE_NO_WARNINGS", "1")

# The format of the access log comes from `gateway`, which is part of the functions and is not installed. The
# folder is last in the path, so that it hides no other module.
sys.path.append(str(Path(__file__).resolve().parents[2] / "functions"))

"""The CDK code of what is deployed: one CloudFormation stack per team.

What is the same everywhere is said here alone:

- `scope` and `construct_id` place a construct in the CDK's tree. `logical_id` names its resource in the
  template and does not depend on that place.
- `team` has something made for it, `teams` are those to deploy, and `path` is the file that they stand in.
- `target` is where they are deployed, `bundles` the code of the functions, bundled for that target.
- `key` is the KMS key that encrypts every object; None where S3 manages the keys.
- `ConfigError` says what is wrong with a team's settings, `BundleError` why there is no bundle.
- Addresses have no slash at the end.
"""

import os
import sys
from pathlib import Path

# The import of aws_cdk starts Node.js, which reads these variables. Its warnings about its age and about
# deprecations do not concern this app; the CDK command prints them too.
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")
os.environ.setdefault("NODE_NO_WARNINGS", "1")

# The stack's access log has a key of `gateway`, which is part of the functions and is not installed. The
# folder is last in the path, so that it hides nothing.
sys.path.append(str(Path(__file__).resolve().parent.parent / "functions"))

"""The CDK code of what is deployed: one CloudFormation stack per team."""

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

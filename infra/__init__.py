"""What is deployed: one CloudFormation stack per team, made with the CDK."""

import os
import sys
from pathlib import Path

# aws_cdk starts Node.js when it is imported, and that reads these. What Node.js has to say about its age and
# its deprecations is no concern of this app; the CDK command says it too.
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")
os.environ.setdefault("NODE_NO_WARNINGS", "1")

# The stack's access log has a key of `gateway`, which is part of the functions and is not installed. The
# folder is last in the path, so that it hides nothing.
sys.path.append(str(Path(__file__).resolve().parent.parent / "functions"))

"""Access with AWS credentials to the team's stack, its bucket and its audit log."""

from holdfast_cli.lazy import load_when_used

load_when_used(__name__)

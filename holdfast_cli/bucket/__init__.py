"""Access with AWS credentials to the team's stack, its bucket and its audit log."""

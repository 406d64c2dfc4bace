"""What is done with AWS credentials: the team's stack, its bucket and its audit log."""

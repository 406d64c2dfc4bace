"""The deployed stack on a local AWS, under faults, kills and load."""

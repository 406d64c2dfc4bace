"""The function that copies what happened from the functions' logs to the audit log."""

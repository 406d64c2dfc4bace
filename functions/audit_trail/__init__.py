"""The function that copies events from the functions' logs to the audit log."""

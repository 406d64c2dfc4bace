"""Callers: credentials, the records that prove them, and sign-in."""

"""The function that makes sessions."""

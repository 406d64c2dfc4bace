"""Builds the site of the documents, and releases."""

"""The function that returns the version of the deployed code."""

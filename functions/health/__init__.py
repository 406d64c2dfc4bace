"""The function that tells the version of the deployed code."""

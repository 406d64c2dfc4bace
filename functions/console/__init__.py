"""The function that serves the console."""

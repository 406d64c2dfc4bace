"""The function behind the API's routes."""

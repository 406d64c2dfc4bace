"""Requests to the team's API."""

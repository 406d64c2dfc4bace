"""Requests to the team's API."""

from holdfast_cli.lazy import load_when_used

load_when_used(__name__)

"""Imports states from other backends: plan, run, check, close and open."""

from holdfast_cli.lazy import load_when_used

load_when_used(__name__)

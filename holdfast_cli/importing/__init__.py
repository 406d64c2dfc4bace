"""Imports states from other backends: plan, run, check, close and open."""

"""Holdfast's library: state names, locks, fenced writes and access, with no knowledge of any AWS event."""

__version__ = "0.5.0.dev0"

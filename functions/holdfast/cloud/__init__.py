"""Workspaces: the state part of the protocol that `cloud {}` and `backend "remote"` speak."""
